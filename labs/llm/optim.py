"""How parameters follow their gradients: AdamW, clipping by the global norm, and a learning-rate schedule.

Functions on dicts of arrays, keyed like params. Nothing is changed in place: a step returns new parameters
and a new state, so whoever kept the old ones can go back to them.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from labs.llm import shapes


def is_matrix(key, array):  # noqa: ARG001  (another choice may go by the key)
    """Return whether a parameter is a matrix. The others are gains, which belong near one, not near zero."""
    return array.ndim == 2


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
            _require_at_least_zero(name, getattr(self, name), below=1)
        shapes.require_positive("eps", self.eps)
        _require_at_least_zero("weight_decay", self.weight_decay)
        if not callable(self.decays):
            raise TypeError(f"decays must be a function of (key, array), got {self.decays!r}")


class AdamWState(NamedTuple):
    """What AdamW remembers from step to step."""

    step: int  # how many steps were taken
    mean: dict[str, np.ndarray]  # of the gradients, with the keys, shapes and dtypes of params
    square: dict[str, np.ndarray]  # of the squared gradients


def adamw_init(params):
    """Return the AdamWState before the first step: step 0, all zeros like params.

    Raises: TypeError if a parameter is not a floating-point array.
    """
    zeros = {key: np.zeros_like(shapes.as_floats(key, array)) for key, array in params.items()}
    return AdamWState(0, zeros, {key: array.copy() for key, array in zeros.items()})


def check_state(state, params):
    """Raise ValueError unless `state` is an AdamWState for these parameters."""
    _require_count("step", state.step)
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
    Raises: ValueError or TypeError if grads or state do not fit params, or the learning rate is not positive.
    Source: Loshchilov & Hutter 2019, arXiv:1711.05101, algorithm 2. There the decay is multiplied by the
        schedule alone; here, as in PyTorch, by the whole learning rate.
    """
    shapes.require_positive("learning_rate", learning_rate)
    _require_like("grads", grads, params)
    check_state(state, params)
    t = state.step + 1
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
    """
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
    shapes.require_positive("max_norm", max_norm)
    norm = global_norm(grads)
    if not math.isfinite(norm):
        bad = [key for key, grad in grads.items() if not np.isfinite(grad).all()]
        raise ValueError(
            f"grads must be finite, got NaN or infinity in {bad}: "
            "the training diverged before this step, so lower the learning rate or max_norm"
        )
    if norm <= max_norm:
        return grads, norm
    return {key: grad * (max_norm / norm) for key, grad in grads.items()}, norm


def warmup_cosine(step, *, peak, floor, warmup_steps, total_steps):
    """Return the learning rate of a step: a straight climb to the peak, then half a cosine down to the floor.

        peak * (step + 1) / warmup_steps                           if step < warmup_steps
        floor + (peak - floor) * (1 + cos(pi * progress)) / 2      from there on,
        progress = (step - warmup_steps) / (total_steps - warmup_steps), at most 1

    Args:
        step: counted from zero; the first learning rate is not zero.
        peak, floor: the largest learning rate, and the one it falls to; 0 <= floor <= peak.
        warmup_steps: the length of the climb, 0 or more, less than total_steps.
        total_steps: where the floor is reached; from there on the rate stays.

    Returns: a float.
    Raises: ValueError or TypeError for anything else.
    Source: Loshchilov & Hutter 2017, arXiv:1608.03983, equation 5 (one period); the climb: Goyal et al. 2017,
        arXiv:1706.02677, section 2.2.
    """
    shapes.require_positive("peak", peak)
    _require_at_least_zero("floor", floor)
    shapes.require_size("total_steps", total_steps)
    _require_count("step", step)
    _require_count("warmup_steps", warmup_steps)
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
    progress = min(1, (step - warmup_steps) / (total_steps - warmup_steps))
    return floor + (peak - floor) * (1 + math.cos(math.pi * progress)) / 2


def _require_at_least_zero(name, value, below=math.inf):
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} must be a real number, got {value!r} ({type(value).__name__})")
    if not 0 <= value < below:
        raise ValueError(f"{name} must be at least 0 and less than {below}, got {value}")


def _require_count(name, value):
    if type(value) is not int or value < 0:
        raise ValueError(f"{name} must be an int of at least 0, got {value!r}: it counts steps")


def _require_like(name, arrays, params):
    """Raise ValueError unless `arrays` has the keys of params, with their shapes and dtypes."""
    if arrays.keys() != params.keys():
        missing, extra = sorted(params.keys() - arrays.keys()), sorted(arrays.keys() - params.keys())
        raise ValueError(
            f"{name} must fit params key by key, got missing {missing} and extra {extra}: "
            "do both belong to one model?"
        )
    for key, array in params.items():
        other = arrays[key]
        if other.shape != array.shape or other.dtype != array.dtype:
            raise ValueError(
                f"{name} of {key} must have the parameter's shape {array.shape} and dtype {array.dtype}, "
                f"got {other.shape} and {other.dtype}: do both belong to one model?"
            )
