"""Arguments that several commands share: where the device is, how samples are shown."""

from __future__ import annotations

import argparse
import math
import sys
from typing import TYPE_CHECKING

from bqltop.fault import Fault
from bqltop.model import Namespace
from bqltop.source import Source

if TYPE_CHECKING:
    from bqltop.sampler import Sampler

SLOWEST_S, FASTEST_S = 60.0, 0.02
SCREEN_INTERVAL_S, LINE_INTERVAL_S = 0.1, 1.0


def add_place(parser: argparse.ArgumentParser) -> None:
    """Which namespace the device is in."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--netns", metavar="NAME", help="network namespace the device is in: a name, or a path")
    group.add_argument("--pid", type=positive, metavar="PID", help="the namespace of this process")
    group.add_argument("--container", metavar="NAME", help="the namespace of this container (name or id)")


def place(arguments: argparse.Namespace) -> Namespace:
    """The namespace that was named; ours when none was. Raises NetnsError, ContainerError."""
    from bqltop.discovery.find import namespace_for

    return namespace_for(arguments.netns, arguments.pid, arguments.container)


def add_sources(parser: argparse.ArgumentParser) -> None:
    """What may be used to look at the device."""
    parser.add_argument("--no-bpf", action="store_true", help="only sysfs and netlink, no eBPF")
    parser.add_argument("--sojourn", action="store_true", help="time sampled packets in the qdisc and in the ring")
    parser.add_argument("--completions", action="store_true",
                        help="see each BQL completion by itself, by a hardware breakpoint (an exception each)")
    parser.add_argument("--probe", metavar="ADDRESS", help='ping this address through the device; "peer": a veth\'s other end')


def start_probe(sampler: Sampler, arguments: argparse.Namespace) -> Sampler:
    """Begin the probe that was asked for; its figures are in the samples. Raises Fault."""
    if arguments.probe is not None:
        from bqltop.probe import ProbeError, Prober, resolve_address

        try:
            address = resolve_address(arguments.probe, sampler.namespace, sampler.device.name)
            sampler.prober = Prober(sampler.namespace, sampler.device.name, address).start()
        except ProbeError as error:
            sampler.release()
            raise Fault(str(error)) from None
    return sampler


def add_output(parser: argparse.ArgumentParser) -> None:
    """How samples are shown: on a screen, or line by line for machines and pipes."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--json", action="store_true", help="one JSON object a sample (docs/json.md)")
    group.add_argument("--csv", action="store_true", help="one row a queue and sample")
    group.add_argument("--text", action="store_true", help="one readable line a sample")
    parser.add_argument("--interval", type=seconds, metavar="S", help="seconds between samples (screen 0.1, else 1)")
    parser.add_argument("--count", type=positive, metavar="N", help="stop after N samples")
    parser.add_argument("--once", action="store_true", help="one sample and stop")


def check_output(arguments: argparse.Namespace) -> None:
    """Refuse what cannot work before anything is opened. Raises Fault."""
    if headless(arguments):
        return
    if arguments.count or arguments.once:
        raise Fault("--count and --once go with --json, --csv or --text")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Fault("no terminal to draw on: use --text or --json (with --once for a single look)")


def headless(arguments: argparse.Namespace) -> str | None:
    """The output format without a screen, or None."""
    return next((name for name in ("json", "csv", "text") if getattr(arguments, name)), None)


def write_lines(source: Source, arguments: argparse.Namespace) -> int:
    """Samples to standard output; the exit status."""
    from bqltop import output

    return output.run(
        headless(arguments),
        source,
        count=arguments.count,
        interval=arguments.interval or LINE_INTERVAL_S,
        once=arguments.once,
    )


def seconds(text: str) -> float:
    """An interval in seconds; argparse shows the error."""
    if not FASTEST_S <= number(text) <= SLOWEST_S:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from {FASTEST_S} to {SLOWEST_S:g}")
    return number(text)


def number(text: str) -> float:
    """A number in plain digits (float() also takes those of other scripts, and 1_000); not a number for all else."""
    try:
        return float(text) if text.isascii() and "_" not in text else math.nan
    except ValueError:
        return math.nan


def positive(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of 1 or more")
    return int(text)
