"""Take back what runs of bqltop that were killed left changed.

Only what still is as they left it, on the same device (not another one of its name), since the machine was started.
"""

from __future__ import annotations

import argparse

from bqltop.fault import Fault
from bqltop.format import printable
from bqltop.kernel import netns
from bqltop.tuning.command import REFUSED
from bqltop.tuning.journal import Journal, Leftover
from bqltop.tuning.recover import describe, restore


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("device", metavar="DEV", nargs="?", help="only of this device (default: of all)")
    parser.add_argument("--netns", metavar="NAME", help="only in this network namespace")
    parser.add_argument("--list", action="store_true", help="only say what would be restored")
    parser.add_argument("--forget", action="store_true", help="leave it as it is and do not offer it again")
    parser.add_argument("--force", action="store_true", help="also what somebody else has set since")
    parser.add_argument("--kept", action="store_true", help="also what was kept on purpose, back to before the first change")


def run(arguments: argparse.Namespace) -> int:
    """0 nothing is left, 1 something could not be restored, 2 wrong input (raised as Fault)."""
    journal = Journal()
    lefts = _chosen(journal, arguments)
    if not lefts:
        print(f"nothing to restore{f' on {printable(arguments.device)}' if arguments.device else ''}")
        return 0
    if arguments.list:
        for left in lefts:
            print(printable(describe(left)))
        return 0
    if arguments.forget:
        complaint = journal.settle([entry.id for left in lefts for entry in left.entries], "kept")
        if complaint:
            raise Fault(complaint)
        return 0
    done = restore(lefts, journal, force=arguments.force)
    for one in done:
        print(printable(one.text))
    return 0 if all(one.ok for one in done) else REFUSED


def _chosen(journal: Journal, arguments: argparse.Namespace) -> list[Leftover]:
    try:
        journal.entries()
    except OSError as error:
        raise Fault(f"the journal {journal.path} cannot be read: {error.strerror}") from None
    lefts = journal.left_behind(kept=arguments.kept)
    if arguments.netns is not None:
        inode = netns.resolve(arguments.netns).inode
        lefts = [left for left in lefts if left.first.identity.netns_inode == inode]
    if arguments.device is not None:
        lefts = [left for left in lefts if any(arguments.device in (e.device, e.via) for e in left.entries)]
    return lefts
