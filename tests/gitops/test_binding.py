"""What ties an apply to the reviewed plan: each refusal, with real Terraform, on a root that needs no provider.

Two things are pretended, for there is one of each here: another version of Terraform, and of Sagefit.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import stat
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pytest

from sagefit.cloud import control
from sagefit.errors import INVALID, REFUSED, SagefitError
from sagefit.gitops import apply, bundle, handover
from sagefit.gitops.binding import PAGE, PLAN, PLAN_JSON, RECORD, Record, private
from sagefit.gitops.bundle import Ready
from sagefit.gitops.normalised import KEY_VARIABLE
from sagefit.gitops.overview import overview
from sagefit.gitops.stacks import Stack
from sagefit.reviewing import Brief, Document, PastRun, Runs, Tuning
from sagefit.target import Target, activate
from sagefit.terraform import Plan, Terraform

pytestmark = [
    pytest.mark.xdist_group("gitops"),
    pytest.mark.filterwarnings("ignore:The 'warn' method is deprecated:DeprecationWarning"),  # python-terraform's
]

CANARY = "canary-5d1f0c"
_ROOT = """
terraform {
  backend "local" {}
}

variable "value" {
  type = string
}

variable "secret" {
  type      = string
  default   = "none"
  sensitive = true
}

resource "terraform_data" "this" {
  input = var.value
}

resource "terraform_data" "secret" {
  input = var.secret
}

output "value" {
  value = var.value
}
"""


@dataclass
class World:
    """A stack of a test's own: a root, its variables, a state, and a folder for what is reviewed."""

    ready: Ready
    variables: Path
    out: Path
    target: Target
    record: Record | None = None

    @property
    def folder(self) -> Path:
        """Where the reviewed plan lies."""
        return self.out / self.ready.stack.key

    def plan(self, value: str, *, lifetime: timedelta = timedelta(hours=1), secret: str = "none") -> Record:
        """Plan for a review."""
        self.merge(value, secret=secret)
        self.record = bundle.plan_into(self.ready, self.target, self.out, lifetime=lifetime)
        return self.record

    def merge(self, value: str, *, secret: str = "none") -> None:
        """The files as they are after a merge."""
        self.variables.write_text(f"value = {json.dumps(value)}\nsecret = {json.dumps(secret)}\n", encoding="utf-8")

    def apply(self, *, replan: bool = False, out: Path | None = None, approved: Collection[str] = ()) -> bool:
        """Apply what was reviewed."""
        folder = out or self.out
        return apply.apply_ready(self.ready, folder, self.target, replan=replan, approved=approved)

    def refusal(self, *, replan: bool = False) -> str:
        """Apply what must be refused; returns why."""
        before = self.state.read_bytes() if self.state.exists() else b""
        with pytest.raises(SagefitError) as caught:
            self.apply(replan=replan)
        assert caught.value.exit_code == REFUSED
        assert (self.state.read_bytes() if self.state.exists() else b"") == before
        return str(caught.value)

    @property
    def state(self) -> Path:
        """The file of the state."""
        return self.target.folder / "states" / f"{self.ready.stack.key}.tfstate"

    def edit_state(self, **fields: object) -> None:
        """What another apply, or another state, would leave."""
        state = json.loads(self.state.read_text(encoding="utf-8"))
        self.state.write_text(json.dumps(state | fields), encoding="utf-8")

    def serial(self) -> int:
        """The state's serial."""
        return int(json.loads(self.state.read_text(encoding="utf-8"))["serial"])


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """The embedded cloud, which says whose account this is."""
    before = dict(os.environ)
    os.environ["SAGEFIT_HOME"] = str(tmp_path_factory.mktemp("binding"))
    control.up()
    try:
        yield activate("local")
    finally:
        control.down()
        os.environ.clear()
        os.environ.update(before)


@pytest.fixture
def world(target: Target, tmp_path: Path) -> World:
    """A stack with nothing applied."""
    root = tmp_path / "root"
    root.mkdir()
    (root / "main.tf").write_text(_ROOT, encoding="utf-8")
    variables, key = tmp_path / "values.tfvars", f"{tmp_path.name}/platform"
    terraform = Terraform(root, key, target, variables=variables)
    return World(Ready(Stack(key, "x", "x", variables), terraform), variables, tmp_path / "reviewed", target)


@pytest.fixture
def applied(world: World) -> World:
    """The stack after a first apply, with a second plan reviewed."""
    world.plan("one")
    assert world.apply()
    world.plan("two")
    return world


def test_the_reviewed_plan_is_applied(world: World) -> None:
    record = world.plan("one")
    assert world.apply()
    assert world.ready.terraform.outputs() == {"value": "one"}
    assert (world.folder / PLAN).exists()
    assert record.is_empty is False
    assert world.plan("one").is_empty
    assert not world.apply()


def test_what_is_written_is_for_its_owner_only(world: World) -> None:
    world.plan("one")
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in world.folder.iterdir()}
    assert modes == {PLAN: 0o600, PLAN_JSON: 0o600, PAGE: 0o600, RECORD: 0o600}
    assert stat.S_IMODE(world.folder.stat().st_mode) == 0o700


def test_the_record_holds_no_values(world: World) -> None:
    world.plan(f"open-{CANARY}", secret=CANARY)
    assert CANARY in (world.folder / PLAN_JSON).read_text(encoding="utf-8")
    assert CANARY not in (world.folder / RECORD).read_text(encoding="utf-8")


_REVIEWER = "the key of the side that reviews"


@pytest.fixture
def handed(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """A plan that was handed over; from now on this is the side that reviews."""
    monkeypatch.setenv(KEY_VARIABLE, _REVIEWER)
    public = handover.public_key()
    monkeypatch.delenv(KEY_VARIABLE)
    monkeypatch.setenv(handover.PUBLIC_VARIABLE, public)
    world.plan("one", secret=CANARY)
    monkeypatch.setenv(KEY_VARIABLE, _REVIEWER)
    return world


def _taken(world: World, key: str | None = None) -> Record:
    return _all_taken(world, key)[0]


def _all_taken(world: World, key: str | None = None) -> tuple[Record, Document, Runs]:
    commits = {"head": "a" * 40, "base": "b" * 40}
    return handover.take_over(world.folder, key or world.ready.stack.key, lifetime=timedelta(hours=1), **commits)


def test_what_is_handed_over_is_read_by_one_key_alone_and_judged_as_it_was(
    handed: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = (handed.folder / handover.FILE).read_bytes()
    assert CANARY.encode() not in data
    assert stat.S_IMODE((handed.folder / handover.FILE).stat().st_mode) == 0o600
    record = _taken(handed)
    assert (record.origin.head, record.origin.base) == ("a" * 40, "b" * 40)
    there = handed.plan("one", secret=CANARY)  # as one side would have planned it, with the key
    assert record.content == there.content
    assert (record.place, record.state, record.tools) == (there.place, there.state, there.tools)
    monkeypatch.setenv(KEY_VARIABLE, "the key of another side that reviews")
    with pytest.raises(SagefitError, match="is not for this key"):
        _taken(handed)
    monkeypatch.setenv(KEY_VARIABLE, "guessed")
    with pytest.raises(SagefitError, match="has 7 characters, and 32 are the least"):
        handover.public_key()


def test_what_was_handed_over_for_another_stack_or_is_broken_is_refused(handed: World) -> None:
    with pytest.raises(SagefitError, match="not of other/platform") as caught:
        _taken(handed, "other/platform")
    assert caught.value.exit_code == REFUSED
    path = handed.folder / handover.FILE
    data = path.read_bytes()
    for broken in (data[:-1], data[:8], b"", data[:-1] + bytes([data[-1] ^ 1])):
        path.write_bytes(broken)
        with pytest.raises(SagefitError, match="is not for this key"):
            _taken(handed)
    path.unlink()
    with pytest.raises(SagefitError, match="no plan that was handed over"):
        _taken(handed)


@pytest.mark.parametrize("given", ["plain", "empty", "other version", "cut"])
def test_what_anybody_can_encrypt_is_still_no_plan(handed: World, given: str) -> None:
    """The public key is no secret, so a hostile side can hand over anything."""
    packed = {
        "plain": b"no gzip",
        "empty": gzip.compress(b"{}"),
        "other version": gzip.compress(b'{"v": 2}'),
        "cut": gzip.compress(b"x" * 100)[:-9],
    }
    handover.encrypt(handed.folder / handover.FILE, packed[given], handed.ready.stack.key)
    with pytest.raises(SagefitError, match="no plan that was handed over"):
        _taken(handed)


def test_a_forged_plan_is_judged_as_what_it_says_and_not_applied(handed: World) -> None:
    """The record of a plan that was made up says another content than the plan that an apply makes."""
    plan = handed.folder / PLAN_JSON
    plan.write_text(plan.read_text(encoding="utf-8").replace('"one"', '"harmless"'), encoding="utf-8")
    assert handed.record
    handover.hand_over(handed.folder, handed.record, Runs())
    record = _taken(handed)
    record = replace(record, origin=replace(record.origin, base=None))  # there is no such commit here
    (handed.folder / PLAN).unlink()
    record.judged("page", [], Brief()).save(handed.folder)
    assert "a plan made now does not do what was reviewed" in handed.refusal(replan=True)


def test_what_is_said_of_runs_is_handed_over_and_is_no_way_to_write_the_page(handed: World) -> None:
    past = PastRun("digits-1", "2026-11-28 12:00", "failed: memory", 2, "ml.g5.xlarge", 21.5, 3.25, 0.31)
    told = Runs(last=[past], in_progress=["digits-2"])
    assert handed.record
    handover.hand_over(handed.folder, handed.record, told)
    assert _all_taken(handed)[2] == told
    hostile = (
        Runs(last=[replace(past, name="x](https://elsewhere)")]),
        Runs(last=[replace(past, started="</details>")]),
        Runs(last=[replace(past, usd=-1.0)]),
        Runs(last=[past] * 6),
        Runs(in_progress=["@everyone"]),
        Runs(jobs=["a b"]),
    )
    for each in hostile:
        handover.hand_over(handed.folder, handed.record, each)
        with pytest.raises(SagefitError, match="no plan that was handed over"):
            _taken(handed)


@pytest.mark.parametrize("key", ["", "abc", "g" * 64])
def test_a_public_key_is_one_or_there_is_none(world: World, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(handover.PUBLIC_VARIABLE, key)
    if key:
        with pytest.raises(SagefitError, match="64 hex digits"):
            world.plan("one")
    else:
        world.plan("one")
        assert not (world.folder / handover.FILE).exists()


def test_the_page_of_a_plan_lies_beside_it(world: World) -> None:
    record = world.plan("one", secret=CANARY)
    page = (world.folder / PAGE).read_text(encoding="utf-8")
    assert record.plan in page
    assert "terraform_data.this" in page
    assert CANARY not in page


def test_an_edited_plan_is_refused(world: World) -> None:
    world.plan("one")
    with (world.folder / PLAN).open("ab") as file:
        file.write(b"\0")
    for replan in (False, True):
        assert "edited plan" in world.refusal(replan=replan)


def test_another_plan_in_its_place_is_refused(world: World) -> None:
    world.plan("two")
    other = (world.folder / PLAN).read_bytes()
    world.plan("one")
    (world.folder / PLAN).write_bytes(other)
    assert "edited plan" in world.refusal()


def test_an_edited_record_is_refused(world: World) -> None:
    world.plan("one")
    path = world.folder / RECORD
    path.write_text(path.read_text(encoding="utf-8").replace('"destroy": false', '"destroy": true'), encoding="utf-8")
    assert "was edited" in world.refusal(replan=True)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"v": 5}', "null", '{"v": 5, "place": 3}'])
def test_a_record_that_is_none(world: World, text: str) -> None:
    world.plan("one")
    private(world.folder / RECORD, text)
    assert "not the record of a plan" in world.refusal(replan=True)


def test_a_record_of_another_key_is_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.plan("one")
    monkeypatch.setenv(KEY_VARIABLE, "another")
    assert KEY_VARIABLE in world.refusal(replan=True)
    world.plan("one")
    assert world.apply()


def test_no_record_is_no_review(world: World) -> None:
    with pytest.raises(SagefitError, match="no reviewed plan") as caught:
        world.apply()
    assert caught.value.exit_code == INVALID


def test_the_plan_of_another_stack_is_refused(world: World) -> None:
    world.plan("one")
    foreign = replace(world.ready.stack, key=f"{world.ready.stack.key[:-9]}-b/platform")
    shutil.copytree(world.folder, world.out / foreign.key)
    other = World(replace(world.ready, stack=foreign), world.variables, world.out, world.target)
    assert f"foreign plan: it is of {world.ready.stack.key}" in other.refusal(replan=True)


def test_a_plan_for_another_region_is_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.plan("one")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    assert "made for local 123456789012 us-east-1, and this is local 123456789012 eu-west-1" in world.refusal(
        replan=True
    )


def test_a_plan_of_a_stack_that_is_gone_is_refused(world: World) -> None:
    world.plan("one")
    world.ready = replace(world.ready, destroy=True)
    assert "was here when it was reviewed, and is gone now" in world.refusal(replan=True)


def test_an_approval_that_has_expired_is_final(world: World) -> None:
    """A plan that does the same is no way around it: else whoever keeps a record could apply it at any time."""
    world.plan("one", lifetime=timedelta(seconds=-1))
    for replan in (False, True):
        assert "expired plan: its approval was good until" in world.refusal(replan=replan)
        assert "--replan" not in world.refusal(replan=replan)
    (world.folder / PLAN).unlink()
    assert "expired plan" in world.refusal(replan=True)
    assert world.ready.terraform.outputs() == {}


def test_another_tree_is_refused_and_a_plan_that_does_the_same_goes_on(applied: World) -> None:
    with applied.variables.open("a", encoding="utf-8") as file:
        file.write("# nothing that a plan would show\n")
    assert "other tree" in applied.refusal()
    assert applied.apply(replan=True)
    assert applied.ready.terraform.outputs() == {"value": "two"}


def test_a_plan_made_now_that_does_something_else_waits_for_a_review(applied: World) -> None:
    applied.variables.write_text('value = "three"\nsecret = "none"\n', encoding="utf-8")
    text = applied.refusal(replan=True)
    assert "terraform_data.this: other values of input" in text
    assert "output value: another value" in text
    assert "three" not in text
    kept = applied.target.folder.parents[2] / "gitops" / "replanned"
    assert applied.apply(out=kept)
    assert applied.ready.terraform.outputs() == {"value": "three"}


def test_two_changes_of_one_text_that_have_nothing_in_common_do_not_collide(world: World) -> None:
    """Both are planned from the same main, and merged one after the other."""
    start, mine, other, both = (
        json.dumps({"epochs": epochs, "environment": {"LOG": log}})
        for epochs, log in ((1, "info"), (2, "info"), (1, "debug"), (2, "debug"))
    )
    world.plan(start)
    assert world.apply()
    world.plan(mine)
    reviewed = world.out.rename(world.out.with_name("mine"))
    world.plan(other)
    world.merge(other)
    assert world.apply()
    world.merge(both)
    assert world.apply(replan=True, out=reviewed)
    assert world.ready.terraform.outputs() == {"value": both}


def test_two_changes_of_one_value_collide(world: World) -> None:
    start, mine, other = (json.dumps({"epochs": epochs}) for epochs in (1, 2, 3))
    world.plan(start)
    assert world.apply()
    world.plan(mine)
    reviewed = world.out.rename(world.out.with_name("mine"))
    world.plan(other)
    assert world.apply()
    world.merge(mine)
    with pytest.raises(SagefitError, match="other values of input"):
        world.apply(replan=True, out=reviewed)


def test_a_plan_that_would_destroy_what_was_to_change_says_so(applied: World) -> None:
    main = applied.ready.terraform.root / "main.tf"
    main.write_text(_ROOT.replace("input = var.value", "triggers_replace = var.value"), encoding="utf-8")
    applied.edit_state(serial=applied.serial() + 1)
    assert "update was reviewed" in applied.refusal(replan=True)


def test_another_secret_is_another_plan(applied: World) -> None:
    applied.variables.write_text(f'value = "two"\nsecret = "{CANARY}"\n', encoding="utf-8")
    text = applied.refusal(replan=True)
    assert "terraform_data.secret: update was not in the reviewed plan" in text
    assert CANARY not in text


def test_another_serial_is_refused_and_a_plan_that_does_the_same_goes_on(applied: World) -> None:
    applied.edit_state(serial=applied.serial() + 1)
    assert "other state" in applied.refusal()
    copy = shutil.copyfile(applied.folder / PLAN, applied.out / "copy")
    with pytest.raises(SagefitError, match="Saved plan is stale"):  # Terraform would have said so itself
        applied.ready.terraform.apply(Plan(copy))
    assert applied.apply(replan=True)
    assert applied.ready.terraform.outputs() == {"value": "two"}


def test_another_state_is_refused(applied: World) -> None:
    applied.edit_state(lineage="00000000-0000-0000-0000-000000000000")
    text = applied.refusal()
    assert "other state" in text
    assert "lineage 00000000-0000-0000-0000-000000000000" in text


def test_a_plan_that_was_applied_already_has_nothing_left_to_do(applied: World) -> None:
    assert applied.apply()
    assert "other state" in applied.refusal()
    assert not applied.apply(replan=True)


def test_a_plan_of_another_terraform_is_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    record = world.plan("one")
    monkeypatch.setattr("sagefit.toolchain.terraform_version", lambda _: "9.9.9")
    text = world.refusal()
    assert f"planned with Terraform {record.tools.terraform}" in text
    assert "this is Terraform 9.9.9" in text


def test_a_plan_of_another_sagefit_is_refused_and_a_new_one_goes_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as then:
        then.setattr(bundle, "__version__", "0.0.1")
        world.plan("one")
    assert "other version: planned with" in world.refusal()
    assert world.apply(replan=True)


def test_a_record_without_its_plan_needs_a_new_one(world: World) -> None:
    world.plan("one")
    (world.folder / PLAN).unlink()
    (world.folder / PLAN_JSON).unlink()
    assert "without its plan" in world.refusal()
    assert world.apply(replan=True)
    assert world.ready.terraform.outputs() == {"value": "one"}


def test_all_that_speaks_against_a_plan_is_said_at_once(applied: World) -> None:
    applied.plan("two", lifetime=timedelta(seconds=-1))
    applied.edit_state(serial=applied.serial() + 1)
    text = applied.refusal()
    assert "expired plan" in text
    assert "other state" in text


def test_a_finding_that_blocks_is_refused_until_it_is_approved_by_name(world: World) -> None:
    record = world.plan("one")
    assert record.blocked == []
    replace(record, blocked=["runs-code:a.b", "iam-admin:a.c"]).sealed().save(world.folder)
    assert "blocked by fail_on in .sagefit-review.yaml:\n  iam-admin:a.c\n  runs-code:a.b" in world.refusal()
    with pytest.raises(SagefitError) as caught:
        world.apply(approved=["iam-admin:a.c", "iam-admin:other"])
    assert "runs-code:a.b" in str(caught.value)
    assert "iam-admin:a.c" not in caught.value.message
    assert world.apply(approved=["iam-admin:a.c", "runs-code:a.b"])


def test_the_settings_of_the_base_say_what_blocks(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    main = world.ready.terraform.root / "main.tf"
    block = 'resource "terraform_data" "hook" {\n  provisioner "local-exec" {\n    command = "true"\n  }\n}\n'
    main.write_text(main.read_text(encoding="utf-8") + block, encoding="utf-8")
    assert world.plan("one").blocked == []
    monkeypatch.setattr(bundle, "settings_of", lambda _: Tuning(fail_on="medium"))
    assert world.plan("one").blocked == ["runs-code:terraform_data.hook"]
    assert "## Plan:" in (world.folder / PAGE).read_text(encoding="utf-8")
    assert "runs-code:terraform_data.hook" in world.refusal()
    raw = json.loads((world.folder / RECORD).read_text(encoding="utf-8"))
    (world.folder / RECORD).write_text(json.dumps(raw | {"blocked": []}), encoding="utf-8")
    assert "was edited" in world.refusal()


def test_only_the_page_that_was_made_with_the_plan_is_posted(world: World) -> None:
    world.plan("one")
    page = (world.folder / PAGE).read_text(encoding="utf-8")
    about = overview(world.out, "abc")
    told = page.split("\n\n", 1)[1].split("### Needs a decision\n\nNothing.\n")
    assert [part.strip() in about.text() for part in told] == [True, True]
    (world.folder / PAGE).write_text("**0 change**: harmless\n", encoding="utf-8")
    with pytest.raises(SagefitError, match="is not the page that was made with the plan") as caught:
        overview(world.out, "abc")
    assert caught.value.exit_code == REFUSED
    (world.folder / PAGE).unlink()
    assert "2 add" in overview(world.out, "abc").text()
