"""Checks of what runs: the state machine of a job, and the document in which a platform publishes its settings."""

from __future__ import annotations

import os
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

from sagefit_machine import Request, endless, requests
from sagefit_policy import REPOSITORY, Attributes, Policy, document, is_planned, is_regulated, rows, value

_MACHINE = ["aws_sfn_state_machine"]
_MACHINE_OR_PLATFORM = [*_MACHINE, "aws_ssm_parameter"]
_INSTANCES = REPOSITORY / "modules" / "training-job" / "instances.csv"


def _requests(conf: Attributes) -> list[Request]:
    """The training jobs of a state machine; none where it is unknown, which the first check reports."""
    return requests(document(conf, "definition") or {})


def _platform(conf: Attributes) -> dict[str, Any]:
    """The document of a platform, or nothing where the parameter is another one or not known yet."""
    return (document(conf, "value") or {}) if str(value(conf, "name")).startswith("/sagefit/") else {}


def _known(conf: Attributes) -> list[str] | None:
    if document(conf, "definition") is not None:
        return []
    if not is_planned(conf) or not str(value(conf, "name")).startswith("sagefit-"):
        return None
    return ["the definition is not known before apply: apply the platform first, then plan the job"]


def _spot(conf: Attributes) -> list[str] | None:
    found = _requests(conf)
    return (
        [
            f"{request.state}: spot without CheckpointConfig: set resources.checkpoints, or spot = false"
            for request in found
            if request.get("EnableManagedSpotTraining") and not request.get("CheckpointConfig")
        ]
        if found
        else None
    )


def _head_room(conf: Attributes) -> list[str] | None:
    """Only attempts with a prediction can be judged; they carry it as a tag."""
    floor = float(os.environ.get("SAGEFIT_MEMORY_HEADROOM_PERCENT", "10"))
    full = {
        request.state: float(request.tags["sagefit:memory-percent"])
        for request in _requests(conf)
        if "sagefit:memory-percent" in request.tags
    }
    return (
        [
            f"{state}: at most {percent:g} % of the memory is predicted to be used, and {floor:g} % must stay free: "
            "choose a larger instance or a smaller batch"
            for state, percent in full.items()
            if percent > 100 - floor
        ]
        if full
        else None
    )


def _ends(conf: Attributes) -> list[str] | None:
    definition = document(conf, "definition")
    if not definition or not requests(definition):
        return None
    problems = [f"{state}: can follow itself without a limit: let edges lead forward" for state in endless(definition)]
    return problems if definition.get("TimeoutSeconds") else [*problems, "the definition has no TimeoutSeconds"]


def _allowed(conf: Attributes) -> list[str] | None:
    """The company's list, else every training instance there is."""
    listed = os.environ.get("SAGEFIT_ALLOWED_INSTANCE_TYPES", "").replace(",", " ").split()
    patterns = listed or list(rows(_INSTANCES))
    platform = _platform(conf)
    used = [(request.state, str(request.get("ResourceConfig", "InstanceType"))) for request in _requests(conf)]
    used += [(f"warm_pools.{name}", pool["instance_type"]) for name, pool in platform.get("warm_pools", {}).items()]
    used += [("allowed_instance_types", ml_type) for ml_type in platform.get("allowed_instance_types", [])]
    if not used:
        return None
    return [
        f"{where}: {ml_type} is not allowed: choose one of {' '.join(listed) or 'instances.csv'}"
        for where, ml_type in used
        if not any(fnmatchcase(ml_type, pattern) for pattern in patterns)
    ]


def _isolated(conf: Attributes) -> list[str] | None:
    found, platform = _requests(conf), _platform(conf)
    if not is_regulated(conf) or not (found or platform):
        return None
    problems = [
        f"{request.state}: EnableNetworkIsolation is off: set resources.network_isolation"
        for request in found
        if not request.get("EnableNetworkIsolation")
    ]
    return (
        problems if not platform or platform["network"]["isolation"] else ["network.isolation of the platform is off"]
    )


def _encrypted(conf: Attributes) -> list[str] | None:
    found, platform = _requests(conf), _platform(conf)
    if not is_regulated(conf) or not (found or platform):
        return None
    problems = [f"{request.state}: {problem}" for request in found for problem in _plain(request)]
    return problems if not platform or platform.get("kms_key_arn") else ["the platform has no key: set kms"]


def _plain(request: Request) -> Iterator[str]:
    instance = rows(_INSTANCES).get(str(request.get("ResourceConfig", "InstanceType")), {})
    local_disks = float(instance.get("nvme_gb") or 0) > 0  # encrypted by the hardware; they take no key
    if not local_disks and not request.get("ResourceConfig", "VolumeKmsKeyId"):
        yield "the volume has no key: set kms of the platform or resources.volume_kms_key_arn"
    if not request.get("OutputDataConfig", "KmsKeyId"):
        yield "the output has no key: set kms of the platform or resources.output_kms_key_arn"
    hosts = request.get("ResourceConfig", "InstanceCount") or 1
    if hosts > 1 and not request.get("EnableInterContainerTrafficEncryption"):
        yield f"{hosts} hosts talk in the clear: set resources.encrypt_inter_container_traffic"


def _pinned(conf: Attributes) -> list[str] | None:
    found = _requests(conf)
    if not is_regulated(conf) or not found:
        return None
    return [
        f"{request.state}: {image} has no digest: copy it to the platform's repository or write image@sha256:..."
        for request in found
        if (image := request.get("AlgorithmSpecification", "TrainingImage"))
        and not image.startswith(f"{str(request.get('RoleArn')).split(':')[4]}.dkr.ecr.")
        and "@sha256:" not in image
    ]


Policy("CKV_SAGEFIT_1", _MACHINE, _known)
Policy("CKV_SAGEFIT_2", _MACHINE, _spot)
Policy("CKV_SAGEFIT_3", _MACHINE, _head_room)
Policy("CKV_SAGEFIT_4", _MACHINE, _ends)
Policy("CKV_SAGEFIT_5", _MACHINE_OR_PLATFORM, _allowed)
Policy("CKV_SAGEFIT_6", _MACHINE_OR_PLATFORM, _isolated)
Policy("CKV_SAGEFIT_7", _MACHINE_OR_PLATFORM, _encrypted)
Policy("CKV_SAGEFIT_8", _MACHINE, _pinned)
