"""The kernel, read at one instant: ``Sampler`` is the live source of samples.

    with Sampler("veth0", netns="blue") as sampler:
        for sample in sampler.every(0.1): ...
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from bqltop.attachment import Attachment
from bqltop.holders import Holders
from bqltop.kernel import bpfstats, proc
from bqltop.kernel import netns as namespaces
from bqltop.kernel.engine import DeviceGone
from bqltop.lifecycle import Action, qdisc_events
from bqltop.model import CpuSample, Device, Event, Namespace, Sample
from bqltop.pace import Paced
from bqltop.presence import NoSuchDevice, Presence

if TYPE_CHECKING:
    from bqltop.probe import Prober

__all__ = ["NoSuchDevice", "Sampler"]

CPUS_S = 1.0
"""How often per-CPU times are read: their clock ticks once in 10 ms."""


class Sampler(Paced):
    """Samples of one device. Opening it raises NoSuchDevice or NetnsError; everything else that is missing is said in
    the samples' ``probes``. To be used by one thread at a time; ``close`` and ``interval`` from any."""

    def __init__(
        self,
        device: str | int,
        netns: str | Namespace | None = None,
        use_bpf: bool = True,
        again: Callable[[], Namespace | None] | None = None,
        sojourn: bool = False,
        completions: bool = False,
    ):
        """``again`` finds the namespace anew after it was gone (a container that was started again). ``completions``: see
        each completion by itself, at the price of a debug exception each (kernel.completions)."""
        super().__init__()
        self.stream = 0
        """Which of several devices of one run this is."""
        self.sojourn = sojourn
        """Sample packets for the time they wait. May be changed at any time; the next sample begins a new epoch."""
        self.prober: Prober | None = None
        """Started already; its figures go into the samples, and it is closed with the sampler."""
        self.account = False
        """Put the kernel's account of our programs into the samples, while somebody holds kernel.bpfstats.Statistics."""
        self._use_bpf, self._completions = use_bpf, completions
        self._presence = Presence(device, _namespace(netns), again)
        self._attachment: Attachment | None = None
        self._epoch = -1
        self._last: Sample | None = None
        self._attaching_ns = 0
        self._cpus: tuple[CpuSample, ...] = ()
        self._cpus_due = 0.0
        self._holders = Holders()

    @property
    def device(self) -> Device:
        """What is known of the device, also while it is away."""
        return self._presence.device

    @property
    def namespace(self) -> Namespace:
        """Where the device is, or was last."""
        return self._presence.namespace

    @property
    def description(self) -> str:
        return f"{self.device.name}" + (f" in {self.namespace.name}" if self.namespace.name else "")

    def release(self) -> None:
        """Detach the programs and close every descriptor."""
        self._detach()
        if self.prober:
            self.prober.close()
        self._presence.close()

    def every(self, interval_s: float | None = None) -> Iterator[Sample]:
        """A sample now and then one each ``interval_s`` seconds (``self.interval`` may change on the way), until
        closed. A sample that could not be taken within an interval of its time is left out and counted, and so is one
        for which the kernel did not answer."""
        self.interval = interval_s or self.interval
        for late_ns in self.pace.instants(self.tick):
            sample = self.attempt(late_ns)
            if sample is not None:
                yield sample

    def tick(self) -> None:
        """A short look at what must not be missed between samples."""
        if self._attachment is not None:
            with contextlib.suppress(DeviceGone):  # the next sample will say so
                self._attachment.tick()

    def attempt(self, late_ns: int = 0) -> Sample | None:
        """``sample``; None, which counts as a missed one, when the kernel did not answer within the netlink timeout."""
        try:
            return self.sample(late_ns)
        except TimeoutError:
            self.pace.missed += 1
            return None

    def sample(self, late_ns: int = 0) -> Sample:
        """Everything, now. While the device is away: the last sample again, marked so."""
        started, self._attaching_ns = time.monotonic_ns(), 0
        events = self._follow()
        sample = self._read(events) or self._away(events)
        strays = self._attachment.strays() if self._attachment is not None else None
        cost = proc.own_cost(time.monotonic_ns() - started - self._attaching_ns, late_ns, self.pace.missed, strays)
        if self.account and self._attachment is not None:
            spent_ns, runs = bpfstats.read(self._attachment.programs())
            cost = replace(cost, bpf_ns=spent_ns, bpf_runs=runs)
        self._last = replace(sample, own=cost, probe=self.prober.sample() if self.prober else None)
        return self._last

    def _follow(self) -> list[Event]:
        """What has become of the device since the last sample, and act on it."""
        events, action = self._presence.step()
        if action in (Action.DETACH, Action.REATTACH):
            self._detach()
        elif action is Action.REBASE:
            self._epoch += 1
        return events

    def _read(self, events: list[Event]) -> Sample | None:
        """A sample of a device that is there; None when it turns out that it is not."""
        presence = self._presence
        if not presence.present or presence.rtnl is None:
            return None
        try:
            held = self._attachment
            if held is None or held.sojourn != self.sojourn or held.outdated():
                self._attach()
            queues = self._attachment.queues()
        except DeviceGone:
            events += presence.look()[0]
            self._detach()
            return None
        now, wall = time.monotonic_ns(), time.time_ns()
        device = presence.device
        link = presence.rtnl.link_stats(device.ifindex)
        if link is None:
            return None
        qdiscs = presence.rtnl.qdiscs(device.ifindex)
        if self._last is not None and self._last.present and self._last.epoch == self._epoch:
            events += qdisc_events(self._last.qdiscs, qdiscs, wall)
        return Sample(
            time_ns=wall,
            monotonic_ns=now,
            device=device,
            queues=queues,
            qdiscs=qdiscs,
            napis=self._attachment.napis(),
            link=link,
            probes=self._attachment.probes(),
            events=tuple(events),
            cpus=self._read_cpus(),
            tun_queues=self._holders.read(device, presence.namespace, link, queues),
            epoch=self._epoch,
            stream=self.stream,
        )

    def _away(self, events: list[Event]) -> Sample:
        """The device is not there: what was seen last, marked so."""
        last = self._last or Sample(0, 0, self.device, epoch=self._epoch, stream=self.stream)
        return replace(
            last, time_ns=time.time_ns(), monotonic_ns=time.monotonic_ns(), events=tuple(events), present=False
        )

    def _attach(self) -> None:
        """Open everything on the device: the first time, after it came back, or because it has changed. What that takes is
        not what a sample takes."""
        began = time.monotonic_ns()
        self._detach()
        self._attachment = Attachment(self._presence.rtnl, self.device, self._use_bpf, self.sojourn, self._completions)
        self._epoch += 1
        self._attaching_ns += time.monotonic_ns() - began

    def _detach(self) -> None:
        if self._attachment is not None:
            self._attachment.close()
            self._attachment = None

    def _read_cpus(self) -> tuple[CpuSample, ...]:
        now = time.monotonic()
        if now >= self._cpus_due:
            self._cpus_due, self._cpus = now + CPUS_S, proc.cpus()
        return self._cpus


def _namespace(given: str | Namespace | None) -> Namespace:
    if given is None:
        return namespaces.current()
    return given if isinstance(given, Namespace) else namespaces.resolve(given)
