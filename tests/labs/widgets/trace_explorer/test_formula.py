"""Formulas in JavaScript: every entry of every tensor, and the text that a reader sees, held to NumPy."""

import math

import numpy as np
import pytest

from labs.llm import tiny
from labs.llm.model import ModelConfig
from labs.llm.parameters import init_params
from labs.llm.trace import formula, trace
from labs.widgets.shared import modules


@pytest.fixture(scope="module")
def call(javascript):
    return javascript("trace_explorer/formula.js")


#: Sizes that differ pairwise, and two layers: B = 3, T = 5, D = 8, H = 2, dh = 4, F = 6, V = 7.
OTHER = ModelConfig(7, d_model=8, n_heads=2, n_layers=2, d_ff=6, rope_base=50.0)


def tiny_trace():
    return trace(tiny.params(), tiny.INPUT_IDS, tiny.TARGET_IDS, tiny.CONFIG)


def other_trace():
    rng = np.random.default_rng(0)
    params = {
        key: value + 0.3 * rng.standard_normal(value.shape) for key, value in init_params(OTHER, 1).items()
    }
    ids = rng.integers(0, 7, (3, 6))
    return trace(params, ids[:, :-1], ids[:, 1:], OTHER)


TRACES = {"tiny": tiny_trace(), "pairwise different": other_trace()}

#: What JavaScript gets: all tensors, -inf as a text, because JSON has none.
LOAD = """((tensors, sizes) => {
  globalThis.tensors = tensors;
  for (const tensor of Object.values(tensors)) tensor.values = tensor.values.map(Number);
  globalThis.scopeFor = (reads) => ({
    sizes,
    at: (name, index) => {
      const { shape, values } = tensors[reads[name]];
      if (index.some((n, a) => !(n >= 0 && n < shape[a])) || index.length !== shape.length)
        throw new Error(`${name}[${index}] is outside ${shape}`);
      return values[index.reduce((flat, n, a) => flat * shape[a] + n, 0)];
    },
  });
  return null;
})"""

#: A function of every entry of a tensor.
EVERY = """((tree, reads, axes, shape) => {
  const longer = (all, size) => all.flatMap((index) => range(size).map((n) => [...index, n]));
  const entries = shape.reduce(longer, [[]]);
  const letters = (index) => Object.fromEntries(axes.map((axis, a) => [axis, index[a]]));
  return entries.map((index) => (%s)(tree, scopeFor(reads), letters(index)));
})"""


def load(call, traced):
    tensors = {
        step.key: {
            "shape": step.value.shape,
            "values": ["-Infinity" if value == -np.inf else float(value) for value in step.value.ravel()],
        }
        for step in traced.steps
    }
    call(LOAD, tensors, dict(traced.sizes))


def every(call, function, step):
    """The result of a JavaScript function (tree, scope, index) for every entry of a step."""
    tree = formula.parse(step.formula, step.axes)
    return call(EVERY % function, tree, dict(step.reads), list(step.axes), step.value.shape)


def worst(found, step):
    """The largest distance from the library's numbers, relative to the largest of them; -inf must be -inf."""
    expected = step.value.ravel()
    finite = np.isfinite(expected)
    assert (np.array(found)[~finite] == expected[~finite]).all(), step.key
    scale = np.abs(expected[finite]).max(initial=0) or 1.0
    return (np.abs(np.array(found)[finite] - expected[finite]) / scale).max(initial=0)


def computed(traced):
    return [step for step in traced.steps if step.formula is not None]


@pytest.mark.parametrize("traced", TRACES.values(), ids=TRACES)
def test_every_entry_is_numpys(call, traced, record_property):
    load(call, traced)
    largest, count = 0.0, 0
    for step in computed(traced):
        values = [float(value) for value in every(call, "(...all) => String(formulaValue(...all))", step)]
        distance = worst(values, step)
        assert distance <= 1e-12, step.key
        largest, count = max(largest, distance), count + len(values)
    assert count == sum(step.value.size for step in computed(traced))
    record_property(f"worst relative error of {count} entries in JavaScript", f"{largest:.1e}")


@pytest.mark.parametrize("traced", TRACES.values(), ids=TRACES)
def test_every_text_with_numbers_gives_the_number(call, arithmetic, traced, record_property):
    load(call, traced)
    exact = (
        "(...all) => filledText(...all, (value) => Number.isFinite(value) ? value.toPrecision(17) : '-inf')"
    )
    largest, count = 0.0, 0
    for step in computed(traced):
        texts = every(call, exact, step)
        distance = worst([float(arithmetic(text)) for text in texts], step)
        assert distance <= 1e-12, f"{step.key}: {texts[0]}"
        largest, count = max(largest, distance), count + len(texts)
    record_property(f"worst relative error of {count} formulas as they are shown", f"{largest:.1e}")


@pytest.mark.parametrize("traced", TRACES.values(), ids=TRACES)
def test_terms_add_up(call, traced):
    load(call, traced)
    seen = set()
    for step in computed(traced):
        for found in every(call, "formulaTerms", step):
            if found is None:
                continue
            values = [term["value"] for term in found["terms"]]
            if found["kind"] == "max":
                assert found["total"] == max(value for value in values if value is not None)  # None is -inf
            else:
                assert found["total"] == pytest.approx(sum(values), rel=1e-12, abs=1e-15)
            for term in found["terms"]:
                if term["factors"]:
                    assert len(term["factors"]) == len(found["names"])
                    assert math.prod(term["factors"]) == pytest.approx(term["value"], rel=1e-14)
            seen.add((step.name, found["kind"], found["whole"], tuple(found["names"]), len(values)))
    T, D, V = (traced.sizes[letter] for letter in "TDV")
    assert {
        ("scores", "sum", False, ("q_rot", "k_rot"), 4),
        ("row_max", "max", True, (), T),
        ("o", "sum", True, ("p", "v"), T),
        ("attn_inv_rms", "sum", False, ("x", "x"), D),
        ("logit_max", "max", True, (), V),
        ("dz", "sum", True, (), 3),
        ("dscores", "sum", False, ("p", "dp"), T),
        ("dembedding", "sum", True, (), 0),
    } <= seen
    assert {name for name, *_ in seen}.isdisjoint({"q_rot", "r", "gate", "exps"})


@pytest.mark.parametrize("traced", TRACES.values(), ids=TRACES)
def test_what_was_read(call, traced):
    load(call, traced)
    for step in computed(traced):
        found = every(call, "formulaReads", step)
        tree, tensors = formula.parse(step.formula, step.axes), traced.sources(step)
        for index, reads in zip(np.ndindex(step.value.shape), found, strict=True):
            place = dict(zip(step.axes, index, strict=True))
            expected = formula.leaves(tree, traced.sizes, place, tensors)
            if step.name == "dembedding":  # other tokens kept their terms out
                expected = [
                    read
                    for read in expected
                    if traced["ids"].value[read[1] if read[0] == "ids" else read[1][:2]] == place["v"]
                ]
            assert [(read["name"], tuple(read["index"])) for read in reads] == expected, step.key


WORDS = modules.strings("trace_explorer")["trace_explorer"]

#: Formula and index -> how it is written in symbols, with its indices, with its numbers.
WRITTEN = [
    (
        "sum(q[b, i, e] * k[b, j, e] for e in range(dh)) / sqrt(dh)",
        {"b": 0, "i": 1, "j": 0},
        "(Σ_(e) q[b,i,e] · k[b,j,e]) / √dh",
        "(Σ_(e) q[0,1,e] · k[0,0,e]) / √2",
        "(3 · (-1) + 4 · 0.5) / √2",
    ),
    (
        "q[b, i, 0] if j <= i else -inf",
        {"b": 0, "i": 0, "j": 1},
        "q[b,i,0] if j ≤ i, else -inf",
        "-inf",
        "-inf",
    ),
    ("z[ids[b], j]", {"b": 1, "j": 0}, "z[ids[b],j]", "z[1,0]", "-7"),
    ("z[j // dh, j % dh]", {"j": 3}, "z[⌊j/dh⌋,j mod dh]", "z[1,1]", "8"),
    (
        "sum(z[b, d] for b in range(B) for d in range(dh) if ids[b] == v)",
        {"v": 0},
        "Σ_(b,d: ids[b] = v) z[b,d]",
        "Σ_(b,d: ids[b] = 0) z[b,d]",
        "5 + (-6)",
    ),
    ("sum(z[b, 0] for b in range(B) if ids[b] == v)", {"v": 5}, "Σ_(b: ids[b] = v) z[b,0]", None, "0"),
    ("max(z[b, j] for j in range(dh))", {"b": 1}, "max_(j) z[b,j]", "max_(j) z[1,j]", "max(-7, 8)"),
    ("-z[b, 1] ** 2", {"b": 0}, "-z[b,1]^2", "-z[0,1]^2", "-(-6)^2"),
    ("z[b, 0] - (z[b, 1] + 1)", {"b": 1}, "z[b,0] - (z[b,1] + 1)", "z[1,0] - (z[1,1] + 1)", "-7 - (8 + 1)"),
    ("z[b, 0] / (dh * B)", {"b": 0}, "z[b,0] / (dh · B)", "z[0,0] / (2 · 2)", "5 / (2 · 2)"),
    ("1 / (1 + exp(-z[b, 1]))", {"b": 0}, "1 / (1 + exp(-z[b,1]))", None, "1 / (1 + exp(-(-6)))"),
    ("t * base ** (-2 * t / dh)", {"t": 3}, "t · base^((-2) · t / dh)", None, "3 · 10^((-2) · 3 / 2)"),
]

TENSORS = {
    "q": {"shape": [1, 2, 2], "values": [1, 2, 3, 4]},
    "k": {"shape": [1, 2, 2], "values": [-1, 0.5, 7, 8]},
    "z": {"shape": [2, 2], "values": [5, -6, -7, 8]},
    "ids": {"shape": [2], "values": [0, 1]},
}


@pytest.mark.parametrize(("text", "index", "symbols", "placed", "numbers"), WRITTEN)
def test_text(call, text, index, symbols, placed, numbers):
    call(LOAD, TENSORS, {"B": 2, "dh": 2, "base": 10})
    tree = formula.parse(text, "".join(index))
    scope = "scopeFor({ q: 'q', k: 'k', z: 'z', ids: 'ids' })"
    assert call("symbolText", tree, WORDS) == symbols
    if placed is not None:
        assert call(f"((tree, index) => placedText(tree, {scope}, index))", tree, index) == placed
    assert call(f"((tree, index) => filledText(tree, {scope}, index, String))", tree, index) == numbers


def test_terms_of_additions_and_subtractions(call):
    call(LOAD, TENSORS, {"B": 2})
    tree = formula.parse("z[b, 0] - (z[b, 1] - B) + 1", "b")
    found = call("((tree) => formulaTerms(tree, scopeFor({ z: 'z' }), { b: 0 }))", tree)
    assert [(term["text"], term["value"]) for term in found["terms"]] == [
        ("z[0,0]", 5),
        ("- z[0,1]", 6),
        ("2", 2),
        ("1", 1),
    ]
    assert (found["total"], found["whole"], found["names"]) == (14, True, [])


def test_entries_that_are_an_index(call):
    tree = formula.parse("-log_probs[b, t, targets[b, t]]", "bt")
    assert call("lookUps", tree, {"b": 0, "t": 1}) == [["at", "targets", [["index", "b"], ["index", "t"]]]]
    free = formula.parse("sum(z[ids[b, t], d] for t in range(T))", "bd")
    assert call("lookUps", free, {"b": 0, "d": 1}) == []


@pytest.mark.parametrize(("a", "b"), [(7, 3), (-7, 3), (7, -3)])
def test_division_of_whole_numbers_is_pythons(call, a, b):
    number = ["number", a], ["number", b]
    compute = "((tree) => formulaValue(tree, {}, {}))"
    assert call(compute, ["//", *number]) == a // b
    assert call(compute, ["%", *number]) == a % b


def test_the_comparison_notices_a_wrong_sign(call):
    """The comparison above would fail: a minus in the place of a plus is far beyond its limit."""
    traced = TRACES["tiny"]
    load(call, traced)
    step = traced["blocks.0.r"]
    wrong = step._replace(formula=step.formula.replace("+", "-"))
    values = [float(value) for value in every(call, "(...all) => String(formulaValue(...all))", wrong)]
    assert worst(values, step) > 1e-3
