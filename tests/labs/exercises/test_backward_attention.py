"""Each check accepts differently written right answers, and rejects the stub and the typical wrong ones."""

import numpy as np
import pytest

from labs.exercises import backward_attention
from labs.llm import model, ops

RIGHT = {"dv": [5, 1], "dp": [[4, 20], [2, 10]], "dscores": [[0, 0], [-2, 2]], "dq": [0, 0], "dk": [-6, 6]}


def turn(array):
    return array.swapaxes(-1, -2)


def soft_back(p, dp):
    return p * (dp - (p * dp).sum(axis=-1, keepdims=True))


def test_right_pencil_numbers_are_accepted():
    assert backward_attention.check_pencil(**RIGHT).passed
    assert backward_attention.check_pencil(**{name: np.array(rows) for name, rows in RIGHT.items()}).passed


def test_the_pencil_numbers_are_those_of_the_library():
    q, k, v, do = (np.array(each, float).reshape(1, 1, 2, 1) for each in ([7, 3], [2, 2], [1, 5], [4, 2]))
    _, cache = model.attention(q, k, v, model.causal_mask(2))
    assert np.array_equal(cache.p[0, 0], [[1, 0], [0.5, 0.5]])  # as the exercise gives it
    dp = do @ turn(v)
    found = dict(zip(("dq", "dk", "dv"), model.attention_backward(do, cache), strict=True))
    found = {name: array[0, 0, :, 0] for name, array in found.items()}
    found |= {"dp": dp[0, 0], "dscores": ops.softmax_backward(dp, cache.p)[0, 0]}
    assert backward_attention.check_pencil(**found).passed


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (dict.fromkeys(RIGHT), "dv: still open; a list of 2 numbers"),
        ({"dv": [4, 3]}, "its column of P"),
        ({"dv": [6, 2]}, "by its attention weight"),
        ({"dp": None}, "dp: still open; a table of 2 × 2 numbers"),
        ({"dp": [[4, 0], [2, 10]]}, "does not know the mask"),
        ({"dp": [[4, 2], [20, 10]]}, "this is the transpose"),
        ({"dscores": [[4, 0], [1, 5]]}, "average of the row is missing"),
        ({"dscores": [[-8, 0], [-2, 2]]}, "that one number, 4"),
        ({"dscores": [[0, 16], [-2, 2]]}, "at a forbidden pair it is zero"),
        ({"dscores": [[0, 16], [-4, 4]]}, "times P"),
        ({"dq": [0, 8]}, "use the keys"),
        ({"dk": [0, -8]}, "its column of G_S"),
        ({"dk": [-14, 6]}, "the query of the reader"),
    ],
)
def test_open_and_wrong_pencil_numbers_are_rejected_with_a_hint(wrong, hint):
    verdict = backward_attention.check_pencil(**(RIGHT | wrong))
    assert not verdict.passed
    assert hint in verdict.message, verdict


def scores_solution(do, v, p):
    dp = do @ v.swapaxes(-1, -2)
    return p * (dp - (p * dp).sum(axis=-1, keepdims=True))


def scores_by_output(do, v, p):
    """The average of a row of G_P is what arrives at O, times O itself."""
    return p * (do @ turn(v) - (do * (p @ v)).sum(axis=-1, keepdims=True))


def scores_by_jacobian(do, v, p):
    dscores = np.empty_like(p)
    for place in np.ndindex(p.shape[:3]):
        row = p[place]
        dscores[place] = (np.diag(row) - np.outer(row, row)) @ (v[place[:2]] @ do[place])
    return dscores


@pytest.mark.parametrize("function", [scores_solution, scores_by_output, scores_by_jacobian])
def test_right_gradients_of_scores_are_accepted(function):
    assert backward_attention.check_scores(function).passed


def scores_with(softmax_back):
    return lambda do, v, p: softmax_back(p, do @ turn(v))


def scores_in_place(do, v, p):
    p *= do @ turn(v) - (do * (p @ v)).sum(axis=-1, keepdims=True)
    return p


def scores_for_one_length(do, v, p):
    return scores_solution(do, v, p).reshape(3, 2, 5, 5)


@pytest.mark.parametrize(
    ("function", "hint"),
    [
        (lambda do, v, p: None, "still needs its line"),  # noqa: ARG005
        (scores_with(lambda p, dp: p * (dp - dp.mean(axis=-2, keepdims=True))), "two things are wrong"),
        (scores_with(lambda p, dp: p * (dp - dp.mean(axis=-1, keepdims=True))), "count with its weight P"),
        (
            scores_with(lambda p, dp: p * (dp - (p * dp).sum(axis=-2, keepdims=True))),
            "should run along the keys",
        ),
        (scores_with(lambda p, dp: p * (dp - (p * dp).mean(axis=-1, keepdims=True))), "divides by T as well"),
        (scores_with(lambda p, dp: p * dp), "average of the row is missing"),
        (scores_with(lambda p, dp: dp), "the softmax is still to come"),  # noqa: ARG005
        (scores_with(lambda p, dp: dp - (p * dp).sum(axis=-1, keepdims=True)), "factor P in front"),
        (scores_with(lambda p, dp: -soft_back(p, dp)), "sign is wrong"),
        (lambda do, v, p: scores_solution(do, v, p) / np.sqrt(v.shape[-1]), "belongs to the next step"),
        (scores_with(lambda p, dp: soft_back(turn(p), dp)), "p * (dp - average)"),
        (lambda do, v, p: scores_solution(do, v, p).astype(np.float32), "digits: compute in float64"),
        (lambda do, v, p: p * (do @ v), "stopped with ValueError"),
        (scores_in_place, "writes into its argument"),
        (scores_for_one_length, "but not for do and v of shape (2, 3, 7, 4) and p of shape (2, 3, 7, 7)"),
    ],
)
def test_wrong_gradients_of_scores_are_rejected_with_a_hint(function, hint):
    verdict = backward_attention.check_scores(function)
    assert not verdict.passed
    assert hint in verdict.message, verdict


def keys_solution(dscores, q_rot):
    return model.rope(turn(dscores) @ q_rot / np.sqrt(q_rot.shape[-1]), inverse=True)


def keys_by_einsum(dscores, q_rot):
    dk = np.einsum("bhij,bhie->bhje", dscores, q_rot) / q_rot.shape[-1] ** 0.5
    return model.rope(dk, -np.arange(dk.shape[2]))


@pytest.mark.parametrize("function", [keys_solution, keys_by_einsum])
def test_right_gradients_of_keys_are_accepted(function):
    assert backward_attention.check_keys(function).passed


def root(q):
    return np.sqrt(q.shape[-1])


@pytest.mark.parametrize(
    ("function", "hint"),
    [
        (lambda ds, q: None, "still needs its line"),  # noqa: ARG005
        (lambda ds, q: turn(ds) @ q / root(q), "rotate it back"),
        (lambda ds, q: model.rope(turn(ds) @ q / root(q)), "with inverse=True"),
        (lambda ds, q: model.rope(ds @ q / root(q), inverse=True), "transpose its last two axes"),
        (lambda ds, q: ds @ q / root(q), "two steps are missing"),
        (lambda ds, q: keys_solution(ds, q) * root(q), "factor 1 / sqrt(dh) is missing"),
        (lambda ds, q: keys_solution(ds, q) / root(q), "not by dh"),
        (lambda ds, q: turn(ds) @ q, "is missing, and the result"),
        (lambda ds, q: turn(ds) @ model.rope(q, inverse=True) / root(q), "not the queries"),
        (lambda ds, q: -keys_solution(ds, q), "Column j of dscores"),
        (
            lambda ds, q: keys_solution(ds, q).astype(np.float32),
            "Right to about 7 digits: compute in float64",
        ),
        (lambda ds, q: turn(ds) @ turn(q), "stopped with ValueError"),
        (
            lambda ds, q: keys_solution(ds, q).reshape(3, 2, 5, 6),
            "but not for dscores of shape (2, 3, 7, 7) and q_rot of shape (2, 3, 7, 4)",
        ),
    ],
)
def test_wrong_gradients_of_keys_are_rejected_with_a_hint(function, hint):
    verdict = backward_attention.check_keys(function)
    assert not verdict.passed
    assert hint in verdict.message, verdict


def queries(
    softmax_back=soft_back,
    in_scores=0.5,
    at_end=0.5,
    masked=True,
    k_of=lambda k: k,
    dp_of=lambda do, v: do @ turn(v),
):
    """The gradient of the queries, with a part exchanged."""

    def my_dq(do, q, k, v, mask):
        scores = q @ turn(k) / q.shape[-1] ** in_scores
        p = ops.softmax(np.where(mask, scores, -np.inf) if masked else scores)
        return softmax_back(p, dp_of(do, v)) @ k_of(k) / q.shape[-1] ** at_end

    return my_dq


def queries_by_the_library(do, q, k, v, mask):
    return model.attention_backward(do, model.attention(q, k, v, mask)[1])[0]


def queries_one_by_one(do, q, k, v, mask):
    dq = np.empty_like(q)
    for b, h, i in np.ndindex(q.shape[:3]):
        keys, values = k[b, h][mask[i]], v[b, h][mask[i]]
        p = ops.softmax(keys @ q[b, h, i] / np.sqrt(len(q[b, h, i])))
        dp = values @ do[b, h, i]
        dq[b, h, i] = (p * (dp - p @ dp)) @ keys / np.sqrt(len(q[b, h, i]))
    return dq


@pytest.mark.parametrize("function", [queries(), queries_by_the_library, queries_one_by_one])
def test_right_gradients_of_queries_are_accepted(function):
    assert backward_attention.check_queries(function).passed


@pytest.mark.parametrize(
    ("function", "hint"),
    [
        (lambda do, q, k, v, mask: None, "still needs its line"),  # noqa: ARG005
        (queries(masked=False), "The mask is not used"),
        (queries(at_end=0), "is missing at the end"),
        (queries(in_scores=0), "The scores that P is made of"),
        (queries(in_scores=0, at_end=0), "missing twice"),
        (queries(at_end=1), "is applied twice"),
        (queries(lambda p, dp: p * dp), "average of each row is missing"),
        (queries(lambda p, dp: p * (dp - dp.mean(axis=-1, keepdims=True))), "weighted by P"),
        (queries(lambda p, dp: p * (dp - (p * dp).sum(axis=-2, keepdims=True))), "along the keys"),
        (queries(lambda p, dp: dp), "from G_P to G_S"),  # noqa: ARG005
        (queries(k_of=lambda k: -k), "G_S K / sqrt(dh)"),
        (lambda *arrays: queries()(*arrays).astype(np.float32), "digits: compute in float64"),
        (queries(dp_of=lambda do, v: do @ v), "stopped with ValueError"),
        (
            lambda do, q, k, v, mask: queries()(do, q, k, v, mask).reshape(3, 2, 5, 6),
            "but not for do and q of shape (2, 3, 7, 4), k and v of shape (2, 3, 9, 4) and a mask of",
        ),
    ],
)
def test_wrong_gradients_of_queries_are_rejected_with_a_hint(function, hint):
    verdict = backward_attention.check_queries(function)
    assert not verdict.passed
    assert hint in verdict.message, verdict


@pytest.mark.parametrize("check", ["check_scores", "check_keys", "check_queries"])
def test_what_is_no_function_is_refused(check):
    verdict = getattr(backward_attention, check)(np.ones(3))
    assert not verdict.passed
    assert f"Give the function itself: {check}(" in verdict.message
