"""Canaries in every place where Terraform keeps values: none of them comes out, whatever is printed."""

from __future__ import annotations

import base64
import io
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from review.plans import change, plan, reviewed
from review.stack import Stack
from sagefit.reviewing import Document, Review, as_json, markdown, review
from sagefit.reviewing.page import DIGESTS
from sagefit.reviewing.policies import scoped, scoped_base
from sagefit.reviewing.terminal import page

PLACES = ("variable", "default", "nested", "element", "output", "provider", "machine", "userdata", "environment",
          "parameter", "named", "connection", "bearer")  # fmt: skip

HCL = """
variable "marked" {
  type      = string
  sensitive = true
}

variable "by_default" {
  type      = string
  sensitive = true
  default   = "CANARY-default"
}

variable "nested" {
  type      = any
  sensitive = true
  default   = { inner = { deep = "CANARY-nested" }, list = ["x", "CANARY-element"] }
}

provider "aws" {
  alias      = "other"
  region     = "us-east-1"
  access_key = "x"
  secret_key = "CANARY-provider"
}

locals {
  parameters = {
    Environment = { PLAIN = "CANARY-machine VERSION" }
    credentials = nonsensitive(jsonencode(var.nested))
    plain       = "VERSION"
  }
  script = base64encode("#!/bin/sh\\nexport KEY=${var.marked} CANARY-userdata\\n")
}

resource "aws_sfn_state_machine" "m" {
  name       = "m"
  role_arn   = "arn:aws:iam::123456789012:role/x"
  definition = jsonencode({
    Comment = "VERSION ${nonsensitive(var.marked)}"
    StartAt = "a"
    States  = { a = { Type = "Pass", End = true, Parameters = local.parameters } }
  })
}

resource "aws_launch_template" "t" {
  name        = "template"
  user_data   = local.script
  description = "VERSION ${nonsensitive(base64encode("a${var.nested.inner.deep}b"))}"
}

resource "aws_lambda_function" "f" {
  function_name = "f"
  role          = "arn:aws:iam::123456789012:role/x"
  package_type  = "Image"
  image_uri     = "123456789012.dkr.ecr.us-east-1.amazonaws.com/f:VERSION"
  environment {
    variables = { ADDRESS = "CANARY-environment VERSION" }
  }
}

resource "aws_ssm_parameter" "p" {
  name        = "/p"
  type        = "SecureString"
  value       = "CANARY-parameter VERSION"
  description = "VERSION ${nonsensitive(var.by_default)} ${jsonencode({ password = "CANARY-named" })}"
}

resource "terraform_data" "d" {
  input = {
    version      = "VERSION"
    url          = "postgres://user:CANARY-connection@db/VERSION"
    header       = "VERSION Authorization: Bearer CANARY-bearer-0123456789"
    db_password  = "CANARY-named VERSION"
    cut          = "VERSION ${substr(nonsensitive(var.nested.list[1]), 0, 14)}"
  }
}

output "o" {
  sensitive = true
  value     = "CANARY-output VERSION"
}

output "open" {
  value = "VERSION ${nonsensitive(var.marked)}"
}
"""


@pytest.fixture(scope="module")
def canaries(tmp_path_factory: pytest.TempPathFactory) -> Document:
    stack = Stack(tmp_path_factory.mktemp("canaries"))
    before = stack.plan(HCL.replace("VERSION", "one"), "-var=marked=CANARY-variable")
    stack.pretend_applied(before)
    return Document("plan.json", stack.plan(HCL.replace("VERSION", "two"), "-var=marked=CANARY-variable"))


def _outputs(found: Review) -> dict[str, str]:
    terminal = io.StringIO()
    console = Console(file=terminal, width=200)
    for part in page(found):
        console.print(part)
    scans = {"scan": json.dumps(scoped(found.document)), "base": json.dumps(scoped_base(found.document))}
    return scans | {"markdown": markdown(found), "json": json.dumps(as_json(found)), "terminal": terminal.getvalue()}


@pytest.mark.xdist_group("review-canaries")
def test_no_canary_comes_out(canaries: Document, caplog: pytest.LogCaptureFixture) -> None:
    raw = json.dumps(canaries.raw)
    there = [place for place in PLACES if f"CANARY-{place}" in raw]
    assert [place for place in PLACES if place not in there] == ["userdata"], "which is there in base64 only"
    with caplog.at_level(logging.DEBUG):
        outputs = _outputs(review(canaries))
    for name, text in (outputs | {"log": caplog.text}).items():
        assert "CANARY" not in text, f"{name}: {text[max(0, text.find('CANARY') - 200) :][:300]}"
        for place in PLACES:
            for offset in range(3):
                hidden = base64.b64encode(b"\0" * offset + f"CANARY-{place}".encode())[4:-4].decode()
                assert hidden not in text, (name, place)
    assert "two" in outputs["markdown"], "what is not secret is shown"


def test_a_secret_that_reads_delete_hides_no_deletion() -> None:
    gone = change(
        "aws_s3_bucket.delete", {"bucket": "delete", "password": "delete"}, None, _before_sensitive={"password": True}
    )
    found = reviewed(
        gone,
        variables={"x": {"value": "delete"}},
        configuration={"root_module": {"variables": {"x": {"sensitive": True}}}},
    )
    report = as_json(found)
    assert [(f["rule"], f["address"], f["actions"]) for f in report["findings"]] == [
        ("stateful-destroy", "aws_s3_bucket.delete", ["delete"])
    ]
    assert "`aws_s3_bucket.delete` delete" in markdown(found)


@pytest.mark.parametrize(
    "value",
    [
        "line one of the secret\nline two of the secret",
        'quotes "and" back\\slashes <html> & more',
        "ünïcödé-geheim",
        "123456789",
        "x" * 9000,
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEabc",
    ],
    ids=range(6),
)
def test_a_marked_value_is_hidden_in_every_form(value: str) -> None:
    def holding(version: str) -> dict[str, Any]:
        inside = {
            "raw": f"{version} {value} end",
            "json": json.dumps({"v": version, "k": [value]}),
            "list": [version, value],
        }
        inside["b64"] = base64.b64encode(f"{version}: {value}".encode()).decode()
        return inside | {"description": f"{version} {json.dumps(value)}"}

    marked = change(
        "terraform_data.s",
        {"s": value},
        {"s": value + "x"},
        _before_sensitive={"s": True},
        _after_sensitive={"s": True},
    )
    found = reviewed(marked, change("terraform_data.o", holding("one"), holding("two")))
    needles = [
        value[:60],
        json.dumps(value)[1:-1][:60],
        value.splitlines()[-1][:60],
        base64.b64encode(value.encode())[4:40].decode(),
    ]
    for name, text in _outputs(found).items():
        for needle in needles:
            assert needle not in text, (name, needle)
    assert "(sensitive) changed" in markdown(found)


def test_neither_the_length_nor_a_digest_of_a_secret_is_told() -> None:
    def shown(secret: str) -> str:
        entry = change(
            "terraform_data.s",
            {"s": "old-secret-value"},
            {"s": secret},
            _before_sensitive={"s": True},
            _after_sensitive={"s": True},
        )
        text = markdown(reviewed(entry))
        return text.split(f"<details><summary>{DIGESTS}")[0].split("\n", 1)[1]

    assert shown("new-secret-value-1") == shown("another-secret-of-other-length")


@pytest.mark.parametrize(
    "name",
    ["password", "db_password", "secret", "api_key", "AWS_SECRET_ACCESS_KEY", "privateKey", "token", "user_data"],
)
def test_what_its_name_gives_away_is_hidden_without_a_mark(name: str) -> None:
    page_ = markdown(reviewed(change("terraform_data.s", {name: "unmarked-old-value"}, {name: "unmarked-new-value"})))
    assert "unmarked" not in page_
    assert f"{name}: (sensitive) changed" in page_


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('x {"password":"hunter2 and more"} y', 'x {"password":"(sensitive)"} y'),
        (r"x {\"api_key\": \"hunter2\"} y", r"x {\"api_key\": \"(sensitive)\"} y"),
        ("export DB_PASSWORD=hunter2; run", "export DB_PASSWORD=(sensitive); run"),
        ("https://x.example/?token=hunter2&a=b", "https://x.example/?token=(sensitive)&a=b"),
        ("arn:aws:secretsmanager:us-east-1:1:secret:name", "arn:aws:secretsmanager:us-east-1:1:secret:name"),
        ("token.actions.githubusercontent.com:sub", "token.actions.githubusercontent.com:sub"),
        ("secretsmanager:GetSecretValue", "secretsmanager:GetSecretValue"),
        ("max_tokens: 512, epochs=3", "max_tokens: 512, epochs=3"),
    ],
    ids=range(8),
)
def test_names_within_a_text_give_their_values_away(text: str, shown: str) -> None:
    assert reviewed().redactor.show(text) == shown


@pytest.mark.parametrize(
    "name", ["max_tokens", "token_count", "http_tokens", "secret_arn", "num_pad_tokens", "manage_master_user_password"]
)
def test_what_only_sounds_like_a_secret_is_shown(name: str) -> None:
    assert f"- {name}: shown-before" in markdown(
        reviewed(change("terraform_data.s", {name: "shown-before"}, {name: "shown-after"}))
    )


def test_what_was_set_by_hand_is_not_shown_either() -> None:
    def of(value: str) -> dict[str, Any]:
        return {"environment": [{"variables": {"MODE": f"variable-{value}"}}], "pin_token": value}

    entry = change("aws_lambda_function.f", of("one"), of("two"))
    found = reviewed(entry, resource_drift=[change("aws_lambda_function.f", of("two"), of("one"))])
    assert [finding.rule for finding in found.findings] == ["drift-reverted"] * 2
    for text in _outputs(found).values():
        assert "variable-" not in text
        assert "(sensitive) → one" not in text
    assert "`pin_token`: `(sensitive)` → `(sensitive)`, set by hand" in markdown(found)


def test_environments_are_not_shown_and_a_tag_of_that_name_is() -> None:
    def of(value: str) -> dict[str, Any]:
        return {"environment": [{"variables": {"MODE": f"variable-{value}"}}], "tags": {"Environment": f"tag-{value}"}}

    text = markdown(reviewed(change("aws_lambda_function.f", of("old"), of("new"))))
    assert "variable-" not in text
    assert "+ tags.Environment: tag-new" in text


@pytest.mark.parametrize(
    "credential",
    [
        "AKIAABCDEFGHIJKLMNOP",
        "ghp_" + "a1" * 15,
        "hf_" + "b2" * 15,
        "sk-" + "c3" * 15,
        "xoxb-1234567890-abc",
        "glpat-" + "d4" * 12,
    ],
)
def test_credentials_are_known_by_their_form(credential: str) -> None:
    text = json.dumps(
        as_json(
            reviewed(
                change(
                    "aws_iam_user_policy_attachment.a",
                    {"policy_arn": "x", "user": "u"},
                    {"policy_arn": credential, "user": "u"},
                )
            )
        )
    )
    assert "is attached" in text
    assert credential not in text


def test_many_secrets_are_found_in_one_pass(tmp_path: Path) -> None:
    secrets = [f"secret-number-{index:05}" for index in range(5000)]
    changes = [
        change(
            f"terraform_data.s[{i}]",
            {"s": s},
            {"s": s + "x"},
            _before_sensitive={"s": True},
            _after_sensitive={"s": True},
        )
        for i, s in enumerate(secrets)
    ]
    path = tmp_path / "plan.json"
    path.write_bytes(
        plan([*changes, change("terraform_data.o", {"text": " ".join(secrets[:3])}, {"text": secrets[4999]})])
    )
    text = markdown(review(Document("plan.json", path.read_bytes())))
    assert "secret-number" not in text
