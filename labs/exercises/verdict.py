"""What every check of an exercise returns, and how it judges a reader's function without being thrown."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np


class Verdict(NamedTuple):
    """Whether an answer is right, and what to tell the reader."""

    passed: bool
    message: str

    def __bool__(self) -> bool:
        return self.passed

    def __repr__(self) -> str:
        return ("Right. " if self.passed else "Not yet. ") + self.message


class AnswerError(Exception):
    """An answer that cannot be compared; its text is for the reader."""


def answer(function: Callable, *arguments: np.ndarray | int) -> np.ndarray:
    """Call a reader's function on copies of the arguments and return its array.

    Raises: AnswerError if it fails, does not return an array, or writes into an argument.
    """
    if not callable(function):
        raise AnswerError(
            f"Give the function itself, for example check(my_split); got {type(function).__name__}."
        )
    copies = [argument.copy() if isinstance(argument, np.ndarray) else argument for argument in arguments]
    try:
        result = function(*copies)
    except Exception as error:
        raise AnswerError(f"Your function stopped with {type(error).__name__}: {error}") from error
    for copy, argument in zip(copies, arguments, strict=True):
        if isinstance(argument, np.ndarray) and not np.array_equal(copy, argument):
            raise AnswerError("Your function writes into its argument: the caller's array has changed.")
    if result is None:
        raise AnswerError("Your function returns None: it still needs its line.")
    if not isinstance(result, np.ndarray):
        raise AnswerError(f"Your function should return a NumPy array; it returns {type(result).__name__}.")
    return result


def judge(
    function: Callable,
    arguments: Sequence[np.ndarray | int],
    *,
    given: str,
    expected: np.ndarray,
    traps: Mapping[str, np.ndarray],
    hint: str,
    praise: str,
    rtol: float = 0.0,
) -> Verdict:
    """Judge a reader's function by what it returns for these arguments.

    Args:
        function: the reader's.
        arguments: what it is called with; it gets copies.
        given: the arguments in words, for the message: "x of shape (3, 7, 24) and 4 heads".
        expected: the right answer.
        traps: a hint for each typical wrong answer.
        hint: for every other wrong answer of the right shape.
        praise: what to say of the right one.
        rtol: how far an entry may be off, relative to the largest of expected; 0 where numbers only move.
    """
    try:
        found = answer(function, *arguments)
    except AnswerError as reason:
        return Verdict(False, str(reason))
    if found.shape != expected.shape:
        shapes = f"the result should have the shape {expected.shape}; got {found.shape}"
        return Verdict(False, f"For {given} {shapes}.")

    def equals(target: np.ndarray) -> bool:
        if rtol == 0:
            return np.array_equal(found, target)
        return np.allclose(found, target, rtol=0, atol=rtol * np.abs(target).max())

    if equals(expected):
        return Verdict(True, praise)
    known = next(
        (text for text, wrong in traps.items() if wrong.shape == found.shape and equals(wrong)), hint
    )
    return Verdict(False, f"The shape is right and the numbers are not. {known}")
