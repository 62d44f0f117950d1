"""Comments and status of a pull request on GitHub, or of a merge request on GitLab, through their REST APIs."""

from __future__ import annotations

import json
import os
import re
import time
import urllib.error
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any
from urllib.parse import quote, urlsplit

from sagefit.errors import FAILED, SagefitError

STATUS = "sagefit/review"
"""The status of a commit; the pipeline of each of several regions has its own below it."""
_TIMEOUT = 30.0
_TRIES = 4
_PAGE = 100  # the most both hosts give at once; their default is less, and a marker may be on any page
_LONGEST_WAIT = 30.0


@dataclass(frozen=True)
class Comment:
    """One comment; ``id`` grows with time."""

    id: int
    author: str
    body: str


class Host(ABC):
    """Reads and writes comments of one pull request. The subclasses hold the differences between the two hosts."""

    name: str
    limit: int  # characters of a comment
    author: str  # whose comments are ours
    change = "PATCH"

    def __init__(self, api: str, comments: str, one: str, headers: Mapping[str, str]) -> None:
        parts = urlsplit(api)
        if parts.scheme != "https" and parts.hostname not in ("127.0.0.1", "localhost"):
            raise SagefitError(f"{self.name}: {api} is no https address", hint="a token is not sent over anything else")
        self._api = api.rstrip("/")
        self._comments, self._one, self._headers = comments, one, headers

    def comments(self) -> Iterator[Comment]:
        """All of them, over all pages."""
        number = 1
        while True:
            page = self.call("GET", f"{self._comments}?per_page={_PAGE}&page={number}")
            for item in page:
                yield self._comment(item)
            if len(page) < _PAGE:
                return
            number += 1

    @abstractmethod
    def status(self, commit: str, *, passed: bool, text: str, url: str | None = None, name: str = STATUS) -> None:
        """Set a status of a commit, which the rules of a branch can ask for."""

    def create(self, body: str) -> None:
        """Add a comment."""
        self.call("POST", self._comments, {"body": body})

    def update(self, comment: Comment, body: str) -> None:
        """Give a comment another text."""
        self.call(self.change, f"{self._one}/{comment.id}", {"body": body})

    def delete(self, comment: Comment) -> None:
        """Remove a comment."""
        self.call("DELETE", f"{self._one}/{comment.id}")

    def call(self, method: str, path: str, data: dict[str, Any] | None = None) -> Any:
        """One request; waits and tries again where the host says so. Raises SagefitError with the host's words."""
        body = None if data is None else json.dumps(data).encode()
        headers = {"User-Agent": "sagefit", "Content-Type": "application/json", **self._headers}
        request = urllib.request.Request(self._api + path, body, headers, method=method)  # noqa: S310 - see __init__
        for left in range(_TRIES - 1, -1, -1):
            try:
                with _OPENER.open(request, timeout=_TIMEOUT) as answer:
                    text = answer.read()
                    return json.loads(text) if text else None
            except urllib.error.HTTPError as error:
                wait = _wait(method, error, _TRIES - left)
                if wait is None or not left:
                    raise self._failure(method, path, error) from None
                time.sleep(wait)
            except (OSError, HTTPException, ValueError) as error:
                if not left or method == "POST":
                    raise SagefitError(
                        f"{self.name}: {method} {path}: {error}", hint="see whether the host answers", exit_code=FAILED
                    ) from None
        raise AssertionError("the last try returns or raises")

    @abstractmethod
    def _comment(self, item: dict[str, Any]) -> Comment:
        """A comment as the host writes it."""

    def _failure(self, method: str, path: str, error: urllib.error.HTTPError) -> SagefitError:
        try:
            said = json.loads(error.read()).get("message", "")
        except (OSError, ValueError, AttributeError):
            said = ""
        hint = {
            401: "the token is not valid (any more)",
            403: "the token may not write here: on GitHub the job needs pull-requests: write, and for a status "
            "statuses: write, among its permissions; pull requests from forks have a token that only reads",
            404: "see whether the project and the number are right, and whether the token may read them",
        }.get(error.code, "see the host's words")
        text = f"{self.name} answered {error.code} to {method} {path}: {str(said)[:300] or error.reason}"
        return SagefitError(text, hint=hint, exit_code=FAILED)


class GitHub(Host):
    """A pull request. Comments of the workflow's own token are by ``github-actions[bot]``."""

    name = "GitHub"
    limit = 65_536

    def __init__(self, api: str, project: str, number: int, token: str, author: str | None = None) -> None:
        if not re.fullmatch(r"[\w.-]+/[\w.-]+", project):
            raise SagefitError(f"GITHUB_REPOSITORY: {project!r} is not OWNER/NAME")
        self.author = author or "github-actions[bot]"
        self._repository = f"/repos/{project}"
        issues = f"{self._repository}/issues"
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"}
        headers["X-GitHub-Api-Version"] = "2022-11-28"
        super().__init__(api, f"{issues}/{number}/comments", f"{issues}/comments", headers)

    def status(self, commit: str, *, passed: bool, text: str, url: str | None = None, name: str = STATUS) -> None:
        """As every host; a description has at most 140 characters."""
        said = {"state": "success" if passed else "failure", "context": name, "description": _cut(text, 140)}
        self.call("POST", f"{self._repository}/statuses/{commit}", said | ({"target_url": url} if url else {}))

    def _comment(self, item: dict[str, Any]) -> Comment:
        return Comment(item["id"], (item.get("user") or {}).get("login", ""), item.get("body") or "")


class GitLab(Host):
    """A merge request. The API tells which user our comments are from; a job's own token may not write comments."""

    name = "GitLab"
    limit = 1_000_000
    change = "PUT"

    def __init__(self, api: str, project: str, number: int, token: str, author: str | None = None) -> None:
        self._project = f"/projects/{quote(project, safe='')}"
        notes = f"{self._project}/merge_requests/{number}/notes"
        super().__init__(api, notes, notes, {"PRIVATE-TOKEN": token})
        self.author = author or str(self.call("GET", "/user")["username"])

    def status(self, commit: str, *, passed: bool, text: str, url: str | None = None, name: str = STATUS) -> None:
        """As every host; in the pipeline that this runs in, so that it counts for the merge request."""
        said = {"state": "success" if passed else "failed", "name": name, "description": _cut(text, 255)}
        said |= {"pipeline_id": pipeline} if (pipeline := os.environ.get("CI_PIPELINE_ID")) else {}
        self.call("POST", f"{self._project}/statuses/{commit}", said | ({"target_url": url} if url else {}))

    def _comment(self, item: dict[str, Any]) -> Comment:
        return Comment(item["id"], item["author"]["username"], item["body"])


def from_environment(number: int | None = None, author: str | None = None) -> tuple[Host, int]:
    """The host of the pipeline that this runs in, and the number of the run, from the variables that the host sets.

    Raises SagefitError that names the variable which is missing.
    """
    if os.environ.get("GITLAB_CI"):
        request = number or _number("CI_MERGE_REQUEST_IID")
        host: Host = GitLab(_need("CI_API_V4_URL"), _need("CI_PROJECT_ID"), request, _need("GITLAB_TOKEN"), author)
        return host, _number("CI_PIPELINE_IID")
    request = number or _of_ref(os.environ.get("GITHUB_REF", ""))
    api = os.environ.get("GITHUB_API_URL", "https://api.github.com")
    host = GitHub(api, _need("GITHUB_REPOSITORY"), request, _need("GITHUB_TOKEN"), author)
    return host, _number("GITHUB_RUN_NUMBER")


def status_name(region: str = "") -> str:
    """The name of the status that a pipeline sets; with a ``region`` where there are several."""
    return f"{STATUS}/{region}" if region else STATUS


def run_address() -> str | None:
    """Where the run of this pipeline is shown, by the variables that the host sets."""
    if os.environ.get("GITLAB_CI"):
        return os.environ.get("CI_JOB_URL")
    server, project, run = (os.environ.get(f"GITHUB_{name}") for name in ("SERVER_URL", "REPOSITORY", "RUN_ID"))
    return f"{server}/{project}/actions/runs/{run}" if server and project and run else None


def file_addresses(commit: str) -> str:
    """What a path is added to for the page of a file at ``commit``; empty outside of a pipeline."""
    if os.environ.get("GITLAB_CI"):
        project = os.environ.get("CI_PROJECT_URL")
        return f"{project}/-/blob/{commit}/" if project else ""
    server, project = (os.environ.get(f"GITHUB_{name}") for name in ("SERVER_URL", "REPOSITORY"))
    return f"{server}/{project}/blob/{commit}/" if server and project else ""


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _of_ref(ref: str) -> int:
    found = re.fullmatch(r"refs/pull/(\d+)/(merge|head)", ref)
    if not found:
        raise SagefitError(f"GITHUB_REF: {ref!r} is no pull request", hint="name it: --number N")
    return int(found[1])


def _need(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        raise SagefitError(f"{name} is not set", hint="run in a pipeline of GitHub or GitLab, or set it")
    return value


def _number(name: str) -> int:
    value = _need(name)
    if not value.isdigit():
        raise SagefitError(f"{name}: {value!r} is no number")
    return int(value)


def _wait(method: str, error: urllib.error.HTTPError, tried: int) -> float | None:
    """Seconds until another try; None when a new try is useless or could write a second comment."""
    after = error.headers.get("Retry-After") or ""
    limited = error.code == 429 or (error.code == 403 and bool(after))
    if not limited and (error.code not in (502, 503, 504) or method == "POST"):
        return None
    return min(float(after) if after.isdigit() else 2.0 ** (tried - 1), _LONGEST_WAIT)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the token to another address."""

    def redirect_request(self, *_: object) -> None:
        """No other address."""


_OPENER = urllib.request.build_opener(_NoRedirect)
