"""What is reserved for a widget, by counting; test_fonts.py holds it to the real heights."""

import numpy as np
import pytest

from labs.widgets.shared import sizes


def test_cells_have_room_for_the_longest_number():
    assert sizes.most_digits(np.array([[0.5, -12.25], [100.0, -np.inf]]), 2) == 5
    assert sizes.most_digits(np.array([3, -4]), 0) == 1
    assert sizes.most_digits(np.array(7.0), 0) == 1


@pytest.mark.parametrize(
    ("columns", "digits", "width", "expected"),
    [
        ([8, 8], 3, "wide", 2),  # a batch of two, as in chapter 1
        ([8, 8], 3, "narrow", 1),
        ([4, 4], 3, "narrow", 2),
        ([5, 5, 6], 3, "wide", 3),
        ([5, 5, 6], 4, "wide", 1),  # two would leave one alone
        ([5, 5, 5, 5], 3, "wide", 2),
        ([24], 6, "narrow", 1),  # scrolls
    ],
)
def test_lines_have_the_same_number_of_matrices(columns, digits, width, expected):
    assert sizes.across(columns, digits, width) == expected


def test_a_line_is_as_high_as_its_highest_matrix():
    assert sizes.stacked([3, 5, 4, 4], 2) == 5 + 4
    assert sizes.stacked([3, 5, 4], 1) == 3 + 5 + 4


def test_a_matrix_is_rows_and_lines_and_the_place_of_a_scroll_bar():
    assert sizes.grid_height(5, sizes.WIDE) == sizes.LINE + 5 * 1.75 + sizes.BAR
    assert sizes.grid_height(5, sizes.NARROW, lines=3) == 3 * sizes.LINE + 5 * 2.0 + sizes.BAR
