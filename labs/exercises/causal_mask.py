"""Checks for the exercises of chapter 3: one masked row by pencil, masked weights, and two masks."""

from collections.abc import Callable, Sequence

import numpy as np

from labs.exercises.pencil import Line, judge_numbers
from labs.exercises.verdict import Verdict, answer, judge
from labs.llm.model import causal_mask
from labs.llm.ops import softmax

#: How far an entry may be off, relative to the largest: another order of summation, not another formula.
RTOL = 1e-9


def check_pencil(shares: Sequence[float] | None, read: float | None) -> Verdict:
    """Judge row 1 of three positions, by pencil: its shares under the causal mask, and what it reads."""
    scores, values = np.array([0.0, np.log(3), 5.0]), np.array([4.0, 8.0, 100.0])
    right = softmax(np.where(causal_mask(3)[1], scores, -np.inf))
    unmasked = softmax(scores)
    return judge_numbers(
        {
            "shares": Line(
                shares,
                right,
                {
                    "Position 2 is the future of position 1.": unmasked,
                    "Zero it before the softmax, so that the others add up to one.": unmasked * [1, 1, 0],
                },
            ),
            "read": Line(read, right @ values, {"Nothing is read of position 2.": unmasked @ values}),
        },
        praise="Two shares that add up to one, and nothing of the future.",
    )


def check_weights(my_weights: Callable[[np.ndarray], np.ndarray]) -> Verdict:
    """Judge causal attention weights from scores (B,H,T,T), first ordinary ones, then with a huge future."""
    scores = np.random.default_rng(3).standard_normal((3, 4, 5, 5))
    mask = causal_mask(5)
    right = softmax(np.where(mask, scores, -np.inf))
    strict = np.tri(5, k=-1, dtype=bool)
    strict[0, 0] = True
    words = {
        "given": "scores of shape (3, 4, 5, 5)",
        "praise": "Nothing of the future, and rows add up to one.",
    }
    verdict = judge(
        my_weights,
        (scores,),
        expected=right,
        traps={
            "Rows do not add up to one: the forbidden scores were part of the sum. "
            "Mask the scores before the softmax.": softmax(scores) * mask,
            "A score of zero is an ordinary score and gets a share. Forbidden is -inf.": softmax(
                scores * mask
            ),
            "There is no mask in it.": softmax(scores),
            "It reads the future and forbids the past: look at the mask, row by row.": softmax(
                np.where(mask.T, scores, -np.inf)
            ),
            "A position may read itself: its target is the next token.": softmax(
                np.where(strict, scores, -np.inf)
            ),
        },
        hint="Row i should be the softmax of its first i + 1 scores, and zero after that.",
        rtol=RTOL,
        **words,
    )
    if not verdict.passed:
        return verdict
    with np.errstate(all="ignore"):  # what overflows gets a hint, not a warning
        return judge(
            my_weights,
            (np.where(mask, scores, 5000.0),),
            expected=right,
            traps={},
            hint="Ordinary scores work; forbidden scores of some thousands do not. "
            "Put -inf in their place before the softmax.",
            rtol=RTOL,
            **words,
        )


def check_mask(my_mask: Callable[[int], np.ndarray]) -> Verdict:
    """Judge a function that makes the causal mask (T,T) for any T."""
    right = causal_mask(7)
    return _judge_mask(
        my_mask,
        (7,),
        given="T = 7",
        expected=right,
        traps={
            "It is transposed: row i is the reader, column j what is read, and j <= i.": right.T,
            "A position may read itself: j <= i, not j < i.": np.tri(7, k=-1, dtype=bool),
            "One too many: position i reads i + 1, which is its answer.": np.tri(7, k=1, dtype=bool),
            "True should stand where reading is allowed; here it stands where it is forbidden.": ~right,
            "This is M, to be added to scores. Return the boolean mask.": np.where(right, 0.0, -np.inf),
        },
        hint="Row 2 should be true in columns 0, 1 and 2.",
        praise="Row i allows columns 0 to i, for any T.",
    )


def check_padding_mask(my_padding_mask: Callable[[np.ndarray, int], np.ndarray]) -> Verdict:
    """Judge a function that makes causal masks (B,1,T,T) for texts of these lengths, padded on the right."""
    lengths = np.array([7, 3, 5])
    real = np.arange(7) < lengths[:, np.newaxis]
    keys, queries = real[:, np.newaxis, np.newaxis, :], real[:, np.newaxis, :, np.newaxis]
    return _judge_mask(
        my_padding_mask,
        (lengths, 7),
        given="lengths [7 3 5] and T = 7",
        expected=causal_mask(7) & keys,
        traps={
            "The causal half is missing.": np.broadcast_to(keys, (3, 1, 7, 7)),
            "The padding half is missing.": np.broadcast_to(causal_mask(7), (3, 1, 7, 7)),
            "Padding belongs to the axis that is read, the last one. This empties rows.": causal_mask(7)
            & queries,
            "Both conditions have to hold: combine with &.": causal_mask(7) | keys,
        },
        hint="In text 1, row 6 should be true in columns 0, 1 and 2.",
        praise="Causal, and nobody reads padding; no row is empty.",
    )


def _judge_mask(function: Callable, arguments: Sequence[np.ndarray | int], **words) -> Verdict:
    """Judge a function that makes a mask: the right entries, and boolean ones."""
    verdict = judge(function, arguments, **words)
    if verdict.passed and answer(function, *arguments).dtype != bool:
        return Verdict(
            False, "Ones and zeros in the right places; make them boolean, as attention wants them."
        )
    return verdict
