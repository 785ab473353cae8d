"""Checks for the exercises of chapter 2: one row by pencil, the scores, the softmax, and all of attention."""

from collections.abc import Callable, Sequence

import numpy as np

from labs.exercises.language import say
from labs.exercises.pencil import Line, judge_numbers
from labs.exercises.verdict import RTOL, Case, Verdict, judge
from labs.llm.model import attention
from labs.llm.ops import softmax


def check_pencil(
    scores: Sequence[float] | None, weights: Sequence[float] | None, read: Sequence[float] | None
) -> Verdict:
    """Judge one reader's row, by pencil: two scores, two weights, four numbers read; None is still open."""
    q = np.array([2.0, 0.0, 0.0, 0.0])
    k = np.array([[0.0, 5.0, 0.0, 0.0], [np.log(3), 0.0, 0.0, 0.0]])
    v = np.array([[4.0, 0.0, 0.0, 0.0], [0.0, 8.0, 0.0, 0.0]])
    dots = k @ q
    right = dots / 2
    return judge_numbers(
        {
            "scores": Line(scores, right, {say("Divide by the root of the head width, sqrt(4)."): dots}),
            "weights": Line(
                weights,
                softmax(right),
                {say("These are the powers. Divide each by their sum."): np.exp(right)},
            ),
            "read": Line(
                read,
                softmax(right) @ v,
                {say("This is the plain average. Multiply each value by its weight."): v.mean(axis=0)},
            ),
        },
        praise=say("Scores, weights and what was read agree with the code."),
    )


def check_scores(my_scores: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Verdict:
    """Judge a function that scores queries (B,H,Tq,dh) against keys (B,H,Tk,dh), for any sizes."""
    return judge(
        my_scores,
        *(_scores_case(q, k) for q, k, _ in _examples()),
        call="check_scores(my_scores)",
        praise=say("Every pair is scored, for any number of queries and keys."),
        rtol=RTOL,
    )


def _scores_case(q: np.ndarray, k: np.ndarray) -> Case:
    B, H, Tk, dh = k.shape
    dots = q @ k.swapaxes(-1, -2)
    reshaped = q @ k.reshape(B, H, dh, Tk)
    return Case(
        (q, k),
        given=say("q of shape {q} and k of shape {k}", q=q.shape, k=k.shape),
        expected=dots / np.sqrt(dh),
        traps={
            say("The dot products are right. Now divide them by sqrt(dh)."): dots,
            say("The dot products are right. Divide by sqrt(dh), not by dh."): dots / dh,
            say("A reshape does not transpose K: swap its last two axes."): reshaped / np.sqrt(dh),
            say("A reshape does not transpose K. And look at the division, too."): reshaped / dh,
            say("A reshape does not transpose K. And the division is missing."): reshaped,
        },
        hint=say("Entry (0, 0, 1, 2) should be q[0, 0, 1] @ k[0, 0, 2] / sqrt({dh}).", dh=dh),
    )


def check_softmax(my_softmax: Callable[[np.ndarray], np.ndarray]) -> Verdict:
    """Judge a softmax along the last axis: for scores of any number of axes, then for very large ones."""
    rng = np.random.default_rng(2)
    scores = rng.normal(scale=2.5, size=(3, 4, 5, 7))
    # rows far apart: a single largest score for all of them lets the low rows underflow
    offsets = np.array([1000.0, -1000.0, 5000.0, 0.0, -5000.0])[:, np.newaxis]
    return judge(
        my_softmax,
        _softmax_case(scores),
        _softmax_case(rng.normal(scale=2.5, size=(2, 6, 9))),
        Case(
            (scores + offsets,),
            given=say("scores in the thousands"),
            expected=softmax(scores),
            hint=say("Subtract from each row its own largest score first."),
        ),
        call="check_softmax(my_softmax)",
        praise=say("Rows add up to one, at any size of the scores."),
        rtol=RTOL,
    )


def _softmax_case(scores: np.ndarray) -> Case:
    return Case(
        (scores,),
        given=say("scores of shape {scores}", scores=scores.shape),
        expected=softmax(scores),
        traps={
            say("It runs along the queries. Sum over the last axis."): softmax(scores, axis=-2),
            say("It runs along the heads. Sum over the last axis."): softmax(scores, axis=-3),
            say("One sum over everything. Each row has its own."): softmax(scores.ravel()).reshape(
                scores.shape
            ),
            say("These are the powers. Divide each row by its sum."): np.exp(scores),
        },
        hint=say("Each row should be exp(row) / exp(row).sum()."),
    )


def check_attention(my_attention: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]) -> Verdict:
    """Judge attention without a mask, for any sizes of q (B,H,Tq,dh), and k and v (B,H,Tk,dh)."""
    return judge(
        my_attention,
        *(_attention_case(*example) for example in _examples()),
        call="check_attention(my_attention)",
        praise=say("Scores, weights, values: all of attention except the mask."),
        rtol=RTOL,
    )


def _attention_case(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> Case:
    Tq, Tk, dh = q.shape[2], k.shape[2], k.shape[3]
    dots = q @ k.swapaxes(-1, -2)
    scores = dots / np.sqrt(dh)
    return Case(
        (q, k, v),
        given=say("q of shape {q}, k and v of shape {k}", q=q.shape, k=k.shape),
        expected=attention(q, k, v, np.ones((Tq, Tk), dtype=bool))[0],
        traps={
            say("The division by sqrt(dh) is missing."): softmax(dots) @ v,
            say("The softmax runs along the queries. It belongs along the keys."): softmax(scores, axis=-2)
            @ v,
            say("The softmax runs along the heads. It belongs along the keys."): softmax(scores, axis=1) @ v,
            say("The softmax is missing: these are the scores times the values."): scores @ v,
            say("This reads the keys. Read the values."): softmax(scores) @ k,
        },
        hint=say("Row 1 of head 0 should be softmax(q[0, 0, 1] @ k[0, 0].T / sqrt({dh})) @ v[0, 0].", dh=dh),
    )


def _examples() -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Queries, keys and values, for two sets of sizes (B, H, Tq, Tk, dh) that all differ."""
    rng = np.random.default_rng(2)
    return [
        tuple(rng.standard_normal((B, H, T, dh)) for T in (Tq, Tk, Tk))
        for B, H, Tq, Tk, dh in ((3, 4, 5, 7, 6), (2, 3, 9, 4, 8))
    ]
