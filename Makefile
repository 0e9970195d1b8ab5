# bqltop on a Debian host: `make demo` shows it, `make test` tests it. Both install what is missing first.

# Debian's own interpreter, whatever else is first in PATH: python3-bpfcc is built for it.
PYTHON  := /usr/bin/python3
VENV    := .venv
STAMP   := $(VENV)/.setup-stamp
# Extra words for pytest, bqltop demo, ...:  make test ARGS='-k lab'
ARGS    ?=

# Needed to run bqltop and its demo ...
PACKAGES := python3 python3-venv python3-bpfcc iproute2 ethtool iptables iputils-ping procps kmod
# ... and by the tests and screenshots: a terminal to drive, the tools to compare with, a font with braille.
PACKAGES += tmux fonts-jetbrains-mono bpftool

.PHONY: help setup packages demo test test-vm bench screenshots lint lock clean

help:
	@echo 'make setup        install what is missing (Debian packages, .venv); nothing to do takes a moment'
	@echo 'make demo         a flooded veth pair of our own and bqltop on it   (ARGS="--rules 15000")'
	@echo 'make test         the test suite                                    (ARGS="-k lab")'
	@echo 'make test-vm      the tests on other kernels, in virtual machines'
	@echo 'make bench        what bqltop costs, as ratios'
	@echo 'make screenshots  draw screenshots/ anew from the running application'
	@echo 'make lint         ruff'
	@echo 'make lock         write requirements.lock anew from pyproject.toml'
	@echo 'make clean        remove .venv and what was built'

# One flock round both halves: two `make` at once in one checkout must not install over each other.
setup:
	@flock Makefile $(MAKE) -s packages $(STAMP)

packages:
	@missing=$$(for p in $(PACKAGES); do \
	    dpkg-query -W -f='$${db:Status-Status}\n' $$p 2>/dev/null | grep -qx installed || echo $$p; done); \
	test -z "$$missing" && exit 0; \
	command -v apt-get >/dev/null || { echo 'make setup: this is not Debian; please install:' $$missing >&2; exit 1; }; \
	test "$$(id -u)" = 0 || { echo 'make setup: run it as root, to install:' $$missing >&2; exit 1; }; \
	echo 'make setup: installing' $$missing; \
	export DEBIAN_FRONTEND=noninteractive; \
	apt-get update -qq && apt-get install -y -qq --no-install-recommends $$missing >/dev/null

$(STAMP): pyproject.toml requirements.lock
	@$(VENV)/bin/python -c 'import pip' 2>/dev/null || { rm -rf $(VENV); $(PYTHON) -m venv $(VENV); }
	@$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --root-user-action=ignore \
	    --no-deps -r requirements.lock
	@$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --root-user-action=ignore \
	    --no-deps --no-build-isolation -e .
	@touch $@

demo: setup
	@$(VENV)/bin/bqltop demo $(ARGS)

# make itself knows only success and failure: with STATUS_FILE pytest's own status is left there, and make succeeds.
test: setup
	@$(VENV)/bin/python -m pytest $(ARGS); status=$$?; \
	if test -n '$(STATUS_FILE)'; then echo $$status > '$(STATUS_FILE)'; else exit $$status; fi

test-vm: setup
	@tests/vm/run $(ARGS)

bench: setup
	@$(VENV)/bin/python -m benchmarks $(ARGS)

screenshots: setup
	@screenshots/make $(ARGS)

lint: setup
	@$(VENV)/bin/ruff check $(ARGS) bqltop tests $(wildcard benchmarks screenshots)

lock: packages
	@rm -rf build/lock && $(PYTHON) -m venv build/lock
	@build/lock/bin/python -m pip install --quiet --disable-pip-version-check --root-user-action=ignore \
	    -U setuptools '.[dev,prometheus]'
	@{ echo '# Every package of the virtual environment, exactly. Written by `make lock` from pyproject.toml.'; \
	   build/lock/bin/python -m pip freeze --all | grep -viE '^(pip|wheel|bqltop)\b'; } > requirements.lock

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .ruff_cache .hypothesis snapshot_report.html
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
