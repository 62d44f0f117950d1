"""Nothing secret is uploaded: what looks like a credential is refused, and what is left out is found nowhere."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cli_runner import Sagefit
from cloud.aws_user import Aws
from job_files import write_job
from sagefit.errors import INVALID, SagefitError
from sagefit.job import load_job
from sagefit.job.upload_rules import check_texts
from security.conftest import note
from waiting import command_lines

CANARY = "canary-7f3a9c"
PUBLISHED = "uploaded; the page said: nothing found"
#: Files of a home folder or a checkout, by their paths in the upload.
NAMED = {
    "an environment file": (".env", "deep/.env.production", ".envrc"),
    "credentials of AWS": (".aws/credentials", "home/.aws/config"),
    "keys of SSH": (".ssh/config", ".ssh/known_hosts", "id_rsa", "keys/id_ed25519", "id_work"),
    "keys of GnuPG": (".gnupg/secring.gpg",),
    "a login of curl and Git": (".netrc", "_netrc", ".git-credentials"),
    "a login of a package index": (".pypirc", ".npmrc"),
    "a key, certificate or key store": ("key.pem", "server.KEY", "store.p12", "a/b.pfx", "x.ppk"),
    "a service account": ("service-account.json", "service_account_dev.json", "credentials.json", "client_secret.json"),
    "a login of Kubernetes": (".kube/config", "kubeconfig", "dev.kubeconfig"),
    "a login of Docker": (".docker/config.json", ".dockercfg"),
    "a login of Hugging Face or Kaggle": (".cache/huggingface/token", "kaggle.json"),
    "a login of a database": (".pgpass",),
    "a state of Terraform": ("terraform.tfstate.backup", "sub/terraform.tfstate.123.backup"),
    "variables of Terraform": ("sub/secret.auto.tfvars", "prod.tfvars.json"),
}
#: Of training code and data that hold no secret.
ORDINARY = (
    *("train.py", "environment.yml", "env.py", ".envoy/x.yaml", "tokenizer.json", "special_tokens_map.json"),
    *("id_mapping.json", "id_to_label.csv", "keys.py", "keyboard.csv", "sshd.log", "monkey", "kube.py", "ids/1.txt"),
    *("accounts.json", "state.json", "model.tfrecord", "secretary.txt", "config.json", "token", "awsome/config"),
)
#: Text that opens something, put together here so that no scan of this repository finds it.
TEXTS = {
    "an access key of AWS": "AKI" + "AIOSFODNN7EXAMPLE",
    "a secret key of AWS": "aws_secret_access_key = " + "wJalrXUtnFEMI/K7MDENG/bPxRfiCY" + "EXAMPLEKEY",
    "a private key": "-----BEGIN RSA " + "PRIVATE KEY-----",
    "a token of GitHub": "token: ghp" + "_" + "a1B2" * 9,
    "a token of GitLab": "glpat" + "-" + "a1B2" * 5,
    "a token of Hugging Face": 'login("hf' + "_" + "aBcD" * 8 + '")',
    "a key of OpenAI or Anthropic": "sk-" + "proj-" + "a1B2" * 8,
    "a token of Slack": "xox" + "b-1234567890-abcdef",
    "text of the form Stripe Access Key": "sk" + "_live_" + "a1B2" * 6,
    "text of the form SendGrid API Key": "SG" + "." + "a1" * 11 + "." + "b" * 43,
    "text of the form Basic Auth Credentials": "postgresql://me:" + "hunter2" + "@db.internal/x",
    "text of the form Azure Storage Account access key": "AccountKey=" + "a1B2" * 22,
    "text of the form JSON Web Token": "eyJ" + "hbGciOiJIUzI1NiJ9" + ".eyJ" + "zdWIiOiIxIn0" + ".c2lnbmF0dXJl",
}
HARMLESS = (
    'key = os.environ["AWS_SECRET_ACCESS_KEY"]\n',
    'url = f"postgresql://{user}:{password}@{host}/mlflow"\n',
    "pip install git+https://${TOKEN}:x@example.com/x\n",
    ".sk-estimator-doc-link.fitted { color: red } #sk-container-id-1 div.sk-toggleable__content\n",
    '{"sha256": "'
    + "0a1b2c3d" * 8
    + '", "model.layers.0.self_attn.q_proj.weight": "model-00001-of-00002.safetensors"}\n',
    "hf_hub_download, hf_transfer, hf_tokenizer_config_of_the_model\n",
    "task-specific-finetuning-model-v2 and risk-adjusted-returns-of-portfolios\n",
    "1700000000:" + "0a1b2c3d" * 5 + "\n",
)


def fill(folder: Path, *names: str, text: str = "") -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def refusal(path: Path) -> str:
    with pytest.raises(SagefitError) as caught:
        check_texts(load_job(str(path)))
    assert caught.value.exit_code == INVALID
    return caught.value.message


@pytest.mark.parametrize("what", NAMED)
def test_a_file_that_is_known_by_its_name_is_refused(what: str, tmp_path: Path, request: Any) -> None:
    for index, name in enumerate(NAMED[what]):
        folder = tmp_path / str(index)
        folder.mkdir()
        job = write_job(folder)
        fill(folder / "src", name)
        fill(folder / "data", name)
        message = refusal(job)
        assert f"code.source_dir: 'src' holds {what}, {name}; and what is uploaded stays" in message
        assert f'leave it out: code.exclude: ["{name}"]' in message
        assert f'name it: code.allow_sensitive: ["{name}"]' in message
        assert f"inputs.train: 'data' holds {what}, {name};" in message
        lists = {"code.exclude": [name], "inputs.train": {"uri": "data", "exclude": [name]}}
        check_texts(load_job(str(write_job(folder, lists))))
        lists = {"code.allow_sensitive": [name], "inputs.train": {"uri": "data", "allow_sensitive": [name]}}
        check_texts(load_job(str(write_job(folder, lists))))
        single = str((folder / "data" / name).relative_to(folder))
        assert f"{name.rpartition('/')[2]};" in refusal(write_job(folder, lists | {"inputs.train": single}))
    note(request, f"{what} beside the code or in data", PUBLISHED, "refused with path and knob")


def test_ordinary_names_are_not_refused(tmp_path: Path) -> None:
    fill(tmp_path / "data", *ORDINARY)
    load_job(str(write_job(tmp_path)))


@pytest.mark.parametrize("what", TEXTS)
def test_text_that_opens_something_is_refused_with_its_line(what: str, tmp_path: Path, request: Any) -> None:
    job = write_job(tmp_path)
    fill(tmp_path / "src", "config.py", text=f"# settings\nVALUE = 1\n  {TEXTS[what]}\n")
    fill(tmp_path / "data", "notes.txt", text=TEXTS[what])
    message = refusal(job)
    assert f"'src' holds {what}, config.py:3;" in message
    assert f"'data' holds {what}, notes.txt:1;" in message
    assert not any(part in message for part in TEXTS[what].split() if len(part) > 14)
    lists = {"code.exclude": ["config.py"], "inputs.train": {"uri": "data", "allow_sensitive": ["notes.txt"]}}
    check_texts(load_job(str(write_job(tmp_path, lists))))
    note(request, f"{what} in a text file", PUBLISHED, "refused with path and line")


def test_ordinary_text_is_not_refused(tmp_path: Path) -> None:
    job = write_job(tmp_path)
    for index, text in enumerate(HARMLESS):
        fill(tmp_path / "src", f"{index}.py", text=text)
    (tmp_path / "src" / "binary.bin").write_bytes(b"\0" + TEXTS["a token of Hugging Face"].encode())
    (tmp_path / "src" / "latin.txt").write_bytes("na\xefve".encode("latin-1"))
    check_texts(load_job(str(job)))


def test_every_path_of_a_link_counts(tmp_path: Path) -> None:
    job = write_job(tmp_path)
    fill(tmp_path, ".env")
    (tmp_path / "data" / "settings.csv").symlink_to("../.env")
    assert "inputs.train: 'data' holds an environment file, settings.csv;" in refusal(job)


PLACES = {
    "a file of another user": "/etc/passwd",
    "a folder of the kernel": "/proc",
    "a device": "/dev/zero",
    "settings of the kernel": "/sys/kernel",
    "the home folder of whoever applies": "~/.aws/credentials",
}


@pytest.mark.parametrize("what", PLACES)
def test_what_is_not_of_the_project_is_refused(
    what: str, tmp_path: Path, request: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    fill(tmp_path / "home", ".aws/credentials")
    project = tmp_path / "project"
    project.mkdir()
    message = refusal(write_job(project, {"inputs.train": str(Path(PLACES[what]).expanduser())}))
    kernel = "where the kernel shows devices and processes\n  name files or folders of data"
    assert ("is outside of the job's project, and" in message) is (kernel not in message)
    before = "rendered; a plan of it read for ever" if PLACES[what] == "/proc" else "rendered"
    note(request, f"{what} as an input: {PLACES[what]}", before, "refused")


@contextmanager
def watching() -> Iterator[set[str]]:
    """The arguments of every process of this machine meanwhile."""
    seen: set[str] = set()
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.05):
            seen.update(command_lines("\0"))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()


def objects(aws: Aws) -> Iterator[tuple[str, bytes]]:
    """Every version of every object of the cloud."""
    s3 = aws.client("s3")
    for bucket in s3.list_buckets()["Buckets"]:
        for page in s3.get_paginator("list_object_versions").paginate(Bucket=bucket["Name"]):
            for version in page.get("Versions", []):
                where = {"Bucket": bucket["Name"], "Key": version["Key"], "VersionId": version["VersionId"]}
                yield f"{bucket['Name']}/{version['Key']}", s3.get_object(**where)["Body"].read()


@pytest.mark.xdist_group("security-platform")
def test_canaries_are_found_nowhere(sagefit: Sagefit, aws: Aws, cloud_home: Path, tmp_path: Path, request: Any) -> None:
    """A job with secrets beside its code and in its data is refused; with them left out it runs, and they stay here."""
    job = write_job(tmp_path, {"name": "canary"})
    names = [names[0] for names in NAMED.values()]
    for place in ("src", "data"):
        fill(tmp_path / place, *names, text=f"{CANARY} {place}\n")
        fill(tmp_path / place, "notes.txt", text=f"{CANARY} {TEXTS['a token of Hugging Face']}\n")
    before = len(sagefit.calls())
    for step in ("size", "render", "plan", "run"):
        said = sagefit(step, job, check=INVALID)
        assert "'src' holds credentials of AWS, .aws/credentials, and" in said.out + said.err
        assert CANARY not in said.out + said.err
    assert not [call for call in sagefit.calls()[before:] if call["kind"] == "write"]
    assert not (tmp_path / "canary.tfvars").exists()

    lists = {"code.exclude": names, "inputs.train": {"uri": "data", "exclude": names}}
    job = write_job(tmp_path, {"name": "canary", **lists})
    for step in ("render", "plan", "run"):
        said = sagefit(step, job, check=INVALID)
        assert "'src' holds a token of Hugging Face, notes.txt:1;" in said.err
        assert CANARY not in said.out + said.err

    lists = {"code.exclude": [*names, "notes.txt"], "inputs.train": {"uri": "data", "exclude": [*names, "notes.txt"]}}
    job = write_job(tmp_path, {"name": "canary", **lists})
    script = "import os\nfor place in ('.', os.environ['SM_CHANNEL_TRAIN']):\n    print(sorted(os.listdir(place)))\n"
    (tmp_path / "src" / "train.py").write_text(script, encoding="utf-8")
    with watching() as arguments:
        told = [sagefit("plan", job), sagefit("review", job), sagefit("run", job, "--yes")]
    texts = {f"output {index}": done.out + done.err for index, done in enumerate(told)}
    texts |= {"arguments": "\n".join(arguments), "rendered": (tmp_path / "canary.tfvars").read_text(encoding="utf-8")}
    assert any("terraform" in each for each in arguments)
    places = {name: text.encode() for name, text in texts.items()} | dict(objects(aws))
    assert any(name.endswith("/train.py") for name in places)
    files = [path for path in cloud_home.rglob("*") if path.is_file() and not path.is_symlink()]
    places |= {str(path): path.read_bytes() for path in files if path.stat().st_size < 50_000_000}
    logs = aws.client("logs")
    for group in logs.describe_log_groups()["logGroups"]:
        for event in logs.filter_log_events(logGroupName=group["logGroupName"])["events"]:
            places[f"log {group['logGroupName']} {event['eventId']}"] = event["message"].encode()
    assert any(b"['train.py']" in data for name, data in places.items() if name.startswith("log "))
    assert [name for name, data in places.items() if CANARY.encode() in data] == []
    sagefit("destroy", job, "--yes")
    row = "found nowhere: S3, plans, pages, logs, arguments"
    note(request, "canaries in 14 kinds of files of code and data", "ten found in S3", row)


@pytest.mark.xdist_group("security-platform")
def test_what_is_allowed_is_a_finding_and_a_mark(sagefit: Sagefit, tmp_path: Path, request: Any) -> None:
    changes = {"name": "allowed", "code.allow_sensitive": [".env", "notes.txt"]}
    job = write_job(tmp_path, changes)
    fill(tmp_path / "src", ".env", text="LEVEL=1\n")
    fill(tmp_path / "src", "notes.txt", text=TEXTS["a token of Hugging Face"])
    found = json.loads(sagefit("review", job, "--format", "json").out)["findings"]
    told = {
        each["address"].partition("aws_s3_object.")[2]: each["message"]
        for each in found
        if each["rule"] == "upload-secret"
    }
    assert set(told) == {'code[".env"]', 'code["notes.txt"]'}
    assert "an environment file" in told['code[".env"]']
    assert "the job file allows it" in told['code["notes.txt"]']
    note(request, "a file that the job file allows", "the page said: nothing found", "uploaded, and a finding (high)")
