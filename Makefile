# Every target sets up what it needs: tmux, and a virtual environment in .venv (tools/setup.sh).
#   make demo               two builders at work in a scratch repository; KEEP=1 leaves them
#   make test               the tests to run at every change: each verb, in about four minutes
#   make test-all           all tests but those of the next target
#   make test-runtimes      the tests that drive the real AI CLIs, which it installs from npm below tests/
#   make lint               ruff and mypy; biome and tsc for the page's scripts, where npm is there
#   make format             let ruff and biome rewrite what they can
#   make bench              the benchmarks, as ratios to the bare tools
#   make docs               write the generated documents anew
#   make clean              remove what the other targets made
# ARGS="tests/farm -k init" chooses some of the tests, WORKERS=4 how many run at once.
# PYTHON=/path/to/python chooses the interpreter (3.11 or newer).

PYTHON ?=
KEEP ?=
ARGS ?=
WORKERS ?= 3
BIN := .venv/bin
PAGE := sh tests/dashboard/check_page.sh
PYTEST = $(BIN)/python -m pytest -q
export PYTHON
unexport PYTHONDONTWRITEBYTECODE  # every process of a test would compile all it imports

.PHONY: demo test test-all test-runtimes lint format bench docs clean setup-run setup-dev setup-all
.NOTPARALLEL:

demo: setup-run
	@$(BIN)/python tools/demo.py $(if $(filter-out 0 no,$(KEEP)),--keep)

test: setup-dev
	$(PYTEST) -n $(WORKERS) --dist worksteal -m "not runtimes and not slow" $(ARGS)

test-all: setup-all
	$(PYTEST) -n $(WORKERS) --dist worksteal -m "not runtimes" $(ARGS)

test-runtimes: setup-dev
	sh tests/install_runtimes.sh
	AF_REQUIRE_RUNTIMES=1 $(PYTEST) -n $(WORKERS) --dist worksteal -m runtimes $(ARGS)

lint: setup-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	@$(PAGE) lint

format: setup-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	@$(PAGE) format

bench: setup-dev
	$(BIN)/python -m benchmarks $(ARGS)

docs: setup-run
	$(BIN)/python -m tools.docs

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
	rm -rf tests/node_modules tests/dashboard/node_modules agent_farm/server/page/vendor
	find . -name __pycache__ -type d -not -path './.builders/*' -prune -exec rm -rf {} +

setup-run:
	@sh tools/setup.sh run

setup-dev:
	@sh tools/setup.sh dev

setup-all:
	@sh tools/setup.sh all
