"""The test devices themselves, judged by the kernel's own counters: what later tests take for granted."""

import time

import pytest

from .devices.shell import link_stats, qdiscs, read_bql, read_sysfs, write_sysfs
from .devices.traffic import flood
from .devices.tuntap import IFF_BACKPRESSURE, tun_device
from .devices.usbnet import usb_pair
from .devices.veth import veth_lab


def test_flood_over_veth_arrives_at_the_peer():
    with veth_lab(qdisc="pfifo limit 1000") as lab:
        sent = lab.flood(1.5).sent
        transmitted = link_stats(lab.sender.device, lab.sender.netns)["tx_packets"]
        assert sent > 1000
        assert 0 < transmitted <= sent
        assert link_stats(lab.receiver.device, lab.receiver.netns)["rx_packets"] == transmitted


@pytest.mark.kernel(needs="veth_bql")
def test_veth_bql_sets_a_limit_in_packets():
    with veth_lab() as lab:
        lab.start_flood()
        time.sleep(1)
        looks = [read_bql(lab.sender.device, netns=lab.sender.netns) for _ in range(5)]
    # packets, not bytes: a byte limit could not hold a single one of these packets
    assert all(0 < look["limit"] < 1000 for look in looks)
    assert any(look["inflight"] > 0 for look in looks)


@pytest.mark.kernel(needs="tun_backpressure")
def test_tun_with_backpressure_keeps_packets_in_the_qdisc():
    with tun_device("tun", backpressure=True) as tun, flood(tun.address, pps=3000):
        time.sleep(1.5)
        assert tun.flags & IFF_BACKPRESSURE
        assert link_stats(tun.name)["tx_dropped"] == 0
        assert qdiscs(tun.name)[0]["qlen"] > 100


def test_tun_without_backpressure_drops_at_the_ring():
    with tun_device("tun") as tun, flood(tun.address, pps=3000):
        time.sleep(1.5)
        assert not tun.flags & IFF_BACKPRESSURE
        assert link_stats(tun.name)["tx_dropped"] > 100
        assert qdiscs(tun.name)[0]["qlen"] == 0


@pytest.mark.kernel(needs="usbnet")
def test_usb_pair_carries_packets():
    with usb_pair() as pair, flood(pair.address, seconds=1, pps=500) as traffic:
        traffic.process.wait(20)
        assert read_sysfs(pair.device, "carrier") == ["1"]
        assert link_stats(pair.gadget, pair.gadget_netns)["rx_packets"] > 50


@pytest.mark.kernel(needs="usbnet_bql")
def test_usbnet_bql_limit_is_in_bytes():
    with usb_pair() as pair, flood(pair.address):
        time.sleep(1.5)
        assert read_bql(pair.device)["limit"] > 1042
        write_sysfs(pair.device, "queues/tx-0/byte_queue_limits/limit_max", 5000)
        time.sleep(1)
        assert read_bql(pair.device)["limit"] <= 5000
