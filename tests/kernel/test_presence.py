"""A watched device that real commands delete, re-create, rename, move and reconfigure."""

import contextlib
import os
import subprocess
import time
from dataclasses import replace

import pytest

from bqltop.kernel import netns as namespaces
from bqltop.lifecycle import Action
from bqltop.presence import NoSuchDevice, Presence


def ip(name: str, *words: str) -> None:
    subprocess.run(["ip", "-n", name, *words], check=True, capture_output=True)


def bridge(name: str, device: str) -> None:
    ip(name, "link", "add", "name", device, "type", "bridge")


@pytest.fixture
def watch():
    with contextlib.ExitStack() as stack:

        def make(device: str, name: str) -> Presence:
            presence = Presence(device, namespaces.resolve(name))
            stack.callback(presence.close)
            return presence

        yield make


def turn(presence: Presence) -> tuple[list[str], Action]:
    """One look, of everything."""
    events, action = presence.look()
    return [event.kind for event in events], action


def test_a_quiet_device_is_no_news(netns, watch):
    name = netns()
    bridge(name, "b0")
    presence = watch("b0", name)
    assert presence.step() == ([], Action.NONE)
    assert turn(presence) == ([], Action.REFRESH)
    assert presence.device.name == "b0"


def test_no_such_device_names_those_there_are(netns):
    name = netns()
    bridge(name, "b0")
    with pytest.raises(NoSuchDevice, match=f'there is no device "b1" in namespace {name}; there are: lo, b0'):
        Presence("b1", namespaces.resolve(name))


def test_deleted_and_recreated(netns, watch):
    name = netns()
    bridge(name, "b0")
    presence = watch("b0", name)
    first = presence.device.ifindex
    ip(name, "link", "del", "b0")
    events, action = presence.step()
    assert ([event.text for event in events], action, presence.present) == (["b0 was deleted"], Action.DETACH, False)
    assert presence.step() == ([], Action.NONE)
    assert turn(presence) == ([], Action.NONE)
    bridge(name, "b0")
    events, action = presence.step()
    assert ([event.kind for event in events], action) == (["returned"], Action.REATTACH)
    assert presence.device.ifindex != first
    assert presence.device.name == "b0"


def test_deleted_and_recreated_at_once(netns, watch):
    name = netns()
    bridge(name, "b0")
    presence = watch("b0", name)
    ip(name, "link", "del", "b0")
    bridge(name, "b0")
    kinds, action = turn(presence)
    assert (kinds, action, presence.present) == (["deleted", "returned"], Action.REATTACH, True)


def test_renamed_up_and_down_and_another_mtu(netns, watch):
    name = netns()
    bridge(name, "b0")
    presence = watch("b0", name)
    ip(name, "link", "set", "b0", "name", "[red]")
    ip(name, "link", "set", "[red]", "mtu", "1300", "txqueuelen", "77")
    ip(name, "link", "set", "[red]", "up")
    kinds, action = turn(presence)
    assert set(kinds) >= {"renamed", "mtu", "txqueuelen", "up"}
    assert action is Action.REFRESH
    device = presence.device
    assert (device.name, device.mtu, device.tx_queue_len, device.up) == ("[red]", 1300, 77, True)
    ip(name, "link", "set", "[red]", "down")
    assert "down" in turn(presence)[0]


def test_moved_into_another_namespace_it_is_followed_and_back_again(netns, watch):
    here, there = netns(), netns()
    ip(here, "link", "add", "v0", "type", "veth", "peer", "name", "v1")
    presence = watch("v0", here)
    ip(here, "link", "set", "v0", "netns", there, "name", "eth0")
    events, action = presence.step()
    assert [event.kind for event in events] == ["moved", "followed"]
    assert action is Action.REATTACH
    assert (presence.device.name, presence.device.netns, presence.namespace.name) == ("eth0", there, there)
    assert presence.device.peer.name == "v1"
    assert presence.device.peer.netns == here
    ip(there, "link", "set", "eth0", "netns", here)
    assert turn(presence) == (["moved", "followed"], Action.REATTACH)
    assert presence.device.netns == here


def test_deleted_in_the_other_namespace_it_is_awaited_at_home_too(netns, watch):
    here, there = netns(), netns()
    ip(here, "link", "add", "v0", "type", "veth", "peer", "name", "v1")
    presence = watch("v0", here)
    ip(here, "link", "set", "v0", "netns", there)
    presence.step()
    ip(there, "link", "del", "v0")
    assert turn(presence) == (["deleted"], Action.DETACH)
    ip(here, "link", "add", "v0", "type", "veth", "peer", "name", "v1")
    assert turn(presence) == (["returned"], Action.REATTACH)
    assert presence.namespace.name == here
    ip(here, "link", "set", "v0", "mtu", "1400")
    assert [event.kind for event in presence.step()[0]] == ["mtu"]


def test_a_namespace_that_is_deleted_is_let_go_and_its_peer_goes_too(netns, watch):
    here, there = netns(), netns()
    ip(here, "link", "add", "v0", "type", "veth", "peer", "name", "v1", "netns", there)
    presence = watch("v1", there)
    subprocess.run(["ip", "netns", "del", there], check=True)
    assert presence.step() == ([], Action.NONE), "our own sockets keep it alive until we look"
    kinds, action = turn(presence)
    assert (kinds, action, presence.rtnl) == (["netns"], Action.DETACH, None)
    until = time.monotonic() + 5
    while os.system(f"ip -n {here} link show v0 >/dev/null 2>&1") == 0:
        assert time.monotonic() < until, "the pair is still there: somebody holds the namespace"
        time.sleep(0.02)
    assert turn(presence) == ([], Action.NONE)
    subprocess.run(["ip", "netns", "add", there], check=True)
    assert turn(presence) == ([], Action.NONE)
    bridge(there, "v1")
    assert turn(presence) == (["returned"], Action.REATTACH)
    assert presence.device.kind == "bridge"


def test_another_namespace_that_got_the_inode_number_is_not_taken_for_the_one_that_is_gone(netns, watch, monkeypatch):
    here, other = netns(), netns()
    bridge(here, "b0")
    bridge(other, "b0")
    presence = watch("b0", here)
    subprocess.run(["ip", "netns", "del", here], check=True)
    assert turn(presence) == (["netns"], Action.DETACH)
    reused = replace(namespaces.resolve(other), inode=presence.home.inode)  # a number cannot be made to come again
    monkeypatch.setattr(namespaces, "all_visible", lambda: [namespaces.Visible(reused)])
    monkeypatch.setattr(namespaces, "sysfs_dir", lambda _: None)
    monkeypatch.setattr(namespaces, "run_in", lambda _, function: function())
    assert turn(presence) == ([], Action.NONE)
    assert not presence.present


def test_a_container_that_is_started_again_is_found_by_its_own_way(netns):
    first, second = netns(), netns()
    bridge(first, "b0")
    bridge(second, "b0")
    found = []
    presence = Presence("b0", namespaces.resolve(first), again=lambda: found[0] if found else None)
    try:
        subprocess.run(["ip", "netns", "del", first], check=True)
        assert turn(presence) == (["netns"], Action.DETACH)
        assert turn(presence) == ([], Action.NONE)
        found.append(namespaces.resolve(second))
        assert turn(presence) == (["returned"], Action.REATTACH)
        assert presence.namespace.name == second
        subprocess.run(["ip", "netns", "add", first], check=True)
    finally:
        presence.close()


def test_another_number_of_queues(veth_pair, watch):
    end = veth_pair(queues=4).sender
    presence = watch(end.device, end.netns)
    command = ["ip", "netns", "exec", end.netns, "ethtool", "-L", end.device, "tx", "2"]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("this veth cannot change its channels")
    kinds, action = turn(presence)
    assert (kinds, action, presence.device.tx_queues) == (["queues"], Action.REATTACH, 2)
    assert turn(presence) == ([], Action.REFRESH)


def test_napi_mode_is_kept_up_to_date(veth_pair, watch):
    end = veth_pair(napi_mode=False).sender
    presence = watch(end.device, end.netns)
    assert presence.device.napi_mode is False
    for command in presence.napi.commands:
        subprocess.run(["sh", "-c", command], check=True, capture_output=True)
    turn(presence)
    assert presence.device.napi_mode is True


def test_descriptors_are_given_back(netns):
    name = netns()
    bridge(name, "b0")
    before = len(os.listdir("/proc/self/fd"))
    presence = Presence("b0", namespaces.resolve(name))
    turn(presence)
    ip(name, "link", "del", "b0")
    turn(presence)
    presence.close()
    with pytest.raises(NoSuchDevice):
        Presence("b0", namespaces.resolve(name))
    assert len(os.listdir("/proc/self/fd")) == before
