"""Find or download Terraform and the AWS provider: ``make setup`` runs this, and every Terraform call needs it.

Terraform is the one on ``PATH`` when it is new enough, otherwise the project's own under ``.sagefit/bin``.
Providers come from a mirror on disk where there is one, otherwise from the public registry.

| variable | means |
|---|---|
| ``SAGEFIT_HOME`` | the state directory, default ``.sagefit`` of the project |
| ``SAGEFIT_PLUGIN_MIRROR`` | a provider mirror, as ``terraform providers mirror DIR`` makes one |
| ``SAGEFIT_TERRAFORM_RELEASES`` | where Terraform is downloaded from |
| ``SAGEFIT_TERRAFORM_SHA256`` | the digest that the downloaded archive must have, instead of the one known here |
"""

from __future__ import annotations

import contextlib
import getpass
import hashlib
import json
import os
import platform
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from http.client import HTTPException, HTTPMessage
from ipaddress import ip_address
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn
from rich.text import Text

from sagefit import console, go_runtime, paths, signals
from sagefit.errors import DONE, FAILED, SagefitError

TERRAFORM_VERSION = "1.11.4"
# SHA-256 of HashiCorp's archives of this version, by platform.
TERRAFORM_SHA256 = {
    "darwin_amd64": "a56d5002b9f7647291faccc3dd1a70350e60fb61e4c45037629508b8fdc2575b",
    "darwin_arm64": "867e0808fa971217043e25b7a792b10720c79b1546f8a68479b74f138be73e18",
    "linux_amd64": "1ce994251c00281d6845f0f268637ba50c0005657eb3cf096b92f753b42ef4dc",
    "linux_arm64": "a43d1d0da9b9bab214a8305a39db0e40869572594ccf50c416a7756499143633",
}
TERRAFORM_RELEASES = "https://releases.hashicorp.com/terraform"
OLDEST_TERRAFORM = (1, 10)  # the first with a lock file in S3 state

# The address that `source = "hashicorp/aws"` stands for, and the range the root modules pin (~> 5.100).
PROVIDER = "registry.terraform.io/hashicorp/aws"
PROVIDER_RANGE = ((5, 100), (6,))

_TIMEOUT = 30.0
_CHUNK = 1 << 18


# --- Terraform -------------------------------------------------------------------------------------------------------


def terraform_binary(home: Path) -> Path:
    """Return the Terraform to run: the one on ``PATH`` if it is new enough, else the project's own."""
    seen = []
    for place, candidate in (("on PATH", shutil.which("terraform")), ("in the project", str(home / "bin/terraform"))):
        if not candidate or not Path(candidate).is_file():
            continue
        path = Path(candidate).absolute()
        version = terraform_version(path)
        if version and _numbers(version) >= OLDEST_TERRAFORM:
            return path
        seen.append(f"{path} {place} " + (f"is {version}" if version else "does not run"))
    raise SagefitError(
        f"Terraform >= {_dotted(OLDEST_TERRAFORM)} not found" + (f" ({'; '.join(seen)})" if seen else ""),
        hint=f"make setup fetches Terraform {TERRAFORM_VERSION} into {home / 'bin'}",
    )


def terraform_version(binary: Path) -> str | None:
    """Return what ``terraform version`` of this binary says, or None if it is broken."""
    return _terraform_version(str(binary), binary.stat().st_mtime_ns)


@lru_cache
def _terraform_version(binary: str, _modified: int) -> str | None:
    """Ask once a process for each state of the file."""
    # The user's settings do not change the version, and a wrong path in the variable would only print a warning.
    environment = os.environ | {"TF_CLI_CONFIG_FILE": os.devnull, "CHECKPOINT_DISABLE": "1"}
    try:
        answer = subprocess.run(
            [binary, "version", "-json"], env=environment, capture_output=True, text=True, timeout=60, check=True
        )
        return str(json.loads(answer.stdout)["terraform_version"])
    except (OSError, subprocess.SubprocessError, ValueError, LookupError, TypeError):
        return None


def install_terraform(base_url: str | None = None, into: Path | None = None) -> Path:
    """Download Terraform into a directory and return the binary; on any doubt leave nothing behind.

    The archive must have the digest that is known for this platform. For a download site with another build of this
    version, set ``SAGEFIT_TERRAFORM_SHA256`` to the digest that the archive must have instead.
    """
    base_url = (base_url or os.environ.get("SAGEFIT_TERRAFORM_RELEASES") or TERRAFORM_RELEASES).rstrip("/")
    into = into or paths.home() / "bin"
    archive = f"terraform_{TERRAFORM_VERSION}_{host_platform()}.zip"
    into.mkdir(parents=True, exist_ok=True)
    # Inside the target directory, so that the last step is a rename on one file system.
    with tempfile.TemporaryDirectory(prefix=".download-", dir=into) as scratch:
        package = Path(scratch, archive)
        _check_digest(archive, _download(f"{base_url}/{TERRAFORM_VERSION}/{archive}", package))
        unpacked = Path(scratch, "terraform")
        try:
            with zipfile.ZipFile(package) as content, content.open("terraform") as source, unpacked.open("wb") as sink:
                shutil.copyfileobj(source, sink)
        except (zipfile.BadZipFile, KeyError) as error:
            raise SagefitError(f"{archive}: holds no Terraform ({error})", exit_code=FAILED) from error
        unpacked.chmod(0o755)
        return unpacked.replace(into / "terraform")


def host_platform() -> str:
    """Return this machine in the words of Terraform's releases and provider mirrors, such as ``linux_amd64``."""
    system = {"Linux": "linux", "Darwin": "darwin"}.get(platform.system())
    machine = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}.get(
        platform.machine().lower()
    )
    if not system or not machine:
        raise SagefitError(
            f"no Terraform download is known for {platform.system()} on {platform.machine()}",
            hint=f"install Terraform >= {_dotted(OLDEST_TERRAFORM)} yourself and put it on PATH",
        )
    return f"{system}_{machine}"


def _check_digest(archive: str, digest: str) -> None:
    """Refuse an archive that is neither the one known here nor the one that the user pinned."""
    pinned = os.environ.get("SAGEFIT_TERRAFORM_SHA256", "").strip().lower()
    expected = pinned or TERRAFORM_SHA256[host_platform()]
    if digest != expected:
        whose = "SAGEFIT_TERRAFORM_SHA256" if pinned else "Sagefit"
        raise SagefitError(
            f"{archive}: SHA-256 is {digest}, and {whose} says {expected}",
            hint="the download is not what was published; try again, or from another network. "
            "SAGEFIT_TERRAFORM_SHA256 is the digest of the archive for this very platform",
            exit_code=FAILED,
        )


class _SecureRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect may not lead from HTTPS to HTTP."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> urllib.request.Request | None:
        _require_secure(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _download(url: str, target: Path) -> str:
    """Save the URL to a file and return its SHA-256, with a progress bar on a terminal."""
    _require_secure(url)
    # A proxy cannot reach the loopback interface of this machine.
    proxies = [urllib.request.ProxyHandler({})] if _is_loopback(url) else []
    opener = urllib.request.build_opener(_SecureRedirects, *proxies)
    digest, size = hashlib.sha256(), 0
    try:
        with opener.open(url, timeout=_TIMEOUT) as answer, target.open("wb") as sink, _progress() as progress:
            total = int(answer.headers.get("Content-Length") or 0)
            task = progress.add_task(target.name, total=total or None)
            while chunk := answer.read(_CHUNK):
                sink.write(chunk)
                digest.update(chunk)
                size += len(chunk)
                progress.update(task, completed=size)
    except urllib.error.HTTPError as error:
        error.close()
        raise SagefitError(
            f"{url}: the server answers {error.code} {error.reason}",
            hint="SAGEFIT_TERRAFORM_RELEASES names the place that holds <version>/terraform_<version>_<platform>.zip",
            exit_code=FAILED,
        ) from error
    except (OSError, HTTPException) as error:
        raise _unreachable(url, str(getattr(error, "reason", error))) from error
    if size < total:
        raise _unreachable(url, f"the connection ended after {size} of {total} bytes")
    return digest.hexdigest()


def _unreachable(url: str, reason: str) -> SagefitError:
    """Return the error for a download that did not work out."""
    return SagefitError(
        f"{url}: {reason}",
        hint=f"try again, put Terraform >= {_dotted(OLDEST_TERRAFORM)} on PATH yourself, "
        "or set SAGEFIT_TERRAFORM_RELEASES to a copy of the releases",
        exit_code=FAILED,
    )


def _progress() -> Progress:
    """Return a progress bar that a pipe never sees."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    return Progress(*columns, console=console.err, transient=True, disable=not console.err.is_terminal)


def _require_secure(url: str) -> None:
    """Accept HTTPS, and HTTP on this machine."""
    scheme = urlsplit(url).scheme
    if scheme != "https" and not (scheme == "http" and _is_loopback(url)):
        raise SagefitError(
            f"{url}: Terraform is downloaded over https only (http on loopback excepted)",
            hint="set SAGEFIT_TERRAFORM_RELEASES to an https address",
        )


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


# --- Providers -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Providers:
    """Where Terraform gets its providers from."""

    origin: str
    """In words, for people."""
    config: Path | None = None
    """The settings file that says so; None for the registry."""
    cached: bool = False
    """Worth a cache: Terraform links to an unpacked mirror, but fetches and unpacks anything else for each root."""


def provider_config(home: Path) -> Path | None:
    """Return the Terraform settings file that says where providers come from; None means the registry."""
    return find_providers(home).config


def find_providers(home: Path) -> Providers:
    """Decide where providers come from: the named mirror, the user's settings, a mirror found on disk, the registry.

    Terraform uses a mirror only if a settings file names it: ``terraformrc`` in the state directory, written only when
    it changes. That file replaces a ``.terraformrc`` of the user's that says nothing about providers.
    """
    if named := os.environ.get("SAGEFIT_PLUGIN_MIRROR"):
        mirror = Path(named).expanduser().absolute()
        try:
            usable, seen = _mirrored(mirror)
        except PermissionError as error:
            raise _not_yours("SAGEFIT_PLUGIN_MIRROR", mirror) from error
        if not usable:
            low, high = (_dotted(bound) for bound in PROVIDER_RANGE)
            raise SagefitError(
                f"SAGEFIT_PLUGIN_MIRROR: {mirror} holds no hashicorp/aws >= {low}, < {high} for {host_platform()}"
                + (f", only {', '.join(seen)}" if seen else ""),
                hint=f"fill it with: terraform providers mirror {mirror}, or unset SAGEFIT_PLUGIN_MIRROR",
            )
        return _use_mirror(home, mirror)
    if (own := _user_settings(home)) and _mentions(own, "provider_installation"):
        return Providers(f"as {own} says", own)
    if found := next(filter(_is_mirror, _mirror_roots()), None):
        return _use_mirror(home, found)
    return Providers("from the registry", cached=True)


def terraform_environment(home: Path) -> dict[str, str]:
    """Return what every call of Terraform gets on top of the environment."""
    providers = find_providers(home)
    overlay = {"CHECKPOINT_DISABLE": "1", "TF_IN_AUTOMATION": "1", "TF_INPUT": "0"} | go_runtime.environment()
    if providers.config == home / "terraformrc":
        overlay["TF_CLI_CONFIG_FILE"] = str(providers.config)
    elif (named := os.environ.get("TF_CLI_CONFIG_FILE")) and _user_settings(home) != Path(named).absolute():
        overlay["TF_CLI_CONFIG_FILE"] = ""  # as if unset: the file is not there, and Terraform warns on every call
    if providers.cached and not _user_cache(home):
        cache = home / "plugin-cache"
        cache.mkdir(parents=True, exist_ok=True)  # Terraform refuses a cache that does not exist
        overlay["TF_PLUGIN_CACHE_DIR"] = str(cache)
        # Without this the cache is passed over wherever no lock file lists the provider yet.
        overlay["TF_PLUGIN_CACHE_MAY_BREAK_DEPENDENCY_LOCK_FILE"] = "1"
    return overlay


def _user_settings(home: Path) -> Path | None:
    """Return the settings file that Terraform reads when we name none.

    Raises SagefitError when a variable names it and this user may not read it. ``sudo -u`` can cause this: it keeps
    the variable.
    """
    if (named := os.environ.get("TF_CLI_CONFIG_FILE")) and (path := Path(named).absolute()) != home / "terraformrc":
        try:
            if path.is_file():
                path.open().close()
                return path
        except PermissionError as error:
            raise _not_yours("TF_CLI_CONFIG_FILE", path) from error
    with contextlib.suppress(PermissionError):  # a home directory of somebody else: Terraform finds nothing there, too
        if (path := Path.home() / ".terraformrc") != home / "terraformrc" and path.is_file():
            return path
    return None


def _not_yours(variable: str, path: Path) -> SagefitError:
    return SagefitError(
        f"{variable}: {path} cannot be read: permission denied",
        hint=f"unset {variable}, or name what this user ({_user()}) may read",
    )


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # one without a name
        return str(os.getuid())


def _user_cache(home: Path) -> bool:
    """Whether the user keeps a cache of providers already."""
    settings = _user_settings(home)
    return bool(os.environ.get("TF_PLUGIN_CACHE_DIR") or (settings and _mentions(settings, "plugin_cache_dir")))


def _mentions(path: Path, setting: str) -> bool:
    """Whether a settings file, HCL or JSON, has this setting outside a comment."""
    with contextlib.suppress(OSError):
        return bool(re.search(rf'^[\s{{,]*"?{setting}"?\s*[{{:=]', path.read_text(errors="replace"), re.MULTILINE))
    return False


def _mirror_roots() -> Iterator[Path]:
    """Yield the directories that may be a mirror: those Terraform itself knows, then one level below the usual ones.

    Directories that everybody may write to are skipped: whoever puts a provider there would run a program as this user.
    """
    data_home = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share"
    data_dirs = (os.environ.get("XDG_DATA_DIRS") or "/usr/local/share:/usr/share").split(":")
    yield Path.home() / ".terraform.d/plugins"
    yield Path.home() / "Library/Application Support/io.terraform/plugins"
    for data in (data_home, *data_dirs):
        yield Path(data) / "terraform/plugins"
    for parent in _mirror_parents():
        with contextlib.suppress(OSError):
            for entry in sorted(parent.iterdir()):
                with contextlib.suppress(OSError):
                    mode = entry.stat().st_mode
                    if stat.S_ISDIR(mode) and not mode & stat.S_IWOTH:
                        yield entry


def _mirror_parents() -> tuple[Path, ...]:
    return tuple(Path(parent) for parent in ("/opt", "/usr/local", "/srv", "/var/lib"))


def _mirrored(root: Path) -> tuple[bool, list[str]]:
    """Return whether a mirror has a version that the root modules accept, and the versions it has for this machine."""
    versions = sorted({*_unpacked(root), *_packed(root)}, key=_numbers)
    return any(_accepted(version) for version in versions), versions


def _is_mirror(root: Path) -> bool:
    """Whether a place that nobody named is a mirror; one that this user may not read is none."""
    with contextlib.suppress(PermissionError):
        return _mirrored(root)[0]
    return False


def _unpacked(root: Path) -> list[str]:
    """Return the versions laid out as ``<version>/<platform>/``."""
    return [path.parent.name for path in (root / PROVIDER).glob(f"*/{host_platform()}") if path.is_dir()]


def _packed(root: Path) -> list[str]:
    """Return the versions that lie there as archives, which is how ``terraform providers mirror`` writes them."""
    start, end = "terraform-provider-aws_", f"_{host_platform()}.zip"
    return [path.name[len(start) : -len(end)] for path in (root / PROVIDER).glob(f"{start}*{end}")]


def _accepted(version: str) -> bool:
    low, high = PROVIDER_RANGE
    return low <= _numbers(version) < high


def _use_mirror(home: Path, mirror: Path) -> Providers:
    """Write the settings file for a mirror, unless it says the same already."""
    path = json.dumps(str(mirror), ensure_ascii=False)
    text = (
        "# Written by sagefit.toolchain; change SAGEFIT_PLUGIN_MIRROR instead.\n"
        "provider_installation {\n"
        "  filesystem_mirror {\n"
        f"    path    = {path}\n"
        f'    include = ["{PROVIDER}"]\n'
        "  }\n"
        "  direct {\n"
        f'    exclude = ["{PROVIDER}"]\n'
        "  }\n"
        "}\n"
    )
    config = home / "terraformrc"
    if not config.is_file() or config.read_text() != text:
        home.mkdir(parents=True, exist_ok=True)
        # Several processes may come here at once: each renames a complete file (mode 0600) into place.
        handle, name = tempfile.mkstemp(prefix=".terraformrc-", dir=home)
        with os.fdopen(handle, "w") as sink:
            sink.write(text)
        Path(name).replace(config)
    return Providers(f"from the mirror {mirror}", config, cached=not any(map(_accepted, _unpacked(mirror))))


def _numbers(version: str) -> tuple[int, ...]:
    """Return ``1.11.4-beta1`` as ``(1, 11, 4)``; a text that is no version sorts first."""
    match = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(part) for part in match.group().split(".")) if match else ()


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version)) if len(version) > 1 else f"{version[0]}.0"


# --- make setup ------------------------------------------------------------------------------------------------------


def setup(home: Path) -> None:
    """Make Terraform and the AWS provider available, and print in two lines which versions they are."""
    try:
        binary = terraform_binary(home)
    except SagefitError as error:
        console.err.print(f"{error.message}: fetching {TERRAFORM_VERSION}", markup=False, soft_wrap=True)
        install_terraform(into=home / "bin")
        binary = terraform_binary(home)
    console.out.print(f"Terraform {terraform_version(binary)}: {binary}", markup=False, soft_wrap=True)
    providers = find_providers(home)
    overlay = terraform_environment(home)
    if "TF_PLUGIN_CACHE_DIR" in overlay:
        _fill_cache(home, binary, os.environ | overlay)
    console.out.print(f"AWS provider: {providers.origin}", markup=False, soft_wrap=True)


def _fill_cache(home: Path, binary: Path, environment: Mapping[str, str]) -> None:
    """Download the provider once, here: several ``terraform init`` must not fill Terraform's cache at the same time."""
    low, _ = PROVIDER_RANGE
    root = home / "setup"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    source = PROVIDER.partition("/")[2]
    requirement = f'aws = {{ source = "{source}", version = "~> {_dotted(low)}" }}'
    (root / "versions.tf").write_text(f"terraform {{\n  required_providers {{\n    {requirement}\n  }}\n}}\n")
    with console.err.status("Fetching the AWS provider (about 150 MB, once)"):
        done = subprocess.run(
            [binary, f"-chdir={root}", "init", "-no-color"],
            env={**environment, "TF_DATA_DIR": str(root / "data")},
            capture_output=True,
            text=True,
            check=False,
        )
    shutil.rmtree(root)
    if done.returncode:
        raise SagefitError(
            f"Terraform cannot fetch the AWS provider:\n{done.stderr.strip()}",
            hint="behind a firewall, copy the output of `terraform providers mirror DIR` here "
            "and set SAGEFIT_PLUGIN_MIRROR to that directory",
            exit_code=FAILED,
        )


def main() -> int:
    """Run the set-up for the command line and return its exit code."""
    signals.listen()
    try:
        setup(paths.private_folder(paths.home()))
        paths.shut_home()
    except SagefitError as error:
        console.err.print(Text(f"error: {error.message}", style="red"), soft_wrap=True)
        if error.hint:
            console.err.print(Text(f"hint: {error.hint}"), soft_wrap=True)
        return error.exit_code
    except KeyboardInterrupt:
        return signals.exit_code()
    return DONE


if __name__ == "__main__":
    sys.exit(main())
