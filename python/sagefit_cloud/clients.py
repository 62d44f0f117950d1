"""AWS clients of the embedded cloud for its own parts: the executor, and the Step Functions interpreter.

Building a client costs a tenth of a second, so each is built once.
"""

from __future__ import annotations

import threading
from datetime import datetime, timezone
from typing import Any

import boto3
from botocore.config import Config
from moto.settings import moto_server_port

from sagefit.cloud.keys import Key, RoleKeys, new_key
from sagefit_cloud import authorization

#: Marks calls that AWS makes on its own side (moving a job's data, say): no user made them, so they are not logged.
INTERNAL_AGENT = "sagefit-executor"
#: Marks calls of state machines.
STATES_AGENT = "sagefit-states"

_lock = threading.Lock()
_clients: dict[tuple[str, ...], Any] = {}
#: The key of whoever runs this cloud; its own parts ask with it too.
OWNER: Key = new_key()
#: The keys of execution roles.
ROLES = RoleKeys()


def endpoint() -> str:
    """This cloud's own address: by number, because "localhost" may be somebody else's port on ::1."""
    return f"http://127.0.0.1:{moto_server_port()}"


def internal(service: str, region: str) -> Any:
    """A client for the platform's own work."""
    return _client(service, region, OWNER)


def for_role(service: str, region: str, role: str) -> Any:
    """A client for what SageMaker does in the name of an execution role: the gateway judges its calls."""
    return _client(service, region, ROLES.of(role))


def for_states(region: str, service: str, state_credentials: Any) -> Any:
    """A client for tasks of a state machine, with the rights of its role.

    They do their own retries. Names begin with a capital letter in parameters and results, as in all AWS SDK
    integrations, and results are JSON: times are text in them. SageMaker's calls are judged here, those of other
    services by the gateway.
    https://docs.aws.amazon.com/step-functions/latest/dg/supported-services-awssdk.html
    """
    role = state_credentials.role_arn
    return _client(service, region, OWNER if service == "sagemaker" else ROLES.of(role), role)


def _names_of_the_service(params: dict[str, Any], model: Any, **_: Any) -> dict[str, Any]:
    names = {name[:1].upper() + name[1:]: name for name in model.input_shape.members}
    return {names.get(name, name): value for name, value in params.items()}


def _as_a_result(parsed: dict[str, Any], model: Any, **_: Any) -> None:
    found = {name: _as_text(value) for name, value in parsed.items()}
    members = model.output_shape.members if model.output_shape else {}
    parsed.clear()
    parsed.update({name[:1].upper() + name[1:] if name in members else name: found[name] for name in found})


def _as_text(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, dict):
        return {name: _as_text(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_as_text(item) for item in value]
    return value


def _client(service: str, region: str, key: Key, states_role: str = "") -> Any:
    """A client of one's own side, or with ``states_role`` that of a state machine."""
    name, internal_call = (service, region, key.id, states_role), not states_role
    with _lock:  # sessions are not safe to share between threads, clients are
        if name not in _clients:
            make: Any = boto3.client
            _clients[name] = make(
                service,
                region_name=region,
                endpoint_url=endpoint(),
                aws_access_key_id=key.id,
                aws_secret_access_key=key.secret,
                config=Config(
                    parameter_validation=internal_call,
                    retries={"total_max_attempts": 3 if internal_call else 1},
                    max_pool_connections=32,
                    user_agent_extra=INTERNAL_AGENT if internal_call else STATES_AGENT,
                ),
            )
            if states_role:
                events = _clients[name].meta.events
                events.register("before-parameter-build.sagemaker", authorization.guard(states_role, region))
                events.register("provide-client-params", _names_of_the_service)
                events.register("after-call", _as_a_result)
        return _clients[name]
