"""What widgets refuse, and how they say so."""

import re
from fractions import Fraction

import numpy as np
import pytest
import traitlets

from labs.widgets.shared import base


def test_values_become_float64_and_keep_their_shape():
    values = np.arange(6, dtype=np.int32).reshape(2, 3).T  # not contiguous
    checked = base.require_values(values)
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
        ([10**400], TypeError, "real numbers, got dtype object"),
        ([[1.0], [2.0, 3.0]], ValueError, "values must be an array, with rows of one length"),
        (np.ma.masked_array([1.0, 2.0], [False, True]), TypeError, "without a mask, got a masked array"),
    ],
)
def test_values_refused(values, error, message):
    with pytest.raises(error, match=message):
        base.require_values(values)


@pytest.mark.skipif(np.finfo(np.longdouble).max == np.finfo(float).max, reason="no wider type here")
def test_numbers_that_are_finite_in_a_wider_type_only_are_refused():
    with pytest.raises(ValueError, match=r"values must be finite, got 1\.1.*e\+4932"):
        base.require_values(np.array([1, np.finfo(np.longdouble).max]))


def test_largest_array():
    assert base.require_values(np.zeros((16, 32))).size == base.MOST_CELLS


def test_axes_as_letters_or_names():
    assert base.require_axes("btd", (2, 5, 8)) == ["b", "t", "d"]
    assert base.require_axes(("h", "t", "dh"), (2, 5, 4)) == ["h", "t", "dh"]


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ("bt", "each axis"),
        ("btt", "distinct"),
        ("btD", "lower-case"),
        (["b", "t", "1"], "lower-case"),
        (["b", "t", 3], "lower-case"),
        (["b", "t", ["d"]], "lower-case"),
    ],
)
def test_axes_refused(axes, message):
    with pytest.raises(ValueError, match=message):
        base.require_axes(axes, (2, 5, 8))


@pytest.mark.parametrize("axes", [3, None, {"b", "t", "d"}, iter("btd")])
def test_axes_are_a_sequence(axes):
    with pytest.raises(TypeError, match="axes must be a text such as 'btd', or a list of texts, got"):
        base.require_axes(axes, (2, 5, 8))


def test_role_has_a_colour():
    assert base.require_role("q") == "q"
    for role in ("query", ["x"], None, 3):
        with pytest.raises(ValueError, match=rf"role must be one of .*; got {re.escape(repr(role))}"):
            base.require_role(role)


def test_choices():
    assert base.require_choice("route", "swap", ("swap", "direct")) == "swap"
    for route in ("transpose", ["swap"], None):
        with pytest.raises(
            ValueError, match=rf"route must be one of swap, direct; got {re.escape(repr(route))}"
        ):
            base.require_choice("route", route, ("swap", "direct"))


def test_name_is_a_text():
    assert base.require_name("Q") == "Q"
    with pytest.raises(TypeError, match="name must be a text, what the page calls the tensor, got 3"):
        base.require_name(3)


def test_labels_in_one_form():
    assert base.require_labels({"t": "cat"}, "btd", (2, 3, 4)) == {"t": [["c", "a", "t"]]}
    assert base.require_labels({"t": ["cat", "dog", "end"]}, "btd", (2, 3, 4)) == {
        "t": [["cat", "dog", "end"]]
    }
    nested = base.require_labels({"t": [list("cat"), list("dog")]}, "btd", (2, 3, 4))
    assert nested == {"t": [["c", "a", "t"], ["d", "o", "g"]]}
    assert base.require_labels(None, "btd", (2, 3, 4)) == {}
    assert base.require_labels({"t": iter("cat")}, "btd", (2, 3, 4)) == {"t": [["c", "a", "t"]]}
    assert base.require_labels({"t": np.array(list("cat"))}, "btd", (2, 3, 4)) == {"t": [["c", "a", "t"]]}


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({"k": "cat"}, "one of the axes b, t, d; got 'k'"),
        ({"bt": "cat"}, "one of the axes b, t, d; got 'bt'"),
        ({1: "cat"}, "one of the axes b, t, d; got 1"),
        ({"t": "cats"}, "must be 3 texts, or 2 lists of 3 texts"),
        ({"t": [list("cat")] * 3}, "must be 3 texts, or 2 lists"),
        ({"t": [list("cat"), list("do")]}, "must be 3 texts, or 2 lists"),
    ],
)
def test_labels_refused(labels, message):
    with pytest.raises(ValueError, match=message):
        base.require_labels(labels, "btd", (2, 3, 4))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["a"], r"labels must be a dict, axis -> a text for each index, got \['a'\]"),
        ("cat", "labels must be a dict"),
        ({"t": [1, 2, 3]}, r"labels\['t'\] must be 3 texts, .*; got \[1, 2, 3\]: a number is written str"),
        ({"t": ["a", "b", 3]}, "must be 3 texts"),
        ({"t": [["a", "b", 3], list("dog")]}, "must be 3 texts"),
        ({"t": ["cat", 3]}, "must be 3 texts"),
        ({"t": 3}, "must be 3 texts"),
        ({"t": None}, "must be 3 texts"),
    ],
)
def test_labels_are_texts(labels, message):
    with pytest.raises(TypeError, match=message):
        base.require_labels(labels, "btd", (2, 3, 4))


def test_limit_is_the_largest_magnitude_unless_given():
    assert base.require_limit(None, np.array([0.5, -2.0])) == 2.0
    assert base.require_limit(None, np.zeros(3)) == 1.0
    for limit in (3, np.float32(3), np.int8(3), Fraction(3)):
        assert base.require_limit(limit, np.zeros(3)) == 3.0


@pytest.mark.parametrize("limit", [0, -1.0, np.nan, np.inf, -np.inf, 10**400])
def test_limit_refused(limit):
    with pytest.raises(ValueError, match="limit must be positive and finite"):
        base.require_limit(limit, np.zeros(3))


@pytest.mark.parametrize("limit", ["a", [1, 2], np.ones(2), 1j, True])
def test_limit_is_a_number(limit):
    with pytest.raises(TypeError, match="limit must be a number, the magnitude of the strongest colour, got"):
        base.require_limit(limit, np.zeros(3))


@pytest.mark.parametrize("decimals", [2, np.int64(2), np.uint8(2)])
def test_decimals_become_an_int(decimals):
    assert type(base.require_decimals(decimals)) is int


@pytest.mark.parametrize("decimals", [-1, 7, 1.5, True, np.True_, "2", None, [2]])
def test_decimals_refused(decimals):
    with pytest.raises(ValueError, match="decimals must be an integer from 0 to 6"):
        base.require_decimals(decimals)


@pytest.mark.parametrize("selected", [-2, 6])
def test_selected_refused(selected):
    with pytest.raises(traitlets.TraitError, match="from 0 to 5"):
        base.require_selected(selected, 6)


@pytest.mark.parametrize("picked", [-1, 2])
def test_picked_refused(picked):
    assert base.require_index("head", 1, 2) == 1
    with pytest.raises(traitlets.TraitError, match=f"head must be 0 to 1, got {picked}"):
        base.require_index("head", picked, 2)
