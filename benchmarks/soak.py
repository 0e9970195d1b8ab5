"""A soak: bqltop's whole past-keeping at 10 Hz on a flooded device with 64 queues, for an hour after it is warm.

    .venv/bin/python -m benchmarks.soak [--minutes M] [--queues N] [--pps P] [--no-record]

Root only: it builds the lab. In this process run the sampler, the history, the event detector and a recorder, as they do
behind the screen. Every ten seconds one line: resident memory, open files, samples missed, own CPU. At the end the
figures that must hold: after warm-up memory is flat, open files are flat, and in all the time no sample was lost.

Warm is when the history is full and forgets as much as it takes: ten minutes of all samples and 53 of thinned ones before
them, with 64 queues; hence 130 minutes for an hour of measuring. A run of which that is more than half gets a smaller
history, so that it has a warm-up too.

It wants a quiet machine: a host that is busy with other things makes any process late, and late samples are missed ones.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from bqltop.eventlog import Detector, EventLog
from bqltop.history import BLOCK, History, most_blocks, most_samples
from bqltop.lab import Lab, LabSpec
from bqltop.recording import Recorder
from bqltop.sampler import Sampler

HZ = 10
EVERY_S = 10.0
FLAT = 0.02
"""Growth of memory from the end of the warm-up to the end of the run that still counts as flat: the noise of malloc."""


@dataclass(frozen=True)
class Look:
    """What one line shows. Memory and history in bytes, CPU in seconds since the start, ``late_ms`` the latest sample."""

    at_s: float
    samples: int
    missed: int
    rss: int
    files: int
    cpu_s: float
    history: int
    late_ms: float


def resident() -> int:
    """This process' resident memory in bytes (/proc/self/statm, second field, pages)."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def show(look: Look) -> None:
    print(f"{look.at_s:7.0f} s  {look.samples:7d} samples  {look.missed:3d} missed  late {look.late_ms:6.1f} ms  "
          f"rss {look.rss / 1e6:7.1f} MB  history {look.history / 1e6:6.1f} MB  files {look.files:4d}  "
          f"cpu {look.cpu_s / max(look.at_s, 0.001):6.1%}", flush=True)


def soak(source, seconds: float, history: History, record: Path | None) -> list[Look]:
    """Watch ``source`` for so long; the looks taken on the way."""
    detector, log = Detector(), EventLog()
    recorder = Recorder(record, max_bytes=200_000_000, keep=2) if record else None
    looks, count, late = [], 0, 0
    began, due = time.monotonic(), 0.0
    try:
        for sample in source.every(1 / HZ):
            history.add(sample)
            log.add(detector.feed(sample))
            if recorder:
                recorder.sample(sample)
            count, late = count + 1, max(late, sample.own.late_ns)
            now = time.monotonic() - began
            if now >= due:
                looks.append(Look(now, count, sample.own.missed, resident(), open_files(), time.process_time(), history.memory,
                                  late / 1e6))
                show(looks[-1])
                due, late = due + EVERY_S, 0
            if now >= seconds:
                break
    except KeyboardInterrupt:
        print("stopped early: what follows is of the part that ran")
    finally:
        if recorder:
            recorder.close()
            lost = f", {recorder.lost} lost" if recorder.lost else ""
            print(f"recorded {recorder.samples} samples{lost}: {recorder.stopped}")
        print(f"{log.total} events")
    return looks


def sized(queues: int, seconds: float) -> tuple[int, int, float]:
    """The history of such a run: samples kept whole, thinned blocks before them, and the seconds until both are full."""
    full, thin = most_samples(queues), most_blocks(queues)
    share = min(1.0, seconds * HZ / 2 / (full + thin * BLOCK))
    full, thin = max(BLOCK, int(full * share)), max(1, int(thin * share))
    # two blocks more: the newest one is being filled, and is one more than asked for
    return full, thin, (full + (thin + 2) * BLOCK) / HZ


def verdict(looks: list[Look], warm_s: float) -> bool:
    """Print what must hold and whether it does."""
    warm = [look for look in looks if look.at_s >= warm_s] or looks[-1:]
    first, last = warm[0], warm[-1]
    third = max(1, len(warm) // 3)
    early = sum(look.rss for look in warm[:third]) / third
    end = sum(look.rss for look in warm[-third:]) / third
    growth = end / early - 1
    held = {
        f"memory after {first.at_s:.0f} s: {first.rss / 1e6:.1f} -> {last.rss / 1e6:.1f} MB, "
        f"last third of the looks against the first {growth:+.2%}": growth <= FLAT,
        f"open files: {first.files} -> {last.files}": last.files <= first.files,
        f"samples missed: {last.missed} of {last.samples + last.missed}": last.missed == 0,
    }
    for text, good in held.items():
        print(f"{'holds' if good else 'FAILS'}  {text}")
    print(f"       own CPU {last.cpu_s / last.at_s:.1%} of a core, recording and history included")
    return all(held.values())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=130)
    parser.add_argument("--queues", type=int, default=64)
    parser.add_argument("--pps", type=int, default=50_000, help="packets per second of the flood; 0: as fast as it goes")
    parser.add_argument("--no-record", action="store_true")
    arguments = parser.parse_args()
    seconds = arguments.minutes * 60
    full, thin, warm_s = sized(arguments.queues, seconds)
    with Lab(LabSpec(queues=arguments.queues, qdisc="mq", pps=arguments.pps)) as lab, tempfile.TemporaryDirectory() as folder:
        lab.start_flood()
        record = None if arguments.no_record else Path(folder) / "soak.jsonl.gz"
        with Sampler(lab.sender.device, lab.sender.netns) as sampler:
            looks = soak(sampler, seconds, History(full, thin), record)
    return 0 if verdict(looks, warm_s) else 1


if __name__ == "__main__":
    sys.exit(main())
