"""The whole model, a decoder-only Transformer, forward and backward: what the course walks through.

Letters: B batch, T positions, D model width, H heads, dh = D/H head width, F feed-forward width, V vocabulary
size, L layers. Weights multiply from the right, y = x @ W. As in `ops.py`, every forward function is followed
by its backward, and everything keeps the dtype of the parameters. Those are described in `parameters.py`.
"""

import math
from typing import NamedTuple

import numpy as np

from labs.llm import arguments, ops
from labs.llm.ops import linear, linear_backward, rms_norm, rms_norm_backward, silu, silu_backward
from labs.llm.parameters import (
    BLOCK_AXES,
    BlockWeights,
    ModelConfig,
    block_weights,
    require_arrays,
    require_params,
)
from labs.llm.parameters import init_params as init_params  # for those who use the model: they need one


def split_heads(x, n_heads):
    """Cut the features of each position into heads, and bring the heads before the positions.

        y[b, h, t, e] = x[b, t, h * dh + e],   0 <= e < dh

    Reshape, then swap the axes. A direct x.reshape(B, H, T, dh) has the same shape, but mixes positions.

    Args:
        x: (B, T, D).
        n_heads: H, a divisor of D.

    Returns: (B, H, T, dh), a view of x where its memory layout allows one.
    Raises: ValueError unless x is (B, T, D) and H >= 1 divides D; TypeError unless H is an int.
    Source: Vaswani et al. 2017, arXiv:1706.03762, section 3.2.2.
    """
    x = arguments.as_array("x", x)
    arguments.require_axes("x", x, "B, T, D")
    n_heads = arguments.require_size("n_heads", n_heads)
    B, T, D = x.shape
    if D % n_heads:
        raise ValueError(f"n_heads must divide D = {D}, got H = {n_heads}: each head takes an equal share")
    return x.reshape(B, T, n_heads, D // n_heads).swapaxes(1, 2)  # (B,T,D) -> (B,T,H,dh) -> (B,H,T,dh)


def merge_heads(x):
    """Put the heads of each position side by side again: the inverse of split_heads, and its backward pass.

        y[b, t, h * dh + e] = x[b, h, t, e]

    Args:
        x: (B, H, T, dh).

    Returns: (B, T, D) with D = H * dh.
    Raises: ValueError if x does not have four axes.
    Source: Vaswani et al. 2017, arXiv:1706.03762, section 3.2.2, "Concat".
    """
    x = arguments.as_array("x", x)
    arguments.require_axes("x", x, "B, H, T, dh")
    B, H, T, dh = x.shape
    return x.swapaxes(1, 2).reshape(B, T, H * dh)  # (B,H,T,dh) -> (B,T,H,dh) -> (B,T,D)


def rope(x, positions=None, *, base=10000.0, inverse=False):
    """Rotate each pair of features by an angle that grows with the position.

        angle[t, r]  = positions[t] * base ** (-2r / dh),   0 <= r < dh / 2
        y[t, 2r]     = x[t, 2r] * cos(angle[t, r]) - x[t, 2r + 1] * sin(angle[t, r])
        y[t, 2r + 1] = x[t, 2r] * sin(angle[t, r]) + x[t, 2r + 1] * cos(angle[t, r])

    Queries and keys are rotated, values never. A score then depends on the two positions only through their
    difference.

    Args:
        x: queries or keys, (..., T, dh), dh even.
        positions: (T,), an array or a list of real numbers; None means 0, 1, ..., T-1.
        base: sets the slowest rotation, about 1 / base radians per position.
        inverse: rotate back. A rotation is orthogonal, so this is both the inverse and the backward pass.

    Returns: an array of the shape and dtype of x. The angles are computed in float64, in radians.
    Raises: ValueError for an odd dh, positions that are not T finite numbers, a base that is not positive and
        finite; TypeError if x is not floating point, positions or base not real, or inverse not a bool.
    Source: Su et al. 2021 (RoFormer), arXiv:2104.09864, equation 34; r counts from zero here.
    """
    x = arguments.as_floats("x", x)
    if x.ndim < 2 or x.size == 0 or x.shape[-1] % 2:
        raise ValueError(f"x must have shape (..., T, dh) with dh even, got {x.shape}: RoPE rotates pairs")
    base, inverse = arguments.require_positive("base", base), arguments.require_flag("inverse", inverse)
    T, dh = x.shape[-2:]
    positions = arguments.as_positions(positions, T)
    frequencies = base ** (-np.arange(0, dh, 2) / dh)  # (dh/2,), radians per position
    angles = np.outer(-positions if inverse else positions, frequencies)  # (T, dh/2)
    cos, sin = np.cos(angles).astype(x.dtype, copy=False), np.sin(angles).astype(x.dtype, copy=False)
    even, odd = x[..., 0::2], x[..., 1::2]
    y = np.empty(x.shape, x.dtype)
    y[..., 0::2] = even * cos - odd * sin
    y[..., 1::2] = even * sin + odd * cos
    return y


def causal_mask(t_query, t_key=None):
    """Allow each query to read its own position and those before it.

        mask[i, j] is True (may read)  <=>  j <= i + (t_key - t_query)

    Args:
        t_query: number of queries, Tq.
        t_key: number of keys, Tk; None means Tq. If there are more keys, the queries are the LAST positions.

    Returns: boolean, (Tq, Tk). No row is empty.
    Raises: TypeError or ValueError unless 1 <= Tq <= Tk are ints.
    Source: Vaswani et al. 2017, arXiv:1706.03762, section 3.2.3.
    """
    t_key = t_query if t_key is None else t_key
    t_query, t_key = arguments.require_size("t_query", t_query), arguments.require_size("t_key", t_key)
    if t_key < t_query:
        raise ValueError(
            f"t_key must be at least t_query, got Tq = {t_query} and Tk = {t_key}: "
            "the first queries would have nothing to read"
        )
    return np.tri(t_query, t_key, k=t_key - t_query, dtype=bool)


def padding_mask(keep):
    """Make a padding mask, so that no query reads the tokens that only fill up a row.

        mask[b, 0, 0, j] is True (may be read)  <=>  keep[b, j]

    Combined with the causal mask: causal_mask(T) & padding_mask(keep), (B, 1, T, T). Never pass keep itself
    as a mask: two axes of a mask always mean (Tq, Tk), and if B = T nothing could tell the difference.

    Args:
        keep: boolean, (B, T), True where a token is real.

    Returns: boolean, (B, 1, 1, T), a view of keep: one mask for all heads and all queries of a text.
    Raises: TypeError unless keep is a boolean array; ValueError unless it is (B, T).
    """
    keep = arguments.as_booleans("keep", keep, "True = a real token")
    arguments.require_axes("keep", keep, "B, T")
    return keep[:, np.newaxis, np.newaxis, :]


class AttentionCache(NamedTuple):
    """What attention_backward needs from the forward pass."""

    q: np.ndarray  # (B, H, Tq, dh)
    k: np.ndarray  # (B, H, Tk, dh)
    v: np.ndarray  # (B, H, Tk, dh)
    p: np.ndarray  # (B, H, Tq, Tk), the attention weights


def attention(q, k, v, mask):
    """Let each query read the values, weighted by how well their keys match it.

        s[i, j] = sum_e q[i, e] * k[j, e] / sqrt(dh)   where mask[i, j], else -inf
        p[i, :] = softmax(s[i, :])                     along the keys
        o[i, :] = sum_j p[i, j] * v[j, :]

    Args:
        q: queries, (B, H, Tq, dh).
        k, v: keys and values, (B, H, Tk, dh).
        mask: boolean, True = may read, (Tq, Tk) or (B, H, Tq, Tk), where an axis of size 1 serves for all.
            Two axes always mean (Tq, Tk), even if B = Tq: padding_mask turns (B, T) into a mask.

    Returns: o (B, H, Tq, dh) and the AttentionCache.
    Raises: ValueError if shapes disagree or a query may read nothing; TypeError for another kind of numbers.
    Source: Vaswani et al. 2017, arXiv:1706.03762, equation 1.
    """
    q, k, v = arguments.as_floats("q", q), arguments.as_floats("k", k), arguments.as_floats("v", v)
    arguments.require_axes("q", q, "B, H, Tq, dh")
    arguments.require_axes("k", k, "B, H, Tk, dh")
    (B, H, Tq, dh), Tk = q.shape, k.shape[2]
    arguments.require_shape("k", k, "(B, H, Tk, dh)", (B, H, Tk, dh), "it must match q but for Tk")
    arguments.require_shape("v", v, "(B, H, Tk, dh)", (B, H, Tk, dh), "one value for each key")
    mask = arguments.as_mask(mask, (B, H, Tq, Tk))
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(dh)  # (B, H, Tq, Tk)
    np.copyto(scores, -np.inf, where=~mask)
    p = ops.softmax(scores)
    return p @ v, AttentionCache(q, k, v, p)


def attention_backward(do, cache):
    """Pull do (B, H, Tq, dh) back; returns dq, dk, dv. Where the mask is False p = 0, and nothing flows."""
    arguments.require_cache(cache, AttentionCache, "attention")
    q, k, v, p = cache
    do = arguments.as_gradient("do", do, "(B, H, Tq, dh)", q.shape)
    # forward: o = p @ v
    dv = p.swapaxes(-1, -2) @ do
    dp = do @ v.swapaxes(-1, -2)
    # forward: p = softmax(scores)
    dscores = ops.softmax_backward(dp, p)
    # forward: scores = q @ k^T / sqrt(dh)
    scaled = dscores / math.sqrt(q.shape[-1])
    return scaled @ k, scaled.swapaxes(-1, -2) @ q, dv


class SwigluCache(NamedTuple):
    """What swiglu_backward needs from the forward pass."""

    x: np.ndarray  # (..., D)
    w1: np.ndarray  # (D, F)
    w3: np.ndarray  # (D, F)
    w2: np.ndarray  # (F, D)
    u: np.ndarray  # (..., F), x @ w1
    gate: np.ndarray  # (..., F), silu(u)
    up: np.ndarray  # (..., F), x @ w3
    hidden: np.ndarray  # (..., F), gate * up


def swiglu(x, w1, w3, w2):
    """Transform each position alone: widen it, let one half gate the other, narrow it again.

        u = x @ w1,   gate = silu(u),   up = x @ w3
        y = (gate * up) @ w2

    Args:
        x: activations, (..., D).
        w1, w3: the two up-projections, (D, F).
        w2: the down-projection, (F, D).

    Returns: y (..., D) and the SwigluCache.
    Raises: ValueError if the shapes disagree; TypeError if an array is not floating point.
    Source: Shazeer 2020, arXiv:2002.05202, equation 6; his W, V, W2 are our w1, w3, w2.
    """
    x, w1 = arguments.as_floats("x", x), arguments.as_floats("w1", w1)
    w3, w2 = arguments.as_floats("w3", w3), arguments.as_floats("w2", w2)
    arguments.require_axes("w1", w1, "D, F")
    arguments.require_shape("w3", w3, "(D, F)", w1.shape, "both up-projections have one shape")
    arguments.require_shape("w2", w2, "(F, D)", w1.shape[::-1], "it leads back from F to D")
    u, up = linear(x, w1), linear(x, w3)
    gate = silu(u)
    hidden = gate * up
    return linear(hidden, w2), SwigluCache(x, w1, w3, w2, u, gate, up, hidden)


def swiglu_backward(dy, cache):
    """Pull dy (..., D) back; returns dx (..., D), dw1 (D, F), dw3 (D, F) and dw2 (F, D)."""
    arguments.require_cache(cache, SwigluCache, "swiglu")
    x, w1, w3, w2, u, gate, up, hidden = cache
    # forward: y = hidden @ w2
    dhidden, dw2 = linear_backward(dy, hidden, w2)
    # forward: hidden = silu(u) * up
    du, dup = silu_backward(dhidden * up, u), dhidden * gate
    # forward: u = x @ w1 and up = x @ w3; x is used twice, so its gradients add
    dx_u, dw1 = linear_backward(du, x, w1)
    dx_up, dw3 = linear_backward(dup, x, w3)
    return dx_u + dx_up, dw1, dw3, dw2


class BlockCache(NamedTuple):
    """What block_backward needs from the forward pass, with the text's names in the text's order."""

    weights: BlockWeights
    config: ModelConfig
    positions: np.ndarray | None
    rotate: bool
    attn_norm: ops.RMSNormCache
    z: np.ndarray  # (B, T, D), the normalised x
    q: np.ndarray  # (B, H, T, dh), after RoPE
    k: np.ndarray  # (B, H, T, dh), after RoPE
    v: np.ndarray  # (B, H, T, dh)
    attention: AttentionCache  # and with it p, the attention weights
    joined: np.ndarray  # (B, T, D), what the heads read, side by side
    ffn_norm: ops.RMSNormCache
    n: np.ndarray  # (B, T, D), the normalised r
    swiglu: SwigluCache
    hidden: np.ndarray  # (B, T, F)


def block(x, weights, config, *, mask=None, positions=None, rotate=True):
    """Add to the residual stream what attention gathers, then what the feed-forward makes of it (pre-norm).

        r = x + attention(rms_norm(x))
        y = r + swiglu(rms_norm(r))

    Args:
        x: the residual stream, (B, T, D).
        weights: the BlockWeights of this layer.
        config: the ModelConfig.
        mask, positions, rotate: as for forward.

    Returns: y (B, T, D) and the BlockCache.
    Raises: ValueError or TypeError if a shape, the mask or the positions do not fit.
    Source: Vaswani et al. 2017, arXiv:1706.03762, section 3.1, but with the norm before each branch instead
        of after the sum: Xiong et al. 2020, arXiv:2002.04745, figure 1.
    """
    w = weights
    arguments.require_type("weights", w, BlockWeights, "block_weights(params, l) makes it")
    require_arrays(w._asdict(), BLOCK_AXES._asdict(), config)
    x, rotate = arguments.as_floats("x", x), arguments.require_flag("rotate", rotate)
    arguments.require_axes("x", x, "B, T, D")
    if mask is None:
        mask = causal_mask(x.shape[1])
    z, attn_norm_cache = rms_norm(x, w.attn_norm, eps=config.norm_eps)
    q = split_heads(linear(z, w.wq), config.n_heads)  # (B,T,D) -> (B,H,T,dh)
    k = split_heads(linear(z, w.wk), config.n_heads)
    v = split_heads(linear(z, w.wv), config.n_heads)
    if rotate:
        q, k = rope(q, positions, base=config.rope_base), rope(k, positions, base=config.rope_base)
    o, attention_cache = attention(q, k, v, mask)
    joined = merge_heads(o)  # (B,H,T,dh) -> (B,T,D)
    r = x + linear(joined, w.wo)
    n, ffn_norm_cache = rms_norm(r, w.ffn_norm, eps=config.norm_eps)
    f, swiglu_cache = swiglu(n, w.w1, w.w3, w.w2)
    cache = BlockCache(
        w, config, positions, rotate, attn_norm_cache, z, q, k, v, attention_cache, joined,
        ffn_norm_cache, n, swiglu_cache, swiglu_cache.hidden,
    )  # fmt: skip
    return r + f, cache


def block_backward(dy, cache):
    """Pull dy (B, T, D) back; returns dx (B, T, D) and the BlockWeights of gradients."""
    arguments.require_cache(cache, BlockCache, "block")
    w, config, z = cache.weights, cache.config, cache.z
    dy = arguments.as_gradient("dy", dy, "(B, T, D)", z.shape)
    # forward: y = r + swiglu(rms_norm(r)); r is used twice, so its gradients add
    dn, dw1, dw3, dw2 = swiglu_backward(dy, cache.swiglu)
    dr_branch, dffn_norm = rms_norm_backward(dn, cache.ffn_norm)
    dr = dy + dr_branch
    # forward: r = x + linear(joined, wo)
    djoined, dwo = linear_backward(dr, cache.joined, w.wo)
    dq, dk, dv = attention_backward(split_heads(djoined, config.n_heads), cache.attention)
    if cache.rotate:
        dq = rope(dq, cache.positions, base=config.rope_base, inverse=True)
        dk = rope(dk, cache.positions, base=config.rope_base, inverse=True)
    # forward: q, k, v = linear(z, wq), ..., split into heads; z is used three times
    dz_q, dwq = linear_backward(merge_heads(dq), z, w.wq)
    dz_k, dwk = linear_backward(merge_heads(dk), z, w.wk)
    dz_v, dwv = linear_backward(merge_heads(dv), z, w.wv)
    # forward: z = rms_norm(x), and x also went past the branch untouched
    dx_branch, dattn_norm = rms_norm_backward(dz_q + dz_k + dz_v, cache.attn_norm)
    return dr + dx_branch, BlockWeights(dattn_norm, dwq, dwk, dwv, dwo, dffn_norm, dw1, dw3, dw2)


class ForwardCache(NamedTuple):
    """What backward needs from the forward pass."""

    embedding: ops.EmbeddingCache
    blocks: tuple[BlockCache, ...]  # L of them, in forward order
    final_norm: ops.RMSNormCache
    final: np.ndarray  # (B, T, D), the normalised x
    unembedding: np.ndarray  # (D, V), a parameter


def forward(params, ids, config, *, mask=None, positions=None, rotate=True):
    """Run the model: from token ids to the logits of the token that follows each of them.

        x = embedding[ids];   x = block(x), L times;   logits = rms_norm(x) @ unembedding

    The three switches are for experiments and checks; their defaults are the model.

    Args:
        params: as from init_params.
        ids: integers in [0, V), (B, T).
        config: the ModelConfig.
        mask: boolean, True = may read, (T, T) or (B, H, T, T), as for attention; None means causal_mask(T).
            For padded texts pass causal_mask(T) & padding_mask(keep): two axes always mean (Tq, Tk).
        positions: (T,), as for rope; None means 0 to T-1.
        rotate: False leaves queries and keys unrotated, so that positions have no effect.

    Returns: logits (B, T, V) and the ForwardCache.
    Raises: ValueError or TypeError if params, ids, mask or positions do not fit the config.
    Source: Radford et al. 2019 (GPT-2), section 2.3, with RMSNorm, RoPE and SwiGLU as in Touvron et al. 2023
        (LLaMA), arXiv:2302.13971, section 2.2.
    """
    require_params(params, config)
    ids = arguments.as_array("ids", ids)
    arguments.require_axes("ids", ids, "B, T")
    if mask is None:
        mask = causal_mask(ids.shape[1])
    x, embedding_cache = ops.embedding(ids, params["embedding"])
    block_caches = []
    for l in range(config.n_layers):
        x, cache = block(x, block_weights(params, l), config, mask=mask, positions=positions, rotate=rotate)
        block_caches.append(cache)
    final, final_norm_cache = rms_norm(x, params["final_norm"], eps=config.norm_eps)
    unembedding = params["unembedding"]
    cache = ForwardCache(embedding_cache, tuple(block_caches), final_norm_cache, final, unembedding)
    return linear(final, unembedding), cache


def backward(dlogits, cache):
    """Pull dlogits (B, T, V) back; returns the gradients of all parameters, with the keys of params.

    Raises: ValueError if dlogits does not have the shape of the logits that came with `cache`; TypeError if
        it has another dtype than the params.
    """
    arguments.require_cache(cache, ForwardCache, "forward")
    ids, unembedding = cache.embedding.ids, cache.unembedding
    dlogits = arguments.as_gradient("dlogits", dlogits, "(B, T, V)", (*ids.shape, unembedding.shape[1]))
    if dlogits.dtype != unembedding.dtype:
        raise TypeError(
            f"dlogits must have the dtype of params, {unembedding.dtype}, got {dlogits.dtype}: convert"
        )
    dfinal, dunembedding = linear_backward(dlogits, cache.final, unembedding)
    dx, dfinal_norm = rms_norm_backward(dfinal, cache.final_norm)
    dblocks = []
    for block_cache in reversed(cache.blocks):
        dx, dweights = block_backward(dx, block_cache)
        dblocks.insert(0, dweights)
    grads = {"embedding": ops.embedding_backward(dx, cache.embedding)}
    for l, dweights in enumerate(dblocks):
        grads |= {f"blocks.{l}.{name}": gradient for name, gradient in dweights._asdict().items()}
    return grads | {"final_norm": dfinal_norm, "unembedding": dunembedding}


def loss_and_grads(params, ids, targets, config):
    """Compute the mean cross-entropy over all B * T targets, and its gradient for every parameter.

    Args:
        params, ids, config: as for forward.
        targets: (B, T), already shifted: targets[b, t] is the token that follows ids[b, t].

    Returns: loss, a scalar in nats, and grads, a dict with the keys of params.
    Raises: ValueError or TypeError if params, ids or targets do not fit the config.
    """
    logits, cache = forward(params, ids, config)
    loss, loss_cache = ops.cross_entropy(logits, targets)
    return loss, backward(ops.cross_entropy_backward(1.0, loss_cache), cache)
