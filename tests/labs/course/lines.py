"""What the functions of labs/course/in_pytorch.py are given, and what labs.llm makes of the same.

`tests/labs/llm/mutants/fixtures/make.py` runs them in PyTorch, test_in_pytorch.py compares.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from labs.llm import model, ops


class Line(NamedTuple):
    """A function of the file; both take an example of labs.llm.mutants.table."""

    arguments: Callable[[object], tuple]  # for PyTorch
    expected: Callable[[object], list]  # by labs.llm


def block_cache(example):
    """The cache of the first block of an example's forward pass."""
    _, cache = model.forward(example.params, example.ids, example.config)
    return cache.blocks[0]


def heads(example):
    """q, k and v before RoPE, (B,H,T,dh)."""
    cache = block_cache(example)
    return cache.q, cache.k, cache.v


def masked_attention(example, mask):
    return model.attention(*heads(example), mask)[0]


def shapes(example):
    q = model.merge_heads(block_cache(example).q)
    return [model.split_heads(q, example.config.n_heads), q]


def attention(example):
    T = example.ids.shape[1]
    return 2 * [masked_attention(example, np.ones((T, T), bool))]


def causal_mask(example):
    return 2 * [masked_attention(example, model.causal_mask(example.ids.shape[1]))]


def stream(example):
    """X, (B,T,D), with the gain and the epsilon of the first norm."""
    x = example.params["embedding"][example.ids]
    return x, example.params["blocks.0.attn_norm"], example.config.norm_eps


def rms_norm(example):
    x, gain, eps = stream(example)
    return 2 * [ops.rms_norm(x, gain, eps=eps)[0]]


def feed_forward(example):
    """n, (B,T,D), and the three matrices."""
    return block_cache(example).n, *(example.params[f"blocks.0.{name}"] for name in ("w1", "w3", "w2"))


def swiglu(example):
    return [block_cache(example).hidden, model.swiglu(*feed_forward(example))[0]]


def logits(example):
    return model.forward(example.params, example.ids, example.config)[0], example.targets


def loss(example):
    mean, cache = ops.cross_entropy(*logits(example))
    return [-np.log(cache.p[cache.one_hot]).reshape(example.targets.shape), mean]


LINES = {
    "shapes": Line(
        lambda example: (model.merge_heads(block_cache(example).q), example.config.n_heads), shapes
    ),
    "attention": Line(heads, attention),
    "causal_mask": Line(heads, causal_mask),
    "rms_norm": Line(stream, rms_norm),
    "rope": Line(
        lambda example: (block_cache(example).q, example.config.rope_base),
        lambda example: [model.rope(block_cache(example).q, base=example.config.rope_base)],
    ),
    "swiglu": Line(feed_forward, swiglu),
    "loss": Line(logits, loss),
}
