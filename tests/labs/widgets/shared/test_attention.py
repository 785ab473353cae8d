"""Attention in JavaScript, held to labs.llm; the sizes of the second example differ pairwise."""

import numpy as np
import pytest

from labs.llm import tiny
from labs.llm.model import causal_mask, forward
from labs.llm.ops import softmax
from labs.widgets.shared import modules


@pytest.fixture(scope="module")
def call(javascript):
    return javascript("shared/attention.js")


def drawn(B, H, T, dh):
    """Queries and keys without structure, so that no swapped axis passes."""
    return np.random.default_rng(0).standard_normal((2, B, H, T, dh))


def course():
    """Queries and keys of the course's example, after RoPE."""
    cache = forward(tiny.params(), tiny.INPUT_IDS, tiny.CONFIG)[1].blocks[0].attention
    return cache.q, cache.k


EXAMPLES = {"course": course(), "pairwise different": drawn(3, 4, 7, 6), "one of each": drawn(1, 1, 1, 2)}


@pytest.fixture(params=EXAMPLES.values(), ids=EXAMPLES)
def example(request):
    return request.param


def flat(array):
    return np.asarray(array).ravel().tolist()


def numpy_scores(q, k):
    return q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])


def test_scores(call, example):
    q, k = example
    scores = call("attentionScores", flat(q), flat(k), q.shape)
    np.testing.assert_allclose(scores, flat(numpy_scores(q, k)), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("axis", [-1, -2, 1])
def test_softmax_along_every_axis(call, example, axis):
    scores = numpy_scores(*example)
    weights = call("softmaxAlong", flat(scores), scores.shape, axis % 4)
    np.testing.assert_allclose(weights, flat(softmax(scores, axis=axis)), rtol=1e-12)


def test_names_of_the_axes(call):
    assert call("((names) => names.map((name) => SOFTMAX_AXES[name]))", ["keys", "queries", "heads"]) == [
        3,
        2,
        1,
    ]


def test_masked_weights_are_the_librarys(call):
    cache = forward(tiny.params(), tiny.INPUT_IDS, tiny.CONFIG)[1].blocks[0].attention
    scores = call("attentionScores", flat(cache.q), flat(cache.k), cache.q.shape)
    weights = call(
        "((scores, mask, shape) => softmaxAlong(maskScores(scores, mask), shape, 3))",
        scores,
        flat(causal_mask(5)),
        cache.p.shape,
    )
    np.testing.assert_allclose(weights, flat(cache.p), rtol=1e-12)
    assert (np.array(weights) == 0).sum() == 4 * 10


def test_masked_scores_are_minus_infinity_and_the_rest_stays(call):
    masked = call("maskScores", [1, 2, 3, 4, 5, 6, 7, 8], [True, False, True, True])
    assert masked == [1, None, 3, 4, 5, None, 7, 8]
    assert call("((scores, mask) => maskScores(scores, mask)[1] === -Infinity)", [1, 2], [True, False])


def test_nothing_to_share_is_nan(call):
    weights = call(
        "(() => softmaxAlong([-Infinity, -Infinity, 0, -Infinity], [2, 2], 1).map(String))",
    )
    assert weights == ["NaN", "NaN", "1", "0"]


def test_large_scores_do_not_overflow(call):
    assert call("softmaxAlong", [1000, 1000], [2], 0) == [0.5, 0.5]


@pytest.mark.parametrize("axis", range(3))
def test_slices(call, axis):
    places = np.arange(2 * 3 * 4).reshape(2, 3, 4)
    expected = np.moveaxis(places, axis, -1).reshape(-1, places.shape[axis])
    assert call("slicesAlong", places.shape, axis) == expected.tolist()


def test_sums_of_rows_and_columns(call):
    values = np.arange(9.0).reshape(3, 3)
    assert call("edgeSums", flat(values), 3) == {
        "rows": flat(values.sum(axis=1)),
        "columns": flat(values.sum(axis=0)),
    }


def test_one_but_for_rounding(call):
    assert [call("isOne", value) for value in (1, 1 + 1e-12, 0.999)] == [True, True, False]
    assert not call("(() => isOne(NaN))")


def state(mask):
    return {
        "shape": [2, 3, 2, 4],
        "labels": {"i": [["a", "b"], ["c", "d"]], "j": [["a", "b"], ["c", "d"]]},
        "strings": modules.strings("tensor", "attention"),
        "mask": mask,
        "batch": 1,
        "head": 2,
        "decimals": 2,
    }


def matrix(**more):
    return {"symbol": "P", "caption": "weights", "values": [0.5, 0.25, 0.75, 0.25], "limit": 1} | more


def test_grid_of_pairs(call):
    spec = call("pairSpec", state([True] * 4), matrix())
    assert spec["label"] == "P[1,2]"
    assert [row["label"] for row in spec["rows"]] == ["c", "d"]
    assert spec["cells"][1][0] == {"id": 2, "text": "0.75", "share": 0.75}


def test_forbidden_pairs_are_hatched_and_not_coloured(call):
    mask = [True, False, True, True]
    cell = call("pairSpec", state(mask), matrix(hatched=True))["cells"][0][1]
    assert cell == {"id": 1, "text": "0.25", "share": None, "className": "labs-masked"}
    assert "className" not in call("pairSpec", state(mask), matrix())["cells"][0][1]


def test_sums_stand_at_the_edges(call):
    spec = call("pairSpec", state([True] * 4), matrix(sums=True))
    assert [[cell and cell["text"] for cell in row] for row in spec["cells"]] == [
        ["0.50", "0.25", "0.75"],
        ["0.75", "0.25", "1.00"],
        ["1.25", "0.50", None],
    ]
    edge = [spec["cells"][0][2], spec["cells"][1][2], *spec["cells"][2][:2]]
    assert [cell["id"] for cell in edge] == [4, 5, 6, 7]
    assert [cell["className"] for cell in edge] == ["labs-sum labs-not-one", *["labs-sum"] * 3]
    assert all(cell["disabled"] for cell in edge)
    assert len(spec["rows"]) == len(spec["columns"]) == 3


def test_places_in_words(call):
    assert call("pairPlace", state([True] * 4), "i", 1) == "query 1 “d”"
    assert call("pairPlace", state([True] * 4) | {"labels": {}}, "j", 0) == "key 0"
