"""Every kind of plan that Terraform makes, by the real Terraform and its built-in resource."""

from __future__ import annotations

from pathlib import Path

import pytest

from review.stack import Stack
from sagefit.errors import SagefitError
from sagefit.reviewing import Document, Review, as_json, markdown, review

ONE = 'resource "terraform_data" "one" {\n  input = "a"\n}\n'


@pytest.fixture
def stack(tmp_path: Path) -> Stack:
    made = Stack(tmp_path / "stack", aws=False)
    made.pretend_applied(made.plan(ONE))
    return made


def _review(plan: bytes) -> Review:
    return review(Document("plan.json", plan))


def _rules(found: Review) -> list[str]:
    return [finding.rule for finding in found.findings]


def _first_line(found: Review) -> str:
    return markdown(found).split("**")[1]


def test_no_change(stack: Stack) -> None:
    found = _review(stack.plan(ONE))
    assert found.verdict == "nothing to apply"
    assert _first_line(found) == "0 add, 0 change, 0 destroy"
    assert _rules(found) == []


def test_create_update_delete(stack: Stack) -> None:
    found = _review(stack.plan('resource "terraform_data" "two" {}\n' + ONE.replace('"a"', '"b"')))
    assert _first_line(found) == "1 add, 1 change, 0 destroy"
    assert found.verdict == "nothing dangerous found"
    gone = _review(stack.plan(""))
    assert _first_line(gone) == "0 add, 0 change, 1 destroy"
    assert as_json(gone)["summary"]["delete"] == 1


def test_both_orders_of_a_replacement(stack: Stack) -> None:
    for rest, order in (
        ("", "old before new"),
        ("  lifecycle {\n    create_before_destroy = true\n  }\n", "new before old"),
    ):
        page = markdown(_review(stack.plan(ONE.replace("}\n", f'  triggers_replace = "x"\n{rest}}}\n'))))
        assert "1 add, 0 change, 1 destroy (1 replace)" in page
        assert f"`terraform_data.one` replace, {order}" in page


def test_move_import_and_forget_are_no_destruction(stack: Stack) -> None:
    found = _review(
        stack.plan(
            'resource "terraform_data" "other" {\n  input = "a"\n}\n'
            "moved {\n  from = terraform_data.one\n  to   = terraform_data.other\n}\n"
            'resource "terraform_data" "taken" {}\nimport {\n  to = terraform_data.taken\n  id = "an-id"\n}\n'
        )
    )
    assert _first_line(found) == "1 import, 0 add, 0 change, 0 destroy, 1 move"
    assert "moved from `terraform_data.one`" in markdown(found)
    gone = _review(stack.plan("removed {\n  from = terraform_data.one\n  lifecycle {\n    destroy = false\n  }\n}\n"))
    assert _first_line(gone) == "0 add, 0 change, 0 destroy, 1 forget"
    assert as_json(gone)["summary"] | {"forget": 1, "delete": 0} == as_json(gone)["summary"]


def test_a_deposed_object_is_destroyed_under_the_same_address(stack: Stack) -> None:
    state = stack.read_state()
    block = state["resources"][0]
    block["instances"].append(block["instances"][0] | {"deposed": "0badcafe"})
    stack.write_state(state)
    found = _review(stack.plan(ONE))
    assert _first_line(found) == "0 add, 0 change, 1 destroy"
    assert "left behind by an earlier replacement" in markdown(found)


def test_a_targeted_plan_is_not_the_whole(stack: Stack) -> None:
    found = _review(
        stack.plan(ONE.replace('"a"', '"b"') + 'resource "terraform_data" "two" {}\n', "-target=terraform_data.one")
    )
    assert "plan-incomplete" in _rules(found)
    assert found.blocks("high")


def test_a_failed_plan_is_never_judged(stack: Stack) -> None:
    broken = ONE.replace(
        "}\n",
        '  lifecycle {\n    precondition {\n      condition = var.x > 1\n      error_message = "no"\n    }\n  }\n}\n',
    )
    found = _review(stack.plan('variable "x" {\n  default = 1\n}\n' + broken, check=False))
    assert found.verdict == "cannot be applied"
    assert not found.is_judged
    assert found.blocks("critical")
    assert "cannot be applied" in markdown(found)


def test_a_failing_check_block_is_told(stack: Stack) -> None:
    found = _review(
        stack.plan(
            ONE
            + 'check "size" {\n  assert {\n    condition     = terraform_data.one.input == "z"\n'
            + '    error_message = "too `small`"\n  }\n}\n'
        )
    )
    assert _rules(found) == ["check-failed"]
    assert "`` too `small` ``" in markdown(found)


def test_a_refresh_only_plan_is_not_called_unchanged(stack: Stack) -> None:
    found = _review(stack.plan(ONE, "-refresh-only", "-refresh=true"))
    assert found.plan.lists_nothing
    assert _rules(found) == ["plan-unlisted"]
    assert found.verdict == "review needed"


def test_a_destroy_plan(stack: Stack) -> None:
    found = _review(stack.plan(ONE, "-destroy"))
    assert _first_line(found) == "0 add, 0 change, 1 destroy"


def test_outputs_alone_are_a_change(stack: Stack) -> None:
    found = _review(stack.plan(ONE + 'output "x" {\n  value = "y"\n}\n'))
    assert found.verdict == "nothing dangerous found"
    assert "1 outputs change" in markdown(found)


def test_a_provisioner_is_named(stack: Stack) -> None:
    found = _review(
        stack.plan(
            ONE + 'resource "terraform_data" "run" {\n  provisioner "local-exec" {\n    command = "id"\n  }\n}\n'
        )
    )
    assert [(f.rule, f.address) for f in found.findings] == [("runs-code", "terraform_data.run")]


def test_the_same_plan_gives_the_same_bytes(stack: Stack) -> None:
    plan = stack.plan(ONE.replace('"a"', '"b"'))
    again = stack.terraform("show", "-json", "plan.tfplan")
    pages = {markdown(_review(data)) for data in (plan, again)}
    assert len(pages) == 1


def test_the_saved_plan_itself_is_refused(stack: Stack) -> None:
    stack.plan(ONE)
    with pytest.raises(SagefitError, match="saved plan itself"):
        Document("plan.tfplan", (stack.folder / "plan.tfplan").read_bytes())
