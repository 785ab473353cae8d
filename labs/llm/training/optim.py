"""How parameters follow their gradients: AdamW, clipping by the global norm, and a learning-rate schedule.

Functions on dicts of arrays, keyed like params. Nothing is changed in place: a step returns new parameters
and a new state, so whoever kept the old ones can go back to them.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from labs.llm import arguments


def is_matrix(key, array):  # noqa: ARG001  (another choice may go by the key)
    """Return whether a parameter is a matrix. The others are gains, which belong near one, not near zero."""
    return arguments.as_array("array", array).ndim == 2


@dataclass(frozen=True)
class AdamWConfig:
    """The constants of AdamW. The learning rate is not among them: it changes from step to step."""

    beta1: float = 0.9  # how much of the mean gradient survives a step
    beta2: float = 0.999  # how much of the mean squared gradient survives a step
    eps: float = 1e-8  # in units of a gradient
    weight_decay: float = 0.01  # per step, in units of the learning rate
    decays: Callable[[str, np.ndarray], bool] = is_matrix  # (key, array) -> whether the array decays

    def __post_init__(self):
        for name in ("beta1", "beta2"):
            object.__setattr__(
                self, name, arguments.require_at_least_zero(name, getattr(self, name), below=1)
            )
        object.__setattr__(self, "eps", arguments.require_eps("eps", self.eps))
        object.__setattr__(
            self, "weight_decay", arguments.require_at_least_zero("weight_decay", self.weight_decay)
        )
        if not callable(self.decays):
            raise TypeError(f"decays must be a function of (key, array), got {arguments.shown(self.decays)}")


class AdamWState(NamedTuple):
    """What AdamW remembers from step to step."""

    step: int  # how many steps were taken
    mean: dict[str, np.ndarray]  # of the gradients, with the keys, shapes and dtypes of params
    square: dict[str, np.ndarray]  # of the squared gradients


def adamw_init(params):
    """Return the AdamWState before the first step: step 0, all zeros like params.

    Raises: TypeError unless params is a dict of floating-point arrays.
    """
    _require_arrays("params", params)
    zeros = {key: np.zeros_like(array) for key, array in params.items()}
    return AdamWState(0, zeros, {key: array.copy() for key, array in zeros.items()})


def require_state(state, params):
    """Raise ValueError or TypeError unless `state` is an AdamWState for these parameters."""
    _require_arrays("params", params)
    arguments.require_type("state", state, AdamWState, "adamw_init makes the first one")
    arguments.require_size("step", state.step, least=0)
    _require_like("state.mean", state.mean, params)
    _require_like("state.square", state.square, params)


def adamw(params, grads, state, learning_rate, config):
    """Take one step of AdamW: Adam, with a weight decay that the gradient's scale does not touch.

        mean   = beta1 * mean   + (1 - beta1) * grad
        square = beta2 * square + (1 - beta2) * grad ** 2
        update = mean / (1 - beta1 ** t) / (sqrt(square / (1 - beta2 ** t)) + eps)
        param  = param - learning_rate * (update + weight_decay * param)

    t counts from one. The two divisions undo that mean and square started from zero; without decay the first
    step is therefore learning_rate * sign(grad), whatever the gradient's size.

    Args:
        params: dict of arrays.
        grads: the gradients, with the keys, shapes and dtypes of params.
        state: the AdamWState, from adamw_init or from the step before.
        learning_rate: of this step, positive.
        config: the AdamWConfig.

    Returns: new params and the new AdamWState.
    Raises: ValueError or TypeError if grads or state do not fit params, params are not floating-point, or the
        learning rate is not positive.
    Source: Loshchilov & Hutter 2019, arXiv:1711.05101, algorithm 2. There the decay is multiplied by the
        schedule alone; here, as in PyTorch, by the whole learning rate.
    """
    learning_rate = arguments.require_positive("learning_rate", learning_rate)
    arguments.require_type("config", config, AdamWConfig, "AdamWConfig() has the usual constants")
    require_state(state, params)
    _require_like("grads", grads, params)
    t = int(state.step) + 1
    beta1, beta2 = config.beta1, config.beta2
    moved, means, squares = {}, {}, {}
    for key, param in params.items():
        grad = grads[key]
        mean = beta1 * state.mean[key] + (1 - beta1) * grad
        square = beta2 * state.square[key] + (1 - beta2) * grad**2
        update = mean / (1 - beta1**t) / (np.sqrt(square / (1 - beta2**t)) + config.eps)
        if config.decays(key, param):
            update += config.weight_decay * param
        moved[key], means[key], squares[key] = param - learning_rate * update, mean, square
    return moved, AdamWState(t, means, squares)


def global_norm(grads):
    """Return the length of all gradients together, as one long vector: sqrt(sum of all squares), a float.

    Squares are added in float64, where those of float32 cannot overflow.

    Raises: TypeError unless grads is a dict of floating-point arrays.
    """
    _require_arrays("grads", grads)
    vectors = [np.ravel(grad) for grad in grads.values()]
    return math.sqrt(sum(np.vecdot(vector, vector, dtype=np.float64) for vector in vectors))


def clip_by_global_norm(grads, max_norm):
    """Shorten the gradients, all by one factor, so that their global norm is at most max_norm.

        grads * min(1, max_norm / norm)

    The direction of the step stays: a factor for each array would turn it.

    Args:
        grads: dict of arrays.
        max_norm: positive.

    Returns: the gradients (those passed in, if they are short enough) and the norm they came with.
    Raises: ValueError if the norm is infinite or NaN: no factor helps then.
    Source: Pascanu et al. 2013, arXiv:1211.5063, section 3.2. PyTorch adds 1e-6 to the norm; we do not.
    """
    max_norm = arguments.require_positive("max_norm", max_norm)
    norm = global_norm(grads)
    if not math.isfinite(norm):
        bad = [key for key, grad in grads.items() if not np.isfinite(grad).all()]
        raise ValueError(
            f"grads must be finite, got NaN or infinity in {arguments.shown(bad)}: "
            "the training diverged before this step, so lower the learning rate or max_norm"
        )
    if norm <= max_norm:
        return grads, norm
    return {key: grad * (max_norm / norm) for key, grad in grads.items()}, norm


def warmup_cosine(step, *, peak, floor, warmup_steps, total_steps):
    """Return the learning rate of a step: a straight climb to the peak, then half a cosine down to the floor.

        peak * (step + 1) / warmup_steps                           if step < warmup_steps
        floor + (peak - floor) * (1 + cos(pi * progress)) / 2      from there on,
        progress = (step - warmup_steps) / (total_steps - 1 - warmup_steps)
        floor                                                      from the last step, total_steps - 1, on

    Args:
        step: counted from zero; the first learning rate is not zero.
        peak, floor: the largest learning rate, and the one it falls to; 0 <= floor <= peak.
        warmup_steps: the length of the climb, 0 or more, less than total_steps.
        total_steps: how many steps there are. The last one is taken at the floor.

    Returns: a float.
    Raises: ValueError or TypeError for anything else.
    Source: Loshchilov & Hutter 2017, arXiv:1608.03983, equation 5 (one period); the climb: Goyal et al. 2017,
        arXiv:1706.02677, section 2.2.
    """
    peak, floor = arguments.require_positive("peak", peak), arguments.require_at_least_zero("floor", floor)
    total_steps = arguments.require_size("total_steps", total_steps)
    step = arguments.require_size("step", step, least=0)
    warmup_steps = arguments.require_size("warmup_steps", warmup_steps, least=0)
    if floor > peak:
        raise ValueError(
            f"floor must be at most peak = {peak}, got {floor}: the rate falls from peak to floor"
        )
    if warmup_steps >= total_steps:
        raise ValueError(
            f"warmup_steps must be less than total_steps = {total_steps}, got {warmup_steps}: "
            "the cosine needs at least one step"
        )
    if step < warmup_steps:
        return peak * (step + 1) / warmup_steps
    if step >= total_steps - 1:
        return floor
    progress = (step - warmup_steps) / (total_steps - 1 - warmup_steps)
    return floor + (peak - floor) * (1 + math.cos(math.pi * progress)) / 2


def _require_arrays(name, arrays):
    """Raise TypeError unless `arrays` is a dict of floating-point arrays."""
    arguments.require_dict(name, arrays)
    for key, array in arrays.items():
        if type(array) is not np.ndarray or array.dtype not in arguments.FLOATS:
            arguments.as_floats(_entry(name, key), array)


def _entry(name, key):
    return f"{name}[{arguments.shown(key)}]"


def _require_like(name, arrays, params):
    """Raise unless `arrays` has the keys of params, with arrays of the same shapes and dtypes."""
    arguments.require_dict(name, arrays)
    if arrays.keys() != params.keys():
        missing = [key for key in params if key not in arrays]
        extra = [key for key in arrays if key not in params]
        raise ValueError(
            f"{name} must fit params key by key, got missing {arguments.shown(missing)} and extra "
            f"{arguments.shown(extra)}: do both belong to one model?"
        )
    for key, array in params.items():
        other = arrays[key]
        if type(other) is not np.ndarray:
            other = arguments.as_array(_entry(name, key), other)
        if other.shape != array.shape or other.dtype != array.dtype:
            raise ValueError(
                f"{name} of {arguments.shown(key)} must have the parameter's shape {array.shape} and dtype "
                f"{array.dtype}, got {other.shape} and {arguments.dtype_name(other)}: "
                "do both belong to one model?"
            )
