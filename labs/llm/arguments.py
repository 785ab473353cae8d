"""What the public functions refuse, and the words they refuse it with.

NumPy wraps negative indices, stretches axes of size one and promotes dtypes without a word. A wrong array
then gives a wrong number instead of an error, so every public function of this package checks here first.

Settings come back as Python numbers: a np.float64 would turn every float32 array that it meets into float64,
and a np.int64 wraps around where an int does not.
"""

import math
import reprlib
import sys
from collections.abc import Mapping

import numpy as np

#: What this package computes in: float64 to teach and check, float32 to train. Both in this machine's byte
#: order; half precision has too few digits for what is added up here.
FLOATS = (np.dtype(np.float32), np.dtype(np.float64))

_SMALLEST, _LARGEST = float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max)

_BRIEF = reprlib.Repr()
_BRIEF.maxlist = _BRIEF.maxtuple = _BRIEF.maxset = _BRIEF.maxdict = 6
_BRIEF.maxstring = _BRIEF.maxlong = _BRIEF.maxother = 60


def shown(value):
    """Return a value as messages show it: its repr, on one line and cut to at most 120 characters."""
    try:
        text = " ".join(_BRIEF.repr(value).split())
    except Exception:  # a repr that fails, like that of an int with more digits than Python prints
        text = f"<{type(value).__name__}>"
    return text if len(text) <= 120 else f"{text[:117]}..."


# Arrays


def is_plain(value):
    """Tell whether a value is an array without a mask."""
    if type(value) is np.ndarray:
        return True
    return isinstance(value, np.ndarray) and not isinstance(value, np.ma.MaskedArray)


def as_array(name, value):
    """Return `value` as an array (an array is passed on, not copied).

    Raises: TypeError unless it is a NumPy array or scalar, or a float: a list has no dtype yet, and a masked
        array would lose its mask.
    """
    if type(value) is np.ndarray:
        return value
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(
            f"{name} must be an array without a mask, got a masked array, whose mask would be lost: "
            f"fill it first, for example {name}.filled(0)"
        )
    if not isinstance(value, (np.ndarray, np.generic, float)):
        raise TypeError(
            f"{name} must be a NumPy array, got {type(value).__name__}: make it one, say with np.array"
        )
    return np.asarray(value)


def as_floats(name, value):
    """Return `value` as an array of float32 or float64 (an array is passed on, not copied).

    Raises: TypeError for other numbers, such as integers, float16, or floats in foreign byte order.
    """
    array = as_array(name, value)
    if array.dtype not in FLOATS:
        raise TypeError(
            f"{name} must hold floating-point numbers, float32 or float64, got dtype {dtype_name(array)}: "
            f"convert it first, for example {name}.astype(np.float64)"
        )
    return array


def dtype_name(array):
    """Return the name of an array's dtype for a message, short whatever the dtype is."""
    name = array.dtype.name
    return name if array.dtype.isnative or array.dtype.names else f"{name} in foreign byte order"


def as_ids(name, value, size):
    """Return `value` as an array of indices in [0, size).

    Raises: TypeError unless it is an array of integers; ValueError if there are none or one is out of range.
    """
    array = as_integers(name, value)
    if array.size == 0:
        raise ValueError(f"{name} must hold at least one id, got shape {array.shape}: nothing to look up")
    smallest, largest = array.min(), array.max()
    if smallest < 0 or largest >= size:
        wrong = smallest if smallest < 0 else largest
        raise ValueError(
            f"{name} must lie in [0, V) = [0, {size}), got {wrong}: "
            "encode with the vocabulary that sized the table"
        )
    return array.astype(np.intp, copy=False)


def as_integers(name, value):
    """Return `value` as an array of integers of unchanged dtype; raise TypeError unless it is one."""
    array = as_array(name, value)
    if array.dtype.kind not in "iu":
        raise TypeError(
            f"{name} must be integers, got dtype {dtype_name(array)}: ids are positions in a vocabulary, "
            "so encode the text as whole numbers"
        )
    return array


def require_shape(name, array, letters, expected, todo="check which axis is which"):
    """Raise ValueError unless `array` has the `expected` shape, spelled `letters` in the message."""
    if array.shape != expected:
        raise ValueError(f"{name} must have shape {letters} = {expected}, got {array.shape}: {todo}")


def as_gradient(name, value, letters, expected):
    """Return `value` as a floating-point array of the `expected` shape, that of the forward result.

    Raises: TypeError unless floating point; ValueError for another shape, which broadcasting might hide.
    """
    array = as_floats(name, value)
    require_shape(name, array, letters, expected, "a gradient has the shape of the forward result")
    return array


def require_axes(name, array, letters):
    """Raise ValueError unless `array` has one non-empty axis for each of the comma-separated `letters`."""
    if array.ndim != letters.count(",") + 1 or array.size == 0:
        raise ValueError(
            f"{name} must have non-empty axes ({letters}), got shape {array.shape}: "
            "add, split or merge axes before the call"
        )


def require_axis(name, axis, array):
    """Return `axis` as an int; raise unless it is an axis of `array`, and not an empty one."""
    axis = require_int(name, axis)
    if not -array.ndim <= axis < array.ndim or array.shape[axis] == 0:
        raise ValueError(
            f"{name} must be a non-empty axis of the array, which has shape {array.shape}, "
            f"got {shown(axis)}: -1 is the last axis"
        )
    return axis


def as_positions(positions, T):
    """Return `positions`, an array or a list of T numbers, as float64 (T,), counted from zero if None.

    Raises: TypeError unless they are real numbers of a dtype that tells neighbours apart, which float16
        cannot do beyond 2048; ValueError if not (T,), not finite, or beyond 2 ** 53, where float64 cannot.
    """
    if positions is None:
        return np.arange(T, dtype=np.float64)
    if isinstance(positions, (list, tuple, range)):  # a few numbers written by hand
        try:
            positions = np.array(positions)
        except Exception:  # whatever NumPy says of a ragged list
            raise ValueError(
                f"positions must have shape (T,) = ({T},), got rows of different lengths: "
                "give one position for each vector"
            ) from None
    array = as_array("positions", positions)
    if array.dtype.kind not in "iu" and array.dtype not in FLOATS:
        raise TypeError(
            "positions must be real numbers (integers, float32 or float64), "
            f"got dtype {dtype_name(array)}: pass None for 0 to T-1"
        )
    require_shape("positions", array, "(T,)", (T,), "give one position for each vector")
    exact = array.astype(np.float64)
    if not (np.abs(exact) < 2**53).all():
        raise ValueError(
            "positions must be finite and smaller than 2 ** 53, where float64 still tells neighbours apart, "
            "got NaN, infinity or a larger number: pass None for 0 to T-1"
        )
    return exact


def as_booleans(name, value, meaning):
    """Return `value` as a boolean array, whose True has this `meaning`; raise TypeError unless it is one."""
    array = as_array(name, value)
    if array.dtype != bool:
        raise TypeError(
            f"{name} must be boolean ({meaning}), got dtype {dtype_name(array)}: make it so by comparing, "
            f"for example {name} == 1, or {name} == 0 if it was meant to be added to the scores"
        )
    return array


def as_mask(mask, shape):
    """Return `mask` as a boolean array that fits `shape`, (B, H, Tq, Tk), and leaves no query without a key.

    Two axes always mean (Tq, Tk). A mask with three axes is refused: for B = H its first axis could be taken
    for either of the two.

    Raises: TypeError unless boolean; ValueError if it does not fit, or if a query may read nothing.
    """
    array = as_booleans("mask", mask, "True = may read")
    fits = all(size in (1, full) for size, full in zip(array.shape[::-1], shape[::-1], strict=False))
    if array.ndim not in (2, 4) or not fits:
        raise ValueError(
            f"mask must have shape (Tq, Tk) = {shape[2:]} or (B, H, Tq, Tk) = {shape}, any axis of which "
            f"may be 1, got {array.shape}: per text mask[:, None], per head mask[None]; two axes always mean "
            "(Tq, Tk), so use padding_mask(keep) if yours says which tokens are real, (B, T)"
        )
    readable = array.any(axis=-1)
    if not readable.all():
        empty = np.argwhere(~readable)[0]
        raise ValueError(
            f"mask must let every query read something, got nothing in row {tuple(empty.tolist())}: "
            "softmax is undefined there, so let a padded query read itself and keep it out of the loss"
        )
    return array


# Settings


def require_size(name, value, least=1):
    """Return `value` as an int; raise unless it is a whole number of at least `least`.

    Raises: TypeError for floats and booleans; ValueError if it is smaller, or larger than any array.
    """
    number = require_int(name, value)
    if number < least:
        raise ValueError(f"{name} must be at least {least}, got {shown(number)}: it counts something")
    if number > sys.maxsize:
        raise ValueError(f"{name} must be at most {sys.maxsize}, got {shown(number)}: no array is that large")
    return number


def require_int(name, value):
    """Return `value` as an int; raise TypeError for floats and booleans."""
    if type(value) is int:
        return value
    value = _as_scalar(value)
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(
            f"{name} must be an int, got {shown(value)} ({type(value).__name__}): pass a whole number"
        )
    return int(value)


def require_number(name, value):
    """Return `value` as a float, infinite if no float is that large; raise TypeError unless it is real."""
    if type(value) is float:
        return value
    value = _as_scalar(value)
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"{name} must be a real number, got {shown(value)} ({type(value).__name__})")
    try:
        return float(value)
    except OverflowError:  # an int that no float can hold
        return math.inf if value > 0 else -math.inf


def _as_scalar(value):
    """Return the number in an array without axes; anything else as it is."""
    return value[()] if type(value) is np.ndarray and value.ndim == 0 else value


def require_positive(name, value):
    """Return `value` as a float; raise unless it is a positive, finite real number."""
    number = require_number(name, value)
    if not 0 < number < math.inf:
        raise ValueError(f"{name} must be positive and finite, got {number}")
    return number


def require_eps(name, value):
    """Return `value` as a float; raise unless it is positive and finite in float32 too, unlike 1e-46."""
    number = require_positive(name, value)
    if not _SMALLEST <= number <= _LARGEST:
        raise ValueError(
            f"{name} must be a number that float32 can hold too, from {_SMALLEST:.2g} to {_LARGEST:.2g}, "
            f"got {number}: in float32 it would be zero or infinite"
        )
    return number


def require_at_least_zero(name, value, below=math.inf):
    """Return `value` as a float; raise unless it is at least zero and less than `below`."""
    number = require_number(name, value)
    if not 0 <= number < below:
        raise ValueError(f"{name} must be at least 0 and less than {below}, got {number}")
    return number


def require_flag(name, value):
    """Return `value` as a bool; raise TypeError unless it is one: "no" would count as true."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {shown(value)} ({type(value).__name__})")
    return bool(value)


def require_float_type(name, dtype):
    """Return `dtype` as a np.dtype; raise TypeError unless it is one of FLOATS."""
    try:
        found = np.dtype(object if dtype is None else dtype)  # np.dtype(None) is float64
    except Exception:  # whatever NumPy does not take for a dtype
        found = np.dtype(object)
    if found not in FLOATS:
        raise TypeError(f"{name} must be np.float64 or np.float32, got {shown(dtype)}")
    return found


# Everything else


def require_type(name, value, kind, todo):
    """Raise TypeError unless `value` is an instance of the class `kind`."""
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be of type {kind.__name__}, got {type(value).__name__}: {todo}")


def require_cache(cache, kind, operation):
    """Raise TypeError unless `cache` is of the class that the forward `operation` returns."""
    if not isinstance(cache, kind):
        raise TypeError(
            f"cache must be the {kind.__name__} that {operation} returned, got {type(cache).__name__}: "
            "run the forward pass first, and keep what it returns besides the result"
        )


def require_dict(name, value, todo="name each array"):
    """Raise TypeError unless `value` is a mapping."""
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} must be a dict, got {type(value).__name__}: {todo}")


def require_rng(name, value):
    """Raise TypeError unless `value` is a np.random.Generator."""
    if not isinstance(value, np.random.Generator):
        raise TypeError(
            f"{name} must be a np.random.Generator, got {type(value).__name__}: "
            "np.random.default_rng(seed) makes one"
        )


def as_rng(name, value):
    """Return the generator for a seed, an int of at least 0; a np.random.Generator is passed on.

    Raises: TypeError or ValueError for anything else: None would draw different numbers each time.
    """
    if isinstance(value, np.random.Generator):
        return value
    if value is None:
        raise TypeError(
            f"{name} must be an int or a np.random.Generator, got None: a draw must be repeatable"
        )
    return np.random.default_rng(require_size(name, value, least=0))
