"""Fixtures for every test: labs and devices on the real kernel, and the check that nothing of ours is left behind.

Where the host cannot have a thing (no root, a part of the kernel missing) the test is skipped, with the reason as its text.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from leftovers import PREFIX, leftovers

from bqltop.lab import End, Lab, LabSpec, LabUnavailable, Pair, Scope
from bqltop.lab import dummy as lab_dummy
from bqltop.lab import ifb as lab_ifb
from bqltop.lab import tun as lab_tun
from bqltop.lab.scope import PREFIX_VARIABLE

os.environ[PREFIX_VARIABLE] = PREFIX


@pytest.fixture
def require_root() -> None:
    """Skips the test unless it runs as root."""
    if os.geteuid():
        pytest.skip("needs root: network namespaces and eBPF programs")


class Factory:
    """Makes things from context managers, skips where the host cannot have them, closes them in reverse order."""

    def __init__(self) -> None:
        self.stack = ExitStack()

    def enter(self, make: Callable):
        """Enters what `make()` returns."""
        try:
            return self.stack.enter_context(make())
        except LabUnavailable as error:
            pytest.skip(str(error))


@pytest.fixture
def factory() -> Iterator[Factory]:
    """What the fixtures below are made with."""
    made = Factory()
    with made.stack:
        yield made


@pytest.fixture
def lab(factory: Factory) -> Callable[..., Lab]:
    """`lab(queues=4, rules=0, ...)`, words of LabSpec: a Lab that is built; the flood is for the test to start."""
    return lambda **words: factory.enter(lambda: Lab(LabSpec(**words)))


@pytest.fixture
def veth_pair(factory: Factory) -> Callable[..., Pair]:
    """`veth_pair(queues=1, qdisc="", napi_mode=True, threaded=False)`: a pair between two namespaces, with no packet on it."""
    return lambda **words: factory.enter(lambda: Pair(**words))


@pytest.fixture
def netns(factory: Factory) -> Callable[[], str]:
    """`netns()`: the name of a new, empty namespace."""
    return lambda: factory.enter(Scope).netns("ns")


@pytest.fixture
def ifb(factory: Factory) -> Callable[..., End]:
    """`ifb(queues=1)`: an ifb device in a namespace of its own."""
    return lambda **words: factory.enter(lambda: lab_ifb(**words))


@pytest.fixture
def tun(factory: Factory) -> Callable[..., End]:
    """`tun(queues=1, extra_flags=0)`: a tun device in a namespace of its own; `End.fds` are its queues."""
    return lambda **words: factory.enter(lambda: lab_tun(**words))


@pytest.fixture
def dummy(factory: Factory) -> Callable[..., End]:
    """`dummy(queues=1)`: a dummy device in a namespace of its own."""
    return lambda **words: factory.enter(lambda: lab_dummy(**words))


@pytest.fixture(scope="session", autouse=True)
def nothing_left_behind() -> Iterator[None]:
    """Fails the run when a namespace, process, device or eBPF program of ours is there at its end."""
    yield
    deadline = time.monotonic() + 5  # a guardian whose owner was killed needs a moment
    while (left := leftovers()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not left, f"left behind by this test run: {left}"
