# The one door: `make help`.
#
# PYTHON=python3.12     the interpreter that .venv is made from (3.11 or newer)
# EXTRAS=passages,amr   extras of pyproject.toml that `make install` adds
# TORCH_ARGS="…"        further arguments for installing torch, for example --index-url and a wheel index (see README)
# ARGS="…"              further arguments for `kgqa demo` and for pytest

PYTHON ?= $(shell for name in python3 python3.13 python3.12 python3.11; do \
	if $$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then echo $$name; break; fi; done)
TORCH_ARGS ?=
EXTRAS ?=
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder
RESULTS := benchmarks/results
INSTALLED := $(VENV)/.installed
INSTALLED_DEV := $(VENV)/.installed-dev
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))

export DO_NOT_TRACK = true
export PREFECT_SERVER_ANALYTICS_ENABLED = false
export MLFLOW_DISABLE_TELEMETRY = true
export RAY_USAGE_STATS_ENABLED = 0
export HF_HUB_DISABLE_TELEMETRY = 1
export PIP_DISABLE_PIP_VERSION_CHECK = 1
export NO_MKDOCS_2_WARNING = true
# Without compiled modules every command reads all of ours anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install install-dev demo test test-all lint audit docs bench bench-docs clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(INSTALLED) ## make .venv with the pinned packages that runs need (2 minutes, 2.7 GB)
	@test -z "$(EXTRAS)" || $(BIN)/python -m pip install -c constraints.txt -e '.[$(EXTRAS)]'

install-dev: $(INSTALLED_DEV) ## the same, all extras, and what tests and lint need (1 minute and 1 GB more)

demo: $(INSTALLED) ## the whole pipeline on the bundled graph: scores, report, links
	$(BIN)/kgqa demo $(ARGS)

test: $(INSTALLED_DEV) ## the tests, without those marked slow, a file at a time on two processes
	$(PYTEST) -m "not slow" $(ARGS)

test-all: $(INSTALLED_DEV) ## every test; also a wheel alone, and the newest Python of this machine
	$(PYTEST) $(ARGS)

lint: $(INSTALLED_DEV) ## ruff, mypy on kgqa_core, the floors that import-linter holds, the site, and the audit
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/mkdocs build --quiet --strict
	$(BIN)/python -m tests.security.audit

audit: $(INSTALLED_DEV) ## the pinned packages against the known vulnerabilities; needs pypi.org, and says so where there is none
	$(BIN)/python -m tests.security.audit

docs: $(INSTALLED_DEV) ## the documentation as a site in build/site: every page is in its navigation, every link leads somewhere
	$(BIN)/mkdocs build --strict

bench: $(INSTALLED_DEV) ## timed comparisons (about half an hour, 10 GB in .bench), then the tables of the docs
	mkdir -p .bench
	$(BIN)/python -m benchmarks.graph.ingest --sizes 1M,10M,40M --folder .bench --json $(RESULTS)/ingest.json
	$(BIN)/python -m benchmarks.graph.wikidata_json --json $(RESULTS)/wikidata_json.json
	$(BIN)/python -m benchmarks.graph.dkg_follow --json $(RESULTS)/dkg_follow.json
	$(BIN)/python -m benchmarks.graph.dkg_scale --work .bench --json $(RESULTS)/dkg_scale.json
	$(BIN)/python -m benchmarks.models.llm --json $(RESULTS)/llm.json
	$(BIN)/python -m benchmarks.docs_tables

bench-docs: $(INSTALLED_DEV) ## every generated table of docs/ from benchmarks/results
	$(BIN)/python -m benchmarks.docs_tables

clean: ## delete .venv and caches; the runs in .kgqa stay
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -not -path './.kgqa/*' -prune -exec rm -rf {} +

$(INSTALLED): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" && $(PYTHON) -c '$(NEW_ENOUGH)' || { \
		echo "kgqa needs Python 3.11 or newer, but '$(or $(PYTHON),python3)' is not; say make PYTHON=/path/to/python3.11" >&2; \
		exit 2; }
	@test -x $(BIN)/python && $(BIN)/python -c '$(NEW_ENOUGH)' || { \
		rm -rf $(VENV); echo "making $(VENV) with $$($(PYTHON) --version)"; \
		$(PYTHON) -m venv $(VENV) || { \
			rm -rf $(VENV); \
			echo "$(PYTHON) cannot make a virtual environment; install its venv module (python3-venv on Debian)" >&2; \
			exit 2; }; }
	@echo "installing the pinned packages into $(VENV): torch first, then the rest"
	$(BIN)/python -m pip install -c constraints.txt $(TORCH_ARGS) torch==2.13.0
	$(BIN)/python -m pip install -c constraints.txt -e '.[run]'
	@echo "compiling the kernels"
	@$(BIN)/python -m kgqa_core.warm_up
	@touch $@

$(INSTALLED_DEV): $(INSTALLED)
	$(BIN)/python -m pip install -c constraints.txt -e '.[dev]'
	@touch $@
