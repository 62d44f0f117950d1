"""What a plan of a job is refused for: rules that only the module knows."""

from __future__ import annotations

from pathlib import Path

import pytest

from job_files import write_job
from sagefit import deploy
from sagefit.errors import INVALID, SagefitError
from sagefit.job import load_job
from sagefit.paths import display
from sagefit.terraform import TerraformError


def test_rules_of_the_module_are_told_in_the_words_of_the_job_file(tmp_path: Path) -> None:
    """As Terraform 1.11 says them: of a variable with where the rule stands, of a precondition without."""
    job = load_job(write_job(tmp_path, {"resources.role": "own"}))
    said = (
        "Invalid value for variable (main.tf:26): resources.poll_seconds: a whole number from 1 to 3600.\n\n"
        "This was checked by the validation rule at ../modules/training-job/variables-resources.tf:116,3-13.\n"
        "Resource precondition failed (../modules/training-job/state-machine.tf:165): resources.role: has none.\n"
        "Remove it."
    )
    with pytest.raises(SagefitError) as told, deploy._in_words_of(job):
        raise TerraformError(said, frozenset(), hint="", exit_code=INVALID)
    place = display(job.path)
    role, interval = job.line(("resources", "role")), job.line(("resources", "poll_interval"))
    assert told.value.message.splitlines() == [
        f"{place}:{interval}: resources.poll_interval: a whole number from 1 to 3600.",
        f"{place}:{role}: resources.role: has none.",
        "Remove it.",
    ]
    other = TerraformError("Error acquiring the state lock: gone", frozenset(), hint="wait", exit_code=INVALID)
    with pytest.raises(TerraformError, match="state lock"), deploy._in_words_of(job):
        raise other
