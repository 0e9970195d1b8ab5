"""What is going on, in words: the window between two samples becomes a ranked list of verdicts with their evidence.

Pure: numbers in, sentences out. The rules are rules of thumb; each names the figures it rests on, so that a reader
can disagree. A rule whose figures are not to be had says nothing, and ``judge`` then says which figures are missing.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from bqltop import format as fmt
from bqltop.evidence import (
    CALM,
    COSTLY,
    NOTABLE,
    SEVERE,
    Seen,
    Verdict,
    as_sentence,
    backlog_text,
    limit_wait,
    percent,
    polls_text,
    requeue_rate,
    root_backlog,
    state_bits,
    where_it_waits,
    which_queues,
    work_average,
    work_text,
)
from bqltop.model import Sample, Unit
from bqltop.window import Window

STOPPED_SHARE = 0.05
"""A queue stopped for less than this share of the time is not worth a verdict."""
MOSTLY = 0.5
"""A queue stopped for more than this share of the time is stopped again and again, not now and then."""
FULL_RING = 0.9
"""Occupancy from which a ring counts as full: a stop and its wake-up both move it by a few entries."""
TINY_LIMIT = 4
"""A limit (packets) this low means that completions come one by one."""
BATCH_LIMIT = range(96, 161)
"""Limits (packets) around 128: two NAPI budgets, one completed while the next is sent."""
SMALL_WORK = 8
"""Packets per NAPI poll below which the overhead of polling shows."""
JUMP = 4
"""A limit this many times what it was before has jumped."""
LOPSIDED = 0.9
"""Share of all packets on one queue of several that counts as an imbalance."""
MOVING = 100
"""Packets per second below which shares of packets say nothing."""

IFF_BACKPRESSURE = 0x0080
"""A tun or tap that stops its queue when the ring is full (linux/if_tun.h)."""


def judge(window: Window | None, sample: Sample | None = None, before: Sequence[Window] = (),
          rings: Mapping[int, float] | None = None) -> tuple[Verdict, ...]:
    """Verdicts on ``window``, the most severe first; never empty.

    ``sample`` stands in while there is no window (just attached, device away). ``before`` are earlier windows,
    oldest first, for the rules that compare (a limit that jumped). ``rings``: mean occupancy of each queue's ring, where
    the caller has looked more than once; without it the last look counts.
    """
    sample = window.newer if window else sample
    if sample is None:
        return (Verdict("starting", CALM, "Nothing read yet."),)
    if not sample.present:
        return (_away(sample),)
    if window is None:
        return (Verdict("starting", CALM, f"Attached to {sample.device.name}; the first figures are a moment away."),)
    samples = {queue.index: queue for queue in sample.queues}
    means = rings or {}
    queues = [
        Seen(samples[queue.index], queue, means.get(queue.index, samples[queue.index].ring_used))
        for queue in window.queues
    ]
    found = [verdict for rule in _RULES for verdict in rule(window, queues, before)]
    found.sort(key=lambda verdict: (-verdict.severity, -verdict.weight))
    return tuple(_one_of_each(found)) or (_quiet(window, queues),)


def _one_of_each(found: Sequence[Verdict]) -> list[Verdict]:
    """One verdict of each kind, about the queue where it weighs most; how many others share it stands in the detail."""
    best: dict[str, Verdict] = {}
    for verdict in found:
        best.setdefault(verdict.kind, verdict)
    for kind, verdict in best.items():
        others = sum(other.kind == kind for other in found) - 1
        if others:
            same = f"The same holds for {others} other queue{'' if others == 1 else 's'}."
            best[kind] = replace(verdict, detail=f"{verdict.detail} {same}".lstrip())
    return list(best.values())


# -- one function per rule: (window, queues, earlier windows) -> verdicts ------------------------------------------


def _lost_wakeup(window: Window, queues: Sequence[Seen], before) -> Iterable[Verdict]:
    """Stopped the whole time, nothing outstanding, nothing completed: nobody is left who would wake it."""
    for q in queues:
        stopped_all_along = q.window.stopped_share is None or q.window.stopped_share > 0.99
        outstanding = (q.sample.inflight or 0) + (q.sample.ring_used or 0)
        known = q.sample.inflight is not None or q.sample.ring_used is not None
        moved = (q.window.packets_per_s or 0) + (q.window.completed_per_s or 0)
        if q.sample.stopped and stopped_all_along and known and not outstanding and not moved:
            yield Verdict(
                "lost-wakeup", SEVERE,
                f"Queue {q.index} is stopped although nothing is outstanding: a wake-up was lost.",
                f"Nothing will start it again until the watchdog or a reset of the device does. Set: {state_bits(q.sample)}.",
                (("state", state_bits(q.sample)), ("inflight", fmt.count(q.sample.inflight)),
                 ("done/s", fmt.rate(q.window.completed_per_s)), ("backlog", backlog_text(window))),
                q.index, "reset",
            )


def _stuck(window: Window, queues: Sequence[Seen], before) -> Iterable[Verdict]:
    """Something outstanding at both ends of the window and not one completion between."""
    for q in queues:
        held, where = (q.sample.inflight, "inflight") if q.sample.inflight else (q.sample.ring_used, "in the ring")
        done = q.window.completed_per_s if q.sample.inflight else q.window.drained_per_s
        if not held or done is None or done > 0 or window.seconds < 0.05:
            continue
        # A packet that was sent just now and is still under way looks the same on a quiet queue.
        if not q.sample.stopped and not q.window.packets_per_s and window.seconds < 0.5:
            continue
        # Taken out of the ring and not yet completed: veth with tx-usecs holds the last completions back until it polls again.
        if not q.sample.stopped and q.sample.inflight and q.sample.ring_used == 0:
            continue
        units = q.units if q.sample.inflight else "packets"
        yield Verdict(
            "stuck", SEVERE,
            f"Queue {q.index} is stuck: {fmt.count(held)} {units} {where} and not one completion in "
            f"{fmt.seconds(window.seconds)}.",
            "The consumer does not take packets: look at its process, its NAPI instance or its link.",
            ((where, f"{fmt.count(held)} {units}"), ("done/s", "0"), ("NAPI polls/s", polls_text(window))),
            q.index, "consumer", held,
        )


def _watchdog(window: Window, queues: Sequence[Seen], before) -> Iterable[Verdict]:
    fired = [q for q in queues if q.window.tx_timeouts]
    if fired:
        first = fired[0]
        names = ", ".join(str(q.index) for q in fired[:4]) + (" ..." if len(fired) > 4 else "")
        yield Verdict(
            "watchdog", SEVERE,
            f"The transmit watchdog fired on {'queue' if len(fired) == 1 else 'queues'} {names}: nothing was completed "
            "for seconds.",
            "The kernel reports the first late queue only; the others are not cleared of suspicion.",
            tuple((f"timeouts q{q.index}", fmt.count(q.sample.tx_timeouts)) for q in fired[:4]),
            first.index, "reset",
        )


def _driver_stops(window: Window, queues: Sequence[Seen], before) -> Iterable[Verdict]:
    """DRV_XOFF: the ring is full, the consumer is the bottleneck, the ring is a dark buffer."""
    stopped = [q for q in queues if (q.window.stopped_driver_share or 0) >= STOPPED_SHARE]
    if not stopped:
        return
    q = max(stopped, key=lambda q: q.window.stopped_driver_share)
    share = q.window.stopped_driver_share
    ring = q.ring_share
    rate = q.window.drained_per_s if q.window.drained_per_s is not None else q.window.packets_per_s
    sentence = f"The driver stops {which_queues(stopped, queues, q)} for {percent(share)} of the time"
    if ring is not None and ring >= FULL_RING:
        sentence += f": its ring is full ({round(q.ring)} of {q.sample.ring_size})"
    elif ring is not None:
        often = "keeps filling up" if share >= MOSTLY else "fills up now and then"
        sentence += f": its ring ({q.sample.ring_size} packets) {often}"
    if rate is not None:
        sentence += f" and the consumer takes {fmt.rate(rate)} packets/s"
    detail = []
    detail.append(where_it_waits(q))
    if q.sample.limit is None:
        sampled = q.window.qdisc_sojourn_p50_s is not None and bool(q.window.ring_sojourn_p50_s)
        which = "it" if detail[0] and not sampled else "the ring"
        detail.append(f"{window.device.driver or 'This driver'} has no BQL to bound {which}.")
    yield Verdict(
        "driver-stops", COSTLY, sentence + ".", " ".join(filter(None, detail)),
        (("stopped by driver", fmt.share(share)),
         ("ring", f"{fmt.count(q.ring and round(q.ring))}/{fmt.count(q.sample.ring_size)}"),
         ("dark buffer", fmt.seconds(q.dark_buffer_s)), ("busy/s", fmt.rate(q.window.busy_per_s)),
         ("qdisc backlog", backlog_text(window)), ("NAPI work", work_text(window))),
        q.index, "consumer" if q.sample.limit is None else "limit", share,
    )


def _bql_stops(window: Window, queues: Sequence[Seen], before) -> Iterable[Verdict]:
    """STACK_XOFF with room left in the ring: the limit is the queue, and the wait is in the qdisc."""
    stopped = [q for q in queues if (q.window.stopped_bql_share or 0) >= STOPPED_SHARE]
    if not stopped:
        return
    q = max(stopped, key=lambda q: q.window.stopped_bql_share)
    share = q.window.stopped_bql_share
    sentence = f"BQL stops {which_queues(stopped, queues, q)} for {percent(share)} of the time: {q.inflight} are inflight."
    detail = f"Packets wait in the qdisc ({backlog_text(window)}), where they can be scheduled and dropped"
    wait = limit_wait(q)
    detail += f"; the limit itself adds {fmt.seconds(wait)}." if wait else "."
    yield Verdict(
        "bql-stops", NOTABLE, sentence, detail,
        (("stopped by BQL", fmt.share(share)), ("inflight", q.inflight), ("done/s", fmt.rate(q.window.completed_per_s)),
         ("qdisc backlog", backlog_text(window)), ("requeues/s", fmt.rate(requeue_rate(window)))),
        q.index, None, share,
    )


def _per_packet(window: Window, queues: Sequence[Seen], before) -> Iterable[Verdict]:
    """Limit pinned at 2 packets, many requeues, few packets per poll: each packet is completed by itself."""
    work, requeues = work_average(window.napis), requeue_rate(window)
    for q in queues:
        rate, limit = q.window.packets_per_s or 0, q.sample.limit
        if q.sample.unit is not Unit.PACKETS or limit is None or limit > TINY_LIMIT or rate < MOVING:
            continue
        if requeues is None or requeues < 0.02 * rate or work is None or work >= SMALL_WORK:
            continue
        yield Verdict(
            "per-packet", COSTLY,
            f"Queue {q.index} is completed packet by packet: its limit is {limit} packets and a NAPI poll handles "
            f"{work:.1f}.",
            f"That costs {fmt.rate(requeues)} requeues/s; limit_min 8, or tx-usecs of about 50, cuts the overhead.",
            (("limit", f"{limit} packets"), ("requeues/s", fmt.rate(requeues)), ("NAPI work", f"{work:.1f}"),
             ("packets/s", fmt.rate(rate))),
            q.index, "batch", rate,
        )


def _per_poll(window: Window, queues: Sequence[Seen], before) -> Iterable[Verdict]:
    """A limit of about 128 packets: completions come once per NAPI poll."""
    for q in queues:
        limit, done = q.sample.limit, q.window.completed_per_s or 0
        if q.sample.unit is not Unit.PACKETS or limit not in BATCH_LIMIT or done < MOVING:
            continue
        yield Verdict(
            "per-poll", NOTABLE,
            f"Queue {q.index} has a limit of {limit} packets: completions come once per NAPI poll of 64.",
            f"At {fmt.rate(done)} packets/s that is {fmt.seconds(limit / done)} of wait below the qdisc.",
            (("limit", f"{limit} packets"), ("done/s", fmt.rate(done)), ("NAPI work", work_text(window))),
            q.index, "limit", limit / done,
        )


def _jumped(window: Window, queues: Sequence[Seen], before: Sequence[Window]) -> Iterable[Verdict]:
    """One burst raised the limit; it may shrink once per hold_time."""
    if not before:
        return
    earlier = {queue.index: queue.limit for queue in before[0].newer.queues}
    for q in queues:
        was, limit = earlier.get(q.index), q.sample.limit
        if was and limit and limit >= JUMP * was and limit != q.sample.limit_min:
            hold = fmt.milliseconds(q.sample.hold_time_ms)
            yield Verdict(
                "limit-jumped", NOTABLE,
                f"The limit of queue {q.index} jumped from {fmt.count(was)} to {fmt.count(limit)} {q.units} and stays: "
                "one burst raised it.",
                f"It may shrink once per hold_time ({hold}).",
                (("limit before", fmt.count(was)), ("limit", fmt.count(limit)), ("hold_time", hold)),
                q.index, "limit-max", limit / was,
            )


def _imbalance(window: Window, queues: Sequence[Seen], before) -> Iterable[Verdict]:
    rates = [(q.window.packets_per_s or 0, q.index) for q in queues]
    total = sum(rate for rate, _ in rates)
    highest, index = max(rates, default=(0, 0))
    if len(queues) > 1 and total >= MOVING and highest >= LOPSIDED * total:
        yield Verdict(
            "imbalance", NOTABLE,
            f"Queue {index} carries {percent(highest / total)} of all packets; "
            f"{'the other is' if len(queues) == 2 else f'the other {len(queues) - 1} are'} nearly idle.",
            "One flow alone does that; with many flows look at XPS, RPS and the hashing of the sender.",
            (("packets/s", fmt.rate(highest)), ("of", fmt.rate(total))),
            index, "spread", 0.01,
        )


def _no_link(window: Window, queues: Sequence[Seen], before) -> Iterable[Verdict]:
    """The device cannot send at all: switched off, or without carrier (RFC 2863)."""
    device = window.device
    name = device.name
    if not device.up:
        yield Verdict("down", COSTLY, f"{name} is down: nothing can be sent.",
                      f"To switch it on: ip link set dev {shlex.quote(name)} up.", weight=1.0)
    elif device.oper_state in ("DOWN", "LOWERLAYERDOWN", "NOTPRESENT"):
        at = f" in namespace {device.peer.netns}" if device.peer and device.peer.netns else ""
        other = f"the other end, {device.peer.name or 'its peer'}{at}," if device.peer else "the cable or the other end"
        yield Verdict("no-carrier", COSTLY, f"{name} has no carrier: nothing can be sent.",
                      f"It is switched on, but {other} is not ({device.oper_state}).", weight=1.0)


def _no_backpressure(window: Window, queues: Sequence[Seen], before) -> Iterable[Verdict]:
    device = window.device
    peer = device.peer.name if device.peer and device.peer.name else "PEER"
    if device.napi_mode is False:
        commands = "; ".join(device.napi_commands) or \
            f"ethtool -K {shlex.quote(device.name)} tso off, and at the other end ethtool -K {shlex.quote(peer)} gro on"
        yield Verdict(
            "not-napi", NOTABLE,
            f"{device.name} does not use its ring: without NAPI mode no packet waits here and nothing stops the queue.",
            f"{as_sentence(device.napi_reason)}To switch it on: {commands}.",
            (("NAPI mode", "no"),), None, "napi-mode",
        )
    if device.qdisc == "noqueue":
        yield Verdict(
            "noqueue", NOTABLE,
            f"{device.name} has no qdisc (noqueue): a stopped queue drops packets, nothing can wait.",
            f"To have one: tc qdisc replace dev {shlex.quote(device.name)} root fq_codel.",
            (("qdisc", "noqueue"),), None, "qdisc",
        )


def _drops_at_the_ring(window: Window, queues: Sequence[Seen], before) -> Iterable[Verdict]:
    """Packets lost below the qdisc: a driver that drops when its ring is full instead of stopping the queue."""
    device, dropped = window.device, window.link.tx_dropped_per_s if window.link else 0.0
    full = max((q for q in queues if q.ring_share is not None), key=lambda q: q.ring_share, default=None)
    if device.driver not in ("tun", "veth") or not dropped or full is None or any(q.window.stops_driver_per_s for q in queues):
        return
    why, cure = "its driver does not stop the queue", "Newer kernels stop it, and packets wait in the qdisc instead."
    if device.driver == "tun":
        if device.tun_flags is None or device.tun_flags & IFF_BACKPRESSURE:
            return
        why = "backpressure is off"
        cure = "Its owner can ask for it: IFF_BACKPRESSURE in TUNSETIFF (Linux 7.3 and later), with a qdisc on the device."
    yield Verdict(
        "ring-drops", COSTLY,
        f"{device.name} drops at the ring: {why}. {fmt.rate(dropped)} packets/s find it full.",
        f"The qdisc never sees them: it can neither hold nor choose. {cure}",
        (("tx_dropped/s", fmt.rate(dropped)), ("ring", f"{fmt.count(full.sample.ring_used)}/{fmt.count(full.sample.ring_size)}"),
         ("qdisc backlog", backlog_text(window))),
        full.index, "consumer", dropped,
    )


def _without_state(window: Window, queues: Sequence[Seen], before) -> Iterable[Verdict]:
    """No eBPF: what stops the queues cannot be seen. Say what can."""
    if any(q.sample.drv_xoff is not None for q in queues) or not queues:
        return
    probe = next((probe for probe in window.newer.probes if not probe.in_force), None)
    requeues, root = requeue_rate(window), root_backlog(window)
    if requeues:
        sentence = f"The driver turns packets away: {fmt.rate(requeues)} requeues/s, {backlog_text(window)} in the qdisc."
    elif root:
        sentence = f"{backlog_text(window)[0].upper()}{backlog_text(window)[1:]} wait in the qdisc."
    else:
        rate = window.link.tx_packets_per_s if window.link else None
        sentence = f"Nothing waits in the qdisc at {fmt.rate(rate)} packets/s."
    why = f" ({probe.name}: {probe.why})" if probe and probe.why else ""
    yield Verdict(
        "state-unseen", NOTABLE if requeues or root else CALM, sentence,
        f"Who stops the queues, and for how long, cannot be seen now{why}.",
        (("requeues/s", fmt.rate(requeues)), ("qdisc backlog", backlog_text(window))), None, "ebpf",
    )


Rule = Callable[[Window, Sequence[Seen], Sequence[Window]], Iterable[Verdict]]
_RULES: tuple[Rule, ...] = (
    _lost_wakeup, _stuck, _watchdog, _driver_stops, _bql_stops, _per_packet, _per_poll, _jumped, _imbalance,
    _drops_at_the_ring, _no_link, _no_backpressure, _without_state,
)


# -- when no rule has anything to say ------------------------------------------------------------------------------


def _away(sample: Sample) -> Verdict:
    return Verdict("away", SEVERE, f"{sample.device.name} is away.",
                   "The figures are the last ones seen; they go on when it returns.")


def _quiet(window: Window, queues: Sequence[Seen]) -> Verdict:
    rates = [q.window.packets_per_s for q in queues if q.window.packets_per_s is not None]
    rate = sum(rates) if rates else window.link.tx_packets_per_s if window.link else None
    name = window.device.name
    if not rate:
        return Verdict("idle", CALM, f"Nothing is being sent on {name}.", "Its queues are open and empty.")
    waiting = root_backlog(window)
    sentence = f"Nothing stops {name}: {fmt.rate(rate)} packets/s pass"
    sentence += f", {backlog_text(window)} in the qdisc." if waiting else " and nothing waits."
    fullest = max((q for q in queues if q.dark_buffer_s), key=lambda q: q.dark_buffer_s, default=None)
    detail = f"The fullest ring (queue {fullest.index}) holds a packet for {fmt.seconds(fullest.dark_buffer_s)}." \
        if fullest else ""
    return Verdict("flowing", CALM, sentence, detail, (("packets/s", fmt.rate(rate)), ("backlog", backlog_text(window))))
