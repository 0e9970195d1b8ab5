"""A flooded veth pair on whatever kernel this is: bqltop starts, its figures are the kernel's, and it says how it knows."""

import itertools

import pytest

from .devices.shell import link_stats, qdiscs
from .devices.veth import veth_lab
from .watching import attached, json_samples, look, needs_ebpf, probe

PROBES = {"snapshot", "transmit", "napi", "wake", "ring", "completions", "netlink", "sysfs"}


@pytest.fixture(scope="module")
def flooded():
    """(lab, samples): bqltop attached before the first packet, then a flood, then silence; the last sample is of the silence."""
    with veth_lab() as lab, attached(lab.sender.device, lab.sender.netns) as sampler:
        lab.start_flood()
        samples = look(sampler, 2)
        lab.stop_flood()
        lab.settle(60)
        yield lab, [*samples, sampler.sample()]


def test_ebpf_is_in_force_and_every_probe_is_named(flooded):
    _, samples = flooded
    needs_ebpf(samples[-1])
    assert {entry.name for entry in samples[-1].probes} >= PROBES
    for entry in samples[-1].probes:
        assert entry.in_force or entry.why, f"{entry.name} is not in force, and no reason is given"


def test_packets_equal_the_devices_own_count_exactly(flooded):
    lab, samples = flooded
    truth = link_stats(lab.sender.device, lab.sender.netns)
    assert samples[-1].queues[0].packets == truth["tx_packets"] > 1000
    assert samples[-1].link.tx_packets == truth["tx_packets"]
    assert samples[-1].link.tx_dropped == truth["tx_dropped"]


def test_napi_work_equals_what_the_peer_received(flooded):
    lab, samples = flooded
    received = link_stats(lab.receiver.device, lab.receiver.netns)["rx_packets"]
    assert sum(napi.work for napi in samples[-1].napis if napi.role == "peer") == received > 1000


def test_qdisc_figures_equal_those_of_tc(flooded):
    lab, samples = flooded
    (truth,) = qdiscs(lab.sender.device, lab.sender.netns)
    (root,) = samples[-1].qdiscs
    assert root.parent == "root"
    assert (root.kind, root.packets, root.bytes, root.drops) == (
        truth["kind"], truth["packets"], truth["bytes"], truth["drops"])  # fmt: skip
    assert (root.requeues, root.overlimits, root.backlog_packets) == (
        truth["requeues"], truth["overlimits"], truth["qlen"])  # fmt: skip


def test_the_ring_is_the_peers(flooded):
    _, samples = flooded
    assert {sample.queues[0].ring_size for sample in samples} == {256}  # VETH_RING_SIZE
    assert samples[-1].queues[0].ring_used == 0
    assert all(0 <= sample.queues[0].ring_used <= 256 for sample in samples)


def test_a_full_ring_shows_as_stops_or_as_drops(flooded):
    """A veth driver stops the queue, or drops, or (with BQL) is stopped before: each kernel does one, and bqltop says which."""
    lab, samples = flooded
    queue, dropped = samples[-1].queues[0], link_stats(lab.sender.device, lab.sender.netns)["tx_dropped"]
    if dropped:
        assert queue.stops_driver == 0
    else:
        assert queue.stops_driver + queue.stops_bql > 0
        assert queue.stopped_ns > 0


def test_time_stopped_is_less_than_the_time_that_passed(flooded):
    _, samples = flooded
    passed = samples[-1].monotonic_ns - samples[0].monotonic_ns
    for older, newer in itertools.pairwise(samples):
        assert newer.queues[0].stopped_ns >= older.queues[0].stopped_ns
    queue = samples[-1].queues[0]
    # attached is before the first sample, and the flood began between: hence the second of slack
    assert queue.stopped_ns <= passed + 1_000_000_000
    assert max(queue.stopped_driver_ns, queue.stopped_bql_ns) <= queue.stopped_ns
    assert queue.stopped_ns <= queue.stopped_driver_ns + queue.stopped_bql_ns


def test_without_bql_in_the_driver_its_figures_are_null(flooded):
    _lab, samples = flooded
    queue = samples[-1].queues[0]
    figures = (queue.unit, queue.limit, queue.limit_min, queue.limit_max, queue.inflight, queue.completed)
    if queue.unit is None:
        assert figures == (None,) * 6
    else:
        assert None not in figures


def test_once_json_on_a_veth_under_load():
    with veth_lab(pps=5000) as lab:
        lab.start_flood()
        (sample,) = json_samples(lab.sender.device, "--once", netns=lab.sender.netns)
        assert lab.flooding
    device, (queue,), (qdisc,) = sample["device"], sample["queues"], sample["qdiscs"]
    assert sample["schema"] == 1
    assert (device["name"], device["driver"], device["netns"]) == (lab.sender.device, "veth", lab.sender.netns)
    assert (device["peer"]["name"], device["peer"]["netns"]) == (lab.receiver.device, lab.receiver.netns)
    assert device["napi_mode"] is True
    assert {entry["name"] for entry in sample["probes"]} >= PROBES
    assert queue["packets"] > 0
    assert queue["tx_timeouts"] == 0
    assert sample["window"]["queues"][0]["packets_per_s"] > 0
    assert qdisc["kind"] == "pfifo"
    assert qdisc["packets"] > 0
    assert sample["napis"][0]["work"] > 0


def test_without_ebpf_the_rest_is_still_there():
    with veth_lab() as lab, attached(lab.sender.device, lab.sender.netns, use_bpf=False) as sampler:
        lab.flood(0.5)
        sample = sampler.sample()
        assert not probe(sample, "snapshot").in_force
        assert probe(sample, "snapshot").why
        assert sample.link.tx_packets == link_stats(lab.sender.device, lab.sender.netns)["tx_packets"]
        assert sample.qdiscs[0].packets == qdiscs(lab.sender.device, lab.sender.netns)[0]["packets"]
        assert sample.queues[0].packets is None
