"""``docs/limits.md``: the rows of ``modules/training-job/limits.json``."""

from __future__ import annotations

from sagefit.job.limits import Limit, limits

_HEAD = """# Limits

<!-- made from modules/training-job/limits.json by make docs -->

How large a field of a job file may be, and which letters it may have. A field that has more is refused with its line
before Terraform starts, and by `modules/training-job` for those who use it alone. In a field's name `*` means every
entry of a list and every name of a mapping, and `value` means the value under the name. The column `source` also says
how much of a limit Sagefit itself uses.

| field | of the module | | least | most | letters | source |
|---|---|---|---|---|---|---|
"""


def limit_page() -> str:
    """The page."""
    return _HEAD + "".join(_row(row) for row in limits().values())


def _row(row: Limit) -> str:
    least, most = ("" if bound is None else f"{bound:,}" for bound in (row.least, row.most))
    return f"| `{row.field}` | `{row.terraform}` | {row.of} | {least} | {most} | {row.words} | {row.source} |\n"
