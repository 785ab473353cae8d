"""Every cost against a count: arrays that were really made, and products that were really computed."""

import numpy as np
import pytest

from labs.llm import ops
from labs.llm.costs import (
    activation_bytes,
    backward_flops,
    forward_flops,
    kv_cache_bytes,
    parameter_counts,
    training_bytes,
)
from labs.llm.generate import extend
from labs.llm.model import (
    ModelConfig,
    attention,
    backward,
    causal_mask,
    forward,
    init_params,
    loss_and_grads,
    swiglu,
)
from labs.llm.training.optim import AdamWConfig, adamw, adamw_init

COURSE = ModelConfig(vocab_size=28, d_model=32, d_ff=64, n_layers=1)
#: (config, B, T); sizes pairwise different, so that no letter can stand in for another.
CASES = [
    (COURSE, 2, 5),
    (ModelConfig(vocab_size=11, d_model=24, n_heads=4, n_layers=2, d_ff=20), 3, 7),
    (ModelConfig(vocab_size=37, d_model=6, n_heads=1, n_layers=3, d_ff=10), 5, 13),
    (ModelConfig(vocab_size=5, d_model=18, n_heads=9, n_layers=4, d_ff=3), 1, 2),
]
DTYPES = [np.float32, np.float64]


def batch(config, B, T):
    return np.random.default_rng(0).integers(0, config.vocab_size, (2, B, T))


# Parameters

#: The item under which each parameter is counted, by the last part of its key.
ITEMS = {"embedding": "embedding", "unembedding": "unembedding"}
ITEMS |= dict.fromkeys(("wq", "wk", "wv", "wo"), "attention") | dict.fromkeys(("w1", "w3", "w2"), "swiglu")
ITEMS |= dict.fromkeys(("attn_norm", "ffn_norm", "final_norm"), "norms")


@pytest.mark.parametrize(("config", "B", "T"), CASES)
def test_parameters_are_those_of_the_arrays(config, B, T):  # noqa: ARG001
    counted = dict.fromkeys(parameter_counts(config), 0)
    for key, array in init_params(config, seed=0).items():
        counted[ITEMS[key.split(".")[-1]]] += array.size
    assert parameter_counts(config) == counted


def test_the_course_model_by_hand():
    V, D, F, L = 28, 32, 64, 1
    counts = parameter_counts(COURSE)
    assert counts["swiglu"] == 3 * D * F == 6144
    assert sum(counts.values()) == 2 * V * D + L * (4 * D**2 + 3 * D * F) + 2 * L * D + D == 12128


# FLOPs


class Counted(np.ndarray):
    """An array that adds up the FLOPs of every matrix product it takes part in."""

    flops = 0

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        plain = [np.asarray(x).view(np.ndarray) if isinstance(x, Counted) else x for x in inputs]
        if "out" in kwargs:
            kwargs["out"] = tuple(x.view(np.ndarray) if isinstance(x, Counted) else x for x in kwargs["out"])
        result = getattr(ufunc, method)(*plain, **kwargs)
        if ufunc is np.matmul:
            Counted.flops += 2 * result.size * plain[0].shape[-1]
        return result.view(Counted) if isinstance(result, np.ndarray) else result


def counting(function):
    return lambda *args, **kwargs: function(*args, **kwargs).view(Counted)


@pytest.fixture
def count(monkeypatch):
    """A function that runs another and returns its result and the FLOPs of its matrix products."""
    monkeypatch.setattr(np, "asarray", np.asanyarray)  # the package would turn a Counted into a plain array
    for name in ("empty", "where", "concatenate"):  # and these would make plain ones
        monkeypatch.setattr(np, name, counting(getattr(np, name)))

    def count(function, *args, **kwargs):
        Counted.flops = 0
        result = function(*args, **kwargs)
        return result, Counted.flops

    return count


def counted_params(config):
    return {key: array.view(Counted) for key, array in init_params(config, seed=0).items()}


def test_the_counter_by_hand(count):
    a, b = np.ones((5, 2, 3)).view(Counted), np.ones((3, 4))
    assert count(lambda: a @ b)[1] == count(lambda: b.T @ a.swapaxes(1, 2))[1] == 5 * 2 * 2 * 3 * 4
    assert count(lambda: np.exp(a) * 2 + a.sum())[1] == 0


@pytest.mark.parametrize(("config", "B", "T"), CASES)
def test_flops_of_both_passes_are_those_of_the_products(count, config, B, T):
    ids, _ = batch(config, B, T)
    (logits, cache), forward_count = count(forward, counted_params(config), ids, config)
    _, backward_count = count(backward, logits, cache)
    assert sum(forward_flops(config, B, T).values()) == forward_count
    assert sum(backward_flops(config, B, T).values()) == backward_count == 2 * forward_count


@pytest.mark.parametrize(("config", "B", "T"), CASES)
def test_flops_item_by_item(count, config, B, T):
    flops = forward_flops(config, B, T)
    D, F, L = config.d_model, config.d_ff, config.n_layers
    z = np.ones((B, T, D)).view(Counted)
    heads = np.ones((B, config.n_heads, T, config.d_head)).view(Counted)
    square, wide, narrow = np.ones((D, D)), np.ones((D, F)), np.ones((F, D))
    assert flops["qkv"] == L * 3 * count(lambda: z @ square)[1]
    assert flops["wo"] == L * count(lambda: z @ square)[1]
    assert flops["scores"] == flops["weighted values"]
    assert flops["scores"] * 2 == L * count(attention, heads, heads, heads, causal_mask(T))[1]
    assert flops["swiglu"] == L * count(swiglu, z, wide, wide, narrow)[1]
    assert flops["unembedding"] == count(ops.linear, z, np.ones((D, config.vocab_size)))[1]


@pytest.mark.parametrize(("config", "B", "T"), CASES)
@pytest.mark.parametrize("past", [1, 6])
def test_flops_of_decoding_are_those_of_the_products(count, config, B, T, past):
    ids, _ = batch(config, B, past + T)
    params = counted_params(config)
    (_, kv_cache), _ = count(extend, params, ids[:, :past], config)
    _, counted = count(extend, params, ids[:, past:], config, kv_cache)
    assert sum(forward_flops(config, B, T, past=past).values()) == counted


# Bytes


def buffers(value):
    """The memory behind everything in nested tuples and dicts: a dict of arrays by identity."""
    if isinstance(value, np.ndarray):
        while isinstance(value.base, np.ndarray):
            value = value.base
        return {id(value): value}
    children = value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else ()
    return {key: array for child in children for key, array in buffers(child).items()}


def nbytes(value, besides=()):
    """The bytes of the memory behind `value`, each buffer once, without that behind `besides`."""
    found = buffers(value)
    return sum(found[key].nbytes for key in found.keys() - buffers(besides).keys())


def test_bytes_are_counted_once_and_with_the_memory_behind_a_view():
    a = np.ones((4, 6))
    assert nbytes((a, (a[1:], {"half": a.T[::2]}))) == a.nbytes
    assert nbytes((a, np.ones(2)), besides=(a[0],)) == 16


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("config", "B", "T"), CASES)
def test_activations_are_those_in_the_caches(config, B, T, dtype):
    params, (ids, targets) = init_params(config, seed=0, dtype=dtype), batch(config, B, T)
    logits, cache = forward(params, ids, config)
    _, loss_cache = ops.cross_entropy(logits, targets)
    given = (params, ids, targets)
    items = activation_bytes(config, B, T, dtype)
    assert sum(items.values()) == nbytes((cache, loss_cache), besides=given)
    blocks = cache.blocks
    normed = (tuple((b.attn_norm, b.ffn_norm) for b in blocks), cache.final_norm)
    assert items == {
        "residual stream": nbytes(
            (tuple((b.attn_norm.x, b.ffn_norm.x) for b in blocks), cache.final_norm.x), besides=given
        ),
        "normalised": nbytes((tuple((b.z, b.n) for b in blocks), cache.final))
        + nbytes(tuple(n.inv_rms for n in (*sum(normed[0], ()), normed[1]))),
        "qkv": nbytes(tuple((b.q, b.k, b.v) for b in blocks)),
        "attention weights": nbytes(tuple(b.attention.p for b in blocks)),
        "joined": nbytes(tuple(b.joined for b in blocks)),
        "swiglu": nbytes(tuple((b.swiglu.u, b.swiglu.gate, b.swiglu.up, b.hidden) for b in blocks)),
        "loss": nbytes(loss_cache),
    }


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("config", "B", "T"), CASES)
def test_training_bytes_are_those_of_the_arrays(config, B, T, dtype):
    params, (ids, targets) = init_params(config, seed=0, dtype=dtype), batch(config, B, T)
    _, grads = loss_and_grads(params, ids, targets, config)
    _, state = adamw(params, grads, adamw_init(params), 0.1, AdamWConfig())
    counted = training_bytes(config, B, T, dtype)
    assert counted["parameters"] == nbytes(params)
    assert counted["gradients"] == nbytes(grads)
    assert counted["optimizer"] == nbytes(state)
    assert counted["activations"] == sum(activation_bytes(config, B, T, dtype).values())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("config", "B", "T"), CASES)
def test_kv_cache_bytes_are_those_of_the_arrays(config, B, T, dtype):
    ids, _ = batch(config, B, T + 1)
    params = init_params(config, seed=0, dtype=dtype)
    _, kv_cache = extend(params, ids[:, :T], config)
    assert kv_cache_bytes(config, B, T, dtype) == nbytes(kv_cache)
    _, kv_cache = extend(params, ids[:, T:], config, kv_cache)
    assert kv_cache_bytes(config, B, T + 1, dtype) == nbytes(kv_cache)


# Refusals


@pytest.mark.parametrize("function", [forward_flops, backward_flops])
@pytest.mark.parametrize(("B", "T", "name"), [(0, 5, "B"), (2, -1, "T")])
def test_flops_refuse_sizes(function, B, T, name):
    with pytest.raises(ValueError, match=f"{name} must be at least 1"):
        function(COURSE, B, T)


@pytest.mark.parametrize(("past", "error"), [(-1, ValueError), (1.0, TypeError), (True, TypeError)])
def test_flops_refuse_a_past(past, error):
    with pytest.raises(error, match="past must be"):
        forward_flops(COURSE, 2, 5, past=past)


def test_sizes_of_numpy_do_not_wrap_around():
    B, T = np.int32(2**16), np.int32(2**16)
    assert forward_flops(COURSE, B, T) == forward_flops(COURSE, 2**16, 2**16)
    assert kv_cache_bytes(COURSE, B, T, np.float32) == kv_cache_bytes(COURSE, 2**16, 2**16, np.float32)


@pytest.mark.parametrize("function", [activation_bytes, training_bytes, kv_cache_bytes])
def test_bytes_refuse(function):
    with pytest.raises(TypeError, match="B must be an int"):
        function(COURSE, 2.0, 5, np.float32)
    with pytest.raises(ValueError, match="T must be at least 1"):
        function(COURSE, 2, 0, np.float32)
    with pytest.raises(TypeError, match=r"dtype must be np\.float64 or np\.float32, got .*int64"):
        function(COURSE, 2, 5, np.int64)
