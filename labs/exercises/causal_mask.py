"""Checks for the exercises of chapter 3: one masked row by pencil, masked weights, and two masks."""

from collections.abc import Callable, Sequence

import numpy as np

from labs.exercises.language import say
from labs.exercises.pencil import Line, judge_numbers
from labs.exercises.verdict import RTOL, Case, Verdict, judge
from labs.llm.model import causal_mask, padding_mask
from labs.llm.ops import softmax


def check_pencil(weights: Sequence[float] | None, read: float | None) -> Verdict:
    """Judge row 1 of three positions, by pencil: its weights under the causal mask, and what it reads."""
    scores, values = np.array([0.0, np.log(3), 5.0]), np.array([4.0, 8.0, 100.0])
    right = softmax(np.where(causal_mask(3)[1], scores, -np.inf))
    unmasked = softmax(scores)
    return judge_numbers(
        {
            "weights": Line(
                weights,
                right,
                {
                    say("Position 2 is the future of position 1."): unmasked,
                    say("Zero it before the softmax, so that the others add up to one."): unmasked
                    * [1, 1, 0],
                },
            ),
            "read": Line(read, right @ values, {say("Nothing is read from position 2."): unmasked @ values}),
        },
        praise=say("Two weights that add up to one, and nothing from the future."),
    )


def check_weights(my_weights: Callable[[np.ndarray], np.ndarray]) -> Verdict:
    """Judge causal attention weights from scores (B,H,T,T), for any sizes, then with a huge future."""
    rng = np.random.default_rng(3)
    scores = rng.standard_normal((3, 4, 5, 5))
    mask = causal_mask(5)
    return judge(
        my_weights,
        _weights_case(scores),
        _weights_case(rng.standard_normal((2, 6, 8, 8))),
        Case(
            (np.where(mask, scores, 5000.0),),
            given=say("forbidden scores in the thousands"),
            expected=softmax(np.where(mask, scores, -np.inf)),
            hint=say("Put -inf in their place before the softmax."),
        ),
        call="check_weights(my_weights)",
        praise=say("Nothing from the future, and rows add up to one."),
        rtol=RTOL,
    )


def _weights_case(scores: np.ndarray) -> Case:
    mask = causal_mask(scores.shape[-1])
    strict = np.tri(scores.shape[-1], k=-1, dtype=bool)
    strict[0, 0] = True
    return Case(
        (scores,),
        given=say("scores of shape {scores}", scores=scores.shape),
        expected=softmax(np.where(mask, scores, -np.inf)),
        traps={
            say(
                "Rows do not add up to one: the forbidden scores were part of the sum. "
                "Mask the scores before the softmax."
            ): softmax(scores) * mask,
            say("A score of zero is an ordinary score and gets a weight. Forbidden is -inf."): softmax(
                scores * mask
            ),
            say("The mask is missing."): softmax(scores),
            say("It reads the future and forbids the past: look at the mask, row by row."): softmax(
                np.where(mask.T, scores, -np.inf)
            ),
            say("A position may read itself: its target is the next token."): softmax(
                np.where(strict, scores, -np.inf)
            ),
        },
        hint=say("Row i should be the softmax of its first i + 1 scores, and zero after that."),
    )


def check_mask(my_mask: Callable[[int], np.ndarray]) -> Verdict:
    """Judge a function that makes the causal mask (T,T) for any T."""
    return judge(
        my_mask,
        _mask_case(7),
        _mask_case(4),
        call="check_mask(my_mask)",
        praise=say("Row i allows columns 0 to i, for any T."),
    )


def _mask_case(T: int) -> Case:
    right = causal_mask(T)
    return Case(
        (T,),
        given=f"T = {T}",
        expected=right,
        traps={
            say("It is transposed: row i is the reader, column j what is read, and j <= i."): right.T,
            say("A position may read itself: j <= i, not j < i."): np.tri(T, k=-1, dtype=bool),
            say("One too many: position i reads i + 1, which is its answer."): np.tri(T, k=1, dtype=bool),
            say("True should stand where reading is allowed; here it stands where it is forbidden."): ~right,
            say("This is M, to be added to scores. Return the boolean mask."): np.where(right, 0.0, -np.inf),
        },
        hint=say("Row 2 should be true in columns 0, 1 and 2."),
    )


def check_padding_mask(my_padding_mask: Callable[[np.ndarray, int], np.ndarray]) -> Verdict:
    """Judge a function that makes causal masks (B,1,T,T) for texts of these lengths, padded on the right."""
    return judge(
        my_padding_mask,
        _padding_case(np.array([7, 3, 5]), T=7),
        _padding_case(np.array([4, 3, 6, 1]), T=8),  # no text is T long
        call="check_padding_mask(my_padding_mask)",
        praise=say("Causal, and nobody reads padding; no row is empty."),
    )


def _padding_case(lengths: np.ndarray, T: int) -> Case:
    B = len(lengths)
    real = np.arange(T) < lengths[:, np.newaxis]
    keys = padding_mask(real)  # (B,1,1,T)
    queries = keys.swapaxes(-1, -2)  # (B,1,T,1)
    return Case(
        (lengths, T),
        given=say("lengths {lengths} and T = {T}", lengths=lengths, T=T),
        expected=causal_mask(T) & keys,
        traps={
            say("The causal half is missing."): np.broadcast_to(keys, (B, 1, T, T)),
            say("The padding half is missing."): np.broadcast_to(causal_mask(T), (B, 1, T, T)),
            say("Padding belongs to the axis that is read, the last one. This empties rows."): causal_mask(T)
            & queries,
            say("Both conditions have to hold: combine with &."): causal_mask(T) | keys,
        },
        hint=say("In text 1, row {last} should be true in columns 0, 1 and 2.", last=T - 1),
    )
