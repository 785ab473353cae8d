"""Checks for the exercises on the whole model: a loss by pencil, the loss of each target, all layers."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from labs.exercises.block import random_params
from labs.exercises.language import say
from labs.exercises.pencil import Line, judge_numbers
from labs.exercises.verdict import RTOL, Case, Verdict, judge
from labs.llm import model
from labs.llm.model import ModelConfig
from labs.llm.ops import linear, rms_norm, softmax


def check_pencil(probs: Sequence[float] | None, nll: Sequence[float] | None, loss: float | None) -> Verdict:
    """Judge a loss by pencil: the targets' probabilities, their negative logarithms, the mean."""
    probs_right = np.array([3 / 4, 1 / 2, 1 / 4])
    right = -np.log(probs_right)
    return judge_numbers(
        {
            "probs": Line(
                probs,
                probs_right,
                {say("Take the probability of the target, not the largest one."): [3 / 4, 1 / 2, 3 / 4]},
            ),
            "nll": Line(
                nll,
                right,
                {
                    say("The minus is missing: minus the logarithm of a probability is above zero."): -right,
                    say("These are bits. Nats use the natural logarithm."): right / np.log(2),
                },
            ),
            "loss": Line(
                loss,
                right.mean(),
                {
                    say("Divide the sum by the number of positions."): right.sum(),
                    say("Average the negative log-likelihoods, not the probabilities."): -np.log(
                        probs_right.mean()
                    ),
                },
            ),
        },
        praise=say("Probabilities, negative log-likelihoods and their mean agree with the code."),
    )


def check_nll(my_nll: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Verdict:
    """Judge the negative log-likelihood of each target, (B,T) in nats: any sizes, then very large logits."""
    rng = np.random.default_rng(7)
    logits, targets = rng.normal(size=(3, 5, 6)), rng.integers(6, size=(3, 5))
    large = 1000 * logits + 5000
    return judge(
        my_nll,
        _nll_case(logits, targets),
        _nll_case(rng.normal(size=(2, 7, 9)), rng.integers(9, size=(2, 7))),
        Case(
            (large, targets),
            given=say("logits in the thousands"),
            expected=_nll(large, targets),
            hint=say(
                "Subtract the largest logit first, and take the logarithm of the sum instead of the "
                "probability, which can underflow to zero."
            ),
        ),
        call="check_nll(my_nll)",
        praise=say("Every target has its negative log-likelihood, at any size of the logits."),
        rtol=RTOL,
    )


def _nll_case(logits: np.ndarray, targets: np.ndarray) -> Case:
    right = _nll(logits, targets)
    p = softmax(logits)
    return Case(
        (logits, targets),
        given=say(
            "logits of shape {logits} and targets of shape {targets}",
            logits=logits.shape,
            targets=targets.shape,
        ),
        expected=right,
        traps={
            say("The minus is missing: minus the logarithm of a probability is above zero."): -right,
            say("These are the probabilities. Take minus their logarithm."): np.exp(-right),
            say("These are bits: use the natural logarithm."): right / np.log(2),
            say("These are the logits of the targets: the softmax is missing."): _chosen(logits, targets),
            say("The softmax runs along the positions. It belongs along the vocabulary."): (
                -np.log(_chosen(softmax(logits, axis=1), targets))
            ),
            say("The softmax is taken twice."): -np.log(_chosen(softmax(p), targets)),
            say("These belong to the likeliest letters, not to the targets."): -np.log(p.max(axis=-1)),
            say("Each position has its own negative log-likelihood: do not average yet."): np.full_like(
                right, right.mean()
            ),
        },
        hint=say("At position (1, 2): minus the logarithm of softmax(logits[1, 2])[targets[1, 2]]."),
    )


def check_forward(
    my_forward: Callable[[Mapping[str, np.ndarray], np.ndarray, ModelConfig], np.ndarray],
) -> Verdict:
    """Judge a whole model, my_forward(params, ids, config) -> logits, with three layers and with four."""
    rng = np.random.default_rng(8)
    three = ModelConfig(11, d_model=24, n_heads=4, n_layers=3, d_ff=20, norm_eps=0.1)
    four = ModelConfig(13, d_model=18, n_heads=3, n_layers=4, d_ff=25, norm_eps=0.2, rope_base=300.0)
    return judge(
        my_forward,
        _forward_case(three, rng.integers(three.vocab_size, size=(3, 7))),
        _forward_case(four, rng.integers(four.vocab_size, size=(2, 5))),
        call="check_forward(my_forward)",
        praise=say("From ids to logits, for any number of layers."),
        rtol=RTOL,
    )


def _forward_case(config: ModelConfig, ids: np.ndarray) -> Case:
    params = random_params(config)
    right, cache = model.forward(params, ids, config)
    y = cache.final_norm.x  # the stream after the last block
    layers = range(config.n_layers)

    def logits(layers: Sequence[int], eps: float = config.norm_eps) -> np.ndarray:
        """The model with these layers' weights, one after the other."""
        x = params["embedding"][ids]
        for l in layers:
            x, _ = model.block(x, model.block_weights(params, l), config)
        return linear(rms_norm(x, params["final_norm"], eps=eps)[0], params["unembedding"])

    return Case(
        (params, ids, config),
        given=say("ids of shape {ids} and a model of {layers} layers", ids=ids.shape, layers=config.n_layers),
        expected=right,
        traps={
            say("Only the first block is there: go through all config.n_layers of them."): logits([0]),
            say("Every layer uses the weights of layer 0: each has its own."): logits([0 for _ in layers]),
            say("The layers run in the wrong order."): logits(layers[::-1]),
            say("Every layer reads the embeddings: it should read what the layer before it gave."): (
                logits(layers[-1:])
            ),
            say("The final norm is missing."): y @ params["unembedding"],
            say("The final norm should use config.norm_eps."): logits(layers, eps=1e-5),
        },
        hint=say("Embedding, then block after block, then the final norm, then the unembedding."),
    )


def _chosen(array: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """The entry of each target, (B,T,V) -> (B,T)."""
    return np.take_along_axis(array, targets[..., np.newaxis], axis=-1)[..., 0]


def _nll(logits: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Minus the logarithm of each target's probability, without forming the probability."""
    centred = logits - logits.max(axis=-1, keepdims=True)
    return np.log(np.exp(centred).sum(axis=-1)) - _chosen(centred, targets)
