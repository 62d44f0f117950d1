"""IAM: its simulator, which says what a user or a role may do. The judge is the one that judges every call here."""

from __future__ import annotations

from typing import Any

from moto.core.responses import ActionResult
from moto.iam import urls
from moto.iam.exceptions import NotFoundException
from moto.iam.responses import IamResponse

from sagefit.iam.evaluate import Call, Context
from sagefit_cloud import authorization

_SEVERITY = ("allowed", "implicitDeny", "explicitDeny")


class Iam(IamResponse):
    """moto's IAM with ``SimulatePrincipalPolicy``."""

    def simulate_principal_policy(self) -> ActionResult:
        """Judge each action on each resource, with the context that is given."""
        principal = self._get_param("PolicySourceArn")
        context = {
            entry["ContextKeyName"]: _value(entry.get("ContextKeyValues", []))
            for entry in self._get_param("ContextEntries", [])
        }
        resources = self._get_param("ResourceArns", ["*"])
        results = [
            _result(action, [(resource, _judged(principal, action, resource, context)) for resource in resources])
            for action in self._get_param("ActionNames")
        ]
        return ActionResult({"EvaluationResults": results, "IsTruncated": False})


def _judged(principal: str, action: str, resource: str, context: Context) -> authorization.Simulated:
    judged = authorization.simulate(principal, Call(action, resource, context))
    if judged is None:
        raise NotFoundException(f"Policy source {principal} does not exist or is not attachable.")
    return judged


def _result(action: str, judged: list[tuple[str, authorization.Simulated]]) -> dict[str, Any]:
    """One result for an action; where several resources were named, each has one of its own within it."""
    worst = max((each for _, each in judged), key=lambda each: _SEVERITY.index(each.decision))
    result: dict[str, Any] = {
        "EvalActionName": action,
        "EvalResourceName": judged[0][0],
        "EvalDecision": worst.decision,
        "MatchedStatements": [],
        "MissingContextValues": worst.missing if len(judged) == 1 else [],
    }
    if len(judged) > 1:
        result["ResourceSpecificResults"] = [
            {
                "EvalResourceName": resource,
                "EvalResourceDecision": each.decision,
                "MatchedStatements": [],
                "MissingContextValues": each.missing,
            }
            for resource, each in judged
        ]
    return result


def _value(given: list[str]) -> Any:
    return given[0] if len(given) == 1 else given


def install() -> None:
    """Put this class in place of moto's."""
    urls.url_paths = {"{0}/$": Iam.dispatch}
