"""Watch the transmit path of a network device: BQL, the driver's ring, the qdisc and NAPI, live and per TX queue."""

from __future__ import annotations

import argparse
import sys

from bqltop.cli import Fault
from bqltop.source import Source

SLOWEST_S, FASTEST_S = 60.0, 0.02


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("device", metavar="DEV", help="name or index of the device")
    parser.add_argument("--netns", metavar="NAME", help="network namespace it is in (a name, or a path)")
    parser.add_argument("--no-bpf", action="store_true", help="only sysfs and netlink, no eBPF")
    add_output_arguments(parser)


def add_output_arguments(parser: argparse.ArgumentParser) -> None:
    """How samples are shown: on a screen, or line by line for machines and pipes."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--json", action="store_true", help="one JSON object a sample (docs/json.md)")
    group.add_argument("--csv", action="store_true", help="one row a queue and sample")
    group.add_argument("--text", action="store_true", help="one readable line a sample")
    parser.add_argument("--interval", type=seconds, metavar="S", help="seconds between samples (screen 0.1, else 1)")
    parser.add_argument("--count", type=positive, metavar="N", help="stop after N samples")
    parser.add_argument("--once", action="store_true", help="one sample and stop")


def run(arguments: argparse.Namespace) -> int:
    check_output(arguments)
    from bqltop.sampler import Sampler

    with Sampler(arguments.device, arguments.netns, use_bpf=not arguments.no_bpf) as sampler:
        return show(sampler, arguments)


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


def show(source: Source, arguments: argparse.Namespace) -> int:
    """Samples to the screen or to standard output; the exit status."""
    format = headless(arguments)
    if format:
        from bqltop import output

        return output.run(
            format, source, count=arguments.count, interval=arguments.interval or 1.0, once=arguments.once
        )
    from bqltop.tui.app import BqltopApp, run as run_app

    source.interval = arguments.interval or 0.1
    return run_app(BqltopApp(source))


def seconds(text: str) -> float:
    """An interval in seconds; argparse shows the error."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not FASTEST_S <= value <= SLOWEST_S:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from {FASTEST_S} to {SLOWEST_S:g}")
    return value


def positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of 1 or more")
    return int(text)
