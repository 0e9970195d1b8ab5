"""Echoes over real devices."""

import subprocess
import time

import pytest

from bqltop.kernel import netns
from bqltop.probe import ProbeError, Prober, resolve_address
from bqltop.probe import prober as module

pytestmark = pytest.mark.usefixtures("require_root")


def wait_for(condition, seconds: float = 5.0):
    deadline = time.monotonic() + seconds
    while not (found := condition()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)


def test_the_peer_answers_with_kernel_timestamps(veth_pair):
    end = veth_pair().sender
    where = netns.resolve(end.netns)
    address = resolve_address("peer", where, end.device)
    with Prober(where, end.device, address, interval_s=0.1) as prober:
        assert wait_for(lambda: prober.sample().received >= 5)
        sample = prober.sample()
    assert (sample.address, sample.lost, sample.error) == ("198.18.0.2", 0, None)
    assert 0 < sample.rtt_min_ns <= sample.rtt_p50_ns <= sample.rtt_max_ns
    assert 0 < sample.qdisc_avg_ns < sample.rtt_avg_ns


def test_ipv6(veth_pair):
    pair = veth_pair()
    for end, address in ((pair.sender, "fd00::1/64"), (pair.receiver, "fd00::2/64")):
        inside = ("ip", "netns", "exec", end.netns)
        run(*inside, "sysctl", "-qw", f"net.ipv6.conf.{end.device}.disable_ipv6=0")
        run("ip", "-n", end.netns, "addr", "add", address, "dev", end.device, "nodad")
    with Prober(netns.resolve(pair.sender.netns), pair.sender.device, "fd00::2", interval_s=0.1) as prober:
        assert wait_for(lambda: prober.sample().received >= 3), prober.sample()
        assert prober.sample().qdisc_avg_ns > 0


def test_the_wait_in_a_slow_qdisc_is_told_apart(lab):
    """A shaper's queue of 100 packets at 2000 a second: 50 ms in the qdisc, next to nothing elsewhere."""
    built = lab(rules=0, qdisc="tbf rate 16672kbit burst 4000 limit 104200", pps=4000)
    built.start_flood()
    where = netns.resolve(built.sender.netns)
    with Prober(where, built.sender.device, built.receiver.address, interval_s=0.1) as prober:
        assert wait_for(lambda: prober.sample().received >= 5, 20)
        sample = prober.sample()
    assert sample.qdisc_avg_ns == pytest.approx(50e6, rel=0.4)
    assert sample.rtt_avg_ns - sample.qdisc_avg_ns < 10e6


def test_without_an_answer_everything_is_lost(veth_pair):
    end = veth_pair().sender
    with Prober(netns.resolve(end.netns), end.device, "198.18.0.3", interval_s=0.1, timeout_s=0.3) as prober:
        assert wait_for(lambda: prober.sample().lost >= 2)
        assert prober.sample().received == 0


def test_it_says_what_is_wrong_and_goes_on_when_the_device_returns(veth_pair, monkeypatch):
    monkeypatch.setattr(module, "AGAIN_S", 0.1)
    end = veth_pair().sender
    with Prober(netns.resolve(end.netns), end.device, "198.18.0.2", interval_s=0.1) as prober:
        assert wait_for(lambda: prober.sample().received)
        run("ip", "-n", end.netns, "link", "set", end.device, "down")
        assert wait_for(lambda: prober.sample().error)
        run("ip", "-n", end.netns, "link", "set", end.device, "up")
        before = prober.sample().received
        assert wait_for(lambda: prober.sample().received > before and not prober.sample().error)


def test_a_device_without_a_peer_needs_an_address(ifb):
    end = ifb()
    with pytest.raises(ProbeError, match="no peer"):
        resolve_address("peer", netns.resolve(end.netns), end.device)
    with pytest.raises(ProbeError, match="No such device"):
        Prober(netns.resolve(end.netns), "nosuch0", "198.18.0.2").start()
