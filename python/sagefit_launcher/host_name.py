"""The name of a host of several, as programs ask for it.

On SageMaker ``gethostname()`` says the same on every host, so MPI and NCCL may take several hosts for one. AWS's images
hold a file of C that answers with the name of the host, and their entrypoint, which the launcher takes the place of,
compiles and preloads it. Paths, and what the file expects: aws/deep-learning-containers, changehostname.c and
start_with_right_hostname.sh.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

SOURCE = Path("/changehostname.c")
_NAME = "LD_PRELOAD"
_PLACE = "PLACEHOLDER_HOSTNAME"  # what the file has for a string of C
_LIBRARY = "libchangehostname.so"
_SECONDS = 60
_HOST = re.compile(r"[A-Za-z0-9-]+")


def variables(environment: Mapping[str, str], host: str, source: Path = SOURCE) -> dict[str, str]:
    """What a script's environment needs so that it is told the name of its host.

    Empty where the image has no such file, or it cannot be compiled: then a script has the name that the container has.
    The library stays as long as the container.
    """
    try:
        if _PLACE not in source.read_text(encoding="utf-8", errors="replace") or not _HOST.fullmatch(host):
            return {}
        library = Path(tempfile.mkdtemp(prefix="sagefit-host-")) / _LIBRARY
        command = ["gcc", "-shared", "-fPIC", f'-D{_PLACE}="{host}"', "-o", str(library), str(source), "-ldl"]
        subprocess.run(command, env=dict(environment), capture_output=True, timeout=_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return {}
    return {_NAME: os.pathsep.join(filter(None, [str(library), environment.get(_NAME)]))}
