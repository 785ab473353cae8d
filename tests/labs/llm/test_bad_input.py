"""Every public function of labs.llm against arguments of the wrong kind: it refuses, in words of its own.

A row of CALLS is a call that works, with the kind of each argument. From the kind follow the values that must
be refused one at a time. A refusal is right if it is a TypeError or a ValueError (for a path also an OSError)
that a `raise` statement of this package raised, so neither NumPy nor Python; if it names the argument; and if
it is short. Functions are found by looking, so that a new one without a row is noticed.
"""

import ast
import functools
import importlib
import inspect
import pkgutil
import traceback
from pathlib import Path

import numpy as np
import pytest

import labs.llm
from labs.llm import arguments, checks, costs, generate, model, ops, parameters, tiny, trace
from labs.llm.mutants import torch_jax
from labs.llm.tiny import search
from labs.llm.trace import formula
from labs.llm.training import checkpoint, data, optim, train

#: Modules whose functions have no rows: they take what this package has made itself.
NOT_COVERED = {f"labs.llm.mutants.{name}" for name in ("__main__", "catalogue", "planting", "table")}
NOT_COVERED |= {"labs.llm.trace.recipes"}

#: The longest message, in characters.
LONGEST = 700

# A model, and everything that its functions hand on

RNG = np.random.default_rng(0)
B, T, D, H, F, V, L = 2, 3, 8, 2, 5, 7, 2
CONFIG = parameters.ModelConfig(V, d_model=D, n_heads=H, n_layers=L, d_ff=F)
PARAMS = parameters.init_params(CONFIG, 0)
WEIGHTS = parameters.block_weights(PARAMS, 0)
IDS, TARGETS = RNG.integers(0, V, (2, B, T))
X, U = RNG.standard_normal((B, T, D)), RNG.standard_normal((B, T, F))
HEADS = model.split_heads(X, H)
MASK = model.causal_mask(T)
LOGITS, FORWARD = model.forward(PARAMS, IDS, CONFIG)
P = ops.softmax(LOGITS)
LOSS, LOSS_CACHE = ops.cross_entropy(LOGITS, TARGETS)
GRADS = model.backward(ops.cross_entropy_backward(1.0, LOSS_CACHE), FORWARD)
STATE = optim.adamw_init(PARAMS)
ADAMW = optim.AdamWConfig()
_, KV_CACHE = generate.extend(PARAMS, IDS, CONFIG)
CORPUS = data.build_corpus("she sells sea shells by the sea shore " * 3, 0.3)
SETTINGS = train.TrainConfig(steps=20, batch_size=B, context=T)
START = train.start(parameters.ModelConfig(len(CORPUS.vocabulary), d_model=D), CORPUS.vocabulary, 0)
TREE = formula.parse("k[t] + T", "t")
TINY = tiny.params()

# What each kind of argument must refuse, given a value that is right

STRUCTURED = np.zeros(2, [(f"field{i}", float) for i in range(1000)])
LONG = "x" * 100_000
UNEVEN = [[1.0], [2.0, 3.0]]


def no_array(good):
    """What is no array at all, or not a plain one."""
    return [
        None,
        good.tolist() or [],
        LONG,
        {},
        {1},
        3j,
        object(),
        UNEVEN,
        np.ma.masked_equal(good, good.flat[0]),
    ]


def floats(good):
    """No float32 and no float64."""
    foreign = good.astype(good.dtype.newbyteorder())
    others = [good.astype(dtype) for dtype in (np.int64, np.float16, complex, bool, object, str)]
    return [*no_array(good), *others, foreign, STRUCTURED, np.longdouble(1) * good]


def ranked(good):
    """One axis too many, one too few, none left."""
    return [*floats(good), good[np.newaxis], good[0], good[:0]]


def gradient(good):
    """No float, or not of the forward result's shape."""
    return [*ranked(good), good[:1]]


def vectors(good):
    """Any axes, but the last of another size, or none."""
    return [*floats(good), good[..., :-1], good[..., :0], np.array(1.0)]


def axes(good):
    """Numbers of any dtype, with so many axes."""
    return [*no_array(good), good[np.newaxis], good[0], good[:0]]


def integers(good):
    """No integers."""
    return [*no_array(good), good.astype(float), good.astype(bool), good.astype(object), STRUCTURED]


def ids(good):
    """No integers, out of range, or with another number of axes."""
    return [*integers(good), good - 100, good + 100, good[np.newaxis], good[0], good[:0]]


def ids_of_a_row(good):
    """As ids, in one axis."""
    return ids(good)[:-2]


def text_ids(good):
    """A text, but too short, or with another number of axes."""
    return [*integers(good), good[np.newaxis], good[:1], good[:0]]


def booleans(good):
    """No booleans, with another number of axes, or none."""
    others = [good.astype(int), good.astype(float), good.astype(object)]
    return [*no_array(good), *others, good[np.newaxis], good[0], good[:0], STRUCTURED]


def mask(good):
    """No mask for these scores."""
    return [*(wrong for wrong in booleans(good) if wrong is not None), good[:, :2], ~good & ~good.T]


def dictionary(good):
    """No dict, or one without, or with other, arrays."""
    key = next(iter(good))
    arrays = [None, [[1.0]], LONG, 3, good[key][np.newaxis], good[key].astype(np.float16), STRUCTURED]
    changed = [{**good, key: array} for array in arrays]
    return [None, [*good], LONG, 3, {}, {**good, LONG: 1}, {**good, 3: 1}, *changed]


def arrays_by_name(good):
    """No dict of arrays; any names and shapes would do."""
    key = next(iter(good))
    return [None, [*good], LONG, 3, *({**good, key: array} for array in (None, [[1.0]], LONG, STRUCTURED))]


def of_its_type(good):
    """Something else, and its contents without its type."""
    return [None, {}, (), LONG, 3, type(good), vars(good) if hasattr(good, "__dict__") else tuple(good)]


def cache(good):
    """Nothing, or the cache of another operation."""
    other = ops.EmbeddingCache(None, None) if not isinstance(good, ops.EmbeddingCache) else FORWARD
    return [*of_its_type(good), other, KV_CACHE]


def size(good, least=1):
    """No whole number, or too small."""
    wrong = [
        least - 1,
        -1,
        -(10**5000),
        10**5000,
        2.0,
        True,
        np.True_,
        "2",
        LONG,
        None,
        [2],
        np.ones(2, int),
        np.nan,
    ]
    return [*wrong, np.float64(good), 2j, {}]


def count(good):
    """As for a size, but zero is right."""
    return size(good, least=0)


def number(good):  # noqa: ARG001
    """No positive real number."""
    return [0, -1.0, np.nan, np.inf, -np.inf, 10**5000, True, "1", LONG, None, [1.0], np.ones(2), 1j, {}]


def real(good):
    """No real number at all."""
    return number(good)[6:]


def share(good):
    """Not in [0, 1)."""
    return [*number(good)[1:], 1.0]


def at_least_zero(good):
    """Negative or not finite."""
    return number(good)[1:]


def flag(good):  # noqa: ARG001
    """No bool: it would count as one."""
    return ["no", LONG, 0, 1, None, [], np.ones(2, bool)]


def axis(good):  # noqa: ARG001
    """No axis of the array."""
    return [9, -9, 10**5000, 1.0, True, None, (0, 1), [0], "0"]


def rng(good):  # noqa: ARG001
    """No generator, such as the modules and classes of old."""
    return [None, 0, np.random, np.random.RandomState(0), LONG]


def seed(good):  # noqa: ARG001
    """Nothing that repeats a draw."""
    return [None, -1, 1.0, "0", LONG, True, [0], 10**5000]


def text(good):  # noqa: ARG001
    """No str, or an empty one."""
    return [None, b"ab", "", 3, ["a"], np.array(["a"]), {}]


def vocabulary(good):  # noqa: ARG001
    """Without an order, or not of distinct characters."""
    return [
        None,
        set("ab"),
        {"a": 0},
        3,
        iter("ab"),
        ("a", "a"),
        ("ab",),
        (1, 2),
        ([],),
        (LONG,),
        [*range(10**5)],
    ]


def dtype(good):  # noqa: ARG001
    """None of the two."""
    return [None, np.float16, int, "nonsense", LONG, 3, object(), [("a", float)]]


def path(good):  # noqa: ARG001
    """Nothing that names a file in a folder that is there."""
    return [None, 3, b"x", [], "nowhere/at/all.npz", "with\0zero", str(Path(__file__).parent)]


def positions(good):
    """Not T real numbers that float64 tells apart."""
    wrong = [good.astype(np.float16), good * 1j, good.astype(str), good * np.nan, good + 2.0**53, STRUCTURED]
    return [
        *wrong,
        good[:-1],
        good[np.newaxis],
        [0, [1], 2],
        ["a", "b", "c"],
        LONG,
        3,
        {},
        np.ma.masked_equal(good, 0),
    ]


def name_of(good):  # noqa: ARG001
    """No name that is known."""
    return [None, 3, "nonsense", LONG, [], {}]


def tree(good):  # noqa: ARG001
    """Not what parse returns."""
    return [None, 3, LONG, [], ["+"], ["?", LONG], ["number"], ["at", "k", []], {}]


def mapping(good):  # noqa: ARG001
    """No dict."""
    return [None, 3, LONG, []]


def function(good):  # noqa: ARG001
    """Nothing that can be called."""
    return [3, "f", [], {}]


def logits(ids):
    """The model that the checks are shown."""
    return model.forward(PARAMS, ids, CONFIG)[0]


# The calls: for each function its arguments by name, each a pair (a right value, its kind)


def given(value):
    """An argument that is not tried: another row tries it, or every value is right."""
    return value, None


MODEL = {"params": (PARAMS, dictionary), "ids": (IDS, ids), "config": (CONFIG, of_its_type)}
SWITCHES = {"mask": (MASK, mask), "positions": (np.arange(T), positions), "rotate": (True, flag)}
SCHEDULE = {"peak": (0.5, number), "floor": (0.1, at_least_zero), "warmup_steps": (2, count)}
COSTS = {"config": (CONFIG, of_its_type), "B": (B, size), "T": (T, size), "dtype": (np.float32, dtype)}
OPTIONS = {"temperature": (1.0, at_least_zero), "top_k": (2, size), "top_p": (0.5, number)}
EVALUATED = {"tree": (TREE, tree), "sizes": ({"T": 3}, mapping), "index": ({"t": 0}, mapping)}
GRADCHECK = {
    "forward": given(lambda x: (ops.silu(x), x)),
    "backward": given(ops.silu_backward),
    "arrays": ((np.ones(3),), lambda good: [None, 3, {}]),  # noqa: ARG005
    "rng": (RNG, rng),
}
ASKED = {
    "function": given(logits),
    "ids": (IDS, lambda good: ids(good)[-3:]),
    "vocab_size": (V, lambda good: [wrong for wrong in size(good) if wrong is not None]),
}


def without_none(kind):
    """The kind of an argument for which None is right."""
    return lambda good: [wrong for wrong in kind(good) if wrong is not None]


def optional(arguments, *names):
    """The arguments, with None right for some of them."""
    return arguments | {name: (arguments[name][0], without_none(arguments[name][1])) for name in names}


CALLS = {
    ops.linear: {"x": (X, vectors), "weight": (WEIGHTS.w1, ranked)},
    ops.linear_backward: {"dy": (U, gradient), "x": (X, vectors), "weight": (WEIGHTS.w1, ranked)},
    ops.embedding: {"ids": (IDS, lambda good: ids(good)[:-3]), "table": (PARAMS["embedding"], ranked)},
    ops.embedding_backward: {"dx": (X, gradient), "cache": (FORWARD.embedding, cache)},
    ops.rms_norm: {"x": (X, vectors), "gain": (WEIGHTS.attn_norm, ranked), "eps": (1e-5, number)},
    ops.rms_norm_backward: {"dy": (X, gradient), "cache": (FORWARD.final_norm, cache)},
    ops.softmax: {"x": (LOGITS, floats), "axis": (1, axis)},
    ops.softmax_backward: {"dp": (P, gradient), "p": (P, floats), "axis": (1, axis)},
    ops.silu: {"x": (U, floats)},
    ops.silu_backward: {"dy": (U, gradient), "x": (U, floats)},
    ops.sigmoid: {"x": (U, floats)},
    ops.cross_entropy: {"logits": (LOGITS, vectors), "targets": (TARGETS, ids)},
    ops.cross_entropy_backward: {"dloss": (1.0, real), "cache": (LOSS_CACHE, cache)},
    parameters.ModelConfig: {
        **{
            name: (value, size)
            for name, value in zip(("vocab_size", "d_model", "n_heads"), (V, D, H), strict=True)
        },
        "n_layers": (L, size),
        "d_ff": (F, size),
        "rope_base": (1e4, number),
        "norm_eps": (1e-5, number),
    },
    parameters.require_config: {"config": (CONFIG, of_its_type)},
    parameters.block_weights: {"params": (PARAMS, lambda good: dictionary(good)[:5]), "l": (1, count)},
    parameters.param_axes: {"config": (CONFIG, of_its_type)},
    parameters.param_shapes: {"config": (CONFIG, of_its_type)},
    parameters.init_params: {
        "config": (CONFIG, of_its_type),
        "seed": (0, seed),
        "dtype": (np.float32, dtype),
    },
    parameters.require_params: {"params": (PARAMS, dictionary), "config": (CONFIG, of_its_type)},
    parameters.require_keys: {
        "name": given("params"),
        "params": (PARAMS, lambda good: dictionary(good)[:7]),
        "config": (CONFIG, of_its_type),
    },
    parameters.require_arrays: {
        "arrays": (
            PARAMS,
            lambda good: [wrong for wrong in dictionary(good) if wrong != {**good, LONG: 1}][:5],
        ),
        "axes": (parameters.param_axes(CONFIG), mapping),
        "config": (CONFIG, of_its_type),
    },
    model.split_heads: {"x": (X, axes), "n_heads": (H, size)},
    model.merge_heads: {"x": (HEADS, axes)},
    model.rope: {
        "x": (HEADS, lambda good: [*floats(good), good[..., :3], good[..., :0], np.ones(4)]),
        "positions": (np.arange(T), positions),
        "base": (1e4, number),
        "inverse": (False, flag),
    },
    model.causal_mask: {"t_query": (T, size), "t_key": (T, without_none(size))},
    model.padding_mask: {"keep": (np.ones((B, T), bool), booleans)},
    model.attention: {
        **dict.fromkeys("qkv", (HEADS, ranked)),
        "mask": (MASK, lambda good: [None, *mask(good)]),
    },
    model.attention_backward: {"do": (HEADS, gradient), "cache": (FORWARD.blocks[0].attention, cache)},
    model.swiglu: {
        "x": (X, vectors),
        **{name: (getattr(WEIGHTS, name), ranked) for name in ("w1", "w3", "w2")},
    },
    model.swiglu_backward: {"dy": (X, gradient), "cache": (FORWARD.blocks[0].swiglu, cache)},
    model.block: {
        "x": (X, ranked),
        "weights": (WEIGHTS, of_its_type),
        "config": (CONFIG, of_its_type),
        **SWITCHES,
    },
    model.block_backward: {"dy": (X, gradient), "cache": (FORWARD.blocks[0], cache)},
    model.forward: {**MODEL, **SWITCHES},
    model.backward: {"dlogits": (LOGITS, gradient), "cache": (FORWARD, cache)},
    model.loss_and_grads: {**MODEL, "targets": (TARGETS, ids)},
    generate.extend: {**MODEL, "kv_cache": (KV_CACHE, without_none(of_its_type))},
    generate.token_probabilities: {
        "logits": (LOGITS, lambda good: [*floats(good), np.array(1.0), good[..., :0]]),
        **optional(OPTIONS, "top_k", "top_p"),
    },
    generate.sample: {
        "p": (
            P,
            lambda good: [
                *floats(good),
                -good,
                good * 0,
                good * np.nan,
                np.log(good),
                5 + good,
                np.array(1.0),
            ],
        ),
        "rng": (RNG, rng),
    },
    generate.generate: {
        **{"prompt" if name == "ids" else name: value for name, value in MODEL.items()},
        "count": (2, size),
        "rng": (RNG, rng),
        "context": (4, size),
        **optional(OPTIONS, "top_k", "top_p"),
    },
    optim.is_matrix: {"key": given("w"), "array": (X, no_array)},
    optim.AdamWConfig: {
        "beta1": (0.9, share),
        "beta2": (0.9, share),
        "eps": (1e-8, number),
        "weight_decay": (0.1, at_least_zero),
        "decays": (optim.is_matrix, function),
    },
    optim.adamw_init: {"params": (PARAMS, arrays_by_name)},
    optim.require_state: {"state": (STATE, of_its_type), "params": (PARAMS, arrays_by_name)},
    optim.adamw: {
        "params": (PARAMS, dictionary),
        "grads": (GRADS, dictionary),
        "state": (STATE, of_its_type),
        "learning_rate": (0.1, number),
        "config": (ADAMW, of_its_type),
    },
    optim.global_norm: {"grads": (GRADS, arrays_by_name)},
    optim.clip_by_global_norm: {"grads": (GRADS, arrays_by_name), "max_norm": (1.0, number)},
    optim.warmup_cosine: {"step": (3, count), **SCHEDULE, "total_steps": (9, size)},
    data.build_vocabulary: {"text": ("ab", text)},
    data.encode: {"text": ("ab", text), "vocabulary": (("a", "b"), vocabulary)},
    data.decode: {"ids": (IDS[0] % 2, ids_of_a_row), "vocabulary": (("a", "b"), vocabulary)},
    data.build_corpus: {"text": ("ab" * 9, text), "validation_share": (0.3, lambda good: [0, *share(good)])},
    data.draw_batch: {
        "ids": (CORPUS.training, text_ids),
        "batch_size": (B, size),
        "context": (T, size),
        "rng": (RNG, rng),
    },
    data.windows: {"ids": (CORPUS.training, text_ids), "context": (T, size)},
    data.require_text_ids: {"name": given("ids"), "ids": (CORPUS.training, text_ids), "context": (T, size)},
    data.require_vocabulary: {"vocabulary": (("a", "b"), vocabulary), "V": (2, without_none(size))},
    train.TrainConfig: {
        "steps": (9, size),
        "batch_size": (B, size),
        "context": (T, size),
        **SCHEDULE,
        "max_norm": (1.0, number),
        "report_every": (2, size),
        "adamw": (ADAMW, of_its_type),
    },
    train.start: {
        "config": (CONFIG, of_its_type),
        "vocabulary": ("abcdefg", vocabulary),
        "seed": (0, seed),
        "dtype": (np.float32, dtype),
    },
    train.train: {
        "checkpoint": (START, of_its_type),
        "corpus": (CORPUS, of_its_type),
        "settings": (SETTINGS, of_its_type),
        "path": (None, without_none(path)),
    },
    train.train_step: {
        "checkpoint": (START, of_its_type),
        "ids": (CORPUS.training, text_ids),
        "settings": (SETTINGS, of_its_type),
    },
    train.evaluate: {
        "checkpoint": (START, of_its_type),
        "ids": (CORPUS.training, text_ids),
        "settings": (SETTINGS, of_its_type),
    },
    checkpoint.save: {"path": ("x.npz", path), "checkpoint": (START, of_its_type)},
    checkpoint.load: {"path": ("x.npz", path)},
    checkpoint.require_writable: {"path": ("x.npz", path)},
    checkpoint.require_checkpoint: {"checkpoint": (START, of_its_type)},
    checkpoint.generator: {"state": (START.rng, lambda _: [None, 3, {}, LONG, {**START.rng, "state": None}])},
    costs.parameter_counts: {"config": (CONFIG, of_its_type)},
    costs.forward_flops: {**{name: COSTS[name] for name in ("config", "B", "T")}, "past": (0, count)},
    costs.backward_flops: {name: COSTS[name] for name in ("config", "B", "T")},
    costs.activation_bytes: COSTS,
    costs.training_bytes: COSTS,
    costs.kv_cache_bytes: COSTS,
    formula.parse: {
        "text": ("T", name_of),
        "axes": ("t", lambda good: [*name_of(good)[:2], "tt", "T", LONG]),
    },
    formula.evaluate: {**EVALUATED, "tensors": ({"k": np.ones(3)}, mapping)},
    formula.evaluate_all: {
        **{name: row for name, row in EVALUATED.items() if name != "index"},
        "tensors": ({"k": np.ones(3)}, mapping),
        "axes": ({"t": 3}, mapping),
    },
    formula.leaves: {**EVALUATED, "tensors": ({"k": np.ones(3)}, mapping)},
    formula.tensor_names: {"tree": (TREE, tree)},
    formula.children: {"tree": (TREE, tree)},
    torch_jax.inputs: {"example": ("tiny", name_of)},
    torch_jax.values: {"example": ("tiny", name_of), "framework": ("jax", name_of)},
    torch_jax.lines: {"example": ("tiny", name_of), "name": ("attention", name_of)},
    tiny.encode: {"word": ("cat", lambda good: [*text(good), "cot", "cat" + LONG])},
    tiny.decode: {"ids": (np.arange(3), ids_of_a_row)},
    search.draw: {"seed": (0, seed)},
    search.measure: {"params": (TINY, dictionary)},
    search.attention_weights: {"params": (TINY, dictionary)},
    search.broken_bounds: {"params": (TINY, dictionary)},
    search.train: {"params": (TINY, dictionary)},
    search.as_text: {
        "seed": (0, seed),
        "initial": (TINY, dictionary),
        "trained": (TINY, dictionary),
    },
    trace.trace: {**MODEL, "targets": (TARGETS, ids)},
    checks.relative_error: {"found": given(X), "expected": given(X), "floor": (1e-9, number)},
    checks.numeric_gradient: {
        "loss": given(lambda x: x.sum()),
        "x": (np.ones(2), function),
        "step": (1e-5, number),
    },
    checks.gradcheck: {
        **GRADCHECK,
        "entries": (2, without_none(size)),
        "step": (1e-5, number),
        "rtol": (1e-6, number),
    },
    checks.taylor_slope: GRADCHECK,
    checks.agreement: {"found": ({"x": X}, mapping), "expected": ({"x": X}, mapping), "rtol": (1e-9, number)},
    checks.leaves_arguments_alone: GRADCHECK,
    checks.influence: ASKED,
    checks.causality: ASKED,
    checks.sensitivity: ASKED,
    checks.batch_independence: ASKED,
    checks.order_matters: {"function": given(logits), "ids": (IDS, lambda good: ids(good)[-3:])},
    checks.shift_invariance: {
        "function": given(lambda places: model.forward(PARAMS, IDS, CONFIG, positions=places)[0]),
        "T": (T, size),
        "shift": given(3),
    },
    checks.no_shared_arrays: {"arrays": (PARAMS, mapping)},
    checks.Finding: {"verdict": (checks.PASSED, name_of), "message": given(""), "numbers": given({})},
    checks.every_parameter_learns: {
        "loss_and_grads": given(lambda params: model.loss_and_grads(params, IDS, TARGETS, CONFIG)),
        "params": (PARAMS, mapping),
    },
    checks.targets_aligned: {
        "ids": (IDS, lambda good: ids(good)[-3:]),
        "targets": given(TARGETS),
        "source": given(np.arange(9)),
    },
}

#: What a message calls an argument where it has another name for it: that of what is wrong in it.
ALSO_CALLED = {
    "params": ["embedding", "'embedding'"],
    "config": ["d_model", "n_heads"],
    "targets": ["target"],
    "text": ["formula"],
    "state": ["rng", "step"],
    "logits": ["softmax", "targets"],
    "initial": ["params", "embedding"],
    "trained": ["params", "embedding"],
    "p": ["dp"],
    "ids": ["corpus"],
    "x": ["softmax", "gain"],
    "path": ["folder"],
}


# Finding the functions


def modules():
    for info in pkgutil.walk_packages(labs.llm.__path__, "labs.llm."):
        if info.name not in NOT_COVERED:
            yield importlib.import_module(info.name)


def takes_arguments(value):
    """Whether a public member is a function with parameters, or a class that judges its fields."""
    if inspect.isclass(value):
        return hasattr(value, "__post_init__")
    plain = inspect.unwrap(value) if callable(value) else value
    return inspect.isfunction(plain) and bool(inspect.signature(plain).parameters)


def public():
    """Every public function, and every class that judges its fields, with its module's name and its own."""
    for module in modules():
        for name, value in vars(module).items():
            own = not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
            if own and takes_arguments(value):
                yield f"{module.__name__.rpartition('.')[2]}.{name}", value


def test_every_public_function_has_a_row_with_all_its_arguments():
    refuse = ("arguments", "finding")  # for all others
    found = {
        name: value
        for name, value in public()
        if inspect.isclass(value) or name.partition(".")[0] not in refuse
    }
    assert len(found) > 80
    assert [name for name, value in found.items() if value not in CALLS] == [], "add a row to CALLS"
    for name, value in found.items():
        assert set(CALLS[value]) <= set(inspect.signature(value).parameters), name
        missing = set(inspect.signature(value).parameters) - set(CALLS[value])
        assert missing == set(), f"{name} has no row for {missing}"


# Trying them


def name_in_table(value):
    return f"{value.__module__.rpartition('.')[2]}.{value.__qualname__}"


@functools.cache
def raise_statements(file):
    """The lines of all raise statements of a file."""
    tree = ast.parse(Path(file).read_text("utf8"))
    return [range(node.lineno, node.end_lineno + 1) for node in ast.walk(tree) if isinstance(node, ast.Raise)]


def fault_of(call, argument):
    """Return what is wrong with how a call refuses its argument; None if nothing is."""
    try:
        call()
    except (TypeError, ValueError, OSError) as error:
        last, message = traceback.extract_tb(error.__traceback__)[-1], str(error)
        if isinstance(error, OSError):  # the system's own words, with the path
            return None if argument == "path" else f"{type(error).__name__}: {message[:200]}"
        if "labs/llm/" not in Path(last.filename).as_posix():
            return f"not ours, from {last.filename}:{last.lineno}: {message[:200]}"
        if not any(last.lineno in lines for lines in raise_statements(last.filename)):
            return f"not ours, in {last.line!r}: {type(error).__name__}: {message[:200]}"
        if len(message) > LONGEST:
            return f"{len(message)} characters: {message[:200]}"
        if not any(name in message for name in (argument, *ALSO_CALLED.get(argument, ()))):
            return f"does not name the argument: {message[:300]}"
        return None
    except Exception as error:  # whatever else: it should have been one of the two
        return f"{type(error).__name__}: {str(error)[:200]}"
    return "accepted"


def described(wrong):
    kind = type(wrong).__name__
    return (
        f"{kind} {wrong.dtype.name[:20]} {wrong.shape}"
        if isinstance(wrong, np.ndarray)
        else arguments.shown(wrong)
    )


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("value", CALLS, ids=name_in_table)
def test_each_argument_of_the_wrong_kind_is_refused_in_our_words(value, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    checkpoint.save("x.npz", START)
    right = {name: good for name, (good, _) in CALLS[value].items()}
    value(**right)  # the call itself works
    faults = []
    for name, (good, kind) in CALLS[value].items():
        for wrong in kind(good) if kind else ():
            fault = fault_of(lambda name=name, wrong=wrong: value(**{**right, name: wrong}), name)
            if fault:
                faults.append(f"{name} = {described(wrong)}: {fault}")
    assert faults == []


def test_what_python_and_numpy_say_is_told_from_what_we_say():
    assert fault_of(lambda: model.split_heads(None, 2), "x") is None
    assert "accepted" in fault_of(lambda: None, "x")
    assert "not ours" in fault_of(lambda: np.zeros(3).reshape(2, 2), "x")
    assert "AttributeError" in fault_of(lambda: (None).shape, "x")
    assert "does not name" in fault_of(lambda: model.split_heads(None, 2), "table")
