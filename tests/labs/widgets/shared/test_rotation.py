"""Rotated pairs in JavaScript, held to labs.llm; test_rope.py tests scores."""

import numpy as np
import pytest

from labs.llm.model import rope

#: One of them is no power of two.
WIDTHS = [2, 4, 6, 16]


@pytest.fixture(scope="module")
def call(javascript):
    return javascript("shared/rotation.js")


@pytest.mark.parametrize("base", [1.0, 10.0, 10_000.0, 543_210.9])
@pytest.mark.parametrize("width", WIDTHS)
def test_pairs_turn_as_in_the_library(call, width, base):
    positions = [0, 1, 8, 70]
    x = np.random.default_rng(0).normal(size=(4, width))
    to_halves = np.arange(width).reshape(-1, 2).T.ravel()
    expected = rope(x, positions, base=base)
    for row, position in enumerate(positions):
        rotated = call("rotatePairs", x[row].tolist(), position, base, "neighbours")
        np.testing.assert_allclose(rotated, expected[row], rtol=1e-12, atol=1e-12)
        # by halves it is the same rotation of the same numbers in another order
        rotated = call("rotatePairs", x[row, to_halves].tolist(), position, base, "halves")
        np.testing.assert_allclose(rotated, expected[row, to_halves], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("width", WIDTHS)
def test_speed_is_the_angle_of_position_one(call, width):
    first_numbers = np.tile([1.0, 0.0], width // 2)
    x, y = rope(first_numbers[np.newaxis], [1], base=10.0)[0].reshape(-1, 2).T
    speeds = [call("pairSpeed", pair, width, 10.0) for pair in range(width // 2)]
    np.testing.assert_allclose(speeds, np.arctan2(y, x), rtol=1e-12)


@pytest.mark.parametrize(
    ("layout", "columns"),
    [("neighbours", [[0, 1], [2, 3], [4, 5]]), ("halves", [[0, 3], [1, 4], [2, 5]])],
)
def test_every_column_belongs_to_one_pair(call, layout, columns):
    assert [call("pairColumns", pair, 6, layout) for pair in range(3)] == columns
    for pair, both in enumerate(columns):
        assert [call("pairOf", column, 6, layout) for column in both] == [pair, pair]


def test_dot_product(call):
    assert call("dotProduct", [1, 2, 3], [4, 5, 6]) == 32
