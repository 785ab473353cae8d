"""Checks for the exercises of chapter 9: the five gradients by pencil, those of scores, keys and queries."""

from collections.abc import Callable, Sequence

import numpy as np

from labs.exercises.language import say
from labs.exercises.pencil import Line, judge_numbers
from labs.exercises.verdict import RTOL, Case, Verdict, judge
from labs.llm.model import attention, attention_backward, causal_mask, rope
from labs.llm.ops import softmax, softmax_backward


def check_pencil(
    dv: Sequence[float] | None,
    dp: Sequence[Sequence[float]] | None,
    dscores: Sequence[Sequence[float]] | None,
    dq: Sequence[float] | None,
    dk: Sequence[float] | None,
) -> Verdict:
    """Judge the five gradients by pencil, for two positions and a head of one number."""
    return judge_numbers(
        {
            "dv": Line(
                dv,
                [5, 1],
                {
                    say("A value collects its column of P: this takes the rows."): [4, 3],
                    say("Multiply what each reader sends by its attention weight."): [6, 2],
                },
            ),
            "dp": Line(
                dp,
                [[4, 20], [2, 10]],
                {
                    say("At the forbidden pair too: G_P does not know the mask."): [[4, 0], [2, 10]],
                    say("Row i belongs to reader i: this is the transpose."): [[4, 2], [20, 10]],
                },
            ),
            "dscores": Line(
                dscores,
                [[0, 0], [-2, 2]],
                {
                    say("The average of the row is missing."): [[4, 0], [1, 5]],
                    say("Row 0 has one position to read: its average is that one number, 4."): [
                        [-8, 0],
                        [-2, 2],
                    ],
                    say("Multiply by the weight: at a forbidden pair it is zero."): [[0, 16], [-2, 2]],
                    say("The last step is missing: times P."): [[0, 16], [-4, 4]],
                },
            ),
            "dq": Line(dq, [0, 0], {say("This multiplies by the values: use the keys."): [0, 8]}),
            "dk": Line(
                dk,
                [-6, 6],
                {
                    say("A key collects its column of G_S: this takes the rows."): [0, -8],
                    say("Use the query of the reader, not that of the position that is read."): [-14, 6],
                },
            ),
        },
        praise=say("All five gradients agree with the code."),
    )


def check_scores(my_dscores: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]) -> Verdict:
    """Judge my_dscores(do, v, p): from what arrives at O to the gradient of the scores, (B,H,T,T)."""
    return judge(
        my_dscores,
        *(_scores_case(*arrays) for arrays in _examples()),
        call="check_scores(my_dscores)",
        praise=say("Each reader compares with its own average."),
        rtol=RTOL,
    )


def _scores_case(do: np.ndarray, q: np.ndarray, k: np.ndarray, v: np.ndarray) -> Case:
    _, cache = attention(q, k, v, causal_mask(q.shape[2]))
    p, dp = cache.p, do @ v.swapaxes(-1, -2)
    right = softmax_backward(dp, p)
    return Case(
        (do, v, p),
        given=say("do and v of shape {do} and p of shape {p}", do=do.shape, p=p.shape),
        expected=right,
        traps={
            say("The average should be weighted by P, and run along the keys: two things are wrong."): (
                p * (dp - dp.mean(axis=-2, keepdims=True))
            ),
            say("The average runs along the keys now, but each entry should count with its weight P."): (
                p * (dp - dp.mean(axis=-1, keepdims=True))
            ),
            say("The average is weighted now, but it should run along the keys, the last axis."): (
                p * (dp - (p * dp).sum(axis=-2, keepdims=True))
            ),
            say("The weighted entries should be added up; their mean divides by T as well."): (
                p * (dp - (p * dp).mean(axis=-1, keepdims=True))
            ),
            say("The average of the row is missing."): p * dp,
            say("This is the gradient of the weights, G_P: the softmax is still to come."): dp,
            say("The factor P in front is missing."): dp - (p * dp).sum(axis=-1, keepdims=True),
            say("The sign is wrong: it is G_P minus the average."): -right,
            say("The factor 1 / sqrt(dh) belongs to the next step, to the queries and keys."): (
                right / np.sqrt(v.shape[-1])
            ),
        },
        hint=say("p * (dp - average), with the average of each row of dp weighted by the same row of p."),
    )


def check_keys(my_dk: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Verdict:
    """Judge my_dk(dscores, q_rot): the gradient of the keys before RoPE, (B,H,T,dh)."""
    return judge(
        my_dk,
        *(_keys_case(*arrays) for arrays in _examples()),
        call="check_keys(my_dk)",
        praise=say("Columns of G_S, the factor, and rotated back."),
        rtol=RTOL,
    )


def _keys_case(do: np.ndarray, q: np.ndarray, k: np.ndarray, v: np.ndarray) -> Case:
    q_rot = rope(q)
    _, cache = attention(q_rot, rope(k), v, causal_mask(q.shape[2]))
    dscores = softmax_backward(do @ v.swapaxes(-1, -2), cache.p)
    root = np.sqrt(q.shape[-1])
    dk_rot = dscores.swapaxes(-1, -2) @ q_rot / root  # the gradient of the keys after RoPE
    rows = dscores @ q_rot / root
    right = rope(dk_rot, inverse=True)
    return Case(
        (dscores, q_rot),
        given=say(
            "dscores of shape {dscores} and q_rot of shape {q_rot}", dscores=dscores.shape, q_rot=q_rot.shape
        ),
        expected=right,
        traps={
            say("This is the gradient of the rotated keys: rotate it back."): dk_rot,
            say("Here RoPE rotates forward once more: rotate back, with inverse=True."): rope(dk_rot),
            say("A key collects its column of dscores: transpose its last two axes."): rope(
                rows, inverse=True
            ),
            say("Transpose dscores, and rotate the result back: two steps are missing."): rows,
            say("The factor 1 / sqrt(dh) is missing."): right * root,
            say("Divide by the root of dh, not by dh."): right / root,
            say("The factor 1 / sqrt(dh) is missing, and the result should be rotated back."): dk_rot * root,
            say("Rotate the result back, not the queries: they stay as the scores used them."): (
                dscores.swapaxes(-1, -2) @ rope(q_rot, inverse=True) / root
            ),
        },
        hint=say(
            "Column j of dscores, times the rotated queries of the readers, over sqrt(dh), rotated back."
        ),
    )


def check_queries(my_dq: Callable[..., np.ndarray]) -> Verdict:
    """Judge my_dq(do, q, k, v, mask), all of the way to the queries, also for more keys than queries."""
    return judge(
        my_dq,
        *(_queries_case(*arrays) for arrays in _examples(more_keys=2)),
        call="check_queries(my_dq)",
        praise=say("All the way from the output to the queries, for any number of readers."),
        rtol=RTOL,
    )


def _queries_case(do: np.ndarray, q: np.ndarray, k: np.ndarray, v: np.ndarray) -> Case:
    mask = causal_mask(q.shape[2], k.shape[2])
    _, cache = attention(q, k, v, mask)
    right, _, _ = attention_backward(do, cache)
    root = np.sqrt(q.shape[-1])
    p, dp = cache.p, do @ v.swapaxes(-1, -2)
    open_p = softmax(q @ k.swapaxes(-1, -2) / root)
    unscaled_p = softmax(np.where(mask, q @ k.swapaxes(-1, -2), -np.inf))
    return Case(
        (do, q, k, v, mask),
        given=say(
            "do and q of shape {q}, k and v of shape {k} and a mask of shape {mask}",
            q=q.shape,
            k=k.shape,
            mask=mask.shape,
        ),
        expected=right,
        traps={
            say("The mask is not used: where it is False, P is zero."): (
                softmax_backward(dp, open_p) @ k / root
            ),
            say("The factor 1 / sqrt(dh) is missing at the end."): right * root,
            say("The scores that P is made of should be divided by sqrt(dh)."): (
                softmax_backward(dp, unscaled_p) @ k / root
            ),
            say("The factor 1 / sqrt(dh) is missing twice: in the scores and at the end."): (
                softmax_backward(dp, unscaled_p) @ k
            ),
            say("The factor 1 / sqrt(dh) is applied twice after the softmax."): right / root,
            say("The average of each row is missing on the way back through the softmax."): (p * dp)
            @ k
            / root,
            say("The average should be weighted by P."): (
                (p * (dp - dp.mean(axis=-1, keepdims=True))) @ k / root
            ),
            say("The average should run along the keys, the last axis."): (
                (p * (dp - (p * dp).sum(axis=-2, keepdims=True))) @ k / root
            ),
            say("The way back through the softmax is missing: from G_P to G_S."): dp @ k / root,
        },
        hint=say("P from the masked scores; G_P = G_O V^T; G_S by the row's average; G_S K / sqrt(dh)."),
    )


def _examples(more_keys: int = 0) -> list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """do, q (B,H,Tq,dh) and k, v (B,H,Tk,dh), for two sets of sizes that all differ."""
    rng = np.random.default_rng(9)
    return [
        tuple(rng.standard_normal((B, H, T, dh)) for T in (Tq, Tq, Tq + more_keys, Tq + more_keys))
        for B, H, Tq, dh in ((3, 2, 5, 6), (2, 3, 7, 4))
    ]
