"""Shared by all tests: job files live in a folder of their own, and nothing touches the checkout's state."""

import os
from pathlib import Path

os.environ["SAGEFIT_CATALOG"] = str(Path(__file__).parent / "no-catalog")  # prices do not depend on this user's cache
