"""Jobs without network: what needs one is told so, with the knob; what has nothing to do with it is not."""

from __future__ import annotations

import pytest

from sagefit_launcher.report import LONGEST_FAILURE

from .conftest import OF_FILES, Container

pytestmark = OF_FILES

NO_NAME = (
    "import socket, urllib.request\n"
    "def unknown(*_, **__):\n    raise socket.gaierror(-3, 'Temporary failure in name resolution')\n"
    "socket.getaddrinfo = unknown\n"
)


def test_requirements_without_network(container: Container) -> None:
    container.code("requirements.txt", "no-such-package-here==1.0\n")
    outcome = container.run("print('never')", "--isolated")
    assert outcome.exit_code == 2
    assert outcome.failure
    assert outcome.failure.startswith("sagefit: code: requirements.txt could not be installed: ")
    assert "No matching distribution found for no-such-package-here==1.0. The job has" in outcome.failure
    assert "resources.network_isolation: false" in outcome.failure
    assert "never" not in outcome.stdout


def test_requirements_the_image_has_are_no_obstacle(container: Container) -> None:
    container.code("requirements.txt", "pip\n")
    assert container.run("print('ran')", "--isolated").exit_code == 0


@pytest.mark.parametrize(
    "script",
    [
        NO_NAME + "urllib.request.urlopen('https://huggingface.co/bert')",
        "raise OSError(\"We couldn't connect to 'https://huggingface.co' to load the files\")",
        "class NoCredentialsError(Exception): pass\nraise NoCredentialsError('Unable to locate credentials')",
        "import subprocess, sys\n"
        "say = 'import sys; sys.exit(\"curl: (6) Could not resolve host: example.com\")'\n"
        "subprocess.run([sys.executable, '-c', say], check=True)",
        "print('x' * 1500)\nraise OSError('Max retries exceeded with url: ' + '/a' * 2000)",
    ],
)
def test_a_script_that_needs_a_network(container: Container, script: str) -> None:
    outcome = container.run(script, "--isolated")
    assert outcome.exit_code == 1
    assert outcome.failure
    assert outcome.failure.startswith(f"sagefit: {outcome.report['class']}: the job has network_isolation true, ")
    assert "resources.network_isolation: false" in outcome.failure
    assert "train.py ended with exit code 1: " in outcome.failure
    assert len(outcome.failure) <= LONGEST_FAILURE
    assert outcome.report["class"] == ("permission" if "NoCredentials" in script else "code")


@pytest.mark.parametrize(
    ("script", "options"),
    [
        ("raise KeyError('loss')", ("--isolated",)),
        ("print('telemetry: Temporary failure in name resolution')\nraise KeyError('loss')", ("--isolated",)),
        (NO_NAME + "urllib.request.urlopen('https://huggingface.co/bert')", ()),
    ],
)
def test_other_failures_are_not_blamed_on_it(container: Container, script: str, options: tuple[str, ...]) -> None:
    outcome = container.run(script, *options)
    assert outcome.failure
    assert outcome.failure.startswith("sagefit: code: train.py ended with exit code 1: ")
    assert "isolation" not in outcome.failure
