"""A GPU that is full at the first backward pass. No GPU is here: the error is raised with PyTorch's words."""

import sys
import types

from common import steps  # type: ignore[import-not-found]

torch = types.ModuleType("torch")
torch.OutOfMemoryError = type("OutOfMemoryError", (RuntimeError,), {"__module__": "torch"})  # type: ignore[attr-defined]
sys.modules["torch"] = torch
for step in steps(500):
    if step == 7:
        raise torch.OutOfMemoryError(
            "CUDA out of memory. Tried to allocate 1.16 GiB. GPU 0 has a total capacity of 21.98 GiB of which 412.44"
            " MiB is free. Process 31 has 21.57 GiB memory in use."
        )
