# The two commands of the README are `make demo` and `make test`; both need Python 3.11, make and the package index only.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.ready
# Where the tests of `make unit` write, if it has 2 GiB free: they sync thousands of small files, and wait for the disk.
MEMORY := $(shell df --output=avail,target -k /dev/shm 2>/dev/null | awk 'NR == 2 && $$1 > 2097152 { print $$2 }')

.PHONY: setup demo test lint type imports unit test-chaos test-vm test-compose test-kubernetes test-consumers rigs rig-vm rig-compose rig-kubernetes bench schemas clean

setup: $(STAMP)          ## make .venv from the pinned, hashed requirements; the command is .venv/bin/sublet

$(STAMP): requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Sublet needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(STAMP)           ## run the main job on this machine: real cgroups as root, the simulator otherwise
	$(BIN)/python -m sublet.demo

test: $(STAMP) lint type imports unit   ## everything that needs no more than Python and make

lint: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

type: $(STAMP)
	$(BIN)/mypy

imports: $(STAMP)
	$(BIN)/lint-imports --no-logo 2>/dev/null || $(BIN)/lint-imports

unit: $(STAMP)           ## a file on each CPU; those that use this host's cgroups one after the other
	PYTEST_DEBUG_TEMPROOT=$(MEMORY) $(BIN)/python -m pytest -n auto --maxprocesses 8 --no-loadscope-reorder \
		-m "not slow and not vm and not compose and not kubernetes and not consumers"

test-chaos: $(STAMP)     ## kill -9 of each service while the main job runs, 20 times each, and a storm of 100 kills; STORM_KILLS=1000 for a long one
	$(BIN)/python -m pytest -m slow

test-vm: rig-vm          ## the quick start on 48 CPUs of an emulated machine; as root on Debian 12, takes 10 min and 0.7 GB of cache
	$(BIN)/python -m pytest -m vm tests/vm

test-compose: rig-compose  ## deploy/compose on a container engine of its own; as root on Debian 12, the first time takes 6 min more
	$(BIN)/python -m pytest -m compose tests/compose

test-kubernetes: rig-kubernetes  ## a real control plane and a real kubelet; as root on Debian 12, the first time takes 15 min more; KUBERNETES=v1.30.4 for an older one
	$(BIN)/python -m pytest -m kubernetes tests/kubernetes

rigs: rig-vm rig-compose rig-kubernetes  ## build what the three above need and keep it, without a test

rig-vm: $(STAMP)
	PYTHONPATH=tests:tests/vm $(BIN)/python -m rig

rig-compose: $(STAMP)
	PYTHONPATH=tests:tests/compose:tests/vm $(BIN)/python -m compose_rig

rig-kubernetes: $(STAMP)
	PYTHONPATH=tests:tests/kubernetes:tests/compose:tests/vm $(BIN)/python -m kube_rig

test-consumers: $(STAMP) ## build and run the example subscribers, each in its language, through restarts; without Go, Node or Java that one is skipped
	$(BIN)/python -m pytest -m consumers tests/consumers

bench: $(STAMP)          ## measure reaction times and footprint; prints a table
	$(BIN)/python -m bench

schemas: $(STAMP)        ## write docs/schemas anew from the models
	$(BIN)/python -m shared.contracts.schemas docs/schemas

clean:
	rm -rf $(VENV) out .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
