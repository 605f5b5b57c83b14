# Every target sets up what it needs: tmux, and a virtual environment in .venv (tools/setup.sh).
#   make demo               two builders at work in a scratch repository; KEEP=1 leaves them
#   make test               the tests; ARGS="tests/farm -k init" chooses some
#   make lint               ruff and mypy
#   make format             let ruff rewrite what it can
#   make test-runtimes      the tests that drive the real AI CLIs, which it installs from npm below tests/;
#                           other people's programs hang at times: a failure is tried once more and named
#   make bench              the benchmarks, as ratios to the bare tools
#   make docs               write the generated documents anew
#   make clean              remove what the other targets made
# PYTHON=/path/to/python chooses the interpreter (3.11 or newer).

PYTHON ?=
KEEP ?=
ARGS ?=
BIN := .venv/bin
export PYTHON

.PHONY: demo test lint format test-runtimes bench docs clean setup-run setup-dev
.NOTPARALLEL:

demo: setup-run
	@$(BIN)/python tools/demo.py $(if $(filter-out 0 no,$(KEEP)),--keep)

test: setup-dev
	$(BIN)/python -m pytest -q -n 2 -m "not runtimes" $(ARGS)

lint: setup-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: setup-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test-runtimes: setup-dev
	sh tests/install_runtimes.sh
	AF_REQUIRE_RUNTIMES=1 $(BIN)/python -m pytest -q -m runtimes --reruns 1 -rR $(ARGS)

bench: setup-dev
	$(BIN)/python -m benchmarks $(ARGS)

docs: setup-run
	$(BIN)/python tools/docs.py

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
	rm -rf tests/node_modules tests/dashboard/node_modules agent_farm/dashboard/static/vendor
	find . -name __pycache__ -type d -not -path './.builders/*' -prune -exec rm -rf {} +

setup-run:
	@sh tools/setup.sh run

setup-dev:
	@sh tools/setup.sh dev
