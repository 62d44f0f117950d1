"""A gate before the embedded cloud: it lets every request through, and holds the ones that a test waits for.

So a test knows at which moment it sends its signal: a request that is held is one that Terraform waits for.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_PATIENCE = 120.0  # seconds
_OWN = {"host", "connection", "transfer-encoding"}  # headers of one connection


@dataclass
class Held:
    """The requests to hold: all that ``match`` says yes to, but for some that come first.

    Of the first one that is held the cloud may do what it asks for, so that only the answer is missing.
    """

    match: Callable[[str], bool]
    after: int = 0  # so many pass
    answered: bool = False
    reached: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)
    lost: bool = False  # those that are held never arrive

    def wait(self) -> None:
        """Wait until it is held."""
        assert self.reached.wait(_PATIENCE), "no such request came"

    def release(self, *, lost: bool = False) -> None:
        """Let them through, or lose them: whoever still wants something asks again."""
        self.lost = lost
        self.released.set()


class Gate(ThreadingHTTPServer):
    """The gate, on a port of its own. ``seen`` has all requests, each as one text."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.to = 0  # the port of the cloud
        self.seen: list[str] = []
        self._held: Held | None = None
        self._lock = threading.Lock()

    def serve(self) -> None:
        """Let requests through from now on, until ``shutdown``."""
        threading.Thread(target=self.serve_forever, name="gate", daemon=True).start()

    @contextlib.contextmanager
    def holding(self, held: Held) -> Iterator[Held]:
        """Hold a request of those that come from now on."""
        self._held = held
        try:
            yield held
        finally:
            held.release(lost=held.lost)
            self._held = None

    def meets(self, request: str) -> tuple[Held | None, bool]:
        """What holds this request, if anything, and whether it is held when it has been answered."""
        with self._lock:
            self.seen.append(request)
            held = self._held
            if held is None or held.released.is_set() or not held.match(request):
                return None, False
            if held.after:
                held.after -= 1
                return None, False
            answered, held.answered = held.answered, False
            return held, answered

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: clients are killed here."""


class _Handler(BaseHTTPRequestHandler):
    server: Gate
    protocol_version = "HTTP/1.1"

    def _do(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        held, answered = self.server.meets(_told(self, body))
        if held and not answered:
            held.reached.set()
            held.released.wait(_PATIENCE)
            if held.lost:
                self.close_connection = True
                return
        if _is_gone(self.connection):  # its last words must not come true after a test has looked what there is
            self.close_connection = True
            return
        connection = http.client.HTTPConnection("127.0.0.1", self.server.to, timeout=_PATIENCE)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _OWN}
        headers["Host"] = (self.headers["Host"] or "").replace(str(self.server.server_port), str(self.server.to))
        with contextlib.closing(connection):
            connection.request(self.command, self.path, body or None, headers)
            answer = connection.getresponse()
            content = answer.read()
        if held and answered:
            held.reached.set()
            held.released.wait(_PATIENCE)
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in {*_OWN, "content-length", "server", "date"}:
                self.send_header(name, value)
        self.send_header("Content-Length", answer.getheader("Content-Length") or str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _do  # noqa: N815 - their names there

    def log_message(self, format: str, *args: object) -> None:
        pass


def _is_gone(client: socket.socket) -> bool:
    try:
        return client.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def _told(handler: BaseHTTPRequestHandler, body: bytes) -> str:
    """A request in one text: method, path, who asks, the operation where a header has it, and a body that is small."""
    headers = " ".join(handler.headers.get(name) or "" for name in ("User-Agent", "X-Amz-Target"))
    return f"{handler.command} {handler.path} {headers} {body[:4000].decode(errors='replace')}"
