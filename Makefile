# Two commands a newcomer needs: `make demo`, for which Java must be there, and `make test`. Both
# create the environment first.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: env test test-core test-columnar test-others test-spark lint demo bench docs pictures dist soak clean

env: $(STAMP)

$(STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "windowlib needs Python 3.11 or newer: make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@

# Side by side, because the one waits for Spark most of the time; the longest first.
APART  := spark columnar farms preference disorder control workload testing commands
test: lint
	$(MAKE) -j2 --output-sync=target test-spark test-core test-columnar test-others

test-core: env
	$(BIN)/python -m pytest $(APART:%=--ignore=tests/%)

test-others: env
	$(BIN)/python -m pytest $(filter-out tests/spark tests/columnar,$(APART:%=tests/%))

test-columnar: env
	$(BIN)/python -m pytest tests/columnar

test-spark: env
	$(BIN)/python -m pytest tests/spark

lint: env
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

demo: env
	$(BIN)/python -m windowlib demo --spark

# The peers are optional: without them, or where they do not install, the rest is measured.
bench: env
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench,speed]'
	$(BIN)/python -m bench core
	$(BIN)/python -m bench operators
	$(BIN)/python -m bench columnar
	$(BIN)/python -m bench preference
	$(BIN)/python -m bench spark
	$(BIN)/python -m bench farms

# Broken links and pages that are in no menu fail the build; with --quiet they would not.
docs: pictures
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

pictures: env
	$(BIN)/python -m docs.pictures

# A wheel and a source archive in dist/.
dist: env
	$(BIN)/python -m pip install --quiet --disable-pip-version-check build
	$(BIN)/python -m build

soak: env
	$(BIN)/python -m tests.soak.drift
	$(BIN)/python -m tests.soak.kills

clean:
	rm -rf $(VENV) build dist *.egg-info bench/out site
