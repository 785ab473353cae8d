"""Checks for the exercises of chapter 6: SwiGLU, the slope of SiLU, and both up-projections in one matrix."""

from collections.abc import Callable

import numpy as np

from labs.exercises.language import say
from labs.exercises.verdict import RTOL, Case, Verdict, judge
from labs.llm.model import swiglu
from labs.llm.ops import sigmoid, silu, silu_backward

#: Room for a finite difference instead of the formula: one-sided, with h = 1e-5, it is off by 2.3e-6.
SLOPE_RTOL = 5e-6


def check_swiglu(function: Callable[..., np.ndarray]) -> Verdict:
    """Judge function(n, w1, w3, w2): n (B,T,D) widened, gated and narrowed to (B,T,D)."""
    return judge(
        function,
        *(_swiglu_case(*example) for example in _examples()),
        call="check_swiglu(my_swiglu)",
        praise=say("Widened twice, gated, and narrowed again."),
        rtol=RTOL,
    )


def _swiglu_case(n: np.ndarray, w1: np.ndarray, w3: np.ndarray, w2: np.ndarray) -> Case:
    u, up = n @ w1, n @ w3
    return Case(
        (n, w1, w3, w2),
        given=say(
            "n of shape {n}, w1 and w3 of shape {w1} and w2 of shape {w2}",
            n=n.shape,
            w1=w1.shape,
            w2=w2.shape,
        ),
        expected=swiglu(n, w1, w3, w2)[0],
        traps={
            say("The gate comes from w1, not from w3; and SiLU is u times its sigmoid."): (sigmoid(up) * u)
            @ w2,
            say("SiLU belongs on n @ w1: the roles of w1 and w3 are swapped."): (u * silu(up)) @ w2,
            say("SiLU is u times its sigmoid: the factor u is missing."): (sigmoid(u) * up) @ w2,
            say("SiLU acts on n @ w1 alone, before the product with n @ w3."): silu(u * up) @ w2,
            say("The gate multiplies n @ w3; it is not added to it."): (silu(u) + up) @ w2,
            say("This uses ReLU as the gate."): (np.maximum(u, 0) * up) @ w2,
            say("The gate is missing: this is a plain product."): (u * up) @ w2,
            say("This is one layer with SiLU: nothing is multiplied by n @ w3."): silu(u) @ w2,
        },
        hint=say("(silu(n @ w1) * (n @ w3)) @ w2, where silu(u) = u / (1 + exp(-u))."),
    )


def check_silu_slope(slope: Callable[[np.ndarray], np.ndarray]) -> Verdict:
    """Judge a function that gives the slope of SiLU at every entry of u, whatever u's shape."""
    return judge(
        slope,
        _slope_case(np.linspace(-5.0, 5.0, 41).reshape(1, 41) + 0.01),
        _slope_case(np.linspace(-7.0, 9.0, 30).reshape(2, 5, 3)),
        call="check_silu_slope(my_silu_slope)",
        praise=say("The slope is right everywhere, even where SiLU falls."),
        rtol=SLOPE_RTOL,
    )


def _slope_case(u: np.ndarray) -> Case:
    s = sigmoid(u)
    return Case(
        (u,),
        given=say("u of shape {u}", u=u.shape),
        expected=silu_backward(np.ones_like(u), u),
        traps={
            say("This is SiLU itself, not its slope."): silu(u),
            say("This is the slope of the sigmoid: the product rule gives one more term."): s * (1 - s),
            say("The product rule has two terms: the sigmoid itself is missing."): u * s * (1 - s),
            say("The product rule has two terms: this is the first alone."): s,
            say("The slope of the sigmoid is s * (1 - s): the factor 1 - s is missing."): s + u * s,
            say("This is the slope of ReLU."): (u > 0).astype(float),
        },
        hint=say(
            "s + u * s * (1 - s) with s = 1 / (1 + exp(-u)), or a finite difference with h = 1e-5; "
            "at 0 it is one half."
        ),
    )


def check_fused(function: Callable[..., np.ndarray]) -> Verdict:
    """Judge function(n, w13, w2), where w13 (D,2F) holds w1 and w3 side by side."""
    return judge(
        function,
        *(_fused_case(*example) for example in _examples()),
        call="check_fused(my_fused)",
        praise=say("One product, cut into two halves."),
        rtol=RTOL,
    )


def _fused_case(n: np.ndarray, w1: np.ndarray, w3: np.ndarray, w2: np.ndarray) -> Case:
    w13 = np.concatenate([w1, w3], axis=1)
    both = n @ w13
    u, up = both[..., 0::2], both[..., 1::2]
    return Case(
        (n, w13, w2),
        given=say(
            "n of shape {n}, w13 of shape {w13} and w2 of shape {w2}", n=n.shape, w13=w13.shape, w2=w2.shape
        ),
        expected=swiglu(n, w1, w3, w2)[0],
        traps={
            say("The halves are swapped: the first F columns are w1, the gate."): swiglu(n, w3, w1, w2)[0],
            say("w13 is split into alternate columns: split it into two halves."): (silu(u) * up) @ w2,
        },
        hint=say("Cut n @ w13 into its first and last F columns; SiLU acts on the first."),
    )


def _examples() -> list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """n (B,T,D), w1 and w3 (D,F), w2 (F,D), for two sets of sizes that all differ."""
    rng = np.random.default_rng(6)
    return [
        (
            rng.normal(size=(B, T, D)),
            rng.normal(size=(D, F)),
            rng.normal(size=(D, F)),
            rng.normal(size=(F, D)),
        )
        for B, T, D, F in ((3, 7, 6, 10), (2, 5, 9, 8))
    ]
