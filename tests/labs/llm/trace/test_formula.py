"""Formulas: every kind of tree by hand, against Python itself, and everything else refused with its place."""

import json
import math
import re

import numpy as np
import pytest

from labs.llm.trace import formula
from labs.llm.trace.formula import evaluate, evaluate_all, leaves, parse

SIZES = {"B": 2, "T": 3, "D": 4, "H": 2, "dh": 2, "F": 5, "V": 6, "eps": 1e-5, "base": 100.0}


@pytest.fixture
def tensors():
    rng = np.random.default_rng(3)
    shapes = {"x": (2, 3, 4), "w": (4, 5), "k": (3,)}
    return {name: rng.uniform(0.5, 2, shape) for name, shape in shapes.items()} | {
        "ids": np.array([[5, 0, 5], [3, 3, 3]])
    }


# parse

X = ["at", "x", [["index", "b"], ["index", "t"], ["index", "d"]]]
FIRST = ["<=", ["index", "t"], ["number", 0]]


@pytest.mark.parametrize(
    ("text", "axes", "tree"),
    [
        ("2", "", ["number", 2]),
        ("0.5", "", ["number", 0.5]),
        ("inf", "", ["infinity"]),
        ("-inf", "", ["neg", ["infinity"]]),
        ("T", "", ["size", "T"]),
        ("eps", "", ["size", "eps"]),
        ("t", "t", ["index", "t"]),
        ("x[b, t, d]", "btd", X),
        ("k[t]", "t", ["at", "k", [["index", "t"]]]),
        ("v[v]", "v", ["at", "v", [["index", "v"]]]),
        ("ids[b, 0]", "b", ["at", "ids", [["index", "b"], ["number", 0]]]),
        ("k[ids[b, t]]", "bt", ["at", "k", [["at", "ids", [["index", "b"], ["index", "t"]]]]]),
        ("-t", "t", ["neg", ["index", "t"]]),
        ("1 + 2", "", ["+", ["number", 1], ["number", 2]]),
        ("1 - 2 - 3", "", ["-", ["-", ["number", 1], ["number", 2]], ["number", 3]]),
        ("2 * T", "", ["*", ["number", 2], ["size", "T"]]),
        ("1 / T", "", ["/", ["number", 1], ["size", "T"]]),
        ("d // dh", "d", ["//", ["index", "d"], ["size", "dh"]]),
        ("d % dh", "d", ["%", ["index", "d"], ["size", "dh"]]),
        ("base ** -t", "t", ["**", ["size", "base"], ["neg", ["index", "t"]]]),
        ("exp(t)", "t", ["call", "exp", ["index", "t"]]),
        ("1 if t <= 0 else 2", "t", ["if", FIRST, ["number", 1], ["number", 2]]),
        ("sum(x[b, t, d] for d in range(D))", "bt", ["sum", X, [["d", "D"]], None]),
        ("max(x[b, t, d] for d in range(D))", "bt", ["max", X, [["d", "D"]], None]),
        (
            "sum(x[b, t, d] for b in range(B) for t in range(T) if ids[b, t] == v)",
            "vd",
            [
                "sum",
                X,
                [["b", "B"], ["t", "T"]],
                ["==", ["at", "ids", [["index", "b"], ["index", "t"]]], ["index", "v"]],
            ],
        ),
    ],
)  # fmt: skip
def test_parse(text, axes, tree):
    assert parse(text, axes) == tree
    assert json.loads(json.dumps(parse(text, axes))) == tree


@pytest.mark.parametrize(
    ("text", "place", "rule"),
    [
        ("1 +", " ", "must be one Python expression"),
        ("x = 1", "=", "must be one Python expression"),
        ("(1", "(", "must be one Python expression"),
        ("", " ", "must be one Python expression"),
        ("1 + 'a'", "'a'", "may hold numbers"),
        ("1 + True", "True", "may hold numbers"),
        ("2j", "2j", "may hold numbers"),
        ("1e999", "1e999", "may hold numbers"),
        ("+t", "+t", "may hold numbers"),
        ("not t", "not t", "may hold numbers"),
        ("t @ t", "t @ t", "may hold numbers"),
        ("[1]", "[1]", "may hold numbers"),
        ("x[1:2]", "1:2", "may hold numbers"),
        ("x[*t]", "*t", "may hold numbers"),
        ("x[()]", "()", "may hold numbers"),
        ("x[t][t]", "x[t][t]", "may hold numbers"),
        ("x[...]", "...", "may hold numbers"),
        ("x[t, None]", "None", "may hold numbers"),
        ("x[t <= t]", "t <= t", "may hold numbers"),
        ("(t := 1)", "t := 1", "may hold numbers"),
        ("[i for i in range(T)]", "[i for i in range(T)]", "may hold numbers"),
        ("sum([i for i in range(T)])", "sum([i for i in range(T)])", "may call"),
        ("x.T", "x.T", "may hold numbers"),
        ("(lambda: 1)()", "(lambda: 1)()", "may hold numbers"),
        ("exp(t, t)", "exp(t, t)", "may hold numbers"),
        ("exp(x=t)", "exp(x=t)", "may hold numbers"),
        ("exp(t, x=t)", "exp(t, x=t)", "may hold numbers"),
        ("max(t, t)", "max(t, t)", "may hold numbers"),
        ("1 <= t", "1 <= t", "may hold numbers"),
        ("x", "x", "knows the indices ['t'] and B, T, D, H, dh, F, V, eps, base here, not x"),
        ("1 + __builtins__", "__builtins__", "not __builtins__"),
        ("open(t)", "open(t)", "may call exp, log, sqrt, cos, sin, or sum and max"),
        ("sum(x)", "sum(x)", "may call"),
        ("exp(t for i in range(T))", "(t for i in range(T))", "may hold numbers"),
        ("1 if t else 2", "t", "may have the conditions a == b and a <= b"),
        ("1 if 0 <= t <= 1 else 2", "0 <= t <= 1", "may have the conditions"),
        ("1 if t < 1 else 2", "t < 1", "may have the conditions"),
        ("sum(1 for i in x)", "x", "must loop with"),
        ("sum(1 for i in range(3))", "range(3)", "must loop with"),
        ("sum(1 for i in range(1, T))", "range(1, T)", "must loop with"),
        ("sum(1 for i in range(T, step=t))", "range(T, step=t)", "must loop with"),
        ("sum(1 for i in range(eps))", "range(eps)", "must loop with"),
        ("sum(1 for i, j in range(T))", "range(T)", "must loop with"),
        ("sum(1 async for i in range(T))", "range(T)", "must loop with"),
        ("sum(1 for t in range(T))", "t", "must not use the name t twice"),
        ("sum(1 for D in range(T))", "D", "must not use the name D twice"),
        ("sum(exp for exp in range(T))", "exp", "must not use the name exp twice"),
        ("sum(inf for inf in range(T))", "inf", "must not use the name inf twice"),
        ("sum(1 for range in range(T))", "range", "must not use the name range twice"),
        ("sum(1 for i in range(T) if i == t if i <= t)", "range(T)", "may have one condition"),
        ("sum(1 for i in range(T) if i == t for j in range(D))", "range(D)", "may have one condition"),
        ("sum(1 for i in range(T)) + i", "i", "not i"),
        ("sum(1 for i in range(T) if i == j for j in range(T))", "j", "not j"),
    ],
)  # fmt: skip
def test_parse_refuses_and_shows_the_place(text, place, rule):
    with pytest.raises(ValueError, match=f"a formula .*{re.escape(rule)}") as refused:
        parse(text, "t")
    _, shown, marks = str(refused.value).split("\n")
    assert shown == "    " + text
    start, end = marks.index("^"), len(marks)
    assert (shown + " ")[start:end] == place


@pytest.mark.parametrize("text", ["1 +\n2", "é", "1\t+ 2", "x[\u0442]", "1\x00", "t  # the position"])
def test_parse_refuses_what_is_not_one_line_of_ascii(text):
    with pytest.raises(ValueError, match="must be one line of ASCII"):
        parse(text)


@pytest.mark.parametrize("unit", ["-", "+1", "(", "9", "exp("])
def test_parse_refuses_what_is_too_long_and_could_be_too_deep(unit):
    with pytest.raises(ValueError, match=f"must have at most 300 characters, got {len(unit) * 2000 + 1}: "):
        parse(unit * 2000 + "1")


@pytest.mark.parametrize("text", ["-" * 299 + "1", "1" + "-1" * 149, "9" * 300, "exp(" * 59 + "1" + ")" * 59])
def test_parse_and_evaluate_reach_the_depth_that_is_allowed(text):
    tree = parse(text)
    assert evaluate(tree, {}, SIZES, {}) == pytest.approx(eval(text, {"exp": formula._exp}), rel=1e-15)
    assert leaves(tree, SIZES, {}, {}) == formula.tensor_names(tree) == []


def test_parse_refuses_what_is_no_text():
    with pytest.raises(TypeError, match=r"text must be a str, got 3 \(int\)"):
        parse(3)
    with pytest.raises(TypeError, match=r"axes must be a str, got \('t',\) \(tuple\)"):
        parse("t", ("t",))


@pytest.mark.parametrize("axes", ["bb", "bT"])
def test_parse_refuses_axes_that_mean_two_things(axes):
    with pytest.raises(
        ValueError, match=f"axes must be different letters that are no sizes .*, got '{axes}'"
    ):
        parse("b", axes)


# evaluate


@pytest.mark.parametrize(
    "text",
    [
        "x[b, t, d]",
        "-x[b, t, d] + 2 - x[0, 0, 0]",
        "x[b, t, d] * 3 / w[d, 4] ** 2",
        "x[b, t // 2, (d + 1) % D]",
        "base ** (-2 * t / dh)",
        "exp(-x[b, t, d]) + log(x[b, t, d]) + sqrt(eps)",
        "cos(x[b, t, d]) - sin(t)",
        "sum(x[b, t, m] * w[m, 1] for m in range(D))",
        "max(x[b, j, d] for j in range(T) if j <= t)",
        "sum(x[i, j, d] for i in range(B) for j in range(T) if ids[i, j] == 3)",
        "1 if d == 2 else -inf",
        "k[t] if t <= 1 else w[d, t]",
        "w[d, ids[b, t] // 2]",
        "sum(sum(w[m, f] for f in range(F)) for m in range(D))",
    ],
)
def test_evaluate_does_what_python_does(text, tensors):
    tree = parse(text, "btd")
    functions = {name: getattr(math, name) for name in ("exp", "log", "sqrt", "cos", "sin", "inf")}
    for place in np.ndindex(2, 3, 4):
        index = dict(zip("btd", place, strict=True))
        found = evaluate(tree, tensors, SIZES, index)
        assert type(found) is float
        expected = eval(text, functions | tensors | SIZES | index)
        assert found == expected or found == pytest.approx(expected, rel=1e-15)
    whole = evaluate_all(tree, tensors, SIZES, {"b": 2, "t": 3, "d": 4})
    each = [
        evaluate(tree, tensors, SIZES, dict(zip("btd", place, strict=True))) for place in np.ndindex(2, 3, 4)
    ]
    np.testing.assert_allclose(whole, np.reshape(each, (2, 3, 4)), rtol=1e-15)
    assert whole.dtype == np.float64


def test_evaluate_all_reads_nothing_in_a_branch_that_is_not_taken(tensors):
    pairs = parse("k[e + 1] if e % 2 == 0 else k[e - 1]", "e")
    k = tensors["k"]
    np.testing.assert_array_equal(evaluate_all(pairs, {"k": k[:2]}, SIZES, {"e": 2}), k[[1, 0]])
    with pytest.raises(IndexError, match=r"k must be read inside its shape \(3,\)"):
        evaluate_all(pairs, tensors, SIZES, {"e": 3})


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("k[t + 1]", IndexError),
        ("k[t - 1]", IndexError),
        ("k[t / 1]", IndexError),
        ("k[t, t]", IndexError),
        ("max(k[i] for i in range(T) if i == 9)", ValueError),
        ("log(t)", ArithmeticError),
        ("1 / t", ArithmeticError),
        ("9.0 ** 9 ** 9", ArithmeticError),
        ("(-1) ** 0.5", ArithmeticError),
        ("q[t]", KeyError),
    ],
)
def test_evaluate_all_refuses_what_has_no_value(text, error, tensors):
    with pytest.raises(error):
        evaluate_all(parse(text, "t"), tensors, SIZES, {"t": 3})


def test_evaluate_all_of_nothing_and_of_too_much():
    assert evaluate_all(parse("sum(1 for i in range(T) if i == 9)"), {}, SIZES, {}) == 0
    assert evaluate_all(parse("1 / (1 + exp(1000 + t))", "t"), {}, SIZES, {"t": 2}).tolist() == [0, 0]


def test_evaluate_by_hand():
    tensors = {"q": np.array([[1.0, 2.0]]), "k": np.array([[3.0, 4.0], [5.0, 6.0]])}
    tree = parse("sum(q[i, e] * k[j, e] for e in range(dh)) / sqrt(H * 2)", "ij")
    assert evaluate(tree, tensors, SIZES, {"i": 0, "j": 1}) == (1 * 5 + 2 * 6) / 2
    assert evaluate(tree, tensors, SIZES, {"i": np.int64(0), "j": np.int64(0)}) == (1 * 3 + 2 * 4) / 2


def test_a_sum_of_nothing_is_zero_and_a_maximum_of_nothing_is_refused():
    assert evaluate(parse("sum(1 for i in range(T) if i == 9)"), {}, SIZES, {}) == 0
    with pytest.raises(ValueError, match="empty"):
        evaluate(parse("max(1 for i in range(T) if i == 9)"), {}, SIZES, {})


def test_a_power_is_one_of_floats(tensors):
    """In whole numbers 9 ** 9 ** 9 would have 370 million digits, and no evaluation an end."""
    with pytest.raises(OverflowError):
        evaluate(parse("9 ** 9 ** 9"), {}, SIZES, {})
    with pytest.raises(ValueError, match="math domain error"):
        evaluate(parse("(-1) ** 0.5"), {}, SIZES, {})  # a complex number in Python
    with pytest.raises(IndexError, match=r"got index \(1\.0,\)"):
        evaluate(parse("k[1 ** 2]"), tensors, SIZES, {})


def test_evaluate_refuses_what_is_no_tree_and_no_array(tensors):
    with pytest.raises(
        TypeError, match=r"tree must be a list, got 'k\[0\]' \(str\): parse the formula first"
    ):
        evaluate("k[0]", tensors, SIZES, {})
    with pytest.raises(TypeError, match="tree must be a list"):
        leaves("k[0]", SIZES, {}, tensors)
    with pytest.raises(TypeError, match="k must be an array, got list: convert it"):
        evaluate(parse("k[0]"), {"k": [1.0, 2.0]}, SIZES, {})


@pytest.mark.parametrize(
    "tree",
    [
        [], ["+"], ["+", ["number", 1]], ["number"], ["number", "1"], ["at", "k"], ["at", "k", []],
        ["at", 3, [["size", "T"]]], ["sum", ["number", 1], [["i"]], None], ["sum", ["number", 1], 3, None],
        ["neg", 3], ["call", "open", ["number", 1]], ["?", ["number", 1], ["number", 1]], [["number", 1]],
        ["if", ["=="], 1, 2], ["neg", "x" * 10**6], None, 3,
    ],
)  # fmt: skip
def test_what_is_no_tree_is_refused_by_everything_that_takes_one(tree, tensors):
    for call in (
        lambda: evaluate(tree, tensors, SIZES, {}),
        lambda: leaves(tree, SIZES, {}, tensors),
        lambda: formula.tensor_names(tree),
    ):
        with pytest.raises(TypeError, match=r"^tree must be") as refused:
            call()
        assert len(str(refused.value)) < 300


@pytest.mark.parametrize("name", ["tensors", "sizes", "index"])
def test_evaluate_needs_dicts(name, tensors):
    arguments = {"tensors": tensors, "sizes": SIZES, "index": {"t": 0}} | {name: None}
    with pytest.raises(TypeError, match=f"{name} must be a dict, got NoneType"):
        evaluate(parse("k[t] + T", "t"), **arguments)


def test_evaluate_survives_an_exponential_that_overflows():
    assert evaluate(parse("1 / (1 + exp(1000))"), {}, SIZES, {}) == 0
    assert evaluate(parse("exp(-inf)"), {}, SIZES, {}) == 0


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("k[t - 1]", "(-1,)"),
        ("k[T]", "(3,)"),
        ("k[1 / 2]", "(0.5,)"),
        ("k[4 / 2]", "(2.0,)"),
        ("k[t, t]", "(0, 0)"),
    ],
)
def test_evaluate_refuses_entries_that_are_not_there(text, place, tensors):
    with pytest.raises(
        IndexError, match=re.escape(f"k must be read inside its shape (3,), got index {place}")
    ):
        evaluate(parse(text, "t"), tensors, SIZES, {"t": 0})


@pytest.mark.parametrize("t", [1.0, "1", None])
def test_evaluate_refuses_an_index_that_is_no_whole_number(t, tensors):
    with pytest.raises(TypeError, match="index 't' must be an int, got"):
        evaluate(parse("k[t]", "t"), tensors, SIZES, {"t": t})


@pytest.mark.parametrize(("text", "missing"), [("q[0]", "q"), ("T", "T"), ("t", "t")])
def test_evaluate_needs_every_name(text, missing):
    with pytest.raises(KeyError, match=missing):
        evaluate(parse(text, "t"), {}, {}, {})


# leaves


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x[b, t, d] ** 2 + x[b, t, d]", [("x", (0, 1, 2)), ("x", (0, 1, 2))]),
        ("sum(k[j] * w[d, j] for j in range(H))", [("k", (0,)), ("w", (2, 0)), ("k", (1,)), ("w", (2, 1))]),
        ("k[t] if t == 1 else k[0]", [("k", (1,))]),
        ("k[t] if t == 0 else k[0]", [("k", (0,))]),
        ("w[ids[b, t], 0]", [("ids", (0, 1)), ("w", (0, 0))]),
        (
            "sum(x[b, j, d] for j in range(T) if ids[b, j] == 5)",
            [("ids", (0, 0)), ("x", (0, 0, 2)), ("ids", (0, 1)), ("ids", (0, 2)), ("x", (0, 2, 2))],
        ),
        ("T + t", []),
    ],
)
def test_leaves_are_the_entries_in_the_order_of_reading(text, expected, tensors):
    index = {"b": np.int64(0), "t": 1, "d": 2}
    found = leaves(parse(text, "btd"), SIZES, index, tensors)
    assert found == expected
    assert all(type(i) is int for _, place in found for i in place)


def test_leaves_refuse_what_evaluate_refuses(tensors):
    with pytest.raises(IndexError, match="k must be read inside"):
        leaves(parse("k[T]"), SIZES, {}, tensors)


# The tree's parts


def test_tensor_names_once_each_in_their_order():
    tree = parse("z[t] + sum(a[i] * z[ids[i]] for i in range(T) if at[i] == t) + exp(-y[t])", "t")
    assert formula.tensor_names(tree) == ["z", "a", "ids", "at", "y"]
    assert formula.tensor_names(parse("w[ids[t]]", "t")) == ["w", "ids"]
    assert formula.tensor_names(parse("sum(1 for at in range(T))")) == []


def test_children_are_trees():
    tree = parse("sum(x[i] for i in range(T) if i <= t) if t == 2 else log(-inf + T - 2)", "t")
    kinds = []

    def walk(part):
        kinds.append(part[0])
        for child in formula.children(part):
            walk(child)

    walk(tree)
    assert kinds == [
        *("if", "==", "index", "number", "sum", "at", "index", "<=", "index", "index"),
        *("call", "-", "+", "neg", "infinity", "size", "number"),
    ]
