"""Turned pairs in JavaScript, held to labs.llm; test_rope.py tests scores."""

import numpy as np
import pytest

from labs.llm.model import rope


@pytest.fixture(scope="module")
def call(javascript):
    return javascript("rotation.js")


@pytest.mark.parametrize(("width", "base"), [(4, 10000.0), (6, 10.0), (2, 1.0)])
def test_neighbours_turn_as_in_the_library(call, width, base):
    x = np.random.default_rng(0).standard_normal((5, width))
    expected = rope(x, base=base)
    for position, vector in enumerate(x):
        turned = call("turnPairs", vector.tolist(), position, base, "neighbours")
        np.testing.assert_allclose(turned, expected[position], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("layout", ["neighbours", "halves"])
def test_every_column_belongs_to_one_pair(call, layout):
    columns = [call("pairColumns", pair, 6, layout) for pair in range(3)]
    assert sorted(column for pair in columns for column in pair) == list(range(6))
    assert [call("pairOf", column, 6, layout) for pair in columns for column in pair] == [0, 0, 1, 1, 2, 2]


def test_halves_are_half_a_vector_apart(call):
    assert call("pairColumns", 1, 6, "halves") == [1, 4]
    assert call("pairColumns", 1, 6, "neighbours") == [2, 3]


def test_dot_product(call):
    assert call("dotProduct", [1, 2, 3], [4, 5, 6]) == 32
