"""Per-CPU softirqs and times, and what bqltop itself costs. Per machine, not per namespace.

CPU times come from psutil (its tick is 10 ms: rates over less than a second are coarse); softirq counts from
/proc/softirqs.
"""

from __future__ import annotations

import resource

import psutil

from bqltop.model import CpuSample, SelfSample

SOFTIRQS = "/proc/softirqs"
ONLINE = "/sys/devices/system/cpu/online"
_own = psutil.Process()


def cpus() -> tuple[CpuSample, ...]:
    """Every CPU that is on line."""
    times = psutil.cpu_times(percpu=True)
    numbers = online_cpus()
    if len(numbers) != len(times):  # a CPU came or went between the two files
        numbers = list(range(len(times)))
    net_tx, net_rx = softirq_counts(_read(SOFTIRQS))
    return tuple(
        CpuSample(number, getattr(cpu, "softirq", 0.0), total(cpu), net_tx.get(number, 0), net_rx.get(number, 0))
        for number, cpu in zip(numbers, times, strict=True)
    )


def online_cpus() -> list[int]:
    """Numbers of the CPUs that are switched on; empty where the kernel does not say."""
    return cpu_numbers(_read(ONLINE).decode("ascii"))


def cpu_numbers(text: str) -> list[int]:
    """The numbers in a list of CPUs as the kernel writes it (bitmap_print_to_pagebuf()): 0-3,6."""
    ranges = [part.split("-") for part in text.strip().split(",") if part]
    return [number for ends in ranges for number in range(int(ends[0]), int(ends[-1]) + 1)]


def total(times: object) -> float:
    """Seconds of a CPU in all states. Guest time is already in user and nice."""
    names = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
    return sum(getattr(times, name, 0.0) for name in names)


def softirq_counts(text: bytes) -> tuple[dict[int, int], dict[int, int]]:
    """NET_TX and NET_RX of /proc/softirqs by CPU number: a column for each possible CPU, /proc/stat has those on line."""
    lines = text.split(b"\n")
    numbers = [int(word[3:]) for word in lines[0].split()]
    rows = {}
    for line in lines[1:]:
        name, _, counts = line.partition(b":")
        if name.strip() in (b"NET_TX", b"NET_RX"):
            rows[name.strip()] = dict(zip(numbers, map(int, counts.split()), strict=False))
    return rows.get(b"NET_TX", {}), rows.get(b"NET_RX", {})


def _read(path: str) -> bytes:
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read()
    except OSError:
        return b""


def own_cost(read_ns: int = 0, late_ns: int = 0, missed: int = 0, strays: int | None = None) -> SelfSample:
    """What this process has used so far, all threads together. 15 microseconds."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return SelfSample(usage.ru_utime + usage.ru_stime, _own.memory_info().rss, read_ns, late_ns, missed, strays=strays)
