"""Counts to six with a checkpoint at every step; the first attempt runs into the trouble its run is named for.

A run that is not named for any hangs, unless it began with the checkpoints of another.
"""

import json
import os
import signal
import time
from pathlib import Path

TROUBLES = ["host_memory", "disk", "shared_memory", "launcher_killed", "interrupted", "hangs"]
STEPS, TROUBLE_AT = 6, 3
LIMIT_MIB = 400  # more than the host has, less than would harm the machine

root = Path(os.environ["SAGEFIT_ML_ROOT"])
checkpoint = root / "checkpoints" / "step.json"
_, date, number, _ = os.environ["TRAINING_JOB_NAME"].split("-")
named = date.startswith("00")
trouble = TROUBLES[int(number)] if named else "hangs"
first = os.environ["SAGEFIT_ATTEMPT"] == "first"
start = json.loads(checkpoint.read_text()) if checkpoint.exists() else 0
goes_on = start and (trouble == "interrupted" or not named)
print(f"starts at step {start}", flush=True)


def run_into(trouble: str) -> None:
    """What goes wrong is real: nothing here raises an error of its own."""
    if trouble == "host_memory":
        held = []
        while True:
            held.append(bytearray(16 * 1024 * 1024))
    if trouble == "disk":
        with (root / "output" / "data" / "big").open("wb") as file:
            for _ in range(LIMIT_MIB):
                file.write(bytes(1024 * 1024))
            file.flush()
    if trouble == "shared_memory":
        descriptor = os.open("/dev/shm/segment", os.O_CREAT | os.O_RDWR)
        for _ in range(LIMIT_MIB):
            os.write(descriptor, bytes(1024 * 1024))
    if trouble == "launcher_killed":
        os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(600)


for step in range(start, STEPS):
    if first and step == TROUBLE_AT and not goes_on:
        time.sleep(1.5)  # checkpoints are synchronised every second
        run_into(trouble)
    scratch = checkpoint.with_suffix(".new")
    scratch.write_text(json.dumps(step + 1))
    scratch.rename(checkpoint)
    print(f"step {step} done", flush=True)
(root / "model" / "steps").write_text(str(STEPS))
