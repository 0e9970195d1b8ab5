"""The kernel, read at one instant: ``Sampler`` is the live source of samples.

    with Sampler("veth0", netns="blue") as sampler:
        for sample in sampler.every(0.1): ...
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace

from bqltop.attachment import Attachment
from bqltop.kernel import netns, proc, veth
from bqltop.kernel.engine import DeviceGone
from bqltop.kernel.rtnl import Overflow, QdiscChange, Rtnl
from bqltop.model import CpuSample, Device, Event, Namespace, Sample

TICK_S = 0.1
"""Longest time between two looks at the wrapping counters: 100 Gbit/s of bytes wrap 32 bits in 0.34 s."""

SLOW_S = 1.0
"""How often what changes rarely is read: per-CPU times, veth's NAPI mode."""


class NoSuchDevice(LookupError):
    """The device is not there; the text names those that are."""


class Sampler:
    """Samples of one device. Opening it raises NoSuchDevice or NetnsError; everything else that is missing is said in
    the samples' ``probes``. To be used by one thread at a time; ``close`` and ``interval`` from any."""

    def __init__(self, device: str | int, netns: str | Namespace | None = None, use_bpf: bool = True):
        self.namespace = _namespace(netns)
        self.interval = TICK_S
        self._use_bpf = use_bpf
        self._rtnl = Rtnl(self.namespace)
        self._rtnl.listen()
        found = self._rtnl.device(device)
        if found is None:
            names = ", ".join(name for _, name in self._rtnl.devices())
            where = f" in namespace {self.namespace.name}" if self.namespace.name else ""
            self._rtnl.close()
            raise NoSuchDevice(f'there is no device "{device}"{where}; there are: {names}')
        self.device: Device = found
        self._attachment: Attachment | None = None
        self._epoch = -1
        self._present = True
        self._last: Sample | None = None
        self._cpus: tuple[CpuSample, ...] = ()
        self._slow_due = 0.0
        self._missed = 0
        self._closing = threading.Event()

    @property
    def description(self) -> str:
        return f"{self.device.name}" + (f" in {self.namespace.name}" if self.namespace.name else "")

    def __enter__(self) -> Sampler:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self.release()

    def close(self) -> None:
        """End ``every``. What is open is released by the thread that iterates (or by leaving the ``with``)."""
        self._closing.set()

    def release(self) -> None:
        """Detach the programs and close every descriptor."""
        if self._attachment is not None:
            self._attachment.close()
            self._attachment = None
        self._rtnl.close()

    def every(self, interval_s: float | None = None) -> Iterator[Sample]:
        """A sample now and then one each ``interval_s`` seconds (``self.interval`` may change on the way), until
        closed. A sample that could not be taken in time is left out and counted."""
        self.interval = interval_s or self.interval
        yield self.sample()  # the baseline: attaching takes a moment, the pace begins after it
        planned = time.monotonic() + self.interval
        self._wait_until(planned)
        while not self._closing.is_set():
            yield self.sample(late_ns=max(0, round((time.monotonic() - planned) * 1e9)))
            planned += self.interval
            behind = time.monotonic() - planned
            if behind > self.interval:
                skipped = int(behind / self.interval)
                self._missed += skipped
                planned += skipped * self.interval
            self._wait_until(planned)

    def _wait_until(self, planned: float) -> None:
        """Sleep, with a short look at the wrapping counters at least every TICK_S."""
        while (left := planned - time.monotonic()) > 0:
            if self._closing.wait(min(left, TICK_S)):
                return
            if left > TICK_S and self._attachment is not None and self._present:
                try:
                    self._attachment.tick()
                except DeviceGone:
                    return

    def sample(self, late_ns: int = 0) -> Sample:
        """Everything, now. While the device is away: the last sample again, marked so."""
        started = time.monotonic_ns()
        events = self._follow_changes()
        self._read_slowly()
        try:
            if self._attachment is None or self._attachment.outdated():
                events += self._attach()
            sample = self._read(events)
        except DeviceGone:
            sample = self._away(events)
        cost = proc.own_cost(read_ns=time.monotonic_ns() - started, late_ns=late_ns, missed=self._missed)
        self._last = replace(sample, own=cost)
        return self._last

    def _read(self, events: list[Event]) -> Sample:
        device, rtnl = self.device, self._rtnl
        queues = self._attachment.queues()
        now, wall = time.monotonic_ns(), time.time_ns()
        link = rtnl.link_stats(device.ifindex)
        if link is None:
            raise DeviceGone("the device is not there any more")
        return Sample(
            time_ns=wall,
            monotonic_ns=now,
            device=device,
            queues=queues,
            qdiscs=rtnl.qdiscs(device.ifindex),
            napis=self._attachment.napis(),
            link=link,
            probes=self._attachment.probes(),
            events=tuple(events),
            cpus=self._cpus,
            epoch=self._epoch,
        )

    def _away(self, events: list[Event]) -> Sample:
        """The device is not there (any more): keep what was seen last, and look for it by its name."""
        if self._present:
            events.append(Event(time.time_ns(), "device", f"{self.device.name} is gone"))
            self._present = False
        self._detach()
        last = self._last or Sample(0, 0, self.device, epoch=self._epoch)
        return replace(
            last, time_ns=time.time_ns(), monotonic_ns=time.monotonic_ns(), events=tuple(events), present=False
        )

    def _attach(self) -> list[Event]:
        """A new attachment: the first one, after the device came back, or because it has changed."""
        self._detach()
        found = self._rtnl.device(self.device.name)
        if found is None:
            raise DeviceGone("the device is not there")
        came_back = not self._present
        self.device = replace(found, napi_mode=self._napi_mode())
        self._attachment = Attachment(self._rtnl, self.device, self._use_bpf)
        self._present = True
        self._epoch += 1
        if came_back:
            return [Event(time.time_ns(), "device", f"{found.name} is back (index {found.ifindex})")]
        return []

    def _detach(self) -> None:
        if self._attachment is not None:
            self._attachment.close()
            self._attachment = None

    def _follow_changes(self) -> list[Event]:
        """Read the device anew when the kernel announced that something about it changed."""
        changes = self._rtnl.events()
        if self._present and any(_concerns(change, self.device.ifindex) for change in changes):
            found = self._rtnl.device(self.device.ifindex)
            if found is not None:
                self.device = replace(found, napi_mode=self.device.napi_mode)
        return []

    def _read_slowly(self) -> None:
        now = time.monotonic()
        if now < self._slow_due:
            return
        self._slow_due = now + SLOW_S
        self._cpus = proc.cpus()
        if self._present:
            self.device = replace(self.device, napi_mode=self._napi_mode())

    def _napi_mode(self) -> bool | None:
        if self.device.kind != "veth":
            return None
        link = self._rtnl.link(self.device.ifindex)
        mode = veth.napi_mode(self._rtnl, link) if link else None
        return mode.in_force if mode else None


def _namespace(given: str | Namespace | None) -> Namespace:
    if given is None:
        return netns.current()
    return given if isinstance(given, Namespace) else netns.resolve(given)


def _concerns(change: object, ifindex: int) -> bool:
    return isinstance(change, Overflow) or (not isinstance(change, QdiscChange) and change.ifindex == ifindex)
