"""Each check accepts differently written right answers, and rejects the stub and the typical wrong ones."""

import numpy as np
import pytest
from einops import rearrange

from labs.exercises import rope


def solution_angles(T, dh, base):
    return np.outer(np.arange(T), base ** (-2 * np.arange(dh // 2) / dh))


def angles_by_loops(T, dh, base):
    return np.array([[t / base ** (2 * r / dh) for r in range(dh // 2)] for t in range(T)])


def angles_by_exponential(T, dh, base):
    return np.arange(T)[:, None] * np.exp(-np.log(base) * np.arange(0, dh, 2) / dh)


@pytest.mark.parametrize("angles", [solution_angles, angles_by_loops, angles_by_exponential])
def test_right_angles_are_accepted(angles):
    assert rope.check_angles(angles).passed


@pytest.mark.parametrize(
    ("angles", "hint"),
    [
        (lambda T, dh, base: None, "still needs its line"),  # noqa: ARG005
        (lambda T, dh, base: np.outer(np.arange(T), base ** (-np.arange(dh // 2) / dh)), "the 2 is missing"),
        (lambda T, dh, base: np.outer(np.arange(T), base ** (2 * np.arange(dh // 2) / dh)), "minus sign"),
        (lambda T, dh, base: solution_angles(T, dh, 10000.0), "not always from 10000"),  # noqa: ARG005
        (lambda T, dh, base: solution_angles(T + 1, dh, base)[1:], "Count positions from 0"),
        (lambda T, dh, base: np.degrees(solution_angles(T, dh, base)), "give radians"),
        (lambda T, dh, base: solution_angles(T, dh, base).T, "should have the shape (7, 3); got (3, 7)"),
        (lambda T, dh, base: np.outer(np.arange(T), base ** (-2 * np.arange(dh) / dh)), "got (7, 6)"),
        (lambda T, dh, base: solution_angles(T, dh, base) % 1, "Row 1 should be"),
        (lambda T, dh, base: solution_angles(T, dh, 50.0), "but not for T=9, dh=10 and base=300"),  # noqa: ARG005
        (lambda T, dh, base: solution_angles(T, dh, base)[:, :3], "the shape (9, 5); got (9, 3)"),
    ],
)
def test_wrong_angles_are_rejected_with_a_hint(angles, hint):
    verdict = rope.check_angles(angles)
    assert not verdict.passed
    assert hint in verdict.message, verdict


def solution_rotate(x, angles):
    even, odd = x[..., 0::2], x[..., 1::2]
    y = x.copy()
    y[..., 0::2] = even * np.cos(angles) - odd * np.sin(angles)
    y[..., 1::2] = even * np.sin(angles) + odd * np.cos(angles)
    return y


def rotate_by_complex(x, angles):
    return (x.view(complex) * np.exp(1j * angles)).view(float)


def rotate_by_matrices(x, angles):
    cos, sin = np.cos(angles), np.sin(angles)
    turn = np.array([[cos, -sin], [sin, cos]])  # (2,2,T,dh/2)
    pairs = rearrange(x, "... (r two) -> ... r two", two=2)
    return rearrange(np.einsum("abtr,...trb->...tra", turn, pairs), "... r two -> ... (r two)")


def rotate_by_swapping(x, angles):
    cos, sin = np.repeat(np.cos(angles), 2, axis=-1), np.repeat(np.sin(angles), 2, axis=-1)
    swapped = np.stack([-x[..., 1::2], x[..., 0::2]], axis=-1).reshape(x.shape)
    return x * cos + swapped * sin


@pytest.mark.parametrize(
    "rotate", [solution_rotate, rotate_by_complex, rotate_by_matrices, rotate_by_swapping]
)
def test_right_rotations_are_accepted(rotate):
    assert rope.check_rotate(rotate).passed


def overwritten_too_early(x, angles):
    y = x.copy()
    y[..., 0::2] = y[..., 0::2] * np.cos(angles) - y[..., 1::2] * np.sin(angles)
    y[..., 1::2] = y[..., 0::2] * np.sin(angles) + y[..., 1::2] * np.cos(angles)
    return y


def with_four_axes(x, angles):
    even, odd, cos, sin = x[:, :, :, 0::2], x[:, :, :, 1::2], np.cos(angles), np.sin(angles)
    return np.stack([even * cos - odd * sin, even * sin + odd * cos], axis=-1).reshape(x.shape)


def overwritten_in_place(x, angles):
    x[..., 0::2], x[..., 1::2] = (
        x[..., 0::2] * np.cos(angles) - x[..., 1::2] * np.sin(angles),
        x[..., 0::2] * np.sin(angles) + x[..., 1::2] * np.cos(angles),
    )
    return x


def sines_alike(x, angles):
    even, odd = x[..., 0::2], x[..., 1::2]
    first = even * np.cos(angles) + odd * np.sin(angles)
    second = even * np.sin(angles) + odd * np.cos(angles)
    return np.stack([first, second], axis=-1).reshape(x.shape)


def by_halves(x, angles):
    first, second = np.split(x, 2, axis=-1)
    cos, sin = np.cos(angles), np.sin(angles)
    return np.concatenate([first * cos - second * sin, first * sin + second * cos], axis=-1)


def halves_of_a_right_rotation(x, angles):
    y = solution_rotate(x, angles)
    return np.concatenate([y[..., 0::2], y[..., 1::2]], axis=-1)


@pytest.mark.parametrize(
    ("rotate", "hint"),
    [
        (lambda x, angles: None, "still needs its line"),  # noqa: ARG005
        (overwritten_too_early, "already overwritten"),
        (overwritten_in_place, "writes into its argument"),
        (lambda x, angles: solution_rotate(x, -angles), "the wrong way"),
        (sines_alike, "one of them needs a minus"),
        (by_halves, "this pairs the halves"),
        (halves_of_a_right_rotation, "For each pair"),
        (lambda x, angles: solution_rotate(x, np.radians(angles)), "For each pair"),
        (lambda x, angles: x[..., 0::2] * np.cos(angles), "should have the shape (2, 3, 5, 6)"),
        (lambda x, angles: x * np.cos(angles), "stopped with ValueError"),
        (with_four_axes, "but not for x of shape (4, 7, 8) and angles of shape (7, 4)"),
    ],
)
def test_wrong_rotations_are_rejected_with_a_hint(rotate, hint):
    verdict = rope.check_rotate(rotate)
    assert not verdict.passed
    assert hint in verdict.message, verdict


@pytest.mark.parametrize(
    "to_halves",
    [
        lambda x: np.concatenate([x[..., 0::2], x[..., 1::2]], axis=-1),
        lambda x: rearrange(x, "... (r two) -> ... (two r)", two=2),
        lambda x: x[..., np.arange(x.shape[-1]).reshape(-1, 2).T.ravel()],
    ],
)
def test_right_halves_are_accepted(to_halves):
    assert rope.check_halves(to_halves).passed


@pytest.mark.parametrize(
    ("to_halves", "hint"),
    [
        (lambda x: None, "still needs its line"),  # noqa: ARG005
        (lambda x: rearrange(x, "... (two r) -> ... (r two)", two=2), "the way back"),
        (lambda x: x + 0, "Nothing has moved"),
        (lambda x: np.concatenate([x[..., 1::2], x[..., 0::2]], axis=-1), "first numbers of the pairs"),
        (lambda x: x[..., ::-1], "0, 2, 4, 6, 1, 3, 5, 7"),
        (lambda x: x[..., [0, 2, 4, 6, 1, 3, 5, 7]], "but not for x of shape (7, 10)"),
        (lambda x: rearrange(x, "b t (r two) -> b t (two r)", two=2), "but not for x of shape (7, 10)"),
        (lambda x: rearrange(x.astype(int), "... (r two) -> ... (two r)", two=2), "the numbers are not"),
        (lambda x: x[..., [0, 2, 1, 3]], "should have the shape (3, 5, 8); got (3, 5, 4)"),  # fits dh=4 only
    ],
)
def test_wrong_halves_are_rejected_with_a_hint(to_halves, hint):
    verdict = rope.check_halves(to_halves)
    assert not verdict.passed
    assert hint in verdict.message, verdict
