"""The model in JavaScript, held to labs.llm: the course's example, and one whose sizes differ pairwise."""

import numpy as np
import pytest

from labs.llm import model as llm
from labs.llm import ops, tiny

CLOSE = {"rtol": 1e-12, "atol": 1e-13}  # where large terms cancel, what is left has their rounding


@pytest.fixture(scope="module")
def call(javascript):
    return javascript("mask_explorer/one_layer.js")


def course():
    return tiny.params(), tiny.CONFIG, tiny.INPUT_IDS


def other():
    """B=3, T=7, D=24, H=4, dh=6, F=20, V=11, with gains that are not one and another base."""
    config = llm.ModelConfig(11, d_model=24, n_heads=4, n_layers=1, d_ff=20, rope_base=100.0, norm_eps=1e-3)
    rng = np.random.default_rng(1)
    params = llm.init_params(config, rng)
    params |= {key: rng.uniform(0.7, 1.3, x.shape) for key, x in params.items() if key.endswith("norm")}
    return params, config, rng.integers(0, 11, (3, 7))


EXAMPLES = {"course": course(), "pairwise different": other()}


@pytest.fixture(params=EXAMPLES.values(), ids=EXAMPLES)
def example(request):
    return request.param


def flat(array):
    return np.asarray(array).ravel().tolist()


def run(call, example, b, mask, ids=None):
    """The forward pass of text b in JavaScript."""
    params, config, texts = example
    settings = {"D": config.d_model, "H": config.n_heads, "base": config.rope_base, "eps": config.norm_eps}
    weights = {key: flat(x) for key, x in params.items()}
    return call("oneLayer", weights, settings, flat(texts[b] if ids is None else ids), flat(mask))


def masks(T):
    """The causal mask, none, and one with holes and padding; no row is empty."""
    rng = np.random.default_rng(2)
    return [np.tri(T, dtype=bool), np.ones((T, T), bool), (rng.random((T, T)) < 0.5) | np.eye(T, dtype=bool)]


@pytest.mark.parametrize("which", range(3))
def test_forward_is_the_librarys(call, example, which):
    params, config, texts = example
    mask = masks(texts.shape[1])[which]
    logits, cache = llm.forward(params, texts, config, mask=mask)
    attention = cache.blocks[0].attention
    for b in range(len(texts)):
        ours = run(call, example, b, mask)
        np.testing.assert_allclose(ours["logits"], flat(logits[b]), **CLOSE)
        np.testing.assert_allclose(ours["weights"], flat(attention.p[b]), **CLOSE)
        np.testing.assert_allclose(ours["o"], flat(attention.p[b] @ attention.v[b]), **CLOSE)
        scores = attention.q[b] @ attention.k[b].swapaxes(-1, -2) / np.sqrt(config.d_head)
        np.testing.assert_allclose(ours["scores"], flat(scores), **CLOSE)
        assert [x is None for x in ours["masked"]] == flat(np.broadcast_to(~mask, scores.shape))


def test_causal_to_the_last_bit(call, example):
    _, config, texts = example
    T, V = texts.shape[1], config.vocab_size
    mask = np.tri(T, dtype=bool)
    before = np.reshape(run(call, example, 0, mask)["logits"], (T, V))
    for t in range(T):
        changed = texts[0].copy()
        changed[t] = (changed[t] + 1) % V
        after = np.reshape(run(call, example, 0, mask, changed)["logits"], (T, V))
        assert (after[:t] == before[:t]).all()
        assert (after[t:] != before[t:]).any(axis=1).all()


def test_a_row_with_nothing_to_read_is_nan_and_the_others_are_not(call):
    mask = np.tri(5, dtype=bool)
    mask[2] = False
    ours = run(call, course(), 0, mask)
    assert [row for row in range(5) if ours["logits"][9 * row] is None] == [2]
    whole = run(call, course(), 0, np.tri(5, dtype=bool))
    assert ours["logits"][27:] == whole["logits"][27:]
    assert call(
        "((params, settings, ids, mask) => oneLayer(params, settings, ids, mask).logits.some(isNaN))",
        {key: flat(x) for key, x in tiny.params().items()},
        {"D": 8, "H": 2, "base": 1e4, "eps": 1e-5},
        flat(tiny.INPUT_IDS[0]),
        flat(mask),
    )


def test_heads_are_the_librarys(call):
    x = np.arange(5.0 * 24).reshape(1, 5, 24)
    assert call("splitHeads", flat(x), 24, 4) == flat(llm.split_heads(x, 4))
    assert call("mergeHeads", flat(llm.split_heads(x, 4)), 24, 4) == flat(x)


def test_norm_and_feed_forward_are_the_librarys(call):
    rng = np.random.default_rng(3)
    x, gain = rng.standard_normal((5, 8)), rng.uniform(0.5, 2, 8)
    np.testing.assert_allclose(
        call("rmsNorm", flat(x), flat(gain), 0.1), flat(ops.rms_norm(x, gain, eps=0.1)[0]), rtol=1e-12
    )
    w1, w3, w2 = rng.standard_normal((8, 6)), rng.standard_normal((8, 6)), rng.standard_normal((6, 8))
    np.testing.assert_allclose(
        call("swiglu", flat(x), flat(w1), flat(w3), flat(w2), 8), flat(llm.swiglu(x, w1, w3, w2)[0]), **CLOSE
    )


def test_positions_turn_within_each_head(call):
    x = np.random.default_rng(4).standard_normal((3, 5, 4))
    rotated = call("rotatePositions", flat(x), 5, 4, 100.0)
    np.testing.assert_allclose(rotated, flat(llm.rope(x, base=100.0)), **CLOSE)


def test_matmul_and_values(call):
    x, w = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    assert call("matmul", flat(x), flat(w), 3) == flat(x @ w)
    p, v = np.arange(18.0).reshape(2, 3, 3), np.arange(24.0).reshape(2, 3, 4)
    assert call("readValues", flat(p), flat(v), 3, 4) == flat(p @ v)


def test_rows(call):
    assert call("rowsOf", [1, 2, 3, 4, 5, 6], 3) == [[1, 2, 3], [4, 5, 6]]
