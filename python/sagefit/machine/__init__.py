"""State machines of jobs, read back from the definition that will run."""

from sagefit.machine.definition import Definition, is_ours, read_definition

__all__ = ["Definition", "is_ours", "read_definition"]
