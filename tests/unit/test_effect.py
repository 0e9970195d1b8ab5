"""What a change did: the rank test against known numbers, and which figures stand out."""

import itertools
import random

import pytest

from bqltop.model import Device, NapiSample, QdiscSample, QueueSample, Sample
from bqltop.tuning import effect
from bqltop.tuning.effect import FEWEST_SECONDS, compare, mann_whitney, median, seconds, split


def brute_force(a, b):
    """Mann-Whitney by counting every split, as the definition has it."""
    both = [*a, *b]

    def u(left, right):
        return sum((x > y) + 0.5 * (x == y) for x in left for y in right)

    middle = len(a) * len(b) / 2
    seen = abs(u(a, b) - middle)
    far = total = 0
    for chosen in itertools.combinations(range(len(both)), len(a)):
        rest = [both[i] for i in range(len(both)) if i not in chosen]
        far += abs(u([both[i] for i in chosen], rest) - middle) >= seen - 1e-9
        total += 1
    return far / total


@pytest.mark.parametrize("seed", range(12))
def test_the_exact_p_is_what_counting_gives_ties_included(seed):
    chance = random.Random(seed)
    a = [chance.randrange(6) for _ in range(5)]
    b = [chance.randrange(6) + seed % 3 for _ in range(6)]
    assert mann_whitney(a, b) == pytest.approx(brute_force(a, b))


def test_known_values():
    assert mann_whitney([1, 2, 3, 4, 5], [6, 7, 8, 9, 10]) == pytest.approx(2 / 252)
    assert mann_whitney([3] * 5, [3] * 7) == 1.0
    assert mann_whitney([3] * 50, [3] * 50) == 1.0
    assert median([]) is None
    assert median([3, 1, 2]) == 2
    assert median([1, 2, 3, 4]) == 2.5


def test_the_normal_approximation_meets_the_exact_one():
    chance = random.Random(3)
    a, b = [chance.gauss(0, 1) for _ in range(12)], [chance.gauss(0.8, 1) for _ in range(12)]
    ranks = effect._ranks([*a, *b])
    distance = abs(sum(ranks[:12]) - 12 * 25)
    assert effect._normal(ranks, 12, distance / 2) == pytest.approx(mann_whitney(a, b), rel=0.25)


def test_false_alarms_are_as_rare_as_promised():
    chance = random.Random(7)
    alarms = sum(
        mann_whitney([chance.gauss(0, 1) for _ in range(8)], [chance.gauss(0, 1) for _ in range(8)]) <= effect.ALPHA
        for _ in range(2000)
    )
    assert alarms / 2000 < 1.6 * effect.ALPHA


def run(rates, stopped, start_s=0.0, step_s=0.1, noise=0.02, seed=1, epoch=0):
    """Samples of a device that sends at the given packets/s, one rate a second, at 10 samples a second."""
    chance = random.Random(seed)
    packets = requeues = 0
    stopped_ns = 0
    samples = []
    for tick in range(int(len(rates) / step_s) + 1):
        now = int((start_s + tick * step_s) * 1e9)
        queue = QueueSample(0, packets=packets, stopped_ns=stopped_ns, ring_used=100, ring_size=256)
        qdisc = QdiscSample("pfifo", "8001:", "root", packets, 0, 7, requeues, 0, 0, 0)
        napi = NapiSample("veth1", 1, polls=packets // 32, work=packets, full_polls=0, work_histogram=(0,) * 65)
        samples.append(Sample(now, now, Device("veth0", 2), (queue,), (qdisc,), (napi,), epoch=epoch))
        rate = rates[min(int(tick * step_s), len(rates) - 1)]
        packets += int(rate * step_s * (1 + chance.gauss(0, noise)))
        requeues += int(rate * step_s / 10)
        stopped_ns += int(stopped * step_s * 1e9)
    return samples


def test_seconds_cut_at_a_second_and_never_over_a_new_baseline():
    windows = seconds(run([1000] * 5, 0.5))
    assert len(windows) == 5
    assert all(window.seconds == pytest.approx(1.0, abs=0.11) for window in windows)
    assert len(seconds(run([1000] * 3, 0) + run([1000] * 3, 0, start_s=3.2, epoch=1))) == 6
    assert seconds([]) == []


def test_a_real_change_stands_out_and_says_which_way():
    before, after = run([100_000] * 10, 0.9), run([130_000] * 10, 0.4, start_s=12, seed=2)
    found = {one.figure.id: one for one in compare(seconds(before), seconds(after))}
    packets = found["packets"]
    assert packets.stands_out
    assert packets.percent == pytest.approx(30, abs=3)
    assert packets.verdict == "better"
    assert found["stopped"].verdict == "better"
    assert found["stopped"].before == pytest.approx(0.9)
    assert found["requeues"].verdict == "worse"
    assert found["drops"].percent is None
    assert found["drops"].verdict == "within the noise"
    assert found["inflight_p99"].verdict == "no figure"
    assert found["work"].before == pytest.approx(32, rel=0.02)


def test_noise_does_not_stand_out():
    before, after = run([100_000] * 10, 0.9, seed=5, noise=0.1), run([100_000] * 10, 0.9, start_s=12, seed=6, noise=0.1)
    assert not any(one.stands_out for one in compare(seconds(before), seconds(after)))


def test_too_few_seconds_never_stand_out():
    few = FEWEST_SECONDS - 1
    found = compare(seconds(run([100] * few, 0)), seconds(run([10_000] * 10, 0, start_s=20)))
    assert not any(one.stands_out for one in found)
    assert found[0].p is None
    assert "needed" in found[0].verdict


def test_the_spans_round_a_change_leave_out_its_warm_up_and_what_came_after_the_next():
    windows = seconds(run([100_000] * 10 + [500_000] + [100_000] * 9, 0.5))
    before, after = split(windows, int(10.05e9))
    found = compare(before, after)
    assert found[0].seconds == (10, 8)
    assert not found[0].stands_out
    assert len(split(windows, int(10.05e9), span_s=4)[1]) == 3
    assert len(split(windows, int(10.05e9), until_ns=int(15e9))[1]) == 3
    assert [one.before for one in compare(*split([], 0))] == [None] * len(effect.FIGURES)


def test_windows_that_are_kept_hold_no_samples():
    kept = effect.Seconds(kept=3)
    for sample in run([1000] * 6, 0.5):
        kept.add(sample)
    assert len(kept.windows) == 3
    assert all(window.newer.queues == () for window in kept.windows)
    assert kept.windows[-1].queues[0].packets_per_s
