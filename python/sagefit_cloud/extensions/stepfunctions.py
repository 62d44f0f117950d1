"""Step Functions: moto's interpreter switched on, and the calls its HTTP layer does not offer."""

from __future__ import annotations

import copy
import json
import time
import uuid
from functools import lru_cache
from typing import Any

from moto.core.config import default_user_config
from moto.core.responses import ActionResult
from moto.core.utils import utcnow
from moto.stepfunctions import urls
from moto.stepfunctions.exceptions import ValidationException
from moto.stepfunctions.responses import StepFunctionResponse

from sagefit_cloud import clients
from sagefit_cloud.extensions import events
from sagefit_cloud.rules import running

_PAGE = 1000


class StepFunctions(StepFunctionResponse):
    """moto's Step Functions with validation, versions, paged history, and a stop that is recorded."""

    def validate_state_machine_definition(self) -> ActionResult:
        """Parse the definition as the interpreter will, then check how its states hold together."""
        from moto.stepfunctions.parser.api import InvalidDefinition
        from moto.stepfunctions.parser.models import StepFunctionsParserBackend

        definition = self._get_param("definition")
        diagnostics: list[dict[str, str]] = []
        try:
            StepFunctionsParserBackend._validate_definition(definition=definition)
            diagnostics = [_diagnostic(*found) for found in running.diagnostics(json.loads(definition))]
        except InvalidDefinition as error:
            diagnostics = [_diagnostic("SCHEMA_VALIDATION_FAILED", str(error.message), "/")]
        return ActionResult({"result": "FAIL" if diagnostics else "OK", "diagnostics": diagnostics, "truncated": False})

    def list_state_machine_versions(self) -> ActionResult:
        """Published versions, newest first."""
        machine = self.stepfunction_backend.describe_state_machine(self._get_param("stateMachineArn"))
        versions = [
            {"stateMachineVersionArn": version.arn, "creationDate": version.creation_date}
            for _, version in sorted(machine.versions.items(), reverse=True)
        ]
        return ActionResult({"stateMachineVersions": versions})

    def start_execution(self) -> ActionResult:
        """Start an execution; one without a name gets one, as AWS does it."""
        execution = self.stepfunction_backend.start_execution(
            self._get_param("stateMachineArn"),
            self._get_param("name") or str(uuid.uuid4()),
            self._get_param("input", if_none="{}"),
        )
        return ActionResult({"executionArn": execution.execution_arn, "startDate": execution.start_date})

    def stop_execution(self) -> ActionResult:
        """Abort an execution and wait until the interpreter has taken notice (it is quick)."""
        execution: Any = self.stepfunction_backend.describe_execution(self._get_param("executionArn"))
        if execution.status == "RUNNING":
            error, cause = self._get_param("error"), self._get_param("cause")
            for _ in range(100):  # its worker thread may not have its environment yet
                if execution.exec_worker.env is not None and execution.exec_worker.env.is_running():
                    execution.stop(stop_date=utcnow(), error=error, cause=cause)
                if execution.status != "RUNNING":
                    break
                time.sleep(0.02)
            execution.error, execution.cause = error, cause
        return ActionResult({"stopDate": execution.stop_date or utcnow()})

    def get_execution_history(self) -> ActionResult:
        """Events of an execution, also newest first and in pages."""
        execution: Any = self.stepfunction_backend.describe_execution(self._get_param("executionArn"))
        events = list(execution.to_history_output()["events"])
        if self._get_param("reverseOrder"):
            events.reverse()
        token = self._get_param("nextToken") or "0"
        if not str(token).isdigit():
            raise ValidationException(f"Invalid Token: '{token}'")
        start, size = int(token), int(self._get_param("maxResults") or _PAGE)
        page: dict[str, Any] = {"events": events[start : start + size]}
        if start + size < len(events):
            page["nextToken"] = str(start + size)
        return ActionResult(page)


def _diagnostic(code: str, message: str, location: str) -> dict[str, str]:
    return {"severity": "ERROR", "code": code, "message": message, "location": location}


def _tell(execution: Any) -> None:
    described = execution.to_describe_output()
    events.send(
        account=execution.account_id,
        region=execution.region_name,
        source="aws.states",
        kind="Step Functions Execution Status Change",
        resource=execution.execution_arn,
        detail={
            "executionArn": execution.execution_arn,
            "stateMachineArn": execution.state_machine_arn,
            "name": execution.name,
            "status": execution.status,
            "startDate": execution.start_date,
            "stopDate": execution.stop_date,
            "input": described["input"],
            "inputDetails": described["inputDetails"],
            "output": described.get("output"),
            "outputDetails": described.get("outputDetails"),
            **{name: described[name] for name in ("error", "cause") if name in described},
        },
    )


def _entry_point(worker: Any) -> Any:
    """A fresh program for an execution: it keeps its state in itself, and copying takes a tenth of parsing."""
    from moto.stepfunctions.parser.asl.parse.asl_parser import AmazonStateLanguageParser

    program, _ = AmazonStateLanguageParser.parse(worker._evaluation_details.state_machine_details.definition)
    return copy.deepcopy(program)


def _keep_the_first_end() -> None:
    """What was stopped or ran out of time stays so, whatever its worker thread finds afterwards.

    moto (`parser/asl/eval/environment.py`, 5.2) asks in `set_ended` and `set_stop` whether the program still runs, but
    not in `set_error` and `set_timed_out`. A stop between two states makes the worker look for a state without a
    name: it then called a stopped execution failed.
    """
    from moto.stepfunctions.parser.asl.eval.environment import Environment
    from moto.stepfunctions.parser.asl.eval.program_state import ProgramRunning

    def only_first(end: Any) -> Any:
        def guarded(self: Any, *args: Any, **named: Any) -> None:
            with self._state_mutex:
                if self._program_state is None or isinstance(self._program_state, ProgramRunning):
                    end(self, *args, **named)

        return guarded

    interpreter: Any = Environment
    interpreter.set_error = only_first(interpreter.set_error)
    interpreter.set_timed_out = only_first(interpreter.set_timed_out)


def _adapt_interpreter() -> None:
    from moto.stepfunctions.parser.asl.component.state.exec.state_task.service import (
        state_task_service_aws_sdk,
    )
    from moto.stepfunctions.parser.asl.parse.asl_parser import AmazonStateLanguageParser
    from moto.stepfunctions.parser.backend.execution import BaseExecutionWorkerCommunication
    from moto.stepfunctions.parser.backend.execution_worker import ExecutionWorker

    aws_sdk: Any = state_task_service_aws_sdk
    aws_sdk.boto_client_for = clients.for_states
    ended = BaseExecutionWorkerCommunication.terminated

    def terminated(self: Any) -> None:
        ended(self)
        _tell(self.execution)

    worker: Any = BaseExecutionWorkerCommunication
    worker.terminated = terminated
    interpreter: Any = ExecutionWorker
    interpreter._get_evaluation_entrypoint = _entry_point
    parser: Any = AmazonStateLanguageParser  # a plan, an apply and each execution parse one definition: half a second
    parser.parse = staticmethod(lru_cache(maxsize=16)(parser.parse))
    # On AWS the errors of this service are called "SageMaker.<name>".
    aws_sdk._SERVICE_ERROR_NAMES["sagemaker"] = "SageMaker"


def install() -> None:
    """Switch the interpreter on and put this class in place of moto's."""
    default_user_config["stepfunctions"] = {"execute_state_machine": True}
    urls.url_paths = {"{0}/$": StepFunctions.dispatch}
    _adapt_interpreter()
    _keep_the_first_end()
