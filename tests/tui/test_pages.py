"""The pages of advice and of A and B."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fake_source import FakeSource
from fed import FedApp
from test_live import text_of

from bqltop.advice import Advice
from bqltop.compare import Comparison
from bqltop.histogram import LOG_LINEAR_CELLS
from bqltop.sweep.figures import BY_ID, Measured
from bqltop.sweep.plan import BadPlan
from bqltop.sweep.result import Trial
from bqltop.sweep.runner import Progress
from bqltop.tui.draw import advice as draw_advice
from bqltop.tui.draw import compare as draw_compare
from bqltop.tui.draw import sweep as draw_sweep
from bqltop.tui.screens.advice import AdviceScreen
from bqltop.tui.screens.compare import CompareScreen
from bqltop.tui.screens.sweep import SweepScreen
from bqltop.tui.sweeping import State, parse
from bqltop.verdict import Verdict

ADVICE = (
    Advice("let 8 packets out at least", "it stops for each", "some wait", (("limit_min", "8"),), 3),
    Advice("take it down", "that resets it", "traffic is cut", commands=("ip link set [red] down",)),
)


def text(lines) -> str:
    return "\n".join(line.text for line in lines)


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_the_page_of_advice(width):
    verdicts = (Verdict("per-packet", 2, "Queue 3 of [red] is slow.", "It costs."),)
    lines = draw_advice.page(verdicts, ADVICE, None, width)
    assert {line.cell_length for line in lines} == {width}
    shown = " ".join(text(lines).split())
    assert "Queue 3 of [red] is slow." in shown
    assert "limit_min = 8 on queue 3" in shown
    assert "ip link set [red] down" in shown


def test_without_a_tuner_no_digit_is_offered_and_the_reason_is_given():
    shown = text(draw_advice.page((), ADVICE, "not a live device", 80))
    assert "not a live device" in shown
    assert " 1" not in shown
    assert "calls for no change" in text(draw_advice.page((), (), None, 80))


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_the_page_of_a_and_b(width):
    comparison = Comparison()
    assert "Nothing marked yet" in " ".join(text(draw_compare.page(comparison, None, width)).split())
    fake = FakeSource("veth")
    samples = list(fake.samples(170))
    for sample, letter in ((samples[0], "A"), (samples[80], "B")):
        assert comparison.mark(sample.monotonic_ns) == letter
        for one in samples[0:80] if letter == "A" else samples[80:]:
            comparison.add(one)
    lines = draw_compare.page(comparison, None, width)
    assert {line.cell_length for line in lines} == {width}
    if width >= 80:
        assert "packets/s" in text(lines)
        assert "rank test" in " ".join(text(lines).split())


def test_every_figure_of_a_and_b_is_called_by_its_whole_name_at_80_columns():
    """p50 and p99 of a wait differ in their last letters only."""

    def timed(sample, number):
        cells = tuple(9 * number if cell == 40 else 0 for cell in range(LOG_LINEAR_CELLS))
        queues = [replace(queue, qdisc_sojourn_histogram=cells, ring_sojourn_histogram=cells) for queue in sample.queues]
        return replace(sample, queues=tuple(queues))

    comparison = Comparison()
    for number, sample in enumerate(FakeSource("veth").samples(80)):
        if number == 0:
            comparison.mark(sample.monotonic_ns)
        comparison.add(timed(sample, number))
    titles = [one.figure.title for one in comparison.table()]
    assert {"wait in qdisc p50", "wait in qdisc p99", "wait in ring p99"} <= set(titles)
    shown = text(draw_compare.page(comparison, None, 80)).splitlines()
    assert [title for title in titles if not any(line.startswith(f" {title} ") for line in shown)] == []


async def test_keys_open_and_close_the_pages():
    app = FedApp(FakeSource("veth"))
    async with app.run_test(size=(100, 30)) as pilot:
        app.play(20)
        await pilot.press("a")
        assert isinstance(app.screen, AdviceScreen)
        await pilot.press("1")  # nothing can be tuned in a test without a tuner
        assert isinstance(app.screen, AdviceScreen)
        await pilot.press("escape")
        assert app.screen is app.live
        await pilot.press("b")
        assert app.comparing.shown.letter == "A"
        app.play(30)
        await pilot.press("b", "B")
        assert isinstance(app.screen, CompareScreen)
        await pilot.press("b")
        assert app.comparing.shown.letter == "A"
        await pilot.press("escape")
        assert app.screen is app.live


async def test_before_the_first_sample_the_keys_do_nothing():
    app = FedApp(FakeSource("veth"))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("a", "b")
        assert app.screen is app.live
        assert app.comparing.shown.letter is None


class FakeTuner:
    """Takes plans and says what was asked of it."""

    read_only = False

    def __init__(self, refuse: str | None = None) -> None:
        self.changes, self.undone, self.refuse = [], [], refuse

    def plan(self, assignments, queue):
        return [(knob, value, queue) for knob, value in assignments.items()]

    def apply(self, plan, seconds):
        change = FakeChange(plan, refused=plan[0] == self.refuse)
        assert seconds > 0
        if not change.refused:
            self.changes.append(change)
        return change

    def undo(self, change):
        self.changes.remove(change)
        self.undone.append(change)

    def knobs(self, queue):
        return []


class FakeChange:
    changed = True

    def __init__(self, plan, refused):
        self.plan, self.refused = plan, refused
        self.sentence = f"{plan[0]}: 0 -> {plan[1]}"


@pytest.mark.parametrize(("refuse", "kept", "said"), [(None, 2, "you: "), ("b", 0, "not tried: b")])
def test_advice_is_tried_whole_or_not_at_all(refuse, kept, said):
    from bqltop.tui.tuning import Tuning

    tuning = Tuning(lambda sample: None)
    tuning.tuner = FakeTuner(refuse)
    events = tuning.try_out({"a": "1", "b": "2"}, 0)
    assert len(tuning.tuner.changes) == kept
    assert all(event.text.startswith(said) for event in events)
    assert events


def test_advice_keeps_its_words_when_a_name_is_odd():
    odd = replace(ADVICE[1], commands=("ip link set \x1b[31m down",))
    assert "\x1b" not in text(draw_advice.page((), (odd,), None, 80))


# the sweep


@pytest.mark.parametrize("text", ["", "tx-usecs", "runs=x tx-usecs=1", "runs=0 tx-usecs=1", "a=1 drops>x", "seconds=5"])
def test_what_is_no_sweep_is_refused(text):
    with pytest.raises(BadPlan):
        parse(text)


def test_a_sweep_is_typed_in_one_line():
    wish = parse("tx-usecs=0,50 limit_min=8 runs=2 seconds=0.5 probe=peer drops>1% rtt>50ms")
    assert len(wish.plan.settings) == 3
    assert (wish.plan.runs, wish.plan.seconds, wish.probe) == (2, 0.5, "peer")
    assert [bound.what for bound in wish.bounds] == ["drops", "rtt"]


def trials(plan):
    rates = {setting: 1000.0 * (n + 1) for n, setting in enumerate(plan.settings)}
    for run, setting in plan.order():
        figures = dict.fromkeys(BY_ID) | {"packets_per_s": rates[setting], "ring_p50_s": 0.001}
        yield Trial(setting, run, Measured(figures, {}))


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_the_page_of_the_sweep(width):
    wish = parse("tx-usecs=0,50,100,200 limit_min=0,8")
    made = tuple(trials(wish.plan))
    states = [
        State(), State(fault="[red] is wrong"), State(wish, running=True),
        State(wish, True, Progress(2, 27, wish.plan.settings[1], 1, 100.0), made[:2]), State(wish, False, None, made),
        State(wish, False, None, made[:3], stopped="a key was pressed", left=("tx-usecs stays 50",)),
    ]  # fmt: skip
    for state in states:
        lines = draw_sweep.page(state, width)
        assert {line.cell_length for line in lines} == {width}
    done = " ".join(text(draw_sweep.page(states[4], width)).split())
    assert "Recommended: tx-usecs=200 limit_min=8" in done
    assert "[red] is wrong" in " ".join(text(draw_sweep.page(states[1], width)).split())


async def test_the_sweep_says_why_it_cannot_begin():
    app = FedApp(FakeSource("veth"))
    async with app.run_test(size=(100, 30)) as pilot:
        app.play(5)
        await pilot.press("S")
        assert isinstance(app.screen, SweepScreen)
        await pilot.press(*"nonsense", "enter")
        assert "KNOB=VALUE" in app.sweeping.state.fault
        await pilot.press("escape")
        assert app.screen is app.live


@pytest.mark.parametrize("key", ["q", "tab", "x", "space", "enter", "escape", "f5"])
async def test_any_key_stops_a_sweep_but_those_that_turn_the_page(key):
    app = FedApp(FakeSource("veth"))
    async with app.run_test(size=(100, 30)) as pilot:
        app.play(5)
        await pilot.press("S")
        app.sweeping.state = State(parse("limit_min=0,8"), running=True)
        app.screen.redraw()
        await pilot.pause()
        assert "any other key stop" in text_of(app)
        await pilot.press("pagedown", "pageup", "down", "up")
        assert app.sweeping._stop is None
        await pilot.press(key)
        assert app.sweeping._stop == "a key was pressed"
        assert isinstance(app.screen, SweepScreen)
        app.sweeping.state = State()


async def test_keys_that_do_nothing_are_not_offered():
    app = FedApp(FakeSource("veth"))
    async with app.run_test(size=(100, 30)) as pilot:
        app.play(20)
        await pilot.press("a")
        assert "put on trial" not in text_of(app).splitlines()[-1], "nothing can be tuned in a test without a tuner"
        await pilot.press("escape", "S")
        assert "Tab" not in text_of(app).splitlines()[-1], "nothing is recommended yet"
