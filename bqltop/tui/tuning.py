"""The state of the tuning panel: what is selected, what is being typed, what has been changed. No Textual in here.

Methods that ask the kernel say "blocking" and run in the panel's worker thread, one at a time; everything else only
computes and runs where keys arrive.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from bqltop.kernel.netns import NetnsError
from bqltop.model import Event, Sample
from bqltop.tuning import effect
from bqltop.tuning.changes import Change, Plan
from bqltop.tuning.effect import Effect
from bqltop.tuning.foreign import EVENT_KIND
from bqltop.tuning.knobs import BadValue, Kind, Setting, Value
from bqltop.tuning.recover import describe, restore
from bqltop.tuning.session import Maker
from bqltop.tuning.tuner import Tuner

TRIAL_S = 20.0
"""A change on trial reverts after this, unless kept."""
SPAN_S = 15.0
KEPT_SECONDS = 120
"""What the comparison of before and after is made from."""
EFFECT_EVERY_NS = 1_000_000_000


QUIET = {"draft": None, "typing": False, "plan": None, "fault": None, "confirming": False, "message": None, "refusal": None}
"""Nothing is being changed, and nothing is left to say of the last change."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A change and when it was made, by the samples' clock (ns)."""

    change: Change
    at_ns: int


@dataclass(frozen=True, slots=True)
class State:
    """Everything the panel draws from.

    ``draft``: the text of the new value, None while nothing is being changed; ``typing``: keys go to it.
    ``plan``/``fault``: what the draft would do, or why it cannot. ``confirming``: the change can cut traffic and
    waits for a second Enter. ``refusal``: the last change that was refused, in place of its knob's help.
    """

    settings: tuple[Setting, ...] = ()
    selected: int = 0
    queue: int | None = None
    draft: str | None = None
    typing: bool = False
    plan: Plan | None = None
    fault: str | None = None
    confirming: bool = False
    busy: bool = False
    message: str | None = None
    refusal: tuple[str, str] | None = None
    changes: tuple[Change, ...] = ()
    effects: tuple[Effect, ...] = ()
    effect_of: str = ""
    left_behind: tuple[str, ...] = ()
    unavailable: str | None = None

    @property
    def setting(self) -> Setting | None:
        return self.settings[self.selected] if self.selected < len(self.settings) else None


class Tuning:
    """One device's tuning session on the screen. ``make`` makes the tuner; None: nothing can be tuned here."""

    def __init__(self, make: Maker | None, clock: Callable[[], float] = time.monotonic) -> None:
        self.state = State(unavailable=None if make else "nothing can be set here: this is not a live device")
        self._lock = threading.Lock()
        self.tuner: Tuner | None = None
        self.clock = clock
        self._make = make
        self._sample: Sample | None = None
        self._followed: tuple | None = None
        self._seconds = effect.Seconds(kept=KEPT_SECONDS)
        self._mark: Mark | None = None
        self._compared_ns = 0
        self._lefts: list = []

    def _set(self, **changes) -> None:
        """Change the state: keys and the worker thread both do."""
        with self._lock:
            self.state = replace(self.state, **changes)

    def _quiet(self, **changes) -> None:
        """Drop the draft and what was said last, and change the state."""
        self._set(**(QUIET | changes))

    # -- the device ----------------------------------------------------------------------------------------------

    def take(self, sample: Sample) -> None:
        """Remember what device is shown, and its last two minutes."""
        self._sample = sample
        self._seconds.add(sample)

    def attach(self) -> list[Event]:
        """Blocking: a tuner for the device that is shown now. Says what an earlier run left changed."""
        sample = self._sample
        if self._make is None or sample is None or not sample.present:
            return []
        device = (sample.device.ifindex, sample.device.netns, sample.epoch)
        if device == self._followed:
            return []
        self._followed = device
        if self.tuner is not None and self._still_there():
            return []
        self.detach()
        try:
            self.tuner = self._make(sample)
        except (OSError, NetnsError) as error:
            self._set(unavailable=_words(error))
            return []
        self.state = State(queue=self.state.queue)
        self._lefts = self.tuner.left_behind()
        left = tuple(map(describe, self._lefts))
        self._set(left_behind=left)
        self.load()
        others = sorted({entry.pid for entry in self.tuner.others()})
        texts = [f"an earlier run left {text}" for text in left]
        texts += [f"another bqltop (process {pid}) has changed settings here" for pid in others]
        return [self._event(text) for text in texts]

    def _still_there(self) -> bool:
        try:
            self.tuner.own.confirm()
        except OSError:
            return False
        return True

    def detach(self) -> None:
        """Blocking: let go of a device that is gone; nothing of it can be taken back any more."""
        if self.tuner is not None:
            self.tuner.undo_all()
            self.tuner.close()
            self.tuner = None

    def load(self) -> None:
        """Blocking: read all knobs."""
        if self.tuner is None:
            return
        try:
            settings = self.tuner.knobs(self.state.queue)
        except OSError as error:
            self._set(unavailable=_words(error))
            return
        settings.sort(key=lambda setting: not setting.values)
        chosen = self.state.setting.knob.id if self.state.setting else None
        place = next((i for i, setting in enumerate(settings) if setting.knob.id == chosen), 0)
        self._set(settings=tuple(settings), selected=place, changes=tuple(self.tuner.changes),
                             unavailable=None)  # fmt: skip

    # -- choosing a value ----------------------------------------------------------------------------------------

    def move(self, by: int) -> None:
        """Another knob; a draft is dropped."""
        last = len(self.state.settings) - 1
        self._quiet(selected=max(0, min(last, self.state.selected + by)))

    def choose_queue(self, by: int) -> None:
        """All queues, queue 0, queue 1, ... ; the knobs have to be loaded anew."""
        count = len(self._sample.queues) if self._sample else 0
        place = (-1 if self.state.queue is None else self.state.queue) + by
        self._quiet(queue=None if place < 0 else min(place, count - 1) if count else None)

    def step(self, direction: int) -> None:
        """The next sensible value, from the draft on if there is one."""
        setting = self.state.setting
        if setting is None or not setting.values:
            return
        start: Value | None = setting.value if setting.value is not None else max(setting.values)
        if self.state.draft is not None:
            with contextlib.suppress(BadValue):
                start = setting.check(self.state.draft)
        value = setting.step(direction, start)
        if value is not None:
            self._draft(setting.knob.show(value))

    def begin_typing(self, first: str | None = None) -> None:
        """Type a value: over the present one, or beginning with ``first``."""
        setting = self.state.setting
        if setting is None or not setting.values:
            return
        if setting.knob.kind is Kind.SWITCH and first is None:
            self._draft(setting.knob.show(1 - (setting.value or 0)))
            return
        self._draft(first if first is not None else setting.text)
        self._set(typing=True)

    def type(self, text: str) -> None:
        """More of the value; an empty string takes the last character away."""
        draft = self.state.draft or ""
        self._draft(draft + text if text else draft[:-1])

    def end_typing(self) -> bool:
        """The value is whole: further keys are commands again. False while it cannot be meant."""
        if self.state.fault:
            return False
        self._set(typing=False)
        return True

    def cancel(self) -> bool:
        """Drop what is being changed; False when nothing was."""
        had = self.state.draft is not None or self.state.message is not None
        self._quiet()
        return had

    def _draft(self, text: str) -> None:
        setting, fault = self.state.setting, None
        try:
            setting.check(text)
        except BadValue as error:
            fault = str(error)
        self._set(draft=text, plan=None, fault=fault, confirming=False, message=None, refusal=None)

    def plan(self) -> None:
        """Blocking: what the draft would do."""
        state = self.state
        if state.draft is None or state.fault or state.setting is None or self.tuner is None:
            return
        id, draft = state.setting.knob.id, state.draft
        try:
            (plan,) = self.tuner.plan({id: draft}, state.queue)
            found, fault = plan, None
        except (BadValue, OSError) as error:
            found, fault = None, _words(error)
        if self.state.draft == draft and self.state.setting and self.state.setting.knob.id == id:
            self._set(plan=found, fault=fault)

    # -- doing and taking back -----------------------------------------------------------------------------------

    def go(self, trial: bool) -> list[Event]:
        """Blocking: do what the draft says, on trial if so asked or if it can cut traffic; that has to be asked for
        twice."""
        if self.state.plan is None:
            self.plan()
        state = self.state
        if state.draft is None or state.fault or state.plan is None:
            return []
        if state.plan.cuts_traffic and not state.plan.refused and not state.confirming:
            self._set(confirming=True, typing=False)
            return []
        return self._apply(state.plan, trial)

    def _apply(self, plan: Plan, trial: bool) -> list[Event]:
        if self.tuner is None:
            return []
        self._set(busy=True)
        change = self.tuner.apply(plan, TRIAL_S if trial or plan.cuts_traffic else None)
        self.load()
        self._quiet(busy=False)
        if change.refused:
            self._set(refusal=(plan.knob.id, change.sentence))
            return []
        self._set(message=change.sentence)
        return self._changed([change]) if change.changed else []

    def try_out(self, assignments: Mapping[str, str], queue: int | None) -> list[Event]:
        """Blocking: put what was advised on trial, all of it or nothing."""
        if self.tuner is None:
            return []
        done: list[Change] = []
        try:
            for plan in self.tuner.plan(assignments, queue):
                change = self.tuner.apply(plan, TRIAL_S)
                if change.refused:
                    raise BadValue(change.sentence)
                done += [change] if change.changed else []
        except (BadValue, OSError) as error:
            for change in reversed(done):
                self.tuner.undo(change)
            self.load()
            return [self._event(f"not tried: {_words(error)}")]
        self.load()
        return self._changed(done) if done else [self._event("not tried: that is what is set already")]

    def undo(self, all: bool = False, force: bool = False) -> list[Event]:
        """Blocking: take back the last change, or all."""
        if self.tuner is None:
            return []
        if all:
            backs = self.tuner.undo_all(force)
        else:
            back = self.tuner.undo(force=force)
            backs = [back] if back else []
        return self._taken_back(backs)

    def keep(self) -> None:
        """Blocking: the latest trial stays."""
        trial = next((change for change in reversed(self.state.changes) if change.trial_until is not None), None)
        if trial is not None and self.tuner is not None:
            self.tuner.keep(trial)
            self._set(changes=tuple(self.tuner.changes), message=f"kept: {trial.sentence}")

    def restore(self) -> list[Event]:
        """Blocking: what an earlier run left changed."""
        if self.tuner is None or not self._lefts or self.tuner.read_only:
            return []
        done = restore(self._lefts, self.tuner.journal)
        self.load()
        self._lefts = [one.left for one in done if not one.ok]
        self._set(left_behind=tuple(map(describe, self._lefts)), message=done[-1].text)
        return [self._event(one.text) for one in done]

    def poll(self) -> list[Event]:
        """Blocking, about every second: trials whose time has come, and what somebody else has changed."""
        if self.tuner is None:
            return []
        events = self._taken_back(self.tuner.tick())
        try:
            foreign = self.tuner.poll_foreign(self._sample)
        except (OSError, NetnsError):
            return events  # the device is away: the samples say so
        if foreign:
            self.load()
        return events + foreign

    def _changed(self, changes: list[Change]) -> list[Event]:
        """Events of our own changes; the latest is what the comparison is about from now on."""
        now = self._sample.monotonic_ns if self._sample else 0
        self._mark, self._compared_ns = Mark(changes[-1], now), 0
        self._set(effects=(), effect_of=_short(changes[-1]))
        return [self._event(f"you: {change.sentence}") for change in changes]

    def _taken_back(self, backs: list[Change]) -> list[Event]:
        if not backs:
            return []
        self.load()
        self._quiet(message=backs[-1].sentence)
        return self._changed([back for back in backs if not back.refused] or backs[-1:])

    def _event(self, text: str) -> Event:
        """By the samples' clock, as all other events."""
        return Event(self._sample.time_ns if self._sample else time.time_ns(), EVENT_KIND, text)

    # -- what it did ---------------------------------------------------------------------------------------------

    def compare(self) -> None:
        """The spans before and after the latest change, once a second and until the span after is full."""
        mark, sample = self._mark, self._sample
        if mark is None or sample is None or sample.monotonic_ns - self._compared_ns < EFFECT_EVERY_NS:
            return
        self._compared_ns = sample.monotonic_ns
        if sample.monotonic_ns - mark.at_ns > (SPAN_S + effect.WARM_UP_S + 2) * 1e9 and self.state.effects:
            return
        spans = effect.split(self._seconds.windows, mark.at_ns, SPAN_S)
        self._set(effects=tuple(effect.compare(*spans, self.state.queue)))

    # -- leaving -------------------------------------------------------------------------------------------------

    @property
    def in_force(self) -> tuple[Change, ...]:
        """Changes that leaving has to decide about."""
        return tuple(self.tuner.changes) if self.tuner else ()

    def leave(self, policy: str | None) -> list[Change]:
        """Blocking: follow the policy (see Tuner.leave) and let go. Safe to call twice."""
        tuner, self.tuner = self.tuner, None
        if tuner is None:
            return []
        try:
            return tuner.leave(policy)
        finally:
            tuner.close()


def _short(change: Change) -> str:
    return change.sentence.split(";")[0]


def _words(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return str(error)
