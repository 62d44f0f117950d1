"""Prepares data on a Spark cluster of your own, and starts the training job once the data is in place.

    spark-submit --py-files ../spark-preprocessing/features/features.py start_job.py \
        --events s3://raw/events/ --visits s3://raw/visits.csv --handover s3://DATA-BUCKET/handover/visits \
        --state-machine "$(terraform output -raw state_machine_arn)" --run-prefix "$(terraform output -raw run_prefix)"

The cluster creates no training job and passes no role: it may start the job's state machine, which does.
"""

import argparse
import csv
import io
import sys
import time
from datetime import datetime, timezone

import boto3
from features import FEATURES, features, split
from pyspark.sql import DataFrame, SparkSession

POLL_SECONDS = 2  # these runs last seconds; look once a minute at real ones


def hand_over(rows: DataFrame, folder: str) -> None:
    """Put the rows into one object. They are few by now; of many, each partition writes its own with ``rows.write``."""
    columns = ["visit", "bought", *FEATURES]
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(columns)
    table.writerows(rows.select(*columns).orderBy("visit").toLocalIterator())
    bucket, _, prefix = folder.removeprefix("s3://").partition("/")
    boto3.client("s3").put_object(Bucket=bucket, Key=f"{prefix}/part-0.csv", Body=text.getvalue().encode())


def start(state_machine: str, run_prefix: str) -> str:
    """Start a run, named as all runs of the job are: its training jobs get their names from it. Returns its ARN."""
    name = f"{run_prefix}{datetime.now(timezone.utc):%y%m%d-%H%M%S}"
    return boto3.client("stepfunctions").start_execution(stateMachineArn=state_machine, name=name)["executionArn"]


def wait(run: str) -> bool:
    """Wait until the run has ended; whether it succeeded."""
    states = boto3.client("stepfunctions")
    while (found := states.describe_execution(executionArn=run))["status"] == "RUNNING":
        time.sleep(POLL_SECONDS)
    print(f"{run.rpartition(':')[2]}: {found['status']} {found.get('output') or found.get('error')}")
    return found["status"] == "SUCCEEDED"


def main() -> int:
    """Prepare, hand over, start, wait."""
    parser = argparse.ArgumentParser()
    for name in ("events", "visits", "handover", "state-machine", "run-prefix"):
        parser.add_argument(f"--{name}", required=True)
    asked = parser.parse_args()

    spark = SparkSession.builder.appName("visits").config("spark.sql.shuffle.partitions", 4).getOrCreate()
    events = spark.read.schema("visit int, page string, seconds double, device string").json(asked.events)
    visits = spark.read.schema("visit int, bought int").csv(asked.visits, header=True)
    train, test = split(features(events).join(visits, "visit").cache())
    hand_over(train, f"{asked.handover}/train")
    hand_over(test, f"{asked.handover}/test")
    spark.stop()  # the cluster is free while the job trains
    return 0 if wait(start(asked.state_machine, asked.run_prefix)) else 1


if __name__ == "__main__":
    sys.exit(main())
