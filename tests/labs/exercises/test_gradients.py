"""Each check accepts differently written right answers, and rejects the stub and the typical wrong ones."""

import numpy as np
import pytest

from labs.exercises import gradients
from labs.llm import checks, ops

DLOGITS = [[0.125, 0.125, -0.25], [-0.2, 0.1, 0.1]]
DWEIGHT = [[0.05, 0.35, -0.4], [-2, 1, 1]]


@pytest.mark.parametrize(
    ("dlogits", "dweight"),
    [
        (DLOGITS, DWEIGHT),
        (np.array(DLOGITS), np.array(DWEIGHT)),
        ([[0.13, 0.12, -0.25], DLOGITS[1]], DWEIGHT),
    ],
)
def test_right_numbers_are_accepted(dlogits, dweight):
    assert gradients.check_pencil(dlogits, dweight).passed


def test_the_numbers_are_the_gradients_of_the_example():
    x, weight = np.array([[2.0, 0.0], [1.0, 10.0]]), np.zeros((2, 3))
    logits = np.log([[1, 1, 2], [3, 1, 1]])  # what the exercise gives

    def loss_of_logits(logits):
        return ops.cross_entropy(logits, np.array([2, 0]))[0]

    def loss_of_weight(change):
        return loss_of_logits(logits + x @ change)

    found = checks.numeric_gradient(loss_of_logits, logits)
    np.testing.assert_allclose(found, DLOGITS, rtol=1e-6)
    np.testing.assert_allclose(checks.numeric_gradient(loss_of_weight, weight), DWEIGHT, rtol=1e-6)


@pytest.mark.parametrize(
    ("dlogits", "dweight", "hint"),
    [
        (None, None, "dlogits: still open; a table of 2 × 3 numbers"),
        (DLOGITS, None, "dweight: still open"),
        (2 * np.array(DLOGITS), DWEIGHT, "divide by 2"),
        (-np.array(DLOGITS), DWEIGHT, "The signs are reversed: raising"),
        (-2 * np.array(DLOGITS), DWEIGHT, "reversed, and the mean"),
        ([[0.125, 0.125, 0.25], [0.3, 0.1, 0.1]], DWEIGHT, "subtract 1"),
        (DLOGITS, np.array([[2, 0], [1, 10]]) @ DLOGITS, "Row i of dweight uses column i"),
        (DLOGITS, np.array(DWEIGHT) / 2, "do not average"),
        (DLOGITS, 2 * np.array(DWEIGHT), "mean over two positions is missing"),
        (DLOGITS, [[0.25, 0.25, -0.5], [0, 0, 0]], "Only the first position"),
        (DLOGITS, [[-0.2, 0.1, 0.1], [-2, 1, 1]], "Only the second position"),
        (DLOGITS, np.transpose(DWEIGHT), "a table of 2 × 3 numbers is expected, got a table of 3 × 2"),
        (DLOGITS, [[0, 0, 0], [0, 0, 0]], "dweight: not these numbers."),
    ],
)
def test_wrong_numbers_are_rejected_with_a_hint(dlogits, dweight, hint):
    verdict = gradients.check_pencil(dlogits, dweight)
    assert not verdict.passed
    assert hint in verdict.message, verdict


def dlogits(logits, targets):
    p = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    return (p - np.eye(logits.shape[-1])[targets]) / targets.size


def dlogits_in_place(logits, targets):
    gradient = ops.softmax(logits)
    for place in np.ndindex(targets.shape):
        gradient[(*place, targets[place])] -= 1
    return gradient / targets.size


def dlogits_by_nudging(step):
    return lambda logits, targets: checks.numeric_gradient(
        lambda each: ops.cross_entropy(each, targets)[0], logits, step
    )


@pytest.mark.parametrize(
    "function",
    [
        dlogits,
        dlogits_in_place,
        *map(dlogits_by_nudging, (1e-4, 1e-5, 1e-6)),
        lambda logits, targets: ops.cross_entropy_backward(1.0, ops.cross_entropy(logits, targets)[1]),
    ],
)
def test_right_dlogits_are_accepted(function):
    assert gradients.check_dlogits(function).passed


def dlogits_of_the_notebook(logits, targets):
    p = ops.softmax(logits, axis=1)
    one_hot = targets[..., None] == np.arange(logits.shape[-1])
    return (p - one_hot) / logits.shape[1]


def without_one_hot(logits, targets):
    return ops.softmax(logits) / targets.size


@pytest.mark.parametrize(
    ("function", "hint"),
    [
        (lambda logits, targets: None, "still needs its line"),  # noqa: ARG005
        (dlogits_of_the_notebook, "along the vocabulary, and the mean is over all B*T"),
        (lambda logits, targets: dlogits_of_the_notebook(logits, targets) / len(logits), "along the vocab"),
        (lambda logits, targets: dlogits(logits, targets) * targets.size, "divide by B*T."),
        (lambda logits, targets: dlogits(logits, targets) * len(targets), "You divide by T."),
        (lambda logits, targets: dlogits(logits, targets) * targets.shape[1], "You divide by B."),
        (lambda logits, targets: dlogits(logits, targets) / logits.shape[-1], "by the number of logits"),
        (lambda logits, targets: -dlogits(logits, targets), "signs are reversed"),
        (without_one_hot, "subtract 1"),
        (lambda logits, targets: dlogits(logits, (targets + 1) % 4), "(softmax(logits) - one_hot)"),
        (lambda logits, targets: dlogits(logits, targets).sum(axis=0), "the shape (3, 5, 6); got (5, 6)"),
        (dlogits_by_nudging(1e-2), "Right to about 6 digits: compute in float64"),
        (lambda logits, targets: dlogits(logits, targets).astype(np.float32), "digits: compute in float64"),
        (
            lambda logits, targets: dlogits(logits, targets) * targets.size / 15,
            "but not for logits of shape (2, 7, 4)",
        ),
    ],
)
def test_wrong_dlogits_are_rejected_with_a_hint(function, hint):
    verdict = gradients.check_dlogits(function)
    assert not verdict.passed
    assert hint in verdict.message, verdict
