import math
import re
import sys

import numpy as np
import pytest

from labs.llm import arguments


def refuses(error, *words):
    """Expect `error` with a message that holds all the words, in this order."""
    return pytest.raises(error, match="(?s)" + ".*".join(re.escape(word) for word in words))


# as_floats and as_gradient


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_floats_pass_uncopied(dtype):
    x = np.ones(3, dtype)
    assert arguments.as_floats("x", x) is x


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (np.array([1]), "int64"),
        (np.array([True]), "bool"),
        (np.array([1j]), "complex128"),
        (np.array(["1"]), "str32"),
        (np.array([None]), "object"),
        (np.ones(2, np.float16), "float16"),
        (np.ones(2, ">f8" if sys.byteorder == "little" else "<f8"), "float64 in foreign byte order"),
    ],
)
def test_what_is_not_floating_point_is_refused(value, dtype):
    with refuses(TypeError, f"x must hold floating-point numbers, float32 or float64, got dtype {dtype}: "):
        arguments.as_floats("x", value)


@pytest.mark.parametrize("value", [1, [1.0, 2.0], (1.0,), range(3), {"a": 1}, "1", None])
def test_what_is_no_array_is_refused_with_what_to_do(value):
    with refuses(TypeError, f"x must be a NumPy array, got {type(value).__name__}: make it one", "np.array"):
        arguments.as_array("x", value)


def test_a_masked_array_is_refused_since_its_mask_would_be_lost():
    with refuses(TypeError, "x must be an array without a mask, got a masked array", "x.filled"):
        arguments.as_array("x", np.ma.masked_equal([1.0, 2.0], 1))


@pytest.mark.parametrize("value", [1.5, np.float32(2), np.array(3.0), np.ones(2).view(np.matrix)])
def test_scalars_and_plain_subclasses_are_arrays(value):
    assert type(arguments.as_array("x", value)) is np.ndarray


def test_a_gradient_has_the_shape_of_the_result():
    dy = np.ones((2, 3))
    assert arguments.as_gradient("dy", dy, "(T, D)", (2, 3)) is dy
    with refuses(ValueError, "dy must have shape (T, D) = (2, 3), got (1, 3)"):
        arguments.as_gradient("dy", dy[:1], "(T, D)", (2, 3))
    with refuses(TypeError, "dy must hold floating-point numbers", "got dtype int64"):
        arguments.as_gradient("dy", dy.astype(np.int64), "(T, D)", (2, 3))


# as_ids


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.int64, np.uint64])
def test_every_integer_type_can_be_an_id(dtype):
    ids = arguments.as_ids("ids", np.array([[0, 8]], dtype), 9)
    assert ids.dtype == np.intp
    assert ids.tolist() == [[0, 8]]


@pytest.mark.parametrize("value", [np.array([0.0]), np.array([True]), np.array(["a"]), np.array([None])])
def test_ids_that_are_not_integers_are_refused(value):
    with refuses(TypeError, "ids must be integers, got dtype", "encode"):
        arguments.as_ids("ids", value, 9)


@pytest.mark.parametrize(("value", "wrong"), [([0, -1], "-1"), ([9, 0], "9"), ([[300]], "300")])
def test_ids_out_of_range_are_refused(value, wrong):
    with refuses(ValueError, "ids must lie in [0, V) = [0, 9), got " + wrong):
        arguments.as_ids("ids", np.array(value), 9)


@pytest.mark.parametrize("value", [np.zeros(0, int), np.zeros((2, 0), int)])
def test_no_ids_are_refused(value):
    with refuses(ValueError, "ids must hold at least one id, got shape"):
        arguments.as_ids("ids", value, 9)


# require_*


def test_a_shape_is_spelled_in_letters_and_sizes():
    arguments.require_shape("x", np.ones((2, 3)), "(T, D)", (2, 3))
    with refuses(ValueError, "x must have shape (T, D) = (3, 2), got (2, 3): turn it"):
        arguments.require_shape("x", np.ones((2, 3)), "(T, D)", (3, 2), "turn it")


@pytest.mark.parametrize("shape", [(3,), (2, 3, 1), (2, 0)])
def test_axes_are_counted_and_not_empty(shape):
    arguments.require_axes("x", np.ones((2, 3)), "T, D")
    with refuses(ValueError, "x must have non-empty axes (T, D), got shape " + str(shape)):
        arguments.require_axes("x", np.ones(shape), "T, D")


@pytest.mark.parametrize("value", [2.0, True, "2", None, np.float64(2), np.bool_(True), np.ones(1, int)])
def test_a_size_that_is_no_int_is_refused(value):
    with refuses(TypeError, "d_model must be an int, got", type(value).__name__):
        arguments.require_size("d_model", value)


@pytest.mark.parametrize("value", [7, np.int64(7), np.uint8(7), np.array(7)])
def test_a_whole_number_of_numpy_comes_back_as_one_of_python(value):
    size = arguments.require_size("d_model", value)
    assert type(size) is int
    assert size == 7


def test_a_size_larger_than_any_array_is_refused():
    with refuses(ValueError, f"d_model must be at most {sys.maxsize}, got"):
        arguments.require_size("d_model", 10**5000)


@pytest.mark.parametrize("value", [0, -3])
def test_a_size_below_one_is_refused(value):
    with refuses(ValueError, f"d_model must be at least 1, got {value}"):
        arguments.require_size("d_model", value)


@pytest.mark.parametrize(
    "value", [0, 0.0, -1e-5, float("nan"), float("inf"), np.float64("nan"), 10**400, -(10**400)]
)
def test_what_is_not_positive_and_finite_is_refused(value):
    with refuses(ValueError, "eps must be positive and finite, got"):
        arguments.require_positive("eps", value)


@pytest.mark.parametrize("value", [True, "1", None, 1j, np.ones(1)])
def test_what_is_no_real_number_is_refused(value):
    with refuses(TypeError, "eps must be a real number, got"):
        arguments.require_positive("eps", value)


@pytest.mark.parametrize("value", [1, 1e-300, np.float32(0.1), np.float64(0.1), np.int64(3), np.array(0.5)])
def test_a_positive_number_comes_back_as_a_float(value):
    number = arguments.require_positive("eps", value)
    assert type(number) is float
    assert number == value


@pytest.mark.parametrize("value", [1e-46, 1e39])
def test_an_eps_that_float32_does_not_hold_is_refused(value):
    assert arguments.require_eps("eps", np.float32(1e-30)) == np.float32(1e-30)
    with refuses(
        ValueError, f"eps must be a number that float32 can hold too, from 1.2e-38 to 3.4e+38, got {value}"
    ):
        arguments.require_eps("eps", value)


@pytest.mark.parametrize("value", [-0.1, 1, np.float32(1), math.nan, math.inf])
def test_a_share_is_at_least_zero_and_below_its_bound(value):
    assert arguments.require_at_least_zero("beta1", np.float32(0.5), below=1) == 0.5
    with refuses(ValueError, "beta1 must be at least 0 and less than 1, got"):
        arguments.require_at_least_zero("beta1", value, below=1)


@pytest.mark.parametrize("value", ["no", 0, 1, None, np.ones(1, bool)])
def test_a_flag_is_a_bool(value):
    assert arguments.require_flag("inverse", np.bool_(True)) is True
    with refuses(TypeError, "inverse must be True or False, got"):
        arguments.require_flag("inverse", value)


@pytest.mark.parametrize("axis", [2, -3, 1])
def test_an_axis_is_one_of_the_array_and_not_empty(axis):
    assert arguments.require_axis("axis", np.int64(-2), np.ones((2, 0))) == -2
    with refuses(ValueError, "axis must be a non-empty axis of the array, which has shape (2, 0), got"):
        arguments.require_axis("axis", axis, np.ones((2, 0)))


@pytest.mark.parametrize("dtype", [None, np.float16, int, "nonsense", ">f8", object()])
def test_a_dtype_is_one_of_the_two(dtype):
    assert arguments.require_float_type("dtype", "float32") == np.float32
    with refuses(TypeError, "dtype must be np.float64 or np.float32, got"):
        arguments.require_float_type("dtype", dtype)


def test_a_seed_repeats_a_draw():
    rng = np.random.default_rng(3)
    assert arguments.as_rng("seed", rng) is rng
    assert arguments.as_rng("seed", np.int64(3)).random() == np.random.default_rng(3).random()
    for seed in (None, 1.0, True, "1"):
        with refuses(TypeError, "seed must be an int"):
            arguments.as_rng("seed", seed)
    with refuses(ValueError, "seed must be at least 0, got -1"):
        arguments.as_rng("seed", -1)


# shown


class Unprintable:
    """An object whose repr fails."""

    def __repr__(self):
        raise RuntimeError


@pytest.mark.parametrize(
    "value",
    ["x" * 10**6, list(range(10**6)), {i: i for i in range(1000)}, np.zeros((99, 99)), Unprintable()],
    ids=["str", "list", "dict", "array", "unprintable"],
)
def test_what_is_shown_fits_a_message(value):
    text = arguments.shown(value)
    assert 0 < len(text) <= 120
    assert "\n" not in text


def test_an_int_with_more_digits_than_python_prints_is_shown_by_its_type():
    assert arguments.shown(10**5000) == "<int>"


def test_short_values_are_shown_whole():
    assert arguments.shown(("a", 1.5)) == "('a', 1.5)"


# as_positions


def test_positions_count_from_zero():
    positions = arguments.as_positions(None, 3)
    assert positions.dtype == np.float64
    assert positions.tolist() == [0, 1, 2]
    assert arguments.as_positions([7, -1, 2.5], 3).tolist() == [7, -1, 2.5]
    assert arguments.as_positions(range(3), 3).tolist() == [0, 1, 2]
    assert arguments.as_positions(np.arange(3), 3).dtype == np.float64


@pytest.mark.parametrize(
    ("positions", "error", "words"),
    [
        ([0, 1], ValueError, "(T,) = (3,), got (2,)"),
        ([[0, 1, 2]], ValueError, "(T,) = (3,), got (1, 3)"),
        (np.array(5), ValueError, "(T,) = (3,), got ()"),
        (5, TypeError, "NumPy array, got int"),
        ([0, [1], 2], ValueError, "(T,) = (3,), got rows of different lengths"),
        ([0, 1, np.nan], ValueError, "finite"),
        ([0, 1, -np.inf], ValueError, "finite"),
        ([0, 1, 2**53], ValueError, "smaller than 2 ** 53"),
        ([0, 1, -(2**53) - 1], ValueError, "smaller than 2 ** 53"),
        (np.array([0, 1, 4095], np.float16), TypeError, "got dtype float16"),
        ([True, False, True], TypeError, "got dtype bool"),
        (["0", "1", "2"], TypeError, "real numbers"),
        ([0, 1, 1j], TypeError, "got dtype complex128"),
    ],
)
def test_positions_that_are_refused(positions, error, words):
    with refuses(error, "positions must", words):
        arguments.as_positions(positions, 3)


# as_mask, against scores of shape (B, H, Tq, Tk) = (2, 2, 4, 5)

SCORES = (2, 2, 4, 5)


@pytest.mark.parametrize("shape", [(4, 5), (1, 5), (4, 1), (2, 1, 4, 5), (1, 2, 4, 5), (2, 1, 1, 5), SCORES])
def test_masks_that_fit(shape):
    mask = np.ones(shape, bool)
    assert arguments.as_mask(mask, SCORES) is mask


@pytest.mark.parametrize(
    "shape",
    [(), (5,), (5, 4), (4, 4), (4, 6), (2, 4, 5), (1, 4, 5), (3, 2, 4, 5), (2, 4, 2, 5), (1, 1, 1, 4, 5)],
)
def test_masks_that_do_not_fit(shape):
    with refuses(
        ValueError,
        "mask must have shape (Tq, Tk) = (4, 5) or (B, H, Tq, Tk) = (2, 2, 4, 5)",
        f"got {shape}",
        "two axes always mean (Tq, Tk), so use padding_mask(keep)",
    ):
        arguments.as_mask(np.ones(shape, bool), SCORES)


@pytest.mark.parametrize("mask", [np.ones((4, 5), int), np.zeros((4, 5)), np.full((4, 5), None)])
def test_masks_that_are_not_boolean(mask):
    with refuses(TypeError, "mask must be boolean (True = may read), got dtype", "mask == 1"):
        arguments.as_mask(mask, SCORES)


def test_a_query_with_nothing_to_read_is_named():
    mask = np.ones(SCORES, bool)
    mask[1, 0, 2] = False
    with refuses(ValueError, "mask must let every query read something, got nothing in row (1, 0, 2)"):
        arguments.as_mask(mask, SCORES)
    with refuses(ValueError, "got nothing in row (3,)"):
        arguments.as_mask(np.arange(4)[:, np.newaxis] < 3, SCORES)
