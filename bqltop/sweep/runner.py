"""Doing it: set, wait, measure, and put everything back, whatever happens.

A ``Sweeper`` has a tuner and a source of samples of the same device. It changes settings as trials that the tuner takes
back by itself, so that one undo leads to what was there before the sweep, and after a kill -9 the journal does.
"""

from __future__ import annotations

import errno
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bqltop.model import Sample
from bqltop.probe import Prober
from bqltop.sweep import guard
from bqltop.sweep.figures import Measured, Span, measure
from bqltop.sweep.plan import AS_IT_WAS, Plan, Setting
from bqltop.sweep.result import Trial
from bqltop.tuning.changes import Change
from bqltop.tuning.knobs import BadValue
from bqltop.tuning.tuner import Tuner
from bqltop.window import between

INTERVAL_S = 0.1
FOREVER_S = 1e9
"""A change on trial is absorbed by the next one of the same knob: the way back leads to what was there at first."""
GUARD_S = 1.0
"""Span that the bounds are held against while a trial runs: shorter ones cry wolf."""


class Stopped(Exception):
    """The sweep is over before its end; the text says why."""


@dataclass(frozen=True, slots=True)
class Progress:
    """``done`` of ``total`` trials; ``setting`` and ``run`` are the one at work, ``left_s`` the time to the end."""

    done: int
    total: int
    setting: Setting
    run: int
    left_s: float


class Sweeper:
    """``samples``: an iterator of samples of the tuner's device, INTERVAL_S apart. ``stop()`` is asked at each sample
    and answers with the reason to stop, or None. ``notify`` hears of each beginning trial."""

    def __init__(self, plan: Plan, tuner: Tuner, samples: Iterator[Sample], *, prober: Prober | None = None,
                 bounds: Sequence[guard.Bound] = (), done: Sequence[Trial] = (),
                 stop: Callable[[], str | None] = lambda: None,
                 notify: Callable[[Progress], None] = lambda progress: None,
                 finished: Callable[[Trial], None] = lambda trial: None):  # fmt: skip
        self.plan, self.trials = plan, list(done)
        self._tuner, self._samples, self._prober, self._bounds = tuner, samples, prober, tuple(bounds)
        self._stop, self._notify, self._finished = stop, notify, finished
        self._last: Sample | None = None

    def run(self) -> str | None:
        """All trials that are not done yet; why it was stopped, None when it came to its end. What was there before is
        put back in every case; what could not be is in ``left``."""
        try:
            for run, setting in self._open():
                self._tell(run, setting)
                trial = self._try(run, setting)
                self.trials.append(trial)
                self._finished(trial)
        except Stopped as reason:
            return str(reason)
        finally:
            self._put_back()
        return None

    @property
    def left(self) -> list[str]:
        """What could not be put back, in words."""
        return [change.sentence for change in self._unrestored]

    _unrestored: Sequence[Change] = ()

    def _open(self) -> list[tuple[int, Setting]]:
        """The trials still to do; refused settings are not tried again."""
        done = {(trial.run, trial.setting) for trial in self.trials}
        return [pair for pair in self.plan.order() if pair not in done]

    def _tell(self, run: int, setting: Setting) -> None:
        done = len(self.trials)
        left = (self.plan.trials - done) * self.plan.seconds_per_trial
        self._notify(Progress(done, self.plan.trials, setting, run, left))

    def _try(self, run: int, setting: Setting) -> Trial:
        known = next((t.trouble for t in self.trials if t.setting == setting and t.trouble and not t.measured), None)
        trouble = known or self._set(setting)
        if trouble:
            return Trial(setting, run, trouble=trouble)
        self._watch(self.plan.warm_up, self.plan.warm_up)
        for _attempt in range(2):
            began = time.monotonic_ns()
            measured = self._measure(began)
            if measured:
                return Trial(setting, run, measured)
        return Trial(setting, run, trouble="the device changed during the trial")

    def _set(self, setting: Setting) -> str | None:
        """Bring the device to a setting; why that cannot be."""
        if setting == AS_IT_WAS:
            return self._put_back()
        try:
            plans = self._tuner.plan(dict(setting))
        except (BadValue, OSError) as error:
            self._gone(error)
            return str(error)
        for plan in plans:
            change = self._tuner.apply(plan, FOREVER_S)
            if change.errno == errno.ENODEV:
                raise Stopped("the device is gone")
            if change.refused:
                self._put_back()
                return change.sentence
        return None

    @staticmethod
    def _gone(error: Exception) -> None:
        if isinstance(error, OSError) and error.errno == errno.ENODEV:
            raise Stopped("the device is gone")

    def _put_back(self) -> str | None:
        back = self._tuner.undo_all()
        self._unrestored = [change for change in back if change.refused]
        return self._unrestored[0].sentence if self._unrestored else None

    def _measure(self, began_ns: int) -> Measured | None:
        samples = self._watch(self.plan.seconds, GUARD_S)
        echoes = self._prober.since(began_ns) if self._prober else ()
        span = Span.of(samples, echoes)
        if span is None:
            return None
        broken = guard.exceeded(self._bounds, span)
        if broken:
            raise Stopped(broken)
        return measure(span)

    def _watch(self, seconds: float, guard_s: float) -> list[Sample]:
        """Samples over so many seconds, held against the bounds all the time. Raises Stopped."""
        seen: list[Sample] = []
        recent: deque[Sample] = deque()
        for sample in self._samples:
            seen.append(sample)
            self._look(sample, recent, guard_s)
            if (sample.monotonic_ns - seen[0].monotonic_ns) / 1e9 >= seconds:
                return seen
        raise Stopped("there are no more samples")

    def _look(self, sample: Sample, recent: deque[Sample], guard_s: float) -> None:
        reason = self._stop()
        if reason:
            raise Stopped(reason)
        if not sample.present:
            raise Stopped("the device is gone")
        window = between(self._last, sample) if self._last else None
        self._last = sample
        fired = guard.watchdog(window) if window else None
        if fired:
            raise Stopped(fired)
        recent.append(sample)
        age = (sample.monotonic_ns - recent[0].monotonic_ns) / 1e9
        if self._bounds and age >= guard_s > 0:
            span = Span.of(list(recent), self._prober.since(recent[0].monotonic_ns) if self._prober else ())
            broken = guard.exceeded(self._bounds, span) if span else None
            if broken:
                raise Stopped(broken)
            recent.clear()
