"""``sagefit review``: one page that a pull request can be decided from, from the JSON of a Terraform plan."""

from sagefit.reviewing.briefs import Brief, brief
from sagefit.reviewing.document import Document, read_document
from sagefit.reviewing.judge import Finding, Review, review
from sagefit.reviewing.links import Console, Links, console
from sagefit.reviewing.origin import Origin, read_origin
from sagefit.reviewing.page import markdown
from sagefit.reviewing.report import as_json
from sagefit.reviewing.runs import PastRun, Runs
from sagefit.reviewing.tune import FILE as TUNING_FILE
from sagefit.reviewing.tune import Tuning, load_tuning, read_tuning
from sagefit.reviewing.written import Written

__all__ = [
    "TUNING_FILE",
    "Brief",
    "Console",
    "Document",
    "Finding",
    "Links",
    "Origin",
    "PastRun",
    "Review",
    "Runs",
    "Tuning",
    "Written",
    "as_json",
    "brief",
    "console",
    "load_tuning",
    "markdown",
    "read_document",
    "read_origin",
    "read_tuning",
    "review",
]
