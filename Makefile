# hardmask from a bare clone. Needs Python 3.11 or newer and make; everything else goes into $(VENV).

PYTHON ?= python3
VENV ?= .venv
PYTEST_ARGS ?= -n 2

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
PACKAGES := hardmask.spec hardmask.adapters hardmask.conformance

.DEFAULT_GOAL := help
.PHONY: help certify test lint format clean

help:
	@echo "make certify   certify NumPy's masked softmax (creates $(VENV) and installs hardmask into it)"
	@echo "make test      run the tests (installs the test extras too, with PyTorch and JAX)"
	@echo "make lint      run ruff, mypy and import-linter"
	@echo "make format    let ruff format the sources"
	@echo "make clean     remove .venv, build products and caches"
	@echo
	@echo "PYTHON=python3.12  the Python to start from (now $(PYTHON); 3.11 or newer)"
	@echo "VENV=dir           where to install (now $(VENV))"
	@echo "PYTEST_ARGS=...    arguments for pytest (now $(PYTEST_ARGS))"
	@echo
	@echo "On Linux pip's usual index serves PyTorch with CUDA, several GB. To test with the much smaller CPU build, set"
	@echo "PIP_EXTRA_INDEX_URL to the index of CPU builds that pytorch.org names, or install that build into $(VENV) first."

certify: $(VENV)/.runtime
	$(install-tree)
	$(BIN)/hardmask certify numpy

test: $(VENV)/.testing
	$(install-tree)
	$(BIN)/pytest $(PYTEST_ARGS)

lint: $(VENV)/.testing
	$(install-tree)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy $(addprefix -p ,$(PACKAGES))
	$(BIN)/lint-imports --no-cache

format: $(VENV)/.testing
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv build dist hardmask.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

# The tests and the linters see hardmask as its users get it: installed, not the folders of the tree. The requirements
# are installed once (the stamps below); the tree itself each time, since it is quick and can never be out of date.
# An old build/ would ship modules that have been deleted since.
define install-tree
@echo "== hardmask: installing this tree into $(VENV)"
@rm -rf build
@$(PIP) install --no-deps --no-build-isolation --force-reinstall .
endef

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "hardmask needs Python 3.11 or newer, and '$(PYTHON)' is not one. Name one: make PYTHON=python3.12 ..." >&2; exit 1; }
	@echo "== hardmask: creating $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.runtime: pyproject.toml setup.py $(VENV)/.created
	@echo "== hardmask: installing what hardmask needs into $(VENV) (once; about 200 MB)"
	@rm -rf build
	@$(PIP) install 'setuptools>=77'
	@$(PIP) install --no-build-isolation .
	@touch $@

$(VENV)/.testing: pyproject.toml setup.py $(VENV)/.runtime
	@echo "== hardmask: installing what the tests need into $(VENV) (once; PyTorch and JAX are large)"
	@rm -rf build
	@$(PIP) install --no-build-isolation '.[test]'
	@touch $@
