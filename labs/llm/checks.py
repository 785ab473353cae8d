"""Checks that find mistakes in a model. The docstring of each says what it CAN see, and what it CANNOT.

They take functions, so that they can be pointed at this package, at a mutant of it, or at a model of yours:

    def logits(ids):
        return forward(params, ids, config)[0]

    causality(logits, ids)                      a Finding: passed or not, the reason, the numbers behind it
    causality(logits, ids).raise_if_failed()    the same as an assertion

A mistake in the model gives a Finding that did not pass; a mistake in the call raises ValueError or
TypeError. Where two runs do the same arithmetic at the same shapes, results are compared with ==, without a
tolerance.
"""

import inspect
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from labs.llm import shapes

#: Half the width of a central difference. Its own error, about STEP ** 2, and that of rounding, about
#: eps / STEP, then both stay near 1e-10 times the numbers at hand.
STEP = 1e-5

#: The largest relative error that passes for a difference quotient, and between two implementations.
GRADCHECK_RTOL, AGREEMENT_RTOL = 1e-6, 1e-10

#: How many rounding errors of a whole result may gather in one entry. More than ever seen in a right one.
ROUNDINGS = 32

EPS, TINY = float(np.finfo(np.float64).eps), float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class Finding:
    """What a check found. It is true if the check passed."""

    passed: bool
    message: str  # a sentence for the reader, with the place of the worst entry
    numbers: dict = field(default_factory=dict)  # what was measured, by name

    def __bool__(self):
        return self.passed

    def __repr__(self):
        return ("passed: " if self.passed else "FAILED: ") + self.message

    def raise_if_failed(self):
        """Return the Finding itself if it passed, else raise AssertionError with its message."""
        if not self.passed:
            raise AssertionError(self.message)
        return self


# Gradients


def relative_error(found, expected, floor):
    """Return the difference of two arrays in units of their entries, entry by entry.

        error = |found - expected| / max(|found|, |expected|, floor)

    The floor is for entries near zero. What is left of large terms that nearly cancel carries their rounding
    errors, and its error relative to itself says nothing: such entries are measured in units of `floor`
    instead. Choose it as (what rounding can do to an entry) / (the relative error that passes). Then rounding
    alone never fails, and an entry above the floor is held to its own size, not to that of the largest one.
    NaN is infinitely wrong.

    Args:
        found, expected: arrays of one shape.
        floor: a positive number.

    Returns: an array of that shape.
    Raises: ValueError for different shapes, or a floor that is not positive and finite.
    """
    found, expected = np.asarray(found), np.asarray(expected)
    shapes.require_shape("found", found, "of expected", expected.shape)
    shapes.require_positive("floor", floor)
    with np.errstate(invalid="ignore"):
        error = np.abs(found - expected) / np.maximum(np.maximum(np.abs(found), np.abs(expected)), floor)
    return np.where(np.isnan(error), np.inf, error)


def numeric_gradient(loss, x, step=STEP):
    """Nudge each entry of x up and down, and see how much the loss changes: the slope by central differences.

        gradient_i = (loss(x + step * e_i) - loss(x - step * e_i)) / (2 * step)

    CAN see: how the loss really answers to each entry, whatever a backward pass says.
    CANNOT see: digits below about 1e-10 of the loss and its bends; entries so large that the step is lost in
    their rounding. It runs the loss twice for each entry, so it is for small arrays. For a verdict, with a
    tolerance that knows about rounding, use gradcheck.

    Args:
        loss: a function of one array that returns one float64 number.
        x: a float64 array; left as it is.
        step: half the distance of the two losses.

    Returns: an array of the shape of x; NaN or infinity where a loss is so.
    Raises: TypeError unless x and the loss are float64 and step is real; ValueError if x is empty, or step
        not positive and finite.
    Source: as for gradcheck.
    """
    _require_float64("x", x)
    shapes.require_positive("step", step)
    gradient = np.empty(x.shape)
    for index in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[index] += step
        down[index] -= step
        gradient[index] = (_as_loss(loss(up)) - _as_loss(loss(down))) / (2 * step)
    return gradient


def _as_loss(value):
    """Return what a loss function returned, if it is one float64 number."""
    if isinstance(value, np.ndarray):
        if value.shape:
            raise TypeError(f"loss must return one number, got shape {value.shape}: add it up to a number")
        value = value[()]
    if not isinstance(value, float):  # as np.float64 is
        raise TypeError(
            f"loss must return one float64 number, got {type(value).__name__}: return that number alone"
        )
    return float(value)


def gradcheck(forward, backward, arrays, rng, *, entries=None, step=STEP, rtol=GRADCHECK_RTOL):
    """Compare gradients with central differences, entry by entry.

        loss(x) = sum(y(x) * dy),   dy drawn at random
        d loss / d x_i = (loss(x + step * e_i) - loss(x - step * e_i)) / (2 * step)

    CAN see: any mistake in a backward pass that changes an entry by more than `rtol` of itself. The upstream
    gradient is random because a constant one hides much: the gradient of sum(softmax(x)) is zero.
    CANNOT see: a wrong forward pass whose backward pass is right for it; entries it did not draw; errors in
    entries too small for float64 to resolve (see relative_error; the floor here is
    ROUNDINGS * eps * norm(y * dy) / (step * rtol)). It suspects right gradients where the function bends
    within one step, such as at a kink.

    Args:
        forward: returns (y, cache).
        backward: backward(dy, cache) returns the gradients.
        arrays: float64 arrays to differentiate for. A tuple or list becomes the arguments of `forward`, and
            `backward` returns as many gradients in that order; a dict is passed as it is, and `backward`
            returns a dict with its keys.
        rng: the np.random.Generator that draws dy and the entries.
        entries: how many entries of each array to try; None tries all.
        step: half the distance of the two losses.
        rtol: the largest relative error that passes.

    Returns: a Finding about the worst entry, with the numbers array, index, analytic, numeric,
        relative_error, floor, and tried, the count of entries.
    Raises: TypeError unless arrays and y are float64 (float32 cannot resolve the difference), or the
        functions return something else; ValueError if y is not finite.
    Source: Gilbert 1992, "Automatic differentiation and iterative processes"; Bishop 1995, "Neural Networks
        for Pattern Recognition", section 4.8.4.
    """
    shapes.require_positive("step", step)
    shapes.require_positive("rtol", rtol)
    if entries is not None:
        shapes.require_size("entries", entries)
    problem = _Problem(forward, backward, arrays, rng)
    if problem.complaint:
        return Finding(False, problem.complaint)
    floor = problem.rounding / step / rtol
    worst, tried = {"relative_error": -1.0}, 0
    for key, array in problem.arrays.items():
        indices = _indices(array.shape, entries, rng)
        analytic = np.array([problem.gradients[key][index] for index in indices])
        numeric = np.array([problem.difference(key, index, step) for index in indices])
        errors = relative_error(analytic, numeric, floor)
        place = int(errors.argmax())
        if errors[place] > worst["relative_error"]:
            worst = {"array": key, "index": indices[place], "floor": floor}
            worst |= {"analytic": float(analytic[place]), "numeric": float(numeric[place])}
            worst |= {"relative_error": float(errors[place])}
        tried += len(indices)
    message = (
        f"worst of {tried} entries: {worst['array']}{list(worst['index'])} has gradient "
        f"{worst['analytic']:.6g}, the difference quotient is {worst['numeric']:.6g}, "
        f"relative error {worst['relative_error']:.1e}"
    )
    return Finding(worst["relative_error"] <= rtol, message, worst | {"tried": tried})


def taylor_slope(forward, backward, arrays, rng):
    """Move all arrays at once along a random direction, and see how fast the linear prediction becomes good.

        remainder(h) = |loss(x + h * v) - loss(x) - h * sum(gradient * v)|

    With the right gradient the remainder shrinks like h ** 2, with a wrong one like h: the slope of its
    logarithm is 2 or 1. A function that is straight along v has no remainder but rounding, and passes.

    CAN see: a mistake in any entry of any array, with a dozen forward passes and no tolerance to choose.
    CANNOT see: which entry is wrong; a mistake below about 1e-4 of the gradient; a wrong forward pass whose
    backward pass is right for it.

    Args, Raises: as for gradcheck.
    Returns: a Finding with the numbers slope (infinite for a straight function), steps and remainders.
    Source: Farrell et al. 2013, arXiv:1204.5577, section 5.1.
    """
    problem = _Problem(forward, backward, arrays, rng)
    if problem.complaint:
        return Finding(False, problem.complaint)
    direction = {key: rng.standard_normal(array.shape) for key, array in problem.arrays.items()}
    predicted = sum(float(np.sum(problem.gradients[key] * v)) for key, v in direction.items())
    steps = [1e-4 / 2**halvings for halvings in range(6)]
    remainders = [abs(problem.change(direction, h) - h * predicted) for h in steps]
    numbers = {"slope": math.inf, "steps": steps, "remainders": remainders}
    if max(remainders) <= problem.rounding:
        return Finding(True, "no remainder but rounding: the function is straight in this direction", numbers)
    shrinking = np.log(np.maximum(remainders, problem.rounding))
    slope = numbers["slope"] = float(np.polyfit(np.log(steps), shrinking, deg=1)[0])
    right = slope >= 1.9
    verdict = "like h ** 2, as it should" if right else "not like h ** 2: a gradient is wrong"
    return Finding(right, f"the remainder shrinks with slope {slope:.2f}, {verdict}", numbers)


class _Problem:
    """A function of named arrays, its gradients for a random upstream gradient, and its changes."""

    def __init__(self, forward, backward, arrays, rng):
        if not isinstance(rng, np.random.Generator):
            raise TypeError(
                f"rng must be a np.random.Generator, got {type(rng).__name__}: "
                "np.random.default_rng(0) is one"
            )
        self.arrays, self._positional = _named(forward, arrays), not isinstance(arrays, Mapping)
        for key, array in self.arrays.items():
            _require_float64(key, array)
        self._forward = forward
        y, cache = self.run(self.arrays)
        self._y, self._dy = y, rng.standard_normal(y.shape)
        self.rounding = _resolution(np.linalg.norm(y * self._dy))
        self.gradients = self.as_dict(backward(self._dy, cache))
        self.complaint = _misfit(self.gradients, self.arrays)

    def run(self, arrays):
        """Return y and the cache of the forward pass."""
        result = self._forward(*arrays.values()) if self._positional else self._forward(arrays)
        if not isinstance(result, tuple) or len(result) != 2:
            raise TypeError(
                f"forward must return (y, cache), got {type(result).__name__}: "
                "wrap it, for example lambda x: (softmax(x), None)"
            )
        y = np.asarray(result[0])
        _require_float64("y", y)
        if not np.isfinite(y).all():
            raise ValueError(
                "forward must return finite numbers, got NaN or infinity: check the forward pass first"
            )
        return y, result[1]

    def as_dict(self, gradients):
        """Return what backward gave back by the names of the arrays: more or fewer gradients stay visible."""
        if not self._positional:
            return gradients
        if not isinstance(gradients, Sequence):
            gradients = (gradients,)
        names = [*self.arrays, *(f"extra gradient {i}" for i in range(len(gradients) - len(self.arrays)))]
        return dict(zip(names, gradients, strict=False))

    def difference(self, key, index, step):
        """Return the central difference for one entry, over the distance that rounding makes of 2 * step."""
        ends, at = [], []
        for signed_step in (step, -step):
            moved = self.arrays[key].copy()
            moved[index] += signed_step
            at.append(moved[index])
            ends.append(self.run({**self.arrays, key: moved})[0])
        # the results are subtracted before they are added up: what did not move then cancels exactly
        return float(np.sum((ends[0] - ends[1]) * self._dy) / (at[0] - at[1]))

    def change(self, direction, h):
        """Return how much the loss changes when every array moves by h along its direction."""
        moved = {key: array + h * direction[key] for key, array in self.arrays.items()}
        return float(np.sum((self.run(moved)[0] - self._y) * self._dy))


def _named(forward, arrays):
    """Return the arrays by name: the keys of a dict, or the names of the arguments of `forward`."""
    if isinstance(arrays, Mapping):
        named = dict(arrays)
    elif isinstance(arrays, Sequence):
        parameters = inspect.signature(forward).parameters.values()
        names = [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
        if len(names) < len(arrays):
            names = [f"argument {i}" for i in range(len(arrays))]
        named = dict(zip(names, arrays, strict=False))
    else:
        raise TypeError(
            f"arrays must be a tuple, list or dict of arrays, got {type(arrays).__name__}: write (x,)"
        )
    if not named:
        raise ValueError("arrays must hold at least one array, got none: there is no gradient to check")
    return named


def _require_float64(name, array):
    if np.size(array) == 0:
        raise ValueError(
            f"{name} must hold at least one number, got shape {np.shape(array)}: nothing to check"
        )
    if not isinstance(array, np.ndarray) or array.dtype != np.float64:
        raise TypeError(
            f"{name} must be a float64 array, got {np.asarray(array).dtype} ({type(array).__name__}): "
            "make it one, for a difference of float32 numbers has no digits left"
        )


def _misfit(found, expected, what="gradient"):
    """Return what is wrong with the names, shapes and dtypes of the arrays found, or an empty text."""
    if not isinstance(found, Mapping) or found.keys() != expected.keys():
        got = list(found) if isinstance(found, Mapping) else type(found).__name__
        return f"there must be one {what} for each of {list(expected)}, got {got}"
    for key, array in expected.items():
        if np.shape(found[key]) != array.shape:
            return f"the {what} of {key} must have its shape {array.shape}, got {np.shape(found[key])}"
        dtype = np.asarray(found[key]).dtype
        if dtype != array.dtype:
            return f"the {what} of {key} must have its dtype {array.dtype}, got {dtype}"
    return ""


def _resolution(size):
    """Return what rounding can do to a float64 result whose terms have this size."""
    return max(ROUNDINGS * EPS * float(size), TINY)


def _indices(shape, entries, rng):
    """Return the indices to try: all of them, or `entries` of them drawn without repetition."""
    indices = list(np.ndindex(shape))
    if entries is None or entries >= len(indices):
        return indices
    return [indices[i] for i in rng.choice(len(indices), entries, replace=False)]


def agreement(found, expected, *, rtol=AGREEMENT_RTOL):
    """Compare arrays by name with those of another implementation, entry by entry.

    CAN see: any difference above `rtol`, forward or backward, if the other implementation is right.
    CANNOT see: a mistake that both make. An implementation written independently makes other ones. Entries
    below the floor of relative_error, here ROUNDINGS * eps * (the largest entry of the array) / rtol, are
    measured in units of it.

    Args:
        found, expected: dicts of arrays (or numbers) with the same keys.
        rtol: the largest relative error that passes.

    Returns: a Finding about the worst entry, with the numbers array, index, found, expected, relative_error.
    Raises: TypeError unless both are dicts; ValueError if `expected` is empty or not finite.
    """
    shapes.require_positive("rtol", rtol)
    if not isinstance(found, Mapping) or not isinstance(expected, Mapping):
        raise TypeError(
            f"found and expected must be dicts of arrays, got {type(found).__name__} and "
            f"{type(expected).__name__}: name the arrays, for example {{'logits': logits}}"
        )
    expected = {key: np.asarray(array, dtype=np.float64) for key, array in expected.items()}
    if not expected or not all(np.isfinite(array).all() for array in expected.values()):
        raise ValueError(
            "expected must hold finite arrays, got none, NaN or infinity: nothing to compare with"
        )
    complaint = _misfit(found, expected, what="result")
    if complaint:
        return Finding(False, complaint)
    worst = {"relative_error": -1.0}
    for key, array in expected.items():
        errors = relative_error(found[key], array, _resolution(np.abs(array).max()) / rtol)
        index = tuple(int(i) for i in np.unravel_index(errors.argmax(), errors.shape))
        if errors[index] > worst["relative_error"]:
            worst = {"array": key, "index": index, "found": float(np.asarray(found[key])[index])}
            worst |= {"expected": float(array[index]), "relative_error": float(errors[index])}
    message = (
        f"worst of {len(expected)} arrays: {worst['array']}{list(worst['index'])} is {worst['found']:.6g}, "
        f"expected {worst['expected']:.6g}, relative error {worst['relative_error']:.1e}"
    )
    return Finding(worst["relative_error"] <= rtol, message, worst)


def leaves_arguments_alone(forward, backward, arrays, rng):
    """See that neither pass writes into what it was given, and that backward can be called twice.

    CAN see: an operation in place (x += y, out=x, dy *= gain) on an argument, on the cache or on the upstream
    gradient, and gradients that add up from call to call.
    CANNOT see: results that share memory with the arguments, such as a view, as long as nobody writes there.

    Args, Raises: as for gradcheck.
    Returns: a Finding.
    """
    copies = {key: np.array(array) for key, array in _named(forward, arrays).items()}
    problem = _Problem(forward, backward, arrays, rng)
    if problem.complaint:
        return Finding(False, problem.complaint)
    y, cache = problem.run(problem.arrays)
    dy = rng.standard_normal(y.shape)
    given = np.array(dy)
    first = {key: np.array(gradient) for key, gradient in problem.as_dict(backward(dy, cache)).items()}
    if not np.array_equal(dy, given):
        return Finding(False, "backward writes into the upstream gradient that it was given")
    second = problem.as_dict(backward(dy, cache))
    for key, array in problem.arrays.items():
        if not np.array_equal(array, copies[key]):
            return Finding(False, f"{key} was changed by the call: make a new array instead")
        if not np.array_equal(first[key], second[key]):
            return Finding(
                False, f"the gradient of {key} is another one when backward is called a second time"
            )
    return Finding(True, "the arrays and the upstream gradient are unchanged, and backward repeats itself")


# Properties of a model


def influence(function, ids):
    """Find out which tokens each position of the output depends on, by changing one token at a time.

    Every token is replaced by another one that occurs in `ids`, in all rows at once.

    Args:
        function: takes ids (B, T), returns an array (B, T, ...), such as the logits.
        ids: integers, (B, T), with at least two different ones and T >= 2.

    Returns: boolean, (B, T, T); [b, i, t] tells whether anything at position i of row b changed, be it the
        last bit, when token t did.
    Raises: TypeError or ValueError for other ids, or if the function returns another shape, NaN or infinity.
    """
    ids = _as_batch(ids)
    before, others = _output(function, ids), _other_ids(ids)
    moved = np.empty((*ids.shape, ids.shape[1]), dtype=bool)
    for t in range(ids.shape[1]):
        changed = ids.copy()
        changed[:, t] = others[:, t]
        moved[:, :, t] = _moved(before, _output(function, changed))
    return moved


def causality(function, ids):
    """See that no position reads ahead: changing token t leaves every output before t as it was, bit for bit.

    CAN see: any leak from any later token, however small, at every cut.
    CANNOT see: a mask that is too strict (sensitivity does); targets that are not the next tokens
    (targets_aligned does); a leak that takes more tokens than `ids` has.

    Args, Raises: as for influence.
    Returns: a Finding with the number leaks, a list of (row, position, token it should not know).
    """
    ahead = np.triu(influence(function, ids), k=1)
    leaks = [tuple(place) for place in np.argwhere(ahead).tolist()]
    if leaks:
        b, i, t = leaks[0]
        message = (
            f"position {i} of row {b} reads ahead: changing the token at position {t} changes its output"
        )
        return Finding(False, message, {"leaks": leaks})
    return Finding(True, "no output depends on a token after it", {"leaks": []})


def sensitivity(function, ids):
    """See that nothing is cut off: changing token t moves the output at t and at every later position.

    The dual of causality, which a model that reads nothing would pass.

    CAN see: a mask that forbids too much, positions that are skipped, an output that ignores its input.
    CANNOT see: whether the output moves by the right amount. In a model of several layers a token may arrive
    by a detour, so one layer is more telling.

    Args, Raises: as for influence.
    Returns: a Finding with the number deaf, a list of (row, position, token it does not notice).
    """
    unmoved = np.tril(~influence(function, ids))
    deaf = [tuple(place) for place in np.argwhere(unmoved).tolist()]
    if deaf:
        b, i, t = deaf[0]
        message = (
            f"position {i} of row {b} is deaf: changing the token at position {t} does not move its output"
        )
        return Finding(False, message, {"deaf": deaf})
    return Finding(True, "each output depends on its own token and on all earlier ones", {"deaf": []})


def batch_independence(function, ids):
    """See that the rows of a batch do not mix: changing all other rows leaves a row as it was, bit for bit.

    CAN see: statistics over the batch, an axis taken for another, a reshape that crosses rows.
    CANNOT see: what depends on the number of rows alone, such as a division by B. The shapes stay equal here,
    for at other shapes even a right model may round differently.

    Args, Raises: as for influence, and ValueError for a batch of one row.
    Returns: a Finding with the number mixed, a list of rows that noticed the others.
    """
    ids = _as_batch(ids)
    B = len(ids)
    if B < 2:
        raise ValueError("ids must have at least two rows, B >= 2, got one: there is nothing to mix")
    before, others = _output(function, ids), _other_ids(ids)
    mixed = []
    for b in range(B):
        changed = others.copy()
        changed[b] = ids[b]
        if _moved(before, _output(function, changed))[b].any():
            mixed.append(b)
    if mixed:
        message = f"row {mixed[0]} changes when only other rows of the batch do"
        return Finding(False, message, {"mixed": mixed})
    return Finding(True, f"each of the {B} rows stays as it was when all others change", {"mixed": []})


def order_matters(function, ids):
    """See that the order of the tokens counts: the last output moves when the earlier tokens change places.

    All tokens but the last are rotated by one place. Without positions, attention reads a set.

    CAN see: in one layer, that the rotations are missing or have no effect.
    CANNOT see: whether the positions are right. And in two layers or more it sees nothing missing, for then
    the causal mask alone tells the order: check one layer.

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
    before, after = (_output(function, each)[rows, -1] for each in (ids, rotated))
    change = _relative_change(before, after)
    if change <= _rounding(before):
        message = "the last output stays as it was when the earlier tokens change places: order has no effect"
        return Finding(False, message, {"change": change})
    return Finding(True, "the last output moves when the earlier tokens change places", {"change": change})


def shift_invariance(function, T, *, shift=3):
    """See that only distances between positions count: a shift of all positions changes nothing but rounding.

    And that they do count: twice the distances must change the result, or else a function that ignores its
    positions would pass.

    CAN see: queries and keys rotated differently, or only one of them; rotated values.
    CANNOT see: wrong frequencies, a wrong direction, the wrong pairs, or positions that start elsewhere, as
    long as it is the same for queries and keys.

    Args:
        function: takes positions (T,), returns an array: the logits of a model, or the scores
            rope(q, positions) @ rope(k, positions).swapaxes(-1, -2).
        T: how many positions, at least 2.
        shift: a real number, not zero.

    Returns: a Finding with the numbers shifted and stretched, the changes relative to the largest entry.
    Raises: TypeError or ValueError for another T or shift, or if the function returns NaN or infinity.
    """
    shapes.require_size("T", T)
    shapes.require_positive("shift", abs(shift))
    if T < 2:
        raise ValueError("T must be at least 2, got 1: one position has no distance to another")
    positions = np.arange(T, dtype=np.float64)
    before = _finite(function(positions))
    numbers = {
        "shifted": _relative_change(before, _finite(function(positions + shift))),
        "stretched": _relative_change(before, _finite(function(2 * positions))),
    }
    if numbers["shifted"] > _rounding(before):
        message = (
            f"positions shifted by {shift} change the result by {numbers['shifted']:.1e} of its largest entry"
        )
        return Finding(False, f"{message}: it depends on more than distances", numbers)
    if numbers["stretched"] <= _rounding(before):
        return Finding(False, "twice the distances give the same result: positions have no effect", numbers)
    return Finding(True, f"positions shifted by {shift} change nothing, twice the distances do", numbers)


def _as_batch(ids):
    ids = np.asarray(ids)
    shapes.require_axes("ids", ids, "B, T")
    if ids.dtype.kind not in "iu":
        raise TypeError(f"ids must be integers, got dtype {ids.dtype}: encode the text as whole numbers")
    if ids.shape[1] < 2:
        raise ValueError(
            "ids must have at least two positions, T >= 2, got T = 1: nothing comes earlier or later"
        )
    if len(np.unique(ids)) < 2:
        raise ValueError(
            "ids must hold at least two different ids, got one: there is no other token to put there"
        )
    return ids


def _other_ids(ids):
    """Return ids of the same shape that differ everywhere, of those that occur: each id's successor."""
    occurring, places = np.unique(ids, return_inverse=True)
    return occurring[(places.reshape(ids.shape) + 1) % len(occurring)]


def _output(function, ids):
    """Return function(ids), an array with the axes (B, T, ...)."""
    output = _finite(function(ids.copy()))
    if output.shape[:2] != ids.shape:
        raise ValueError(
            f"the function must return an array (B, T, ...) with (B, T) = {ids.shape}, got shape "
            f"{output.shape}: are its axes in another order?"
        )
    return output


def _finite(output):
    if not isinstance(output, np.ndarray) or output.dtype.kind != "f":
        raise TypeError(
            f"the function must return a floating-point array, got {type(output).__name__}: "
            "return the logits alone, for example forward(params, ids, config)[0]"
        )
    if not np.isfinite(output).all():
        raise ValueError(
            "the function must return finite numbers, got NaN or infinity: nothing can be compared"
        )
    return output


def _moved(before, after):
    """Tell, for each row and position (B, T), whether any entry there changed."""
    return (before != after).reshape(*before.shape[:2], -1).any(axis=-1)


def _relative_change(before, after):
    """Return the largest change of an entry, in units of the largest entry."""
    return float(np.abs(after - before).max() / max(np.abs(before).max(), TINY))


def _rounding(array):
    """Return the relative change below which a result counts as the same one, rounded in another order."""
    return 1e4 * float(np.finfo(array.dtype).eps)


# Parameters and data


def no_shared_arrays(arrays):
    """See that no two arrays overlap in memory, so that an update of one never changes another.

    CAN see: layers made from one array (`[block] * L`), a view of another parameter, tied embeddings.
    CANNOT see: equal numbers in separate arrays, such as layers that were drawn from one seed.

    Args:
        arrays: a dict of arrays, parameters or gradients.

    Returns: a Finding with the number shared, a list of pairs of keys.
    Raises: TypeError unless a dict of arrays.
    """
    arrays = _as_arrays("arrays", arrays)
    pairs = [pair for pair in itertools.combinations(arrays, 2) if np.shares_memory(*map(arrays.get, pair))]
    if pairs:
        message = f"{pairs[0][0]} and {pairs[0][1]} share memory: an update of one changes the other"
        return Finding(False, message, {"shared": pairs})
    return Finding(True, f"the {len(arrays)} arrays do not overlap", {"shared": []})


def every_parameter_learns(loss_and_grads, params, *, learning_rate=0.1):
    """See that every parameter array receives a gradient, and changes in one step of plain gradient descent.

    CAN see: parameters that nothing uses, that were left out of the gradients, whose gradient has another
    shape or dtype, or is zero everywhere or not finite.
    CANNOT see: whether the gradient is right. It asks array by array, not entry by entry: the embedding of a
    letter that does not occur has a gradient of exactly zero, and rightly so.

    Args:
        loss_and_grads: takes params, returns (loss, grads).
        params: a dict of arrays; they are not changed.
        learning_rate: the length of the step, positive.

    Returns: a Finding with the number idle, a list of keys.
    Raises: TypeError unless params is a dict of arrays and loss_and_grads returns (loss, a dict).
    """
    params = _as_arrays("params", params)
    shapes.require_positive("learning_rate", learning_rate)
    result = loss_and_grads(params)
    if not isinstance(result, tuple) or len(result) != 2 or not isinstance(result[1], Mapping):
        raise TypeError(
            f"loss_and_grads must return (loss, a dict of gradients), got {type(result).__name__}"
        )
    grads = result[1]
    complaint = _misfit(grads, params)
    if complaint:
        return Finding(False, complaint)
    idle = [key for key, array in params.items() if not _learns(array, grads[key], learning_rate)]
    if idle:
        message = f"a step of gradient descent leaves {', '.join(idle)} as it was, or not finite"
        return Finding(False, message, {"idle": idle})
    return Finding(True, f"all {len(params)} arrays receive a gradient and move", {"idle": []})


def _learns(array, gradient, learning_rate):
    step = array.dtype.type(learning_rate) * gradient
    return np.isfinite(step).all() and not np.array_equal(array - step, array)


def _as_arrays(name, arrays):
    if not isinstance(arrays, Mapping) or not all(isinstance(array, np.ndarray) for array in arrays.values()):
        raise TypeError(
            f"{name} must be a dict of arrays, got {type(arrays).__name__}: one array for each key"
        )
    return arrays


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
    ids, targets, source = (np.asarray(array) for array in (ids, targets, source))
    for name, array in (("ids", ids), ("targets", targets), ("source", source)):
        if array.dtype.kind not in "iu":
            raise TypeError(f"{name} must be integers, got dtype {array.dtype}: encode the text first")
    shapes.require_axes("ids", ids, "B, T")
    shapes.require_shape("targets", targets, "(B, T)", ids.shape, "one target for each input")
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
        return Finding(False, message, {"wrong": wrong})
    windows = np.lib.stride_tricks.sliding_window_view(source, T + 1, axis=-1)  # (..., N - T, T + 1)
    rows = np.concatenate([ids, targets[:, -1:]], axis=1)[:, np.newaxis]  # (B, 1, T + 1)
    wrong = [(b, T) for b in np.flatnonzero(~(windows == rows).all(axis=-1).any(axis=-1)).tolist()]
    if wrong:
        message = (
            f"row {wrong[0][0]} with its last target is nowhere in the source: does it cross a boundary?"
        )
        return Finding(False, message, {"wrong": wrong})
    return Finding(True, f"all {B * T} targets are the tokens that follow", {"wrong": []})
