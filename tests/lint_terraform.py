"""Check the format of all Terraform files and validate every root, module and example platform.

``terraform validate`` needs ``terraform init``, which writes a lock file beside the code. So both run in a copy of
what Git knows: a check leaves the working tree as it was.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from checkout import copy_tree
from sagefit.errors import SagefitError
from sagefit.paths import home
from sagefit.toolchain import terraform_binary, terraform_environment

ROOTS = (
    "*.tf",
    "job/*.tf",
    "modules/*/*.tf",
    "examples/platforms/*/*.tf",
    "examples/gitops/roles/*.tf",
    "acceptance/*/*.tf",
)


def main() -> int:
    """Print what is wrong and return how many checks failed, at most 1."""
    try:
        terraform, environment = terraform_binary(home()), os.environ | terraform_environment(home())
    except SagefitError as error:
        print(error, file=sys.stderr)
        return error.exit_code

    def run(where: Path, *arguments: str) -> str:
        """Return the output of a Terraform command that failed, and nothing of one that did not."""
        done = subprocess.run(
            [terraform, f"-chdir={where}", *arguments],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.stdout or f"exit code {done.returncode}" if done.returncode else ""

    def validate(root: Path) -> str:
        """Validate one directory with everything it calls."""
        return run(root, "init", "-backend=false", "-no-color") or run(root, "validate", "-no-color")

    with tempfile.TemporaryDirectory(prefix="sagefit-lint-") as scratch:
        tree = Path(scratch).resolve()
        copy_tree(tree)
        roots = sorted({file.parent for pattern in ROOTS for file in tree.glob(pattern)})
        problems = {
            "terraform fmt (terraform fmt -recursive repairs it)": run(tree, "fmt", "-check", "-no-color", "-recursive")
        }
        with ThreadPoolExecutor(max_workers=min(4, os.cpu_count() or 1)) as pool:
            for root, problem in zip(roots, pool.map(validate, roots), strict=True):
                problems[f"terraform validate {root.relative_to(tree)}"] = problem
    failed = {check: problem for check, problem in problems.items() if problem}
    for check, problem in failed.items():
        print(f"{check}\n{problem}", file=sys.stderr)
    return min(len(failed), 1)


if __name__ == "__main__":
    sys.exit(main())
