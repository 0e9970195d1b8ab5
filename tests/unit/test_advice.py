"""Advice: something for every verdict that calls for it, applicable where it can be, with its price."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from bqltop import advice, verdict
from bqltop.advice import Advice, advise, advise_all, still_open
from bqltop.model import Device, Peer, QueueSample, Sample, Unit
from bqltop.tuning.knobs import KNOBS, PEER_KNOBS, Setting
from bqltop.verdict import Verdict
from bqltop.window import between

VETH = Device("veth0", 7, "veth", "veth", peer=Peer(8, "eth0", "red"), qdisc="pfifo", tx_queue_len=1000)


def window(device: Device = VETH, **queue):
    figures = QueueSample(0, ring_size=256, ring_used=250, **queue)
    return between(Sample(1, 10**9, device, (figures,)), Sample(2, 2 * 10**9, device, (figures,)))


def about(kind: str, given) -> tuple:
    return advise(Verdict(kind, verdict.COSTLY, "sentence", queue=0), given)


def kinds() -> set[str]:
    """Every kind of verdict there is, from the source."""
    source = Path(verdict.__file__).read_text()
    return set(re.findall(r'Verdict\(\s*"([a-z-]+)"', source))


def test_every_verdict_has_advice_or_needs_none():
    assert kinds() == set(advice._RULES) | advice.WITHOUT
    assert not set(advice._RULES) & advice.WITHOUT


@pytest.mark.parametrize("kind", sorted(advice._RULES))
def test_advice_is_complete_and_its_knobs_exist(kind):
    given = window(limit=500, hold_time_ms=1000, unit=Unit.PACKETS)
    found = about(kind, given)
    assert found
    for one in found:
        assert one.what
        assert one.why
        assert one.cost
        assert one.applicable or one.commands
        for knob, value in one.knobs:
            known = KNOBS.get(knob) or PEER_KNOBS.get(knob)
            assert known, knob
            known.parse(value)


def test_a_full_ring_without_bql():
    knobs = [one.assignments for one in about("driver-stops", window())]
    assert knobs == [{"peer-threaded": "on"}, {"qdisc": "fq_codel"}]
    tun = Device("tun0", 9, "tun", "tun", qdisc="fq_codel", tx_queue_len=1000, tun_flags=1)
    assert [one.assignments for one in about("driver-stops", window(tun))] == [{"txqueuelen": "64"}]
    card = Device("eth0", 2, "igb", None, qdisc="mq")
    assert about("driver-stops", window(card))[0].assignments == {"ring-tx": "64"}


def test_a_full_ring_with_bql_is_kept_below_its_size():
    (first, *_) = about("driver-stops", window(limit=1500, unit=Unit.PACKETS))
    assert (first.assignments, first.queue) == ({"limit_max": "64"}, 0)
    (first, *_) = about("driver-stops", window(limit=900_000, unit=Unit.BYTES))
    assert int(first.assignments["limit_max"]) > 1514


def test_completion_per_packet():
    assert [one.assignments for one in about("per-packet", window(limit=2))] == [{"limit_min": "8"}, {"tx-usecs": "50"}]


def test_stops_by_bql_over_a_good_qdisc_need_nothing():
    assert about("bql-stops", window(replace(VETH, qdisc="fq_codel"))) == ()
    assert about("bql-stops", window())[0].assignments == {"qdisc": "fq_codel"}


def test_without_a_window_or_a_need_there_is_none():
    assert about("driver-stops", None) == ()
    assert about("flowing", window()) == ()


def test_the_same_advice_is_given_once():
    verdicts = [Verdict(kind, verdict.COSTLY, "", queue=0) for kind in ("driver-stops", "bql-stops", "driver-stops")]
    found = advise_all(verdicts, window())
    assert len(found) == len(set(found))


def setting(id: str, *values, queues=(None,), why_not=None) -> Setting:
    return Setting(KNOBS.get(id) or PEER_KNOBS[id], "veth0", None, values, queues, why_not=why_not)


def test_what_is_so_already_is_not_advised():
    advice = about("driver-stops", window())
    settings = [setting("peer-threaded", 1), setting("qdisc", "pfifo limit 1000")]
    assert [one.assignments for one in still_open(advice, settings)] == [{"qdisc": "fq_codel"}]
    assert still_open(advice, [setting("peer-threaded", 1), setting("qdisc", "fq_codel limit 10240")]) == ()
    assert still_open(advice, []) == advice


def test_of_two_settings_the_one_that_is_missing_is_advised():
    (one,) = still_open(about("not-napi", window()), [setting("tso", 0), setting("peer-gro", 0)])
    assert one.assignments == {"peer-gro": "on"}


def test_a_setting_of_another_queue_is_not_this_one():
    advice = (Advice("what", "why", "cost", (("limit_max", "64"),), 1),)
    assert still_open(advice, [setting("limit_max", 64, 128, queues=(0, 1))]) == advice
    assert still_open(advice, [setting("limit_max", 64, queues=(0,))]) == advice
    assert still_open(advice, [setting("limit_max", 128, 64, queues=(0, 1))]) == ()


def test_what_the_device_cannot_have_says_so_and_comes_last():
    advice = about("per-poll", window(limit=128))
    settings = [setting("tx-usecs", why_not="Operation not supported"), setting("limit_max", 1000, queues=(0,))]
    first, last = still_open(advice, settings)
    assert (first.assignments, first.applicable) == ({"limit_max": "64"}, True)
    assert (last.assignments, last.applicable, last.why_not) == ({"tx-usecs": "50"}, False, "Operation not supported")
