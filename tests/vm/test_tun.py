"""tun and tap with a slow reader, with backpressure and without: the same ring full, and two different consequences."""

import time

import pytest

from bqltop.verdict import judge
from bqltop.window import between

from .devices.shell import link_stats, read_sysfs
from .devices.traffic import flood
from .devices.tuntap import IFF_BACKPRESSURE, tun_device
from .watching import attached, json_samples, look, needs_ebpf

RING = 100
KINDS = ("tun", "tap")


def overloaded(tun, seconds: float = 3.0):
    """Samples while three times as many packets come as the reader takes."""
    with attached(tun.name) as sampler, flood(tun.address, pps=2000):
        needs_ebpf(sampler.sample())
        time.sleep(1)
        return look(sampler, seconds)


@pytest.mark.kernel(needs="tun_backpressure")
@pytest.mark.parametrize("kind", KINDS)
def test_with_backpressure_the_driver_stops_the_queue_and_packets_wait_in_the_qdisc(kind):
    with tun_device(kind, backpressure=True, ring=RING) as tun:
        samples = overloaded(tun)
        last = samples[-1].queues[0]
        assert samples[-1].device.tun_flags & IFF_BACKPRESSURE
        assert last.ring_size == RING
        assert max(sample.queues[0].ring_used for sample in samples) >= RING * 0.8
        assert any(sample.queues[0].drv_xoff for sample in samples)
        assert last.stops_driver > 0
        assert last.stopped_driver_ns > 500_000_000
        assert samples[-1].qdiscs[0].backlog_packets > 100
        assert samples[-1].link.tx_dropped == link_stats(tun.name)["tx_dropped"] == 0
        verdicts = judge(between(samples[0], samples[-1]))
        assert verdicts[0].kind == "driver-stops", verdicts


@pytest.mark.parametrize("kind", KINDS)
def test_without_backpressure_packets_are_dropped_at_the_ring(kind):
    with tun_device(kind, ring=RING) as tun:
        samples = overloaded(tun)
        last = samples[-1].queues[0]
        assert samples[-1].device.tun_flags == int(read_sysfs(tun.name, "tun_flags")[0], 16)
        assert not samples[-1].device.tun_flags & IFF_BACKPRESSURE
        assert last.ring_size == RING
        assert max(sample.queues[0].ring_used for sample in samples) >= RING * 0.8
        assert last.stops_driver == 0
        assert last.drv_xoff is False
        assert samples[-1].link.tx_dropped > samples[0].link.tx_dropped
        assert samples[-1].qdiscs[0].backlog_packets == 0
        verdicts = judge(between(samples[0], samples[-1]))
        assert any("drops at the ring: backpressure is off" in verdict.sentence for verdict in verdicts), verdicts


def test_tuns_have_no_bql_and_say_null():
    with tun_device("tun", delay=0) as tun:
        samples = overloaded(tun, 1)
        assert samples[-1].queues[0].unit is None
        assert samples[-1].queues[0].limit is None
        assert samples[-1].queues[0].packets > 0
        (sample,) = json_samples(tun.name, "--once")
        assert sample["device"]["driver"] == "tun"
        assert sample["queues"][0]["limit"] is None
        assert sample["queues"][0]["ring_size"] == RING
