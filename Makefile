# Each target sets itself up: all it needs is Python 3.11 or newer on the PATH.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

# Without bytecode, each of the many processes that tests start would compile every module anew.
unexport PYTHONDONTWRITEBYTECODE

TESTS  := $(BIN)/pytest -n auto --dist loadfile --no-loadscope-reorder

.PHONY: demo test quick lint bench soak docs clean

demo: $(READY)
	$(BIN)/causet demo

test: $(READY)
	$(TESTS) -m "not soak"

quick: $(READY)
	$(TESTS) -m "not soak" --no-jvm

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(READY)
	$(BIN)/python -m bench

soak: $(READY)
	$(TESTS) -m soak

docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

$(READY): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "causet needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV)
