"""usbnet over a virtual USB bus: BQL in bytes where the kernel has it, and the list of submitted URBs as the ring."""

import time
from contextlib import closing

import pytest

from bqltop.kernel.completions import Completions
from bqltop.model import Unit
from bqltop.sampler import Sampler

from .devices.shell import link_stats, read_bql, write_sysfs
from .devices.traffic import flood
from .devices.usbnet import usb_pair
from .watching import attached, json_samples, largest, look, needs_ebpf

BQL = "queues/tx-0/byte_queue_limits"
DRIVERS = {"ecm": "cdc_ether", "ncm": "cdc_ncm"}


class Bracket:
    """A sample of the first queue between two readings of an independent count: what completes meanwhile (a router
    solicitation, say) may be in it or not."""

    def __init__(self, sampler: Sampler, truth: Completions):
        self.first = truth.calls()
        self.queue = sampler.sample().queues[0]
        self.last = truth.calls()

    def since(self, start: "Bracket") -> tuple[int, int]:
        """How much the count has grown since ``start``, at least and at most."""
        return self.first - start.last, self.last - start.first


@pytest.fixture(scope="module", params=DRIVERS)
def flooded(request):
    """(pair, function, samples): a flood and the silence after it."""
    with usb_pair(request.param) as pair, attached(pair.device) as sampler:
        with flood(pair.address):
            samples = look(sampler, 3)
        time.sleep(3)
        yield pair, request.param, [*samples, sampler.sample()]


@pytest.mark.kernel(needs="usbnet")
def test_the_driver_and_its_packets(flooded):
    pair, function, samples = flooded
    needs_ebpf(samples[-1])
    assert samples[-1].device.driver == DRIVERS[function]
    # net_dev_xmit counts packets; cdc_ncm packs several into one URB, whose completion tx_packets waits for
    sent = link_stats(pair.device)["tx_packets"]
    assert samples[-1].link.tx_packets == sent > 50
    assert samples[-1].queues[0].packets > 50


@pytest.mark.kernel(needs="usbnet")
def test_the_urbs_under_way_are_the_ring(flooded):
    _, _, samples = flooded
    sizes = {sample.queues[0].ring_size for sample in samples}
    assert len(sizes) == 1
    assert next(iter(sizes)) > 0
    used = [sample.queues[0].ring_used for sample in samples]
    assert max(used[:-1]) > 0
    assert used[-1] == 0
    # usbnet stops the queue when the list is full (drivers/net/usb/usbnet.c, usbnet_start_xmit)
    assert max(used) <= next(iter(sizes))


@pytest.mark.kernel(needs="usbnet_bql")
def test_limit_and_inflight_are_in_bytes_and_equal_sysfs(flooded):
    pair, _, samples = flooded
    quiet = samples[-1].queues[0]
    assert quiet.unit is Unit.BYTES
    truth = read_bql(pair.device)
    assert {name: getattr(quiet, name) for name in truth} == truth
    assert quiet.inflight == 0
    # more than one full frame: not packets
    assert max(sample.queues[0].limit for sample in samples) > 1042
    assert max(sample.queues[0].inflight for sample in samples) > 1042
    assert quiet.completed == quiet.queued > 50_000


@pytest.mark.kernel(needs="usbnet_bql")
def test_limit_max_holds_the_limit_and_stops_are_seen(flooded):
    pair, _, _ = flooded
    with attached(pair.device) as sampler:
        write_sysfs(pair.device, f"{BQL}/limit_max", 3000)
        with flood(pair.address):
            samples = look(sampler, 3)
    last = samples[-1].queues[0]
    assert last.limit_max == 3000
    assert all(sample.queues[0].limit <= 3000 for sample in samples[len(samples) // 2 :])
    assert last.stops_bql > 0
    assert last.stopped_bql_ns > 100_000_000


@pytest.mark.kernel(needs="usbnet_bql")
def test_with_a_breakpoint_every_completion_is_seen_by_itself(flooded):
    pair, _, _ = flooded
    with Sampler(pair.device, completions=True) as sampler, closing(Completions()) as truth:
        sampler.sample()
        before = Bracket(sampler, truth)
        with flood(pair.address):
            look(sampler, 2)
        time.sleep(3)
        after = Bracket(sampler, truth)
    sizes = after.queue.completion_size_histogram
    least, most = after.since(before)
    assert 10 < least <= sum(sizes) - sum(before.queue.completion_size_histogram) <= most
    # no URB is shorter than a frame's header
    assert largest(sizes) > 14


@pytest.mark.kernel(needs="usbnet")
def test_a_usbnet_without_bql_says_null(flooded):
    """Between 6.9 and 6.19 the folder is there although the driver never charges anything to it."""
    pair, _, samples = flooded
    truth = read_bql(pair.device)
    queue = samples[-1].queues[0]
    if truth is None or truth["limit"] == 0:
        assert (queue.unit, queue.limit, queue.inflight) == (None, None, None)
    else:
        assert queue.unit is Unit.BYTES


@pytest.mark.kernel(needs="usbnet")
def test_once_json_on_a_usbnet(flooded):
    pair, function, _ = flooded
    with flood(pair.address, pps=500):
        (sample,) = json_samples(pair.device, "--once")
    assert sample["device"]["driver"] == DRIVERS[function]
    assert sample["queues"][0]["packets"] > 0
    assert sample["queues"][0]["ring_size"] > 0
