"""How the exercises by pencil are judged: numbers that a reader typed, line by line, to two decimals."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from labs.exercises.language import say
from labs.exercises.verdict import Verdict, shown

#: Numbers rounded to two decimals are right.
ROUNDING = 0.0051


class Line(NamedTuple):
    """One line of an answer: what the reader typed, what is right, and a hint for each typical mistake."""

    given: float | Sequence[float] | None  # None: not yet filled in
    expected: np.ndarray | float
    traps: Mapping[str, np.ndarray | Sequence[float] | float] = {}


def judge_numbers(lines: Mapping[str, Line], praise: str) -> Verdict:
    """Judge numbers by name, in the order in which the reader works them out.

    Returns: passed only if all lines are right; the message names the first that is not.
    """
    for name, line in lines.items():
        problem = _problem(line)
        if problem:
            return Verdict(False, f"{name}: {problem}")
    return Verdict(True, praise)


def _problem(line: Line) -> str:
    """What is wrong with one line, or nothing."""
    expected = np.asarray(line.expected, dtype=float)
    if line.given is None:
        return say("still open; {expected} is expected.", expected=_count(expected))
    given = _typed(line.given)
    if given is None:
        return say("numbers are expected, got {given}.", given=shown(line.given))
    if given.shape != expected.shape:
        return say("{expected} is expected, got {given}.", expected=_count(expected), given=_count(given))
    if _close(given, expected):
        return ""
    hint = next((text for text, wrong in line.traps.items() if _close(given, np.asarray(wrong))), "")
    return f"{say('not these numbers.')} {hint}".rstrip()


def _typed(given: object) -> np.ndarray | None:
    """What a reader typed, as floats; None for anything but real numbers that a float can hold.

    Fractions and decimals are numbers. Text, dates, truth values, complex numbers and None in a list are not,
    although NumPy would make floats of them; nor is a masked array, whose hidden entries would count.
    """
    if isinstance(given, np.ma.MaskedArray):
        return None
    try:
        array = np.asarray(given)
        if array.dtype.kind not in "iufO" or any(entry is None for entry in array.flat):
            return None
        with np.errstate(all="ignore"):  # an extended float may be too large: infinity is a wrong number
            return array.astype(float)
    except Exception:  # ragged lists, too large integers, and whatever an object does when it is asked
        return None


def _close(given: np.ndarray, target: np.ndarray) -> bool:
    return given.shape == target.shape and np.allclose(given, target, rtol=0, atol=ROUNDING)


def _count(array: np.ndarray) -> str:
    """The size of an answer in words."""
    if array.ndim == 0:
        return say("one number")
    if array.shape == (1,):
        return say("a list of 1 number")
    if array.ndim == 1:
        return say("a list of {count} numbers", count=array.size)
    return say("a table of {sizes} numbers", sizes=" × ".join(map(str, array.shape)))
