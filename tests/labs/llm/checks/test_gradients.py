"""Checks of a backward pass accuse no right one, and find the mistakes that their docstrings promise."""

import math

import numpy as np
import pytest

from labs.llm import checks, ops
from labs.llm.checks import CANNOT_TELL, FAILED, PASSED
from labs.llm.checks.finding import REPEATS
from labs.llm.model import init_params, rope
from labs.llm.mutants.table import EXAMPLES, ORIGINAL, Example, pairs
from tests.labs.llm.numeric import layouts

# relative_error


def test_relative_error_by_hand():
    error = checks.relative_error(np.array([1.0, 2.0, 0.0]), np.array([1.0, 1.0, 1e-9]), floor=1e-3)
    np.testing.assert_allclose(error, [0, 0.5, 1e-6], rtol=1e-12)


def test_relative_error_is_symmetric_and_holds_small_entries_to_their_own_size(rng):
    found, expected = rng.standard_normal((2, 4, 3))
    np.testing.assert_array_equal(
        checks.relative_error(found, expected, 0.1), checks.relative_error(expected, found, 0.1)
    )
    assert checks.relative_error(np.array([1.0, 2e-5]), np.array([1.0, 1e-5]), floor=1e-6).max() == 0.5


def test_nan_is_infinitely_wrong():
    assert checks.relative_error(np.array([np.nan]), np.array([0.0]), floor=1)[0] == np.inf


@pytest.mark.parametrize(
    ("found", "error", "message"),
    [
        (None, TypeError, "found must hold real numbers, got dtype object"),
        ("ab", TypeError, "found must hold real numbers, got dtype <U2"),
        ([[1.0], [1.0, 2.0]], ValueError, "found must be an array, got rows of different lengths"),
    ],
)
def test_relative_error_refuses_what_is_no_array(found, error, message):
    with pytest.raises(error, match=message):
        checks.relative_error(found, np.ones(2), floor=1)


def test_relative_error_refuses():
    with pytest.raises(ValueError, match=r"found must have shape of expected = \(2,\), got \(1,\)"):
        checks.relative_error(np.ones(1), np.ones(2), floor=1)
    with pytest.raises(ValueError, match="floor must be positive"):
        checks.relative_error(np.ones(2), np.ones(2), floor=0)


# numeric_gradient


def test_numeric_gradient_by_hand():
    x = np.array([[1.0, -2.0], [0.5, 3.0]])
    before = x.copy()
    gradient = checks.numeric_gradient(lambda x: np.sum(x**2), x)
    np.testing.assert_allclose(gradient, 2 * x, rtol=1e-9)  # a parabola: central differences are exact
    np.testing.assert_array_equal(x, before)


def test_numeric_gradient_has_an_error_of_the_order_of_the_step_squared():
    errors = [checks.numeric_gradient(np.sin, np.array(1.0), step) - np.cos(1.0) for step in (1e-2, 1e-3)]
    assert errors[0] / errors[1] == pytest.approx(100, rel=1e-3)  # a one-sided difference would give 10


def test_numeric_gradient_agrees_with_the_backward_pass(rng):
    x, upstream = rng.standard_normal((2, 3, 5))
    found = checks.numeric_gradient(lambda x: np.sum(ops.softmax(x) * upstream), x)
    expected = ops.softmax_backward(upstream, ops.softmax(x))
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-10)
    assert not np.allclose(found, ops.softmax(x) * upstream, rtol=1e-2, atol=0)  # the row sum forgotten


def test_numeric_gradient_refuses():
    with pytest.raises(TypeError, match="x must be a float64 array, got float32"):
        checks.numeric_gradient(np.sum, np.ones(2, np.float32))
    with pytest.raises(TypeError, match="x must be a float64 array, got float: make it one"):
        checks.numeric_gradient(np.sum, 2.0)
    with pytest.raises(ValueError, match=r"x must hold at least one number, got shape \(0, 3\)"):
        checks.numeric_gradient(np.sum, np.ones((0, 3)))
    with pytest.raises(ValueError, match="step must be positive"):
        checks.numeric_gradient(np.sum, np.ones(2), 0)
    with pytest.raises(ValueError, match=r"step must move every entry of x, got 1e-05 for x\[1\] = 1e\+12"):
        checks.numeric_gradient(np.sum, np.array([1.0, 1e12]))


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (lambda x: x, r"number, got shape \(2,\): add it up"),
        (lambda x: x[:1], r"number, got shape \(1,\)"),
        (lambda x: None, "float64 number, got NoneType"),  # noqa: ARG005
        (lambda x: (np.sum(x), x), "got tuple: return that number alone"),  # the loss and a cache
        (lambda x: np.float32(np.sum(x)), "got float32"),  # its steps would show instead of the slope
        (lambda x: np.array(np.sum(x), np.float32), "got float32"),
        (lambda x: np.sum(x) * 1j, "got complex128"),
        (lambda x: int(np.argmax(x)), "got int"),  # a step function has no slope to find
        (lambda x: x[0] > 3, "got bool"),
    ],
)
def test_numeric_gradient_refuses_what_is_not_one_float64_number(loss, message):
    with pytest.raises(TypeError, match=f"loss must return one .*{message}"):
        checks.numeric_gradient(loss, np.ones(2))


def test_numeric_gradient_takes_every_layout_and_every_kind_of_float64(rng):
    for x in layouts(rng.standard_normal((3, 4))):
        before = x.copy()
        for as_number in (float, np.float64, np.array):
            found = checks.numeric_gradient(lambda x, as_number=as_number: as_number(np.sum(x**2)), x)
            np.testing.assert_allclose(found, 2 * x, rtol=1e-7)
            assert type(found) is np.ndarray
        np.testing.assert_array_equal(x, before)


def test_numeric_gradient_gives_every_loss_an_array_of_its_own():
    def careless(x):
        loss = np.sum(x**2)
        x *= 0
        return loss

    np.testing.assert_allclose(checks.numeric_gradient(careless, np.array([1.0, 2.0])), [2, 4], rtol=1e-9)


def test_numeric_gradient_is_not_finite_where_the_loss_is_not():
    gradient = checks.numeric_gradient(lambda x: math.inf if x[1] > 2 else x[0], np.array([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(gradient, [1, math.inf, 0], rtol=1e-9)
    assert np.isnan(checks.numeric_gradient(lambda x: math.inf, np.ones(2))).all()  # noqa: ARG005


# gradcheck and taylor_slope


def square(x):
    return x**2, x


def square_backward(dy, x):
    return 2 * x * dy


def wrong_backward(dy, x):
    """Right but for one entry, which is off by one part in ten thousand."""
    dx = 2 * x * dy
    dx[1, 2] *= 1 + 1e-4
    return dx


def softmax_pair(scores):
    p = ops.softmax(scores)
    return p, p


def linear_pair(x, weight):
    return ops.linear(x, weight), (x, weight)


def linear_backward(dy, given):
    return ops.linear_backward(dy, *given)


def test_gradcheck_passes_the_operations(rng):
    x, weight = rng.standard_normal((3, 5, 4)), rng.standard_normal((4, 6))
    for finding in (
        checks.gradcheck(linear_pair, linear_backward, (x, weight), rng),
        checks.gradcheck(ops.rms_norm, ops.rms_norm_backward, [x, weight[:, 0].copy()], rng),
        checks.gradcheck(softmax_pair, ops.softmax_backward, (x,), rng),
    ):
        assert finding, finding
        assert finding.numbers["relative_error"] < 1e-7


def test_gradcheck_names_the_worst_entry(rng):
    x = rng.standard_normal((2, 3)) + 3
    finding = checks.gradcheck(square, wrong_backward, (x,), rng)
    assert not finding
    assert (finding.numbers["array"], finding.numbers["index"]) == ("x", (1, 2))
    assert finding.numbers["relative_error"] == pytest.approx(1e-4, rel=1e-3)
    analytic, numeric = finding.numbers["analytic"], finding.numbers["numeric"]
    assert analytic / numeric == pytest.approx(1 + 1e-4, rel=1e-7)
    for text in ("worst of 6 entries", "x[1, 2]", f"{analytic:.6g}", f"{numeric:.6g}", "1.0e-04"):
        assert text in finding.message
    assert checks.gradcheck(square, wrong_backward, (x,), rng, rtol=1e-3)


def test_gradcheck_sees_what_a_constant_upstream_gradient_hides(rng):
    scores = rng.standard_normal((2, 5))

    def wrong(dp, p):
        return 3 * ops.softmax_backward(dp, p)

    assert np.abs(wrong(np.ones((2, 5)), ops.softmax(scores))).max() < 1e-15  # as the right one
    assert not checks.gradcheck(softmax_pair, wrong, (scores,), rng)


def test_gradcheck_tries_as_many_entries_as_it_is_told(rng):
    calls = []

    def counted(x, y):
        calls.append(1)
        return x.sum() * y, (x, y)

    def counted_backward(dz, cache):
        x, y = cache
        return np.full(x.shape, np.sum(dz * y)), dz * x.sum()

    arrays = rng.standard_normal((4, 5)), rng.standard_normal(2)
    finding = checks.gradcheck(counted, counted_backward, arrays, rng, entries=3)
    assert finding, finding
    assert finding.numbers["tried"] == 3 + 2
    before = 1 + REPEATS + 7  # is it deterministic, is it smooth?
    assert len(calls) == before + 2 * finding.numbers["tried"]
    assert checks.gradcheck(counted, counted_backward, arrays, rng).numbers["tried"] == 20 + 2


def test_gradcheck_takes_a_dict_as_it_is(rng):
    arrays = {"a.b": rng.standard_normal(3), "c": rng.standard_normal(3)}

    def product(named):
        return named["a.b"] * named["c"], named

    def right(dy, named):
        return {"c": dy * named["a.b"], "a.b": dy * named["c"]}

    def exchanged(dy, named):
        return {"a.b": dy * named["a.b"], "c": dy * named["c"]}

    assert checks.gradcheck(product, right, arrays, rng)
    assert not checks.gradcheck(product, exchanged, arrays, rng)


def test_names_when_the_function_has_none(rng):
    finding = checks.gradcheck(lambda *xs: square(*xs), square_backward, (np.ones(2),), rng)
    assert finding.numbers["array"] == "argument 0"


def test_exact_zeros_pass_and_small_gradients_do_not_hide(rng):
    some = np.array([1.0, 0.0, 0.0])
    assert checks.gradcheck(lambda x: (some * x, x), lambda dy, _: some * dy, (np.ones(3),), rng)
    scale = np.array([1.0, 1e-2])  # the second gradient is a hundredth of the first and wrong by a hundredth
    finding = checks.gradcheck(
        lambda x: (scale * x, None), lambda dy, _: dy * scale * [1, 1.01], (np.ones(2),), rng
    )
    assert not finding
    assert finding.numbers["index"] == (1,)


def offset(x):
    return 1000 + 1e-9 * x, x  # of the change by 1e-14 nothing is left beside 1000


def test_gradients_too_small_to_resolve_are_not_suspected_and_do_not_pass(rng):
    for check in (checks.gradcheck, checks.taylor_slope):
        finding = check(offset, lambda dy, _: 1e-9 * dy, (rng.standard_normal(4),), rng)
        assert finding.verdict == CANNOT_TELL, finding


def test_large_numbers_are_moved_by_what_rounding_makes_of_the_step(rng):
    x = 1e6 + 1e-3 * rng.uniform(1, 2, 4)
    assert checks.gradcheck(lambda x: (x - 1e6, None), lambda dy, _: dy, (x,), rng)


def bend(width):
    """A function that bends within `width`, and its backward pass."""
    return lambda x: (np.sin(x / width), x), lambda dy, x: dy * np.cos(x / width) / width


@pytest.mark.parametrize("width", [1e-3, 1e-4, 1e-5])
def test_a_function_that_bends_within_a_step_is_not_suspected(width, rng):
    x = rng.standard_normal(4)
    finding = checks.gradcheck(*bend(width), (x,), rng)
    assert finding.verdict == CANNOT_TELL, finding
    assert "the function bends within this one" in finding.message
    assert checks.gradcheck(*bend(width), (x,), rng, step=width * 1e-4)


@pytest.mark.parametrize("width", [1e-2, 1e-3, 1e-4])
def test_a_function_that_bends_does_not_hide_a_wrong_gradient(width, rng):
    forward, backward = bend(width)
    assert checks.gradcheck(
        forward, lambda dy, x: 1.1 * backward(dy, x), (rng.standard_normal(4),), rng
    ).failed


@pytest.mark.parametrize(("error", "verdict"), [(3e-7, PASSED), (3e-6, FAILED)])
def test_gradcheck_is_no_more_tolerant_than_it_says(error, verdict, rng):
    x = rng.standard_normal((2, 3)) + 3
    finding = checks.gradcheck(square, lambda dy, x: (1 + error) * square_backward(dy, x), (x,), rng)
    assert finding.verdict == verdict, finding


@pytest.mark.parametrize(("width", "loud"), [(2, 1), (2, 30), (24, 30), (24, 300)])
@pytest.mark.parametrize("seed", range(2))
def test_saturated_attention_and_narrow_models_are_not_accused(width, loud, seed):
    """RMSNorm of two features hardly moves, and neither do the weights of saturated attention."""
    config = ORIGINAL.model.ModelConfig(7, d_model=width, n_heads=1, n_layers=2, d_ff=5)
    rng = np.random.default_rng(seed)
    params = init_params(config, rng)
    params = {key: array * (loud if key[-2:] in ("wq", "wk") else 1) for key, array in params.items()}
    text = rng.integers(0, 7, (2, 5))
    pair = pairs(ORIGINAL, Example("", config, params, text[:, :-1], text[:, 1:], text))["model"]

    def wrong(dy, cache):
        return {
            key: (1.05 if key.endswith("wv") else 1) * gradient
            for key, gradient in pair.backward(dy, cache).items()
        }

    assert not checks.gradcheck(pair.forward, pair.backward, pair.arrays, rng, entries=3).failed
    assert not checks.taylor_slope(pair.forward, pair.backward, pair.arrays, rng).failed
    assert checks.gradcheck(pair.forward, wrong, pair.arrays, rng, entries=3).failed
    assert checks.taylor_slope(pair.forward, wrong, pair.arrays, rng).failed


# What the gradient checks cannot tell

GRADIENT_CHECKS = [checks.gradcheck, checks.taylor_slope]


@pytest.mark.parametrize("check", GRADIENT_CHECKS)
@pytest.mark.parametrize("size", [1e9, 1e10, 1e11, 1e12, 1e14, 1e100, 1e150])
@pytest.mark.parametrize("factor", [1, -1, 2, 0])
def test_large_numbers_neither_pass_nor_accuse(check, size, factor, rng):
    finding = check(square, lambda dy, x: factor * square_backward(dy, x), (np.full(1, size),), rng)
    assert not finding, finding
    assert "nan" not in finding.message
    if factor == 1:
        assert finding.verdict == CANNOT_TELL, finding


def test_one_array_does_not_vouch_for_another(rng):
    """The gradient of w is clear to nobody beside x ** 2, so that its sign goes unseen."""

    def forward(x, w):
        return np.array([np.sum(x**2) + np.sum(w)]), (x, w)

    def backward(dy, cache, sign=1):
        x, w = cache
        return 2 * x * dy, sign * dy * np.ones_like(w)

    arrays = np.full(1, 1e6), np.ones(1)
    for wrong in (backward, lambda dy, cache: backward(dy, cache, -1)):
        finding = checks.gradcheck(forward, wrong, arrays, rng)
        assert finding.verdict == CANNOT_TELL, finding
        assert "hides the gradient of w" in finding.message


def test_arrays_that_are_one_object(rng):
    def product_backward(dy, cache):
        a, b = cache
        return dy * b, dy * a

    shared = np.full(1, 0.7)
    for check in GRADIENT_CHECKS:
        assert check(lambda a, b: (a * b, (a, b)), product_backward, (shared, shared), rng)


def test_a_gradient_of_zero_beside_clear_ones_passes(rng):
    """The bias of the keys: softmax cancels it, and rounding is all that the backward pass leaves."""
    scores = rng.standard_normal((2, 5))

    def forward(scores, bias):
        p = ops.softmax(scores + bias)
        return p, p

    def backward(dp, p):
        dscores = ops.softmax_backward(dp, p)
        return dscores, dscores.sum(axis=-1, keepdims=True)

    arrays = scores, rng.standard_normal((2, 1))
    finding = checks.gradcheck(forward, backward, arrays, rng)
    assert finding, finding
    assert checks.gradcheck(forward, lambda dp, p: (backward(dp, p)[0], np.ones((2, 1))), arrays, rng).failed


@pytest.mark.parametrize("check", GRADIENT_CHECKS)
@pytest.mark.parametrize("factor", [1, 2])
@pytest.mark.parametrize(
    "narrow",
    [
        lambda x: np.tanh(x.astype(np.float32)).astype(np.float64),  # all of it
        lambda x: np.tanh(x).astype(np.float32).astype(np.float64),  # the last step only
        lambda x: np.tanh(x + 0.1 * np.float64(np.sin(x).astype(np.float32))),  # somewhere in between
        lambda x: np.array([np.tanh(x).astype(np.float32).mean(dtype=np.float64)]),  # before the mean
    ],
)
@pytest.mark.parametrize("exact", [False, True])  # arrays that float32 holds exactly do not move at first
def test_float32_behind_a_float64_result(check, factor, narrow, exact, rng):
    def backward(dy, x):
        return factor * dy / np.cosh(x) ** 2 / (1 if dy.shape == x.shape else x.size)

    x = rng.standard_normal((3, 4))
    x = x.astype(np.float32).astype(np.float64) if exact else x
    finding = check(lambda x: (narrow(x), x), backward, (x,), rng)
    assert finding.verdict == CANNOT_TELL, finding
    assert "computed in float32" in finding.message


@pytest.mark.parametrize("check", GRADIENT_CHECKS)
def test_large_numbers_that_cancel_and_kinks(check, rng):
    for function in (lambda x: (x + 1e8) - 1e8, lambda x: np.abs(x - 0.5)):
        finding = check(lambda x, f=function: (f(x), x), lambda dy, _: dy, (np.full(3, 0.5),), rng)
        assert finding.verdict == CANNOT_TELL, finding
        assert "do not move the result" in finding.message or "moves in jumps" in finding.message


@pytest.mark.parametrize("check", GRADIENT_CHECKS)
def test_a_kink_close_by(check, rng):
    for function, slope in ((lambda x: np.maximum(x, 0), lambda x: 1.0 * (x > 0)), (np.abs, np.sign)):
        finding = check(
            lambda x, f=function: (f(x), x), lambda dy, x, g=slope: dy * g(x), (np.full(1, 1e-8),), rng
        )
        assert finding.verdict == CANNOT_TELL, finding


@pytest.mark.parametrize("check", GRADIENT_CHECKS)
def test_what_does_not_move_cannot_be_judged(check, rng):
    finding = check(lambda x: (0 * x + 5, x), lambda dy, _: 0 * dy, (np.ones(3),), rng)
    assert finding.verdict == CANNOT_TELL, finding
    assert "is it constant" in finding.message


@pytest.mark.parametrize("check", GRADIENT_CHECKS)
def test_the_edge_of_what_is_finite(check, rng):
    def logarithm(x):
        with np.errstate(invalid="ignore"):
            return np.log(x), x

    finding = check(logarithm, lambda dy, x: dy / x, (np.full(1, 1e-6),), rng)
    assert finding.verdict == CANNOT_TELL, finding
    assert "not finite close to the arrays" in finding.message


@pytest.mark.parametrize("check", GRADIENT_CHECKS)
def test_dropout_left_on(check, rng):
    def dropped(x):
        keep = rng.random(x.shape) < 0.9
        return x * keep, keep

    finding = check(dropped, lambda dy, keep: dy * keep, (rng.standard_normal((4, 5)),), rng)
    assert finding.verdict == CANNOT_TELL, finding
    assert "not deterministic" in finding.message
    assert "switch dropout off or seed it" in finding.message


def own_order(rng):
    """A matrix product that adds up in another order each time."""

    def forward(x, w):
        order = rng.permutation(len(w))
        return x[:, order] @ w[order], (x, w)

    def backward(dy, cache):
        x, w = cache
        order = rng.permutation(len(x))
        return dy @ w.T, x[order].T @ dy[order]

    return forward, backward


def test_an_own_order_of_summation_is_rounding(rng):
    arrays = rng.standard_normal((50, 300)), rng.standard_normal((300, 4))
    (forward, backward), dy = own_order(rng), rng.standard_normal((50, 4))
    y, cache = forward(*arrays)
    assert (forward(*arrays)[0] != y).any()
    assert (backward(dy, cache)[1] != backward(dy, cache)[1]).any()
    assert checks.gradcheck(forward, backward, arrays, rng, entries=5)
    assert checks.taylor_slope(forward, backward, arrays, rng)
    assert checks.leaves_arguments_alone(forward, backward, arrays, rng)


@pytest.mark.parametrize("check", [*GRADIENT_CHECKS, checks.leaves_arguments_alone])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_gradient_that_is_not_finite(check, value, rng):
    finding = check(square, lambda dy, _: np.where(np.eye(3) == 1, value, dy), (np.ones((3, 3)),), rng)
    assert finding.failed
    assert f"the gradient x[0, 0] is {value}" in finding.message


def test_gradients_may_come_as_lists(rng):
    x = rng.standard_normal((2, 3))
    for check in (*GRADIENT_CHECKS, checks.leaves_arguments_alone):
        assert check(lambda x: ((x**2).tolist(), x), lambda dy, x: [(2 * x * dy).tolist()], (x,), rng)


@pytest.mark.parametrize("check", [checks.gradcheck, checks.taylor_slope, checks.leaves_arguments_alone])
@pytest.mark.parametrize(
    ("gradients", "message"),
    [
        ((), "one gradient for each of ['x'], got []"),
        ((np.ones((2, 3)),) * 2, "got ['x', 'extra gradient 0']"),
        (np.ones((3, 2)), "gradient of x must have its shape (2, 3), got (3, 2)"),
        (np.ones((2, 3), np.float32), "gradient of x must have its dtype float64, got float32"),
        (None, "gradient of x must have its shape (2, 3), got ()"),
    ],
)
def test_gradients_that_do_not_fit_are_a_finding(check, gradients, message, rng):
    finding = check(square, lambda *_: gradients, (np.ones((2, 3)),), rng)
    assert not finding
    assert message in finding.message


def test_a_dict_without_a_key_is_a_finding(rng):
    arrays = {"a": np.ones(2)}
    finding = checks.gradcheck(lambda named: (named["a"], None), lambda dy, _: {"b": dy}, arrays, rng)
    assert finding.message == "there must be one gradient for each of ['a'], got ['b']"


@pytest.mark.parametrize("check", [checks.gradcheck, checks.taylor_slope, checks.leaves_arguments_alone])
@pytest.mark.parametrize(
    ("arrays", "error", "message"),
    [
        (None, TypeError, "arrays must be a tuple, list or dict of arrays, got NoneType"),
        ((np.ones(3, np.float32),), TypeError, "x must be a float64 array, got float32"),
        ((np.ones(3, np.int64),), TypeError, "x must be a float64 array, got int64"),
        (([1.0, 2.0],), TypeError, "x must be a float64 array, got list: make it one"),
        (np.ones(3), TypeError, r"arrays must be a tuple, list or dict of arrays, got ndarray: write \(x,\)"),
        ((), ValueError, "arrays must hold at least one array"),
        ((np.array([1.0, np.nan]),), ValueError, "x must hold finite numbers, got NaN or infinity"),
        ((np.ones((0, 3)),), ValueError, r"x must hold at least one number, got shape \(0, 3\)"),
    ],
)
def test_gradient_checks_refuse_arrays(check, arrays, error, message, rng):
    with pytest.raises(error, match=message):
        check(square, square_backward, arrays, rng)


@pytest.mark.parametrize(
    ("forward", "error", "message"),
    [
        (None, TypeError, "forward must be a function, got None"),
        (lambda x: ([[1.0], [1.0, 2.0]], x), ValueError, "y must be an array, got rows of different lengths"),
        (lambda x: x, TypeError, r"forward must return \(y, cache\), got ndarray"),
        (lambda x: (x.astype(np.float32), x), TypeError, "y must be a float64 array, got float32"),
        (lambda x: (x * np.inf, x), ValueError, "forward must return finite numbers"),
    ],
)
def test_gradcheck_refuses_functions(forward, error, message, rng):
    with pytest.raises(error, match=message):
        checks.gradcheck(forward, square_backward, (np.ones(3),), rng)


def test_gradcheck_needs_a_backward_function(rng):
    with pytest.raises(TypeError, match="backward must be a function, got 3"):
        checks.gradcheck(square, 3, (np.ones(3),), rng)


@pytest.mark.parametrize("rng", [0, None, np.random.RandomState(0)])
def test_gradcheck_needs_a_generator(rng):
    with pytest.raises(TypeError, match=r"rng must be a np\.random\.Generator"):
        checks.gradcheck(square, square_backward, (np.ones(3),), rng)


@pytest.mark.parametrize(
    ("option", "error"),
    [
        ({"entries": 0}, ValueError),
        ({"entries": 2.0}, TypeError),
        ({"step": 0}, ValueError),
        ({"rtol": -1e-6}, ValueError),
        ({"rtol": math.nan}, ValueError),
    ],
)
def test_gradcheck_refuses_options(option, error, rng):
    with pytest.raises(error, match=next(iter(option))):
        checks.gradcheck(square, square_backward, (np.ones(3),), rng, **option)


def test_taylor_slope_is_two_for_a_right_gradient_and_one_for_a_wrong_one(rng):
    x = rng.standard_normal((2, 3)) + 3
    right = checks.taylor_slope(square, square_backward, (x,), rng)
    wrong = checks.taylor_slope(square, lambda dy, x: x * dy, (x,), rng)
    assert right, right
    assert right.numbers["slope"] == pytest.approx(2, abs=0.01)
    assert wrong.failed
    assert wrong.numbers["slope"] == pytest.approx(1, abs=0.01)
    for numbers in (right.numbers, wrong.numbers):
        assert numbers["steps"] == [1e-2 / 4**n for n in range(len(numbers["steps"]))]
        first, second = numbers["remainders"][:2]
        assert first / second == pytest.approx(4 ** numbers["slope"], rel=0.02)


def cubic(x):
    return x**2 - 1e4 * x**3, x


def test_taylor_slope_bears_a_remainder_that_changes_sign():
    """Along +1 the remainder of this right gradient is zero at 1e-4, and curved like h ** 3 before."""
    for seed in range(20):
        finding = checks.taylor_slope(
            cubic,
            lambda dy, x: dy * (2 * x - 3e4 * x**2),
            (np.zeros(1),),
            np.random.default_rng(seed),
        )
        assert finding, finding


def model_slope(name, seed, factor=1.0):
    """Return what taylor_slope says of a model whose gradient is the right one times a factor."""
    pair = pairs(ORIGINAL, EXAMPLES[name](ORIGINAL))["model"]

    def backward(dy, cache):
        return {key: factor * gradient for key, gradient in pair.backward(dy, cache).items()}

    return checks.taylor_slope(pair.forward, backward, pair.arrays, np.random.default_rng(seed))


@pytest.mark.parametrize("seed", [264, 1402, 2019, *range(12)])
def test_taylor_slope_never_accuses_the_model(seed):
    """The first three seeds led a remainder along one direction only to change sign."""
    for name in ("tiny", "distinct") if seed < 4 else ("tiny",):
        finding = model_slope(name, seed)
        assert finding, finding
        assert finding.numbers["slope"] == pytest.approx(2, abs=0.01)


@pytest.mark.parametrize("error", [1e-2, 1e-3, -1e-3])
@pytest.mark.parametrize("seed", range(6))
def test_taylor_slope_sees_a_gradient_that_is_wrong_by_one_in_a_thousand(seed, error):
    assert model_slope("tiny", seed, 1 + error).failed


def test_taylor_slope_does_not_pass_what_lies_between():
    """A small mistake beside a strong bend: neither slope, so neither verdict."""
    found = {
        model_slope("tiny", seed, 1 + error).verdict
        for seed in range(3)
        for error in (3e-5, 1e-5, 3e-6, 1e-6)
    }
    assert found >= {PASSED, CANNOT_TELL}  # below what it promises


@pytest.mark.more
@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("thousand", range(10))
def test_taylor_slope_gives_no_false_alarm_in_ten_thousand(name, thousand):
    accused = [seed for seed in range(1000 * thousand, 1000 * (thousand + 1)) if not model_slope(name, seed)]
    assert accused == []


def large_pair(seed):
    """Return the loss of a model of 802,176 parameters, and its backward pass."""
    config = ORIGINAL.model.ModelConfig(65, d_model=128, n_heads=4, n_layers=4, d_ff=340)
    rng = np.random.default_rng(seed)
    text = rng.integers(0, 65, (4, 33))
    example = Example("large", config, init_params(config, rng), text[:, :-1], text[:, 1:], text)
    return pairs(ORIGINAL, example)["model"]


@pytest.mark.more
@pytest.mark.parametrize("seed", range(40))
def test_taylor_slope_holds_at_eight_hundred_thousand_parameters(seed):
    pair = large_pair(seed)
    assert sum(array.size for array in pair.arrays.values()) == 802_176

    def wrong(dy, cache):
        return {key: (1 + 1e-2) * gradient for key, gradient in pair.backward(dy, cache).items()}

    right = checks.taylor_slope(pair.forward, pair.backward, pair.arrays, np.random.default_rng(seed))
    assert right, right
    assert checks.taylor_slope(pair.forward, wrong, pair.arrays, np.random.default_rng(seed)).failed


def test_taylor_slope_sees_one_wrong_entry(rng):
    def backward(dy, x):
        dx = square_backward(dy, x)
        dx[0, 1] *= 1.01
        return dx

    assert not checks.taylor_slope(square, backward, (rng.standard_normal((2, 3)) + 3,), rng)


def test_taylor_slope_of_a_straight_function(rng):
    x = rng.standard_normal((2, 5, 4))
    right = checks.taylor_slope(lambda x: (rope(x), None), lambda dy, _: rope(dy, inverse=True), (x,), rng)
    assert right
    assert right.numbers["slope"] == math.inf
    wrong = checks.taylor_slope(lambda x: (rope(x), None), lambda dy, _: rope(dy), (x,), rng)
    assert not wrong
    assert wrong.numbers["slope"] == pytest.approx(1, abs=0.01)


def test_gradient_checks_cannot_see_a_wrong_forward_pass_with_its_own_gradient(rng):
    x = rng.standard_normal(4)  # meant to be x ** 2, is x ** 3
    assert checks.gradcheck(lambda x: (x**3, x), lambda dy, x: 3 * x**2 * dy, (x,), rng)
    assert checks.taylor_slope(lambda x: (x**3, x), lambda dy, x: 3 * x**2 * dy, (x,), rng)


# agreement


def test_agreement_names_the_worst_entry():
    expected = {"a": np.array([1.0, 2.0]), "b": np.array([[3.0, 4.0]])}
    found = {"b": np.array([[3.0, 4.0 * (1 + 1e-8)]]), "a": np.array([1.0, 2.0])}
    finding = checks.agreement(found, expected)
    assert not finding
    assert (finding.numbers["array"], finding.numbers["index"]) == ("b", (0, 1))
    assert "b[0, 1] is 4, expected 4, relative error 1.0e-08" in finding.message
    assert checks.agreement(found, expected, rtol=1e-7)
    assert checks.agreement(expected, expected).numbers["relative_error"] == 0


def test_agreement_takes_numbers_and_zeros():
    assert checks.agreement({"loss": 1.5, "none": np.zeros(2)}, {"loss": 1.5, "none": np.zeros(2)})
    assert not checks.agreement(
        {"loss": 1.5, "none": np.array([0, 1e-300])}, {"loss": 1.5, "none": np.zeros(2)}
    )


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ({"a": np.ones(2), "b": np.ones(2)}, "one result for each of ['a'], got ['a', 'b']"),
        ({"a": np.ones(3)}, "result of a must have its shape (2,), got (3,)"),
        ({"a": np.ones(2, np.float32)}, "result of a must have its dtype float64, got float32"),
        ({"a": np.array([1, np.nan])}, "a[1] is nan"),
    ],
)
def test_agreement_finds_what_does_not_fit(found, message):
    finding = checks.agreement(found, {"a": np.ones(2)})
    assert not finding
    assert message in finding.message


@pytest.mark.parametrize(
    ("found", "expected", "error", "message"),
    [
        (np.ones(2), {"a": np.ones(2)}, TypeError, "must be dicts of arrays, got ndarray and dict"),
        ({"a": np.ones(2)}, np.ones(2), TypeError, "must be dicts of arrays, got dict and ndarray"),
        ({"a": 1.0}, {"a": "one"}, TypeError, r"expected\['a'\] must hold real numbers, got dtype <U3"),
        ({"a": 1.0}, {"a": None}, TypeError, r"expected\['a'\] must hold real numbers, got dtype object"),
        ({"a": [1.0]}, {"a": []}, ValueError, "expected must hold finite arrays"),
        ({"a": [[1.0], []]}, {"a": [1.0]}, ValueError, "the result of a must be an array, got rows of"),
        ({}, {}, ValueError, "expected must hold finite arrays"),
        ({"a": 1.0}, {"a": math.nan}, ValueError, "expected must hold finite arrays"),
    ],
)
def test_agreement_refuses(found, expected, error, message):
    with pytest.raises(error, match=message):
        checks.agreement(found, expected)
    with pytest.raises(ValueError, match="rtol"):
        checks.agreement({"a": 1.0}, {"a": 1.0}, rtol=0)


# leaves_arguments_alone


def test_arguments_left_alone(rng):
    x, weight = rng.standard_normal((3, 5, 4)), rng.standard_normal((4, 6))
    assert checks.leaves_arguments_alone(linear_pair, linear_backward, (x, weight), rng)


def forward_in_place(x):
    x += 1
    return x**2, x.copy()


def upstream_in_place(dy, x):
    dy *= 2 * x
    return dy.copy()


def cache_in_place(dy, x):
    x *= 2
    return x * dy


class Accumulating:
    """A backward pass that adds to the gradient of its last call."""

    total = 0.0

    def __call__(self, dy, x):
        self.total = self.total + 2 * x * dy
        return self.total


@pytest.mark.parametrize(
    ("forward", "backward", "message"),
    [
        (forward_in_place, square_backward, "x was changed by the call"),
        (square, upstream_in_place, "backward writes into the upstream gradient"),
        (lambda x: (x**2, x.copy()), cache_in_place, "different when backward is called a second time"),
        (square, cache_in_place, "x was changed by the call"),
        (square, Accumulating(), "different when backward is called a second time"),
    ],
)
def test_writing_into_arguments_is_found(forward, backward, message, rng):
    finding = checks.leaves_arguments_alone(forward, backward, (rng.standard_normal((2, 3)),), rng)
    assert not finding
    assert message in finding.message
