# Everything a person does here, by name. `make help` lists it.
#
#   PYTHON=python3.13   the Python to build the environment with (3.11 or newer)
#   VENV=.venv          where the environment lies
#   STENO_REAL_CLIENTS  where clients to compare with are kept; a folder of temporary files otherwise
#   ARGS="-k torn"      more arguments for pytest, for steno (make run) or for the benchmark
#   BUDGET=20           minutes for the campaign; ONLY=A9,B11 chooses items of it
#   TARGET=lines        what to fuzz, for SECONDS=60
#   PACKAGE=format      what to try mutants of, SAMPLE=60 of them, chosen by SEED=1

PYTHON ?= python3
VENV ?= .venv
WORKERS ?= 2
ARGS ?=
BUDGET ?= 20
ONLY ?=
TARGET ?= lines
SECONDS ?= 60
PACKAGE ?= format
SAMPLE ?= 60
SEED ?= 1

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
PYTEST := $(BIN)/python -m pytest
# As pip does for what it installs: a start should not compile, even where Python may not write.
COMPILE := $(BIN)/python -m compileall -q src

CHECK_PYTHON := $(PYTHON) -c 'import sys; sys.version_info < (3, 11) and sys.exit("steno needs Python 3.11 or newer, this is %s: name another, as in make PYTHON=python3.13" % sys.version.split()[0])'

# A home of its own that is gone afterwards: nothing below comes near the user's sessions.
ALONE := home=$$(mktemp -d) || exit 1; \
	trap 'rm -rf "$$home"' EXIT; trap 'exit 130' INT TERM; \
	export HOME="$$home" CLAUDE_CONFIG_DIR="$$home/.claude" STENO_HOME="$$home/steno";

# Exit 5 is pytest's word for "nothing selected".
OR_NONE := || test $$? -eq 5

GENERATORS := make_demo make_prices make_format_docs make_cli_docs make_shell_files make_findings_docs make_published_items make_brief_schema make_api_docs make_dependency_docs make_examples make_screens make_checklist_docs campaign.page

ANSWERS := permissions.recorded_answers sanitize.recording check.cases format.answers session.test_resumed_answers

.DEFAULT_GOAL := help
.PHONY: help venv run install dist test check bench interop interop-quick faults campaign fuzz mutation answers docs docs-site pins audit clean

help: ## list what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

run: $(VENV)/.runtime ## install into .venv and start steno on your own sessions
	@$(BIN)/steno $(ARGS)

install: ## install the commands steno and stenolog for your user, with pipx or uv where present
	@$(CHECK_PYTHON)
	@$(PYTHON) tools/install.py

dist: $(VENV)/.dev ## build wheel and sdist, and try both in clean environments
	@$(BIN)/python -m tools.try_packages

# Tests of pages need Chromium, tests of one sandbox bubblewrap. Both are installed as root on Debian and
# Ubuntu; elsewhere the tests that need them are skipped, and the command that installs them is printed.
APT_INSTALL := test "$$(id -u)" = 0 && command -v apt-get >/dev/null && apt-get -qq update && \
	DEBIAN_FRONTEND=noninteractive apt-get -qq install -y
CHROMIUM := command -v chromium >/dev/null || command -v chromium-browser >/dev/null || \
	command -v google-chrome >/dev/null || { $(APT_INSTALL) chromium >/dev/null; } || \
	echo "Chromium is not installed: browser tests are skipped. Install it with: sudo apt-get install chromium (macOS: brew install --cask chromium)" >&2
BUBBLEWRAP := command -v bwrap >/dev/null || test "$$(uname)" != Linux || { $(APT_INSTALL) bubblewrap >/dev/null; } || \
	echo "bubblewrap is not installed: its sandbox tests are skipped. Install it with: sudo apt-get install bubblewrap" >&2

test: $(VENV)/.dev ## run the test suite
	@$(CHROMIUM)
	@$(BUBBLEWRAP)
	@$(ALONE) $(PYTEST) -n $(WORKERS) -m "not interop and not faults" $(ARGS)

check: $(VENV)/.dev ## lint, format, types, layers, generated files, docs
	@$(ALONE) set -ex; \
	$(BIN)/ruff check .; \
	$(BIN)/ruff format --check .; \
	$(BIN)/basedpyright; \
	$(BIN)/lint-imports; \
	for tool in $(GENERATORS); do $(BIN)/python -m tools.$$tool --check; done; \
	$(PYTEST) -q tests/docs

bench: $(VENV)/.dev ## measure speed and memory, and write docs/benchmarks.md
	@$(COMPILE)
	@$(ALONE) $(BIN)/python bench/run.py --write docs/benchmarks.md $(ARGS)

interop: $(VENV)/.dev ## compare with the real client, where it can be installed
	@$(ALONE) $(PYTEST) tests/interop -m interop $(ARGS) $(OR_NONE)

interop-quick: $(VENV)/.dev ## the same with some forty sessions
	@$(ALONE) STENO_INTEROP=quick $(PYTEST) tests/interop -m interop $(ARGS) $(OR_NONE)

faults: $(VENV)/.dev ## kill processes and fill disks on purpose, in a few minutes
	@$(CHROMIUM)
	@$(ALONE) $(PYTEST) -n $(WORKERS) -m faults $(ARGS) $(OR_NONE)

campaign: $(VENV)/.dev ## try every promise for BUDGET minutes, and keep the figures
	@$(CHROMIUM)
	@$(ALONE) $(BIN)/python -m tools.campaign --budget $(BUDGET) --only "$(ONLY)" $(ARGS)

fuzz: $(VENV)/.fuzz ## fuzz one TARGET for SECONDS, guided by coverage
	@$(ALONE) $(BIN)/python -m fuzz.run $(TARGET) --seconds $(SECONDS)

mutation: $(VENV)/.dev ## measure which changes to a PACKAGE its tests notice
	@$(ALONE) $(BIN)/python -m tools.mutation $(PACKAGE) --sample $(SAMPLE) --seed $(SEED) $(ARGS)

answers: $(VENV)/.dev ## record the answers that tests compare with anew, and print what differs
	@$(ALONE) set -e; for table in $(ANSWERS); do $(BIN)/python -m tests.$$table; done; \
	STENO_RECORD_ANSWERS=1 $(PYTEST) -q -s tests/index tests/store -k "table or limits or exact"

docs: $(VENV)/.dev ## write everything that is generated again
	@$(ALONE) set -e; for tool in $(GENERATORS); do $(BIN)/python -m tools.$$tool; done

docs-site: $(VENV)-docs/.docs ## build the documentation site into site/, and fail on any warning
	@NO_MKDOCS_2_WARNING=1 $(VENV)-docs/bin/mkdocs build --strict --quiet && echo "built site/index.html"

pins: $(VENV)-tools/.tools ## write requirements/ again from pyproject.toml
	@$(VENV)-tools/bin/python tools/pin_requirements.py $(ARGS)

audit: $(VENV)/.dev ## look for known vulnerabilities, and list licences
	@$(MAKE) --silent $(VENV)-tools/.tools >/dev/null 2>&1 || echo "pip-audit could not be installed" >&2
	@$(BIN)/python -m tools.audit_dependencies --python $(VENV)-tools/bin/python

venv: $(VENV)/.dev ## build the environment with the tools for development

clean: ## remove the environment and all caches
	rm -rf $(VENV) $(VENV)-tools $(VENV)-docs build dist site .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests tools bench fuzz docs -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps are newer than what they were made from, so a second run installs nothing.

# Packages come at the versions and with the hashes of `requirements/`; steno itself is built with
# the hatchling of that folder, and asks for nothing more.

INSTALL := $(PIP) install --require-hashes
INSTALL_STENO := $(PIP) install --no-deps --no-build-isolation -e .

$(VENV)/.python:
	@$(CHECK_PYTHON)
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.runtime: $(VENV)/.python pyproject.toml requirements/build.txt requirements/base.txt requirements/agent.txt
	@echo "Installing steno into $(VENV) ..."
	@$(INSTALL) -r requirements/build.txt -r requirements/agent.txt
	@$(INSTALL_STENO)
	@$(COMPILE)
	@touch $@

$(VENV)/.dev: $(VENV)/.python pyproject.toml requirements/build.txt requirements/base.txt requirements/agent.txt requirements/dev.txt
	@echo "Installing steno and the development tools into $(VENV) ..."
	@$(INSTALL) -r requirements/build.txt -r requirements/dev.txt
	@$(INSTALL_STENO)
	@$(COMPILE)
	@touch $@ $(VENV)/.runtime

# uv and pip-audit have many dependencies; they stay out of the environment that is tested.
$(VENV)-tools/.tools: $(VENV)/.python requirements/tools.txt
	@test -x $(VENV)-tools/bin/python || $(PYTHON) -m venv $(VENV)-tools
	@$(VENV)-tools/bin/python -m pip --quiet --disable-pip-version-check install --require-hashes -r requirements/tools.txt
	@touch $@

$(VENV)-docs/.docs: $(VENV)/.python requirements/docs.txt
	@test -x $(VENV)-docs/bin/python || $(PYTHON) -m venv $(VENV)-docs
	@$(VENV)-docs/bin/python -m pip --quiet --disable-pip-version-check install --require-hashes -r requirements/docs.txt
	@touch $@

# There is no atheris for every Python and system: without it nothing is fuzzed, and that is said.
$(VENV)/.fuzz: $(VENV)/.dev requirements/fuzz.txt
	@$(INSTALL) -r requirements/fuzz.txt || echo "atheris cannot be installed here (it needs Linux and Python 3.11 to 3.13)" >&2
	@touch $@
