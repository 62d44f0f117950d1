"""Terraform and its providers: found, downloaded from a real server on loopback, refused when in doubt."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import re
import socket
import stat
import subprocess
import threading
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from sagefit import go_runtime, paths, toolchain
from sagefit.errors import DONE, FAILED, INVALID, SagefitError
from terraform import attached

VERSION = toolchain.TERRAFORM_VERSION
ARCHIVE = f"terraform_{VERSION}_{toolchain.host_platform()}.zip"


def fake_terraform(version: str) -> str:
    """A Terraform that knows its version, and complains on stderr as the real one does when settings are missing."""
    answer = f'{{"terraform_version": "{version}", "platform": "linux_amd64"}}'
    return f"#!/bin/sh\necho 'Warning: Unable to open CLI configuration file' >&2\necho '{answer}'\n"


def executable(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def files(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir())


def mirror(root: Path, *versions: str, packed: bool = False) -> Path:
    """Lay out a provider mirror."""
    folder, machine = root / toolchain.PROVIDER, toolchain.host_platform()
    for version in versions:
        if packed:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"terraform-provider-aws_{version}_{machine}.zip").touch()
        else:
            (folder / version / machine).mkdir(parents=True)
    root.mkdir(parents=True, exist_ok=True)
    return root


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine of the test's own: no Terraform, no settings, no mirror; returns its home directory."""
    for name in [*os.environ]:
        if name.startswith(("SAGEFIT_", "TF_", "XDG_")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    user = tmp_path / "user"
    user.mkdir()
    monkeypatch.setenv("HOME", str(user))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setenv("XDG_DATA_DIRS", str(tmp_path / "share"))
    monkeypatch.setattr(toolchain, "_mirror_parents", lambda: (tmp_path / "opt", tmp_path / "srv"))
    return user


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "project" / ".sagefit"


@contextlib.contextmanager
def of_somebody_else(path: Path) -> Iterator[None]:
    """This user may not enter or read a path; for that, root becomes another for a while."""
    root, mode = os.geteuid() == 0, path.stat().st_mode
    path.chmod(0)
    above = {folder: folder.stat().st_mode for folder in path.parents if root and not folder.stat().st_mode & 1}
    for folder in above:
        folder.chmod(0o755)
    try:
        if root:
            os.seteuid(65534)
        yield
    finally:
        if root:
            os.seteuid(0)
        for folder, before in above.items():
            folder.chmod(before)
        path.chmod(mode)


@dataclass
class Releases:
    """A copy of the releases site on loopback."""

    root: Path
    url: str
    known: dict[str, str]

    def publish(self, program: str = "", *, archive: bytes | None = None, digest: str | None = None) -> bytes:
        """Publish an archive whose digest Sagefit knows, or takes for another."""
        if archive is None:
            buffer = io.BytesIO()
            with zipfile.ZipFile(buffer, "w") as content:
                content.writestr("LICENSE.txt", "a licence")
                content.writestr("terraform", program or fake_terraform(VERSION))
            archive = buffer.getvalue()
        folder = self.root / VERSION
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ARCHIVE).write_bytes(archive)
        self.known[toolchain.host_platform()] = digest or hashlib.sha256(archive).hexdigest()
        return archive


class Handler(SimpleHTTPRequestHandler):
    """Serves files, a redirect to an insecure place, and an answer that breaks off half way."""

    def do_GET(self) -> None:
        if self.path.startswith("/insecure/"):
            self.send_response(302)
            self.send_header("Location", f"http://releases.invalid{self.path}")
            self.end_headers()
        elif self.path.startswith("/broken/") and self.path.endswith(".zip"):
            content = Path(self.directory, self.path.removeprefix("/broken/")).read_bytes()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: len(content) // 2])
        else:
            self.path = self.path.removeprefix("/broken")
            super().do_GET()

    def log_message(self, format: str, *args: object) -> None:
        """Keep the test's output clean."""


@pytest.fixture
def releases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Releases]:
    known = dict.fromkeys(toolchain.TERRAFORM_SHA256, "0" * 64)
    monkeypatch.setattr(toolchain, "TERRAFORM_SHA256", known)
    root = tmp_path / "releases"
    root.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(root)))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield Releases(root, f"http://127.0.0.1:{server.server_port}", known)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class TestInstall:
    def test_downloads_checks_and_installs(self, releases: Releases, tmp_path: Path) -> None:
        releases.publish()
        binary = toolchain.install_terraform(releases.url, tmp_path / "bin")
        assert binary == tmp_path / "bin/terraform"
        assert toolchain.terraform_version(binary) == VERSION
        assert files(tmp_path / "bin") == ["terraform"]
        assert stat.S_IMODE(binary.stat().st_mode) == 0o755

    def test_defaults_come_from_the_environment(
        self, releases: Releases, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        archive = releases.publish(digest="1" * 64)
        monkeypatch.setenv("SAGEFIT_TERRAFORM_RELEASES", releases.url + "/")
        monkeypatch.setenv("SAGEFIT_HOME", str(home))
        monkeypatch.setenv("SAGEFIT_TERRAFORM_SHA256", hashlib.sha256(archive).hexdigest().upper())
        assert toolchain.install_terraform() == home / "bin/terraform"

    def test_a_proxy_is_not_asked_for_loopback(
        self, releases: Releases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        releases.publish()
        monkeypatch.setenv("http_proxy", "http://proxy.invalid:3128")
        assert toolchain.install_terraform(releases.url, tmp_path / "bin").is_file()

    def test_replaces_an_older_one_in_one_step(self, releases: Releases, tmp_path: Path) -> None:
        old = executable(tmp_path / "bin/terraform", fake_terraform("1.2.3"))
        releases.publish()
        with old.open() as still_running:
            toolchain.install_terraform(releases.url, tmp_path / "bin")
            assert "1.2.3" in still_running.read()
        assert toolchain.terraform_version(old) == VERSION

    @pytest.mark.parametrize("before", [[], ["terraform"]], ids=["fresh", "installed"])
    @pytest.mark.parametrize(
        ("prepare", "path", "message"),
        [
            (lambda site: site.publish(digest="1" * 64), "", f"SHA-256 is .*, and Sagefit says {'1' * 64}"),
            (lambda site: site.publish(), "/broken", r"the connection ended after \d+ of \d+ bytes"),
            (lambda site: site.publish(archive=b"PK\x03\x04 cut off"), "", "holds no Terraform .*not a zip file"),
            (lambda _: None, "", f"/{VERSION}/{ARCHIVE}: the server answers 404"),
            (lambda site: site.publish(), "/insecure", "http://releases.invalid/.* over https only"),
        ],
        ids=["digest", "connection", "zip", "version", "redirect"],
    )
    def test_refuses_and_changes_nothing(
        self,
        releases: Releases,
        tmp_path: Path,
        prepare: Callable[[Releases], None],
        path: str,
        message: str,
        before: list[str],
    ) -> None:
        for name in before:
            executable(tmp_path / "bin" / name, fake_terraform("1.10.0"))
        prepare(releases)
        with pytest.raises(SagefitError, match=message):
            toolchain.install_terraform(releases.url + path, tmp_path / "bin")
        assert files(tmp_path / "bin") == before
        for name in before:
            assert toolchain.terraform_version(tmp_path / "bin" / name) == "1.10.0"

    def test_refuses_an_archive_without_terraform(self, releases: Releases, tmp_path: Path) -> None:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as content:
            content.writestr("../terraform", "outside")
        releases.publish(archive=buffer.getvalue())
        with pytest.raises(SagefitError, match="holds no Terraform"):
            toolchain.install_terraform(releases.url, tmp_path / "bin")
        assert files(tmp_path / "bin") == []
        assert not (tmp_path / "terraform").exists()

    def test_refuses_what_is_not_pinned(
        self, releases: Releases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        releases.publish()
        monkeypatch.setenv("SAGEFIT_TERRAFORM_SHA256", "2" * 64)
        with pytest.raises(SagefitError, match=f"and SAGEFIT_TERRAFORM_SHA256 says {'2' * 64}") as refusal:
            toolchain.install_terraform(releases.url, tmp_path / "bin")
        assert refusal.value.exit_code == FAILED
        assert files(tmp_path / "bin") == []

    @pytest.mark.parametrize("url", ["http://releases.invalid", "ftp://127.0.0.1", "file:///tmp", "releases.invalid"])
    def test_refuses_an_insecure_place(self, url: str, tmp_path: Path) -> None:
        with pytest.raises(SagefitError, match="over https only") as refusal:
            toolchain.install_terraform(url, tmp_path / "bin")
        assert refusal.value.exit_code == INVALID

    def test_says_when_nobody_answers(self, tmp_path: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
        with pytest.raises(SagefitError, match="refused") as refusal:
            toolchain.install_terraform(f"http://127.0.0.1:{port}", tmp_path / "bin")
        assert "SAGEFIT_TERRAFORM_RELEASES" in (refusal.value.hint or "")


@pytest.mark.parametrize(
    ("system", "processor", "words"),
    [
        ("Linux", "x86_64", "linux_amd64"),
        ("Linux", "aarch64", "linux_arm64"),
        ("Darwin", "arm64", "darwin_arm64"),
        ("Darwin", "x86_64", "darwin_amd64"),
    ],
)
def test_host_platform(system: str, processor: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.system", lambda: system)
    monkeypatch.setattr("platform.machine", lambda: processor)
    assert toolchain.host_platform() == words


def test_host_platform_says_what_it_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    with pytest.raises(SagefitError, match="riscv64"):
        toolchain.host_platform()


class TestBinary:
    def test_takes_the_one_on_path(self, tmp_path: Path, home: Path) -> None:
        executable(home / "bin/terraform", fake_terraform(VERSION))
        on_path = executable(tmp_path / "path/terraform", fake_terraform("1.10.0-beta1"))
        assert toolchain.terraform_binary(home) == on_path

    @pytest.mark.parametrize(
        "program",
        [
            fake_terraform("1.9.8"),
            fake_terraform("0.11.0"),
            "#!/bin/sh\nexit 1\n",
            "#!/bin/sh\necho hello\n",
            "no shell",
        ],
    )
    def test_passes_over_one_that_is_too_old_or_broken(self, program: str, tmp_path: Path, home: Path) -> None:
        executable(tmp_path / "path/terraform", program)
        own = executable(home / "bin/terraform", fake_terraform(VERSION))
        assert toolchain.terraform_binary(home) == own

    def test_says_what_it_found_instead(self, tmp_path: Path, home: Path) -> None:
        old = executable(tmp_path / "path/terraform", fake_terraform("1.9.8"))
        message = re.escape(f"Terraform >= 1.10 not found ({old} on PATH is 1.9.8)")
        with pytest.raises(SagefitError, match=message) as refusal:
            toolchain.terraform_binary(home)
        assert "make setup" in (refusal.value.hint or "")

    def test_none_at_all(self, home: Path) -> None:
        with pytest.raises(SagefitError, match=r"^Terraform >= 1\.10 not found\n"):
            toolchain.terraform_binary(home)

    def test_sees_a_new_version_under_the_same_name(self, home: Path) -> None:
        own = executable(home / "bin/terraform", fake_terraform("1.9.8"))
        os.utime(own, ns=(1, 1))
        assert toolchain.terraform_version(own) == "1.9.8"
        executable(own, fake_terraform(VERSION))
        assert toolchain.terraform_version(own) == VERSION


class TestProviders:
    def test_the_registry_when_there_is_nothing_else(self, home: Path) -> None:
        assert toolchain.provider_config(home) is None
        assert not home.exists()

    def test_the_order_of_precedence(self, machine: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        found = mirror(machine / ".terraform.d/plugins", "5.100.0")
        assert toolchain.find_providers(home).origin == f"from the mirror {found}"

        (machine / ".terraformrc").write_text("provider_installation {\n  direct {}\n}\n")
        assert toolchain.provider_config(home) == machine / ".terraformrc"

        named = machine / "settings.tfrc"
        named.write_text('{"provider_installation": [{"direct": {}}]}')
        monkeypatch.setenv("TF_CLI_CONFIG_FILE", str(named))
        assert toolchain.provider_config(home) == named

        monkeypatch.setenv("SAGEFIT_PLUGIN_MIRROR", str(mirror(machine / "own", "5.100.0")))
        assert toolchain.provider_config(home) == home / "terraformrc"
        assert str(machine / "own") in (home / "terraformrc").read_text()

    def test_settings_without_a_word_on_providers_do_not_count(
        self, machine: Path, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings = machine / "settings.tfrc"
        settings.write_text("# provider_installation {\ndisable_checkpoint = true\n")
        monkeypatch.setenv("TF_CLI_CONFIG_FILE", str(settings))
        (machine / ".terraformrc").write_text("provider_installation {\n  direct {}\n}\n")  # Terraform reads one only
        assert toolchain.provider_config(home) is None

    @pytest.mark.parametrize("variable", ["TF_CLI_CONFIG_FILE", "SAGEFIT_PLUGIN_MIRROR"])
    def test_what_is_named_and_belongs_to_somebody_else_is_refused(
        self, variable: str, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As after ``sudo -u``, which keeps the variable."""
        theirs = tmp_path / "theirs"
        theirs.mkdir()
        (theirs / "named").write_text("provider_installation {\n  direct {}\n}\n")
        monkeypatch.setenv(variable, str(theirs / "named"))
        with of_somebody_else(theirs), pytest.raises(SagefitError) as refused:
            toolchain.terraform_environment(home)
        assert refused.value.message == f"{variable}: {theirs / 'named'} cannot be read: permission denied"
        assert f"unset {variable}, or name what this user (" in str(refused.value.hint)
        assert refused.value.exit_code == INVALID

    def test_settings_that_are_seen_and_cannot_be_read_are_refused(
        self, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings = tmp_path / "settings.tfrc"
        settings.write_text("provider_installation {\n  direct {}\n}\n")
        monkeypatch.setenv("TF_CLI_CONFIG_FILE", str(settings))
        with of_somebody_else(settings), pytest.raises(SagefitError, match=r"TF_CLI_CONFIG_FILE: .* cannot be read"):
            toolchain.find_providers(home)

    def test_a_home_directory_of_somebody_else_holds_nothing(self, machine: Path, home: Path) -> None:
        (machine / ".terraformrc").write_text("provider_installation {\n  direct {}\n}\n")
        mirror(machine / ".terraform.d/plugins", "5.100.0")
        with of_somebody_else(machine):
            assert toolchain.find_providers(home).origin == "from the registry"

    def test_our_own_file_is_not_taken_for_the_users(
        self, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        moved = mirror(tmp_path / "opt/before", "5.100.0")
        config = toolchain.provider_config(home)
        moved.rename(tmp_path / "opt/after")
        monkeypatch.setenv("TF_CLI_CONFIG_FILE", str(config))
        assert toolchain.provider_config(home) == config
        assert str(tmp_path / "opt/after") in (home / "terraformrc").read_text()

    @pytest.mark.parametrize("packed", [False, True], ids=["unpacked", "packed"])
    @pytest.mark.parametrize("place", ["user/.terraform.d/plugins", "share/terraform/plugins", "opt/any", "srv/name"])
    def test_finds_a_mirror(self, place: str, packed: bool, tmp_path: Path, home: Path) -> None:
        root = mirror(tmp_path / place, "4.67.0", "5.100.0", packed=packed)
        providers = toolchain.find_providers(home)
        assert providers == toolchain.Providers(f"from the mirror {root}", home / "terraformrc", cached=packed)

    @pytest.mark.parametrize("version", ["4.67.0", "5.99.1", "6.0.0"])
    def test_passes_over_a_mirror_without_a_version_that_fits(self, version: str, tmp_path: Path, home: Path) -> None:
        mirror(tmp_path / "opt/any", version)
        assert toolchain.provider_config(home) is None

    def test_looks_one_level_deep(self, tmp_path: Path, home: Path) -> None:
        mirror(tmp_path / "opt/some/where", "5.100.0")
        assert toolchain.provider_config(home) is None

    def test_passes_over_another_machines_mirror(self, tmp_path: Path, home: Path) -> None:
        (tmp_path / "opt/any" / toolchain.PROVIDER / "5.100.0/plan9_mips").mkdir(parents=True)
        assert toolchain.provider_config(home) is None

    def test_passes_over_what_everybody_may_write_to(self, tmp_path: Path, home: Path) -> None:
        mirror(tmp_path / "opt/any", "5.100.0").chmod(0o777)
        assert toolchain.provider_config(home) is None

    @pytest.mark.parametrize(("versions", "seen"), [((), ""), (("4.67.0", "6.2.0"), ", only 4.67.0, 6.2.0")])
    def test_a_named_mirror_must_hold_the_provider(
        self, versions: tuple[str, ...], seen: str, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        root = mirror(tmp_path / "named", *versions)
        monkeypatch.setenv("SAGEFIT_PLUGIN_MIRROR", str(root))
        expected = f"SAGEFIT_PLUGIN_MIRROR: {root} holds no hashicorp/aws >= 5.100, < 6.0 for "
        with pytest.raises(SagefitError, match=re.escape(expected) + rf"\w+{seen}\n"):
            toolchain.provider_config(home)
        assert not home.exists()

    def test_the_settings_file_is_private_and_written_once(self, tmp_path: Path, home: Path) -> None:
        mirror(tmp_path / 'opt/a "b" ü', "5.100.0")
        config = toolchain.provider_config(home)
        assert config is not None
        assert stat.S_IMODE(config.stat().st_mode) == 0o600
        assert r"opt/a \"b\" ü" in config.read_text()
        os.utime(config, ns=(1, 1))
        assert toolchain.provider_config(home) == config
        assert config.stat().st_mtime_ns == 1

    def test_many_at_once_leave_one_complete_file(self, tmp_path: Path, home: Path) -> None:
        mirror(tmp_path / "opt/any", "5.100.0")
        with ThreadPoolExecutor(8) as pool:
            assert set(pool.map(toolchain.provider_config, [home] * 32)) == {home / "terraformrc"}
        assert files(home) == ["terraformrc"]


class TestEnvironment:
    def test_with_a_mirror(self, tmp_path: Path, home: Path) -> None:
        mirror(tmp_path / "opt/any", "5.100.0")
        assert toolchain.terraform_environment(home) == go_runtime.environment() | {
            "CHECKPOINT_DISABLE": "1",
            "TF_CLI_CONFIG_FILE": str(home / "terraformrc"),
            "TF_IN_AUTOMATION": "1",
            "TF_INPUT": "0",
        }

    def test_with_the_registry_the_provider_is_cached(self, home: Path) -> None:
        environment = toolchain.terraform_environment(home)
        assert environment["TF_PLUGIN_CACHE_DIR"] == str(home / "plugin-cache")
        assert (home / "plugin-cache").is_dir()
        assert "TF_CLI_CONFIG_FILE" not in environment

    def test_archives_of_a_mirror_are_unpacked_once(self, tmp_path: Path, home: Path) -> None:
        mirror(tmp_path / "opt/any", "5.100.0", packed=True)
        assert "TF_PLUGIN_CACHE_DIR" in toolchain.terraform_environment(home)

    def test_the_users_own_cache_stays(self, machine: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TF_PLUGIN_CACHE_DIR", str(machine))
        assert "TF_PLUGIN_CACHE_DIR" not in toolchain.terraform_environment(home)

    def test_settings_that_are_not_there_are_not_named_to_terraform(
        self, machine: Path, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TF_CLI_CONFIG_FILE", str(machine / "missing"))
        assert toolchain.terraform_environment(home)["TF_CLI_CONFIG_FILE"] == ""

    def test_the_users_settings_are_left_to_terraform(
        self, machine: Path, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings = machine / "settings.tfrc"
        monkeypatch.setenv("TF_CLI_CONFIG_FILE", str(settings))
        for text in ("provider_installation {\n  direct {}\n}\n", 'plugin_cache_dir = "/var/cache"\n'):
            settings.write_text(text)
            environment = toolchain.terraform_environment(home)
            assert not {"TF_CLI_CONFIG_FILE", "TF_PLUGIN_CACHE_DIR"} & environment.keys()


class TestSetup:
    @pytest.fixture(autouse=True)
    def project(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SAGEFIT_HOME", str(home))

    def test_fetches_what_is_missing(
        self,
        releases: Releases,
        tmp_path: Path,
        home: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        found = mirror(tmp_path / "opt/any", "5.100.0")
        releases.publish()
        monkeypatch.setenv("SAGEFIT_TERRAFORM_RELEASES", releases.url)
        assert toolchain.main() == DONE
        assert capsys.readouterr().out.splitlines() == [
            f"Terraform {VERSION}: {home / 'bin/terraform'}",
            f"AWS provider: from the mirror {found}",
        ]

    def test_fills_the_cache_when_the_provider_comes_from_the_registry(
        self, tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        # Writes down how it was called, and with what configuration, unless asked for its version.
        note = f'{{ echo "$@" "$TF_PLUGIN_CACHE_DIR"; /bin/cat "${{1#-chdir=}}/versions.tf"; }} > {tmp_path}/called'
        executable(tmp_path / "path/terraform", fake_terraform(VERSION) + f'[ "$1" = version ] || {note}\n')
        assert toolchain.main() == DONE
        called = (tmp_path / "called").read_text()
        assert called.startswith(f"-chdir={home / 'setup'} init -no-color {home / 'plugin-cache'}\n")
        assert 'aws = { source = "hashicorp/aws", version = "~> 5.100" }' in called
        assert capsys.readouterr().out.endswith("AWS provider: from the registry\n")
        assert not (home / "setup").exists()

    def test_says_that_the_registry_cannot_be_reached(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        program = fake_terraform(VERSION) + '[ "$1" = version ] || { echo no route to the registry >&2; exit 1; }\n'
        executable(tmp_path / "path/terraform", program)
        assert toolchain.main() == FAILED
        error = capsys.readouterr().err
        assert "no route to the registry" in error
        assert "SAGEFIT_PLUGIN_MIRROR" in error

    def test_prints_an_error_and_returns_its_code(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv("SAGEFIT_TERRAFORM_RELEASES", "http://releases.invalid")
        assert toolchain.main() == INVALID
        output = capsys.readouterr()
        assert output.out == ""
        assert "error: http://releases.invalid/" in output.err
        assert "SAGEFIT_TERRAFORM_RELEASES" in output.err


def test_terraform_accepts_the_settings_file(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real Terraform reads what we write, without a warning, and looks where it is told to."""
    mirror(tmp_path / 'opt/a "b"', "5.100.0")
    environment = toolchain.terraform_environment(home)
    monkeypatch.undo()
    real = toolchain.terraform_binary(paths.home())
    work = tmp_path / "work"
    work.mkdir()
    (work / "main.tf").write_text(
        'terraform {\n  required_providers {\n    aws = { source = "hashicorp/aws" }\n  }\n}\n'
    )
    answer = subprocess.run(
        [real, "init", "-no-color"],
        cwd=work,
        env=os.environ | environment | attached.ITSELF,
        capture_output=True,
        text=True,
        check=False,
    )
    # The mirror's provider is an empty directory: Terraform finds it there and goes no further.
    assert "hashicorp/aws v5.100.0" in answer.stdout
    assert "CLI configuration" not in answer.stdout + answer.stderr
