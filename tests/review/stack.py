"""Plans made by the real Terraform and the real provider, without an account and without an apply.

The state that a plan starts from is made of an earlier plan: what that leaves unknown is filled in by hand. So there
are updates, replacements and deletions of everything that the provider knows, in two runs of Terraform.
"""

from __future__ import annotations

import http.server
import json
import os
import subprocess
import threading
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from sagefit.paths import home
from sagefit.toolchain import terraform_binary, terraform_environment

ACCOUNT, REGION = "123456789012", "us-east-1"

_PROVIDER = f"""
terraform {{
  required_providers {{
    aws = {{
      source  = "hashicorp/aws"
      version = "~> 5.100"
    }}
  }}
}}

provider "aws" {{
  region                      = "{REGION}"
  access_key                  = "test"
  secret_key                  = "test-only-key"
  skip_credentials_validation = true
  skip_metadata_api_check     = true
  skip_region_validation      = true
  skip_requesting_account_id  = true

  endpoints {{
    sfn = "http://127.0.0.1:%(port)d"
    sts = "http://127.0.0.1:%(port)d"
  }}
}}
"""


# Those of the types that compare their own with the one that policies name.
_PLACE = f"{REGION}:{ACCOUNT}"
_ARNS = {
    "aws_cloudwatch_event_rule": f"arn:aws:events:{_PLACE}:rule/{{name}}",
    "aws_cloudwatch_log_group": f"arn:aws:logs:{_PLACE}:log-group:{{name}}",
    "aws_ecr_repository": f"arn:aws:ecr:{_PLACE}:repository/{{name}}",
    "aws_iam_policy": f"arn:aws:iam::{ACCOUNT}:policy{{path}}{{name}}",
    "aws_iam_role": f"arn:aws:iam::{ACCOUNT}:role{{path}}{{name}}",
    "aws_s3_bucket": "arn:aws:s3:::{bucket}",
    "aws_sfn_state_machine": f"arn:aws:states:{_PLACE}:stateMachine:{{name}}",
    "aws_sns_topic": f"arn:aws:sns:{_PLACE}:{{name}}",
}

_IDENTITY = f"""
<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult>
<Arn>arn:aws:iam::{ACCOUNT}:user/test</Arn><UserId>test</UserId><Account>{ACCOUNT}</Account>
</GetCallerIdentityResult></GetCallerIdentityResponse>
"""


class _TwoAnswers(http.server.BaseHTTPRequestHandler):
    """The calls that are made while something is planned: ValidateStateMachineDefinition and GetCallerIdentity.

    A mock, for nothing real can answer them without an account: each definition is valid, the account is `ACCOUNT`.
    """

    def do_POST(self) -> None:
        asked = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        valid = json.dumps({"result": "OK", "diagnostics": [], "truncated": False})
        who = b"Action=GetCallerIdentity" in asked
        body = (_IDENTITY.strip() if who else valid).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/xml" if who else "application/x-amz-json-1.0")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing: tests print enough."""


@cache
def _answers() -> int:
    """The port of the server of `_TwoAnswers`; it lives as long as this process."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _TwoAnswers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


class Stack:
    """A root module in ``folder``, whose files are given anew for each plan. Without ``aws`` it needs no provider."""

    def __init__(self, folder: Path, *, aws: bool = True) -> None:
        self.folder = folder
        self._provider = _PROVIDER % {"port": _answers()} if aws else ""
        folder.mkdir(parents=True, exist_ok=True)

    def plan(self, hcl: str, *arguments: str, check: bool = True) -> bytes:
        """The JSON of a plan of ``hcl`` on the state as it is; nothing is read from AWS."""
        (self.folder / "main.tf").write_text(self._provider + hcl, encoding="utf-8")
        self.terraform("init", "-input=false", "-no-color")
        self.terraform(
            "plan",
            "-input=false",
            "-no-color",
            "-refresh=false",
            "-lock=false",
            "-out=plan.tfplan",
            *arguments,
            check=check,
        )
        return self.terraform("show", "-json", "plan.tfplan")

    def pretend_applied(self, plan: bytes) -> None:
        """Make the state that an apply of ``plan`` would leave."""
        state = {
            "version": 4,
            "terraform_version": json.loads(plan)["terraform_version"],
            "serial": 7,
            "lineage": "5a6ef1f0-0000-4000-8000-000000000000",
            "outputs": {},
            "resources": [],
        }
        blocks: dict[tuple[str, str, str], dict[str, Any]] = {}
        _collect(json.loads(plan)["planned_values"]["root_module"], "", blocks)
        state["resources"] = list(blocks.values())
        self.write_state(state)

    def read_state(self) -> dict[str, Any]:
        """The state, to be changed by hand."""
        state: dict[str, Any] = json.loads((self.folder / "terraform.tfstate").read_text(encoding="utf-8"))
        return state

    def write_state(self, state: Mapping[str, Any]) -> None:
        """Put a state in place."""
        (self.folder / "terraform.tfstate").write_text(json.dumps(state, indent=1), encoding="utf-8")

    def terraform(self, *arguments: str, check: bool = True) -> bytes:
        """One Terraform command in this folder."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("TF_", "AWS_"))}
        done = subprocess.run(
            [terraform_binary(home()), f"-chdir={self.folder}", *arguments],
            env=environment | terraform_environment(home()) | {"NO_COLOR": "1"},
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0 or not check, (done.stdout[-1000:] + done.stderr[-8000:]).decode()
        return done.stdout


def _collect(module: dict[str, Any], address: str, blocks: dict[tuple[str, str, str], dict[str, Any]]) -> None:
    for resource in module.get("resources", []):
        if resource["mode"] != "managed":
            continue
        block = blocks.setdefault(
            (address, resource["type"], resource["name"]),
            {
                **({"module": address} if address else {}),
                "mode": "managed",
                "type": resource["type"],
                "name": resource["name"],
                "provider": f'provider["{resource["provider_name"]}"]',
                "instances": [],
            },
        )
        block["instances"].append(
            {
                **({"index_key": resource["index"]} if "index" in resource else {}),
                "schema_version": resource["schema_version"],
                "attributes": _filled(resource),
                "sensitive_attributes": _marks(resource.get("sensitive_values"), []),
            }
        )
    for child in module.get("child_modules", []):
        _collect(child, child["address"], blocks)


def _filled(resource: dict[str, Any]) -> dict[str, Any]:
    """The attributes, with those that every object has and no plan knows."""
    values: dict[str, Any] = resource["values"]
    kind, name = resource["type"], resource["name"]
    service = kind.removeprefix("aws_").split("_")[0]
    own = {"id": values.get("bucket") or values.get("name") or f"{service}-{name}"}
    if resource["provider_name"].endswith("/aws"):
        shape = _ARNS.get(kind, f"arn:aws:{service}:{_PLACE}:{name}")
        own["arn"] = shape.format_map(
            defaultdict(str, {key: value for key, value in values.items() if value is not None})
        )
    if kind == "aws_instance":  # sets that AWS leaves empty
        own |= {"ipv6_addresses": [], "security_groups": []}
    if kind == "terraform_data":  # attributes of any type carry their type with them
        values = {key: value and {"value": value, "type": _type(value)} for key, value in values.items()}
    return own | {key: value for key, value in values.items() if value is not None or key not in own}


def _type(value: Any) -> Any:
    """The type of a text or of an object of texts, as a state writes it."""
    return ["object", dict.fromkeys(value, "string")] if isinstance(value, dict) else "string"


def _marks(tree: Any, path: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The paths of sensitive values as a state writes them."""
    if tree is True:
        return [path]
    if isinstance(tree, dict):
        return [m for key, child in tree.items() for m in _marks(child, [*path, {"type": "get_attr", "value": key}])]
    if isinstance(tree, list):
        return [
            m
            for index, child in enumerate(tree)
            for m in _marks(child, [*path, {"type": "index", "value": {"value": index, "type": "number"}}])
        ]
    return []
