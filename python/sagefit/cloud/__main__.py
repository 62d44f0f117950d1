"""``python -m sagefit.cloud up``: the same commands as ``sagefit cloud up``."""

from sagefit.cloud.cli import app

if __name__ == "__main__":
    app(prog_name="sagefit cloud")
