"""Checks for the exercises of chapter 4: RMSNorm and LayerNorm, on sizes that are all different."""

from collections.abc import Callable

import numpy as np

from labs.exercises.verdict import Verdict, judge
from labs.llm.ops import rms_norm

#: How far an entry may be off, relative to the largest: room for another order of the same arithmetic.
RTOL = 1e-9

#: So large that its place shows: usual ones are 1e-5.
EPS = 0.25


def check_rms_norm(norm: Callable[[np.ndarray, np.ndarray, float], np.ndarray]) -> Verdict:
    """Judge norm(x, gain, eps): x (B,T,D) divided by its root mean square along D, times gain (D,)."""
    x, gain, _ = _arrays()
    root = np.sqrt(_mean_square(x))
    right = rms_norm(x, gain, eps=EPS)[0]
    return judge(
        norm,
        (x, gain, EPS),
        given="x of shape (3, 7, 6), gain of shape (6,) and eps=0.25",
        expected=right,
        traps={
            "The mean runs along the positions: it should run along the features, the last axis.": (
                gain * x / np.sqrt(_mean_square(x, axis=1) + EPS)
            ),
            "The mean runs along the positions, and eps stands outside the root.": (
                gain * x / (np.sqrt(_mean_square(x, axis=1)) + EPS)
            ),
            "The mean runs along the batch: it should run along the features, the last axis.": (
                gain * x / np.sqrt(_mean_square(x, axis=0) + EPS)
            ),
            "The mean runs along all axes at once: each position has its own.": (
                gain * x / np.sqrt(_mean_square(x, axis=None) + EPS)
            ),
            "Epsilon is missing.": gain * x / root,
            "Epsilon belongs under the root: it is added to the mean square.": gain * x / (root + EPS),
            "The gain is missing.": x / np.sqrt(_mean_square(x) + EPS),
            "This divides by the mean square: its root is missing.": gain * x / (_mean_square(x) + EPS),
            "Take the mean of the squares, not their sum.": (
                gain * x / np.sqrt(x.shape[-1] * _mean_square(x) + EPS)
            ),
            "The mean is subtracted: that is LayerNorm. RMSNorm subtracts nothing.": _layer_norm(
                x, gain, 0.0
            ),
        },
        hint="For one position: gain * x / sqrt(mean(x ** 2) + eps), with the mean over its features.",
        praise="Each position is divided by its own root mean square.",
        rtol=RTOL,
    )


def check_layer_norm(norm: Callable[[np.ndarray, np.ndarray, np.ndarray, float], np.ndarray]) -> Verdict:
    """Judge norm(x, gain, shift, eps): like RMSNorm of x less its mean along D, plus shift (D,)."""
    x, gain, shift = _arrays()
    centred = x - x.mean(axis=-1, keepdims=True)
    one_less = x.var(axis=-1, ddof=1, keepdims=True)
    return judge(
        norm,
        (x, gain, shift, EPS),
        given="x of shape (3, 7, 6), gain and shift of shape (6,) and eps=0.25",
        expected=_layer_norm(x, gain, shift),
        traps={
            "Nothing is subtracted: this is RMSNorm with a shift.": rms_norm(x, gain, eps=EPS)[0] + shift,
            "Divide by the root mean square of what is left after the mean is subtracted.": (
                gain * centred / np.sqrt(_mean_square(x) + EPS) + shift
            ),
            "The shift is missing.": _layer_norm(x, gain, 0.0),
            "The gain is missing.": _layer_norm(x, 1.0, shift),
            "The gain multiplies before the shift is added, not after.": gain * _layer_norm(x, 1.0, shift),
            "The mean squares are divided by D - 1: LayerNorm divides by D.": (
                gain * centred / np.sqrt(one_less + EPS) + shift
            ),
            "Epsilon belongs under the root: it is added to the mean square.": (
                gain * centred / (np.sqrt(_mean_square(centred)) + EPS) + shift
            ),
        },
        hint="Subtract each position's mean, normalise what is left, then gain and shift.",
        praise="The mean is gone, the scale is one, and gain and shift come last.",
        rtol=RTOL,
    )


def _arrays() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x (B,T,D) with a mean that is not zero, gain and shift (D,): B=3, T=7, D=6."""
    rng = np.random.default_rng(4)
    return rng.normal(0.5, size=(3, 7, 6)), rng.uniform(0.7, 1.3, size=6), rng.normal(size=6)


def _mean_square(x: np.ndarray, axis: int | None = -1) -> np.ndarray:
    return np.mean(x**2, axis=axis, keepdims=True)


def _layer_norm(x: np.ndarray, gain: np.ndarray | float, shift: np.ndarray | float) -> np.ndarray:
    centred = x - x.mean(axis=-1, keepdims=True)
    return gain * centred / np.sqrt(_mean_square(centred) + EPS) + shift
