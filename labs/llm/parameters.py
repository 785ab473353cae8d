"""The sizes of a model, and its parameters: their keys, their shapes, the first draw, the check of them all.

The letters of the shapes are those of `model.py`, which computes with what is described here.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from labs.llm import shapes


@dataclass(frozen=True)
class ModelConfig:
    """The sizes of a model. The vocabulary comes from the text, so vocab_size has no default."""

    vocab_size: int  # V
    d_model: int = 32  # D
    n_heads: int = 4  # H
    n_layers: int = 1  # L
    d_ff: int = 64  # F
    rope_base: float = 10000.0
    norm_eps: float = 1e-5

    def __post_init__(self):
        for name in ("vocab_size", "d_model", "n_heads", "n_layers", "d_ff"):
            shapes.require_size(name, getattr(self, name))
        for name in ("rope_base", "norm_eps"):
            shapes.require_positive(name, getattr(self, name))
        if self.d_model % self.n_heads:
            raise ValueError(
                f"d_model must be divisible by n_heads, got D = {self.d_model} and H = {self.n_heads}: "
                "each head takes an equal share of the width"
            )
        if self.d_head % 2:
            raise ValueError(
                f"d_model / n_heads must be even, got dh = {self.d_head}: "
                "RoPE rotates pairs, so change d_model or n_heads"
            )

    @property
    def d_head(self):
        """The width of one head, dh = D / H."""
        return self.d_model // self.n_heads


class BlockWeights(NamedTuple):
    """One value for each parameter of a block: the arrays, their gradients, or the letters of their axes."""

    attn_norm: np.ndarray
    wq: np.ndarray
    wk: np.ndarray
    wv: np.ndarray
    wo: np.ndarray
    ffn_norm: np.ndarray
    w1: np.ndarray
    w3: np.ndarray
    w2: np.ndarray


#: The letters of the axes of a block's parameters: w1 is (D, F).
BLOCK_AXES = BlockWeights(
    attn_norm="D", wq="DD", wk="DD", wv="DD", wo="DD", ffn_norm="D", w1="DF", w3="DF", w2="FD"
)


def block_weights(params, l):
    """Return the BlockWeights of layer `l`, the arrays of `params` themselves."""
    return BlockWeights(*(params[f"blocks.{l}.{name}"] for name in BlockWeights._fields))


def param_axes(config):
    """Return the letters of the axes of every parameter by its key, in the order of the forward pass."""
    axes = {"embedding": "VD"}
    for l in range(config.n_layers):
        axes |= {f"blocks.{l}.{name}": letters for name, letters in BLOCK_AXES._asdict().items()}
    return axes | {"final_norm": "D", "unembedding": "DV"}


def param_shapes(config):
    """Return the shape of every parameter by its key, in the order of the forward pass."""
    return {key: _shape(letters, config) for key, letters in param_axes(config).items()}


def _shape(letters, config):
    sizes = {"V": config.vocab_size, "D": config.d_model, "F": config.d_ff}
    return tuple(sizes[letter] for letter in letters)


def init_params(config, seed, dtype=np.float64):
    """Draw the parameters of a new model.

    Gains are one, embeddings have variance one, and a matrix (n_in, n_out) is normal with variance 1 / n_in,
    so that what comes out varies as much as what goes in. Two departures: wo and w2 are divided by sqrt(2L),
    for 2L branches add up in the residual stream; unembedding is divided by ten, for a first loss near log V.

    Args:
        config: the ModelConfig.
        seed: an int, or the np.random.Generator to draw from. One seed gives the same draw in both dtypes.
        dtype: np.float64 (to teach and check) or np.float32 (to train).

    Returns: a dict of arrays with the keys and shapes of param_shapes(config); no two share memory.
    Raises: TypeError for another dtype, or without a seed.
    Source: LeCun et al. 1998, "Efficient BackProp", section 4.6 (1 / n_in); Radford et al. 2019 (GPT-2),
        section 2.3 (residual branches).
    """
    if np.dtype(dtype) not in (np.float64, np.float32):
        raise TypeError(f"dtype must be np.float64 or np.float32, got {np.dtype(dtype)}")
    if seed is None:
        raise TypeError("seed must be an int or a np.random.Generator, got None: a draw must be repeatable")
    rng = np.random.default_rng(seed)
    params = {}
    for key, shape in param_shapes(config).items():
        name = key.split(".")[-1]
        if name.endswith("norm"):
            params[key] = np.ones(shape, dtype)
            continue
        scale = 1.0 if name == "embedding" else 1 / math.sqrt(shape[0])
        if name in ("wo", "w2"):
            scale /= math.sqrt(2 * config.n_layers)
        if name == "unembedding":
            scale /= 10
        params[key] = (scale * rng.standard_normal(shape)).astype(dtype)
    return params


def check_params(params, config):
    """Raise unless `params` holds exactly the arrays of param_shapes(config), all of one dtype."""
    axes = param_axes(config)
    if not isinstance(params, Mapping):
        raise TypeError(
            f"params must be a dict of arrays, got {type(params).__name__}: init_params makes one"
        )
    if params.keys() != axes.keys():
        missing = [key for key in axes if key not in params]
        extra = [key for key in params if key not in axes]
        raise ValueError(
            f"params must have the keys of param_shapes(config), got missing {missing} and extra {extra}: "
            "were they made for another config?"
        )
    check_arrays(params, axes, config)


def check_arrays(arrays, axes, config):
    """Raise unless `arrays` holds, by the keys of `axes`, arrays of these axes, all of one dtype."""
    first = next(iter(axes))
    for key, letters in axes.items():
        array = arrays[key]
        if not isinstance(array, np.ndarray):
            raise TypeError(f"params must be arrays, got {type(array).__name__} in {key}: convert it")
        if array.dtype.kind != "f" or array.dtype != arrays[first].dtype:
            raise TypeError(
                f"params must be arrays of one floating-point dtype, got {array.dtype} in {key} "
                f"beside {arrays[first].dtype} in {first}: convert them all"
            )
        expected = _shape(letters, config)
        shapes.require_shape(
            key, array, f"({', '.join(letters)})", expected, "is it made for another config?"
        )
