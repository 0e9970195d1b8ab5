"""Devices of every namespace, containers by their real control groups, neighbours, and who holds a tun."""

import contextlib
import os
import signal
import subprocess
import sys
import time

import pytest

from bqltop.discovery import devices, find, neighbours
from bqltop.discovery.containers import ContainerError
from bqltop.kernel import netns as namespaces
from bqltop.kernel import tun
from bqltop.kernel.rtnl import Rtnl
from bqltop.model import Unit


def ip(name: str, *words: str) -> None:
    subprocess.run(["ip", "-n", name, *words], check=True, capture_output=True)


HOLD = """
import fcntl, os, struct, sys
fds = []
for _ in range({queues}):
    fds.append(os.open("/dev/net/tun", os.O_RDWR))
    fcntl.ioctl(fds[-1], 0x400454CA, struct.pack("16sH22x", {name!r}.encode(), {flags}))
print(flush=True)
{then}
sys.stdin.read()
"""


@contextlib.contextmanager
def holder(netns: str, name: str, queues: int = 1, flags: int = 0x0102, then: str = ""):
    """A process in the namespace that holds a tap's queues."""
    code = HOLD.format(queues=queues, name=name, flags=flags, then=then)
    command = ["ip", "netns", "exec", netns, sys.executable, "-c", code]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        process.stdout.readline()
        yield process
    finally:
        process.kill()
        process.wait()


def test_every_namespaces_devices_are_listed_with_peer_and_unit(veth_pair, ifb):
    pair, single = veth_pair(queues=2), ifb(queues=3)
    listing = devices.Lister().list()
    found = {(d.namespace.name, d.name): d for d in listing.devices}
    sender = found[pair.sender.netns, pair.sender.device]
    assert (sender.peer.name, sender.peer.netns) == (pair.receiver.device, pair.receiver.netns)
    assert (sender.driver, sender.kind, sender.tx_queues, sender.up) == ("veth", "veth", 2, True)
    quiet = found[single.netns, single.device]
    assert (quiet.driver, quiet.tx_queues, quiet.bql, quiet.unit) == ("ifb", 3, True, Unit.BYTES)
    assert (None, "lo") in found
    assert found[None, "lo"].owner is None
    assert not [entry for entry in listing.unreachable if entry[0].namespace.name in (pair.sender.netns, single.netns)]


def test_the_owner_of_a_namespace_is_named(netns):
    name = netns()
    process = subprocess.Popen(["ip", "netns", "exec", name, "sleep", "60"])
    try:
        wait_until(lambda: namespaces.of_pid(process.pid).name == name and comm(process.pid) == "sleep")
        loopback = next(d for d in devices.Lister().list().devices if d.namespace.name == name)
        assert loopback.owner == f"sleep [{process.pid}]"
    finally:
        process.kill()
        process.wait()


def test_listing_leaves_nothing_open_and_holds_no_namespace(netns):
    name = netns()
    lister = devices.Lister()
    lister.list()
    before = len(os.listdir("/proc/self/fd"))
    lister.list()
    assert len(os.listdir("/proc/self/fd")) == before
    assert name in {d.namespace.name for d in lister.list().devices}


def test_rates_are_the_difference_of_two_listings(lab):
    world = lab(rules=0)
    lister = devices.Lister()
    first = lister.list()
    key = next(d.key for d in first.devices if (d.namespace.name, d.name) == (world.sender.netns, world.sender.device))
    result = world.flood(0.3)
    world.settle()
    second = lister.list()
    rate = devices.rates(first, second)[key]
    seconds = (second.monotonic_ns - first.monotonic_ns) / 1e9
    sent = second.by_key()[key].stats.tx_packets - first.by_key()[key].stats.tx_packets
    assert rate.tx_packets == pytest.approx(sent / seconds)
    assert sent > 0
    assert result.sent >= sent
    assert devices.rates(None, second) == {}
    assert devices.rates(second, first) == {}


def test_a_recreated_device_has_no_rate(netns):
    name = netns()
    ip(name, "link", "add", "b0", "type", "bridge")
    lister = devices.Lister()
    first = lister.list()
    ip(name, "link", "del", "b0")
    ip(name, "link", "add", "b0", "type", "ifb")
    second = lister.list()
    assert next(d for d in second.devices if d.name == "b0" and d.namespace.name == name).driver == "ifb"
    assert all(second.by_key()[key].name != "b0" for key in devices.rates(first, second))


def test_a_namespace_by_name_pid_or_path_and_never_two_of_them(netns):
    name = netns()
    process = subprocess.Popen(["ip", "netns", "exec", name, "sleep", "60"])
    try:
        wait_until(lambda: namespaces.of_pid(process.pid).name == name)
        assert find.namespace_for(pid=process.pid) == find.namespace_for(name)
        assert find.namespace_for(f"/proc/{process.pid}/ns/net").inode == find.namespace_for(name).inode
    finally:
        process.kill()
        process.wait()
    assert find.again("bqt-no-such-name") is find.again(container="bqt-no-such") is find.again() is None
    assert find.namespace_for() == namespaces.current()
    with pytest.raises(find.NetnsError, match="only one of"):
        find.namespace_for(name, pid=1)
    with pytest.raises(ContainerError):
        find.namespace_for(container="bqt-no-such-container")


def test_a_container_is_found_by_its_real_control_group(netns):
    mounts = [line.split() for line in open("/proc/self/mounts")]  # noqa: SIM115
    group2 = next((words[1] for words in mounts if words[2] == "cgroup2"), None)
    identity = os.urandom(32).hex()
    folder = f"{group2}/docker-{identity}.scope"
    try:
        os.mkdir(folder)
    except OSError:
        pytest.skip("no control group can be made here")
    name = netns()
    process = subprocess.Popen(["ip", "netns", "exec", name, "sleep", "60"])
    try:
        with open(f"{folder}/cgroup.procs", "w") as file:
            file.write(str(process.pid))
        wait_until(lambda: namespaces.of_pid(process.pid).name == name)
        found = find.namespace_for(container=identity[:12])
        assert found.inode == namespaces.resolve(name).inode
        assert found.name == identity[:12]
        assert find.again(container=identity[:12]) == found
        owner = next(d.owner for d in devices.Lister().list().devices if d.namespace.name == name)
        assert owner == f"docker {identity[:12]}"
    finally:
        process.kill()
        process.wait()
        wait_until(lambda: remove(folder))


def test_a_device_that_is_elsewhere_gets_a_hint(netns):
    name = netns()
    ip(name, "link", "add", "name", "x'y", "type", "bridge")
    hint = find.hint("x'y")
    assert f"namespace {name} (bqltop 'x'\"'\"'y' --netns {name})" in hint
    assert find.hint("bqt-nowhere") is None


def test_neighbours_of_ports_uppers_and_peers(netns):
    here, there = netns(), netns()
    ip(here, "link", "add", "br0", "type", "bridge")
    ip(here, "link", "add", "v0", "type", "veth", "peer", "name", "v1", "netns", there)
    ip(here, "link", "set", "v0", "master", "br0")
    vlan = subprocess.run(
        ["ip", "-n", here, "link", "add", "link", "v0", "name", "v0.5", "type", "vlan", "id", "5"],
        capture_output=True,
        check=False,
    )
    with Rtnl(namespaces.resolve(here)) as rtnl:
        of_v0 = [(n.relation, n.name, n.namespace.name) for n in neighbours.neighbours(rtnl, rtnl.link("v0").ifindex)]
        expected = [("peer", "v1", there), ("master", "br0", here)]
        assert of_v0 == expected + ([("upper", "v0.5", here)] if vlan.returncode == 0 else [])
        of_bridge = [(n.relation, n.name) for n in neighbours.neighbours(rtnl, rtnl.link("br0").ifindex)]
        assert of_bridge == [("port", "v0")]
        if vlan.returncode == 0:
            (lower,) = neighbours.neighbours(rtnl, rtnl.link("v0.5").ifindex)
            assert (lower.relation, lower.name) == ("lower", "v0")
        assert neighbours.neighbours(rtnl, 9999) == []


def test_two_ends_in_one_namespace_are_peers_of_each_other_and_nothing_else(netns):
    name = netns()
    ip(name, "link", "add", "v0", "type", "veth", "peer", "name", "v1")
    with Rtnl(namespaces.resolve(name)) as rtnl:
        (only,) = neighbours.neighbours(rtnl, rtnl.link("v0").ifindex)
    assert (only.relation, only.name) == ("peer", "v1")


def test_the_holder_of_each_queue_of_a_tap(netns):
    first, second = netns(), netns()
    with holder(first, "tap0", queues=3) as one, holder(second, "tap0") as two:
        here, there = namespaces.resolve(first), namespaces.resolve(second)
        ours = tun.owners("tap0", here.inode)
        assert [queue.pid for queue in ours] == [one.pid] * 3
        assert [queue.pid for queue in tun.owners("tap0", there.inode)] == [two.pid]
        assert all(queue.certain and queue.attached and not queue.vhost for queue in ours)
        assert tun.flag_words(ours[0].flags) == ["tap", "multi_queue"]
        assert ours[0].process.startswith("python")
        one.send_signal(signal.SIGSTOP)
        wait_until(lambda: tun.owners("tap0", here.inode)[0].state == "T")
        one.send_signal(signal.SIGCONT)
    assert tun.owners("tap0", here.inode) == []


def test_a_queue_that_is_switched_off_is_told(netns):
    name = netns()
    detach = 'fcntl.ioctl(fds[1], 0x400454D9, struct.pack("16sH22x", b"", 0x0400)); print(flush=True)'
    with holder(name, "tap0", queues=2, then=detach) as process:
        process.stdout.readline()
        found = tun.owners("tap0", namespaces.resolve(name).inode)
    assert sorted(queue.attached for queue in found) == [False, True]


def test_a_persistent_tap_has_no_holder(netns):
    name = netns()
    ip(name, "tuntap", "add", "tap0", "mode", "tap")
    assert tun.owners("tap0", namespaces.resolve(name).inode) == []


def test_whether_the_holder_takes_packets_out():
    assert tun.takes_packets(5, 9, 100) is True
    assert tun.takes_packets(5, 5, 100) is False
    assert tun.takes_packets(5, 5, 0) is None
    assert tun.takes_packets(5, 5, None) is None


WITHOUT_PRIVILEGE = """
from bqltop.discovery.devices import Lister
from bqltop.kernel import netns, sysfs
from bqltop.presence import Presence
listing = Lister().list()
assert "lo" in [device.name for device in listing.devices]
assert any("it takes root" in reason for _, reason in listing.unreachable), listing.unreachable
presence = Presence("lo")
assert presence.look()[0] == []
rtnl = presence.rtnl
assert rtnl.link_stats(1) and sysfs.tx_queue_count(rtnl.sysfs, "lo") == 1
rtnl.qdiscs(1)
print("all well")
"""


def test_without_privilege_our_own_namespace_is_read_and_the_others_are_named(netns):
    netns()
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_PRIVILEGE], user=65534, group=65534, extra_groups=[], capture_output=True, text=True
    )
    if "ModuleNotFoundError" in done.stderr or "Permission denied" in done.stderr:
        pytest.skip("nobody may not read this checkout")
    assert (done.returncode, done.stdout, done.stderr) == (0, "all well\n", "")


def comm(pid: int) -> str:
    with open(f"/proc/{pid}/comm") as file:
        return file.read().strip()


def remove(folder: str) -> bool:
    with contextlib.suppress(OSError):
        os.rmdir(folder)
    return not os.path.exists(folder)


def wait_until(holds, seconds: float = 5.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.01)
