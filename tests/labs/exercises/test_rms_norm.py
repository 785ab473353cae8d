"""Each check accepts differently written right answers, and rejects the stub and the typical wrong ones."""

import numpy as np
import pytest

from labs.exercises import rms_norm
from labs.llm import ops


def solution(x, gain, eps):
    mean_square = np.mean(x**2, axis=-1, keepdims=True)
    return gain * x / np.sqrt(mean_square + eps)


def by_loops(x, gain, eps):
    y = np.empty_like(x)
    for place in np.ndindex(x.shape[:-1]):
        total = sum(float(number) ** 2 for number in x[place])
        y[place] = gain * x[place] / (total / len(gain) + eps) ** 0.5
    return y


def by_length(x, gain, eps):
    d = x.shape[-1]
    return gain * x * np.sqrt(d / (np.linalg.norm(x, axis=-1, keepdims=True) ** 2 + d * eps))


@pytest.mark.parametrize(
    "norm", [solution, by_loops, by_length, lambda x, gain, eps: ops.rms_norm(x, gain, eps=eps)[0]]
)
def test_right_norms_are_accepted(norm):
    assert rms_norm.check_rms_norm(norm).passed


def along(axis):
    return lambda x, gain, eps: gain * x / np.sqrt(np.mean(x**2, axis=axis, keepdims=True) + eps)


def as_in_the_notebook(x, gain, eps):
    mean_square = np.mean(x**2, axis=1, keepdims=True)
    return gain * x / (np.sqrt(mean_square) + eps)


def divided_by_six(x, gain, eps):
    return gain * x / np.sqrt((x**2).sum(axis=-1, keepdims=True) / 6 + eps)


def mean_subtracted(x, gain, eps):
    return solution(x - x.mean(axis=-1, keepdims=True), gain, eps)


@pytest.mark.parametrize(
    ("norm", "hint"),
    [
        (lambda x, gain, eps: None, "still needs its line"),  # noqa: ARG005
        (as_in_the_notebook, "along the positions, and eps stands outside"),
        (along(1), "along the positions: it should"),
        (along(0), "along the batch"),
        (along(None), "along all axes"),
        (lambda x, gain, eps: solution(x, gain, 0.0), "Epsilon is missing"),  # noqa: ARG005
        (
            lambda x, gain, eps: gain * x / (np.sqrt(np.mean(x**2, axis=-1, keepdims=True)) + eps),
            "under the root",
        ),
        (lambda x, gain, eps: solution(x, 1.0, eps), "gain is missing"),  # noqa: ARG005
        (lambda x, gain, eps: gain * x / (np.mean(x**2, axis=-1, keepdims=True) + eps), "root is missing"),
        (lambda x, gain, eps: gain * x / np.sqrt((x**2).sum(axis=-1, keepdims=True) + eps), "not their sum"),
        (mean_subtracted, "that is LayerNorm"),
        (lambda x, gain, eps: solution(x, gain[::-1], eps), "For one position"),
        (lambda x, gain, eps: solution(x, gain, 1e-5), "For one position"),  # noqa: ARG005
        (lambda x, gain, eps: solution(x, gain, 0.25), "gain of shape (9,) and eps=0.5. The shape"),  # noqa: ARG005
        (divided_by_six, "but not for x of shape (2, 5, 9), gain of shape (9,)"),
        (lambda x, gain, eps: solution(x.astype(np.float32), gain, eps), "digits: compute in float64"),
        (lambda x, gain, eps: gain * x / np.sqrt(np.mean(x**2, axis=-1) + eps), "stopped with ValueError"),
        (
            lambda x, gain, eps: np.sqrt(np.mean(gain * x**2, axis=-1) + eps),
            "the shape (3, 7, 6); got (3, 7)",
        ),
    ],
)
def test_wrong_norms_are_rejected_with_a_hint(norm, hint):
    verdict = rms_norm.check_rms_norm(norm)
    assert not verdict.passed
    assert hint in verdict.message, verdict


def layer_solution(x, gain, shift, eps):
    centred = x - x.mean(axis=-1, keepdims=True)
    return gain * centred / np.sqrt(np.mean(centred**2, axis=-1, keepdims=True) + eps) + shift


def layer_by_variance(x, gain, shift, eps):
    mean, variance = x.mean(axis=-1, keepdims=True), x.var(axis=-1, keepdims=True)
    return (x - mean) * (gain / np.sqrt(variance + eps)) + shift


def layer_by_rms_norm(x, gain, shift, eps):
    return ops.rms_norm(x - x.mean(axis=-1, keepdims=True), gain, eps=eps)[0] + shift


@pytest.mark.parametrize("norm", [layer_solution, layer_by_variance, layer_by_rms_norm])
def test_right_layer_norms_are_accepted(norm):
    assert rms_norm.check_layer_norm(norm).passed


def divided_by_rms_of_x(x, gain, shift, eps):
    centred = x - x.mean(axis=-1, keepdims=True)
    return gain * centred / np.sqrt(np.mean(x**2, axis=-1, keepdims=True) + eps) + shift


def with_unbiased_variance(x, gain, shift, eps):
    mean, variance = x.mean(axis=-1, keepdims=True), x.var(axis=-1, ddof=1, keepdims=True)
    return gain * (x - mean) / np.sqrt(variance + eps) + shift


def eps_on_the_deviation(x, gain, shift, eps):
    mean, deviation = x.mean(axis=-1, keepdims=True), x.std(axis=-1, keepdims=True)
    return gain * (x - mean) / (deviation + eps) + shift


def with_six_features(x, gain, shift, eps):
    centred = x - x.sum(axis=-1, keepdims=True) / 6
    return gain * centred / np.sqrt(np.mean(centred**2, axis=-1, keepdims=True) + eps) + shift


def along_positions(x, gain, shift, eps):
    mean, variance = x.mean(axis=1, keepdims=True), x.var(axis=1, keepdims=True)
    return gain * (x - mean) / np.sqrt(variance + eps) + shift


@pytest.mark.parametrize(
    ("norm", "hint"),
    [
        (lambda x, gain, shift, eps: None, "still needs its line"),  # noqa: ARG005
        (lambda x, gain, shift, eps: solution(x, gain, eps) + shift, "Nothing is subtracted"),
        (divided_by_rms_of_x, "what is left after"),
        (lambda x, gain, shift, eps: layer_solution(x, gain, 0.0, eps), "shift is missing"),  # noqa: ARG005
        (lambda x, gain, shift, eps: layer_solution(x, 1.0, shift, eps), "gain is missing"),  # noqa: ARG005
        (lambda x, gain, shift, eps: gain * layer_solution(x, 1.0, shift, eps), "before the shift"),
        (with_unbiased_variance, "D - 1"),
        (eps_on_the_deviation, "under the root"),
        (along_positions, "Subtract each position's mean"),
        (with_six_features, "but not for x of shape (2, 5, 9), gain and shift of shape (9,)"),
        (lambda x, gain, shift, eps: layer_solution(x, shift, gain, eps), "Subtract each position's mean"),
        (lambda x, gain, shift: x, "stopped with TypeError"),  # noqa: ARG005
    ],
)
def test_wrong_layer_norms_are_rejected_with_a_hint(norm, hint):
    verdict = rms_norm.check_layer_norm(norm)
    assert not verdict.passed
    assert hint in verdict.message, verdict
