"""Checks for the exercises of chapter 5: the table of angles, the rotation, and the half-split layout."""

from collections.abc import Callable

import numpy as np

from labs.exercises.verdict import Verdict, judge
from labs.llm.model import rope

#: How far an entry may be off, relative to the largest: room for another order of the same arithmetic.
RTOL = 1e-9


def check_angles(angles: Callable[[int, int, float], np.ndarray]) -> Verdict:
    """Judge a function that gives the angle of each position and pair, (T,dh/2), in radians."""
    T, dh, base = 7, 6, 50.0
    t, r = np.arange(T)[:, np.newaxis], np.arange(dh // 2)
    expected = t * base ** (-2 * r / dh)
    return judge(
        angles,
        (T, dh, base),
        given="T=7, dh=6 and base=50",
        expected=expected,
        traps={
            "Each pair slows down by base ** (-2 / dh): the 2 is missing.": t * base ** (-r / dh),
            "The exponent needs its minus sign: later pairs turn more slowly.": t * base ** (2 * r / dh),
            "The speeds should come from the base that is given, not always from 10000.": (
                t * 10000.0 ** (-2 * r / dh)
            ),
            "Count positions from 0: the first row should be all zeros.": (t + 1) * base ** (-2 * r / dh),
            "These are degrees; give radians.": np.degrees(expected),
        },
        hint="Row 1 should be base ** (-2 * r / dh), and row t should be t times row 1.",
        praise="Every position and pair has its angle.",
        rtol=RTOL,
    )


def check_rotate(rotate: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Verdict:
    """Judge a function that turns the pairs of x (...,T,dh) by angles (T,dh/2)."""
    positions, frequencies = np.arange(1.0, 6.0), 10000.0 ** (-np.arange(0, 6, 2) / 6)
    angles = np.outer(positions, frequencies)  # T=5, dh=6
    x = np.random.default_rng(5).normal(size=(2, 3, 5, 6))  # B=2, H=3
    even, odd, cos, sin = x[..., 0::2], x[..., 1::2], np.cos(angles), np.sin(angles)
    turned_first = even * cos - odd * sin
    halves = _halves(rope(_neighbours(x), positions))
    return judge(
        rotate,
        (x, angles),
        given="x of shape (2, 3, 5, 6) and angles of shape (5, 3)",
        expected=rope(x, positions),
        traps={
            "The second line reads numbers that the first has already overwritten: keep the old ones.": (
                _pairs(turned_first, turned_first * sin + odd * cos)
            ),
            "The pairs turn the wrong way round: look at the signs of the two sines.": (
                rope(x, positions, inverse=True)
            ),
            "Both numbers of a pair have the same sign at the sine: one of them needs a minus.": (
                _pairs(even * cos + odd * sin, even * sin + odd * cos)
            ),
            "A pair is two neighbours, 2r and 2r + 1; this pairs the halves, r and r + dh/2.": halves,
        },
        hint="For each pair: first * cos - second * sin, then first * sin + second * cos.",
        praise="Every pair turns by its angle, and nothing is overwritten too early.",
        rtol=RTOL,
    )


def check_halves(to_halves: Callable[[np.ndarray], np.ndarray]) -> Verdict:
    """Judge a function that reorders the last axis from pairs (2r, 2r+1) to pairs (r, r + dh/2)."""
    x = np.arange(3 * 5 * 8.0).reshape(3, 5, 8)  # dh=8: for dh=4 the order would be its own inverse
    return judge(
        to_halves,
        (x,),
        given="x of shape (3, 5, 8)",
        expected=_halves(x),
        traps={
            "This is the way back, from halves to neighbours.": _neighbours(x),
            "Nothing has moved yet.": x,
            "The first numbers of the pairs come first, then the second ones.": (
                np.concatenate([x[..., 1::2], x[..., 0::2]], axis=-1)
            ),
        },
        hint="Of 0 to 7 it should make 0, 2, 4, 6, 1, 3, 5, 7.",
        praise="Each pair is now half the width apart.",
    )


def _pairs(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The first and second numbers of all pairs, (..., dh/2) each, as neighbours, (..., dh)."""
    return np.stack([first, second], axis=-1).reshape(*first.shape[:-1], -1)


def _halves(x: np.ndarray) -> np.ndarray:
    """From neighbours to halves."""
    return np.concatenate([x[..., 0::2], x[..., 1::2]], axis=-1)


def _neighbours(x: np.ndarray) -> np.ndarray:
    """From halves to neighbours."""
    half = x.shape[-1] // 2
    return _pairs(x[..., :half], x[..., half:])
