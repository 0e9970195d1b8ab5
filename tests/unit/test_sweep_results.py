"""Sweeps without a kernel: plans, bounds, figures, what is best, what is recommended, files and tables."""

import csv
import io
import json
from dataclasses import replace

import pytest

from bqltop.histogram import LOG_LINEAR_CELLS, log_linear_cell
from bqltop.model import Device, LinkStats, NapiSample, QdiscSample, QueueSample, Sample, Unit
from bqltop.probe import Echo
from bqltop.sweep import guard, report, result, saved
from bqltop.sweep.figures import BY_ID, FIGURES, Measured, Span, cut, measure
from bqltop.sweep.plan import AS_IT_WAS, BadPlan, Plan, label, parse_grid, settings
from bqltop.sweep.result import Trial, summarise

MS = 1_000_000


# plans


def test_a_grid_is_every_combination_and_what_is_there():
    grid = parse_grid(["tx-usecs=0,50", "limit_min=8,0,8"])
    assert grid == {"tx-usecs": ["0", "50"], "limit_min": ["8", "0"]}
    found = settings(grid)
    assert found[0] == AS_IT_WAS
    assert len(found) == 5
    assert (("tx-usecs", "50"), ("limit_min", "0")) in found
    assert label(found[1]) == "tx-usecs=0 limit_min=8"


@pytest.mark.parametrize("words", [["tx-usecs"], ["=1"], ["tx-usecs="], ["tx-usecs=,"], ["a=1", "a=2"]])
def test_what_is_no_grid_is_refused(words):
    with pytest.raises(BadPlan):
        parse_grid(words)


def test_every_run_tries_everything_in_an_order_of_its_own():
    chosen = settings(parse_grid(["a=1,2,3,4,5,6,7,8"]))
    plan = Plan(chosen, runs=4, seed=1)
    order = list(plan.order())
    assert order == list(Plan(chosen, runs=4, seed=1).order())
    assert len(order) == plan.trials == 36
    by_run = [[setting for run, setting in order if run == number] for number in range(1, 5)]
    assert all(sorted(run) == sorted(chosen) for run in by_run)
    assert len({tuple(run) for run in by_run}) == 4


def test_too_much_is_refused():
    with pytest.raises(BadPlan, match="2000"):
        Plan(settings({"a": [str(n) for n in range(1000)]}), runs=3)


# figures


def cells(**counts_at_ns: int) -> tuple[int, ...]:
    filled = [0] * LOG_LINEAR_CELLS
    for name, count in counts_at_ns.items():
        filled[log_linear_cell(int(name[1:]))] += count
    return tuple(filled)


def sample(tick: int, *, drops: int = 0, timeouts: int = 0, limit: int = 16, epoch: int = 0) -> Sample:
    """A tenth of a second in which 1000 packets are sent, stopped half of the time, 20 requeued, 100 polls of 10."""
    queue = QueueSample(
        0, unit=Unit.PACKETS, limit=limit, inflight=10, packets=1000 * tick, completed=1000 * tick, busy=20 * tick,
        stopped_ns=50 * MS * tick, stopped_driver_ns=0, stopped_bql_ns=50 * MS * tick, ring_size=256, ring_used=100,
        tx_timeouts=timeouts, inflight_histogram=cells(n10=1000 * tick),
        qdisc_sojourn_histogram=cells(n1000000=50 * tick), ring_sojourn_histogram=cells(n8000000=50 * tick),
    )  # fmt: skip
    return Sample(
        time_ns=tick, monotonic_ns=tick * 100 * MS, device=Device("veth0", 7), queues=(queue,),
        qdiscs=(QdiscSample("pfifo", "8001:", "root", 1000 * tick, 0, drops * tick, 20 * tick, 0, 0, 100),),
        napis=(NapiSample("veth1", 9, 100 * tick, 1000 * tick, 0, (0,) * 65, "peer"),),
        link=LinkStats(1000 * tick, 0, 0, 0, 0, 0, 0, 0), epoch=epoch,
    )  # fmt: skip


def test_the_figures_of_a_span():
    echoes = [Echo(n, (n + 1) * MS) for n in range(10)] + [Echo(11, None)]
    span = Span.of([sample(tick) for tick in range(31)], echoes)
    found = measure(span)
    figures = found.figures
    assert figures["packets_per_s"] == pytest.approx(10_000)
    assert figures["requeues_per_s"] == pytest.approx(200)
    assert figures["rtt_avg_s"] == pytest.approx(0.0055)
    assert figures["rtt_p99_s"] == pytest.approx(0.010)
    assert figures["rtt_loss"] == pytest.approx(1 / 11)
    assert figures["qdisc_p50_s"] == pytest.approx(0.001, rel=0.13)
    assert figures["ring_p99_s"] == pytest.approx(0.008, rel=0.13)
    assert figures["dark_buffer_s"] == pytest.approx(0.01)
    assert figures["napi_work"] == pytest.approx(10)
    assert figures["limit_p50"] == 16
    assert figures["stopped_share"] == pytest.approx(0.5)
    assert figures["drop_share"] == 0
    assert len(found.scatter["packets_per_s"]) == 3
    assert len(found.scatter["rtt_avg_s"]) == 10


def test_what_is_not_to_be_had_is_none_and_not_zero():
    bare = [Sample(tick, tick * 100 * MS, Device("eth0", 2), queues=(QueueSample(0),)) for tick in range(12)]
    figures = measure(Span.of(bare)).figures
    assert set(figures) == {figure.id for figure in FIGURES}
    assert all(value is None for value in figures.values()), figures


def test_a_span_over_two_attachments_is_none():
    assert Span.of([sample(0), sample(1, epoch=1)]) is None
    assert Span.of([sample(0)]) is None
    assert len(cut([sample(tick) for tick in range(25)])) == 2


# guard


def test_bounds_are_parsed_with_their_unit():
    assert guard.parse_bound("drops>1%") == guard.Bound("drops", 0.01, "drops>1%")
    assert guard.parse_bound(" rtt > 50ms ").value == pytest.approx(0.05)


@pytest.mark.parametrize("text", ["drops", "drops>1", "drops>1ms", "rtt>5%", "drops<1%", "x>1%", "rtt>ms", "drops>-1%"])
def test_other_bounds_are_refused(text):
    with pytest.raises(BadPlan):
        guard.parse_bound(text)


def test_a_bound_that_is_broken_says_which_and_by_how_much():
    span = Span.of([sample(0, drops=100), sample(10, drops=100)])
    assert guard.exceeded([guard.parse_bound("drops>10%")], span) is None
    assert "share dropped in qdisc was 9.1 %" in guard.exceeded([guard.parse_bound("drops>9%")], span)
    few = replace(span, echoes=[Echo(0, None)] * 4)
    assert guard.exceeded([guard.parse_bound("loss>1%")], few) is None
    assert guard.exceeded([guard.parse_bound("loss>1%")], replace(span, echoes=[Echo(0, None)] * 5))


def test_the_watchdog_stops_it_always():
    quiet = Span.of([sample(0), sample(1)]).window
    fired = Span.of([sample(0), sample(1, timeouts=1)]).window
    assert guard.watchdog(quiet) is None
    assert "queue 0" in guard.watchdog(fired)


# results


def trial(setting, packets: float, rtt: float, run: int = 1, requeues: float = 0.0, spread: float = 0.01) -> Trial:
    figures = dict.fromkeys(BY_ID) | {"packets_per_s": packets, "rtt_avg_s": rtt, "requeues_per_s": requeues}
    wobble = [1 + spread * (n - 4) / 4 for n in range(9)]
    scatter = {"packets_per_s": tuple(packets * w for w in wobble), "rtt_avg_s": tuple(rtt * w for w in wobble)}
    return Trial(setting, run, Measured(figures, scatter))


A, B, C, D = ((("tx-usecs", value),) for value in ("0", "50", "100", "500"))


def test_medians_over_the_runs():
    found = summarise([A], [trial(A, 100, 0.1, run) for run in (1, 2)] + [trial(A, 400, 0.9, 3)])
    assert (found.rows[0].figures["packets_per_s"], found.rows[0].figures["rtt_avg_s"], found.rows[0].runs) == (100, 0.1, 3)


def test_pareto_best_are_those_that_none_beats():
    trials = [trial(AS_IT_WAS, 100_000, 0.020), trial(A, 90_000, 0.004), trial(B, 101_000, 0.006), trial(C, 95_000, 0.010)]
    found = summarise([AS_IT_WAS, A, B, C], trials)
    assert {row.setting for row in found.rows if row.best} == {A, B}
    assert found.latency == "rtt_avg_s"
    assert found.recommendation.setting == B
    assert "6 ms" in found.recommendation.reason
    assert "as it was: round trip avg 20 ms" in found.recommendation.reason
    assert "p = " in found.recommendation.reason


def test_what_cannot_be_told_from_noise_is_not_worth_a_change():
    trials = [trial(AS_IT_WAS, 100_000, 0.0200, spread=0.5), trial(A, 100_000, 0.0180, spread=0.5)]
    found = summarise([AS_IT_WAS, A], trials)
    assert found.recommendation.setting == AS_IT_WAS
    assert "chance alone" in found.recommendation.reason


def test_what_is_there_wins_among_equals_and_then_the_fewest_requeues():
    assert summarise([A, AS_IT_WAS], [trial(A, 100, 0.01), trial(AS_IT_WAS, 101, 0.0101)]).recommendation.setting == AS_IT_WAS
    found = summarise([A, B], [trial(A, 100, 0.01, requeues=500), trial(B, 100, 0.01, requeues=20)])
    assert found.recommendation.setting == B


def test_nothing_to_recommend_says_why():
    assert summarise([A, B], []).recommendation.setting is None
    assert "only one" in summarise([A, B], [trial(A, 100, 0.1)]).recommendation.reason
    blind = [Trial(s, 1, Measured(dict.fromkeys(BY_ID) | {"packets_per_s": 5.0})) for s in (A, B)]
    assert "--probe" in summarise([A, B], blind).recommendation.reason


def test_latency_is_the_first_figure_that_all_have():
    ring = [replace(t, measured=replace(t.measured, figures=t.measured.figures | {"rtt_avg_s": rtt, "ring_p50_s": 0.5}))
            for t, rtt in ((trial(A, 1, 1), 0.1), (trial(B, 1, 1), None))]  # fmt: skip
    assert summarise([A, B], ring).latency == "ring_p50_s"


def test_a_refused_setting_is_named_with_its_reason():
    found = summarise([A, B], [trial(A, 100, 0.1), Trial(B, 1, trouble="Operation not supported")])
    assert found.rows[1].trouble == "Operation not supported"
    text = report.markdown(found, Plan((A, B), 1), "veth0")
    assert "Not measured: tx-usecs=50: Operation not supported" in text


# tables and files


def some_result():
    trials = [trial(AS_IT_WAS, 100_000, 0.020), trial(A, 90_000, 0.004), trial(B, 101_000, 0.006)]
    plan = Plan((AS_IT_WAS, A, B), 1)
    return summarise(plan.settings, trials), plan, trials


def test_markdown_has_settings_across_and_figures_down():
    text = report.markdown(*some_result()[:2], "veth0")
    lines = text.splitlines()
    head = next(line for line in lines if line.startswith("|"))
    assert [cell.strip() for cell in head.split("|")[2:-1]] == ["as it was", "tx-usecs=0 *", "tx-usecs=50 *"]
    assert any(line.startswith("| round trip avg") and "20 ms" in line for line in lines)
    assert len({len(line) for line in lines if line.startswith("|")}) == 1
    assert lines[-1].startswith("Recommended: tx-usecs=50: ")


def test_csv_has_a_line_a_setting_with_raw_numbers():
    rows = list(csv.DictReader(io.StringIO(report.to_csv(some_result()[0]))))
    assert [row["tx-usecs"] for row in rows] == ["", "0", "50"]
    assert [float(row["rtt_avg_s"]) for row in rows] == [0.02, 0.004, 0.006]
    assert [row["recommended"] for row in rows] == ["0", "0", "1"]
    assert rows[0]["ring_p50_s"] == ""


def test_json_can_be_read_by_machines():
    found, plan, trials = some_result()
    plain = json.loads(json.dumps(report.to_json(found, plan, trials, "veth0", "why")))
    assert plain["recommended"] == {"tx-usecs": "50"}
    assert plain["stopped"] == "why"
    assert len(plain["trials"]) == len(plain["settings"]) == 3


def test_a_saved_sweep_comes_back_the_same(tmp_path):
    _, plan, trials = some_result()
    before = saved.Saved("veth0", "blue", plan, (*trials, Trial(B, 2, trouble="no")), ("drops>1%",), "peer")
    saved.save(tmp_path / "sweep", before)
    assert saved.load(tmp_path / "sweep") == before
    assert [path.name for path in tmp_path.iterdir()] == ["sweep"]


NO_SWEEPS = ["", "{}", "[]", "null", '{"bqltop-sweep": 1}', '{"bqltop-sweep": 9}', '{"bqltop-sweep": 1, "plan": 5}',
             "[" * 100_000]  # fmt: skip


@pytest.mark.parametrize("text", NO_SWEEPS, ids=range(len(NO_SWEEPS)))
def test_what_is_no_saved_sweep_is_said_in_one_line(tmp_path, text):
    path = tmp_path / "sweep"
    path.write_text(text)
    with pytest.raises(BadPlan) as error:
        saved.load(path)
    assert "\n" not in str(error.value)
    with pytest.raises(BadPlan, match="No such file"):
        saved.load(tmp_path / "nowhere")


def test_the_table_of_latencies_is_one_whose_scatter_is_known():
    assert set(result.LATENCIES) <= set(Measured({}).scatter) | set(BY_ID)
    from bqltop.sweep.figures import SCATTER

    assert set(result.LATENCIES) <= set(SCATTER)
