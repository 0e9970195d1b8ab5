"""A sweep in a file, after every trial: what a stopped one keeps, and where a resumed one goes on."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

from bqltop.files import must_be_ordinary, renew
from bqltop.sweep.figures import Measured
from bqltop.sweep.plan import BadPlan, Plan, Setting
from bqltop.sweep.result import Trial

VERSION = 1


@dataclasses.dataclass(frozen=True, slots=True)
class Saved:
    """``netns`` is the name of the device's namespace, None for our own. ``bounds``, ``probe`` as on the command line."""

    device: str
    netns: str | None
    plan: Plan
    trials: tuple[Trial, ...] = ()
    bounds: tuple[str, ...] = ()
    probe: str | None = None


def save(path: str | Path, saved: Saved) -> None:
    """Write it so that a crash leaves the old file or the new one. Raises OSError."""
    renew(Path(path), json.dumps({"bqltop-sweep": VERSION, **dataclasses.asdict(saved)}).encode())


def load(path: str | Path) -> Saved:
    """Read it. Raises BadPlan in one line for anything that is not a saved sweep."""
    try:
        must_be_ordinary(Path(path))
        plain = json.loads(Path(path).read_text())
        if plain.pop("bqltop-sweep") != VERSION:
            raise BadPlan(f"{path} was written by another version of bqltop")
        return _saved(plain)
    except OSError as error:
        raise BadPlan(f"{path}: {error.strerror}") from None
    except BadPlan:
        raise
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        raise BadPlan(f"{path} is not a saved sweep") from None


def _saved(plain: dict) -> Saved:
    plan = plain["plan"]
    chosen = tuple(_setting(one) for one in plan["settings"])
    made = Plan(chosen, int(plan["runs"]), float(plan["seconds"]), float(plan["warm_up"]), int(plan["seed"]))
    trials = tuple(_trial(one) for one in plain["trials"])
    netns = plain["netns"]
    return Saved(str(plain["device"]), None if netns is None else str(netns), made, trials,
                 tuple(map(str, plain["bounds"])), plain["probe"])  # fmt: skip


def _setting(plain: Sequence) -> Setting:
    return tuple((str(knob), str(value)) for knob, value in plain)


def _trial(plain: dict) -> Trial:
    found = plain["measured"]
    measured = None
    if found is not None:
        figures = {str(id): None if value is None else float(value) for id, value in found["figures"].items()}
        scatter = {str(id): tuple(map(float, values)) for id, values in found["scatter"].items()}
        measured = Measured(figures, scatter)
    return Trial(_setting(plain["setting"]), int(plain["run"]), measured, plain["trouble"])
