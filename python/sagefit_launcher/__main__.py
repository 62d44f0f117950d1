"""Starts the launcher: ``python3 launcher.pyz`` in a container, ``python3 -m sagefit_launcher`` here.

The first file of the launcher that an image's Python reads: it is written for any from 2.7 on, so that one which is too
old for the rest says so, in the log and in the file that SageMaker takes the FailureReason from.
"""

import importlib
import os
import sys

OLDEST = (3, 8)

if __name__ == "__main__":
    if sys.version_info[:2] >= OLDEST:
        sys.exit(importlib.import_module("sagefit_launcher.launch").main())
    refusal = (
        "sagefit: code: the launcher needs Python {}.{} or newer, and python3 of this image is {}.{}.{}: "
        "choose an image with a newer one (image in the job file)"
    ).format(*(OLDEST + tuple(sys.version_info[:3])))
    sys.stderr.write(refusal + "\n")
    failure = os.path.join(os.environ.get("SAGEFIT_ML_ROOT") or "/opt/ml", "output", "failure")
    try:
        if not os.path.isdir(os.path.dirname(failure)):
            os.makedirs(os.path.dirname(failure))
        if os.path.lexists(failure):  # of a run before: whatever it is, nothing is written through it
            os.unlink(failure)
        with os.fdopen(os.open(failure, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644), "w") as file:
            file.write(refusal)
    except OSError as problem:  # the log says it
        sys.stderr.write("{} cannot be written: {}\n".format(failure, problem))
    sys.exit(2)
