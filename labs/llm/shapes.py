"""What the public functions refuse, and the words they refuse it with.

NumPy wraps negative indices, stretches axes of size one and promotes integers without a word. A wrong array
then gives a wrong number instead of an error, so every public function of this package asks here first.
"""

import math

import numpy as np


def as_floats(name, value):
    """Return `value` as a floating-point array of unchanged dtype (an array is passed on, not copied).

    Raises: TypeError for integers, booleans, complex numbers and objects.
    """
    array = np.asarray(value)
    if array.dtype.kind != "f":
        raise TypeError(
            f"{name} must hold floating-point numbers, got dtype {array.dtype}: "
            f"convert it first, for example {name}.astype(np.float64)"
        )
    return array


def as_ids(name, value, size):
    """Return `value` as an array of indices in [0, size).

    Raises: TypeError unless the values are integers; ValueError if there are none or one is out of range.
    """
    array = np.asarray(value)
    if array.size == 0:
        raise ValueError(f"{name} must hold at least one id, got shape {array.shape}: nothing to look up")
    if array.dtype.kind not in "iu":
        raise TypeError(
            f"{name} must be integers, got dtype {array.dtype}: ids are positions in a vocabulary, "
            "so encode the text as whole numbers"
        )
    smallest, largest = array.min(), array.max()
    if smallest < 0 or largest >= size:
        wrong = smallest if smallest < 0 else largest
        raise ValueError(
            f"{name} must lie in [0, V) = [0, {size}), got {wrong}: "
            "encode with the vocabulary that sized the table"
        )
    return array.astype(np.intp, copy=False)


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


def require_size(name, value):
    """Raise unless `value` is a positive int: TypeError for floats, booleans and NumPy numbers."""
    if type(value) is not int:
        raise TypeError(f"{name} must be an int, got {value!r} ({type(value).__name__}): pass a whole number")
    if value < 1:
        raise ValueError(f"{name} must be at least 1, got {value}: a size counts something")


def require_positive(name, value):
    """Raise unless `value` is a positive, finite real number."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"{name} must be a real number, got {value!r} ({type(value).__name__})")
    try:
        number = float(value)
    except OverflowError:  # an int that no float can hold
        number = math.inf
    if not 0 < number < math.inf:
        raise ValueError(f"{name} must be positive and finite, got {number}")


def as_positions(positions, T):
    """Return `positions` as float64 (T,), counted from zero if None.

    Raises: TypeError unless they are real numbers; ValueError if not (T,) or not finite.
    """
    if positions is None:
        return np.arange(T, dtype=np.float64)
    array = np.asarray(positions)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"positions must be real numbers, got dtype {array.dtype}: pass None for 0 to T-1")
    require_shape("positions", array, "(T,)", (T,), "give one position for each vector")
    if not np.isfinite(array).all():
        raise ValueError("positions must be finite, got NaN or infinity: pass None for 0 to T-1")
    return array.astype(np.float64)


def as_mask(mask, shape):
    """Return `mask` as a boolean array that fits `shape`, (B, H, Tq, Tk), and leaves no query without a key.

    A mask with three axes is refused: for B = H its first axis could be taken for either of the two.

    Raises: TypeError unless boolean; ValueError if it does not fit, or if a query may read nothing.
    """
    array = np.asarray(mask)
    if array.dtype != bool:
        raise TypeError(
            f"mask must be boolean (True = may read), got dtype {array.dtype}: "
            "compare to make it so, for example mask == 1, or mask == 0 if it was to be added to the scores"
        )
    fits = all(size in (1, full) for size, full in zip(array.shape[::-1], shape[::-1], strict=False))
    if array.ndim not in (2, 4) or not fits:
        raise ValueError(
            f"mask must have shape (Tq, Tk) = {shape[2:]} or (B, H, Tq, Tk) = {shape}, any axis of which "
            f"may be 1, got {array.shape}: per text mask[:, None], per head mask[None]"
        )
    readable = array.any(axis=-1)
    if not readable.all():
        empty = np.argwhere(~readable)[0]
        raise ValueError(
            f"mask must let every query read something, got nothing in row {tuple(empty.tolist())}: "
            "softmax is undefined there, so let a padded query read itself and keep it out of the loss"
        )
    return array
