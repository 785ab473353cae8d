"""Whatever a reader's function does, the reader gets a sentence and the caller's arrays are safe."""

import importlib
import pkgutil
import re
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from labs import exercises
from labs.exercises.verdict import AnswerError, Case, Verdict, answer, judge, shown

BOOK = Path(__file__).parents[3] / "book"


def test_a_verdict_reads_as_a_sentence():
    assert repr(Verdict(True, "All shapes agree.")) == "Right. All shapes agree."
    assert repr(Verdict(False, "Look again.")) == "Not yet. Look again."


def test_a_verdict_is_true_if_the_answer_is_right():
    assert Verdict(True, "All shapes agree.")
    assert not Verdict(False, "Look again.")


# What a function may do


def test_a_good_function_gets_copies():
    x = np.arange(6.0)
    given = answer(lambda array, n: array.reshape(n, 3), x, 2)
    assert given.shape == (2, 3)
    assert not np.shares_memory(given, x)


def test_arrays_inside_of_arguments_are_copied_too():
    x = np.arange(6.0)
    for argument in ({"x": x}, [x], (x,), {"x": [x]}):
        given = answer(lambda container: first_array(container), argument)
        assert (given == x).all()
        assert not np.shares_memory(given, x)


def first_array(container):
    while not isinstance(container, np.ndarray):
        container = next(iter(container.values() if isinstance(container, dict) else container))
    return container


class Weights(NamedTuple):
    gain: np.ndarray


def test_named_tuples_keep_their_names_and_functions_stay_the_same():
    given = answer(lambda weights, f: f(weights.gain), Weights(np.ones(3)), np.negative)
    assert given.tolist() == [-1, -1, -1]


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.uint8, bool])
def test_real_numbers_of_any_kind_are_compared(dtype):
    assert answer(lambda: np.ones(3, dtype)).dtype == dtype


def test_what_overflows_gets_no_warning():
    assert answer(lambda x: np.exp(x), np.array([5000.0])).tolist() == [np.inf]


def overwrites(x):
    x[0] = 7
    return x + 0


def stops(x):
    raise KeyError(x.size)


def leaves(x):
    sys.exit(x.size)


class SilentError(Exception):
    """An error that cannot be written."""

    def __str__(self):
        raise RuntimeError


def stops_silently(x):
    raise SilentError(x)


def stops_without_a_word(x):
    raise MemoryError from KeyError(x.size)


def stops_at_length(x):
    raise ValueError(f"first line\n  second, {x.size}" + " and so on" * 100)


def half_masked(x):
    return np.ma.masked_array(x, x > 2)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: None, "still needs its line"),  # noqa: ARG005
        (lambda x: x.tolist(), "plain NumPy array; it returns list"),
        (lambda x: x.sum(), "plain NumPy array; it returns float64"),
        (half_masked, "plain NumPy array; it returns MaskedArray"),
        (lambda x: x.view(np.recarray), "plain NumPy array; it returns recarray"),
        (lambda x: x.astype(str), "real numbers; its array has the dtype <U32"),
        (lambda x: x.astype(complex), "real numbers; its array has the dtype complex128"),
        (lambda x: x.astype(object), "has the dtype object"),
        (lambda x: x.astype("datetime64[D]"), r"has the dtype datetime64\[D\]"),
        (lambda x: x.astype("timedelta64[D]"), r"has the dtype timedelta64\[D\]"),
        (lambda x: x.astype([("a", float)]), r"has the dtype \[\('a'"),
        (overwrites, "writes into its argument: the caller's array has changed"),
        (stops, "stopped with KeyError: 6"),
        (leaves, "stopped with SystemExit: 6"),
        (stops_silently, r"stopped with SilentError\.$"),
        (stops_without_a_word, r"stopped with MemoryError\.$"),
        (stops_at_length, r"^Your .* ValueError: first line second, 6 and so on[^\n]{269}…$"),
        (lambda: None, "stopped with TypeError"),
    ],
)
def test_refusals(function, message):
    with pytest.raises(AnswerError, match=message):
        answer(function, np.arange(6.0))


def test_the_reader_can_interrupt():
    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        answer(interrupted)


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda params, rows, shapes: params.clear(), "dict"),  # noqa: ARG005
        (lambda params, rows, shapes: params.update(b=1), "dict"),  # noqa: ARG005
        (lambda params, rows, shapes: params.update(w=None), "dict"),  # noqa: ARG005
        (lambda params, rows, shapes: params["w"].fill(7), "dict"),  # noqa: ARG005
        (lambda params, rows, shapes: rows.pop(), "list"),  # noqa: ARG005
        (lambda params, rows, shapes: rows.append(1), "list"),  # noqa: ARG005
        (lambda params, rows, shapes: rows[1].sort(), "list"),  # noqa: ARG005
        (lambda params, rows, shapes: shapes[0].sort(), "tuple"),  # noqa: ARG005
    ],
)
def test_a_changed_container_is_noticed(change, kind):
    def function(params, rows, shapes):
        change(params, rows, shapes)
        return np.ones(3)

    rows = [np.array([1.0, 2.0]), np.array([2.0, 1.0])]
    arguments = {"w": np.ones(2)}, rows, (np.array([2.0, 1.0]),)
    with pytest.raises(AnswerError, match=f"writes into its argument: the caller's {kind} has changed"):
        answer(function, *arguments)
    assert arguments[0]["w"].tolist() == [1, 1]
    assert [row.tolist() for row in rows] == [[1, 2], [2, 1]]


# How it is judged


def double(x):
    return 2 * x


def doubling_case(x, given):
    return Case((x,), given=given, expected=2 * x, hint="Twice each.", traps={"Not squared.": x**2})


THREE = doubling_case(np.array([1.0, 3.0, 5.0]), "three numbers")
FOUR = doubling_case(np.array([7.0, 9.0, 8.0, 6.0]), "four numbers")


def judged(function, *cases, rtol=0.0):
    return judge(function, *cases, call="check_double(my_double)", praise="Doubled.", rtol=rtol)


@pytest.mark.parametrize(
    ("function", "rtol", "passed", "message"),
    [
        (double, 0.0, True, "Doubled."),
        (lambda x: 2 * x + 1e-9, 1e-6, True, "Doubled."),
        (lambda x: (2 * x).astype(np.float32), 0.0, True, "Doubled."),  # these numbers lose nothing
        (lambda x: (2 * x).astype(int), 0.0, True, "Doubled."),
        (lambda x: 2 * x + 1e-9, 0.0, False, "Right to about 10 digits: compute in float64"),
        (lambda x: 2 * x + 3e-6, 1e-9, False, "Right to about 7 digits: compute in float64"),
        (lambda x: 2 * x + 1e-3, 1e-6, False, "Twice each."),
        (lambda x: x**2, 1e-6, False, "The shape is right and the numbers are not. Not squared."),
        (lambda x: np.full_like(x, np.nan), 1e-6, False, "Twice each."),
        (lambda x: np.full_like(x, np.inf), 1e-6, False, "Twice each."),
        (lambda x: x > 2, 1e-6, False, "Twice each."),
        (lambda x: x[:2], 0.0, False, "For three numbers the result should have the shape (3,); got (2,)."),
        (lambda x: None, 0.0, False, "still needs its line"),  # noqa: ARG005
        (np.arange(3), 0.0, False, "Give the function itself: check_double(my_double); got ndarray."),
        (None, 0.0, False, "Give the function itself: check_double(my_double); got NoneType."),
    ],
)
def test_judge(function, rtol, passed, message):
    verdict = judged(function, THREE, rtol=rtol)
    assert verdict.passed is passed
    assert message in verdict.message


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: 2 * x + (x.size - 3), "The shape is right and the numbers are not. Twice each."),
        (lambda x: 2 * x[:3], "For four numbers the result should have the shape (4,); got (3,)."),
        (lambda x: x + np.array([1.0, 3.0, 5.0]), "Your function stopped with ValueError"),
    ],
)
def test_every_case_has_to_be_right(function, message):
    assert judged(function, THREE).passed
    verdict = judged(function, THREE, FOUR)
    assert not verdict.passed
    assert verdict.message.startswith("It is right for three numbers, but not for four numbers. " + message)
    assert judged(double, THREE, FOUR).passed


def test_the_first_wrong_case_is_the_one_that_is_named():
    assert judged(lambda x: x + 1, THREE, FOUR).message.startswith("The shape is right and the numbers")


def test_a_function_is_called_once_for_each_case():
    sizes = []
    assert judged(lambda x: sizes.append(x.size) or 2 * x, THREE, FOUR).passed
    assert sizes == [3, 4]


def test_where_truth_values_are_expected_ones_and_zeros_are_not_enough():
    case = Case((), given="nothing", expected=np.array([True, False]), hint="Only the first.")
    assert judged(lambda: np.array([True, False]), case).passed
    assert "make them boolean" in judged(lambda: np.array([1, 0]), case).message
    assert "Only the first." in judged(lambda: np.array([True, True]), case).message


MODULES = [
    importlib.import_module(f"labs.exercises.{module.name}")
    for module in pkgutil.iter_modules(exercises.__path__)
    if module.name not in {"pencil", "verdict"}
]

CHECKS = [
    check
    for module in MODULES
    for name, check in vars(module).items()
    if name.startswith("check_") and name not in {"check_pencil", "check_ledger"}
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_reader_who_calls_the_function_is_told_how_the_chapter_does_it(check):
    message = check(np.zeros((3, 7, 24))).message
    call = re.search(r"Give the function itself: (.*); got ndarray", message)[1]
    assert call.startswith(f"{check.__name__}(my_")
    chapters = "".join(chapter.read_text(encoding="utf-8") for chapter in BOOK.glob("[0-9]*.ipynb"))
    assert call in chapters, f"no chapter calls {call}"


# What a message shows


class Unwritable:
    def __repr__(self):
        raise RuntimeError


def test_any_value_can_be_shown():
    assert shown("B,T") == "'B,T'"
    assert shown(np.eye(2)) == "array([[1., 0.], [0., 1.]])"
    assert shown(10**400) == "1" + 59 * "0" + "..."
    assert shown(10**5000) == "something of type int"
    assert shown(Unwritable()) == "something of type Unwritable"
