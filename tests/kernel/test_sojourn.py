"""Sojourn times on real devices: every sampled packet is timed or counted as lost, and the times are those of the ring."""

import os
import socket
import subprocess
import time

import pytest

from bqltop import histogram
from bqltop.kernel import netns, target
from bqltop.kernel.engine import Engine
from bqltop.model import Probe
from bqltop.sampler import Sampler
from bqltop.sweep.figures import cut
from bqltop.window import between

pytestmark = pytest.mark.usefixtures("require_root")


def engine_on(end, driver: str) -> Engine:
    memory = target.Memory()
    try:
        return Engine(target.find(memory, netns.resolve(end.netns), end.ifindex, driver), bql=False, sojourn=True)
    finally:
        memory.close()


def look(engine: Engine, seconds: float) -> None:
    """Let it run, with the looks that adjust the sampling."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        time.sleep(0.05)
        engine.snapshot()


def under_way(engine: Engine) -> int:
    """Notes of packets that are neither timed nor lost; a lone arrival is no packet of ours."""
    return sum(1 for _, note in engine._module.table("flights").items() if note.enqueued or not note.stamp & 1)


def total(engine: Engine, name: str) -> int:
    return sum(getattr(reading.sojourn, name) for reading in engine.queues())


@pytest.mark.parametrize("queues", [1, 4])
def test_every_sampled_packet_is_timed_or_counted_as_lost(lab, queues):
    built = lab(queues=queues, rules=2000)
    engine = engine_on(built.sender, "veth")
    try:
        built.start_flood()
        look(engine, 1.5)
        built.stop_flood()
        built.settle()
        engine.snapshot()
        sampled, ended, lost = (total(engine, name) for name in ("sampled", "ended", "lost"))
        assert sampled > 100
        assert sampled == ended + lost + under_way(engine)
        assert ended >= 0.95 * sampled
        for reading in engine.queues():
            assert sum(reading.sojourn.ring) <= reading.packets
            assert reading.sojourn.ended <= sum(reading.sojourn.ring) + reading.sojourn.lost
    finally:
        engine.close()


def test_the_ring_sojourn_agrees_with_occupancy_over_rate(lab):
    """Little's law: mean occupancy = rate * mean time in the ring, in steady overload. Of several seconds the middle
    one counts: a busy machine stops the consumer for a tenth of a second now and then, which is not steady."""
    built = lab(rules=5000)
    with Sampler(built.sender.device, built.sender.netns, sojourn=True) as sampler:
        built.start_flood()
        time.sleep(1)
        samples = []
        for sample in sampler.every(0.02):
            samples.append(sample)
            if sample.monotonic_ns - samples[0].monotonic_ns > 7.2e9:
                break
    spans = [span.samples for span in cut(samples)]
    ratios = sorted(measured_over_estimated(span) for span in spans)
    assert len(ratios) >= 5
    assert ratios[len(ratios) // 2] == pytest.approx(1, abs=0.2), ratios
    window = between(samples[0], samples[-1]).queues[0]
    assert window.ring_sojourn_p50_s <= window.ring_sojourn_p99_s


def measured_over_estimated(samples) -> float:
    first, last = samples[0].queues[0], samples[-1].queues[0]
    occupancy = sum(sample.queues[0].ring_used for sample in samples) / len(samples)
    waits = histogram.difference(last.ring_sojourn_histogram, first.ring_sojourn_histogram)
    assert sum(waits) > 30
    rate = between(samples[0], samples[-1]).queues[0].drained_per_s
    return histogram.mean(waits) / 1e9 / (occupancy / rate)


def test_the_qdisc_sojourn_is_the_wait_in_the_qdisc(lab):
    """A shaper that lets 2000 packets of 1042 bytes through a second, with room for 100: they wait 50 ms."""
    built = lab(rules=0, qdisc="tbf rate 16672kbit burst 4000 limit 104200", pps=4000)
    engine = engine_on(built.sender, "veth")
    try:
        built.start_flood()
        look(engine, 2)
        (reading,) = engine.queues()
        assert histogram.percentile(reading.sojourn.qdisc, 0.5) == pytest.approx(50e6, rel=0.3)
        assert histogram.percentile(reading.sojourn.ring, 0.5) < 5e6
    finally:
        engine.close()


def test_packets_thrown_out_of_the_qdisc_are_lost_and_no_time_is_made_up(lab):
    built = lab(rules=0, qdisc="tbf rate 1mbit burst 4000 limit 104200", pps=2000)
    engine = engine_on(built.sender, "veth")
    try:
        built.start_flood()
        look(engine, 1)
        built.set_qdisc("pfifo")  # some hundred packets are dropped; their addresses are used again at once
        look(engine, 1.5)
        built.stop_flood()
        look(engine, 0.3)
        before = total(engine, "ended")
        built.start_flood()
        look(engine, 1)
        built.stop_flood()
        look(engine, 0.3)
        (reading,) = engine.queues()
        assert reading.sojourn.sampled > reading.sojourn.ended
        assert reading.sojourn.ended > before
        assert reading.sojourn.sampled == reading.sojourn.ended + reading.sojourn.lost + under_way(engine)
        # 1 Mbit/s lets 120 packets through a second: nothing waited more than a second in a queue of 100
        assert histogram.percentile(reading.sojourn.qdisc, 1.0) < 1.3e9
    finally:
        engine.close()


def test_without_a_qdisc_the_ring_is_timed(lab):
    built = lab(rules=1000, qdisc="noqueue", pps=2000)
    engine = engine_on(built.sender, "veth")
    try:
        built.start_flood()
        # Few packets are under way at once, and their few addresses come back: the first share may let none of them through.
        for _ in range(10):
            look(engine, 0.5)
            (reading,) = engine.queues()
            if sum(reading.sojourn.ring) > 100:
                break
        assert sum(reading.sojourn.qdisc) == 0
        assert sum(reading.sojourn.ring) > 100
    finally:
        engine.close()


NEVER_PASSED_OVER = ("tbf", "rate", "1gbit", "burst", "100000", "limit", "100000")
OFTEN_PASSED_OVER = ("pfifo",)


@pytest.mark.parametrize("qdisc", [NEVER_PASSED_OVER, OFTEN_PASSED_OVER, ("noqueue",)])
def test_on_tun_a_packet_has_left_when_it_was_read(tun, qdisc):
    """Packets that nobody reads for 0.2 s have been in the ring for 0.2 s."""
    device = tun()
    run("tc", "-n", device.netns, "qdisc", "replace", "dev", device.device, "root", *qdisc)
    engine = engine_on(device, "tun")
    try:
        for _ in range(5):
            send(device.netns, device.address.rsplit(".", 1)[0] + ".9", packets=100)
            time.sleep(0.2)
            engine.snapshot()
            read_all(device.fds[0])
        engine.snapshot()
        (reading,) = engine.queues()
        assert 0.15e9 < histogram.percentile(reading.sojourn.ring, 0.5) < 1e9
    finally:
        engine.close()


def send(netns_name: str, address: str, packets: int) -> None:
    with netns.socket_in(netns.resolve(netns_name), socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for _ in range(packets):
            sender.sendto(bytes(100), (address, 9))


def run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)


def read_all(fd: int) -> None:
    try:
        while os.read(fd, 2048):
            pass
    except BlockingIOError:
        return


def test_without_napi_mode_only_the_wait_in_the_qdisc_is_timed(lab):
    qdisc = "tbf rate 16672kbit burst 4000 limit 104200"
    built = lab(rules=0, napi_mode=False, qdisc=qdisc, pps=4000)
    with Sampler(built.sender.device, built.sender.netns, sojourn=True) as sampler:
        sampler.sample()
        built.start_flood()
        for sample in sampler.every(0.1):
            if sample.queues[0].sojourn_sampled > 500:
                break
    queue = sample.queues[0]
    assert "NAPI mode" in probe(sample).why
    assert sum(queue.ring_sojourn_histogram) == 0
    assert sum(queue.qdisc_sojourn_histogram) > 300
    assert queue.sojourn_lost < 0.05 * queue.sojourn_sampled


def test_what_is_not_asked_for_is_not_attached(lab):
    built = lab(rules=0)
    with Sampler(built.sender.device, built.sender.netns) as sampler:
        sample = sampler.sample()
        assert probe(sample).in_force is False
        assert sample.queues[0].ring_sojourn_histogram is None
        sampler.sojourn = True
        again = sampler.sample()
        assert again.epoch == sample.epoch + 1
        assert probe(again).in_force is True
        assert again.queues[0].sojourn_sampled == 0


def probe(sample) -> Probe:
    return next(probe for probe in sample.probes if probe.name == "sojourn")
