"""A training job of a tuning job: the image's toolkit starts the launcher, which starts the script."""

from __future__ import annotations

import json
import shutil

import pytest

from .conftest import OF_FILES, Container, interpreters

pytestmark = OF_FILES

SCRIPT = """
import os, sys
print("words", sys.argv[1:])
print("checkpoints", os.environ["SM_CHECKPOINT_DIR"])
print("others", sorted(name for name in os.environ if "TUNING" in name or "SAGEMAKER" in name))
"""
TRIAL = "digits-260101-120000-0-001-0a1b2c3d"


@pytest.mark.parametrize("python", interpreters())
def test_the_toolkit_s_copy_starts_the_script(python: str, container: Container) -> None:
    container.code("train.py", SCRIPT)
    container.config(
        "hyperparameters",
        {
            "depth": "3",
            "_tuning_objective_metric": "accuracy",
            "sagemaker_program": "sagefit_trial.py",
            "sagemaker_submit_directory": "/opt/ml/input/data/sagefit/sagefit_trial.py",
            "sagemaker_sagefit_arguments": json.dumps(["--entry-point", "train.py", "--", "--fast"]),
        },
    )
    container.environment["TRAINING_JOB_NAME"] = TRIAL
    code = container.root / "code"  # where the toolkit copies the file, and runs it with all hyperparameters
    code.mkdir()
    shutil.copy(container.shipped / "sagefit_trial.py", code)
    done = container.end(container.open([python, "sagefit_trial.py", "--depth", "3"], code))
    assert done.exit_code == 0, done.stderr
    assert "words ['--depth', '3', '--fast']\n" in done.stdout
    assert f"/checkpoints/{TRIAL}\n" in done.stdout
    assert "others []\n" in done.stdout
    assert done.report["entry_point"] == "train.py"


def test_a_training_job_of_its_own_keeps_the_folder(container: Container) -> None:
    assert container.run(SCRIPT).stdout.count("/checkpoints\n") == 1
