"""The server process: ``python -m sagefit_cloud.server``, started by :mod:`sagefit.cloud.control`.

``MOTO_PORT`` has to be in the environment before moto is imported; whoever starts this process puts it there.
"""

from __future__ import annotations

import argparse
import logging
import os
import shutil
import signal
import threading
from pathlib import Path
from typing import Any

from moto.moto_server.werkzeug_app import MotoRequestHandler
from werkzeug.serving import make_server

from sagefit.cloud import paths, record, scratch
from sagefit.cloud.calls import CallLog, calls_path
from sagefit.cloud.faults import Faults
from sagefit.processes import Identity
from sagefit_cloud import clients, extensions, namespace
from sagefit_cloud.door import Door
from sagefit_cloud.executor import Executor
from sagefit_cloud.gateway import Gateway
from sagefit_cloud.machine import Machine
from sagefit_cloud.schedules import Clock, Schedules

_LOG = logging.getLogger("sagefit_cloud.server")  # as a program its own name would be __main__


class _QuietHandler(MotoRequestHandler):
    """The call log already has every request."""

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Say nothing."""

    def send_response(self, code: int, message: str | None = None) -> None:
        """Begin an answer without a time: the gateway says what time it is here."""
        self.log_request(code)
        self.send_response_only(code, message)
        self.send_header("Server", self.version_string())


def main() -> None:
    """Serve until SIGTERM."""
    options = _options()
    own_mounts = namespace.allowed() and namespace.enter()  # before there are threads
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("moto.stepfunctions").setLevel(logging.ERROR)
    logging.getLogger("sagefit").setLevel(logging.INFO)
    process = Identity.of()
    me = record.Record(
        pid=process.pid,
        process_started=process.started,
        process_since_boot=process.since_boot,
        process_boot=process.boot,
        port=options.port,
        instance=os.environ[record.INSTANCE_VARIABLE],
        access_key=clients.OWNER.id,
        secret_key=clients.OWNER.secret,
        memory_scale=options.memory_scale,
        start_seconds=options.start_seconds,
        clock=options.clock,
        faults=options.faults,
    )
    runs, contents = paths.cloud_home() / "runs", paths.cloud_home() / "objects"
    for folder in (runs, contents):
        shutil.rmtree(folder, ignore_errors=True)
    contents.mkdir(mode=0o700)
    machine = Machine(
        runs,
        memory_scale=options.memory_scale,
        instance=me.instance,
        scratch=scratch.begin(),
        own_mounts=own_mounts,
        start_seconds=options.start_seconds,
    )
    executor = Executor(machine)
    faults = Faults.load(Path(options.faults)) if options.faults else Faults()
    extensions.install(executor, faults, contents)

    def status() -> dict[str, object]:
        return {"instance": me.instance, **executor.counts()}

    door = Door(options.port, owner=me.key, roles=clients.ROLES)
    gateway = Gateway(CallLog(calls_path()), door, status, faults)
    server = make_server(
        "127.0.0.1", options.port, gateway, threaded=True, request_handler=_QuietHandler, fd=options.fd
    )

    def stop(*_: Any) -> None:
        threading.Thread(target=server.shutdown, daemon=True).start()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    schedules = Schedules(Clock(options.clock))
    schedules.start()
    record.save(me)
    _LOG.info("serving on %s", me.endpoint)
    try:
        server.serve_forever()
    finally:
        schedules.close()
        executor.close()
        for folder in (runs, contents):
            shutil.rmtree(folder, ignore_errors=True)
        scratch.end()
        record.remove()
        _LOG.info("ended")
        logging.shutdown()
        os._exit(0)  # threads of moto's interpreter may still sleep in a Wait state


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--fd", type=int, required=True, help="inherited listening socket")
    parser.add_argument("--port", type=int, required=True, help="its port")
    parser.add_argument("--memory-scale", type=float, required=True)
    parser.add_argument("--start-seconds", type=float, required=True)
    parser.add_argument("--clock", type=float, required=True)
    parser.add_argument("--faults")
    return parser.parse_args()


if __name__ == "__main__":
    main()
