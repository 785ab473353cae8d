"""Every tensor of one forward and one backward pass, each with the formula that gives any entry of it.

The formulas of `recipes.py` make the numbers: `formula.evaluate_all` computes each tensor from those before
it. Tests compare them with what the library computes, and an error in a formula shows there.
"""

import functools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from labs.llm import arguments, model, ops
from labs.llm.parameters import param_axes
from labs.llm.trace import formula, recipes

#: The size that each index letter of `Step.axes` runs over, a key of `Trace.sizes`. A query i and a key j are
#: positions; m is a feature where d is another; r is a pair of features of a head.
SIZES_OF = {
    "b": "B", "t": "T", "i": "T", "j": "T", "d": "D", "m": "D",
    "h": "H", "e": "dh", "r": "dh/2", "f": "F", "v": "V",
}  # fmt: skip


class Step(NamedTuple):
    """One tensor of the two passes, and where it came from."""

    key: str  # unique: "blocks.0.scores"
    name: str  # what formulas call it: "scores"
    axes: str  # an index letter for each axis: "bhij"
    value: np.ndarray  # read-only
    formula: str | None  # gives the entry at these indices; None for what is given
    reads: dict[str, str]  # name in the formula -> key of an earlier step
    phase: str  # "given", "forward" or "backward"
    part: str  # the box of the block diagram that it belongs to; a gradient belongs where its tensor does
    by: str | None  # the function that computes it: "ops.softmax"; None for what is given
    layer: int | None  # None outside the blocks
    gradient_of: str | None  # key of the tensor whose gradient it is, or a share of the gradient, like dz_q


@dataclass(frozen=True, eq=False, repr=False)
class Trace:
    """The steps of one forward and one backward pass, in the order in which they were computed."""

    steps: tuple[Step, ...]
    sizes: dict[str, float]  # what formulas call B, T, D, H, dh, F, V, eps and base; and "dh/2"

    def __repr__(self):
        return f"<Trace of {len(self.steps)} steps>"

    def __getitem__(self, key):
        """Return the step with this key."""
        if isinstance(key, str) and key in self._by_key:
            return self._by_key[key]
        near = [known for known in self._by_key if str(key) in known]
        raise KeyError(
            f"no step {arguments.shown(key)} among the {len(self.steps)}; "
            f"in these it occurs: {arguments.shown(near)}"
        )

    @functools.cached_property
    def _by_key(self):
        return {step.key: step for step in self.steps}

    def sources(self, step):
        """Return the arrays that the formula of `step` reads, by the names that it gives them."""
        arguments.require_type("step", step, Step, "trace[key] is one")
        return {name: self[key].value for name, key in step.reads.items()}

    def gradients(self):
        """Return the gradients of all parameters, by the keys of params."""
        found = {step.gradient_of: step.value for step in self.steps}
        return {
            step.key: found[step.key] for step in self.steps if step.phase == "given" and step.key in found
        }


def trace(params, ids, targets, config):
    """Run the model forward and backward, and record every tensor on the way.

    Args:
        params, ids, targets, config: as for model.loss_and_grads, with params in float64: numbers in float32
            would differ from their formulas in the seventh digit.

    Returns: the Trace. What is given comes first: ids, targets and params; then the forward pass to the loss;
        then the backward pass down to the gradient of every parameter. It needs memory for all terms of the
        largest sum at once: it is meant for models that can be looked at.
    Raises: TypeError unless params are float64; ValueError or TypeError if params, ids or targets do not fit
        the config.
    """
    logits, cache = model.forward(params, ids, config)  # refuses what does not fit
    if logits.dtype != np.float64:
        raise TypeError(
            f"params must be float64, got {logits.dtype}: formulas are evaluated in float64, "
            "so convert each array, for example array.astype(np.float64)"
        )
    ops.cross_entropy(logits, targets)
    recorder = _Recorder(_sizes(cache.embedding.ids, config))
    recorder.give("ids", cache.embedding.ids, "bt", "tokens")
    recorder.give("targets", targets, "bt", "loss")
    for key in param_axes(config):
        recorder.give(key, params[key], *recipes.PARAMETERS[key.split(".")[-1]])
    for phase, layer, recipe in recipes.in_order(config.n_layers):
        recorder.compute(phase, layer, recipe)
    return Trace(tuple(recorder.steps.values()), recorder.sizes)


def _sizes(ids, config):
    (B, T), dh = ids.shape, config.d_head
    sizes = {"B": B, "T": T, "D": config.d_model, "H": config.n_heads, "dh": dh, "dh/2": dh // 2}
    sizes |= {"F": config.d_ff, "V": config.vocab_size}
    sizes |= {"eps": float(config.norm_eps), "base": float(config.rope_base)}
    return sizes


class _Recorder:
    """Gathers steps, and finds what a name means in a formula."""

    def __init__(self, sizes):
        self.sizes = sizes
        self.steps = {}
        self.latest = {}  # name -> key of the last step of this name

    def give(self, key, value, axes, part):
        """Record a tensor that is given."""
        layer = int(key.split(".")[1]) if key.startswith("blocks.") else None
        name = key.split(".")[-1]
        self._add(Step(key, name, axes, _frozen(value), None, {}, "given", part, None, layer, None))

    def compute(self, phase, layer, recipe):
        """Compute the tensor of a recipe from those before it, and record it."""
        name, axes, text, by, part, of = recipe
        tree = _tree(text, axes)
        reads = {read: self._key(read, layer) for read in formula.tensor_names(tree)}
        tensors = {read: self.steps[key].value for read, key in reads.items()}
        lengths = {letter: self.sizes[SIZES_OF[letter]] for letter in axes}
        value = _frozen(formula.evaluate_all(tree, tensors, self.sizes, lengths))
        key = name if layer is None else f"blocks.{layer}.{name}"
        of = None if of is None else self._key(of, layer)
        part = part if of is None else self.steps[of].part
        self._add(Step(key, name, axes, value, text, reads, phase, part, by, layer, of))

    def _key(self, name, layer):
        """Return the key of the tensor that a step of `layer` calls `name`: the layer's own, or the latest.

        So the x of a block is read from the y of the block below, and its dy from the dx of the block above.
        """
        own = f"blocks.{layer}.{name}"
        return own if own in self.steps else self.latest[name]

    def _add(self, step):
        self.steps[step.key] = step
        self.latest[step.name] = step.key


_tree = functools.cache(formula.parse)


def _frozen(value):
    """Return a copy that nobody can write into."""
    array = np.array(value, order="C")
    array.setflags(write=False)
    return array
