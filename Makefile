# `make help` lists the verbs. Each does its own set-up; nothing is installed outside this folder.

# Debian's own Python where there is one: a newer one first on PATH would hide faults that users of Debian meet.
PYTHON ?= $(shell if [ -x /usr/bin/python3 ]; then echo /usr/bin/python3; else command -v python3; fi)
VENV := .venv/bin/python
# Node from PyPI, if it was installed for want of another (`python3 tools/install.py node`).
export PATH := $(if $(wildcard .venv-node/tools),$(CURDIR)/.venv-node/tools:)$(PATH)
CHECKED := src tests tools $(wildcard examples benchmarks)

.PHONY: help install check format test test-clients demo rehearsals bench lock clean
.DEFAULT_GOAL := help

help: ## list the verbs
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | while IFS='|' read -r verb what; do printf '%-20s%s\n' "$$verb" "$$what"; done

install: ## make .venv from the lock; does nothing when it is up to date
	@test -n "$(PYTHON)" || { echo "There is no python3. On Debian: apt-get install python3 python3-venv" >&2; exit 1; }
	@"$(PYTHON)" tools/install.py dev

check: install ## lint, format, types, import rules
	$(VENV) -m ruff check $(CHECKED)
	$(VENV) -m ruff format --check $(CHECKED)
	$(VENV) -m mypy
	$(VENV) -c 'import sys; from importlinter.cli import lint_imports_command; sys.exit(lint_imports_command())'

format: install ## format, and repair what the linter can
	$(VENV) -m ruff format $(CHECKED)
	$(VENV) -m ruff check --fix $(CHECKED)

test: install ## all tests that need Python only
	$(VENV) -m pytest -n 2 --dist loadfile -m "not clients"

test-clients: install ## the acceptance with the AWS CLI and the JavaScript SDK (Node 20 or later)
	@"$(PYTHON)" tools/install.py awscli js
	$(VENV) -m pytest -n 2 -m clients

demo: install ## a reserved endpoint from plan to clean account, and a lost answer, in a rehearsal
	@$(VENV) examples/demo/demo.py

rehearsals: install ## two whole stories against a yard: 16 H200 at once, and a CI pool on rolling blocks
	@for file in examples/*/rehearse.py; do echo "== $$file"; $(VENV) "$$file" || exit 1; done

bench: install ## every benchmark, one after the other (minutes)
	@failed=0; for file in benchmarks/bench_*.py benchmarks/wire.py benchmarks/kills.py; do echo "== $$file"; $(VENV) "$$file" || failed=1; done; exit $$failed

# uv is needed here only, so it lives in an environment that is thrown away. Its answer is the same on every machine:
# one lock for Python 3.11 and later, with markers where versions differ.
LOCK := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --upgrade
lock: ## renew requirements/*.lock and the JavaScript lock to the newest versions
	@"$(PYTHON)" -m venv .venv-lock && .venv-lock/bin/python -m pip install --quiet uv
	.venv-lock/bin/$(LOCK) pyproject.toml --all-extras --group dev --output-file requirements/dev.lock
	.venv-lock/bin/$(LOCK) requirements/awscli.in --output-file requirements/awscli.lock
	.venv-lock/bin/$(LOCK) requirements/node.in --output-file requirements/node.lock
	cd tests/clients/js && npm update --ignore-scripts --no-fund --no-audit
	rm -rf .venv-lock

clean: ## remove the environments and caches that make made (never a yard's data)
	rm -rf .venv .venv-awscli .venv-node .venv-lock tests/clients/js/node_modules
	rm -rf .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
