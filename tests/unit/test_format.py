"""Numbers for people: the same everywhere, never lying about nothing and all."""

import locale

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bqltop import format as fmt


@pytest.mark.parametrize(
    ("function", "value", "text"),
    [
        (fmt.count, 0, "0"), (fmt.count, 9999, "9999"), (fmt.count, 71_234, "71.2k"), (fmt.count, 999_999, "1M"),
        (fmt.count, 1_050_000, "1.05M"), (fmt.count, 63.84, "63.8"), (fmt.count, None, "-"), (fmt.count, 1e13, "10T"),
        (fmt.count, -71_234, "-71.2k"), (fmt.count, float("nan"), "-"),
        (fmt.rate, 0.04, "0"), (fmt.rate, 1.44, "1.4"), (fmt.rate, 71_234.4, "71.2k"), (fmt.rate, 512.7, "513"),
        (fmt.share, 0, "0 %"), (fmt.share, 0.0001, "<0.1 %"), (fmt.share, 0.931, "93.1 %"), (fmt.share, 1.0, "100 %"),
        (fmt.share, 0.9997, ">99.9 %"), (fmt.share, None, "-"),
        (fmt.seconds, 0.0035, "3.5 ms"), (fmt.seconds, 8.5e-7, "850 ns"), (fmt.seconds, 0, "0 s"),
        (fmt.seconds, 125, "2 min 5 s"), (fmt.seconds, 12_000, "3 h 20 min"), (fmt.seconds, 1.23, "1.23 s"),
        (fmt.seconds, -0.5, "-500 ms"), (fmt.seconds, 1e-12, "<1 ns"),
        (fmt.nanoseconds, 212_000_000, "212 ms"), (fmt.milliseconds, 1000, "1 s"),
        (fmt.size, 900, "900 B"), (fmt.size, 106_000, "104 KiB"), (fmt.size, 123 * 1024 * 1024, "123 MiB"),
        (fmt.flag, None, "-"), (fmt.flag, False, "no"), (fmt.text, "[red]", "[red]"), (fmt.cells, (1, 2), "n=3"),
    ],
)  # fmt: skip
def test_examples(function, value, text):
    assert function(value) == text


@settings(deadline=None)
@given(st.floats(min_value=0, max_value=1e14))
def test_counts_fit_a_column(value):
    assert len(fmt.count(value)) <= 6
    assert len(fmt.rate(value)) <= 6


@settings(deadline=None)
@given(st.floats(min_value=0, max_value=1e9))
def test_durations_keep_three_digits(value):
    assert len(fmt.seconds(value)) <= 15


@settings(deadline=None)
@given(st.floats(min_value=0, max_value=1))
def test_a_share_of_a_little_is_not_nothing(value):
    assert (fmt.share(value) == "0 %") == (value == 0)
    assert (fmt.share(value) == "100 %") == (value * 100 >= 100)


def test_locale_changes_nothing():
    before = locale.setlocale(locale.LC_ALL)
    try:
        for name in ("de_DE.UTF-8", "C.UTF-8", "C"):
            try:
                locale.setlocale(locale.LC_ALL, name)
            except locale.Error:
                continue
            assert fmt.count(71_234) == "71.2k"
    finally:
        locale.setlocale(locale.LC_ALL, before)


def test_times_of_day():
    assert fmt.timestamp(1_700_000_000_125_000_000) == "2023-11-14T22:13:20.125Z"
    assert fmt.clock(1_700_000_000_125_000_000, fraction=True).endswith(".125")
