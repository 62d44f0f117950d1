"""A stand-in for a container engine: a program on PATH that writes down what it is told.

It builds nothing. Where it should push, it gives the embedded cloud's ECR a manifest of that tag, by that cloud's API.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_PROGRAM = """#!{python}
import hashlib, json, os, sys

said = sys.stdin.read() if "--password-stdin" in sys.argv else ""
with open({record!r}, "a") as file:
    settings = {{name: value for name, value in os.environ.items() if name.startswith(("BUILD", "BUILDX"))}}
    file.write(json.dumps({{"argv": sys.argv[1:], "stdin": said, "settings": settings}}) + "\\n")
if sys.argv[1] == {broken!r}:
    sys.exit("Cannot connect to the Docker daemon. Is the docker daemon running?")
if sys.argv[1] == "push":
    import boto3
    repository, _, tag = sys.argv[2].partition("/")[2].partition(":")
    kind = "application/vnd.docker.distribution.manifest.v2+json"
    manifest = {{"schemaVersion": 2, "mediaType": kind, "config": {{"digest": tag, "size": 1}}, "layers": []}}
    text = json.dumps(manifest)
    digest = "sha256:" + hashlib.sha256(text.encode()).hexdigest()
    boto3.client("ecr").put_image(repositoryName=repository, imageTag=tag, imageManifest=text, imageDigest=digest)
print("done:", sys.argv[1])
"""


@dataclass(frozen=True)
class StandIn:
    """The program, and what it was told."""

    program: Path

    @property
    def calls(self) -> list[dict[str, Any]]:
        """What it was told, in order: ``argv``, ``stdin`` and ``settings``."""
        record = self.program.with_suffix(".calls")
        return [json.loads(line) for line in record.read_text().splitlines()] if record.exists() else []


def install(folder: Path, name: str = "docker", broken: str = "") -> StandIn:
    """Put one into a folder; the command ``broken`` of it fails."""
    folder.mkdir(exist_ok=True)
    found = StandIn(folder / name)
    record = str(found.program.with_suffix(".calls"))
    found.program.write_text(_PROGRAM.format(python=sys.executable, record=record, broken=broken), encoding="utf-8")
    found.program.chmod(0o755)
    return found
