"""Explanations of runs that died, as a page: ``PYTHONPATH=tests python -m scenarios.explanations`` writes it anew.

Everything on the page is what ``sagefit diagnose`` printed about a real run on the embedded cloud.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import NamedTuple

from sagefit.paths import ROOT
from scenarios.conftest import EXPLAINED_AT_LENGTH, Cloud, a_cloud

PAGE = ROOT / "docs/explanations.md"
FOLDER = "explained"
NUMBER = 0


class Case(NamedTuple):
    """A job that dies: its title on the page, the class it dies of, and words that its explanation has to have.

    They are the cause, what was lost or that nothing was, and what to do next, one of each at least.
    """

    title: str
    failure_class: str
    words: tuple[str, ...]


NEXT = "apply it: "
CASES = {
    "lora": Case(
        "A GPU that is too small for the batch",
        "gpu_memory",
        ("> ", "Tried to allocate 1.16 GiB", "reached: step 7", "lost: ", "+  per_device_train_batch_size: 4", NEXT),
    ),
    "loader": Case(
        "Loader workers that fill the host",
        "host_memory",
        (
            "> ",
            "is killed by signal",
            "host memory of algo-1 over",
            "without a checkpoint",
            "+  dataloader_num_workers: 2",
            NEXT,
        ),
    ),
    "pair": Case(
        "One of two hosts dies, the other loses its peer",
        "host_memory",
        ("algo-2", "host memory of algo-2 over", "saved: checkpoint-", "+resources: { instance_type: ml.", NEXT),
    ),
    "disk": Case(
        "Checkpoints that fill the volume",
        "disk",
        ("No space left on device", "reached: step ", "saved: ", "+  volume_size_gb: 2", NEXT),
    ),
    "slow": Case(
        "Longer than it may run",
        "time",
        (
            "MaxRuntimeExceeded",
            "not stopped: ",
            "reached: step ",
            "lost: ",
            "saved: checkpoint-",
            "+  max_runtime: 20s",
            NEXT,
        ),
    ),
    "spotty": Case(
        "No spot instance in time",
        "spot",
        ("MaxWaitTimeExceeded", "+  - { name: cheap, spot: false }", "max_wait: 30m", NEXT),
    ),
    "scarce": Case(
        "No such instance to be had", "capacity", ("Unable to provision", "ml.p4de.24xlarge", "max_pending: 2h", NEXT)
    ),
    "survived": Case(
        "A mistake of the script, after a lack of memory that it survived",
        "code",
        ("> 1", "KeyError: 'labels'", "reached: step 7", "lost: ", "try: "),
    ),
    "leak": Case(
        "Memory that grows from epoch to epoch",
        "host_memory",
        ("perhaps a leak: ", "reached: epoch ", "lost: ", "try: find what the script keeps", "--resume RUN"),
    ),
    "prepare": Case(
        "A processing step that reads everything at once",
        "host_memory",
        ("reading part", "+    resources: { instance_type: ml.", NEXT),
    ),
}


HEAD = """# Explanations

<!-- Written by tests/scenarios/explanations.py; edit that instead. -->

What `sagefit diagnose` says of {many} runs that died in different ways. The runs are real, on the embedded cloud, which
gives a host a sixteenth of the memory of its type, and has no GPUs: what a GPU would say is raised by the script. Job
files and scripts are in [tests/scenarios/jobs/explained](../tests/scenarios/jobs/explained).

An explanation answers, in this order: what was the cause, and which line says so? What else was thought of? How did
memory grow? How far had the run come, and what is lost? What would have held it? A change is shown as a diff of the job
file. Each was tried: the file with it was read, checked against the platform, and planned. `--apply` with its number
writes it. [failures.md](failures.md#reading-sagefit-diagnose) says how the cause is found.

"""


def run_of(job: str) -> str:
    """The name of its run."""
    return f"{job}-{EXPLAINED_AT_LENGTH}-{NUMBER:06d}"


def explained(cloud: Cloud, names: list[str]) -> dict[str, str]:
    """What diagnose says of each job's run: all of them run at once."""
    files = {name: f"{FOLDER}/{name}" for name in names}
    for name, file in files.items():
        cloud.apply(file)
        cloud.start(name, run_of(name))
    told = {}
    for name, file in files.items():
        assert cloud.ended(name, run_of(name), 180)["status"] == "FAILED", name
        told[name] = cloud.sagefit("diagnose", cloud.job(file)).out
    return told


def page(told: dict[str, str]) -> str:
    """The page."""
    lines = HEAD.format(many=len(told)).splitlines()
    for name, text in told.items():
        case = CASES[name]
        script = f"[{name}.yaml](../tests/scenarios/jobs/{FOLDER}/{name}.yaml)"
        lines += [f"## {case.title}", "", f"{script}, class `{case.failure_class}`:", "", "```text"]
        lines += [line.rstrip() for line in text.splitlines()] + ["```", ""]
    return "\n".join(lines).rstrip() + "\n"


def tidy(text: str, folder: Path) -> str:
    """Without what is of this machine: the folders of job files, containers and Python, and how Sagefit was started."""
    text = text.replace(f"{folder.resolve()}/", "").replace(f"{folder}/", "")
    text = re.sub(r"/[^\s\"']*/cloud/runs/[^\s\"']*?/ml\b", "/opt/ml", text)
    text = re.sub(r"\"/[^\s\"']*/lib/python", '"/usr/lib/python', text)
    return re.sub(r"apply it: \S+ ", "apply it: sagefit ", text)


def shape(text: str) -> list[str]:
    """Its lines without what differs from run to run: numbers, pictures, and who was asked first."""
    kept = [line for line in text.splitlines() if not re.match(r"\s+(?:[\d.]+ |saved )?\|", line)]
    return [re.sub(r"\d+(?:\.\d+)?", "N", line) for line in kept]


def main() -> None:
    """Run them all and write the page."""
    with tempfile.TemporaryDirectory() as folder, a_cloud(Path(folder)) as cloud:
        told = explained(cloud, list(CASES))
        PAGE.write_text(page({name: tidy(text, cloud.jobs) for name, text in told.items()}), encoding="utf-8")


if __name__ == "__main__":
    main()
