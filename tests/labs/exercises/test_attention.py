"""Each check accepts differently written right answers, and rejects the stub and the typical wrong ones."""

import numpy as np
import pytest
from einops import einsum, rearrange

from labs.exercises import attention as exercise
from labs.llm import model, ops


def swapped(q, k):
    return q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])


def row_by_row(q, k):
    B, H, Tq, dh = q.shape
    scores = np.empty((B, H, Tq, k.shape[2]))
    for b, h, i, j in np.ndindex(*scores.shape):
        scores[b, h, i, j] = q[b, h, i] @ k[b, h, j] / dh**0.5
    return scores


def by_formula(x):
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def through_logarithms(x):
    return np.exp(x - np.logaddexp.reduce(x, axis=-1, keepdims=True))


def all_of_it(q, k, v):
    return by_formula(swapped(q, k)) @ v


# By pencil


def test_the_pencil_row_is_accepted_exact_or_rounded():
    assert exercise.check_pencil([0, np.log(3)], [0.25, 0.75], [1, 6, 0, 0]).passed
    assert exercise.check_pencil((0, 1.1), np.array([1 / 4, 3 / 4]), [1.0, 6.0, 0.0, 0.0]).passed


@pytest.mark.parametrize(
    ("answers", "hint"),
    [
        ((None, None, None), "scores: still open"),
        (([0, 2.2], [0.1, 0.9], [0.4, 7.2, 0, 0]), "Divide by the root"),
        (([0, 0.55], [0.25, 0.75], [1, 6, 0, 0]), "scores: not these numbers"),
        (([0, 1.1], [1, 3], [1, 6, 0, 0]), "These are the powers"),
        (([0, 1.1], [0.75, 0.25], [1, 6, 0, 0]), "weights: not these numbers"),
        (([0, 1.1], [0.25, 0.75], [2, 4, 0, 0]), "This is the plain average"),
        (([0, 1.1], [0.25, 0.75], [1, 6]), "read: a list of 4 numbers is expected"),
    ],
)
def test_other_rows_are_rejected_with_a_hint(answers, hint):
    verdict = exercise.check_pencil(*answers)
    assert not verdict.passed
    assert hint in verdict.message, verdict


# Scores


@pytest.mark.parametrize(
    "my_scores",
    [
        swapped,
        row_by_row,
        lambda q, k: np.einsum("bhie,bhje->bhij", q, k) / q.shape[-1] ** 0.5,
        lambda q, k: einsum(q / q.shape[-1] ** 0.5, k, "b h i e, b h j e -> b h i j"),
        lambda q, k: q @ rearrange(k, "b h j e -> b h e j") * q.shape[-1] ** -0.5,
    ],
)
def test_right_scores_are_accepted(my_scores):
    assert exercise.check_scores(my_scores).passed


@pytest.mark.parametrize(
    ("my_scores", "hint"),
    [
        (lambda q, k: None, "still needs its line"),  # noqa: ARG005
        (
            lambda q, k: q @ k.reshape(3, 4, 6, 7) / 6,
            "does not transpose K. And look at the division",
        ),
        (lambda q, k: q @ k.reshape(3, 4, 6, 7), "does not transpose K. And the division is missing"),
        (lambda q, k: q @ k.reshape(3, 4, 6, 7) / 6**0.5, "swap its last two axes."),
        (lambda q, k: q @ k.swapaxes(-1, -2), "Now divide them by sqrt(dh)"),
        (lambda q, k: q @ k.swapaxes(-1, -2) / 6, "not by dh"),
        (lambda q, k: q @ k.swapaxes(-1, -2) / 2, "Entry (0, 0, 1, 2)"),  # works on the example only
        (lambda q, k: q @ k.swapaxes(-1, -2) / 6**0.5, "not for q of shape (2, 3, 9, 8) and k"),
        (lambda q, k: np.float32(swapped(q, k)), "digits: compute in float64"),
        (lambda q, k: k @ q.swapaxes(-1, -2) / 6**0.5, "the shape (3, 4, 5, 7); got (3, 4, 7, 5)"),
        (lambda q, k: q @ k.T, "stopped with ValueError"),
    ],
)
def test_wrong_scores_are_rejected_with_a_hint(my_scores, hint):
    verdict = exercise.check_scores(my_scores)
    assert not verdict.passed
    assert hint in verdict.message, verdict


# Softmax


@pytest.mark.parametrize("my_softmax", [ops.softmax, by_formula, through_logarithms])
def test_right_softmaxes_are_accepted(my_softmax):
    assert exercise.check_softmax(my_softmax).passed


def one_maximum_for_all(x):
    powers = np.exp(x - x.max())
    return powers / powers.sum(axis=-1, keepdims=True)


def without_maximum(x):
    return np.exp(x) / np.exp(x).sum(axis=-1, keepdims=True)


@pytest.mark.parametrize(
    ("my_softmax", "hint"),
    [
        (lambda x: None, "still needs its line"),  # noqa: ARG005
        (np.exp, "These are the powers"),
        (lambda x: ops.softmax(x, axis=-2), "runs along the queries"),
        (lambda x: ops.softmax(x, axis=1), "runs along the heads"),
        (lambda x: np.exp(x) / np.exp(x).sum(), "One sum over everything"),
        (without_maximum, "Subtract from each row its own largest score"),
        (one_maximum_for_all, "Subtract from each row its own largest score"),
        (lambda x: ops.softmax(2 * x), "Each row should be"),
        (lambda x: by_formula(x)[..., :1], "the shape (3, 4, 5, 7); got (3, 4, 5, 1)"),
        (lambda x: ops.softmax(x, axis=3), "but not for scores of shape (2, 6, 9)"),
    ],
)
def test_wrong_softmaxes_are_rejected_with_a_hint(my_softmax, hint):
    verdict = exercise.check_softmax(my_softmax)
    assert not verdict.passed
    assert hint in verdict.message, verdict


# All of it


@pytest.mark.parametrize(
    "my_attention",
    [
        all_of_it,
        lambda q, k, v: model.attention(q, k, v, np.ones((q.shape[2], k.shape[2]), dtype=bool))[0],
        lambda q, k, v: np.einsum("bhij,bhje->bhie", through_logarithms(row_by_row(q, k)), v),
    ],
)
def test_right_attention_is_accepted(my_attention):
    assert exercise.check_attention(my_attention).passed


@pytest.mark.parametrize(
    ("my_attention", "hint"),
    [
        (lambda q, k, v: None, "still needs its line"),  # noqa: ARG005
        (lambda q, k, v: by_formula(q @ k.swapaxes(-1, -2)) @ v, "division by sqrt(dh) is missing"),
        (lambda q, k, v: ops.softmax(swapped(q, k), axis=-2) @ v, "runs along the queries"),
        (lambda q, k, v: ops.softmax(swapped(q, k), axis=1) @ v, "runs along the heads"),
        (lambda q, k, v: swapped(q, k) @ v, "The softmax is missing"),
        (lambda q, k, v: by_formula(swapped(q, k)) @ k, "This reads the keys"),  # noqa: ARG005
        (lambda q, k, v: all_of_it(q, k[:, :1], v), "Row 1 of head 0"),
        (
            lambda q, k, v: model.attention(q, k, v, np.ones((5, 7), dtype=bool))[0],
            "but not for q of shape (2, 3, 9, 8), k and v of shape (2, 3, 4, 8)",
        ),
        (lambda q, k, v: by_formula(swapped(q, k)), "the shape (3, 4, 5, 6); got (3, 4, 5, 7)"),  # noqa: ARG005
    ],
)
def test_wrong_attention_is_rejected_with_a_hint(my_attention, hint):
    verdict = exercise.check_attention(my_attention)
    assert not verdict.passed
    assert hint in verdict.message, verdict
