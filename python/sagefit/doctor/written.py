"""A platform before its first apply: what its variables say of key, network, boundary and names."""

from __future__ import annotations

from sagefit.doctor.account import Caller
from sagefit.paths import PLATFORMS
from sagefit.platform import SCHEMA, Platform
from sagefit.tfvars_file import read_variables

_READ = {
    "kms": ("any", "{}"),
    "network": ("any", "{}"),
    "permissions_boundary_arn": ("string", "null"),
    "regional_names": ("bool", "false"),
}


def as_written(name: str, caller: Caller) -> Platform | None:
    """What the document of the platform ``name`` would say of them; None where it has no file of variables.

    Raises SagefitError for variables that Terraform cannot read.
    """
    path = PLATFORMS / f"{name}.tfvars"
    if not path.is_file():
        return None
    read = read_variables(path, _READ, "correct them as the variables of the root module say: docs/platform.md")
    kms = read["kms"] or {}
    bucket = f"sagefit-{name}-{caller.account}-{caller.region}"
    return Platform.model_validate(
        {
            "schema_": SCHEMA,
            "name": name,
            "partition": caller.partition,
            "region": caller.region,
            "account_id": caller.account,
            "buckets": {key: f"{bucket}-{key}" for key in ("data", "artifacts", "checkpoints")},
            "kms_key_arn": kms.get("key_arn") or (kms.get("key") or {}).get("arn"),
            "network": read["network"] or {},
            "permissions_boundary_arn": read["permissions_boundary_arn"],
            "global_suffix": f"_{caller.region}" if read["regional_names"] else "",
        }
    )
