"""Typed numbers are judged line by line, to two decimals, and whatever a reader types gets a sentence."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from labs.exercises.pencil import Line, judge_numbers

RIGHT = {"angle": (1.0471976, {"This is in degrees.": 60.0}), "vector": ([0.5, 0.8660254], {})}


def judged(**given):
    return judge_numbers(
        {name: Line(given[name], *RIGHT[name]) for name in RIGHT}, praise="A sixth of a turn."
    )


@pytest.mark.parametrize(
    ("angle", "vector"),
    [
        (1.05, [0.5, 0.87]),
        (np.pi / 3, (np.cos(np.pi / 3), np.sin(np.pi / 3))),
        (1.047, np.array([0.5, 0.866])),
        (np.float32(1.05), np.array([0.5, 0.866], dtype=np.float32)),
        (Decimal("1.05"), [Fraction(1, 2), 0.87]),
    ],
)
def test_right_numbers_are_accepted_however_they_are_typed(angle, vector):
    verdict = judged(angle=angle, vector=vector)
    assert verdict.passed
    assert verdict.message == "A sixth of a turn."


class Angle:
    """An object that fails when it is asked for its number."""

    def __float__(self):
        raise KeyError

    def __repr__(self):
        return "an angle"


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")  # in a notebook it is no error
@pytest.mark.parametrize(
    ("angle", "vector", "message"),
    [
        (None, None, "angle: still open; one number is expected."),
        (1.05, None, "vector: still open; a list of 2 numbers is expected."),
        (60, [0.5, 0.87], "angle: not these numbers. This is in degrees."),
        (1.06, [0.5, 0.87], "angle: not these numbers."),
        (1.05, [0.87, 0.5], "vector: not these numbers."),
        (1.05, [0.5, float("nan")], "vector: not these numbers."),
        (1.05, [0.5], "vector: a list of 2 numbers is expected, got a list of 1 number."),
        (1.05, 0.5, "vector: a list of 2 numbers is expected, got one number."),
        (1.05, [[0.5, 0.87]], "vector: a list of 2 numbers is expected, got a table of 1 × 2 numbers."),
        ("?", [0.5, 0.87], "angle: numbers are expected, got '?'."),
        ("1.05", [0.5, 0.87], "angle: numbers are expected, got '1.05'."),
        (1.05 + 0j, [0.5, 0.87], "angle: numbers are expected, got (1.05+0j)."),
        (1.05, np.array([0.5, 0.87 + 0j]), "vector: numbers are expected, got array([0.5 +0.j, 0.87+0.j])."),
        pytest.param(10**400, [0.5, 0.87], f"angle: numbers are expected, got 1{59 * '0'}....", id="large"),
        pytest.param(
            10**5000,
            [0.5, 0.87],
            "angle: numbers are expected, got something of type int.",
            id="too large to be written",
        ),
        (np.finfo(np.longdouble).max, [0.5, 0.87], "angle: not these numbers."),
        (float("inf"), [0.5, 0.87], "angle: not these numbers."),
        (True, [0.5, 0.87], "angle: numbers are expected, got True."),
        (np.datetime64(1, "D"), [0.5, 0.87], "angle: numbers are expected, got np.datetime64('1970-01-02')."),
        (Angle(), [0.5, 0.87], "angle: numbers are expected, got an angle."),
        (1.05, [0.5, None], "vector: numbers are expected, got [0.5, None]."),
        (1.05, [[0.5], [0.8, 0.6]], "vector: numbers are expected, got [[0.5], [0.8, 0.6]]."),
    ],
)
def test_open_and_wrong_numbers_are_rejected_with_a_hint(angle, vector, message):
    verdict = judged(angle=angle, vector=vector)
    assert not verdict.passed
    assert verdict.message == message


def test_numbers_under_a_mask_do_not_count():
    verdict = judged(angle=1.05, vector=np.ma.masked_array([0.5, 0.0], [False, True]))
    assert verdict.message.startswith("vector: numbers are expected, got masked_array(")
