"""Error texts with what ended the job, and how well they are told apart."""

import pytest

#: Decides how texts are told apart: the tests that are marked with it import nothing else of Sagefit.
OF_FILES = pytest.mark.of_files(
    "docs/failures.md",
    "modules/training-job/*.json",
    "python/sagefit/failures",
    "python/sagefit/job/model.py",
    "python/sagefit/paths.py",
    "python/sagefit_launcher",
    "tests/corpus",
    "tests/yaml_tables.py",
)
