"""What every check of an exercise returns, and how it calls a reader's function without being thrown."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class Verdict(NamedTuple):
    """Whether an answer is right, and what to tell the reader."""

    passed: bool
    message: str

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
