"""One table of every figure: what it is called, what it means, where the kernel keeps it.

Screen columns, the ``?`` help, JSON and CSV names, Prometheus metrics and docs/json.md all come from here. A figure's
``id`` is its attribute in the records of bqltop.model and bqltop.window and its name in JSON. Figures that a window
repeats unchanged from its sample (index, handle, ...) stand in the table once, under "sample".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bqltop import format as fmt

SCOPES = ("device", "queue", "qdisc", "napi", "link", "cpu", "tun", "probe", "own")
SOURCES = ("sample", "window")
KINDS = ("gauge", "counter", "rate", "share", "state", "histogram", "text")


@dataclass(frozen=True, slots=True)
class Field:
    """One figure. ``title`` heads a column (9 characters at most); ``unit`` is "queue's unit" where BQL decides
    between bytes and packets; ``meaning`` is for an operator; ``where`` names the kernel's own place or the probe."""

    scope: str
    source: str
    id: str
    title: str
    unit: str
    kind: str
    meaning: str
    where: str
    format: fmt.Formatter

    def text(self, record: object) -> str:
        """This figure of ``record``, formatted for people; "-" where it is not to be had."""
        return self.format(value(record, self))


_FORMATS = {"rate": fmt.rate, "share": fmt.share, "state": fmt.flag, "histogram": fmt.cells, "text": fmt.text}
_UNIT_FORMATS = {"ns": fmt.nanoseconds, "ms": fmt.milliseconds, "s": fmt.seconds, "bytes": fmt.size}


def _format_of(kind: str, unit: str) -> fmt.Formatter:
    if kind in ("gauge", "counter"):
        return _UNIT_FORMATS.get(unit, fmt.count)
    return _FORMATS[kind]


UNIT = "queue's unit"
_STATE = "netdev_queue.state, bit {} of enum netdev_queue_state_t (BPF snapshot)"
_DQL = "netdev_queue.dql.{0} (BPF snapshot), else sysfs queues/tx-N/byte_queue_limits/{0}"
_STOPS = "netdev_queue.state watched at net_dev_xmit, napi_poll and the wake-up functions (BPF events)"
_COUNT = "raw tracepoint net_dev_xmit (BPF events)"
_SOJOURN = "1 packet of N timed from qdisc_enqueue to net_dev_xmit to arrival (BPF sampling)"
_QDISC = "rtnetlink RTM_GETQDISC, {} (tc -s qdisc)"
_NAPI = "raw tracepoint napi_poll (BPF events)"
_LINK = "rtnetlink IFLA_STATS64 {} (ip -s link)"
_OWN = "bqltop itself"
_DIFF = "difference of two samples"
_TUN = "open files of /dev/net/tun (/proc/PID/fdinfo)"
_ECHO = "ICMP echo through the device (--probe)"
_STAMPS = "SO_TIMESTAMPING of the echoes, last minute (--probe)"

# (id, title, unit, kind, meaning, where) per scope and source.
_TABLE: dict[tuple[str, str], tuple[tuple[str, str, str, str, str, str], ...]] = {
    ("device", "sample"): (
        ("name", "device", "", "text", "The device's name.", "IFLA_IFNAME"),
        ("ifindex", "ifindex", "", "gauge", "Interface index: another one means another device.",
         "ifinfomsg.ifi_index"),
        ("driver", "driver", "", "text", "The driver's name.", "ethtool -i, sysfs device/driver"),
        ("kind", "kind", "", "text", "Kind of a virtual device (veth, tun, ifb); none for hardware.", "IFLA_INFO_KIND"),
        ("netns", "netns", "", "text", "Network namespace it lives in; none is the one bqltop runs in.",
         "/proc/*/ns/net"),
        ("peer", "peer", "", "text", "The other end of a veth pair: ifindex, name and netns.",
         "IFLA_LINK, IFLA_LINK_NETNSID"),
        ("mtu", "mtu", "bytes", "gauge", "Largest packet the device sends.", "IFLA_MTU"),
        ("tx_queue_len", "txqlen", "packets", "gauge", "Default length of a pfifo above it; length of a tun's ring.",
         "IFLA_TXQLEN"),
        ("tx_queues", "txqs", "", "gauge", "TX queues in use.", "net_device.real_num_tx_queues"),
        ("flags", "flags", "", "gauge", "IFF_* bits.", "ifinfomsg.ifi_flags"),
        ("oper_state", "state", "", "text", "RFC 2863 state: UP, DOWN, LOWERLAYERDOWN, ...", "IFLA_OPERSTATE"),
        ("qdisc", "qdisc", "", "text", "Kind of the root qdisc.", "IFLA_QDISC"),
        ("napi_mode", "napi", "", "state",
         "Whether a veth uses its ring at all. Without NAPI mode packets go straight to the peer's backlog: no ring, "
         "no stops, no BQL.", "peer has XDP, or GRO on at the peer and TSO off here"),
        ("napi_reason", "napi why", "", "text", "Why the ring is in use or not, in a sentence.", "offloads of both ends"),
        ("napi_commands", "napi do", "", "text", "What to type to bring the ring into use.", _OWN),
        ("master", "master", "", "gauge", "Index of the bridge or bond it belongs to.", "IFLA_MASTER"),
        ("address", "address", "", "text", "Link-layer address.", "IFLA_ADDRESS"),
        ("tun_flags", "tunflags", "", "gauge", "IFF_* flags of a tun or tap; 0x0080 is IFF_BACKPRESSURE.", "TUNGETIFF"),
    ),
    ("device", "window"): (
        ("own_cpu_share", "own cpu", "", "share", "bqltop's own share of one CPU.", "CPU time of the process"),
        ("softirq_share", "softirq", "", "share", "Share of all CPUs' time spent in softirq, where NAPI runs.",
         "/proc/stat"),
    ),
    ("queue", "sample"): (
        ("index", "q", "", "gauge", "Number of the TX queue (txq).", "queues/tx-N, struct netdev_queue"),
        ("drv_xoff", "DRV", "", "state", "The driver stopped the queue: its ring is full.", _STATE.format("DRV_XOFF")),
        ("stack_xoff", "STK", "", "state", "BQL stopped the queue: inflight reached limit.",
         _STATE.format("STACK_XOFF")),
        ("frozen", "FRZ", "", "state", "The queue is frozen while the device is reset or changed.",
         _STATE.format("FROZEN")),
        ("unit", "unit", "", "text", "What BQL counts on this queue: bytes on real cards and usbnet, packets on veth.",
         "what the driver hands to netdev_tx_sent_queue"),
        ("limit", "limit", UNIT, "gauge", "What DQL allows to be outstanding now.", _DQL.format("limit")),
        ("limit_min", "lim min", UNIT, "gauge", "Lower bound of limit, a knob.", _DQL.format("limit_min")),
        ("limit_max", "lim max", UNIT, "gauge", "Upper bound of limit, a knob.", _DQL.format("limit_max")),
        ("hold_time_ms", "hold", "ms", "gauge", "How long a slack must last before limit shrinks.",
         "netdev_queue.dql.slack_hold_time, sysfs hold_time"),
        ("inflight", "inflight", UNIT, "gauge",
         "Given to the driver and not yet completed (num_queued - num_completed). A little above limit is normal.",
         _DQL.format("inflight")),
        ("queued", "queued", UNIT, "counter", "Given to the driver, as BQL counts it.", "netdev_queue.dql.num_queued"),
        ("completed", "completed", UNIT, "counter", "Completed by the driver, as BQL counts it.",
         "netdev_queue.dql.num_completed"),
        ("packets", "packets", "packets", "counter", "Transmits the driver accepted.", _COUNT),
        ("busy", "busy", "", "counter", "Times the driver answered NETDEV_TX_BUSY and the qdisc took the packet back "
         "(requeue).", _COUNT),
        ("stops_driver", "drv stops", "", "counter", "Times a stop by the driver began.", _STOPS),
        ("stops_bql", "bql stops", "", "counter", "Times a stop by BQL began.", _STOPS),
        ("wakes_driver", "drv wakes", "", "counter",
         "Times a stop by the driver ended. Only where wake-ups are seen as they happen.", _STOPS),
        ("wakes_bql", "bql wakes", "", "counter",
         "Times a stop by BQL ended. Only where wake-ups are seen as they happen.", _STOPS),
        ("stopped_driver_ns", "drv stop", "ns", "counter", "Time spent stopped by the driver.", _STOPS),
        ("stopped_bql_ns", "bql stop", "ns", "counter", "Time spent stopped by BQL.", _STOPS),
        ("stopped_ns", "stop time", "ns", "counter", "Time stopped by the driver, by BQL or by both.", _STOPS),
        ("ring_size", "ring size", "packets", "gauge", "Entries of the driver's own queue.",
         "peer's veth_rq.xdp_ring, tun_file.tx_ring (BPF snapshot)"),
        ("ring_used", "ring", "packets", "gauge",
         "Packets in the driver's ring: the dark buffer, which the qdisc can neither see, reorder nor drop.",
         "producer - consumer of the ptr_ring (BPF snapshot)"),
        ("tx_timeouts", "timeouts", "", "counter", "Watchdog alarms of this queue since the device was made.",
         "netdev_queue.trans_timeout, sysfs queues/tx-N/tx_timeout"),
        ("stall_threshold_ms", "stall thr", "ms", "gauge",
         "BQL reports a stall after this long without a completion; 0 is off.", "netdev_queue.dql.stall_thrs"),
        ("stall_max_ms", "stall max", "ms", "gauge", "Longest stall seen.", "netdev_queue.dql.stall_max"),
        ("stall_count", "stalls", "", "counter", "Stalls longer than the threshold.", "netdev_queue.dql.stall_cnt"),
        ("torn_reads", "torn", "", "counter",
         "Times the two DQL counters were read a moment apart and their difference came out negative; inflight was "
         "taken as 0 then.", _OWN),
        ("sojourn_sampled", "sampled", "packets", "counter", "Packets picked for timing (--sojourn).", _SOJOURN),
        ("sojourn_lost", "lost", "packets", "counter",
         "Sampled packets without a time: dropped on the way, or not to be told from another packet at the same address.",
         _SOJOURN),
        ("inflight_histogram", "inflight", UNIT, "histogram", "Inflight seen at each transmit.", _COUNT),
        ("completion_size_histogram", "compl", UNIT, "histogram", "How much was completed at once.",
         "changes of num_completed (BPF events)"),
        ("completion_interval_histogram", "compl gap", "ns", "histogram", "Time between two completions.",
         "changes of num_completed (BPF events)"),
        ("qdisc_sojourn_histogram", "qdisc", "ns", "histogram", "Time a sampled packet waited in the qdisc.", _SOJOURN),
        ("ring_sojourn_histogram", "ring", "ns", "histogram", "Time a sampled packet waited in the driver's ring.",
         _SOJOURN),
    ),
    ("queue", "window"): (
        ("packets_per_s", "pkt/s", "packets/s", "rate", "Packets the driver accepted.", _COUNT),
        ("busy_per_s", "busy/s", "1/s", "rate", "Times the driver answered busy (requeues).", _COUNT),
        ("completed_per_s", "done/s", UNIT + "/s", "rate",
         "Completions: in BQL's unit where the driver has BQL, else packets that left the ring.",
         "netdev_queue.dql.num_completed, or the ring"),
        ("drained_per_s", "drain/s", "packets/s", "rate", "Packets that left the ring.",
         "packets in less what the ring grew"),
        ("stopped_share", "stopped", "", "share", "Share of the time the queue could not transmit.", _STOPS),
        ("stopped_driver_share", "stop drv", "", "share", "Share of the time stopped by the driver (DRV_XOFF).",
         _STOPS),
        ("stopped_bql_share", "stop bql", "", "share", "Share of the time stopped by BQL (STACK_XOFF).", _STOPS),
        ("stops_driver_per_s", "drv st/s", "1/s", "rate", "Stops by the driver that began.", _STOPS),
        ("stops_bql_per_s", "bql st/s", "1/s", "rate", "Stops by BQL that began.", _STOPS),
        ("inflight_mean", "infl avg", UNIT, "gauge", "Mean inflight over the transmits.", _COUNT),
        ("inflight_p50", "infl p50", UNIT, "gauge", "Half of the transmits saw less inflight than this.", _COUNT),
        ("inflight_p99", "infl p99", UNIT, "gauge", "99 % of the transmits saw less inflight than this.", _COUNT),
        ("dark_buffer_s", "dark buf", "s", "gauge",
         "Dark-buffer latency: how long a packet that enters the ring now will wait there (ring occupancy / rate at "
         "which it drains).", _DIFF),
        ("tx_timeouts", "timeouts", "", "gauge", "Watchdog alarms in this window.", _DIFF),
        ("qdisc_sojourn_p50_s", "qdisc p50", "s", "gauge", "Median wait in the qdisc.", _SOJOURN),
        ("qdisc_sojourn_p99_s", "qdisc p99", "s", "gauge", "Wait in the qdisc that 1 % of the packets exceed.",
         _SOJOURN),
        ("ring_sojourn_p50_s", "ring p50", "s", "gauge", "Median wait in the driver's ring.", _SOJOURN),
        ("ring_sojourn_p99_s", "ring p99", "s", "gauge", "Wait in the ring that 1 % of the packets exceed.", _SOJOURN),
    ),
    ("qdisc", "sample"): (
        ("kind", "qdisc", "", "text", "Kind of the qdisc.", _QDISC.format("TCA_KIND")),
        ("handle", "handle", "", "text", "Handle, as tc writes it. Handles repeat under an automatic mq.",
         _QDISC.format("tcm_handle")),
        ("parent", "parent", "", "text", "Class it hangs from: the key of a qdisc.", _QDISC.format("tcm_parent")),
        ("packets", "packets", "packets", "counter", "Packets sent.",
         _QDISC.format("TCA_STATS_BASIC, TCA_STATS_PKT64")),
        ("bytes", "bytes", "bytes", "counter", "Bytes sent.", _QDISC.format("TCA_STATS_BASIC")),
        ("drops", "drops", "packets", "counter", "Packets dropped.", _QDISC.format("TCA_STATS_QUEUE drops")),
        ("requeues", "requeues", "", "counter", "Packets taken back because the driver was busy.",
         _QDISC.format("TCA_STATS_QUEUE requeues")),
        ("overlimits", "overlim", "", "counter", "Times a shaper held a packet back.",
         _QDISC.format("TCA_STATS_QUEUE overlimits")),
        ("backlog_bytes", "backlog B", "bytes", "gauge", "Bytes waiting now.",
         _QDISC.format("TCA_STATS_QUEUE backlog")),
        ("backlog_packets", "backlog", "packets", "gauge", "Packets waiting now.",
         _QDISC.format("TCA_STATS_QUEUE qlen")),
        ("txq", "q", "", "gauge", "TX queue that a child of mq belongs to.", "minor number of the parent less 1"),
        ("extra", "extra", "", "text", "The qdisc's own statistics, by iproute2's names.",
         _QDISC.format("TCA_STATS_APP")),
        ("options", "options", "", "text", "The qdisc's parameters, by iproute2's names.",
         _QDISC.format("TCA_OPTIONS")),
    ),
    ("qdisc", "window"): (
        ("packets_per_s", "pkt/s", "packets/s", "rate", "Packets sent.", _DIFF),
        ("bytes_per_s", "B/s", "bytes/s", "rate", "Bytes sent.", _DIFF),
        ("drops_per_s", "drops/s", "packets/s", "rate", "Packets dropped.", _DIFF),
        ("requeues_per_s", "requeue/s", "1/s", "rate", "Packets taken back because the driver was busy.", _DIFF),
        ("overlimits_per_s", "overlim/s", "1/s", "rate", "Times a shaper held a packet back.", _DIFF),
    ),
    ("napi", "sample"): (
        ("device", "device", "", "text", "The device whose poll function it is: on veth, the peer.", "napi_struct.dev"),
        ("napi_id", "napi", "", "gauge", "The kernel's number of the NAPI instance.", "napi_struct.napi_id"),
        ("polls", "polls", "", "counter", "Runs of the poll function.", _NAPI),
        ("work", "work", "packets", "counter", "Packets handled in polls.", _NAPI),
        ("full_polls", "full", "", "counter", "Polls that used the whole budget (64): more was waiting.", _NAPI),
        ("work_histogram", "work hist", "packets", "histogram", "Polls by how many packets they handled.", _NAPI),
        ("role", "role", "", "text", "device: it completes transmits; peer: it empties the ring.", _OWN),
        ("index", "n", "", "gauge", "Number of the queue it serves.", "order of the device's NAPI instances"),
    ),
    ("napi", "window"): (
        ("polls_per_s", "polls/s", "1/s", "rate", "Runs of the poll function.", _NAPI),
        ("work_per_s", "work/s", "packets/s", "rate", "Packets handled in polls.", _NAPI),
        ("work_average", "work", "packets", "gauge", "Packets per poll.", _NAPI),
        ("full_share", "full", "", "share", "Share of polls that used the whole budget.", _NAPI),
        ("work_histogram", "work hist", "packets", "histogram", "Polls of the window by packets handled.", _NAPI),
    ),
    ("link", "sample"): (
        ("tx_packets", "tx pkts", "packets", "counter", "Packets sent.", _LINK.format("tx_packets")),
        ("tx_bytes", "tx bytes", "bytes", "counter", "Bytes sent.", _LINK.format("tx_bytes")),
        ("tx_dropped", "tx drop", "packets", "counter", "Packets the driver dropped on sending.",
         _LINK.format("tx_dropped")),
        ("tx_errors", "tx err", "packets", "counter", "Packets that failed to be sent.", _LINK.format("tx_errors")),
        ("rx_packets", "rx pkts", "packets", "counter", "Packets received.", _LINK.format("rx_packets")),
        ("rx_bytes", "rx bytes", "bytes", "counter", "Bytes received.", _LINK.format("rx_bytes")),
        ("rx_dropped", "rx drop", "packets", "counter", "Received packets dropped.", _LINK.format("rx_dropped")),
        ("rx_errors", "rx err", "packets", "counter", "Bad packets received.", _LINK.format("rx_errors")),
    ),
    ("link", "window"): (
        ("tx_packets_per_s", "tx pkt/s", "packets/s", "rate", "Packets sent.", _DIFF),
        ("tx_bytes_per_s", "tx B/s", "bytes/s", "rate", "Bytes sent.", _DIFF),
        ("tx_dropped_per_s", "tx drop/s", "packets/s", "rate", "Packets the driver dropped on sending.", _DIFF),
        ("rx_packets_per_s", "rx pkt/s", "packets/s", "rate", "Packets received.", _DIFF),
        ("rx_bytes_per_s", "rx B/s", "bytes/s", "rate", "Bytes received.", _DIFF),
    ),
    ("cpu", "sample"): (
        ("cpu", "cpu", "", "gauge", "Number of the CPU.", "/proc/stat"),
        ("softirq_s", "softirq", "s", "counter", "Time in softirq so far.", "/proc/stat"),
        ("total_s", "total", "s", "counter", "Time in all states together so far.", "/proc/stat"),
        ("net_tx", "NET_TX", "", "counter", "NET_TX softirqs so far.", "/proc/softirqs"),
        ("net_rx", "NET_RX", "", "counter", "NET_RX softirqs so far.", "/proc/softirqs"),
    ),
    ("tun", "sample"): (
        ("pid", "pid", "", "gauge", "Process that holds the queue.", _TUN),
        ("process", "process", "", "text", "Its name.", "/proc/PID/stat"),
        ("state", "state", "", "text", "Its state: R, S, D, T stopped, Z zombie.", "/proc/PID/stat"),
        ("vhost", "vhost", "", "state", "Whether a kernel thread moves the packets for it.", "/dev/vhost-net is open too"),
        ("attached", "attached", "", "state", "Whether the queue is in use, not only held.", "TUNGETIFF IFF_DETACH_QUEUE"),
        ("takes", "takes", "", "state",
         "Whether packets were taken out since the look before (all holders together); none where none waited.", _DIFF),
        ("flags", "flags", "", "text", "Flags of the queue in the words of ip tuntap.", "TUNGETIFF"),
        ("certain", "certain", "", "state", "Whether the queue itself was asked; else only the device's name agrees.",
         "TUNGETIFF, TUNGETDEVNETNS"),
    ),
    ("probe", "sample"): (
        ("address", "target", "", "text", "Where the echoes go.", _ECHO),
        ("sent", "sent", "packets", "counter", "Requests sent.", _ECHO),
        ("received", "received", "packets", "counter", "Replies received in time.", _ECHO),
        ("lost", "lost", "packets", "counter", "Requests without a reply in time.", _ECHO),
        ("rtt_last_ns", "rtt", "ns", "gauge", "The last round trip.", _STAMPS),
        ("rtt_min_ns", "rtt min", "ns", "gauge", "Shortest round trip.", _STAMPS),
        ("rtt_avg_ns", "rtt avg", "ns", "gauge", "Mean round trip.", _STAMPS),
        ("rtt_p50_ns", "rtt p50", "ns", "gauge", "Median round trip.", _STAMPS),
        ("rtt_p99_ns", "rtt p99", "ns", "gauge", "Round trip that 1 % of the echoes exceed.", _STAMPS),
        ("rtt_max_ns", "rtt max", "ns", "gauge", "Longest round trip.", _STAMPS),
        ("qdisc_last_ns", "qdisc", "ns", "gauge", "The last request's wait in the qdisc.", _STAMPS),
        ("qdisc_avg_ns", "qdisc avg", "ns", "gauge", "Mean wait of the requests in the qdisc.", _STAMPS),
        ("qdisc_p99_ns", "qdisc p99", "ns", "gauge", "Wait in the qdisc that 1 % of the requests exceed.", _STAMPS),
        ("error", "error", "", "text", "Why no echo can be sent now.", _ECHO),
    ),
    ("own", "sample"): (
        ("cpu_s", "cpu time", "s", "counter", "CPU time bqltop has used.", _OWN),
        ("rss_bytes", "memory", "bytes", "gauge", "Resident memory of bqltop.", "/proc/self/statm"),
        ("read_ns", "read", "ns", "gauge", "Time it took to read this sample.", _OWN),
        ("late_ns", "late", "ns", "gauge", "How much later than planned the sample was taken.", _OWN),
        ("missed", "missed", "", "counter", "Planned samples that were not taken.", _OWN),
        ("bpf_ns", "bpf time", "ns", "counter",
         "Time in bqltop's eBPF programs, while the kernel's statistics of them are on.", "bpf_prog_info.run_time_ns"),
        ("bpf_runs", "bpf runs", "", "counter", "Runs of bqltop's eBPF programs.", "bpf_prog_info.run_cnt"),
        ("strays", "strays", "packets", "counter", "Transmits in no queue's figures: their queue could not be told, or was not "
         "there at attach.", "net_dev_xmit"),
    ),
}

FIELDS: tuple[Field, ...] = tuple(
    Field(scope, source, id_, title, unit, kind, meaning, where, _format_of(kind, unit))
    for (scope, source), rows in _TABLE.items()
    for id_, title, unit, kind, meaning, where in rows
)
_BY_KEY = {(f.scope, f.source, f.id): f for f in FIELDS}


def get(scope: str, id: str, source: str | None = None) -> Field:
    """The figure ``id`` of ``scope``. Where sample and window both have one, ``source`` decides; without it the
    window's wins, as a screen wants it. Raises KeyError for a figure that does not exist."""
    for candidate in (source,) if source else ("window", "sample"):
        found = _BY_KEY.get((scope, candidate, id))
        if found:
            return found
    raise KeyError(f"no figure {id!r} of scope {scope!r}")


def of(scope: str, source: str | None = None) -> Iterator[Field]:
    """All figures of a scope, in the table's order."""
    return (f for f in FIELDS if f.scope == scope and source in (None, f.source))


def value(record: object, field: Field) -> object:
    """The raw value of a figure in its record; None where the record is missing or does not carry it."""
    return getattr(record, field.id, None)
