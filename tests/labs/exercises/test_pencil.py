"""Typed numbers are judged line by line, to two decimals, and whatever a reader types gets a sentence."""

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
    ],
)
def test_right_numbers_are_accepted_however_they_are_typed(angle, vector):
    verdict = judged(angle=angle, vector=vector)
    assert verdict.passed
    assert verdict.message == "A sixth of a turn."


@pytest.mark.parametrize(
    ("angle", "vector", "message"),
    [
        (None, None, "angle: still open; one number is expected."),
        (1.05, None, "vector: still open; a list of 2 numbers is expected."),
        (60, [0.5, 0.87], "angle: not these numbers. This is in degrees."),
        (1.06, [0.5, 0.87], "angle: not these numbers."),
        (1.05, [0.87, 0.5], "vector: not these numbers."),
        (1.05, [0.5, float("nan")], "vector: not these numbers."),
        (1.05, [0.5], "vector: a list of 2 numbers is expected, got a list of 1 numbers."),
        (1.05, 0.5, "vector: a list of 2 numbers is expected, got one number."),
        (1.05, [[0.5, 0.87]], "vector: a list of 2 numbers is expected, got a table of 1 × 2 numbers."),
        ("?", [0.5, 0.87], "angle: numbers are expected, got '?'."),
        (1.05, [[0.5], [0.8, 0.6]], "vector: numbers are expected, got [[0.5], [0.8, 0.6]]."),
    ],
)
def test_open_and_wrong_numbers_are_rejected_with_a_hint(angle, vector, message):
    verdict = judged(angle=angle, vector=vector)
    assert not verdict.passed
    assert verdict.message == message
