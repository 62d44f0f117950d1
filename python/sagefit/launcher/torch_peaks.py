"""The launcher's side of torch_hook.py: places it before the script starts, and reads what it wrote."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from . import torch_hook


class TorchPeaks:
    """The folder with the hook and with the peaks of each process."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        try:
            self._folder = Path(tempfile.mkdtemp(prefix="sagefit-torch-"))
            shutil.copy(torch_hook.__file__, str(self._folder / "sitecustomize.py"))
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
        for path in self._folder.glob("*.json") if self._folder else ():
            try:
                process = json.loads(path.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                continue
            same = {"pid": process["pid"], "rank": process["rank"]}
            found += [{**same, **device} for device in process["devices"]]
        return sorted(found, key=lambda peak: (peak["rank"] or 0, peak["pid"], peak["device"]))

    def close(self) -> None:
        """Removes the folder."""
        if self._folder:
            shutil.rmtree(str(self._folder), ignore_errors=True)
            self._folder = None
