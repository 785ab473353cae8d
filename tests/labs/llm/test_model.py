"""The model: by hand where that is possible, by what must hold, and against an independent implementation."""

import math

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from labs.llm import model, ops
from labs.llm.parameters import BlockWeights, ModelConfig
from tests.labs.llm import reference
from tests.labs.llm.conftest import COURSE, DISTINCT, make_example
from tests.labs.llm.numeric import check_gradients, layouts, relative_error


@pytest.fixture
def rng():
    return np.random.default_rng(21)


# split_heads and merge_heads


def test_split_heads_by_hand():
    x = np.array([[[0, 1, 2, 3], [10, 11, 12, 13], [20, 21, 22, 23]]])  # T = 3: the tens count positions
    assert model.split_heads(x, 2).tolist() == [[[[0, 1], [10, 11], [20, 21]], [[2, 3], [12, 13], [22, 23]]]]
    assert x.reshape(1, 2, 3, 2).tolist() == [[[[0, 1], [2, 3], [10, 11]], [[12, 13], [20, 21], [22, 23]]]]


def test_split_heads_by_its_formula(rng):
    B, T, H, dh = 2, 5, 3, 4
    x = rng.standard_normal((B, T, H * dh))
    y = model.split_heads(x, H)
    assert y.shape == (B, H, T, dh)
    for b, h, t, e in np.ndindex(B, H, T, dh):
        assert y[b, h, t, e] == x[b, t, h * dh + e]


def test_merge_heads_undoes_split_heads(rng):
    x = rng.standard_normal((2, 5, 12))
    assert (model.merge_heads(model.split_heads(x, 3)) == x).all()
    y = rng.standard_normal((2, 3, 5, 4))
    assert (model.split_heads(model.merge_heads(y), 3) == y).all()


@pytest.mark.parametrize(
    ("shape", "n_heads", "error", "words"),
    [
        ((5, 12), 3, ValueError, r"x must have non-empty axes \(B, T, D\), got shape \(5, 12\)"),
        ((2, 3, 5, 4), 3, ValueError, r"x must have non-empty axes \(B, T, D\)"),
        ((2, 0, 12), 3, ValueError, r"x must have non-empty axes \(B, T, D\)"),
        ((2, 5, 12), 5, ValueError, "n_heads must divide D = 12, got H = 5"),
        ((2, 5, 12), 0, ValueError, "n_heads must be at least 1"),
        ((2, 5, 12), 3.0, TypeError, "n_heads must be an int"),
    ],
)
def test_split_heads_refuses(shape, n_heads, error, words):
    with pytest.raises(error, match=words):
        model.split_heads(np.ones(shape), n_heads)


def test_merge_heads_refuses():
    with pytest.raises(
        ValueError, match=r"x must have non-empty axes \(B, H, T, dh\), got shape \(2, 5, 12\)"
    ):
        model.merge_heads(np.ones((2, 5, 12)))


# rope


def test_rope_by_hand():
    x = np.array([[1.0, 0, 1, 0], [1, 0, 1, 0], [0, 1, 0, 1]])
    c, s = math.cos, math.sin
    # dh = 4: the first pair turns by 1 radian a position, the second by 10000 ** (-2 / 4) = 0.01
    expected = [[1, 0, 1, 0], [c(1), s(1), c(0.01), s(0.01)], [-s(2), c(2), -s(0.02), c(0.02)]]
    np.testing.assert_allclose(model.rope(x), expected, rtol=1e-15)


def test_rope_keeps_lengths_and_turns_back(rng):
    x = rng.standard_normal((2, 3, 7, 6))
    y = model.rope(x, base=50.0)
    assert (y[..., 0, :] == x[..., 0, :]).all()
    np.testing.assert_allclose(np.linalg.norm(y, axis=-1), np.linalg.norm(x, axis=-1), rtol=1e-14)
    np.testing.assert_allclose(model.rope(y, base=50.0, inverse=True), x, rtol=1e-13)


def test_rope_makes_scores_depend_on_the_distance(rng):
    q, k = rng.standard_normal((2, 1, 6))

    def score(i, j):
        return (model.rope(q, [i]) * model.rope(k, [j])).sum()

    assert score(7, 4) == pytest.approx(score(103, 100), rel=1e-12)
    assert score(7, 4) != pytest.approx(score(7, 5), rel=1e-3)


def test_rope_computes_angles_in_float64():
    x = np.array([[1, 0]], np.float32)
    y = model.rope(x, [16_777_217])  # the first integer that float32 cannot hold
    assert y.dtype == np.float32
    np.testing.assert_allclose(y, [[math.cos(16_777_217), math.sin(16_777_217)]], rtol=1e-6)


def test_rope_turned_back_is_the_backward_pass(rng):
    x, dy = rng.standard_normal((2, 2, 5, 4))
    positions = [3, 0, 1, 8, 2]
    check_gradients(lambda x: model.rope(x, positions), (x,), dy, (model.rope(dy, positions, inverse=True),))
    with pytest.raises(AssertionError, match="is off"):
        check_gradients(lambda x: model.rope(x, positions), (x,), dy, (model.rope(dy, positions),))


@pytest.mark.parametrize(
    ("shape", "options", "words"),
    [
        ((5, 3), {}, r"x must have shape \(..., T, dh\) with dh even, got \(5, 3\)"),
        ((4,), {}, r"with dh even, got \(4,\)"),
        ((5, 4), {"positions": [0, 1, 2]}, r"positions must have shape \(T,\) = \(5,\), got \(3,\)"),
        ((5, 4), {"positions": [[0]]}, "positions must have shape"),
        ((5, 4), {"base": 0}, "base must be positive and finite"),
        ((5, 4), {"base": math.nan}, "base must be positive and finite"),
    ],
)
def test_rope_refuses(shape, options, words):
    with pytest.raises(ValueError, match=words):
        model.rope(np.ones(shape), **options)


# causal_mask


def test_causal_mask_by_hand():
    assert model.causal_mask(3).astype(int).tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    assert model.causal_mask(2, 4).astype(int).tolist() == [[1, 1, 1, 0], [1, 1, 1, 1]]
    assert model.causal_mask(3).dtype == bool


def test_a_padding_mask_keeps_every_query_from_the_padding():
    keep = np.array([[True, True, True], [True, False, False]])
    mask = model.padding_mask(keep)
    assert mask.shape == (2, 1, 1, 3)
    assert (mask[:, 0, 0] == keep).all()
    both = model.causal_mask(3) & mask
    assert both[0, 0].tolist() == model.causal_mask(3).tolist()
    assert both[1, 0].tolist() == [[True, False, False]] * 3


def test_what_is_padded_has_no_effect_on_what_is_real(example):
    config, params, ids, _ = example
    keep = np.arange(7) < np.array([7, 4, 2])[:, np.newaxis]
    mask = model.causal_mask(7) & model.padding_mask(keep)
    logits, _ = model.forward(params, ids, config, mask=mask)
    changed, _ = model.forward(params, np.where(keep, ids, 0), config, mask=mask)
    assert (logits[keep] == changed[keep]).all()
    # read backwards, without the causal mask, only the padding mask hides it
    mask = np.broadcast_to(model.padding_mask(keep), (3, 1, 7, 7))
    logits, _ = model.forward(params, ids, config, mask=mask)
    changed, _ = model.forward(params, np.where(keep, ids, 0), config, mask=mask)
    assert (logits[keep] == changed[keep]).all()
    open_logits, _ = model.forward(params, ids, config, mask=np.ones((7, 7), bool))
    assert (open_logits[1] != logits[1]).any()


def test_what_says_which_tokens_are_real_is_not_taken_for_a_mask(example):
    config, params, ids, _ = example
    with pytest.raises(
        ValueError, match=r"got \(3, 7\): .* two axes always mean \(Tq, Tk\), so use padding_mask"
    ):
        model.forward(params, ids, config, mask=np.ones((3, 7), bool))
    with pytest.raises(TypeError, match=r"keep must be boolean \(True = a real token\), got dtype int64"):
        model.padding_mask(np.ones((3, 7), int))
    with pytest.raises(ValueError, match=r"keep must have non-empty axes \(B, T\), got shape \(3, 1, 7\)"):
        model.padding_mask(np.ones((3, 1, 7), bool))


def test_the_mask_of_the_last_positions_is_the_end_of_the_whole_mask():
    assert (model.causal_mask(3, 7) == model.causal_mask(7)[-3:]).all()


@pytest.mark.parametrize(
    ("sizes", "error", "words"),
    [
        ((3, 2), ValueError, "t_key must be at least t_query, got Tq = 3 and Tk = 2"),
        ((0,), ValueError, "t_query must be at least 1"),
        ((2.0,), TypeError, "t_query must be an int"),
        ((2, True), TypeError, "t_key must be an int"),
    ],
)
def test_causal_mask_refuses(sizes, error, words):
    with pytest.raises(error, match=words):
        model.causal_mask(*sizes)


# attention


def random_attention(rng, B=2, H=3, Tq=4, Tk=6, dh=5):
    """Return q, k, v and a mask that differs from text to text and head to head."""
    q, k, v = rng.standard_normal((B, H, Tq, dh)), *rng.standard_normal((2, B, H, Tk, dh))
    mask = rng.random((B, H, Tq, Tk)) < 0.5
    mask[..., 1] = True  # something to read for everyone
    mask[..., 2] = False  # a key that nobody reads
    return q, k, v, mask


def test_attention_by_hand():
    # dh = 4, so scores are halved: query 1 scores log 3 on key 0 and 0 on key 1
    q = np.array([[[[9.0, 9, 9, 9], [2 * math.log(3), 0, 0, 0]]]])
    k = np.array([[[[1.0, 5, 5, 5], [0, 7, 7, 7]]]])
    v = np.array([[[[1.0, 0, 0, 0], [0, 1, 0, 4]]]])
    o, cache = model.attention(q, k, v, model.causal_mask(2))
    np.testing.assert_allclose(cache.p, [[[[1, 0], [0.75, 0.25]]]], rtol=1e-15)
    np.testing.assert_allclose(o, [[[[1, 0, 0, 0], [0.75, 0.25, 0, 1]]]], rtol=1e-15)


def test_attention_reads_what_the_mask_allows_and_nothing_else(rng):
    q, k, v, mask = random_attention(rng)
    o, cache = model.attention(q, k, v, mask)
    assert (cache.p[~mask] == 0).all()
    assert (cache.p[mask] > 0).all()
    np.testing.assert_allclose(cache.p.sum(axis=-1), 1, rtol=1e-14)
    k[..., 2, :], v[..., 2, :] = 1e6, -1e6
    assert (model.attention(q, k, v, mask)[0] == o).all()


def test_a_query_of_zeros_reads_the_mean(rng):
    _, k, v, _ = random_attention(rng)
    o, _ = model.attention(np.zeros_like(k), k, v, model.causal_mask(6))
    for i in range(6):
        np.testing.assert_allclose(o[:, :, i], v[:, :, : i + 1].mean(axis=2), rtol=1e-13)


def test_attention_with_scores_at_the_extremes():
    q = np.full((1, 1, 2, 4), 1e4)
    k = np.concatenate([q[..., :1, :], -q[..., :1, :]], axis=2)
    _, cache = model.attention(q, k, k, np.ones((2, 2), bool))
    assert cache.p.tolist() == [[[[1, 0], [1, 0]]]]


def test_a_masked_key_loses_to_any_score():
    q, k = np.full((1, 1, 2, 4), 1e8), np.full((1, 1, 2, 4), -1e8)  # scores of -2e16
    k[..., 1, :] = 1e8
    _, cache = model.attention(q, k, k, model.causal_mask(2))
    assert cache.p.tolist() == [[[[1, 0], [0, 1]]]]


def test_attention_refuses_shapes_that_disagree(rng):
    q, k, v, mask = random_attention(rng)
    cases = [
        ((q[0], k, v, mask), r"q must have non-empty axes \(B, H, Tq, dh\)"),
        ((q, k[:, :1], v, mask), r"k must have shape \(B, H, Tk, dh\) = \(2, 3, 6, 5\), got \(2, 1, 6, 5\)"),
        ((q, k[..., :4], v, mask), r"k must have shape"),
        ((q, k[0, 0], v, mask), r"k must have non-empty axes"),
        (
            (q, k, v[:, :, :5], mask),
            r"v must have shape \(B, H, Tk, dh\) = \(2, 3, 6, 5\), got \(2, 3, 5, 5\)",
        ),
        ((q, k, v, mask.swapaxes(0, 1)), r"mask must have shape"),
        ((q, k, v, mask[0, 0, :, :1] & False), r"mask must let every query read something"),
    ]
    for arguments, words in cases:
        with pytest.raises(ValueError, match=words):
            model.attention(*arguments)
    with pytest.raises(TypeError, match="mask must be boolean"):
        model.attention(q, k, v, mask.astype(float))


def test_attention_refuses_a_mask_per_text_even_where_it_would_broadcast(rng):
    q, k, v = rng.standard_normal((3, 2, 2, 4, 6))  # B = H = 2
    with pytest.raises(ValueError, match=r"got \(2, 4, 4\): per text mask\[:, None\]"):
        model.attention(q, k, v, np.ones((2, 4, 4), bool))


def test_attention_backward(rng):
    q, k, v, mask = random_attention(rng)
    do = rng.standard_normal(q.shape)

    def read(q, k, v):
        return model.attention(q, k, v, mask)[0]

    dq, dk, dv = model.attention_backward(do, model.attention(q, k, v, mask)[1])
    check_gradients(read, (q, k, v), do, (dq, dk, dv))
    assert (dk[..., 2, :] == 0).all()
    assert (dv[..., 2, :] == 0).all()
    with pytest.raises(AssertionError, match="argument 0 is off"):
        check_gradients(read, (q, k, v), do, (dq * math.sqrt(5), dk, dv))  # scale forgotten
    with pytest.raises(AssertionError, match="argument 1 is off"):
        check_gradients(read, (q, k, v), do, (dq, dk * 0.999, dv))
    with pytest.raises(ValueError, match="do must have shape"):
        model.attention_backward(do[:, :1], model.attention(q, k, v, mask)[1])


# swiglu


def test_swiglu_by_hand():
    x, w1, w3 = np.array([[1.0, 2.0]]), np.array([[math.log(3)], [0.0]]), np.array([[2.0], [3.0]])
    y, cache = model.swiglu(x, w1, w3, np.array([[1.0, -1.0]]))
    # u = log 3, so sigmoid(u) = 3/4; up = 2 + 6 = 8
    np.testing.assert_allclose(cache.hidden, [[0.75 * math.log(3) * 8]], rtol=1e-15)
    np.testing.assert_allclose(y, [[6 * math.log(3), -6 * math.log(3)]], rtol=1e-15)


def test_swiglu_works_on_each_position_alone(rng):
    x, w1, w3, w2 = (rng.standard_normal(shape) for shape in [(2, 5, 4), (4, 7), (4, 7), (7, 4)])
    y, _ = model.swiglu(x, w1, w3, w2)
    x[1, 3] += 1
    changed = (model.swiglu(x, w1, w3, w2)[0] != y).any(axis=-1)
    assert np.argwhere(changed).tolist() == [[1, 3]]


@pytest.mark.parametrize(
    ("w1", "w3", "w2", "words"),
    [
        ((4, 7), (4, 1), (7, 4), r"w3 must have shape \(D, F\) = \(4, 7\), got \(4, 1\)"),
        ((4, 7), (4, 7), (4, 7), r"w2 must have shape \(F, D\) = \(7, 4\), got \(4, 7\)"),
        ((4,), (4, 7), (7, 4), r"w1 must have non-empty axes \(D, F\)"),
        ((7, 4), (7, 4), (4, 7), "must share D_in"),
    ],
)
def test_swiglu_refuses(w1, w3, w2, words):
    with pytest.raises(ValueError, match=words):
        model.swiglu(np.ones((2, 5, 4)), np.ones(w1), np.ones(w3), np.ones(w2))


def test_swiglu_backward(rng):
    x, w1, w3, w2 = arrays = [rng.standard_normal(shape) for shape in [(2, 3, 4), (4, 5), (4, 5), (5, 4)]]
    dy = rng.standard_normal(x.shape)

    def transform(*arrays):
        return model.swiglu(*arrays)[0]

    dx, dw1, dw3, dw2 = model.swiglu_backward(dy, model.swiglu(x, w1, w3, w2)[1])
    check_gradients(transform, arrays, dy, (dx, dw1, dw3, dw2))
    with pytest.raises(AssertionError, match="argument 1 is off"):
        check_gradients(transform, arrays, dy, (dx, dw3, dw1, dw2))
    with pytest.raises(ValueError, match="dy must have shape"):
        model.swiglu_backward(dy[..., :1], model.swiglu(x, w1, w3, w2)[1])


# block


def test_block_is_two_branches_beside_the_residual_stream(example, rng):
    config, params, _, _ = example
    x, w = rng.standard_normal((3, 7, 24)), model.block_weights(params, 1)
    y, cache = model.block(x, w, config)
    z = ops.rms_norm(x, w.attn_norm)[0]
    q, k, v = (model.split_heads(ops.linear(z, weight), 4) for weight in (w.wq, w.wk, w.wv))
    joined = model.merge_heads(model.attention(model.rope(q), model.rope(k), v, model.causal_mask(7))[0])
    r = x + ops.linear(joined, w.wo)
    n = ops.rms_norm(r, w.ffn_norm)[0]
    branch, swiglu_cache = model.swiglu(n, w.w1, w.w3, w.w2)
    assert (y == r + branch).all()
    kept = {"z": z, "q": model.rope(q), "k": model.rope(k), "v": v, "joined": joined, "n": n}
    kept["hidden"] = swiglu_cache.hidden
    for name, array in kept.items():
        assert (getattr(cache, name) == array).all(), name
    assert [name for name in cache._fields if name in kept] == list(kept)


def test_block_of_closed_branches_passes_the_stream_on(example, rng):
    config, params, _, _ = example
    weights = model.block_weights(params, 0)
    weights = weights._replace(wo=np.zeros_like(weights.wo), w2=np.zeros_like(weights.w2))
    x, dy = rng.standard_normal((2, 3, 7, 24))
    y, cache = model.block(x, weights, config)
    assert (y == x).all()
    assert (model.block_backward(dy, cache)[0] == dy).all()


def test_block_backward(rng):
    config = ModelConfig(vocab_size=3, d_model=8, n_heads=2, d_ff=5)
    _, params, _, _ = make_example(config, 1, 3, seed=1)
    arrays = [rng.standard_normal((2, 3, 8)), *model.block_weights(params, 0)]
    dy = rng.standard_normal((2, 3, 8))

    def run(x, *weights):
        return model.block(x, BlockWeights(*weights), config, positions=[2, 0, 5])[0]

    _, cache = model.block(arrays[0], BlockWeights(*arrays[1:]), config, positions=[2, 0, 5])
    dx, dweights = model.block_backward(dy, cache)
    check_gradients(run, arrays, dy, (dx, *dweights))
    with pytest.raises(AssertionError, match="argument 0 is off"):
        check_gradients(run, arrays, dy, (dx - dy, *dweights))  # the way past the branches forgotten
    with pytest.raises(ValueError, match=r"dy must have shape \(B, T, D\) = \(2, 3, 8\), got \(2, 1, 8\)"):
        model.block_backward(dy[:, :1], cache)


def test_block_refuses(example, rng):
    config, params, _, _ = example
    weights, x = model.block_weights(params, 0), rng.standard_normal((3, 7, 24))
    with pytest.raises(ValueError, match=r"x must have non-empty axes \(B, T, D\), got shape \(7, 24\)"):
        model.block(x[0], weights, config)
    with pytest.raises(ValueError, match=r"wq must have shape \(D, D\) = \(24, 24\), got \(24, 12\)"):
        model.block(x, weights._replace(wq=weights.wq[:, :12]), config)


# The whole model: what must hold


def test_the_first_loss_is_near_that_of_a_uniform_guess(rng):
    config = ModelConfig(28)
    ids, targets = rng.integers(0, 28, (2, 16, 32))
    loss, _ = model.loss_and_grads(model.init_params(config, 0), ids, targets, config)
    assert loss == pytest.approx(math.log(28), abs=0.02)


def test_no_logit_changes_before_a_changed_token(example):
    config, params, ids, _ = example
    logits, _ = model.forward(params, ids, config)
    for t in range(ids.shape[1]):
        other = ids.copy()
        other[:, t] = (other[:, t] + 1) % config.vocab_size
        changed = (model.forward(params, other, config)[0] != logits).any(axis=-1)
        assert not changed[:, :t].any(), "causality holds to the last bit"
        assert changed[:, t:].all(), "every later position can see the change"


def test_a_text_does_not_see_its_neighbours(example):
    config, params, ids, _ = example
    logits, _ = model.forward(params, ids, config)
    other = ids.copy()
    other[1] = (other[1] + 1) % config.vocab_size
    changed = (model.forward(params, other, config)[0] != logits).any(axis=(1, 2))
    assert changed.tolist() == [False, True, False]


def test_only_differences_of_positions_matter(example):
    config, params, ids, _ = example
    logits, _ = model.forward(params, ids, config)
    shifted, _ = model.forward(params, ids, config, positions=np.arange(7) + 40)
    assert relative_error(shifted, logits) < 1e-12
    stretched, _ = model.forward(params, ids, config, positions=2 * np.arange(7))
    assert relative_error(stretched, logits) > 1e-3


def test_the_switches_do_what_they_say(example):
    config, params, ids, _ = example
    logits, _ = model.forward(params, ids, config)
    same, _ = model.forward(params, ids, config, mask=model.causal_mask(7), positions=range(7))
    assert (same == logits).all()
    everything = np.ones((7, 7), bool)
    order = np.array([3, 0, 6, 1, 5, 2, 4])
    # without a mask and without positions, the model sees a bag of tokens
    bag, _ = model.forward(params, ids, config, mask=everything, rotate=False)
    shuffled, _ = model.forward(params, ids[:, order], config, mask=everything, rotate=False)
    assert relative_error(shuffled, bag[:, order]) < 1e-12
    seen, _ = model.forward(params, ids[:, order], config, mask=everything)
    assert relative_error(seen, model.forward(params, ids, config, mask=everything)[0][:, order]) > 1e-3


def test_backward_follows_the_switches(example, rng):
    config, params, ids, _ = example
    dlogits = rng.standard_normal((3, 7, 11))
    mask = model.causal_mask(7)[np.newaxis, np.newaxis] & (rng.random((3, 1, 7, 7)) < 0.6) | np.eye(
        7, dtype=bool
    )
    step = 1e-5
    for switches in ({"rotate": False}, {"positions": [4, 2, 9, 0, 1, 3, 8]}, {"mask": mask}):
        grads = model.backward(dlogits, model.forward(params, ids, config, **switches)[1])
        for key in ("blocks.0.wq", "blocks.1.wk", "embedding"):
            direction = rng.standard_normal(params[key].shape)
            ends = [
                (
                    model.forward({**params, key: params[key] + s * direction}, ids, config, **switches)[0]
                    * dlogits
                )
                for s in (step, -step)
            ]
            slope = (ends[0] - ends[1]).sum() / (2 * step)
            assert (grads[key] * direction).sum() == pytest.approx(slope, rel=1e-6), (switches, key)


def test_nothing_passed_in_is_changed_and_backward_repeats_itself(example, rng):
    config, params, ids, targets = example
    given = [*params.values(), ids, targets]
    before = [array.copy() for array in given]
    _, cache = model.forward(params, ids, config)
    dlogits = rng.standard_normal((3, 7, 11))
    kept = dlogits.copy()
    first, second = model.backward(dlogits, cache), model.backward(dlogits, cache)
    model.loss_and_grads(params, ids, targets, config)
    assert all((a == b).all() for a, b in zip(given, before, strict=True))
    assert (dlogits == kept).all()
    for key, gradient in first.items():
        assert (gradient == second[key]).all()
        assert not any(np.shares_memory(gradient, array) for array in [*given, second[key], dlogits]), key


@pytest.mark.parametrize("layout", range(3), ids=["Fortran", "strided", "read-only"])
def test_memory_layout_makes_no_difference(example, layout):
    config, params, ids, targets = example
    loss, grads = model.loss_and_grads(params, ids, targets, config)
    laid_out = {key: list(layouts(array))[layout] for key, array in params.items()}
    other_ids, other_targets = (list(layouts(array))[layout] for array in (ids, targets))
    other_loss, other_grads = model.loss_and_grads(laid_out, other_ids, other_targets, config)
    assert other_loss == pytest.approx(loss, rel=1e-14)
    for key, gradient in grads.items():
        assert relative_error(other_grads[key], gradient) < 1e-12, key
    _, cache = model.forward(params, ids, config)
    dlogits = np.random.default_rng(0).standard_normal((3, 7, 11))
    expected = model.backward(dlogits, cache)
    for key, gradient in model.backward(list(layouts(dlogits))[layout], cache).items():
        assert relative_error(gradient, expected[key]) < 1e-12, key


def test_float32_stays_float32_and_agrees_with_float64():
    config, params, ids, targets = make_example(*DISTINCT, seed=5)
    narrow = {key: array.astype(np.float32) for key, array in params.items()}
    logits, cache = model.forward(narrow, ids, config)
    loss, grads = model.loss_and_grads(narrow, ids, targets, config)
    assert logits.dtype == loss.dtype == np.float32
    for block in cache.blocks:
        for name in ("z", "q", "k", "v", "joined", "n", "hidden"):
            assert getattr(block, name).dtype == np.float32, name
    wide_loss, wide_grads = model.loss_and_grads(params, ids, targets, config)
    assert loss == pytest.approx(wide_loss, rel=1e-6)
    for key, gradient in grads.items():
        assert gradient.dtype == np.float32, key
        assert relative_error(gradient, wide_grads[key]) < 1e-4, key


# The whole model: refusals


@pytest.mark.parametrize(
    ("ids", "error", "words"),
    [
        (np.zeros((2, 3)), TypeError, "ids must be integers, got dtype float64"),
        (np.zeros((2, 3), bool), TypeError, "ids must be integers, got dtype bool"),
        (np.full((2, 3), -1), ValueError, r"ids must lie in \[0, V\) = \[0, 11\), got -1"),
        (np.full((2, 3), 11), ValueError, r"got 11"),
        (np.zeros(3, int), ValueError, r"ids must have non-empty axes \(B, T\), got shape \(3,\)"),
        (np.zeros((1, 2, 3), int), ValueError, r"ids must have non-empty axes \(B, T\)"),
        (np.zeros((2, 0), int), ValueError, r"ids must have non-empty axes \(B, T\)"),
        ([[0, 1]], TypeError, "ids must be a NumPy array, got list: make it one"),
    ],
)
def test_forward_refuses_ids(example, ids, error, words):
    with pytest.raises(error, match=words):
        model.forward(example.params, ids, example.config)


@pytest.mark.parametrize(
    ("switches", "error", "words"),
    [
        ({"mask": np.ones((7, 7))}, TypeError, "mask must be boolean"),
        ({"mask": np.ones((6, 6), bool)}, ValueError, r"mask must have shape \(Tq, Tk\) = \(7, 7\)"),
        ({"mask": np.ones((3, 7, 7), bool)}, ValueError, "mask must have shape"),
        ({"mask": np.tri(7, k=-1, dtype=bool)}, ValueError, r"got nothing in row \(0,\)"),
        ({"positions": np.arange(6)}, ValueError, r"positions must have shape \(T,\) = \(7,\)"),
        ({"positions": np.full(7, np.nan)}, ValueError, "positions must be finite"),
    ],
)
def test_forward_refuses_switches(example, switches, error, words):
    with pytest.raises(error, match=words):
        model.forward(example.params, example.ids, example.config, **switches)


def test_backward_refuses_another_batch(example):
    config, params, ids, _ = example
    logits, cache = model.forward(params, ids, config)
    for wrong in (logits[:1], logits[..., :1], logits[0], np.ones(())):
        with pytest.raises(ValueError, match=r"dlogits must have shape \(B, T, V\) = \(3, 7, 11\), got"):
            model.backward(wrong, cache)
    with pytest.raises(TypeError, match="dlogits must have the dtype of params, float64, got float32"):
        model.backward(logits.astype(np.float32), cache)
    with pytest.raises(TypeError, match="dlogits must hold floating-point numbers"):
        model.backward(logits.astype(int), cache)


@pytest.mark.parametrize("change", [lambda t: t[:1], lambda t: t.ravel(), lambda t: t + 11, lambda t: t.T])
def test_loss_and_grads_refuses_targets(example, change):
    with pytest.raises(ValueError, match="targets must"):
        model.loss_and_grads(example.params, example.ids, change(example.targets), example.config)


# The whole model: an independent implementation


def distance_to_reference(example):
    """Return the worst error of logits, loss and all gradients, each relative to its own largest entry."""
    config, params, ids, targets = example
    loss, grads = model.loss_and_grads(params, ids, targets, config)
    expected_loss, expected_grads = reference.loss_and_grads(params, ids, targets, config)
    assert list(grads) == list(params)
    logits, _ = model.forward(params, ids, config)
    errors = [relative_error(grads[key], expected_grads[key]) for key in params]
    errors.append(relative_error(logits, reference.logits(params, ids, config)))
    return max(*errors, abs(loss - expected_loss) / expected_loss)


@pytest.mark.parametrize("sizes", [COURSE, DISTINCT], ids=["course", "distinct"])
def test_reference_agrees(sizes, record_property):
    worst = distance_to_reference(make_example(*sizes, seed=7))
    record_property("worst relative error against autograd", f"{worst:.1e}")
    assert worst <= 1e-10


def test_reference_agrees_on_random_configurations(record_property):
    errors = []

    # no shrinking: it would take minutes, and any configuration can be read off the report
    @settings(max_examples=40, deadline=None, derandomize=True, database=None, phases=[Phase.generate])
    @given(st.data())
    def compare(data):
        sizes = {"vocab_size": (2, 9), "n_heads": (1, 3), "pairs": (1, 3), "n_layers": (1, 3), "d_ff": (1, 7)}
        drawn = {name: data.draw(st.integers(*ends), name) for name, ends in sizes.items()}
        drawn["d_model"] = 2 * drawn.pop("pairs") * drawn["n_heads"]
        base, eps = data.draw(st.floats(2, 1e5), "rope_base"), data.draw(st.floats(1e-8, 0.1), "norm_eps")
        B, T = data.draw(st.integers(1, 3), "B"), data.draw(st.integers(3, 6), "T")
        seed = data.draw(st.integers(0, 2**32 - 1), "seed")
        example = make_example(ModelConfig(**drawn, rope_base=base, norm_eps=eps), B, T, seed)
        errors.append(distance_to_reference(example))
        assert errors[-1] <= 1e-10

    compare()
    record_property(
        "worst relative error against autograd", f"{max(errors):.1e} over {len(errors)} configurations"
    )


def test_reference_would_notice(monkeypatch):
    example = make_example(*DISTINCT, seed=7)
    right = model.rope
    monkeypatch.setattr(model, "rope", lambda *args, **options: right(*args, **options | {"inverse": False}))
    assert distance_to_reference(example) > 1e-3  # the backward pass rotated forward
