"""What every check of an exercise returns, and how it judges a reader's function without being thrown."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import NamedTuple

import numpy as np

from labs.exercises.language import say
from labs.llm.checks import FAILED, PASSED, Finding

#: How far a right entry may be off, relative to the largest: what another order of additions leaves.
RTOL = 1e-9

#: An entry this near, relative to the largest, has the right formula behind it and was rounded on the way:
#: float32 holds about 7 digits.
ROUNDED = 1e-5

#: Longer values are cut in messages.
MOST_CHARACTERS = 60

#: Longer texts of a reader's own error are cut in messages.
LONGEST_ERROR = 300


class Verdict(Finding):
    """Whether an answer is right, and what to tell the reader: a Finding that speaks to a learner."""

    def __init__(self, passed: bool, message: str):
        super().__init__(PASSED if passed else FAILED, message)

    def __repr__(self) -> str:
        return f"{say('Right.') if self.passed else say('Not yet.')} {self.message}"


class AnswerError(Exception):
    """An answer that cannot be compared; its text is for the reader."""


class Case(NamedTuple):
    """One call of a reader's function, and what should come back."""

    arguments: tuple[object, ...]  # the function gets copies
    given: str  # the arguments in words, for the message: "x of shape (3, 7, 24) and 4 heads"
    expected: np.ndarray  # if boolean, the answer has to be so too
    hint: str  # for a wrong answer of the right shape
    traps: Mapping[str, np.ndarray] = {}  # a better hint for each typical wrong answer


def answer(function: Callable, *arguments: object) -> np.ndarray:
    """Call a reader's function on copies of the arguments and return its array.

    Args:
        function: the reader's.
        arguments: arrays, numbers, functions, and dicts, lists or tuples of them.

    Returns: what the function returns: real numbers or booleans.
    Raises: AnswerError if it stops, returns anything but a plain array of such, or changes an argument.
    """
    copies = deepcopy(arguments)
    try:
        with np.errstate(all="ignore"):  # what overflows gets a hint, not a warning
            result = function(*copies)
    except (Exception, SystemExit) as error:
        raise AnswerError(say("Your function stopped with {error}", error=_error_text(error))) from error
    for copy, argument in zip(copies, arguments, strict=True):
        if not _same(copy, argument):
            kind = "array" if isinstance(argument, np.ndarray) else type(argument).__name__
            raise AnswerError(
                say("Your function writes into its argument: the caller's {kind} has changed.", kind=kind)
            )
    if result is None:
        raise AnswerError(say("Your function returns None: it still needs its line."))
    if type(result) is not np.ndarray:  # a masked array or a matrix compares by rules of its own
        raise AnswerError(
            say(
                "Your function should return a plain NumPy array; it returns {kind}.",
                kind=type(result).__name__,
            )
        )
    if result.dtype.kind not in "biuf":
        raise AnswerError(
            say(
                "Your function should return real numbers; its array has the dtype {dtype}.",
                dtype=result.dtype,
            )
        )
    return result


def judge(function: Callable, *cases: Case, call: str, praise: str, rtol: float = 0.0) -> Verdict:
    """Judge a reader's function by what it returns, case by case.

    Args:
        function: the reader's.
        cases: at least two, of different sizes, if the praise is to hold for any size.
        call: how the check is called, for the message: "check_split(my_split)".
        praise: what to say of a function that is right in all cases.
        rtol: how far an entry may be off, relative to the largest of expected; 0 where numbers only move.

    Returns: passed only if every case is right; the message is about the first that is not.
    """
    if not callable(function):
        return Verdict(
            False,
            say("Give the function itself: {call}; got {kind}.", call=call, kind=type(function).__name__),
        )
    for case in cases:
        problem = _problem(function, case, rtol)
        if problem and case is not cases[0]:
            but = say(
                "It is right for {first}, but not for {second}.", first=cases[0].given, second=case.given
            )
            problem = f"{but} {problem}"
        if problem:
            return Verdict(False, problem)
    return Verdict(True, praise)


def shown(value: object) -> str:
    """Return a reader's value for a message: on one line, shortened; its type if it cannot be written."""
    try:
        text = " ".join(repr(value).split())
    except Exception:
        return say("something of type {kind}", kind=type(value).__name__)
    return text if len(text) <= MOST_CHARACTERS else text[:MOST_CHARACTERS] + "..."


def _problem(function: Callable, case: Case, rtol: float) -> str:
    """What is wrong in one case, or nothing."""
    try:
        found = answer(function, *case.arguments)
    except AnswerError as reason:
        return str(reason)
    expected = case.expected
    if found.shape != expected.shape:
        return say(
            "For {given} the result should have the shape {expected}; got {found}.",
            given=case.given,
            expected=expected.shape,
            found=found.shape,
        )
    if _equal(found, expected, rtol):
        boolean = found.dtype == bool or expected.dtype != bool
        return "" if boolean else say("Ones and zeros in the right places; make them boolean.")
    for hint, wrong in case.traps.items():
        if wrong.shape == found.shape and _equal(found, wrong, rtol):
            return f"{say('The shape is right and the numbers are not.')} {hint}"
    if _equal(found, expected, ROUNDED):
        return say(
            "Right to about {digits} digits: compute in float64 and do not round.",
            digits=_digits(found, expected),
        )
    return f"{say('The shape is right and the numbers are not.')} {case.hint}"


def _equal(found: np.ndarray, target: np.ndarray, rtol: float) -> bool:
    if rtol == 0:
        return np.array_equal(found, target)
    return np.allclose(found, target, rtol=0, atol=rtol * np.abs(target).max())


def _digits(found: np.ndarray, expected: np.ndarray) -> int:
    """To how many digits an array is right, measured by the largest of expected."""
    return round(-np.log10(np.abs(found - expected).max() / np.abs(expected).max()))


def _same(copy: object, argument: object) -> bool:
    """Whether an argument's copy is what it was."""
    if type(copy) is not type(argument):
        return False
    if isinstance(argument, np.ndarray):
        return np.array_equal(copy, argument)
    if isinstance(argument, Mapping):
        return copy.keys() == argument.keys() and all(_same(copy[key], argument[key]) for key in argument)
    if isinstance(argument, list | tuple):
        return len(copy) == len(argument) and all(map(_same, copy, argument))
    return copy == argument


def _error_text(error: BaseException) -> str:
    """The kind of an error and what it says, if it says anything: on one line, and cut at LONGEST_ERROR."""
    try:
        text = " ".join(str(error).split())
    except Exception:
        text = ""
    if len(text) > LONGEST_ERROR:
        text = text[: LONGEST_ERROR - 1] + "…"
    return f"{type(error).__name__}: {text}" if text else f"{type(error).__name__}."
