"""The trace: every formula gives every number, no wrong formula does, and the numbers are the library's."""

import ast
import copy
import dataclasses
import importlib
import itertools
import json
import math
import re
from typing import NamedTuple

import numpy as np
import pytest

from labs.course.diagram import NODES
from labs.llm import model, ops, tiny
from labs.llm.trace import SIZES_OF, formula, recipes, trace
from tests.labs.llm.conftest import DISTINCT, Example, make_example
from tests.labs.llm.numeric import layouts

#: How far a number may be from its formula: this part of its largest possible size, see `sized`. Rounding
#: the sum of 24 terms, the longest there is, costs at most 24 * 1.1e-16; observed are 6e-16.
RTOL = 1e-14

#: The shares of gradients, and the tensor that they are a share of.
SHARES = {
    "dz_q": "z",
    "dz_k": "z",
    "dz_v": "z",
    "dn_u": "n",
    "dn_up": "n",
    "dr_branch": "r",
    "dx_branch": "x",
}


def examples():
    batch = (tiny.INPUT_IDS, tiny.TARGET_IDS)
    return {
        "tiny": Example(tiny.CONFIG, tiny.params(), *batch),
        "trained": Example(tiny.CONFIG, tiny.trained_params(), *batch),
        "distinct": make_example(*DISTINCT, seed=5),
    }


def trace_of(example):
    return trace(example.params, example.ids, example.targets, example.config)


@pytest.fixture(scope="module", params=["tiny", "trained", "distinct"])
def pair(request):
    """An example and its trace."""
    example = examples()[request.param]
    return example, trace_of(example)


@pytest.fixture(scope="module")
def distinct():
    """The trace of the example of pairwise different sizes."""
    return trace_of(examples()["distinct"])


# Provenance


def sized(tree):
    """Return the tree of the largest value that a formula's terms could have added up to, all of one sign.

    Rounding is relative to the terms, not to what is left of them when they cancel. Of x * (y - sum(z)) it is
    |x| * (|y| + sum(|z|)).
    """
    match tree:
        case ["+" | "-", a, b]:
            return ["+", sized(a), sized(b)]
        case ["*" | "/" as sign, a, b]:
            return [sign, sized(a), sized(b) if sign == "*" else absolute(b)]
        case ["neg", a]:
            return sized(a)
        case ["sum", body, loops, condition]:
            return ["sum", sized(body), loops, condition]
        case ["if", condition, a, b]:
            return ["if", condition, sized(a), sized(b)]
    return absolute(tree)


def absolute(tree):
    return ["if", ["<=", ["number", 0], tree], tree, ["neg", tree]]


class Checked(NamedTuple):
    """What a comparison of a formula with its tensor found."""

    entries: int  # how many were compared
    wrong: str | None  # what differs first


def check(step, sources, sizes, tree, order=None):
    """Compare the formula `tree` with every entry of `step`, in some order, up to the first difference."""
    size_tree = sized(tree)
    places = list(np.ndindex(step.value.shape))
    for count, place in enumerate(places if order is None else [places[i] for i in order(len(places))], 1):
        index = dict(zip(step.axes, place, strict=True))
        expected = step.value[place].item()
        try:
            found = formula.evaluate(tree, sources, sizes, index)
        except (ArithmeticError, IndexError, TypeError, ValueError) as error:
            return Checked(count, f"{step.key}{list(place)}: {error}")
        if found != expected:
            off = abs(found - expected)
            close = off <= RTOL * abs(found)  # the size is no less than this, and takes longer to compute
            close = close or off <= RTOL * formula.evaluate(size_tree, sources, sizes, index)
            if not (close and math.isfinite(off)):
                return Checked(
                    count, f"{step.key}{list(place)} = {expected!r}, but its formula gives {found!r}"
                )
    return Checked(len(places), None)


def test_every_entry_of_every_tensor_is_what_its_formula_gives(pair, record_property):
    _, traced = pair
    entries = 0
    for step in traced.steps:
        if step.phase != "given":
            tree = formula.parse(step.formula, step.axes)
            checked = check(step, traced.sources(step), traced.sizes, tree)
            assert checked.wrong is None
            entries += checked.entries
    assert entries == sum(step.value.size for step in traced.steps if step.phase != "given")
    record_property("entries", entries)
    print(f"{entries} entries of {len(traced.steps)} tensors")


@pytest.mark.parametrize(
    ("V", "D", "H", "L", "F", "B", "T"),
    [(1, 2, 1, 1, 1, 1, 1), (5, 6, 3, 1, 7, 2, 1), (2, 2, 1, 3, 1, 1, 2), (7, 12, 2, 3, 5, 3, 4)],
)
def test_the_smallest_and_odd_sizes_are_traced(V, D, H, L, F, B, T):
    rng = np.random.default_rng(6)
    config = model.ModelConfig(V, d_model=D, n_heads=H, n_layers=L, d_ff=F, rope_base=50, norm_eps=0.01)
    example = Example(config, model.init_params(config, rng), *rng.integers(0, V, (2, B, T)))
    traced = trace_of(example)
    for step in traced.steps:
        if step.phase != "given":
            tree = formula.parse(step.formula, step.axes)
            assert check(step, traced.sources(step), traced.sizes, tree).wrong is None
    _, grads = model.loss_and_grads(*example[1:], config)
    for key, gradient in grads.items():
        assert error(traced.gradients()[key], gradient) < CLOSE, key


# Wrong formulas


def mutants(text, names, indices):
    """Yield formulas that differ from `text` in one place: a sign, an operator, a term, an index, a name."""
    for node in ast.walk(ast.parse(text, mode="eval")):
        for other in alternatives(node, names, indices):
            yield f"{text[: node.col_offset]}({ast.unparse(other)}){text[node.end_col_offset :]}"


FUNCTIONS = ("exp", "log", "sqrt", "cos", "sin")
CALCULATE = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow)


def alternatives(node, names, indices):
    """Yield what may stand wrongly in place of one node of a formula."""
    match node:
        case ast.BinOp(left=left, op=op, right=right):
            yield from (left, right)
            if not isinstance(op, ast.Add | ast.Mult):
                yield ast.BinOp(right, op, left)
            yield from (ast.BinOp(left, other(), right) for other in CALCULATE)
        case ast.UnaryOp(operand=operand):
            yield operand
        case ast.Subscript(value=ast.Name(id=name), slice=places):
            yield ast.UnaryOp(ast.USub(), node)
            yield from (ast.Subscript(ast.Name(other), places) for other in names[name])
            entries = places.elts if isinstance(places, ast.Tuple) else [places]
            for i, j in itertools.combinations(range(len(entries)), 2):
                swapped = list(entries)
                swapped[i], swapped[j] = entries[j], entries[i]
                yield ast.Subscript(node.value, ast.Tuple(swapped))
        case ast.Name(id=name) if name in indices:
            yield from (ast.Name(other) for other in sorted(indices))
            yield from (ast.BinOp(node, op(), ast.Constant(1)) for op in (ast.Add, ast.Sub))
            yield ast.Constant(0)
        case ast.Name(id=name) if name in formula.SIZES + formula.SETTINGS:
            yield from (ast.Name(other) for other in formula.SIZES + formula.SETTINGS)
            yield ast.BinOp(node, ast.Sub(), ast.Constant(1))
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            yield from (ast.Compare(left, [other()], [right]) for other in (ast.Eq, ast.LtE))
            yield ast.Compare(right, [ast.LtE()], [left])
        case ast.IfExp(test=test, body=then, orelse=otherwise):
            yield from (then, otherwise, ast.IfExp(test, otherwise, then))
        case ast.Call(func=ast.Name(id=name), args=[argument]):
            kinds = ("sum", "max") if name in ("sum", "max") else FUNCTIONS
            yield from (ast.Call(ast.Name(kind), [argument], []) for kind in kinds)
            yield from [argument] if name in FUNCTIONS else []
        case ast.GeneratorExp(elt=body, generators=[*loops, ast.comprehension(ifs=[_]) as last]):
            yield ast.GeneratorExp(body, [*loops, ast.comprehension(last.target, last.iter, [], 0)])
        case ast.Constant(value=number):
            yield from (ast.Constant(number + 1), ast.Constant(number - 1))


def index_names(step):
    """Return the axes of a step and what its formula binds."""
    loops = [node for node in ast.walk(ast.parse(step.formula)) if isinstance(node, ast.comprehension)]
    return {*step.axes, *(loop.target.id for loop in loops)}


def put_right(text):
    """Undo the mutations that do not change what a formula gives."""
    text = re.sub(r"\(-(\w\[b, t, d\])\) \*\* 2", r"\1 ** 2", text)  # a square has no sign
    text = re.sub(r"cos\(\(-(angle\[t, e // 2\])\)\)", r"cos(\1)", text)  # nor has a cosine
    text = text.replace("(e % 2 <= 0)", "e % 2 == 0")  # no remainder is below zero
    even, choice, odd = text.partition(" if e % 2 == 0 else ")
    return even.replace("(e + 1) // 2", "e // 2") + choice + odd.replace("(e - 1) // 2", "e // 2")


def test_no_wrong_formula_passes(distinct, record_property):
    rng = np.random.default_rng(1)
    tried, passed, right, seen = 0, [], [], set()
    for step in distinct.steps:
        if step.phase == "given" or (step.name, step.formula) in seen:
            continue
        seen.add((step.name, step.formula))
        sources, names = sources_and_wrong_ones(distinct, step)
        original = formula.parse(step.formula, step.axes)
        for text in dict.fromkeys(mutants(step.formula, names, index_names(step))):
            try:
                tree = formula.parse(text, step.axes)
            except ValueError:
                continue  # not a formula
            if tree == original:
                continue
            if formula.parse(put_right(text), step.axes) == original:
                right.append((step.name, text))
            if check(step, sources, distinct.sizes, tree, rng.permutation).wrong is None:
                passed.append((step.name, text))
            tried += 1
    record_property("mutants", tried)
    print(f"{tried} other formulas of {len(seen)}, {len(right)} of them right")
    assert passed == right


def sources_and_wrong_ones(traced, step):
    """Return arrays by name, and for each name that the formula reads, the names that it could be taken for.

    Those are all tensors before it, of its layer or outside the blocks, with as many axes and other numbers.
    """
    earlier = itertools.takewhile(lambda other: other.key != step.key, traced.steps)
    arrays = {other.name: other.value for other in earlier if other.layer in (None, step.layer)}
    arrays |= traced.sources(step)
    wrong = {
        name: [
            other
            for other, array in arrays.items()
            if array.ndim == arrays[name].ndim and not np.array_equal(array, arrays[name])
        ]
        for name in step.reads
    }
    return arrays, wrong


# The numbers are the library's


def error(found, expected):
    """The largest difference of two arrays of one shape and dtype, in units of the largest entry."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    return np.abs(found - expected).max() / (np.abs(expected).max() or 1)


#: How far a tensor of the trace may be from the library's, where no other order of additions excuses more.
CLOSE = 1e-12


def differences(example, traced):
    """How far the trace is from the library: the error of every array that both have, by the trace's key."""
    logits, cache = model.forward(example.params, example.ids, example.config)
    loss, grads = model.loss_and_grads(*example[1:], example.config)
    _, loss_cache = ops.cross_entropy(logits, example.targets)
    gradients = {f"gradient of {key}": error(traced.gradients()[key], grads[key]) for key in grads}
    found = {"logits": error(traced["logits"].value, logits), "loss": error(traced["loss"].value, loss)}
    return found | gradients | in_caches(traced, example.config, cache, loss_cache)


def test_the_trace_is_the_library(pair, record_property):
    example, traced = pair
    found = differences(example, traced)
    assert list(traced.gradients()) == list(example.params)
    names = {key.split(".")[-1] for key in found}
    assert {"x", "z", "q_rot", "v", "p", "joined", "r", "n", "u", "gate", "up", "hidden"} <= names
    assert {key: value for key, value in found.items() if value > CLOSE} == {}
    record_property("worst relative error of the trace", f"{max(found.values()):.1e}")


#: What a loss cannot see: the largest score cancels. The test below looks at these.
CANCEL = {"row_max", "exps", "logit_max"}


def test_an_error_in_any_formula_shows(monkeypatch):
    example, in_order = examples()["distinct"], recipes.in_order
    names = {recipe.name for _, _, recipe in in_order(2)}
    assert len(names) == 86
    for wrong in names:

        def with_an_error(n_layers, wrong=wrong):
            for phase, layer, recipe in in_order(n_layers):
                if recipe.name == wrong:
                    recipe = recipe._replace(formula=f"({recipe.formula}) * 1.001")
                yield phase, layer, recipe

        monkeypatch.setattr(recipes, "in_order", with_an_error)
        shows = max(differences(example, trace_of(example)).values()) > 1e-6
        assert shows == (wrong not in CANCEL), wrong


def test_the_largest_scores_are_the_largest_scores(pair):
    _, traced = pair
    for step in traced.steps:
        if step.name in ("row_max", "logit_max"):
            scores = traced.sources(step)[{"row_max": "masked", "logit_max": "logits"}[step.name]]
            np.testing.assert_array_equal(step.value, scores.max(axis=-1))
        if step.name in ("exps", "logit_exps"):
            assert step.value.max(axis=-1).tolist() == np.ones(step.value.shape[:-1]).tolist()


def leaves_of(cache, path=""):
    """Yield the path and the array of everything that a cache holds, but for settings."""
    if isinstance(cache, np.ndarray):
        yield path, cache
    elif isinstance(cache, tuple):
        names = getattr(cache, "_fields", range(len(cache)))
        for name, item in zip(names, cache, strict=True):
            yield from leaves_of(item, f"{path}.{name}".lstrip("."))


#: What the trace calls the arrays of a block's caches; what is not here has the name that it has there.
CACHED = {
    "attn_norm.x": "x", "attn_norm.gain": "attn_norm", "attn_norm.inv_rms": "attn_inv_rms",
    "ffn_norm.x": "r", "ffn_norm.gain": "ffn_norm", "ffn_norm.inv_rms": "ffn_inv_rms",
    "q": "q_rot", "k": "k_rot", "attention.q": "q_rot", "attention.k": "k_rot", "swiglu.x": "n",
}  # fmt: skip
#: The same for the caches of the model and of the loss.
CACHED_OUTSIDE = {
    "embedding.ids": "ids", "embedding.table": "embedding",
    "final_norm.x": "y", "final_norm.gain": "final_norm", "final_norm.inv_rms": "final_inv_rms",
    "final": "final", "unembedding": "unembedding", "p": "probs",
}  # fmt: skip


def in_caches(traced, config, cache, loss_cache):
    """The error of every array in the caches, by the trace's key."""
    found = {}
    for path, array in [*leaves_of(cache), *leaves_of(loss_cache)]:
        if path == "one_hot":  # the targets in another form
            assert np.array_equal(array.argmax(axis=-1), traced["targets"].value)
            continue
        if path.startswith("blocks."):
            prefix, layer, inside = path.split(".", 2)
            key = f"{prefix}.{layer}.{CACHED.get(inside, inside.split('.')[-1])}"
        else:
            key = CACHED_OUTSIDE[path] if path != "final_norm.x" else f"blocks.{config.n_layers - 1}.y"
        value = traced[key].value
        found[key] = max(error(value, array.reshape(value.shape)), found.get(key, 0))
    return found


def test_a_gradient_is_that_of_its_tensor():
    """Move a tensor in a random direction, follow the formulas to the loss: the loss moves as dX says."""
    example = examples()["tiny"]
    traced = trace_of(example)
    rng, step_size = np.random.default_rng(4), 1e-5
    whole = [step for step in traced.steps if step.gradient_of and step.name not in SHARES]
    assert len(whole) == 12 + 22 + 3  # of parameters, those that the text names, of units
    for step in whole:
        direction = rng.standard_normal(step.value.shape)
        ends = [loss_with(traced, step.gradient_of, sign * step_size * direction) for sign in (1, -1)]
        slope = (ends[0] - ends[1]) / (2 * step_size)
        assert slope == pytest.approx(np.sum(step.value * direction), rel=1e-6), step.key


def loss_with(traced, key, change):
    """Return the loss if `change` is added to one tensor, by the formulas of all that depends on it."""
    values = {key: traced[key].value + change}
    for step in traced.steps:
        if step.phase == "forward" and not values.keys().isdisjoint(step.reads.values()):
            sources = {name: values.get(read, traced[read].value) for name, read in step.reads.items()}
            tree = formula.parse(step.formula, step.axes)
            values[step.key] = np.empty(step.value.shape)
            for place in np.ndindex(step.value.shape):
                index = dict(zip(step.axes, place, strict=True))
                values[step.key][place] = formula.evaluate(tree, sources, traced.sizes, index)
    return values["loss"].item()


# How the steps hang together


def test_formulas_read_what_was_computed_before(pair):
    _, traced = pair
    before = set()
    for step in traced.steps:
        assert set(step.reads.values()) <= before, step.key
        assert step.key not in before
        before.add(step.key)
        if step.formula is None:
            assert dict(step.reads) == {}
        else:
            tree = formula.parse(step.formula, step.axes)
            assert list(step.reads) == formula.tensor_names(tree)
            assert json.loads(json.dumps(tree)) == tree


def test_a_formula_reads_its_own_layer_or_the_one_next_to_it(distinct):
    reads = {
        (step.key, key)
        for step in distinct.steps
        for key in step.reads.values()
        if distinct[key].layer != step.layer
    }
    assert {(reader, key) for reader, key in reads if distinct[key].layer is not None} == {
        ("blocks.1.x", "blocks.0.y"),
        ("final_inv_rms", "blocks.1.y"),
        ("final_unit", "blocks.1.y"),
        ("blocks.0.dy", "blocks.1.dx"),
        ("dembedding", "blocks.0.dx"),
    }
    assert {(reader, key) for reader, key in reads if distinct[key].layer is None} == {
        ("blocks.0.x", "ids"),
        ("blocks.0.x", "embedding"),
        *(("blocks.1.dy", key) for key in ("final_inv_rms", "dfinal_unit", "final_unit", "final_mean")),
    }


def test_nothing_is_recorded_that_nothing_needs(pair):
    _, traced = pair
    needed = {key for step in traced.steps for key in step.reads.values()}
    unread = {step.key for step in traced.steps} - needed
    results = {step.key for step in traced.steps if step.gradient_of in traced.gradients()}
    assert unread == {"loss"} | results


def test_steps_are_in_order_and_named_by_layer(pair):
    example, traced = pair
    phases = [step.phase for step in traced.steps]
    assert [phase for phase, _ in itertools.groupby(phases)] == ["given", "forward", "backward"]
    given = [step.key for step in traced.steps if step.phase == "given"]
    assert given == ["ids", "targets", *example.params]
    layers = [step.layer for step in traced.steps if step.phase != "given"]
    down = list(range(example.config.n_layers))
    assert [layer for layer, _ in itertools.groupby(layers)] == [*down, None, *down[::-1], None]
    for step in traced.steps:
        assert step.key == (step.name if step.layer is None else f"blocks.{step.layer}.{step.name}")
        assert traced[step.key] is step


def test_axes_have_the_sizes_that_their_letters_say(pair):
    _, traced = pair
    for step in traced.steps:
        assert step.value.shape == tuple(traced.sizes[SIZES_OF[letter]] for letter in step.axes), step.key
        assert len(set(step.axes)) == len(step.axes)
    assert set(formula.SIZES + formula.SETTINGS) | {"dh/2"} == traced.sizes.keys()


def test_a_gradient_looks_like_its_tensor(pair):
    _, traced = pair
    for step in traced.steps:
        if step.gradient_of is None:
            continue
        tensor = traced[step.gradient_of]
        assert (step.axes, step.part, step.layer) == (tensor.axes, tensor.part, tensor.layer)
        assert step.phase == "backward"
        assert tensor.name == SHARES.get(step.name, step.name[1:])


def test_every_gradient_that_the_text_names_is_there(distinct):
    names = (
        "dlogits dfinal dy dffn_out dhidden dgate dup du dn dr dattn_out djoined do dp dv dscores "
        "dq_rot dk_rot dq dk dz dx"
    )
    whole = {step.name for step in distinct.steps if step.gradient_of and step.name not in SHARES}
    assert set(names.split()) <= whole
    assert len([step for step in distinct.steps if step.name in SHARES]) == 2 * len(SHARES)


def test_parts_are_boxes_of_the_block_diagram(distinct):
    assert {step.part for step in distinct.steps} == {node.name for node in NODES}


def test_what_is_given_belongs_to_the_box_that_reads_it(distinct):
    for step in distinct.steps:
        readers = {
            each.part
            for each in distinct.steps
            if each.phase == "forward" and step.key in each.reads.values()
        }
        if step.phase == "given":
            assert readers == {"embedding" if step.key == "ids" else step.part}, step.key


#: What the trace ascribes to the function around the one that returns it, which does not know it by its name.
CALLED_FOR = {
    "q": "model.block",
    "k": "model.block",
    "v": "model.block",
    "u": "model.swiglu",
    "up": "model.swiglu",
    "attn_out": "model.block",
    "ffn_out": "model.swiglu",
}


def test_a_tensor_is_ascribed_to_the_function_that_returns_it_first(distinct, monkeypatch):
    returned_by = {}  # the bytes of an array -> the function, and the array

    def watched(function, name):
        def call(*arguments, **options):
            result = function(*arguments, **options)
            given = {array.tobytes() for _, array in leaves_of(arguments)}  # caches hold them too
            for _, array in leaves_of(result):
                if array.tobytes() not in given:
                    returned_by.setdefault(array.tobytes(), (name, array.ravel()))
            return result

        return call

    for module in (ops, model):
        for name, function in list(vars(module).items()):
            if getattr(function, "__module__", None) in (ops.__name__, model.__name__) and name[0].islower():
                full_name = f"{function.__module__.split('.')[-1]}.{name}"
                monkeypatch.setattr(module, name, watched(function, full_name))
    example = examples()["distinct"]
    model.loss_and_grads(*example[1:], example.config)
    checked = set()
    for step in distinct.steps:
        if step.phase == "given":
            continue
        value = step.value.ravel()
        rounding = CLOSE * np.abs(value[np.isfinite(value)]).max()
        for key, (name, array) in returned_by.items():
            if array.shape == value.shape and np.allclose(array, value, rtol=0, atol=rounding):
                assert step.by == CALLED_FOR.get(step.name, name), step.key
                checked.add(step.name)
                del returned_by[key]  # later steps only pass the same numbers on
                break
    assert len(checked) == 60
    assert CALLED_FOR.keys() <= checked


def test_functions_named_are_functions_of_the_library(distinct):
    for step in distinct.steps:
        assert (step.by is None) == (step.phase == "given")
        if step.by is not None:
            module, name = step.by.split(".")
            function = getattr(importlib.import_module(f"labs.llm.{module}"), name)
            assert function.__module__ == f"labs.llm.{module}"


def test_masked_scores_alone_are_infinite(pair):
    _, traced = pair
    assert {step.name for step in traced.steps if not np.isfinite(step.value).all()} == {"masked"}


# The trace as an object


def test_the_trace_belongs_to_nobody_else():
    example = examples()["tiny"]
    params, ids, targets = copy.deepcopy((example.params, np.array(example.ids), np.array(example.targets)))
    traced = trace(params, ids, targets, example.config)
    before = {step.key: step.value.copy() for step in traced.steps}
    for array in (*params.values(), ids, targets):
        array[...] = 0
    for step in traced.steps:
        assert np.array_equal(step.value, before[step.key]), step.key
        with pytest.raises(ValueError, match="read-only"):
            step.value[...] = 0


def test_a_step_that_is_not_there():
    with pytest.raises(
        KeyError, match=r"no step 'scores' among the .*; in these it occurs: \['blocks\.0\.scores'"
    ):
        trace_of(examples()["tiny"])["scores"]


def test_the_trace_does_not_print_its_numbers(distinct):
    assert repr(distinct) == "<Trace of 178 steps>"


def test_params_may_come_in_any_order():
    example = examples()["tiny"]
    params = dict(reversed(example.params.items()))
    assert [step.key for step in trace_of(example._replace(params=params)).steps] == [
        step.key for step in trace_of(example).steps
    ]


@pytest.mark.parametrize("layout", range(3))
def test_params_may_lie_in_memory_in_any_way(layout):
    example = examples()["tiny"]
    params = {key: list(layouts(array))[layout] for key, array in example.params.items()}
    traced, plain = trace_of(example._replace(params=params)), trace_of(example)
    for step in traced.steps:
        np.testing.assert_allclose(step.value, plain[step.key].value, rtol=1e-9, atol=1e-15)
        assert step.value.flags.c_contiguous
    for key, array in example.params.items():
        np.testing.assert_array_equal(params[key], array)


def test_lists_are_refused():
    example = examples()["tiny"]
    with pytest.raises(TypeError, match="targets must be a NumPy array, got list"):
        trace(example.params, example.ids, example.targets.tolist(), example.config)
    with pytest.raises(TypeError, match="ids must be a NumPy array, got list"):
        trace(example.params, example.ids.tolist(), example.targets, example.config)


def test_a_sigmoid_far_below_zero_is_zero():
    example = examples()["tiny"]
    params = example.params | {"blocks.0.w1": 1e4 * example.params["blocks.0.w1"]}
    assert (trace_of(example._replace(params=params))["blocks.0.sigmoid"].value == 0).any()


def test_float32_is_refused():
    example = make_example(*DISTINCT, seed=5, dtype=np.float32)
    with pytest.raises(TypeError, match="params must be float64, got float32"):
        trace_of(example)


def test_what_the_model_refuses_is_refused():
    example = examples()["tiny"]
    rest = {key: array for key, array in example.params.items() if key != "final_norm"}
    with pytest.raises(ValueError, match=r"got missing \['final_norm'\] and extra \[\]"):
        trace_of(example._replace(params=rest))
    with pytest.raises(
        ValueError, match=r"blocks\.0\.w1 must have shape \(D, F\) = \(8, 12\), got \(8, 16\)"
    ):
        trace_of(example._replace(config=dataclasses.replace(example.config, d_ff=12)))
    with pytest.raises(ValueError, match="x must be finite"):
        trace_of(example._replace(params=example.params | {"blocks.0.w2": np.full((16, 8), np.nan)}))
    with pytest.raises(ValueError, match=r"targets must lie in \[0, V\)"):
        trace_of(example._replace(targets=example.targets - 9))
    with pytest.raises(ValueError, match="targets must have shape"):
        trace_of(example._replace(targets=example.targets[:1]))
    with pytest.raises(ValueError, match="ids must lie in"):
        trace_of(example._replace(ids=example.ids + 9))


# What an entry came from


def leaves(traced, key, *place):
    step = traced[key]
    tree = formula.parse(step.formula, step.axes)
    index = dict(zip(step.axes, place, strict=True))
    return formula.leaves(tree, traced.sizes, index, traced.sources(step))


def test_a_weight_comes_from_its_row_of_scores():
    traced = trace_of(examples()["tiny"])
    row = [("exps", (1, 0, 3, j)) for j in range(5)]
    assert leaves(traced, "blocks.0.p", 1, 0, 3, 2) == [("exps", (1, 0, 3, 2)), *row]


def test_a_rotated_entry_comes_from_its_pair_and_the_angle():
    traced = trace_of(examples()["tiny"])
    pair, angle = [("q", (0, 1, 4, 2)), ("q", (0, 1, 4, 3))], ("angle", (4, 1))
    assert set(leaves(traced, "blocks.0.q_rot", 0, 1, 4, 2)) == {*pair, angle}
    assert set(leaves(traced, "blocks.0.q_rot", 0, 1, 4, 3)) == {*pair, angle}


def test_an_embedding_gradient_comes_from_every_place_of_its_token():
    traced = trace_of(examples()["tiny"])
    a, l = tiny.VOCABULARY.index("a"), tiny.VOCABULARY.index("l")
    places = [(0, 0), (1, 1), (1, 4)]  # atten, causa
    read = leaves(traced, "dembedding", a, 6)
    assert [place for name, place in read if name == "dx"] == [(*place, 6) for place in places]
    assert {name for name, _ in leaves(traced, "dembedding", l, 6)} == {"ids"}


def test_a_loss_comes_from_its_target():
    traced = trace_of(examples()["tiny"])
    t = tiny.VOCABULARY.index("t")
    assert leaves(traced, "nll", 0, 0) == [("targets", (0, 0)), ("log_probs", (0, 0, t))]
