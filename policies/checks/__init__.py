"""Checks for checkov, which loads Python from packages only: `--external-checks-dir policies/checks`."""
