"""NAPI mode of a veth: the rule, and its agreement with the kernel's own instances."""

import subprocess

import pytest

from bqltop.kernel import ioctls, veth
from bqltop.kernel import netns as namespaces
from bqltop.kernel.rtnl import Rtnl


@pytest.mark.parametrize(
    ("tso", "gro", "xdp", "datagrams", "expected"),
    [
        (False, True, False, False, True),
        (False, False, True, False, True),
        (True, True, False, False, False),
        (True, False, True, False, False),
        (False, False, False, False, False),
        (True, False, False, True, False),
        (True, True, False, True, True),
    ],
)
def test_the_rule(tso, gro, xdp, datagrams, expected):
    in_force, reason = veth.judge(tso, gro, xdp, datagrams)
    assert in_force is expected
    assert reason.startswith("the ring is in use" if expected else "no ring in use")


def test_a_pair_in_napi_mode_is_recognised_and_out_of_it_the_commands_bring_it_back(veth_pair):
    pair = veth_pair(napi_mode=False)
    with Rtnl(namespaces.resolve(pair.sender.netns)) as rtnl:
        link = rtnl.link(pair.sender.device)
        off = veth.napi_mode(rtnl, link)
        assert off.in_force is False
        assert len(off.commands) == 2
        for command in off.commands:
            subprocess.run(["sh", "-c", command], check=True, capture_output=True)
        on = veth.napi_mode(rtnl, link)
        assert (on.in_force, on.commands) == (True, ())
        there, device = pair.receiver.netns, pair.receiver.device
        subprocess.run(["ip", "netns", "exec", there, "ethtool", "-K", device, "gro", "off"], check=True, capture_output=True)
        assert veth.napi_mode(rtnl, link).in_force is False


def test_another_kind_of_device_does_not_raise_the_question():
    with Rtnl() as rtnl:
        assert veth.napi_mode(rtnl, rtnl.link("lo")) is None


def test_commands_quote_hostile_names_and_enter_nameless_namespaces():
    blue = namespaces.Namespace("/run/netns/[blue]", 1, "[blue]")
    nameless = namespaces.Namespace("/proc/47/ns/net", 2, "pid:47")
    first, second = veth.commands(blue, "x'y", nameless, "é1")
    assert first == """ip netns exec '[blue]' ethtool -K 'x'"'"'y' tso off"""
    assert second == "nsenter --net=/proc/47/ns/net ethtool -K 'é1' gro on"


def test_features_are_those_of_ethtool(veth_pair):
    end = veth_pair().sender
    said = subprocess.run(
        ["ip", "netns", "exec", end.netns, "ethtool", "-k", end.device], check=True, capture_output=True, text=True
    ).stdout
    words = {line.split(":")[0].strip(): line.split(":")[1].split() for line in said.splitlines()[1:] if ":" in line}
    with Rtnl(namespaces.resolve(end.netns)) as rtnl:
        found = ioctls.features(rtnl.control, end.device)
    common = set(found) & set(words)
    assert len(common) > 30
    for name in common:
        assert found[name].active == (words[name][0] == "on"), name
    assert found["tx-tcp-segmentation"].changeable


def test_features_of_no_device_is_an_error_and_its_driver_none():
    with Rtnl() as rtnl:
        assert ioctls.driver(rtnl.control, "bqt-none") is None
        assert ioctls.driver(rtnl.control, "a-name-longer-than-fifteen") is None
        with pytest.raises(OSError, match="device"):
            ioctls.features(rtnl.control, "bqt-none")
