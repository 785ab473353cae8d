"""Checks of parameters, gradients and data: arrays that should be there, apart, and in step."""

import itertools
import math
from collections.abc import Mapping

import numpy as np

from labs.llm import arguments
from labs.llm.checks.finding import (
    CANNOT_TELL,
    FAILED,
    PASSED,
    ROUNDINGS,
    Finding,
    as_array,
    check,
    fitting,
    require_function,
)


@check
def no_shared_arrays(arrays):
    """See that no two arrays overlap in memory, so that an update of one never changes another.

    CAN see: layers made from one array (`[block] * L`), a view of another parameter, tied embeddings.
    CANNOT see: equal numbers in separate arrays, such as layers that were drawn from one seed.

    Args:
        arrays: a dict of arrays, parameters or gradients.

    Returns: a Finding with the number shared, a list of pairs of keys.
    Raises: TypeError unless a dict of arrays, ValueError for an empty one.
    """
    arrays = _as_arrays("arrays", arrays)
    pairs = [pair for pair in itertools.combinations(arrays, 2) if np.shares_memory(*map(arrays.get, pair))]
    if pairs:
        message = f"{pairs[0][0]} and {pairs[0][1]} share memory: an update of one changes the other"
        return Finding(FAILED, message, {"shared": pairs})
    return Finding(PASSED, f"the {len(arrays)} arrays do not overlap", {"shared": []})


@check
def every_parameter_learns(loss_and_grads, params):
    """See that every parameter array receives a gradient that is not zero. Most wrong models pass this, too.

    CAN see: parameters that nothing uses, that were left out of the gradients, whose gradient has another
    shape or dtype, or is zero everywhere or not finite.
    CANNOT see: whether a gradient is right, so a pass is no comfort. It asks array by array, not entry by
    entry: the embedding of a letter that does not occur has a gradient of exactly zero, and rightly so.
    CANNOT TELL: if a gradient is so small beside the largest one that it may be zero, except for rounding.
    The known case is a bias of the keys: it adds the same number to all scores of a query, softmax cancels
    it, and about 1e-18 remains. A correct model with such biases can get no better verdict.

    It is meant for a batch with T > 1, because with one position queries and keys rightly get no gradient.

    Args:
        loss_and_grads: takes params, returns (loss, grads).
        params: a dict of floating-point arrays; they are not changed.

    Returns: a Finding with the numbers idle and negligible, lists of keys.
    Raises: TypeError unless params is a dict of arrays and loss_and_grads returns (loss, a dict).
    """
    params = _as_arrays("params", params)
    require_function("loss_and_grads", loss_and_grads)
    for key, array in params.items():
        arguments.as_floats(key, array)
    result = loss_and_grads(params)
    if not isinstance(result, tuple) or len(result) != 2 or not isinstance(result[1], Mapping):
        raise TypeError(
            f"loss_and_grads must return (loss, a dict of gradients), got {type(result).__name__}"
        )
    grads = fitting(result[1], params, "gradient")
    sizes = {key: float(np.abs(gradient).max()) for key, gradient in grads.items()}
    idle = [key for key, size in sizes.items() if not 0 < size < math.inf]
    if idle:
        message = f"the gradient of {', '.join(idle)} is zero everywhere, or not finite: nothing learns there"
        return Finding(FAILED, message, {"idle": idle, "negligible": []})
    largest = max(sizes.values())
    negligible = [
        key for key, size in sizes.items() if size <= ROUNDINGS * np.finfo(grads[key].dtype).eps * largest
    ]
    numbers = {"idle": [], "negligible": negligible}
    if negligible:
        size = max(sizes[key] for key in negligible)
        message = (
            f"the gradient of {', '.join(negligible)} is {size:.1e} beside {largest:.1e}: either zero "
            "except for rounding, which is right for a bias of the keys, or something cuts it off"
        )
        return Finding(CANNOT_TELL, message, numbers)
    return Finding(PASSED, f"all {len(params)} arrays receive a gradient", numbers)


def _as_arrays(name, arrays):
    if not isinstance(arrays, Mapping) or not all(isinstance(array, np.ndarray) for array in arrays.values()):
        raise TypeError(
            f"{name} must be a dict of arrays, got {type(arrays).__name__}: one array for each key"
        )
    if not arrays or not all(array.size for array in arrays.values()):
        raise ValueError(f"{name} must hold arrays, got none or an empty one: there is nothing to look at")
    return arrays


@check
def targets_aligned(ids, targets, source):
    """See that each target is the token that follows its input in the source, and that none crosses rows.

        source:  ... c a u s a l ...
        ids:         c a u s a
        targets:       a u s a l

    CAN see: targets that are the inputs, shifted by two or backwards, or from the next row of the batch.
    CANNOT see: which part of the source a row comes from, such as the part to be kept for validation; what
    the loss does with the targets.

    Args:
        ids, targets: integers, (B, T).
        source: integers; what the rows were cut from: one text (N,) for all, or a text (B, N) for each row.

    Returns: a Finding with the number wrong, a list of (row, position), position T standing for a row that is
        nowhere in the source with its last target.
    Raises: TypeError unless all are integers; ValueError for other shapes, or a source shorter than T + 1.
    """
    named = {"ids": ids, "targets": targets, "source": source}
    ids, targets, source = (as_array(name, array) for name, array in named.items())
    for name, array in (("ids", ids), ("targets", targets), ("source", source)):
        if array.dtype.kind not in "iu":
            raise TypeError(f"{name} must be integers, got dtype {array.dtype}: encode the text first")
    arguments.require_axes("ids", ids, "B, T")
    arguments.require_shape("targets", targets, "(B, T)", ids.shape, "one target for each input")
    B, T = ids.shape
    if source.ndim not in (1, 2) or (source.ndim == 2 and len(source) != B) or source.shape[-1] <= T:
        raise ValueError(
            f"source must have shape (N,) or (B, N) = ({B}, N) with N > T = {T}, got {source.shape}: "
            "give the text that the rows were cut from"
        )
    wrong = [tuple(place) for place in np.argwhere(targets[:, :-1] != ids[:, 1:]).tolist()]
    if wrong:
        b, t = wrong[0]
        message = f"target {t} of row {b} is {targets[b, t]}, but the next input is {ids[b, t + 1]}"
        return Finding(FAILED, message, {"wrong": wrong})
    windows = np.lib.stride_tricks.sliding_window_view(source, T + 1, axis=-1)  # (..., N - T, T + 1)
    rows = np.concatenate([ids, targets[:, -1:]], axis=1)[:, np.newaxis]  # (B, 1, T + 1)
    wrong = [(b, T) for b in np.flatnonzero(~(windows == rows).all(axis=-1).any(axis=-1)).tolist()]
    if wrong:
        message = (
            f"row {wrong[0][0]} with its last target is nowhere in the source: does it cross a boundary?"
        )
        return Finding(FAILED, message, {"wrong": wrong})
    return Finding(PASSED, f"all {B * T} targets are the tokens that follow", {"wrong": []})
