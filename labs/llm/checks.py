"""Checks that find mistakes in a model. The docstring of each says what it CAN see, and what it CANNOT.

They take functions, so that they can be pointed at this package, at a mutant of it, or at a model of yours:

    def logits(ids):
        return forward(params, ids, config)[0]

    causality(logits, ids)                        a Finding: the verdict, the reason, the numbers behind it
    causality(logits, ids).raise_unless_passed()  the same as an assertion

There are three verdicts: passed, FAILED (the model has a mistake), and cannot tell, which is never a pass:
the check has no way to judge, for example because rounding hides what it looks for, or because the function
is not deterministic. A mistake in the call raises ValueError or TypeError. Where two runs do the same
arithmetic at the same shapes, results are compared with ==, without a tolerance.
"""

import functools
import inspect
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from labs.llm import shapes

#: The three verdicts, as they are printed.
PASSED, FAILED, CANNOT_TELL = "passed", "FAILED", "cannot tell"

#: Half the width of a central difference. Its own error, about STEP ** 2, and that of rounding, about
#: eps / STEP, then both stay near 1e-10 times the numbers at hand.
STEP = 1e-5

#: The largest relative error that passes for a difference quotient, and between two implementations.
GRADCHECK_RTOL, AGREEMENT_RTOL = 1e-6, 1e-10

#: How many rounding errors of a whole result may gather in one entry. More than ever seen in a right one.
ROUNDINGS = 32

#: How much rounding may change a number that a verdict rests on, relative to it; beyond this, CANNOT_TELL.
RESOLVED = 1e-2

#: Jumps of a result this many times larger than its rounding do not come from a float64 computation.
COARSE = 1e4

#: How often the same call is repeated to see whether a function is deterministic.
REPEATS = 3

EPS, TINY = float(np.finfo(np.float64).eps), float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class Finding:
    """What a check found. It is true only if the check passed, so "cannot tell" counts as false."""

    verdict: str  # PASSED, FAILED or CANNOT_TELL
    message: str  # a sentence for the reader, with the place of the worst entry
    numbers: dict = field(default_factory=dict)  # what was measured, by name

    def __post_init__(self):
        if self.verdict not in (PASSED, FAILED, CANNOT_TELL):
            raise ValueError(
                f"verdict must be PASSED, FAILED or CANNOT_TELL, got {shapes.shown(self.verdict)}"
            )

    @property
    def passed(self):
        """Whether the check passed."""
        return self.verdict == PASSED

    @property
    def failed(self):
        """Whether the check found a mistake: not the opposite of passed, because there is a third verdict."""
        return self.verdict == FAILED

    def __bool__(self):
        return self.passed

    def __repr__(self):
        return f"{self.verdict}: {self.message}"

    def raise_unless_passed(self):
        """Return the Finding itself if it passed, else raise AssertionError with verdict and message."""
        if not self.passed:
            raise AssertionError(str(self))
        return self


class _End(Exception):  # noqa: N818 (nothing went wrong)
    """Ends a check from within, with a Finding."""

    def __init__(self, verdict, message):
        super().__init__(message)
        self.finding = Finding(verdict, message)


def _check(function):
    """Return a check that can be ended from within."""

    @functools.wraps(function)
    def check(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except _End as end:
            return end.finding

    return check


def _require_function(name, value):
    if not callable(value):
        raise TypeError(f"{name} must be a function, got {value!r}: pass it without calling it")


def _as_array(name, value):
    """Return `value` as an array, or say that it is not one."""
    try:
        return np.asarray(value)
    except ValueError:
        raise ValueError(
            f"{name} must be an array, got rows of different lengths: make them equally long"
        ) from None


def _as_float64(name, value):
    """Return `value` as a float64 array, or say why that is not possible."""
    array = _as_array(name, value)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{name} must hold real numbers, got dtype {array.dtype}: convert them first")
    return array.astype(np.float64, copy=False)


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
    Raises: ValueError for different shapes, or a floor that is not positive and finite; TypeError unless the
        arrays hold real numbers.
    """
    found, expected = _as_float64("found", found), _as_float64("expected", expected)
    shapes.require_shape("found", found, "of expected", expected.shape)
    shapes.require_positive("floor", floor)
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
    _require_function("loss", loss)
    _require_float64("x", x)
    shapes.require_positive("step", step)
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


@_check
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
    shapes.require_positive("step", step)
    shapes.require_positive("rtol", rtol)
    if entries is not None:
        shapes.require_size("entries", entries)
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


@_check
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
    could not tell; by 1e-5 some pass. The tests marked "more" take 10,000 seeds for each of the small models.
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
        _require_function("forward", forward)
        _require_function("backward", backward)
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
        y = _as_array("y", result[0])
        _require_float64("y", y)
        if self._y is not None:
            shapes.require_shape(
                "y", y, "of the first call", self._y.shape, "forward must always return one shape"
            )
        if not np.isfinite(y).all():
            if self._y is not None:
                raise _End(CANNOT_TELL, "the function is not finite close to the arrays given: choose others")
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
        gradients = _fitting(gradients, self.arrays, "gradient")
        for key, gradient in gradients.items():
            if not np.isfinite(gradient).all():
                place = np.argwhere(~np.isfinite(gradient))[0].tolist()
                raise _End(FAILED, f"the gradient {key}{place} is {gradient[tuple(place)]}")
        return gradients

    def require_smooth(self, rng):
        """End the check unless equal arrays give equal results and near arrays near ones. Measure the noise.

        Every entry takes a few tiny steps, powers of two so that they are exact. The fourth difference of the
        loss then keeps nothing of a smooth function, only jumps: sqrt(70) times their standard deviation.
        """
        change = max(abs(self._change(self.arrays)) for _ in range(REPEATS))
        if change > self.rounding:
            raise _End(CANNOT_TELL, _not_deterministic(change, "the loss changes by"))
        tiny = {  # of different lengths, because two arrays may cancel
            key: 2.0 ** (place % 3) * _tiny_steps(array, rng)
            for place, (key, array) in enumerate(self.arrays.items())
        }
        losses = [self._change({key: self.arrays[key] + i * tiny[key] for key in tiny}) for i in range(-3, 4)]
        if not any(losses):
            raise _End(
                CANNOT_TELL,
                "changes of all entries by 1e-9 of their size do not move the result at all: "
                "is it computed in float32, or is it constant?",
            )
        jump = float(np.abs(np.diff(losses, n=4)).max()) / math.sqrt(70)
        if jump > COARSE * self.rounding:
            raise _End(
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
            raise _End(CANNOT_TELL, f"rounding swallows the step {step:.0e} at {place}: choose a larger one")
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


def _not_deterministic(change, what):
    """Return what to say about a function that answers the same call in different ways."""
    return (
        f"the function is not deterministic: {what} {change:.1e} when the same call is repeated, "
        "so switch dropout off or seed it anew in each call"
    )


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


def _fitting(found, expected, what):
    """Return what was found as arrays, or end the check if names, shapes or dtypes are not as expected."""
    if not isinstance(found, Mapping) or found.keys() != expected.keys():
        got = list(found) if isinstance(found, Mapping) else type(found).__name__
        raise _End(FAILED, f"there must be one {what} for each of {list(expected)}, got {got}")
    found = {key: _as_array(f"the {what} of {key}", found[key]) for key in expected}
    for key, array in expected.items():
        if found[key].shape != array.shape:
            raise _End(
                FAILED, f"the {what} of {key} must have its shape {array.shape}, got {found[key].shape}"
            )
        if found[key].dtype != array.dtype:
            raise _End(
                FAILED, f"the {what} of {key} must have its dtype {array.dtype}, got {found[key].dtype}"
            )
    return found


def _resolution(size):
    """Return what rounding can do to a float64 result whose terms have this size."""
    return max(ROUNDINGS * EPS * float(size), TINY)


def _indices(shape, entries, rng):
    """Return the indices to try: all of them, or `entries` of them drawn without repetition."""
    indices = list(np.ndindex(shape))
    if entries is None or entries >= len(indices):
        return indices
    return [indices[i] for i in rng.choice(len(indices), entries, replace=False)]


@_check
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
    shapes.require_positive("rtol", rtol)
    if not isinstance(found, Mapping) or not isinstance(expected, Mapping):
        raise TypeError(
            f"found and expected must be dicts of arrays, got {type(found).__name__} and "
            f"{type(expected).__name__}: name the arrays, for example {{'logits': logits}}"
        )
    expected = {key: _as_float64(f"expected[{key!r}]", array) for key, array in expected.items()}
    if not expected or not all(array.size and np.isfinite(array).all() for array in expected.values()):
        raise ValueError(
            "expected must hold finite arrays, got none, an empty one, NaN or infinity: nothing to compare"
        )
    found = _fitting(found, expected, "result")
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


@_check
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
    _require_function("forward", forward)
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
        if np.abs(second[key] - first[key]).max() > _rounding(largest.dtype) * largest:
            return Finding(
                FAILED, f"the gradient of {key} is different when backward is called a second time"
            )
    return Finding(PASSED, "the arrays and the upstream gradient are unchanged, and backward repeats itself")


# Properties of a model


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
    except _End as end:
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


@_check
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


@_check
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


@_check
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


@_check
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


@_check
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
    _require_function("function", function)
    shapes.require_size("T", T)
    shapes.require_positive("shift", abs(shift) if isinstance(shift, (int, float, np.number)) else shift)
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
    if changes["shifted"] > _rounding(before.dtype):
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
    ids = _as_array("ids", ids)
    shapes.require_axes("ids", ids, "B, T")
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
        vocab_size = shapes.require_size("vocab_size", vocab_size)
        if vocab_size < 2:
            raise ValueError("vocab_size must be at least 2, got 1: there is no other token to put there")
        places = shapes.as_ids("ids", ids, vocab_size)
        known = np.arange(vocab_size, dtype=ids.dtype)
    return [known[(places.reshape(ids.shape) + n) % len(known)] for n in range(1, len(known))]


def _output(function, ids):
    """Return function(ids), an array with the axes (B, T, ...)."""
    _require_function("function", function)
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
        raise _End(CANNOT_TELL, _not_deterministic(change, "its output changes by a relative"))
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


def _rounding(dtype):
    """Return the relative change below which a result counts as the same one, rounded in another order."""
    return 1e4 * float(np.finfo(dtype).eps)


def _effect(change, dtype):
    """Return the verdict on a relative change that has to be there: FAILED only where float64 shows none."""
    if change > _rounding(dtype):
        return PASSED
    return FAILED if dtype == np.float64 and change <= ROUNDINGS * EPS else CANNOT_TELL


# Parameters and data


@_check
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


@_check
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
    _require_function("loss_and_grads", loss_and_grads)
    for key, array in params.items():
        shapes.as_floats(key, array)
    result = loss_and_grads(params)
    if not isinstance(result, tuple) or len(result) != 2 or not isinstance(result[1], Mapping):
        raise TypeError(
            f"loss_and_grads must return (loss, a dict of gradients), got {type(result).__name__}"
        )
    grads = _fitting(result[1], params, "gradient")
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


@_check
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
    ids, targets, source = (_as_array(name, array) for name, array in named.items())
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
