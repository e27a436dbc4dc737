# Everything that is typed more than once. `make` alone lists it.

PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
# Options of `saltern lab up`, as in make lab LAB="--shift 20000".
LAB ?=
#: Real Salt, for the tests that compare with it; ORACLE= (empty) leaves those out.
ORACLE ?= .oracle
#: Releases of Salt, beside the oracle's, whose minions and masters `make interop` starts.
RELEASES := 3007.17 3006.30
#: Of `make chaos`: how long everything is broken, and the number that says what and when (empty: another one each time).
SECONDS ?= 600
SEED ?=
#: Processes that run the tests, each file in one of them: three for two cores, as tests of roles mostly wait; 0 runs all in this one,
#: as a debugger needs it.
WORKERS ?= $(shell echo $$(( ($$(nproc) * 3 + 1) / 2 )))
PYTEST := $(BIN)/pytest -q -n $(WORKERS) --dist loadfile --no-loadscope-reorder
SUITE := not container and not userland and not interop and not k8srun
WITH_ORACLE = $(if $(ORACLE),SALTERN_ORACLE=$(abspath $(ORACLE)))
PACKAGES := libs/statecore libs/saltwire libs/masterstore services
# Where a newer interpreter is all there is, it will do.
PYTHON_FOUND = $(shell command -v $(PYTHON) || command -v python3)

.DEFAULT_GOAL := help
.PHONY: help lab lab-down test test-fast test-one coverage check format docs bench bench-jobs bench-states lock oracle wheels changelog interop chaos chaos-containers images container-test userland-test k8s-check k8s-run clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

lab: $(VENV)/.ready ## a whole master, Redis and two minions on loopback, and a highstate on both
	@$(BIN)/saltern lab up $(LAB)

lab-down: $(VENV)/.ready ## ends the lab; what it stored stays in .lab/
	@$(BIN)/saltern lab down

# A failed test runs once more, alone: tests of roles share two cores. .ci/run-tests names the flaky ones; more than three fail the run.
test: check $(if $(ORACLE),$(ORACLE)/.ready) ## every check and every test but those in containers, userlands and make interop
	$(WITH_ORACLE) .ci/run-tests $(PYTEST) -- -m "$(SUITE)"

test-one: $(VENV)/.ready ## the tests of one file, folder or name: make test-one T=tests/statecore/compile (or T="-k batch")
	$(WITH_ORACLE) $(BIN)/pytest -v $(T)

coverage: $(VENV)/.ready ## which lines the pure tests run: a table, and htmlcov/ (T= limits it to a file or folder)
	$(BIN)/pytest -q --cov=statecore --cov=saltwire --cov=masterstore --cov=saltern --cov-report=term:skip-covered \
	    --cov-report=html -m "not container and not userland and not oracle and not redis and not roles and not interop and not k8srun" $(T)

test-fast: $(VENV)/.ready ## the tests that need neither Redis, nor roles, nor real Salt
	$(PYTEST) -m "not container and not userland and not oracle and not redis and not roles and not interop and not k8srun"

check: $(VENV)/.ready ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.ready ## puts the code in order
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.ready ## writes the generated pages: docs/config.md, docs/metrics.md, docs/redis.md, docs/reference/
	$(BIN)/python docs/reference.py

bench: $(VENV)/.ready oracle ## speed and memory beside real Salt
	$(BIN)/python -m bench.run --salt $(abspath $(ORACLE))

bench-states: $(VENV)/.ready oracle ## trees of 100 to 10,000 states beside real Salt (a quarter of an hour)
	$(BIN)/python -m bench.states --salt $(abspath $(ORACLE))

#: Sizes of the job cache that make bench-jobs measures.
JOBS ?= 1000,10000,100000,1000000

bench-jobs: $(VENV)/.ready oracle .saltext-redis/.ready ## the job cache from 1000 jobs to a million (JOBS=...), beside those of Salt (minutes, 4 GB)
	$(BIN)/python -m bench.jobs --jobs $(JOBS) --salt $(abspath $(ORACLE)) --saltext $(abspath .saltext-redis)

oracle: $(ORACLE)/.ready ## real Salt in a virtual environment of its own

wheels: $(VENV)/.ready ## the four wheels in dist/, byte for byte the same for one commit
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/pip wheel -q --disable-pip-version-check --no-deps --no-build-isolation \
	    --wheel-dir dist $(addprefix ./,$(PACKAGES))

changelog: $(VENV)/.ready ## joins the fragments of changes/ into CHANGELOG.md as VERSION=0.2.0
	$(BIN)/towncrier build --yes --version $(VERSION)

images: ## builds the container images
	docker/images

container-test: $(VENV)/.ready ## the system in real containers (a Docker engine must answer)
	$(BIN)/pytest -q -m "container and not chaos" tests/container

chaos-containers: SECONDS := 60
chaos-containers: $(VENV)/.ready ## the same with the containers of compose.yaml killed, stopped and taken off their networks (SECONDS=60 SEED=; a Docker engine)
	CHAOS_SECONDS=$(SECONDS) CHAOS_SEED=$(SEED) $(BIN)/pytest -q -s -m "container and chaos" tests/container

userland-test: $(VENV)/.ready ## package managers of other families, in userlands made by debootstrap (root, a mirror, minutes)
	$(BIN)/pytest -q -m userland tests/statecore/userlands

k8s-check: $(VENV)/.ready ## every overlay of k8s/ rendered, held to the API's schemas and to our policies (kubectl)
	$(BIN)/pytest -q tests/k8s

k8s-run: $(VENV)/.ready ## overlays/lab played by podman: a highstate, rollouts and crashes while jobs flow (root, kubectl, minutes)
	.ci/podman start
	$(BIN)/pytest -q -m k8srun tests/k8s_run

interop: $(VENV)/.ready oracle $(RELEASES:%=.interop/%/.ready) ## stock minions at our master, ours at stock masters, of three releases (root, minutes)
	SALTERN_ORACLE=$(abspath .oracle) SALTERN_INTEROP=$(abspath .interop) $(BIN)/pytest -q -m interop tests/interop

chaos: $(VENV)/.ready oracle ## kills, stops and cuts off every role, Redis and 52 minions while jobs go on, and counts (SECONDS=600 SEED=)
	SALTERN_ORACLE=$(abspath .oracle) $(BIN)/python -m tests.chaos.run --seconds $(SECONDS) $(if $(SEED),--seed $(SEED))

lock: ## resolves the newest versions that fit, and pins them with hashes
	$(PYTHON_FOUND) -m venv $(VENV)-lock && $(VENV)-lock/bin/pip install -q uv
	.ci/requirements | $(VENV)-lock/bin/uv pip compile -q --universal --python-version 3.11 --generate-hashes \
	    --no-header --no-annotate --no-emit-index-url --upgrade - -o requirements.lock
	echo salt==3008.3 | $(VENV)-lock/bin/uv pip compile -q --universal --python-version 3.11 --generate-hashes \
	    --no-header --no-annotate --no-emit-index-url - -o tests/oracle.lock
	for release in $(RELEASES); do \
	    echo salt==$$release | $(VENV)-lock/bin/uv pip compile -q --python-platform linux --python-version 3.11 \
	        --generate-hashes --no-header --no-annotate --no-emit-index-url --override tests/interop/overrides.txt - \
	        -o tests/interop/$$release.lock || exit 1; \
	done
	rm -rf $(VENV)-lock

clean: ## removes environments and caches; a running lab must be down
	rm -rf $(VENV) .oracle .saltext-redis .interop .lab .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(VENV)/.ready: requirements.lock $(addsuffix /pyproject.toml,$(PACKAGES))
	@$(PYTHON_FOUND) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed")'
	$(PYTHON_FOUND) -m venv $(VENV)
	$(BIN)/pip install -q --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/pip install -q --disable-pip-version-check --no-deps --no-build-isolation $(addprefix -e ,$(PACKAGES))
	$(BIN)/python -m compileall -q libs services
	@touch $@

.oracle/.ready: tests/oracle.lock
	$(PYTHON_FOUND) -m venv .oracle
	.oracle/bin/pip install -q --disable-pip-version-check --require-hashes -r tests/oracle.lock
	@touch $@

# Salt's Redis returner, which finds the real Salt of the oracle beside it.
.saltext-redis/.ready: bench/saltext-redis.lock $(ORACLE)/.ready
	$(PYTHON_FOUND) -m venv .saltext-redis
	.saltext-redis/bin/pip install -q --disable-pip-version-check --no-deps --require-hashes -r bench/saltext-redis.lock
	ls -d $(abspath $(ORACLE))/lib/python3*/site-packages > $$(ls -d .saltext-redis/lib/python3*/site-packages)/oracle.pth
	@touch $@

# A lock names everything that is installed; certifi is another than Salt asks for (tests/interop/overrides.txt).
.interop/%/.ready: tests/interop/%.lock
	$(PYTHON_FOUND) -m venv .interop/$*
	.interop/$*/bin/pip install -q --disable-pip-version-check --no-deps --require-hashes -r $<
	@touch $@
