"""Checks for the exercises of chapter 4: RMSNorm and LayerNorm, on sizes that are all different."""

from collections.abc import Callable

import numpy as np

from labs.exercises.language import say
from labs.exercises.verdict import RTOL, Case, Verdict, judge
from labs.llm.ops import rms_norm


def check_rms_norm(norm: Callable[[np.ndarray, np.ndarray, float], np.ndarray]) -> Verdict:
    """Judge norm(x, gain, eps): x (B,T,D) divided by its root mean square along D, times gain (D,)."""
    return judge(
        norm,
        *(_rms_norm_case(x, gain, eps) for x, gain, _, eps in _examples()),
        call="check_rms_norm(my_rms_norm)",
        praise=say("Each position is divided by its own root mean square."),
        rtol=RTOL,
    )


def _rms_norm_case(x: np.ndarray, gain: np.ndarray, eps: float) -> Case:
    root = np.sqrt(_mean_square(x))
    return Case(
        (x, gain, eps),
        given=say("x of shape {x}, gain of shape {gain} and eps={eps}", x=x.shape, gain=gain.shape, eps=eps),
        expected=rms_norm(x, gain, eps=eps)[0],
        traps={
            say("The mean runs along the positions: it should run along the features, the last axis."): (
                gain * x / np.sqrt(_mean_square(x, axis=1) + eps)
            ),
            say("The mean runs along the positions, and eps stands outside the root."): (
                gain * x / (np.sqrt(_mean_square(x, axis=1)) + eps)
            ),
            say("The mean runs along the batch: it should run along the features, the last axis."): (
                gain * x / np.sqrt(_mean_square(x, axis=0) + eps)
            ),
            say("The mean runs along all axes at once: each position has its own."): (
                gain * x / np.sqrt(_mean_square(x, axis=None) + eps)
            ),
            say("Epsilon is missing."): gain * x / root,
            say("Epsilon belongs under the root: it is added to the mean square."): gain * x / (root + eps),
            say("The gain is missing."): x / np.sqrt(_mean_square(x) + eps),
            say("This divides by the mean square: its root is missing."): gain * x / (_mean_square(x) + eps),
            say("Take the mean of the squares, not their sum."): (
                gain * x / np.sqrt(x.shape[-1] * _mean_square(x) + eps)
            ),
            say("The mean is subtracted: that is LayerNorm. RMSNorm subtracts nothing."): _layer_norm(
                x, gain, 0.0, eps
            ),
        },
        hint=say("For one position: gain * x / sqrt(mean(x ** 2) + eps), with the mean over its features."),
    )


def check_layer_norm(norm: Callable[[np.ndarray, np.ndarray, np.ndarray, float], np.ndarray]) -> Verdict:
    """Judge norm(x, gain, shift, eps): like RMSNorm of x less its mean along D, plus shift (D,)."""
    return judge(
        norm,
        *(_layer_norm_case(*example) for example in _examples()),
        call="check_layer_norm(my_layer_norm)",
        praise=say("The mean is gone, the scale is one, and gain and shift come last."),
        rtol=RTOL,
    )


def _layer_norm_case(x: np.ndarray, gain: np.ndarray, shift: np.ndarray, eps: float) -> Case:
    centred = x - x.mean(axis=-1, keepdims=True)
    one_less = x.var(axis=-1, ddof=1, keepdims=True)
    return Case(
        (x, gain, shift, eps),
        given=say(
            "x of shape {x}, gain and shift of shape {gain} and eps={eps}",
            x=x.shape,
            gain=gain.shape,
            eps=eps,
        ),
        expected=_layer_norm(x, gain, shift, eps),
        traps={
            say("Nothing is subtracted: this is RMSNorm with a shift."): rms_norm(x, gain, eps=eps)[0]
            + shift,
            say("Divide by the root mean square of what is left after the mean is subtracted."): (
                gain * centred / np.sqrt(_mean_square(x) + eps) + shift
            ),
            say("The shift is missing."): _layer_norm(x, gain, 0.0, eps),
            say("The gain is missing."): _layer_norm(x, 1.0, shift, eps),
            say("The gain multiplies before the shift is added, not after."): (
                gain * _layer_norm(x, 1.0, shift, eps)
            ),
            say("The mean squares are divided by D - 1: LayerNorm divides by D."): (
                gain * centred / np.sqrt(one_less + eps) + shift
            ),
            say("Epsilon belongs under the root: it is added to the mean square."): (
                gain * centred / (np.sqrt(_mean_square(centred)) + eps) + shift
            ),
        },
        hint=say("Subtract each position's mean, normalise what is left, then gain and shift."),
    )


def _examples() -> list[tuple[np.ndarray, np.ndarray, np.ndarray, float]]:
    """x (B,T,D) with a mean that is not zero, gain and shift (D,), and eps, for two sets of sizes.

    The sizes all differ. eps is usually 1e-5; here it is so large that its place shows.
    """
    rng = np.random.default_rng(4)
    return [
        (rng.normal(0.5, size=(B, T, D)), rng.uniform(0.7, 1.3, size=D), rng.normal(size=D), eps)
        for (B, T, D), eps in (((3, 7, 6), 0.25), ((2, 5, 9), 0.5))
    ]


def _mean_square(x: np.ndarray, axis: int | None = -1) -> np.ndarray:
    return np.mean(x**2, axis=axis, keepdims=True)


def _layer_norm(x: np.ndarray, gain: np.ndarray | float, shift: np.ndarray | float, eps: float) -> np.ndarray:
    centred = x - x.mean(axis=-1, keepdims=True)
    return gain * centred / np.sqrt(_mean_square(centred) + eps) + shift
