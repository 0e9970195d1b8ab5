"""Build a veth pair in two namespaces of its own, flood it past a slow consumer, and watch the sender.

Nothing is left when it ends, however it ends."""

from __future__ import annotations

import argparse
import sys

from bqltop import watch
from bqltop.arguments import add_output, add_sources, check_output, start_probe
from bqltop.recording.options import add_record
from bqltop.tuning import session

LOAD = (
    ("rules", int, "N", "filter rules the consumer compares each packet with: the more, the slower"),
    ("packet-size", int, "BYTES", "UDP payload of a packet"),
    ("burst", int, "N", "packets in a burst (0: without pause)"),
    ("pause-ms", float, "MS", "silence between bursts"),
    ("pps", int, "N", "packets per second at most (0: as fast as it goes)"),
    ("queues", int, "N", "TX queues"),
    ("qdisc", str, "WORDS", "qdisc of the sender, as tc takes it"),
)
"""Options that set the lab's load: name (of LabSpec, too), type, metavar, help."""


def configure(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the lab")
    for name, kind, metavar, text in LOAD:
        group.add_argument(f"--{name}", type=kind, metavar=metavar, help=text)
    group.add_argument("--no-napi", action="store_true", help="leave veth out of NAPI mode: no ring, no backpressure")
    add_sources(parser)
    add_output(parser)
    add_record(parser)
    session.without_trace(parser)


def run(arguments: argparse.Namespace) -> int:
    check_output(arguments)
    from bqltop.lab import Lab, LabSpec
    from bqltop.sampler import Sampler

    names = [name.replace("-", "_") for name, *_ in LOAD]
    given = {name: getattr(arguments, name) for name in names if getattr(arguments, name) is not None}
    with Lab(LabSpec(napi_mode=not arguments.no_napi, **given)) as lab:
        for line in lab.description():
            print(line, file=sys.stderr)
        lab.start_flood()
        place, bpf = (lab.sender.device, lab.sender.netns), not arguments.no_bpf
        with Sampler(*place, use_bpf=bpf, sojourn=arguments.sojourn) as sampler:
            start_probe(sampler, arguments)
            return watch.show(sampler, arguments)
