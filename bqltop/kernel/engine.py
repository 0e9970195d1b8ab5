"""The eBPF engine: programs specialised for one device, and what they have counted.

One ``Engine`` watches one ``Target`` from its making to its closing; a device that is made anew needs a new one. Per
packet nothing leaves the kernel: ``read`` runs the snapshot program and reads the maps as memory.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from bqltop.histogram import LINEAR_WORK_CELLS, LOG_LINEAR_CELLS
from bqltop.kernel import direct
from bqltop.kernel.bpf import BpfError, Module, read_program
from bqltop.kernel.btf import Btf
from bqltop.kernel.completions import Completions, completions_probe, second_argument
from bqltop.kernel.sojourn import OFFSETS as SOJOURN_OFFSETS
from bqltop.kernel.sojourn import SojournReading, Sojourns, arrival_of
from bqltop.kernel.target import Ring, Target
from bqltop.model import Probe

CHUNK = 16
"""TX queues per run of the snapshot program (CHUNK in programs/snapshot.c)."""

PACKETS_AT = 72
"""Offset of ``packets`` in a queue_cell (programs/queues.h)."""

QUEUE_MEMBERS = {
    "state": "state",
    "num_queued": "dql.num_queued",
    "num_completed": "dql.num_completed",
    "limit": "dql.limit",
    "limit_min": "dql.min_limit",
    "limit_max": "dql.max_limit",
    "hold_time": "dql.slack_hold_time",
    "timeouts": "trans_timeout",
    "stall_threshold": "dql.stall_thrs",
    "stall_max": "dql.stall_max",
    "stall_count": "dql.stall_cnt",
}
"""Members of netdev_queue that a sample needs; a kernel may lack the last ones (stall detection: since 6.9)."""

OFFSETS = {
    "netdev_queue": ("state", "dql"),
    "dql": ("num_queued", "num_completed"),
    "net_device": ("real_num_tx_queues", "ifindex", "index_hlist"),
    "net": ("dev_index_head",),
    "napi_struct": ("dev", "napi_id"),
    "sk_buff": ("queue_mapping",),
    "ptr_ring": ("size", "producer", "consumer_head", "queue"),
}
RING_OFFSETS = {
    Ring.NONE: (None, {}),
    Ring.VETH: ("veth", {"veth_rq": ("xdp_ring", "xdp_napi", "napi")}),
    Ring.TUN: ("tun", {"tun_struct": ("tfiles", "numqueues"), "tun_file": ("tx_ring",)}),
    Ring.USBNET: ("usbnet", {"usbnet": ("txq.qlen", "tx_qlen")}),
}


NO_WAKE = "a wake-up is seen at the next poll or transmit: this kernel has neither fentry nor kprobes"
"""Why wake-ups are not timed exactly."""
NO_SOJOURN = "not switched on (--sojourn)"
"""Why packets are not sampled."""


class QueueReading(NamedTuple):
    """One TX queue as the kernel and our programs hold it: raw 32-bit DQL counters, jiffies, bits."""

    state: int
    num_queued: int
    num_completed: int
    limit: int
    limit_min: int
    limit_max: int
    hold_time: int
    timeouts: int
    stall_threshold: int | None
    stall_max: int | None
    stall_count: int | None
    ring_size: int | None
    ring_used: int | None
    stopped_driver_ns: int
    stops_driver: int
    stopped_bql_ns: int
    stops_bql: int
    stopped_ns: int
    packets: int
    busy: int
    wakes_driver: int | None
    wakes_bql: int | None
    torn: int
    inflight_histogram: tuple[int, ...] | None
    completion_size_histogram: tuple[int, ...] | None
    completion_interval_histogram: tuple[int, ...] | None
    sojourn: SojournReading | None = None


class NapiReading(NamedTuple):
    """One NAPI instance: address of its net_device, id, the TX queue it completes (-1: not known), counters."""

    address: int
    device: int
    napi_id: int
    queue: int
    polls: int
    work: int
    full: int
    histogram: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StateBits:
    """Masks of netdev_queue.state, from the kernel's own enum."""

    drv_xoff: int
    stack_xoff: int
    frozen: int

    @classmethod
    def from_btf(cls) -> StateBits:
        def mask(name: str) -> int:
            return 1 << Btf.vmlinux().constant("netdev_queue_state_t", f"__QUEUE_STATE_{name}")

        return cls(mask("DRV_XOFF"), mask("STACK_XOFF"), mask("FROZEN"))


class DeviceGone(BpfError):
    """The device the programs were made for is not there any more."""


class Engine:
    """Programs for one target, attached. Raises BpfError when they cannot be compiled, loaded or attached.

    ``sojourn``: also sample packets for the time they wait. ``completions``: see each completion by itself, where the
    driver has BQL and the machine a breakpoint to spare."""

    def __init__(self, target: Target, bql: bool, sojourn: bool = False, completions: bool = False):
        self.target, self.bql = target, bql or target.bql
        self._with_sojourn = sojourn
        self._sojourns: Sojourns | None = None
        self._completions, self._why_no_completions = _breakpoint() if completions and self.bql else (None, None)
        self.bits = StateBits.from_btf()
        self._layout = _QueueLayout()
        sampling = ("sojourn.c",) if sojourn else ()
        exact = ("complete.c",) if self._completions else ()
        try:
            self._module = Module(
                read_program("common.h", "queues.h", *sampling, "snapshot.c", "events.c", "wake.c", *exact), self._constants()
            )
            try:
                self._open()
            except BaseException:
                self._module.close()
                raise
        except BaseException:
            if self._completions:
                self._completions.close()
            raise

    def _constants(self) -> dict[str, int]:
        target = self.target
        self._napi_cells = target.ring_count + 2 * target.queues + 32
        carry = target.queues > 1 or not (target.own_napi or target.ring is Ring.VETH)
        constants = {
            "DEV": target.device,
            "PEER": target.peer,
            "TXQ": target.txq,
            "NET": target.net,
            "IFINDEX": target.ifindex,
            "QUEUES": target.queues,
            "NAPIS": self._napi_cells,
            "PEER_NAPIS": target.ring_count,
            "RING": int(target.ring),
            "RING_BASE": target.ring_base,
            "RING_COUNT": target.ring_count,
            "BQL": int(self.bql),
            "CARRY": int(carry),
        }
        btf = Btf.vmlinux()
        constants |= _offsets(btf, OFFSETS) | direct.constants()
        if self._with_sojourn:
            constants |= _offsets(btf, SOJOURN_OFFSETS)
            constants |= {"SOJOURN": 1, "ARRIVAL": int(arrival_of(target, self.bql))}
        constants |= {"DRV_XOFF": self.bits.drv_xoff, "STACK_XOFF": self.bits.stack_xoff, "FROZEN": self.bits.frozen}
        constants["SIZE_netdev_queue"] = btf.size("netdev_queue")
        constants["OFF_first_argument"] = _first_argument(btf)
        if self._completions:
            constants |= {"EVERY_COMPLETION": 1, "OFF_second_argument": second_argument(btf)}
        module, offsets = RING_OFFSETS[target.ring]
        if module:
            constants |= _offsets(Btf.module(module), offsets)
        if target.ring is Ring.VETH:
            constants["SIZE_veth_rq"] = Btf.module("veth").size("veth_rq")
        self.carries = carry
        return constants

    def _open(self) -> None:
        module = self._module
        self._snapshot = module.runner("snapshot")
        if self.carries:
            module.attach("on_start_xmit", "net_dev_start_xmit")
        module.attach("on_xmit", "net_dev_xmit")
        module.attach("on_poll", "napi_poll")
        self.wake = _attach_wake(module)
        if self._with_sojourn:
            self._sojourns = Sojourns(module, self.target, arrival_of(self.target, self.bql))
        if self._completions:
            self._completions.attach(module)
        self._snapshots = module.memory("snapshots")
        self._device = module.memory("device")
        self._cells = module.memory("cells")
        self._napis = module.memory("napis")
        self._snapshot_size = len(self._snapshots) // self.target.queues
        self._cell_size = len(self._cells) // self.target.queues
        self._napi_size = len(self._napis) // self._napi_cells

    def snapshot(self) -> None:
        """Bring the snapshot and the times stopped up to now. Raises DeviceGone."""
        for first in range(0, self.target.queues, CHUNK):
            if self._snapshot(first):
                raise DeviceGone("the device is not there any more")
        if self._sojourns:
            self._sojourns.pace()

    def real_queues(self) -> int:
        """TX queues in use at the last snapshot (real_num_tx_queues)."""
        return struct.unpack_from("<I", self._device, 8)[0]

    def strays(self) -> int:
        """Transmits whose queue was not known or out of range."""
        return struct.unpack_from("<Q", self._device, 24)[0]

    def counters(self) -> list[tuple[int, int, int]]:
        """(num_queued, num_completed, packets) of each queue at the last snapshot: what wraps, and how many packets that
        took since attach."""
        return [
            (
                *self._layout.counters(self._snapshots, index * self._snapshot_size),
                struct.unpack_from("<Q", self._cells, index * self._cell_size + PACKETS_AT)[0],
            )
            for index in range(self.target.queues)
        ]

    def queues(self) -> list[QueueReading]:
        """Every TX queue as of the last snapshot."""
        return [self._queue(index) for index in range(self.target.queues)]

    def _queue(self, index: int) -> QueueReading:
        at = index * self._snapshot_size
        members = self._layout.members(self._snapshots, at)
        ring_size, ring_used, ring_known = struct.unpack_from("<3I", self._snapshots, at + self._layout.size + 8)
        cell = index * self._cell_size
        (_, driver_ns, driver_stops, _, bql_ns, bql_stops, _, any_ns, _, packets, busy, wakes_driver, wakes_bql,
         torn) = struct.unpack_from("<14Q", self._cells, cell)
        if self.wake is None:  # nobody counts them
            wakes_driver = wakes_bql = None
        inflight = sizes = intervals = None
        if self.bql:
            cells = self._cells[cell + 128 : cell + 128 + 3 * LOG_LINEAR_CELLS * 8].cast("Q").tolist()
            inflight = tuple(cells[:LOG_LINEAR_CELLS])
            sizes = tuple(cells[LOG_LINEAR_CELLS : 2 * LOG_LINEAR_CELLS])
            intervals = tuple(cells[2 * LOG_LINEAR_CELLS :])
        return QueueReading(
            *members,
            ring_size if ring_known else None,
            ring_used if ring_known else None,
            driver_ns, driver_stops, bql_ns, bql_stops, any_ns, packets, busy, wakes_driver, wakes_bql, torn,
            inflight, sizes, intervals, self._sojourns.read(index) if self._sojourns else None,
        )

    def napis(self) -> list[NapiReading]:
        """Every NAPI instance of the device or its peer that has polled since attach."""
        readings = []
        for slot in range(self._napi_cells):
            at = slot * self._napi_size
            address, device, napi_id, queue, polls, work, full = struct.unpack_from("<QQIi3Q", self._napis, at)
            if not address:
                if slot < self.target.ring_count:
                    continue  # a ring of the peer that nobody has polled yet
                break
            cells = self._napis[at + 48 : at + 48 + LINEAR_WORK_CELLS * 8].cast("Q")
            readings.append(NapiReading(address, device, napi_id, queue, polls, work, full, tuple(cells)))
        return readings

    def probes(self) -> tuple[Probe, ...]:
        """What this engine sees, and with which precision."""
        ring = self.target.ring is not Ring.NONE
        return (
            Probe("snapshot", True),
            Probe("transmit", True),
            Probe("napi", True),
            Probe("wake", self.wake is not None, self.wake or NO_WAKE),
            Probe("ring", ring, None if ring else "this driver's ring is not known to bqltop"),
            completions_probe(self.bql, self._completions, self._why_no_completions),
            self._sojourns.probe() if self._sojourns else Probe("sojourn", False, NO_SOJOURN),
        )

    def program_fds(self) -> dict[str, int]:
        """Name and file descriptor of each loaded program (for the kernel's own run-time statistics)."""
        return dict(self._module.programs)

    def close(self) -> None:
        """Detach everything. The counters are gone with it."""
        for view in (self._snapshots, self._device, self._cells, self._napis):
            view.release()
        if self._sojourns:
            self._sojourns.close()
        if self._completions:
            self._completions.close()
        self._module.close()


def _breakpoint() -> tuple[Completions | None, str | None]:
    """The breakpoint on completions, or why there is none."""
    try:
        return Completions(), None
    except BpfError as error:
        return None, str(error)


def _attach_wake(module: Module) -> str | None:
    """Time wake-ups where they happen, by the cheapest way this kernel has; which one, or None."""
    functions = ("netif_tx_wake_queue", "netif_schedule_queue")
    for way, attach, programs in (
        ("fentry", module.attach_fentry, ("enter_tx_wake", "enter_schedule")),
        ("kprobe", module.attach_kprobe, ("probe_tx_wake", "probe_schedule")),
    ):
        if all(attach(*pair) for pair in zip(programs, functions, strict=True)):
            return f"exact, by {way}"
    return None


def _first_argument(btf: Btf) -> int:
    """Where a kprobe finds a function's first argument: rdi on x86-64, x0 on arm64 (their calling conventions)."""
    return btf.offset("pt_regs", "di" if btf.has("pt_regs", "di") else "regs")


class _QueueLayout:
    """Where the members of QUEUE_MEMBERS lie in the bytes of a netdev_queue, as one struct format."""

    _LETTERS: ClassVar[dict[int, str]] = {1: "B", 2: "H", 4: "I", 8: "Q"}

    def __init__(self):
        btf = Btf.vmlinux()
        self.size = btf.size("netdev_queue")
        present = [name for name, path in QUEUE_MEMBERS.items() if btf.has("netdev_queue", path)]
        places = sorted(
            (btf.offset("netdev_queue", QUEUE_MEMBERS[name]), btf.member_size("netdev_queue", QUEUE_MEMBERS[name]), name)
            for name in present
        )
        text, end = "<", 0
        for offset, size, _ in places:
            text += f"{offset - end}x{self._LETTERS[size]}"
            end = offset + size
        self._struct = struct.Struct(text)
        order = [name for _, _, name in places]
        self._positions = [order.index(name) if name in order else None for name in QUEUE_MEMBERS]
        names = list(QUEUE_MEMBERS)
        self._queued = self._positions[names.index("num_queued")]
        self._completed = self._positions[names.index("num_completed")]

    def members(self, memory: memoryview, at: int) -> list[int | None]:
        """Values in the order of QUEUE_MEMBERS; None for what this kernel has not."""
        values = self._struct.unpack_from(memory, at)
        return [None if position is None else values[position] for position in self._positions]

    def counters(self, memory: memoryview, at: int) -> tuple[int, int]:
        values = self._struct.unpack_from(memory, at)
        return values[self._queued], values[self._completed]


def _offsets(btf: Btf, wanted: dict[str, tuple[str, ...]]) -> dict[str, int]:
    """OFF_struct_member constants; dots in a path become underscores."""
    return {
        f"OFF_{name}_{member.replace('.', '_')}": btf.offset(name, member)
        for name, members in wanted.items()
        for member in members
    }
