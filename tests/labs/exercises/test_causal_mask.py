"""Each check accepts differently written right answers, and rejects the stub and the typical wrong ones."""

import numpy as np
import pytest
from einops import rearrange

from labs.exercises import causal_mask as exercise
from labs.llm.model import causal_mask
from labs.llm.ops import softmax

# By pencil


def test_the_pencil_row_is_accepted():
    assert exercise.check_pencil([1 / 4, 3 / 4, 0], 7).passed
    assert exercise.check_pencil(np.array([0.25, 0.75, 0.0]), 7.0).passed


@pytest.mark.parametrize(
    ("answers", "hint"),
    [
        ((None, None), "weights: still open; a list of 3 numbers is expected"),
        (([0.0066, 0.0197, 0.9737], 97.6), "Position 2 is the future"),
        (([0.0066, 0.0197, 0], 0.18), "Zero it before the softmax"),
        (([0.25, 0.75], 7), "a list of 3 numbers is expected, got a list of 2"),
        (([0.25, 0.75, 0], None), "read: still open"),
        (([0.25, 0.75, 0], 97.56), "Nothing is read from position 2"),
        (([0.25, 0.75, 0], 6), "read: not these numbers."),
    ],
)
def test_other_rows_are_rejected_with_a_hint(answers, hint):
    verdict = exercise.check_pencil(*answers)
    assert not verdict.passed
    assert hint in verdict.message, verdict


# Weights


def chosen(scores):
    return softmax(np.where(causal_mask(scores.shape[-1]), scores, -np.inf))


def added(scores):
    M = np.triu(np.full(scores.shape[-2:], -np.inf), k=1)
    powers = np.exp(scores + M - (scores + M).max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def prefix_by_prefix(scores):
    p = np.zeros_like(scores)
    for i in range(scores.shape[-1]):
        p[..., i, : i + 1] = softmax(scores[..., i, : i + 1])
    return p


def large_negative_number(scores):
    return softmax(np.where(causal_mask(scores.shape[-1]), scores, -1e9))


@pytest.mark.parametrize("my_weights", [chosen, added, prefix_by_prefix, large_negative_number])
def test_right_weights_are_accepted(my_weights):
    assert exercise.check_weights(my_weights).passed


def divided_afterwards(scores):
    p = softmax(scores) * causal_mask(scores.shape[-1])
    return p / p.sum(axis=-1, keepdims=True)


def strict(scores):
    mask = np.tri(scores.shape[-1], k=-1, dtype=bool)
    mask[0, 0] = True
    return softmax(np.where(mask, scores, -np.inf))


@pytest.mark.parametrize(
    ("my_weights", "hint"),
    [
        (lambda s: None, "still needs its line"),  # noqa: ARG005
        (lambda s: softmax(s) * causal_mask(s.shape[-1]), "Mask the scores before the softmax"),
        (lambda s: softmax(s * causal_mask(s.shape[-1])), "A score of zero is an ordinary score"),
        (softmax, "The mask is missing"),
        (lambda s: softmax(np.where(causal_mask(s.shape[-1]).T, s, -np.inf)), "It reads the future"),
        (strict, "A position may read itself"),
        (divided_afterwards, "but not for forbidden scores in the thousands"),
        (lambda s: softmax(np.where(causal_mask(s.shape[-1]), s, -10)), "Row i should be"),
        (
            lambda s: softmax(s + np.where(causal_mask(s.shape[-1]), 0, -1000)),
            "but not for forbidden scores in the thousands",
        ),
        (lambda s: chosen(s[..., :4, :4]), "the shape (3, 4, 5, 5); got (3, 4, 4, 4)"),
        (lambda s: softmax(np.where(causal_mask(5), s, -np.inf)), "but not for scores of shape (2, 6, 8, 8)"),
    ],
)
def test_wrong_weights_are_rejected_with_a_hint(my_weights, hint):
    verdict = exercise.check_weights(my_weights)
    assert not verdict.passed
    assert hint in verdict.message, verdict


# The causal mask


@pytest.mark.parametrize(
    "my_mask",
    [
        causal_mask,
        lambda T: np.arange(T) <= np.arange(T)[:, np.newaxis],
        lambda T: np.greater_equal.outer(np.arange(T), np.arange(T)),
        lambda T: np.tril(np.ones((T, T), dtype=bool)),
        lambda T: np.array([[j <= i for j in range(T)] for i in range(T)]),
    ],
)
def test_right_masks_are_accepted(my_mask):
    assert exercise.check_mask(my_mask).passed


def test_a_mask_is_made_once_for_each_size():
    """What is judged is what the function returned: not what it would return if it were asked again."""
    made = []
    assert exercise.check_mask(lambda T: made.append(T) or causal_mask(T)).passed
    assert made == [7, 4]


@pytest.mark.parametrize(
    ("my_mask", "hint"),
    [
        (lambda T: None, "still needs its line"),  # noqa: ARG005
        (lambda T: np.arange(T) >= np.arange(T)[:, np.newaxis], "It is transposed"),
        (lambda T: np.arange(T) < np.arange(T)[:, np.newaxis], "j <= i, not j < i"),
        (lambda T: np.tri(T, k=1, dtype=bool), "One too many"),
        (lambda T: ~causal_mask(T), "True should stand where reading is allowed"),
        (lambda T: np.where(causal_mask(T), 0, -np.inf), "This is M"),
        (lambda T: np.tri(T, dtype=int), "make them boolean"),
        (lambda T: np.ones((T, T), dtype=bool), "Row 2 should be true"),
        (lambda T: causal_mask(5), "the shape (7, 7); got (5, 5)"),  # noqa: ARG005, works on the example only
        (lambda T: np.arange(T) <= np.arange(T), "the shape (7, 7); got (7,)"),
        (lambda T: causal_mask(7), "right for T = 7, but not for T = 4"),  # noqa: ARG005
    ],
)
def test_wrong_masks_are_rejected_with_a_hint(my_mask, hint):
    verdict = exercise.check_mask(my_mask)
    assert not verdict.passed
    assert hint in verdict.message, verdict


# Causal and padded


def real(lengths, T):
    return np.arange(T) < lengths[:, np.newaxis]


def text_by_text(lengths, T):
    masks = np.zeros((len(lengths), 1, T, T), dtype=bool)
    for b, n in enumerate(lengths):
        masks[b, 0, :, :n] = causal_mask(T)[:, :n]
    return masks


@pytest.mark.parametrize(
    "my_padding_mask",
    [
        text_by_text,
        lambda lengths, T: causal_mask(T) & real(lengths, T)[:, None, None, :],
        lambda lengths, T: causal_mask(T)[None, None] * rearrange(real(lengths, T), "b t -> b 1 1 t"),
        lambda lengths, T: (
            np.minimum(np.arange(T)[:, None], lengths[:, None, None, None] - 1) >= np.arange(T)
        ),
    ],
)
def test_right_padding_masks_are_accepted(my_padding_mask):
    assert exercise.check_padding_mask(my_padding_mask).passed


@pytest.mark.parametrize(
    ("my_padding_mask", "hint"),
    [
        (lambda n, T: None, "still needs its line"),  # noqa: ARG005
        (lambda n, T: np.repeat(real(n, T)[:, None, None, :], T, axis=2), "The causal half is missing"),
        (lambda n, T: np.tile(causal_mask(T), (len(n), 1, 1, 1)), "The padding half is missing"),
        (lambda n, T: causal_mask(T) & real(n, T)[:, None, :, None], "This empties rows"),
        (
            lambda n, T: causal_mask(T) & real(n, T)[:, None, None, :] & real(n, T)[:, None, :, None],
            "This empties rows",
        ),
        (lambda n, T: causal_mask(T) | real(n, T)[:, None, None, :], "combine with &"),
        (lambda n, T: (causal_mask(T) & real(n, T)[:, None, None, :]).astype(int), "make them boolean"),
        (lambda n, T: causal_mask(T) & real(n + 1, T)[:, None, None, :], "row 6 should be true"),
        (lambda n, T: causal_mask(T) & real(n, T)[:, None, :], "the shape (3, 1, 7, 7); got (3, 7, 7)"),
        (lambda n, T: causal_mask(T) & real(n, T), "stopped with ValueError"),
        (lambda n, T: text_by_text(n, int(n.max())), "but not for lengths [4 3 6 1] and T = 8"),  # noqa: ARG005
    ],
)
def test_wrong_padding_masks_are_rejected_with_a_hint(my_padding_mask, hint):
    verdict = exercise.check_padding_mask(my_padding_mask)
    assert not verdict.passed
    assert hint in verdict.message, verdict
