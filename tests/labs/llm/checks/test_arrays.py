"""Checks of arrays accuse no right ones, and find the mistakes that their docstrings promise."""

import numpy as np
import pytest

from labs.llm import checks
from labs.llm.checks import CANNOT_TELL
from labs.llm.model import loss_and_grads

# no_shared_arrays


def test_separate_arrays(example):
    assert checks.no_shared_arrays(example.params)
    assert checks.no_shared_arrays({"a": np.ones(3), "b": np.ones(3)})  # equal, but not shared


def test_shared_arrays():
    table = np.ones((4, 3))
    finding = checks.no_shared_arrays({"a": table, "b": np.ones(3), "c": table[1:, ::2].T})
    assert not finding
    assert finding.numbers["shared"] == [("a", "c")]
    assert finding.message.startswith("a and c share memory")


def test_interleaved_arrays_do_not_overlap():
    table = np.ones(6)
    assert checks.no_shared_arrays({"even": table[::2], "odd": table[1::2]})


# every_parameter_learns


def test_every_parameter_of_the_model_learns(example):
    before = {key: array.copy() for key, array in example.params.items()}
    finding = checks.every_parameter_learns(
        lambda params: loss_and_grads(params, example.ids, example.targets, example.config), example.params
    )
    assert finding, finding
    for key, array in example.params.items():
        np.testing.assert_array_equal(array, before[key])


PARAMS = {"a": np.ones(3), "b": np.ones((2, 2))}


@pytest.mark.parametrize(
    ("gradient", "message"),
    [
        (np.zeros((2, 2)), "the gradient of b is zero everywhere, or not finite"),
        (np.array([[1, np.nan], [1, 1]]), "the gradient of b is zero everywhere, or not finite"),
        (np.ones(2), "gradient of b must have its shape (2, 2), got (2,)"),
        (np.ones((2, 2), np.float32), "gradient of b must have its dtype float64, got float32"),
        ([[1.0], [1.0, 2.0]], None),
    ],
)
def test_a_parameter_that_does_not_learn(gradient, message):
    def loss_and_grads(_):
        return 1.0, {"a": np.ones(3), "b": gradient}

    if message is None:
        with pytest.raises(ValueError, match="the gradient of b must be an array, got rows of different"):
            checks.every_parameter_learns(loss_and_grads, PARAMS)
        return
    finding = checks.every_parameter_learns(loss_and_grads, PARAMS)
    assert finding.failed
    assert message in finding.message


@pytest.mark.parametrize("start", [0.0, 1.0])
@pytest.mark.parametrize(("dtype", "size"), [(np.float64, 1e-18), (np.float32, 1e-9)])
def test_the_bias_of_the_keys_is_neither_accused_nor_passed(start, dtype, size):
    """Its gradient is zero but for rounding, wherever it starts."""
    params = {"wk": np.ones((2, 2), dtype), "bk": np.full(2, start, dtype)}
    grads = {"wk": np.full((2, 2), 1e-2, dtype), "bk": np.full(2, size, dtype)}
    finding = checks.every_parameter_learns(lambda _: (1.0, grads), params)
    assert finding.verdict == CANNOT_TELL
    assert finding.numbers == {"idle": [], "negligible": ["bk"]}
    assert "a bias of the keys" in finding.message
    unused = checks.every_parameter_learns(lambda _: (1.0, grads | {"bk": 0 * grads["bk"]}), params)
    assert unused.failed


def test_small_gradients_are_compared_with_the_largest():
    grads = {"a": np.full(3, 1e-18), "b": np.full((2, 2), 1e-20)}
    assert checks.every_parameter_learns(lambda _: (1.0, grads), PARAMS)


def test_a_parameter_without_a_gradient():
    finding = checks.every_parameter_learns(lambda _: (1.0, {"a": np.ones(3)}), PARAMS)
    assert finding.message == "there must be one gradient for each of ['a', 'b'], got ['a']"


def test_single_entries_may_stay():
    grads = {"a": np.array([0, 0, 1.0]), "b": np.ones((2, 2))}
    assert checks.every_parameter_learns(lambda _: (1.0, grads), PARAMS)


@pytest.mark.parametrize(
    ("function", "params", "error", "message"),
    [
        (lambda _: (1.0, {}), [np.ones(3)], TypeError, "params must be a dict of arrays, got list"),
        (lambda _: (1.0, {}), {"a": [1.0]}, TypeError, "params must be a dict of arrays"),
        (lambda _: (1.0, {}), {"a": np.ones(2, int)}, TypeError, "a must hold floating-point numbers"),
        (lambda _: (1.0, {}), {}, ValueError, "params must hold arrays, got none"),
        (lambda _: {}, PARAMS, TypeError, r"must return \(loss, a dict of gradients\), got dict"),
        (lambda _: (1.0, None), PARAMS, TypeError, r"must return \(loss, a dict of gradients\)"),
        (None, PARAMS, TypeError, "loss_and_grads must be a function, got None"),
    ],
)
def test_every_parameter_learns_refuses(function, params, error, message):
    with pytest.raises(error, match=message):
        checks.every_parameter_learns(function, params)


@pytest.mark.parametrize(
    ("arrays", "error", "message"),
    [
        ([np.ones(3)], TypeError, "arrays must be a dict of arrays, got list"),
        (None, TypeError, "arrays must be a dict of arrays, got NoneType"),
        ({}, ValueError, "arrays must hold arrays, got none"),
    ],
)
def test_no_shared_arrays_refuses(arrays, error, message):
    with pytest.raises(error, match=message):
        checks.no_shared_arrays(arrays)


# targets_aligned

TEXT = np.array([4, 1, 5, 9, 2, 6, 5, 3, 5, 8])
ROWS = np.array([[4, 1, 5], [5, 3, 5]])
NEXT = np.array([[1, 5, 9], [3, 5, 8]])


def test_aligned_targets():
    assert checks.targets_aligned(ROWS, NEXT, TEXT)
    assert checks.targets_aligned(ROWS, NEXT, np.array([[4, 1, 5, 9], [5, 3, 5, 8]]))


@pytest.mark.parametrize(
    ("targets", "wrong"),
    [
        (ROWS, (0, 0)),  # not shifted
        (np.array([[2, 5, 9], [3, 5, 8]]), (0, 0)),  # only the very first one
        (np.array([[1, 5, 9], [3, 3, 8]]), (1, 1)),  # only the last but one
        (np.roll(ROWS, 1, axis=1), (0, 0)),  # backwards
        (np.roll(ROWS, -1), (0, 3)),  # as one long row: the last target comes from the next row
        (np.roll(ROWS, -1, axis=1), (0, 3)),  # wrapped around
        (np.array([[1, 5, 9], [3, 5, 9]]), (1, 3)),  # only the very last one
    ],
)
def test_targets_that_are_not_the_next_tokens(targets, wrong):
    finding = checks.targets_aligned(ROWS, targets, TEXT)
    assert not finding
    assert finding.numbers["wrong"][0] == wrong


def test_the_message_names_the_target():
    finding = checks.targets_aligned(ROWS, ROWS, TEXT)
    assert finding.message == "target 0 of row 0 is 4, but the next input is 1"
    assert (
        "row 0 with its last target is nowhere"
        in checks.targets_aligned(ROWS, np.roll(ROWS, -1), TEXT).message
    )


def test_a_row_must_come_from_its_own_source():
    sources = np.array([[4, 1, 5, 9], [5, 3, 5, 8]])
    assert not checks.targets_aligned(ROWS, NEXT, sources[::-1])


@pytest.mark.parametrize(
    ("ids", "targets", "source", "error", "message"),
    [
        (None, NEXT, TEXT, TypeError, "ids must be integers"),
        ([[1, 2], [3]], NEXT, TEXT, ValueError, "ids must be an array, got rows of different lengths"),
        (ROWS * 1.0, NEXT, TEXT, TypeError, "ids must be integers"),
        (ROWS, NEXT * 1.0, TEXT, TypeError, "targets must be integers"),
        (ROWS, NEXT, TEXT * 1.0, TypeError, "source must be integers"),
        (ROWS[0], NEXT[0], TEXT, ValueError, r"ids must have non-empty axes \(B, T\)"),
        (ROWS, NEXT[:1], TEXT, ValueError, r"targets must have shape \(B, T\) = \(2, 3\), got \(1, 3\)"),
        (ROWS, NEXT, TEXT[:3], ValueError, r"N > T = 3, got \(3,\)"),
        (ROWS, NEXT, np.stack([TEXT] * 3), ValueError, r"got \(3, 10\)"),
        (ROWS, NEXT, TEXT.reshape(1, 1, -1), ValueError, r"got \(1, 1, 10\)"),
    ],
)
def test_targets_aligned_refuses(ids, targets, source, error, message):
    with pytest.raises(error, match=message):
        checks.targets_aligned(ids, targets, source)
