# Everything a person or a pipeline runs here. `make` alone lists it.
# Works with GNU make 3.81 (macOS) and with -j.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo examples acceptance job image plan size platform doctor review test test-fast test-full snapshot coverage mutate lint launcher docs bench bench-memory lock clean

VENV    := .venv
PY      := $(VENV)/bin/python
SAGEFIT := $(VENV)/bin/sagefit
# Python compiles what it imports; to compile all that pip installs would take longer than the rest of the set-up.
PIP     := $(PY) -m pip install -qq --disable-pip-version-check --no-compile
# A lock lists all there is to install. Left to itself, pip resolves it again, and some versions find newer releases.
LOCKED  := $(PIP) --require-hashes --no-deps -r
CHECK   := said=$$($(PY) -m pip --disable-pip-version-check check) || { echo "$$said" >&2; exit 1; }

# What is given on make's command line is in the environment of the recipes: NAME, and CLOUD, which sagefit reads.
# YES becomes a flag.
yes := $(if $(filter-out 0 n no false,$(YES)),--yes)

# Said before anything is installed.
named := $(firstword $(filter job image plan size review,$(MAKECMDGOALS)))
ifneq ($(named),)
ifeq ($(NAME),)
$(error NAME is missing: make $(named) NAME=<job>. Jobs here: $(or $(basename $(notdir $(wildcard jobs/*.yaml))),none yet))
endif
endif

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

setup: $(VENV)/.installed ## install everything: Python packages into .venv, Terraform, the AWS provider
	@$(PY) -m sagefit.toolchain && touch $(VENV)/.ready

demo: $(VENV)/.ready ## run a job that outgrows its memory and recovers, without an AWS account
	@CLOUD=local $(SAGEFIT) cloud up
	@CLOUD=local $(SAGEFIT) platform apply --yes
	@CLOUD=local $(SAGEFIT) run quickstart --yes

examples: $(VENV)/.ready ## [ARGS=...]: run the examples on an embedded cloud of their own; ARGS=--write keeps the results
	@$(SAGEFIT) examples $(ARGS)

job: $(VENV)/.ready ## NAME=<job> [CLOUD=local] [YES=1] [RESUME=<run>]: plan, confirm, apply and run a job
	@$(SAGEFIT) run "$$NAME" $(yes) $(if $(RESUME),--resume "$$RESUME")

plan: $(VENV)/.ready ## NAME=<job> [CLOUD=local]: show what a job would change
	@$(SAGEFIT) plan "$$NAME"

image: $(VENV)/.ready ## NAME=<job>: build a job's own image, push it, and pin its digest beside the job
	@$(SAGEFIT) image "$$NAME"

size: $(VENV)/.ready ## NAME=<job>: predict its memory, choose the instance, show the attempts
	@$(SAGEFIT) size "$$NAME"

acceptance: $(VENV)/.ready ## [ARGS=...] [CLOUD=local] [YES=1]: run short jobs of every kind on an account, and take all down
	@$(SAGEFIT) acceptance $(ARGS) $(yes)

PLATFORM ?= dev
platform: $(VENV)/.ready ## [PLATFORM=dev] [CLOUD=local] [YES=1]: plan, confirm and apply what jobs share
	@$(SAGEFIT) platform apply '$(PLATFORM)' $(yes)

doctor: $(VENV)/.ready ## [NAME=<job>] [PLATFORM=dev] [CLOUD=local]: say what would go wrong before anything is applied
	@$(SAGEFIT) doctor $(if $(NAME),"$$NAME",--platform '$(PLATFORM)')

review: $(VENV)/.ready ## NAME=<job>: the page a reviewer of its plan reads
	@$(SAGEFIT) review "$$NAME"

# The order of the tests is their own: the longest groups first.
PYTEST := $(PY) -m pytest -n auto --dist loadgroup --no-loadscope-reorder
test: $(VENV)/.ready $(VENV)/.dev ## [ARGS=...]: run the tests that a change must pass, Python and Terraform
	@$(PYTEST) $(ARGS)

test-fast: $(VENV)/.ready $(VENV)/.dev ## [ARGS=...]: run the tests that start neither Terraform nor an embedded cloud
	@$(PYTEST) --level fast $(ARGS)

test-full: $(VENV)/.ready $(VENV)/.dev ## [ARGS=...]: run all tests, every case and every example
	@$(PYTEST) --level full --provider started $(ARGS)

snapshot: $(VENV)/.ready $(VENV)/.dev ## [ARGS=...]: accept what plans are now, in tests/plans; read the diff before you commit
	@$(PY) -m pytest tests/plans --snapshot-update -n 0 $(ARGS)

coverage: $(VENV)/.ready $(VENV)/.dev ## [ARGS=...]: run the tests and ask how much of the code they reach, in every process
	@$(PY) tests/measure_coverage.py $(ARGS)

mutate: $(VENV)/.ready $(VENV)/.dev ## [ARGS=...]: break the modules in many ways and ask which tests notice
	@PYTHONPATH=tests $(PY) -m mutations.run $(ARGS)

lint: $(VENV)/.ready $(VENV)/.dev ## run every check that a commit must pass
	@$(VENV)/bin/pre-commit run --all-files

launcher: $(VENV)/.ready ## write the launcher that jobs ship anew, after a change of it or of the table of failures
	@$(PY) tools/ship_launcher.py

docs: $(VENV)/.ready $(VENV)/.dev ## write the pages that are made from code anew
	@$(PY) docs/generate.py && PYTHONPATH=tests $(PY) -m corpus.page

bench: $(VENV)/.ready $(VENV)/.dev ## measure Sagefit itself; fails where a goal is missed
	@missed=; for what in size run storage money review; do \
	  $(PY) tests/bench/bench_$$what.py || missed="$$missed $$what"; \
	done; [ -z "$$missed" ] || { echo "make bench: missed a goal or failed:$$missed" >&2; exit 1; }

bench-memory: $(VENV)/.ready $(VENV)/.dev ## how good the memory prediction is; writes docs/accuracy.md and the bounds
	@$(PY) tests/bench/bench_memory.py

# UPGRADE=1 moves every package to its newest version; without it only what pyproject.toml asks for changes.
COMPILE = .sagefit/uv/bin/uv pip compile --quiet --universal --python-version 3.10 --generate-hashes \
  --no-emit-index-url --no-annotate --no-header $(if $(UPGRADE),--upgrade)
lock: $(VENV)/.installed ## [UPGRADE=1]: write the lock files of Python packages anew
	@$(PY) -m venv .sagefit/uv && .sagefit/uv/bin/pip install -qq --disable-pip-version-check uv
	@$(COMPILE) pyproject.toml --extra local --group build -o requirements.lock
	@$(COMPILE) pyproject.toml --extra local --group dev --constraints requirements.lock -o requirements-dev.lock
	@echo checkov | $(COMPILE) - -o requirements-checkov.lock # an environment of its own: it pins an old boto3
	@$(PY) tools/lock_images.py $(COMPILE)

# Terraform states, tfvars and saved plans stay, except those of the embedded cloud, which end with it.
clean: ## stop the embedded cloud, remove what setup and the checks made; states are kept
	@if [ -e .sagefit/cloud/cloud.json ]; then $(SAGEFIT) cloud down; fi
	@if [ -d .sagefit ]; then find .sagefit -mindepth 1 -maxdepth 1 ! -name state -exec rm -rf {} +; fi
	@rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis modules/*/.terraform
	@find python tests examples -name __pycache__ -type d -prune -exec rm -rf {} +

# --- Stamps: made once, and again when a lock file changes -----------------------------------------------------------

# The first Python that is new enough and can make an environment; PYTHON=... goes before the others.
$(VENV)/.installed: requirements.lock pyproject.toml
	@for python in $(PYTHON) python3 python3.13 python3.12 python3.11 python3.10; do \
	  "$$python" -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 10))' 2>/dev/null && break; \
	  python=; \
	done; \
	if [ -z "$$python" ]; then \
	  echo "error: no Python >= 3.10 with venv found (Debian, Ubuntu: the package python3-venv); make setup PYTHON=..." >&2; \
	  exit 2; \
	fi; \
	echo "Installing Python packages into $(VENV)"; \
	if [ ! -x $(PY) ]; then "$$python" -m venv --clear $(VENV); fi
	@$(LOCKED) requirements.lock
	@$(PIP) --no-deps --no-build-isolation -e .
	@$(if $(wildcard $(VENV)/.dev),,$(CHECK)) # test tools of an older lock are made new before they are checked
	@touch $@

$(VENV)/.ready: $(VENV)/.installed
	@$(PY) -m sagefit.toolchain && touch $@

$(VENV)/.dev: $(VENV)/.installed requirements-dev.lock
	@echo "Installing test and lint tools into $(VENV)"
	@$(LOCKED) requirements-dev.lock
	@$(CHECK)
	@touch $@
