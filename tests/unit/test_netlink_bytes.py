"""What the parsers make of the bytes a kernel sends, for the things that not every kernel here can produce."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bqltop.kernel import links, netlink, qdisc_details, qdiscs, rtnl
from bqltop.kernel.netlink import attribute


def qdisc(
    kind,
    *,
    ifindex=7,
    handle=0x80020000,
    parent=qdiscs.TC_H_ROOT,
    options=b"",
    basic=(0, 0),
    queue=(0, 0, 0, 0, 0),
    wide=None,
    app=b"",
):
    stats = attribute(1, struct.pack("=QI", *basic)) + attribute(3, struct.pack("=5I", *queue))
    stats += b"" if wide is None else attribute(8, struct.pack("=Q", wide))
    payload = struct.pack("=BxxxiIII", 0, ifindex, handle, parent, 2) + attribute(1, kind.encode() + b"\0")
    payload += attribute(7 | 0x8000, stats)
    return (qdiscs.RTM_NEWQDISC, b"\xff" * 16 + payload, 16, 16 + len(payload))


def test_counters_are_64_bit_where_the_kernel_sends_them_so():
    message = qdisc("pfifo", basic=(1 << 40, 5), queue=(1, 2, 3, 4, 5), wide=(1 << 32) + 5)
    (found,) = qdiscs.parse_device([message], 7)
    assert (found.bytes, found.packets) == (1 << 40, (1 << 32) + 5)
    assert (found.backlog_packets, found.backlog_bytes, found.drops, found.requeues, found.overlimits) == (1, 2, 3, 4, 5)
    assert (found.handle, found.parent) == ("8002:", "root")


def test_only_the_device_that_was_asked_for():
    assert qdiscs.parse_device([qdisc("pfifo", ifindex=8)], 7) == ()
    assert set(qdiscs.parse_all([qdisc("pfifo", ifindex=8), qdisc("mq")])) == {7, 8}


def test_queue_numbers_go_to_the_children_of_the_root_alone():
    tree = [
        qdisc("sfq", handle=0x90000000, parent=0x80020002),
        qdisc("mq"),
        qdisc("pfifo", handle=0, parent=0x80020001),
        qdisc("pfifo", handle=0, parent=0x90000001),
        qdisc("ingress", handle=0xFFFF0000, parent=qdiscs.TC_H_INGRESS),
    ]
    found = qdiscs.parse_device(tree, 7)
    assert [(q.kind, q.parent, q.txq) for q in found] == [
        ("mq", "root", None),
        ("pfifo", "8002:1", 0),
        ("sfq", "8002:2", 1),
        ("pfifo", "9000:1", None),
        ("ingress", "ffff:fff1", None),
    ]


def test_children_of_htb_are_classes_and_no_queues():
    found = qdiscs.parse_device([qdisc("htb"), qdisc("pfifo", parent=0x80020001)], 7)
    assert [q.txq for q in found] == [None, None]


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0xFFFFFFFF, "root"),
        (0xFFFFFFF1, "ffff:fff1"),
        (0x80010001, "8001:1"),
        (0x00000001, ":1"),
        (0x00010000, "1:"),
        (0x1000A, "1:a"),
    ],
)
def test_parents_are_written_as_tc_writes_them(number, text):
    assert qdiscs.parent_text(number) == text


def test_fq_codel_statistics_by_tc_names():
    raw = struct.pack("=10I", 0, 1514, 2, 3, 4, 5, 6, 7, 8, 9)
    assert qdisc_details.statistics("fq_codel", raw) == {
        "maxpacket": 1514,
        "drop_overlimit": 2,
        "ecn_mark": 3,
        "new_flow_count": 4,
        "new_flows_len": 5,
        "old_flows_len": 6,
        "ce_mark": 7,
        "memory_used": 8,
        "drop_overmemory": 9,
    }


def test_a_class_of_fq_codel_is_not_mistaken_for_the_qdisc():
    assert qdisc_details.statistics("fq_codel", struct.pack("=10I", 1, *range(9))) == {}


def test_other_statistics():
    fq = struct.pack("=7Qq4I", *range(7), -8, 9, 10, 11, 12)
    assert qdisc_details.statistics("fq", fq)["throttled"] == 3
    assert qdisc_details.statistics("fq", fq)["time_next_delayed_flow_ns"] == -8
    assert qdisc_details.statistics("codel", struct.pack("=4Ii4I", 1, 2, 3, 4, -5, 6, 7, 8, 9))["ecn_mark"] == 7
    assert qdisc_details.statistics("red", struct.pack("=4I", 1, 2, 3, 4)) == {"early": 1, "pdrop": 2, "other": 3, "marked": 4}
    assert qdisc_details.statistics("pie", struct.pack("=Q8I", 1, *range(2, 10)))["packets_in"] == 5
    cake = attribute(4, struct.pack("=I", 4096)) + attribute(2, struct.pack("=Q", 1 << 33))
    assert qdisc_details.statistics("cake", cake) == {"memory_used": 4096, "capacity_estimate": 1 << 33}


def test_a_shorter_structure_of_an_older_kernel_is_left_out():
    assert qdisc_details.statistics("fq", bytes(20)) == {}
    assert qdisc_details.statistics("unheard-of", bytes(20)) == {}


def test_options_by_tc_names():
    fq_codel = b"".join(attribute(n, struct.pack("=I", v)) for n, v in ((1, 4999), (2, 10240), (4, 1), (5, 1024), (9, 33554432)))
    assert qdisc_details.options("fq_codel", fq_codel) == {
        "target": 4999,
        "limit": 10240,
        "ecn": 1,
        "flows": 1024,
        "memory_limit": 33554432,
    }
    assert qdisc_details.options("pfifo", struct.pack("=I", 1000)) == {"limit": 1000}
    assert qdisc_details.options("sfq", struct.pack("=IiIII", 1514, 10, 127, 1024, 128) + struct.pack("=I", 127))["limit"] == 127
    red = struct.pack("=3I4B", 102400, 10240, 30720, 9, 20, 10, 1)
    assert qdisc_details.options("red", attribute(1, red)) == {"limit": 102400, "min": 10240, "max": 30720, "ecn": 1}
    assert qdisc_details.options("htb", attribute(2, struct.pack("=5I", 3, 10, 0x10, 0, 4)))["default"] == "0x10"


def test_pyroute2_decodes_the_options_of_the_others():
    netem = struct.pack("=6I", 1000, 44, 0, 0, 0, 0)
    assert qdisc_details.options("netem", netem)["limit"] == 44
    assert qdisc_details.options("unheard-of", netem) == {}


@given(st.sampled_from(["fq_codel", "htb", "tbf", "red", "sfq", "prio", "cake", "netem", "fq"]), st.binary(max_size=80))
def test_no_bytes_in_options_or_statistics_make_a_parser_fail(kind, raw):
    qdisc_details.options(kind, raw)
    qdisc_details.statistics(kind, raw)


def link(*attributes: bytes, kind=links.RTM_NEWLINK, ifindex=3, flags=1):
    payload = struct.pack("=BBHiII", 0, 0, 1, ifindex, flags, 0) + b"".join(attributes)
    return (kind, payload, 0, len(payload))


def test_a_link_that_is_its_own_lower_device_has_none():
    assert links.parse(link(attribute(5, struct.pack("=i", 3)))).link is None
    other_namespace = link(attribute(5, struct.pack("=i", 3)), attribute(37, struct.pack("=i", 0)))
    assert (links.parse(other_namespace).link, links.parse(other_namespace).link_netnsid) == (3, 0)


def test_a_deletion_is_a_move_only_when_it_says_where_to():
    moved = links.parse(link(attribute(45, struct.pack("=i", 2)), attribute(49, struct.pack("=i", 9)), kind=links.RTM_DELLINK))
    assert (moved.gone, moved.moved_netnsid, moved.moved_ifindex) == (True, 2, 9)
    deleted = links.parse(link(kind=links.RTM_DELLINK))
    assert (deleted.gone, deleted.moved_netnsid) == (True, None)


def test_an_xdp_program_is_seen():
    assert links.parse(link(attribute(43 | 0x8000, attribute(2, b"\1")))).xdp
    assert not links.parse(link(attribute(43 | 0x8000, attribute(2, b"\0")))).xdp


def test_an_announcement_of_a_wireless_event_is_no_news_of_the_device():
    name, mtu = attribute(3, b"wlan0\0"), attribute(4, struct.pack("=I", 1500))
    assert rtnl.parse_change(link(name, attribute(11, b"\0" * 16), flags=0)) is None
    assert rtnl.parse_change(link(name, mtu)).mtu == 1500


def test_a_name_that_is_no_utf8_survives_the_way_back():
    raw = b"\xff\xfe"
    name = links.parse(link(attribute(3, raw + b"\0"))).name
    assert raw + b"\0" in links.request(name=name)


def test_attributes_stop_at_nonsense():
    assert netlink.attributes(b"\0\0\1\0", 0, 4) == {}
    assert netlink.attributes(attribute(1, b"abc") + b"\2\0", 0, 10) == {1: (4, 7)}
