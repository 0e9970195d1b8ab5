"""bqltop at work in the guest: the Sampler for figures, the command line for its JSON."""

import json
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import contextmanager

from bqltop.histogram import log_linear_bounds
from bqltop.model import Probe, Sample
from bqltop.sampler import Sampler


@contextmanager
def attached(device: str, netns: str | None = None, use_bpf: bool = True):
    """A Sampler that is attached already: compiling takes seconds under emulation, and a flood would double them."""
    with Sampler(device, netns, use_bpf=use_bpf) as sampler:
        sampler.sample()
        yield sampler


def look(sampler: Sampler, seconds: float, interval: float = 0.1) -> list[Sample]:
    """Samples over so many seconds."""
    deadline = time.monotonic() + seconds
    samples = []
    for sample in sampler.every(interval):
        samples.append(sample)
        if time.monotonic() > deadline:
            return samples
    raise AssertionError("the sampler ended by itself")


def bqltop(*arguments: str, status: int = 0) -> str:
    """Standard output of the bqltop command."""
    result = subprocess.run([sys.executable, "-m", "bqltop", *arguments], capture_output=True, text=True, timeout=240)
    assert result.returncode == status, result.stderr
    assert not result.stderr, "bqltop complained"
    return result.stdout


def json_samples(device: str, *arguments: str, netns: str | None = None) -> list[dict]:
    """What `bqltop DEV --json ...` prints, object by object."""
    words = ["--netns", netns] if netns else []
    return [json.loads(line) for line in bqltop(device, *words, "--json", *arguments).splitlines()]


def probe(sample: Sample, name: str) -> Probe:
    """One probe of a sample by its name."""
    return next(probe for probe in sample.probes if probe.name == name)


def needs_ebpf(sample: Sample) -> None:
    """Fail with bqltop's own reason when the engine is not in force: on the kernels of the matrix it has to be."""
    assert probe(sample, "snapshot").in_force, probe(sample, "snapshot").why


def largest(histogram: Iterable[int]) -> int:
    """The smallest value that the highest cell in use may stand for."""
    return max((log_linear_bounds(cell)[0] for cell, count in enumerate(histogram) if count), default=0)
