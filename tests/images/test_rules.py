"""What a job file may say of its image: known families, versions, Pythons and processors; tags and digests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from job_files import AUTO, write_job
from sagefit import deploy
from sagefit.errors import INVALID, SagefitError
from sagefit.gitops.stacks import inputs, job_stack
from sagefit.job import load_job
from sagefit.job.image_table import frameworks, processing
from sagefit.planning import plan
from sagefit.platform import Buckets, Platform

DIGEST = "sha256:" + "0" * 64
HOST = "registry.example.com:5000/train"


def test_the_python_of_every_framework_image_is_known() -> None:
    """A version that the table gets without it would be planned, and die in its first line on an old Python."""
    for name in frameworks().keys() - processing().keys():
        family = frameworks()[name]
        for version, tags in family.versions.items():
            for tag in tags:
                assert family.python(version, tag), (name, version, tag)


REFUSED: list[tuple[dict[str, Any], str, str, str]] = [
    ({"framework": "pytroch", "version": "2.6"}, "image.framework", "'pytroch' is not in the table", "mean pytorch?"),
    ({"framework": "caffe", "version": "1"}, "image.framework", "'caffe' is not in the table", "known: huggingface,"),
    ({"framework": "pytorch", "version": "2.6.1"}, "image.version", "'2.6.1' of pytorch", "did you mean 2.6?"),
    ({"framework": "pytorch", "version": "9.9"}, "image.version", "'9.9' of pytorch", "did you mean 2.10.0?"),
    ({"framework": "tensorflow", "version": "2.15"}, "image.version", "'2.15' of tensorflow", "did you mean 2.14?"),
    ({"framework": "sklearn", "version": "1.3"}, "image.version", "'1.3' of sklearn", "Known: 0.20.0, 0.23-1,"),
    ({"framework": "sklearn", "version": "latest"}, "image.version", "'latest' of sklearn", "did you mean 1.9-0?"),
    ({"framework": "pytorch"}, "image", "framework 'pytorch' has no version", "newest known is 2.10"),
    (
        {"framework": "pytorch", "version": "2.6", "python_version": "py311"},
        "image.python_version",
        "pytorch 2.6.0 is not built for 'py311'",
        "use py312",
    ),
    (
        {"framework": "mxnet", "version": "1.8"},
        "image.version",
        "mxnet 1.8.0 has Python 3.7, and the launcher that starts code needs Python 3.8",
        "choose a newer version",
    ),
    (
        {"framework": "sklearn", "version": "0.23-1"},
        "image.version",
        "sklearn 0.23-1 has Python 3.7, and the launcher that starts code needs Python 3.8",
        "choose a newer version",
    ),
    (
        {"framework": "pytorch", "version": "1.8", "python_version": "py3"},
        "image.version",
        "pytorch 1.8.1 has Python 3.6, and the launcher that starts code needs Python 3.8",
        "choose a newer version",
    ),
    (
        {"framework": "xgboost", "version": "1.3-1"},
        "image.version",
        "xgboost 1.3-1 has Python 3.7, and the launcher that starts code needs Python 3.8",
        "choose a newer version",
    ),
    (
        {"framework": "huggingface", "version": "4.56"},
        "attempts[0].instance_type",
        "ml.m5.large is a CPU instance, and AWS publishes images of huggingface for GPU instances only",
        "use another type, or give image.uri",
    ),
    ({"framework": "xgboost", "version": "1"}, "image.version", "is a moving target", "name one of 1.2-1,"),
    ({"framework": "xgboost", "version": "latest"}, "image.version", "is a moving target", "name one of 1.2-1,"),
    ({"uri": "683313688378.dkr.ecr.us-east-1.amazonaws.com/sagemaker-xgboost:latest"}, "image.uri", "moving", "1.7-1"),
    ({"uri": f"{HOST}@sha256:12"}, "image.uri", "@sha256: and 64 hexadecimal digits", "copy it from the registry"),
    ({"uri": f"{HOST}:7@{DIGEST}"}, "image.uri", "a tag or a digest, not both", "remove the tag"),
    ({"uri": "x" * 256}, "image.uri", "256 characters; SageMaker takes 255", "shorter"),
    ({"uri": HOST, "version": "2.6"}, "image.version", "belongs to image.framework or image.algorithm", "remove it"),
    ({"framework": "sklearn", "version": "1.2-1", "tag": "1"}, "image.tag", "belongs to image.repository", "remove it"),
    ({"repository": "", "tag": "release:1"}, "image.tag", "1 to 128 letters, digits", "rename it"),
    ({"repository": "", "digest": "sha256:12"}, "image.digest", "64 hexadecimal digits", "copy it"),
    (
        {"repository": "", "tag": "1", "digest": DIGEST},
        "image.repository",
        "a tag or a digest, and not both",
        "image.tag",
    ),
    ({"repository": "", "tag": "1", "build": "nowhere"}, "image.build", "no Dockerfile in 'nowhere'", "the folder"),
    (
        {"repository": HOST, "tag": "1", "build": "src"},
        "image.build",
        "platform's own repository only",
        'repository: ""',
    ),
    ({"repository": "", "digest": DIGEST, "build": "src"}, "image.build", "needs image.tag", "give image.tag"),
    ({"repository": "", "tag": "t" * 116, "build": "src"}, "image.tag", "at most 115 characters", "shorten it"),
]


def refusal(path: Path) -> str:
    with pytest.raises(SagefitError) as caught:
        plan(load_job(str(path)))
    assert caught.value.exit_code == INVALID
    return caught.value.message


@pytest.mark.parametrize(("image", "field", "rule", "knob"), REFUSED)
def test_an_image_that_cannot_be_is_refused(
    tmp_path: Path, image: dict[str, Any], field: str, rule: str, knob: str
) -> None:
    told = refusal(write_job(tmp_path, {"image": image}))
    ours = [part for part in told.split("digits.yaml:")[1:] if f": {field}: " in f":{part}"]
    assert any(rule in part and knob in part for part in ours), told


@pytest.mark.parametrize(
    "image",
    [
        {"uri": f"{HOST}:7"},
        {"uri": f"{HOST}@{DIGEST}"},
        {"repository": "", "digest": DIGEST},
        {"repository": "123456789012.dkr.ecr.us-east-1.amazonaws.com/train", "tag": "v1.2"},
        {"framework": "mxnet", "version": "1.9", "python_version": "py38"},
        {"framework": "sklearn", "version": "1.9-0"},
    ],
)
def test_what_exists_is_accepted(tmp_path: Path, image: dict[str, Any]) -> None:
    assert plan(load_job(str(write_job(tmp_path, {"image": image})))).text


def test_an_algorithm_of_one_version_needs_none(tmp_path: Path) -> None:
    assert plan(load_job(str(write_job(tmp_path, {"image": {"algorithm": "kmeans"}, "code": None})))).text
    told = refusal(write_job(tmp_path, {"image": {"algorithm": "k-means"}, "code": None}))
    assert "'k-means' is not in the table of AWS's images" in told
    assert "did you mean kmeans?" in told


def test_types_that_sagefit_chooses_are_judged_too(tmp_path: Path) -> None:
    """A transformer goes to GPUs, and scikit-learn's images have none."""
    told = refusal(write_job(tmp_path, {"image": {"framework": "sklearn", "version": "1.2-1"}}, job=AUTO))
    assert "resources.instance_type: ml." in told
    assert "AWS publishes images of sklearn for CPU instances only" in told


def test_trainium_needs_an_address(tmp_path: Path) -> None:
    changes = {"image": {"framework": "pytorch", "version": "2.6"}, "attempts.0.instance_type": "ml.trn1.2xlarge"}
    assert "no image of pytorch for ml.trn1.2xlarge (Trainium)" in refusal(write_job(tmp_path, changes))


@pytest.mark.parametrize(
    ("image", "region", "published"),
    [
        ({"framework": "mxnet", "version": "1.9"}, "us-east-1", True),
        ({"framework": "mxnet", "version": "1.9"}, "mx-central-1", False),
        ({"framework": "pytorch", "version": "2.10"}, "eusc-de-east-1", True),
        ({"framework": "pytorch", "version": "2.8"}, "eusc-de-east-1", False),
    ],
)
def test_a_platform_elsewhere_may_lack_an_image(
    tmp_path: Path, image: dict[str, Any], region: str, published: bool
) -> None:
    job = load_job(str(write_job(tmp_path, {"image": image})))
    buckets = Buckets(data="a", artifacts="b", checkpoints="c")
    platform = Platform(
        schema_=1, name="dev", partition="aws", region=region, account_id="123456789012", buckets=buckets
    )
    if published:
        deploy.check(plan(job), platform)
        return
    with pytest.raises(SagefitError, match=f"is not published in {region}, but in af-south-1, ") as caught:
        deploy.check(plan(job), platform)
    assert "digits.yaml:" in caught.value.message
    assert caught.value.exit_code == INVALID


def test_an_own_image_is_part_of_what_a_job_is_made_from(tmp_path: Path) -> None:
    """So `sagefit changed` names the job, and a plan is stale, when the image or its sources change."""
    (tmp_path / "image").mkdir()
    (tmp_path / "image" / "Dockerfile").touch()
    own = {"repository": "", "tag": "1", "build": "image"}
    stack = job_stack(load_job(str(write_job(tmp_path, {"image": own}))))
    made_from = {item.path: item.what for item in inputs(stack)}
    assert made_from[tmp_path / "digits.image.json"] == "pinned image"
    assert made_from[tmp_path / "image"] == "sources of the image"
