"""Own images: built from a job's Dockerfile, pushed to the platform's repository, and pinned by digest."""

from __future__ import annotations

from sagefit.images.publishing import publish

__all__ = ["publish"]
