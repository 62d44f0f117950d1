"""What a file of Python imports, read without running it."""

from __future__ import annotations

import ast
import sys
from pathlib import Path


def imports(file: Path) -> set[str]:
    """The modules that a file imports from outside the standard library, those of Sagefit in full."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and not node.level:
            found.add(str(node.module))
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name if name.startswith("sagefit.") else name.split(".")[0] for name in found} - sys.stdlib_module_names
