"""Checks for the exercises on the way back through operations: a matrix, a table, a softmax."""

from collections.abc import Callable

import numpy as np

from labs.exercises.language import say
from labs.exercises.verdict import RTOL, Case, Verdict, judge
from labs.llm.ops import (
    EmbeddingCache,
    embedding_backward,
    linear_backward,
    softmax,
    softmax_backward,
)

#: Room for a central difference of step 1e-4 to 1e-6 instead of the formula, and none for float32.
DIFFERENCE_RTOL = 1e-8


def check_dweight(my_dweight: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Verdict:
    """Judge function(x, dy): the gradient (D,V) of the matrix in y = x @ weight, from x and dy (B,T,..)."""
    rng = np.random.default_rng(18)
    return judge(
        my_dweight,
        *(
            _dweight_case(rng.normal(size=(B, T, D)), rng.normal(size=(B, T, V)))
            for B, T, D, V in ((3, 7, 6, 5), (2, 4, 8, 9))
        ),
        call="check_dweight(my_dweight)",
        praise=say("Every position has used the matrix, and every product is added."),
        rtol=RTOL,
    )


def _dweight_case(x: np.ndarray, dy: np.ndarray) -> Case:
    B, T, D = x.shape
    products = x.swapaxes(-1, -2) @ dy  # (B,D,V)
    right = linear_backward(dy, x, np.zeros((D, dy.shape[-1])))[1]
    add = say("Every position uses the same matrix: add the products over B and T")
    return Case(
        (x, dy),
        given=say("x of shape {x} and dy of shape {dy}", x=x.shape, dy=dy.shape),
        expected=right,
        traps={
            say("{add}, do not average.", add=add): right / (B * T),
            say("{add}, do not average over the batch.", add=add): right / B,
            say("{add}, do not average over the positions.", add=add): right / T,
            say("{add}; this is only the first sequence.", add=add): products[0],
            say("{add}; this is only the last sequence.", add=add): products[-1],
            say("Multiply position by position, then add; this adds x and dy up first."): (
                np.outer(x.sum(axis=(0, 1)), dy.sum(axis=(0, 1)))
            ),
        },
        hint=say("x^T dy, added over all B*T positions."),
    )


def check_embedding_backward(
    my_embedding_backward: Callable[[np.ndarray, np.ndarray, int], np.ndarray],
) -> Verdict:
    """Judge function(dx, ids, V): the gradient (V,D) of the table in x = table[ids]."""
    rng = np.random.default_rng(28)
    return judge(
        my_embedding_backward,
        _embedding_case(rng.normal(size=(2, 5, 3)), np.array([[0, 7, 7, 3, 5], [1, 0, 8, 6, 0]]), 9),
        _embedding_case(rng.normal(size=(3, 4, 6)), np.array([[2, 2, 2, 2], [5, 0, 2, 5], [9, 4, 9, 0]]), 11),
        call="check_embedding_backward(my_embedding_backward)",
        praise=say("What is used several times adds several times."),
        rtol=RTOL,
    )


def _embedding_case(dx: np.ndarray, ids: np.ndarray, V: int) -> Case:
    right = embedding_backward(dx, EmbeddingCache(ids, np.zeros((V, dx.shape[-1]))))
    last, first, first_word = np.zeros_like(right), np.zeros_like(right), np.zeros_like(right)
    for place in np.ndindex(ids.shape):
        last[ids[place]] = dx[place]
    for place in reversed(list(np.ndindex(ids.shape))):
        first[ids[place]] = dx[place]
    np.add.at(first_word, ids[0], dx[0])
    counts = np.bincount(ids.ravel(), minlength=V)[:, np.newaxis]
    add = say("A token that occurs several times adds all its gradients")
    return Case(
        (dx, ids, V),
        given=say("dx of shape {dx}, ids of shape {ids} and V = {V}", dx=dx.shape, ids=ids.shape, V=V),
        expected=right,
        traps={
            say("{add}; only its last one is kept here. dtable[ids] += dx does that too.", add=add): last,
            say("{add}; only its first one is kept here.", add=add): first,
            say("{add}; they are averaged here.", add=add): right / np.maximum(counts, 1),
            say("{add}, over all sequences; only the first sequence is in it.", add=add): first_word,
        },
        hint=say("Start from zeros of shape (V, D); for each place add dx[b, t] to row ids[b, t]."),
    )


def check_softmax_backward(
    my_softmax_backward: Callable[[np.ndarray, np.ndarray], np.ndarray],
) -> Verdict:
    """Judge function(dp, p): the gradient of the scores, where p = softmax(scores) along the last axis."""
    rng = np.random.default_rng(38)
    return judge(
        my_softmax_backward,
        *(_softmax_case(rng.normal(size=shape), rng.normal(size=shape)) for shape in ((3, 5), (2, 4, 3, 6))),
        call="check_softmax_backward(my_softmax_backward)",
        praise=say("The whole Jacobian has acted, and none was built."),
        rtol=RTOL,
    )


def _softmax_case(scores: np.ndarray, dp: np.ndarray) -> Case:
    masked = scores.copy()
    masked[..., 0, -1] = -np.inf  # as behind a mask: this probability is exactly zero
    p = softmax(masked)
    return Case(
        (dp, p),
        given=say("dp and p of shape {p}", p=p.shape),
        expected=softmax_backward(dp, p),
        traps={
            say("The other probabilities move too: sum_j p_j dp_j is missing."): p * dp,
            say("This is the diagonal of the Jacobian alone: the other probabilities move too."): p
            * (1 - p)
            * dp,
            say("The signs are reversed."): -softmax_backward(dp, p),
            say("The sum should weigh each dp_j with its p_j."): p * (dp - dp.sum(axis=-1, keepdims=True)),
            say("The sum should weigh each dp_j with its p_j; this is their plain mean."): (
                p * (dp - dp.mean(axis=-1, keepdims=True))
            ),
            say("The sum runs along the wrong axis: a softmax row is the last axis."): (
                p * (dp - (p * dp).sum(axis=-2, keepdims=True))
            ),
            say("The sum runs over the whole array: each row has its own."): p * (dp - (p * dp).sum()),
            say("The factor p in front is missing."): dp - (p * dp).sum(axis=-1, keepdims=True),
        },
        hint=say("p * (dp - sum_j p_j dp_j), the sum along the last axis, kept as an axis."),
    )
