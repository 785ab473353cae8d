"""Writing with a trained model: one token at a time, without reading the whole text again for each.

The keys and values of a position never depend on later ones, so they are computed once and kept: that is the
kv_cache. The first call of `extend`, on the prompt, is the prefill; the calls that follow, on one token each,
are the decoding. Any other cut of the text into calls gives the same logits.
"""

from typing import NamedTuple

import numpy as np

from labs.llm import arguments
from labs.llm.model import (
    attention,
    block_weights,
    causal_mask,
    merge_heads,
    require_params,
    rope,
    split_heads,
    swiglu,
)
from labs.llm.ops import embedding, linear, rms_norm, softmax

#: The share of top_p that may be missing when it is reached: rounding in float32, with room for long sums.
TOP_P_ROUNDING = 1e-6

#: How far the probabilities of a row may be from adding up to one.
SUM_TOLERANCE = 1e-4


class KVCache(NamedTuple):
    """What later positions read of the earlier ones. Never written into: `extend` returns a longer one."""

    k: tuple[np.ndarray, ...]  # L arrays (B, H, T, dh), after RoPE
    v: tuple[np.ndarray, ...]  # L arrays (B, H, T, dh)

    @property
    def length(self):
        """How many positions were read, T."""
        return self.k[0].shape[2]


def extend(params, ids, config, kv_cache=None):
    """Read further tokens: from their ids and what was read before, to the logits of what follows each.

    Whatever the cut of a text into calls, the logits are those of model.forward on the whole text, up to
    rounding. There is no limit to T here: how far apart tokens may be is for training to decide.

    Args:
        params, config: as for model.forward.
        ids: integers in [0, V), (B, Tq), the tokens that come next.
        kv_cache: from the call before; None if nothing was read yet.

    Returns: logits (B, Tq, V), and the KVCache of all T + Tq positions.
    Raises: ValueError or TypeError if params, ids or kv_cache do not fit the config or each other.
    Source: Shazeer 2019, arXiv:1911.02150, section 2, "Multi-head attention (incremental)".
    """
    require_params(params, config)
    ids = arguments.as_array("ids", ids)
    arguments.require_axes("ids", ids, "B, Tq")
    if kv_cache is None:
        kv_cache = _nothing_read(len(ids), config, params["embedding"].dtype)
    _check_kv_cache(kv_cache, len(ids), config, params["embedding"].dtype)
    positions = kv_cache.length + np.arange(ids.shape[1])
    x, _ = embedding(ids, params["embedding"])
    ks, vs = [], []
    for l, (past_k, past_v) in enumerate(zip(*kv_cache, strict=True)):
        x, k, v = _extend_block(x, block_weights(params, l), config, positions, past_k, past_v)
        ks.append(k)
        vs.append(v)
    x, _ = rms_norm(x, params["final_norm"], eps=config.norm_eps)
    logits = linear(x, params["unembedding"])
    return logits, KVCache(tuple(ks), tuple(vs))


def _extend_block(x, weights, config, positions, past_k, past_v):
    """Do what model.block does, for queries that also read keys and values of the past."""
    w = weights
    z, _ = rms_norm(x, w.attn_norm, eps=config.norm_eps)
    q = rope(split_heads(linear(z, w.wq), config.n_heads), positions, base=config.rope_base)
    k = rope(split_heads(linear(z, w.wk), config.n_heads), positions, base=config.rope_base)
    v = split_heads(linear(z, w.wv), config.n_heads)
    k, v = np.concatenate([past_k, k], axis=2), np.concatenate([past_v, v], axis=2)  # (B, H, T + Tq, dh)
    o, _ = attention(q, k, v, causal_mask(q.shape[2], k.shape[2]))
    r = x + linear(merge_heads(o), w.wo)
    n, _ = rms_norm(r, w.ffn_norm, eps=config.norm_eps)
    f, _ = swiglu(n, w.w1, w.w3, w.w2)
    return r + f, k, v


def _nothing_read(B, config, dtype):
    empty = np.empty((B, config.n_heads, 0, config.d_head), dtype)
    return KVCache((empty,) * config.n_layers, (empty,) * config.n_layers)


def _check_kv_cache(kv_cache, B, config, dtype):
    arguments.require_type("kv_cache", kv_cache, KVCache, "extend returned one with its logits")
    for keys_or_values in kv_cache:
        arguments.require_type(
            "kv_cache.k and .v", keys_or_values, tuple, "extend returned one with its logits"
        )
    if not len(kv_cache.k) == len(kv_cache.v) == config.n_layers:
        raise ValueError(
            f"kv_cache must hold keys and values of L = {config.n_layers} layers, "
            f"got {len(kv_cache.k)} and {len(kv_cache.v)}: does it come from another model?"
        )
    arrays = [arguments.as_floats("kv_cache", array) for array in (*kv_cache.k, *kv_cache.v)]
    T = arrays[0].shape[2] if arrays[0].ndim == 4 else 0
    for array in arrays:
        expected = (B, config.n_heads, T, config.d_head)
        arguments.require_shape(
            "kv_cache", array, "(B, H, T, dh)", expected, "does it belong to these texts?"
        )
        if array.dtype != dtype:
            raise TypeError(f"kv_cache must have the dtype of params, {dtype}, got {array.dtype}: start anew")


def token_probabilities(logits, *, temperature=1.0, top_k=None, top_p=None):
    """Turn logits into the probabilities to draw the next token with.

        p = softmax(logits / temperature)
        top_k: keep the k most probable tokens
        top_p: of these, scaled to one, keep the fewest that together reach top_p, to within a millionth of it
        and scale what was kept to one

    Of equally probable tokens the one with the smaller id comes first. The millionth allows for rounding,
    which in float32 reaches the seventh digit: four of five equal tokens do reach 0.8.

    Args:
        logits: (..., V).
        temperature: 0 puts everything on the most probable token; 1 is the model's own opinion.
        top_k: an int of at least 1; None, or V and more, keeps all.
        top_p: in (0, 1]; None, or 1, keeps all. The most probable token is always kept.

    Returns: p (..., V), float64 whatever the model's dtype: sums decide here what is kept.
    Raises: ValueError or TypeError for a temperature below 0, a top_k below 1, a top_p outside (0, 1].
    Source: Fan et al. 2018, arXiv:1805.04833, section 5.4 (top-k); Holtzman et al. 2020, arXiv:1904.09751,
        section 3.1 (top-p).
    """
    logits = arguments.as_floats("logits", logits).astype(np.float64)
    if logits.ndim == 0 or logits.size == 0:
        raise ValueError(f"logits must have shape (..., V), got {logits.shape}: one logit for each token")
    temperature, top_k, top_p = _as_sampling(temperature, top_k, top_p)
    p = softmax(_tempered(logits, temperature))
    order = np.argsort(-p, axis=-1, kind="stable")
    ranked = np.take_along_axis(p, order, axis=-1)  # the most probable first
    if top_k is not None:
        ranked[..., top_k:] = 0
    if top_p is not None and top_p < 1:  # a rounded sum may reach 1 before the last token
        ranked /= ranked.sum(axis=-1, keepdims=True)
        before = ranked.cumsum(axis=-1) - ranked
        ranked[before >= top_p * (1 - TOP_P_ROUNDING)] = 0
    np.put_along_axis(p, order, ranked, axis=-1)
    return p / p.sum(axis=-1, keepdims=True)


def _tempered(logits, temperature):
    """Return logits / temperature, up to a constant for each row; for 0 the limit, -inf but for one token."""
    if temperature == 0:
        best = logits.argmax(axis=-1, keepdims=True)
        return np.where(np.arange(logits.shape[-1]) == best, logits, -np.inf)
    with np.errstate(over="ignore"):  # far below the largest, -inf is right
        return (logits - logits.max(axis=-1, keepdims=True)) / temperature


def _as_sampling(temperature, top_k, top_p):
    """Return the three options as Python numbers, or None; raise unless each is in its range."""
    temperature = arguments.require_number("temperature", temperature)
    if temperature != 0:
        arguments.require_positive("temperature", temperature)
    if top_k is not None:
        top_k = arguments.require_size("top_k", top_k)
    if top_p is not None:
        top_p = arguments.require_positive("top_p", top_p)
        if top_p > 1:
            raise ValueError(f"top_p must be at most 1, got {top_p}: it is a probability")
    return temperature, top_k, top_p


def sample(p, rng):
    """Draw one token from each row of probabilities.

        the smallest id with p_0 + ... + p_id > u,   u uniform in [0, 1)

    Args:
        p: probabilities, (..., V), each row adding up to one.
        rng: the np.random.Generator to draw u from. One call takes one number for each row.

    Returns: ids, (...). A token of probability zero is never drawn.
    Raises: ValueError if a row holds a negative number or NaN, or does not add up to one (to within 1e-4), as
        logits do not; TypeError if p is not floating-point, or rng is not a generator.
    """
    p = arguments.as_floats("p", p)
    arguments.require_rng("rng", rng)
    if p.ndim == 0 or p.size == 0:
        raise ValueError(f"p must have shape (..., V), got {p.shape}: one probability for each token")
    smallest, largest = p.min(), p.max()
    if not (smallest >= 0 and largest <= 1 + SUM_TOLERANCE):  # NaN is neither
        raise ValueError(
            f"p must hold probabilities, got numbers from {smallest:.4g} to {largest:.4g}: "
            "token_probabilities makes them from logits"
        )
    sums = p.sum(axis=-1)
    if not (np.abs(sums - 1) <= SUM_TOLERANCE).all():
        raise ValueError(
            f"p must add up to one in each row, got sums from {sums.min():.4g} to {sums.max():.4g}: "
            "divide by them, or let token_probabilities do it"
        )
    cumulative = p.cumsum(axis=-1)
    cumulative /= cumulative[..., -1:]  # the last is exactly one, above every u
    u = rng.random(p.shape[:-1])
    return (cumulative > u[..., np.newaxis]).argmax(axis=-1)


def generate(params, prompt, config, count, rng, *, context, temperature=1.0, top_k=None, top_p=None):
    """Continue texts, token by token.

    A model knows distances between tokens only as far as it was trained. Once `context` positions are read,
    the last context // 2 tokens are therefore read afresh as a new beginning (the last token, if context is
    1), so that from then on each token follows from context // 2 to context tokens. Of a longer prompt, the
    last `context` tokens are read.

    Args:
        params, config: as for model.forward.
        prompt: integers in [0, V), (B, T), at least one token.
        count: how many tokens to add.
        rng: the np.random.Generator to draw with.
        context: the largest number of positions to read at once, as a rule that of the training.
        temperature, top_k, top_p: as for token_probabilities.

    Returns: the new ids, (B, count).
    Raises: ValueError or TypeError, before anything is computed, if params or prompt do not fit the config, a
        number is out of range, or rng is not a generator.
    """
    require_params(params, config)
    prompt = arguments.as_array("prompt", prompt)
    arguments.require_axes("prompt", prompt, "B, T")
    count, context = arguments.require_size("count", count), arguments.require_size("context", context)
    arguments.require_rng("rng", rng)
    temperature, top_k, top_p = _as_sampling(temperature, top_k, top_p)
    text = arguments.as_ids("prompt", prompt, config.vocab_size)
    unread, kv_cache = text[:, -context:], None
    for _ in range(count):
        if kv_cache is not None and kv_cache.length == context:
            unread, kv_cache = text[:, -max(1, context // 2) :], None
        logits, kv_cache = extend(params, unread, config, kv_cache)
        p = token_probabilities(logits[:, -1], temperature=temperature, top_k=top_k, top_p=top_p)
        unread = sample(p, rng)[:, np.newaxis]  # (B, 1)
        text = np.concatenate([text, unread], axis=1)
    return text[:, prompt.shape[1] :]
