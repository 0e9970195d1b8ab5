"""Links, counters and qdiscs against what ip and tc say of the same objects."""

import json
import subprocess

import pytest

from bqltop.kernel import netlink, qdiscs
from bqltop.kernel import netns as namespaces
from bqltop.kernel.links import Link
from bqltop.kernel.rtnl import Overflow, QdiscChange, Rtnl

HOSTILE = ("[red]", "x'y\"z", "é1", "-o", "fifteen-letters", "5")


def run(*words: str, check: bool = True) -> str:
    return subprocess.run(words, check=check, capture_output=True, text=True).stdout


def tc_qdiscs(name: str, device: str) -> list[dict]:
    return json.loads(run("tc", "-n", name, "-j", "-s", "qdisc", "show", "dev", device))


@pytest.fixture
def rtnl():
    opened = []

    def make(name: str) -> Rtnl:
        opened.append(Rtnl(namespaces.resolve(name)))
        return opened[-1]

    yield make
    for each in opened:
        each.close()


def has_qdisc(name: str, device: str, *words: str) -> bool:
    return subprocess.run(["tc", "-n", name, "qdisc", "replace", "dev", device, *words], capture_output=True).returncode == 0


def test_every_field_of_a_veth_is_what_ip_says(veth_pair, rtnl):
    pair = veth_pair(queues=4)
    here, there = pair.sender, pair.receiver
    device = rtnl(here.netns).device(here.device)
    (said,) = json.loads(run("ip", "-n", here.netns, "-j", "-d", "-s", "link", "show", "dev", here.device))
    assert device.name == said["ifname"] == here.device
    assert device.ifindex == said["ifindex"]
    assert device.mtu == said["mtu"]
    assert device.tx_queue_len == said["txqlen"]
    assert device.oper_state == said["operstate"]
    assert device.qdisc == said["qdisc"]
    assert device.address == said["address"]
    assert device.kind == said["linkinfo"]["info_kind"] == "veth"
    assert device.peer.ifindex == said["link_index"]
    assert (device.peer.name, device.peer.netns) == (there.device, there.netns)
    assert device.netns == here.netns
    assert device.driver == "veth"
    assert device.tx_queues == 4
    assert device.up == ("UP" in said["flags"])
    assert device.master is None
    assert device.tun_flags is None


def test_counters_are_those_of_ip(veth_pair, rtnl):
    pair = veth_pair()
    end = pair.sender
    run("ip", "netns", "exec", end.netns, "ping", "-c", "3", "-i", "0.01", pair.receiver.address, check=False)
    reader = rtnl(end.netns)
    stats = reader.link_stats(reader.link(end.device).ifindex)
    (said,) = json.loads(run("ip", "-n", end.netns, "-j", "-s", "link", "show", "dev", end.device))
    tx, rx = said["stats64"]["tx"], said["stats64"]["rx"]
    assert (stats.tx_packets, stats.tx_bytes, stats.tx_errors, stats.tx_dropped) == (
        tx["packets"],
        tx["bytes"],
        tx["errors"],
        tx["dropped"],
    )
    assert (stats.rx_packets, stats.rx_bytes, stats.rx_errors, stats.rx_dropped) == (
        rx["packets"],
        rx["bytes"],
        rx["errors"],
        rx["dropped"],
    )
    assert stats.tx_packets > 0


@pytest.mark.parametrize(
    "words",
    [
        "pfifo limit 77",
        "bfifo limit 7777",
        "tbf rate 1mbit burst 5k limit 10k",
        "htb default 10",
        "fq_codel limit 555",
        "sfq perturb 10",
        "fq limit 99",
        "codel limit 88",
        "pie limit 66",
        "red limit 100k min 10k max 30k avpkt 1000 burst 20 ecn",
        "prio",
        "cake bandwidth 10mbit",
        "netem limit 44 delay 1ms",
        "hhf",
        "noqueue",
    ],
)
def test_a_qdisc_is_what_tc_says(veth_pair, rtnl, words):
    end = veth_pair(queues=1).sender
    if not has_qdisc(end.netns, end.device, "root", *words.split()):
        pytest.skip(f"this kernel has no {words.split()[0]}")
    reader = rtnl(end.netns)
    found = reader.qdiscs(reader.link(end.device).ifindex)
    said = tc_qdiscs(end.netns, end.device)
    assert len(found) == len(said) > 0
    for ours, theirs in zip(found, said, strict=True):
        agree(ours, theirs)


def agree(ours, theirs: dict) -> None:
    """Identity and counters are the same; so is every number of the options that both show."""
    assert ours.kind == theirs["kind"]
    assert ours.handle == theirs["handle"]
    assert ours.parent == ("root" if theirs.get("root") else theirs["parent"])
    for name, key in {
        "packets": "packets",
        "bytes": "bytes",
        "drops": "drops",
        "requeues": "requeues",
        "overlimits": "overlimits",
        "backlog_bytes": "backlog",
        "backlog_packets": "qlen",
    }.items():
        assert getattr(ours, name) == theirs[key], name
    options = theirs.get("options", {})
    for name in set(ours.options) & set(options) - {"priomap", "rate", "bandwidth", "ecn", "default"}:
        assert str(ours.options[name]) == str(options[name]).rstrip("bp"), name
    for name in set(ours.extra) & set(theirs):
        if name not in ("drops", "overlimit"):
            assert ours.extra[name] == theirs[name], name


def test_the_children_of_mq_know_their_queue(veth_pair, rtnl):
    end = veth_pair(queues=4, qdisc="mq").sender
    reader = rtnl(end.netns)
    children_agree(reader.qdiscs(reader.link(end.device).ifindex), end)


def test_so_do_the_children_of_an_automatic_mq_whose_handle_is_nought(ifb, rtnl):
    end = ifb(queues=4)
    run("ip", "-n", end.netns, "link", "set", end.device, "up")
    reader = rtnl(end.netns)
    found = reader.qdiscs(reader.link(end.device).ifindex)
    assert (found[0].handle, found[1].parent) == ("0:", ":1")
    children_agree(found, end)


def children_agree(found, end) -> None:
    said = sorted(tc_qdiscs(end.netns, end.device), key=lambda q: (not q.get("root"), q.get("parent", "")))
    assert found[0].kind == "mq"
    assert [qdisc.txq for qdisc in found] == [None, 0, 1, 2, 3]
    for ours, theirs in zip(found, said, strict=True):
        agree(ours, theirs)


def test_a_qdisc_of_another_device_is_not_ours(netns, rtnl):
    name = netns()
    for device in ("one", "two"):
        run("ip", "-n", name, "link", "add", device, "type", "bridge")
        run("ip", "-n", name, "link", "set", device, "up")
        run("tc", "-n", name, "qdisc", "replace", "dev", device, "root", "pfifo", "limit", "11" if device == "one" else "22")
    reader = rtnl(name)
    (found,) = reader.qdiscs(reader.link("two").ifindex)
    assert found.options == {"limit": 22}
    everything = reader.all_qdiscs()
    assert everything[reader.link("one").ifindex][0].options == {"limit": 11}


def test_requeues_and_drops_of_a_flooded_veth_are_those_of_tc(lab, rtnl):
    world = lab(rules=0, qdisc="pfifo limit 100")
    world.flood(0.3)
    world.settle()
    end = world.sender
    reader = rtnl(end.netns)
    (found,) = reader.qdiscs(reader.link(end.device).ifindex)
    (said,) = tc_qdiscs(end.netns, end.device)
    agree(found, said)
    assert found.packets > 1000


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_hostile_name_is_a_name(netns, rtnl, hostile):
    name = netns()
    run("ip", "-n", name, "link", "add", "name", hostile, "type", "bridge")
    reader = rtnl(name)
    device = reader.device(hostile)
    assert device.name == hostile
    assert device.driver == "bridge"
    assert reader.device(str(device.ifindex)) in (device, reader.device(hostile))
    assert (device.ifindex, hostile) in reader.devices()


def test_a_name_of_digits_goes_before_an_index(netns, rtnl):
    name = netns()
    run("ip", "-n", name, "link", "add", "name", "1", "type", "bridge")
    reader = rtnl(name)
    assert reader.device("1").kind == "bridge"
    assert reader.device(1).name == "lo"


@pytest.mark.parametrize("nothing", ["nope", "", "0", "-1", "99999", "99999999999", "x" * 200, "a/b", 0, -5, 1 << 40, "²"])
def test_what_no_device_is_called_is_none(netns, rtnl, nothing):
    assert rtnl(netns()).device(nothing) is None


def test_an_alternative_name_leads_to_the_device(netns, rtnl):
    name = netns()
    run("ip", "-n", name, "link", "add", "short", "type", "bridge")
    run("ip", "-n", name, "link", "property", "add", "dev", "short", "altname", "a-name-longer-than-fifteen")
    assert rtnl(name).device("a-name-longer-than-fifteen").name == "short"


def test_kinds_without_a_driver_or_peer(netns, rtnl):
    name = netns()
    run("ip", "-n", name, "tuntap", "add", "tap7", "mode", "tap", "multi_queue")
    reader = rtnl(name)
    loopback, tap = reader.device("lo"), reader.device("tap7")
    assert (loopback.driver, loopback.kind, loopback.peer) == (None, None, None)
    assert (tap.driver, tap.kind) == ("tun", "tun")
    assert tap.tun_flags & 0x0102 == 0x0102
    assert tap.tx_queues == 1, "queues in use, not the 256 that were set up"


def test_a_port_has_its_master_and_an_upper_device_its_lower(netns, rtnl):
    name = netns()
    run("ip", "-n", name, "link", "add", "br0", "type", "bridge")
    run("ip", "-n", name, "link", "add", "v0", "type", "veth", "peer", "name", "v1")
    run("ip", "-n", name, "link", "set", "v0", "master", "br0")
    reader = rtnl(name)
    port = reader.device("v0")
    assert port.master == reader.link("br0").ifindex
    assert reader.link("v0").slave_kind == "bridge"
    assert (port.peer.name, port.peer.netns) == ("v1", name), "both ends in the same namespace"


def test_a_device_deleted_between_two_reads_is_none_and_no_error(netns, rtnl):
    name = netns()
    run("ip", "-n", name, "link", "add", "gone", "type", "bridge")
    reader = rtnl(name)
    link = reader.link("gone")
    run("ip", "-n", name, "link", "del", "gone")
    assert reader.link_stats(link.ifindex) is None
    assert reader.qdiscs(link.ifindex) == ()
    assert reader.link("gone") is None
    assert reader.complete(link).driver is None


def test_changes_are_announced_with_their_particulars(netns, rtnl):
    name, elsewhere = netns(), netns()
    reader = rtnl(name)
    reader.listen()
    assert reader.events() == []
    run("ip", "-n", name, "link", "add", "v0", "type", "veth", "peer", "name", "v1")
    first = reader.link("v0").ifindex
    assert any(isinstance(c, Link) and (c.ifindex, c.name, c.gone) == (first, "v0", False) for c in reader.events())
    run("ip", "-n", name, "link", "set", "v0", "name", "w0")
    assert [c.name for c in reader.events() if isinstance(c, Link) and c.ifindex == first][-1] == "w0"
    run("ip", "-n", name, "link", "set", "w0", "up", "mtu", "1400", "txqueuelen", "55")
    last = [c for c in reader.events() if isinstance(c, Link) and c.ifindex == first][-1]
    assert (last.up, last.mtu, last.tx_queue_len) == (True, 1400, 55)
    run("tc", "-n", name, "qdisc", "replace", "dev", "w0", "root", "handle", "7:", "pfifo")
    assert QdiscChange(first, "pfifo", "7:", "root") in reader.events()
    run("ip", "-n", name, "link", "set", "w0", "netns", elsewhere)
    moved = [c for c in reader.events() if isinstance(c, Link) and c.gone and c.ifindex == first][-1]
    where = reader.namespace_of(moved.moved_netnsid)
    assert where.name == elsewhere
    assert rtnl(elsewhere).link(moved.moved_ifindex).name == "w0"
    run("ip", "-n", name, "link", "del", "v1")
    deleted = [c for c in reader.events() if isinstance(c, Link) and c.gone][-1]
    assert (deleted.name, deleted.moved_netnsid) == ("v1", None)


def test_more_than_the_socket_can_hold_is_told_and_survived(netns, rtnl):
    name = netns()
    reader = rtnl(name)
    reader.listen()
    reader._listener.setsockopt(1, 8, 2048)  # SO_RCVBUF
    for number in range(20):
        run("ip", "-n", name, "link", "add", f"b{number}", "type", "bridge")
    assert any(isinstance(change, Overflow) for change in reader.events())
    run("ip", "-n", name, "link", "del", "b0")
    assert any(isinstance(change, Link) and change.gone for change in reader.events())


def test_the_same_name_in_two_namespaces_is_two_devices(netns, rtnl):
    first, second = netns(), netns()
    for name, mtu in ((first, "1300"), (second, "1200")):
        run("ip", "-n", name, "link", "add", "same", "mtu", mtu, "type", "bridge")
    assert rtnl(first).device("same").mtu == 1300
    assert rtnl(second).device("same").mtu == 1200


def test_the_kernels_own_sentence_arrives_with_a_refusal(netns):
    name = netns()
    connection = netlink.Netlink(namespaces.resolve(name))
    try:
        with pytest.raises(OSError, match="Qdisc not found") as caught:
            connection.ask(36, qdiscs.TCMSG.pack(0, 1, 0, qdiscs.TC_H_ROOT, 0) + netlink.attribute(1, b"nonsense\0"))
    finally:
        connection.close()
    assert caught.value.errno == 2
