"""Metrics that a Prometheus server accepts, and no more of them than promised."""

import argparse
import builtins
import contextlib
import re
import urllib.request
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import Source, sample, samples

from bqltop import histogram
from bqltop.model import ProbeSample
from bqltop.output import command, prometheus
from bqltop.window import between

prometheus_client = pytest.importorskip("prometheus_client")


def exposed(older, newer) -> dict[str, float]:
    from prometheus_client.parser import text_string_to_metric_families

    registry, collector = command._registry()
    collector.update(newer, between(older, newer))
    text = prometheus_client.generate_latest(registry).decode()
    return {
        (s.name, *sorted(s.labels.items())): s.value for family in text_string_to_metric_families(text) for s in family.samples
    }


def value(found, name, **labels):
    wanted = set(labels.items())
    hits = [v for key, v in found.items() if key[0] == name and wanted <= set(key[1:])]
    assert len(hits) == 1, (name, hits)
    return hits[0]


def test_counters_gauges_and_histograms():
    found = exposed(sample(1), sample(2))
    assert value(found, "bqltop_queue_packets_total", queue="0", device="veth0", netns="blue") == 2018
    assert value(found, "bqltop_queue_stopped_seconds_total", queue="0") == pytest.approx(0.1)
    assert value(found, "bqltop_queue_bql_limit_packets", queue="0") == 16
    assert value(found, "bqltop_queue_xoff", by="driver") == 1
    assert value(found, "bqltop_queue_transmit_inflight_packets_count") == 2000
    assert value(found, "bqltop_queue_transmit_inflight_packets_bucket", le="15.0") == 0
    assert value(found, "bqltop_queue_transmit_inflight_packets_bucket", le="31.0") == 2000
    assert value(found, "bqltop_napi_work_packets_sum", role="peer") == 2000
    assert value(found, "bqltop_napi_work_packets_bucket", le="63.0") == 2
    assert not [key for key in found if key[0] == "bqltop_queue_bql_limit_bytes"]


def test_napi_instances_without_an_id_are_series_of_their_own():
    older, newer = sample(1), sample(2)
    two = (replace(newer.napis[0], napi_id=0), replace(newer.napis[0], napi_id=0, polls=3))
    found = exposed(replace(older, napis=two), replace(newer, napis=two))
    assert [value(found, "bqltop_napi_polls_total", napi=name) for name in ("0#1", "0#2")] == [newer.napis[0].polls, 3]


def test_echoes():
    probe = ProbeSample("192.0.2.1", 100, 99, 1, rtt_p50_ns=1_500_000, rtt_p99_ns=None)
    found = exposed(sample(1), replace(sample(2), probe=probe))
    assert value(found, "bqltop_echo_lost_total", address="192.0.2.1") == 1
    assert value(found, "bqltop_echo_round_trip_seconds", quantile="0.5") == pytest.approx(0.0015)


def test_names_follow_the_conventions():
    names = [metric.name for metric in prometheus.METRICS]
    assert len(set(names)) == len(names)
    for metric in prometheus.METRICS:
        assert re.fullmatch(r"bqltop_[a-z_]+", metric.name)
        assert not metric.name.endswith(("_total", "_ns", "_ms", "_count", "_sum", "_bucket"))
        assert metric.labels[:2] == prometheus.COMMON


def test_a_device_that_is_away_shows_only_that():
    found = exposed(sample(1), sample(2, present=False))
    assert value(found, "bqltop_device_present") == 0
    assert len(found) == 2


@pytest.mark.parametrize(("queues", "most"), [(1, 120), (16, 1300), (64, 2000), (1000, 6000)])
def test_cardinality_is_bounded(queues, most):
    assert len(exposed(sample(1, queues), sample(2, queues))) < most


def test_above_the_bound_distributions_are_added_up():
    found = exposed(sample(1, 20), sample(2, 20))
    assert value(found, "bqltop_queue_transmit_inflight_packets_count", queue="all") == 40_000


@given(st.lists(st.integers(0, 1 << 34), max_size=50))
def test_buckets_count_what_is_at_most_their_bound(values):
    cells = [0] * histogram.LOG_LINEAR_CELLS
    for one in values:
        cells[histogram.log_linear_cell(one)] += 1
    bounds = prometheus.SOJOURN_BOUNDS
    counted, total = prometheus.buckets(cells, bounds, histogram.log_linear_bounds, 1e9, None)
    assert [count for _, count in counted] == [sum(one <= bound for one in values) for bound in bounds] + [len(values)]
    assert total == pytest.approx(sum(values) / 1e9, rel=0.13)


def arguments(*words):
    parser = argparse.ArgumentParser()
    command.configure(parser)
    return parser.parse_args(["--prometheus", *words])


def made(ready):
    return lambda _args: contextlib.nullcontext(Source(ready))


@pytest.mark.parametrize("openmetrics", [False, True])
def test_a_textfile_appears_in_one_piece(tmp_path, openmetrics):
    path = tmp_path / "bqltop.prom"
    args = arguments("--textfile", str(path), *["--openmetrics"] * openmetrics)
    assert command.run(args, made(samples(3))) == 0
    text = path.read_text()
    assert "bqltop_queue_packets_total{" in text
    assert text.endswith("# EOF\n") == openmetrics
    assert list(tmp_path.iterdir()) == [path]


def test_a_textfile_that_cannot_be_written_is_one_line(tmp_path, capsys):
    assert command.run(arguments("--textfile", str(tmp_path / "no" / "where.prom")), made(samples(3))) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_a_scrape(capsys):
    seen = []

    class Scraped(Source):
        def every(self, interval_s):
            yield from samples(2)
            url = re.search(r"http://\S+", capsys.readouterr().err)[0]
            with urllib.request.urlopen(url, timeout=5) as answer:
                seen.append(answer.read().decode())
            yield sample(2)

    args = arguments("--listen", "127.0.0.1:0")
    assert command.run(args, lambda _args: contextlib.nullcontext(Scraped([]))) == 0
    assert "bqltop_queue_busy_total{" in seen[0]


def test_without_the_library_one_line_says_what_to_type(monkeypatch):
    real = builtins.__import__

    def without(name, *rest, **named):
        if name.startswith("prometheus_client"):
            raise ImportError(name)
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(command.ExportError) as error:
        command.run(arguments(), made([]))
    assert str(error.value) == "prometheus_client is not installed; to get it: pip install 'bqltop[prometheus]'"


@pytest.mark.parametrize("text", ["", "nowhere", "host:", "host:x", "host:70000"])
def test_a_wrong_address(text):
    with pytest.raises(argparse.ArgumentTypeError):
        command.address(text)


def test_a_strict_parser_takes_the_openmetrics_text(tmp_path):
    from prometheus_client.openmetrics.parser import text_string_to_metric_families

    path = tmp_path / "x.om"
    assert command.run(arguments("--textfile", str(path), "--openmetrics"), made(samples(4, queues=20))) == 0
    families = {family.name: family for family in text_string_to_metric_families(path.read_text())}
    assert families["bqltop_queue_packets"].type == "counter"
    assert families["bqltop_queue_transmit_inflight_packets"].type == "histogram"
    assert families["bqltop_queue_ring_used_packets"].type == "gauge"
