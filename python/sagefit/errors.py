"""The one exception the command line turns into a message and an exit code."""

from __future__ import annotations

DONE = 0
FAILED = 1
INVALID = 2
DOES_NOT_FIT = 3
REFUSED = 4
BLOCKED = 5
INTERRUPTED = 130


class SagefitError(Exception):
    """Something the user can act on.

    ``message`` names the field or file and the rule, and ``hint`` the knob to turn; None where there is none.
    ``exit_code`` is what the command line ends with: 1 failed, 2 invalid input, 3 does not fit, 4 refused. It is 5
    without an error where something was planned and the review blocks it.
    """

    def __init__(self, message: str, *, hint: str | None = None, exit_code: int = INVALID) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.exit_code = exit_code

    def __str__(self) -> str:
        return f"{self.message}\n{self.hint}" if self.hint else self.message
