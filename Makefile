# The two commands of the README are `make demo` and `make test`; both need Python 3.11, make and the package index only.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.ready

.PHONY: setup demo test lint type imports unit chaos test-vm bench schemas requirements clean

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

unit: $(STAMP)
	$(BIN)/python -m pytest -m "not slow and not vm"

chaos: $(STAMP)          ## kill -9 of each service while the main job runs, 20 times each
	$(BIN)/python -m pytest -m slow

test-vm: $(STAMP)        ## the quick start on 48 CPUs of an emulated machine; as root on Debian 12, takes 10 min and 0.7 GB of cache
	PYTHONPATH=tests/vm $(BIN)/python -m rig
	$(BIN)/python -m pytest -m vm tests/vm

bench: $(STAMP)          ## measure reaction times and footprint; prints a table
	$(BIN)/python -m bench

schemas: $(STAMP)        ## write docs/schemas anew from the models
	$(BIN)/python -m shared.contracts.schemas docs/schemas

clean:
	rm -rf $(VENV) out .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
