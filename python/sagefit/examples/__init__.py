"""The examples: find them, run them on a cloud of their own, keep what they measured, make jobs of them."""

from sagefit.examples.find import Example, all_examples, chosen, faults_files
from sagefit.examples.result import Result, Step
from sagefit.examples.stage import Stage

__all__ = ["Example", "Result", "Stage", "Step", "all_examples", "chosen", "faults_files"]
