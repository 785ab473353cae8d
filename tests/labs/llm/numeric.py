"""Gradients by central differences, and arrays in memory layouts that a careless operation trips over.

`labs.llm.checks` has the course's gradient check. The tests of the operations have one of their own, short
enough to be seen to be right, so that a mistake in that one cannot hide a mistake in an operation.
"""

import numpy as np


def numeric_gradient(function, arrays, place, dy, step=1e-5):
    """Return the gradient of sum(function(*arrays) * dy) for arrays[place], entry by entry."""
    moved = [array.copy() for array in arrays]
    gradient = np.empty(arrays[place].shape)
    for index in np.ndindex(gradient.shape):
        value = arrays[place][index]
        ends = []
        for signed_step in (step, -step):
            moved[place][index] = value + signed_step
            ends.append(np.sum(function(*moved) * dy))
        moved[place][index] = value
        gradient[index] = (ends[0] - ends[1]) / (2 * step)
    return gradient


def relative_error(found, expected):
    """Return the largest difference, in units of the largest expected entry."""
    assert found.shape == expected.shape, f"shapes differ: {found.shape} and {expected.shape}"
    return np.abs(found - expected).max() / np.abs(expected).max()


def check_gradients(function, arrays, dy, gradients, rtol=1e-6):
    """Assert that gradients[i] is the gradient of sum(function(*arrays) * dy) for arrays[i], for every i.

    `dy` must be random: with equal entries, a softmax for example has no gradient at all.
    """
    assert len(gradients) == len(arrays), "one gradient for each array"
    for place, gradient in enumerate(gradients):
        error = relative_error(gradient, numeric_gradient(function, arrays, place, dy))
        assert error <= rtol, f"gradient of argument {place} is off by {error:.1e} of its largest entry"


def layouts(array):
    """Yield the same numbers in other memory layouts: Fortran order, every other element, read-only."""
    yield np.asfortranarray(array)
    strided = np.zeros([2 * size for size in array.shape], array.dtype)
    strided = strided[tuple(slice(None, None, 2) for _ in array.shape)]
    strided[...] = array
    yield strided
    frozen = array.copy()
    frozen.setflags(write=False)
    yield frozen
