"""FastFile mode and spot interruptions at a line of the log, as scripts see them."""

from __future__ import annotations

import json

from cloud.aws_user import Aws, statuses

LOOK = """
import json, os, pathlib
root = pathlib.Path(os.environ["SAGEFIT_ML_ROOT"])
folder = root / "input/data/train"
found = {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}
modes = {oct(path.stat().st_mode & 0o777) for path in folder.rglob("*") if path.is_file()}
print(json.dumps([found, sorted(modes), folder.resolve().is_relative_to(root)]))
"""
RESUME = """
import os, pathlib, time
folder = pathlib.Path(os.environ["SAGEFIT_ML_ROOT"], "checkpoints")
done = sorted(int(path.name) for path in folder.iterdir())
print("found", done)
for step in range(len(done) + 1, 5):
    (folder / str(step)).touch()
    print("step", step, flush=True)
    if step == 2 and not done:
        time.sleep(600)
"""


def test_fast_file_shows_a_folder_that_is_not_on_the_volume_and_is_read_only(aws: Aws) -> None:
    for key in ("a.csv", "sub/b.csv"):
        aws.put(f"fast/{key}", key)
    request = aws.request(LOOK)
    source = {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://bucket-data/fast/"}}
    request["InputDataConfig"].append({"ChannelName": "train", "InputMode": "FastFile", "DataSource": source})
    aws.client("sagemaker").create_training_job(**request)
    name = request["TrainingJobName"]
    assert aws.wait(name)["TrainingJobStatus"] == "Completed"
    found, modes, on_volume = json.loads(aws.lines(name)[0])
    assert found == {"a.csv": "a.csv", "sub/b.csv": "sub/b.csv"}
    assert modes == ["0o444"]
    assert not on_volume


def test_an_interruption_at_a_line_keeps_what_was_saved_before_it(aws: Aws) -> None:
    name = "fault-line"
    spot = {
        "EnableManagedSpotTraining": True,
        "StoppingCondition": {"MaxRuntimeInSeconds": 300, "MaxWaitTimeInSeconds": 600},
        "CheckpointConfig": {"S3Uri": f"s3://bucket-checkpoints/{name}"},
    }
    job = aws.run(RESUME, TrainingJobName=name, **spot)
    assert job["TrainingJobStatus"] == "Completed", job.get("FailureReason")
    assert statuses(job).count("Interrupted") == 1
    assert aws.lines(name) == ["found []", "step 1", "step 2", "found [1, 2]", "step 3", "step 4"]
