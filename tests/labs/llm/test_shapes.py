import re

import numpy as np
import pytest

from labs.llm import shapes


def refuses(error, *words):
    """Expect `error` with a message that holds all the words, in this order."""
    return pytest.raises(error, match="(?s)" + ".*".join(re.escape(word) for word in words))


# as_floats and as_gradient


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_floats_pass_uncopied(dtype):
    x = np.ones(3, dtype)
    assert shapes.as_floats("x", x) is x


@pytest.mark.parametrize("value", [1, [1, 2], np.array([True]), np.array([1j]), np.array(["1"]), None])
def test_what_is_not_floating_point_is_refused(value):
    with refuses(TypeError, "x must hold floating-point numbers, got dtype", "astype"):
        shapes.as_floats("x", value)


def test_a_gradient_has_the_shape_of_the_result():
    dy = np.ones((2, 3))
    assert shapes.as_gradient("dy", dy, "(T, D)", (2, 3)) is dy
    with refuses(ValueError, "dy must have shape (T, D) = (2, 3), got (1, 3)"):
        shapes.as_gradient("dy", dy[:1], "(T, D)", (2, 3))
    with refuses(TypeError, "dy must hold floating-point numbers, got dtype int64"):
        shapes.as_gradient("dy", dy.astype(np.int64), "(T, D)", (2, 3))


# as_ids


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.int64, np.uint64])
def test_every_integer_type_can_be_an_id(dtype):
    ids = shapes.as_ids("ids", np.array([[0, 8]], dtype), 9)
    assert ids.dtype == np.intp
    assert ids.tolist() == [[0, 8]]


@pytest.mark.parametrize("value", [np.array([0.0]), np.array([True]), np.array(["a"]), np.array([None])])
def test_ids_that_are_not_integers_are_refused(value):
    with refuses(TypeError, "ids must be integers, got dtype", "encode"):
        shapes.as_ids("ids", value, 9)


@pytest.mark.parametrize(("value", "wrong"), [([0, -1], "-1"), ([9, 0], "9"), ([[300]], "300")])
def test_ids_out_of_range_are_refused(value, wrong):
    with refuses(ValueError, "ids must lie in [0, V) = [0, 9), got " + wrong):
        shapes.as_ids("ids", np.array(value), 9)


@pytest.mark.parametrize("value", [[], np.zeros((2, 0), int)])
def test_no_ids_are_refused(value):
    with refuses(ValueError, "ids must hold at least one id, got shape"):
        shapes.as_ids("ids", value, 9)


# require_*


def test_a_shape_is_spelled_in_letters_and_sizes():
    shapes.require_shape("x", np.ones((2, 3)), "(T, D)", (2, 3))
    with refuses(ValueError, "x must have shape (T, D) = (3, 2), got (2, 3): turn it"):
        shapes.require_shape("x", np.ones((2, 3)), "(T, D)", (3, 2), "turn it")


@pytest.mark.parametrize("shape", [(3,), (2, 3, 1), (2, 0)])
def test_axes_are_counted_and_not_empty(shape):
    shapes.require_axes("x", np.ones((2, 3)), "T, D")
    with refuses(ValueError, "x must have non-empty axes (T, D), got shape " + str(shape)):
        shapes.require_axes("x", np.ones(shape), "T, D")


@pytest.mark.parametrize("value", [2.0, True, "2", None, np.int64(2)])
def test_a_size_that_is_no_int_is_refused(value):
    with refuses(TypeError, "d_model must be an int, got", type(value).__name__):
        shapes.require_size("d_model", value)


@pytest.mark.parametrize("value", [0, -3])
def test_a_size_below_one_is_refused(value):
    with refuses(ValueError, f"d_model must be at least 1, got {value}"):
        shapes.require_size("d_model", value)


@pytest.mark.parametrize(
    "value", [0, 0.0, -1e-5, float("nan"), float("inf"), np.float64("nan"), 10**400, -(10**400)]
)
def test_what_is_not_positive_and_finite_is_refused(value):
    with refuses(ValueError, "eps must be positive and finite, got"):
        shapes.require_positive("eps", value)


@pytest.mark.parametrize("value", [True, "1", None, 1j, np.ones(1)])
def test_what_is_no_real_number_is_refused(value):
    with refuses(TypeError, "eps must be a real number, got"):
        shapes.require_positive("eps", value)


@pytest.mark.parametrize("value", [1, 1e-300, np.float32(2), np.int64(3)])
def test_positive_numbers_pass(value):
    shapes.require_positive("eps", value)


# as_positions


def test_positions_count_from_zero():
    positions = shapes.as_positions(None, 3)
    assert positions.dtype == np.float64
    assert positions.tolist() == [0, 1, 2]
    assert shapes.as_positions([7, -1, 2.5], 3).tolist() == [7, -1, 2.5]


@pytest.mark.parametrize(
    ("positions", "error", "words"),
    [
        ([0, 1], ValueError, "(T,) = (3,), got (2,)"),
        ([[0, 1, 2]], ValueError, "(T,) = (3,), got (1, 3)"),
        (5, ValueError, "(T,) = (3,), got ()"),
        ([0, 1, np.nan], ValueError, "finite"),
        ([0, 1, -np.inf], ValueError, "finite"),
        ([True, False, True], TypeError, "got dtype bool"),
        (["0", "1", "2"], TypeError, "real numbers"),
        ([0, 1, 1j], TypeError, "got dtype complex128"),
    ],
)
def test_positions_that_are_refused(positions, error, words):
    with refuses(error, "positions must", words):
        shapes.as_positions(positions, 3)


# as_mask, against scores of shape (B, H, Tq, Tk) = (2, 2, 4, 5)

SCORES = (2, 2, 4, 5)


@pytest.mark.parametrize("shape", [(4, 5), (1, 5), (4, 1), (2, 1, 4, 5), (1, 2, 4, 5), (2, 1, 1, 5), SCORES])
def test_masks_that_fit(shape):
    mask = np.ones(shape, bool)
    assert shapes.as_mask(mask, SCORES) is mask


@pytest.mark.parametrize(
    "shape",
    [(), (5,), (5, 4), (4, 4), (4, 6), (2, 4, 5), (1, 4, 5), (3, 2, 4, 5), (2, 4, 2, 5), (1, 1, 1, 4, 5)],
)
def test_masks_that_do_not_fit(shape):
    with refuses(
        ValueError, "mask must have shape (Tq, Tk) = (4, 5) or (B, H, Tq, Tk) = (2, 2, 4, 5)", str(shape)
    ):
        shapes.as_mask(np.ones(shape, bool), SCORES)


@pytest.mark.parametrize("mask", [np.ones((4, 5), int), np.zeros((4, 5)), np.full((4, 5), None), None])
def test_masks_that_are_not_boolean(mask):
    with refuses(TypeError, "mask must be boolean (True = may read), got dtype", "mask == 1"):
        shapes.as_mask(mask, SCORES)


def test_a_query_with_nothing_to_read_is_named():
    mask = np.ones(SCORES, bool)
    mask[1, 0, 2] = False
    with refuses(ValueError, "mask must let every query read something, got nothing in row (1, 0, 2)"):
        shapes.as_mask(mask, SCORES)
    with refuses(ValueError, "got nothing in row (3,)"):
        shapes.as_mask(np.arange(4)[:, np.newaxis] < 3, SCORES)
