"""The vocabulary: everything bqltop reads at one instant, as frozen records.

Units are in the field names or in the docstring. Counters count since bqltop attached to the device (or, where the
kernel's own counter is shown, since the kernel began) and are 64 bit; a value that is not to be had is ``None``,
never 0. The names are the ones of the JSON output (docs/json.md): a record becomes a JSON object field by field.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

SCHEMA = 1
"""Version of the sample's shape in JSON and in recordings. Raised when a name is removed or changes its meaning."""


class Unit(StrEnum):
    """What BQL charges for one packet: its bytes (real cards, usbnet) or 1 (veth)."""

    PACKETS = "packets"
    BYTES = "bytes"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class Namespace:
    """A network namespace and how to enter it.

    ``path`` is what ``setns`` opens (``/run/netns/blue``, ``/proc/4711/ns/net``); ``inode`` is the identity of the
    namespace itself: two paths with the same inode are one namespace. ``name`` is how a person calls it; None is
    the namespace bqltop runs in.
    """

    path: str
    inode: int
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Peer:
    """The other end of a veth pair (or the lower device of an upper one). ``name`` is None where we cannot look."""

    ifindex: int
    name: str | None = None
    netns: str | None = None


@dataclass(frozen=True, slots=True)
class Device:
    """A network device as ``ip -d link`` knows it.

    ``kind`` is IFLA_INFO_KIND (veth, tun, ifb, ... or None for hardware), ``driver`` the name ethtool gives.
    ``oper_state`` is the RFC 2863 word (UP, DOWN, LOWERLAYERDOWN, ...); ``flags`` are IFF_* bits. ``tx_queues`` is
    the number of queues in use (real_num_tx_queues). ``napi_mode`` says whether a veth uses its ring at all:
    True, False, or None where the question does not arise; ``napi_reason`` says why in a sentence, ``napi_commands``
    what to type to switch it on.
    """

    name: str
    ifindex: int
    driver: str | None = None
    kind: str | None = None
    netns: str | None = None
    peer: Peer | None = None
    mtu: int | None = None
    tx_queue_len: int | None = None
    tx_queues: int = 1
    flags: int = 0
    oper_state: str = "UNKNOWN"
    qdisc: str | None = None
    napi_mode: bool | None = None
    master: int | None = None
    address: str | None = None
    tun_flags: int | None = None
    napi_reason: str | None = None
    napi_commands: tuple[str, ...] = ()

    @property
    def up(self) -> bool:
        """Administratively up (IFF_UP)."""
        return bool(self.flags & 1)


@dataclass(frozen=True, slots=True)
class LinkStats:
    """The device's own counters (IFLA_STATS64), since the device was made."""

    tx_packets: int
    tx_bytes: int
    tx_dropped: int
    tx_errors: int
    rx_packets: int
    rx_bytes: int
    rx_dropped: int
    rx_errors: int


@dataclass(frozen=True, slots=True)
class QueueSample:
    """One TX queue (``struct netdev_queue``).

    ``drv_xoff``/``stack_xoff``/``frozen``: bits of ``state``. ``limit``, ``limit_min``, ``limit_max``, ``inflight``,
    ``queued``, ``completed`` are in ``unit``. ``packets``: transmits the driver accepted; ``busy``: times it
    answered NETDEV_TX_BUSY. ``stops_*``: times a stop was seen to begin; ``stopped_*_ns``: time under it;
    ``stopped_ns``: time under at least one of the two. ``ring_*`` are packets. ``tx_timeouts`` counts watchdog
    alarms since the device was made. ``sojourn_sampled``: packets picked for timing, of which ``sojourn_lost`` were
    dropped on the way or could not be told from another packet. Histograms are cumulative since attach:
    ``inflight_histogram`` over the inflight seen at each transmit, ``*_sojourn_histogram`` over the nanoseconds that
    sampled packets waited, ``completion_*`` over the units completed at once and the nanoseconds between completions;
    cells as in bqltop.histogram.LOG_LINEAR.
    """

    index: int
    drv_xoff: bool | None = None
    stack_xoff: bool | None = None
    frozen: bool | None = None
    unit: Unit | None = None
    limit: int | None = None
    limit_min: int | None = None
    limit_max: int | None = None
    hold_time_ms: int | None = None
    inflight: int | None = None
    queued: int | None = None
    completed: int | None = None
    packets: int | None = None
    busy: int | None = None
    stops_driver: int | None = None
    stops_bql: int | None = None
    wakes_driver: int | None = None
    wakes_bql: int | None = None
    stopped_driver_ns: int | None = None
    stopped_bql_ns: int | None = None
    stopped_ns: int | None = None
    ring_size: int | None = None
    ring_used: int | None = None
    tx_timeouts: int | None = None
    stall_threshold_ms: int | None = None
    stall_max_ms: int | None = None
    stall_count: int | None = None
    torn_reads: int | None = None
    sojourn_sampled: int | None = None
    sojourn_lost: int | None = None
    inflight_histogram: tuple[int, ...] | None = None
    completion_size_histogram: tuple[int, ...] | None = None
    completion_interval_histogram: tuple[int, ...] | None = None
    qdisc_sojourn_histogram: tuple[int, ...] | None = None
    ring_sojourn_histogram: tuple[int, ...] | None = None

    @property
    def stopped(self) -> bool | None:
        """Whether the queue may not transmit at this instant; None when the state is not to be had."""
        bits = (self.drv_xoff, self.stack_xoff, self.frozen)
        return None if bits == (None, None, None) else any(bits)


@dataclass(frozen=True, slots=True)
class QdiscSample:
    """One qdisc, as ``tc -s qdisc`` shows it. ``handle``/``parent`` as tc writes them ("8002:", "root", "8001:1").

    ``txq`` is the TX queue an mq child belongs to. ``backlog_packets`` is qlen. ``extra`` holds the qdisc's own
    statistics (fq_codel: new_flows_len, ecn_mark, ...), ``options`` its parameters, both by iproute2's names.
    """

    kind: str
    handle: str
    parent: str
    packets: int
    bytes: int
    drops: int
    requeues: int
    overlimits: int
    backlog_bytes: int
    backlog_packets: int
    txq: int | None = None
    extra: dict[str, int] = field(default_factory=dict)
    options: dict[str, int | str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NapiSample:
    """One NAPI instance of the device or of its veth peer, since attach.

    ``work`` is packets handled, ``full_polls`` polls that used the whole budget. ``work_histogram``: cell i counts
    polls with work i (0..64, the last one 64 and more). ``role`` is "device" or "peer".
    """

    device: str
    napi_id: int
    polls: int
    work: int
    full_polls: int
    work_histogram: tuple[int, ...]
    role: str = "device"
    index: int | None = None


@dataclass(frozen=True, slots=True)
class Probe:
    """A source of figures and whether it is in force. ``why`` says what is missing and how to get it, or, when in
    force, with which precision."""

    name: str
    in_force: bool
    why: str | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened at an instant. ``kind`` is one word of docs/json.md; ``text`` is for people."""

    time_ns: int
    kind: str
    text: str
    queue: int | None = None


@dataclass(frozen=True, slots=True)
class SelfSample:
    """What bqltop itself costs. ``cpu_s``: process CPU seconds so far; ``late_ns``: how much later than planned
    the sample was taken; ``missed``: planned samples not taken; ``bpf_ns``/``bpf_runs``: time and runs of our
    eBPF programs, only while the kernel's bpf statistics are switched on. ``read_ns``: time this sample took. ``strays``:
    transmits since attach that no queue's figures have, for their queue could not be told or was not there at attach;
    None without eBPF."""

    cpu_s: float
    rss_bytes: int
    read_ns: int = 0
    late_ns: int = 0
    missed: int = 0
    bpf_ns: int | None = None
    bpf_runs: int | None = None
    strays: int | None = None


@dataclass(frozen=True, slots=True)
class CpuSample:
    """One CPU: seconds so far in softirq and in all states together (/proc/stat), NET_TX and NET_RX softirqs so
    far (/proc/softirqs)."""

    cpu: int
    softirq_s: float
    total_s: float
    net_tx: int
    net_rx: int


@dataclass(frozen=True, slots=True)
class ProbeSample:
    """ICMP echoes to ``address`` (--probe). ``sent``, ``received``, ``lost`` since the probe began; the times are of
    the last minute, ns. ``rtt_*``: round trips, from the qdisc to the reply by the kernel's own timestamps;
    ``qdisc_*``: the part of it spent in the qdisc. ``error``: why no echo can be sent now, None when it can."""

    address: str
    sent: int
    received: int
    lost: int
    rtt_last_ns: int | None = None
    rtt_min_ns: int | None = None
    rtt_avg_ns: int | None = None
    rtt_p50_ns: int | None = None
    rtt_p99_ns: int | None = None
    rtt_max_ns: int | None = None
    qdisc_last_ns: int | None = None
    qdisc_avg_ns: int | None = None
    qdisc_p99_ns: int | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class TunQueueSample:
    """One queue of a tun or tap and the process that holds it.

    ``state`` is the process's (R, S, D, T stopped, Z zombie). ``vhost``: a kernel thread moves the packets for it.
    ``flags`` are IFF_* in the words of ``ip -d tuntap``. ``takes``: whether packets were taken out since the look
    before, by the holders together; None: none was waiting. ``certain``: the queue itself was asked, else only the
    device's name agrees.
    """

    pid: int
    process: str
    state: str
    vhost: bool
    attached: bool = True
    takes: bool | None = None
    flags: tuple[str, ...] = ()
    certain: bool = True


@dataclass(frozen=True, slots=True)
class Sample:
    """Everything read at one instant.

    ``time_ns`` is CLOCK_REALTIME, ``monotonic_ns`` the clock to take differences with. ``epoch`` counts
    attachments: counters of different epochs must not be subtracted. ``present`` is False while the device is
    away; the other fields then hold what was seen last. ``stream`` tells the devices of one run apart, whatever
    becomes of their names: 0 for the first, 1 for the second.
    """

    time_ns: int
    monotonic_ns: int
    device: Device
    queues: tuple[QueueSample, ...] = ()
    qdiscs: tuple[QdiscSample, ...] = ()
    napis: tuple[NapiSample, ...] = ()
    link: LinkStats | None = None
    probes: tuple[Probe, ...] = ()
    events: tuple[Event, ...] = ()
    cpus: tuple[CpuSample, ...] = ()
    tun_queues: tuple[TunQueueSample, ...] = ()
    own: SelfSample | None = None
    probe: ProbeSample | None = None
    epoch: int = 0
    present: bool = True
    stream: int = 0
    schema: int = SCHEMA
