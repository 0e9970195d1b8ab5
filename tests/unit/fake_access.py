"""A kernel that keeps settings in a dict and refuses on demand: stands in for tuning.access.Access."""

from __future__ import annotations

import errno
import os

from bqltop.kernel import netns
from bqltop.tuning.access import Identity, Reading, boot_id
from bqltop.tuning.knobs import KNOBS, Setting, Source, bounds


class FakeAccess:
    """``values``: (knob id, queue) -> value. ``refuse``: what the next writes raise. ``keeps``: how a value is rounded."""

    def __init__(self, name, ns=None, driver=None, identity=None):
        self.ns = ns or netns.current()
        self.last_name = name
        self.driver = driver
        self.identity = identity or Identity(1, 4711, self.ns.inode, boot_id())
        self.values = {("limit_min", q): 0 for q in range(4)} | {("limit_max", q): 1000 for q in range(4)}
        self.values |= {("tx-usecs", None): 50, ("adaptive-tx", None): 0, ("ring-tx", None): 256}
        self.limits = dict.fromkeys(range(4), 0)
        self.refuse: dict[tuple[str, int | None], OSError] = {}
        self.keeps = lambda value: value
        self.writes: list[tuple[str, int | None, object]] = []
        self.gone = False
        self.closed = False

    def close(self):
        self.closed = True

    def confirm(self):
        if self.gone:
            raise OSError(errno.ENODEV, f"{self.last_name} is gone")
        return self.last_name

    def knobs(self):
        ids = {id for id, _ in self.values}
        return [knob for knob in KNOBS.values() if knob.id in ids]

    def knob(self, id):
        return KNOBS.get(id)

    def queues(self, knob):
        return tuple(range(4)) if knob.source is Source.BQL else (None,)

    def setting(self, knob, queue=None):
        queues = self.queues(knob) if queue is None else (queue,)
        low, high = bounds(knob, None, 250)
        try:
            values, why = tuple(self.read(knob, q).value for q in queues), None
        except LookupError as error:
            values, why = (), str(error.args[0])
        return Setting(knob, self.last_name, self.ns.name, values, queues, low, high, "packets", why)

    def read(self, knob, queue=None):
        if self.gone:
            raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))
        if (knob.id, queue) not in self.values:
            raise LookupError("the driver does not have it")
        return Reading(self.values[knob.id, queue])

    def write(self, knob, queue, value):
        if self.gone:
            raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))
        if (knob.id, queue) in self.refuse:
            raise self.refuse[knob.id, queue]
        self.writes.append((knob.id, queue, value))
        self.values[knob.id, queue] = self.keeps(value)

    def restore(self, knob, queue, old):
        self.write(knob, queue, old.value)

    def limit(self, queue):
        return self.limits[queue]

    def monitor(self):
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))
