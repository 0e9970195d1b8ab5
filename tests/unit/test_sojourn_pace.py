"""How many packets are sampled, and which notes of earlier ones are still believed."""

from bqltop.kernel.sojourn import CALM, CREDIT, FEW, FIRST_MASK, MANY, PACE_S, REMEMBERED, WIDEST_MASK, Pace


def run(pace: Pace, packets_per_s: float, adjustments: int, sampled: int = 0, now: float = 0.0):
    """Adjustments under a packet rate: 1 packet of (mask + 1) is sampled. Returns what was sampled, and the time."""
    for _ in range(adjustments):
        now += PACE_S
        sampled += round(packets_per_s * PACE_S / (pace.mask + 1))
        pace.adjust(sampled, now)
    return sampled, now


def test_the_share_follows_the_packet_rate():
    for rate in (10_000, 300_000, 5_000_000):
        pace = Pace(0.0)
        run(pace, rate, 300)
        assert FEW <= rate / (pace.mask + 1) <= MANY, rate


def test_a_slow_device_has_every_packet_timed():
    pace = Pace(0.0)
    run(pace, 100, 10 * CALM)
    assert pace.mask == 0


def test_it_reacts_at_once_to_more_and_slowly_to_less():
    pace = Pace(0.0)
    state = run(pace, 1_000_000, 1)
    fast = pace.mask
    assert 1_000_000 / (fast + 1) <= MANY
    state = run(pace, 0, CALM - 1, *state)
    assert pace.mask == fast
    run(pace, 0, 1, *state)
    assert pace.mask == fast >> 1


def test_packets_under_way_keep_their_notes_when_the_share_changes():
    pace = Pace(0.0)
    run(pace, 1_000_000, 3)
    assert pace.match == FIRST_MASK
    assert pace.sure == pace.mask > FIRST_MASK
    run(pace, 1_000_000, REMEMBERED, 10**9, 1.0)
    assert pace.match >= FIRST_MASK


def test_after_a_shortage_nothing_is_sure_for_a_while():
    pace = Pace(0.0)
    pace.adjust(CREDIT, PACE_S, exhausted=True)
    assert pace.sure == WIDEST_MASK
    run(pace, 1000, REMEMBERED, CREDIT, PACE_S)
    assert pace.sure < WIDEST_MASK


def test_masks_are_parts_of_each_other():
    pace = Pace(0.0)
    for rate in (5e6, 0, 3e5, 100, 1e9):
        run(pace, rate, 7)
        assert pace.mask & (pace.mask + 1) == 0
        assert pace.match & pace.mask == pace.match
        assert pace.sure & pace.mask == pace.mask
