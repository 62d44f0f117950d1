"""Lets ``python3 FOLDER`` work wherever the folder was copied to, as ``python3 -m sagefit.launcher`` does here."""

import importlib
import sys
import types
from pathlib import Path

PACKAGE = __package__ or "sagefit_launcher"

if not __package__:
    package = types.ModuleType(PACKAGE)  # gives the modules of the folder a package for their relative imports
    package.__path__ = [str(Path(__file__).resolve().parent)]
    sys.modules[PACKAGE] = package

if __name__ == "__main__":
    sys.exit(importlib.import_module(PACKAGE + ".launch").main())
