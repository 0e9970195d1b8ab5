"""How long one whole sample takes: the snapshot, the maps, netlink, the qdiscs and bqltop's own figures."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator

from benchmarks.report import Row, at_most, load
from bqltop.lab import Pair
from bqltop.sampler import Sampler

BOUND_MS = {1: 1.0, 64: 3.0}
QUEUES = (1, 8, 64, 256, 1024)
SAMPLES = 200


def milliseconds(sampler: Sampler, samples: int = SAMPLES) -> list[float]:
    """Wall time of so many samples, a little apart."""
    sampler.sample()
    found = []
    for _ in range(samples):
        started = time.perf_counter()
        sampler.sample()
        found.append((time.perf_counter() - started) * 1e3)
        time.sleep(0.002)
    return found


def rows() -> Iterator[Row]:
    for queues in QUEUES:
        qdisc = "mq" if queues > 1 else "pfifo"
        with Pair(queues, qdisc) as pair, Sampler(pair.sender.device, pair.sender.netns) as sampler:
            found = milliseconds(sampler)
        name = "1 queue, pfifo" if queues == 1 else f"{queues} queues under mq"
        median, detail = statistics.median(found), f"least {min(found):.2f}; {load()}"
        if queues in BOUND_MS:
            yield at_most("sampling", name, median, BOUND_MS[queues], "ms", detail)
        else:
            yield Row("sampling", name, f"{median:.3g} ms", detail=detail)
