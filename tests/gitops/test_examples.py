"""The example pipelines and roles: what they may do, and that a pull request cannot make them do more."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from gitops.denied import calls
from sagefit.cli import COMMANDS
from sagefit.doctor.permissions import rows
from sagefit.iam.danger import ESCALATION
from sagefit.iam.evaluate import Call, allows
from sagefit.paths import ROOT, home
from sagefit.toolchain import terraform_binary, terraform_environment

pytestmark = pytest.mark.xdist_group("gitops")

EXAMPLES = ROOT / "examples" / "gitops"
WORKFLOWS = sorted((EXAMPLES / "github").glob("*.yml"))
GITLAB = EXAMPLES / "gitlab" / ".gitlab-ci.yml"
ATLANTIS = EXAMPLES / "atlantis" / "repos.yaml"

# What a workflow may interpolate into a script is nothing; into other fields these, of which nobody outside decides.
_TRUSTED = re.compile(
    r"vars\.[A-Z_]+|secrets\.SAGEFIT_REVIEW_KEY|github\.token|github\.event\.pull_request\.(number|base\.sha)"
    r"|github\.event\.workflow_run\.(id|head_sha)|steps\.\w+\.outputs\.(number|base|head)"  # the host's own answers
    r"|inputs\.(approve|replanned)|inputs\.commit \|\| github\.sha"  # given by whoever may start the workflow
)
_PERMISSIONS = {
    ("plan", "plan"): {"contents": "read", "id-token": "write"},
    ("review", "review"): {
        "actions": "read",
        "contents": "read",
        "pull-requests": "write",
        "statuses": "write",
    },
    ("apply", "apply"): {"actions": "read", "contents": "read", "id-token": "write", "pull-requests": "write"},
    ("drift", "drift"): {"contents": "read", "id-token": "write"},
}


def workflow(path: Path) -> dict[str, Any]:
    """A workflow; YAML 1.1 reads the key ``on`` as true."""
    data = yaml.safe_load(path.read_text(encoding="utf-8"))
    return {"on" if key is True else key: value for key, value in data.items()}


JOBS = [(path.stem, name, job) for path in WORKFLOWS for name, job in workflow(path)["jobs"].items()]
STEPS = [(f"{file}/{name}", step) for file, name, job in JOBS for step in job["steps"]]


def scripts() -> list[str]:
    """Every script of every example."""
    found = [step["run"] for _, step in STEPS if "run" in step]
    gitlab = yaml.safe_load(GITLAB.read_text(encoding="utf-8"))
    parts = [gitlab["default"], *(job for name, job in gitlab.items() if isinstance(job, dict) and name != "variables")]
    found += [line for part in parts for key in ("before_script", "script") for line in part.get(key, [])]
    atlantis = yaml.safe_load(ATLANTIS.read_text(encoding="utf-8"))["workflows"]["sagefit"]
    return found + [step["run"] for stage in atlantis.values() for step in stage["steps"]]


def test_there_are_workflows_to_look_at() -> None:
    assert [path.stem for path in WORKFLOWS] == ["apply", "drift", "plan", "review"]
    assert len(STEPS) > 15


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_by_digest_with_their_version_beside_it(path: Path) -> None:
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if re.match(r"[ -]*uses:", line)]
    assert lines
    for line in lines:
        assert re.fullmatch(r"\s+(- )?uses: (actions|aws-actions)/[a-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line), line


def test_an_action_has_one_digest_in_all_workflows() -> None:
    used = {step["uses"] for _, step in STEPS if "uses" in step}
    assert len(used) == len({use.partition("@")[0] for use in used})


def test_permissions_are_the_least() -> None:
    assert {(file, name): job["permissions"] for file, name, job in JOBS} == _PERMISSIONS
    for path in WORKFLOWS:
        assert workflow(path)["permissions"] == {}


# What a job may have only where no code of a pull request runs.
_TRUSTED_ALONE = ("secrets.", "pull-requests: write", "statuses: write", "SAGEFIT_REVIEW_KEY", "GITLAB_TOKEN")


def test_where_the_code_of_a_pull_request_runs_there_is_no_secret_and_nothing_writes() -> None:
    text = (EXAMPLES / "github" / "plan.yml").read_text(encoding="utf-8")
    assert workflow(EXAMPLES / "github" / "plan.yml")["on"].keys() == {"pull_request"}
    assert not [word for word in _TRUSTED_ALONE if word in text]
    plan = yaml.safe_load(GITLAB.read_text(encoding="utf-8"))["plan"]
    assert not [word for word in _TRUSTED_ALONE if word in json.dumps(plan)]
    assert "environment" not in plan


def test_where_the_key_is_nothing_of_a_pull_request_is_checked_out() -> None:
    review = workflow(EXAMPLES / "github" / "review.yml")
    assert review["on"] == {"workflow_run": {"workflows": ["plan"], "types": ["completed"]}}  # of main, with its code
    (job,) = review["jobs"].values()
    assert job["environment"] == "review"
    (checkout,) = (step for step in job["steps"] if step.get("uses", "").startswith("actions/checkout@"))
    assert "ref" not in checkout["with"]
    assert "repository" not in checkout["with"]
    runs = "\n".join(step.get("run", "") for step in job["steps"])
    assert set(re.findall(r"\bgit (?:-c \S+='[^']*' )*([a-z-]+)", runs)) == {"fetch", "merge-base", "rev-parse"}
    for line in runs.splitlines():
        assert not re.search(r"\b(make|bash|sh|python3?|pip)\b", line) or line == "make .venv/.installed", line
    gitlab = yaml.safe_load(GITLAB.read_text(encoding="utf-8"))["review"]
    assert gitlab["environment"] == {"name": "review", "action": "access"}
    own = [line for line in (*gitlab["before_script"], *gitlab["script"]) if re.match(r"\$?(make|sagefit)\b", line)]
    assert len(own) == 5
    assert all("$CI_PROJECT_DIR.base" in line or line.startswith("$sagefit ") for line in own), own


def test_nobody_outside_starts_a_workflow_that_trusts_him() -> None:
    for path in WORKFLOWS:
        assert not {"pull_request_target", "issue_comment"} & set(workflow(path)["on"])
    for file, name, job in JOBS:
        if file == "plan":
            assert "github.event.pull_request.head.repo.full_name == github.repository" in job["if"], name
        if file == "review":
            assert "github.event.workflow_run.event == 'pull_request'" in job["if"]
            assert "github.event.workflow_run.head_repository.full_name == github.repository" in job["if"]


def test_the_apply_waits_for_a_protected_environment_and_runs_alone() -> None:
    apply = workflow(EXAMPLES / "github" / "apply.yml")
    assert apply["on"].keys() == {"push", "workflow_dispatch"}
    assert apply["on"]["push"] == {"branches": ["main"]}
    assert apply["jobs"]["apply"]["environment"] == "production"
    assert apply["concurrency"] == {"group": "apply", "queue": "max"}  # no merge is lost, and none overtakes another
    assert yaml.safe_load(GITLAB.read_text(encoding="utf-8"))["apply"]["environment"] == {"name": "production"}


def test_on_gitlab_a_change_that_is_blocked_is_red_whether_or_not_it_can_be_commented(tmp_path: Path) -> None:
    lines = yaml.safe_load(GITLAB.read_text(encoding="utf-8"))["review"]["script"]
    base = tmp_path / "change.base" / ".venv" / "bin"
    base.mkdir(parents=True)
    (base / "sagefit").write_text(
        '#!/bin/sh\necho "$@" >> asked\ntest $1 != seal || exit $CODE\nexit 1\n', encoding="utf-8"
    )
    (base / "sagefit").chmod(0o755)
    for code in (0, 5):
        known = {"CI_PROJECT_DIR": str(tmp_path / "change"), "CI_COMMIT_SHA": "abc", "CODE": str(code)}
        assert _run("\n".join(lines), tmp_path, **known).returncode == code
        assert _asked(tmp_path).splitlines()[-3:] == [
            "seal planned --out reviewed --base refs/sagefit/base --head abc",
            "status reviewed --sha abc",
            "comment reviewed --sha abc",
        ]


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"PULL": "false base merged"}, "number=3\nbase=origin/main\nhead=merged\n"),
        ({"PULL": "true base squashed"}, "number=3\nbase=base\nhead=abc\n"),
        ({"PULL": "false base merged", "PARENT": "pushed-since"}, "merged does not merge abc"),
        ({"PULL": "true forged squashed"}, "forged is not of main"),
        ({"PULL": "false base "}, "pull request 3 cannot be merged"),
        ({"NUMBER": ""}, "abc is the tip of no pull request"),
    ],
)
def test_the_review_is_of_the_tip_of_a_pull_request(tmp_path: Path, environment: dict[str, str], said: str) -> None:
    script, output = _step("Find the pull request")["run"], tmp_path / "output"
    known = {"HEAD": "abc", "NUMBER": "3", "PARENT": "abc", "GITHUB_OUTPUT": str(output)}
    done = _run(script, tmp_path, **(known | environment))
    if done.returncode == 0:
        assert output.read_text(encoding="utf-8") == said
    else:
        assert f"::error::{said}" in done.stdout
        assert not output.exists()


# What the hosts' own commands answer here; each says what it was asked on a line of its own.
_GH = """#!/bin/bash
echo "gh $*" >> asked
case "$*" in
  "api "*commits/main*) echo "$TIP" ;;
  "api "*commits/abc/pulls*open*) echo "$NUMBER" ;;
  "api "*pulls/3*) echo "$PULL" ;;
  "api "*pulls*) echo 8 head ;;
  "api "*artifacts?name=reviewed-head*) echo "${RUN-7}" ;;
  "run view"*) echo "$FROM" ;;
  "run download"*) mkdir -p reviewed && echo '{"stacks": [{"code": 0}]}' > reviewed/stacks.json ;;
esac
"""
_CURL = """#!/bin/bash
echo "curl $*" >> asked
case "$*" in
  *merge_requests/3/pipelines*) echo '[{"id": 5}, {"id": 7}, {"id": 6}]' ;;
  *merge_requests*) echo '[{"iid": 3}]' ;;
  *pipelines/7/jobs*) echo '[{"id": 70, "name": "plan"}, {"id": 71, "name": "review"}]' ;;
  *jobs/71/artifacts*) python3 -c 'import zipfile
zipfile.ZipFile("reviewed.zip", "w").writestr("reviewed/stacks.json", "")' ;;
  */artifacts) python3 -c 'import zipfile
zipfile.ZipFile("reviewed.zip", "w").writestr(".sagefit/gitops/replanned/dev/jobs/a/record.json", "")' ;;
  *jobs/*) echo "$FROM" ;;
esac
"""


_GIT = """#!/bin/bash
case "$*" in
  "rev-parse merged^2") echo "$PARENT" ;;
  "merge-base --is-ancestor forged "*) exit 1 ;;
esac
"""


def _run(script: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """A script of an example in ``folder``, where the commands that ask a host are files of these tests."""
    for name, text in (("gh", _GH), ("curl", _CURL), ("git", _GIT)):
        (folder / name).write_text(text, encoding="utf-8")
        (folder / name).chmod(0o755)
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    known = {"GITHUB_REPOSITORY": "ada/models", "CI_API_V4_URL": "https://host/api", "CI_PROJECT_ID": "5"}
    command = ["bash", "-e", "-o", "pipefail", "-c", script]
    return subprocess.run(
        command, cwd=folder, env={"PATH": path} | known | environment, capture_output=True, text=True, check=False
    )


def _asked(folder: Path) -> str:
    return (folder / "asked").read_text(encoding="utf-8")


def _step(name: str) -> dict[str, Any]:
    found: list[dict[str, Any]] = [step for _, step in STEPS if step.get("name") == name]
    (step,) = found
    return step


def test_a_merge_that_was_overtaken_is_not_applied_again(tmp_path: Path) -> None:
    step = _step("Refuse what was overtaken")
    assert step["if"] == "github.run_attempt > 1"  # the queue keeps the order of those that run for the first time
    assert _run(step["run"], tmp_path, TIP="a", GITHUB_SHA="a").returncode == 0
    late = _run(step["run"], tmp_path, TIP="b", GITHUB_SHA="a")
    assert late.returncode == 1
    assert "main is at b by now, and this run is of a" in late.stdout


def test_what_was_reviewed_is_that_of_the_merge_or_the_new_page_of_a_run_that_was_refused(tmp_path: Path) -> None:
    script, known = _step("Fetch what was reviewed")["run"], {"GITHUB_OUTPUT": str(tmp_path / "output")}
    assert _run(script, tmp_path, MERGED="abc", REPLANNED="", **known).returncode == 0
    assert (tmp_path / "output").read_text("utf-8") == "number=8\n"
    assert "run download 7 --repo ada/models --name reviewed-head --dir reviewed" in _asked(tmp_path)
    late = _run(script, tmp_path, MERGED="abc", REPLANNED="", RUN="", **known)
    assert late.returncode == 1
    assert "head was never reviewed" in late.stdout
    assert _run(script, tmp_path, MERGED="abc", REPLANNED="12", FROM="apply of main").returncode == 0
    assert "run download 12 --repo ada/models --name replanned --dir reviewed" in (tmp_path / "asked").read_text(
        "utf-8"
    )
    (tmp_path / "asked").unlink()
    other = _run(script, tmp_path, MERGED="abc", REPLANNED="13", FROM="plan of feature")  # which anybody may run
    assert other.returncode == 1
    assert "run 13 is plan of feature" in other.stdout
    assert "download" not in _asked(tmp_path)


def test_gitlab_plans_what_a_merge_makes(tmp_path: Path) -> None:
    def git(*words: str, folder: str = "origin") -> str:
        who = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
        command = ["git", "-C", str(tmp_path / folder), *who, *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    (tmp_path / "origin").mkdir()
    git("init", "-q", "-b", "main")
    for branch, file in (("main", "first"), ("change", "theirs"), ("main", "merged-since")):
        git("checkout", "-q", *(["-b"] if file == "theirs" else []), branch) if file != "first" else None
        (tmp_path / "origin" / file).touch()
        git("add", "-A")
        git("commit", "-q", "-m", file)
    git("clone", "-q", "-b", "change", ".", str(tmp_path / "clone"))
    lines = yaml.safe_load(GITLAB.read_text(encoding="utf-8"))["plan"]["script"]
    script = "\n".join(line for line in lines if line.startswith("git "))
    environment = {**os.environ, "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main"}
    subprocess.run(["bash", "-e", "-c", script], cwd=tmp_path / "clone", env=environment, check=True)
    assert git("diff", "--name-only", "refs/sagefit/base", "HEAD", folder="clone").split() == ["theirs"]
    assert (tmp_path / "clone" / "merged-since").exists()


@pytest.mark.parametrize("ref", ["", "main", "feature"])
def test_gitlab_fetches_the_same(tmp_path: Path, ref: str) -> None:
    lines: list[str] = yaml.safe_load(GITLAB.read_text(encoding="utf-8"))["apply"]["script"]
    lines = [line for line in lines if "verdict" not in line]
    script = "\n".join(line for line in lines if "bin/sagefit" not in line)
    known = {"CI_DEFAULT_BRANCH": "main", "CI_COMMIT_SHA": "abc", "GITLAB_TOKEN": "t"}
    job = json.dumps({"name": "apply", "ref": ref})
    done = _run(script, tmp_path, SAGEFIT_REPLANNED="9" if ref else "", FROM=job, **known)
    assert (done.returncode == 0) is (ref != "feature"), done.stderr
    kept = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("reviewed/**/*") if path.is_file()}
    expected = {"": {"reviewed/stacks.json"}, "main": {"reviewed/dev/jobs/a/record.json"}, "feature": set[str]()}
    assert kept == expected[ref]


def test_no_expression_gets_into_a_script() -> None:
    for where, step in STEPS:
        assert "${{" not in step.get("run", ""), where


def test_only_trusted_values_are_interpolated() -> None:
    for path in WORKFLOWS:
        for expression in re.findall(r"\$\{\{(.*?)\}\}", path.read_text(encoding="utf-8")):
            assert _TRUSTED.fullmatch(expression.strip()), (path.stem, expression)


def test_a_checkout_leaves_no_token_behind() -> None:
    for where, step in STEPS:
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False, where


def test_plans_hold_secrets_and_leave_no_machine() -> None:
    uploaded = [
        step["with"]["path"] for _, step in STEPS if step.get("uses", "").startswith("actions/upload-artifact@")
    ]
    gitlab = yaml.safe_load(GITLAB.read_text(encoding="utf-8"))
    uploaded += ["\n".join(gitlab[name]["artifacts"]["paths"]) for name in ("plan", "review", "apply")]
    found = [{Path(line).name for line in paths.split()} for paths in uploaded]
    of_apply, of_plan = {"record.json", "page.md"}, {"stacks.json", "handed.bin", "error.txt"}
    of_review = {"stacks.json", "record.json", "page.md", "error.txt"}
    assert sorted(found, key=len) == [of_apply, of_apply, of_plan, of_plan, of_review, of_review]


def test_the_commands_in_the_examples_exist() -> None:
    used = re.findall(r"(?:\.venv/bin/|\$)sagefit ([a-z]+)([^|&\n]*)", "\n".join(scripts()))
    assert {name for name, _ in used} == {"plan", "apply", "seal", "status", "comment"}
    for name, options in used:
        text = _help(name)
        for option in re.findall(r"--[a-z-]+", options):
            assert option in text, (name, option)


def _help(name: str) -> str:
    from importlib import import_module

    from typer.main import get_group

    command: Any = get_group(import_module(COMMANDS[name]).app)
    found = getattr(command, "commands", {}).get(name, command)
    return " ".join(option for parameter in found.params for option in parameter.opts)


def test_forks_are_left_out_on_gitlab_and_atlantis() -> None:
    gitlab = yaml.safe_load(GITLAB.read_text(encoding="utf-8"))
    for name in ("plan", "review"):
        assert "$CI_MERGE_REQUEST_SOURCE_PROJECT_ID == $CI_PROJECT_ID" in gitlab[name]["rules"][0]["if"]
    repo = yaml.safe_load(ATLANTIS.read_text(encoding="utf-8"))["repos"][0]
    assert repo["allowed_overrides"] == []
    assert repo["allow_custom_workflows"] is False
    assert {"approved", "undiverged"} <= set(repo["apply_requirements"])


# --- The roles -------------------------------------------------------------------------------------------------------

ACCOUNT, REGION = "123456789012", "us-east-1"
KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/11111111-2222-3333-4444-555555555555"
BOUNDARY = f"arn:aws:iam::{ACCOUNT}:policy/boundary"
OWN_BOUNDARY = f"arn:aws:iam::{ACCOUNT}:policy/sagefit-ci-boundary"
BOUNDED = {"iam:PermissionsBoundary": OWN_BOUNDARY}
DATA = f"arn:aws:s3:::sagefit-dev-{ACCOUNT}-{REGION}-data"
STATE = "arn:aws:s3:::my-state/sagefit/dev/jobs/digits.tfstate"
_OFFLINE = """
provider "aws" {
  skip_credentials_validation = true
  skip_requesting_account_id  = true
  skip_metadata_api_check     = true
}
"""


class Roles:
    """The roles as planned by the real provider, which asks nobody."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        shutil.copytree(EXAMPLES / "roles", folder, ignore=shutil.ignore_patterns(".terraform*"))
        (folder / "offline_override.tf").write_text(_OFFLINE, encoding="utf-8")
        self._terraform("init")

    def plan(self, **variables: object) -> dict[str, Any]:
        """Planned values of each resource by address."""
        values = {"account_id": ACCOUNT, "region": REGION, "repository": "ada/models"} | variables
        values = {"state": {"bucket": "my-state", "kms_key_arn": KEY}} | values
        (self._folder / "values.auto.tfvars.json").write_text(json.dumps(values), encoding="utf-8")
        self._terraform("plan", "-no-color", "-out=plan.tfplan")
        changes = json.loads(self._terraform("show", "-json", "plan.tfplan"))["resource_changes"]
        return {change["address"]: change["change"]["after"] for change in changes}

    def refusal(self, **variables: object) -> str:
        """What is said to variables that are refused."""
        with pytest.raises(AssertionError) as caught:
            self.plan(**variables)
        return " ".join(str(caught.value).replace("│", " ").split())

    def _terraform(self, *arguments: str) -> str:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("TF_", "AWS_"))}
        keys = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "NO_COLOR": "1"}
        done = subprocess.run(
            [terraform_binary(home()), f"-chdir={self._folder}", *arguments],
            env=kept | terraform_environment(home()) | keys,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def roles(tmp_path_factory: pytest.TempPathFactory) -> Roles:
    return Roles(tmp_path_factory.mktemp("roles") / "roles")


@pytest.fixture(scope="module")
def planned(roles: Roles) -> dict[str, Any]:
    return roles.plan()


@pytest.fixture(scope="module")
def gitlab(roles: Roles) -> dict[str, Any]:
    """On GitLab, with a boundary, an OIDC provider that is there already, and no key of the state's own."""
    provider = f"arn:aws:iam::{ACCOUNT}:oidc-provider/gitlab.com"
    own = {"permissions_boundary_arn": BOUNDARY, "oidc_provider_arn": provider, "state": {"bucket": "my-state"}}
    return roles.plan(host="gitlab", plan_branches=["changes"], **own)


def policy(planned: dict[str, Any], role: str) -> list[dict[str, Any]]:
    """The policies of a role: its inline one, and the managed ones that are attached to it."""
    start = f'aws_iam_role_policy_attachment.this["{role}-'
    managed = [address.removeprefix(start).removesuffix('"]') for address in planned if address.startswith(start)]
    texts = [planned[f'aws_iam_policy.this["{name}"]']["policy"] for name in managed]
    return [json.loads(text) for text in (planned[f'aws_iam_role_policy.this["{role}"]']["policy"], *texts)]


def trust(planned: dict[str, Any], role: str) -> dict[str, Any]:
    (statement,) = json.loads(planned[f'aws_iam_role.this["{role}"]']["assume_role_policy"])["Statement"]
    assert list(statement["Condition"]) == ["StringEquals"]
    assert "*" not in json.dumps(statement)
    return dict(statement["Condition"]["StringEquals"])


def test_github_takes_each_role_by_subjects_in_full(planned: dict[str, Any]) -> None:
    issuer = "token.actions.githubusercontent.com"
    assert trust(planned, "plan") == {
        f"{issuer}:aud": "sts.amazonaws.com",
        f"{issuer}:sub": ["repo:ada/models:pull_request", "repo:ada/models:environment:drift"],
    }
    assert trust(planned, "apply")[f"{issuer}:sub"] == ["repo:ada/models:environment:production"]
    assert planned["aws_iam_openid_connect_provider.this[0]"]["url"] == f"https://{issuer}"


def test_gitlab_takes_each_role_by_named_branches(gitlab: dict[str, Any]) -> None:
    assert trust(gitlab, "plan")["gitlab.com:sub"] == ["project_path:ada/models:ref_type:branch:ref:changes"]
    assert trust(gitlab, "apply")["gitlab.com:sub"] == ["project_path:ada/models:ref_type:branch:ref:main"]
    assert "aws_iam_openid_connect_provider.this[0]" not in gitlab


def test_patterns_and_shared_subjects_are_refused(roles: Roles) -> None:
    said = roles.refusal(repository="ada/*", plan_branches=["feature-*"], drift_environment="production")
    assert "repository: OWNER/NAME or GROUP/PROJECT, no pattern" in said
    assert "plan_branches: names of branches, no patterns" in said
    assert "and not the environment that applies" in said


def test_gitlab_needs_a_branch_that_may_plan(roles: Roles) -> None:
    assert "name at least one branch whose merge requests may plan" in roles.refusal(host="gitlab")


EVERYTHING = {"Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
OF_DEV = KEY.replace("1111", "7777")
JOB_OF_DEV = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-job/digits-1-0"
TAGGED = {"aws:ResourceTag/sagefit:platform": "dev"}
AWS_ONLY = {"kms:GrantIsForAWSResource": "true"}
SSE = {"kms:ViaService": f"s3.{REGION}.amazonaws.com"}
PLANS = [
    Call("states:DescribeStateMachine", f"arn:aws:states:{REGION}:{ACCOUNT}:stateMachine:sagefit-dev-digits"),
    Call("states:ValidateStateMachineDefinition"),
    Call("ssm:GetParameter", f"arn:aws:ssm:{REGION}:{ACCOUNT}:parameter/sagefit/dev"),
    Call("iam:GetRolePolicy", f"arn:aws:iam::{ACCOUNT}:role/sagefit-dev-execution"),
    Call("s3:GetBucketPolicy", DATA),
    Call("states:DescribeExecution", f"arn:aws:states:{REGION}:{ACCOUNT}:execution:sagefit-dev-digits:digits-1"),
    Call("sagemaker:ListTrainingJobs"),
    Call("sagemaker:DescribeTrainingJob", JOB_OF_DEV, TAGGED),
    Call("s3:GetObject", f"{DATA}/jobs/digits/code/0123/train.py"),
    Call("s3:GetObject", STATE),
    Call("s3:PutObject", f"{STATE}.tflock"),
    Call("s3:DeleteObject", f"{STATE}.tflock"),
    Call("kms:Decrypt", KEY, SSE),
]
NOT_PLANS = calls("plan", ACCOUNT, REGION)
APPLIES = [
    Call("states:UpdateStateMachine", f"arn:aws:states:{REGION}:{ACCOUNT}:stateMachine:sagefit-dev-digits"),
    Call("s3:PutObject", STATE),
    Call("s3:PutObject", f"{DATA}/jobs/digits/code/0123/train.py"),
    Call("iam:PutRolePolicy", f"arn:aws:iam::{ACCOUNT}:role/sagefit/sagefit-dev-digits", BOUNDED),
    Call("iam:CreateRole", f"arn:aws:iam::{ACCOUNT}:role/sagefit/dev/sagefit-dev-digits-execution", BOUNDED),
    Call("iam:PutRolePermissionsBoundary", f"arn:aws:iam::{ACCOUNT}:role/sagefit/sagefit-dev-digits", BOUNDED),
    Call(
        "iam:PassRole",
        f"arn:aws:iam::{ACCOUNT}:role/sagefit/sagefit-dev-digits",
        {"iam:PassedToService": "states.amazonaws.com"},
    ),
    Call("s3:ListBucketVersions", DATA, {"s3:prefix": "jobs/digits/code/0123/train.py"}),
    Call("kms:GenerateDataKey", OF_DEV, SSE | TAGGED),
    Call("kms:CreateGrant", OF_DEV, {"kms:ViaService": f"ecr.{REGION}.amazonaws.com", **AWS_ONLY, **TAGGED}),
    Call("kms:Decrypt", OF_DEV, {"kms:ViaService": f"scheduler.{REGION}.amazonaws.com"} | TAGGED),
    Call("ssm:PutParameter", f"arn:aws:ssm:{REGION}:{ACCOUNT}:parameter/sagefit/dev"),
]
NOT_APPLIES = calls("apply", ACCOUNT, REGION)


@pytest.mark.parametrize("call", PLANS, ids=str)
def test_the_plan_role_may(planned: dict[str, Any], call: Call) -> None:
    assert allows(policy(planned, "plan"), call)


@pytest.mark.parametrize("call", NOT_PLANS, ids=str)
def test_the_plan_role_may_not(planned: dict[str, Any], call: Call) -> None:
    assert not allows(policy(planned, "plan"), call)


@pytest.mark.parametrize("role", ["plan", "apply"])
def test_the_roles_may_do_with_a_state_what_terraform_does(planned: dict[str, Any], role: str) -> None:
    names = {"partition": "aws", "region": REGION, "account": ACCOUNT, "bucket": "my-state", "key": KEY}
    bucket, _, names["state"] = STATE.partition("/")
    assert bucket.endswith(":my-state")
    may: dict[str, set[bool]] = {}
    for row in rows():
        if row.of == "state" and row.when != "lock table":
            context = {key: value.format_map(names) for key, value in row.context.items()}
            calls = [Call(action, arn.format_map(names), context) for action in row.actions for arn in row.on]
            may.setdefault(row.to, set()).update(allows(policy(planned, role), call) for call in calls)
    assert may.pop("write") == ({True} if role == "apply" else {True, False})  # both may use the key
    assert may == {"read": {True}, "lock": {True}}


def test_whatever_else_it_is_given_the_plan_role_sees_no_data_and_no_secrets(planned: dict[str, Any]) -> None:
    for call in NOT_PLANS:
        if call.action in ("secretsmanager:GetSecretValue", "logs:GetLogEvents", "sts:AssumeRole", "s3:GetObject"):
            assert not allows([*policy(planned, "plan"), EVERYTHING], call), call
    assert not allows([*policy(planned, "plan"), EVERYTHING], Call("kms:Decrypt", KEY.replace("1111", "9999"), SSE))


@pytest.mark.parametrize("call", APPLIES, ids=str)
def test_the_apply_role_may(planned: dict[str, Any], call: Call) -> None:
    assert allows(policy(planned, "apply"), call)


@pytest.mark.parametrize("call", NOT_APPLIES, ids=str)
def test_the_apply_role_may_not(planned: dict[str, Any], call: Call) -> None:
    assert not allows(policy(planned, "apply"), call)


def test_the_apply_role_uses_a_key_of_the_team_s_own_where_it_is_named(roles: Roles) -> None:
    call = Call("kms:GenerateDataKey", OF_DEV, SSE)
    named = roles.plan(platform_key_arns=[OF_DEV])
    assert allows(policy(named, "apply"), call)
    assert not allows(policy(named, "apply"), Call("kms:GenerateDataKey", KEY.replace("1111", "9999"), SSE))
    assert "platform_key_arns: ARNs of keys" in roles.refusal(platform_key_arns=["alias/mine"])


@pytest.mark.parametrize(
    ("region", "partition", "domain"),
    [("cn-north-1", "aws-cn", "amazonaws.com.cn"), ("us-gov-west-1", "aws-us-gov", "amazonaws.com")],
)
def test_the_roles_are_of_the_partition_of_their_region(roles: Roles, region: str, partition: str, domain: str) -> None:
    key = KEY.replace("arn:aws:", f"arn:{partition}:").replace(REGION, region)
    state = {"bucket": "my-state", "kms_key_arn": key}
    planned = roles.plan(region=region, state=state, platform_key_arns=[key], boundary_role_arns=[])
    texts = json.dumps([value for value in planned.values() if value])
    assert set(re.findall(r"arn:(aws[a-z-]*):", texts)) == {partition}
    services = set(re.findall(rf"(\w+)\.{region}\.{re.escape(domain)}\\", texts))
    assert services == {"s3", "scheduler", "ecr"}
    assert allows(policy(planned, "plan"), Call("kms:Decrypt", key, {"kms:ViaService": f"s3.{region}.{domain}"}))


def test_a_boundary_of_one_s_own_takes_the_place_of_the_one_that_is_made(gitlab: dict[str, Any]) -> None:
    role = f"arn:aws:iam::{ACCOUNT}:role/sagefit-dev-digits"
    assert not allows(policy(gitlab, "apply"), Call("iam:CreateRole", role))
    assert not allows(policy(gitlab, "apply"), Call("iam:CreateRole", role, BOUNDED))
    assert allows(policy(gitlab, "apply"), Call("iam:CreateRole", role, {"iam:PermissionsBoundary": BOUNDARY}))
    assert _BOUNDARY_POLICY not in gitlab


_BOUNDARY_POLICY = 'aws_iam_policy.this["boundary"]'
_MODULES = ("iam-role", "training-job", "run-cleanup")
_SERVICES = "cloudwatch|ec2|ecr|kms|logs|s3|sagemaker|sns|sqs|states|xray"


def bounded(planned: dict[str, Any], call: Call) -> bool:
    """Whether a role may make a call whose own policies allow everything."""
    return allows([json.loads(planned[_BOUNDARY_POLICY]["policy"])], call)


def test_no_way_leads_from_the_apply_role_to_an_administrator(planned: dict[str, Any]) -> None:
    """It may give a role every policy and every trust; the boundary then says what that role can do."""
    assert {"iam", "sts", "lambda"} <= {action.partition(":")[0] for action in ESCALATION}
    passed = {"iam:PassedToService": "sagemaker.amazonaws.com"}
    # A processing job acts as the role that is passed to it, and only roles of the platforms can be.
    for action in set(ESCALATION) - {"sagemaker:createprocessingjob"}:
        for resource in ("*", f"arn:aws:iam::{ACCOUNT}:role/admin", f"arn:aws:iam::{ACCOUNT}:role/sagefit-ci-apply"):
            assert not bounded(planned, Call(action, resource, passed)), action
    own = f"arn:aws:iam::{ACCOUNT}:role/sagefit/dev/sagefit-dev-digits-execution"
    assert bounded(planned, Call("iam:PassRole", own, passed))
    assert not bounded(planned, Call("iam:PassRole", own, {"iam:PassedToService": "lambda.amazonaws.com"}))
    assert not bounded(planned, Call("s3:PutObject", STATE))
    assert not bounded(planned, Call("s3:GetObject", STATE))
    assert bounded(planned, Call("s3:GetObject", f"{DATA}/rows.csv"))


def test_the_boundary_holds_all_that_the_modules_give_a_role(planned: dict[str, Any]) -> None:
    found = set()
    for module in _MODULES:
        for file in sorted((ROOT / "modules" / module).glob("*.tf")):
            text = file.read_text(encoding="utf-8")
            found |= set(re.findall(rf'"((?:{_SERVICES}):[A-Z][A-Za-z]+)"(?!\s*=)', text))
    assert {"sagemaker:CreateProcessingJob", "ecr:BatchGetImage", "states:StartExecution"} <= found
    of_services = {"kms:GrantIsForAWSResource": "true"}
    assert sorted(action for action in found if not bounded(planned, Call(action, "*", of_services))) == []


def test_the_boundary_can_be_widened_but_not_by_what_widens_itself(roles: Roles) -> None:
    mine = f"arn:aws:iam::{ACCOUNT}:role/mine"
    planned = roles.plan(boundary_actions=["sqs:SendMessage"], boundary_role_arns=[mine])
    assert bounded(planned, Call("sqs:SendMessage", "arn:aws:sqs:us-east-1:1:q"))
    assert bounded(planned, Call("iam:PassRole", mine, {"iam:PassedToService": "sagemaker.amazonaws.com"}))
    for action in ("iam:CreateUser", "sts:AssumeRole", "s3:*", "*"):
        assert "boundary_actions: SERVICE:Action without patterns" in roles.refusal(boundary_actions=[action])
    assert "boundary_role_arns: ARNs of roles" in roles.refusal(boundary_role_arns=[mine + "*"])


def test_without_a_key_of_its_own_the_state_needs_none(gitlab: dict[str, Any]) -> None:
    given = [*policy(gitlab, "plan"), EVERYTHING]
    assert not allows(given, Call("kms:Decrypt", KEY, SSE))
    assert not allows(given, Call("kms:Decrypt", KEY, SSE | {"kms:ResourceAliases": ["alias/mine"]}))
    assert allows(policy(gitlab, "plan"), Call("s3:GetObject", STATE))
    # AWS's own key of a bucket: its policy lets everyone of the account use it through S3, and nothing here forbids it.
    assert allows(given, Call("kms:Decrypt", KEY, SSE | {"kms:ResourceAliases": ["alias/aws/s3"]}))


def test_policies_fit_into_a_role(planned: dict[str, Any]) -> None:
    for role in ("plan", "apply"):
        assert len(re.sub(r"\s", "", planned[f'aws_iam_role_policy.this["{role}"]']["policy"])) <= 10_240
