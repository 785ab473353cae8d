"""Checks of what an output depends on: which tokens it reads, which row, which distance."""

import functools

import numpy as np

from labs.llm import arguments
from labs.llm.checks.finding import (
    CANNOT_TELL,
    EPS,
    FAILED,
    PASSED,
    REPEATS,
    RESOLVED,
    ROUNDINGS,
    End,
    Finding,
    as_array,
    check,
    not_deterministic,
    require_function,
    rounding,
)


def influence(function, ids, vocab_size=None):
    """Find out which tokens each position of the output depends on, by changing one token at a time.

    Every token is replaced by every other id in turn, in all rows at once. That takes T times (number of ids
    minus one) calls, so keep T and the number of ids small.

    Args:
        function: takes ids (B, T), returns an array (B, T, ...), such as the logits.
        ids: integers, (B, T), with T >= 2.
        vocab_size: V, so that all ids in [0, V) are tried; None tries those that occur in `ids`, of which
            there must be at least two.

    Returns: boolean, (B, T, T); [b, i, t] tells whether anything at position i of row b changed, be it the
        last bit, when token t was replaced by another one.
    Raises: TypeError or ValueError for other ids, or if the function is not deterministic or returns another
        shape, NaN or infinity.
    """
    try:
        return _influence(function, ids, vocab_size)
    except End as end:
        raise ValueError(f"function must return what can be compared, but {end}") from None


def _influence(function, ids, vocab_size):
    """Return what `influence` returns, but end the check if the function is not deterministic."""
    ids = _as_batch(ids)
    run = functools.partial(_output, function)
    before = _repeatable(run, ids)
    moved = np.zeros((*ids.shape, ids.shape[1]), dtype=bool)
    for others in _other_ids(ids, vocab_size):
        for t in range(ids.shape[1]):
            changed = ids.copy()
            changed[:, t] = others[:, t]
            moved[:, :, t] |= _moved(before, run(changed))
    return moved


@check
def causality(function, ids, vocab_size=None):
    """See that no position reads ahead: changing token t leaves every output before t as it was, bit for bit.

    CAN see: any leak from a later token that moves a bit of the output, at every cut, for every token tried.
    CANNOT see: a leak too faint to move the last bit, such as the weight exp(-50) that filling with -50
    instead of -inf leaves (scale up the weights of the queries, say by 100: the scores then go beyond -50,
    and it shows); a leak that only an untried token causes (give vocab_size); one that takes more positions
    than `ids` has; a mask that is too strict (sensitivity does); targets that are not the next tokens
    (targets_aligned does).
    CANNOT TELL: if the same call gives a different result the next time, even if only in the last bit.

    Args, Raises: as for influence.
    Returns: a Finding with the number leaks, a list of (row, position, token it should not know).
    """
    ahead = np.triu(_influence(function, ids, vocab_size), k=1)
    leaks = [tuple(place) for place in np.argwhere(ahead).tolist()]
    if leaks:
        b, i, t = leaks[0]
        message = (
            f"position {i} of row {b} reads ahead: changing the token at position {t} changes its output"
        )
        return Finding(FAILED, message, {"leaks": leaks})
    return Finding(PASSED, "no output depends on a token after it", {"leaks": []})


@check
def sensitivity(function, ids, vocab_size=None):
    """See that nothing is cut off: changing token t moves the output at t and at every later position.

    The dual of causality, which a model that reads nothing would pass.

    CAN see: a mask that forbids too much, positions that are skipped, an output that ignores its input.
    CANNOT see: whether the output moves by the right amount. In a model of several layers a token may arrive
    by a detour, so one layer is more telling.
    CANNOT TELL: if the same call gives a different result the next time.

    It is meant for weights of ordinary size. Saturated attention gives some tokens a weight of exactly zero,
    and a correct model is then deaf to them.

    Args, Raises: as for influence.
    Returns: a Finding with the number deaf, a list of (row, position, token it does not notice).
    """
    unmoved = np.tril(~_influence(function, ids, vocab_size))
    deaf = [tuple(place) for place in np.argwhere(unmoved).tolist()]
    if deaf:
        b, i, t = deaf[0]
        message = (
            f"position {i} of row {b} is deaf: changing the token at position {t} does not move its output"
        )
        return Finding(FAILED, message, {"deaf": deaf})
    return Finding(PASSED, "each output depends on its own token and on all earlier ones", {"deaf": []})


@check
def batch_independence(function, ids, vocab_size=None):
    """See that the rows of a batch do not mix: changing all other rows leaves a row as it was, bit for bit.

    CAN see: statistics over the batch, an axis taken for another, a reshape that crosses rows.
    CANNOT see: what depends on the number of rows alone, such as a division by B. The shapes stay equal here,
    for at other shapes even a right model may round differently.
    CANNOT TELL: if the same call gives a different result the next time.

    Args, Raises: as for influence, and ValueError for a batch of one row.
    Returns: a Finding with the number mixed, a list of rows that noticed the others.
    """
    ids = _as_batch(ids)
    B = len(ids)
    if B < 2:
        raise ValueError("ids must have at least two rows, B >= 2, got one: there is nothing to mix")
    run, noticed = functools.partial(_output, function), set()
    before = _repeatable(run, ids)
    for others in _other_ids(ids, vocab_size):
        for b in range(B):
            changed = others.copy()
            changed[b] = ids[b]
            if _moved(before, run(changed))[b].any():
                noticed.add(b)
    mixed = sorted(noticed)
    if mixed:
        message = f"row {mixed[0]} changes when only other rows of the batch do"
        return Finding(FAILED, message, {"mixed": mixed})
    return Finding(PASSED, f"each of the {B} rows stays as it was when all others change", {"mixed": []})


@check
def order_matters(function, ids):
    """See that the order of the tokens counts: the last output moves when the earlier tokens change places.

    All tokens but the last are rotated by one place. Without positions, attention reads a set.

    CAN see: in one layer, that the rotations are missing or have no effect.
    CANNOT see: whether the positions are right. And in two layers or more it sees nothing missing, for then
    the causal mask alone tells the order: check one layer.
    CANNOT TELL: if the change may be rounding, but is too large, or the precision too low, to be sure of it,
    as in a float32 model that starts with small weights (run it in float64); or if the same call gives a
    different result the next time.

    It is meant for weights of ordinary size: below about 1e-4, the effect of order on a float64 result is
    lost in rounding.

    Args: function and ids as for influence, and in some row the tokens before the last are not all equal.
    Returns: a Finding with the number change, that of the last output relative to its largest entry.
    Raises: as for influence, and ValueError for ids that look the same when rotated.
    """
    ids = _as_batch(ids)
    rotated = np.concatenate([np.roll(ids[:, :-1], 1, axis=1), ids[:, -1:]], axis=1)
    rows = (rotated != ids).any(axis=1)
    if not rows.any():
        raise ValueError(
            "ids must have different tokens before the last one, got equal ones: they have no order"
        )
    run = functools.partial(_output, function)
    before, after = _repeatable(run, ids)[rows, -1], run(rotated)[rows, -1]
    change = _relative_change(before, after)
    verdict = _effect(change, before.dtype)
    message = {
        PASSED: "the last output moves when the earlier tokens change places",
        FAILED: "the last output stays as it was when the earlier tokens change places: order has no effect",
        CANNOT_TELL: f"when the earlier tokens change places, the last output moves by {change:.1e} of its "
        f"largest entry, which may be rounding in {before.dtype}: try float64, or larger weights",
    }[verdict]
    return Finding(verdict, message, {"change": change})


@check
def shift_invariance(function, T, *, shift=3):
    """See that only distances between positions count: a shift of all positions changes nothing but rounding.

    And that they do count: twice the distances must change the result, or else a function that ignores its
    positions would pass.

    CAN see: queries and keys rotated differently, or only one of them; rotated values.
    CANNOT see: wrong frequencies, a wrong direction, the wrong pairs, or positions that start elsewhere, as
    long as it is the same for queries and keys; positions that only one of several layers looks at.
    CANNOT TELL: if the effect of distances is not well above rounding, as in a float32 model that starts with
    small weights, or if the same call gives a different result the next time.

    Args:
        function: takes positions (T,), returns an array: the logits of a model, or the scores
            rope(q, positions) @ rope(k, positions).swapaxes(-1, -2).
        T: how many positions, at least 2.
        shift: a real number, not zero; keep it small, because the rounding of an angle grows with it.

    Returns: a Finding with the numbers shifted and stretched, the changes relative to the largest entry.
    Raises: TypeError or ValueError for another T or shift, or if the function returns NaN or infinity.
    """
    require_function("function", function)
    arguments.require_size("T", T)
    arguments.require_positive("shift", abs(shift) if isinstance(shift, (int, float, np.number)) else shift)
    if T < 2:
        raise ValueError("T must be at least 2, got 1: one position has no distance to another")
    positions = np.arange(T, dtype=np.float64)

    def run(positions):
        return _finite(function(positions.copy()))

    before = _repeatable(run, positions)
    changes = {
        "shifted": _relative_change(before, run(positions + shift)),
        "stretched": _relative_change(before, run(2 * positions)),
    }
    if changes["shifted"] > rounding(before.dtype):
        message = (
            f"positions shifted by {shift} change the result by {changes['shifted']:.1e} of its largest entry"
        )
        return Finding(FAILED, f"{message}: it depends on more than distances", changes)
    verdict = _effect(changes["stretched"], before.dtype)
    if verdict == PASSED and changes["shifted"] > RESOLVED * changes["stretched"]:
        verdict = CANNOT_TELL
    message = {
        PASSED: f"positions shifted by {shift} change nothing, twice the distances do",
        FAILED: "twice the distances give the same result: positions have no effect",
        CANNOT_TELL: f"twice the distances change the result by {changes['stretched']:.1e} of its largest "
        f"entry, too little to stand out from rounding in {before.dtype}: try float64, or larger weights",
    }[verdict]
    return Finding(verdict, message, changes)


def _as_batch(ids):
    ids = as_array("ids", ids)
    arguments.require_axes("ids", ids, "B, T")
    if ids.dtype.kind not in "iu":
        raise TypeError(f"ids must be integers, got dtype {ids.dtype}: encode the text as whole numbers")
    if ids.shape[1] < 2:
        raise ValueError(
            "ids must have at least two positions, T >= 2, got T = 1: nothing comes earlier or later"
        )
    return ids


def _other_ids(ids, vocab_size):
    """Return arrays of the shape of ids that differ from ids everywhere and together hold every other id."""
    if vocab_size is None:
        known, places = np.unique(ids, return_inverse=True)
        if len(known) < 2:
            raise ValueError(
                "ids must hold at least two different ids, got one: there is no other token to put there, "
                "so give vocab_size"
            )
    else:
        vocab_size = arguments.require_size("vocab_size", vocab_size)
        if vocab_size < 2:
            raise ValueError("vocab_size must be at least 2, got 1: there is no other token to put there")
        places = arguments.as_ids("ids", ids, vocab_size)
        known = np.arange(vocab_size, dtype=ids.dtype)
    return [known[(places.reshape(ids.shape) + n) % len(known)] for n in range(1, len(known))]


def _output(function, ids):
    """Return function(ids), an array with the axes (B, T, ...)."""
    require_function("function", function)
    output = _finite(function(ids.copy()))
    if output.shape[:2] != ids.shape:
        raise ValueError(
            f"the function must return an array (B, T, ...) with (B, T) = {ids.shape}, got shape "
            f"{output.shape}: are its axes in another order?"
        )
    return output


def _repeatable(run, argument):
    """Return run(argument), or end the check if it is not always the same to the last bit."""
    before = run(argument).copy()
    change = max(_relative_change(before, run(argument)) for _ in range(REPEATS))
    if change:
        raise End(CANNOT_TELL, not_deterministic(change, "its output changes by a relative"))
    return before


def _finite(output):
    if not isinstance(output, np.ndarray) or output.dtype.kind != "f":
        raise TypeError(
            f"the function must return a floating-point array, got {type(output).__name__}: "
            "return the logits alone, for example forward(params, ids, config)[0]"
        )
    if output.size == 0 or not np.isfinite(output).all():
        raise ValueError(
            "the function must return finite numbers, got NaN, infinity or none: nothing can be compared"
        )
    return output


def _moved(before, after):
    """Tell, for each row and position (B, T), whether any entry there changed."""
    return (before != after).reshape(*before.shape[:2], -1).any(axis=-1)


def _relative_change(before, after):
    """Return the largest change of an entry, in units of the largest entry."""
    if after.shape != before.shape:
        raise ValueError(f"the function must always return one shape, got {before.shape} and {after.shape}")
    return float(np.abs(after - before).max() / max(np.abs(before).max(), np.finfo(before.dtype).tiny))


def _effect(change, dtype):
    """Return the verdict on a relative change that has to be there: FAILED only where float64 shows none."""
    if change > rounding(dtype):
        return PASSED
    return FAILED if dtype == np.float64 and change <= ROUNDINGS * EPS else CANNOT_TELL
