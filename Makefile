# Everything a fresh machine needs is Python 3.11 or newer, make and a package index.
PYTHON ?= python3
BIN := .venv/bin
# Tests wait as much as they compute, so there are more processes than cores. TESTS may name some of them.
WORKERS ?= 4
TESTS ?=
# Tests that read the source and the pages, and no behaviour; make check runs them.
READERS := tests/test_house.py tests/test_layers.py tests/test_tests.py tests/test_type_checking.py tests/test_docs.py
# Options of benchmarks/localtasks.py, such as smollm2-135m --limit 8
LOCALTASKS ?=
# Options of benchmarks/mutants.py, such as --count 20 --only engine/
MUTANTS ?=
# Options of tools/pythons.py, such as --smoke or --only 3.13
PYTHONS ?=
# Compiled modules are kept: the tests start hundreds of processes.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test test-more check fix bench localtasks soak mutants docs test-pythons dist clean

run: .venv/.ready-to-run
	@$(BIN)/swink

test: .venv/.ready-to-test
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(addprefix --ignore=,$(READERS)) $(TESTS)

test-more: .venv/.ready-to-test
	SWINK_TEST_MORE=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m more --timeout 900 $(TESTS)

# The wheel, and the tests of the library, on every supported Python that is here; half an hour and more.
test-pythons: .venv/.ready-to-test
	$(BIN)/python tools/pythons.py $(PYTHONS)

check: .venv/.ready-to-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/python -m pytest $(READERS)

fix: .venv/.ready-to-test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The wheel, the source and the list of what they need, checked, in dist/; and the workflows that GitHub would run.
dist: .venv/.ready-to-test .venv/release/bin/python
	rm -rf dist build/wheel
	.venv/release/bin/check-jsonschema --builtin-schema vendor.github-workflows \
		.github/workflows/*.yml examples/github/*.yml src/swink/eval/starter/eval.yml
	.venv/release/bin/python -m build --no-isolation --outdir dist .
	.venv/release/bin/python -m build --no-isolation --wheel --outdir build/wheel . >/dev/null
	cmp build/wheel/swink-*.whl dist/swink-*.whl # the source makes the same wheel as the checkout
	.venv/release/bin/python -m twine check --strict dist/*.whl dist/*.tar.gz
	$(BIN)/python tools/sbom.py all > dist/swink.cdx.json

.venv/release/bin/python:
	$(PYTHON) -m venv .venv/release
	$@ -m pip install --quiet --disable-pip-version-check build==1.6.1 check-jsonschema==0.39.0 \
		hatchling==1.33.0 twine==7.0.0

bench: .venv/.ready-to-test
	$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/window.py
	$(BIN)/python benchmarks/guards.py
	$(BIN)/python benchmarks/agentdojo.py
	$(BIN)/python benchmarks/toolsearch.py
	$(BIN)/python benchmarks/local.py
	$(BIN)/python benchmarks/sessions.py
	$(BIN)/python benchmarks/snapshots.py
	$(BIN)/python benchmarks/eval.py
	$(BIN)/python benchmarks/tui.py
	$(BIN)/python benchmarks/unused.py
	$(BIN)/python benchmarks/report.py
	$(BIN)/python benchmarks/telemetry.py
	$(BIN)/python benchmarks/serve.py
	$(BIN)/python benchmarks/codemode.py
	$(BIN)/python benchmarks/localtasks.py $(LOCALTASKS)

# What the local models on this machine can do; an hour or more for a model of 1.5B on two cores.
localtasks: .venv/.ready-to-test
	$(BIN)/python benchmarks/localtasks.py $(LOCALTASKS)

# Ten minutes of mixed faults: memory, open files, tasks and threads must not grow.
soak: .venv/.ready-to-test
	$(BIN)/python benchmarks/soak.py

# Changes single places of the source and counts how many of them the tests notice; takes an hour or more.
mutants: .venv/.ready-to-test
	$(BIN)/python benchmarks/mutants.py $(MUTANTS)

# The site of the documentation, in build/site, with pictures that the program draws and consoles of what its commands
# print; a warning fails it. Its tools are apart: they want other versions.
PICTURED := tests/app/tui/test_pictures.py tests/serve/page/test_page_access.py
docs: .venv/.ready-to-test .venv/docs/.ready
	rm -rf build/pictures build/consoles && mkdir -p build/pictures
	SWINK_TEST_MORE=1 PICTURES_INTO=build/pictures $(BIN)/python -m pytest -n $(WORKERS) -k "screen or 1280-light" $(PICTURED)
	$(BIN)/python -m tests.consoles build/consoles
	$(BIN)/python tools/site.py
	rm -rf build/consoles # they are in the site

clean:
	rm -rf .venv .cache build .pytest_cache .ruff_cache .hypothesis

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("swink needs Python 3.11 or newer, and $(PYTHON) is " + sys.version.split()[0] + "; try make PYTHON=python3.12")'
	$(PYTHON) -m venv .venv

.venv/.ready-to-run: .venv/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[local,tui]"
	@touch $@

.venv/.ready-to-test: .venv/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[all,dev]"
	@$(BIN)/python -m pytest --collect-only -q >/dev/null || true # compiles the tests, before four processes do
	@touch $@ .venv/.ready-to-run

.venv/docs/.ready: .venv/bin/python pyproject.toml
	$(BIN)/python -m venv .venv/docs
	.venv/docs/bin/python -m pip install --quiet --disable-pip-version-check -e ".[docs]"
	@touch $@
