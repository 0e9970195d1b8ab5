"""What becomes of a watched device: a state machine over what the kernel says of it. Pure; presence.py feeds it.

A device is known by its index as long as it is there (a rename does not lose it), and by its name while it is away.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from bqltop.kernel.links import Link
from bqltop.kernel.rtnl import Change, Overflow
from bqltop.model import Event, QdiscSample

KINDS: Mapping[str, str] = {
    "deleted": "the device was deleted",
    "returned": "a device of the same name is there again, with another index",
    "moved": "it was moved to another namespace",
    "followed": "bqltop went after it into the other namespace",
    "netns": "the device's namespace is gone, or there again",
    "renamed": "it has another name",
    "up": "it was switched on (IFF_UP)",
    "down": "it was switched off",
    "carrier": "its operational state changed (RFC 2863): a cable, the peer, the driver's reset",
    "mtu": "another MTU",
    "txqueuelen": "another txqueuelen (on tun also the size of the ring)",
    "queues": "another number of TX queues",
    "qdisc": "a qdisc was put in place, replaced, changed or taken away",
    "master": "it became a port of a bridge or bond, or ceased to be one",
    "address": "another hardware address",
    "xdp": "an XDP program was attached or removed",
    "peer": "the other end is another device or moved to another namespace",
    "reset": "its counters fell: the driver began them anew",
}
"""Kind of event -> what it means."""


class Action(IntEnum):
    """What must be done now, the weightier the greater: read the device's particulars anew; take a fresh baseline
    on the same device; attach anew; let go of it."""

    NONE = 0
    REFRESH = 1
    REBASE = 2
    REATTACH = 3
    DETACH = 4


@dataclass(frozen=True, slots=True)
class Step:
    """Events to show and what to do. ``moved_netnsid``/``moved_ifindex``: where the device went, as its old
    namespace numbers it. ``look``: something was missed, ask for the device and call ``look``."""

    events: tuple[Event, ...] = ()
    action: Action = Action.NONE
    moved_netnsid: int | None = None
    moved_ifindex: int | None = None
    look: bool = False


class Lifecycle:
    """One watched device. ``link`` is what was seen of it last, ``present`` whether it is there."""

    def __init__(self, link: Link, tx_queues: int = 1):
        self.link = link
        self.tx_queues = tx_queues
        self.present = True
        self.first_name = link.name

    @property
    def names(self) -> tuple[str, ...]:
        """What it may be called when it returns: its last name, or the one it had at first."""
        return (self.link.name,) if self.link.name == self.first_name else (self.link.name, self.first_name)

    def changes(self, changes: Iterable[Change], time_ns: int) -> Step:
        """What the kernel announced, oldest first."""
        events: list[Event] = []
        action, moved, look = Action.NONE, (None, None), False
        for change in changes:
            if isinstance(change, Overflow):
                look = True
            elif isinstance(change, Link):
                known = self.present and change.ifindex == self.link.ifindex
                if known and change.gone:
                    # The kernel switches a device off before it takes it away: one event is enough.
                    events = [event for event in events if event.kind not in _PART_OF_GOING]
                    events.append(self._went(change, time_ns))
                    action, moved = Action.DETACH, (change.moved_netnsid, change.moved_ifindex)
                elif known:
                    # Its counters are of when it was announced, perhaps older than those of the last look.
                    more, what = self._changed(replace(change, stats=self.link.stats), time_ns)
                    events += more
                    action = max(action, what)
                elif not change.gone and not self.present and change.name in self.names:
                    events.append(self._came(change, time_ns))
                    action, moved = Action.REATTACH, (None, None)
        return Step(tuple(events), action, *moved, look=look)

    def look(self, seen: Link | None, time_ns: int, tx_queues: int | None = None) -> Step:
        """What was found when the kernel was asked: the link with the device's index or, while it is away, with one
        of its names; None if there is none."""
        if seen is None:
            if not self.present:
                return Step()
            return Step((self._went(None, time_ns),), Action.DETACH)
        if not self.present:
            return Step((self._came(seen, time_ns),), Action.REATTACH)
        if seen.ifindex != self.link.ifindex:
            gone = self._went(None, time_ns)
            return Step((gone, self._came(seen, time_ns)), Action.REATTACH)
        events, action = self._changed(seen, time_ns)
        if tx_queues is not None and tx_queues != self.tx_queues:
            text = f"{seen.name} has {_count(tx_queues)} now, {self.tx_queues} before"
            events.append(Event(time_ns, "queues", text))
            self.tx_queues, action = tx_queues, Action.REATTACH
        return Step(tuple(events), action)

    def followed(self, link: Link, where: str, time_ns: int) -> Step:
        """It was found in another namespace, which is now the one to listen in."""
        name = self.link.name
        called = "" if link.name == name else f", where it is called {link.name}"
        self.link, self.present = link, True
        return Step((Event(time_ns, "followed", f"followed {name} into {where}{called}"),), Action.REATTACH)

    def namespace_gone(self, where: str, time_ns: int) -> Step:
        """Its namespace has neither a name nor a process left."""
        present, self.present = self.present, False
        event = Event(time_ns, "netns", f"{where} is gone" + (f", and {self.link.name} with it" if present else ""))
        return Step((event,), Action.DETACH)

    def _went(self, change: Link | None, time_ns: int) -> Event:
        self.present = False
        if change is not None and change.moved_netnsid is not None:
            return Event(time_ns, "moved", f"{self.link.name} was moved to another namespace")
        return Event(time_ns, "deleted", f"{self.link.name} was deleted")

    def _came(self, link: Link, time_ns: int) -> Event:
        self.link, self.present = link, True
        return Event(time_ns, "returned", f"{link.name} is back (index {link.ifindex})")

    def _changed(self, now: Link, time_ns: int) -> tuple[list[Event], Action]:
        before, self.link = self.link, now
        events = [Event(time_ns, kind, text) for kind, text in differences(before, now)]
        if any(event.kind == "reset" for event in events):
            return events, Action.REBASE
        # The qdisc by itself is no event here: qdisc_events says more about it.
        return events, Action.REFRESH if events or now.qdisc != before.qdisc else Action.NONE


_PART_OF_GOING = frozenset(("down", "carrier", "master", "peer", "mtu"))


def differences(before: Link, now: Link) -> list[tuple[str, str]]:
    """(kind, text) of everything that differs between two looks at the same device."""
    name, found = now.name, []
    if name != before.name:
        found.append(("renamed", f"{before.name} is now called {name}"))
    if now.up != before.up:
        found.append(("up", f"{name} was switched on") if now.up else ("down", f"{name} was switched off"))
    elif now.oper_state != before.oper_state:
        found.append(("carrier", f"{name}: operational state {before.oper_state} -> {now.oper_state}"))
    for kind, title, attribute in (
        ("mtu", "MTU", "mtu"),
        ("txqueuelen", "txqueuelen", "tx_queue_len"),
        ("address", "address", "address"),
    ):
        old, new = getattr(before, attribute), getattr(now, attribute)
        if old != new:
            found.append((kind, f"{name}: {title} {old} -> {new}"))
    if now.master != before.master:
        found.append(("master", f"{name} is a port of index {now.master}" if now.master else f"{name} left its bridge or bond"))
    if now.xdp != before.xdp:
        found.append(("xdp", f"{name}: XDP program {'attached' if now.xdp else 'removed'}"))
    if (now.link, now.link_netnsid) != (before.link, before.link_netnsid):
        found.append(("peer", f"{name}: the other end {'moved or is another one' if now.link else 'is gone'}"))
    if _fell(before, now):
        found.append(("reset", f"{name}: the driver began its counters anew"))
    return found


def _fell(before: Link, now: Link) -> bool:
    """Whether the packet counters went back. One alone may: a driver sums its queues without a lock."""
    if before.stats is None or now.stats is None:
        return False
    return now.stats.tx_packets < before.stats.tx_packets and now.stats.tx_bytes < before.stats.tx_bytes


def qdisc_events(before: Sequence[QdiscSample], now: Sequence[QdiscSample], time_ns: int) -> list[Event]:
    """What happened to the qdiscs between two samples. A root that was replaced says all there is to say of the
    children that went and came with it."""
    old, new = {q.parent: q for q in before}, {q.parent: q for q in now}
    events = []
    for parent in sorted(old.keys() | new.keys(), key=lambda parent: (parent != "root", parent)):
        text = _qdisc_text(old.get(parent), new.get(parent))
        if text:
            events.append(Event(time_ns, "qdisc", text, queue=getattr(new.get(parent), "txq", None)))
            if parent == "root" and " -> " in text:
                break
    return events


def _qdisc_text(old: QdiscSample | None, new: QdiscSample | None) -> str | None:
    if new is None:
        return f"qdisc {_called(old)} was taken away"
    if old is None:
        return f"qdisc {_called(new)} was put in place"
    if (old.kind, old.handle) != (new.kind, new.handle):
        return f"qdisc {_called(old)} -> {_called(new)}"
    changed = [f"{key} {old.options.get(key, '-')} -> {value}" for key, value in new.options.items()
               if old.options.get(key) != value and key not in _NO_SETTING]  # fmt: skip
    return f"qdisc {_called(new)}: {', '.join(changed)}" if changed else None


_NO_SETTING = frozenset(("direct_packets_stat",))
"""Counters that the kernel sends among the options."""


def _called(qdisc: QdiscSample) -> str:
    return f"{qdisc.kind} {qdisc.handle}" + (" root" if qdisc.parent == "root" else f" at {qdisc.parent}")


def _count(queues: int) -> str:
    return "1 TX queue" if queues == 1 else f"{queues} TX queues"
