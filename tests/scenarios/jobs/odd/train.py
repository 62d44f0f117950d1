"""Six steps with a checkpoint after each; at the fourth, the first attempt runs into what its run is named for."""

import json
import os
import time
from pathlib import Path

import troubles  # type: ignore[import-not-found]

STEPS, TROUBLE_AT = 6, 3

root = Path(os.environ["SAGEFIT_ML_ROOT"])
checkpoint = root / "checkpoints" / "step.json"
trouble = troubles.named(os.environ["TRAINING_JOB_NAME"])
first = os.environ["SAGEFIT_ATTEMPT"] == "first"
start = json.loads(checkpoint.read_text()) if checkpoint.exists() else 0
print(f"starts at step {start}", flush=True)
for step in range(start, STEPS):
    if first and step == TROUBLE_AT:
        time.sleep(1.5)  # checkpoints are synchronised every second
        trouble(root)
    scratch = checkpoint.with_suffix(".new")
    scratch.write_text(json.dumps(step + 1))
    scratch.rename(checkpoint)
    print(f"step {step} done", flush=True)
(root / "model" / "steps").write_text(str(STEPS))
