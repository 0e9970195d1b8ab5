"""A report says what was set up, what changed when, and what the figures were on either side of it."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from made_up import START_NS, cells, queue, sample, samples

from bqltop.cli import main
from bqltop.model import Event
from bqltop.recording import Recorder, Recording
from bqltop.recording.when import moment
from bqltop.report import bars, report, table
from bqltop.spans import cut


def tuned():
    """10 s at limit 128, then limit_min is set and the limit is 8; the ring drains."""
    items = []
    for tick in range(200):
        late = tick >= 100
        one = queue(0, tick, limit=8 if late else 128, limit_min=8 if late else 0, ring_used=8 if late else 250,
                    inflight_histogram=cells(c7=1000 * max(0, tick - 99), c24=1000 * min(tick, 99)))
        made = sample(tick, queues=(one,))
        events = (Event(made.time_ns, "setting", "you: limit_min 0 -> 8"),) if tick == 100 else ()
        items.append(replace(made, events=events))
    return items


def row(text, title):
    found = [line for line in text.splitlines() if line.startswith(f"| {title} ")]
    assert found, title
    return [cell.strip() for cell in found[0].strip("| ").split("|")][1:]


def test_figures_before_and_after_a_change():
    text = report(tuned(), {"about": {"kernel": "7.3.0"}, "bqltop": "0.1.0"})
    assert "| +10.0 s" in text
    assert row(text, "limit") == ["128", "8"]
    assert row(text, "inflight at transmit") == ["144 / 144", "7 / 7"]
    assert row(text, "packets/s") == ["10k", "10k"]
    assert row(text, "stopped") == ["50.0 %", "50.0 %"]
    assert row(text, "dark buffer")[1] == "800 us"
    assert "kernel 7.3.0" in text
    assert "veth0 (veth) in netns blue, peer eth0 in netns red" in text
    assert "128..255 |####" in text
    assert "## What it says\n\n- span 1: " in text


def test_changes_close_together_are_one_cut():
    items = [replace(item, events=(Event(item.time_ns, "setting", f"set {n}"),)) if 50 <= n < 60 else item
             for n, item in enumerate(samples(100))]
    spans = list(cut(items))
    assert [span.samples for span in spans] == [50, 50]
    assert len(spans[1].cause) == 10
    assert "and 6 more changes" in report(items)


def test_a_change_soon_after_the_beginning_leaves_out_what_was_before():
    items = tuned()[90:]  # a second at limit 128
    spans = list(cut(items))
    assert len(spans) == 1
    assert set(spans[0].values("limit")) == {8.0}
    assert spans[0].rings == {0: 8.0}
    assert spans[0].seconds == pytest.approx(9.0, abs=0.11)
    assert [event.text for event in spans[0].cause] == ["you: limit_min 0 -> 8"]


def test_a_clock_that_was_set_and_another_boot_do_not_merge_spans():
    items = tuned()
    items = [replace(item, time_ns=item.time_ns - (3600 * 10**9 if n > 50 else 0)) for n, item in enumerate(items)]
    assert [span.samples for span in cut(items)] == [100, 100]
    reboot = [replace(item, monotonic_ns=item.monotonic_ns - tuned()[80].monotonic_ns + 1) if n >= 80 else item
              for n, item in enumerate(tuned())]  # fmt: skip
    assert [span.samples for span in cut(reboot)] == [100, 100]


def test_what_it_says_is_of_the_whole_span_not_of_its_last_moment():
    """The ring and the qdisc were full all along, and empty when the recording was ended."""
    def one(tick):
        last = tick == 59
        full = queue(0, tick, ring_used=0 if last else 250, limit=None, inflight=None, unit=None)
        made = sample(tick, queues=(full,))
        return replace(made, qdiscs=tuple(replace(qdisc, backlog_packets=0 if last else 600) for qdisc in made.qdiscs))

    (span,) = cut([one(tick) for tick in range(60)])
    assert 240 < span.rings[0] < 250
    assert {qdisc.backlog_packets for qdisc in span.window.qdiscs} == {590}
    said = report(one(tick) for tick in range(60)).partition("## What it says")[2]
    assert "its ring is full (246 of" in said


def test_a_last_span_that_is_too_short_says_so():
    items = tuned()[:101]
    text = report(items)
    assert "- span 2: Too short to say anything.\n" in text
    assert "Attached to" not in text


def test_the_verdict_is_of_the_longest_stretch_not_of_the_last():
    idle = [replace(sample(t), epoch=1, queues=(replace(queue(0, 100), drv_xoff=False, inflight=0, ring_used=0),))
            for t in range(100, 110)]  # fmt: skip
    said = report([*samples(100), *idle]).partition("## What it says")[2]
    assert "Nothing is being sent" not in said


def test_times_in_a_report_are_of_the_clock_that_nobody_sets():
    items = [replace(item, time_ns=item.time_ns - (3600 * 10**9 if n >= 50 else 0)) for n, item in enumerate(samples(100))]
    items[70] = replace(items[70], events=(Event(items[70].time_ns, "setting", "tuned"),))
    text = report(items)
    assert ", 9.9 s, 100 samples (10.1/s)" in text
    assert "| +7.0 s |" in text


def test_times_of_day_where_the_clock_was_set(tmp_path, capsys):
    """Ahead by an hour for a second, then right again."""
    items = [replace(s, time_ns=s.time_ns + (3600 * 10**9 if 20 <= n < 30 else 0)) for n, s in enumerate(samples(100))]
    path = tmp_path / "x"
    with Recorder(path) as recorder:
        for item in items:
            recorder.sample(item)
    with Recording(path) as recording:
        def utc(seconds):
            return datetime.fromtimestamp(START_NS / 1e9 + seconds, UTC).isoformat()

        timeline = recording.timeline
        assert (timeline.first_from(utc(6)), timeline.last_to(utc(8))) == (60, 80)
        assert timeline.first_from(utc(3602)) == 20
        assert timeline.first_from(utc(9000)) == 100
        assert timeline.last_to(utc(-9)) == -1


def test_a_device_without_samples_there_is_left_out(tmp_path, capsys):
    path = tmp_path / "x"
    with Recorder(path) as recorder:
        for tick in range(100):
            recorder.sample(sample(tick))
            if tick >= 60:
                recorder.sample(sample(tick, stream=1))
    assert main(["report", str(path), "--to", "+3s"]) == 0
    assert capsys.readouterr().out.count("# bqltop report") == 1
    assert main(["report", str(path)]) == 0
    assert capsys.readouterr().out.count("# bqltop report") == 2


def test_counters_that_begin_anew_spoil_nothing():
    items = [*samples(30), sample(30, present=False), *(replace(sample(t), epoch=1, time_ns=sample(t).time_ns + 4 * 10**9,
             monotonic_ns=sample(t).monotonic_ns + 4 * 10**9) for t in range(30))]  # fmt: skip
    (span,) = cut(items)
    assert sum(span.cells["inflight_histogram"]) == 29_000 + 29_000
    assert span.seconds == pytest.approx(5.8)
    assert max(span.values("packets_per_s")) == pytest.approx(10_000)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_very_short_recording(count):
    assert "# bqltop report: veth0" in report(samples(count))


def test_no_samples():
    with pytest.raises(ValueError, match="no samples"):
        report([])


def test_a_device_with_nothing_to_tell():
    bare = [replace(sample(t), queues=(), qdiscs=(), napis=(), link=None, probes=(), own=None) for t in range(30)]
    text = report(bare, {"about": "nonsense", "bqltop": 5})
    assert "none on this driver" in text
    assert "## Distribution" not in text


def test_without_bql_the_ring_is_shown():
    bare = [sample(t, queues=(queue(0, t, limit=None, inflight_histogram=None),)) for t in range(30)]
    text = report(bare)
    assert "packets in the ring at each sample" in text


def test_many_queues_and_many_spans():
    items = []
    for tick in range(400):
        made = sample(tick, 20)
        items.append(replace(made, events=(Event(made.time_ns, "setting", "x"),)) if tick % 40 == 0 else made)
    text = report(items)
    assert " span 10 |" in text
    assert "12 more queues" in text


def test_what_comes_from_outside_cannot_break_the_text():
    odd = [replace(item, device=replace(item.device, name="a|b\x1b[2J")) for item in samples(3)]
    odd[1] = replace(odd[1], events=(Event(odd[1].time_ns, "setting", "a|b\x1b\nc"),))
    text = report(odd, {"about": {"kernel": "\x1b]0;x\x07"}}, notice="\x1b")
    assert "\x1b" not in text
    assert "a\\|b\\x1b" in text


def test_lines_fit_a_mail():
    text = report(tuned(), {"about": {"words": "word " * 100}})
    prose = [line for line in text.splitlines() if not line.startswith("|")]
    assert max(map(len, prose)) <= 78


def test_bars_and_tables():
    assert bars([0] * 160) == "    (nothing)\n"
    assert bars(cells(c0=1, c1=3)).splitlines()[0].split() == ["0", "|##########", "|", "25.0", "%"]
    assert table(("a", "b"), [("x", 10)], left=(0,)) == "| a   |   b |\n| --- | --: |\n| x   |  10 |\n"


# ---- the command


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "x.gz"
    with Recorder(path, about={"kernel": "7.3"}) as recorder:
        for one in tuned():
            recorder.sample(one)
    return path


def run(*words):
    return main(["report", *map(str, words)])


def test_the_command(path, capsys):
    assert run(path) == 0
    assert row(capsys.readouterr().out, "limit") == ["128", "8"]
    assert run(path, "--from", "+12s", "--to=-1s") == 0
    assert row(capsys.readouterr().out, "limit") == ["8"]


@pytest.mark.parametrize(("words", "message"), [(["--from", "soon"], "no time"), (["--from", "+1h"], "no samples")])
def test_wrong_times_are_one_line(path, capsys, words, message):
    assert run(path, *words) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_a_wrong_file_is_one_line(tmp_path, capsys):
    assert run(tmp_path / "none") == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_several_devices_have_a_report_each(tmp_path, capsys):
    path = tmp_path / "x"
    with Recorder(path) as recorder:
        for one in samples(30):
            recorder.sample(one)
            recorder.sample(replace(one, stream=1, device=replace(one.device, name="veth9")))
    assert run(path) == 0
    out = capsys.readouterr().out
    assert out.count("# bqltop report: veth0\n") == out.count("# bqltop report: veth9\n") == 1


def test_damage_further_on_is_said(path, tmp_path, capsys):
    import gzip

    broken = tmp_path / "y.jsonl"
    broken.write_bytes(gzip.decompress(path.read_bytes()).replace(b'"queued":150018', b'"queued":[]'))
    assert run(broken) == 0
    assert "sample 151: sample.queues.queued is not a 64-bit whole number; the report ends there" in capsys.readouterr().out


# ---- times


SPAN = (1_790_000_000_000_000_000, 1_790_000_600_000_000_000)


@pytest.mark.parametrize(
    ("text", "after_s"),
    [("+90", 90), ("+90s", 90), ("+1.5m", 90), ("+250ms", 0.25), ("-1min", 540), ("2026-09-21T14:14:20+00:00", 60),
     ("14:14:20", 60), ("14:14:20.5", 60.5), ("14:15", 100), ("14:13:19", 86_399)],
)  # fmt: skip
def test_moments(text, after_s):
    from datetime import UTC

    assert moment(text, SPAN, UTC) == SPAN[0] + int(after_s * 1e9)


@pytest.mark.parametrize("text", ["", "soon", "25:00:00", "99:99", "2026-13-01", "+", "9999999-01-01",
                                  "+" + "9" * 400, "+1.5١s", "١٢:٠٠"])  # fmt: skip
def test_what_is_no_moment(text):
    with pytest.raises(ValueError, match="is no time"):
        moment(text, SPAN)
