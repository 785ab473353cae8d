"""Checks for the exercises of chapter 5: the table of angles, the rotation, and the half-split layout."""

from collections.abc import Callable
from math import prod

import numpy as np

from labs.exercises.language import say
from labs.exercises.verdict import RTOL, Case, Verdict, judge
from labs.llm.model import rope


def check_angles(angles: Callable[[int, int, float], np.ndarray]) -> Verdict:
    """Judge a function that gives the angle of each position and pair, (T,dh/2), in radians."""
    return judge(
        angles,
        _angles_case(T=7, dh=6, base=50.0),
        _angles_case(T=9, dh=10, base=300.0),
        call="check_angles(my_angles)",
        praise=say("Every position and pair has its angle."),
        rtol=RTOL,
    )


def _angles_case(T: int, dh: int, base: float) -> Case:
    t, r = np.arange(T)[:, np.newaxis], np.arange(dh // 2)
    expected = t * base ** (-2 * r / dh)
    return Case(
        (T, dh, base),
        given=say("T={T}, dh={dh} and base={base:g}", T=T, dh=dh, base=base),
        expected=expected,
        traps={
            say("Each pair slows down by base ** (-2 / dh): the 2 is missing."): t * base ** (-r / dh),
            say("The exponent needs its minus sign: later pairs rotate more slowly."): t
            * base ** (2 * r / dh),
            say("The speeds should come from the base that is given, not always from 10000."): (
                t * 10000.0 ** (-2 * r / dh)
            ),
            say("Count positions from 0: the first row should be all zeros."): (t + 1)
            * base ** (-2 * r / dh),
            say("These are degrees; give radians."): np.degrees(expected),
        },
        hint=say("Row 1 should be base ** (-2 * r / dh), and row t should be t times row 1."),
    )


def check_rotate(rotate: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Verdict:
    """Judge a function that turns the pairs of x (...,T,dh) by angles (T,dh/2)."""
    rng = np.random.default_rng(5)
    return judge(
        rotate,
        _rotate_case(rng.normal(size=(2, 3, 5, 6))),
        _rotate_case(rng.normal(size=(4, 7, 8))),
        call="check_rotate(my_rotate)",
        praise=say("Every pair is rotated by its angle, and nothing is overwritten too early."),
        rtol=RTOL,
    )


def _rotate_case(x: np.ndarray) -> Case:
    T, dh = x.shape[-2:]
    positions, frequencies = np.arange(1.0, T + 1), 10000.0 ** (-np.arange(0, dh, 2) / dh)
    angles = np.outer(positions, frequencies)
    even, odd, cos, sin = x[..., 0::2], x[..., 1::2], np.cos(angles), np.sin(angles)
    rotated_first = even * cos - odd * sin
    halves = _halves(rope(_neighbours(x), positions))
    return Case(
        (x, angles),
        given=say("x of shape {x} and angles of shape {angles}", x=x.shape, angles=angles.shape),
        expected=rope(x, positions),
        traps={
            say("The second line reads numbers that the first has already overwritten: keep the old ones."): (
                _pairs(rotated_first, rotated_first * sin + odd * cos)
            ),
            say("The pairs rotate the wrong way: look at the signs of the two sines."): (
                rope(x, positions, inverse=True)
            ),
            say("Both sines of a pair have the same sign: one of them needs a minus."): (
                _pairs(even * cos + odd * sin, even * sin + odd * cos)
            ),
            say("A pair is two neighbours, 2r and 2r + 1; this pairs the halves, r and r + dh/2."): halves,
        },
        hint=say("For each pair: first * cos - second * sin, then first * sin + second * cos."),
    )


def check_halves(to_halves: Callable[[np.ndarray], np.ndarray]) -> Verdict:
    """Judge a function that reorders the last axis from pairs (2r, 2r+1) to pairs (r, r + dh/2)."""
    return judge(
        to_halves,
        _halves_case(3, 5, 8),  # for dh=4 the order would be its own inverse
        _halves_case(7, 10),
        call="check_halves(my_halves)",
        praise=say("Each pair is now half the width apart."),
    )


def _halves_case(*shape: int) -> Case:
    x = np.arange(prod(shape)).reshape(shape) + 0.1  # rounding to integers or to float32 shows
    order = np.arange(shape[-1])
    return Case(
        (x,),
        given=say("x of shape {shape}", shape=shape),
        expected=_halves(x),
        traps={
            say("This is the way back, from halves to neighbours."): _neighbours(x),
            say("Nothing has moved yet."): x,
            say("The first numbers of the pairs come first, then the second ones."): (
                np.concatenate([x[..., 1::2], x[..., 0::2]], axis=-1)
            ),
        },
        hint=say(
            "Of 0 to {last} it should make {order}.",
            last=shape[-1] - 1,
            order=", ".join(map(str, _halves(order))),
        ),
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
