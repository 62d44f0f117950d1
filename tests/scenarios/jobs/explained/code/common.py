"""What the scripts share: a loop that says its step, and a checkpoint after every fourth one."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(os.environ.get("SM_CHECKPOINT_DIR", "/opt/ml/checkpoints"))
MIB = 1024**2


def steps(most: int, seconds: float = 0.5) -> Iterator[int]:
    """The steps from the last checkpoint on; each takes a little while."""
    found = sorted(FOLDER.glob("checkpoint-*/state.json"), key=lambda path: json.loads(path.read_text()))
    start = json.loads(found[-1].read_text()) if found else 0
    for step in range(start + 1, most + 1):
        time.sleep(seconds)
        print(f"step {step}/{most}", flush=True)
        yield step
        if step % 4 == 0:
            folder = FOLDER / f"checkpoint-{step}"
            folder.mkdir(exist_ok=True)
            (folder / "state.json").write_text(json.dumps(step))
