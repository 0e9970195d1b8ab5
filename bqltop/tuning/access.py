"""Reading and writing knobs of one end of a device: the only part of tuning/ that asks the kernel.

The seam: whatever has these methods can stand in for it (tests put a kernel there that refuses on demand).
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from bqltop.kernel import ethtool, netns, rtnl_set
from bqltop.kernel.ethtool import Ethtool, EthtoolError
from bqltop.kernel.nlmsg import Requests
from bqltop.kernel.sysfs import HZ, unit_of
from bqltop.kernel.sysfs_set import SysfsSettings
from bqltop.kernel.veth import TSO
from bqltop.model import Namespace
from bqltop.tuning.knobs import (
    FEATURES,
    KNOBS,
    Knob,
    Setting,
    Source,
    Value,
    bounds,
    parse_qdisc,
    qdisc_knob,
    show_qdisc,
)

GROUPS = {Source.COALESCE: ethtool.COALESCE, Source.RINGS: ethtool.RINGS, Source.CHANNELS: ethtool.CHANNELS}
UNSUPPORTED = "the driver does not have it"
_BQL = "queues/tx-{queue}/byte_queue_limits/{name}"


@dataclass(frozen=True, slots=True)
class Reading:
    """A knob's value, and ``raw``: what it takes to put back exactly this (JSON), None where the value is enough."""

    value: Value
    raw: Any = None


@dataclass(frozen=True, slots=True)
class Identity:
    """Which device this is, so that another one of the same name is not taken for it."""

    ifindex: int
    sysfs_inode: int
    netns_inode: int
    boot: str


def boot_id() -> str:
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()


class Access:
    """The knobs of one device in one namespace. Every method raises OSError with the kernel's sentence.

    ``identity`` is taken when this is made, or given: then it must be that device, whatever its name is now. A
    renamed device is still found; one that was deleted or re-created is ENODEV, and never is the newcomer written
    to. Reading does not look whether the device is still the same: call ``confirm`` first where that matters.
    """

    def __init__(self, name: str, ns: Namespace | None = None, driver: str | None = None,
                 identity: Identity | None = None):  # fmt: skip
        self.ns = ns or netns.current()
        self.driver = driver
        self._sysfs = SysfsSettings(self.ns)
        self._ethtool: Ethtool | None = None
        self._requests: Requests | None = None
        self._name = name
        try:
            self.identity = identity or self._identify()
            self.confirm()
            self._ethtool = Ethtool(self.ns)
            self._requests = Requests(self.ns)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        for part in (self._sysfs, self._ethtool, self._requests):
            if part is not None:
                part.close()

    @property
    def last_name(self) -> str:
        """The device's name when it was last confirmed."""
        return self._name

    def confirm(self) -> str:
        """The device's name now. Raises OSError(ENODEV) when it is gone."""
        if not self._is_ours(self._name):
            found = [name for name in self._sysfs.devices() if self._is_ours(name)]
            if not found:
                raise OSError(errno.ENODEV, f"{self._name} is gone, or another device has its name now")
            self._name = found[0]
        return self._name

    def _identify(self) -> Identity:
        try:
            return Identity(*self._sysfs.identity(self._name), self.ns.inode, boot_id())
        except (FileNotFoundError, NotADirectoryError):
            raise OSError(errno.ENODEV, f"there is no device {self._name}") from None

    def _is_ours(self, name: str) -> bool:
        try:
            return self._sysfs.identity(name) == (self.identity.ifindex, self.identity.sysfs_inode)
        except OSError:
            return False

    # what there is

    def knobs(self) -> list[Knob]:
        """The knobs this device could have. Those of a kind it lacks altogether (a sysfs folder) are left out;
        those that ethtool refuses stay, with the reason."""
        name = self._name
        files = {*self._sysfs.entries(name, ""), *(f"cdc_ncm/{f}" for f in self._sysfs.entries(name, "cdc_ncm"))}
        absent = set() if self._sysfs.entries(name, "queues/tx-0/byte_queue_limits") else {Source.BQL}
        found = [
            knob for knob in KNOBS.values()
            if knob.source not in absent and (knob.source is not Source.SYSFS or knob.name in files)
        ]  # fmt: skip
        return found + self._qdisc_knobs()

    def _qdisc_knobs(self) -> list[Knob]:
        root = self.qdisc()
        return [qdisc_knob(root.kind, parameter) for parameter in root.parameters] if root else []

    def knob(self, id: str) -> Knob | None:
        """The knob of that name, as far as this device could have it."""
        return KNOBS.get(id) or next((knob for knob in self._qdisc_knobs() if knob.id == id), None)

    def queues(self, knob: Knob) -> tuple[int | None, ...]:
        """The queues the knob exists for; (None,) for one of the whole device."""
        return tuple(self._sysfs.tx_queues(self._name)) if knob.per_queue else (None,)

    def setting(self, knob: Knob, queue: int | None = None) -> Setting:
        """The knob with its value now (of one queue, or all), its bounds, and why it cannot be set if so."""
        queues = self.queues(knob) if queue is None else (queue,)
        values, why, number = (), None, None
        try:
            values = tuple(self.read(knob, one).value for one in queues)
            self.may_set(knob, queues[0] if queues else None)
        except OSError as error:
            why, number = error.strerror, error.errno
        except LookupError as error:
            why = str(error.args[0])
        low, high = bounds(knob, self._maximum(knob), HZ)
        unit = unit_of(self.driver).value if knob.unit == "queue" else knob.unit
        return Setting(knob, self._name, self.ns.name, values, queues, low, high, unit, why, number)

    def may_set(self, knob: Knob, queue: int | None) -> None:
        """Raise what stands in the way of setting the knob: OSError in the kernel's words, else LookupError."""
        if knob.source in (Source.BQL, Source.SYSFS):
            self._sysfs.may_write(self._name, self._path(knob, queue))
        else:
            self._ethtool.may_set()
        if knob.source is Source.FEATURE and all(feature.fixed for feature in self._features(knob).values()):
            raise LookupError("the driver has it fixed")
        if knob.source is Source.QDISC:
            root = self.qdisc()
            if root and root.stuck:
                raise LookupError(root.stuck)

    def _maximum(self, knob: Knob) -> int | None:
        if knob.source not in (Source.RINGS, Source.CHANNELS):
            return None
        try:
            return self._ethtool.get(GROUPS[knob.source], self.identity.ifindex).get(f"{knob.name}-max")
        except EthtoolError:
            return None

    # values

    def read(self, knob: Knob, queue: int | None = None) -> Reading:
        """The value now. Raises OSError; LookupError (with a sentence) where the driver does not have the knob."""
        index = self.identity.ifindex
        if knob.source in (Source.BQL, Source.SYSFS):
            return Reading(int(self._sysfs.read(self._name, self._path(knob, queue))))
        if knob.source is Source.LINK:
            return Reading(int(self._sysfs.read(self._name, "tx_queue_len")))
        if knob.source is Source.FEATURE:
            return self._read_feature(knob)
        if knob.source in (Source.QDISC, Source.QDISC_OPTION):
            return self._read_qdisc(knob)
        values = self._ethtool.get(GROUPS[knob.source], index)
        if knob.name not in values:
            raise LookupError(UNSUPPORTED)
        return Reading(values[knob.name])

    def _features(self, knob: Knob) -> dict[str, ethtool.Feature]:
        """The kernel's offloads behind the knob."""
        known = self._ethtool.features(self.identity.ifindex)
        return {name: feature for name, feature in known.items() if fnmatchcase(name, FEATURES[knob.name])}

    def _set_features(self, knob: Knob, wanted: dict[str, bool]) -> None:
        free = {name for name, feature in self._features(knob).items() if not feature.fixed}
        self._ethtool.set_features(self.identity.ifindex, **{name: on for name, on in wanted.items() if name in free})

    def _read_feature(self, knob: Knob) -> Reading:
        mine = {name: feature.active for name, feature in self._features(knob).items()}
        if not mine:
            raise LookupError(UNSUPPORTED)
        # veth decides by NETIF_F_ALL_TSO, which is fewer than ethtool's word covers
        decisive = [on for name, on in mine.items() if name in TSO] or mine.values()
        return Reading(int(any(decisive)), mine)

    def _read_qdisc(self, knob: Knob) -> Reading:
        root = self.qdisc()
        if root is None:
            raise LookupError("there is no qdisc while the device is down")
        raw = {"kind": root.kind, "handle": root.handle, "options": root.options.hex()}
        if knob.source is Source.QDISC:
            return Reading(show_qdisc(root.kind, root.parameters), raw)
        if knob.name not in root.parameters:
            raise LookupError(f"the qdisc is {root.kind} now, which has no {knob.name}")
        return Reading(root.parameters[knob.name], raw)

    def write(self, knob: Knob, queue: int | None, value: Value) -> None:
        """Set it. Raises OSError with the kernel's sentence, ValueError for a qdisc parameter that there is not."""
        index, name = self.identity.ifindex, self.confirm()
        if knob.source in (Source.BQL, Source.SYSFS):
            self._sysfs.write(name, self._path(knob, queue), str(value))
        elif knob.source is Source.LINK:
            rtnl_set.set_txqueuelen(self._requests, index, value)
        elif knob.source is Source.FEATURE:
            self._set_features(knob, dict.fromkeys(self._features(knob), bool(value)))
        elif knob.source is Source.QDISC:
            rtnl_set.replace_root(self._requests, index, *parse_qdisc(value))
        elif knob.source is Source.QDISC_OPTION:
            rtnl_set.change_root(self._requests, index, {knob.name: value})
        else:
            self._ethtool.set(GROUPS[knob.source], index, **{knob.name: value})

    def restore(self, knob: Knob, queue: int | None, old: Reading) -> None:
        """Put back what ``read`` gave. Raises OSError."""
        self.confirm()
        if knob.source is Source.FEATURE:
            self._set_features(knob, old.raw)
        elif knob.source in (Source.QDISC, Source.QDISC_OPTION):
            root = rtnl_set.RootQdisc(old.raw["kind"], old.raw["handle"], bytes.fromhex(old.raw["options"]), {})
            rtnl_set.restore_root(self._requests, self.identity.ifindex, root)
        else:
            self.write(knob, queue, old.value)

    def qdisc(self) -> rtnl_set.RootQdisc | None:
        """The root qdisc; None while the device is down."""
        return rtnl_set.root_qdisc(self._requests, self.identity.ifindex)

    def limit(self, queue: int) -> int:
        """BQL's limit of a queue now."""
        return int(self._sysfs.read(self._name, _BQL.format(queue=queue, name="limit")))

    def _path(self, knob: Knob, queue: int | None) -> str:
        return knob.name if knob.source is Source.SYSFS else _BQL.format(queue=queue, name=knob.name)

    def monitor(self) -> ethtool.Monitor:
        """Notices of ethtool changes in this namespace."""
        return self._ethtool.monitor()
