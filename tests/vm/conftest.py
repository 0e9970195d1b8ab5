"""
Tests in this folder run inside a virtual machine that `make test-vm` boots; plain pytest on the host leaves them alone.

`@pytest.mark.kernel(needs="veth_bql")` skips a test where the running kernel does not offer that (see capabilities.py).
"""

import contextlib
import os

import pytest

from .capabilities import capability
from .reporting import Reporter

GUEST = os.environ.get("BQLTOP_VM_GUEST")

if not GUEST:
    collect_ignore_glob = ["test_*.py"]


def pytest_configure(config):
    config.addinivalue_line("markers", "kernel(needs): run only where the running kernel offers these capabilities")
    port = os.environ.get("BQLTOP_VM_REPORT")
    if GUEST and port:
        done = os.environ.get("BQLTOP_VM_DONE", "").splitlines()
        config.pluginmanager.register(Reporter(port, done), "bqltop-vm-report")


def pytest_terminal_summary(terminalreporter):
    if not GUEST:
        terminalreporter.write_line("tests/vm: not run here, for they need other kernels; run them with `make test-vm`")


def needs_of(item) -> list[str]:
    """The capabilities that a test's markers ask for."""
    needs = []
    for mark in item.iter_markers("kernel"):
        wanted = mark.kwargs.get("needs", mark.args)
        needs += [wanted] if isinstance(wanted, str) else wanted
    return needs


def pytest_collection_finish(session):
    """Ask for every capability before the first test: some answers need devices that a module's fixture may hold later."""
    if not GUEST:
        return
    for name in sorted({name for item in session.items for name in needs_of(item)}):
        # what goes wrong here goes wrong again in the test that needs it, and is reported there
        with contextlib.suppress(Exception):
            capability(name)


def pytest_runtest_setup(item):
    for name in needs_of(item):
        answer = capability(name)
        if not answer.there:
            pytest.skip(f"no {name}: {answer.reason}")
