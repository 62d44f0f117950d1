"""Sagefit: SageMaker training jobs that fit in memory."""

__version__ = "0.1.0"
