"""A sample survives the way to JSON and back; what a stranger wrote is checked value by value."""

import json
from dataclasses import fields

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up import everything, sample, with_event

from bqltop.model import SCHEMA, Sample
from bqltop.recording import jsonline
from bqltop.recording.codec import DecodeError, from_dict, to_dict
from bqltop.window import between


@pytest.mark.parametrize("queues", [0, 1, 3])
def test_there_and_back(queues):
    before = with_event(sample(7, queues))
    assert from_dict(jsonline.loads(jsonline.dumps(to_dict(before)))) == before


def test_the_names_others_rely_on():
    older, newer = sample(1), sample(2)
    plain = json.loads(jsonline.dumps(to_dict(newer, between(older, newer))))
    assert list(plain)[:2] == ["schema", "time_ns"]
    assert plain["schema"] == SCHEMA
    assert plain["device"]["peer"] == {"ifindex": 8, "name": "eth0", "netns": "red"}
    assert {"name", "ifindex", "driver", "netns", "peer"} <= set(plain["device"])
    assert plain["probes"][1] == {"name": "kprobe", "in_force": False, "why": "no kprobes here"}
    assert set(plain["queues"][0]) >= {
        "index", "drv_xoff", "stack_xoff", "frozen", "unit", "limit", "limit_min", "limit_max", "hold_time_ms", "inflight",
        "packets", "busy", "completed", "stops_driver", "stops_bql", "stopped_driver_ns", "stopped_bql_ns", "ring_size",
        "ring_used", "tx_timeouts",
    }  # fmt: skip
    assert plain["queues"][0]["unit"] == "packets"
    assert plain["queues"][0]["stall_count"] is None
    assert set(plain["qdiscs"][0]) >= {
        "kind", "handle", "parent", "packets", "bytes", "drops", "requeues", "overlimits", "backlog_bytes", "backlog_packets",
    }  # fmt: skip
    assert set(plain["napis"][0]) >= {"device", "napi_id", "polls", "work", "full_polls"}
    assert plain["queues"][0]["inflight_histogram"] == [0] * 12 + [2000]
    assert plain["window"]["queues"][0]["stopped_share"] == 0.5


def test_nothing_to_compare_with_is_null():
    assert to_dict(sample(1), None)["window"] is None
    assert "window" not in to_dict(sample(1), with_window=False)


def test_names_nobody_should_have_stay_themselves():
    odd = sample(1)
    odd = type(odd)(odd.time_ns, odd.monotonic_ns, type(odd.device)("\x1b[2J\udc80é'\"[red]", 1))
    line = jsonline.dumps(to_dict(odd))
    assert line.isascii()
    assert line.isprintable()
    assert from_dict(jsonline.loads(line)).device.name == odd.device.name


def test_what_is_not_a_number_becomes_null():
    assert jsonline.dumps({"a": [float("nan"), float("inf"), 1.5]}) == '{"a":[null,null,1.5]}'


def at(plain, path, value):
    *steps, last = path
    for step in steps:
        plain = plain[step]
    if value is KeyError:
        del plain[last]
    else:
        plain[last] = value


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["schema"], SCHEMA + 1, "newer bqltop"),
        (["schema"], "1", "no schema"),
        (["schema"], KeyError, "no schema"),
        (["time_ns"], 1.5, "sample.time_ns"),
        (["time_ns"], 1 << 70, "sample.time_ns"),
        (["device"], None, "sample.device"),
        (["device", "name"], 5, "device.name"),
        (["device", "name"], "x" * 10_000, "device.name"),
        (["queues"], {}, "sample.queues"),
        (["queues", 0, "index"], True, "queues.index"),
        (["queues", 0, "index"], KeyError, "lacks index"),
        (["queues", 0, "drv_xoff"], 1, "queues.drv_xoff"),
        (["queues", 0, "unit"], "furlongs", "neither packets nor bytes"),
        (["queues", 0, "inflight_histogram"], [1] * 161, "cells"),
        (["queues", 0, "inflight_histogram"], [-1], "counts"),
        (["queues", 0, "inflight_histogram"], [[[]]], "counts"),
        (["napis", 0, "work_histogram"], [0] * 66, "cells"),
        (["qdiscs", 0, "extra"], {"flows": "x"}, "extra.flows"),
        (["qdiscs", 0, "options"], [], "options"),
        (["own", "cpu_s"], "1", "cpu_s"),
    ],
)
def test_hostile_values_get_one_line(path, value, message):
    plain = json.loads(jsonline.dumps(to_dict(sample(3))))
    at(plain, path, value)
    with pytest.raises(DecodeError, match=message) as caught:
        from_dict(plain)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("line", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b"NaN", b"1" * 10_000, b'{"a":' * 50_000])
def test_lines_that_are_not_json(line):
    with pytest.raises(DecodeError):
        from_dict(jsonline.loads(line))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
PATHS = [["device"], ["device", "peer"], ["queues"], ["queues", 0], ["queues", 0, "limit"], ["napis", 0, "work_histogram"],
         ["qdiscs", 0, "extra"], ["own"], ["cpus"], ["events"], ["probes", 0], ["link"], ["present"]]  # fmt: skip


@settings(max_examples=300)
@given(st.sampled_from(PATHS), json_values)
def test_anything_anywhere_decodes_or_says_so(path, value):
    plain = json.loads(jsonline.dumps(to_dict(sample(3))))
    at(plain, path, value)
    try:
        decoded = from_dict(plain)
    except DecodeError:
        return
    assert from_dict(to_dict(decoded)) == decoded


def test_a_later_version_may_add_names():
    plain = to_dict(sample(3))
    plain["later"] = plain["queues"][0]["later"] = [1, 2]
    assert from_dict(json.loads(jsonline.dumps(plain))) == sample(3)


def test_every_field_there_is_survives():
    full = everything()
    plain = json.loads(jsonline.dumps(to_dict(full)))
    assert from_dict(plain) == full
    assert set(plain) == {f.name for f in fields(Sample)} | {"window"}
