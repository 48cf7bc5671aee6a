# Everything from a bare machine with Python 3.11 or newer: `make demo`, `make test`, `make check`, `make docs`.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready

.PHONY: demo test check docs bench pictures clean
.DELETE_ON_ERROR:

demo: $(READY)
	$(BIN)/anyhull demo

test: $(READY)
	$(BIN)/pytest -n 2 --dist loadfile

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/mypy --allow-untyped-defs --allow-untyped-calls --allow-incomplete-defs tests

# A warning is an error: a dead link, an anchor that is not there, a public name without a place in the API.
docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

bench: $(READY)
	cd benchmarks && ../$(BIN)/python mpc.py && ../$(BIN)/python pilot.py && ../$(BIN)/python environment.py
	cd benchmarks && ../$(BIN)/python soak.py --hours 1 --seeds 0

pictures: $(READY)
	$(BIN)/python docs/architecture/draw.py
	$(BIN)/anyhull simulate --vessel platform-b --sea field --animate docs/lap.gif

# The pins name the CPU build of JAX, and every package that the tests need.
$(READY): requirements.txt pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("anyhull needs Python 3.11 or newer, not " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

clean:
	rm -rf $(VENV) build out
