"""Reads SageMaker's configuration files and gives the script the ``SM_*`` variables it knows from the toolkits."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from . import files, gpus

CODE = "code"  # the channel with the training code
LONGEST = 64 * 1024**2  # bytes of a configuration file that are read
OWN = "sagefit"  # the channel with this launcher
HIDDEN = (CODE, OWN)
TOOLKIT = "sagemaker_"
OBJECTIVE = "_tuning_objective_metric"  # what SageMaker adds to the hyperparameters of a tuning job's training jobs


class CannotStartError(Exception):
    """The job cannot start, for a reason its author can act on."""

    def __init__(self, message: str, failure_class: str = "code") -> None:
        super().__init__(message)
        self.failure_class = failure_class


class Job(NamedTuple):
    """What SageMaker told this container about the training job."""

    root: Path
    host: str
    hosts: list[str]
    instance_type: str
    network_interface: str
    group: str
    groups: list[dict[str, Any]]  # of a heterogeneous cluster; one of all hosts where there are none
    hyperparameters: dict[str, str]
    settings: dict[str, str]  # hyperparameters that are meant for SageMaker's toolkits, not for the script
    channels: dict[str, Any]
    checkpoints: Path
    keeps_checkpoints: bool  # SageMaker brings what is there to S3

    @property
    def first_host(self) -> str:
        """The host that the others meet at."""
        return min(self.hosts)

    @property
    def output(self) -> Path:
        """The folder of the failure file and of ``data``."""
        return self.root / "output"

    @property
    def code(self) -> Path:
        """The folder the script runs in."""
        return self.root / "code"


def read_job(root: Path) -> Job:
    """Reads ``input/config``; a file that is absent means its defaults, as outside SageMaker."""
    resources = _read(root, "resourceconfig.json")
    host = str(resources.get("current_host", "algo-1"))
    channels = _read(root, "inputdataconfig.json")
    data = root / "input" / "data"
    if not channels and data.is_dir():
        channels = {entry.name: {} for entry in sorted(data.iterdir()) if entry.is_dir()}
    raw = {key: _plain(value) for key, value in _read(root, "hyperparameters.json").items()}
    return Job(
        root=root,
        host=host,
        hosts=[str(name) for name in resources.get("hosts", [host])],
        instance_type=str(resources.get("current_instance_type", "")),
        network_interface=str(resources.get("network_interface_name", "")),
        group=str(resources.get("current_group_name", "")),
        groups=list(resources.get("instance_groups", [])),
        hyperparameters={key: value for key, value in raw.items() if not key.startswith((TOOLKIT, OBJECTIVE))},
        settings={key: value for key, value in raw.items() if key.startswith((TOOLKIT, OBJECTIVE))},
        channels={name: value for name, value in channels.items() if name not in HIDDEN},
        checkpoints=_checkpoints(root) / _trial(raw),
        keeps_checkpoints=bool(_read(root, "checkpointconfig.json")),
    )


def unpack_code(job: Job, entry_point: str) -> Path:
    """Copies the code channel to where it may be written to, and returns the path of the script."""
    channel = job.root / "input" / "data" / CODE
    if channel.is_dir():
        try:
            files.copy_tree(channel, job.code)
        except OSError as error:
            raise CannotStartError(f"the channel '{CODE}' cannot be copied to {job.code}: {error}") from error
    script = job.code / entry_point
    if not script.is_file():
        there = sorted(str(path.relative_to(job.code)) for path in job.code.rglob("*") if path.is_file())
        listing = ", ".join(there[:10]) + (", ..." if len(there) > 10 else "") if there else "nothing"
        raise CannotStartError(
            f"entry point {entry_point!r} is not in the channel '{CODE}', which holds {listing}: "
            "set code.entry_point to a file of code.source_dir"
        )
    return script


def make_folders(job: Job) -> None:
    """Makes the folders that the script may write to."""
    for folder in (job.root / "model", job.output / "data", job.checkpoints):
        try:
            if job.root in folder.parents:
                files.make_folder(job.root, folder.relative_to(job.root).as_posix())
            else:
                folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CannotStartError(f"the folder {folder} cannot be made: {error}") from error


def variables(job: Job, command_arguments: Sequence[str]) -> dict[str, str]:
    """The ``SM_*`` variables. Names with a hyphen are given in both spellings, the toolkits disagree on it."""
    data = job.root / "input" / "data"
    groups = {str(group.get("instance_group_name")): group for group in job.groups}
    typed = {key: _typed(value) for key, value in job.hyperparameters.items()}
    cpus = str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    result = {
        "SM_MODEL_DIR": str(job.root / "model"),
        "SM_OUTPUT_DIR": str(job.output),
        "SM_OUTPUT_DATA_DIR": str(job.output / "data"),
        "SM_OUTPUT_INTERMEDIATE_DIR": str(job.output / "intermediate"),
        "SM_INPUT_DIR": str(job.root / "input"),
        "SM_INPUT_CONFIG_DIR": str(job.root / "input" / "config"),
        "SM_CHECKPOINT_DIR": str(job.checkpoints),
        "SM_MODULE_DIR": str(job.code),
        "SM_CHANNELS": json.dumps(sorted(job.channels)),
        "SM_INPUT_DATA_CONFIG": json.dumps(job.channels),
        "SM_HPS": json.dumps(typed),
        "SM_USER_ARGS": json.dumps(list(command_arguments)),
        "SM_HOSTS": json.dumps(job.hosts),
        "SM_CURRENT_HOST": job.host,
        "SM_CURRENT_INSTANCE_TYPE": job.instance_type,
        "SM_NETWORK_INTERFACE_NAME": job.network_interface,
        "SM_CURRENT_INSTANCE_GROUP": job.group,
        "SM_CURRENT_INSTANCE_GROUP_HOSTS": json.dumps(groups.get(job.group, {}).get("hosts", [])),
        "SM_INSTANCE_GROUPS": json.dumps(list(groups)),
        "SM_INSTANCE_GROUPS_DICT": json.dumps(groups),
        "SM_MASTER_ADDR": os.environ.get("SAGEFIT_MASTER_ADDRESS") or job.first_host,
        "SM_MASTER_PORT": os.environ.get("SAGEFIT_MASTER_PORT") or "7777",
        "SM_NUM_CPUS": cpus,
        "SM_NUM_GPUS": str(gpus.count()),
        "SM_LOG_LEVEL": os.environ.get("SM_LOG_LEVEL", "20"),
    }
    for name in job.channels:
        for spelling in {name, name.replace("-", "_")}:
            result["SM_CHANNEL_" + spelling.upper()] = str(data / name)
    for key, value in job.hyperparameters.items():
        for spelling in {key, key.replace("-", "_")}:
            result["SM_HP_" + spelling.upper()] = value
    result["SM_TRAINING_ENV"] = json.dumps(
        {
            "job_name": os.environ.get("TRAINING_JOB_NAME", ""),
            "hosts": job.hosts,
            "current_host": job.host,
            "hyperparameters": typed,
            "channel_input_dirs": {name: str(data / name) for name in job.channels},
            "model_dir": result["SM_MODEL_DIR"],
            "output_data_dir": result["SM_OUTPUT_DATA_DIR"],
        }
    )
    return result


def arguments(hyperparameters: dict[str, str]) -> list[str]:
    """Hyperparameters as the toolkits pass them: ``--name value`` in order of the names, ``-n`` for one letter."""
    pairs = ((("-" if len(key) == 1 else "--") + key, value) for key, value in sorted(hyperparameters.items()))
    return [part for pair in pairs for part in pair]


def _read(root: Path, name: str) -> dict[str, Any]:
    path = root / "input" / "config" / name
    try:
        content = json.loads(files.read(root, f"input/config/{name}", LONGEST, follow=True))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise CannotStartError(f"{path} cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise CannotStartError(
            f"{path} cannot be read: it holds a {type(content).__name__}, not an object of names and values"
        )
    return content


def _plain(value: object) -> str:
    """The text a script gets: a string that was encoded as JSON loses its quotes, everything else stays as it is."""
    decoded = _typed(value) if isinstance(value, str) else value
    if isinstance(decoded, str):
        return decoded
    return value if isinstance(value, str) else json.dumps(value)


def _typed(value: object) -> object:
    """The value a text stands for when it is JSON, else the text."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def _trial(hyperparameters: dict[str, str]) -> str:
    """A folder of its own for a training job that shares its checkpoints with others; empty for one that does not."""
    return os.environ.get("TRAINING_JOB_NAME", "") if OBJECTIVE in hyperparameters else ""


def _checkpoints(root: Path) -> Path:
    place = str(_read(root, "checkpointconfig.json").get("LocalPath") or "/opt/ml/checkpoints").rstrip("/")
    return root / place[len("/opt/ml/") :] if place.startswith("/opt/ml/") else Path(place)
