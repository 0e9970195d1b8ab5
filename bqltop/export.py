"""Keep a device's figures where a monitoring system collects them."""

from __future__ import annotations

import argparse

from bqltop.arguments import add_place, add_sources
from bqltop.output import command
from bqltop.watch import open_source


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("devices", metavar="DEV", nargs=1, help="name or index of the device")
    add_place(parser)
    add_sources(parser)
    command.configure(parser)


def run(arguments: argparse.Namespace) -> int:
    return command.run(arguments, open_source)
