"""Somebody else's changes: ``ethtool`` in another shell, an echo into sysfs, another bqltop.

ethtool's are announced (its monitor group); sysfs, the queue length and the qdisc are not and are looked at.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from bqltop.kernel import netns, sysfs
from bqltop.kernel.ethtool import Monitor
from bqltop.model import Event, Namespace, QueueSample, Sample
from bqltop.tuning.access import Access
from bqltop.tuning.changes import span, subject
from bqltop.tuning.knobs import KNOBS, PEER_KNOBS, Knob, Source, Value

EVENT_KIND = "setting"
QDISC = "qdisc"
_ANNOUNCED = {Source.COALESCE: "coalesce", Source.RINGS: "rings", Source.CHANNELS: "channels", Source.FEATURE: "features"}
_BQL_FIELDS = {"limit_min": "limit_min", "limit_max": "limit_max", "hold_time": "hold_time_ms",
               "stall_thrs": "stall_threshold_ms"}  # fmt: skip
Key = tuple[str, int | None]
"""Knob id and queue."""


@dataclass
class _Watched:
    """One end, the knobs looked at there, and what they were."""

    end: Access
    knobs: list[Knob]
    monitor: Monitor | None
    known: dict[Key, Value] = field(default_factory=dict)


class Foreign:
    """Compares the values of all ends with what they were, or with what we set ourselves (``ours``)."""

    def __init__(self, ends: Sequence[Access], ns: Namespace):
        self._watched = [self._watch(end, peer=i > 0) for i, end in enumerate(ends)]
        self._files: sysfs.QueueFiles | None = None
        self._sysfs: int | None = None
        with contextlib.suppress(OSError, netns.NetnsError):
            self._sysfs = netns.sysfs_dir(ns)
        self._first = True
        self._ours_ns = 0

    @staticmethod
    def _watch(end: Access, peer: bool) -> _Watched:
        known = {knob.id for knob in end.knobs()}
        knobs = list(PEER_KNOBS.values()) if peer else [KNOBS[id] for id in KNOBS if id in known]
        try:
            monitor = end.monitor()
        except (OSError, KeyError, netns.NetnsError):
            monitor = None  # then everything is looked at every time
        return _Watched(end, knobs, monitor)

    def close(self) -> None:
        for watched in self._watched:
            if watched.monitor:
                watched.monitor.close()
        if self._files:
            self._files.close()
        if self._sysfs is not None:
            os.close(self._sysfs)
            self._sysfs = None

    def ours(self, end: Access, knob: Knob, queues: Sequence[int | None], values: Sequence[Value]) -> None:
        """We have just set this: no news."""
        self._ours_ns = time.monotonic_ns()
        for watched in self._watched:
            if watched.end is end and knob.source in (Source.QDISC, Source.QDISC_OPTION):
                watched.known.pop((QDISC, None), None)  # it is one object with all its parameters: look afresh
            elif watched.end is end:
                watched.known.update({(knob.id, queue): value for queue, value in zip(queues, values, strict=False)})

    def poll(self, sample: Sample | None = None) -> list[Event]:
        """One event for each knob that has another value than before; the first call only takes the values in.

        ``sample``: the newest of the device. What BQL is set to is in it already, which saves reading it (5 ms with
        64 queues); one from before our own last change is of no use.
        """
        events = []
        for i, watched in enumerate(self._watched):
            values = self._values(watched)
            if i == 0 and any(knob.source is Source.BQL for knob in watched.knobs):
                values.update(self._bql_values(watched, sample))
            events += _events(watched, values)
            watched.known.update(values)
        self._first = False
        return events

    def _values(self, watched: _Watched) -> dict[Key, Value]:
        announced = self._announced(watched)
        found = {}
        for knob in watched.knobs:
            group = _ANNOUNCED.get(knob.source)
            if knob.source is Source.BQL or (group and announced is not None and group not in announced):
                continue
            with contextlib.suppress(OSError, LookupError):
                found[knob.id, None] = watched.end.read(knob).value
        return found

    def _announced(self, watched: _Watched) -> set[str] | None:
        """The ethtool groups to look at; None: all of them."""
        if watched.monitor is None or self._first:
            return None
        try:
            return {group for index, group in watched.monitor.drain() if index == watched.end.identity.ifindex}
        except OSError:
            return None  # ENOBUFS: too much happened to be told one by one

    def _bql_values(self, watched: _Watched, sample: Sample | None) -> dict[Key, Value]:
        if sample is not None:
            fresh = sample.present and sample.monotonic_ns > self._ours_ns
            return {(id, queue.index): value for queue in sample.queues for id, value in _bql_of(queue)} if fresh else {}
        if self._sysfs is None:
            return {}
        name = watched.end.last_name
        count = sysfs.tx_queue_count(self._sysfs, name)
        if self._files is None or (self._files.device, self._files.count) != (name, count):
            if self._files:
                self._files.close()
            self._files = sysfs.QueueFiles(self._sysfs, name, queues=count)
        return {(id, queue.index): value for queue in self._files.read() for id, value in _bql_of(queue)}


def _bql_of(queue: QueueSample) -> list[tuple[str, int]]:
    values = [(id, getattr(queue, name)) for id, name in _BQL_FIELDS.items()]
    return [(id, value) for id, value in values if value is not None]


def _events(watched: _Watched, values: dict[Key, Value]) -> list[Event]:
    """What differs from what was known, the queues of one knob together."""
    changed: dict[str, list[tuple[int | None, Value, Value]]] = {}
    for (id, queue), value in values.items():
        before = watched.known.get((id, queue))
        if before is not None and before != value:
            changed.setdefault(id, []).append((queue, before, value))
    return [_event(next(knob for knob in watched.knobs if knob.id == id), found) for id, found in changed.items()]


def _event(knob: Knob, found: list[tuple[int | None, Value, Value]]) -> Event:
    queues = [queue for queue, _, _ in found]
    old, new = span(knob, [before for _, before, _ in found]), span(knob, [value for _, _, value in found])
    text = f"somebody set {subject(knob.id, queues)}: {old} -> {new}"
    return Event(time.time_ns(), EVENT_KIND, text, queues[0] if len(queues) == 1 else None)
