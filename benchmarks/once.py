"""Wall time of `bqltop DEV --once --json`, 0.2 s of which is the window it shows."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator

from benchmarks.report import Row, at_most, load
from bqltop.lab import Pair

BOUND_S = 0.8
RUNS = 9
CASES = (("1 queue", 1, ()), ("64 queues", 64, ()), ("1 queue, --no-bpf", 1, ("--no-bpf",)))


def seconds(words: list[str]) -> tuple[float, float]:
    """(wall, CPU) of one run, the interpreter's start and end included. On a machine with other work the wall time is
    mostly waiting; the CPU time and the window's 0.2 s together are what a quiet one takes."""
    started, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "bqltop", *words], check=True, capture_output=True)
    wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def rows() -> Iterator[Row]:
    for name, queues, more in CASES:
        with Pair(queues, "mq" if queues > 1 else "pfifo") as pair:
            words = [pair.sender.device, "--netns", pair.sender.netns, "--once", "--json", *more]
            found = [seconds(words) for _ in range(RUNS)]
        walls, cpus = zip(*found, strict=True)
        detail = f"least {min(walls):.2f}, CPU {statistics.median(cpus):.2f}, {RUNS} runs; {load()}"
        yield at_most("once", name, statistics.median(walls), BOUND_S, "s", detail)
