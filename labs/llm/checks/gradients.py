"""Checks of a backward pass: against difference quotients, and against another implementation."""

import inspect
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

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
    TINY,
    End,
    Finding,
    as_array,
    as_float64,
    check,
    fitting,
    not_deterministic,
    require_function,
    rounding,
)

#: Half the width of a central difference. Its own error, about STEP ** 2, and that of rounding, about
#: eps / STEP, then both stay near 1e-10 times the numbers at hand.
STEP = 1e-5

#: The largest relative error that passes for a difference quotient, and between two implementations.
GRADCHECK_RTOL, AGREEMENT_RTOL = 1e-6, 1e-10


#: Jumps of a result this many times larger than its rounding do not come from a float64 computation.
COARSE = 1e4


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
    Raises: ValueError for different shapes, or a floor that is not positive and finite; TypeError unless the
        arrays hold real numbers.
    """
    found, expected = as_float64("found", found), as_float64("expected", expected)
    arguments.require_shape("found", found, "of expected", expected.shape)
    arguments.require_positive("floor", floor)
    with np.errstate(invalid="ignore"):
        error = np.abs(found - expected) / np.maximum(np.maximum(np.abs(found), np.abs(expected)), floor)
    return np.where(np.isnan(error), np.inf, error)


def numeric_gradient(loss, x, step=STEP):
    """Nudge each entry of x up and down, and see how much the loss changes: the slope by central differences.

        gradient_i = (loss(x + step * e_i) - loss(x - step * e_i)) / (2 * step)

    CAN see: how the loss really answers to each entry, whatever a backward pass says.
    CANNOT see: digits below about 1e-10 of the loss and its curvature. It runs the loss twice for each entry,
    so it is for small arrays, with entries between about 1e-3 and 1e3 unless you choose another step. For a
    verdict, with a tolerance that knows about rounding, use gradcheck.

    Args:
        loss: a function of one array that returns one float64 number.
        x: a float64 array; left as it is.
        step: half the distance of the two losses.

    Returns: an array of the shape of x; NaN or infinity where a loss is so.
    Raises: TypeError unless x and the loss are float64 and step is real; ValueError if x is empty, or if step
        is not positive and finite, or so small that an entry does not move.
    Source: as for gradcheck.
    """
    require_function("loss", loss)
    _require_float64("x", x)
    arguments.require_positive("step", step)
    gradient = np.empty(x.shape)
    for index in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[index] += step
        down[index] -= step
        if up[index] == down[index]:
            raise ValueError(
                f"step must move every entry of x, got {step} for x{list(index)} = {x[index]:.6g}: "
                "rounding swallows it, so choose a larger one"
            )
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


@check
def gradcheck(forward, backward, arrays, rng, *, entries=None, step=STEP, rtol=GRADCHECK_RTOL):
    """Compare gradients with central differences, entry by entry.

        loss(x) = sum(y(x) * dy),   dy drawn at random
        d loss / d x_i = (loss(x + step * e_i) - loss(x - step * e_i)) / (2 * step)

    CAN see: any mistake in a backward pass that changes an entry by more than `rtol` of itself and by more
    than `resolution`, which is what rounding can do to a difference quotient:
    ROUNDINGS * eps * norm(y * dy) / step, about 1e-9 for a loss of 2. The upstream gradient is random because
    a constant one hides much: the gradient of sum(softmax(x)) is zero.
    CANNOT see: a wrong forward pass whose backward pass is right for it; entries it did not draw; an array
    left at zero whose gradient is smaller than `resolution`.
    CANNOT TELL: where rounding could change the largest tried entry of an array by more than RESOLVED
    (a loss of 1e10, or no tried entry that counts); where the function bends within one step, so that a
    smaller step brings the difference quotient closer (saturated attention, RMSNorm of a vector near zero or
    with D = 2); where the result moves in jumps (float32 inside, a kink) or changes from call to call
    (dropout).

    It is meant for arrays with entries between about 1e-3 and 1e3. For others choose another step, about
    1e-5 times the size of the entries.

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
        relative_error, resolution, and tried, the number of entries tried.
    Raises: TypeError unless arrays and y are float64, or the functions return something else; ValueError if
        y is not finite.
    Source: Gilbert 1992, "Automatic differentiation and iterative processes"; Bishop 1995, "Neural Networks
        for Pattern Recognition", section 4.8.4.
    """
    arguments.require_positive("step", step)
    arguments.require_positive("rtol", rtol)
    if entries is not None:
        arguments.require_size("entries", entries)
    problem = _Problem(forward, backward, arrays, rng)
    problem.require_smooth(rng)
    tried = [
        _Entry(key, index, float(problem.gradients[key][index]), problem.difference(key, index, step))
        for key, array in problem.arrays.items()
        for index in _indices(array.shape, entries, rng)
    ]
    resolution = problem.rounding / step
    errors = relative_error([e.analytic for e in tried], [e.numeric for e in tried], resolution / rtol)
    order = np.argsort(-errors, kind="stable")
    suspects = [tried[i] for i in order[errors[order] > rtol]]
    wrong = next((entry for entry in suspects if not _bends(problem, entry, step)), None)
    worst = wrong or tried[order[0]]
    error = float(errors[tried.index(worst)])
    numbers = worst._asdict() | {"relative_error": error}
    numbers |= {"resolution": resolution, "tried": len(tried)}
    message = (
        f"worst of {len(tried)} entries: {worst.array}{list(worst.index)} has gradient {worst.analytic:.6g}, "
        f"the difference quotient is {worst.numeric:.6g}, relative error {error:.1e}"
    )
    if wrong:
        return Finding(FAILED, message, numbers)
    if suspects:
        reason = "a smaller step brings the two closer: the function bends within this one"
        return Finding(CANNOT_TELL, f"{message}; {reason}", numbers)
    hidden = _hidden(tried, resolution)
    if hidden:
        reason = f"rounding, {resolution:.1e} here, hides the gradient of {', '.join(hidden)}"
        return Finding(
            CANNOT_TELL, f"{reason}: try more entries, a larger step, or numbers closer to one", numbers
        )
    return Finding(PASSED, message, numbers)


class _Entry(NamedTuple):
    """One entry of a gradient, from the backward pass and from the difference quotient."""

    array: str
    index: tuple[int, ...]
    analytic: float
    numeric: float


def _bends(problem, entry, step):
    """Tell whether a smaller step brings the quotient closer to the gradient. To a wrong one it does not.

    Only those steps count at which rounding alone could not close the gap.
    """
    gap = abs(entry.analytic - entry.numeric)
    return any(
        abs(entry.analytic - problem.difference(entry.array, entry.index, step / shrink)) < gap / 2
        for shrink in (2, 10, 1e2, 1e3, 1e4)
        if shrink * problem.rounding / step < gap / 4
    )


def _hidden(tried, resolution):
    """Return the arrays whose tried gradients rounding could hide.

    An array whose backward pass says zero, beside gradients of other arrays that are clear, is not hidden:
    the quotient agrees with zero as far as can be seen. The bias of the keys is such an array.
    """
    sizes, claims = {}, {}
    for entry in tried:
        claims[entry.array] = max(claims.get(entry.array, 0.0), abs(entry.analytic))
        sizes[entry.array] = max(sizes.get(entry.array, 0.0), abs(entry.analytic), abs(entry.numeric))
    largest = max(sizes.values())
    return [
        key
        for key, size in sizes.items()
        if resolution > RESOLVED * size
        and not (resolution <= RESOLVED * largest and claims[key] <= ROUNDINGS * EPS * largest)
    ]


#: The first step of taylor_slope, how often it is quartered, and along how many directions it goes both ways.
TAYLOR_STEP, QUARTERINGS, DIRECTIONS = 1e-2, 14, 2

#: Slopes of at least the first count as two, slopes of at most the second as one.
NEAR_TWO, NEAR_ONE = 1.95, 1.25


@check
def taylor_slope(forward, backward, arrays, rng):
    """Move all arrays at once along random directions, and see how fast the linear prediction becomes good.

        remainder(h) = loss(x + h * v) - loss(x) - h * sum(gradient * v),   norm(v) = 1

    With the right gradient the remainder shrinks like h ** 2, with a wrong one like h: the slope of its
    logarithm is 2 or 1. It is read between the two smallest steps at which the remainder stands clear of
    rounding. The remainders of several directions, each taken both ways, are combined as their root mean
    square, so that one remainder that happens to change sign does no harm. A function that is linear along v
    leaves no remainder except rounding, and passes.

    CAN see: a mistake anywhere in the gradient that is not small beside the whole gradient, with about
    thirty forward passes.
    Measured, each run with its own directions: right models passed in all of 5,000 runs with 808 parameters,
    2,500 with 8,136, and 40 with 802,176, with slopes between 1.999 and 2.05. With the whole gradient wrong
    by 1e-2 or by 1e-3, all of 2,000 runs with 808 parameters FAILED; by 1e-4, 995 of 1,000 did, and five
    could not tell; by 1e-5 some pass. With 802,176 parameters and a gradient wrong by 1e-2, all of 40 FAILED;
    by 1e-3, 39 did, and one could not tell. The tests marked "more" take 10,000 seeds for each small model.
    CANNOT see: which entry is wrong; a mistake in a few entries that is small beside the whole gradient; a
    gradient that vanishes beside the curvature of the function, as it does close to a minimum; a wrong
    forward pass whose backward pass is right for it.
    CANNOT TELL: if the slope lies between the two; where rounding hides the remainders, as with a loss of
    1e10; where, as for gradcheck, the result moves in jumps or changes from call to call. Let gradcheck have
    the last word.

    It is meant for arrays with entries around one, or matrices of a model that has just been initialised:
    the longest step is 1e-2 in all, however many entries share it.

    Args, Raises: as for gradcheck.
    Returns: a Finding with the numbers slope (infinite for a linear function), steps and remainders.
    Source: Farrell et al. 2013, arXiv:1204.5577, section 5.1.
    """
    problem = _Problem(forward, backward, arrays, rng)
    problem.require_smooth(rng)
    directions = [problem.direction(rng) for _ in range(DIRECTIONS)]
    steps, remainders, predictions = [], [], []
    while len(steps) < QUARTERINGS and (not steps or remainders[-1] > problem.rounding / RESOLVED):
        h = TAYLOR_STEP / 4 ** len(steps)
        found = [problem.remainder(v, signed) for v in directions for signed in (h, -h)]
        steps.append(h)
        for means, numbers in zip((remainders, predictions), zip(*found, strict=True), strict=True):
            means.append(math.hypot(*numbers) / math.sqrt(len(numbers)))
    numbers = {"slope": math.inf, "steps": steps, "remainders": remainders}
    clear = problem.rounding / RESOLVED
    visible = [remainder for remainder in remainders if remainder > clear]
    if len(visible) < 2:
        if visible or clear > RESOLVED * predictions[0]:
            message = "rounding hides the remainders: try arrays and a loss with numbers closer to one"
            return Finding(CANNOT_TELL, message, numbers | {"slope": math.nan})
        return Finding(PASSED, "no remainder except rounding: the function is linear here", numbers)
    slope = numbers["slope"] = math.log(visible[-2] / visible[-1], 4)
    shrinks = f"the remainder shrinks with slope {slope:.2f}"
    if slope >= NEAR_TWO:
        return Finding(PASSED, f"{shrinks}, like h ** 2, as it should", numbers)
    vanished = len(visible) < len(remainders) and remainders[-1] < visible[-1] / 8  # a kink just passed
    if slope <= NEAR_ONE and not vanished:
        return Finding(FAILED, f"{shrinks}, not like h ** 2: a gradient is wrong", numbers)
    return Finding(CANNOT_TELL, f"{shrinks}, between one and two: ask gradcheck", numbers)


class _Problem:
    """A function of named arrays, its gradients for a random upstream gradient, and its changes."""

    def __init__(self, forward, backward, arrays, rng):
        require_function("forward", forward)
        require_function("backward", backward)
        if not isinstance(rng, np.random.Generator):
            raise TypeError(
                f"rng must be a np.random.Generator, got {type(rng).__name__}: "
                "np.random.default_rng(0) is one"
            )
        self.arrays, self._positional = _named(forward, arrays), not isinstance(arrays, Mapping)
        for key, array in self.arrays.items():
            _require_float64(key, array)
            if not np.isfinite(array).all():
                raise ValueError(f"{key} must hold finite numbers, got NaN or infinity: nothing can be moved")
        self._forward, self._y, self.rounding = forward, None, TINY
        self._y, cache = self.run(self.arrays)
        self._dy = rng.standard_normal(self._y.shape)
        self._see(self._y)
        self.gradients = self.as_dict(backward(self._dy, cache))

    def run(self, arrays):
        """Return y and the cache of the forward pass."""
        result = self._forward(*arrays.values()) if self._positional else self._forward(arrays)
        if not isinstance(result, tuple) or len(result) != 2:
            raise TypeError(
                f"forward must return (y, cache), got {type(result).__name__}: "
                "wrap it, for example lambda x: (softmax(x), None)"
            )
        y = as_array("y", result[0])
        _require_float64("y", y)
        if self._y is not None:
            arguments.require_shape(
                "y", y, "of the first call", self._y.shape, "forward must always return one shape"
            )
        if not np.isfinite(y).all():
            if self._y is not None:
                raise End(CANNOT_TELL, "the function is not finite close to the arrays given: choose others")
            raise ValueError(
                "forward must return finite numbers, got NaN or infinity: check the forward pass first"
            )
        if self._y is not None:
            self._see(y)
        return y, result[1]

    def _see(self, y):
        """Remember what rounding can do to the largest result so far."""
        terms = y * self._dy
        largest = float(np.abs(terms).max()) or 1.0  # the squares of the terms themselves may overflow
        self.rounding = max(self.rounding, _resolution(largest * np.linalg.norm(terms / largest)))

    def as_dict(self, gradients):
        """Return the gradients by the names of the arrays, or end the check if they do not fit."""
        if self._positional:
            if not isinstance(gradients, Sequence):
                gradients = (gradients,)
            spare = range(len(gradients) - len(self.arrays))
            names = [*self.arrays, *(f"extra gradient {i}" for i in spare)]
            gradients = dict(zip(names, gradients, strict=False))
        gradients = fitting(gradients, self.arrays, "gradient")
        for key, gradient in gradients.items():
            if not np.isfinite(gradient).all():
                place = np.argwhere(~np.isfinite(gradient))[0].tolist()
                raise End(FAILED, f"the gradient {key}{place} is {gradient[tuple(place)]}")
        return gradients

    def require_smooth(self, rng):
        """End the check unless equal arrays give equal results and near arrays near ones. Measure the noise.

        Every entry takes a few tiny steps, powers of two so that they are exact. The fourth difference of the
        loss then keeps nothing of a smooth function, only jumps: sqrt(70) times their standard deviation.
        """
        change = max(abs(self._change(self.arrays)) for _ in range(REPEATS))
        if change > self.rounding:
            raise End(CANNOT_TELL, not_deterministic(change, "the loss changes by"))
        tiny = {  # of different lengths, because two arrays may cancel
            key: 2.0 ** (place % 3) * _tiny_steps(array, rng)
            for place, (key, array) in enumerate(self.arrays.items())
        }
        losses = [self._change({key: self.arrays[key] + i * tiny[key] for key in tiny}) for i in range(-3, 4)]
        if not any(losses):
            raise End(
                CANNOT_TELL,
                "changes of all entries by 1e-9 of their size do not move the result at all: "
                "is it computed in float32, or is it constant?",
            )
        jump = float(np.abs(np.diff(losses, n=4)).max()) / math.sqrt(70)
        if jump > COARSE * self.rounding:
            raise End(
                CANNOT_TELL,
                f"the result moves in jumps of {jump:.1e}, too coarse for float64: "
                "is it computed in float32, do large numbers cancel, or is there a kink?",
            )
        self.rounding = max(self.rounding, ROUNDINGS * jump)

    def difference(self, key, index, step):
        """Return the central difference for one entry, over the distance that rounding makes of 2 * step."""
        ends, at = [], []
        for signed_step in (step, -step):
            moved = self.arrays[key].copy()
            moved[index] += signed_step
            at.append(moved[index])
            ends.append(self.run({**self.arrays, key: moved})[0])
        if at[0] == at[1]:
            place = f"{key}{list(index)} = {self.arrays[key][index]:.6g}"
            raise End(CANNOT_TELL, f"rounding swallows the step {step:.0e} at {place}: choose a larger one")
        # the results are subtracted before they are added up: what did not move then cancels exactly
        return float(np.sum((ends[0] - ends[1]) * self._dy) / (at[0] - at[1]))

    def direction(self, rng):
        """Return a random direction, of length one over all arrays together."""
        drawn = {key: rng.standard_normal(array.shape) for key, array in self.arrays.items()}
        length = math.hypot(*(float(np.linalg.norm(v)) for v in drawn.values()))
        return {key: v / length for key, v in drawn.items()}

    def remainder(self, direction, h):
        """Return what the linear prediction leaves of the change along the direction, and the prediction."""
        moved = {key: array + h * direction[key] for key, array in self.arrays.items()}
        # over the distance that rounding leaves of h * direction
        predicted = sum(
            float(np.sum(self.gradients[key] * (moved[key] - array))) for key, array in self.arrays.items()
        )
        return self._change(moved) - predicted, predicted

    def _change(self, moved):
        """Return how much the loss changes when the arrays become `moved`."""
        return float(np.sum((self.run(moved)[0] - self._y) * self._dy))


def _tiny_steps(array, rng):
    """Return steps up or down, about 1e-9 of the array's size: a power of two, so that they add exactly."""
    size = float(np.abs(array).mean()) or 1.0
    return 2.0 ** (round(math.log2(size)) - 30) * rng.choice((-1.0, 1.0), array.shape)


def _named(forward, arrays):
    """Return the arrays by name: the keys of a dict, or the names of the arguments of `forward`."""
    if isinstance(arrays, Mapping):
        named = dict(arrays)
    elif isinstance(arrays, (tuple, list)):
        names = _argument_names(forward)
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


def _argument_names(function):
    """Return the names of the positional arguments, none for a built-in function that does not tell them."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return []
    return [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]


def _require_float64(name, array):
    if not isinstance(array, np.ndarray) or array.dtype != np.float64:
        kind = f"{array.dtype} ({type(array).__name__})" if hasattr(array, "dtype") else type(array).__name__
        raise TypeError(
            f"{name} must be a float64 array, got {kind}: "
            "make it one, for a difference of float32 numbers has no digits left"
        )
    if array.size == 0:
        raise ValueError(f"{name} must hold at least one number, got shape {array.shape}: nothing to check")


def _resolution(size):
    """Return what rounding can do to a float64 result whose terms have this size."""
    return max(ROUNDINGS * EPS * float(size), TINY)


def _indices(shape, entries, rng):
    """Return the indices to try: all of them, or `entries` of them drawn without repetition."""
    indices = list(np.ndindex(shape))
    if entries is None or entries >= len(indices):
        return indices
    return [indices[i] for i in rng.choice(len(indices), entries, replace=False)]


@check
def agreement(found, expected, *, rtol=AGREEMENT_RTOL):
    """Compare arrays by name with those of another implementation, entry by entry.

    CAN see: any difference above `rtol`, forward or backward, if the other implementation is right.
    CANNOT see: a mistake that both make. An implementation written independently makes other ones. Entries
    below the floor of relative_error, here ROUNDINGS * eps * (the largest entry of the array) / rtol, are
    measured in units of it.

    It is meant for float64 numbers of ordinary size: in saturated attention or far from one, two correct
    programs may differ by more than 1e-10, and you have to choose rtol yourself.

    Args:
        found, expected: dicts of arrays (or numbers) with the same keys.
        rtol: the largest relative error that passes.

    Returns: a Finding about the worst entry, with the numbers array, index, found, expected, relative_error.
    Raises: TypeError unless both are dicts of real numbers; ValueError if `expected` is empty or not finite.
    """
    arguments.require_positive("rtol", rtol)
    if not isinstance(found, Mapping) or not isinstance(expected, Mapping):
        raise TypeError(
            f"found and expected must be dicts of arrays, got {type(found).__name__} and "
            f"{type(expected).__name__}: name the arrays, for example {{'logits': logits}}"
        )
    expected = {key: as_float64(f"expected[{key!r}]", array) for key, array in expected.items()}
    if not expected or not all(array.size and np.isfinite(array).all() for array in expected.values()):
        raise ValueError(
            "expected must hold finite arrays, got none, an empty one, NaN or infinity: nothing to compare"
        )
    found = fitting(found, expected, "result")
    worst = {"relative_error": -1.0}
    for key, array in expected.items():
        errors = relative_error(found[key], array, _resolution(np.abs(array).max()) / rtol)
        index = tuple(int(i) for i in np.unravel_index(errors.argmax(), errors.shape))
        if errors[index] > worst["relative_error"]:
            worst = {"array": key, "index": index, "found": float(found[key][index])}
            worst |= {"expected": float(array[index]), "relative_error": float(errors[index])}
    message = (
        f"worst of {len(expected)} arrays: {worst['array']}{list(worst['index'])} is {worst['found']:.6g}, "
        f"expected {worst['expected']:.6g}, relative error {worst['relative_error']:.1e}"
    )
    return Finding(PASSED if worst["relative_error"] <= rtol else FAILED, message, worst)


@check
def leaves_arguments_alone(forward, backward, arrays, rng):
    """See that neither pass writes into what it was given, and that backward can be called twice.

    Arguments are compared bit for bit. The gradients of the second call may differ by rounding, as when a
    model adds numbers in a different order each time.

    CAN see: an operation in place (x += y, out=x, dy *= gain) on an argument, on the cache or on the upstream
    gradient, and gradients that add up from call to call.
    CANNOT see: results that share memory with the arguments, such as a view, as long as nobody writes there;
    writing into the cache that changes the second gradient by less than 1e-12 of the largest entry.

    Args, Raises: as for gradcheck.
    Returns: a Finding.
    """
    require_function("forward", forward)
    copies = {key: np.array(array) for key, array in _named(forward, arrays).items()}
    problem = _Problem(forward, backward, arrays, rng)
    y, cache = problem.run(problem.arrays)
    dy = rng.standard_normal(y.shape)
    given = np.array(dy)
    first = {key: np.array(gradient) for key, gradient in problem.as_dict(backward(dy, cache)).items()}
    if not np.array_equal(dy, given):
        return Finding(FAILED, "backward writes into the upstream gradient that it was given")
    second = problem.as_dict(backward(dy, cache))
    largest = max(np.abs(gradient).max() for gradient in first.values())
    for key, array in problem.arrays.items():
        if not np.array_equal(array, copies[key]):
            return Finding(FAILED, f"{key} was changed by the call: make a new array instead")
        if np.abs(second[key] - first[key]).max() > rounding(largest.dtype) * largest:
            return Finding(
                FAILED, f"the gradient of {key} is different when backward is called a second time"
            )
    return Finding(PASSED, "the arrays and the upstream gradient are unchanged, and backward repeats itself")
