"""Wall time of `bqltop DEV --once --json`, 0.2 s of which is the window it shows."""

from __future__ import annotations

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


def seconds(words: list[str]) -> float:
    """How long one run takes, the interpreter's start and end included."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-m", "bqltop", *words], check=True, capture_output=True)
    return time.perf_counter() - started


def rows() -> Iterator[Row]:
    for name, queues, more in CASES:
        with Pair(queues, "mq" if queues > 1 else "pfifo") as pair:
            words = [pair.sender.device, "--netns", pair.sender.netns, "--once", "--json", *more]
            found = [seconds(words) for _ in range(RUNS)]
        detail = f"least {min(found):.2f}, {RUNS} runs; {load()}"
        yield at_most("once", name, statistics.median(found), BOUND_S, "s", detail)
