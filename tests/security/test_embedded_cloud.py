"""The embedded cloud answers its owner alone: raw requests, another Unix user, a container, and a web page."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from cloud.aws_user import ROLE, Aws
from sagefit.cloud import control, record
from sagefit.cloud.keys import RoleKeys, new_key
from sagefit_cloud.door import Door
from security.conftest import note

EVIL = "http://evil.example"
ENV = 'eval "$(sagefit cloud env)"'
FOREIGN = "SAGEFIT" + "0" * 32


def signed(key: str, service: str) -> dict[str, str]:
    """The header of a request that names a key, with a signature that is made up."""
    scope = f"Credential={key}/20260101/us-east-1/{service}/aws4_request"
    return {"Authorization": f"AWS4-HMAC-SHA256 {scope}, SignedHeaders=host, Signature={'0' * 64}"}


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: str

    @property
    def code(self) -> str:
        """The name of the error."""
        found = re.search(r'<Code>(\w+)</Code>|"__type": "(\w+)"', self.body)
        return (found[1] or found[2]) if found else ""


def ask(
    port: int, method: str, path: str, headers: dict[str, str], body: str = "", *, host: str | None = "own"
) -> Answer:
    """Send a request as it is written, and read the answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        if host is not None:
            connection.putheader("Host", f"127.0.0.1:{port}" if host == "own" else host.format(port=port))
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body.encode())
        response = connection.getresponse()
        names = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, names, response.read().decode())
    finally:
        connection.close()


@dataclass(frozen=True)
class Attack:
    """A request, by whom, and the code of its refusal; ``{owner}`` in a header is the owner's key."""

    name: str
    code: str
    method: str = "POST"
    path: str = "/"
    headers: dict[str, str] = field(default_factory=dict)
    body: str = ""
    host: str | None = "own"
    before: str = "let in"


TRAIN = {"X-Amz-Target": "SageMaker.CreateTrainingJob", "Content-Type": "application/x-amz-json-1.1"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
CREATE_ROLE = "Action=CreateRole&Version=2010-05-08&RoleName=evil&AssumeRolePolicyDocument=%7B%7D"
LIST = {"method": "GET", "headers": signed("{owner}", "s3")}
ATTACKS = [
    Attack("no key: a training job", "MissingAuthenticationTokenException", headers=TRAIN, body="{}"),
    Attack("no key: an object", "MissingAuthenticationToken", "PUT", "/bucket-data/evil", body="evil"),
    Attack("no key: a role by a form", "MissingAuthenticationToken", headers=FORM, body=CREATE_ROLE),
    Attack(
        "no key: web identity",
        "MissingAuthenticationToken",
        headers=FORM,
        body="Action=AssumeRoleWithWebIdentity",
        before="an error inside",
    ),
    Attack(
        "made-up key: a training job", "UnrecognizedClientException", headers={**TRAIN, **signed(FOREIGN, "sagemaker")}
    ),
    Attack("made-up key: an object", "InvalidAccessKeyId", "PUT", "/bucket-data/evil", signed(FOREIGN, "s3"), "evil"),
    Attack("made-up key: a role", "InvalidClientTokenId", headers={**FORM, **signed(FOREIGN, "iam")}, body=CREATE_ROLE),
    Attack("made-up key: old signature", "InvalidClientTokenId", "GET", headers={"Authorization": "AWS evil:c2ln"}),
    Attack("made-up key: signed URL", "InvalidClientTokenId", "GET", f"/bucket-data?X-Amz-Credential={FOREIGN}%2Fx"),
    Attack("made-up key: what boto3 was given before", "InvalidAccessKeyId", "GET", headers=signed("embedded", "s3")),
    Attack(
        "no header, two keys in the URL",
        "MissingAuthenticationToken",
        "GET",
        "/?AWSAccessKeyId={owner}&AWSAccessKeyId=x",
    ),
    Attack("key that is no key", "MissingAuthenticationToken", "GET", headers={"Authorization": "Bearer {owner}"}),
    Attack("foreign name (DNS rebinding)", "AccessDenied", host="evil.example:{port}", **LIST),  # type: ignore[arg-type]
    Attack("name that begins like ours", "AccessDenied", host="127.0.0.1.evil.example:{port}", **LIST),  # type: ignore[arg-type]
    Attack("another port", "AccessDenied", host="127.0.0.1:1", **LIST),  # type: ignore[arg-type]
    Attack("no name", "AccessDenied", host=None, before="an error inside", **LIST),  # type: ignore[arg-type]
    Attack("web page with the owner's key", "AccessDenied", "GET", headers={"Origin": EVIL, **signed("{owner}", "s3")}),
    Attack(
        "file or frame with the owner's key",
        "AccessDenied",
        "GET",
        headers={"Origin": "null", **signed("{owner}", "s3")},
    ),
    Attack(
        "web page asks beforehand (CORS)",
        "AccessDenied",
        "OPTIONS",
        headers={"Origin": EVIL, "Access-Control-Request-Method": "POST"},
        before="let in, any origin",
    ),
    Attack("moto's interface: all data", "MissingAuthenticationToken", "GET", "/moto-api/data.json"),
    Attack("moto's interface: empty the cloud", "MissingAuthenticationToken", path="/moto-api/reset"),
    Attack(
        "moto's interface: made-up key", "InvalidAccessKeyId", path="/moto-api/reset", headers=signed(FOREIGN, "s3")
    ),
    Attack(
        "credentials of an instance", "MissingAuthenticationToken", "GET", "/latest/meta-data/iam/security-credentials/"
    ),
    Attack("state of the cloud", "MissingAuthenticationToken", "GET", record.STATUS_PATH, before="404"),
]


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_others_are_refused(me: record.Record, aws: Aws, attack: Attack, request: pytest.FixtureRequest) -> None:
    keys, roles = aws.keys("bucket-data"), aws.client("iam").list_roles()["Roles"]
    headers = {name: value.format(owner=me.access_key) for name, value in attack.headers.items()}
    path = attack.path.format(owner=me.access_key)
    answer = ask(me.port, attack.method, path, headers, attack.body, host=attack.host)
    note(request, attack.name, attack.before, f"{answer.status} {answer.code}")
    assert (answer.status, answer.code) == (403, attack.code), answer.body
    assert not [name for name in answer.headers if name.startswith("access-control")]
    says = ENV if "Denied" not in attack.code else f"127.0.0.1:{me.port}" if "Origin" not in headers else "web pages"
    assert says in json.loads(answer.body)["message"] if "json" in answer.headers["content-type"] else answer.body
    assert (aws.keys("bucket-data"), aws.client("iam").list_roles()["Roles"]) == (keys, roles)


NAMES = [(80, "127.0.0.1"), (80, "localhost:80"), (8080, "LOCALHOST:8080")]
OTHERS = [(8080, "127.0.0.1"), (80, "127.0.0.1:8080"), (80, "[::1]"), (80, "127.0.0.1:80,evil.example"), (80, "")]


@pytest.mark.parametrize(("port", "host"), [*NAMES, *OTHERS])
def test_a_client_leaves_out_the_port_of_http_alone(port: int, host: str) -> None:
    door = Door(port, owner=new_key(), roles=RoleKeys())
    refusal = door.refusal({"HTTP_HOST": host, "HTTP_AUTHORIZATION": signed(door.owner.id, "s3")["Authorization"]})
    assert (refusal is None) == ((port, host) in NAMES)


@pytest.mark.parametrize("path", ["/moto-api/data.json", record.STATUS_PATH])
def test_the_owner_comes_in(me: record.Record, path: str) -> None:
    answer = ask(me.port, "GET", path, signed(me.access_key, "s3"))
    assert answer.status == 200, answer.body
    assert not [name for name in answer.headers if name.startswith("access-control")]
    assert ask(me.port, "GET", path, signed(me.access_key, "s3"), host="localhost:{port}").status == 200


def test_keys_that_the_owner_makes_are_let_in_while_they_are_active(aws: Aws, me: record.Record) -> None:
    iam = aws.client("iam")
    iam.create_user(UserName="colleague")
    allow = {"Effect": "Allow", "Action": "s3:ListBucket", "Resource": "arn:aws:s3:::bucket-data"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [allow]})
    iam.put_user_policy(UserName="colleague", PolicyName="lists", PolicyDocument=policy)
    key = iam.create_access_key(UserName="colleague")["AccessKey"]["AccessKeyId"]
    assumed = aws.client("sts").assume_role(RoleArn=ROLE, RoleSessionName="me")["Credentials"]["AccessKeyId"]
    for known in (key, assumed):
        assert ask(me.port, "GET", "/bucket-data", signed(known, "s3")).status == 200
        assert ask(me.port, "GET", "/moto-api/data.json", signed(known, "moto")).code == "AccessDenied"
    assert ask(me.port, "GET", "/bucket-artifacts", signed(key, "s3")).code == "AccessDenied"
    iam.update_access_key(UserName="colleague", AccessKeyId=key, Status="Inactive")
    assert ask(me.port, "GET", "/bucket-data", signed(key, "s3")).code == "InvalidAccessKeyId"


def test_a_url_that_was_signed_beforehand_is_let_in(aws: Aws, me: record.Record) -> None:
    aws.put("shared", "what is shared")
    url = aws.client("s3").generate_presigned_url("get_object", Params={"Bucket": "bucket-data", "Key": "shared"})
    answer = ask(me.port, "GET", url.removeprefix(aws.endpoint), {})
    assert (answer.status, answer.body) == (200, "what is shared")


def test_a_bucket_that_allows_web_pages_allows_none_here(aws: Aws, me: record.Record) -> None:
    rule = {"AllowedMethods": ["GET"], "AllowedOrigins": ["*"], "AllowedHeaders": ["*"]}
    aws.client("s3").create_bucket(Bucket="bucket-open")
    aws.client("s3").put_bucket_cors(Bucket="bucket-open", CORSConfiguration={"CORSRules": [rule]})
    aws.put("page", "text", bucket="bucket-open")
    answer = ask(me.port, "GET", "/bucket-open/page", signed(me.access_key, "s3"))
    assert answer.status == 200
    assert not [name for name in answer.headers if name.startswith("access-control")]
    assert ask(me.port, "GET", "/bucket-open/page", {"Origin": EVIL, **signed(me.access_key, "s3")}).status == 403


def test_a_client_with_an_old_key_is_told_how_to_get_the_new_one(aws: Aws) -> None:
    old = Aws({**aws.environment, "AWS_ACCESS_KEY_ID": FOREIGN})
    for act in (
        lambda: old.client("sagemaker").list_training_jobs(),
        lambda: old.client("iam").list_roles(),
        lambda: old.put("large", "x" * 20_000_000),  # its sender reads the answer, though nobody wanted its body
    ):
        with pytest.raises(ClientError) as refused:
            act()
        assert "sagefit cloud env" in refused.value.response["Error"]["Message"]
        assert refused.value.response["ResponseMetadata"]["RetryAttempts"] == 0
    old.close()


def test_each_start_has_a_key_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAGEFIT_HOME", str(tmp_path))
    seen = []
    for _ in range(2):
        control.up()
        try:
            found = record.load()
            assert found is not None
            environment = control.environment()
            assert (environment["AWS_ACCESS_KEY_ID"], environment["AWS_SECRET_ACCESS_KEY"]) == (
                found.access_key,
                found.secret_key,
            )
            assert found.secret_key not in repr(found)
            assert not re.search(f"{found.access_key}|{found.secret_key}", str(control.status()))
            seen.append((found.access_key, found.secret_key))
        finally:
            control.down()
    assert len({text for pair in seen for text in pair}) == 4


CONTAINER = """
import json, os, urllib.error, urllib.request
key, place = os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_ENDPOINT_URL"]
def ask(path, method="GET"):
    scope = f"Credential={key}/20260101/us-east-1/s3/aws4_request"
    header = {"Authorization": f"AWS4-HMAC-SHA256 {scope}, SignedHeaders=host, Signature=0"}
    try:
        return urllib.request.urlopen(urllib.request.Request(place + path, headers=header, method=method)).status
    except urllib.error.HTTPError as error:
        return error.code
asked = [ask("/bucket-data"), ask("/moto-api/data.json"), ask("/moto-api/reset", "POST"), ask("/_sagefit/status")]
print("asked", json.dumps([key, asked]))
"""


def test_a_container_works_with_a_key_that_cannot_control_the_cloud(
    aws: Aws, me: record.Record, request: pytest.FixtureRequest
) -> None:
    lines = aws.lines(aws.run(CONTAINER)["TrainingJobName"])
    (line,) = (line for line in lines if line.startswith("asked"))
    key, answers = json.loads(line.partition(" ")[2])
    note(request, "container: moto's interface", "let in", f"{answers[2]} AccessDenied")
    assert key != me.access_key
    assert answers == [200, 403, 403, 403]
    assert ask(me.port, "GET", "/moto-api/data.json", signed(key, "moto")).code == "AccessDenied"


FIFOS = """
import os, shutil
print("temporary", os.environ["TMPDIR"], flush=True)
os.mkfifo(os.environ["SAGEFIT_ML_ROOT"] + "/output/failure")
folder = os.path.realpath(os.environ["TMPDIR"])
shutil.rmtree(folder)
os.mkfifo(folder)
os.unlink(os.environ["TMPDIR"])  # a short name of it
os.mkfifo(os.environ["TMPDIR"])
raise SystemExit(3)
"""


def test_a_container_that_leaves_fifos_behind_holds_nothing_up(aws: Aws, request: pytest.FixtureRequest) -> None:
    job = aws.run(FIFOS)
    assert job["TrainingJobStatus"] == "Failed"
    assert job["FailureReason"] == "AlgorithmError: , exit code: 3"
    (line,) = (line for line in aws.lines(job["TrainingJobName"]) if line.startswith("temporary"))
    deadline = time.monotonic() + 20
    while os.path.lexists(line.split()[1]) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not os.path.lexists(line.split()[1])
    note(request, "container: FIFOs as failure file and TMPDIR", "the job never ends", "Failed, all removed")


INTRUDER = """
import http.client, json, sys
port, folder, pid = int(sys.argv[1]), sys.argv[2], sys.argv[3]
read = []
for path in (folder, folder + "/cloud.json", folder + "/cloud.log", f"/proc/{pid}/environ", f"/proc/{pid}/mem"):
    try:
        open(path).read(); read.append(path)
    except PermissionError:
        pass
connection = http.client.HTTPConnection("127.0.0.1", port)
connection.request("POST", "/", "{}", json.loads(sys.argv[4]))
answer = connection.getresponse()
print(json.dumps([read, answer.status, json.loads(answer.read())["__type"]]))
"""


# An interpreter of somebody's own lies where others may not look; the system's does not.
PYTHONS = (os.path.realpath(sys.executable), "/usr/bin/python3", "/usr/local/bin/python3")


def _as_another_user(command: list[str]) -> subprocess.CompletedProcess[str]:
    other: dict[str, Any] = {"user": 54_321, "group": 54_321, "extra_groups": []}
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd="/", env={}, timeout=60, **other)


def _may_be_run(python: str) -> bool:
    try:
        return _as_another_user([python, "-I", "-S", "-c", "import http.client"]).returncode == 0
    except OSError:
        return False


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can run a program as another user")
def test_another_user_of_the_machine_is_refused(
    me: record.Record, cloud_home: Path, request: pytest.FixtureRequest
) -> None:
    python = next((each for each in PYTHONS if _may_be_run(each)), None)
    if python is None:
        pytest.skip(f"none of {', '.join(PYTHONS)} can be run by another user")
    headers = json.dumps({**TRAIN, **signed("embedded", "sagemaker")})
    command = [python, "-I", "-S", "-c", INTRUDER, str(me.port), str(cloud_home / "cloud"), str(me.pid), headers]
    done = _as_another_user(command)
    assert done.returncode == 0, done.stderr
    read, status, code = json.loads(done.stdout)
    note(
        request,
        "another user: a training job, and our files",
        "let in, ran as the owner",
        f"{status} {code}, none read",
    )
    assert read == []
    assert (status, code) == (403, "UnrecognizedClientException")


PAGE = """<!doctype html><title>evil</title><body><iframe name=frame></iframe><script>
const place = "http://127.0.0.1:PORT", kinds = {};
const within = (promise) => Promise.race([promise, new Promise((done) => setTimeout(() => done("nothing"), 5000))]);
const event = (thing, good, bad) => within(new Promise((done) => {
  thing.addEventListener(good, () => done("in")); thing.addEventListener(bad, () => done("refused")); }));
const plain = {"content-type": "text/plain"}, typed = {"content-type": "application/x-www-form-urlencoded"};
const signed = {...typed, authorization: "SIGNED"};
(async () => {
  kinds.own = await within(fetch("/own").then((answer) => answer.text()));
  kinds.read = await within(fetch(place + "/bucket-data").then(() => "in", () => "refused"));
  const role = {method: "POST", headers: signed, body: "FORM"};
  kinds.role = await within(fetch(place, role).then(() => "in", () => "refused"));
  const blind = {method: "POST", mode: "no-cors", headers: plain, body: "Action=CreateRole"};
  kinds.blind = await within(fetch(place + "/blind", blind).then((answer) => answer.type, () => "refused"));
  const form = document.createElement("form");
  Object.assign(form, {method: "post", action: place + "/form", target: "frame"});
  for (const pair of "FORM".split("&")) {
    const [name, value] = pair.split("=");
    form.append(Object.assign(document.createElement("input"), {name, value: decodeURIComponent(value)}));
  }
  document.body.append(form);
  const loaded = within(new Promise((done) => { frames.frame.frameElement.onload = () => done("loaded"); }));
  form.submit();
  kinds.form = await loaded;
  const image = new Image(), shown = event(image, "load", "error");
  image.src = place + "/image";
  kinds.image = await shown;
  kinds.socket = await event(new WebSocket("ws://127.0.0.1:PORT/socket"), "open", "error");
  await fetch("/done", {method: "POST", body: JSON.stringify(kinds)});
})();
</script>"""


# What the same page came to when the cloud still let everybody in.
BEFORE_IN_A_BROWSER = {
    "read": "let in",
    "role": "let in, the role was made",
    "blind": "let in",
    "form": "let in",
    "image": "let in",
    "socket": "400",
}


class Evil(ThreadingHTTPServer):
    """A web page's server, and what the page found."""

    def __init__(self, page: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.page, self.found, self.done = page, "", threading.Event()


class _Handler(BaseHTTPRequestHandler):
    server: Evil

    def do_GET(self) -> None:
        body = b"own" if self.path == "/own" else self.server.page.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.server.found = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.send_response(204)
        self.end_headers()
        self.server.done.set()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextlib.contextmanager
def visiting(browser: list[str], page: str, folder: Path) -> Iterator[Evil]:
    """A browser that looks at a page."""
    with Evil(page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "TMPDIR": str(folder)}
        with (folder / "browser.log").open("w") as log:
            command = [*browser, f"http://127.0.0.1:{server.server_port}/"]
            seen = subprocess.Popen(command, stdout=log, stderr=log, env=environment, start_new_session=True)
            try:
                yield server
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(seen.pid, 9)
                seen.wait()
                server.shutdown()


def test_a_web_page_is_refused(
    me: record.Record, aws: Aws, cloud_home: Path, browser: list[str], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    roles = aws.client("iam").list_roles()["Roles"]
    log = cloud_home / "cloud" / "cloud.log"
    before = log.read_text(encoding="utf-8").count("refused:")
    texts = {"PORT": str(me.port), "FORM": CREATE_ROLE, "SIGNED": signed(FOREIGN, "iam")["Authorization"]}
    page = re.sub("|".join(texts), lambda found: texts[found[0]], PAGE)
    with visiting(browser, page, tmp_path) as server:
        assert server.done.wait(90), (tmp_path / "browser.log").read_text(encoding="utf-8")
    kinds = json.loads(server.found)
    assert kinds.pop("own") == "own"
    # A page learns nothing from "opaque" and from a frame of another origin; that they were refused is in the log.
    refused = dict.fromkeys(("read", "role", "image", "socket"), "refused")
    assert kinds == {**refused, "blind": "opaque", "form": "loaded"}
    assert log.read_text(encoding="utf-8").count("refused:") - before >= len(kinds)
    assert aws.client("iam").list_roles()["Roles"] == roles
    for kind, was in BEFORE_IN_A_BROWSER.items():
        note(request, f"web page in Chromium: {kind}", was, "refused")
