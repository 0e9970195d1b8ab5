"""Build a veth pair in two namespaces of its own, flood it past a slow consumer, and watch the sender.

Nothing is left when it ends, however it ends. Without root, or on a machine that is not Linux, a recording is played
instead: veth with BQL, with settings changed on the way."""

from __future__ import annotations

import argparse
import os
import sys

from bqltop.arguments import add_output, add_sources, check_output, start_probe
from bqltop.recording.options import add_record
from bqltop.tuning import session

LOAD = (
    ("rules", int, "N", "filter rules the consumer compares each packet with: the more, the slower (default 5000)"),
    ("packet-size", int, "BYTES", "UDP payload of a packet, in bytes (default 1000)"),
    ("burst", int, "N", "packets in a burst (default 0: without pause)"),
    ("pause-ms", float, "MS", "silence between bursts, in milliseconds (default 10)"),
    ("pps", int, "N", "packets per second at most (default 0: as fast as it goes)"),
    ("queues", int, "N", "TX queues (default 1)"),
    ("qdisc", str, "WORDS", "qdisc of the sender, as tc takes it (default pfifo)"),
)
"""Options that set the lab's load: name (of LabSpec, too), type, metavar, help."""


def configure(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the lab")
    for name, kind, metavar, text in LOAD:
        group.add_argument(f"--{name}", type=kind, metavar=metavar, help=text)
    group.add_argument("--no-napi", action="store_true", help="leave veth out of NAPI mode: no ring, no backpressure")
    parser.add_argument("--replay", action="store_true", help="play the recording, also where the lab could be built")
    add_sources(parser)
    add_output(parser)
    add_record(parser)
    session.without_trace(parser)


def run(arguments: argparse.Namespace) -> int:
    check_output(arguments)
    cannot = why_no_lab()
    if arguments.replay or cannot:
        return play(arguments, cannot)
    return build_and_watch(arguments)


def why_no_lab() -> str | None:
    """Why this process cannot build the lab; None when it can try."""
    if not sys.platform.startswith("linux"):
        return "the lab needs Linux"
    return None if os.geteuid() == 0 else "building the lab takes root"


def play(arguments: argparse.Namespace, cannot: str | None) -> int:
    """The recording that the package ships, and what it is."""
    from bqltop.data import DEMO
    from bqltop.recording import Replay
    from bqltop.recording.command import show

    lines = any((arguments.json, arguments.csv, arguments.text))
    with Replay(DEMO, speed=None if lines else 1.0, loop=not lines) as replay:
        about = replay.header["about"]
        said = f"this is a recording, veth with BQL on kernel {about['kernel']} ({about['note']})"
        print(f"bqltop: {cannot}; {said}" if cannot else f"bqltop: {said}", file=sys.stderr)
        return show(replay, arguments)


def build_and_watch(arguments: argparse.Namespace) -> int:
    """The lab, for as long as it is watched."""
    from bqltop import watch
    from bqltop.lab import Lab, LabSpec
    from bqltop.sampler import Sampler

    names = [name.replace("-", "_") for name, *_ in LOAD]
    given = {name: getattr(arguments, name) for name in names if getattr(arguments, name) is not None}
    with Lab(LabSpec(napi_mode=not arguments.no_napi, **given)) as lab:
        for line in lab.description():
            print(line, file=sys.stderr)
        lab.start_flood()
        place, bpf = (lab.sender.device, lab.sender.netns), not arguments.no_bpf
        with Sampler(*place, use_bpf=bpf, sojourn=arguments.sojourn, completions=arguments.completions) as sampler:
            start_probe(sampler, arguments)
            return watch.show(sampler, arguments)
