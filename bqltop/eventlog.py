"""What happened, with times: events found in the samples themselves, and the log that keeps, filters and exports them.

``Detector`` is pure: samples in, events out, no clock of its own. Events that only others can know (the device
was made anew, the user set a knob) arrive in ``Sample.events`` or are added to the log directly.

Kinds: ``stop`` (a queue stopped for long), ``watchdog``, ``limit`` (it jumped), ``drops`` (a burst began or ended),
``stall`` (nothing completes), ``setting`` (a knob was turned), ``probe`` (a source of figures lost or back), ``missed``
(samples not taken). What happens to the device itself (bqltop.lifecycle: up, mtu, qdisc, deleted, ...) comes with the
samples.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from bqltop import format as fmt
from bqltop.model import Event, QueueSample, Sample, Unit
from bqltop.window import Window, comparable

KINDS = ("stop", "watchdog", "limit", "drops", "stall", "setting", "probe", "missed")
"""What the detector finds. A log holds others too."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """When something is worth an event. Times in ms, ``limit_factor`` a ratio, ``limit_packets`` and ``limit_bytes`` the
    smallest jump worth telling, ``drops`` packets per window, ``quiet_ms`` how long without drops ends a burst."""

    stop_ms: float = 100
    still_ms: float = 1000
    stall_ms: float = 500
    limit_factor: float = 2.0
    limit_packets: int = 8
    limit_bytes: int = 3028
    drops: int = 10
    quiet_ms: float = 1000
    missed_every_ms: float = 10_000


KNOBS = ("limit_min", "limit_max", "hold_time_ms", "stall_threshold_ms")
DEVICE_KNOBS = ("napi_mode",)
OURS_MS = 3000
"""How long after ``Detector.ours`` a change still counts as the one announced: two samples at the slowest usual rate."""

_CAUSES = (("driver", "drv_xoff"), ("bql", "stack_xoff"))
_CAUSE_WORDS = {"driver": "the driver", "bql": "BQL"}


@dataclass(slots=True)
class _Run:
    """A condition that lasts: how long so far, and whether it was told that it still does."""

    ns: int = 0
    told: bool = False


@dataclass(slots=True)
class _Burst:
    """A burst of drops: since when, how many, and how long none came."""

    since_ns: int = 0
    packets: int = 0
    quiet_ns: int = 0


@dataclass(slots=True)
class _State:
    """What the detector remembers from one sample to the next; thrown away when the device is attached anew."""

    stops: dict[tuple[int, str], _Run] = field(default_factory=dict)
    stalls: dict[int, _Run] = field(default_factory=dict)
    bursts: dict[str, _Burst] = field(default_factory=dict)


class Detector:
    """Finds events in a stream of samples. Call ``feed`` with every sample in order. ``settings`` False leaves changed
    settings to somebody who watches them more closely (bqltop.tuning.foreign)."""

    def __init__(self, thresholds: Thresholds | None = None, settings: bool = True) -> None:
        self.thresholds = thresholds or Thresholds()
        self.settings = settings
        self._state = _State()
        self._before: Sample | None = None
        self._ours: dict[tuple[str, int | None], int] = {}
        self._missed_told_ns: int | None = None
        self._missed = 0

    def ours(self, knob: str, queue: int | None = None) -> None:
        """Announce that we are setting this knob (a name of KNOBS or DEVICE_KNOBS): its next change is not reported,
        because whoever sets it writes the better event."""
        self._ours[knob, queue] = self._before.monotonic_ns if self._before else 0

    def feed(self, sample: Sample, window: Window | None = None) -> list[Event]:
        """The events of a sample: its own and those found by comparing it with the one before, in order of time.
        ``window`` may be left out; nothing is taken from it."""
        before, self._before = self._before, sample
        found: list[Event] = []
        if before is not None:
            found += self._probes(before, sample)
        if not comparable(before, sample):
            self._state = _State()
        else:
            lasted = sample.monotonic_ns - before.monotonic_ns
            older = {queue.index: queue for queue in before.queues}
            for queue in sample.queues:
                if queue.index in older:
                    found += self._queue(older[queue.index], queue, lasted, sample.time_ns)
            found += self._drops(before, sample, lasted)
            found += self._device_knobs(before, sample)
            found += self._samples_missed(before, sample)
        return sorted([*sample.events, *found], key=lambda event: event.time_ns)

    # ---- one queue

    def _queue(self, older: QueueSample, newer: QueueSample, lasted: int, now: int) -> Iterator[Event]:
        for cause, bit in _CAUSES:
            yield from self._stops(older, newer, cause, bit, lasted, now)
        yield from self._watchdog(older, newer, now)
        yield from self._limit(older, newer, now)
        yield from self._stall(older, newer, lasted, now)
        yield from self._knobs(older, newer, KNOBS, newer.index, now)

    def _stops(self, older, newer, cause, bit, lasted, now) -> Iterator[Event]:
        """Stops longer than the threshold. A stop that was on when the window began goes on while no new one begins; of
        several in one window only their mean length is known."""
        before, after = getattr(older, f"stopped_{cause}_ns"), getattr(newer, f"stopped_{cause}_ns")
        began = _grown(getattr(older, f"stops_{cause}"), getattr(newer, f"stops_{cause}")) or 0
        stopped = _grown(before, after)
        if stopped is None:  # no event probe: all there is is the bit at each sample
            stopped = lasted if getattr(older, bit) and getattr(newer, bit) else 0
        still = bool(getattr(newer, bit))
        run = self._state.stops.setdefault((newer.index, cause), _Run())
        if began and run.ns:
            yield from self._stop_ended(run, newer.index, cause, now)
            run.ns, run.told = 0, False
        parts = max(1, began)
        run.ns += stopped // parts
        if still:
            if run.ns >= self.thresholds.still_ms * 1e6 and not run.told:
                run.told = True
                text = f"stopped by {_CAUSE_WORDS[cause]} for {fmt.nanoseconds(run.ns)} and still is"
                yield Event(now, "stop", text, newer.index)
            return
        yield from self._stop_ended(run, newer.index, cause, now)
        run.ns, run.told = 0, False

    def _stop_ended(self, run: _Run, queue: int, cause: str, now: int) -> Iterator[Event]:
        if run.ns >= self.thresholds.stop_ms * 1e6:
            yield Event(now, "stop", f"stopped by {_CAUSE_WORDS[cause]} for {fmt.nanoseconds(run.ns)}", queue)

    def _watchdog(self, older, newer, now) -> Iterator[Event]:
        fired = _grown(older.tx_timeouts, newer.tx_timeouts)
        if fired:
            times = "once" if fired == 1 else f"{fired} times"
            yield Event(now, "watchdog", f"transmit watchdog fired {times} ({newer.tx_timeouts} in all)", newer.index)

    def _limit(self, older, newer, now) -> Iterator[Event]:
        """A jump: by the factor, and by more than the few packets that a low limit moves all the time."""
        if older.limit is None or newer.limit is None or older.limit == newer.limit:
            return
        bounds = self.thresholds
        least = bounds.limit_bytes if newer.unit is Unit.BYTES else bounds.limit_packets
        low, high = sorted((older.limit, newer.limit))
        if high - low >= least and high >= bounds.limit_factor * low:
            unit = f" {newer.unit}" if newer.unit else ""
            yield Event(now, "limit", f"limit {fmt.count(older.limit)} -> {fmt.count(newer.limit)}{unit}", newer.index)

    def _stall(self, older, newer, lasted, now) -> Iterator[Event]:
        """Something is under way and nothing comes back: by the ring where there is one, else by BQL's counters; and the
        kernel's own stall detection where it is switched on."""
        counted = _grown(older.stall_count, newer.stall_count)
        if counted:
            longest = f", the longest {fmt.milliseconds(newer.stall_max_ms)}" if newer.stall_max_ms else ""
            yield Event(now, "stall", f"the kernel counted {counted} stall{'s' * (counted > 1)}{longest}", newer.index)
        run = self._state.stalls.setdefault(newer.index, _Run())
        if _stuck(older, newer):
            run.ns += lasted
            if run.ns >= self.thresholds.stall_ms * 1e6 and not run.told:
                run.told = True
                waiting = newer.ring_used or newer.inflight
                yield Event(now, "stall", f"nothing completed for {fmt.nanoseconds(run.ns)}, {fmt.count(waiting)} waiting",
                            newer.index)
            return
        if run.told:
            yield Event(now, "stall", f"completions go on after {fmt.nanoseconds(run.ns)}", newer.index)
        run.ns, run.told = 0, False

    def _knobs(self, older, newer, names: Iterable[str], queue: int | None, now: int) -> Iterator[Event]:
        """Settings that changed between two samples, unless announced with ``ours``."""
        for name in names:
            was, now_is = getattr(older, name), getattr(newer, name)
            if not self.settings or was == now_is or was is None or now_is is None:
                continue
            announced = self._ours.pop((name, queue), self._ours.pop((name, None), None))
            if announced is not None and self._before.monotonic_ns - announced <= OURS_MS * 1e6:
                continue
            yield Event(now, "setting", f"somebody set {name} {fmt.text(was)} -> {fmt.text(now_is)}", queue)

    # ---- the device and the rest

    def _device_knobs(self, before: Sample, sample: Sample) -> Iterator[Event]:
        return self._knobs(before.device, sample.device, DEVICE_KNOBS, None, sample.time_ns)

    def _drops(self, before: Sample, sample: Sample, lasted: int) -> Iterator[Event]:
        """Bursts of drops at the root qdisc and of the driver: one event when one begins, one when it is over."""
        now, older = sample.time_ns, _dropped(before)
        for name, total in _dropped(sample).items():
            dropped = _grown(older.get(name), total) or 0
            burst = self._state.bursts.get(name)
            if burst is None:
                if dropped >= self.thresholds.drops:
                    self._state.bursts[name] = _Burst(now, dropped)
                    yield Event(now, "drops", f"{name} drops {fmt.rate(dropped * 1e9 / lasted)} packets/s")
                continue
            burst.packets += dropped
            burst.quiet_ns = 0 if dropped else burst.quiet_ns + lasted
            if burst.quiet_ns >= self.thresholds.quiet_ms * 1e6:
                lasted = max(0, now - burst.since_ns - burst.quiet_ns)
                del self._state.bursts[name]
                yield Event(now, "drops", f"{name} dropped {fmt.count(burst.packets)} packets in "
                                          f"{fmt.nanoseconds(lasted) if lasted else 'one window'}")

    def _probes(self, before: Sample, sample: Sample) -> Iterator[Event]:
        was = {probe.name: probe.in_force for probe in before.probes}
        for probe in sample.probes:
            if was.get(probe.name, probe.in_force) != probe.in_force:
                why = f": {probe.why}" if probe.why else ""
                yield Event(sample.time_ns, "probe", f"{probe.name} {'is back' if probe.in_force else 'lost'}{why}")

    def _samples_missed(self, before: Sample, sample: Sample) -> Iterator[Event]:
        """Missed samples, added up so that an overloaded host does not fill the log with them."""
        if before.own is None or sample.own is None:
            return
        self._missed += max(0, sample.own.missed - before.own.missed)
        told, now = self._missed_told_ns, sample.monotonic_ns
        if self._missed and (told is None or now - told >= self.thresholds.missed_every_ms * 1e6):
            yield Event(sample.time_ns, "missed", f"{self._missed} sample{'s' * (self._missed > 1)} missed")
            self._missed, self._missed_told_ns = 0, now


class Retold:
    """In the place of a Detector for a recording: the events that were found when it was made, and none found anew. A
    replay jumps, and skips samples when it is fast; found in what is left, the same event would read differently, and
    what we set ourselves would be somebody's."""

    def feed(self, sample: Sample) -> list[Event]:
        return sorted(sample.events, key=lambda event: event.time_ns)


def finder(header: Mapping) -> Detector | Retold:
    """What finds the events in the samples of a file: one with a header is a recording and has them, the bare output of
    ``--json`` has only the device's own."""
    return Retold() if header else Detector()


def _grown(older: int | None, newer: int | None) -> int | None:
    return None if older is None or newer is None or newer < older else newer - older


def _dropped(sample: Sample) -> dict[str, int]:
    """Packets dropped so far, by where: the root qdisc, the driver."""
    found = {f"{qdisc.kind} {qdisc.handle}": qdisc.drops for qdisc in sample.qdiscs if qdisc.parent == "root"}
    if sample.link is not None:
        found["the driver"] = sample.link.tx_dropped
    return found


def _stuck(older: QueueSample, newer: QueueSample) -> bool:
    if newer.ring_used is not None and older.ring_used is not None:
        went_in = _grown(older.packets, newer.packets)
        if went_in is None:
            return False
        return newer.ring_used > 0 and older.ring_used > 0 and went_in - (newer.ring_used - older.ring_used) <= 0
    if not newer.inflight or not older.inflight:
        return False
    return _grown(older.completed, newer.completed) == 0


# ---- the log


class EventLog:
    """The last ``most`` events, in the order they came; the same event told twice (by a replay that jumped back) is kept
    once."""

    def __init__(self, most: int = 10_000) -> None:
        self._events: deque[Event] = deque(maxlen=most)
        self._recent: deque[Event] = deque(maxlen=256)
        self.total = 0

    def __len__(self) -> int:
        return len(self._events)

    def __iter__(self) -> Iterator[Event]:
        return iter(self._events)

    def add(self, events: Iterable[Event]) -> list[Event]:
        """Take in events; returns those that were new."""
        new = []
        for event in events:
            if event in self._recent:
                continue
            self._recent.append(event)
            self._events.append(event)
            self.total += 1
            new.append(event)
        return new

    def filter(self, kinds: Iterable[str] | None = None, queue: int | None = None, text: str = "",
               start_ns: int | None = None, end_ns: int | None = None) -> list[Event]:
        """Events of these kinds, of this queue (those of the whole device stay in), holding ``text`` (in any case),
        between two wall-clock times."""
        wanted, needle = set(kinds) if kinds is not None else None, text.casefold()
        return [
            event for event in self._events
            if (wanted is None or event.kind in wanted)
            and (queue is None or event.queue in (None, queue))
            and (not needle or needle in f"{event.kind} {event.text}".casefold())
            and (start_ns is None or event.time_ns >= start_ns)
            and (end_ns is None or event.time_ns <= end_ns)
        ]


def line(event: Event) -> str:
    """An event for people: ``14:03:10.212 q0 stop: stopped by the driver for 212 ms``."""
    queue = "" if event.queue is None else f"q{event.queue} "
    return f"{fmt.clock(event.time_ns, fraction=True)} {queue}{fmt.printable(event.kind)}: {fmt.printable(event.text)}"


def export(events: Iterable[Event], form: str = "text") -> str:
    """Events as a file's content: ``text`` (with the date, in UTC), ``csv`` or ``json`` (JSON lines)."""
    if form == "json":
        return "".join(
            json.dumps({"time_ns": e.time_ns, "kind": e.kind, "queue": e.queue, "text": e.text}) + "\n" for e in events
        )
    if form == "csv":
        rows = ["time,time_ns,kind,queue,text\n"]
        for e in events:
            quoted = '"' + e.text.replace('"', '""') + '"'
            rows.append(f"{fmt.timestamp(e.time_ns)},{e.time_ns},{e.kind},{'' if e.queue is None else e.queue},{quoted}\n")
        return "".join(rows)
    if form == "text":
        return "".join(
            f"{fmt.timestamp(e.time_ns)} {'' if e.queue is None else f'q{e.queue} '}{e.kind}: {fmt.printable(e.text)}\n"
            for e in events
        )
    raise ValueError(f"no such form: {form}")
