"""The launcher starts a script as SageMaker's toolkits do, and leaves the agreed records."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from .conftest import ARCHIVE, OF_FILES, PYTHON, Container

pytestmark = OF_FILES

METRIC_LINE = re.compile(
    r"^\[sagefit\] host_memory_gib=\d+\.\d{3} host_memory_peak_gib=\d+\.\d{3} host_memory_percent=\d+\.\d"
    r"( gpu_memory_percent=\d+\.\d)? unsaved_seconds=\d+\.\d$",
    re.MULTILINE,
)
SHOW = "import json, os, sys; print('RESULT' + json.dumps([sys.argv[1:], dict(os.environ), os.getcwd()]))"


def shown(stdout: str) -> tuple[list[str], dict[str, str], str]:
    """What the script ``SHOW`` saw."""
    line = next(line for line in stdout.splitlines() if line.startswith("RESULT"))
    arguments, variables, folder = json.loads(line[6:])
    return arguments, variables, folder


def test_hyperparameters_become_arguments(container: Container) -> None:
    container.config(
        "hyperparameters",
        {"epochs": "3", "cache": "true", "name": '"bert"', "layers": "[64, 32]", "k": "5", "sagemaker_region": '"x"'},
    )
    outcome = container.run(SHOW, words=("--seed", "1"))
    arguments, _, folder = shown(outcome.stdout)
    assert arguments == [
        "--cache", "true", "--epochs", "3", "-k", "5", "--layers", "[64, 32]", "--name", "bert", "--seed", "1",
    ]  # fmt: skip
    assert folder == str(container.root / "code")
    assert outcome.exit_code == 0


def test_variables_of_the_toolkits(container: Container) -> None:
    container.config("hyperparameters", {"learning-rate": "0.1", "name": '"bert"'})
    container.config("resourceconfig", {"current_host": "algo-2", "hosts": ["algo-1", "algo-2"]})
    container.config("inputdataconfig", {"code": {}, "sagefit": {}, "train": {}, "test-set": {}})
    container.config("checkpointconfig", {"LocalPath": "/opt/ml/saved"})
    _, variables, _ = shown(container.run(SHOW).stdout)
    root = container.root
    assert variables["SM_CHANNEL_TRAIN"] == str(root / "input/data/train")
    assert variables["SM_CHANNEL_TEST_SET"] == variables["SM_CHANNEL_TEST-SET"] == str(root / "input/data/test-set")
    assert json.loads(variables["SM_CHANNELS"]) == ["test-set", "train"]
    assert not {"SM_CHANNEL_CODE", "SM_CHANNEL_SAGEFIT"} & set(variables)
    assert json.loads(variables["SM_HPS"]) == {"learning-rate": 0.1, "name": "bert"}
    assert variables["SM_HP_LEARNING_RATE"] == "0.1"
    assert json.loads(variables["SM_HOSTS"]) == ["algo-1", "algo-2"]
    assert variables["SM_CURRENT_HOST"] == "algo-2"
    assert variables["SM_MASTER_ADDR"] == "algo-1"
    assert variables["SM_NUM_GPUS"] == "0"
    assert int(variables["SM_NUM_CPUS"]) >= 1
    for name, folder in {
        "SM_MODEL_DIR": "model",
        "SM_OUTPUT_DATA_DIR": "output/data",
        "SM_CHECKPOINT_DIR": "saved",
        "SM_MODULE_DIR": "code",
    }.items():
        assert variables[name] == str(root / folder)
        assert Path(variables[name]).is_dir()


def test_checkpoints_stay_below_opt_ml(container: Container) -> None:
    container.config("checkpointconfig", {"LocalPath": "/opt/ml/checkpoints/../../outside"})
    outcome = container.run("print('never')")
    assert outcome.exit_code == 2
    assert "never" not in outcome.stdout
    assert outcome.failure
    assert outcome.failure.endswith(f"outside/ leads out of {container.root}")
    assert not (container.root.parent / "outside").exists()


def test_a_run_that_succeeds(container: Container) -> None:
    container.limit(512)
    (container.root / "output").mkdir()
    (container.root / "output" / "failure").write_text("of the run before an interruption")
    outcome = container.run("block = bytearray(64 * 1024**2)\nimport time\ntime.sleep(0.6)\nprint('done')")
    assert outcome.exit_code == 0
    assert outcome.failure is None
    assert len(METRIC_LINE.findall(outcome.stdout)) == 2
    report = outcome.report
    assert (report["schema"], report["entry_point"], report["host"]) == (1, "train.py", "algo-1")
    assert report["training_job"] == "digits-260101-120000-0"
    assert (report["exit_code"], report["signal"], report["class"], report["evidence"]) == (0, None, None, None)
    assert report["host_memory"]["limit_bytes"] == 512 * 1024**2
    assert report["host_memory"]["source"] == "process tree"
    assert 64 * 1024**2 < report["host_memory"]["peak_bytes"] < 160 * 1024**2
    assert 0.5 < report["seconds"] < 30
    assert report["host_memory"]["oom_kills"] == 0
    assert 64 * 1024**2 < report["host_memory"]["tree_peak_bytes"] <= report["host_memory"]["peak_bytes"]
    assert report["shared_memory"]["total_bytes"] > 0
    disk = report["disks"][0]
    assert disk["path"] == str(container.root)
    assert 0 < disk["first_bytes"] <= disk["peak_bytes"] < disk["total_bytes"]
    assert (report["gpus"], report["torch"], report["busy"]) == ([], [], None)
    assert 2 <= len(report["samples"]) <= 60
    for sample in report["samples"]:
        assert set(sample) == {"seconds", "host_bytes", "shm_bytes", "disk_bytes", "gpu_bytes"}
        assert (len(sample["disk_bytes"]), sample["gpu_bytes"]) == (len(report["disks"]), [])
    assert max(sample["host_bytes"] for sample in report["samples"]) > 64 * 1024**2
    assert report["history"]["every_seconds"] == 1
    assert report["history"]["gpu_bytes"] is None
    assert max(report["history"]["host_bytes"]) == report["host_memory"]["peak_bytes"]


SAVES = """
import os, pathlib, time
folder = pathlib.Path(os.environ["SM_CHECKPOINT_DIR"])
time.sleep(0.5)
(folder / "epoch-2").mkdir()
(folder / "epoch-2" / "step.pt").write_bytes(bytes(100))
os.symlink("/etc/hosts", folder / "link")
os.mkfifo(folder / "pipe")
time.sleep(1)
raise ValueError("no such column")
"""


def test_the_report_tells_when_the_script_last_saved(container: Container) -> None:
    before = container.root / "checkpoints" / "of an earlier attempt"
    before.parent.mkdir()
    before.write_bytes(bytes(10))
    os.utime(before, (0, 0))
    container.config("checkpointconfig", {"LocalPath": "/opt/ml/checkpoints"})
    outcome = container.run(SAVES)
    report = outcome.report
    found = report["checkpoints"]
    unsaved = float(re.findall(r"unsaved_seconds=([0-9.]+)", outcome.stdout)[-1])
    assert 0.9 < unsaved < report["seconds"] - 0.3
    assert (found["files"], found["bytes"]) == (2, 110)
    assert 0.4 < found["saved_seconds"] <= report["seconds"] - 0.9
    assert found["newest"] == "epoch-2/step.pt"
    assert report["model"] is None


def test_what_earlier_attempts_saved_is_not_this_ones(container: Container) -> None:
    before = container.root / "checkpoints" / "step.pt"
    before.parent.mkdir()
    before.write_bytes(bytes(10))
    report = container.run("raise ValueError('no such column')").report
    assert report["checkpoints"] == {"files": 1, "bytes": 10, "saved_seconds": None, "newest": None}


def test_a_folder_that_is_not_kept_saves_nothing(container: Container) -> None:
    outcome = container.run(SAVES)
    assert outcome.report["checkpoints"]["saved_seconds"] > 0.4
    assert float(re.findall(r"unsaved_seconds=([0-9.]+)", outcome.stdout)[-1]) > 1.4


@pytest.mark.parametrize(("script", "files"), [("open(os.environ['SM_MODEL_DIR'] + '/w', 'w').write('x')", 1), ("", 0)])
def test_a_script_that_ends_well_without_a_model_is_told_so(container: Container, script: str, files: int) -> None:
    outcome = container.run(f"import os\n{script}\nprint('saved the model')")
    assert outcome.exit_code == 0
    assert outcome.report["model"] == {"files": files, "bytes": files}
    assert ("[sagefit] look again: the script ended well, and wrote nothing to SM_MODEL_DIR" in outcome.stdout) != files


def test_the_second_host_has_a_report_of_its_own(container: Container) -> None:
    container.config("resourceconfig", {"current_host": "algo-2", "hosts": ["algo-1", "algo-2"]})
    container.run("pass")
    assert container.report("sagefit-algo-2.json")["host"] == "algo-2"
    assert container.report() == {}


def test_output_comes_as_it_is_written(container: Container) -> None:
    container.code("train.py", "import sys\nprint('first')\nsys.stdin.read()\nprint('second')")
    command = [PYTHON, str(container.shipped / ARCHIVE), "--entry-point", "train.py"]
    process = container.open(command, container.root, stdin=subprocess.PIPE)
    assert process.stdout
    assert process.stdin
    lines = iter(process.stdout.readline, "")
    assert any(line == "first\n" for line in lines)  # while the script still waits for its input to end
    assert process.poll() is None
    process.stdin.close()
    assert "second\n" in list(lines)
    assert process.wait(60) == 0


def test_the_record_is_there_while_the_script_runs(container: Container) -> None:
    container.code("train.py", "import time\nprint('started')\ntime.sleep(60)")
    process = container.start()
    assert process.stdout
    assert "started\n" in iter(process.stdout.readline, "")
    deadline = time.monotonic() + 10
    while not container.report() and time.monotonic() < deadline:
        time.sleep(0.02)
    children = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    for child in children:
        child.kill()
    process.communicate(timeout=10)
    assert container.report()["exit_code"] is None
    assert container.report()["host_memory"]["peak_bytes"] > 0


def test_a_process_left_behind_does_not_hold_the_job(container: Container) -> None:
    began = time.monotonic()
    outcome = container.run("import subprocess\nprint('PID', subprocess.Popen(['sleep', '30']).pid)")
    assert time.monotonic() - began < 15
    assert outcome.exit_code == 0
    pid = next(int(line[4:]) for line in outcome.stdout.splitlines() if line.startswith("PID "))
    psutil.Process(pid).kill()


def test_a_shell_script_may_be_the_entry_point(container: Container) -> None:
    container.config("hyperparameters", {"epochs": "2"})
    container.code("train.sh", 'echo "got $*"; exit 7')
    outcome = container.end(container.start("train.sh"))
    assert "got --epochs 2\n" in outcome.stdout
    assert outcome.exit_code == 7


def completed_report(container: Container) -> dict[str, object]:
    container.config("hyperparameters", {})
    return container.run("pass").report


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda c: c.code("main.py", ""), ["entry point 'train.py'", "which holds main.py", "code.entry_point"]),
        (lambda _: None, ["entry point 'train.py'", "which holds nothing"]),
        (lambda c: c.config("hyperparameters", [1]), ["hyperparameters.json cannot be read", "a list"]),
        (lambda c: (c.root / "input/config/hyperparameters.json").write_text('{"a": '), ["line 1"]),
    ],
)  # fmt: skip
def test_a_job_that_cannot_start_says_why(container: Container, spoil: object, words: list[str]) -> None:
    assert callable(spoil)
    spoil(container)
    outcome = container.end(container.start())
    assert outcome.exit_code == 2
    assert outcome.failure
    assert outcome.failure.startswith("sagefit: code: ")
    assert all(word in outcome.failure for word in words), outcome.failure
    assert outcome.report["class"] == "code"
    assert outcome.report["host_memory"]["source"] == "none"
    assert set(outcome.report) == set(completed_report(container))
