"""What one might change, for each verdict: why, what it costs, and as knobs that can be turned on trial. Pure.

Nothing here is ever applied by itself. The values follow from the figures of the window; where the driver or the kernel
does not have a knob, the tuner says so when it is tried.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from bqltop import format as fmt
from bqltop.model import Device, QueueSample, Unit
from bqltop.tuning.knobs import BadValue, Kind, Setting
from bqltop.verdict import Verdict
from bqltop.window import Window

USUAL_USECS = 50
"""tx-usecs that the veth series takes for its default."""
USUAL_LIMIT_MIN = 8
"""limit_min that costs neither packets nor requeues in the figures of the veth series (docs/veth-series.md)."""


@dataclass(frozen=True, slots=True)
class Advice:
    """``what`` to do, ``why`` it should help, ``cost`` what is given up for it. ``knobs``: (id, value) as ``bqltop tune``
    takes them, empty where it is no knob; ``queue`` they are for, None for all. ``commands``: what to type instead.
    ``why_not``: why it cannot be set on this device, None when it can."""

    what: str
    why: str
    cost: str
    knobs: tuple[tuple[str, str], ...] = ()
    queue: int | None = None
    commands: tuple[str, ...] = ()
    why_not: str | None = None

    @property
    def applicable(self) -> bool:
        """Whether one key can put it on trial."""
        return bool(self.knobs) and self.why_not is None

    @property
    def assignments(self) -> dict[str, str]:
        """For ``Tuner.plan``."""
        return dict(self.knobs)


def advise(verdict: Verdict, window: Window | None) -> tuple[Advice, ...]:
    """What might be done about a verdict, the most promising first; () when nothing need be, or nothing can."""
    rule = _RULES.get(verdict.kind)
    if rule is None or window is None:
        return ()
    queue = next((q for q in window.newer.queues if q.index == verdict.queue), None)
    return tuple(rule(verdict, window, queue))


def advise_all(verdicts: Sequence[Verdict], window: Window | None) -> tuple[Advice, ...]:
    """For several verdicts, each piece of advice once."""
    found = [advice for verdict in verdicts for advice in advise(verdict, window)]
    return tuple(dict.fromkeys(found))


def still_open(advice: Iterable[Advice], settings: Sequence[Setting]) -> tuple[Advice, ...]:
    """What is left of ``advice`` beside the present settings: nothing that is so already; what this device cannot have
    says why, after all the rest. All of it while no settings are known."""
    known = {setting.knob.id: setting for setting in settings}
    left = []
    for one in advice:
        knobs = tuple((id, value) for id, value in one.knobs if not (id in known and _is_so(known[id], value, one.queue)))
        if one.knobs and not knobs:
            continue
        why_not = next((why for id, _ in knobs if (why := _why_not(known, id))), None)
        left.append(replace(one, knobs=knobs, why_not=why_not))
    return tuple(sorted(left, key=lambda one: one.why_not is not None))


def _why_not(known: dict[str, Setting], id: str) -> str | None:
    if not known:
        return None
    if id not in known:
        return "this device has no such setting"
    return known[id].why_not if not known[id].values else None


def _is_so(setting: Setting, value: str, queue: int | None) -> bool:
    """Whether the setting has this value; of one queue, or of all there are."""
    try:
        wanted = setting.knob.parse(value)
    except BadValue:
        return False
    values = [
        now for number, now in zip(setting.queues, setting.values, strict=False)
        if queue is None or number in (None, queue)
    ]  # fmt: skip
    if setting.knob.kind is Kind.TEXT:  # a qdisc with parameters is still of that kind
        return bool(values) and all(str(now).split()[:1] == str(wanted).split() for now in values)
    return bool(values) and all(now == wanted for now in values)


Rule = Callable[[Verdict, Window, QueueSample | None], Iterable[Advice]]


def _driver_stops(verdict: Verdict, window: Window, queue: QueueSample | None) -> Iterable[Advice]:
    device = window.device
    if queue is not None and queue.limit is not None:
        yield _hold_limit(queue, "the ring fills up because BQL's limit lies above what it holds")
    elif device.tun_flags is not None or device.kind == "tun":
        yield _shorter_ring(device, queue, "txqueuelen", "a tun's ring is txqueuelen long")
    elif device.kind is None:
        yield _shorter_ring(device, queue, "ring-tx", "the ring is the only bound on what waits below the qdisc")
    if device.kind == "veth":
        yield _faster_poll()
    if device.qdisc in ("pfifo", "pfifo_fast", "bfifo"):
        yield Advice(
            "put a fair qdisc above the queue",
            "the consumer is the bottleneck and the wait cannot go away, but a flow of few packets need not stand behind "
            "the others for that part of it which is in the qdisc",
            "packets that wait in the old qdisc are dropped; a little more CPU per packet",
            (("qdisc", "fq_codel"),),
        )


def _ring_drops(verdict: Verdict, window: Window, queue: QueueSample | None) -> Iterable[Advice]:
    device = window.device
    if device.driver == "tun":
        size = (queue.ring_size if queue else None) or device.tx_queue_len or 500
        yield Advice(
            f"make the ring longer: {2 * size} packets instead of {size}",
            "a tun's ring is txqueuelen long; bursts that do not fit are lost unless its owner asked for backpressure",
            "a longer wait where the qdisc cannot see it; no help where the reader is slower all the time",
            (("txqueuelen", str(2 * size)),),
        )
    else:
        yield _faster_poll()


def _faster_poll() -> Advice:
    return Advice(
        "let the other end poll in a kernel thread of its own",
        "its NAPI then need not share a CPU with the sender or other softirqs",
        "one more busy thread; more packets are handled at a time, so more of them wait in the ring meanwhile",
        (("peer-threaded", "on"),),
    )


def _hold_limit(queue: QueueSample, why: str) -> Advice:
    small, unit = (64, "packets") if queue.unit is Unit.PACKETS else (64 * 1514, "bytes")
    value = max(1, min(small, (queue.ring_size or small) // 2)) if queue.unit is Unit.PACKETS else small
    return Advice(
        f"hold the limit at {fmt.count(value)} {unit}",
        f"{why}; packets then wait in the qdisc, which can schedule and drop them",
        "the queue is stopped more often; if bursts of completions are larger than that, packets per second fall",
        (("limit_max", str(value)),), queue.index,
    )  # fmt: skip


def _shorter_ring(device: Device, queue: QueueSample | None, knob: str, why: str) -> Advice:
    size = (queue.ring_size if queue else None) or device.tx_queue_len or 1000
    value = max(16, size // 4)
    return Advice(
        f"make the ring shorter: {value} packets instead of {size}",
        f"{why}, and what waits in it the qdisc cannot see",
        "less room for bursts; many cards reset the link to resize a ring" if knob == "ring-tx" else
        "less room for bursts: without IFF_BACKPRESSURE what does not fit is dropped",
        ((knob, str(value)),),
    )  # fmt: skip


def _bql_stops(verdict: Verdict, window: Window, queue: QueueSample | None) -> Iterable[Advice]:
    """BQL does what it is there for: only the qdisc above may be a poor one."""
    if window.device.qdisc in ("pfifo", "pfifo_fast", "bfifo"):
        yield Advice(
            "put a fair qdisc above the queue",
            "BQL has moved the wait to where it can be managed; a plain fifo does not manage it",
            "packets that wait in the old qdisc are dropped; a little more CPU per packet",
            (("qdisc", "fq_codel"),),
        )


def _per_packet(verdict: Verdict, window: Window, queue: QueueSample | None) -> Iterable[Advice]:
    index = queue.index if queue else None
    yield Advice(
        f"let {USUAL_LIMIT_MIN} packets out at least",
        "with a limit of 2 the queue stops and the qdisc takes packets back for nearly every one of them",
        f"up to {USUAL_LIMIT_MIN} packets wait in the ring, each for as long as the consumer needs for one",
        (("limit_min", str(USUAL_LIMIT_MIN)),), index,
    )  # fmt: skip
    yield Advice(
        f"complete every {USUAL_USECS} us instead of packet by packet",
        "one completion for several packets lets BQL find a limit that keeps the consumer busy",
        "the limit, and with it the wait in the ring, grows with what is sent in that time",
        (("tx-usecs", str(USUAL_USECS)),),
    )


def _per_poll(verdict: Verdict, window: Window, queue: QueueSample | None) -> Iterable[Advice]:
    index = queue.index if queue else None
    yield Advice(
        f"complete every {USUAL_USECS} us instead of once a poll",
        "the limit follows from how much is completed at once: less at once, less in the ring",
        "more completions, and more stops and requeues",
        (("tx-usecs", str(USUAL_USECS)),),
    )
    yield Advice(
        "hold the limit at 64 packets",
        "that is one poll's budget: half of what lies in the ring now",
        "the consumer may run dry between two completions: fewer packets per second",
        (("limit_max", "64"),), index,
    )  # fmt: skip


def _limit_jumped(verdict: Verdict, window: Window, queue: QueueSample | None) -> Iterable[Advice]:
    if queue is None or not queue.limit:
        return
    yield Advice(
        f"cap the limit at {fmt.count(max(1, queue.limit // 4))}",
        "the next burst cannot raise it again, and the wait it allows ends now instead of after hold_time",
        "a real need for more outstanding packets is not met: watch packets/s",
        (("limit_max", str(max(1, queue.limit // 4))),), queue.index,
    )  # fmt: skip
    if queue.hold_time_ms and queue.hold_time_ms > 100:
        yield Advice(
            "let the limit shrink sooner: hold_time 100 ms",
            "a slack must last hold_time before the limit follows it down",
            "with traffic in bursts the limit swings more, and may be too low when the next burst begins",
            (("hold_time", "100"),), queue.index,
        )  # fmt: skip


def _imbalance(verdict: Verdict, window: Window, queue: QueueSample | None) -> Iterable[Advice]:
    name = window.device.name
    yield Advice(
        "spread the flows over the queues",
        "the other queues, and the CPUs behind them, are idle; a single flow always stays on one queue",
        "packets of one flow may be handled on another CPU than before; with XPS the sending CPU decides",
        commands=(f"echo CPUMASK > /sys/class/net/{name}/queues/tx-N/xps_cpus",),
    )


def _not_napi(verdict: Verdict, window: Window, queue: QueueSample | None) -> Iterable[Advice]:
    yield Advice(
        "switch veth's NAPI mode on",
        "only then do packets go through the ring: something can be stopped, measured and limited",
        "TCP hands over single packets instead of segments of 64 kB: more CPU per byte",
        (("tso", "off"), ("peer-gro", "on")),
    )


def _noqueue(verdict: Verdict, window: Window, queue: QueueSample | None) -> Iterable[Advice]:
    yield Advice(
        "give it a qdisc",
        "without one a stopped queue drops packets; with one they wait, and can be scheduled",
        "a lock and a little CPU per packet",
        (("qdisc", "fq_codel"),),
    )


def _reset(verdict: Verdict, window: Window, queue: QueueSample | None) -> Iterable[Advice]:
    name = shlex.quote(window.device.name)
    yield Advice(
        "take the device down and up again",
        "that sets all queues and limits back; nothing else is sure to wake a queue whose wake-up was lost",
        "its traffic is cut, routes and neighbours of the interface are forgotten",
        commands=(f"ip link set dev {name} down && ip link set dev {name} up",),
    )


def _stuck(verdict: Verdict, window: Window, queue: QueueSample | None) -> Iterable[Advice]:
    yield Advice(
        "look at who takes the packets out",
        "nothing completes: a stopped process behind a tun, a NAPI instance that is not polled, a link without a partner",
        "nothing",
        commands=(f"ip -s -d link show {window.device.name}",),
    )


def _state_unseen(verdict: Verdict, window: Window, queue: QueueSample | None) -> Iterable[Advice]:
    yield Advice(
        "run bqltop as root, with bcc installed",
        "who stops a queue, and for how long, is only to be seen from within the kernel",
        "some 0.1 us per packet on the watched device",
        commands=("apt install python3-bpfcc", f"sudo bqltop {window.device.name}"),
    )


_RULES: dict[str, Rule] = {
    "lost-wakeup": _reset,
    "watchdog": _reset,
    "stuck": _stuck,
    "driver-stops": _driver_stops,
    "ring-drops": _ring_drops,
    "bql-stops": _bql_stops,
    "per-packet": _per_packet,
    "per-poll": _per_poll,
    "limit-jumped": _limit_jumped,
    "imbalance": _imbalance,
    "not-napi": _not_napi,
    "noqueue": _noqueue,
    "state-unseen": _state_unseen,
}
WITHOUT = frozenset(("away", "down", "no-carrier", "idle", "flowing", "starting"))
"""Verdicts about which nothing need be done."""
