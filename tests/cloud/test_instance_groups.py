"""Jobs on several instance types at once: every group has hosts of its own size and data of its own."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from cloud.aws_user import Aws

SCRIPT = """
import json, os, pathlib
root = pathlib.Path(os.environ["SAGEFIT_ML_ROOT"])
resources = json.loads((root / "input/config/resourceconfig.json").read_text())
told = json.loads((root / "input/config/inputdataconfig.json").read_text())
found = {path.name: sorted(p.name for p in path.iterdir()) for path in (root / "input/data").iterdir()}
del found["code"], told["code"]
print(json.dumps([resources, found, sorted(told), int(os.environ["SAGEFIT_MEMORY_LIMIT_BYTES"])]))
"""
GROUPS = [
    {"InstanceGroupName": "big", "InstanceType": "ml.m5.xlarge", "InstanceCount": 1},
    {"InstanceGroupName": "small", "InstanceType": "ml.m5.large", "InstanceCount": 2},
]


def channel(name: str, uri: str, groups: list[str], distribution: str = "FullyReplicated") -> dict[str, Any]:
    source = {"S3DataType": "S3Prefix", "S3Uri": uri, "S3DataDistributionType": distribution}
    named = {"InstanceGroupNames": groups} if groups else {}
    return {"ChannelName": name, "DataSource": {"S3DataSource": source | named}}


def test_groups_have_their_own_memory_names_and_data(aws: Aws) -> None:
    for index in range(3):
        aws.put(f"groups/{index}", "x")
    request = aws.request(SCRIPT, ResourceConfig={"InstanceGroups": GROUPS, "VolumeSizeInGB": 10})
    everywhere = [str(group["InstanceGroupName"]) for group in GROUPS]
    request["InputDataConfig"][0]["DataSource"]["S3DataSource"]["InstanceGroupNames"] = everywhere
    request["InputDataConfig"] += [
        channel("all", "s3://bucket-data/groups/", everywhere),
        channel("shared", "s3://bucket-data/groups/", ["small"], "ShardedByS3Key"),
        channel("only", "s3://bucket-data/groups/", ["big"]),
    ]
    aws.client("sagemaker").create_training_job(**request)
    name = request["TrainingJobName"]
    job = aws.wait(name)
    assert job["TrainingJobStatus"] == "Completed", job.get("FailureReason")
    hosts = [json.loads(aws.lines(name, f"algo-{number}")[0]) for number in (1, 2, 3)]
    groups = [
        {"instance_group_name": "big", "instance_type": "ml.m5.xlarge", "hosts": ["algo-1"]},
        {"instance_group_name": "small", "instance_type": "ml.m5.large", "hosts": ["algo-2", "algo-3"]},
    ]
    for resources, *_ in hosts:
        assert resources["instance_groups"] == groups
        assert resources["hosts"] == ["algo-1", "algo-2", "algo-3"]
    assert [resources["current_group_name"] for resources, *_ in hosts] == ["big", "small", "small"]
    assert [resources["current_instance_type"] for resources, *_ in hosts] == [
        "ml.m5.xlarge",
        "ml.m5.large",
        "ml.m5.large",
    ]
    everything = ["0", "1", "2"]
    assert [found for _, found, *_ in hosts] == [
        {"all": everything, "only": everything},
        {"all": everything, "shared": ["0", "2"]},
        {"all": everything, "shared": ["1"]},
    ]
    assert [told for _, _, told, _ in hosts] == [["all", "only"], ["all", "shared"], ["all", "shared"]]
    assert [limit for *_, limit in hosts] == [16 * 1024**3 // 16, 8 * 1024**3 // 16, 8 * 1024**3 // 16]


@pytest.mark.parametrize(
    ("resources", "groups", "why"),
    [
        (
            {"InstanceType": "ml.m5.large", "InstanceCount": 1},
            GROUPS,
            "InstanceType or InstanceCount cannot be specified with InstanceGroups",
        ),
        ({"KeepAlivePeriodInSeconds": 60}, GROUPS, "KeepAlivePeriodInSeconds is not supported with InstanceGroups"),
        ({}, [GROUPS[0], GROUPS[0]], "Instance group names must be unique"),
        ({}, GROUPS[:1], "Channel 'train' names instance groups that are not in InstanceGroups: small"),
        ({"InstanceType": "ml.m5.large", "InstanceCount": 1}, None, "that are not in InstanceGroups: small"),
        ({}, GROUPS, r"Some channels have assigned instance groups: \[train\] while others not: \[code\]"),
    ],
)
def test_what_groups_do_not_go_with(aws: Aws, resources: dict[str, Any], groups: Any, why: str) -> None:
    config = {"VolumeSizeInGB": 10, **resources} | ({"InstanceGroups": groups} if groups else {})
    request = aws.request("", ResourceConfig=config)
    aws.put("groups/0", "x")
    request["InputDataConfig"].append(channel("train", "s3://bucket-data/groups/", ["small"]))
    with pytest.raises(ClientError, match=why):
        aws.client("sagemaker").create_training_job(**request)


def test_the_quota_counts_each_type(aws: Aws) -> None:
    groups = [GROUPS[0], {"InstanceGroupName": "gpu", "InstanceType": "ml.p5.48xlarge", "InstanceCount": 90}]
    request = aws.request("", ResourceConfig={"InstanceGroups": groups, "VolumeSizeInGB": 10})
    with pytest.raises(ClientError, match=r"service limit 'ml.p5.48xlarge for training job usage'"):
        aws.client("sagemaker").create_training_job(**request)
