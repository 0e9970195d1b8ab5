"""veth with BQL: limit and inflight in packets, stops by BQL, and the two knobs that steer the limit."""

import re
import time
from contextlib import closing

import pytest

from bqltop.kernel.completions import Completions
from bqltop.model import Unit
from bqltop.sampler import Sampler
from bqltop.verdict import judge
from bqltop.window import between

from .devices.shell import read_bql, sh, write_sysfs
from .devices.veth import veth_lab
from .watching import attached, json_samples, largest, look, probe

pytestmark = pytest.mark.kernel(needs="veth_bql")
BQL = "queues/tx-0/byte_queue_limits"


class Bench:
    """A lab with bqltop attached, and the knobs of its sender."""

    def __init__(self, lab, sampler):
        self.lab, self.sampler = lab, sampler
        self.device, self.netns = lab.sender.device, lab.sender.netns

    def set(self, name: str, value: object) -> None:
        write_sysfs(self.device, f"{BQL}/{name}", value, self.netns)

    def coalesce(self, microseconds: int) -> None:
        sh(f"ethtool -C {self.device} tx-usecs {microseconds}", self.netns)

    def flood(self, seconds: float = 2.0):
        """Samples of a flood, then one of the silence after it."""
        self.lab.start_flood()
        try:
            samples = look(self.sampler, seconds)
        finally:
            self.lab.stop_flood()
        self.lab.settle(60)
        return [*samples, self.sampler.sample()]

    def limits(self, seconds: float = 2.0) -> list[int]:
        """The limits seen in the second half of a flood: DQL needs a moment to settle."""
        samples = self.flood(seconds)
        return [sample.queues[0].limit for sample in samples[len(samples) // 2 : -1]]


@pytest.fixture(scope="module")
def running():
    with veth_lab(qdisc="fq_codel") as lab, attached(lab.sender.device, lab.sender.netns) as sampler:
        yield Bench(lab, sampler)


@pytest.fixture
def bench(running):
    """The bench with its knobs at the driver's defaults, and a limit that is not left over from the test before."""
    running.set("limit_min", 0)
    running.set("hold_time", 100)
    running.set("limit_max", 1)
    running.coalesce(0)
    running.flood(0.3)
    running.set("limit_max", "max")
    running.coalesce(50)
    return running


def middle(values: list[int]) -> int:
    return sorted(values)[len(values) // 2]


def test_figures_are_in_packets_and_stops_by_bql_are_timed(bench):
    before = bench.sampler.sample().queues[0]
    samples = bench.flood()
    queue = samples[-1].queues[0]
    assert queue.unit is Unit.PACKETS
    # bytes would be a thousand times as much
    assert all(0 < sample.queues[0].limit < 2000 for sample in samples)
    assert any(sample.queues[0].stack_xoff for sample in samples)
    assert queue.stops_bql > before.stops_bql
    assert queue.stopped_bql_ns - before.stopped_bql_ns > 50_000_000
    assert queue.queued - before.queued == queue.packets - before.packets
    assert queue.queued - queue.completed == queue.inflight


def test_tx_usecs_steers_the_limit(bench):
    found = {}
    for microseconds in (0, 50, 1000):
        bench.coalesce(microseconds)
        found[microseconds] = middle(bench.limits())
    # one completion per packet, a few tens, a few hundred: the directions are the test
    assert found[0] <= 4, found
    assert found[0] < found[50] < found[1000], found
    assert found[1000] > 100, found


def test_limit_min_raises_the_floor(bench):
    bench.coalesce(0)
    assert middle(bench.limits()) < 8
    bench.set("limit_min", 8)
    samples = bench.flood()
    assert all(sample.queues[0].limit >= 8 for sample in samples[len(samples) // 2 :])
    assert samples[-1].queues[0].limit_min == 8


def test_limit_max_holds_the_limit(bench):
    bench.coalesce(1000)
    bench.set("limit_max", 4)
    before = bench.flood()[-1].queues[0]
    samples = bench.flood()
    queue = samples[-1].queues[0]
    assert all(sample.queues[0].limit <= 4 for sample in samples)
    counts = [new - old for new, old in zip(queue.inflight_histogram, before.inflight_histogram, strict=True)]
    # one packet over the limit is normal: the queue stops after the packet that reaches it
    assert 1 <= largest(counts) <= 5


def test_inflight_exceeds_the_limit_by_one_batch_at_most(bench):
    samples = bench.flood()
    highest = max(sample.queues[0].limit for sample in samples)
    before, after = (sample.queues[0].inflight_histogram for sample in (samples[0], samples[-1]))
    counts = [new - old for new, old in zip(after, before, strict=True)]
    assert sum(counts) > 1000
    # a qdisc hands over as many as fit in `limit` at once (net/sched/sch_generic.c, try_bulk_dequeue_skb)
    assert largest(counts) <= 2 * highest + 1


def test_a_quiet_queue_equals_sysfs(bench):
    queue = bench.flood(0.5)[-1].queues[0]
    truth = read_bql(bench.device, netns=bench.netns)
    assert {name: getattr(queue, name) for name in truth} == truth
    # with tx-usecs the last completions are held back until the next packet is polled: inflight need not fall to 0
    assert queue.inflight <= queue.limit + 1
    assert queue.hold_time_ms == 100


def test_completions_held_back_on_a_quiet_queue_are_not_called_stuck(bench):
    older = bench.flood(0.5)[-1]
    time.sleep(1.5)
    verdicts = judge(between(older, bench.sampler.sample()))
    assert verdicts[0].kind == "idle", verdicts


def test_the_ring_stays_nearly_empty_while_bql_stops_the_queue(bench):
    samples = bench.flood()
    highest = max(sample.queues[0].limit for sample in samples)
    used = [sample.queues[0].ring_used for sample in samples]
    assert max(used) <= 2 * highest + 1
    assert samples[-1].queues[0].stops_driver == samples[0].queues[0].stops_driver


def test_completions_are_distributions(bench):
    before = bench.sampler.sample().queues[0]
    bench.coalesce(0)
    after = bench.flood()[-1].queues[0]
    sizes = [new - old for new, old in
             zip(after.completion_size_histogram, before.completion_size_histogram, strict=True)]  # fmt: skip
    intervals = [new - old for new, old in
                 zip(after.completion_interval_histogram, before.completion_interval_histogram, strict=True)]  # fmt: skip
    assert sum(sizes) == sum(intervals) > 100
    # nothing is held back with tx-usecs 0: no completion is larger than one NAPI poll
    assert largest(sizes) <= 64


def test_counters_that_the_driver_resets_go_on_from_where_they_were(bench):
    before = bench.flood(1.0)[-1].queues[0]
    assert before.queued > 1000
    peer = bench.lab.receiver
    for way in ("down", "up"):  # veth_napi_del() of the peer resets this end's counters
        sh(f"ip link set {peer.device} {way}", peer.netns)
    after = bench.flood(1.0)
    queued = [sample.queues[0].queued for sample in after]
    assert queued == sorted(queued)
    sent = after[-1].queues[0].packets - before.packets
    assert 1000 < queued[-1] - before.queued <= sent
    assert largest(after[-1].queues[0].completion_size_histogram) < 1 << 20
    sizes = [sum(sample.queues[0].completion_size_histogram) for sample in (after[0], after[-1])]
    assert sizes[1] > sizes[0] > 0, "completions are counted on at once"


def test_with_a_breakpoint_every_completion_is_seen_by_itself():
    with veth_lab() as lab, Sampler(lab.sender.device, lab.sender.netns, completions=True) as sampler:
        sh(f"ethtool -C {lab.sender.device} tx-usecs 0", lab.sender.netns)
        assert probe(sampler.sample(), "completions").why.startswith("exact")
        with closing(Completions()) as truth:
            lab.flood(1)
            calls = truth.calls()
        queue = sampler.sample().queues[0]
        # tx-usecs 0 completes packet by packet
        assert queue.completion_size_histogram[1] == sum(queue.completion_size_histogram) == calls == queue.completed
        assert sum(queue.completion_interval_histogram) == calls - 1


def test_without_a_breakpoint_the_sizes_still_add_up_to_what_was_completed(bench):
    bench.coalesce(0)
    before = bench.sampler.sample().queues[0]
    after = bench.flood()[-1].queues[0]
    assert not probe(bench.sampler.sample(), "completions").why.startswith("exact")
    sizes = [new - old for new, old in zip(after.completion_size_histogram, before.completion_size_histogram, strict=True)]
    # below 8 each cell is one value: a completion per packet leaves few in a row that no transmit or poll comes between
    assert largest(sizes) < 8
    assert sum(size * count for size, count in enumerate(sizes)) == after.completed - before.completed


def test_tx_usecs_is_mirrored_on_both_ends(bench):
    bench.coalesce(77)
    peer = bench.lab.receiver
    assert re.search(r"^tx-usecs:\s*77$", sh(f"ethtool -c {peer.device}", peer.netns), re.MULTILINE)


def test_once_json_gives_packets(bench):
    (sample,) = json_samples(bench.device, "--once", netns=bench.netns)
    assert sample["queues"][0]["unit"] == "packets"
    assert sample["queues"][0]["limit"] == read_bql(bench.device, netns=bench.netns)["limit"]


def test_without_ebpf_limit_and_inflight_come_from_sysfs(bench):
    (sample,) = json_samples(bench.device, "--once", "--no-bpf", netns=bench.netns)
    truth = read_bql(bench.device, netns=bench.netns)
    assert {name: sample["queues"][0][name] for name in truth} == truth
    assert sample["queues"][0]["unit"] == "packets"
