"""A Python with torch and transformers, for the tests that really trace: the embedded cloud's Hugging Face image.

``SAGEFIT_TRACE_PYTHON`` names one that is there already. Which build of torch is installed (for the CPU only, or with
CUDA) is up to pip's configuration; the tests need no GPU.
"""

from __future__ import annotations

import os

from sagefit.cloud import images


def torch_python() -> str:
    """Path of the interpreter. Processes that ask at the same time wait for the one that builds."""
    return os.environ.get("SAGEFIT_TRACE_PYTHON") or str(images.environment("huggingface") / "bin" / "python")
