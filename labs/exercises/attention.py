"""Checks for the exercises of chapter 2: one row by pencil, the scores, the softmax, and all of attention."""

from collections.abc import Callable, Sequence

import numpy as np

from labs.exercises.pencil import Line, judge_numbers
from labs.exercises.verdict import Verdict, judge
from labs.llm.model import attention
from labs.llm.ops import softmax

#: How far an entry may be off, relative to the largest: another order of summation, not another formula.
RTOL = 1e-9


def check_pencil(
    scores: Sequence[float] | None, shares: Sequence[float] | None, read: Sequence[float] | None
) -> Verdict:
    """Judge one reader's row, by pencil: two scores, two shares, four numbers read; None is still open."""
    q = np.array([2.0, 0.0, 0.0, 0.0])
    k = np.array([[0.0, 5.0, 0.0, 0.0], [np.log(3), 0.0, 0.0, 0.0]])
    v = np.array([[4.0, 0.0, 0.0, 0.0], [0.0, 8.0, 0.0, 0.0]])
    dots = k @ q
    right = dots / 2
    return judge_numbers(
        {
            "scores": Line(scores, right, {"Divide by the root of the head width, sqrt(4).": dots}),
            "shares": Line(
                shares, softmax(right), {"These are the powers. Divide each by their sum.": np.exp(right)}
            ),
            "read": Line(
                read, softmax(right) @ v, {"This is the plain average. Use the shares.": v.mean(axis=0)}
            ),
        },
        praise="Scores, shares and what was read agree with the code.",
    )


def check_scores(my_scores: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Verdict:
    """Judge a function that scores queries (B,H,Tq,dh) against keys (B,H,Tk,dh), on sizes that all differ."""
    q, k, _ = _example()
    dots = q @ k.swapaxes(-1, -2)
    reshaped = q @ k.reshape(3, 4, 6, 7)
    return judge(
        my_scores,
        (q, k),
        given="q of shape (3, 4, 5, 6) and k of shape (3, 4, 7, 6)",
        expected=dots / np.sqrt(6),
        traps={
            "The dot products are right. Now divide them by sqrt(dh).": dots,
            "The dot products are right. Divide by sqrt(dh), not by dh.": dots / 6,
            "A reshape does not turn K: swap its last two axes.": reshaped / np.sqrt(6),
            "K is not turned by a reshape. And look at the division, too.": reshaped / 6,
            "K is not turned by a reshape. And the division is missing.": reshaped,
        },
        hint="Entry (0, 0, 1, 2) should be q[0, 0, 1] @ k[0, 0, 2] / sqrt(6).",
        praise="Every pair is scored, for any number of queries and keys.",
        rtol=RTOL,
    )


def check_softmax(my_softmax: Callable[[np.ndarray], np.ndarray]) -> Verdict:
    """Judge a softmax along the last axis, first on scores of ordinary size and then on very large ones."""
    q, k, _ = _example()
    scores = q @ k.swapaxes(-1, -2)
    words = {
        "given": "scores of shape (3, 4, 5, 7)",
        "praise": "Rows add up to one, at any size of the scores.",
    }
    verdict = judge(
        my_softmax,
        (scores,),
        expected=softmax(scores),
        traps={
            "It runs along the queries. Sum over the last axis.": softmax(scores, axis=-2),
            "It runs along the heads. Sum over the last axis.": softmax(scores, axis=1),
            "One sum over everything. Each row has its own.": softmax(scores.ravel()).reshape(scores.shape),
            "These are the powers. Divide each row by its sum.": np.exp(scores),
        },
        hint="Each row should be exp(row) / exp(row).sum().",
        rtol=RTOL,
        **words,
    )
    if not verdict.passed:
        return verdict
    # rows far apart: a single largest score for all of them lets the low rows underflow
    large = scores + np.array([1000.0, -1000.0, 5000.0, 0.0, -5000.0])[:, np.newaxis]
    with np.errstate(all="ignore"):  # a softmax that overflows gets a hint, not a warning
        return judge(
            my_softmax,
            (large,),
            expected=softmax(scores),
            traps={},
            hint="Scores of ordinary size work; scores of some thousands do not. "
            "Subtract from each row its own largest score first.",
            rtol=RTOL,
            **words,
        )


def check_attention(my_attention: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]) -> Verdict:
    """Judge attention without a mask: q (B,H,Tq,dh), k and v (B,H,Tk,dh), on sizes that all differ."""
    q, k, v = _example()
    dots = q @ k.swapaxes(-1, -2)
    scores = dots / np.sqrt(6)
    return judge(
        my_attention,
        (q, k, v),
        given="q of shape (3, 4, 5, 6), k and v of shape (3, 4, 7, 6)",
        expected=attention(q, k, v, np.ones((5, 7), dtype=bool))[0],
        traps={
            "The division by sqrt(dh) is missing.": softmax(dots) @ v,
            "The softmax runs along the queries. It belongs along the keys.": softmax(scores, axis=-2) @ v,
            "The softmax runs along the heads. It belongs along the keys.": softmax(scores, axis=1) @ v,
            "The softmax is missing: these are the scores times the values.": scores @ v,
            "This reads the keys. Read the values.": softmax(scores) @ k,
        },
        hint="Row 1 of head 0 should be softmax(q[0, 0, 1] @ k[0, 0].T / sqrt(6)) @ v[0, 0].",
        praise="Scores, shares, values: all of attention but the mask.",
        rtol=RTOL,
    )


def _example() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Queries, keys and values of sizes that are all different: B=3, H=4, Tq=5, Tk=7, dh=6."""
    rng = np.random.default_rng(2)
    q, k, v = (rng.standard_normal((3, 4, T, 6)) for T in (5, 7, 7))
    return q, k, v
