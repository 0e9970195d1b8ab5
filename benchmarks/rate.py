"""What being watched costs a flooded veth: its packet rate with bqltop attached over the rate without.

One flood goes on all the time. In each pair one stretch is watched, programs attached and a sample taken, as at 10 Hz,
and one is not, next to each other and in changing order; the figure is the median of the pairs' ratios. "per CPU second"
is the ratio of packets per second of CPU that the slower side got (the flood, or the receiver's NAPI thread): other work on
the machine takes less part in it. "nobody watching" is the same procedure with nothing attached in either stretch:
how far from 1 the machine alone takes it.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.report import Row, at_least, load, spread
from bqltop.kernel.netns import resolve
from bqltop.kernel.rtnl import Rtnl
from bqltop.lab import Lab, LabSpec
from bqltop.sampler import Sampler

BOUND = 0.98
PAIRS = 150
STRETCH_S = 0.1
TRACEPOINTS = {"on_start_xmit": "net_dev_start_xmit", "on_xmit": "net_dev_xmit", "on_poll": "napi_poll"}
CASES = (
    # name, lab, which side is the slower, is it watched
    ("fast consumer", {"rules": 0}, "flood", True),
    ("slow consumer, full ring", {"rules": 5000}, "napi", True),
    ("4 queues under mq", {"rules": 0, "queues": 4, "qdisc": "mq"}, "flood", True),
    ("nobody watching", {"rules": 0}, "flood", False),
)


class Switch:
    """Attaches and detaches the event programs of a sampler, without loading them anew."""

    def __init__(self, sampler: Sampler):
        module = sampler._attachment.engine._module
        self._bpf = module._bpf
        self._pairs = [(name, TRACEPOINTS[name]) for name in module.programs if name in TRACEPOINTS]
        self.on = True

    def set(self, on: bool) -> None:
        if on != self.on:
            for program, tracepoint in self._pairs:
                if on:
                    self._bpf.attach_raw_tracepoint(tp=tracepoint.encode(), fn_name=program.encode())
                else:
                    self._bpf.detach_raw_tracepoint(tp=tracepoint.encode())
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


class Pairs:
    """Ratios, watched over not watched: of packets per second, and of packets per CPU second."""

    def __init__(self, lab: Lab, sampler: Sampler, side: str, watched: bool):
        self._sampler, self._watched = sampler, watched
        self._switch, self._pids = Switch(sampler), pids_of(lab, side)
        self.by_wall: list[float] = []
        self.by_cpu: list[float] = []

    def run(self, counter: Callable[[], int], pairs: int) -> None:
        for pair in range(pairs):
            order = (True, False) if pair % 2 else (False, True)
            rates = {watched: self._stretch(watched and self._watched, counter) for watched in order}
            if not (rates[True][1] and rates[False][1]):
                continue  # the flood did not get a CPU at all
            self.by_wall.append(rates[True][0] / rates[False][0])
            self.by_cpu.append(rates[True][1] / rates[False][1])

    def _stretch(self, watched: bool, counter: Callable[[], int]) -> tuple[float, float]:
        """(packets per second, packets per second of CPU) of one stretch."""
        self._switch.set(watched)
        packets, cpu, started = counter(), cpu_ns(self._pids), time.monotonic()
        if watched:
            self._sampler.sample()
        time.sleep(max(0.0, started + STRETCH_S - time.monotonic()))
        packets, cpu = counter() - packets, cpu_ns(self._pids) - cpu
        return packets / (time.monotonic() - started), packets / max(1, cpu) * 1e9


def rows(pairs: int = PAIRS) -> Iterator[Row]:
    for name, words, side, watched in CASES:
        with Lab(LabSpec(**words)) as lab:
            place = lab.sender.device, lab.sender.netns
            with Sampler(*place) as sampler, Rtnl(resolve(lab.sender.netns)) as rtnl:
                sampler.sample()
                lab.start_flood()
                time.sleep(0.5)
                found = Pairs(lab, sampler, side, watched)
                found.run(lambda rtnl=rtnl, lab=lab: rtnl.link_stats(lab.sender.ifindex).tx_packets, pairs)
                lab.stop_flood()
        yield at_least("rate", name, *_middle(found.by_wall)) if watched else _row(name, found.by_wall)
        yield _row("  per CPU second", found.by_cpu)


def _middle(values: list[float]) -> tuple[float, float, str]:
    return statistics.median(values), BOUND, f"{spread(values)}; {load()}"


def _row(name: str, values: list[float]) -> Row:
    median, _, detail = _middle(values)
    return Row("rate", name, f"{median:.3f}", detail=detail)
