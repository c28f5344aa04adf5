# make run      set up if needed, then open the dashboard on http://127.0.0.1:8501
# make test     set up if needed, then check and test, with one end-to-end test in a real browser; ONLY=store: a part
# make test-all all tests, as continuous integration runs them; COVERAGE=1: with coverage
# make bench    measure everything, each row once the machine is idle; ONLY=training: a part (benchmarks/bench.py)
# make faults   inject faults into short runs and check that nothing is lost; SEED=1 SCENARIOS=200
# make load     the speed of pages, ingest and training with 30 windows, 1,000 stored runs and 10 million numbers
# make mutants  mutation tests of the training core; SEED=1 MUTANTS=60
# make gpu-compiler  install XLA's compiler for GPUs, for gpu-check on a host without a GPU
# make audit    list known vulnerabilities of the pinned packages (pip-audit; needs a network)
# make check    format, lint, types and import rules (under 30 s)
SHELL := /bin/bash
# Compiled modules are stored, whatever the environment says: without them a short training takes a tenth longer.
export PYTHONDONTWRITEBYTECODE :=
VENV := .venv
PYTHON := $(VENV)/bin/python
PORT ?= 8501
ADDRESS := 127.0.0.1

# The hardware of this host decides which TensorFlow is installed, unless you choose a list: make setup REQUIREMENTS=FILE.
CHOSEN := $(VENV)/.requirements
ifneq ($(wildcard $(CHOSEN)),)
REQUIREMENTS := $(shell cat $(CHOSEN))
else ifneq ($(wildcard /dev/accel0 /dev/vfio/0),)
REQUIREMENTS := requirements-tpu.txt
else ifeq ($(shell nvidia-smi -L >/dev/null 2>&1 && echo yes),yes)
REQUIREMENTS := requirements-gpu.txt
else
REQUIREMENTS := requirements.txt
endif

.PHONY: run setup setup-dev test test-all check format bench docs faults load mutants gpu-compiler screenshots audit clean

run: setup
	@$(PYTHON) -m gan_runtime serve --port $(PORT)

setup:
	@scripts/setup.sh $(VENV) $(REQUIREMENTS)
ifeq ($(origin REQUIREMENTS),command line)
	@echo $(REQUIREMENTS) >$(CHOSEN)
endif

setup-dev: setup
	@scripts/setup.sh $(VENV) requirements-dev.txt

check: setup-dev
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/mypy app.py pages dashboard gan_runtime benchmarks
	@$(PYTHON) -m pytest tests/project/test_architecture.py

# `make test ONLY=store`: a part, by its folder in tests/ or by a path; without `check`.
PYTEST := $(PYTHON) -m pytest --durations=20 -n 2 --dist loadfile --no-loadscope-reorder
ifdef ONLY
PARTS = $(if $(wildcard $(ONLY)),$(ONLY),$(wildcard tests/$(ONLY) tests/full/$(ONLY)))
PREPARED := setup-dev
else
PARTS := tests --ignore=tests/project/test_architecture.py
PREPARED := check
endif

test: $(PREPARED)
	@scripts/browser.sh $(PYTHON)
	@$(PYTEST) -m "not full" $(or $(PARTS),$(error there is no tests/$(ONLY)))

test-all: $(PREPARED) gpu-compiler
	@scripts/browser.sh $(PYTHON)
	@$(PYTEST) $(if $(COVERAGE),--cov) $(or $(PARTS),$(error there is no tests/$(ONLY)))

audit: setup-dev
	@scripts/audit.sh $(PYTHON)

format: setup-dev
	@$(VENV)/bin/ruff format .
	@$(VENV)/bin/ruff check --fix .

bench: setup-dev
	@scripts/browser.sh $(PYTHON)
	@$(PYTHON) -m benchmarks.bench $(if $(ONLY),--only $(ONLY))

faults: setup-dev
	@$(PYTHON) -m benchmarks.faults --keep --seed $(or $(SEED),1) --scenarios $(or $(SCENARIOS),200)

load: setup-dev
	@scripts/browser.sh $(PYTHON)
	@$(PYTHON) -m benchmarks.load --keep $(if $(ONLY),--only $(ONLY))

mutants: setup-dev
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --require-hashes --requirement locks/requirements-mutants.txt
	@$(PYTHON) -m benchmarks.mutants $(or $(SEED),1) $(or $(MUTANTS),60)

gpu-compiler: setup
	@scripts/gpu_compiler.sh $(VENV)

docs: setup-dev
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --require-hashes --requirement locks/requirements-docs.txt
	@$(PYTHON) -m scripts.reference
	@$(VENV)/bin/mkdocs build --quiet

screenshots: setup-dev
	@scripts/browser.sh $(PYTHON)
	@$(PYTHON) -m tests.browser.screenshots

clean:
	rm -rf $(VENV)
