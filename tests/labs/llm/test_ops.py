"""Each operation: a value by hand, an invariant, refusals, a gradient check, and a mistake that it finds."""

import math

import numpy as np
import pytest

from labs.llm import ops
from tests.labs.llm.numeric import check_gradients

# Pairwise different sizes, so that a swapped axis cannot pass.
B, T, D, V = 2, 3, 5, 7


@pytest.fixture
def rng():
    return np.random.default_rng(20)


# linear


def test_linear_by_hand():
    y = ops.linear(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0, 5.0], [6.0, 7.0, 8.0]]))
    assert y.tolist() == [[15, 18, 21]]  # 1 * 3 + 2 * 6, 1 * 4 + 2 * 7, 1 * 5 + 2 * 8


def test_linear_treats_positions_alike(rng):
    x, weight = rng.standard_normal((B, T, D)), rng.standard_normal((D, V))
    y = ops.linear(x, weight)
    np.testing.assert_allclose(y[1, 2], ops.linear(x[1, 2], weight), rtol=1e-14)


@pytest.mark.parametrize(("x", "weight"), [((T, D), (V, D)), ((), (D, V))])
def test_linear_refuses_shapes_that_do_not_meet(x, weight):
    with pytest.raises(ValueError, match=r"must share D_in, got .* from the right"):
        ops.linear(np.ones(x), np.ones(weight))


@pytest.mark.parametrize("weight", [(D,), (1, D, V), (D, 0)])
def test_linear_refuses_a_weight_that_is_no_matrix(weight):
    with pytest.raises(ValueError, match=r"weight must have non-empty axes \(D_in, D_out\), got shape"):
        ops.linear(np.ones((T, D)), np.ones(weight))


def test_linear_backward(rng):
    x, weight, dy = (
        rng.standard_normal((B, T, D)),
        rng.standard_normal((D, V)),
        rng.standard_normal((B, T, V)),
    )
    dx, dweight = ops.linear_backward(dy, x, weight)
    check_gradients(ops.linear, (x, weight), dy, (dx, dweight))
    one_text_only = x[0].T @ dy[0]
    with pytest.raises(AssertionError, match="argument 1 is off"):
        check_gradients(ops.linear, (x, weight), dy, (dx, one_text_only))


def test_linear_backward_refuses_a_gradient_that_would_broadcast(rng):
    x, weight = rng.standard_normal((B, T, D)), rng.standard_normal((D, V))
    with pytest.raises(ValueError, match=r"dy must have shape .* = \(2, 3, 7\), got \(1, 3, 7\)"):
        ops.linear_backward(np.ones((1, T, V)), x, weight)


# embedding


def test_embedding_by_hand():
    table = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    x, _ = ops.embedding(np.array([[2, 0]]), table)
    assert x.tolist() == [[[5, 6], [1, 2]]]


def test_embedding_is_a_product_with_one_hot_rows(rng):
    table, ids = rng.standard_normal((V, D)), rng.integers(0, V, (B, T))
    x, _ = ops.embedding(ids, table)
    assert (x == np.eye(V)[ids] @ table).all()


@pytest.mark.parametrize(
    ("ids", "error"),
    [([-1], ValueError), ([V], ValueError), ([1.0], TypeError), ([True], TypeError), ([], TypeError)],
)
def test_embedding_refuses_what_numpy_would_wrap_or_convert(ids, error):
    with pytest.raises(error, match="ids must"):
        ops.embedding(np.array(ids), np.ones((V, D)))


def test_embedding_refuses_a_table_without_rows_for_ids():
    for shape in ((D,), (0, D), (V, D, 1)):
        with pytest.raises(ValueError, match=r"table must have non-empty axes \(V, D\), got shape"):
            ops.embedding(np.array([0]), np.ones(shape))


def test_embedding_backward_adds_repeated_ids(rng):
    table, ids, dx = (
        rng.standard_normal((V, D)),
        np.array([[1, 1, 4], [4, 1, 0]]),
        rng.standard_normal((B, T, D)),
    )
    _, cache = ops.embedding(ids, table)
    dtable = ops.embedding_backward(dx, cache)
    check_gradients(lambda table: ops.embedding(ids, table)[0], (table,), dx, (dtable,))
    np.testing.assert_allclose(dtable[1], dx[0, 0] + dx[0, 1] + dx[1, 1])
    assert (dtable[[2, 3, 5, 6]] == 0).all()
    assigned = np.zeros_like(table)
    assigned[ids] += dx
    with pytest.raises(AssertionError, match="is off"):
        check_gradients(lambda table: ops.embedding(ids, table)[0], (table,), dx, (assigned,))
    with pytest.raises(ValueError, match=r"dx must have shape .* = \(2, 3, 5\), got \(2, 3, 1\)"):
        ops.embedding_backward(dx[..., :1], cache)


# rms_norm


def test_rms_norm_by_hand():
    y, _ = ops.rms_norm(np.array([[3.0, 4.0]]), np.array([1.0, 2.0]), eps=0.5)
    # mean square (9 + 16) / 2 = 12.5, with eps 13
    np.testing.assert_allclose(y, [[3 / math.sqrt(13), 8 / math.sqrt(13)]], rtol=1e-15)


def test_rms_norm_gives_unit_root_mean_square_and_keeps_the_mean(rng):
    x = rng.standard_normal((B, T, D)) + 3
    y, _ = ops.rms_norm(x, np.ones(D), eps=1e-30)
    np.testing.assert_allclose((y**2).mean(axis=-1), 1, rtol=1e-13)
    np.testing.assert_allclose(ops.rms_norm(7 * x, np.ones(D), eps=1e-30)[0], y, rtol=1e-13)
    assert (y.mean(axis=-1) > 0.5).all()  # LayerNorm would subtract it


def test_rms_norm_of_zeros_is_zero():
    x, gain = np.zeros((1, D)), np.ones(D)
    y, cache = ops.rms_norm(x, gain)
    dx, dgain = ops.rms_norm_backward(np.ones((1, D)), cache)
    assert (y == 0).all()
    assert (dgain == 0).all()
    np.testing.assert_allclose(dx, 1 / math.sqrt(1e-5), rtol=1e-14)  # the slope of x / sqrt(eps)


@pytest.mark.parametrize(("dtype", "largest"), [(np.float32, 1.8e19), (np.float64, 1.3e154)])
def test_rms_norm_is_right_or_refuses_however_large_its_numbers(dtype, largest):
    gain = np.ones(D, dtype)
    x = np.zeros((2, D), dtype)
    x[1, 0] = largest
    y, _ = ops.rms_norm(x, gain)
    np.testing.assert_allclose(y[1], [math.sqrt(D), 0, 0, 0, 0], rtol=1e-6)
    for wrong in (10 * largest, np.inf, np.nan):
        x[1, 0] = wrong
        with pytest.raises(
            ValueError, match=r"x must be finite, and small enough .* diverged before this step"
        ):
            ops.rms_norm(x, gain)


def test_half_precision_is_refused_everywhere():
    half, x = np.ones((T, D), np.float16), np.ones((T, D))
    _, cache = ops.rms_norm(x, np.ones(D))
    for call in (
        lambda: ops.rms_norm(half, half[0]),
        lambda: ops.rms_norm_backward(half, cache),
        lambda: ops.softmax(half),
        lambda: ops.silu(half),
    ):
        with pytest.raises(
            TypeError, match="must hold floating-point numbers, float32 or float64, got dtype"
        ):
            call()


@pytest.mark.parametrize("shape", [(1,), (T,)])
def test_rms_norm_refuses_a_gain_that_would_broadcast(shape):
    with pytest.raises(ValueError, match=r"gain must have shape \(D,\) = \(5,\), got"):
        ops.rms_norm(np.ones((T, D)), np.ones(shape))


@pytest.mark.parametrize("shape", [(1, D), (), (0,)])
def test_rms_norm_refuses_a_gain_that_is_no_vector(shape):
    with pytest.raises(ValueError, match=r"gain must have non-empty axes \(D\), got shape"):
        ops.rms_norm(np.ones((T, *shape[-1:])), np.ones(shape))


def test_rms_norm_of_float32_zeros_needs_an_eps_that_float32_holds():
    y, _ = ops.rms_norm(np.zeros((1, D), np.float32), np.ones(D, np.float32), eps=1.2e-38)
    assert (y == 0).all()
    with pytest.raises(ValueError, match="eps must be a number that float32 can hold too"):
        ops.rms_norm(np.zeros((1, D), np.float32), np.ones(D, np.float32), eps=1e-46)


@pytest.mark.parametrize("eps", [0, -1e-5, float("nan"), float("inf")])
def test_rms_norm_refuses_eps(eps):
    with pytest.raises(ValueError, match="eps must be positive and finite"):
        ops.rms_norm(np.ones((T, D)), np.ones(D), eps=eps)


def test_rms_norm_backward(rng):
    x, gain = rng.standard_normal((B, T, D)), rng.uniform(0.7, 1.3, D)
    dy = rng.standard_normal((B, T, D))
    _, cache = ops.rms_norm(x, gain)
    dx, dgain = ops.rms_norm_backward(dy, cache)
    check_gradients(lambda x, gain: ops.rms_norm(x, gain)[0], (x, gain), dy, (dx, dgain))
    as_if_the_scale_were_constant = dy * gain * cache.inv_rms
    with pytest.raises(AssertionError, match="argument 0 is off"):
        check_gradients(
            lambda x, gain: ops.rms_norm(x, gain)[0], (x, gain), dy, (as_if_the_scale_were_constant, dgain)
        )
    with pytest.raises(ValueError, match="dy must have shape"):
        ops.rms_norm_backward(dy[:, :1], cache)


# softmax


def test_softmax_by_hand():
    np.testing.assert_allclose(ops.softmax(np.log([[1.0, 2.0, 5.0]])), [[1 / 8, 2 / 8, 5 / 8]], rtol=1e-15)


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_softmax_adds_up_to_one_along_its_axis_and_ignores_a_shift(rng, axis):
    x = rng.standard_normal((B, T, D))
    p = ops.softmax(x, axis)
    np.testing.assert_allclose(p.sum(axis=axis), 1, rtol=1e-14)
    np.testing.assert_allclose(ops.softmax(x + 100, axis), p, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_softmax_at_the_extremes(dtype):
    p = ops.softmax(np.array([[1000, -1000], [-1000, -1000], [-np.inf, 3]], dtype))
    assert p.dtype == dtype
    assert p.tolist() == [[1, 0], [0.5, 0.5], [0, 1]]


@pytest.mark.parametrize("row", [[-np.inf, -np.inf], [0, np.nan], [0, np.inf]])
def test_softmax_refuses_what_has_none(row):
    with pytest.raises(ValueError, match="softmax needs a finite largest score in every slice"):
        ops.softmax(np.array([[1.0, 2.0], row]))


def test_softmax_refuses_integers():
    with pytest.raises(TypeError, match=r"x must hold floating-point numbers, .* got dtype uint8"):
        ops.softmax(np.array([3, 5], np.uint8))


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_softmax_backward(rng, axis):
    x, dp = rng.standard_normal((B, T, D)), rng.standard_normal((B, T, D))
    p = ops.softmax(x, axis)
    check_gradients(lambda x: ops.softmax(x, axis), (x,), dp, (ops.softmax_backward(dp, p, axis),))
    with pytest.raises(AssertionError, match="is off"):
        check_gradients(lambda x: ops.softmax(x, axis), (x,), dp, (p * dp,))  # row sum forgotten
    with pytest.raises(ValueError, match="dp must have shape"):
        ops.softmax_backward(dp[:1], p, axis)


def test_softmax_backward_is_the_product_with_the_jacobian(rng):
    p, dp = ops.softmax(rng.standard_normal(D)), rng.standard_normal(D)
    jacobian = np.diag(p) - np.outer(p, p)
    np.testing.assert_allclose(ops.softmax_backward(dp, p), jacobian @ dp, rtol=1e-12)


# sigmoid and silu


def test_sigmoid_by_hand():
    x = np.array([0.0, math.log(3), -math.log(3), -800.0])
    np.testing.assert_allclose(ops.sigmoid(x), [0.5, 0.75, 0.25, 0.0], rtol=1e-15)
    with pytest.raises(TypeError, match=r"x must hold floating-point numbers, .* got dtype int64"):
        ops.sigmoid(np.arange(3))


def test_silu_by_hand():
    np.testing.assert_allclose(
        ops.silu(np.array([0.0, math.log(3), -math.log(3)])),
        [0, 0.75 * math.log(3), -0.25 * math.log(3)],
        rtol=1e-15,
    )


def test_silu_is_x_minus_its_mirror_image(rng):
    x = rng.standard_normal((T, D))
    np.testing.assert_allclose(ops.silu(x) - ops.silu(-x), x, rtol=1e-13)  # sigmoid(x) + sigmoid(-x) = 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_silu_at_the_extremes(dtype):
    x = np.array([-800, 800], dtype)
    assert ops.silu(x).dtype == dtype
    assert ops.silu(x).tolist() == [0, 800]
    assert ops.silu_backward(np.ones(2, dtype), x).tolist() == [0, 1]
    assert ops.silu(-800.0) == 0


def test_silu_keeps_its_digits_far_below_zero():
    np.testing.assert_allclose(ops.silu(np.array([-40.0])), -40 * math.exp(-40), rtol=1e-14)


def test_silu_backward(rng):
    x, dy = 2 * rng.standard_normal((T, D)), rng.standard_normal((T, D))
    check_gradients(ops.silu, (x,), dy, (ops.silu_backward(dy, x),))
    with pytest.raises(AssertionError, match="is off"):
        check_gradients(ops.silu, (x,), dy, (dy / (1 + np.exp(-x)),))  # product rule forgotten
    with pytest.raises(ValueError, match="dy must have shape"):
        ops.silu_backward(dy[:1], x)


# cross_entropy


def test_cross_entropy_by_hand():
    logits = np.log([[1.0, 3.0], [4.0, 1.0]])
    loss, _ = ops.cross_entropy(logits, np.array([1, 1]))
    assert loss == pytest.approx((math.log(4 / 3) + math.log(5)) / 2, rel=1e-15)


def test_cross_entropy_of_equal_logits_is_log_v():
    loss, _ = ops.cross_entropy(np.full((B, T, V), 2.5), np.zeros((B, T), int))
    assert loss == pytest.approx(math.log(V), rel=1e-15)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_cross_entropy_at_the_extremes(dtype):
    logits = np.array([[1000, -1000], [1000, -1000]], dtype)
    loss, cache = ops.cross_entropy(logits, np.array([0, 1]))
    assert loss.dtype == dtype
    assert loss == 1000  # the mean of 0 and 2000
    dlogits = ops.cross_entropy_backward(1.0, cache)
    assert dlogits.dtype == dtype
    assert dlogits.tolist() == [[0, 0], [0.5, -0.5]]


@pytest.mark.parametrize(
    ("targets", "error"),
    [
        (np.zeros((B, T), float), TypeError),
        (np.zeros((B, T), bool), TypeError),
        (np.full((B, T), -1), ValueError),
        (np.full((B, T), V), ValueError),
        (np.zeros((T, B), int), ValueError),
        (np.zeros((1, T), int), ValueError),
        (np.zeros(B * T, int), ValueError),
        (np.zeros((B, T, V), int), ValueError),
    ],
)
def test_cross_entropy_refuses_targets(targets, error):
    with pytest.raises(error, match="targets must"):
        ops.cross_entropy(np.zeros((B, T, V)), targets)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_cross_entropy_refuses_logits_without_a_softmax(wrong):
    with pytest.raises(ValueError, match="finite largest score"):
        ops.cross_entropy(np.array([[0.0, wrong]]), np.array([0]))


def test_cross_entropy_backward(rng):
    logits, targets = rng.standard_normal((B, T, V)), rng.integers(0, V, (B, T))
    _, cache = ops.cross_entropy(logits, targets)
    dlogits = ops.cross_entropy_backward(0.7, cache)
    check_gradients(lambda logits: ops.cross_entropy(logits, targets)[0], (logits,), 0.7, (dlogits,))
    np.testing.assert_allclose(dlogits.sum(axis=-1), 0, atol=1e-16)
    divided_by_the_batch = dlogits * T
    with pytest.raises(AssertionError, match="is off"):
        check_gradients(
            lambda logits: ops.cross_entropy(logits, targets)[0], (logits,), 0.7, (divided_by_the_batch,)
        )
    with pytest.raises(ValueError, match=r"dloss must be a scalar, got shape \(2, 3, 1\)"):
        ops.cross_entropy_backward(np.ones((B, T, 1)), cache)
    for dloss in ("1", None, True):
        with pytest.raises(TypeError, match="dloss must be a real number"):
            ops.cross_entropy_backward(dloss, cache)
    assert ops.cross_entropy_backward(np.float64(1), cache).dtype == np.float64
