"""Look at the knobs of one device and plan changes of them; nothing here writes anything."""

from __future__ import annotations

import dataclasses
import difflib
import threading
from collections.abc import Mapping

from bqltop.kernel.rtnl_set import RECREATED, other_handle
from bqltop.model import Namespace
from bqltop.tuning import shell
from bqltop.tuning.access import Access
from bqltop.tuning.changes import Plan, warnings
from bqltop.tuning.ends import open_ends
from bqltop.tuning.knobs import PEER_KNOBS, BadValue, Knob, Setting, Source, Value, parse_qdisc, show_qdisc

READ_ONLY = "bqltop runs with --read-only"


class Planner:
    """The knobs of one device and, on a veth, of its peer. Raises OSError(ENODEV) when there is no such device.

    ``access`` makes the reader and writer of one end: ``access(name, ns, driver)``.
    """

    def __init__(self, device: str, ns: Namespace, *, read_only: bool = False, access=Access):
        self.ns, self.read_only = ns, read_only
        self._lock = threading.RLock()
        self.own, self.peer, self.peer_missing = open_ends(device, ns, access)

    def _ends(self) -> list[Access]:
        return [end for end in (self.own, self.peer) if end is not None]

    @property
    def device(self) -> str:
        """The device's name now. Raises OSError(ENODEV) when it is gone."""
        return self.own.confirm()

    # looking

    def knobs(self, queue: int | None = None) -> list[Setting]:
        """Every knob with its value now, bounds, and why it cannot be set if so. Raises OSError(ENODEV)."""
        with self._lock:
            self.own.confirm()
            found = [self._setting(self.own, knob, queue if knob.per_queue else None) for knob in self.own.knobs()]
            if self.peer:
                found += [self._setting(self.peer, knob) for knob in PEER_KNOBS.values()]
            elif self.peer_missing:
                found += [
                    Setting(knob, "peer", None, why_not=self.peer_missing) for knob in PEER_KNOBS.values()
                ]
            return found

    def setting(self, id: str, queue: int | None = None) -> Setting:
        """One knob. Raises BadValue for one that this device cannot have, OSError(ENODEV)."""
        with self._lock:
            end, knob = self._find(id)
            return self._setting(end, knob, queue)

    def _setting(self, end: Access, knob: Knob, queue: int | None = None) -> Setting:
        setting = end.setting(knob, queue)
        if self.read_only and setting.values:
            return dataclasses.replace(setting, why_not=READ_ONLY, errno=None)
        return setting

    def _find(self, id: str) -> tuple[Access, Knob]:
        knob = PEER_KNOBS.get(id) or self.own.knob(id)
        if knob is None:
            known = [knob.id for knob in self.own.knobs()] + [*PEER_KNOBS]
            close = difflib.get_close_matches(id, known, 1)
            meant = f"did you mean {close[0]}?" if close else f"there are: {', '.join(known)}"
            raise BadValue(f"{self.own.last_name} has no knob {id!r}; {meant}")
        if not knob.peer:
            return self.own, knob
        if self.peer is None:
            raise BadValue(f"{id}: {self.peer_missing or 'this device has no peer'}")
        return self.peer, knob

    # planning

    def plan(self, assignments: Mapping[str, str], queue: int | None = None) -> list[Plan]:
        """What setting these would do; nothing is written. Per-queue knobs go to ``queue``, or to every queue.

        Raises BadValue (one plain line) for an unknown knob, value or queue, OSError(ENODEV).
        """
        with self._lock:
            self.own.confirm()
            return [self._plan(id, text, queue, assignments) for id, text in assignments.items()]

    def _plan(self, id: str, text: str, queue: int | None, together: Mapping[str, str]) -> Plan:
        end, knob = self._find(id)
        queue = queue if knob.per_queue else None
        if queue is not None and queue not in end.queues(knob):
            raise BadValue(f"{end.last_name} has no TX queue {queue}; there are {len(end.queues(knob))}")
        setting = self._setting(end, knob, queue)
        asked = setting.check(text)
        if asked is None:
            raise BadValue(f"{id} needs a value")

        def now(other: str) -> tuple[Value, ...]:
            return self._values_with(other, queue, together)

        return Plan(
            knob=knob, device=end.last_name, netns=end.ns.name, queues=setting.queues, old=setting.values, asked=asked,
            command=self._command(end, knob, asked, single(setting.queues)), warnings=warnings(setting, asked, now),
            cuts_traffic=knob.cuts, refused=setting.why_not, errno=setting.errno,
        )  # fmt: skip

    def _values_with(self, id: str, queue: int | None, together: Mapping[str, str]) -> tuple[Value, ...]:
        """The values a knob will have when the assignments of one plan are in force; () where it does not exist."""
        try:
            end, knob = self._find(id)
            if id in together:
                return (knob.parse(together[id]),)
            return end.setting(knob, queue if knob.per_queue else None).values
        except (BadValue, OSError):
            return ()

    def _command(self, end: Access, knob: Knob, value: Value, queue: int | None) -> str:
        if knob.source not in (Source.QDISC, Source.QDISC_OPTION):
            return shell.command(knob, end.last_name, end.ns, value, queue)
        root = end.qdisc()
        fixed = root is not None and root.kind in RECREATED and root.handle
        if knob.source is Source.QDISC_OPTION and root is not None:
            value = show_qdisc(root.kind, (root.parameters if fixed else {}) | {knob.name: value})
        if fixed and parse_qdisc(str(value))[0] == root.kind:
            return shell.recreate_qdisc(end.last_name, end.ns, value, other_handle(root.handle))
        return shell.command(knob, end.last_name, end.ns, value, queue)


def single(queues: tuple[int | None, ...]) -> int | None:
    return queues[0] if len(queues) == 1 else None
