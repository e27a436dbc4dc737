# The commands of this checkout. `make` without a target lists them.

PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
# Options of `saltern lab up`, as in make lab LAB="--shift 20000".
LAB ?=
# `make lab API=1`: Salt's REST API on port 8000, too.
API ?=
#: The virtual environment of real Salt, which tests compare with. ORACLE= (empty) skips these tests.
ORACLE ?= .oracle
#: Releases of Salt that `make interop` starts, besides the oracle's.
RELEASES := 3007.17 3006.30
#: `make chaos`: seconds of faults, the seed of their order (empty: a random seed), and what Redis is (one, sentinel or cluster).
SECONDS ?= 600
SEED ?=
REDIS ?= one
#: Processes that run the tests; all tests of a file run in one process. Three for two cores, because tests of roles mostly wait.
#: 0 runs all tests in one process, as a debugger needs it.
WORKERS ?= $(shell echo $$(( ($$(nproc) * 3 + 1) / 2 )))
PYTEST := $(BIN)/pytest -q -n $(WORKERS) --dist loadfile --no-loadscope-reorder
SUITE := not container and not browser and not userland and not interop and not k8srun and not cluster and not hosts and not extensions and not formulas and not sweep
WITH_ORACLE = $(if $(ORACLE),SALTERN_ORACLE=$(abspath $(ORACLE)))
PACKAGES := libs/statecore libs/saltwire libs/masterstore services
# A newer interpreter is used where Python 3.11 is not installed.
PYTHON_FOUND = $(shell command -v $(PYTHON) || command -v python3)

.DEFAULT_GOAL := help
.PHONY: help lab lab-down test test-fast test-one coverage check format docs reference recordings tutorial bench bench-jobs bench-states bench-requests bench-scale bench-api lock oracle wheels deb changelog sbom sbom-images release release-check lock-base audit-dependencies interop api-compare moved-fleet security security-containers security-mutations fuzz browser-test browser-lab-test console-test console-check console-screenshots editor-test editor-screenshots chaos chaos-containers images container-test userland-test hosts-test formulas extensions-test sweep k8s-check k8s-run cluster cluster-down cluster-test clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

lab: $(VENV)/.ready ## start a master, Redis and two minions on loopback; run a highstate on both (API=1: the REST API, too)
	@$(BIN)/python -m compileall -q libs services
	@$(BIN)/saltern lab up $(if $(API),--api) $(LAB)

lab-down: $(VENV)/.ready ## stop the lab; its data stays in .lab/
	@$(BIN)/saltern lab down

# A failed test runs once more, alone: tests of roles share two cores. .ci/run-tests names the flaky ones; more than three fail the run.
test: $(VENV)/.ready $(if $(ORACLE),$(ORACLE)/.ready) ## run all checks, and all tests but those in containers, userlands and make interop
	@$(MAKE) --no-print-directory -j2 --output-sync=target check $(VENV)/.bytecode
	$(WITH_ORACLE) .ci/run-tests $(PYTEST) -- -m "$(SUITE)"

# Once in a checkout, while mypy has the other processor: all processes that run tests would rewrite and compile the same modules at
# the same time. Later changes are compiled where they are imported.
$(VENV)/.bytecode: $(VENV)/.ready
	@$(BIN)/python -m compileall -q libs services
	@$(BIN)/pytest -qq --collect-only -m "$(SUITE)" >$@.log || { cat $@.log; exit 1; }
	@touch $@

test-one: $(VENV)/.ready ## run the tests of one file, folder or name: T=tests/statecore/compile, or T="-k batch"
	$(WITH_ORACLE) $(BIN)/pytest -v $(T)

coverage: $(VENV)/.ready ## run the pure tests and report the lines that they run: a table, and htmlcov/ (T= names a file or folder)
	$(BIN)/pytest -q --cov=statecore --cov=saltwire --cov=masterstore --cov=saltern --cov-report=term:skip-covered \
	    --cov-report=html -m "not container and not browser and not userland and not oracle and not redis and not roles and not interop and not k8srun and not cluster and not hosts and not extensions and not formulas and not sweep" $(T)

test-fast: $(VENV)/.ready ## run the tests that need no Redis, no roles and no real Salt
	$(PYTEST) -m "not container and not browser and not userland and not oracle and not redis and not roles and not interop and not k8srun and not cluster and not hosts and not extensions and not formulas and not sweep"

check: $(VENV)/.ready ## run ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.ready ## format the code, and fix what ruff can fix
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

reference: $(VENV)/.ready ## write the generated pages: docs/config.md, docs/metrics.md, docs/redis.md, docs/reference/ with JSON Schemas
	$(BIN)/python docs/reference.py

#: `make docs`: directory of the site.
SITE ?= build/site

docs: reference .docs/.ready ## build the documentation site into build/site/ (SITE=DIR), and check its links, spelling and style
	.docs/bin/codespell --ignore-words docs/site/words.txt --skip '*.lock,flame-*.svg' README.md CONTRIBUTING.md SECURITY.md changes docs
	.docs/bin/python docs/site/style.py README.md CONTRIBUTING.md SECURITY.md docs
	.docs/bin/sphinx-build -q -W --keep-going -j auto -c docs/site -d build/doctrees docs $(SITE)
	@echo "$(SITE)/index.html"

recordings: $(VENV)/.ready .docs/.ready ## type the commands of docs/recordings/ in a lab, and draw what its terminals show
	$(BIN)/python -m tests.tutorial.record build/recordings.json
	.docs/bin/python docs/site/recordings.py build/recordings.json

tutorial: $(VENV)/.ready ## play the tutorial (docs/learn) in a lab, and show where a page differs (WRITE=1 puts the truth into the pages)
	$(BIN)/python -m tests.tutorial.play $(if $(WRITE),--write)

bench: $(VENV)/.ready oracle ## measure speed and memory beside real Salt
	$(BIN)/python -m compileall -q libs services
	$(BIN)/python -m bench.run --salt $(abspath $(ORACLE))

bench-states: $(VENV)/.ready oracle ## measure trees of 100 to 10,000 states beside real Salt (15 minutes)
	$(BIN)/python -m bench.states --salt $(abspath $(ORACLE))

bench-requests: $(VENV)/.ready oracle ## measure CPU time for each kind of minions' requests, by role, beside real Salt (5 minutes)
	$(BIN)/python -m compileall -q libs services
	$(BIN)/python -m bench.requests --salt $(abspath $(ORACLE))

#: `make bench-scale`: numbers of minions, and directory for the curves.
MINIONS ?= 1000,3000,10000
PICTURES ?= docs/operations/pictures

bench-scale: $(VENV)/.ready ## measure a master with up to 10,000 simulated minions, with one and two of each role (20 minutes; MINIONS=, PICTURES=)
	$(BIN)/python -m compileall -q libs services
	$(BIN)/python -m bench.scale --minions $(MINIONS) --pictures $(PICTURES)

bench-editor: $(VENV)/.ready ## measure how fast the language server answers on a tree of 500 SLS (a minute)
	$(BIN)/python -m bench.editor

#: `make bench-jobs`: numbers of jobs in the job cache.
JOBS ?= 1000,10000,100000,1000000

bench-jobs: $(VENV)/.ready oracle .saltext-redis/.ready ## measure the job cache with 1,000 to 1,000,000 jobs (JOBS=) beside Salt's (minutes, 4 GB)
	$(BIN)/python -m bench.jobs --jobs $(JOBS) --salt $(abspath $(ORACLE)) --saltext $(abspath .saltext-redis)

bench-api: $(VENV)/.ready oracle ## measure 300 requests a second at the API beside salt-api's, and 1,000 listeners to events
	$(BIN)/python -m compileall -q libs services
	$(BIN)/python -m bench.api --salt $(abspath $(ORACLE))

oracle: $(ORACLE)/.ready ## install real Salt into a virtual environment of its own

wheels: $(VENV)/.ready ## build the four wheels into dist/, byte for byte the same for one commit
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/pip wheel -q --disable-pip-version-check --no-deps --no-build-isolation \
	    --wheel-dir dist $(addprefix ./,$(PACKAGES))

#: `make deb`: Debian's name of the architecture: amd64 or arm64.
ARCHITECTURE ?= amd64

deb: wheels ## build the Debian packages of minion and master into dist/, byte for byte the same for one commit (ARCHITECTURE=amd64)
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/python hosts/build_deb.py --architecture $(ARCHITECTURE) dist/*.whl

# The time of the documents is the commit's, so that one commit gives the same bytes.
SBOM = SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) .supply/bin/python -m tests.supply.sbom --environment $(VENV)

sbom: wheels .supply/.ready ## write a CycloneDX document for each wheel: dist/*.cdx.json, byte for byte the same for one commit
	$(SBOM) dist

#: `make sbom-images`: tag of the images.
TAG ?= dev

sbom-images: wheels .supply/.ready ## write a CycloneDX document for each container image, with its Debian packages (TAG=dev; a Docker engine)
	$(SBOM) --images $(TAG) dist

#: `make audit-dependencies`: OSV's export PyPI/all.zip; empty: ask pypi.org.
DATABASE ?=

audit-dependencies: .supply/.ready ## look for known faults of the locked packages (DATABASE=all.zip works without a network)
	.supply/bin/python -m tests.supply.audit $(if $(DATABASE),--database $(DATABASE))

changelog: $(VENV)/.ready ## join the fragments of changes/ into CHANGELOG.md, as the section of the version
	$(BIN)/towncrier build --yes --version $$($(BIN)/python -c 'from statecore.model.salt_version import SALTERN_VERSION as v; print(v)')

#: `make release`: RELEASE=1 signs with the SSH key KEY and makes the tag. Empty: a dry run.
RELEASE ?=
KEY ?=

release: $(VENV)/.ready .supply/.ready ## build a release into dist/VERSION; dry by default (RELEASE=1 KEY=~/.ssh/id_ed25519; a Docker engine, root)
	$(BIN)/python -m release.main $(if $(RELEASE),--real) $(if $(KEY),--key $(KEY))

release-check: $(VENV)/.ready .supply/.ready ## build a release twice, without a cache, and compare all digests (a Docker engine, root, half an hour)
	$(BIN)/python -m release.main --check

lock-base: ## make the base image of releases, and write its digest and packages into docker/base.lock (a Docker engine, root)
	docker/base-image --lock saltern/base:lock

images: ## build the container images
	docker/images

# The attacks from inside containers take four minutes more: make security-containers.
container-test: $(VENV)/.ready ## test the system in real containers (a Docker engine must answer)
	$(BIN)/pytest -q -m "container and not chaos" --ignore tests/container/test_attacks.py tests/container

# SaltGUI is not ours: where it is missing, its tests say so and are left out, in the gate as well.
browser-test: $(VENV)/.ready ## test SaltGUI, unmodified, in real Chromium at compose's api, and the site's choice of versions (SALTGUI_DIR names SaltGUI; a Docker engine, root, chromium)
	$(BIN)/pytest -q tests/browser/test_site_versions.py
	$(BIN)/pytest -q -m "browser and container" tests/browser/test_saltgui.py

browser-lab-test: $(VENV)/.ready ## the same tests of SaltGUI at a lab of processes, without an engine (SALTGUI_DIR; chromium)
	$(BIN)/pytest -q -m "browser and not container" tests/browser/test_saltgui.py

console-test: $(VENV)/.ready tests/browser/node_modules/.ready ## test the console in real Chromium, with axe-core (npm)
	$(BIN)/pytest -q -m browser --ignore tests/browser/test_saltgui.py tests/browser

console-check: tests/browser/node_modules/.ready ## check the types of the console's JavaScript (node)
	tests/browser/node_modules/.bin/tsc -p tests/browser/tsconfig.json

console-screenshots: $(VENV)/.ready ## write the pictures of docs/console.md (chromium)
	$(BIN)/python -m tests.browser.console_screenshots docs/console

editor-test: $(VENV)/.ready tests/editor/node_modules/.ready ## test the language server in VS Code (code-server) in real Chromium (npm, node 20, a compiler; minutes)
	$(BIN)/pytest -q -m browser tests/editor

editor-screenshots: $(VENV)/.ready tests/editor/node_modules/.ready ## write the pictures of docs/editors.md (chromium)
	$(BIN)/python -m tests.editor.screenshots docs/editors

chaos-containers: SECONDS := 60
chaos-containers: $(VENV)/.ready ## make chaos with the containers of compose.yaml (SECONDS=60 SEED=; a Docker engine)
	CHAOS_SECONDS=$(SECONDS) CHAOS_SEED=$(SEED) $(BIN)/pytest -q -s -m "container and chaos" tests/container

userland-test: $(VENV)/.ready ## test other package managers, and the README as a new user, in userlands made by debootstrap (root, a mirror, minutes)
	$(BIN)/pytest -q -m userland -k "not (test_readme and trixie)" tests/statecore/userlands tests/front_door

# A virtual environment of real Salt brings the stock minion that is replaced in place and put back.
hosts-test: $(VENV)/.ready oracle ## test the Debian packages and units on Debian 12 and 13 with a real systemd (root, debootstrap, a mirror, minutes)
	$(WITH_ORACLE) $(BIN)/pytest -q -m "hosts or userland" tests/hosts tests/front_door

formulas: $(VENV)/.ready oracle ## apply ten formulas by ours and by real Salt on Debian machines with systemd, compare the hosts (root, a mirror, 20 minutes)
	SALTERN_ORACLE=$(abspath .oracle) $(BIN)/pytest -q -s -m formulas tests/formulas

sweep: $(VENV)/.ready oracle ## call each execution function beside real Salt in throw-away copies of this machine, compare the answers (root, minutes; SWEEP="file.*")
	SALTERN_ORACLE=$(abspath .oracle) SWEEP="$(or $(SWEEP),*)" $(BIN)/pytest -q -s -m sweep tests/sweep

extensions-test: $(VENV)/.ready .extensions/.ready ## test Salt extensions from PyPI with a Docker engine, MariaDB and fake services (.ci/docker-engine start)
	SALTERN_EXTENSIONS=$(abspath .extensions) $(BIN)/pytest -q -m extensions tests/extensions

k8s-check: $(VENV)/.ready ## render every overlay of k8s/ and check it against the API's schemas and our policies (kubectl)
	$(BIN)/pytest -q tests/k8s

k8s-run: $(VENV)/.ready ## run overlays/lab on podman: a highstate, rollouts and crashes while jobs run (root, kubectl, minutes)
	.ci/podman start
	$(BIN)/pytest -q -m k8srun tests/k8s_run

# .ci/docker-engine start brings an engine for the images; what is built is kept in /var/cache/saltern-cluster.
cluster: $(VENV)/.ready ## start a Kubernetes cluster of two nodes on this machine, with the images of make images (root, Go; an hour at first)
	$(BIN)/python -m tests.cluster.run up

cluster-down: $(VENV)/.ready ## end the cluster of make cluster; nothing of it is left but what was built
	$(BIN)/python -m tests.cluster.run down

cluster-test: $(VENV)/.ready ## test overlays/lab and ha on a real cluster: policies, rollouts, drains, lost nodes, while jobs run (root, Go)
	$(BIN)/pytest -q -s -m cluster tests/cluster

interop: $(VENV)/.ready oracle $(RELEASES:%=.interop/%/.ready) ## test stock minions at our master and our minion at stock masters, three releases (root, minutes)
	SALTERN_ORACLE=$(abspath .oracle) SALTERN_INTEROP=$(abspath .interop) $(BIN)/pytest -q -m interop \
	    --ignore tests/interop/test_moved_fleet.py --ignore tests/interop/test_api_answers.py tests/interop

api-compare: $(VENV)/.ready oracle ## send the same 269 requests to a stock salt-api 3008.3 and to ours, and compare the answers (ten minutes)
	SALTERN_ORACLE=$(abspath .oracle) $(BIN)/pytest -q -m interop tests/interop/test_api_answers.py

moved-fleet: $(VENV)/.ready oracle .interop/$(lastword $(RELEASES))/.ready ## move a fleet of real Salt over by docs/moving.md, and back (root, ten minutes)
	SALTERN_ORACLE=$(abspath .oracle) SALTERN_INTEROP=$(abspath .interop) $(BIN)/pytest -q -m interop tests/interop/test_moved_fleet.py

chaos: $(VENV)/.ready oracle ## replace all keys, then kill, stop and cut off every role, Redis and 52 minions while jobs run; count lost jobs (SECONDS=600 SEED= REDIS=one|sentinel|cluster)
	SALTERN_ORACLE=$(abspath .oracle) $(BIN)/python -m tests.chaos.run --seconds $(SECONDS) $(if $(SEED),--seed $(SEED)) --redis $(REDIS)

security: $(VENV)/.ready ## try every known attack on a master, and count: N refused of M tried (T= selects: T="-k replay")
	$(WITH_ORACLE) $(BIN)/python -m tests.security.run -n $(WORKERS) --dist loadfile $(T)

security-containers: $(VENV)/.ready ## try attacks from inside each container of compose.yaml, and count (a Docker engine; minutes)
	SALTERN_REQUIRE_ENGINE=1 $(BIN)/python -m tests.security.run tests/container/test_attacks.py $(T)

security-mutations: $(VENV)/.ready ## take out one defence after the other; a named attack must then succeed (T= words of defences; minutes)
	$(BIN)/python -m tests.security.mutations $(T)

fuzz: $(VENV)/.ready ## let a fuzzer attack every port's reader, SLS, archives and paths for SECONDS=600 (T= names targets; x86_64 Linux)
	$(BIN)/python -c 'import atheris' 2>/dev/null || $(BIN)/pip install -q --disable-pip-version-check --no-deps --require-hashes -r tests/fuzz/atheris.lock
	$(BIN)/python -m tests.fuzz.run $(SECONDS) $(T)

lock: ## resolve the newest versions that fit, and pin them with hashes
	$(PYTHON_FOUND) .ci/new-environment $(VENV)-lock
	$(VENV)-lock/bin/pip install -q --disable-pip-version-check --no-deps --require-hashes -r tests/supply/uv.lock
	# The locked uv locks the next one.
	echo uv | $(VENV)-lock/bin/uv pip compile -q --universal --python-version 3.11 --generate-hashes \
	    --no-header --no-annotate --no-emit-index-url --upgrade - -o tests/supply/uv.lock
	.ci/requirements | $(VENV)-lock/bin/uv pip compile -q --universal --python-version 3.11 --generate-hashes \
	    --no-header --no-annotate --no-emit-index-url --upgrade - -o requirements.lock
	echo salt==3008.3 | $(VENV)-lock/bin/uv pip compile -q --universal --python-version 3.11 --generate-hashes \
	    --no-header --no-annotate --no-emit-index-url - -o tests/oracle.lock
	for release in $(RELEASES); do \
	    echo salt==$$release | $(VENV)-lock/bin/uv pip compile -q --python-platform linux --python-version 3.11 \
	        --generate-hashes --no-header --no-annotate --no-emit-index-url --override tests/interop/overrides.txt - \
	        -o tests/interop/$$release.lock || exit 1; \
	done
	printf 'pip-audit\ncyclonedx-python-lib[json-validation]\n' | $(VENV)-lock/bin/uv pip compile -q --universal --python-version 3.11 \
	    --generate-hashes --no-header --no-annotate --no-emit-index-url --upgrade - -o tests/supply/tools.lock
	printf 'sphinx\nfuro\nmyst-parser\nsphinx-copybutton\ncodespell\nproselint\nrich\n' | $(VENV)-lock/bin/uv pip compile -q --universal \
	    --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url --upgrade - -o docs/site/tools.lock
	rm -rf $(VENV)-lock

clean: ## remove environments and caches (stop a running lab first)
	rm -rf $(VENV) build .debs .docs .oracle .extensions .saltext-redis .supply .interop .lab .mypy_cache .ruff_cache .pytest_cache .hypothesis

# A lock names all that is needed, so pip resolves nothing: pip 23.2 and older take the newest release of a package that another one
# asks for with an extra, whatever the lock says. reclass asks for enum34 besides, which is of Python 2.
$(VENV)/.ready: requirements.lock tests/reclass.lock $(addsuffix /pyproject.toml,$(PACKAGES))
	@$(PYTHON_FOUND) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed")'
	$(PYTHON_FOUND) .ci/new-environment $(VENV)
	$(BIN)/pip install -q --disable-pip-version-check --no-deps --require-hashes -r requirements.lock
	$(BIN)/pip install -q --disable-pip-version-check --no-deps --require-hashes -r tests/reclass.lock
	$(BIN)/pip install -q --disable-pip-version-check --no-deps --no-build-isolation $(addprefix -e ,$(PACKAGES))
	$(BIN)/python -m compileall -q libs services
	@touch $@

.oracle/.ready: tests/oracle.lock
	$(PYTHON_FOUND) .ci/new-environment .oracle
	.oracle/bin/pip install -q --disable-pip-version-check --no-deps --require-hashes -r tests/oracle.lock
	@touch $@

# Salt's Redis returner. It finds the oracle's Salt through oracle.pth.
.saltext-redis/.ready: bench/saltext-redis.lock $(ORACLE)/.ready
	$(PYTHON_FOUND) .ci/new-environment .saltext-redis
	.saltext-redis/bin/pip install -q --disable-pip-version-check --no-deps --require-hashes -r bench/saltext-redis.lock
	ls -d $(abspath $(ORACLE))/lib/python3*/site-packages > $$(ls -d .saltext-redis/lib/python3*/site-packages)/oracle.pth
	@touch $@

# Extensions without Salt itself, and the libraries that they need.
.extensions/.ready: tests/extensions/requirements.lock $(VENV)/.ready
	rm -rf .extensions
	$(BIN)/pip install -q --disable-pip-version-check --no-deps --require-hashes --target .extensions -r $<
	@touch $@

# Tools that read the lock and the wheels; what they need is in no other environment.
.supply/.ready: tests/supply/tools.lock
	$(PYTHON_FOUND) .ci/new-environment .supply
	.supply/bin/pip install -q --disable-pip-version-check --no-deps --require-hashes -r $<
	@touch $@

# The generator of the site, and what checks spelling and style.
.docs/.ready: docs/site/tools.lock
	$(PYTHON_FOUND) .ci/new-environment .docs
	.docs/bin/pip install -q --disable-pip-version-check --no-deps --require-hashes -r $<
	@touch $@

# The lock names everything that is installed. tests/interop/overrides.txt replaces the certifi that Salt asks for.
.interop/%/.ready: tests/interop/%.lock
	$(PYTHON_FOUND) .ci/new-environment .interop/$*
	.interop/$*/bin/pip install -q --disable-pip-version-check --no-deps --require-hashes -r $<
	@touch $@

# code-server by the hashes of package-lock.json, and what its server needs by the hashes of its own npm-shrinkwrap.json. Of its native
# modules only argon2 is built: the others serve terminals, searches and proxies. Nothing of it is shipped.
tests/editor/node_modules/.ready: tests/editor/package-lock.json
	npm ci --prefix tests/editor --ignore-scripts --no-audit --no-fund --loglevel=error
	npm install --prefix tests/editor/node_modules/code-server/lib/vscode --omit=dev --ignore-scripts --no-audit --no-fund --loglevel=error
	ln -sfn node_modules tests/editor/node_modules/code-server/lib/vscode/node_modules.asar
	npm rebuild --prefix tests/editor argon2 --loglevel=error
	@touch $@

# axe-core and the checker of types, by the hashes of package-lock.json; nothing of it is shipped.
tests/browser/node_modules/.ready: tests/browser/package-lock.json
	npm ci --prefix tests/browser --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@
