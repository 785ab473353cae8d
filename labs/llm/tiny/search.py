"""Choose the weights of the course's example and write them down: `python -m labs.llm.tiny.search`.

Random weights rarely teach. With small ones every printed gradient is zero, with large ones attention looks
at one letter and at nothing else. This draws seed after seed, keeps the first draw that, rounded to two
decimals, keeps all of BOUNDS, trains it on the ten targets, and writes both sets to `weights.json`.
"""

import itertools
import math

import numpy as np

from labs.llm import arguments, tiny
from labs.llm.model import forward, loss_and_grads
from labs.llm.parameters import param_shapes, require_params

#: Standard deviations of the draw, by the last part of the key. Gains are uniform in GAINS.
SCALES = {
    "embedding": 0.8, "wq": 0.35, "wk": 0.35, "wv": 0.4, "wo": 0.4,
    "w1": 0.5, "w3": 0.5, "w2": 0.3, "unembedding": 0.25,
}  # fmt: skip
GAINS = (0.7, 1.3)

#: What each of the numbers of `measure` must lie between, ends included.
BOUNDS = {
    "smallest weight": (0.01, 1),
    "largest weight": (0, 0.9),
    "smallest entropy": (0.45, 1),
    "spread of entropy": (0.08, 1),
    "share of flat rows": (0, 0.2),
    "difference of heads": (0.35, 1),
    "winning columns": (3, 5),
    "effect of rope": (0.15, 0.6),
    "loss": (1.9, 2.5),
    "largest logit": (0, 3),
    "smallest activation": (5e-5, 6),
    "largest activation": (0, 6),
    "smallest gradient": (5e-5, 1),
    "faintest array": (0.05, 1),
    "strongest array": (0.05, 1),
    "nearest gain to one": (0.005, 0.3),
}

STEPS, LEARNING_RATE = 50, 0.5


def draw(seed):
    """Return one draw of the example's parameters, rounded to two decimals."""
    rng = arguments.as_rng("seed", seed)
    params = {}
    for key, shape in param_shapes(tiny.CONFIG).items():
        name = key.split(".")[-1]
        if name.endswith("norm"):
            params[key] = _rounded(rng.uniform(*GAINS, shape))
        else:
            params[key] = _rounded(SCALES[name] * rng.standard_normal(shape))
    return params


def _rounded(array):
    """Return the array to two decimals, without negative zeros."""
    return np.round(array, 2) + 0.0


def measure(params):
    """Return the numbers that decide whether the example teaches, by the names in BOUNDS.

    Attention weights and entropies are those of the positions i >= 1, which have a choice, over the positions
    they may read; an entropy is divided by that of equal weights, log(i + 1). Gradients are those of the
    parameters, in absolute value; an array is as strong as its largest one, and exact zeros do not count. The
    bound of 5e-5 lets nothing but an exact zero print as 0.0000.
    """
    logits, cache = forward(params, tiny.INPUT_IDS, tiny.CONFIG)
    _, unrotated = forward(params, tiny.INPUT_IDS, tiny.CONFIG, rotate=False)
    loss, grads = loss_and_grads(params, tiny.INPUT_IDS, tiny.TARGET_IDS, tiny.CONFIG)
    p, p_unrotated = (c.blocks[0].attention.p for c in (cache, unrotated))
    rows = [p[:, :, i, : i + 1] for i in range(1, p.shape[-1])]
    entropies = np.array([-(row * np.log(row)).sum(axis=-1) / math.log(row.shape[-1]) for row in rows])
    gradients = [np.abs(gradient) for gradient in grads.values()]
    gains = np.concatenate([array for key, array in params.items() if key.endswith("norm")])
    return {
        "smallest weight": min(row.min() for row in rows),
        "largest weight": max(row.max() for row in rows),
        "smallest entropy": entropies.min(),
        "spread of entropy": entropies.std(),
        "share of flat rows": (entropies > 0.97).mean(),
        "difference of heads": np.abs(p[:, 0] - p[:, 1]).max(),
        "winning columns": len(np.unique(p[:, :, 1:].argmax(axis=-1))),
        "effect of rope": np.abs(p - p_unrotated).max(),
        "loss": loss,
        "largest logit": np.abs(logits).max(),
        "smallest activation": min(np.abs(array).min() for array in _activations(cache)),
        "largest activation": max(np.abs(array).max() for array in _activations(cache)),
        "smallest gradient": min(gradient.min(where=gradient > 0, initial=np.inf) for gradient in gradients),
        "faintest array": min(gradient.max() for gradient in gradients),
        "strongest array": max(gradient.max() for gradient in gradients),
        "nearest gain to one": np.abs(gains - 1).min(),
    }


def attention_weights(params):
    """Return the attention weights of the example, (B, H, T, T)."""
    _, cache = forward(params, tiny.INPUT_IDS, tiny.CONFIG)
    return cache.blocks[0].attention.p


def _activations(cache):
    """Yield everything between the embedding and the logits."""
    for block in cache.blocks:
        yield from (block.attn_norm.x, block.z, block.q, block.k, block.v, block.joined)
        yield from (block.ffn_norm.x, block.n)
        yield from (block.swiglu.u, block.swiglu.gate, block.swiglu.up, block.hidden)
    yield from (cache.final_norm.x, cache.final)


def broken_bounds(params):
    """Return the names of the BOUNDS that these parameters do not keep."""
    measured = measure(params)
    return [name for name, (low, high) in BOUNDS.items() if not low <= measured[name] <= high]


def train(params):
    """Return the parameters after plain gradient descent on the ten targets, rounded to two decimals."""
    for _ in range(STEPS):
        _, grads = loss_and_grads(params, tiny.INPUT_IDS, tiny.TARGET_IDS, tiny.CONFIG)
        params = {key: array - LEARNING_RATE * grads[key] for key, array in params.items()}
    return {key: _rounded(array) for key, array in params.items()}


def as_text(seed, initial, trained):
    """Return the content of the weights file: JSON, with one row of a parameter on each line."""
    seed = arguments.require_size("seed", seed, least=0)
    for params in (initial, trained):
        require_params(params, tiny.CONFIG)
    return "\n".join(
        [
            "{",
            '"about": "Weights of the example, written by: python -m labs.llm.tiny.search",',
            f'"seed": {seed},',
            f'"initial": {_as_text(initial)},',
            f'"trained": {_as_text(trained)}',
            "}\n",
        ]
    )


def _as_text(params):
    entries = []
    for key, array in params.items():
        rows = ["[" + ", ".join(f"{value:5.2f}" for value in row) + "]" for row in np.atleast_2d(array)]
        body = rows[0] if array.ndim == 1 else "[\n    " + ",\n    ".join(rows) + "\n  ]"
        entries.append(f'  "{key}": {body}')
    return "{\n" + ",\n".join(entries) + "\n}"


def main():
    """Search, train, and write the weights file."""
    seed = next(seed for seed in itertools.count() if not broken_bounds(draw(seed)))
    initial = draw(seed)
    tiny.WEIGHTS_PATH.write_text(as_text(seed, initial, train(initial)), encoding="utf-8")
    for name, value in measure(initial).items():
        print(f"{name:20} {value:8.4f}   within {BOUNDS[name]}")


if __name__ == "__main__":
    main()
