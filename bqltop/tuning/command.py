"""List and turn the knobs of a device: BQL limits, coalescing, rings, channels, offloads, NAPI, the qdisc.

Without an assignment every knob is listed with its value, unit and bounds. With KNOB=VALUE it is set, after the
same checks as on the screen, noted in the journal first and read back afterwards.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import select
import shutil
import sys
import time
from collections.abc import Iterator

from bqltop.arguments import add_place, number, place
from bqltop.fault import Fault
from bqltop.format import printable
from bqltop.tuning import session
from bqltop.tuning.changes import Change, Plan
from bqltop.tuning.knobs import BadValue, Setting
from bqltop.tuning.recover import describe
from bqltop.tuning.tuner import Tuner, guarded

REFUSED = 1
"""Exit status: the kernel, the journal or --read-only refused a change."""
LONGEST_TRIAL_S = 3600.0


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("device", metavar="DEV", help="name or index of the device")
    parser.add_argument("assignments", metavar="KNOB=VALUE", nargs="*", help="what to set; none lists all knobs")
    add_place(parser)
    parser.add_argument("--queue", type=_whole, metavar="N", help="BQL knobs of this TX queue only (default: of all)")
    parser.add_argument("--trial", type=_trial, metavar="S",
                        help="take everything back after so many seconds, unless Enter keeps it")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be done, as shell commands")
    parser.add_argument("--json", action="store_true", help="one JSON object (docs/tuning.md)")
    session.add_caution(parser)


def run(arguments: argparse.Namespace) -> int:
    """0 fine, 1 a change was refused, 2 wrong input (raised as Fault)."""
    assignments = parse_assignments(arguments.assignments)
    with open_tuner(arguments) as tuner:
        _tell_history(tuner)
        if not assignments:
            return _list(tuner, arguments)
        plans = tuner.plan(assignments, arguments.queue)
        if arguments.dry_run:
            return _say_plans(plans, arguments.json)
        return _change(tuner, plans, arguments)


def parse_assignments(words: list[str]) -> dict[str, str]:
    """``["limit_min=8"]`` -> ``{"limit_min": "8"}``. Raises Fault."""
    found: dict[str, str] = {}
    for word in words:
        knob, equals, value = word.partition("=")
        if not (knob and equals and value.strip()):
            raise Fault(f"{word!r} is not KNOB=VALUE")
        if knob in found:
            raise Fault(f"{knob} is set twice")
        found[knob] = value
    return found


@contextlib.contextmanager
def open_tuner(arguments: argparse.Namespace) -> Iterator[Tuner]:
    """The tuner the arguments mean. Raises Fault in one line for everything that is wrong with them."""
    try:
        journal = session.journal(arguments)
        tuner = Tuner(arguments.device, place(arguments), journal, read_only=arguments.read_only)
    except OSError as error:
        raise Fault(printable(error.strerror or str(error))) from None
    with tuner:
        try:
            yield tuner
        except BadValue as error:
            raise Fault(printable(str(error))) from None
        except OSError as error:
            raise Fault(printable(error.strerror or str(error))) from None


def _tell_history(tuner: Tuner) -> None:
    """What somebody who is about to tune should know, on standard error."""
    for left in tuner.left_behind():
        _tell(f"an earlier run left {describe(left)}; `bqltop restore` takes it back")
    others = {entry.pid for entry in tuner.others()}
    if others:
        _tell(f"another bqltop (process {', '.join(map(str, sorted(others)))}) has changed settings of this device")


def _tell(text: str) -> None:
    print(f"bqltop: {printable(text)}", file=sys.stderr)


# listing


def _list(tuner: Tuner, arguments: argparse.Namespace) -> int:
    settings = tuner.knobs(arguments.queue)
    if arguments.json:
        print(json.dumps({"device": tuner.device, "netns": tuner.ns.name, "knobs": [*map(setting_json, settings)]}))
    else:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        print("\n".join(line[:width] for line in table(settings)))
    return 0


def setting_json(setting: Setting) -> dict:
    """One knob for machines: numbers, 0 and 1 for switches, null for what is not to be had."""
    knob = setting.knob
    number = knob.kind.value != "text"
    return {
        "id": knob.id, "device": setting.device, "netns": setting.netns, "value": setting.value,
        "queues": [{"index": q, "value": v} for q, v in zip(setting.queues, setting.values, strict=False)]
        if knob.per_queue else None,
        "kind": knob.kind.value, "unit": setting.unit or None, "low": setting.low if number else None,
        "high": setting.high if number else None, "zero_too": knob.zero_too, "settable": setting.why_not is None,
        "why_not": setting.why_not, "cuts_traffic": knob.cuts, "help": knob.help,
    }  # fmt: skip


def table(settings: list[Setting]) -> list[str]:
    """Aligned lines: knobs with a value, then those this device does not have, by the reason."""
    rows = [("KNOB", "VALUE", "UNIT", "TAKES", "")]
    absent: dict[str, list[str]] = {}
    for setting in settings:
        if setting.values:
            why = f"not settable: {setting.why_not}" if setting.why_not else setting.knob.help
            rows.append((setting.knob.id, setting.text, setting.unit, setting.bounds, why))
        else:
            absent.setdefault(setting.why_not or "no value", []).append(setting.knob.id)
    widths = [max(len(printable(row[i])) for row in rows) for i in range(4)]
    lines = ["  ".join(printable(cell).ljust(width) for cell, width in zip(row, [*widths, 0], strict=True)).rstrip()
             for row in rows]  # fmt: skip
    return lines + [f"not here: {', '.join(ids)}: {printable(why)}" for why, ids in absent.items()]


# changing


def _say_plans(plans: list[Plan], as_json: bool) -> int:
    if as_json:
        print(json.dumps({"plans": [*map(plan_json, plans)]}))
        return 0
    for plan in plans:
        for warning in _warnings(plan):
            _tell(warning)
        print(printable(plan.command))
    return 0


def _change(tuner: Tuner, plans: list[Plan], arguments: argparse.Namespace) -> int:
    """Apply plan by plan; the first refusal ends it, what was set before stays and is said."""
    changes: list[Change] = []
    with guarded(tuner, lambda: "keep"):
        for plan in plans:
            for warning in _warnings(plan):
                _tell(warning)
            change = tuner.apply(plan, arguments.trial)
            changes.append(change)
            if not arguments.json:
                _say(change)
            if change.refused:
                break
        missed = plans[len(changes) :]
        if arguments.json:
            print(json.dumps({"device": tuner.own.last_name, "netns": tuner.ns.name,
                              "changes": [*map(change_json, changes)],
                              "not_tried": [plan.knob.id for plan in missed]}))  # fmt: skip
        elif missed:
            _tell(f"not tried: {', '.join(plan.knob.id for plan in missed)}")
        back = _wait_for_trial(tuner, arguments.trial) if arguments.trial and tuner.changes else []
    refused = any(change.refused for change in [*changes, *back])
    return REFUSED if refused else 0


def _wait_for_trial(tuner: Tuner, seconds: float) -> list[Change]:
    """Let the trial run; Enter (on a terminal) keeps it, the end of the time or Ctrl-C takes it back."""
    asked = sys.stdin.isatty()
    _tell(f"on trial for {seconds:g} s" + (": Enter keeps it, Ctrl-C takes it back now" if asked else ""))
    end = time.monotonic() + seconds
    with contextlib.suppress(KeyboardInterrupt):
        while (left := end - time.monotonic()) > 0:
            if not asked:
                time.sleep(min(left, 0.2))
            elif select.select([sys.stdin], [], [], min(left, 0.2))[0] and sys.stdin.readline():
                for change in list(tuner.changes):
                    tuner.keep(change)
                return []
    back = tuner.leave()
    for change in back:
        _say(change)
    return back


def _say(change: Change) -> None:
    print(printable(f"bqltop: {change.sentence}" if change.refused else change.sentence),
          file=sys.stderr if change.refused else sys.stdout, flush=True)  # fmt: skip


def _warnings(plan: Plan) -> list[str]:
    cuts = [f"{plan.knob.id} can cut traffic: {plan.cuts_traffic}"] if plan.cuts_traffic else []
    return [*plan.warnings, *cuts]


def plan_json(plan: Plan) -> dict:
    """What would be done, for machines."""
    return {
        "knob": plan.knob.id, "device": plan.device, "netns": plan.netns,
        "queues": [*plan.queues] if plan.knob.per_queue else None, "old": [*plan.old], "asked": plan.asked,
        "command": plan.command, "warnings": [*plan.warnings], "cuts_traffic": plan.cuts_traffic,
        "refused": plan.refused,
    }  # fmt: skip


def change_json(change: Change) -> dict:
    """What was done, for machines. ``old`` and ``kept`` have one value per queue, one in all for other knobs."""
    return plan_json(change.plan) | {
        "old": [reading.value for reading in change.old] or [*change.plan.old], "kept": [*change.kept],
        "refused": change.text, "errno": change.errno, "pending": change.pending, "note": change.note,
    }  # fmt: skip


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a queue number")
    return int(text)


def _trial(text: str) -> float:
    if 0 < number(text) <= LONGEST_TRIAL_S:
        return number(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds up to {LONGEST_TRIAL_S:g}")
