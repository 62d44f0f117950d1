"""Starts the launcher in a training job of a tuning job, which has no entrypoint but that of its image.

SageMaker's training toolkit copies the file that ``sagemaker_submit_directory`` names to ``/opt/ml/code`` and runs the
one that ``sagemaker_program`` names: https://github.com/aws/sagemaker-training-toolkit, ``files.download_and_extract``.
Written for any Python from 2.7 on, as the launcher's first file, which tells one that is too old.
"""

import io
import json
import os
import sys

if __name__ == "__main__":
    given = os.path.join(os.environ.get("SAGEFIT_ML_ROOT") or "/opt/ml", "input")
    with io.open(os.path.join(given, "config", "hyperparameters.json"), encoding="utf-8") as file:
        settings = json.load(file)
    launcher = [sys.executable, os.path.join(given, "data", "sagefit", "launcher.pyz")]
    arguments = launcher + json.loads(settings["sagemaker_sagefit_arguments"])
    os.execv(sys.executable, arguments)  # noqa: S606 - no shell is wanted
