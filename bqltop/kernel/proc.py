"""Per-CPU softirqs and times, and what bqltop itself costs. Per machine, not per namespace.

CPU times come from psutil (its tick is 10 ms: rates over less than a second are coarse); softirq counts from
/proc/softirqs.
"""

from __future__ import annotations

import resource

import psutil

from bqltop.model import CpuSample, SelfSample

SOFTIRQS = "/proc/softirqs"
_own = psutil.Process()


def cpus() -> tuple[CpuSample, ...]:
    """Every CPU that is on line."""
    times = psutil.cpu_times(percpu=True)
    numbers, net_tx, net_rx = softirq_counts(_softirqs())
    if len(numbers) != len(times):  # a CPU came or went between the two files
        numbers = list(range(len(times)))
    return tuple(
        CpuSample(
            cpu=numbers[row],
            softirq_s=getattr(cpu, "softirq", 0.0),
            total_s=total(cpu),
            net_tx=net_tx[row] if row < len(net_tx) else 0,
            net_rx=net_rx[row] if row < len(net_rx) else 0,
        )
        for row, cpu in enumerate(times)
    )


def total(times: object) -> float:
    """Seconds of a CPU in all states. Guest time is already in user and nice."""
    names = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
    return sum(getattr(times, name, 0.0) for name in names)


def softirq_counts(text: bytes) -> tuple[list[int], list[int], list[int]]:
    """(CPU numbers, NET_TX, NET_RX) of /proc/softirqs."""
    lines = text.split(b"\n")
    numbers = [int(word[3:]) for word in lines[0].split()]
    rows = {}
    for line in lines[1:]:
        name, _, counts = line.partition(b":")
        if name.strip() in (b"NET_TX", b"NET_RX"):
            rows[name.strip()] = [int(word) for word in counts.split()]
    return numbers, rows.get(b"NET_TX", []), rows.get(b"NET_RX", [])


def _softirqs() -> bytes:
    try:
        with open(SOFTIRQS, "rb", buffering=0) as file:
            return file.read()
    except OSError:
        return b""


def own_cost(read_ns: int = 0, late_ns: int = 0, missed: int = 0, strays: int | None = None) -> SelfSample:
    """What this process has used so far, all threads together. 15 microseconds."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return SelfSample(usage.ru_utime + usage.ru_stime, _own.memory_info().rss, read_ns, late_ns, missed, strays=strays)
