"""The exact mode: bytes of the user's own model, counted without a GPU. See ``docs/trace.md``.

Light to import: torch is only ever loaded by the tracing program in ``child``, in an interpreter of its own.
"""

from sagefit.memory.trace.phases import device_phases, tensor_phases
from sagefit.memory.trace.store import lookup, with_trace

__all__ = ["device_phases", "lookup", "tensor_phases", "with_trace"]
