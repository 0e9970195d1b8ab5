"""Watch the transmit path of a network device: BQL, the driver's ring, the qdisc and NAPI, live and per TX queue."""

from __future__ import annotations

import argparse

from bqltop.arguments import (
    SCREEN_INTERVAL_S,
    add_output,
    add_place,
    add_sources,
    check_output,
    headless,
    place,
    write_lines,
)
from bqltop.cli import Fault
from bqltop.presence import NoSuchDevice
from bqltop.sampler import Sampler


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("device", metavar="DEV", help="name or index of the device")
    add_place(parser)
    add_sources(parser)
    add_output(parser)


def run(arguments: argparse.Namespace) -> int:
    check_output(arguments)
    with open_sampler(arguments) as sampler:
        return show(sampler, arguments)


def open_sampler(arguments: argparse.Namespace) -> Sampler:
    """The live source that the arguments name. Raises Fault, saying where the device is when it is elsewhere."""
    try:
        return Sampler(arguments.device, place(arguments), use_bpf=not arguments.no_bpf)
    except NoSuchDevice as error:
        from bqltop.discovery.find import hint

        elsewhere = hint(arguments.device)
        raise Fault(f"{error}; {elsewhere}" if elsewhere else str(error)) from None


def show(sampler: Sampler, arguments: argparse.Namespace) -> int:
    """Samples to the screen or to standard output; the exit status."""
    if headless(arguments):
        return write_lines(sampler, arguments)
    from bqltop.tui.app import BqltopApp, run as run_app

    sampler.interval = arguments.interval or SCREEN_INTERVAL_S
    return run_app(BqltopApp(sampler))
