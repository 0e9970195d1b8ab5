"""The state machine of a watched device, told what a kernel would tell it."""

from dataclasses import replace

import pytest

from bqltop.kernel.links import Link
from bqltop.kernel.rtnl import Overflow, QdiscChange
from bqltop.lifecycle import KINDS, Action, Lifecycle, differences, qdisc_events
from bqltop.model import LinkStats, QdiscSample

VETH = Link(5, "veth0", flags=1, mtu=1500, tx_queue_len=1000, oper_state="UP", qdisc="mq", kind="veth", link=4, link_netnsid=0)
GONE = replace(VETH, flags=0, gone=True)


def kinds(step) -> list[str]:
    return [event.kind for event in step.events]


def test_nothing_to_tell_is_nothing_to_do():
    life = Lifecycle(VETH)
    step = life.changes([VETH, QdiscChange(5, "mq", "1:", "root"), replace(VETH, ifindex=9, name="other", mtu=1)], 7)
    assert (step.events, step.action, step.look) == ((), Action.NONE, False)


def test_an_announcement_from_before_the_last_look_does_not_make_the_counters_fall():
    life = Lifecycle(VETH)
    life.look(replace(VETH, stats=LinkStats(100, 1000, 0, 0, 0, 0, 0, 0)), 7)
    step = life.changes([replace(VETH, flags=0, stats=LinkStats(90, 900, 0, 0, 0, 0, 0, 0))], 8)
    assert (kinds(step), step.action) == (["down"], Action.REFRESH)
    assert kinds(life.look(replace(VETH, flags=0, stats=LinkStats(1, 9, 0, 0, 0, 0, 0, 0)), 9)) == ["reset"]


def test_deleted_is_one_event_though_it_was_switched_off_first():
    life = Lifecycle(VETH)
    step = life.changes([replace(VETH, flags=0), GONE], 7)
    assert kinds(step) == ["deleted"]
    assert (step.action, step.moved_netnsid, life.present) == (Action.DETACH, None, False)


def test_recreated_under_its_name_is_attached_anew():
    life = Lifecycle(VETH)
    life.changes([GONE], 7)
    step = life.changes([replace(VETH, ifindex=8, name="else"), replace(VETH, ifindex=9)], 8)
    assert (kinds(step), step.action, life.link.ifindex) == (["returned"], Action.REATTACH, 9)


def test_deleted_and_recreated_between_two_looks_is_attached_anew():
    life = Lifecycle(VETH)
    step = life.changes([GONE, replace(VETH, ifindex=9), replace(VETH, ifindex=9, mtu=1400)], 7)
    assert (kinds(step), step.action) == (["deleted", "returned", "mtu"], Action.REATTACH)


def test_recreated_and_deleted_again_is_away():
    life = Lifecycle(VETH)
    step = life.changes([GONE, replace(VETH, ifindex=9), replace(GONE, ifindex=9)], 7)
    assert (kinds(step), step.action, life.present) == (["deleted", "returned", "deleted"], Action.DETACH, False)


def test_a_rename_keeps_hold_of_it_and_either_name_brings_it_back():
    for name in ("new", "veth0"):
        life = Lifecycle(VETH)
        step = life.changes([replace(VETH, name="new")], 7)
        assert (kinds(step), step.action) == (["renamed"], Action.REFRESH)
        assert life.changes([replace(VETH, ifindex=6)], 8).events == (), "another device took the old name"
        life.changes([replace(GONE, name="new")], 9)
        assert life.changes([replace(VETH, ifindex=11, name=name)], 10).action is Action.REATTACH


def test_a_move_says_where_to_and_following_attaches_anew():
    life = Lifecycle(VETH)
    step = life.changes([replace(VETH, flags=0), replace(GONE, moved_netnsid=3, moved_ifindex=2)], 7)
    assert (kinds(step), step.action, step.moved_netnsid, step.moved_ifindex) == (["moved"], Action.DETACH, 3, 2)
    step = life.followed(replace(VETH, ifindex=2, name="eth0"), "namespace blue", 8)
    assert (step.action, life.present, life.link.ifindex) == (Action.REATTACH, True, 2)
    assert step.events[0].text == "followed veth0 into namespace blue, where it is called eth0"


def test_an_overflow_asks_for_a_look():
    assert Lifecycle(VETH).changes([Overflow()], 7).look


def test_a_look_finds_what_the_announcements_missed():
    life = Lifecycle(VETH, 4)
    assert life.look(VETH, 7, 4).action is Action.NONE
    assert kinds(life.look(replace(VETH, mtu=9000), 7, 4)) == ["mtu"]
    step = life.look(VETH, 7, 2)
    assert (kinds(step), step.action, life.tx_queues) == (["mtu", "queues"], Action.REATTACH, 2)
    step = life.look(None, 7)
    assert (kinds(step), step.action) == (["deleted"], Action.DETACH)
    assert life.look(None, 8).events == (), "away is told once"
    assert kinds(life.look(replace(VETH, ifindex=10), 9)) == ["returned"]
    assert kinds(life.look(replace(VETH, ifindex=11), 9)) == ["deleted", "returned"]


def test_a_namespace_that_is_gone_takes_the_device_with_it():
    life = Lifecycle(VETH)
    step = life.namespace_gone("namespace blue", 7)
    assert (kinds(step), step.action, life.present) == (["netns"], Action.DETACH, False)
    assert step.events[0].text == "namespace blue is gone, and veth0 with it"


def test_counters_that_fell_are_a_new_baseline_but_one_alone_is_not():
    stats = LinkStats(100, 10000, 0, 0, 5, 500, 0, 0)
    life = Lifecycle(replace(VETH, stats=stats))
    assert life.look(replace(VETH, stats=replace(stats, tx_packets=99)), 7).action is Action.NONE
    step = life.look(replace(VETH, stats=replace(stats, tx_packets=1, tx_bytes=90)), 7)
    assert (kinds(step), step.action) == (["reset"], Action.REBASE)


@pytest.mark.parametrize(
    ("field", "value", "kind"),
    [
        ("name", "x", "renamed"),
        ("flags", 0, "down"),
        ("oper_state", "DOWN", "carrier"),
        ("mtu", 1400, "mtu"),
        ("tx_queue_len", 5, "txqueuelen"),
        ("master", 3, "master"),
        ("address", "00:01", "address"),
        ("xdp", True, "xdp"),
        ("link_netnsid", 4, "peer"),
        ("link", None, "peer"),
    ],
)
def test_each_difference_is_one_event_of_a_known_kind(field, value, kind):
    found = differences(VETH, replace(VETH, **{field: value}))
    assert [kind_ for kind_, _ in found] == [kind]
    assert kind in KINDS
    assert "None" not in found[0][1] or kind == "address"


def qdisc(kind: str, handle: str, parent: str = "root", **options) -> QdiscSample:
    return QdiscSample(kind, handle, parent, 0, 0, 0, 0, 0, 0, 0, options=options)


def test_a_replaced_root_speaks_for_its_children():
    before = [qdisc("mq", "1:"), qdisc("pfifo", "2:", "1:1"), qdisc("pfifo", "3:", "1:2")]
    (event,) = qdisc_events(before, [qdisc("sfq", "8002:")], 7)
    assert event.text == "qdisc mq 1: root -> sfq 8002: root"
    assert qdisc_events(before, before, 7) == []


def test_a_childs_and_an_options_change_are_told():
    before = [qdisc("mq", "1:"), qdisc("pfifo", "2:", "1:1", limit=5)]
    assert [event.text for event in qdisc_events(before, [before[0], qdisc("pfifo", "2:", "1:1", limit=9)], 7)] == [
        "qdisc pfifo 2: at 1:1: limit 5 -> 9"
    ]
    assert [event.text for event in qdisc_events(before, before[:1], 7)] == ["qdisc pfifo 2: at 1:1 was taken away"]
    assert [event.text for event in qdisc_events([], [qdisc("pfifo", "2:")], 7)] == ["qdisc pfifo 2: root was put in place"]


def test_counters_among_the_options_are_no_change():
    assert qdisc_events([qdisc("htb", "1:", direct_packets_stat=1)], [qdisc("htb", "1:", direct_packets_stat=9)], 7) == []
