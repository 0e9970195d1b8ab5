"""A soak: bqltop's whole past-keeping at 10 Hz on a flooded device with 64 queues, for an hour after it is warm.

    .venv/bin/python -m benchmarks.soak [--minutes M] [--queues N] [--pps P] [--warm-hz R] [--no-record]

Root only: it builds the lab. In this process run the sampler, the history, the event detector and a recorder, as they do
behind the screen. Every ten seconds one line: resident memory, open files, samples missed, own CPU. At the end the
figures that must hold: after warm-up memory is flat, open files are flat, and no sample was lost.

Warm is when the history is full and forgets as much as it takes: ten minutes of all samples and 53 of thinned ones before
them, with 64 queues. Most of the warm-up runs faster than 10 Hz, for the history counts samples; what is missed in it does
not count. Its last part is the first of the soak: until all samples kept whole are of 10 Hz, and as large as those are.

It wants a quiet machine: a host that is busy with other things makes any process late, and late samples are missed ones.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
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
    """What one line shows, since the warm-up began or ended. Memory and history in bytes, ``late_ms`` the latest sample."""

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


class Soak:
    """The sampler's samples taken in as behind the screen."""

    def __init__(self, source: Sampler, history: History, record: Path | None) -> None:
        self.source, self.history = source, history
        self.detector, self.log = Detector(), EventLog()
        self.recorder = Recorder(record, max_bytes=200_000_000, keep=2) if record else None

    def run(self, hz: float, until: Callable[[Look], bool]) -> list[Look]:
        """Watch at so many samples per second until a look says that it is enough; the looks taken on the way."""
        looks: list[Look] = []
        count, late, missed = 0, 0, self.source.pace.missed
        began, cpu, due = time.monotonic(), time.process_time(), 0.0
        for sample in self.source.every(1 / hz):
            self.history.add(sample)
            self.log.add(self.detector.feed(sample))
            if self.recorder:
                self.recorder.sample(sample)
            count, late = count + 1, max(late, sample.own.late_ns)
            now = time.monotonic() - began
            if now >= due:
                looks.append(Look(now, count, sample.own.missed - missed, resident(), open_files(), time.process_time() - cpu,
                                  self.history.memory, late / 1e6))
                show(looks[-1])
                due, late = due + EVERY_S, 0
                if until(looks[-1]):
                    break
        return looks

    def close(self) -> None:
        if self.recorder:
            self.recorder.close()
            lost = f", {self.recorder.lost} lost" if self.recorder.lost else ""
            print(f"recorded {self.recorder.samples} samples{lost}: {self.recorder.stopped}")
        print(f"{self.log.total} events")


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
    }  # fmt: skip
    for text, good in held.items():
        print(f"{'holds' if good else 'FAILS'}  {text}")
    print(f"       own CPU {last.cpu_s / last.at_s:.1%} of a core, recording and history included; "
          f"the latest sample {max(look.late_ms for look in looks):.1f} ms late")
    return all(held.values())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--queues", type=int, default=64)
    parser.add_argument("--pps", type=int, default=50_000, help="packets per second of the flood; 0: as fast as it goes")
    parser.add_argument("--warm-hz", type=float, default=50, help="samples per second until the history is full")
    parser.add_argument("--no-record", action="store_true")
    arguments = parser.parse_args()
    # two blocks more: the newest one is being filled, and is one more than asked for
    full = most_samples(arguments.queues) + (most_blocks(arguments.queues) + 2) * BLOCK
    with Lab(LabSpec(queues=arguments.queues, qdisc="mq", pps=arguments.pps)) as lab, tempfile.TemporaryDirectory() as folder:
        lab.start_flood()
        record = None if arguments.no_record else Path(folder) / "soak.jsonl.gz"
        with Sampler(lab.sender.device, lab.sender.netns) as sampler:
            run = Soak(sampler, History(), record)
            try:
                print(f"warm-up: {full} samples at {arguments.warm_hz:g} Hz")
                run.run(arguments.warm_hz, lambda look: look.samples >= full)
                print(f"the soak: {arguments.minutes:g} minutes at {HZ} Hz")
                looks = run.run(HZ, lambda look: look.at_s >= arguments.minutes * 60)
            finally:
                run.close()
    return 0 if verdict(looks, most_samples(arguments.queues) / HZ) else 1


if __name__ == "__main__":
    sys.exit(main())
