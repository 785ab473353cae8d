"""The operations that every Transformer is built from, each forward followed at once by its backward.

    y, cache = op(...)                    forward: the result, and what the way back will need
    gradients = op_backward(dy, cache)

    y = op(x, ...)                        where the arguments are all that it will need
    gradients = op_backward(dy, x, ...)

`dX` is the gradient of the loss with respect to X and has X's shape. A leading `...` stands for any axes,
such as (B, T), whose positions are all treated alike. Operations never write into their arguments or their
caches. A cache holds the caller's arrays, not copies: leave those alone until the backward pass is done.
"""

from typing import NamedTuple

import numpy as np

from labs.llm.arguments import (
    as_floats,
    as_gradient,
    as_ids,
    require_axes,
    require_axis,
    require_cache,
    require_eps,
    require_number,
    require_shape,
)


def linear(x, weight):
    """Multiply each vector by a matrix, from the right and without a bias.

        y_j = sum_i x_i * weight_ij

    Args:
        x: activations, (..., D_in).
        weight: (D_in, D_out).

    Returns: y (..., D_out). No cache: the arguments are all that linear_backward needs.
    Raises: ValueError if the two shapes do not share D_in; TypeError unless both are floating-point.
    Source: no bias, as in Chowdhery et al. 2022 (PaLM), arXiv:2204.02311, section 2.
    """
    x, weight = _as_factors(x, weight)
    return x @ weight


def linear_backward(dy, x, weight):
    """Pull dy (..., D_out) back through y = linear(x, weight); returns dx and dweight, of their shapes."""
    x, weight = _as_factors(x, weight)
    D_in, D_out = weight.shape
    dy = as_gradient("dy", dy, "(..., D_out)", (*x.shape[:-1], D_out)).reshape(-1, D_out)
    # forward: y = x @ weight, and every position shares one weight, so their products add
    dweight = x.reshape(-1, D_in).T @ dy
    return (dy @ weight.T).reshape(x.shape), dweight


def _as_factors(x, weight):
    """Return x (..., D_in) and weight (D_in, D_out) as arrays; refuse what cannot be multiplied."""
    x, weight = as_floats("x", x), as_floats("weight", weight)
    require_axes("weight", weight, "D_in, D_out")
    if x.ndim == 0 or x.shape[-1] != weight.shape[0]:
        raise ValueError(
            f"x (..., D_in) and weight (D_in, D_out) must share D_in, got {x.shape} and {weight.shape}: "
            "y = x @ weight multiplies from the right"
        )
    return x, weight


class EmbeddingCache(NamedTuple):
    """What embedding_backward needs from the forward pass."""

    ids: np.ndarray  # (...), integers
    table: np.ndarray  # (V, D)


def embedding(ids, table):
    """Look up one row of a table for each id.

        x_d = table[id, d]

    Args:
        ids: integers in [0, V), (...).
        table: (V, D).

    Returns: x (..., D) and the EmbeddingCache.
    Raises: TypeError if the ids are not integers, ValueError if one is out of range (NumPy would wrap -1).
    Source: Vaswani et al. 2017, arXiv:1706.03762, section 3.4; here without its factor sqrt(D).
    """
    table = as_floats("table", table)
    require_axes("table", table, "V, D")
    ids = as_ids("ids", ids, table.shape[0])
    return table[ids], EmbeddingCache(ids, table)


def embedding_backward(dx, cache):
    """Pull dx (..., D) back; returns dtable (V, D), zero in the rows that no id named."""
    require_cache(cache, EmbeddingCache, "embedding")
    ids, table = cache
    dx = as_gradient("dx", dx, "(..., D)", (*ids.shape, table.shape[1]))
    dtable = np.zeros_like(table, dtype=dx.dtype)
    # forward: x = table[ids], so an id that occurs n times adds n gradients; dtable[ids] += dx would keep one
    np.add.at(dtable, ids, dx)
    return dtable


class RMSNormCache(NamedTuple):
    """What rms_norm_backward needs from the forward pass."""

    x: np.ndarray  # (..., D)
    gain: np.ndarray  # (D,)
    inv_rms: np.ndarray  # (..., 1)


def rms_norm(x, gain, *, eps=1e-5):
    """Scale each vector to unit root mean square, then by a learned gain.

        inv_rms = 1 / sqrt(mean_d(x_d ** 2) + eps)
        y_d     = gain_d * x_d * inv_rms

    Args:
        x: activations, (..., D).
        gain: learned scale, (D,), starts at one.
        eps: added to the mean square, so in units of x squared.

    Returns: y (..., D) and the RMSNormCache.
    Raises: ValueError if gain is not (D,), eps is not positive, or the square of x is not finite (in float32,
        from 1.8e19 on); TypeError unless x and gain are floating-point.
    Source: Zhang & Sennrich 2019, arXiv:1910.07467, equation 4; eps guards against division by zero.
    """
    x, gain = as_floats("x", x), as_floats("gain", gain)
    require_axes("gain", gain, "D")
    require_shape("gain", gain, "(D,)", x.shape[-1:], "one gain for each feature, the last axis of x")
    eps = require_eps("eps", eps)
    with np.errstate(over="ignore"):
        mean_square = np.vecdot(x, x)[..., np.newaxis] / gain.size  # (..., 1)
    if not np.isfinite(mean_square).all():  # the result would be zeros, as if nothing were wrong
        raise ValueError(
            f"x must be finite, and small enough for its square to be finite in {x.dtype}, got "
            "NaN, infinity or a larger number: if this happens in training, it diverged before this step"
        )
    inv_rms = 1 / np.sqrt(mean_square + eps)
    return gain * (x * inv_rms), RMSNormCache(x, gain, inv_rms)


def rms_norm_backward(dy, cache):
    """Pull dy (..., D) back; returns dx (..., D) and dgain (D,)."""
    require_cache(cache, RMSNormCache, "rms_norm")
    x, gain, inv_rms = cache
    dy = as_gradient("dy", dy, "(..., D)", x.shape)
    unit = x * inv_rms  # (..., D), recomputed instead of stored
    # forward: y = gain * unit, and every position shares one gain
    dgain = (dy * unit).reshape(-1, gain.size).sum(axis=0)
    dunit = dy * gain
    # forward: unit = x * inv_rms, where inv_rms depends on every x_d of its vector
    mean = (dunit * unit).mean(axis=-1, keepdims=True)  # (..., 1)
    return inv_rms * (dunit - unit * mean), dgain


def softmax(x, axis=-1):
    """Turn scores into positive weights that add up to one along an axis.

        p_i = exp(x_i - m) / sum_j exp(x_j - m),   m = max_j x_j

    The maximum m cancels in exact arithmetic; without it exp(1000) overflows.

    Args:
        x: scores, any shape; -inf stands for "not allowed" and gets exactly zero.
        axis: the axis along which the weights add up to one.

    Returns: p, of the shape of x. No cache: p is all that softmax_backward needs.
    Raises: ValueError if a slice holds nothing but -inf, or holds NaN or +inf: it has no softmax; TypeError
        unless x is floating-point.
    Source: Bridle 1990, "Probabilistic interpretation of feedforward classification network outputs".
    """
    x = as_floats("x", x)
    axis = require_axis("axis", axis, x)
    p = _minus_max(x, axis)
    np.exp(p, out=p)
    p /= p.sum(axis=axis, keepdims=True)
    return p


def softmax_backward(dp, p, axis=-1):
    """Pull dp back through p = softmax(x, axis); returns dx. All three have one shape.

    The Jacobian dp_i/dx_j = p_i * (delta_ij - p_j) has n^2 entries for each slice; its product with dp has n:

        dx_i = p_i * (dp_i - sum_j p_j * dp_j)
    """
    p = as_floats("p", p)
    dp, axis = as_gradient("dp", dp, "of p", p.shape), require_axis("axis", axis, p)
    return p * (dp - np.expand_dims(np.vecdot(p, dp, axis=axis), axis))


def _minus_max(x, axis):
    """Return x minus its maximum along `axis`, a new array; refuse what has no softmax."""
    largest = x.max(axis=axis, keepdims=True, initial=-np.inf)  # the initial value makes it twice as fast
    if not np.isfinite(largest).all():
        raise ValueError(
            "softmax needs a finite largest score in every slice, got NaN, +inf or a slice of only -inf: "
            "look for an overflow, or for a mask row that allows nothing"
        )
    return x - largest


def silu(x):
    """Let positive numbers through, almost, and hold negative ones back, smoothly.

        silu(x) = x * sigmoid(x) = x / (1 + exp(-x))

    Args:
        x: any shape.

    Returns: an array of the shape of x. No cache: x is all that silu_backward needs.
    Raises: TypeError unless x is floating-point.
    Source: Hendrycks & Gimpel 2016, arXiv:1606.08415, section 2; Elfwing et al. 2017, arXiv:1702.03118.
    """
    x = as_floats("x", x)
    return x * sigmoid(x)


def silu_backward(dy, x):
    """Pull dy back through y = silu(x); returns dx. All three have one shape.

    dx = dy * s * (1 + x * (1 - s)),   s = sigmoid(x)
    """
    x = as_floats("x", x)
    dy = as_gradient("dy", dy, "of x", x.shape)
    s = sigmoid(x)
    return dy * (s * (1 + x * (1 - s)))


def sigmoid(x):
    """Return 1 / (1 + exp(-x)), any shape. Far below zero exp overflows, and the quotient is a correct 0.

    Raises: TypeError unless x is floating-point.
    """
    x = as_floats("x", x)
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-x))


class CrossEntropyCache(NamedTuple):
    """What cross_entropy_backward needs from the forward pass."""

    p: np.ndarray  # (..., V), the softmax of the logits
    one_hot: np.ndarray  # (..., V), True at the target


def cross_entropy(logits, targets):
    """Average, over all positions, the negative log-likelihood of the right token.

        loss = mean_positions( -log softmax(logits)[target] )

    Args:
        logits: (..., V).
        targets: ids of the right tokens, (...).

    Returns: loss, a scalar in nats (log V for a uniform guess), and the CrossEntropyCache.
    Raises: TypeError or ValueError if the targets are not ids in [0, V), one for each position, or if logits
        are not floating-point or hold NaN or +inf.
    Source: Goodfellow, Bengio & Courville 2016, "Deep Learning", sections 5.5 and 6.2.2.3.
    """
    logits = as_floats("logits", logits)
    if logits.ndim == 0 or logits.shape[-1] == 0:
        raise ValueError(f"logits must have shape (..., V), got {logits.shape}: one logit for each token")
    log_p = _minus_max(logits, axis=-1)
    V = log_p.shape[-1]
    targets = as_ids("targets", targets, V)
    require_shape("targets", targets, "(...)", log_p.shape[:-1], "one target for each position of the logits")
    log_p -= np.log(np.exp(log_p).sum(axis=-1, keepdims=True))
    one_hot = targets[..., np.newaxis] == np.arange(V)
    return -log_p[one_hot].mean(), CrossEntropyCache(np.exp(log_p), one_hot)


def cross_entropy_backward(dloss, cache):
    """Pull dloss, a scalar (1 if the loss is the end of the line), back; returns dlogits (..., V)."""
    require_cache(cache, CrossEntropyCache, "cross_entropy")
    p, one_hot = cache
    if isinstance(dloss, np.ndarray) and dloss.ndim:
        raise ValueError(f"dloss must be a scalar, got shape {dloss.shape}: the loss is one number")
    dloss = require_number("dloss", dloss)
    positions = p.size // p.shape[-1]
    # forward: the mean gives every position 1/positions of dloss; softmax and log together leave p - one_hot
    return (p - one_hot) * (dloss / positions)
