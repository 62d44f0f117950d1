"""``python -m sagefit``."""

from sagefit.cli import main

main()
