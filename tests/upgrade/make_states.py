"""Make the states of a version anew: ``PYTHONPATH=tests .venv/bin/python -m upgrade.make_states 0.1.0``.

Applies the platform and the job of ``states/VERSION/*.tfvars`` to an embedded cloud, with the modules as they are now,
and keeps both states. A version that has been released keeps the states that its own modules made: only a new folder,
with tfvars in it, is filled. It takes about two minutes, most of them S3's answer to lifecycle rules.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from pathlib import Path

from checkout import copy_tree
from plans.terraform import embedded_cloud, terraform
from upgrade.kept import REPLACEABLE, STATES


def main() -> None:
    """Fill one folder."""
    folder = STATES / sys.argv[1]
    if (folder / "platform.json").exists():
        raise SystemExit(f"{folder} has its states already; remove them first if no release made them")
    with tempfile.TemporaryDirectory() as scratch, embedded_cloud(Path(scratch, "cloud")) as environment:
        tree = Path(scratch, "tree")
        copy_tree(tree)
        for name, root in (("platform", tree), ("job", tree / "job")):
            terraform(root, environment, "init")
            terraform(root, environment, "apply", "-auto-approve", f"-var-file={folder / name}.tfvars")
            state = (root / "terraform.tfstate").read_text(encoding="utf-8")
            (folder / f"{name}.json").write_text(_clean(state), encoding="utf-8")


def _clean(text: str) -> str:
    """A state of what may not be lost, without what is of the day and the machine that made it."""
    state = json.loads(text)
    state |= {"serial": 1, "lineage": "00000000-0000-0000-0000-000000000000", "check_results": None}
    state["outputs"] = {}
    state["resources"] = [
        resource
        for resource in state["resources"]
        if resource["mode"] == "managed" and resource["type"] not in REPLACEABLE
    ]
    for resource in state["resources"]:
        for instance in resource["instances"]:
            instance.pop("dependencies", None)
    cleaned = json.dumps(state, indent=2, sort_keys=True)
    cleaned = re.sub(r'"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)"', '"2000-01-01T00:00:00Z"', cleaned)
    assert not re.search(r"127\.0\.0\.1|localhost|/tmp/", cleaned), "the state names this machine"
    return cleaned + "\n"


if __name__ == "__main__":
    main()
