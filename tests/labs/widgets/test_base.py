"""What widgets refuse, and how they say so."""

import numpy as np
import pytest
import traitlets

from labs.widgets import base


def test_values_become_float64_and_keep_their_shape():
    values = np.arange(6, dtype=np.int32).reshape(2, 3).T  # not contiguous
    checked = base.check_values(values)
    assert checked.dtype == np.float64
    assert (checked == values).all()


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        (["a"], TypeError, "real numbers"),
        ([1j], TypeError, "complex128"),
        (1.0, ValueError, r"1 to 4 axes, got shape \(\)"),
        (np.zeros((1, 1, 1, 1, 1)), ValueError, "1 to 4 axes"),
        (np.zeros((0, 3)), ValueError, "1 to 512 cells"),
        (np.zeros((27, 19)), ValueError, r"1 to 512 cells, got shape \(27, 19\)"),
        ([1.0, np.nan], ValueError, "finite, got nan"),
        ([-np.inf, 1.0], ValueError, "finite, got -inf"),
    ],
)
def test_values_refused(values, error, message):
    with pytest.raises(error, match=message):
        base.check_values(values)


def test_largest_array():
    assert base.check_values(np.zeros((16, 32))).size == base.MOST_CELLS


def test_axes_as_letters_or_names():
    assert base.check_axes("btd", (2, 5, 8)) == ["b", "t", "d"]
    assert base.check_axes(("h", "t", "dh"), (2, 5, 4)) == ["h", "t", "dh"]


@pytest.mark.parametrize(
    ("axes", "message"),
    [("bt", "each axis"), ("btt", "distinct"), ("btD", "lower-case"), (["b", "t", "1"], "lower-case")],
)
def test_axes_refused(axes, message):
    with pytest.raises(ValueError, match=message):
        base.check_axes(axes, (2, 5, 8))


def test_role_has_a_colour():
    assert base.check_role("q") == "q"
    with pytest.raises(ValueError, match=r"role must be one of .*, got 'query'"):
        base.check_role("query")


def test_labels_in_one_form():
    assert base.check_labels({"t": "cat"}, "btd", (2, 3, 4)) == {"t": [["c", "a", "t"]]}
    assert base.check_labels({"t": ["cat", "dog", "end"]}, "btd", (2, 3, 4)) == {"t": [["cat", "dog", "end"]]}
    nested = base.check_labels({"t": [list("cat"), list("dog")]}, "btd", (2, 3, 4))
    assert nested == {"t": [["c", "a", "t"], ["d", "o", "g"]]}
    assert base.check_labels(None, "btd", (2, 3, 4)) == {}


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({"k": "cat"}, "one of the axes b, t, d; got 'k'"),
        ({"t": "cats"}, "must be 3 texts, or 2 lists of 3 texts"),
        ({"t": [list("cat")] * 3}, "must be 3 texts, or 2 lists"),
        ({"t": [list("cat"), list("do")]}, "must be 3 texts, or 2 lists"),
    ],
)
def test_labels_refused(labels, message):
    with pytest.raises(ValueError, match=message):
        base.check_labels(labels, "btd", (2, 3, 4))


def test_limit_is_the_largest_magnitude_unless_given():
    assert base.check_limit(None, np.array([0.5, -2.0])) == 2.0
    assert base.check_limit(None, np.zeros(3)) == 1.0
    assert base.check_limit(3, np.zeros(3)) == 3.0


@pytest.mark.parametrize("limit", [0, -1.0, np.nan, np.inf])
def test_limit_refused(limit):
    with pytest.raises(ValueError, match="limit must be positive"):
        base.check_limit(limit, np.zeros(3))


@pytest.mark.parametrize("decimals", [-1, 7, 1.5])
def test_decimals_refused(decimals):
    with pytest.raises(ValueError, match="decimals must be an integer from 0 to 6"):
        base.check_decimals(decimals)


@pytest.mark.parametrize("selected", [-2, 6])
def test_selected_refused(selected):
    with pytest.raises(traitlets.TraitError, match="from 0 to 5"):
        base.check_selected(selected, 6)


@pytest.mark.parametrize("picked", [-1, 2])
def test_picked_refused(picked):
    assert base.check_picked("head", 1, 2) == 1
    with pytest.raises(traitlets.TraitError, match=f"head must be 0 to 1, got {picked}"):
        base.check_picked("head", picked, 2)
