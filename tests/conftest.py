"""Fixtures for every test: labs and devices on the real kernel, and the check that nothing of ours is left behind.

Where the host cannot have a thing (no root, a part of the kernel missing) the test is skipped, with the reason as its text.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from bqltop.lab import End, Lab, LabSpec, LabUnavailable, Pair, Scope
from bqltop.lab import dummy as lab_dummy
from bqltop.lab import ifb as lab_ifb
from bqltop.lab import tun as lab_tun
from bqltop.lab.scope import NETNS_DIR, PREFIX_VARIABLE

# Every process and namespace that comes from this run carries this mark, also through `bqltop demo` in a child process.
PREFIX = f"bqt{os.getpid()}"
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


def namespaces(prefix: str = PREFIX) -> set[str]:
    """Named namespaces whose name begins with `prefix`."""
    folder = Path(NETNS_DIR)
    return {path.name for path in folder.iterdir() if path.name.startswith(prefix)} if folder.exists() else set()


def marked_processes(mark: str = PREFIX) -> dict[int, str]:
    """Processes, but not this one, whose environment has our prefix: pid -> command line."""
    found = {}
    wanted = f"{PREFIX_VARIABLE}={mark}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if int(folder.name) != os.getpid() and wanted in (folder / "environ").read_bytes().split(b"\0"):
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                found[int(folder.name)] = command
        except OSError:
            continue  # it ended while we looked, or is not ours to read
    return found


def own_programs() -> set[str]:
    """eBPF programs and links that this process holds: target of the descriptor and id. They live as long as it does."""
    found = set()
    for path in Path("/proc/self/fd").iterdir():
        try:
            target = os.readlink(path)
            if target in ("anon_inode:bpf-prog", "anon_inode:bpf_link", "anon_inode:bpf-raw-tracepoint"):
                fields = dict(line.split(":\t", 1) for line in Path("/proc/self/fdinfo", path.name).read_text().splitlines())
                found.add(f"{target} id {fields.get('prog_id', '?')}")
        except (OSError, ValueError):
            continue
    return found


def leftovers() -> dict[str, object]:
    """Everything of this run that still exists outside of this process, or as an eBPF program in it."""
    ours = tuple(f"{kind}{os.getpid()}x" for kind in ("ifb", "tun", "dummy"))
    devices = {path.name for path in Path("/sys/class/net").iterdir() if path.name.startswith(ours)}
    all_kinds = {
        "namespaces": namespaces(),
        "processes": marked_processes(),
        "devices": devices,
        "eBPF programs": own_programs(),
    }
    return {kind: found for kind, found in all_kinds.items() if found}


@pytest.fixture(scope="session", autouse=True)
def nothing_left_behind() -> Iterator[None]:
    """Fails the run when a namespace, process, device or eBPF program of ours is there at its end."""
    yield
    deadline = time.monotonic() + 5  # a guardian whose owner was killed needs a moment
    while (left := leftovers()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not left, f"left behind by this test run: {left}"
