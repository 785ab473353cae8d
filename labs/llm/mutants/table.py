"""Which check catches which mistake: `python -m labs.llm.mutants` plants all of them and writes the table.

A mutant is this package with one mistake of `catalogue.py` in it. Every check looks at every mutant, on two
examples. The course's own is small and hides some mistakes: with B = H a swap of batch and head goes unseen,
with sqrt(dh) = H a wrong scale, with L = 1 everything about the order of layers. The other one, "distinct",
has sizes that are pairwise different. The table is `table.json`.
"""

import functools
import itertools
import json
import math
import warnings
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from labs.llm import checks
from labs.llm.checks import CANNOT_TELL, FAILED, PASSED, Finding
from labs.llm.mutants.catalogue import MISTAKES
from labs.llm.mutants.planting import ORIGINAL, plant

TABLE_PATH = Path(__file__).with_name("table.json")

#: How many entries of each array the gradient checks try: of an operation, of the block, of the model, and of
#: the model with its switches.
ENTRIES, BLOCK_ENTRIES, MODEL_ENTRIES, SWITCH_ENTRIES = 10, 3, 2, 1

#: Plain gradient descent for the check that only watches the loss.
TRAINING_STEPS, LEARNING_RATE = 20, 0.5


# The examples


class Example(NamedTuple):
    """A model and a batch for it."""

    name: str
    config: object  # the library's own ModelConfig
    params: dict[str, np.ndarray]
    ids: np.ndarray  # (B, T)
    targets: np.ndarray  # (B, T)
    source: np.ndarray  # what the rows were cut from, as for checks.targets_aligned


def tiny_example(library):
    """Return the course's example: B = H = 2, and L = 1."""
    tiny = library.tiny
    source = np.stack([tiny.encode(word) for word in tiny.WORDS])
    return Example("tiny", tiny.CONFIG, tiny.params(), tiny.INPUT_IDS, tiny.TARGET_IDS, source)


def distinct_example(library):
    """Return an example without coincidences: B, T, D, H, dh, F, V and L all differ, no gain is one.

    Neither the base nor eps is the default, and some tokens occur several times.
    """
    config = library.model.ModelConfig(
        vocab_size=11, d_model=24, n_heads=4, n_layers=2, d_ff=20, rope_base=300.0, norm_eps=1e-3
    )
    rng = np.random.default_rng(3)
    params = library.model.init_params(config, rng)
    for key, array in params.items():
        if key.endswith("norm"):
            array *= rng.uniform(0.7, 1.3, array.shape)
    text = rng.integers(0, config.vocab_size, 40)
    ids, targets = library.data.draw_batch(text, 3, 7, rng)
    return Example("distinct", config, params, ids, targets, text)


#: The examples by name.
EXAMPLES = {"tiny": tiny_example, "distinct": distinct_example}


# What the checks are pointed at


def logits_of(library, example):
    """Return the function from ids (B, T) to logits (B, T, V)."""
    return lambda ids: library.model.forward(example.params, ids, example.config)[0]


def loss_and_grads_of(library, example):
    """Return the function from params to (loss, grads)."""
    return lambda params: library.model.loss_and_grads(params, example.ids, example.targets, example.config)


class Pair(NamedTuple):
    """A forward and a backward function with the arrays to call them with, as for checks.gradcheck."""

    forward: object
    backward: object
    arrays: object
    entries: int = ENTRIES


def _switches(T):
    """Return a mask (each position reads itself and every other one) and uneven positions for T tokens."""
    distance = np.subtract.outer(np.arange(T), np.arange(T))
    return {"mask": distance % 2 == 0, "positions": np.arange(T) ** 1.5}


def pairs(library, example):
    """Return every forward and backward of the package by name, with random arrays of the example's sizes."""
    ops, model, config = library.ops, library.model, example.config
    targets, (B, T), rng = example.targets, example.ids.shape, np.random.default_rng(1)
    D, H, F, V, dh = config.d_model, config.n_heads, config.d_ff, config.vocab_size, config.d_head
    x, gain = rng.standard_normal((B, T, D)), rng.uniform(0.7, 1.3, D)
    scores = rng.standard_normal((B, H, T, T))
    q, k, v = (rng.standard_normal((B, H, T, dh)) for _ in range(3))
    w1, w3, w2 = (rng.standard_normal(shape) / math.sqrt(shape[0]) for shape in ((D, F), (D, F), (F, D)))
    weights = model.block_weights(example.params, 0)
    mask = np.tri(T, dtype=bool)
    switches, two_each = _switches(T), np.stack([targets, targets[:, ::-1]], axis=1)

    def linear(x, weight):
        return ops.linear(x, weight), (x, weight)

    def softmax(scores):
        p = ops.softmax(scores)
        return p, p

    def block(arrays):
        weights = model.BlockWeights(*(arrays[name] for name in model.BlockWeights._fields))
        return model.block(arrays["x"], weights, config)

    def block_backward(dy, cache):
        dx, dweights = model.block_backward(dy, cache)
        return {"x": dx, **dweights._asdict()}

    def losses(one, many):
        found = [ops.cross_entropy(one, targets[0, 0]), ops.cross_entropy(many, two_each)]
        return np.array([loss for loss, _ in found]), [cache for _, cache in found]

    def losses_backward(dlosses, caches):
        return [ops.cross_entropy_backward(*each) for each in zip(dlosses, caches, strict=True)]

    def loss(params, **switches):
        logits, forward_cache = model.forward(params, example.ids, config, **switches)
        loss, loss_cache = ops.cross_entropy(logits, targets)
        return loss, (forward_cache, loss_cache)

    def loss_backward(dloss, caches):
        return model.backward(ops.cross_entropy_backward(dloss, caches[1]), caches[0])

    return {
        "linear": Pair(linear, lambda dy, given: ops.linear_backward(dy, *given), (x, w1)),
        "embedding": Pair(
            lambda table: ops.embedding(example.ids, table),
            ops.embedding_backward,
            (rng.standard_normal((V, D)),),
            entries=60,
        ),
        "rms_norm": Pair(ops.rms_norm, ops.rms_norm_backward, (x, gain)),
        "softmax": Pair(softmax, ops.softmax_backward, (scores,)),
        "silu": Pair(lambda x: (ops.silu(x), x), ops.silu_backward, (x,)),
        "cross_entropy": Pair(
            lambda logits: ops.cross_entropy(logits, targets),
            ops.cross_entropy_backward,
            (rng.standard_normal((B, T, V)),),
        ),
        "cross_entropy of other axes": Pair(
            losses, losses_backward, (rng.standard_normal(V), rng.standard_normal((B, 2, T, V)))
        ),
        "heads": Pair(lambda x: (model.split_heads(x, H), None), lambda dy, _: model.merge_heads(dy), (x,)),
        "rope": Pair(lambda x: (model.rope(x), None), lambda dy, _: model.rope(dy, inverse=True), (q,)),
        "attention": Pair(
            lambda q, k, v: model.attention(q, k, v, mask), model.attention_backward, (q, k, v)
        ),
        "swiglu": Pair(model.swiglu, model.swiglu_backward, (x, w1, w3, w2)),
        "block": Pair(block, block_backward, {"x": x, **weights._asdict()}, BLOCK_ENTRIES),
        "model": Pair(loss, loss_backward, example.params, MODEL_ENTRIES),
        "model with mask and positions": Pair(
            lambda params: loss(params, **switches), loss_backward, example.params, SWITCH_ENTRIES
        ),
        "model without rotation": Pair(
            lambda params: loss(params, rotate=False), loss_backward, example.params, SWITCH_ENTRIES
        ),
    }


# The checks


def check_shapes(library, example):
    """Logits are (B, T, V), heads (B, H, T, dh), and a gradient has the shape and dtype of its parameter."""
    config, (B, T) = example.config, example.ids.shape
    x = np.zeros((B, T, config.d_model))
    heads = library.model.split_heads(x, config.n_heads)
    _, grads = loss_and_grads_of(library, example)(example.params)
    found = {
        "logits": logits_of(library, example)(example.ids),
        "split_heads": heads,
        "merge_heads": library.model.merge_heads(np.zeros((B, config.n_heads, T, config.d_head))),
        **grads,
    }
    expected = {
        "logits": (B, T, config.vocab_size),
        "split_heads": (B, config.n_heads, T, config.d_head),
        "merge_heads": x.shape,
        **{key: array.shape for key, array in example.params.items()},
    }
    if found.keys() != expected.keys():
        return Finding(FAILED, f"no gradient for {sorted(expected.keys() - found.keys())}")
    for key, shape in expected.items():
        if found[key].shape != shape or found[key].dtype != np.float64:
            return Finding(
                FAILED, f"{key} must be float64 {shape}, got {found[key].dtype} {found[key].shape}"
            )
    return Finding(PASSED, f"{len(expected)} shapes are right")


def check_hand_values(library, _):
    """Each forward operation gives what one works out by hand for two or three small numbers."""
    ops, model = library.ops, library.model
    rows = np.arange(8.0).reshape(1, 2, 4)
    heads = np.array([[[[0.0, 1], [4, 5]], [[2, 3], [6, 7]]]])
    keys = np.array([[0.0, 0, 0, 0], [2 * math.log(3), 0, 0, 0]])[np.newaxis, np.newaxis]
    one = np.ones((1, 1))
    silu_of_one = 1 / (1 + math.exp(-1))
    angles = np.array([1, 1 / 100])
    found = {
        "linear": ops.linear(np.array([1.0, 2]), np.array([[1.0, 2], [3, 4]])),
        "embedding": ops.embedding(np.array([1, 1, 0]), np.array([[1.0, 2], [3, 4]]))[0],
        "rms_norm": ops.rms_norm(np.array([3.0, 5]), np.array([1.0, 2]), eps=8)[0],
        "softmax": ops.softmax(np.array([[0, math.log(3)], [math.log(4), 0]])),
        "silu": ops.silu(np.array([0.0, 1, -1])),
        "cross_entropy": ops.cross_entropy(np.array([[0, math.log(3)], [0.0, 0]]), np.array([1, 0]))[0],
        "split_heads": model.split_heads(rows, 2),
        "merge_heads": model.merge_heads(heads),
        "rope": model.rope(np.array([[1.0, 2, 3, 4], [1, 0, 0, 1]])),
        "causal_mask": model.causal_mask(2, 3).astype(float),
        "padding_mask": model.padding_mask(np.array([[True, True, False]])).astype(float),
        "attention": model.attention(np.ones((1, 1, 1, 4)), keys, keys, np.ones((1, 2), bool))[0],
        "swiglu": model.swiglu(one, one, 2 * one, 3 * one)[0],
    }
    cos, sin = np.cos(angles), np.sin(angles)
    expected = {
        "linear": np.array([7.0, 10]),
        "embedding": np.array([[3.0, 4], [3, 4], [1, 2]]),
        "rms_norm": np.array([3.0, 10]) / 5,
        "softmax": np.array([[0.25, 0.75], [0.8, 0.2]]),
        "silu": np.array([0, silu_of_one, silu_of_one - 1]),
        "cross_entropy": (math.log(4 / 3) + math.log(2)) / 2,
        "split_heads": heads,
        "merge_heads": rows,
        "rope": np.array([[1.0, 2, 3, 4], [cos[0], sin[0], -sin[1], cos[1]]]),
        "causal_mask": np.array([[1.0, 1, 0], [1, 1, 1]]),
        "padding_mask": np.array([[[[1.0, 1, 0]]]]),
        "attention": 0.75 * keys[..., 1:, :],
        "swiglu": 6 * silu_of_one * one,
    }
    return checks.agreement(found, expected)


def check_extremes(library, _):
    """No overflow and no NaN: scores of +-1000, silu of +-800, a zero vector, vectors of 300s."""
    ops = library.ops
    wide = np.array([[1000.0, -1000], [-1000, -1001]])
    try:
        with np.errstate(divide="raise", over="raise", invalid="raise"):
            found = {
                "softmax": ops.softmax(wide),
                "cross_entropy": ops.cross_entropy(wide[:1], np.array([1]))[0],
                "silu": ops.silu(np.array([-800.0, 800])),
                "norm of zero": ops.rms_norm(np.zeros(2), np.ones(2))[0],
                "norm of 300": ops.rms_norm(np.full(2, 300.0), np.ones(2))[0],
            }
    except FloatingPointError as error:
        return Finding(FAILED, str(error))
    e = math.exp(-1)
    expected = {
        "softmax": np.array([[1, 0], [1 / (1 + e), e / (1 + e)]]),
        "cross_entropy": 2000.0,
        "silu": np.array([0, 800.0]),
        "norm of zero": np.zeros(2),
        "norm of 300": np.ones(2),
    }
    return checks.agreement(found, expected, rtol=1e-3)


def check_initialisation(library, example):
    """A new model guesses evenly, so its loss is close to log V, and no two of its matrices are equal."""
    params = library.model.init_params(example.config, 0)
    loss, _ = loss_and_grads_of(library, example)(params)
    log_v = math.log(example.config.vocab_size)
    if abs(loss - log_v) > 0.1 * log_v:
        return Finding(FAILED, f"the first loss is {loss:.3f}, but log V = {log_v:.3f}", {"loss": loss})
    for (one, a), (other, b) in itertools.combinations(params.items(), 2):
        if a.ndim == 2 and np.array_equal(a.ravel()[:8], b.ravel()[:8]):
            return Finding(FAILED, f"{one} and {other} begin with the same numbers")
    return Finding(PASSED, f"the first loss is {loss:.3f}, close to log V", {"loss": loss})


def check_training(library, example):
    """The loss falls by a third in a few steps of gradient descent: what one sees without a check."""
    params, losses = dict(example.params), []
    for _ in range(TRAINING_STEPS):
        loss, grads = loss_and_grads_of(library, example)(params)
        losses.append(float(loss))
        params = {key: array - LEARNING_RATE * grads[key] for key, array in params.items()}
    fell = losses[-1] < losses[0] * 2 / 3
    return Finding(
        PASSED if fell else FAILED,
        f"the loss goes from {losses[0]:.3f} to {losses[-1]:.3f}",
        {"losses": losses},
    )


def values(library, example):
    """Return logits, loss and gradients by name: what agreement compares."""
    loss, grads = loss_and_grads_of(library, example)(example.params)
    return {"logits": logits_of(library, example)(example.ids), "loss": loss} | {
        f"gradient of {key}": gradient for key, gradient in grads.items()
    }


@functools.cache
def original_example(name):
    """Return an example of the package itself, and its values. The tests hold them to PyTorch's and JAX's."""
    example = EXAMPLES[name](ORIGINAL)
    return example, values(ORIGINAL, example)


def check_agreement(library, example):
    """Logits, loss and gradients are those of another implementation: the package without the mistake."""
    original, expected = original_example(example.name)
    config = library.model.ModelConfig(**vars(original.config))
    return checks.agreement(values(library, original._replace(config=config)), expected)


def check_shift_invariance(library, example):
    """Positions shifted by three give the same logits, stretched ones do not."""

    def logits(positions):
        return library.model.forward(example.params, example.ids, example.config, positions=positions)[0]

    return checks.shift_invariance(logits, example.ids.shape[1])


def check_switches(library, example):
    """The given mask, the given positions and the missing rotation act in every layer.

    Tokens in another order, with mask and positions to match, give the same logits in that order. Where all
    positions are equal, rotating is the same as not rotating.
    """
    T = example.ids.shape[1]
    switches, order = _switches(T), np.random.default_rng(4).permutation(T)
    moved = {"mask": switches["mask"][order][:, order], "positions": switches["positions"][order]}

    def logits(ids, **switches):
        return library.model.forward(example.params, ids, example.config, **switches)[0]

    found = {
        "logits in another order": logits(example.ids[:, order], **moved),
        "logits at one position": logits(example.ids, positions=np.full(T, 2.0)),
    }
    expected = {
        "logits in another order": logits(example.ids, **switches)[:, order],
        "logits at one position": logits(example.ids, rotate=False),
    }
    return checks.agreement(found, expected)


def check_causality(library, example):
    """No position reads ahead, whatever the token; nor with queries so loud that scores pass beyond -50."""
    loud = {key: array * (100 if key.endswith("wq") else 1) for key, array in example.params.items()}
    finding = checks.causality(logits_of(library, example), example.ids, example.config.vocab_size)
    if finding:  # two letters are enough for the rest
        return checks.causality(logits_of(library, example._replace(params=loud)), example.ids % 2)
    return finding


def check_refusals(library, example):
    """What is no valid input is refused, for NumPy would make numbers of it without a word."""
    ops, model = library.ops, library.model
    floats, ints = np.ones((2, 2)), np.ones((2, 2), np.int64)
    heads, nothing = np.ones((1, 1, 2, 2)), np.array([[True, False], [False, False]])
    calls = {
        "linear takes integers": lambda: ops.linear(ints, floats),
        "linear takes an integer weight": lambda: ops.linear(floats, ints),
        "embedding takes an id of -1": lambda: ops.embedding(-ints, floats),
        "rms_norm takes a gain of another size": lambda: ops.rms_norm(floats, np.ones(1)),
        "softmax takes a row of -inf": lambda: ops.softmax(np.full(2, -np.inf)),
        "silu takes integers": lambda: ops.silu(ints),
        "cross_entropy takes a target of -1": lambda: ops.cross_entropy(floats, -ints[0]),
        "rope takes an odd width": lambda: model.rope(np.ones((2, 3))),
        "attention takes a query that may read nothing": lambda: model.attention(
            heads, heads, heads, nothing
        ),
        "forward takes floats for ids": lambda: model.forward(
            example.params, example.ids * 1.0, example.config
        ),
    }
    taken = [what for what, call in calls.items() if not _refuses(call)]
    if taken:
        return Finding(FAILED, "; ".join(taken))
    return Finding(PASSED, f"{len(calls)} invalid calls are refused")


def _refuses(call):
    try:
        call()
    except (TypeError, ValueError):
        return True
    except Exception:  # a crash is no refusal
        return False
    return False


def check_no_shared_arrays(library, example):
    """New parameters do not share memory."""
    return checks.no_shared_arrays(library.model.init_params(example.config, 0))


def check_arguments(library, example):
    """No forward or backward pass writes into what it was given, and backward can be called twice."""
    for name, pair in pairs(library, example).items():
        rng = np.random.default_rng(2)
        finding = checks.leaves_arguments_alone(pair.forward, pair.backward, pair.arrays, rng)
        if not finding:
            return replace(finding, message=f"{name}: {finding.message}")
    return finding


def check_gradients(name, library, example):
    """Gradients against central differences, an entry at a time."""
    pair = pairs(library, example)[name]
    rng = np.random.default_rng(2)
    return checks.gradcheck(pair.forward, pair.backward, pair.arrays, rng, entries=pair.entries)


def check_taylor_slope(library, example):
    """All gradients at once against the change of the loss along a random direction."""
    pair = pairs(library, example)["model"]
    return checks.taylor_slope(pair.forward, pair.backward, pair.arrays, np.random.default_rng(2))


def check_parameters_learn(library, example):
    """Every parameter array receives a gradient and changes in one step."""
    return checks.every_parameter_learns(loss_and_grads_of(library, example), example.params)


def check_targets(_, example):
    """Each target is the token that follows its input."""
    return checks.targets_aligned(example.ids, example.targets, example.source)


def _on_logits(check):
    """Return a check of a function of ids as one of a library and an example."""
    return lambda library, example: check(logits_of(library, example), example.ids)


#: Every pair has its gradients checked.
GRADCHECKED = tuple(pairs(ORIGINAL, tiny_example(ORIGINAL)))

#: The checks by name, each a function of a library and an example: first what everybody does.
CHECKS = {
    "training": check_training,
    "initialisation": check_initialisation,
    "shapes": check_shapes,
    "causality": check_causality,
    "sensitivity": _on_logits(checks.sensitivity),
    "batch_independence": _on_logits(checks.batch_independence),
    "order_matters": _on_logits(checks.order_matters),
    "shift_invariance": check_shift_invariance,
    "switches": check_switches,
    "no_shared_arrays": check_no_shared_arrays,
    "every_parameter_learns": check_parameters_learn,
    "targets_aligned": check_targets,
    "leaves_arguments_alone": check_arguments,
    "hand values": check_hand_values,
    "extremes": check_extremes,
    "refusals": check_refusals,
    **{f"gradcheck {name}": functools.partial(check_gradients, name) for name in GRADCHECKED},
    "taylor_slope": check_taylor_slope,
    "agreement": check_agreement,
}


# The table

#: What the table calls a Finding's verdict on a mistake.
VERDICTS = {PASSED: "passed", FAILED: "caught", CANNOT_TELL: "cannot tell"}


def examine(library, names=tuple(CHECKS)):
    """Return what each check says of a library, by example and check.

    Returns: a dict {example: {check: "passed", "caught", "cannot tell" or "raised"}}. A check has caught the
        mistake if its Finding FAILED; "raised" if an error or a warning kept it from its work.
    """
    verdicts = {}
    for example_name, make in EXAMPLES.items():
        example = make(library)
        verdicts[example_name] = {name: _verdict(CHECKS[name], library, example) for name in names}
    return verdicts


def _verdict(check, library, example):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return VERDICTS[check(library, example).verdict]
        except Exception:  # whatever a mutant does
            return "raised"


def row(mistake):
    """Return a mistake as the table describes it: what it is, and which checks notice it on which example."""
    found = {"name": mistake.name, "story": mistake.story, "where": mistake.where, "diff": mistake.diff}
    for example_name, verdicts in examine(plant(mistake)).items():
        found[example_name] = {
            outcome: [name for name, verdict in verdicts.items() if verdict == outcome]
            for outcome in ("caught", "cannot tell", "raised")
        }
    return found


def load_table():
    """Return the stored table: a dict with the lists "checks" and "mistakes", the latter as from `row`."""
    return json.loads(TABLE_PATH.read_text(encoding="utf-8"))


def as_text(rows):
    """Return the content of the table's file: JSON, with one fact on each line."""
    mistakes = []
    for facts in rows:
        lines = [f"    {json.dumps(key)}: {json.dumps(value)}" for key, value in facts.items()]
        mistakes.append("  {\n" + ",\n".join(lines) + "\n  }")
    head = [
        '"about": "Which check catches which mistake, written by: python -m labs.llm.mutants"',
        f'"checks": {json.dumps(list(CHECKS))}',
        f'"examples": {json.dumps(list(EXAMPLES))}',
        '"mistakes": [\n' + ",\n".join(mistakes) + "\n]",
    ]
    return "{\n" + ",\n".join(head) + "\n}\n"


def main():
    """Plant every mistake, write the table, and print how many each check caught."""
    rows = [row(mistake) for mistake in MISTAKES]
    TABLE_PATH.write_text(as_text(rows), encoding="utf-8")
    print(f"caught of {len(rows)} mistakes".ljust(26), *(f"{example:>10}" for example in EXAMPLES))
    for name in CHECKS:
        counts = [sum(name in facts[example]["caught"] for facts in rows) for example in EXAMPLES]
        print(f"{name:26}", *(f"{count:10}" for count in counts))
