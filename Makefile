# Everything runs from a machine with Python >= 3.11, make and the package registry: the first target that needs
# it creates .venv, installs uv into it (ten times faster than pip) and lets uv install the rest.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
UV     := $(BIN)/uv pip install --quiet --python $(BIN)/python

# Bytecode and rewritten asserts are kept, whatever the shell says: without them a short run takes a third longer. It is
# made when a module is first imported: of all that is installed two thirds never are.
unexport PYTHONDONTWRITEBYTECODE
# Two processes are at work: threads of BLAS that spin while they wait for each other would only take their time.
export OPENBLAS_NUM_THREADS ?= 1
PYTEST := $(BIN)/python -m pytest --numprocesses 2

.PHONY: help install core-debug demo check test test-all lint format bench docs dist clean
help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(BIN)/uv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "laconic needs Python 3.11 or newer: make PYTHON=/path/to/python3.11"; exit 1; }
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet uv

$(VENV)/.run: pyproject.toml | $(BIN)/uv
	@echo "installing laconic into $(VENV)"
	@$(UV) --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.run
	@echo "installing the development tools"
	@$(UV) --editable '.[dev]'
	@touch $@

$(VENV)/.docs: $(VENV)/.run
	@$(UV) --editable '.[docs]'
	@touch $@

# The core is compiled again where a file of it has changed; installing has compiled it once.
CORE := $(wildcard core/*) hatch_build.py

$(VENV)/.core: $(VENV)/.run $(CORE)
	@$(BIN)/python hatch_build.py --quiet
	@touch $@

core-debug: ## build the core with symbols and sanitizers
	@mkdir -p build
	@$${CC:-cc} -std=gnu11 -g -O1 -march=native -ffp-contract=off -fwrapv -Wno-psabi -fsanitize=address,undefined -fPIC -shared \
		-o build/core-debug.so core/double.c core/single.c core/waves.c -lm
	@echo "LACONIC_CORE=build/core-debug.so uses it"

install: $(VENV)/.core ## install laconic into .venv, with its core

demo: $(VENV)/.core ## ten agents, nine ways to learn: a table, and a page in demo/
	@$(BIN)/laconic demo --out demo/index.html

check: lint $(VENV)/.core ## for every save: lint, and the tests that are fast
	@$(PYTEST) -m "not slow"

test: $(VENV)/.dev $(VENV)/.core ## run every test
	@$(PYTEST)

test-all: $(VENV)/.dev $(VENV)/.core ## run every test in every combination
	@LACONIC_TESTS=all $(PYTEST)

lint: $(VENV)/.dev ## style, types, and who may import whom
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache

format: $(VENV)/.dev ## put the code into its one format
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(VENV)/.dev $(VENV)/.core ## time laconic against its yardsticks
	@$(BIN)/python benchmarks/speed.py
	@$(BIN)/python benchmarks/scale.py

docs: $(VENV)/.docs ## build the documentation into site/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "open site/index.html"

dist: $(VENV)/.dev $(VENV)/.core ## build sdist and wheels into dist/, and run the fast tests on what they install
	@$(BIN)/python tools/check_dist.py

clean: ## remove what the targets made
	rm -rf $(VENV) site demo build dist .mypy_cache .ruff_cache .hypothesis src/laconic/native/core-*
	find benchmarks docs examples src tests tools -name __pycache__ -type d -prune -exec rm -rf {} +
