"""List what bqltop has changed on this machine: when, who, what, and what has become of it."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from bqltop.fault import Fault
from bqltop.format import printable
from bqltop.tuning.access import boot_id
from bqltop.tuning.changes import subject
from bqltop.tuning.journal import OUTSTANDING, Entry, Journal, alive
from bqltop.tuning.recover import knob_of


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("device", metavar="DEV", nargs="?", help="only of this device")
    parser.add_argument("--json", action="store_true", help="one JSON object a change (docs/tuning.md)")


def run(arguments: argparse.Namespace) -> int:
    """0, or 2 when the journal cannot be read (raised as Fault)."""
    journal = Journal()
    try:
        found = journal.entries()
        entries = [e for e in found if arguments.device in (None, e.device, e.via)]
    except OSError as error:
        raise Fault(f"the journal {journal.path} cannot be read: {error.strerror}") from None
    if arguments.json:
        for entry in entries:
            print(json.dumps(entry_json(entry)))
    elif entries:
        print("\n".join(lines(entries)))
    else:
        print(f"{printable(journal.path)} {_nothing(journal, arguments.device if found else None)}")
    return 0


def _nothing(journal: Journal, device: str | None) -> str:
    """Why nothing is listed; ``device``: the one asked for, where there are changes of others."""
    if device is not None:
        return f"has no change of {printable(device)}"
    return "has no line that can be read as a change" if journal.size() else "is empty"


def entry_json(entry: Entry) -> dict:
    """One change for machines."""
    found = asdict(entry)
    return found | {"netns": found.pop("ns"), "old": entry.old.value, "raw": entry.old.raw}


def lines(entries: list[Entry]) -> list[str]:
    """One aligned line a change, oldest first."""
    rows = [("TIME", "USER", "DEVICE", "NETNS", "CHANGE", "STATE")]
    for entry in entries:
        rows.append((entry.at[:19], entry.user, entry.device, entry.ns.name or "-", _change(entry), _state(entry)))
    widths = [max(len(printable(row[i])) for row in rows) for i in range(5)] + [0]
    return ["  ".join(printable(cell).ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _change(entry: Entry) -> str:
    knob = knob_of(entry)
    new = entry.asked if entry.kept is None else entry.kept
    verb = "back to" if entry.undoes else "->"
    return f"{subject(entry.knob, (entry.queue,))}: {knob.show(entry.old.value)} {verb} {knob.show(new)}"


def _state(entry: Entry) -> str:
    if entry.state == "refused":
        return f"refused: {entry.text}"
    if entry.undoes and entry.state == "done":
        return "done"
    if entry.state not in OUTSTANDING:
        return entry.state
    if entry.identity.boot != boot_id():
        return "until the machine was restarted"
    held = "in force" if alive(entry.pid, entry.started) else "left behind"
    return f"{held}, outcome unknown" if entry.state == "intended" else held
