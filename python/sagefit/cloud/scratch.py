"""The temporary folder of a cloud's containers: it goes with its cloud, also with one that was killed.

It lies in the system's temporary folder, because sockets in it have names of 108 bytes at most. Its path is noted in
the cloud's own folder, where the next start, or ``cloud down``, finds it.
"""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from sagefit.cloud import paths
from sagefit_launcher import files

_PREFIX = "sagefit-"


def begin() -> Path:
    """Make the folder, after ``clean_up`` has removed that of an earlier cloud, and note it."""
    made = Path(tempfile.mkdtemp(prefix=_PREFIX))
    _note().write_text(str(made), encoding="utf-8")
    return made


def end() -> None:
    """Remove the folder that is noted, if it is one of ours: a note that was tampered with removes nothing else."""
    with suppress(OSError, ValueError):  # no note, or none of ours
        noted = Path(_note().read_text(encoding="utf-8"))
        _note().unlink()
        status = noted.lstat()
        ours = status.st_uid == os.getuid() and stat.S_ISDIR(status.st_mode)
        if ours and noted.name.startswith(_PREFIX) and noted.is_absolute():
            files.remove_tree(noted)


def _note() -> Path:
    return paths.cloud_home() / "temporary"
