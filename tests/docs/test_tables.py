"""Tables of variables and outputs are made from Terraform files, completely."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

from docs.pages import pages
from sagefit.paths import ROOT

_VARIABLES = """
variable "zones" {
  description = <<-EOT
    Where | what, by <name> or `<id>`.
    - `zone`: a zone,
      or none.
    - `rules`: what it does.
  EOT
  type = map(object({
    zone  = string
    rules = optional(list(object({ port = optional(number, 443), to = set(string) })), [])
  }))
  default  = {}
  nullable = false
}

variable "name" {
  description = "Name of \\"it\\"."
  type        = string
}
"""
_PAGE = """# Module

<!-- made from module/*.tf: variables -->

stale

<!-- end -->

<!-- made from module/*.tf: outputs -->
<!-- end -->
"""
_TABLES = """# Module

<!-- made from module/*.tf: variables -->

| variable | type | default | meaning |
|---|---|---|---|
| `name` | `string` | required | Name of "it". |
| `zones` | `map(object)` | `{}` | Where \\| what, by &lt;name> or `<id>`. |

**`zones`**: required `zone`, `rules[*].to`; defaults `rules = []`, `rules[*].port = 443`.

- `zone`: a zone,
  or none.
- `rules`: what it does.

<!-- end -->

<!-- made from module/*.tf: outputs -->

| output | meaning |
|---|---|
| `arn` | Its ARN. |

<!-- end -->
"""


@pytest.fixture(scope="module")
def tables() -> Any:
    """The module ``docs/tables.py``."""
    spec = importlib.util.spec_from_file_location("tables", ROOT / "docs" / "tables.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_table_is_made(tables: Any, tmp_path: Path) -> None:
    (tmp_path / "module").mkdir()
    (tmp_path / "module" / "variables.tf").write_text(_VARIABLES, encoding="utf-8")
    output = 'output "arn" {\n  description = "Its ARN."\n  value = 1\n}\n'
    (tmp_path / "module" / "outputs.tf").write_text(output, encoding="utf-8")
    page = tmp_path / "README.md"
    page.write_text(_PAGE, encoding="utf-8")
    assert tables.with_tables(page) == _TABLES


@pytest.mark.parametrize("folder", [ROOT, *sorted((ROOT / "modules").iterdir())], ids=lambda folder: folder.name)
def test_every_variable_and_output_is_in_a_table(folder: Path) -> None:
    """Counted without a parser of Terraform."""
    page = folder / "README.md" if folder != ROOT else ROOT / "docs" / "platform.md"
    declared = {
        kind: [
            n for file in folder.glob("*.tf") for n in re.findall(rf'^{kind} "(\w+)"', file.read_text("utf-8"), re.M)
        ]
        for kind in ("variable", "output")
    }
    for kind, names in declared.items():
        made = re.search(rf"<!-- made from \S*\*\.tf: {kind}s -->\n(.*?)<!-- end -->", page.read_text("utf-8"), re.S)
        assert made
        assert re.findall(r"^\| `(\w+)` \|", made[1], re.M) == sorted(names)


def test_marks_are_pairs() -> None:
    for page in pages():
        kinds = "variables|outputs|frameworks|algorithms"
        marks = re.findall(rf"^<!-- (made from \S+(?: (?:{kinds}))?|end) -->$", page.read_text("utf-8"), re.M)
        assert [mark == "end" for mark in marks] == [False, True] * (len(marks) // 2), page
