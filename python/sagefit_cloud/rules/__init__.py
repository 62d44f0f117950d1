"""What AWS refuses beyond its service models: rules between the fields of a request, and with what else there is.

One function is one rule. Its name, with hyphens, is the rule's in ``tests/aws/rules.yaml``, where its source stands, a
request that breaks it, and how sure we are of what AWS answers. A rule that has to be asked in one step with what the
request makes (a name that is used, a quota) is with the service.
"""

from __future__ import annotations

from sagefit_cloud.rules import observing, processing, running, standing, training, tuning
from sagefit_cloud.rules.table import RULES, Answers, Place, Request, Said, name_of

__all__ = [
    "RULES",
    "Place",
    "Said",
    "conflicts_of",
    "name_of",
    "observing",
    "processing",
    "running",
    "standing",
    "training",
    "tuning",
]


def conflicts_of(service: str, operation: str, request: Request, place: Place) -> Answers:
    """What is wrong with a request whose fields are right each by itself. The first is what AWS says."""
    for rule in RULES.get(f"{service}:{operation}", []):
        yield from rule(request, place)
