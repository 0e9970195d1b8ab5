"""One attachment: everything that is open on one net_device, from its finding to its going."""

from __future__ import annotations

import contextlib

from bqltop.counting import QueueCounter
from bqltop.kernel import bpf, sysfs, target
from bqltop.kernel.btf import BtfError
from bqltop.kernel.engine import Engine
from bqltop.kernel.rtnl import Rtnl
from bqltop.model import Device, Namespace, NapiSample, Probe, QueueSample


class Attachment:
    """Sources of one device's queues and NAPI instances. Without eBPF it says why in ``why_no_bpf`` and reads sysfs.

    ``sojourn``: also sample packets for the time they wait. ``completions``: see each by itself. Raises DeviceGone from
    ``queues`` and ``tick`` when the device is not the one any more.
    """

    def __init__(self, rtnl: Rtnl, device: Device, use_bpf: bool = True, sojourn: bool = False, completions: bool = False):
        self.device, self.sojourn = device, sojourn
        self.engine: Engine | None = None
        self.why_no_bpf: str | None = None if use_bpf else "switched off by --no-bpf"
        self._files = sysfs.QueueFiles(rtnl.sysfs, device.name, sysfs.unit_of(device.driver)) if rtnl.sysfs else None
        if use_bpf:
            try:
                self.engine = _engine(rtnl.namespace, device, self._shows_bql(rtnl), sojourn, completions)
            except (bpf.BpfError, BtfError) as error:
                self.why_no_bpf = str(error)
        self.bql = self.engine.bql if self.engine else bool(self._files and self._files.bql)
        self._counters = self._queue_counters()

    def _shows_bql(self, rtnl: Rtnl) -> bool:
        """Whether sysfs says that the driver has BQL. Kernels before 6.9 show the files for every device, lo too: there
        they say nothing, and only a charge that was made does."""
        return bool(self._files and self._files.bql) and not sysfs.has_bql(rtnl.sysfs, "lo")

    def _queue_counters(self) -> list[QueueCounter]:
        if self.engine is None:
            return []
        unit = sysfs.unit_of(self.device.driver) if self.bql else None
        ms = 1000 / sysfs.HZ
        return [QueueCounter(index, unit, self.engine.bits, ms) for index in range(self.engine.target.queues)]

    def tick(self) -> None:
        """Take notice of counters that wrap and of stops, between samples. Microseconds."""
        if self.engine is None:
            return
        self.engine.snapshot()
        if self.bql:
            for counter, counted in zip(self._counters, self.engine.counters(), strict=True):
                counter.look(*counted)

    def queues(self) -> tuple[QueueSample, ...]:
        """Every TX queue now."""
        if self.engine is None:
            return self._files.read() if self._files else ()
        self.engine.snapshot()
        return tuple(
            counter.sample(reading) for counter, reading in zip(self._counters, self.engine.queues(), strict=True)
        )

    def napis(self) -> tuple[NapiSample, ...]:
        """Every NAPI instance of the device and of its veth peer that has polled since attach."""
        if self.engine is None:
            return ()
        own, peer = self.device.name, self.device.peer.name if self.device.peer else None
        return tuple(
            NapiSample(
                device=own if reading.device == self.engine.target.device else peer or "peer",
                role="device" if reading.device == self.engine.target.device else "peer",
                napi_id=reading.napi_id,
                index=reading.queue if reading.queue >= 0 else None,
                polls=reading.polls,
                work=reading.work,
                full_polls=reading.full,
                work_histogram=reading.histogram,
            )
            for reading in self.engine.napis()
        )

    def outdated(self) -> bool:
        """Whether the device has changed so that a new attachment would see more: another number of queues, or a first
        charge to BQL where none was to be expected."""
        if self.engine is None:
            return False
        if self.engine.real_queues() != self.engine.target.queues:
            return True
        return not self.bql and any(queued for queued, _, _ in self.engine.counters())

    def probes(self) -> tuple[Probe, ...]:
        """What is in force, and for what is not, why."""
        if self.engine is None:
            missing = ("snapshot", "transmit", "napi", "wake", "ring", "completions", "sojourn")
            return (
                *(Probe(name, False, self.why_no_bpf) for name in missing),
                Probe("netlink", True),
                Probe("sysfs", self._files is not None, None if self._files else "its sysfs is out of reach"),
            )
        return (*self.engine.probes(), Probe("netlink", True), Probe("sysfs", self._files is not None))

    def programs(self) -> list[int]:
        """Descriptors of our eBPF programs."""
        return list(self.engine.program_fds().values()) if self.engine else []

    def strays(self) -> int | None:
        """Transmits that no queue's figures have; None without eBPF."""
        return self.engine.strays() if self.engine else None

    def close(self) -> None:
        with contextlib.ExitStack() as stack:
            for source in (self.engine, self._files):
                if source is not None:
                    stack.callback(source.close)


def _engine(namespace: Namespace, device: Device, bql: bool, sojourn: bool, completions: bool) -> Engine:
    bpf.available()
    usb = device.kind is None and target.is_usbnet(device.driver or "")
    with target.Memory() as memory:
        found = target.find(memory, namespace, device.ifindex, device.driver, usb)
    return Engine(found, bql, sojourn, completions)
