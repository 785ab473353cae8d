"""Each check accepts differently written right answers, and rejects the stub and the typical wrong ones."""

import numpy as np
import pytest

from labs.exercises import backward_ops
from labs.llm import ops


def dweight(x, dy):
    return x.reshape(-1, x.shape[-1]).T @ dy.reshape(-1, dy.shape[-1])


def dweight_by_loops(x, dy):
    total = np.zeros((x.shape[-1], dy.shape[-1]))
    for place in np.ndindex(x.shape[:-1]):
        total += np.outer(x[place], dy[place])
    return total


@pytest.mark.parametrize(
    "function",
    [
        dweight,
        dweight_by_loops,
        lambda x, dy: np.einsum("bti,btj->ij", x, dy),
        lambda x, dy: (x.swapaxes(-1, -2) @ dy).sum(axis=0),
    ],
)
def test_right_dweights_are_accepted(function):
    assert backward_ops.check_dweight(function).passed


@pytest.mark.parametrize(
    ("function", "hint"),
    [
        (lambda x, dy: None, "still needs its line"),  # noqa: ARG005
        (lambda x, dy: dweight(x, dy) / 21, "over B and T, do not average."),
        (lambda x, dy: (x.swapaxes(-1, -2) @ dy).mean(axis=0), "not average over the batch"),
        (lambda x, dy: dweight(x, dy) / x.shape[1], "not average over the positions"),
        (lambda x, dy: x[0].T @ dy[0], "only the first sequence"),
        (lambda x, dy: x[-1].T @ dy[-1], "only the last sequence"),
        (lambda x, dy: x.swapaxes(-1, -2) @ dy, "the shape (6, 5); got (3, 6, 5)"),
        (lambda x, dy: dweight(x, dy).T, "the shape (6, 5); got (5, 6)"),
        (lambda x, dy: np.outer(x.sum(axis=(0, 1)), dy.sum(axis=(0, 1))), "adds x and dy up first"),
        (lambda x, dy: -dweight(x, dy), "added over all B*T"),
        (lambda x, dy: x.T @ dy, "stopped with ValueError"),
        (lambda x, dy: dweight(x, dy).astype(np.float32), "digits: compute in float64"),
        (lambda x, dy: dweight(x, dy) * (len(x) - 2), "but not for x of shape (2, 4, 8) and dy"),
    ],
)
def test_wrong_dweights_are_rejected_with_a_hint(function, hint):
    verdict = backward_ops.check_dweight(function)
    assert not verdict.passed
    assert hint in verdict.message, verdict


def table_by_loops(dx, ids, V):
    table = np.zeros((V, dx.shape[-1]))
    for place in np.ndindex(ids.shape):
        table[ids[place]] += dx[place]
    return table


def table_by_add_at(dx, ids, V):
    table = np.zeros((V, dx.shape[-1]))
    np.add.at(table, ids, dx)
    return table


def table_by_one_hot(dx, ids, V):
    one_hot = (ids[..., None] == np.arange(V)).astype(float)
    return one_hot.reshape(-1, V).T @ dx.reshape(-1, dx.shape[-1])


@pytest.mark.parametrize(
    "function",
    [
        table_by_loops,
        table_by_add_at,
        table_by_one_hot,
        lambda dx, ids, V: np.stack([dx[ids == token].sum(axis=0) for token in range(V)]),
    ],
)
def test_right_tables_are_accepted(function):
    assert backward_ops.check_embedding_backward(function).passed


def assigned(dx, ids, V):
    table = np.zeros((V, dx.shape[-1]))
    table[ids] = dx
    return table


def added_through_an_index(dx, ids, V):
    table = np.zeros((V, dx.shape[-1]))
    table[ids] += dx
    return table


def averaged(dx, ids, V):
    counts = np.bincount(ids.ravel(), minlength=V)
    return table_by_loops(dx, ids, V) / np.maximum(counts, 1)[:, None]


@pytest.mark.parametrize(
    ("function", "hint"),
    [
        (lambda dx, ids, V: None, "still needs its line"),  # noqa: ARG005
        (assigned, "only its last one is kept"),
        (added_through_an_index, "only its last one is kept"),
        (lambda dx, ids, V: assigned(dx[::-1, ::-1], ids[::-1, ::-1], V), "only its first one is kept"),
        (averaged, "they are averaged"),
        (lambda dx, ids, V: table_by_loops(dx[:1], ids[:1], V), "only the first sequence"),
        (lambda dx, ids, V: -table_by_loops(dx, ids, V), "Start from zeros"),
        (lambda dx, ids, V: dx, "the shape (9, 3); got (2, 5, 3)"),  # noqa: ARG005
        (lambda dx, ids, V: table_by_add_at(dx, ids, V).astype(np.float32), "digits: compute in float64"),
        (lambda dx, ids, V: table_by_loops(dx, ids, 9), "but not for dx of shape (3, 4, 6)"),  # noqa: ARG005
    ],
)
def test_wrong_tables_are_rejected_with_a_hint(function, hint):
    verdict = backward_ops.check_embedding_backward(function)
    assert not verdict.passed
    assert hint in verdict.message, verdict


def through_softmax(dp, p):
    return p * (dp - (p * dp).sum(axis=-1, keepdims=True))


def through_the_jacobian(dp, p):
    jacobian = p[..., :, None] * (np.eye(p.shape[-1]) - p[..., None, :])
    return np.einsum("...i,...ij->...j", dp, jacobian)


@pytest.mark.parametrize(
    "function",
    [
        through_softmax,
        through_the_jacobian,
        ops.softmax_backward,
        lambda dp, p: p * dp - p * np.einsum("...j,...j->...", p, dp)[..., None],
    ],
)
def test_right_softmax_backwards_are_accepted(function):
    assert backward_ops.check_softmax_backward(function).passed


@pytest.mark.parametrize(
    ("function", "hint"),
    [
        (lambda dp, p: None, "still needs its line"),  # noqa: ARG005
        (lambda dp, p: p * dp, "sum_j p_j dp_j is missing"),
        (lambda dp, p: p * (1 - p) * dp, "the diagonal of the Jacobian alone"),
        (lambda dp, p: -through_softmax(dp, p), "signs are reversed"),
        (lambda dp, p: p * (dp - dp.sum(axis=-1, keepdims=True)), "with its p_j."),
        (lambda dp, p: p * (dp - dp.mean(axis=-1, keepdims=True)), "their plain mean"),
        (lambda dp, p: p * (dp - (p * dp).sum(axis=-2, keepdims=True)), "along the wrong axis"),
        (lambda dp, p: p * (dp - (p * dp).sum()), "each row has its own"),
        (lambda dp, p: dp - (p * dp).sum(axis=-1, keepdims=True), "The factor p in front"),
        (lambda dp, p: p * (through_softmax(dp, p) / p), "p * (dp - sum_j p_j dp_j)"),  # 0 / 0 behind a mask
        (lambda dp, p: np.zeros_like(dp), "p * (dp - sum_j p_j dp_j)"),  # noqa: ARG005
        (lambda dp, p: through_softmax(dp, p).astype(np.float32), "digits: compute in float64"),
        (lambda dp, p: through_softmax(dp, p).sum(axis=-1), "the shape (3, 5); got (3,)"),
        (
            lambda dp, p: p * (dp - (p * dp).sum(axis=1, keepdims=True)),
            "but not for dp and p of shape (2, 4, 3, 6)",
        ),
    ],
)
def test_wrong_softmax_backwards_are_rejected_with_a_hint(function, hint):
    verdict = backward_ops.check_softmax_backward(function)
    assert not verdict.passed
    assert hint in verdict.message, verdict
