"""Training jobs that really run: data in, model, logs and metrics out."""

from __future__ import annotations

import io
import json
import tarfile
import time
from typing import Any

import pytest

from cloud.aws_user import GRACE_SECONDS, Aws, statuses
from sagefit.planning.planned import STOP_SECONDS
from waiting import command_lines

SAVE = """
import json, os, sys
root = os.environ["SAGEFIT_ML_ROOT"]
config = {name: json.load(open(f"{root}/input/config/{name}.json")) for name in
          ("hyperparameters", "inputdataconfig", "resourceconfig")}
open(f"{root}/model/model.json", "w").write(json.dumps(config))
open(f"{root}/output/data/environment.json", "w").write(json.dumps(dict(os.environ)))
print("loss=0.5 accuracy=0.25")
print("loss=0.125 accuracy=0.75")
"""


def members(archive: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return {item.name: file.read() for item in tar if (file := tar.extractfile(item))}


def with_metrics(request: dict[str, Any], **metrics: str) -> dict[str, Any]:
    definitions = [{"Name": name, "Regex": regex} for name, regex in metrics.items()]
    return {**request["AlgorithmSpecification"], "MetricDefinitions": definitions}


def test_a_job_completes_with_model_logs_and_metrics(aws: Aws) -> None:
    request = aws.request(
        SAVE, HyperParameters={"epochs": "3"}, Environment={"COLOUR": "blue", "PLACE": "/opt/ml/code"}
    )
    request["AlgorithmSpecification"] = with_metrics(request, loss="loss=([0-9.]+)", accuracy="accuracy=([0-9.]+)")
    aws.client("sagemaker").create_training_job(**request)
    job = aws.wait(request["TrainingJobName"])

    assert job["TrainingJobStatus"] == "Completed", job.get("FailureReason")
    assert statuses(job) == ["Starting", "Pending", "Downloading", "Training", "Uploading", "Completed"]
    model = job["ModelArtifacts"]["S3ModelArtifacts"]
    assert model == f"s3://bucket-artifacts/jobs/{job['TrainingJobName']}/output/model.tar.gz"
    config = json.loads(members(aws.get(model))["model.json"])
    assert config["hyperparameters"] == {"epochs": "3"}
    assert config["inputdataconfig"]["code"]["TrainingInputMode"] == "File"
    assert config["resourceconfig"]["hosts"] == ["algo-1"]
    assert {item["MetricName"]: item["Value"] for item in job["FinalMetricDataList"]} == {
        "loss": 0.125,
        "accuracy": 0.75,
    }
    assert aws.lines(job["TrainingJobName"]) == ["loss=0.5 accuracy=0.25", "loss=0.125 accuracy=0.75"]
    assert {key: job[key] for key in request if key not in ("TrainingJobName", "Tags")} == {
        key: value for key, value in request.items() if key not in ("TrainingJobName", "Tags")
    }
    assert job["BillableTimeInSeconds"] >= 1

    metrics = aws.client("cloudwatch").list_metrics(
        Namespace="/aws/sagemaker/TrainingJobs",
        Dimensions=[{"Name": "TrainingJobName", "Value": job["TrainingJobName"]}],
    )["Metrics"]
    assert {metric["MetricName"] for metric in metrics} == {"loss", "accuracy"}

    output = members(aws.get(model.replace("model.tar.gz", "output.tar.gz")))
    environment = json.loads(output["environment.json"])
    assert environment["COLOUR"] == "blue"
    assert environment["PLACE"] == f"{environment['SAGEFIT_ML_ROOT']}/code"
    assert environment["AWS_ENDPOINT_URL"] == aws.endpoint
    assert int(environment["SAGEFIT_MEMORY_LIMIT_BYTES"]) == 8 * 1024**3 // 16


def test_an_isolated_job_has_no_credentials_and_nothing_of_the_caller(
    aws: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_CALLER", "1")
    job = aws.run(SAVE, EnableNetworkIsolation=True)
    output = job["ModelArtifacts"]["S3ModelArtifacts"].replace("model.tar.gz", "output.tar.gz")
    environment = json.loads(members(aws.get(output))["environment.json"])
    assert [name for name in environment if name.startswith("AWS_")] == ["AWS_REGION"]
    assert "SECRET_OF_THE_CALLER" not in environment


def test_the_same_job_makes_the_same_model(aws: Aws) -> None:
    script = 'import os; open(os.environ["SAGEFIT_ML_ROOT"] + "/model/a", "w").write("same")'
    first, second = (aws.get(aws.run(script)["ModelArtifacts"]["S3ModelArtifacts"]) for _ in range(2))
    assert first == second


def test_output_can_stay_unpacked(aws: Aws) -> None:
    output = {"S3OutputPath": "s3://bucket-artifacts/plain", "CompressionType": "NONE"}
    job = aws.run(SAVE, OutputDataConfig=output)
    assert job["ModelArtifacts"]["S3ModelArtifacts"].endswith("/output/model/")
    prefix = f"plain/{job['TrainingJobName']}/output/"
    assert aws.keys("bucket-artifacts", prefix) == [f"{prefix}data/environment.json", f"{prefix}model/model.json"]


def test_channels_are_placed_as_sagemaker_places_them(aws: Aws) -> None:
    for key in ("in/part/1.csv", "in/part/sub/2.csv", "in/partial.csv", "in/other.csv"):
        aws.put(key, key)
    manifest = aws.put("in/manifest.json", json.dumps([{"prefix": "s3://bucket-data/in/"}, "part/1.csv", "other.csv"]))
    script = """
import os, pathlib
root = pathlib.Path(os.environ["SAGEFIT_ML_ROOT"], "input/data")
for path in sorted(root.rglob("*.csv")):
    print(path.relative_to(root))
"""
    request = aws.request(script)
    for name, kind, uri in (
        ("folder", "S3Prefix", "s3://bucket-data/in/part/"),
        ("noslash", "S3Prefix", "s3://bucket-data/in/part"),
        ("single", "S3Prefix", "s3://bucket-data/in/other.csv"),
        ("listed", "ManifestFile", manifest),
    ):
        source = {"S3DataSource": {"S3DataType": kind, "S3Uri": uri}}
        request["InputDataConfig"].append({"ChannelName": name, "DataSource": source})
    aws.client("sagemaker").create_training_job(**request)
    assert aws.wait(request["TrainingJobName"])["TrainingJobStatus"] == "Completed"
    assert aws.lines(request["TrainingJobName"]) == [
        "folder/1.csv",
        "folder/sub/2.csv",
        "listed/other.csv",
        "listed/part/1.csv",
        "noslash/1.csv",
        "noslash/partial.csv",
        "noslash/sub/2.csv",
        "single/other.csv",
    ]


def test_hosts_share_out_the_objects(aws: Aws) -> None:
    for index in range(5):
        aws.put(f"shards/{index}", "x")
    script = """
import json, os, pathlib
root = pathlib.Path(os.environ["SAGEFIT_ML_ROOT"])
me = json.loads((root / "input/config/resourceconfig.json").read_text())
print(me["current_host"], me["hosts"], sorted(p.name for p in (root / "input/data/train").iterdir()))
(root / "model" / me["current_host"]).write_text("")
"""
    request = aws.request(script)
    request["ResourceConfig"]["InstanceCount"] = 2
    source = {"S3DataType": "S3Prefix", "S3Uri": "s3://bucket-data/shards/", "S3DataDistributionType": "ShardedByS3Key"}
    request["InputDataConfig"].append({"ChannelName": "train", "DataSource": {"S3DataSource": source}})
    aws.client("sagemaker").create_training_job(**request)
    job = aws.wait(request["TrainingJobName"])
    assert aws.lines(request["TrainingJobName"], "algo-1") == ["algo-1 ['algo-1', 'algo-2'] ['0', '2', '4']"]
    assert aws.lines(request["TrainingJobName"], "algo-2") == ["algo-2 ['algo-1', 'algo-2'] ['1', '3']"]
    assert sorted(members(aws.get(job["ModelArtifacts"]["S3ModelArtifacts"]))) == ["algo-1", "algo-2"]


def test_a_job_over_its_memory_is_killed_and_says_so(aws: Aws) -> None:
    script = """
import os
open(os.environ["SAGEFIT_ML_ROOT"] + "/output/data/note", "w").write("got here")
open(os.environ["SAGEFIT_ML_ROOT"] + "/model/half", "w").write("half a model")
held = []
while True:
    held.append(bytearray(16 * 1024 * 1024))
"""
    job = aws.run(script)
    assert job["TrainingJobStatus"] == "Failed"
    assert job["FailureReason"] == (
        "ClientError: Please use an instance type with more memory, "
        "or reduce the size of job data processed on an instance."
    )
    prefix = f"jobs/{job['TrainingJobName']}/output/"
    assert aws.keys("bucket-artifacts", prefix) == [f"{prefix}output.tar.gz"]
    assert "ModelArtifacts" not in job


def test_only_the_largest_process_is_killed(aws: Aws) -> None:
    script = """
import subprocess, sys
child = subprocess.run([sys.executable, "-c", "x = []\\nwhile True: x.append(bytearray(16 << 20))"])
print("child ended with", child.returncode)
"""
    job = aws.run(script)
    assert job["TrainingJobStatus"] == "Completed"
    assert aws.lines(job["TrainingJobName"]) == ["child ended with -9"]


def test_memory_shared_between_processes_counts_once(aws: Aws) -> None:
    script = """
import os, time
data = bytearray(b"x") * (300 << 20)   # of 512 MiB; two copies would be too much
if os.fork() == 0:
    time.sleep(1.5)
    os._exit(0)
os.wait()
"""
    assert aws.run(script)["TrainingJobStatus"] == "Completed"


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("raise SystemExit(3)", "AlgorithmError: , exit code: 3"),
        ("import os; os.abort()", "AlgorithmError: , exit code: 134"),
        (
            'import os; open(os.environ["SAGEFIT_ML_ROOT"] + "/output/failure", "w").write("sagefit: data: bad"); 1/0',
            "AlgorithmError: sagefit: data: bad, exit code: 1",
        ),
    ],
)
def test_a_failure_has_its_reason(aws: Aws, script: str, reason: str) -> None:
    job = aws.run(script)
    assert (job["TrainingJobStatus"], job["FailureReason"]) == ("Failed", reason)


WAIT = """
import os, signal, sys, time
root = os.environ["SAGEFIT_ML_ROOT"]
def save(*_):
    open(root + "/model/saved", "w").write("on SIGTERM")
    sys.exit(0)
if "obey" in sys.argv:
    signal.signal(signal.SIGTERM, save)
else:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("waiting", flush=True)
time.sleep(120)
"""


VARIABLE = {"SAGEFIT_STOP_GRACE_SECONDS": "77"}


def waiting_job(aws: Aws, argument: str, **changes: Any) -> str:
    request = aws.request(WAIT, **changes)
    request["AlgorithmSpecification"]["ContainerArguments"].append(argument)
    aws.client("sagemaker").create_training_job(**request)
    return str(request["TrainingJobName"])


def test_a_stopped_job_has_time_to_save_its_model(aws: Aws) -> None:
    name = waiting_job(aws, "obey")
    aws.wait_for_line(name, "waiting")
    aws.client("sagemaker").stop_training_job(TrainingJobName=name)
    assert aws.describe(name)["TrainingJobStatus"] in ("Stopping", "Stopped")
    job = aws.wait(name)
    assert (job["TrainingJobStatus"], job["SecondaryStatus"]) == ("Stopped", "Stopped")
    assert members(aws.get(job["ModelArtifacts"]["S3ModelArtifacts"])) == {"saved": b"on SIGTERM"}


def test_a_job_that_does_not_listen_is_killed(aws: Aws) -> None:
    name = waiting_job(aws, "ignore")
    aws.wait_for_line(name, "waiting")
    began = time.monotonic()
    aws.client("sagemaker").stop_training_job(TrainingJobName=name)
    assert aws.wait(name)["TrainingJobStatus"] == "Stopped"
    assert time.monotonic() - began >= GRACE_SECONDS - 0.5


def test_a_job_may_say_how_long_its_launcher_takes_a_stop_to_last(aws: Aws) -> None:
    script = "import os; print(os.environ['SAGEFIT_STOP_GRACE_SECONDS'])"
    said = [aws.lines(aws.run(script, Environment=own)["TrainingJobName"]) for own in ({}, VARIABLE)]
    assert said == [[f"{GRACE_SECONDS}"], ["77"]]


SLOW = """
import os, signal, sys, time
root = os.environ["SAGEFIT_ML_ROOT"]
def save(*_):
    time.sleep(float(sys.argv[-1]))
    open(root + "/model/saved", "w").write("late")
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
print("waiting", flush=True)
time.sleep(120)
"""


@pytest.mark.parametrize(
    ("grace", "saves"),
    [("60", True), ("1", False), ("soon", False), ("-1", False)],
)
def test_the_grace_of_a_job_is_its_own(aws: Aws, grace: str, saves: bool) -> None:
    """What takes twice as long as the cloud's own grace; a value that is none leaves that one."""
    request = aws.request(SLOW, Environment={"SAGEFIT_STOP_GRACE_SECONDS": grace})
    request["AlgorithmSpecification"]["ContainerArguments"].append(str(2 * GRACE_SECONDS))
    aws.client("sagemaker").create_training_job(**request)
    name = str(request["TrainingJobName"])
    aws.wait_for_line(name, "waiting")
    aws.client("sagemaker").stop_training_job(TrainingJobName=name)
    artifacts = aws.wait(name)["ModelArtifacts"]["S3ModelArtifacts"]
    assert members(aws.get(artifacts)) == ({"saved": b"late"} if saves else {})


def test_runtime_is_limited(aws: Aws) -> None:
    name = waiting_job(aws, "obey", StoppingCondition={"MaxRuntimeInSeconds": 1})
    job = aws.wait(name)
    assert (job["TrainingJobStatus"], job["SecondaryStatus"]) == ("Stopped", "MaxRuntimeExceeded")


def test_a_job_that_does_not_listen_at_its_limit_is_billed_until_it_is_killed(aws: Aws) -> None:
    """So a price at the time limit alone would be too low."""
    job = aws.wait(waiting_job(aws, "ignore", StoppingCondition={"MaxRuntimeInSeconds": 1}))
    assert job["SecondaryStatus"] == "MaxRuntimeExceeded"
    assert 1 + GRACE_SECONDS <= job["BillableTimeInSeconds"] <= 1 + STOP_SECONDS


def test_nothing_of_a_job_outlives_it(aws: Aws) -> None:
    script = """
import subprocess, sys
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)", "left-behind"], start_new_session=True)
"""
    job = aws.run(script)
    assert job["TrainingJobStatus"] == "Completed"
    assert not [line for line in command_lines() if "left-behind" in line.split()]


COUNT = """
import os, pathlib, time
folder = pathlib.Path(os.environ["SAGEFIT_ML_ROOT"], "checkpoints")
steps = sorted(int(p.name) for p in folder.iterdir())
print("found", steps, flush=True)
start = steps[-1] + 1 if steps else 0
for step in range(start, 6):
    for old in folder.iterdir():
        old.unlink()
    (folder / str(step)).write_text("x")
    time.sleep(0.4)
"""


def test_checkpoints_follow_the_job_and_come_back(aws: Aws) -> None:
    checkpoints = {"S3Uri": "s3://bucket-checkpoints/shared/run"}
    script = COUNT.replace("time.sleep(0.4)", "os.kill(os.getpid(), 9) if step == 2 else None")
    first = aws.run(script, CheckpointConfig=checkpoints)
    assert first["FailureReason"] == "AlgorithmError: , exit code: 137"
    assert aws.keys("bucket-checkpoints", "shared/") == ["shared/run/2"]
    second = aws.run(COUNT, CheckpointConfig=checkpoints)
    assert aws.lines(second["TrainingJobName"]) == ["found [2]"]
    assert aws.keys("bucket-checkpoints", "shared/") == ["shared/run/5"]


REWRITES = """
import os, pathlib, time
folder = pathlib.Path(os.environ["SAGEFIT_ML_ROOT"], "checkpoints")
end = time.monotonic() + 4
while time.monotonic() < end:
    for size in (3 << 20, 1 << 10, 2 << 20):
        (folder / "rewritten").write_bytes(bytes(size))
(folder / "rewritten").write_bytes(b"whole")
"""


def test_checkpoints_that_change_while_they_are_taken_do_no_harm(aws: Aws) -> None:
    job = aws.run(REWRITES, CheckpointConfig={"S3Uri": "s3://bucket-checkpoints/rewritten"})
    assert job["TrainingJobStatus"] == "Completed", job.get("FailureReason")
    stored = aws.client("s3").get_object(Bucket="bucket-checkpoints", Key="rewritten/rewritten")
    assert stored["Body"].read() == b"whole"


def test_an_interrupted_spot_job_starts_again_from_its_checkpoint(aws: Aws) -> None:
    job = aws.run(
        COUNT,
        TrainingJobName="fault-interrupt",
        EnableManagedSpotTraining=True,
        StoppingCondition={"MaxRuntimeInSeconds": 300, "MaxWaitTimeInSeconds": 600},
        CheckpointConfig={"S3Uri": "s3://bucket-checkpoints/interrupted"},
    )
    assert job["TrainingJobStatus"] == "Completed"
    assert statuses(job).count("Interrupted") == 1
    first, second = aws.lines("fault-interrupt")
    assert first == "found []"
    assert second in ("found [2]", "found [3]")


def test_utilisation_is_published_while_it_runs(aws: Aws) -> None:
    job = aws.run("import time; time.sleep(2.5)")
    metrics = aws.client("cloudwatch").list_metrics(
        Namespace="/aws/sagemaker/TrainingJobs",
        Dimensions=[{"Name": "Host", "Value": f"{job['TrainingJobName']}/algo-1"}],
    )["Metrics"]
    assert {metric["MetricName"] for metric in metrics} == {"MemoryUtilization", "CPUUtilization", "DiskUtilization"}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            {"TrainingImage": "123456789012.dkr.ecr.us-east-1.amazonaws.com/own:1"},
            "stands in for these repositories only",
        ),
        ({"ContainerEntrypoint": None}, "jobs with a ContainerEntrypoint"),
        ({"ContainerEntrypoint": ["no-such-program"]}, "exit code: 127"),
    ],
)
def test_what_cannot_run_here_says_why(aws: Aws, change: dict[str, Any], reason: str) -> None:
    request = aws.request("")
    algorithm = request["AlgorithmSpecification"] | change
    request["AlgorithmSpecification"] = {key: value for key, value in algorithm.items() if value is not None}
    if change.get("ContainerEntrypoint", "") is None:
        del request["AlgorithmSpecification"]["ContainerArguments"]
    aws.client("sagemaker").create_training_job(**request)
    job = aws.wait(request["TrainingJobName"])
    assert job["TrainingJobStatus"] == "Failed"
    assert reason in job["FailureReason"]


def test_scikit_learn_trains(aws: Aws) -> None:
    script = """
import os, pickle
from sklearn.linear_model import LogisticRegression
model = LogisticRegression().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
print(f"accuracy={model.score([[0.5], [2.5]], [0, 1])}")
pickle.dump(model, open(os.environ["SAGEFIT_ML_ROOT"] + "/model/model.pkl", "wb"))
"""
    request = aws.request(script)
    image = "683313688378.dkr.ecr.us-east-1.amazonaws.com/sagemaker-scikit-learn:1.2-1-cpu-py3"
    request["AlgorithmSpecification"]["TrainingImage"] = image
    aws.client("sagemaker").create_training_job(**request)
    job = aws.wait(request["TrainingJobName"], seconds=300)
    assert job["TrainingJobStatus"] == "Completed", job.get("FailureReason")
    assert aws.lines(job["TrainingJobName"]) == ["accuracy=1.0"]
