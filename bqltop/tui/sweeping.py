"""Brings the sweep into the application: a thread that turns the knobs, fed with the samples of the screen."""

from __future__ import annotations

import contextlib
import queue
import random
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from bqltop.kernel.netns import NetnsError
from bqltop.model import Sample
from bqltop.probe import ProbeError, Prober, resolve_address
from bqltop.sweep import plan as plans
from bqltop.sweep.guard import Bound, parse_bound
from bqltop.sweep.plan import BadPlan, Plan
from bqltop.sweep.result import Result, Trial, summarise
from bqltop.sweep.runner import Progress, Sweeper
from bqltop.tuning.knobs import BadValue
from bqltop.tuning.tuner import Tuner

if TYPE_CHECKING:
    from bqltop.tui.app import BqltopApp

SILENCE_S = 5.0
"""Without a sample for so long there are no more."""
LONGEST_JOIN_S = 3.0


@dataclass(frozen=True, slots=True)
class Wish:
    """What was typed: knobs with values, and how to go about it."""

    plan: Plan
    bounds: tuple[Bound, ...] = ()
    probe: str | None = None


def parse(text: str) -> Wish:
    """``tx-usecs=0,50 limit_min=0,8 runs=3 seconds=5 probe=peer drops>1%`` -> Wish. Raises BadPlan."""
    options = {"runs": "3", "seconds": "3", "probe": ""}
    bounds, knobs = [], []
    for word in text.split():
        name, equals, value = word.partition("=")
        if ">" in name:
            bounds.append(parse_bound(word))
        elif equals and name in options:
            options[name] = value
        else:
            knobs.append(word)
    grid = plans.parse_grid(knobs)
    if not grid:
        raise BadPlan("name what to try: KNOB=VALUE,VALUE,...")
    try:
        runs, seconds = int(options["runs"]), float(options["seconds"])
    except ValueError:
        raise BadPlan("runs and seconds are numbers") from None
    if not (1 <= runs <= 100 and 0.2 <= seconds <= 3600):
        raise BadPlan("runs is 1 to 100, seconds 0.2 to 3600")
    plan = Plan(plans.settings(grid), runs, seconds, seed=random.randrange(1 << 30))
    return Wish(plan, tuple(bounds), options["probe"] or None)


@dataclass(frozen=True, slots=True)
class State:
    """Everything the page draws from. ``fault``: why it could not begin; ``stopped``: why it ended early."""

    wish: Wish | None = None
    running: bool = False
    progress: Progress | None = None
    trials: tuple[Trial, ...] = ()
    fault: str | None = None
    stopped: str | None = None
    left: tuple[str, ...] = field(default=())

    @property
    def result(self) -> Result | None:
        return summarise(self.wish.plan.settings, self.trials) if self.wish and self.trials else None


class Sweeping:
    """One sweep at a time, of the device on the screen when it began. ``take`` hears every sample."""

    def __init__(self, app: BqltopApp) -> None:
        self.state = State()
        self._app = app
        self._thread: threading.Thread | None = None
        self._samples: queue.SimpleQueue[Sample | None] = queue.SimpleQueue()
        self._stream: int | None = None
        self._stop: str | None = None

    def take(self, sample: Sample) -> None:
        if self.state.running and sample.stream == self._stream:
            self._samples.put(sample)

    def start(self, text: str) -> None:
        """Begin; what is wrong with the words is in ``state.fault``."""
        tuner = self._app.tuner.tuning.tuner
        try:
            wish = parse(text)
            if tuner is None:
                raise BadPlan(self._app.tuner.tuning.state.unavailable or "the settings are being read")
            for setting in wish.plan.settings:
                refused = next((one.refused for one in tuner.plan(dict(setting)) if one.refused), None)
                if refused:
                    raise BadPlan(refused)
        except (BadPlan, BadValue, OSError) as error:
            self.state = State(fault=str(error))
            return
        if tuner.changes:
            self.state = State(fault="changes are in force: keep them or take them back first (t, then U)")
            return
        self._samples, self._stream, self._stop = queue.SimpleQueue(), self._app.stream, None
        self.state = State(wish, running=True)
        self._thread = threading.Thread(target=self._run, args=(wish, tuner), name="bqltop-sweep", daemon=True)
        self._thread.start()

    def stop(self, why: str = "a key was pressed") -> None:
        """End it; what was there before is put back by its thread."""
        self._stop = why
        self._samples.put(None)

    def end(self) -> None:
        """Leaving: stop, and wait until everything is put back."""
        if self._thread is not None:
            self.stop("bqltop is leaving")
            self._thread.join(LONGEST_JOIN_S)

    def _run(self, wish: Wish, tuner: Tuner) -> None:
        try:
            with self._sojourn(), self._prober(wish, tuner) as prober:
                sweeper = Sweeper(wish.plan, tuner, self._arriving(), prober=prober, bounds=wish.bounds,
                                  stop=lambda: self._stop, notify=self._tell, finished=self._finished)  # fmt: skip
                stopped = sweeper.run()
                self.state = replace(self.state, stopped=stopped, left=tuple(sweeper.left))
        except (ProbeError, NetnsError, OSError) as error:
            self.state = replace(self.state, fault=str(error))
        finally:
            self.state = replace(self.state, running=False)

    def _tell(self, progress: Progress) -> None:
        self.state = replace(self.state, progress=progress)

    def _finished(self, trial: Trial) -> None:
        self.state = replace(self.state, trials=(*self.state.trials, trial))

    def _arriving(self) -> Iterator[Sample]:
        with contextlib.suppress(queue.Empty):
            while (sample := self._samples.get(timeout=SILENCE_S)) is not None:
                yield sample
        if self._stop and self.state.running:
            # the sweeper asks for the reason only when a sample comes
            yield self._app.feed.sample

    @contextlib.contextmanager
    def _sojourn(self) -> Iterator[None]:
        """Time packets while the sweep runs, where the source can."""
        source = self._app.source
        samplers: Sequence = getattr(source, "samplers", None) or [source]
        before = [(one, one.sojourn) for one in samplers if hasattr(one, "sojourn")]
        for one, _ in before:
            one.sojourn = True
        try:
            yield
        finally:
            for one, value in before:
                one.sojourn = value

    @contextlib.contextmanager
    def _prober(self, wish: Wish, tuner: Tuner) -> Iterator[Prober | None]:
        if wish.probe is None:
            yield None
            return
        device = tuner.device
        with Prober(tuner.ns, device, resolve_address(wish.probe, tuner.ns, device), interval_s=0.1) as prober:
            yield prober
