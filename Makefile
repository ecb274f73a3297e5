# Two commands a newcomer needs: `make demo`, for which Java must be there, and `make test`. Both
# create the environment first.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
CONSTRAINTS ?= constraints.txt

# Tests start hundreds of Python processes. Where this is set, as in many containers, each compiles
# all modules anew, which takes it most of a second; an empty value is as good as none.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: env test test-more test-all test-versions lint format types demo bench docs pictures release constraints soak soak-short clean

env: $(STAMP)

$(STAMP): pyproject.toml $(CONSTRAINTS)
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "windowlib needs Python 3.11 or newer: make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(CONSTRAINTS:%=-c %) -e '.[dev]'
	touch $@

# Java maps an archive of Spark's classes faster than it loads them; tests start many Javas, and many
# workers, for which there is a home of Spark without Python. They run without both, too. For the
# archive Java must be there.
ARCHIVE := $(VENV)/spark.jsa
$(ARCHIVE): $(STAMP) tests/helpers/java.py
	-$(BIN)/python -m tests.helpers.java

# Every claim once: lint, types, and the tests with few examples for each search. Batches come first,
# because they compile the loops that all other parts then load; beside them the types, and windows
# tuple by tuple, which have no such loops. The others run side by side on two cores, because they
# wait for Spark and for workers much of the time. A part that fails lets the others run.
PARTS    := spark rest faults operators columnar events
FIRST    := columnar events
QUICK    := -m "not long"
SIDE     := --keep-going --jobs=4 --output-sync=target
test: $(ARCHIVE)
	failed=0; \
	$(MAKE) $(SIDE) $(FIRST:%=test-%) types lint format || failed=1; \
	$(MAKE) $(SIDE) $(patsubst %,test-%,$(filter-out $(FIRST),$(PARTS))) || failed=1; \
	exit $$failed

# What takes long: all examples of the searches, all streams of Spark, and a short soak.
THOROUGH := -m "long or search or hypothesis" --hypothesis-profile=thorough
test-more: $(ARCHIVE)
	$(MAKE) $(SIDE) $(PARTS:%=more-%) soak-short

test-all:
	failed=0; $(MAKE) test || failed=1; $(MAKE) test-more || failed=1; exit $$failed

# Spark waits ten seconds for a Python worker, which nothing can change. On a machine with other
# work to do that may be too short, so such a test runs again. Tests of faults and of state that
# moves are a part of their own: they mostly wait for other processes. What else needs Spark runs
# there, in the same JVM.
AGAIN           := --reruns 2 --only-rerun "worker failed to connect back"
FAULTS          := recovery cluster standalone rescale two_inputs simulation commands parts
ON_SPARK        := tests/real_data/test_flights_on_spark.py tests/docs/test_spark_pages.py
TESTS_faults    := $(FAULTS:%=tests/spark/test_%.py) $(ON_SPARK)
TESTS_spark     := tests/spark $(TESTS_faults:%=--ignore=%)
TESTS_columnar  := tests/columnar
TESTS_events    := tests/window tests/summaries tests/spec tests/conformance
TESTS_operators := tests/operators tests/farms tests/control tests/workload
TESTS_rest      := $(patsubst %,--ignore=%,$(filter tests/%,$(foreach part,spark faults columnar operators events,$(TESTS_$(part)))))

$(PARTS:%=test-%): test-%: $(ARCHIVE)
	$(BIN)/python -m pytest $(QUICK) $(TESTS_$*) $(AGAIN)

$(PARTS:%=more-%): more-%: $(ARCHIVE)
	$(BIN)/python -m pytest $(THOROUGH) $(TESTS_$*) $(AGAIN)

# Environments with other versions of Spark and of what else we depend on; it takes an hour.
# VERSIONS=--short is what .ci/run does, VERSIONS="spark-4.0 low" some of them.
test-versions: env
	$(BIN)/python -m tests.versions $(VERSIONS)

lint: env
	$(BIN)/ruff check .

format: env
	$(BIN)/ruff format --check .

types: env
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

# A wheel and a source archive in dist/, checked, and tried in an environment with nothing else.
# The version is the one in windowlib/__init__.py.
RELEASE := build/release
release:
	rm -rf dist $(RELEASE)
	$(PYTHON) -m venv $(RELEASE)/tools
	$(RELEASE)/tools/bin/python -m pip install --quiet build check-wheel-contents twine
	$(RELEASE)/tools/bin/python -m build
	$(RELEASE)/tools/bin/twine check --strict dist/*
	$(RELEASE)/tools/bin/check-wheel-contents dist/*.whl
	$(PYTHON) -m venv $(RELEASE)/empty
	$(RELEASE)/empty/bin/python -m pip install --quiet dist/*.whl
	cd $(RELEASE) && empty/bin/windowlib demo && empty/bin/python -c "import windowlib; print(windowlib.__version__)"

# The versions with which everything was tested last; `make env CONSTRAINTS=` takes the newest.
constraints: env
	$(BIN)/python -m tests.packaging.constraints > constraints.new
	mv constraints.new constraints.txt

# Scenarios by name, for so many minutes: `make soak SOAK="churn killed --minutes 5"`.
SOAK := --minutes 60
soak: env
	$(BIN)/python -m tests.soak $(SOAK)

# Long enough to see that nothing drifts at once. Kills are in tests/spark/test_recovery.py.
soak-short: env
	$(BIN)/python -m tests.soak.drift 100000

clean:
	rm -rf $(VENV) .versions build dist *.egg-info bench/out site
