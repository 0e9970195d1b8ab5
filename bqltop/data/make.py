"""Makes the recording that the package ships: ``python -m bqltop.data.make OUT`` as root, on a kernel with BQL in veth.

There is no released one: it is run in the VM lab (docs/vm.md). Speeds in it are those of an emulated machine, and the
recording's header says so; what limit, inflight, ring and requeues do is real.
"""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass

from bqltop.lab import Lab, LabSpec
from bqltop.model import Event
from bqltop.recording import Recorder, options
from bqltop.recording.tee import Recorded
from bqltop.sampler import Sampler

INTERVAL_S = 0.4
NOTE = "made in an emulated machine: what happens is real, speeds are not"
BQL = "/sys/class/net/{device}/queues/tx-0/byte_queue_limits"


@dataclass(frozen=True)
class Scene:
    """A setting and how long to watch what it does. ``command`` is run in the sender's namespace."""

    seconds: float
    text: str = ""
    command: str = ""


SCENES = (
    Scene(10),
    Scene(12, "tx-usecs 50 -> 1000", "ethtool -C {device} tx-usecs 1000"),
    Scene(12, "tx-usecs 1000 -> 0", "ethtool -C {device} tx-usecs 0"),
    Scene(12, "limit_min 0 -> 8 packets", "echo 8 > " + BQL + "/limit_min"),
    Scene(4, "limit_min 8 -> 0 packets (taken back)", "echo 0 > " + BQL + "/limit_min"),
    Scene(10, "tx-usecs 0 -> 10000", "ethtool -C {device} tx-usecs 10000"),
    Scene(10, "limit_max 1879048192 -> 64 packets", "echo 64 > " + BQL + "/limit_max"),
    Scene(8, "limit_max 64 -> 1879048192 packets, tx-usecs 10000 -> 50 (taken back)",
          "echo max > " + BQL + "/limit_max; ethtool -C {device} tx-usecs 50"),
)  # fmt: skip


def play(source: Recorded, lab: Lab) -> None:
    """Go through the scenes, reading the source all the while."""
    device, netns = lab.sender.device, lab.sender.netns
    samples = source.every(INTERVAL_S)
    next(samples)  # attached, which takes seconds under emulation
    for scene in SCENES:
        if scene.command:
            subprocess.run(["ip", "netns", "exec", netns, "sh", "-c", scene.command.format(device=device)], check=True)
            source.event(Event(time.time_ns(), "setting", f"you: {scene.text}"))
        end = time.monotonic() + scene.seconds
        for sample in samples:
            if time.monotonic() >= end:
                queue = sample.queues[0]
                print(f"{scene.text or 'as it was'}: limit {queue.limit} inflight {queue.inflight} ring {queue.ring_used}",
                      file=sys.stderr)
                break


def main(path: str) -> int:
    spec = LabSpec(rules=300, qdisc="fq_codel")
    about = options.about() | {"note": NOTE, "load": "bqltop's lab: UDP flood, 300 filter rules at the receiver, fq_codel"}
    with Lab(spec) as lab, Sampler(lab.sender.device, lab.sender.netns, sojourn=True) as sampler, \
            Recorder(path, about=about) as recorder:
        lab.start_flood()
        play(Recorded(sampler, recorder), lab)
    print(f"{recorder.samples} samples: {recorder.stopped}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
