"""How long a review of 10,000 changes takes and how much memory: part of ``make bench``. The goals are 2 s and 300 MB.

Beside it stands reading the JSON and nothing else; and, for a real plan of as many simple resources, Terraform's own
``show``. Then the policies, whose goal is 15 s: checkov's time depends on how many resources differ, so there is a
plan of five kinds, and one of five kinds in fifty settings each; and what checkov takes without grouping.
``--against COMMAND`` times another program on the same plan, whose path it gets as its last argument.

One run each, in a process of its own; figures of a busy machine are upper limits, and the ratio says more. ``--smoke``
takes 100 changes and asks for no goal.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from sagefit.checkov import environment
from sagefit.paths import ROOT

sys.path.insert(0, str(ROOT / "tests"))
from review.stack import Stack

CHANGES = 10_000
FEW = 100  # of a smoke test
GOAL_SECONDS, GOAL_MB, GOAL_POLICIES = 2, 300, 15

_READ = ("-c", "import json, sys; json.load(open(sys.argv[1], encoding='utf-8'))")
_POLICIES = """
import sys
from pathlib import Path
from sagefit.reviewing import scan
from sagefit.reviewing.document import read_document
from sagefit.reviewing.groups import Grouped

grouped, scanned = scan.grouped, 0

def counted(cut):
    global scanned
    addresses = [entry["address"] for entry in cut["resource_changes"]]
    found = grouped(cut) if sys.argv[1] == "grouped" else Grouped(cut, {each: (each,) for each in addresses})
    scanned += len(found.plan["resource_changes"])
    return found

scan.grouped = counted
scan.policy_diff(read_document(Path(sys.argv[2])))
print("!" * scanned, end="")
"""
_REVIEW = ("-c", "import sys; from sagefit.cli.review import app; app(sys.argv[1:])")


def plan_of(changes: int, settings: int = 1) -> dict[str, Any]:
    """A plan of so many changes as a large stack has them: buckets, roles, groups, alarms, functions.

    With ``settings``, their tags are of so many kinds, and differ in what policies can read.
    """
    resources = [_resource(index) for index in range(changes)]
    for index, resource in enumerate(resources if settings > 1 else ()):
        for values in filter(None, (resource["change"]["before"], resource["change"]["after"])):
            values["tags"] = {"team": f"team-{index // len(_KINDS) % settings}"}
    return {
        "format_version": "1.2",
        "terraform_version": "1.11.4",
        "timestamp": "2026-01-01T00:00:00Z",
        "applyable": True,
        "complete": True,
        "errored": False,
        "resource_changes": resources,
        "planned_values": {
            "root_module": {
                "resources": [
                    {**{k: r[k] for k in ("address", "mode", "type", "name")}, "values": r["change"]["after"]}
                    for r in resources
                    if r["change"]["after"] is not None
                ]
            }
        },
        "configuration": {
            "root_module": {
                "resources": [
                    {
                        "address": f"{r['type']}.{r['name']}",
                        "mode": "managed",
                        "type": r["type"],
                        "name": r["name"],
                        "expressions": {},
                    }
                    for r in resources
                ]
            }
        },
    }


def _resource(index: int) -> dict[str, Any]:
    kind, before, after = _KINDS[index % len(_KINDS)](index)
    actions = ["update"]
    if index % 10 == 0:
        actions, before = ["create"], None
    elif index % 10 == 5:
        actions, after = ["delete"], None
    name = f"r{index}"
    return {
        "address": f"{kind}.{name}",
        "mode": "managed",
        "type": kind,
        "name": name,
        "provider_name": "registry.terraform.io/hashicorp/aws",
        "change": {
            "actions": actions,
            "before": before,
            "after": after,
            "after_unknown": {},
            "before_sensitive": {"tags": {}},
            "after_sensitive": {"tags": {}},
        },
    }


def _policy(index: int, *actions: str) -> str:
    statements = [
        {"Sid": f"S{n}", "Effect": "Allow", "Action": list(actions), "Resource": f"arn:aws:s3:::bucket-{index}-{n}/*"}
        for n in range(4)
    ]
    return json.dumps({"Version": "2012-10-17", "Statement": statements})


def _role_policy(index: int) -> tuple[str, Any, Any]:
    rest = {"id": f"r:{index}", "name": "p", "role": f"role-{index}"}
    before, after = _policy(index, "s3:GetObject"), _policy(index, "s3:GetObject", "s3:PutObject")
    return "aws_iam_role_policy", rest | {"policy": before}, rest | {"policy": after}


def _bucket(index: int) -> tuple[str, Any, Any]:
    rest = {
        "bucket": f"bucket-{index}",
        "force_destroy": False,
        "arn": f"arn:aws:s3:::bucket-{index}",
        "region": "us-east-1",
    }
    return "aws_s3_bucket", rest | {"tags": {"team": "a"}}, rest | {"tags": {"team": "b"}}


def _group(_: int) -> tuple[str, Any, Any]:
    def rules(cidr: str) -> list[dict[str, Any]]:
        return [
            {
                "protocol": "tcp",
                "from_port": port,
                "to_port": port,
                "cidr_blocks": [cidr],
                "description": f"port {port}",
            }
            for port in range(8000, 8010)
        ]

    return "aws_security_group", {"ingress": rules("10.0.0.0/16")}, {"ingress": rules("10.0.0.0/15")}


def _alarm(index: int) -> tuple[str, Any, Any]:
    rest: dict[str, Any] = {
        "alarm_name": f"a{index}",
        "comparison_operator": "GreaterThanThreshold",
        "metric_name": "CPUUtilization",
    }
    rest |= {
        "namespace": "AWS/EC2",
        "statistic": "Average",
        "period": 60,
        "evaluation_periods": 3,
        "alarm_actions": ["arn:t"],
    }
    return "aws_cloudwatch_metric_alarm", rest | {"threshold": 80}, rest | {"threshold": 90}


def _function(index: int) -> tuple[str, Any, Any]:
    rest = {
        "function_name": f"f{index}",
        "role": "arn:aws:iam::1:role/x",
        "environment": [{"variables": {"A": "1", "B": "x"}}],
    }
    return "aws_lambda_function", rest | {"memory_size": 128}, rest | {"memory_size": 256}


_KINDS = (_role_policy, _bucket, _group, _alarm, _function)


def measured(*arguments: str) -> tuple[float, float, int]:
    """Seconds of processor time, MB at the peak and bytes printed of one Python process."""
    process = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.PIPE)
    printed = len(process.stdout.read()) if process.stdout else 0
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, f"exit status {status}"
    unit = 1024 if sys.platform != "darwin" else 1024 * 1024
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / unit, printed


def beside_terraform(folder: Path, changes: int) -> None:
    """Terraform's own ``show`` of a plan that it has made, and the review of the same plan."""
    stack = Stack(folder, aws=False)
    block = f'resource "terraform_data" "x" {{\n  count = {changes}\n  input = {{ n = tostring(count.index) }}\n}}\n'
    (folder / "plan.json").write_bytes(stack.plan(block))
    before = os.times()
    stack.terraform("show", "-no-color", "plan.tfplan")
    after = os.times()
    shown = after.children_user + after.children_system - before.children_user - before.children_system
    seconds, peak, _ = measured(*_REVIEW, str(folder / "plan.json"), "--format", "markdown")
    print(f"a real plan of {changes:,} simple resources")
    print(f"  terraform show            {shown:6.2f} s")
    print(f"  sagefit review markdown   {seconds:6.2f} s  {peak:5.0f} MB  {seconds / shown:.1f} times as long")


def policies(folder: Path, most: int) -> float:
    """The stage of the policies, as it is and as it was, with one resource of each kind and with all of them.

    Gives the seconds of the clock that the longest takes as it is.
    """
    longest = 0.0
    environment()  # installed before anything is timed
    print("policies before and after; seconds of the clock and of all processors, resources scanned on both sides")
    for changes, settings, way in ((most, 1, "grouped"), (most, 50, "grouped"), (most // 10, 1, "all")):
        path = folder / f"{changes}-{settings}.json"
        path.write_text(json.dumps(plan_of(changes, settings)), encoding="utf-8")
        start = time.monotonic()
        seconds, _, scanned = measured("-c", _POLICIES, way, str(path))
        clock = time.monotonic() - start
        longest = max(longest, clock if way == "grouped" else 0.0)
        print(f"  {changes:6,} changes, {settings:2} settings, {way:<7}  {clock:6.1f} s {seconds:6.1f} s {scanned:6,}")
    print(f"  goal                               {GOAL_POLICIES:6.1f} s")
    return longest


def against(command: str, path: Path) -> None:
    """Another program on the same plan."""
    start = time.monotonic()
    done = subprocess.run([*shlex.split(command), str(path)], capture_output=True, check=False)
    clock = time.monotonic() - start
    print(f"  {command}: {clock:.2f} s of the clock, {len(done.stdout):,} bytes, exit code {done.returncode}")


def main() -> int:
    """Measure and print; 1 when a goal is missed."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--against", metavar="COMMAND", help="another program, to be timed on the same plan")
    options.add_argument("--smoke", action="store_true", help="100 changes: does it run at all?")
    given = options.parse_args()
    other, changes = given.against, FEW if given.smoke else CHANGES
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plan.json"
        path.write_text(json.dumps(plan_of(changes)), encoding="utf-8")
        size = path.stat().st_size / 1e6
        read = measured(*_READ, str(path))
        rows = {form: measured(*_REVIEW, str(path), "--format", form) for form in ("markdown", "json")}
        print(f"plan of {changes:,} changes, {size:.1f} MB; seconds of processor time, peak memory")
        print(f"  json.load alone           {read[0]:6.2f} s  {read[1]:5.0f} MB")
        for form, (seconds, peak, printed) in rows.items():
            times = f"{seconds / read[0]:.1f} times as long, {printed:,} bytes"
            print(f"  sagefit review {form:<10} {seconds:6.2f} s  {peak:5.0f} MB  {times}")
        print(f"  goals                     {GOAL_SECONDS:6.2f} s  {GOAL_MB:5.0f} MB")
        if other:
            against(other, path)
    with tempfile.TemporaryDirectory() as folder:
        beside_terraform(Path(folder), changes)
        longest = policies(Path(folder), changes)
    missed = longest > GOAL_POLICIES or any(took > GOAL_SECONDS or peak > GOAL_MB for took, peak, _ in rows.values())
    return int(missed and not given.smoke)


if __name__ == "__main__":
    sys.exit(main())
