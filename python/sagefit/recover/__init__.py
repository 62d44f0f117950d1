"""What a killed apply has left: a lock that nobody holds any more, and things that its state does not know."""

from sagefit.recover.taken_back import recover

__all__ = ["recover"]
