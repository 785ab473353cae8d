"""Checks for the exercises on gradients: by pencil, and of the logits."""

from collections.abc import Callable, Sequence

import numpy as np

from labs.exercises.language import say
from labs.exercises.pencil import Line, judge_numbers
from labs.exercises.verdict import Case, Verdict, judge
from labs.llm.ops import (
    cross_entropy,
    cross_entropy_backward,
    softmax,
)

#: Room for a central difference of step 1e-4 to 1e-6 instead of the formula, and none for float32.
DIFFERENCE_RTOL = 1e-8

Table = Sequence[Sequence[float]]


def check_pencil(dlogits: Table | None, dweight: Table | None) -> Verdict:
    """Judge gradients by pencil: of the logits at two positions, and of the matrix that made them."""
    x = np.array([[2.0, 0.0], [1.0, 10.0]])
    p = np.array([[1 / 4, 1 / 4, 1 / 2], [3 / 5, 1 / 5, 1 / 5]])
    one_hot = np.eye(3)[[2, 0]]
    right = (p - one_hot) / 2
    return judge_numbers(
        {
            "dlogits": Line(
                dlogits,
                right,
                {
                    say("The loss is a mean over two positions: divide by 2."): p - one_hot,
                    say("The signs are reversed: raising the target's logit lowers the loss."): -right,
                    say("The signs are reversed, and the mean over two positions is missing."): one_hot - p,
                    say("These are the probabilities, halved: subtract 1 at each target first."): p / 2,
                },
            ),
            "dweight": Line(
                dweight,
                x.T @ right,
                {
                    say("This is x @ dlogits. Row i of dweight uses column i of x."): x @ right,
                    say("Both positions use the matrix: add their products, do not average."): x.T
                    @ right
                    / 2,
                    say("The mean over two positions is missing."): x.T @ (p - one_hot),
                    say("Only the first position is in it: both use the matrix."): np.outer(x[0], right[0]),
                    say("Only the second position is in it: both use the matrix."): np.outer(x[1], right[1]),
                },
            ),
        },
        praise=say("Both gradients agree with the code."),
    )


def check_dlogits(my_dlogits: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Verdict:
    """Judge function(logits, targets): the gradient of the mean cross-entropy, (B,T,V)."""
    rng = np.random.default_rng(8)
    return judge(
        my_dlogits,
        *(
            _dlogits_case(rng.normal(size=(B, T, V)), rng.integers(V, size=(B, T)))
            for B, T, V in ((3, 5, 6), (2, 7, 4))
        ),
        call="check_dlogits(my_dlogits)",
        praise=say("Probabilities minus one-hot, spread over all positions."),
        rtol=DIFFERENCE_RTOL,
    )


def _dlogits_case(logits: np.ndarray, targets: np.ndarray) -> Case:
    B, T, V = logits.shape
    one_hot = np.eye(V)[targets]
    p, along_t = softmax(logits), softmax(logits, axis=1)
    axis = say("The softmax runs along the positions. It belongs along the vocabulary.")
    mean = say("The loss is a mean over all B*T positions: divide by B*T.")
    return Case(
        (logits, targets),
        given=say(
            "logits of shape {logits} and targets of shape {targets}",
            logits=logits.shape,
            targets=targets.shape,
        ),
        expected=cross_entropy_backward(1.0, cross_entropy(logits, targets)[1]),
        traps={
            say("The softmax belongs along the vocabulary, and the mean is over all B*T."): (
                along_t - one_hot
            )
            / T,
            axis: (along_t - one_hot) / (B * T),
            mean: p - one_hot,
            say("{mean} You divide by T.", mean=mean): (p - one_hot) / T,
            say("{mean} You divide by B.", mean=mean): (p - one_hot) / B,
            say("{mean} You divide by the number of logits.", mean=mean): (p - one_hot) / logits.size,
            say("The signs are reversed: raising the target's logit lowers the loss."): (one_hot - p)
            / (B * T),
            say("These are the probabilities, divided by B*T: subtract 1 at each target."): p / (B * T),
        },
        hint=say("(softmax(logits) - one_hot) / (B * T), with the softmax along the vocabulary."),
    )
