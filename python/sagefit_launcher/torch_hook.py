"""Notes torch's own peak of GPU memory, in every Python process of the script and without changing it.

The launcher copies this file as ``sitecustomize.py`` into a folder in front of ``PYTHONPATH``, so that Python runs it
before the script's first line. It never imports torch itself. Once a process has imported torch and initialised CUDA,
its peaks are written every second and when it ends, so that they outlive a kill. A peak that the script itself resets
between two writings is lost.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes longer to import than all the rest
    from collections.abc import Callable
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

FOLDER = "SAGEFIT_TORCH_PEAKS"  # the variable that names the folder for the files
EVERY = 1.0  # seconds


class Watch:
    """The highest values of this process so far."""

    def __init__(self, torch: Any, folder: str) -> None:
        self._cuda = torch.cuda
        self._folder = folder
        self._pid = 0
        self._peaks: dict[int, tuple[int, int]] = {}

    def begin(self) -> None:
        """Called by torch when it has initialised CUDA: a worker that never uses it gets no thread."""
        with contextlib.suppress(Exception):
            import threading

            leave = os._exit

            def leave_noted(status: int) -> None:
                self.note()
                leave(status)

            os._exit = leave_noted  # type: ignore[assignment]  # such an end runs no exit handlers
            self._over = threading.Event()
            atexit.register(self._over.set)
            threading.Thread(target=self._run, name="sagefit-torch-peak", daemon=True).start()

    def note(self) -> None:
        """Writes the peaks down, if they have grown."""
        with contextlib.suppress(Exception):  # training is worth more than its record
            if not self._cuda.is_initialized():
                return
            if self._pid != os.getpid():  # a fork begins with nothing of its own
                self._pid, self._peaks = os.getpid(), {}
            before = dict(self._peaks)
            for device in range(self._cuda.device_count()):
                now = (self._cuda.max_memory_allocated(device), self._cuda.max_memory_reserved(device))
                self._peaks[device] = tuple(map(max, now, self._peaks.get(device, (0, 0))))
            if self._peaks != before:
                self._write()

    def _write(self) -> None:
        import json

        rank = os.environ.get("RANK", "")
        devices = [
            {"device": device, "peak_allocated_bytes": allocated, "peak_reserved_bytes": reserved}
            for device, (allocated, reserved) in sorted(self._peaks.items())
            if reserved or allocated
        ]
        target = os.path.join(self._folder, f"{self._pid}.json")  # noqa: PTH118 - pathlib is slow to import
        with open(target + ".part", "w") as file:  # noqa: PTH123
            json.dump({"pid": self._pid, "rank": int(rank) if rank.isdigit() else None, "devices": devices}, file)
        os.replace(target + ".part", target)  # noqa: PTH105

    def _run(self) -> None:
        while not self._over.wait(EVERY):
            self.note()


class Finder:
    """Stands in front of Python's own finders and only waits for ``import torch``."""

    def __init__(self, seen: Callable[[ModuleType], None]) -> None:
        self._seen = seen

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """What the other finders find, with a loader that tells when it is done."""
        if name != "torch":
            return None
        others = [finder for finder in sys.meta_path if finder is not self and hasattr(finder, "find_spec")]
        spec = next(filter(None, (finder.find_spec(name, path, target) for finder in others)), None)
        with contextlib.suppress(AttributeError):  # not found, or by a loader that cannot be changed
            loader: Any = spec.loader  # type: ignore[union-attr]
            load = loader.exec_module

            def load_and_tell(module: ModuleType) -> None:
                load(module)
                with contextlib.suppress(Exception):
                    self._seen(module)

            loader.exec_module = load_and_tell
        return spec


def begin(folder: str) -> None:
    """Waits for torch in this process."""

    def seen(torch: Any) -> None:
        watch = Watch(torch, folder)
        atexit.register(watch.note)
        torch.cuda._lazy_call(watch.begin)

    sys.meta_path.insert(0, Finder(seen))


def give_way(own: str) -> None:
    """Runs the ``sitecustomize`` that this one hides, if there is one, as Python would have."""
    sys.path[:] = [folder for folder in sys.path if folder != own]
    this = sys.modules.pop("sitecustomize")
    try:
        __import__("sitecustomize")
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
        sys.modules["sitecustomize"] = this


if __name__ == "sitecustomize":
    if os.environ.get(FOLDER):
        begin(os.environ[FOLDER])
    give_way(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
