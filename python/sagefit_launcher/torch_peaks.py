"""The launcher's side of torch_hook.py: places it before the script starts, and reads what it wrote."""

from __future__ import annotations

import itertools
import json
import pkgutil
import tempfile
from pathlib import Path
from typing import Any

from . import files, torch_hook

MOST_FILES, LONGEST = 4096, 1024**2  # of one folder, and bytes of one file: more is not from the hook


class TorchPeaks:
    """The folder with the hook and with the peaks of each process."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        try:
            self._folder = Path(tempfile.mkdtemp(prefix="sagefit-torch-"))
            hook = pkgutil.get_data(__package__, "torch_hook.py") or b""
            (self._folder / "sitecustomize.py").write_bytes(hook)
        except OSError:  # a full disk: the script is to say so itself
            self.close()

    def variables(self, python_path: str) -> dict[str, str]:
        """What the script's environment has to have."""
        if not self._folder:
            return {"PYTHONPATH": python_path}
        return {"PYTHONPATH": f"{self._folder}:{python_path}", torch_hook.FOLDER: str(self._folder)}

    def read(self) -> list[dict[str, Any]]:
        """The peaks of each process and device, in order of rank and device."""
        found = []
        for path in itertools.islice(self._folder.glob("*.json"), MOST_FILES) if self._folder else ():
            try:
                found += _peaks(json.loads(files.read(path.parent, path.name, LONGEST)))
            except (OSError, ValueError, TypeError, LookupError, ArithmeticError, RecursionError):
                continue  # a script may have put it there
        return sorted(found, key=lambda peak: (peak["rank"] or 0, peak["pid"], peak["device"]))

    def close(self) -> None:
        """Removes the folder."""
        if self._folder:
            files.remove_tree(self._folder)
            self._folder = None


def _peaks(process: Any) -> list[dict[str, Any]]:
    same = {"pid": int(process["pid"]), "rank": None if process["rank"] is None else int(process["rank"])}
    names = ("device", "peak_allocated_bytes", "peak_reserved_bytes")
    return [{**same, **{name: int(device[name]) for name in names}} for device in process["devices"]]
