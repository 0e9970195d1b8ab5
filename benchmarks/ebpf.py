"""Time of our eBPF programs per transmitted packet, by the kernel's own count (bpf_stats).

The count is switched on with BPF_ENABLE_STATS, which ends with the descriptor: no sysctl is changed. It includes its
own clock reads, once for each program that runs; "a program that does nothing" on the same tracepoint shows that floor.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.report import Row, at_most, load
from bqltop.kernel.bpf import Module
from bqltop.kernel.btf import libbpf
from bqltop.lab import Lab, LabSpec
from bqltop.sampler import Sampler

BOUND_NS = 120
ROUNDS = 7
ROUND_S = 0.7
BPF_STATS_RUN_TIME = 0  # enum bpf_stats_type
ON_DEMAND = {"snapshot"}
"""Programs that are run by a sample, not by a packet."""
CASES = (
    ("1 queue, fast consumer", {"rules": 0}),
    ("1 queue, full ring", {"rules": 5000}),
    ("4 queues under mq", {"rules": 0, "queues": 4, "qdisc": "mq"}),
)


@contextlib.contextmanager
def run_times() -> Iterator[None]:
    """The kernel measures every eBPF program while this lasts."""
    fd = libbpf().bpf_enable_stats(BPF_STATS_RUN_TIME)
    if fd < 0:
        raise OSError(ctypes.get_errno(), "BPF_ENABLE_STATS")
    try:
        yield
    finally:
        os.close(fd)


def spent(fd: int) -> tuple[int, int]:
    """(ns, runs) of a program so far, from /proc/self/fdinfo."""
    lines = (line.partition(":") for line in Path(f"/proc/self/fdinfo/{fd}").read_text().splitlines())
    fields = {name: value.strip() for name, _, value in lines}
    return int(fields["run_time_ns"]), int(fields["run_cnt"])


def per_packet(lab: Lab) -> list[dict[str, float]]:
    """ns per transmitted packet of each event program, of each round."""
    with Sampler(lab.sender.device, lab.sender.netns) as sampler, run_times():
        before = sampler.sample()
        fds = {name: fd for name, fd in sampler._attachment.engine.program_fds().items() if name not in ON_DEMAND}
        found = []
        for _ in range(ROUNDS):
            times, before = {name: spent(fd)[0] for name, fd in fds.items()}, sampler.sample()
            time.sleep(ROUND_S)
            after = sampler.sample()
            packets = sum(queue.packets for queue in after.queues) - sum(queue.packets for queue in before.queues)
            found.append({name: (spent(fd)[0] - times[name]) / packets for name, fd in fds.items()})
    return found


def floor() -> float:
    """ns per run of a program that does nothing."""
    module = Module("int nothing(void *ctx) { return 0; }", {})
    try:
        with Lab(LabSpec(rules=0)) as lab, run_times():
            lab.start_flood()
            module.attach("nothing", "net_dev_xmit")
            fd = module.programs["nothing"]
            before = spent(fd)
            time.sleep(ROUND_S)
            after = spent(fd)
    finally:
        module.close()
    return (after[0] - before[0]) / (after[1] - before[1])


def rows() -> Iterator[Row]:
    yield Row("ebpf", "a program that does nothing", f"{floor():.3g} ns", detail=f"the floor of the count; {load()}")
    for name, words in CASES:
        with Lab(LabSpec(**words)) as lab:
            lab.start_flood()
            time.sleep(0.5)
            found = per_packet(lab)
        total = statistics.median(sum(times.values()) for times in found)
        parts = ", ".join(f"{program} {statistics.median(times[program] for times in found):.0f}" for program in found[0])
        yield at_most("ebpf", name, total, BOUND_NS, "ns", f"{parts}; least {min(sum(t.values()) for t in found):.0f}; {load()}")
