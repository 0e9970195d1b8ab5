"""Try settings one after the other under the traffic that is there, and say which is best.

bqltop sweep DEV tx-usecs=0,50,100 [limit_min=0,8]   every combination, --runs times, in random order; what was
set before is put back at the end, and after an interrupt, a crash or a vanished device (docs/sweep.md).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import sys
from collections.abc import Iterator

from bqltop import format as fmt
from bqltop.arguments import add_place, number, place
from bqltop.cli import Fault
from bqltop.format import printable
from bqltop.kernel.netns import Namespace, NetnsError
from bqltop.sweep import plan as plans
from bqltop.sweep import report, saved
from bqltop.sweep.guard import parse_bound
from bqltop.sweep.keys import stop_key
from bqltop.sweep.result import summarise
from bqltop.sweep.runner import INTERVAL_S, Progress, Sweeper
from bqltop.tuning import session

STOPPED = 1
"""Exit status: the sweep did not come to its end, or something could not be put back."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("words", metavar="DEV KNOB=VALUE,...", nargs="*", help="the device, and what to try")
    add_place(parser)
    parser.add_argument("--runs", type=_count, default=3, metavar="N", help="trials of each setting (default 3)")
    parser.add_argument("--seconds", type=_seconds, default=5.0, metavar="S", help="seconds a trial takes (default 5)")
    parser.add_argument("--warm-up", type=_seconds, default=1.0, metavar="S",
                        help="seconds after each change that are left out (default 1)")
    parser.add_argument("--probe", metavar="ADDRESS", help='also ping this address; "peer": a veth\'s other end')
    parser.add_argument("--abort-if", action="append", default=[], metavar="WHAT>VALUE",
                        help="stop and put everything back when drops>1%%, loss>5%%, rtt>50ms, ... (repeatable)")  # fmt: skip
    parser.add_argument("--load", action="store_true", help="not on DEV, but on a flooded veth pair made for it (bqltop demo)")
    parser.add_argument("--rules", type=int, default=5000, metavar="N",
                        help="with --load: filter rules at its slow consumer (default 5000)")
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--json", action="store_true", help="the result as one JSON object")
    group.add_argument("--csv", action="store_true", help="the result as CSV, one line a setting")
    parser.add_argument("--save", metavar="FILE", help="keep the sweep in this file, trial by trial")
    parser.add_argument("--resume", metavar="FILE", help="go on with a stopped sweep")
    session.add_caution(parser)


def run(arguments: argparse.Namespace) -> int:
    """0 done, 1 stopped or not put back, 2 wrong input (raised as Fault)."""
    try:
        with _lab(arguments) as lab:
            wanted, where = _wanted(arguments, lab)
            return _sweep(arguments, wanted, where)
    except plans.BadPlan as error:
        raise Fault(printable(str(error))) from None


@contextlib.contextmanager
def _lab(arguments: argparse.Namespace) -> Iterator:
    """The lab's own load, if it was asked for."""
    if not arguments.load:
        yield None
        return
    from bqltop.lab import Lab, LabSpec

    arguments.no_journal = True  # what is changed goes away with the pair
    with Lab(LabSpec(rules=arguments.rules)) as lab:
        lab.start_flood()
        yield lab


def _wanted(arguments: argparse.Namespace, lab) -> tuple[saved.Saved, Namespace]:
    """What to sweep and where it is, from the arguments or from the file of a stopped sweep. Raises Fault, BadPlan."""
    from bqltop.kernel import netns

    words = arguments.words
    if arguments.resume is not None:
        if words or arguments.load:
            raise Fault("--resume has everything in its file: name no device, no settings and no --load")
        found = saved.load(arguments.resume)
        return found, netns.resolve(found.netns) if found.netns else netns.current()
    devices = [word for word in words if "=" not in word]
    if len(devices) != (0 if lab else 1):
        raise Fault("--load makes its own device: name none" if lab else "name one device, and KNOB=VALUE,VALUE,...")
    grid = plans.parse_grid([word for word in words if "=" in word])
    if not grid:
        raise Fault("name what to try: KNOB=VALUE,VALUE,... (bqltop tune DEV lists the knobs)")
    plan = plans.Plan(plans.settings(grid), arguments.runs, arguments.seconds, arguments.warm_up, random.randrange(1 << 30))
    where = netns.resolve(lab.sender.netns) if lab else place(arguments)
    device, probe = (lab.sender.device, arguments.probe or "peer") if lab else (devices[0], arguments.probe)
    for bound in arguments.abort_if:
        parse_bound(bound)
    return saved.Saved(device, where.name, plan, bounds=tuple(arguments.abort_if), probe=probe), where


def _sweep(arguments: argparse.Namespace, wanted: saved.Saved, where: Namespace) -> int:
    from bqltop.sampler import Sampler
    from bqltop.tuning.tuner import Tuner, guarded

    try:
        tuner = Tuner(wanted.device, where, session.journal(arguments), read_only=arguments.read_only)
    except OSError as error:
        raise Fault(printable(error.strerror or str(error))) from None
    path = arguments.save if arguments.resume is None else arguments.resume
    with tuner, Sampler(wanted.device, where, sojourn=True) as sampler, guarded(tuner, lambda: "revert"):
        _check(tuner, wanted.plan)
        _prober(sampler, wanted)
        with stop_key() as stop:
            sweeper = Sweeper(
                wanted.plan, tuner, sampler.every(INTERVAL_S), prober=sampler.prober,
                bounds=[parse_bound(text) for text in wanted.bounds], done=wanted.trials, stop=stop, notify=_say,
                finished=lambda _trial: _keep(path, wanted, sweeper),
            )  # fmt: skip
            _keep(path, wanted, sweeper)
            stopped = sweeper.run()
    _end_of_progress()
    if stopped:
        hint = f"; go on with: bqltop sweep --resume {path}" if path and not arguments.load else ""
        print(f"bqltop: stopped: {printable(stopped)}{hint}", file=sys.stderr)
    for sentence in sweeper.left:
        print(f"bqltop: not put back: {printable(sentence)}", file=sys.stderr)
    _show(arguments, wanted, sweeper, stopped)
    return STOPPED if stopped or sweeper.left else 0


def _check(tuner, plan: plans.Plan) -> None:
    """Refuse what cannot be meant before anything is touched. Raises Fault."""
    from bqltop.tuning.knobs import BadValue

    for setting in plan.settings:
        try:
            found = tuner.plan(dict(setting))
        except BadValue as error:
            raise Fault(printable(str(error))) from None
        for one in found:
            if one.refused:
                raise Fault(printable(f"{one.subject}: {one.refused}"))


def _prober(sampler, wanted: saved.Saved) -> None:
    """Begin the probe; it is closed with the sampler. Raises Fault."""
    from bqltop.probe import ProbeError, Prober, resolve_address

    if wanted.probe is not None:
        try:
            address = resolve_address(wanted.probe, sampler.namespace, wanted.device)
            sampler.prober = Prober(sampler.namespace, wanted.device, address, interval_s=0.1).start()
        except (ProbeError, NetnsError) as error:
            raise Fault(printable(str(error))) from None


def _keep(path: str | None, wanted: saved.Saved, sweeper: Sweeper) -> None:
    if path is not None:
        try:
            saved.save(path, saved.Saved(wanted.device, wanted.netns, wanted.plan, tuple(sweeper.trials), wanted.bounds,
                                         wanted.probe))  # fmt: skip
        except OSError as error:
            raise Fault(f"{path}: {error.strerror}") from None


def _say(progress: Progress) -> None:
    """One line on standard error: rewritten in place on a terminal."""
    width = 20
    filled = width * progress.done // progress.total
    bar = "#" * filled + "." * (width - filled)
    text = f"[{bar}] {progress.done + 1}/{progress.total} run {progress.run}, {plans.label(progress.setting)}, " \
           f"{fmt.seconds(progress.left_s)} left"  # fmt: skip
    if sys.stderr.isatty():
        print(f"\r\x1b[K{printable(text)}  (any key stops)", end="", file=sys.stderr, flush=True)
    else:
        print(printable(text), file=sys.stderr, flush=True)


def _end_of_progress() -> None:
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _show(arguments: argparse.Namespace, wanted: saved.Saved, sweeper: Sweeper, stopped: str | None) -> None:
    result = summarise(wanted.plan.settings, sweeper.trials)
    if arguments.json:
        print(json.dumps(report.to_json(result, wanted.plan, sweeper.trials, wanted.device, stopped)))
    elif arguments.csv:
        print(report.to_csv(result), end="")
    elif any(row.runs for row in result.rows):
        print(report.markdown(result, wanted.plan, wanted.device))


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or not 1 <= int(text) <= 100:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 100")
    return int(text)


def _seconds(text: str) -> float:
    if 0.2 <= number(text) <= 3600:
        return number(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 0.2 to 3600")
