"""What a check finds, in three verdicts, and how checks end and read what they are given."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from labs.llm import arguments

#: The three verdicts, as they are printed.
PASSED, FAILED, CANNOT_TELL = "passed", "FAILED", "cannot tell"

#: How many rounding errors of a whole result may gather in one entry. More than ever seen in a right one.
ROUNDINGS = 32

#: How much rounding may change a number that a verdict rests on, relative to it; beyond this, CANNOT_TELL.
RESOLVED = 1e-2

#: How often the same call is repeated to see whether a function is deterministic.
REPEATS = 3

EPS, TINY = float(np.finfo(np.float64).eps), float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class Finding:
    """What a check found. It is true only if the check passed, so "cannot tell" counts as false."""

    verdict: str  # PASSED, FAILED or CANNOT_TELL
    message: str  # a sentence for the reader, with the place of the worst entry
    numbers: dict = field(default_factory=dict)  # what was measured, by name

    def __post_init__(self):
        if self.verdict not in (PASSED, FAILED, CANNOT_TELL):
            raise ValueError(
                f"verdict must be PASSED, FAILED or CANNOT_TELL, got {arguments.shown(self.verdict)}"
            )

    @property
    def passed(self):
        """Whether the check passed."""
        return self.verdict == PASSED

    @property
    def failed(self):
        """Whether the check found a mistake: not the opposite of passed, because there is a third verdict."""
        return self.verdict == FAILED

    def __bool__(self):
        return self.passed

    def __repr__(self):
        return f"{self.verdict}: {self.message}"

    def raise_unless_passed(self):
        """Return the Finding itself if it passed, else raise AssertionError with verdict and message."""
        if not self.passed:
            raise AssertionError(str(self))
        return self


class End(Exception):  # noqa: N818 (nothing went wrong)
    """Ends a check from within, with a Finding."""

    def __init__(self, verdict, message):
        super().__init__(message)
        self.finding = Finding(verdict, message)


def check(function):
    """Return a check that can be ended from within."""

    @functools.wraps(function)
    def check(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except End as end:
            return end.finding

    return check


def require_function(name, value):
    if not callable(value):
        raise TypeError(f"{name} must be a function, got {value!r}: pass it without calling it")


def as_array(name, value):
    """Return `value` as an array, or say that it is not one."""
    try:
        return np.asarray(value)
    except ValueError:
        raise ValueError(
            f"{name} must be an array, got rows of different lengths: make them equally long"
        ) from None


def as_float64(name, value):
    """Return `value` as a float64 array, or say why that is not possible."""
    array = as_array(name, value)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{name} must hold real numbers, got dtype {array.dtype}: convert them first")
    return array.astype(np.float64, copy=False)


def fitting(found, expected, what):
    """Return what was found as arrays, or end the check if names, shapes or dtypes are not as expected."""
    if not isinstance(found, Mapping) or found.keys() != expected.keys():
        got = list(found) if isinstance(found, Mapping) else type(found).__name__
        raise End(FAILED, f"there must be one {what} for each of {list(expected)}, got {got}")
    found = {key: as_array(f"the {what} of {key}", found[key]) for key in expected}
    for key, array in expected.items():
        if found[key].shape != array.shape:
            raise End(
                FAILED, f"the {what} of {key} must have its shape {array.shape}, got {found[key].shape}"
            )
        if found[key].dtype != array.dtype:
            raise End(
                FAILED, f"the {what} of {key} must have its dtype {array.dtype}, got {found[key].dtype}"
            )
    return found


def not_deterministic(change, what):
    """Return what to say about a function that answers the same call in different ways."""
    return (
        f"the function is not deterministic: {what} {change:.1e} when the same call is repeated, "
        "so switch dropout off or seed it anew in each call"
    )


def rounding(dtype):
    """Return the relative change below which a result counts as the same one, rounded in another order."""
    return 1e4 * float(np.finfo(dtype).eps)
