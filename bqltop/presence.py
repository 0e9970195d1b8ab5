"""Keeping hold of a device: where it is, whether it is there, and going after it. The asking side of lifecycle.py.

``Presence`` owns the netlink sockets of the namespace the device is in. Open sockets keep a namespace alive, and
the device in it: when nobody else has the namespace any more they are closed, so that it can go.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import replace

from bqltop.fault import Fault
from bqltop.kernel import netns, sysfs, veth
from bqltop.kernel.rtnl import Rtnl
from bqltop.lifecycle import Action, Lifecycle, Step
from bqltop.model import Device, Event, Namespace

SLOW_S = 1.0
"""How often what the kernel does not announce is asked for: the namespace, the number of queues, NAPI mode."""


class NoSuchDevice(Fault, LookupError):
    """The device is not there; the text names those that are."""


class Presence:
    """One watched device. ``rtnl`` reads its namespace (None while that is gone), ``device`` is what is known of it,
    ``present`` whether it is there. ``again`` finds the first namespace anew after it has gone (a container that was
    started again: discovery.find.again). Opening raises NoSuchDevice, NetnsError. For one thread at a time."""

    def __init__(self, which: str | int, namespace: Namespace | None = None, again: Callable[[], Namespace | None] | None = None):
        self.home = namespace or netns.current()
        self._again = again or self._by_its_name
        self.rtnl: Rtnl | None = Rtnl(self.home)
        try:
            self.rtnl.listen()  # before the first look: nothing may fall between
            link = self.rtnl.link(which)
            if link is None:
                raise NoSuchDevice(no_such_device(self.rtnl, which))
            self.napi: veth.NapiMode | None = None
            self.device = self._read(link)
        except BaseException:
            self.rtnl.close()
            raise
        self._life = Lifecycle(link, self.device.tx_queues)
        self._slow_due = time.monotonic() + SLOW_S

    @property
    def present(self) -> bool:
        return self._life.present

    @property
    def namespace(self) -> Namespace:
        """Where the device is or was last."""
        return self.rtnl.namespace if self.rtnl else self.home

    def close(self) -> None:
        if self.rtnl is not None:
            self.rtnl.close()
            self.rtnl = None

    def step(self) -> tuple[list[Event], Action]:
        """Everything that has happened since the last call and what the caller must do about it: with DETACH let go
        of what it has open on the device, with REATTACH open all of it anew (``device`` and ``rtnl`` may be other
        ones), with REBASE take a new baseline. Microseconds where nothing happened, 3 ms once a second."""
        now = time.time_ns()
        events: list[Event] = []
        action = Action.NONE
        for step in self._steps(now):
            events += step.events
            action = _both(action, step.action)
        if self.present and action in (Action.REFRESH, Action.REBASE, Action.REATTACH):
            action = self._refresh(action)
        return events, action

    def _steps(self, now: int):
        """What was announced, then what must be asked for, each in its turn."""
        slow = time.monotonic() >= self._slow_due
        if slow:
            self._slow_due = time.monotonic() + SLOW_S
        if self.rtnl is not None:
            step = self._life.changes(self.rtnl.events(), now)
            yield step
            if step.moved_netnsid is not None and not self.present:
                yield self._follow(step, now)
            if slow:
                yield self._check_namespace(now)
            if self.rtnl is not None and (step.look or slow):
                yield self._look(now)
        if slow and not self.present:
            yield self._look_at_home(now)

    def look(self) -> tuple[list[Event], Action]:
        """As ``step``, and ask for everything now: for a caller that found the device not to be the one it was."""
        self._slow_due = 0.0
        return self.step()

    # one thing each

    def _look(self, now: int) -> Step:
        rtnl, life = self.rtnl, self._life
        if not life.present:
            for name in life.names:
                link = rtnl.link(name)
                if link is not None:
                    return life.look(link, now)
            return Step()
        link = rtnl.link(life.link.ifindex)
        if link is None:
            return life.look(None, now)
        queues = sysfs.tx_queue_count(rtnl.sysfs, link.name) if rtnl.sysfs is not None else None
        step = life.look(link, now, queues)
        return step if step.action else replace(step, action=Action.REFRESH)

    def _follow(self, moved: Step, now: int) -> Step:
        """Go after a device that was moved. Where there is no way into that namespace, wait for it here."""
        where = self.rtnl.namespace_of(moved.moved_netnsid)
        if where is None:
            text = f"{self._life.link.name} cannot be followed: its new namespace has no name or process to be seen"
            return Step((Event(now, "moved", text),))
        return self._go_to(where, moved.moved_ifindex or self._life.link.name, now)

    def _go_to(self, where: Namespace, which: str | int, now: int) -> Step:
        try:
            rtnl = Rtnl(where)
            rtnl.listen()
        except (netns.NetnsError, OSError) as error:
            return Step((Event(now, "moved", f"{self._life.link.name} cannot be followed: {error}"),))
        link = rtnl.link(which)
        if link is None:
            rtnl.close()
            return Step()
        self.close()
        self.rtnl = rtnl
        return self._life.followed(link, called(where), now)

    def _check_namespace(self, now: int) -> Step:
        """Let go of a namespace that only we still hold."""
        namespace = self.rtnl.namespace
        if netns.exists(namespace):
            return Step()
        found = netns.relocate(namespace)
        if found is not None:
            self.rtnl.namespace = found
            return Step()
        self.close()
        return self._life.namespace_gone(called(namespace), now)

    def _look_at_home(self, now: int) -> Step:
        """While it is away: it may have come back to where it was first, or that namespace may be there again."""
        if self.rtnl is not None and self.rtnl.namespace.inode == self.home.inode:
            return Step()  # _look has just looked there
        # By its path or name only: nothing of ours is open there any more, so its inode number may be another's by now.
        home = self.home if netns.exists(self.home) else self._again()
        if home is None:
            return Step()
        self.home = home
        with contextlib.suppress(netns.NetnsError, OSError), contextlib.ExitStack() as stack:
            rtnl = stack.enter_context(Rtnl(home))
            rtnl.listen()
            link = next(filter(None, map(rtnl.link, self._life.names)), None)
            if link is not None or self.rtnl is None:
                stack.pop_all()
                self.close()
                self.rtnl = rtnl
            if link is not None:
                return self._life.look(link, now)
        return Step()

    def _by_its_name(self) -> Namespace | None:
        """A new namespace that has the name of the first one."""
        if self.home.name and self.home.path == f"{netns.RUN_NETNS}/{self.home.name}":
            with contextlib.suppress(netns.NetnsError):
                return netns.resolve(self.home.name)
        return None

    def _refresh(self, action: Action) -> Action:
        """Read the device's particulars anew. One that has just gone away is left to the next step."""
        link = self.rtnl.link(self._life.link.ifindex)
        if link is not None:
            self.device = self._read(link)
            self._life.tx_queues = self.device.tx_queues
        return action

    def _read(self, link) -> Device:
        self.napi = veth.napi_mode(self.rtnl, link)
        device, napi = self.rtnl.complete(link), self.napi
        if napi is None:
            return device
        return replace(device, napi_mode=napi.in_force, napi_reason=napi.reason, napi_commands=napi.commands)


def _both(first: Action, second: Action) -> Action:
    """What two steps together ask for: going and coming in one turn is a new attachment."""
    if second in (Action.DETACH, Action.REATTACH):
        return second
    return first if first is Action.DETACH else max(first, second)


def called(namespace: Namespace) -> str:
    """A namespace in a sentence."""
    return f"namespace {namespace.name}" if namespace.name else "the namespace bqltop runs in"


def no_such_device(rtnl: Rtnl, which: str | int) -> str:
    """The sentence for a device that is not there, with those that are."""
    names = [name for _, name in rtnl.devices()]
    shown = ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
    where = f" in {called(rtnl.namespace)}" if rtnl.namespace.name else ""
    return f'there is no device "{which}"{where}; there are: {shown}'
