"""Shape arithmetic in JavaScript, held to NumPy."""

import numpy as np
import pytest

SHAPES = [(7,), (2, 5), (2, 5, 8), (3, 4, 7, 6)]


@pytest.fixture(scope="module")
def call(javascript):
    return javascript("shared/numbers.js")


@pytest.mark.parametrize("shape", SHAPES)
def test_strides_are_numpys(call, shape):
    array = np.zeros(shape)
    assert call("strides", shape) == [step // array.itemsize for step in array.strides]


@pytest.mark.parametrize("shape", SHAPES)
def test_flat_index_and_back(call, shape):
    flats = range(0, int(np.prod(shape)), 3)
    for flat in flats:
        index = [int(i) for i in np.unravel_index(flat, shape)]
        assert call("unravel", flat, shape) == index
        assert call("flatIndex", index, shape) == flat


@pytest.mark.parametrize("shape", SHAPES)
def test_indices_in_row_major_order(call, shape):
    assert call("count", shape) == np.prod(shape)
    assert call("indices", shape) == [list(index) for index in np.ndindex(*shape)]


def test_indices_of_no_axes_are_one_empty_index(call):
    assert call("indices", []) == [[]]


@pytest.mark.parametrize(
    ("value", "decimals", "text"),
    [
        (-0.31, 2, "-0.31"),
        (1.0, 2, "1.00"),
        (-0.0, 2, "0.00"),
        (-0.004, 2, "0.00"),
        (-0.006, 2, "-0.01"),
        (-0.4, 0, "0"),
        (12, 0, "12"),
    ],
)
def test_format(call, value, decimals, text):
    assert call("format", value, decimals) == text


def test_scale_is_symmetric_and_ends(call):
    assert [call("scaleFraction", v, 2) for v in (-3, -2, -1, 0, 1, 2, 3)] == [-1, -1, -0.5, 0, 0.5, 1, 1]


def test_range(call):
    assert call("range", 3) == [0, 1, 2]
