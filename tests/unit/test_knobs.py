"""Knobs: what a person may type, what stepping does, and what a qdisc is called."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bqltop.tuning.knobs import (
    DQL_MAX_LIMIT,
    KNOBS,
    PEER_KNOBS,
    U32,
    BadValue,
    Kind,
    Setting,
    bounds,
    parse_qdisc,
    qdisc_knob,
    show_qdisc,
)


def setting(id, values=(0,), hz=250, maximum=None):
    low, high = bounds(KNOBS[id], maximum, hz)
    return Setting(KNOBS[id], "veth0", None, values, low=low, high=high)


@pytest.mark.parametrize(
    ("id", "text", "value"),
    [
        ("limit_min", "8", 8),
        ("limit_min", " 8 ", 8),
        ("limit_min", "max", DQL_MAX_LIMIT),
        ("limit_min", "1879048192", 1879048192),
        ("stall_thrs", "0", 0),
        ("stall_thrs", "16", 16),
        ("stall_thrs", "512", 512),
        ("adaptive-tx", "on", 1),
        ("adaptive-tx", "0", 0),
        ("tx-usecs", "4294967295", U32),
        ("qdisc", "fq_codel,limit=100,target=5ms", "fq_codel limit 100 target 5000us"),
        ("qdisc", "pfifo", "pfifo"),
    ],
)
def test_what_a_person_may_type(id, text, value):
    assert setting(id).check(text) == value


@pytest.mark.parametrize(
    ("id", "text"),
    [
        ("limit_min", "1879048193"), ("limit_min", "-1"), ("limit_min", "0x8"), ("limit_min", ""), ("limit_min", "8 9"),
        ("limit_min", "٨"), ("limit_min", "4294967296"), ("stall_thrs", "15"), ("stall_thrs", "513"),
        ("adaptive-tx", "2"), ("adaptive-tx", "yes"), ("tx-usecs", "4294967296"), ("tx-usecs", "max"), ("ring-tx", "0"),
        ("qdisc", ""), ("qdisc", "pfifo limit"), ("qdisc", "pfifo limit x"), ("qdisc", "a;b"), ("qdisc", "$(x)"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused_in_one_line(id, text):
    with pytest.raises(BadValue) as caught:
        setting(id).check(text)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(id)


@pytest.mark.parametrize(("hz", "low", "high"), [(100, 40, 1280), (250, 16, 512), (1000, 4, 128)])
def test_the_stall_threshold_is_checked_in_jiffies(hz, low, high):
    assert bounds(KNOBS["stall_thrs"], None, hz) == (low, high)


def test_the_device_gives_the_size_of_its_rings():
    assert bounds(KNOBS["ring-tx"], 512, 250) == (1, 512)


def test_stepping_up_from_0_and_down_again():
    one = setting("limit_min", (0,))
    seen = [0]
    for _ in range(6):
        seen.append(one.step(+1, seen[-1]))
    assert seen == [0, 1, 2, 4, 8, 16, 32]
    assert one.step(-1, 32) == 16
    assert one.step(-1, 0) == 0
    assert one.step(+1, DQL_MAX_LIMIT) == DQL_MAX_LIMIT
    assert setting("tx-usecs").step(+1, 50) == 100
    assert setting("stall_thrs").step(+1, 0) == 16
    assert setting("stall_thrs").step(-1, 16) == 0
    assert setting("adaptive-tx", (0,)).step(+1) == 1
    assert setting("qdisc", ("pfifo",)).step(+1) is None
    assert setting("limit_min", (1, 2)).step(+1) is None


@given(st.sampled_from([knob for knob in KNOBS.values() if knob.kind is Kind.NUMBER]), st.integers(0, U32),
       st.sampled_from([-1, 1]), st.sampled_from([100, 250, 1000]))  # fmt: skip
def test_every_step_is_a_value_the_knob_takes(knob, start, direction, hz):
    low, high = bounds(knob, None, hz)
    start = min(max(start, low), high)
    value = knob.step(start, direction, low, high)
    Setting(knob, "x", None, low=low, high=high).check(str(value))
    assert value == start or (value > start) == (direction > 0)


def test_queues_that_differ_show_as_a_span():
    one = dataclasses.replace(setting("limit_min"), values=(8, DQL_MAX_LIMIT), queues=(0, 1))
    assert one.value is None
    assert one.text == "8..max"


@pytest.mark.parametrize("id", [*KNOBS, *PEER_KNOBS])
def test_every_knob_says_what_it_is(id):
    knob = {**KNOBS, **PEER_KNOBS}[id]
    assert knob.help
    assert knob.kind is not Kind.NUMBER or knob.unit
    assert knob.low <= knob.high


@given(st.sampled_from(["fq_codel", "pie", "fq"]),
       st.dictionaries(st.sampled_from(["limit", "target", "quantum", "ecn"]), st.integers(0, 1)))  # fmt: skip
def test_a_qdisc_survives_being_written_and_read(kind, parameters):
    assert parse_qdisc(show_qdisc(kind, parameters)) == (kind, parameters)


def test_units_of_qdisc_parameters():
    assert qdisc_knob("bfifo", "limit").unit == "bytes"
    assert qdisc_knob("fq_codel", "limit").unit == "packets"
    assert qdisc_knob("fq_codel", "target").unit == "us"
    assert qdisc_knob("fq_codel", "ecn").kind is Kind.SWITCH
    assert parse_qdisc("codel target 1s interval 20ms") == ("codel", {"target": 1_000_000, "interval": 20_000})
