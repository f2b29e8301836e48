# Every target sets up what it needs from nothing but python3. `make help` lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
SPARK := $(VENV)/.spark

.DEFAULT_GOAL := help
.PHONY: help demo spark-demo test test-pythons browser test-full lint bench experiments docs clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "privurn needs Python 3.11 or newer; try: make PYTHON=python3.12")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

# Spark is a large download, of use with Java only: without it its tests are skipped, and say so.
$(SPARK): $(READY)
	if command -v java >/dev/null; then \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[spark]'; \
	else echo "there is no Java here: what needs Spark is not tried"; fi
	touch $@

demo: $(READY)  ## make a table of incomes, release it, verify it, show before and after
	$(BIN)/python examples/demo.py

spark-demo: $(SPARK)  ## the main job on a Spark cluster that it starts on this computer (needs Java 17)
	$(BIN)/python examples/spark_demo.py

# Kernels of the fast tests are compiled with less effort, in a cache of their own; test-full takes those that users have.
QUICKLY := NUMBA_OPT=1 NUMBA_LOOP_VECTORIZE=0 NUMBA_SLP_VECTORIZE=0 PRIVURN_CACHE_DIR=$(CURDIR)/$(VENV)/kernels PYTHONDONTWRITEBYTECODE=

# Asserts are not taken apart, which would take longer than all imports; those that fail run once more to be explained.
test: $(SPARK)  ## fast tests, doctests and examples (longer the first time, when kernels are compiled)
	$(QUICKLY) $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -q -m 'not long' --assert=plain \
	  || ($(QUICKLY) $(BIN)/python -m pytest -q -m 'not long' --last-failed --last-failed-no-failures=none; exit 1)

PYTHONS := python3.11 python3.12 python3.13

test-pythons:  ## make test with every Python from 3.11 to 3.13 that is installed, each in an environment of its own
	@for python in $(PYTHONS); do \
	  if command -v $$python >/dev/null; then \
	    echo "$$python:"; $(MAKE) --no-print-directory test PYTHON=$$python VENV=.venv-$$python || exit 1; \
	  else echo "$$python is not installed here: not tried"; fi; \
	done

browser:  ## Chromium for the browser tests (needs root and Debian's packages)
	command -v chromium >/dev/null || (apt-get update && apt-get install -y chromium)

test-full: $(SPARK) browser  ## everything, the long statistical, browser and Spark tests included
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -q --hypothesis-profile=exploring

lint: $(READY)  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(READY)  ## speed and memory, as ratios to a bound measured in the same run
	$(BIN)/python -m benchmarks.all

RESULTS := experiments-output
EARNINGS := $(RESULTS)/cps.csv.gz
EXPERIMENTS := paper_anchor thesis_tables thesis_utility convergence census_column censoring_supplement posterior_table coverage \
  mixture_paper mixture_global unknown_n regression_coverage fixed_truths
OPTIONS_convergence := --plot $(RESULTS)/convergence.png
OPTIONS_census_column := --plot $(RESULTS)/census_column.png
OPTIONS_censoring_supplement := --figures $(RESULTS)/censoring_supplement
OPTIONS_mixture_paper := --figures $(RESULTS)/mixture_paper
OPTIONS_fixed_truths := --file $(RESULTS)/fixed_truths.jsonl
OPTIONS_unknown_n := --replicates 10 --realisations 1 --figure $(RESULTS)/unknown_n.png

.PHONY: earnings $(EXPERIMENTS:%=experiment-%)
$(EXPERIMENTS:%=experiment-%): experiment-%: $(READY)
	mkdir -p $(RESULTS)
	$(BIN)/python -m experiments.$* $(OPTIONS_$*) > $(RESULTS)/$*.txt
	cat $(RESULTS)/$*.txt

$(EARNINGS): | $(READY)
	mkdir -p $(RESULTS)/taxcalc
	$(BIN)/python -m pip download --quiet --disable-pip-version-check --no-deps --dest $(RESULTS)/taxcalc taxcalc==6.8.0
	tar -xzf $(RESULTS)/taxcalc/taxcalc-6.8.0.tar.gz -C $(RESULTS) --strip-components=2 taxcalc-6.8.0/taxcalc/cps.csv.gz

earnings: $(READY) $(EARNINGS)
	$(BIN)/python -m experiments.census_column --data $(EARNINGS) --column e00200 --delta 1e-3 > $(RESULTS)/earnings.txt
	cat $(RESULTS)/earnings.txt

experiments: $(EXPERIMENTS:%=experiment-%) earnings  ## the papers' tables with ours and the exact values beside them, into experiments-output/

docs: $(READY)  ## check the documentation's links and run its examples
	$(BIN)/python -m pytest -q tests/end_to_end/test_docs.py

clean:  ## remove what the other targets made
	rm -rf $(VENV) $(PYTHONS:%=.venv-%) demo-output spark-demo-output $(RESULTS) .mypy_cache .ruff_cache .pytest_cache
