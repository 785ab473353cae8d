"""Whatever a reader's function does, the reader gets a sentence and the caller's arrays are safe."""

import numpy as np
import pytest

from labs.exercises.verdict import AnswerError, Verdict, answer, judge


def test_a_verdict_reads_as_a_sentence():
    assert repr(Verdict(True, "All shapes agree.")) == "Right. All shapes agree."
    assert repr(Verdict(False, "Look again.")) == "Not yet. Look again."


def test_a_verdict_is_true_if_the_answer_is_right():
    assert Verdict(True, "All shapes agree.")
    assert not Verdict(False, "Look again.")


def test_a_good_function_gets_copies():
    x = np.arange(6.0)
    given = answer(lambda array, n: array.reshape(n, 3), x, 2)
    assert given.shape == (2, 3)
    assert not np.shares_memory(given, x)


def overwrites(x):
    x[0] = 7
    return x + 0


def stops(x):
    raise KeyError(x.size)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: None, "still needs its line"),  # noqa: ARG005
        (lambda x: x.tolist(), "it returns list"),
        (overwrites, "writes into its argument"),
        (stops, "stopped with KeyError: 6"),
        (lambda: None, "stopped with TypeError"),
        (np.arange(3), "Give the function itself"),
    ],
)
def test_refusals(function, message):
    with pytest.raises(AnswerError, match=message):
        answer(function, np.arange(6.0))


def double(x):
    return 2 * x


@pytest.mark.parametrize(
    ("function", "rtol", "passed", "message"),
    [
        (double, 0.0, True, "Doubled."),
        (lambda x: 2 * x + 1e-9, 0.0, False, "Twice each."),
        (lambda x: 2 * x + 1e-9, 1e-6, True, "Doubled."),
        (lambda x: x**2, 1e-6, False, "Twice, not squared."),
        (lambda x: np.full_like(x, np.nan), 1e-6, False, "Twice each."),
        (lambda x: x[:2], 0.0, False, "For three numbers the result should have the shape (3,); got (2,)."),
        (lambda x: None, 0.0, False, "still needs its line"),  # noqa: ARG005
    ],
)
def test_judge(function, rtol, passed, message):
    x = np.array([1.0, 3.0, 5.0])
    words = {"given": "three numbers", "hint": "Twice each.", "praise": "Doubled."}
    verdict = judge(function, (x,), expected=2 * x, traps={"Twice, not squared.": x**2}, rtol=rtol, **words)
    assert verdict.passed is passed
    assert message in verdict.message
