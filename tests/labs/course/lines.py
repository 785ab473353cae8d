"""What the functions of labs/course/in_pytorch.py are given, and what labs.llm makes of the same.

`tests/labs/llm/mutants/fixtures/make.py` runs them in PyTorch, test_in_pytorch.py compares.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from labs.llm import model


class Line(NamedTuple):
    """A function of the file; both take an example of labs.llm.mutants.table."""

    arguments: Callable[[object], tuple]  # for PyTorch
    expected: Callable[[object], list]  # by labs.llm


def block_cache(example):
    """The cache of the first block of an example's forward pass."""
    _, cache = model.forward(example.params, example.ids, example.config)
    return cache.blocks[0]


def _heads(example):
    """q, k and v before RoPE."""
    cache = block_cache(example)
    return cache.q, cache.k, cache.v


def _attention(example):
    T = example.ids.shape[1]
    o, _ = model.attention(*_heads(example), np.ones((T, T), bool))
    return [o, o]


LINES = {"attention": Line(_heads, _attention)}
