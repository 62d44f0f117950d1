"""Several hosts: torchrun where the image has torch, else the script once on each host. Hosts are folders here.

The stand-in for torch.distributed.run says what it was given and starts the ranks of its host.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .conftest import OF_FILES, PYTHON, Container, Outcome, interpreters

pytestmark = OF_FILES

RUN = """
import json, os, subprocess, sys
options = dict(word[2:].split('=') for word in sys.argv[1:] if word.startswith('--') and '=' in word)
script = sys.argv[len(options) + 1:]
names = ('NCCL_SOCKET_IFNAME', 'GLOO_SOCKET_IFNAME', 'SM_CURRENT_HOST', 'SM_MASTER_ADDR')
told = {name: os.environ.get(name) for name in names}
sys.stdout.write('TOLD' + json.dumps([options, script, told]) + '\\n')
sys.stdout.flush()
size = int(options['nproc_per_node'])
first = int(options['node_rank']) * size
ranks = [
    subprocess.Popen([sys.executable, *script], env={**os.environ, 'RANK': str(first + n)}, start_new_session=True)
    for n in range(size)
]
sys.exit(max(1 if rank.wait() else 0 for rank in ranks))
"""


def give_torch(container: Container) -> None:
    """Installs the stand-in into the image."""
    library = container.root.parent / "library"
    for package in ("torch", "torch/distributed"):
        (library / package).mkdir(parents=True)
        (library / package / "__init__.py").touch()
    (library / "torch" / "distributed" / "run.py").write_text(RUN)
    container.environment["PYTHONPATH"] = str(library)


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[list[Container]]:
    """Two hosts of one job on the loopback, in an order of their own."""
    found = []
    for name in ("algo-1", "algo-2"):
        container = Container(tmp_path / name / "ml")
        container.config(
            "resourceconfig",
            {"current_host": name, "hosts": ["algo-2", "algo-1"], "network_interface_name": "eth7"},
        )
        container.config("hyperparameters", {"epochs": "2"})
        container.environment |= {"SAGEFIT_MASTER_ADDRESS": "127.0.0.1", "SAGEFIT_MASTER_PORT": "7901"}
        found.append(container)
    yield found
    for container in found:
        container.close()


def run_all(hosts: list[Container], script: str, python: str = PYTHON) -> list[Outcome]:
    """Runs the job on all hosts at the same time."""
    for container in hosts:
        container.code("train.py", script)
    running = [container.start(python=python) for container in hosts]
    return [container.end(process) for container, process in zip(hosts, running, strict=True)]


def told(outcome: Outcome) -> Any:
    """Options, script and environment that torchrun was given; None when it never ran."""
    lines = [line[4:] for line in outcome.stdout.splitlines() if line.startswith("TOLD")]
    return json.loads(lines[0]) if lines else None


@pytest.mark.parametrize("python", interpreters())
def test_two_hosts_with_torch(hosts: list[Container], python: str) -> None:
    for container in hosts:
        give_torch(container)
        container.environment["SAGEFIT_PROCESSES_PER_HOST"] = "2"
    outcomes = run_all(
        hosts, "import os, sys\nos.write(1, f'rank {os.environ[\"RANK\"]} {sys.argv[1:]}\\n'.encode())", python
    )
    assert [outcome.exit_code for outcome in outcomes] == [0, 0]
    for rank, (container, outcome) in enumerate(zip(hosts, outcomes, strict=True)):
        options, script, variables = told(outcome)
        assert options == {
            "nnodes": "2",
            "node_rank": str(rank),
            "nproc_per_node": "2",
            "master_addr": "127.0.0.1",
            "master_port": "7901",
        }
        assert script == [str(container.root / "code" / "train.py"), "--epochs", "2"]
        assert variables == {
            "NCCL_SOCKET_IFNAME": "eth7",
            "GLOO_SOCKET_IFNAME": "eth7",
            "SM_CURRENT_HOST": f"algo-{rank + 1}",
            "SM_MASTER_ADDR": "127.0.0.1",
        }
        for number in (2 * rank, 2 * rank + 1):
            assert f"rank {number} ['--epochs', '2']\n" in outcome.stdout
    assert hosts[0].report()["host"] == "algo-1"
    assert hosts[1].report("sagefit-algo-2.json")["host"] == "algo-2"


def test_names_and_ports_of_sagemaker(hosts: list[Container]) -> None:
    give_torch(hosts[0])
    resources = {"current_host": "localhost", "hosts": ["localhost", "other"], "network_interface_name": ""}
    hosts[0].config("resourceconfig", resources)
    del hosts[0].environment["SAGEFIT_MASTER_ADDRESS"], hosts[0].environment["SAGEFIT_MASTER_PORT"]
    hosts[0].environment["NCCL_SOCKET_IFNAME"] = "mine0"
    options, _, variables = told(hosts[0].run("pass"))
    assert (options["master_addr"], options["master_port"], options["nproc_per_node"]) == ("localhost", "7777", "1")
    assert (variables["NCCL_SOCKET_IFNAME"], variables["GLOO_SOCKET_IFNAME"]) == ("mine0", None)


def test_two_hosts_without_torch(hosts: list[Container]) -> None:
    outcomes = run_all(hosts, "import os\nprint('on', os.environ['SM_CURRENT_HOST'], os.environ['SM_MASTER_PORT'])")
    for number, outcome in enumerate(outcomes, 1):
        assert outcome.exit_code == 0
        assert f"on algo-{number} 7901\n" in outcome.stdout


@pytest.mark.parametrize(
    ("count", "variable", "setting", "expected"),
    [
        (1, None, None, False),
        (1, "true", None, True),
        (1, None, "true", True),
        (2, "false", None, False),
        (2, None, "false", False),
        (2, "true", "false", True),
    ],
)
def test_the_switch(
    hosts: list[Container], count: int, variable: str | None, setting: str | None, expected: bool
) -> None:
    container = hosts[0]
    give_torch(container)
    names = ["algo-1", "algo-2"][:count]
    container.config("resourceconfig", {"current_host": "algo-1", "hosts": names})
    if variable:
        container.environment["SAGEFIT_TORCHRUN"] = variable
    container.config("hyperparameters", {"sagemaker_torch_distributed_enabled": setting} if setting else {})
    outcome = container.run("import sys\nprint('given', sys.argv[1:])")
    assert outcome.exit_code == 0
    assert (told(outcome) is not None) == expected
    assert "given []\n" in outcome.stdout  # the switch is not for the script


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"SAGEFIT_TORCHRUN": "yes please"}, ["SAGEFIT_TORCHRUN is 'yes please'", "true or false"]),
        ({"SAGEFIT_TORCHRUN": "true"}, ["SAGEFIT_TORCHRUN asks for torchrun", "torch 1.9"]),
    ],
)
def test_a_switch_that_cannot_be(container: Container, variables: dict[str, str], words: list[str]) -> None:
    container.environment |= variables
    outcome = container.run("print('never')")
    assert outcome.exit_code == 2
    assert outcome.failure
    assert all(word in outcome.failure for word in words), outcome.failure
    assert "never" not in outcome.stdout


def test_a_number_of_processes_that_cannot_be(hosts: list[Container]) -> None:
    give_torch(hosts[0])
    hosts[0].environment["SAGEFIT_PROCESSES_PER_HOST"] = "0"
    outcome = hosts[0].run("print('never')")
    assert outcome.failure
    assert "SAGEFIT_PROCESSES_PER_HOST is '0'" in outcome.failure


def test_a_rank_that_fails(hosts: list[Container]) -> None:
    give_torch(hosts[0])
    outcome = hosts[0].run("raise RuntimeError('CUDA out of memory. Tried to allocate 2.00 GiB')")
    assert outcome.exit_code == 1
    assert outcome.report["class"] == "gpu_memory"


def test_a_stop_request_reaches_every_rank_and_not_torchrun(hosts: list[Container]) -> None:
    give_torch(hosts[0])
    hosts[0].environment["SAGEFIT_PROCESSES_PER_HOST"] = "2"
    hosts[0].code(
        "train.py",
        "import os, signal, sys, time\n"
        "def save(*_):\n    os.write(1, f'saved {os.environ[\"RANK\"]}\\n'.encode())\n    sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, save)\nos.write(1, b'ready\\n')\ntime.sleep(60)",
    )
    process = hosts[0].start()
    assert process.stdout
    for _ in range(2):
        assert "ready\n" in iter(process.stdout.readline, "")
    process.send_signal(signal.SIGTERM)
    outcome = hosts[0].end(process)
    assert "saved 0\n" in outcome.stdout
    assert "saved 1\n" in outcome.stdout
    assert outcome.exit_code == 0
