"""The audit of locked packages: pip-audit itself, against a stand-in for OSV that answers as OSV does."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from audit_locks import EXCEPTIONS, lock_files, locked, main, wrong_exceptions
from sagefit.paths import ROOT

LOCK = """\
good==1.0 \\
    --hash=sha256:{0}
weak==2.1 \\
    --hash=sha256:{0}
""".format("0" * 64)
ADVISORY = {
    "id": "GHSA-aaaa-bbbb-cccc",
    "aliases": ["CVE-2026-1"],
    "summary": "It runs what it is given.",
    "affected": [
        {
            "package": {"ecosystem": "PyPI", "name": "weak"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "2.2"}]}],
            "versions": ["2.1"],
        }
    ],
}
EXCEPTION = {"advisory": "CVE-2026-1", "package": "weak", "version": "2.1", "reason": "Nothing gives it anything."}


class Osv(BaseHTTPRequestHandler):
    """Knows one advisory: https://google.github.io/osv.dev/post-v1-query/."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        known = (asked["package"]["name"], asked["version"]) == ("weak", "2.1")
        body = json.dumps({"vulns": [ADVISORY]} if known else {}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def osv() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Osv) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1/query"
        server.shutdown()


def audit(folder: Path, osv: str, *exceptions: dict[str, str]) -> int:
    (folder / "some.lock").write_text(LOCK, encoding="utf-8")
    (folder / "exceptions.yaml").write_text(yaml.safe_dump(list(exceptions)), encoding="utf-8")
    return main(["--osv", osv, "--exceptions", str(folder / "exceptions.yaml"), str(folder / "some.lock")])


def test_what_is_known_is_told_with_what_mends_it(osv: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert audit(tmp_path, osv) == 1
    assert "weak 2.1: CVE-2026-1, GHSA-aaaa-bbbb-cccc; mended in 2.2" in capfd.readouterr().err


def test_an_exception_lets_it_pass(osv: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert audit(tmp_path, osv, EXCEPTION) == 0
    assert "nothing is known against 2 packages but 1 exceptions" in capfd.readouterr().out


def test_an_exception_that_nothing_needs_is_told(osv: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert audit(tmp_path, osv, EXCEPTION, EXCEPTION | {"advisory": "CVE-2020-9"}) == 1
    assert "weak 2.1: nobody says CVE-2020-9 any more" in capfd.readouterr().err


def test_without_a_network_nobody_is_asked_and_it_is_said(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{closed.getsockname()[1]}/v1/query"
        assert audit(tmp_path, nobody) == 0
        assert "does not answer: nobody was asked what is known against 2 packages" in capfd.readouterr().out
        assert audit(tmp_path, nobody, EXCEPTION | {"version": "2.0"}) == 1  # this is wrong, whatever OSV says
    assert "weak 2.0 is in no lock file" in capfd.readouterr().err


def test_a_lock_that_cannot_be_read_is_no_missing_network(osv: str, tmp_path: Path) -> None:
    (tmp_path / "broken.lock").write_text("this is no requirement==\n", encoding="utf-8")
    with pytest.raises(RuntimeError, match=r"broken\.lock"):
        main(["--osv", osv, str(tmp_path / "broken.lock")])


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ({"advisory": "CVE-2026-1"}, "entry 1 has not just advisory, package, reason, version"),
        (EXCEPTION | {"reason": ""}, "entry 1 has not just"),
        (EXCEPTION | {"package": "other"}, "other 2.1 is in no lock file"),
    ],
)
def test_an_exception_says_what_it_is_about(entry: dict[str, str], told: str) -> None:
    assert told in "".join(wrong_exceptions([entry], {("weak", "2.1")}))


def test_all_locks_are_asked_about_and_our_exceptions_are_right() -> None:
    names = {file.name for file in lock_files()}
    assert {"requirements.lock", "requirements-dev.lock", "requirements-checkov.lock", "sklearn.lock"} <= names
    packages = locked(lock_files())
    assert len(packages) > 150
    assert list(wrong_exceptions(yaml.safe_load(EXCEPTIONS.read_text("utf-8")), packages)) == []
    assert "tests/audit_locks.py" in (ROOT / ".pre-commit-config.yaml").read_text("utf-8")
