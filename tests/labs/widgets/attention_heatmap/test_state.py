"""What AttentionHeatmap shows and says, held to NumPy."""

import numpy as np
import pytest

from labs.llm.ops import softmax
from labs.widgets import AttentionHeatmap

AXES = {"keys": -1, "queries": -2, "heads": 1}


@pytest.fixture(scope="module")
def call(javascript):
    return javascript("attention_heatmap/state.js")


@pytest.fixture(scope="module")
def shown(call):
    """A function `shown(name, held, *arguments)`: a function of the module on the state made of `held`."""
    return lambda name, held, *more: call(
        f"((held, ...more) => {name}(heatmapState(held), ...more))", held, *more
    )


@pytest.fixture(scope="module")
def example():
    """Queries and keys (2,3,5,4)."""
    return np.random.default_rng(0).standard_normal((2, 2, 3, 5, 4))


LABELS = [list("atten"), list("causa")]
NAMES = ("q", "k", "shape", "mask", "labels", "decimals", "batch", "head", "axis", "selected", "strings")
NAMES += ("digits",)


def held(example, mask=None, **chosen):
    """What the model of a widget holds."""
    widget = AttentionHeatmap(*example, mask=mask, labels=LABELS)
    return {name: getattr(widget, name) for name in NAMES} | chosen


def scores_of(example):
    q, k = example
    return q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])


def texts(spec):
    return [[cell["text"] if cell else "" for cell in row] for row in spec["cells"]]


def written(array, decimals=2):
    return [[f"{value:.{decimals}f}" for value in row] for row in array]


@pytest.mark.parametrize("axis", AXES)
def test_grids_hold_scores_and_weights_of_the_chosen_head(shown, example, axis):
    specs = shown("heatmapSpecs", held(example, batch=1, head=1, axis=axis))
    scores = scores_of(example)
    weights = softmax(scores, axis=AXES[axis])[1, 1]
    assert [spec["label"] for spec in specs] == ["S[1,1]", "P[1,1]"]
    assert texts(specs[0]) == written(scores[1, 1])
    assert [row[:5] for row in texts(specs[1])[:5]] == written(weights)
    assert [row[5] for row in texts(specs[1])[:5]] == written([weights.sum(axis=1)])[0]
    assert texts(specs[1])[5] == [*written([weights.sum(axis=0)])[0], ""]


def test_masked_scores_only_where_something_is_forbidden(shown, example):
    specs = shown("heatmapSpecs", held(example, np.tri(5, dtype=bool)))
    assert [spec["label"] for spec in specs] == ["S[0,0]", "S + M[0,0]", "P[0,0]"]
    expected = np.where(np.tri(5, dtype=bool), scores_of(example)[0, 0], -np.inf)
    assert texts(specs[1]) == written(expected)
    assert len(shown("heatmapSpecs", held(example, np.ones((5, 5), bool)))) == 2


@pytest.mark.parametrize(
    ("axis", "sentence"),
    [
        ("keys", "Each row adds up to one"),
        ("queries", "The wrong axis: each column adds up to one"),
        ("heads", "The wrong axis: for each pair, the 3 heads together add up to one"),
    ],
)
def test_verdict(shown, example, axis, sentence):
    verdict = shown("axisVerdict", held(example, axis=axis))
    assert verdict.startswith(sentence)
    if axis != "keys":
        rows = softmax(scores_of(example), axis=AXES[axis])[0, 0].sum(axis=1)
        assert f"between {rows.min():z.2f} and {rows.max():z.2f}" in verdict


def test_verdict_says_when_the_sums_do_not_show_the_mistake(shown):
    equal = np.zeros((2, 2, 3, 5, 4))
    verdict = shown("axisVerdict", held(equal, axis="queries"))
    assert "here the sums do not reveal the mistake" in verdict


def test_verdict_says_where_nan_comes_from(shown, example):
    verdict = shown("axisVerdict", held(example, np.tri(5, dtype=bool), axis="heads"))
    assert verdict.endswith("zero is divided by zero: NaN.")


def test_cells_in_words(shown, example):
    scores = scores_of(example)[1, 2]
    weights = softmax(scores_of(example))[1, 2]
    chosen = held(example, batch=1, head=2)
    assert shown("cellSentence", chosen, 4 * 5 + 1) == (
        f"query 4 “a” reads key 1 “a”: score {scores[4, 1]:z.2f}, weight {weights[4, 1]:z.2f}."
    )
    assert shown("cellSentence", chosen, 25 + 3) == "The row of query 3 “s” adds up to 1.00."
    assert shown("cellSentence", chosen, 25 + 5 + 2) == (
        f"The column of key 2 “u” adds up to {weights[:, 2].sum():z.2f}."
    )


def test_forbidden_cell_in_words(shown, example):
    score = scores_of(example)[0, 0, 1, 3]
    assert shown("cellSentence", held(example, np.tri(5, dtype=bool)), 1 * 5 + 3) == (
        f"query 1 “t” may not read key 3 “e”: score {score:z.2f}, masked -inf, weight 0.00."
    )


@pytest.mark.parametrize("axis", AXES)
def test_how_an_entry_comes_about(shown, example, axis):
    b, h, i, j = 1, 2, 4, 1
    details = shown("entryDetails", held(example, batch=b, head=h, axis=axis, selected=i * 5 + j))
    q, k = example[0][b, h, i], example[1][b, h, j]
    scores = scores_of(example)
    place = {"keys": (b, h, i), "queries": (b, h, ..., j), "heads": (b, ..., i, j)}[axis]
    entry = {"keys": j, "queries": i, "heads": h}[axis]

    rows = texts(details["score"]["table"])
    assert rows == [*written(np.stack([q, k, q * k], axis=1), 4), ["", "", f"{q @ k:z.4f}"]]
    assert details["score"]["result"] == f"{q @ k:z.4f} / √4 = {scores[b, h, i, j]:z.4f}, the score"

    shares = softmax(scores, axis=AXES[axis])[place]
    powers = np.exp(scores[place])
    rows = texts(details["weight"]["table"])
    assert rows[:-1] == written(np.stack([scores[place], powers, shares], axis=1), 4)
    assert rows[-1] == ["", f"{powers.sum():z.4f}", "1.0000"]
    assert details["weight"]["result"] == (
        f"{powers[entry]:z.4f} / {powers.sum():z.4f} = {shares[entry]:z.4f}, the weight"
    )
    chosen = [row[2]["className"] == "labs-chosen-number" for row in details["weight"]["table"]["cells"]]
    assert chosen == [n == entry for n in range(len(shares) + 1)]


def test_rows_behind_an_entry_have_the_letters_of_their_axis(shown, example):
    for axis, letters in {"keys": "causa", "queries": "causa", "heads": None}.items():
        table = shown("entryDetails", held(example, batch=1, axis=axis, selected=7))["weight"]["table"]
        assert [row["label"] for row in table["rows"][:-1]] == [*(letters or [None] * 3)]


def test_forbidden_entry_shows_what_the_mask_does(shown, example):
    details = shown("entryDetails", held(example, np.tri(5, dtype=bool), selected=3))
    assert details["score"]["result"].endswith("but the mask forbids this pair: -inf takes its place")
    assert texts(details["weight"]["table"])[3] == ["-inf", "0.0000", "0.0000"]
