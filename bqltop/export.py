"""Keep a device's figures where a monitoring system collects them."""

from __future__ import annotations

import argparse

from bqltop.arguments import add_place, add_sources, place
from bqltop.output import command
from bqltop.watch import open_sampler


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("device", metavar="DEV", help="name or index of the device")
    add_place(parser)
    add_sources(parser)
    command.configure(parser)


def run(arguments: argparse.Namespace) -> int:
    return command.run(arguments, lambda given: open_sampler(given.device, place(given), given))
