"""Stands between the Terraform commands of the tests and the AWS provider; ``attached.py`` says why."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format

from sagefit.paths import ROOT, home
from sagefit.toolchain import terraform_binary, terraform_environment
from terraform.attached import ITSELF, REATTACH

_MANY = 32  # questions at once; Terraform asks for ten resources at a time
_NO_LIMIT = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
_CONFIGURE, _SCHEMA = "Configure", "GetSchema"  # of protocol 5
_READ = (".tf", ".hcl", ".py", ".md", ".json", ".yaml", ".j2")
_ROOT = """
terraform {
  required_providers {
    aws = { source = "hashicorp/aws" }
  }
}
"""
# What is read of the answer: https://github.com/hashicorp/terraform/blob/v1.11.4/docs/plugin-protocol/tfplugin5.8.proto
# (GetProviderSchema.Response). A map is a list of keys and values; all that is not listed here is kept as it is.
_ANSWER = """
name: "narrowed.proto" package: "narrowed" syntax: "proto3"
message_type {
  name: "Type"
  field { name: "name" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
  field { name: "schema" number: 2 type: TYPE_BYTES label: LABEL_OPTIONAL }
}
message_type {
  name: "Answer"
  field { name: "resources" number: 2 type: TYPE_MESSAGE type_name: ".narrowed.Type" label: LABEL_REPEATED }
  field { name: "data_sources" number: 3 type: TYPE_MESSAGE type_name: ".narrowed.Type" label: LABEL_REPEATED }
}
"""


def used(root: Path = ROOT) -> set[str]:
    """The names in a checkout that are those of types, or could be."""
    files = [*root.glob("*.tf")]
    for folder in ("modules", "job", "python", "tests", "examples", "docs", "policies"):
        files += [path for path in (root / folder).rglob("*") if path.suffix in _READ]
    texts = (path.read_text(encoding="utf-8", errors="replace") for path in files if path.is_file())
    return {name for text in texts for name in re.findall(r"\baws_[a-z0-9_]+", text)}


def narrowed(schema: bytes, names: Iterable[str]) -> bytes:
    """The answer to ``GetSchema`` without the resources and data sources that have other names."""
    file = text_format.Parse(_ANSWER, descriptor_pb2.FileDescriptorProto())
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    answer = message_factory.GetMessageClass(pool.FindMessageTypeByName("narrowed.Answer")).FromString(schema)
    wanted = set(names)
    for types in (answer.resources, answer.data_sources):
        kept = [each for each in types if each.name in wanted]
        del types[:]
        types.extend(kept)
    return bytes(answer.SerializeToString())


class Provider:
    """A process of the real provider."""

    def __init__(self, binary: Path, environment: Mapping[str, str], directory: str) -> None:
        self._process = subprocess.Popen(
            [binary, "-debug"],
            cwd=directory,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # an interrupt of the terminal is for Terraform, which tells it
        )
        assert self._process.stdout
        said = (line.decode().strip() for line in self._process.stdout)
        found = next((line for line in said if line.startswith(f"{REATTACH}=")), None)
        if found is None:
            raise ValueError(f"{binary} ended with {self._process.wait()} and did not say where it listens")
        ((self.name, self.settings),) = json.loads(found.partition("=")[2].strip("'")).items()
        self._socket = self.settings["Addr"]["String"]
        self._channel = grpc.insecure_channel(f"unix:{self._socket}", options=_NO_LIMIT)

    def ask(self, method: str, request: bytes) -> bytes:
        """Ask one question; raises grpc.RpcError."""
        return bytes(self._channel.unary_unary(method)(request))

    def end(self) -> None:
        """End it, with its socket."""
        self._process.kill()
        self._process.wait()
        self._channel.close()
        Path(self._socket).unlink(missing_ok=True)


class Kind:
    """What is the same for all commands: the provider's program, its address, and what it says of itself."""

    @cached_property
    def binary(self) -> Path:
        """The program, as Terraform installs it."""
        settings = os.environ | terraform_environment(home()) | ITSELF
        with tempfile.TemporaryDirectory(prefix="provider-") as folder:
            Path(folder, "main.tf").write_text(_ROOT, encoding="utf-8")
            command = [str(terraform_binary(home())), f"-chdir={folder}", "init", "-backend=false", "-no-color"]
            subprocess.run(command, env=settings, stdout=subprocess.DEVNULL, check=True)
            (found,) = Path(folder, ".terraform/providers").glob("*/hashicorp/aws/*/*/terraform-provider-aws*")
            return found.resolve()

    @cached_property
    def _first(self) -> tuple[str, dict[str, Any], bytes]:
        provider = Provider(self.binary, os.environ, os.curdir)
        try:
            schema = provider.ask(f"/tfplugin{provider.settings['ProtocolVersion']}.Provider/{_SCHEMA}", b"")
        finally:
            provider.end()
        return provider.name, provider.settings, narrowed(schema, used())

    @property
    def schema(self) -> bytes:
        """The answer to the question for it."""
        return self._first[2]

    def reattach(self, port: int) -> str:
        """What Terraform's variable says of a server on a port of this machine."""
        name, settings, _ = self._first
        address = {"Network": "tcp", "String": f"127.0.0.1:{port}"}
        return json.dumps({name: settings | {"Addr": address, "Pid": os.getpid()}})


class Command(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Answers one Terraform command, which asks over a connection for each provider block, and for other purposes."""

    def __init__(self, kind: Kind, environment: Mapping[str, str], directory: str) -> None:
        self._start: Callable[[], Provider] = lambda: Provider(kind.binary, environment, directory)
        self._kind = kind
        self._lock = threading.Lock()
        self._providers: list[Provider] = []
        self._configured: dict[str, Provider] = {}  # by the connection
        self._ended = False

    def service(self, details: Any) -> Any:
        """Terraform's questions are answered; those of its plugin library, such as for output, are not."""
        service, _, question = details.method.strip("/").rpartition("/")
        if not service.endswith(".Provider"):
            return None
        if question == _SCHEMA:
            return grpc.unary_unary_rpc_method_handler(lambda *_: self._kind.schema)
        return grpc.unary_unary_rpc_method_handler(
            lambda request, context: self._hand_on(details.method, question, request, context)
        )

    def _hand_on(self, method: str, question: str, request: bytes, context: Any) -> bytes:
        try:
            return self._asked(context.peer(), question).ask(method, request)
        except grpc.RpcError as error:
            context.abort(error.code(), error.details())
            raise

    def _asked(self, connection: str, question: str) -> Provider:
        """The provider that this connection has configured; any, as long as it has none."""
        with self._lock:
            if question == _CONFIGURE and connection not in self._configured:
                free = (provider for provider in self._providers if provider not in self._configured.values())
                self._configured[connection] = next(free, None) or self._started()
            return self._configured.get(connection) or next(iter(self._providers), None) or self._started()

    def _started(self) -> Provider:
        if self._ended:
            raise ValueError("the command has ended")
        self._providers.append(provider := self._start())
        return provider

    def end(self) -> None:
        """End its providers."""
        with self._lock:
            self._ended = True
            for provider in self._providers:
                provider.end()


def serve(listening: socket.socket) -> None:
    """Serve commands until standard input ends."""
    kind = Kind()
    lock = threading.Lock()  # the first command finds the kind out, and the others wait for that
    commands: set[Command] = set()

    def attend(connection: socket.socket) -> None:
        with connection, connection.makefile("rw", encoding="utf-8") as line:
            asked = json.loads(line.readline())
            with lock:
                _ = kind.schema
            command = Command(kind, asked["environment"], asked["directory"])
            commands.add(command)
            with _listening(command) as port:
                try:
                    _answer(line, kind.reattach(port))
                finally:
                    command.end()  # and so what they are asked, which the server waits for
                    commands.discard(command)

    def accept() -> None:
        while True:
            threading.Thread(target=attend, args=(listening.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    sys.stdin.read()
    for command in list(commands):
        command.end()
    os._exit(0)  # without the threads that still wait for a command's end


def _answer(line: IO[str], reattach: str) -> None:
    line.write(reattach + "\n")
    line.flush()
    line.read()  # it ends when the command has ended, however that was


@contextlib.contextmanager
def _listening(command: Command) -> Iterator[int]:
    with ThreadPoolExecutor(_MANY) as pool:
        server = grpc.server(pool, handlers=[command], options=_NO_LIMIT)
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        try:
            yield port
        finally:
            server.stop(None).wait()


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
