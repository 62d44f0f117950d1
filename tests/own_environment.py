"""The environment of the tests is their own: the same wherever they are started, and by whomever.

What a test starts inherits the variables of its process, its umask, and its treatment of signals; the test's own code
reads them, and the time zone. So all of them are settled before anything is tested, in every process of a session. Of
the variables only those stay that are named here; a test that needs one more sets it.

Two things are read by the interpreter before it reads this file: the encoding of files, in the process that was
started by hand, and options of pytest. Processes of pytest-xdist are started afterwards.
"""

from __future__ import annotations

import contextlib
import locale
import os
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from sagefit.cloud.aws_environment import NO_FILES

HERE = Path(__file__).parent
# Who runs the tests, and where this machine has what they use.
_MACHINE = (
    *("HOME", "USER", "LOGNAME", "PATH", "TMPDIR", "LD_LIBRARY_PATH", "PYENV_ROOT"),
    *("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_DATA_DIRS", "XDG_RUNTIME_DIR"),
    # packages and their certificates
    *("PIP_CACHE_DIR", "PIP_CERT", "PIP_CONFIG_FILE", "PIP_DEFAULT_TIMEOUT", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"),
    *("PIP_INDEX_URL", "PIP_PROXY", "PIP_TRUSTED_HOST"),
    *("CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "SSL_CERT_DIR", "SSL_CERT_FILE"),
    # Terraform and its provider
    *("TF_CLI_CONFIG_FILE", "TF_PLUGIN_CACHE_DIR", "SAGEFIT_HOME", "SAGEFIT_IMAGES", "SAGEFIT_PLUGIN_MIRROR"),
    *("SAGEFIT_TERRAFORM_RELEASES", "SAGEFIT_TERRAFORM_SHA256"),
)
# What the tests may be told.
_KNOBS = (
    *("HYPOTHESIS_PROFILE", "SAGEFIT_LAUNCHER_PYTHON", "SAGEFIT_TRACE_PYTHON", "SNAPSHOT_REPEAT", "TEST_FAILURES"),
    *("CI", "PY_COLORS"),  # of pytest: whether it shows failures whole, and in colours
)
# What the parts of a session tell each other.
_OURS = ("ATTACHED_PROVIDERS", "PYTEST_CURRENT_TEST", "PYTEST_OWNER_PID", "PYTEST_VERSION")
_OURS_BEGIN = ("COV", "PRELOADED_", "PYTEST_XDIST_")
_PROXIES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")  # for pip alone: servers of the tests are here
_FIXED = {
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    "SAGEFIT_CATALOG": str(HERE / "no-catalog"),  # prices do not depend on this user's cache
} | NO_FILES
_UMASK = 0o022
_SIGNALS = (
    *(signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM),
    *(signal.SIGUSR1, signal.SIGUSR2, signal.SIGCHLD),
)


def settle() -> None:
    """Give this process the environment of the tests, which what it starts inherits."""
    environment = named(os.environ)
    for name in os.environ.keys() - environment.keys():
        del os.environ[name]
    for name in ("COLUMNS", "LINES"):
        os.unsetenv(name)  # readline, which pytest imports, sets them past os.environ
    os.environ.update(environment)
    time.tzset()
    with contextlib.suppress(locale.Error):  # it is not there on every system; what is tested names its encodings
        locale.setlocale(locale.LC_ALL, "")
    sys.dont_write_bytecode = False  # each process would compile anew what it imports
    os.umask(_UMASK)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    # Whoever starts the tests with & or nohup has signals ignored, and so would be what the tests start: an interrupt
    # would not reach it. A handler that does nothing keeps that for the tests themselves, and ends at exec.
    for number in _SIGNALS:
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


def named(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables of the tests, made from those of whoever starts them."""
    kept = {name: environment[name] for name in (*_MACHINE, *_KNOBS, *_OURS) if name in environment}
    kept |= {name: value for name, value in environment.items() if name.startswith(_OURS_BEGIN)}
    if own := [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if _is_here(path)]:
        kept["PYTHONPATH"] = os.pathsep.join(own)  # a copy of the checkout tests its own package
    if environment.get("NO_COLOR") or environment.get("TERM") == "dumb":
        kept["PY_COLORS"] = "0"
    for name in _PROXIES:
        if environment.get(name):
            kept.setdefault("PIP_PROXY", environment[name])
    return kept | _FIXED


def _is_here(path: str) -> bool:
    return bool(path) and HERE.parent in (whole := Path(path).resolve(), *whole.parents)
