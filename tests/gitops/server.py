"""A small server that behaves like the APIs of the two hosts, neither of which can run here.

What it does as they do: tokens, pages of at most 100 and 20 or 30 by default, ids that grow, other people's comments,
limits of length, states of a commit, errors as JSON.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from sagefit.gitops.hosts import GitHub, GitLab, Host

TOKEN = "token-canary-77"
BOT, OTHER = "github-actions[bot]", "mallory"


@dataclass
class Server:
    """Comments, and what was asked of the server.

    ``fail`` answers the next requests with these codes; while the server is ``down`` it cuts every connection.
    """

    port: int = 0
    comments: list[dict[str, Any]] = field(default_factory=list)
    asked: list[tuple[str, str]] = field(default_factory=list)
    fail: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    statuses: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    down: bool = False

    @property
    def api(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def github(self, token: str = TOKEN) -> Host:
        return GitHub(self.api, "ada/models", 7, token)

    def gitlab(self) -> Host:
        return GitLab(self.api, "ml/ada/models", 7, TOKEN)

    def add(self, body: str, author: str = BOT, request: int = 7) -> int:
        """A comment on a pull request; returns its id."""
        number = 1 + max((comment["id"] for comment in self.comments), default=0)
        user = {"login": author, "username": author}
        self.comments.append({"id": number, "body": body, "user": user, "author": user, "request": request})
        return number

    def bodies(self, author: str = BOT, request: int = 7) -> list[str]:
        return [each["body"] for each in self.comments if (each["user"]["login"], each["request"]) == (author, request)]

    def writes(self) -> list[str]:
        return [method for method, _ in self.asked if method != "GET"]


@contextmanager
def serving(port: int = 0) -> Iterator[Server]:
    """It, on a free port of loopback or on ``port``."""
    found = Server()

    class Handler(BaseHTTPRequestHandler):
        def _do(self) -> None:
            if found.down:
                return
            length = int(self.headers.get("Content-Length") or 0)
            data = json.loads(self.rfile.read(length)) if length else {}
            found.asked.append((self.command, self.path))
            code, answer, headers = _answer(found, self.command, self.path, dict(self.headers), data)
            text = b"" if answer is None else json.dumps(answer).encode()
            self.send_response(code)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _do  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as http:
        found.port = http.server_address[1]
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield found
        finally:
            http.shutdown()
            thread.join()


def _answer(
    server: Server, method: str, path: str, headers: dict[str, str], data: dict[str, Any]
) -> tuple[int, Any, dict[str, str]]:
    if server.fail:
        code, more = server.fail.pop(0)
        return code, {"message": "not now"}, more
    if TOKEN not in (headers.get("Authorization", "").removeprefix("Bearer "), headers.get("Private-Token")):
        return 401, {"message": "Bad credentials"}, {}
    url = urlsplit(path)
    if url.path == "/user":
        return 200, {"username": BOT}, {}
    status = re.fullmatch(r"/(repos/ada/models|projects/ml%2Fada%2Fmodels)/statuses/([0-9a-f]{40})", url.path)
    if status and method == "POST":
        states = {"repos": ("success", "failure"), "projects": ("success", "failed")}[url.path.split("/")[1]]
        if data["state"] not in states or len(data["description"]) > (140 if "failure" in states else 255):
            return 422, {"message": "Validation Failed"}, {}
        server.statuses.append((status[2], data))
        return 201, {}, {}
    github, gitlab = "/repos/ada/models/issues", "/projects/ml%2Fada%2Fmodels/merge_requests"
    verb, default = ("PATCH", 30) if url.path.startswith(github) else ("PUT", 20)
    if found := re.fullmatch(rf"{github}/(\d+)/comments|{gitlab}/(\d+)/notes", url.path):
        request = int(found[1] or found[2])
        if method == "POST":
            if len(data["body"]) > 65_536 and verb == "PATCH":
                return 422, {"message": "Body is too long"}, {}
            return 201, {"id": server.add(data["body"], request=request)}, {}
        query = {name: int(values[0]) for name, values in parse_qs(url.query).items()}
        size, page = min(query.get("per_page", default), 100), query.get("page", 1)
        here = [comment for comment in server.comments if comment["request"] == request]
        return 200, here[(page - 1) * size : page * size], {}
    one = re.fullmatch(rf"({github}/comments|{gitlab}/\d+/notes)/(\d+)", url.path)
    known = [comment for comment in server.comments if one and comment["id"] == int(one[2])]
    if not known or method not in (verb, "DELETE"):
        return 404, {"message": "Not Found"}, {}
    if method == "DELETE":
        server.comments.remove(known[0])
        return 204, None, {}
    known[0]["body"] = data["body"]
    return 200, known[0], {}
