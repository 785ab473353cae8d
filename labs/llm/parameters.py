"""The sizes of a model, and its parameters: their keys, their shapes, the first draw, the check of them all.

The letters of the shapes are those of `model.py`, which computes with what is described here.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from labs.llm import arguments


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
            object.__setattr__(self, name, arguments.require_size(name, getattr(self, name)))
        object.__setattr__(self, "rope_base", arguments.require_positive("rope_base", self.rope_base))
        object.__setattr__(self, "norm_eps", arguments.require_eps("norm_eps", self.norm_eps))
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
    """Return the BlockWeights of layer `l`, the arrays of `params` themselves.

    Raises: TypeError unless params is a dict and `l` an int; ValueError for a layer that params do not have.
    """
    arguments.require_dict("params", params)
    l = arguments.require_size("l", l, least=0)
    try:
        return BlockWeights(*(params[f"blocks.{l}.{name}"] for name in BlockWeights._fields))
    except KeyError as missing:
        raise ValueError(
            f"l must be a layer of params, got {l}, but params have no {missing}: layers count from zero"
        ) from None


def require_config(config):
    """Raise TypeError unless `config` is a ModelConfig."""
    arguments.require_type("config", config, ModelConfig, "write ModelConfig(vocab_size=...)")


def param_axes(config):
    """Return the letters of the axes of every parameter by its key, in the order of the forward pass."""
    require_config(config)
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
    Raises: TypeError for another dtype, or without a seed; ValueError for a negative one.
    Source: LeCun et al. 1998, "Efficient BackProp", section 4.6 (1 / n_in); Radford et al. 2019 (GPT-2),
        section 2.3 (residual branches).
    """
    require_config(config)
    dtype = arguments.require_float_type("dtype", dtype)
    rng = arguments.as_rng("seed", seed)
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


def require_params(params, config):
    """Raise unless `params` holds exactly the arrays of param_shapes(config), all of one dtype."""
    require_keys("params", params, config)
    require_arrays(params, param_axes(config), config)


def require_keys(name, params, config):
    """Raise ValueError unless a dict has the keys of param_shapes(config)."""
    arguments.require_dict(name, params)
    require_config(config)
    if len(params) < config.n_layers:  # seen before the names of all layers are written down
        raise ValueError(
            f"{name} must have the keys of param_shapes(config), got {len(params)} keys for "
            f"L = {config.n_layers} layers: were they made for another config?"
        )
    expected = param_axes(config)
    if params.keys() != expected.keys():
        missing = [key for key in expected if key not in params]
        extra = [key for key in params if key not in expected]
        raise ValueError(
            f"{name} must have the keys of param_shapes(config), got missing {arguments.shown(missing)} and "
            f"extra {arguments.shown(extra)}: were they made for another config?"
        )


def require_arrays(arrays, axes, config):
    """Raise unless `arrays` holds, by the keys of `axes`, arrays of these axes, all of one dtype."""
    require_config(config)
    arguments.require_dict("arrays", arrays)
    arguments.require_dict("axes", axes, "param_axes(config) makes them")
    first = next(iter(axes), None)
    for key, letters in axes.items():
        array = arrays.get(key)
        if not arguments.is_plain(array):
            raise TypeError(
                f"params must be arrays without a mask, got {type(array).__name__} in {key}: convert it"
            )
        dtype = arrays[first].dtype
        if array.dtype != dtype or dtype not in arguments.FLOATS:
            raise TypeError(
                "params must be arrays of one floating-point dtype, float32 or float64, got "
                f"{arguments.dtype_name(array)} in {key} beside "
                f"{arguments.dtype_name(arrays[first])} in {first}: convert them all"
            )
        expected = _shape(letters, config)
        if array.shape != expected:
            axes_of_it = f"({', '.join(letters)})"
            arguments.require_shape(key, array, axes_of_it, expected, "is it made for another config?")
