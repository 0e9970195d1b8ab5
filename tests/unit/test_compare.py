"""A and B by hand: which seconds count for which, and what is said of them."""

from bqltop.compare import FIGURES, Comparison
from bqltop.model import Device, ProbeSample, QueueSample, Sample
from bqltop.tuning.effect import FEWEST_SECONDS

S = 1_000_000_000


class Run:
    """Samples ten times a second with a packet rate that can be changed."""

    def __init__(self):
        self.now, self.packets, self.comparison = 0, 0.0, Comparison()

    def go(self, seconds: float, rate: float, wobble: float = 0.01, rtt_ms: float = 5.0) -> None:
        for tick in range(round(seconds * 10)):
            self.now += S // 10
            self.packets += rate / 10 * (1 + wobble * ((tick * 7 // 10) % 5 - 2))
            probe = ProbeSample("198.18.0.2", 0, 0, 0, rtt_last_ns=round(rtt_ms * 1e6))
            queues = (QueueSample(0, packets=int(self.packets)),)
            self.comparison.add(Sample(self.now, self.now, Device("veth0", 7), queues, probe=probe))

    def mark(self) -> str:
        return self.comparison.mark(self.now)


def test_marks_alternate_and_the_warm_up_is_left_out():
    run = Run()
    assert run.comparison.letter is None
    run.go(2, 1000)
    assert [run.mark(), run.mark(), run.mark()] == ["A", "B", "A"]
    run.go(5, 1000)
    assert run.comparison.seconds("A") in (3, 4)
    assert run.comparison.seconds("B") == 0
    assert "begin B" in run.comparison.sentence()


def test_a_difference_beyond_the_scatter_stands_out():
    run = Run()
    for rate, rtt in ((1000, 5.0), (1300, 5.0)):
        run.mark()
        run.go(9, rate, rtt_ms=rtt)
    table = {one.figure.id: one for one in run.comparison.table()}
    assert table["packets"].stands_out
    assert round(table["packets"].percent) == 30
    assert table["packets"].verdict == "better"
    assert not table["rtt"].stands_out
    assert "ring_p50" not in table  # nobody measured it
    sentence = run.comparison.sentence()
    assert "packets/s +30 %" in sentence
    assert "rank test" in sentence
    assert "drift" in sentence


def test_what_goes_back_and_forth_is_pooled():
    run = Run()
    for rate in (1000, 1300, 1000, 1300):
        run.mark()
        run.go(5, rate)
    assert run.comparison.seconds("A") == run.comparison.seconds("B") >= 6
    assert "drift" not in run.comparison.sentence()


def test_no_difference_is_said_plainly():
    run = Run()
    for _ in range(2):
        run.mark()
        run.go(9, 1000)
    assert run.comparison.sentence().startswith("Nothing that could not be chance")


def test_too_few_seconds_are_not_judged():
    run = Run()
    for rate in (1000, 2000):
        run.mark()
        run.go(3, rate)
    assert f"{FEWEST_SECONDS} s of each" in run.comparison.sentence()


def test_figures_have_names_of_their_own():
    assert len({figure.id for figure in FIGURES}) == len(FIGURES)
