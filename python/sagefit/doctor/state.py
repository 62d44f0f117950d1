"""Whether Terraform's state can be read, locked and written where a backend says that it lies. Nothing is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from botocore.exceptions import ClientError

from sagefit.doctor.account import Caller
from sagefit.doctor.asking import client, code_of
from sagefit.doctor.finding import Finding
from sagefit.doctor.permissions import Simulator, rows
from sagefit.job import Job
from sagefit.paths import JOB_ROOT, ROOT, display
from sagefit.platform import Platform
from sagefit.target import Target
from sagefit.terraform.backend import MISSING, OVERRIDE, read_backend

_CHECK = "state"
_SOMEBODY_ELSE = ("role_arn", "profile", "access_key")  # settings with which a backend does not ask as the caller
_PURPOSES = ("read", "lock", "write")
_ALL_CALLS = "the calls in docs/state.md"


def check_state(
    target: Target, caller: Caller, name: str, platform: Platform | None, job: Job | None
) -> Iterator[Finding]:
    """What is to be said of each root's backend; then whether the caller may do with a state what Terraform does.

    It is the state of the job, or of the platform ``name`` where there is no job.
    """
    overrides = {root: root / OVERRIDE for root in (ROOT, JOB_ROOT)}
    present = [path for path in overrides.values() if path.exists()]
    if len(present) == 1:
        (path,) = (path for path in overrides.values() if not path.exists())
        told = f"{display(present[0])} keeps states in a backend, and {display(path)} is missing"
        yield Finding(_CHECK, "fault", f"{told}: the other states are files of this machine", "commit both files")
    if not present:
        yield Finding(_CHECK, "ok", f"files of this machine, under {display(target.folder / 'states')}")
    elif target.is_local:
        yield Finding(_CHECK, "ok", "in a bucket that the embedded cloud has for it")
    else:
        backends = {path: read_backend(path.read_text(encoding="utf-8")) for path in present}
        alike = len({repr(backend) for backend in backends.values()}) == 1
        reached = []
        for path in present[:1] if alike else present:
            where = " and ".join(map(display, present if alike else [path]))
            if closed := _closed(where, *backends[path]):
                yield closed
            else:
                reached.append(backends[path])
                yield _locking(where, backends[path][1])
        found = backends.get(overrides[JOB_ROOT if job else ROOT])
        if found and found in reached:
            stack = f"jobs/{job.name}" if job else "platform"
            suffix = platform.global_suffix if platform else ""
            yield from _rights(caller, found[1], f"sagefit/{name}/{stack}{suffix}.tfstate")


def _closed(where: str, kind: str, settings: Mapping[str, str]) -> Finding | None:
    """What is in the way to a backend's bucket; None where the caller can look into it."""
    bucket = settings.get("bucket")
    if kind != "s3" or bucket is None:
        told = f"not asked: {where} names no bucket in S3, and nothing else can be asked for"
        return Finding(_CHECK, "unknown", told, "look by hand whether the backend answers")
    try:
        client("s3", settings.get("region")).head_bucket(Bucket=bucket)
    except ClientError as error:
        if code_of(error) in MISSING:
            return Finding(_CHECK, "fault", f"there is no bucket {bucket} ({where})", "make it, or correct its name")
        if code_of(error) == "403":
            fix = f"ask its owner for s3:ListBucket on it, and for {_ALL_CALLS}"
            return Finding(_CHECK, "fault", f"you may not look into {bucket} ({where})", fix)
        raise
    return None


def _locking(where: str, settings: Mapping[str, str]) -> Finding:
    if settings.get("use_lockfile") != "true" and "dynamodb_table" not in settings:
        told = f"nothing keeps two applies of one state apart ({where})"
        return Finding(_CHECK, "fault", told, "set use_lockfile = true in the backend")
    return Finding(_CHECK, "ok", f"s3://{settings['bucket']} can be reached ({where})")


def _rights(caller: Caller, settings: Mapping[str, str], state: str) -> Iterator[Finding]:
    where = f"s3://{settings['bucket']}/{state}"
    if other := next((name for name in _SOMEBODY_ELSE if name in settings), None):
        told = f"not asked whether {where} can be read, locked and written: the backend has a {other} of its own"
        yield Finding(_CHECK, "unknown", told, "look by hand whether it may")
        return
    simulator = Simulator.of(_CHECK, caller)
    if isinstance(simulator, Finding):
        yield simulator
        return
    names, conditions = _names(caller, settings, state), _conditions(settings)
    may, unless = [], ""
    for purpose in _PURPOSES:
        asked = [row for row in rows() if (row.of, row.to) == ("state", purpose) and row.when in conditions]
        if not asked:
            continue
        answer = simulator.asked(asked, names)
        if answer.denied:
            fix = f"let {simulator.principal} make {_ALL_CALLS}"
            yield Finding(_CHECK, "fault", f"to {purpose} {where} you lack {answer.lacking}", fix)
        else:
            may.append(purpose)
            unless = answer.unless or unless
    if may:
        yield Finding(_CHECK, "ok", f"you may {', '.join(may)} {where}{unless}")


def _names(caller: Caller, settings: Mapping[str, str], state: str) -> dict[str, str]:
    """What the table of calls leaves open."""
    region = settings.get("region", caller.region)
    key = settings.get("kms_key_id", "")
    if key and not key.startswith("arn:"):
        key = f"arn:{caller.partition}:kms:{region}:{caller.account}:key/{key}"
    return {
        "partition": caller.partition,
        "region": region,
        "account": caller.account,
        "bucket": settings["bucket"],
        "state": state,
        "table": settings.get("dynamodb_table", ""),
        "key": key,
    }


def _conditions(settings: Mapping[str, str]) -> set[str]:
    """Which rows of the table this backend needs; it can lock in both ways at once."""
    key = not settings.get("kms_key_id", "alias/").startswith("alias/")  # whose key an alias is, IAM does not know
    locks = settings.get("use_lockfile") == "true"
    needed = {
        "": True,
        "key": key,
        "lock file": locks,
        "lock file, key": locks and key,
        "lock table": "dynamodb_table" in settings,
    }
    return {name for name, holds in needed.items() if holds}
