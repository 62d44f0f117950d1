"""What is generated is up to date, and what is written is true."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from sagefit.job.load import job_files
from sagefit.job.memory_model import Memory
from sagefit.job.model import Job, Resources
from sagefit.job.schema import schema
from sagefit.job.values import Fields
from sagefit.paths import ROOT

validate: Any = jsonschema.validate

PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/*.md"),
        *ROOT.glob("modules/*/README.md"),
        *ROOT.glob("examples/**/README.md"),
    ]
)


def test_generated_pages_are_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs/generate.py")
    assert spec
    assert spec.loader
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    stale = [name for name, text in generate.pages().items() if (ROOT / "docs" / name).read_text("utf-8") != text]
    assert not stale, "run: make docs"


@pytest.mark.parametrize("path", job_files(), ids=lambda path: path.name)
def test_job_files_match_the_schema(path: Path) -> None:
    validate(yaml.safe_load(path.read_text(encoding="utf-8")), schema())


def test_the_schema_refuses_what_the_model_refuses() -> None:
    job = yaml.safe_load((ROOT / "jobs/quickstart.yaml").read_text(encoding="utf-8"))
    for change in ({"colour": "red"}, {"resources": {"max_runtime": "4 hours"}}, {"platform": None}):
        with pytest.raises(jsonschema.ValidationError):
            validate(job | change, schema())


@pytest.mark.parametrize("model", [Job, Resources, Memory], ids=lambda model: model.__name__)
def test_every_field_is_documented(model: type[Fields]) -> None:
    page = (ROOT / "docs/job-file.md").read_text(encoding="utf-8")
    missing = [name for name in model.model_fields if f"`{name}`" not in page and f"`{name}." not in page]
    assert not [name for name in missing if f"## {name}\n" not in page]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), target
