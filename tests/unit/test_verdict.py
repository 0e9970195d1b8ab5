"""Each rule of bqltop.verdict with numbers: when it speaks, what it says, and when it must not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bqltop.model import Device, NapiSample, Peer, Probe, QdiscSample, QueueSample, Sample, Unit
from bqltop.verdict import judge
from bqltop.window import LinkWindow, NapiWindow, QdiscWindow, QueueWindow, Window

DEVICE = Device("veth0", 7, "veth", "veth", peer=Peer(2, "eth0"), tx_queues=1, flags=1, oper_state="UP", qdisc="pfifo")
SEEN = {"drv_xoff": False, "stack_xoff": False, "frozen": False, "tx_timeouts": 0}


def window(*pairs: tuple[QueueSample, QueueWindow], device: Device = DEVICE, seconds: float = 1.0, backlog: int = 0,
           requeues: float = 0.0, work: float | None = None, probes: tuple[Probe, ...] = ()) -> Window:
    """A window with these queues, one root qdisc and, with ``work``, one NAPI instance."""
    qdisc = QdiscSample("pfifo", "8002:", "root", 0, 0, 0, 0, 0, backlog * 106, backlog)
    napi = (NapiSample("eth0", 258, 1000, 1000, 0, (0,) * 65, "peer"),) if work else ()
    sample = Sample(2_000_000_000, 2_000_000_000, device, tuple(q for q, _ in pairs), (qdisc,), napi, probes=probes)
    return Window(
        seconds, sample, tuple(w for _, w in pairs),
        (QdiscWindow("pfifo", "8002:", "root", 1000.0, 1e6, 0.0, requeues, 0.0, backlog * 106, backlog),),
        (NapiWindow("eth0", 258, 1000.0, 1000.0 * work, work, 0.0, (0,) * 65, "peer"),) if work else (),
    )


def queue(index: int = 0, **figures) -> QueueSample:
    return QueueSample(index, **{**SEEN, **figures})


def rates(index: int = 0, unit: Unit | None = None, **figures) -> QueueWindow:
    start = {"packets_per_s": 0.0, "busy_per_s": 0.0, "stopped_share": 0.0, "stopped_driver_share": 0.0,
             "stopped_bql_share": 0.0, "tx_timeouts": 0}
    return QueueWindow(index, unit, **{**start, **figures})


def kinds(verdicts) -> list[str]:
    return [verdict.kind for verdict in verdicts]


FLOODED = (
    queue(drv_xoff=True, ring_size=256, ring_used=251),
    rates(packets_per_s=71_200.0, busy_per_s=1400.0, stopped_share=0.931, stopped_driver_share=0.931,
          completed_per_s=71_200.0, drained_per_s=71_200.0, dark_buffer_s=251 / 71_200),
)


def test_a_full_ring_is_the_drivers_stop_and_a_dark_buffer():
    first = judge(window(FLOODED, backlog=1000))[0]
    assert first.kind == "driver-stops"
    assert first.queue == 0
    assert first.sentence == (
        "The driver stops queue 0 for 93 % of the time: its ring is full (251 of 256) and the consumer takes "
        "71.2k packets/s."
    )
    assert "A packet waits 3.53 ms in the ring, where the qdisc cannot see it." in first.detail
    assert "veth has no BQL" in first.detail
    assert ("qdisc backlog", "1000 packets") in first.evidence


def test_measured_sojourn_times_replace_the_estimate():
    sample, seen = FLOODED
    seen = replace(seen, qdisc_sojourn_p50_s=0.0002, ring_sojourn_p50_s=0.0031)
    detail = judge(window((sample, seen)))[0].detail
    assert "200 us in the qdisc and 3.1 ms in the ring: 94 % of the wait is where the qdisc cannot see it" in detail
    seen = replace(seen, qdisc_sojourn_p50_s=0.15)
    assert "98 % of the wait is in the qdisc, which can schedule" in judge(window((sample, seen)))[0].detail


def test_the_mean_occupancy_of_the_ring_counts_where_the_caller_knows_it():
    sample, seen = FLOODED
    empty_now = replace(sample, ring_used=0)
    assert "is full" not in judge(window((empty_now, replace(seen, dark_buffer_s=0.0))))[0].sentence
    first = judge(window((empty_now, replace(seen, dark_buffer_s=0.0))), rings={0: 250.4})[0]
    assert "its ring is full (250 of 256)" in first.sentence
    assert "3.52 ms" in first.detail


def test_bql_as_the_stopper_states_the_unit_and_where_packets_wait():
    pair = (
        queue(stack_xoff=True, unit=Unit.BYTES, limit=24_224, limit_min=0, inflight=22_710),
        rates(unit=Unit.BYTES, packets_per_s=81_000.0, stopped_share=0.6, stopped_bql_share=0.6,
              completed_per_s=122e6, inflight_mean=20_000.0),
    )
    first = judge(window(pair, backlog=37))[0]
    assert first.kind == "bql-stops"
    assert first.sentence == "BQL stops queue 0 for 60 % of the time: 20k of 24.2k bytes are inflight."
    assert "wait in the qdisc (37 packets)" in first.detail
    assert "the limit itself adds 164 us" in first.detail


def test_a_stop_shorter_than_a_twentieth_of_the_time_is_not_worth_a_word():
    sample, seen = FLOODED
    seen = replace(seen, stopped_share=0.04, stopped_driver_share=0.04)
    assert "driver-stops" not in kinds(judge(window((sample, seen))))


def test_a_lost_wakeup():
    pair = (
        queue(drv_xoff=True, inflight=0, limit=10, unit=Unit.PACKETS, ring_size=256, ring_used=0),
        rates(unit=Unit.PACKETS, stopped_share=1.0, stopped_driver_share=1.0, completed_per_s=0.0, drained_per_s=0.0),
    )
    first = judge(window(pair, backlog=1000))[0]
    assert first.kind == "lost-wakeup"
    assert "a wake-up was lost" in first.sentence
    assert "DRV_XOFF" in first.detail


@pytest.mark.parametrize(
    "changes",
    [{"sample": {"inflight": 3}}, {"sample": {"drv_xoff": False}}, {"rates": {"packets_per_s": 10.0}},
     {"rates": {"stopped_share": 0.5}}, {"sample": {"ring_used": None, "inflight": None}}],
    ids=["something inflight", "not stopped", "packets pass", "stopped half the time", "inflight unknown"],
)
def test_no_lost_wakeup_while(changes):
    sample = queue(**{"drv_xoff": True, "inflight": 0, "ring_used": 0, **changes.get("sample", {})})
    seen = rates(**{"stopped_share": 1.0, "completed_per_s": 0.0, **changes.get("rates", {})})
    assert "lost-wakeup" not in kinds(judge(window((sample, seen))))


def test_inflight_without_a_completion_is_a_stuck_consumer():
    pair = (
        queue(stack_xoff=True, inflight=30_280, limit=30_280, unit=Unit.BYTES),
        rates(unit=Unit.BYTES, stopped_share=1.0, stopped_bql_share=1.0, completed_per_s=0.0),
    )
    first = judge(window(pair))[0]
    assert first.kind == "stuck"
    assert first.sentence == "Queue 0 is stuck: 30.3k bytes inflight and not one completion in 1 s."


def test_a_full_ring_that_does_not_move_is_stuck_without_bql_too():
    pair = (queue(drv_xoff=True, ring_size=256, ring_used=256), rates(stopped_share=1.0, stopped_driver_share=1.0,
                                                                      drained_per_s=0.0))
    first = judge(window(pair))[0]
    assert first.kind == "stuck"
    assert "256 packets in the ring" in first.sentence


def test_a_packet_under_way_on_a_quiet_queue_is_not_stuck():
    pair = (queue(inflight=1514, limit=3000, unit=Unit.BYTES), rates(unit=Unit.BYTES, completed_per_s=0.0))
    assert "stuck" not in kinds(judge(window(pair, seconds=0.1)))
    assert "stuck" in kinds(judge(window(pair, seconds=1.0)))


def test_completions_held_back_with_an_empty_ring_are_not_stuck():
    quiet = queue(inflight=4, limit=31, unit=Unit.PACKETS, ring_size=256, ring_used=0)
    still = rates(unit=Unit.PACKETS, completed_per_s=0.0)
    assert kinds(judge(window((quiet, still), seconds=2.0))) == ["idle"]
    assert "stuck" in kinds(judge(window((replace(quiet, ring_used=4), still), seconds=2.0)))
    assert "stuck" in kinds(judge(window((replace(quiet, stack_xoff=True), still), seconds=2.0)))


def drops(driver: str, tun_flags: int | None = None, **seen):
    pair = (queue(ring_size=500, ring_used=499), rates(packets_per_s=400.0, drained_per_s=400.0, **seen))
    device = replace(DEVICE, driver=driver, kind=driver, peer=None, tun_flags=tun_flags)
    return judge(replace(window(pair, device=device), link=LinkWindow(400.0, 4e5, 1600.0, 0.0, 0.0)))


def test_a_tun_without_backpressure_drops_at_the_ring():
    first = drops("tun", 0x1001)[0]
    assert first.kind == "ring-drops"
    assert "drops at the ring: backpressure is off" in first.sentence
    assert "IFF_BACKPRESSURE" in first.detail
    assert ("ring", "499/500") in first.evidence


def test_drops_at_the_ring_are_told_of_nobody_who_stops_the_queue():
    assert "ring-drops" in kinds(drops("veth"))
    assert "ring-drops" not in kinds(drops("veth", stops_driver_per_s=5.0))
    assert "ring-drops" not in kinds(drops("tun", 0x1081))
    assert "ring-drops" not in kinds(drops("virtio_net"))


def test_the_watchdog_names_the_queue_and_does_not_clear_the_others():
    pairs = [(queue(i, tx_timeouts=int(i == 3)), rates(i, packets_per_s=10.0, tx_timeouts=int(i == 3)))
             for i in range(8)]
    first = judge(window(*pairs))[0]
    assert (first.kind, first.queue) == ("watchdog", 3)
    assert "fired on queue 3" in first.sentence
    assert "not cleared of suspicion" in first.detail


PER_PACKET = (
    queue(limit=2, limit_min=0, inflight=2, unit=Unit.PACKETS, stack_xoff=True),
    rates(unit=Unit.PACKETS, packets_per_s=63_000.0, completed_per_s=63_000.0, stopped_share=0.7,
          stopped_bql_share=0.7, inflight_mean=2.0),
)


def test_completion_per_packet_is_named_with_its_cost_and_its_cure():
    first = judge(window(PER_PACKET, requeues=11_000.0, work=3.0))[0]
    assert first.kind == "per-packet"
    assert "its limit is 2 packets and a NAPI poll handles 3.0" in first.sentence
    assert "11k requeues/s" in first.detail
    assert "limit_min 8" in first.detail


@pytest.mark.parametrize(("requeues", "work"), [(100.0, 3.0), (11_000.0, 40.0), (11_000.0, None)])
def test_a_small_limit_alone_is_not_completion_per_packet(requeues, work):
    assert "per-packet" not in kinds(judge(window(PER_PACKET, requeues=requeues, work=work)))


def test_a_limit_in_bytes_is_never_taken_for_packets():
    sample, seen = PER_PACKET
    pair = (replace(sample, unit=Unit.BYTES), replace(seen, unit=Unit.BYTES))
    assert "per-packet" not in kinds(judge(window(pair, requeues=11_000.0, work=3.0)))


def test_a_limit_of_128_is_one_completion_per_poll():
    pair = (queue(limit=128, inflight=120, unit=Unit.PACKETS),
            rates(unit=Unit.PACKETS, packets_per_s=6400.0, completed_per_s=6400.0))
    verdict = next(v for v in judge(window(pair, work=64.0)) if v.kind == "per-poll")
    assert "128 packets" in verdict.sentence
    assert "20 ms" in verdict.detail


def test_a_limit_that_jumped_is_told_with_the_hold_time():
    def at(limit: int) -> Window:
        return window((queue(limit=limit, limit_min=0, inflight=0, unit=Unit.BYTES, hold_time_ms=1000),
                       rates(unit=Unit.BYTES, packets_per_s=10.0, completed_per_s=1e4)))

    verdict = next(v for v in judge(at(60_000), before=(at(3000), at(60_000))) if v.kind == "limit-jumped")
    assert "jumped from 3000 to 60k bytes" in verdict.sentence
    assert "hold_time (1 s)" in verdict.detail
    assert "limit-jumped" not in kinds(judge(at(60_000), before=(at(59_000),)))
    assert "limit-jumped" not in kinds(judge(at(60_000)))


def test_imbalance_and_its_two_exceptions():
    def loads(*packets: float) -> Window:
        return window(*((queue(i), rates(i, packets_per_s=rate)) for i, rate in enumerate(packets)))

    verdict = next(v for v in judge(loads(9900, 50, 50, 0)) if v.kind == "imbalance")
    assert verdict.sentence == "Queue 0 carries 99 % of all packets; the other 3 are nearly idle."
    assert "imbalance" not in kinds(judge(loads(9900)))
    assert "imbalance" not in kinds(judge(loads(50, 1)))
    assert "imbalance" not in kinds(judge(loads(5000, 5000)))


def test_veth_outside_napi_mode_and_noqueue_say_what_to_type():
    device = replace(DEVICE, napi_mode=False, qdisc="noqueue")
    found = judge(window((queue(), rates(packets_per_s=10.0)), device=device))
    assert {"not-napi", "noqueue"} <= set(kinds(found))
    details = " ".join(v.detail for v in found)
    assert "ethtool -K veth0 tso off" in details
    assert "ethtool -K eth0 gro on" in details
    assert "tc qdisc replace dev veth0 root" in details


def test_several_queues_make_one_verdict_about_the_worst():
    pairs = []
    for index in range(64):
        sample, seen = FLOODED
        share = 0.5 + index / 200
        pairs.append((replace(sample, index=index),
                      replace(seen, index=index, stopped_driver_share=share, stopped_share=share)))
    found = judge(window(*pairs))
    assert kinds(found).count("driver-stops") == 1
    assert "64 of 64 queues, queue 63 most," in found[0].sentence

    stuck = [(queue(i, inflight=i + 1, unit=Unit.PACKETS, limit=99, stack_xoff=True),
              rates(i, unit=Unit.PACKETS, completed_per_s=0.0)) for i in range(3)]
    first = judge(window(*stuck))[0]
    assert first.queue == 2
    assert "The same holds for 2 other queues." in first.detail


def test_faults_come_before_costs_and_costs_before_notes():
    stuck = (queue(1, inflight=5, limit=9, unit=Unit.PACKETS, stack_xoff=True),
             rates(1, unit=Unit.PACKETS, completed_per_s=0.0))
    found = judge(window(FLOODED, stuck, device=replace(DEVICE, qdisc="noqueue")))
    assert [v.severity for v in found] == sorted((v.severity for v in found), reverse=True)
    assert found[0].kind == "stuck"


def test_without_ebpf_it_says_what_is_seen_and_what_is_not():
    pair = (QueueSample(0), QueueWindow(0))
    probe = Probe("bpf", False, "needs root: sudo bqltop veth0")
    first = judge(window(pair, requeues=1842.0, backlog=1000, probes=(probe,)))[0]
    assert first.kind == "state-unseen"
    assert first.sentence == "The driver turns packets away: 1842 requeues/s, 1000 packets in the qdisc."
    assert "needs root: sudo bqltop veth0" in first.detail


def test_calm_states_are_said_too():
    assert judge(None)[0].kind == "starting"
    moving = window((queue(), rates(packets_per_s=1000.0)))
    assert judge(None, moving.newer)[0].kind == "starting"
    assert judge(moving)[0].sentence == "Nothing stops veth0: 1000 packets/s pass and nothing waits."
    assert judge(window((queue(), rates())))[0].kind == "idle"
    down = replace(DEVICE, flags=0, oper_state="DOWN")
    assert judge(window((queue(), rates()), device=down))[0].kind == "down"


def test_a_device_that_is_away_is_the_only_thing_to_say():
    gone = replace(window(FLOODED).newer, present=False)
    assert kinds(judge(None, gone)) == ["away"]


def test_no_queue_at_all_is_no_exception():
    assert judge(window())


def test_names_from_outside_stand_in_the_sentence_as_they_are():
    device = replace(DEVICE, name="[red]")
    assert judge(window((queue(), rates(packets_per_s=10.0)), device=device))[0].sentence.startswith(
        "Nothing stops [red]:"
    )


def test_a_device_without_carrier_says_so_before_it_talks_of_napi_mode():
    alone = replace(DEVICE, oper_state="LOWERLAYERDOWN", napi_mode=False)
    verdicts = judge(window((queue(), rates()), device=alone))
    assert kinds(verdicts)[:2] == ["no-carrier", "not-napi"]
    assert "LOWERLAYERDOWN" in verdicts[0].detail
    assert alone.peer.name in verdicts[0].detail


def test_a_device_that_is_down_says_so_before_it_talks_of_the_qdisc():
    down = replace(DEVICE, flags=0, oper_state="DOWN", qdisc="noqueue")
    assert kinds(judge(window((queue(), rates()), device=down)))[:2] == ["down", "noqueue"]
