"""Cells and what is read from them."""

from __future__ import annotations

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bqltop import histogram as h

covered = st.integers(0, (1 << 40) - 1)


def cells_of(values) -> list[int]:
    cells = [0] * h.LOG_LINEAR_CELLS
    for value in values:
        cells[h.log_linear_cell(value)] += 1
    return cells


@given(covered)
def test_a_value_lies_within_the_bounds_of_its_cell(value):
    low, high = h.log_linear_bounds(h.log_linear_cell(value))
    assert low <= value <= high


def test_the_cells_follow_each_other_without_gap_or_overlap():
    bounds = [h.log_linear_bounds(cell) for cell in range(h.LOG_LINEAR_CELLS)]
    assert bounds[0] == (0, 0)
    assert [low for low, _ in bounds[1:]] == [high + 1 for _, high in bounds[:-1]]


def test_values_past_the_end_land_in_the_last_cell():
    last = h.LOG_LINEAR_CELLS - 1
    assert [h.log_linear_cell(value) for value in (1 << 41, 1 << 50, (1 << 64) - 1)] == [last] * 3
    assert h.log_linear_cell(h.log_linear_bounds(last)[0] - 1) == last - 1


@given(st.integers(4, (1 << 40) - 1))
def test_the_middle_of_a_cell_is_within_an_eighth_of_every_value_in_it(value):
    low, high = h.log_linear_bounds(h.log_linear_cell(value))
    assert abs((low + high) / 2 - value) <= value / 8


@given(st.lists(covered, min_size=1, max_size=200), st.sampled_from([0.01, 0.25, 0.5, 0.9, 0.99, 1.0]))
def test_a_percentile_is_the_cell_of_the_value_at_that_rank(values, share):
    import math

    ranked = sorted(values)[max(0, math.ceil(share * len(values)) - 1)]
    low, high = h.log_linear_bounds(h.log_linear_cell(ranked))
    assert low <= h.percentile(cells_of(values), share) <= high


@given(st.lists(covered, min_size=1, max_size=200))
def test_a_mean_is_within_an_eighth_of_the_true_one(values):
    true = statistics.fmean(values)
    assert h.mean(cells_of(values)) == pytest.approx(true, rel=1 / 8, abs=0.5)


def test_an_empty_histogram_has_neither_percentile_nor_mean():
    for cells in (None, (), [0] * h.LOG_LINEAR_CELLS):
        assert (h.percentile(cells, 0.5), h.mean(cells), h.linear_mean(cells)) == (None, None, None)


@given(st.lists(covered, max_size=50), st.lists(covered, max_size=50))
def test_a_windows_cells_are_the_newer_less_the_older(first, later):
    assert list(h.difference(cells_of(first + later), cells_of(first))) == cells_of(later)


def test_without_an_older_histogram_the_window_is_all_of_the_newer():
    assert h.difference((1, 2, 3), None) == (1, 2, 3)
    assert h.difference(None, (1, 2, 3)) is None


def test_the_mean_of_napi_work_is_exact():
    cells = [0] * h.LINEAR_WORK_CELLS
    cells[1], cells[64] = 3, 1
    assert h.linear_mean(cells) == 67 / 4
