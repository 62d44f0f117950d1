"""The role of a job with processing steps creates those steps as they are planned, and nothing beside them."""

from __future__ import annotations

from typing import Any

import pytest

from proofs import calls
from proofs.calls import create_step, processing_job, training_job
from proofs.planned import OWN_NETWORK, Planned
from proofs.test_iam_minimal import changes
from sagefit.iam.evaluate import Call, allows
from sagefit.machine import graph

pytestmark = pytest.mark.xdist_group("plans")

JOB = "steps"
# Says twice what ArnEquals on the same key says: it does not hold for an absent key either.
REDUNDANT = {"CreateProcessingJobsOfThisJob: without Null sagemaker:OutputKmsKey"}


def forbidden(planned: Planned) -> list[Call]:
    """The near misses of the first step: other jobs, other names, less protection, more of everything."""
    document = planned.document("private")
    own = processing_job(document, JOB)
    requests = [asked for action, asked in graph.calls(planned.definitions()[JOB]) if action == "createProcessingJob"]
    request: dict[str, Any] = requests[0]
    elsewhere = processing_job(document, "another-job")
    return [
        create_step(request, elsewhere),
        *(create_step(request, processing_job(document, f"{JOB}-{more}")) for more in ("large", "2", "261121")),
        create_step(request, own.removesuffix("-p0")),
        create_step(request, own.replace("-p0", "-0")),
        create_step(request, f"{own}-0"),
        create_step(request, own.replace(":processing-job/", ":training-job/")),
        create_step(request, own, InstanceTypes=["ml.p3.16xlarge"]),
        create_step(request, own, InstanceTypes=["ml.m5.xlarge", "ml.p3.16xlarge"]),
        create_step(request, own, InstanceTypes=None),
        create_step(request, own, MaxRuntimeInSeconds="7201"),
        create_step(request, own, NetworkIsolation="false"),
        create_step(request, own, NetworkIsolation=None),
        create_step(request, own, VpcSubnets=["subnet-0bbbbbbbbbbbbbbbb"]),
        create_step(request, own, VpcSubnets=None),
        create_step(request, own, VpcSecurityGroupIds=["sg-0bbbbbbbbbbbbbbbb"]),
        create_step(request, own, VpcSecurityGroupIds=None),
        create_step(request, own, OutputKmsKey=None),
        create_step(request, own, OutputKmsKey="arn:aws:kms:us-east-1:123456789012:key/another"),
        *(Call(f"sagemaker:{action}", elsewhere) for action in ("DescribeProcessingJob", "AddTags")),
        *(Call(f"sagemaker:{action}", own) for action in ("StopProcessingJob", "DeleteProcessingJob")),
        Call("sagemaker:CreateTrainingJob", own),
        Call("sagemaker:AddTags", training_job(document, "another-job")),
        Call("sagemaker:CreateProcessingJob", own),
    ]


def needed(planned: Planned) -> list[Call]:
    return list(calls.of_a_machine(graph.calls(planned.definitions()[JOB]), planned.document("private"), JOB))


def test_the_role_can_do_nothing_else_to_processing_jobs(planned: Planned) -> None:
    policies, must_not = planned.role_policies()[JOB], forbidden(planned)
    assert len(must_not) >= 25
    assert [str(call) for call in must_not if allows(policies, call)] == []


def test_a_job_without_steps_has_no_permission_for_them(planned: Planned) -> None:
    of_jobs = {name: own for name, own in planned.role_policies().items() if "run_cleanup" not in name}
    for job, policies in of_jobs.items():
        if job in planned.definitions() and job not in (JOB, *OWN_NETWORK):
            assert not any("ProcessingJob" in str(policy) for policy in policies), job


def test_every_part_of_the_statements_matters(planned: Planned) -> None:
    must, must_not = needed(planned), forbidden(planned)
    unnoticed = {
        change
        for change, spoiled in changes(planned.role_policies()[JOB])
        if "ProcessingJobsOfThisJob" in change
        and all(allows(spoiled, call) for call in must)
        and not any(allows(spoiled, call) for call in must_not)
    }
    assert unnoticed <= REDUNDANT


def test_containers_of_steps_can_pull_their_images(planned: Planned) -> None:
    policies = planned.execution_policies(JOB)
    for action, request in graph.calls(planned.definitions()[JOB]):
        if action == "createProcessingJob":
            host, _, name = request["AppSpecification"]["ImageUri"].rpartition(":")[0].partition("/")
            account, _, _, region, *_ = host.split(".")
            repository = f"arn:aws:ecr:{region}:{account}:repository/{name}"
            assert allows(policies, Call("ecr:BatchGetImage", repository)), repository
