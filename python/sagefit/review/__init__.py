"""``sagefit review``: one page that a pull request can be decided from, from the JSON of a Terraform plan."""

from sagefit.review.document import Document, read_document
from sagefit.review.origin import Origin, read_origin
from sagefit.review.page import markdown
from sagefit.review.report import as_json
from sagefit.review.review import Finding, Review, review
from sagefit.review.tune import FILE as TUNING_FILE
from sagefit.review.tune import Tuning, load_tuning, read_tuning

__all__ = [
    "TUNING_FILE",
    "Document",
    "Finding",
    "Origin",
    "Review",
    "Tuning",
    "as_json",
    "load_tuning",
    "markdown",
    "read_document",
    "read_origin",
    "read_tuning",
    "review",
]
