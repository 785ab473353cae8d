"""Each check accepts differently written right answers, and rejects the stub and the typical wrong ones."""

import numpy as np
import pytest

from labs.exercises import forward
from labs.llm import model, ops

LN = np.log


@pytest.mark.parametrize(
    ("probs", "nll", "loss"),
    [
        ([0.75, 0.5, 0.25], [0.29, 0.69, 1.39], 0.79),
        (np.array([3, 2, 1]) / 4, (LN(4 / 3), LN(2), LN(4)), LN(32 / 3) / 3),
    ],
)
def test_right_pencil_numbers_are_accepted(probs, nll, loss):
    assert forward.check_pencil(probs, nll, loss).passed


@pytest.mark.parametrize(
    ("probs", "nll", "loss", "hint"),
    [
        (None, None, None, "probs: still open; a list of 3 numbers"),
        ([0.75, 0.5, 0.75], None, None, "not the largest one"),
        ([0.75, 0.5, 0.25], [-0.29, -0.69, -1.39], None, "The minus is missing"),
        ([0.75, 0.5, 0.25], [0.42, 1, 2], None, "These are bits"),
        ([0.75, 0.5, 0.25], [0.29, 0.69, 1.39], None, "loss: still open; one number"),
        ([0.75, 0.5, 0.25], [0.29, 0.69, 1.39], 2.37, "number of positions"),
        ([0.75, 0.5, 0.25], [0.29, 0.69, 1.39], 0.69, "not the probabilities"),
    ],
)
def test_open_and_wrong_pencil_numbers_are_rejected_with_a_hint(probs, nll, loss, hint):
    verdict = forward.check_pencil(probs, nll, loss)
    assert not verdict.passed
    assert hint in verdict.message, verdict


def right_nll(logits, targets):
    centred = logits - logits.max(axis=-1, keepdims=True)
    log_p = centred - LN(np.exp(centred).sum(axis=-1, keepdims=True))
    B, T, _ = logits.shape
    return -log_p[np.arange(B)[:, None], np.arange(T), targets]


def nll_by_loops(logits, targets):
    out = np.empty(targets.shape)
    for place in np.ndindex(targets.shape):
        out[place] = np.logaddexp.reduce(logits[place]) - logits[place][targets[place]]
    return out


def nll_by_one_hot(logits, targets):
    one_hot = np.eye(logits.shape[-1])[targets]
    return np.logaddexp.reduce(logits, axis=-1) - (logits * one_hot).sum(axis=-1)


@pytest.mark.parametrize("nll", [right_nll, nll_by_loops, nll_by_one_hot])
def test_right_nll_are_accepted(nll):
    assert forward.check_nll(nll).passed


def nll_of_six_letters(logits, targets):
    one_hot = targets[..., None] == np.arange(6)
    return np.logaddexp.reduce(logits[..., :6], axis=-1) - (logits[..., :6] * one_hot).sum(axis=-1)


def at_targets(array, targets):
    return np.take_along_axis(array, targets[..., None], axis=-1)[..., 0]


@pytest.mark.parametrize(
    ("nll", "hint"),
    [
        (lambda logits, targets: None, "still needs its line"),  # noqa: ARG005
        (lambda logits, targets: -right_nll(logits, targets), "minus is missing"),
        (lambda logits, targets: at_targets(ops.softmax(logits), targets), "These are the probabilities"),
        (lambda logits, targets: right_nll(logits, targets) / LN(2), "bits"),
        (at_targets, "the softmax is missing"),
        (
            lambda logits, targets: -LN(at_targets(ops.softmax(logits, axis=1), targets)),
            "along the positions",
        ),
        (lambda logits, targets: right_nll(ops.softmax(logits), targets), "taken twice"),
        (lambda logits, targets: -LN(ops.softmax(logits).max(axis=-1)), "likeliest letters"),  # noqa: ARG005
        (
            lambda logits, targets: right_nll(logits, targets).mean(),
            "should return a plain NumPy array",
        ),
        (
            lambda logits, targets: np.full(targets.shape, right_nll(logits, targets).mean()),
            "do not average yet",
        ),
        (lambda logits, targets: -LN(ops.softmax(logits)), "should have the shape (3, 5); got (3, 5, 6)"),  # noqa: ARG005
        (lambda logits, targets: right_nll(logits, targets).T, "got (5, 3)"),
        (lambda logits, targets: right_nll(logits, targets[::-1]), "At position (1, 2)"),
        (lambda logits, targets: -LN(at_targets(ops.softmax(logits), targets)), "logits in the thousands"),
        (
            lambda logits, targets: LN(np.exp(logits).sum(axis=-1)) - at_targets(logits, targets),
            "logits in the thousands",
        ),
        (nll_of_six_letters, "but not for logits of shape (2, 7, 9) and targets of shape (2, 7)"),
    ],
)
def test_wrong_nll_are_rejected_with_a_hint(nll, hint):
    verdict = forward.check_nll(nll)
    assert not verdict.passed
    assert hint in verdict.message, verdict


def right_forward(params, ids, config):
    x = params["embedding"][ids]
    for l in range(config.n_layers):
        x, _ = model.block(x, model.block_weights(params, l), config)
    return ops.rms_norm(x, params["final_norm"], eps=config.norm_eps)[0] @ params["unembedding"]


def forward_by_rows(params, ids, config):
    x = np.eye(config.vocab_size)[ids] @ params["embedding"]
    for l in range(config.n_layers):
        w = model.block_weights(params, l)
        x = np.concatenate([model.block(row[np.newaxis], w, config)[0] for row in x])
    x = x / np.sqrt(np.mean(x**2, axis=-1, keepdims=True) + config.norm_eps)
    return np.einsum("btd,d,dv->btv", x, params["final_norm"], params["unembedding"])


@pytest.mark.parametrize(
    "my_forward", [right_forward, forward_by_rows, lambda *given: model.forward(*given)[0]]
)
def test_right_forwards_are_accepted(my_forward):
    assert forward.check_forward(my_forward).passed


def through(layers, finish=None):
    """A model that goes through these layers, and ends in its own way."""

    def my_forward(params, ids, config):
        x = params["embedding"][ids]
        for l in layers:
            x, _ = model.block(x, model.block_weights(params, l), config)
        if finish:
            return finish(x, params)
        return ops.rms_norm(x, params["final_norm"], eps=config.norm_eps)[0] @ params["unembedding"]

    return my_forward


def every_layer_from_the_start(params, ids, config):
    x = params["embedding"][ids]
    for l in range(config.n_layers):
        y, _ = model.block(x, model.block_weights(params, l), config)
    return ops.rms_norm(y, params["final_norm"], eps=config.norm_eps)[0] @ params["unembedding"]


def emptied(params, ids, config):
    logits = right_forward(params, ids, config)
    params.clear()
    return logits


def overwritten(params, ids, config):
    logits = right_forward(params, ids, config)
    params["blocks.1.w2"][3] = 0
    return logits


def norm_in_the_loop(params, ids, config):
    x = params["embedding"][ids]
    for l in range(config.n_layers):
        x, _ = model.block(x, model.block_weights(params, l), config)
        x, _ = ops.rms_norm(x, params["final_norm"], eps=config.norm_eps)
    return x @ params["unembedding"]


@pytest.mark.parametrize(
    ("my_forward", "hint"),
    [
        (lambda params, ids, config: None, "still needs its line"),  # noqa: ARG005
        (through([0]), "Only the first block"),
        (through([0, 0, 0]), "each has its own"),
        (through([2, 1, 0]), "wrong order"),
        (every_layer_from_the_start, "Every layer reads the embeddings"),
        (through([0, 1, 2], lambda x, params: x @ params["unembedding"]), "final norm is missing"),
        (
            through(
                [0, 1, 2], lambda x, params: ops.rms_norm(x, params["final_norm"])[0] @ params["unembedding"]
            ),
            "config.norm_eps",
        ),
        (norm_in_the_loop, "block after block"),
        (through([0, 1, 2]), "but not for ids of shape (2, 5) and a model of 4 layers"),
        (emptied, "writes into its argument: the caller's dict has changed"),
        (overwritten, "writes into its argument: the caller's dict has changed"),
        (through([0, 1]), "block after block"),
        (lambda *given: model.forward(*given), "should return a plain NumPy array; it returns tuple"),
        (
            lambda *given: right_forward(*given).argmax(axis=-1),
            "should have the shape (3, 7, 11); got (3, 7)",
        ),
    ],
)
def test_wrong_forwards_are_rejected_with_a_hint(my_forward, hint):
    verdict = forward.check_forward(my_forward)
    assert not verdict.passed
    assert hint in verdict.message, verdict
