"""What goes down a pipe: whole lines, the same numbers everywhere, and a quiet end."""

import csv
import io
import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest
from made_up import Source, cells, queue, sample, samples

from bqltop import format as fmt
from bqltop import output
from bqltop.model import ProbeSample
from bqltop.output import csv_rows, docs, text_lines
from bqltop.window import between


def written(format, ready, **options):
    out = io.StringIO()
    assert output.run(format, Source(ready), out, **options) == 0
    return out.getvalue()


def test_json_is_one_object_a_line_and_the_baseline_is_not_shown():
    lines = written("json", samples(4)).splitlines()
    assert [json.loads(line)["queues"][0]["packets"] for line in lines] == [1018, 2018, 3018]
    assert all(json.loads(line)["window"]["queues"][0]["packets_per_s"] == 10_000 for line in lines)


def test_count_and_once():
    assert len(written("json", samples(9), count=3).splitlines()) == 3
    source = Source(samples(9))
    out = io.StringIO()
    output.run("json", source, out, once=True, interval=5)
    assert len(out.getvalue().splitlines()) == 1
    assert source.interval == output.ONCE_SECONDS


def test_json_of_a_device_that_went_away_has_no_window():
    lines = written("json", [sample(0), sample(1, present=False), sample(2, epoch=1), sample(3, epoch=1)]).splitlines()
    assert [json.loads(line)["window"] is None for line in lines] == [True, True, False]


def test_csv_is_a_row_per_queue_under_one_header():
    rows = list(csv.DictReader(io.StringIO(written("csv", samples(3, queues=2)))))
    assert [row["index"] for row in rows] == ["0", "1", "0", "1"]
    assert rows[0]["drv_xoff"] == "true"
    assert rows[0]["stall_count"] == ""
    assert rows[0]["packets_per_s"] == "10000.0"
    assert rows[0]["time"].endswith("Z")
    assert None not in rows[0]
    assert len(set(csv_rows.HEADER)) == len(csv_rows.HEADER)


def test_text_repeats_its_header_and_lines_up():
    write = text_lines.writer(rows=6)
    out = "".join(write(newer, window) for newer, window in output.Windows(samples(12)))
    lines = out.splitlines()
    heads = [number for number, line in enumerate(lines) if "stop%" in line]
    assert heads == [0, 5, 10]
    assert {len(line) for line in lines} == {120}
    assert "50.0" in lines[1]
    assert "18/16" in lines[1]


def test_text_of_many_queues_adds_up_rates_and_shows_the_worst():
    older, newer = sample(0, 4), sample(1, 4)
    bad = replace(newer.queues[2], stopped_ns=90_000_000)
    newer = replace(newer, queues=(*newer.queues[:2], bad, newer.queues[3]))
    line = written("text", [older, newer]).splitlines()[-1].split()
    assert line[1] == "2/4"
    assert "90.0" in line
    assert "40k" in line


def test_text_has_columns_for_waits_and_echoes_where_there_are_any():
    """The header comes again when they begin, and they line up under it."""
    plain, timed = sample(0), sample(1)
    waits = replace(queue(0, 2), qdisc_sojourn_histogram=cells(c90=4), ring_sojourn_histogram=cells(c70=45))
    echo = ProbeSample("192.0.2.1", sent=12, received=9, lost=3, rtt_p50_ns=2_500_000, rtt_p99_ns=31_000_000)
    both = sample(2, queues=(waits,), probe=echo)
    lines = written("text", [plain, timed, both]).splitlines()
    head = next(line for line in lines if "ring p99" in line)
    assert [line for line in lines if "stop%" in line] == [lines[0], head]
    row = lines[lines.index(head) + 1]
    assert len(row) == len(head)
    window = between(timed, both).queues[0]
    widths = {title: width for title, width, _ in text_lines.columns([both])}
    shown = {title: row[: head.index(title) + len(title)][-width:].strip() for title, width in widths.items()}
    assert shown["qdisc p50"] == fmt.seconds(window.qdisc_sojourn_p50_s) != fmt.ABSENT
    assert shown["ring p99"] == fmt.seconds(window.ring_sojourn_p99_s) != fmt.ABSENT
    assert (shown["rtt p50"], shown["rtt p99"], shown["lost/sent"]) == ("2.5 ms", "31 ms", "3/12")


def test_text_says_when_there_is_nothing_to_compare():
    odd = replace(sample(1, present=False), device=replace(sample(1).device, name="a\x1b[2J"))
    out = written("text", [sample(0), odd, sample(2, queues=0)])
    assert "away" in out
    assert "\x1b" not in out


SCRIPT = """
import sys, time
sys.path.insert(0, {tests!r})
from made_up import sample
from bqltop import output

class Endless:
    def every(self, interval):
        tick = 0
        while True:
            yield sample(tick)
            tick += 1
            if {slow}: time.sleep(0.05)

sys.exit(output.run(sys.argv[1], Endless()))
"""


def script(slow=False):
    return SCRIPT.format(tests=__file__.rpartition("/")[0], slow=slow)


@pytest.mark.parametrize("format", ["json", "csv", "text"])
def test_a_closed_pipe_ends_quietly(format):
    child = subprocess.Popen([sys.executable, "-c", script(), format], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    child.stdout.readline()
    child.stdout.close()
    assert child.stderr.read() == b""
    assert child.wait(10) == 0


def test_ctrl_c_ends_quietly_with_its_status():
    import signal

    child = subprocess.Popen([sys.executable, "-c", script(slow=True), "json"], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)  # fmt: skip
    child.stdout.readline()
    child.send_signal(signal.SIGINT)
    out, errors = child.communicate(timeout=10)
    assert child.returncode == 130
    assert errors == b""
    assert not out or out.endswith(b"\n")


def test_the_pages_are_up_to_date():
    assert docs.main(["--check"]) == 0, "run: python -m bqltop.output.docs"


@pytest.mark.parametrize("page", ["json", "csv-and-text", "prometheus"])
def test_every_page_has_its_tables(page):
    text = (docs.DOCS / f"{page}.md").read_text(encoding="utf-8")
    assert docs.filled(text) == text
    assert "<!-- table:" in text


def several(count):
    """Two devices in one run."""
    for tick in range(count):
        yield sample(tick)
        yield replace(sample(tick, 2), stream=1, device=replace(sample(0).device, name="veth1"))


def test_several_devices_are_told_apart():
    lines = [json.loads(line) for line in written("json", several(5), count=2).splitlines()]
    assert [line["device"]["name"] for line in lines] == ["veth0", "veth1"] * 2
    assert [line["stream"] for line in lines] == [0, 1] * 2
    assert all(line["window"]["seconds"] == pytest.approx(0.1) for line in lines)
    text = written("text", several(3)).splitlines()[1:]
    assert [line.split()[-1] for line in text] == ["veth0", "veth1"] * 2


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
@pytest.mark.parametrize("format", ["json", "text"])
def test_a_full_disk_behind_standard_output_is_one_line(format):
    with open("/dev/full", "w") as full:
        wrapped = script().replace("sys.exit(output.run(sys.argv[1], Endless()))", WRAPPED)
        done = subprocess.run([sys.executable, "-c", wrapped, format], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert done.stderr == "cannot write the output: No space left on device\n"


WRAPPED = """
try:
    output.run(sys.argv[1], Endless())
except output.OutputError as error:
    print(error, file=sys.stderr)
    sys.exit(2)
"""


def test_a_name_outside_the_terminals_encoding_is_shown_escaped():
    named = script().replace("yield sample(tick)", "yield __import__('dataclasses').replace(sample(tick, present=False),"
                             " device=__import__('bqltop.model', fromlist=['Device']).Device('caf\\u00e9\\udc80', 1))")
    child = subprocess.Popen([sys.executable, "-c", named, "text"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             env={**os.environ, "PYTHONIOENCODING": "ascii"})  # fmt: skip
    _header, line = child.stdout.readline(), child.stdout.readline()
    child.stdout.close()
    assert b"caf\\xe9\\udc80: the device is away" in line
    assert child.stderr.read() == b""
    child.wait(10)
