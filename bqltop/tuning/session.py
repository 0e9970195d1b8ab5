"""What the commands that tune share: their arguments, and the tuner of the device whose samples are shown."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from bqltop.model import Namespace, Sample

if TYPE_CHECKING:
    from bqltop.tuning.journal import Journal, NoJournal
    from bqltop.tuning.tuner import Tuner

Maker = Callable[[Sample], "Tuner"]
"""Makes the tuner of the device a sample is of. Raises OSError, NetnsError when it cannot be tuned."""


def add_caution(parser: argparse.ArgumentParser) -> None:
    """May settings be changed, and is it written down?"""
    parser.add_argument("--read-only", action="store_true", help="refuse to change anything")
    parser.add_argument("--no-journal", action="store_true", help="leave no trace of a change, and no way to restore it")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Tuning from the screen."""
    add_caution(parser)
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--keep", dest="policy", action="store_const", const="keep",
                       help="on leaving keep what was tuned, without asking")  # fmt: skip
    group.add_argument("--revert-on-exit", dest="policy", action="store_const", const="revert",
                       help="on leaving, however it happens, take back what was tuned")  # fmt: skip


def without_trace(parser: argparse.ArgumentParser) -> None:
    """For a device of our own that goes away with us: nothing to write down, nothing to ask on leaving."""
    parser.set_defaults(read_only=False, no_journal=True, policy="keep")


def journal(arguments: argparse.Namespace) -> Journal | NoJournal:
    """Where changes are written down. Imported when needed: every command defines these arguments."""
    from bqltop.tuning.journal import Journal, NoJournal

    return NoJournal() if arguments.no_journal else Journal()


def maker(arguments: argparse.Namespace, where: Callable[[Sample], Namespace]) -> Maker:
    """``where(sample)`` is the namespace of the sample's device."""
    from bqltop.tuning.tuner import Tuner

    book = journal(arguments)
    return lambda sample: Tuner(sample.device.name, where(sample), book, read_only=arguments.read_only)
