"""What being watched costs a flooded veth: its packet rate with bqltop attached over the rate without.

One flood goes on all the time. A round is three stretches next to each other, in changing order: watched (programs
attached and a sample taken, as at 10 Hz), floor (programs that do nothing on the same tracepoints: what the kernel's own
way to a program costs) and bare. A figure is the median of the rounds' ratios to the bare stretch. "per CPU second" is the
ratio of packets per second of CPU that the slower side got (the flood, or the receiver's NAPI thread): other work on
the machine takes less part in it. "nobody watching" is the same procedure with nothing attached in any stretch:
how far from 1 the machine alone takes it.
"""

from __future__ import annotations

import contextlib
import itertools
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.report import Row, at_least, load, spread
from bqltop.kernel.bpf import Module
from bqltop.kernel.netns import resolve
from bqltop.kernel.rtnl import Rtnl
from bqltop.lab import Lab, LabSpec
from bqltop.sampler import Sampler

BOUND = 0.98
ROUNDS = 150
STRETCH_S = 0.1
TRACEPOINTS = {"on_start_xmit": "net_dev_start_xmit", "on_xmit": "net_dev_xmit", "on_poll": "napi_poll"}
CASES = (
    # name, lab, which side is the slower, is it watched
    ("fast consumer", {"rules": 0}, "flood", True),
    ("slow consumer, full ring", {"rules": 5000}, "napi", True),
    ("4 queues under mq", {"rules": 0, "queues": 4, "qdisc": "mq"}, "flood", True),
    ("nobody watching", {"rules": 0}, "flood", False),
)


NOTHING = "".join(f"int {name}(void *context) {{ return 0; }}" for name in TRACEPOINTS)
WATCHED, FLOOR, BARE = "watched", "floor", "bare"


class Switch:
    """Attaches and detaches the programs of a module, without loading them anew."""

    def __init__(self, module: Module, names: list[str], on: bool):
        self._bpf, self._names = module._bpf, names
        for name in names:
            if name not in module.programs:
                module.load(name)
        self.on = on

    def set(self, on: bool) -> None:
        if on != self.on:
            for name in self._names:
                tracepoint = TRACEPOINTS[name].encode()
                if on:
                    self._bpf.attach_raw_tracepoint(tp=tracepoint, fn_name=name.encode())
                else:
                    self._bpf.detach_raw_tracepoint(tp=tracepoint)
        self.on = on


def cpu_ns(pids: list[int]) -> int:
    """CPU time that these processes have got so far, to the nanosecond.

    The clock's number is what clock_getcpuclockid(3) computes from a process id."""
    return sum(time.clock_gettime_ns((~pid << 3) | 2) for pid in pids)


def pids_of(lab: Lab, side: str) -> list[int]:
    """The flood, or the kernel threads that poll for the receiver."""
    if side == "flood":
        return [process.pid for process in lab._flooders.processes]
    wanted = f"napi/{lab.receiver.device}-"
    return [int(path.parent.name) for path in Path("/proc").glob("[0-9]*/comm") if _text(path).startswith(wanted)]


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


class Rounds:
    """Ratios to the bare stretch of each round, of packets per second and of packets per CPU second: {kind: [...]}."""

    def __init__(self, lab: Lab, sampler: Sampler, side: str, watched: bool):
        self._sampler, self._pids = sampler, pids_of(lab, side)
        engine = sampler._attachment.engine._module
        names = [name for name in engine.programs if name in TRACEPOINTS]
        self._nothing = Module(NOTHING, {})
        self._switches = {WATCHED: Switch(engine, names, on=True), FLOOR: Switch(self._nothing, names, on=False)}
        self._watched = watched
        self.by_wall: dict[str, list[float]] = {WATCHED: [], FLOOR: []}
        self.by_cpu: dict[str, list[float]] = {WATCHED: [], FLOOR: []}

    def run(self, counter: Callable[[], int], rounds: int) -> None:
        for order in itertools.islice(itertools.cycle(itertools.permutations((WATCHED, FLOOR, BARE))), rounds):
            rates = {kind: self._stretch(kind, counter) for kind in order}
            if not all(cpu for _, cpu in rates.values()):
                continue  # the flood did not get a CPU at all
            for kind in (WATCHED, FLOOR):
                self.by_wall[kind].append(rates[kind][0] / rates[BARE][0])
                self.by_cpu[kind].append(rates[kind][1] / rates[BARE][1])

    def over_floor(self) -> list[float]:
        return [one / other for one, other in zip(self.by_wall[WATCHED], self.by_wall[FLOOR], strict=True)]

    def close(self) -> None:
        self._nothing.close()

    def _stretch(self, kind: str, counter: Callable[[], int]) -> tuple[float, float]:
        """(packets per second, packets per second of CPU) of one stretch."""
        for other, switch in self._switches.items():
            switch.set(self._watched and other == kind)
        packets, cpu, started = counter(), cpu_ns(self._pids), time.monotonic()
        if self._watched and kind == WATCHED:
            self._sampler.sample()
        time.sleep(max(0.0, started + STRETCH_S - time.monotonic()))
        packets, cpu = counter() - packets, cpu_ns(self._pids) - cpu
        return packets / (time.monotonic() - started), packets / max(1, cpu) * 1e9


def rows(rounds: int = ROUNDS) -> Iterator[Row]:
    for name, words, side, watched in CASES:
        with Lab(LabSpec(**words)) as lab:
            place = lab.sender.device, lab.sender.netns
            with Sampler(*place) as sampler, Rtnl(resolve(lab.sender.netns)) as rtnl:
                sampler.sample()
                lab.start_flood()
                time.sleep(0.5)
                with contextlib.closing(Rounds(lab, sampler, side, watched)) as found:
                    found.run(lambda rtnl=rtnl, lab=lab: rtnl.link_stats(lab.sender.ifindex).tx_packets, rounds)
                lab.stop_flood()
        if not watched:
            yield _row(name, found.by_wall[WATCHED])
            continue
        yield at_least("rate", name, *_middle(found.by_wall[WATCHED]))
        yield _row("  per CPU second", found.by_cpu[WATCHED])
        yield _row("  programs that do nothing", found.by_wall[FLOOR])
        yield _row("  watched over those", found.over_floor())


def _middle(values: list[float]) -> tuple[float, float, str]:
    return statistics.median(values), BOUND, f"{spread(values)}; {load()}"


def _row(name: str, values: list[float]) -> Row:
    median, _, detail = _middle(values)
    return Row("rate", name, f"{median:.3f}", detail=detail)
