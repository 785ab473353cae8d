"""Each check accepts differently written right answers, and rejects the stub and the typical wrong ones."""

import numpy as np
import pytest

from labs.exercises import swiglu
from labs.llm import model


def sigmoid(u):
    return 1 / (1 + np.exp(-u))


def silu(u):
    return u * sigmoid(u)


def solution(n, w1, w3, w2):
    u = n @ w1
    return (u / (1 + np.exp(-u)) * (n @ w3)) @ w2


def by_einsum(n, w1, w3, w2):
    u, up = np.einsum("btd,df->btf", n, w1), np.einsum("btd,df->btf", n, w3)
    return np.einsum("btf,btf,fd->btd", 0.5 * u * (1 + np.tanh(u / 2)), up, w2)


def position_by_position(n, w1, w3, w2):
    y = np.empty_like(n)
    for place in np.ndindex(n.shape[:2]):
        y[place] = sum(
            silu(n[place] @ a) * (n[place] @ b) * row for a, b, row in zip(w1.T, w3.T, w2, strict=True)
        )
    return y


@pytest.mark.parametrize(
    "function",
    [solution, by_einsum, position_by_position, lambda n, w1, w3, w2: model.swiglu(n, w1, w3, w2)[0]],
)
def test_right_functions_are_accepted(function):
    assert swiglu.check_swiglu(function).passed


def as_in_the_notebook(n, w1, w3, w2):
    gate = 1 / (1 + np.exp(-(n @ w3)))
    return (gate * (n @ w1)) @ w2


@pytest.mark.parametrize(
    ("function", "hint"),
    [
        (lambda n, w1, w3, w2: None, "still needs its line"),  # noqa: ARG005
        (as_in_the_notebook, "not from w3; and SiLU is u times"),
        (lambda n, w1, w3, w2: solution(n, w3, w1, w2), "are swapped"),
        (lambda n, w1, w3, w2: (sigmoid(n @ w1) * (n @ w3)) @ w2, "factor u is missing"),
        (lambda n, w1, w3, w2: silu((n @ w1) * (n @ w3)) @ w2, "before the product"),
        (lambda n, w1, w3, w2: (silu(n @ w1) + n @ w3) @ w2, "not added"),
        (lambda n, w1, w3, w2: (np.maximum(n @ w1, 0) * (n @ w3)) @ w2, "ReLU as the gate"),
        (lambda n, w1, w3, w2: ((n @ w1) * (n @ w3)) @ w2, "gate is missing"),
        (lambda n, w1, w3, w2: silu(n @ w1) @ w2, "one layer with SiLU"),  # noqa: ARG005
        (
            lambda n, w1, w3, w2: solution(n, w1, w3, w2) + n,
            "(silu(n @ w1)",
        ),  # the residual belongs to the block
        (lambda n, w1, w3, w2: silu(n @ w1) * (n @ w3), "the shape (3, 7, 6); got (3, 7, 10)"),  # noqa: ARG005
        (lambda n, w1, w3, w2: silu(w1 @ n) * (w3 @ n) @ w2, "stopped with ValueError"),
        (
            lambda n, w1, w3, w2: solution(n.reshape(3, 7, 6), w1, w3, w2),
            "but not for n of shape (2, 5, 9), w1 and w3 of shape (9, 8) and w2 of shape (8, 9)",
        ),
    ],
)
def test_wrong_functions_are_rejected_with_a_hint(function, hint):
    verdict = swiglu.check_swiglu(function)
    assert not verdict.passed
    assert hint in verdict.message, verdict


def slope_by_formula(u):
    s = sigmoid(u)
    return s + u * s * (1 - s)


def slope_by_difference(u, h=1e-5):
    return (silu(u + h) - silu(u - h)) / (2 * h)


def slope_by_one_sided_difference(u, h=1e-5):
    return (silu(u + h) - silu(u)) / h


def slope_of_the_quotient(u):
    e = np.exp(-u)
    return (1 + e + u * e) / (1 + e) ** 2


@pytest.mark.parametrize(
    "slope",
    [slope_by_formula, slope_by_difference, slope_by_one_sided_difference, slope_of_the_quotient],
)
def test_right_slopes_are_accepted(slope):
    assert swiglu.check_silu_slope(slope).passed


@pytest.mark.parametrize(
    ("slope", "hint"),
    [
        (lambda u: None, "still needs its line"),  # noqa: ARG005
        (silu, "SiLU itself"),
        (lambda u: sigmoid(u) * (1 - sigmoid(u)), "one more term"),
        (lambda u: u * sigmoid(u) * (1 - sigmoid(u)), "the sigmoid itself is missing"),
        (sigmoid, "this is the first alone"),
        (lambda u: sigmoid(u) + u * sigmoid(u), "factor 1 - s"),
        (lambda u: (u > 0) * 1.0, "slope of ReLU"),
        (lambda u: (silu(u + 0.1) - silu(u)) / 0.1, "s + u * s * (1 - s)"),
        (lambda u: slope_by_one_sided_difference(u, 1e-4), "a finite difference with h = 1e-5"),
        (lambda u: slope_by_formula(u).reshape(1, 41), "but not for u of shape (2, 5, 3)"),
        (lambda u: (silu(u + 1e-5) - silu(u - 1e-5)) / 1e-5, "s + u * s * (1 - s)"),
        (lambda u: np.gradient(silu(u.ravel()), u.ravel()), "the shape (1, 41); got (41,)"),
    ],
)
def test_wrong_slopes_are_rejected_with_a_hint(slope, hint):
    verdict = swiglu.check_silu_slope(slope)
    assert not verdict.passed
    assert hint in verdict.message, verdict


def fused(n, w13, w2):
    u, up = np.split(n @ w13, 2, axis=-1)
    return (silu(u) * up) @ w2


@pytest.mark.parametrize(
    "function",
    [
        fused,
        lambda n, w13, w2: solution(n, w13[:, : len(w2)], w13[:, len(w2) :], w2),
        lambda n, w13, w2: (silu((n @ w13)[..., : len(w2)]) * (n @ w13)[..., len(w2) :]) @ w2,
    ],
)
def test_right_fused_functions_are_accepted(function):
    assert swiglu.check_fused(function).passed


@pytest.mark.parametrize(
    ("function", "hint"),
    [
        (lambda n, w13, w2: None, "still needs its line"),  # noqa: ARG005
        (lambda n, w13, w2: fused(n, np.roll(w13, len(w2), axis=1), w2), "halves are swapped"),
        (lambda n, w13, w2: (silu((n @ w13)[..., 0::2]) * (n @ w13)[..., 1::2]) @ w2, "alternate columns"),
        (lambda n, w13, w2: fused(n, w13[:, ::-1], w2), "first and last F columns"),
        (lambda n, w13, w2: silu(n @ w13) @ np.concatenate([w2, w2]), "first and last F columns"),
        (lambda n, w13, w2: fused(n, w13, w2)[:, 0], "the shape (3, 7, 6); got (3, 6)"),
        (
            lambda n, w13, w2: solution(n, w13[:, :10], w13[:, 10:], w2),
            "but not for n of shape (2, 5, 9), w13 of shape (9, 16) and w2 of shape (8, 9)",
        ),
    ],
)
def test_wrong_fused_functions_are_rejected_with_a_hint(function, hint):
    verdict = swiglu.check_fused(function)
    assert not verdict.passed
    assert hint in verdict.message, verdict
