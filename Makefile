# The README's two commands are `make run` and `make test`. Both make their own environment in .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Options of `up`, say: make run UP="--port 9000 --no-demo"
UP ?=
# Two workers for each core, because most tests of `make test` wait for a process, a browser or a server.
WORKERS ?= $(shell expr 2 \* $$(getconf _NPROCESSORS_ONLN))

.PHONY: run test tests test-fast test-database test-django6 test-hosts package lock test-rabbitmq4 test-cluster test-database-faults test-dashboard compose-native clocks fuzz openapi lint bench clean settings-table docs
.DEFAULT_GOAL := help
.PHONY: help

help:
	@echo "make run    start everything on this machine (UP=\"--port 9000\" for its options)"
	@echo "make test   lint, types, import rules, migrations, tests"
	@echo "make test-fast  the tests that need no browser, no RabbitMQ and no processes, on all cores"
	@echo "make lint   the same as make test without the tests"
	@echo "make test-database TEST_DATABASE_URL=...  what touches a database, on that one instead of SQLite"
	@echo "make test-django6 PYTHON=python3.13  what depends on Django's version, on Django 6 and Python 3.12 or newer"
	@echo "make test-hosts PYTHONS=\"python3.12 python3.13\"  the built wheel in other projects, also wagtail and the newest Django"
	@echo "make test-rabbitmq4 TEST_RABBITMQ_4_URLS=...  what speaks with RabbitMQ, on these servers of RabbitMQ 4"
	@echo "make test-database-faults  database servers that fail over, hang or vanish under a load (TEST_CLUSTER_SECONDS=60)"
	@echo "make test-cluster TEST_RABBITMQ_4_ROOTS=...  faults of a cluster of three nodes (TEST_CLUSTER_SECONDS=60: the full volume)"
	@echo "make test-dashboard  ten minutes of the demo beside Prometheus, then each query of the dashboard for Grafana"
	@echo "make compose-native  the services of docker-compose.yml without containers, on servers of this machine"
	@echo "make clocks TEST_DATABASE_URL=...  ten minutes with wrong clocks on that database server, for each transport"
	@echo "make fuzz FUZZ=10  hostile messages, rows, handlers and requests: 10 % of the full volumes (FUZZ_SEED=... repeats a run)"
	@echo "make openapi  write docs/openapi.json, the description of the HTTP API"
	@echo "make package  build the sdist and the wheel into dist/, and check them"
	@echo "make lock  write docker/requirements.lock after a change of the dependencies (LOCK=--upgrade for newer versions)"
	@echo "make messages  take new sentences into the catalogues of the languages, and compile them"
	@echo "make settings-table  write names, defaults and bounds of the settings into docs/configuration.md"
	@echo "make docs  build the site of the documentation in build/docs"
	@echo "make bench  measure, and print a table"
	@echo "make clean  remove the environment and all caches; data in var/ stays"

# exec: Ctrl-C then reaches `up` once, from the terminal, and no shell stands in between.
run: $(VENV)/.installed
	@exec $(BIN)/python manage.py up $(UP)

test: lint tests

# The tests alone. `make -j 2 test` runs them beside lint.
tests: $(VENV)/.installed-dev
	$(BIN)/pytest -n $(WORKERS) --dist worksteal

# For each change; `make test` before it is handed on. It tries fewer random examples.
test-fast: $(VENV)/.installed-dev
	TEST_FAST=1 $(BIN)/pytest -q -n auto --dist worksteal --durations=10 \
		-m "not browser and not processes and not rabbitmq and not slow"

# TEST_DATABASE_URL reaches the tests through the environment. Drivers: pip install -e '.[mysql,postgres]'
DATABASE_WORKERS ?= 2
test-database: $(VENV)/.installed-dev
	@test -n "$$TEST_DATABASE_URL" || { echo "Name it: make test-database TEST_DATABASE_URL=mysql://..."; exit 1; }
	$(BIN)/pytest -n $(DATABASE_WORKERS) --create-db -m "database and not browser" tests/contract tests/models tests/producer tests/consumer \
		tests/execution tests/policies tests/processes tests/hostile tests/inbox tests/handlers tests/monitoring tests/admin \
		tests/operations tests/http tests/metrics tests/management/cron tests/moving tests/reports tests/alerts tests/pings tests/test_*.py

# In an environment of its own, with the newest Django, and with fewer random examples than in `make test`.
# tests/contract/debian-python gets a newer Python on Debian.
DJANGO6 := .venv-django6
DJANGO6_WORKERS ?= 2
test-django6:
	@test -e $(DJANGO6)/bin/python || $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 12))' \
		|| { echo "Django 6 needs Python 3.12 or newer. Name one: make test-django6 PYTHON=python3.13"; exit 1; }
	@$(MAKE) --no-print-directory $(DJANGO6)/.installed-dev VENV=$(DJANGO6)
	$(DJANGO6)/bin/python -c 'import django, sys; print("Django", django.__version__); sys.exit(django.VERSION < (6,))'
	$(DJANGO6)/bin/python manage.py check --settings=tests.settings
	$(DJANGO6)/bin/python manage.py makemigrations --check --dry-run --settings=tests.settings
	TEST_FAST=1 $(DJANGO6)/bin/pytest -n $(DJANGO6_WORKERS) -m "not browser" tests/models tests/admin tests/http tests/reports tests/tasks \
		tests/notify/test_email.py tests/notify/test_message_template.py tests/test_site.py tests/hosts/test_plain.py

# The wheel in projects of other teams. `make test` has those that need no download; here pip installs wagtail (on
# MariaDB) and Django for each of PYTHONS. NAME:VERSION asks for a version of Django, such as python3.12:6.0.
PYTHONS ?=
test-hosts: $(VENV)/.installed-dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[mysql,postgres]'
	TEST_HOSTS_DOWNLOAD=1 TEST_HOST_PYTHONS="$(PYTHONS)" $(BIN)/pytest -m hosts tests/hosts

# TEST_RABBITMQ_4_ROOTS too, for servers of their own: tests/contract/rabbitmq-node says how to get both.
test-rabbitmq4: $(VENV)/.installed-dev
	@test -n "$$TEST_RABBITMQ_4_URLS" || { echo "Name them: make test-rabbitmq4 TEST_RABBITMQ_4_URLS=amqp://..."; exit 1; }
	$(BIN)/pytest -m rabbitmq4 tests/contract tests/e2e/test_long_run.py
	@# 5: a small TEST_SHARE may have none of them
	TEST_QUEUE_TYPE=quorum $(BIN)/pytest -m rabbitmq4 tests/contract/test_transport.py \
		|| { code=$$?; test $$code -eq 5 -a -n "$$TEST_SHARE" || exit $$code; }

# `tests/contract/rabbitmq-node fetch ROOT trixie` unpacks RabbitMQ 4 into a folder for TEST_RABBITMQ_4_ROOTS. The
# environment variables of the tests stand at the beginning of tests/cluster/trial.py and test_broker_faults.py.
# ONLY chooses tests as pytest's -k does.
test-cluster: $(VENV)/.installed-dev
	@test -n "$$TEST_RABBITMQ_4_ROOTS" || { echo "Name it: make test-cluster TEST_RABBITMQ_4_ROOTS=..."; exit 1; }
	$(BIN)/pytest -s --create-db tests/cluster $(if $(ONLY),-k "$(ONLY)")

# Starts its own PostgreSQL and MariaDB. The environment variables stand at the beginning of the tests.
test-database-faults: $(VENV)/.installed-dev
	TEST_CLUSTER_SECONDS=$${TEST_CLUSTER_SECONDS:-25} $(BIN)/pytest -s tests/cluster --ignore tests/cluster/test_broker_faults.py

# Needs Prometheus (Debian's package prometheus).
TEST_DASHBOARD_SECONDS ?= 600
test-dashboard: $(VENV)/.installed-dev
	TEST_DASHBOARD_SECONDS=$(TEST_DASHBOARD_SECONDS) $(BIN)/pytest -s tests/metrics/test_demo_dashboard.py

# Needs a database server (TEST_DATABASE_URLS, with its driver) and RabbitMQ (TEST_BROKER_URL).
compose-native: $(VENV)/.installed-dev
	$(BIN)/pytest tests/e2e/test_compose_native.py

# Ten minutes for each transport. TEST_DATABASE_URL names a server.
clocks: $(VENV)/.installed-dev
	@test -n "$$TEST_DATABASE_URL" || { echo "Name it: make clocks TEST_DATABASE_URL=mysql://..."; exit 1; }
	TEST_CLOCK_SECONDS=600 $(BIN)/pytest --create-db tests/contract/test_clocks.py

# The percentage of the full volumes: tests/hostile/fuzz.py. TEST_DATABASE_URL and TEST_BROKER_URL name the servers.
FUZZ ?= 10
FUZZ_SEED ?=
fuzz: $(VENV)/.installed-dev
	TEST_FUZZ_PERCENT=$(FUZZ) $(if $(FUZZ_SEED),TEST_FUZZ_SEED=$(FUZZ_SEED)) $(BIN)/pytest -s --create-db \
		tests/hostile/test_fuzzed_*.py tests/hostile/test_misbehaviours.py \
		tests/hostile/test_queries.py tests/hostile/test_forms.py \
		tests/http/test_schema_fuzz.py tests/http/test_hostile_requests.py tests/http/test_hostile_rows.py

# After a change to the HTTP API.
openapi: $(VENV)/.installed-dev
	$(BIN)/python -m tests.http.document_file

# After a change of a setting. A new one gets a row without a meaning, which you write.
settings-table: $(VENV)/.installed-dev
	$(BIN)/python -m tests.docs.settings_table

# After a change of a sentence: new ones get no translation, which you write into scheduling/locale/. Then once more.
messages: $(VENV)/.installed-dev
	$(BIN)/python -m tests.languages.catalogue

# The pages of docs/ as a site, in build/docs. Each warning is an error. `make test` does the same.
docs: $(VENV)/.installed-dev
	$(BIN)/python -m sphinx -q -W --keep-going -E -j auto docs build/docs
	@echo "build/docs/index.html"

lint: $(VENV)/.installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python manage.py check --settings=tests.settings
	$(BIN)/python manage.py makemigrations --check --dry-run --settings=tests.settings

# The wheel is built from the sdist, as pip would do.
package: $(VENV)/.installed-dev
	rm -rf dist
	$(BIN)/python -m tests.hosts.package dist
	$(BIN)/twine check --strict dist/*.tar.gz dist/*.whl
	$(BIN)/check-wheel-contents dist/*.whl

# For the Python and the extras of the image. The versions that are there stay if they still fit.
LOCK ?=
lock: $(VENV)/.installed-dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip compile pyproject.toml $(LOCK) --quiet --universal --generate-hashes --no-header \
		--python-version $$(sed -n 's/^ARG BASE=python:\([0-9.]*\).*/\1/p' Dockerfile) \
		$$(sed -n 's/^ARG EXTRAS=//p' Dockerfile | tr , '\n' | sed 's/^/--extra /') --output-file docker/requirements.lock

bench: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) $(DJANGO6) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp is newer than pyproject.toml when what that asks for is installed.
$(VENV)/.installed: pyproject.toml $(BIN)/python
	@echo "Installing into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[site]'
	@touch $@

$(VENV)/.installed-dev: pyproject.toml $(BIN)/python
	@echo "Installing into $(VENV), with the tools ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[site,dev,docs]'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps 'django-celery-beat==2.9.0'
	@touch $(VENV)/.installed $@

# Order of the two messages: what a machine lacks is named before anything is made.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed. Name one: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -m venv $(VENV) \
		|| { echo "No environment could be made. On Debian or Ubuntu: apt install python3-venv"; rm -rf $(VENV); exit 1; }
