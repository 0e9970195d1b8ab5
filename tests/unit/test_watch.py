"""Where samples go: a screen or lines; what is refused before anything is opened."""

from __future__ import annotations

import argparse
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bqltop import arguments, watch
from bqltop.fault import Fault
from bqltop.model import Device, QueueSample, Sample
from bqltop.presence import NoSuchDevice


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    watch.configure(parser)
    return parser.parse_args(words)


class Played:
    """A source of samples a second apart, which notes the interval it was asked for."""

    interval = 0.0

    def every(self, interval_s: float | None = None):
        self.asked = interval_s
        for second in range(1, 100):
            at = second * 1_000_000_000
            yield Sample(at, at, Device("veth0", 2), queues=(QueueSample(0, packets=second * 10),))

    def close(self) -> None: ...


@pytest.fixture
def terminal(monkeypatch):
    """`terminal(stdin, stdout)`: whether each is a terminal."""

    class Stream(io.StringIO):
        def __init__(self, is_terminal: bool):
            super().__init__()
            self.is_terminal = is_terminal

        def isatty(self) -> bool:
            return self.is_terminal

    def set_streams(stdin: bool, stdout: bool) -> None:
        monkeypatch.setattr("sys.stdin", Stream(stdin))
        monkeypatch.setattr("sys.stdout", Stream(stdout))

    return set_streams


@pytest.mark.parametrize(("stdin", "stdout"), [(False, False), (True, False), (False, True)])
def test_a_screen_needs_a_terminal_at_both_ends(terminal, stdin, stdout):
    terminal(stdin, stdout)
    with pytest.raises(Fault, match=r"no terminal to draw on: .*--json"):
        arguments.check_output(parsed("veth0"))


def test_with_a_terminal_or_a_format_nothing_is_refused(terminal):
    terminal(True, True)
    arguments.check_output(parsed("veth0"))
    terminal(False, False)
    for words in (["--json"], ["--csv", "--once"], ["--text", "--count", "3"]):
        arguments.check_output(parsed("veth0", *words))


@pytest.mark.parametrize("words", [["--once"], ["--count", "3"]])
def test_a_number_of_samples_is_for_lines_not_for_a_screen(terminal, words):
    terminal(True, True)
    with pytest.raises(Fault, match="--json"):
        arguments.check_output(parsed("veth0", *words))


@pytest.mark.parametrize(
    ("words", "samples", "interval"),
    [(["--count", "3"], 3, 1.0), (["--count", "2", "--interval", "0.5"], 2, 0.5), (["--once"], 1, 0.2)],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_so_many_lines_at_that_pace(capsys, words, samples, interval):
    source = Played()
    assert watch.show(source, parsed("veth0", "--json", *words)) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    # The first sample is the baseline: each line has a window before it.
    assert [sample["queues"][0]["packets"] for sample in told] == [20 + 10 * line for line in range(samples)]
    assert [sample["window"]["queues"][0]["packets_per_s"] for sample in told] == [10] * samples
    assert source.asked == interval


@given(st.floats(arguments.FASTEST_S, arguments.SLOWEST_S))
def test_every_interval_within_the_bounds_is_taken_as_it_is(value):
    assert arguments.seconds(repr(value)) == value


@given(st.floats().filter(lambda value: not arguments.FASTEST_S <= value <= arguments.SLOWEST_S))
def test_every_interval_outside_of_them_is_refused(value):
    with pytest.raises(argparse.ArgumentTypeError):
        arguments.seconds(repr(value))


def test_an_unknown_device_is_told_with_where_it_is(monkeypatch):
    def refuse(*_):
        raise NoSuchDevice('there is no device "eth7"; there are: lo')

    monkeypatch.setattr(watch, "Sampler", refuse)
    monkeypatch.setattr(watch, "hint", lambda device: f"{device} is in namespace blue: --netns blue")
    with pytest.raises(Fault, match=r'no device "eth7"; there are: lo; eth7 is in namespace blue: --netns blue'):
        watch.open_sampler("eth7", None, parsed("eth7"))
    monkeypatch.setattr(watch, "hint", lambda device: None)
    with pytest.raises(Fault, match=r"there are: lo$"):
        watch.open_sampler("eth7", None, parsed("eth7"))
