"""What the veth BQL series found, found again: the less may lie in the ring, the shorter the waits and the more requeues."""

import itertools

import pytest

from .series import FAST, SLOW, figures, requeues_per_1000, run_series

pytestmark = pytest.mark.kernel(needs="veth_bql")
TIGHT = ("limit_min 16", "limit_min 8", "per packet")


def measured(load: dict[str, int]) -> list:
    trials, _ = run_series(load)
    assert not {trial.trouble for trial in trials} - {None}
    return trials


def falling(values: dict[str, float]) -> bool:
    return all(a > b for a, b in itertools.pairwise(values.values()))


def test_with_a_slow_consumer_less_in_the_ring_means_shorter_waits():
    trials = measured(SLOW)
    waits = figures(trials, "ring_p50_s")
    assert falling(waits), waits
    occupancy = figures(trials, "dark_buffer_s")
    assert falling(occupancy), occupancy
    trips = figures(trials, "rtt_p50_s")
    # 16, 8 and 2 packets are a few hundred microseconds apart, which a probe under emulation cannot tell
    assert trips["no BQL"] > trips["batched"] > sorted(trips[name] for name in TIGHT)[1], trips


def test_with_a_fast_consumer_less_in_the_ring_means_more_requeues():
    requeues = requeues_per_1000(measured(FAST))
    few, some = (requeues["no BQL"], requeues["batched"]), (requeues["limit_min 16"], requeues["limit_min 8"])
    assert max(few) < min(some), requeues
    assert 1.5 * max(some) < requeues["per packet"], requeues
