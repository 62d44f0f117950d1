"""Turns SIGTERM, SageMaker's request to stop, into one for the script, and keeps to the time there is.

Whatever holds the launcher's main thread, such as a file system that does not answer, it ends in time.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time

from .process import Console, Program

GRACE = 120.0  # seconds from SageMaker's SIGTERM to its SIGKILL
GRACE_VARIABLE = "SAGEFIT_STOP_GRACE_SECONDS"
KEPT_BACK = 5.0  # of them, for the launcher's own report; at most a quarter
WARNING = 10.0  # seconds before the end
LATE = 10.0  # seconds after the end: it should have ended by itself
REST = 60.0  # seconds for all that is left to do once the script has ended
_REQUESTS = (signal.SIGTERM, signal.SIGINT)


class Stop:
    """The request to stop. A second one changes nothing: neither is time lost nor does the script hear it again."""

    def __init__(self, console: Console) -> None:
        self.requested = False
        self._console = console
        self._program: Program | None = None
        self._number = 0
        self._told = False
        self._lock = threading.Lock()
        # A handler runs between two instructions of the main thread: not while that waits for the script, if the signal
        # came just before it began to. So a thread is woken, by the interpreter itself as the signal comes.
        self._wake, waker = os.pipe()
        os.set_blocking(waker, False)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        threading.Thread(target=self._serve, daemon=True).start()
        for number in _REQUESTS:
            signal.signal(number, self._request)

    def watch(self, program: Program) -> None:
        """From now on the request goes to this program; one that came before it started is passed on at once."""
        with self._lock:
            self._program = program
            if self._told:
                program.ask_to_stop(self._number)

    def _request(self, _number: int, _frame: object) -> None:
        self.requested = True

    def _serve(self) -> None:
        while (number := os.read(self._wake, 1)[0]) not in _REQUESTS:
            pass  # a signal that somebody else has a handler for
        self._number, self.requested = number, True
        grace = GRACE
        with contextlib.suppress(ValueError):
            grace = float(os.environ.get(GRACE_VARIABLE) or GRACE)
        left = grace - min(KEPT_BACK, grace / 4)
        end = time.monotonic() + left
        with self._lock:
            self._told = True
            if self._program:
                self._program.ask_to_stop(self._number)
        self._say(f"[sagefit] asked to stop: the script has {left:.0f} s to save its work and end")
        if left > 2 * WARNING:
            time.sleep(left - WARNING)
            self._say(f"[sagefit] the script has {WARNING:.0f} s left, then it is killed")
        time.sleep(max(0.0, end - time.monotonic()))
        with self._lock:
            if self._program:
                self._program.kill()
        time.sleep(LATE)
        os._exit(128 + number)

    def _say(self, text: str) -> None:
        """Prints a line; a log that nobody reads holds up another thread."""
        with contextlib.suppress(RuntimeError):
            threading.Thread(target=self._console.line, args=(text,), daemon=True).start()


class Deadline:
    """Ends the launcher when what is left to do after the script takes too long."""

    def __init__(self) -> None:
        self._code = 0
        self._begun = threading.Event()
        threading.Thread(target=self._serve, daemon=True).start()  # now: later a script may have taken all threads

    def begin(self, exit_code: int) -> None:
        """The time begins, once; ``exit_code`` is the launcher's if it is not done by then."""
        if not self._begun.is_set():
            self._code = exit_code
            self._begun.set()

    def _serve(self) -> None:
        self._begun.wait()
        time.sleep(REST)
        os._exit(self._code)
