"""Starts the launcher in a training job of a tuning job, which has no entrypoint but that of its image.

SageMaker's training toolkit copies the file that ``sagemaker_submit_directory`` names to ``/opt/ml/code`` and runs the
one that ``sagemaker_program`` names: https://github.com/aws/sagemaker-training-toolkit, ``files.download_and_extract``.
"""

import json
import os
import sys
from pathlib import Path

if __name__ == "__main__":
    given = Path(os.environ.get("SAGEFIT_ML_ROOT") or "/opt/ml") / "input"
    settings = json.loads((given / "config" / "hyperparameters.json").read_text(encoding="utf-8"))
    launcher = [sys.executable, str(given / "data" / "sagefit"), *json.loads(settings["sagemaker_sagefit_arguments"])]
    os.execv(sys.executable, launcher)  # noqa: S606 - no shell is wanted
