"""Checks for the exercises of chapter 6: SwiGLU, the slope of SiLU, and both up-projections in one matrix."""

from collections.abc import Callable

import numpy as np

from labs.exercises.verdict import Verdict, judge
from labs.llm.model import swiglu
from labs.llm.ops import silu, silu_backward

#: How far an entry may be off, relative to the largest: room for another order of the same arithmetic.
RTOL = 1e-9

#: Room for a finite difference instead of the formula.
SLOPE_RTOL = 1e-6


def check_swiglu(function: Callable[..., np.ndarray]) -> Verdict:
    """Judge function(n, w1, w3, w2): n (B,T,D) widened, gated and narrowed to (B,T,D)."""
    n, w1, w3, w2 = _arrays()
    u, up = n @ w1, n @ w3
    return judge(
        function,
        (n, w1, w3, w2),
        given="n of shape (3, 7, 6), w1 and w3 of shape (6, 10) and w2 of shape (10, 6)",
        expected=swiglu(n, w1, w3, w2)[0],
        traps={
            "The gate comes from w1, not from w3; and SiLU is u times its sigmoid.": (_sigmoid(up) * u) @ w2,
            "SiLU belongs on n @ w1: the roles of w1 and w3 are swapped.": (u * silu(up)) @ w2,
            "SiLU is u times its sigmoid: the factor u is missing.": (_sigmoid(u) * up) @ w2,
            "SiLU acts on n @ w1 alone, before the product with n @ w3.": silu(u * up) @ w2,
            "The gate multiplies n @ w3; it is not added to it.": (silu(u) + up) @ w2,
            "This uses ReLU as the gate.": (np.maximum(u, 0) * up) @ w2,
            "The gate is missing: this is a plain product.": (u * up) @ w2,
            "This is one layer with SiLU: nothing is multiplied by n @ w3.": silu(u) @ w2,
        },
        hint="(silu(n @ w1) * (n @ w3)) @ w2, where silu(u) = u / (1 + exp(-u)).",
        praise="Widened twice, gated, and narrowed again.",
        rtol=RTOL,
    )


def check_silu_slope(slope: Callable[[np.ndarray], np.ndarray]) -> Verdict:
    """Judge a function that gives the slope of SiLU at every entry of u."""
    u = np.linspace(-5.0, 5.0, 41).reshape(1, 41) + 0.01
    s = _sigmoid(u)
    return judge(
        slope,
        (u,),
        given="u of shape (1, 41)",
        expected=silu_backward(np.ones_like(u), u),
        traps={
            "This is SiLU itself, not its slope.": silu(u),
            "This is the slope of the sigmoid: the product rule gives one more term.": s * (1 - s),
            "The product rule has two terms: the sigmoid itself is missing.": u * s * (1 - s),
            "The product rule has two terms: this is the first alone.": s,
            "The slope of the sigmoid is s * (1 - s): the factor 1 - s is missing.": s + u * s,
            "This is the slope of ReLU.": (u > 0).astype(float),
        },
        hint="s + u * s * (1 - s) with s = 1 / (1 + exp(-u)); at 0 it is one half.",
        praise="The slope is right everywhere, also where SiLU falls.",
        rtol=SLOPE_RTOL,
    )


def check_fused(function: Callable[..., np.ndarray]) -> Verdict:
    """Judge function(n, w13, w2), where w13 (D,2F) holds w1 and w3 side by side."""
    n, w1, w3, w2 = _arrays()
    w13 = np.concatenate([w1, w3], axis=1)
    both = n @ w13
    u, up = both[..., 0::2], both[..., 1::2]
    return judge(
        function,
        (n, w13, w2),
        given="n of shape (3, 7, 6), w13 of shape (6, 20) and w2 of shape (10, 6)",
        expected=swiglu(n, w1, w3, w2)[0],
        traps={
            "The halves are swapped: the first F columns are w1, the gate.": swiglu(n, w3, w1, w2)[0],
            "w13 is cut into every other column: cut it into two halves.": (silu(u) * up) @ w2,
        },
        hint="Cut n @ w13 into its first and last F columns; SiLU acts on the first.",
        praise="One product, cut in two halves.",
        rtol=RTOL,
    )


def _arrays() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """n (B,T,D), w1 and w3 (D,F), w2 (F,D): B=3, T=7, D=6, F=10."""
    rng = np.random.default_rng(6)
    w1, w3 = rng.normal(size=(2, 6, 10))
    return rng.normal(size=(3, 7, 6)), w1, w3, rng.normal(size=(10, 6))


def _sigmoid(u: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-u))
