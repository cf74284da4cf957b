# One door per chore. `make lab` and `make test` set up everything they need.
PYTHON ?= $(shell for name in python3.11 python3.12 python3.13 python3; do \
	"$$name" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$name" && break; done)
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check install --constraint constraints.txt

LAB_EXTRAS  := models,web
TEST_EXTRAS := models,web,hf,onnx,notebook,cluster,dev

# Compiled modules are kept, also where the environment says otherwise: the tests start hundreds of
# processes, and each of them would compile everything again.
export PYTHONDONTWRITEBYTECODE :=

# What the page of `heed serve` is built from.
PAGE_SOURCES := hatch_build.py page/package-lock.json $(shell find page/src page/*.* -type f 2>/dev/null)

.PHONY: help lab test long check page docs docs-check docs-update bench clean

help: ## Show these lines
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 14

# Stamps depend on what decides the installation, so a second run installs nothing.
$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "make: no Python of version 3.11 or later with pip and venv was found" \
		"(on Debian: apt-get install python3-venv python3-pip)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.stamp-lab: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "Setting up the laboratory in $(VENV) (once; 2 to 5 minutes, 1.2 GB) ..."
	$(PIP) --editable '.[$(LAB_EXTRAS)]'
	@touch $@ $(VENV)/.stamp-page

$(VENV)/.stamp-test: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "Setting up the laboratory and its tests in $(VENV) (once; 3 to 6 minutes, 1.4 GB) ..."
	$(PIP) --editable '.[$(TEST_EXTRAS)]'
	@touch $@ $(VENV)/.stamp-lab $(VENV)/.stamp-page

# An installation builds the page; this builds it again when only the page has changed.
$(VENV)/.stamp-page: $(PAGE_SOURCES) | $(VENV)/.stamp-lab
	$(PIP) --no-deps --editable .
	@touch $@

# A browser and a compiler, from the machine or brought; what cannot be had is said, and skipped.
$(VENV)/.stamp-tools: tests/tools.py | $(VENV)/.stamp-test
	$(BIN)/python tests/tools.py
	@touch $@

lab: $(VENV)/.stamp-lab ## Run every part of the laboratory and write the report (7 to 10 minutes)
	$(BIN)/heed lab $(LAB)

test: $(VENV)/.stamp-test $(VENV)/.stamp-page $(VENV)/.stamp-tools ## Run the whole test suite (13 to 18 minutes)
	$(BIN)/python -m pytest -n 2 --dist worksteal $(TEST)

long: $(VENV)/.stamp-test $(VENV)/.stamp-page $(VENV)/.stamp-tools ## Run the longer forms of tests that `make test` leaves out
	$(BIN)/python -m pytest -n 2 --dist worksteal -m long $(TEST)

check: $(VENV)/.stamp-test ## Lint, types and layers only
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

page: $(VENV)/.stamp-page ## Build the page of `heed serve` again after a change

docs: $(VENV)/.stamp-test ## Build the documentation, strictly
	$(BIN)/sphinx-build -W -n --keep-going -b html docs docs/_build/html

docs-check: $(VENV)/.stamp-test ## Run every `console` block of the docs and compare its output
	$(BIN)/python docs/console.py --check

docs-update: $(VENV)/.stamp-test ## Run every `console` block of the docs and write its output there; make the notebooks
	$(BIN)/python docs/console.py --write
	$(BIN)/python docs/ipynb.py --write

bench: $(VENV)/.stamp-test ## Run every benchmark and store its figures
	@failed=; for file in benchmarks/bench_*.py; do $(BIN)/python $$file || failed="$$failed $$file"; done; \
	test -z "$$failed" || { echo "could not be measured:$$failed" >&2; exit 1; }

clean: ## Remove everything that make made
	rm -rf $(VENV) docs/_build lab page/node_modules src/heedful/web/built
