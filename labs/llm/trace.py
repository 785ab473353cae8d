"""Every tensor of one forward and one backward pass, each with the formula that gives any entry of it.

The numbers come from the library: from its caches, from its functions, and, where a function keeps something
to itself, from the expression that stands in it. The formulas only explain them. A test evaluates them
for every entry, and must get the library's number.

Names are those of the text. Beside them stand steps in between, which the library does not name or keep:

    attn_inv_rms, attn_unit   of z = attn_norm * attn_unit, attn_unit = x * attn_inv_rms; so for ffn and final
    angle                     by which RoPE turns pair r at position t, in radians
    row_max, exps             of the softmax of a row: its largest score, and exp(score - largest)
    brought, wrote            what attention and SwiGLU add to the residual stream
    sigmoid                   of gate = u * sigmoid
    logit_max, logit_exps     as row_max and exps, of a row of logits
    log_probs, losses         the logarithm of probs, and the surprise at each target; loss is their mean
    attn_mean                 of RMSNorm backward: the mean of dattn_unit * attn_unit; so for ffn and final
    dz_q, dz_k, dz_v          what comes back to z through q, k and v; so for dn_u and dn_up
    dr_branch, dx_branch      what comes back through a branch; the rest went past it

Any other name with a d in front is the gradient of the loss with respect to what follows the d.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from labs.llm import formula, model, ops

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
    reads: Mapping[str, str]  # name in the formula -> key of an earlier step
    phase: str  # "given", "forward" or "backward"
    part: str  # the box of the block diagram that it belongs to; a gradient belongs where its tensor does
    by: str | None  # the function that computes it: "ops.softmax"; None for what is given
    layer: int | None  # None outside the blocks
    gradient_of: str | None  # key of the tensor whose gradient it is, or a share of the gradient, like dz_q


@dataclass(frozen=True)
class Trace:
    """The steps of one forward and one backward pass, in the order in which they were computed."""

    steps: tuple[Step, ...]
    sizes: Mapping[str, float]  # what formulas call B, T, D, H, dh, F, V, eps and base; and "dh/2"

    def __getitem__(self, key):
        """Return the step with this key."""
        try:
            return self._by_key[key]
        except KeyError:
            raise KeyError(f"no step {key!r}: the keys are {', '.join(self._by_key)}") from None

    @functools.cached_property
    def _by_key(self):
        return {step.key: step for step in self.steps}

    def sources(self, step):
        """Return the arrays that the formula of `step` reads, by the names that it gives them."""
        return {name: self[key].value for name, key in step.reads.items()}

    def gradients(self):
        """Return the gradients of all parameters, by the keys of params."""
        given = (step.key for step in self.steps if step.phase == "given")
        whole = {step.gradient_of: step.value for step in self.steps}
        return {key: whole[key] for key in given if key in whole}


# The steps, in order


class _Recipe(NamedTuple):
    """What is known of a step before there is a number. A gradient has axes and part from what it is `of`."""

    name: str
    by: str
    formula: str
    axes: str = ""
    part: str = ""
    of: str | None = None


def _made(part, name, axes, by, text):
    return _Recipe(name, by, text, axes=axes, part=part)


def _gradient(of, by, text, name=None):
    return _Recipe(name or f"d{of}", by, text, of=of)


#: Axes and part of the parameters.
_PARAMETERS = {
    "embedding": ("vd", "embedding"),
    "attn_norm": ("d", "attn_norm"),
    "wq": ("md", "attention"),
    "wk": ("md", "attention"),
    "wv": ("md", "attention"),
    "wo": ("md", "attention"),
    "ffn_norm": ("d", "ffn_norm"),
    "w1": ("df", "swiglu"),
    "w3": ("df", "swiglu"),
    "w2": ("fd", "swiglu"),
    "final_norm": ("d", "final_norm"),
    "unembedding": ("dv", "unembedding"),
}


def _norm(norm, x, y):
    """Return the steps of y = rms_norm(x); `norm` is attn, ffn or final."""
    part = f"{norm}_norm"
    mean_square = f"sum({x}[b, t, d] ** 2 for d in range(D)) / D"
    return (
        _made(part, f"{norm}_inv_rms", "bt", "ops.rms_norm", f"1 / sqrt({mean_square} + eps)"),
        _made(part, f"{norm}_unit", "btd", "ops.rms_norm", f"{x}[b, t, d] * {norm}_inv_rms[b, t]"),
        _made(part, y, "btd", "ops.rms_norm", f"{norm}_norm[d] * {norm}_unit[b, t, d]"),
    )


def _norm_backward(norm, x, y, dx):
    """Return the steps from dy to the gain and to dx."""
    by = "ops.rms_norm_backward"
    unit, mean = f"{norm}_unit", f"{norm}_mean"
    pairs = f"d{unit}[b, t, d] * {unit}[b, t, d]"
    inner = f"d{unit}[b, t, d] - {unit}[b, t, d] * {mean}[b, t]"
    return (
        _gradient(
            f"{norm}_norm", by, f"sum(d{y}[b, t, d] * {unit}[b, t, d] for b in range(B) for t in range(T))"
        ),
        _gradient(unit, by, f"d{y}[b, t, d] * {norm}_norm[d]"),
        _made(f"{norm}_norm", mean, "bt", by, f"sum({pairs} for d in range(D)) / D"),
        _gradient(x, by, f"{norm}_inv_rms[b, t] * ({inner})", name=dx),
    )


def _projected(y, w):
    """Return the step of y = split_heads(z @ w)."""
    text = f"sum(z[b, t, m] * {w}[m, h * dh + e] for m in range(D))"
    return _made("attention", y, "bhte", "model.block", text)


def _projected_backward(y, w):
    """Return the steps from dy to z and to w. Column d of w belongs to entry d % dh of head d // dh."""
    share = f"sum(d{y}[b, h, t, e] * {w}[d, h * dh + e] for h in range(H) for e in range(dh))"
    split = f"d{y}[b, d // dh, t, d % dh]"
    return (
        _gradient("z", "ops.linear_backward", share, name=f"dz_{y}"),
        _gradient(w, "ops.linear_backward", f"sum(z[b, t, m] * {split} for b in range(B) for t in range(T))"),
    )


_COS, _SIN = "cos(angle[t, e // 2])", "sin(angle[t, e // 2])"


def _rotated(x):
    """Return the step of x_rot = rope(x): pair (2r, 2r + 1) turns by angle r, forwards."""
    own, after, before = f"{x}[b, h, t, e]", f"{x}[b, h, t, e + 1]", f"{x}[b, h, t, e - 1]"
    even, odd = f"{own} * {_COS} - {after} * {_SIN}", f"{before} * {_SIN} + {own} * {_COS}"
    return _made("attention", f"{x}_rot", "bhte", "model.rope", f"{even} if e % 2 == 0 else {odd}")


def _rotated_backward(x):
    """Return the step from dx_rot to dx: the same pair turns back."""
    dy = f"d{x}_rot"
    own, after, before = f"{dy}[b, h, t, e]", f"{dy}[b, h, t, e + 1]", f"{dy}[b, h, t, e - 1]"
    even, odd = f"{own} * {_COS} + {after} * {_SIN}", f"{own} * {_COS} - {before} * {_SIN}"
    return _gradient(x, "model.rope", f"{even} if e % 2 == 0 else {odd}")


def _linear(part, y, x, w, axes, by="ops.linear"):
    """Return the step of y = x @ w; `axes` are the letters of the feature axes of x and y."""
    a, c = axes
    size = SIZES_OF[a]
    return _made(part, y, f"bt{c}", by, f"sum({x}[b, t, {a}] * {w}[{a}, {c}] for {a} in range({size}))")


def _linear_backward(y, x, w, axes, dx=None):
    """Return the steps from dy to x and to w."""
    a, c = axes
    by = "ops.linear_backward"
    every = "for b in range(B) for t in range(T)"
    return (
        _gradient(x, by, f"sum(d{y}[b, t, {c}] * {w}[{a}, {c}] for {c} in range({SIZES_OF[c]}))", name=dx),
        _gradient(w, by, f"sum({x}[b, t, {a}] * d{y}[b, t, {c}] {every})"),
    )


_LOOKED_UP = _made("embedding", "x", "btd", "ops.embedding", "embedding[ids[b, t], d]")
_FROM_BELOW = _made("embedding", "x", "btd", "model.block", "y[b, t, d]")

_BLOCK = (
    *_norm("attn", "x", "z"),
    _projected("q", "wq"),
    _projected("k", "wk"),
    _projected("v", "wv"),
    _made("attention", "angle", "tr", "model.rope", "t * base ** (-2 * r / dh)"),
    _rotated("q"),
    _rotated("k"),
    _made(
        "attention",
        "scores",
        "bhij",
        "model.attention",
        "sum(q_rot[b, h, i, e] * k_rot[b, h, j, e] for e in range(dh)) / sqrt(dh)",
    ),
    _made("attention", "masked", "bhij", "model.attention", "scores[b, h, i, j] if j <= i else -inf"),
    _made("attention", "row_max", "bhi", "ops.softmax", "max(masked[b, h, i, j] for j in range(T))"),
    _made("attention", "exps", "bhij", "ops.softmax", "exp(masked[b, h, i, j] - row_max[b, h, i])"),
    _made(
        "attention", "p", "bhij", "ops.softmax", "exps[b, h, i, j] / sum(exps[b, h, i, c] for c in range(T))"
    ),
    _made(
        "attention", "o", "bhte", "model.attention", "sum(p[b, h, t, j] * v[b, h, j, e] for j in range(T))"
    ),
    _made("attention", "joined", "btm", "model.merge_heads", "o[b, m // dh, t, m % dh]"),
    _linear("attention", "brought", "joined", "wo", "md", by="model.block"),
    _made("attn_add", "r", "btd", "model.block", "x[b, t, d] + brought[b, t, d]"),
    *_norm("ffn", "r", "n"),
    _linear("swiglu", "u", "n", "w1", "df"),
    _linear("swiglu", "up", "n", "w3", "df"),
    _made("swiglu", "sigmoid", "btf", "ops.silu", "1 / (1 + exp(-u[b, t, f]))"),
    _made("swiglu", "gate", "btf", "ops.silu", "u[b, t, f] * sigmoid[b, t, f]"),
    _made("swiglu", "hidden", "btf", "model.swiglu", "gate[b, t, f] * up[b, t, f]"),
    _linear("swiglu", "wrote", "hidden", "w2", "fd", by="model.swiglu"),
    _made("ffn_add", "y", "btd", "model.block", "r[b, t, d] + wrote[b, t, d]"),
)

_HEAD = (
    *_norm("final", "y", "final"),
    _linear("unembedding", "logits", "final", "unembedding", "dv"),
    _made("loss", "logit_max", "bt", "ops.cross_entropy", "max(logits[b, t, v] for v in range(V))"),
    _made("loss", "logit_exps", "btv", "ops.cross_entropy", "exp(logits[b, t, v] - logit_max[b, t])"),
    _made(
        "loss",
        "log_probs",
        "btv",
        "ops.cross_entropy",
        "logits[b, t, v] - logit_max[b, t] - log(sum(logit_exps[b, t, c] for c in range(V)))",
    ),
    _made(
        "loss",
        "probs",
        "btv",
        "ops.cross_entropy",
        "logit_exps[b, t, v] / sum(logit_exps[b, t, c] for c in range(V))",
    ),
    _made("loss", "losses", "bt", "ops.cross_entropy", "-log_probs[b, t, targets[b, t]]"),
    _made(
        "loss",
        "loss",
        "",
        "ops.cross_entropy",
        "sum(losses[b, t] for b in range(B) for t in range(T)) / (B * T)",
    ),
)


class _Recorder:
    """Gathers steps, and finds what a name means in a formula."""

    def __init__(self):
        self.steps = {}
        self.latest = {}  # name -> key of the last step of this name

    def give(self, key, value, axes, part):
        """Record what is given."""
        layer = int(key.split(".")[1]) if key.startswith("blocks.") else None
        self._add(key, axes, value, part=part, layer=layer)

    def record(self, phase, recipes, values, layer=None):
        """Record the steps of `recipes`, in their order, with the array of each name in `values`."""
        for recipe in recipes:
            of = None if recipe.of is None else self._key(recipe.of, layer)
            axes, part = (
                (recipe.axes, recipe.part) if of is None else (self.steps[of].axes, self.steps[of].part)
            )
            names = formula.tensor_names(formula.parse(recipe.formula, axes))
            self._add(
                recipe.name if layer is None else f"blocks.{layer}.{recipe.name}",
                axes,
                values[recipe.name],
                formula=recipe.formula,
                reads={name: self._key(name, layer) for name in names},
                phase=phase,
                part=part,
                by=recipe.by,
                layer=layer,
                gradient_of=of,
            )

    def _key(self, name, layer):
        """Return the key of the tensor that a step of `layer` calls `name`: the layer's own, else the latest.

        So the x of a block is read from the y of the block below, and its dy from the dx of the block above.
        """
        own = f"blocks.{layer}.{name}"
        return own if own in self.steps else self.latest[name]

    def _add(
        self,
        key,
        axes,
        value,
        *,
        part,
        layer,
        formula=None,
        reads=MappingProxyType({}),
        phase="given",
        by=None,
        gradient_of=None,
    ):
        array = np.array(value, order="C")
        array.setflags(write=False)
        name = key.split(".")[-1]
        self.steps[key] = Step(
            key,
            name,
            axes,
            array,
            formula,
            MappingProxyType(dict(reads)),
            phase,
            part,
            by,
            layer,
            gradient_of,
        )
        self.latest[name] = key


def trace(params, ids, targets, config):
    """Run the model forward and backward, and record every tensor on the way.

    Args:
        params, ids, targets, config: as for model.loss_and_grads, with params in float64: a formula is
            evaluated in float64, and numbers in float32 would differ from it in the seventh digit.

    Returns: the Trace. Given come first, ids, targets and params; then the forward pass to the loss, then the
        backward pass down to the gradient of every parameter.
    Raises: TypeError unless params are float64; ValueError or TypeError if params, ids or targets do not fit
        the config.
    """
    logits, cache = model.forward(params, ids, config)
    if logits.dtype != np.float64:
        raise TypeError(
            f"params must be float64, got {logits.dtype}: numbers of another precision differ visibly from "
            "their formulas, so convert, for example value.astype(np.float64)"
        )
    loss, loss_cache = ops.cross_entropy(logits, targets)
    recorder = _Recorder()
    recorder.give("ids", cache.embedding.ids, "bt", "tokens")
    recorder.give("targets", np.asarray(targets), "bt", "loss")
    for key, array in params.items():
        recorder.give(key, array, *_PARAMETERS[key.split(".")[-1]])
    streams = [block_cache.attn_norm.x for block_cache in cache.blocks] + [cache.final_norm.x]
    for l, block_cache in enumerate(cache.blocks):
        values = _block_values(block_cache, config) | {"x": streams[l], "y": streams[l + 1]}
        recorder.record("forward", (_FROM_BELOW if l else _LOOKED_UP, *_BLOCK), values, l)
    recorder.record("forward", _HEAD, _head_values(logits, targets, loss, loss_cache, cache))
    B, T = cache.embedding.ids.shape
    dh = config.d_head
    sizes = {"B": B, "T": T, "D": config.d_model, "H": config.n_heads, "dh": dh, "dh/2": dh // 2}
    sizes |= {"F": config.d_ff, "V": config.vocab_size}
    sizes |= {"eps": float(config.norm_eps), "base": float(config.rope_base)}
    return Trace(tuple(recorder.steps.values()), MappingProxyType(sizes))


def _norm_values(norm, cache):
    return {f"{norm}_inv_rms": cache.inv_rms[..., 0], f"{norm}_unit": cache.x * cache.inv_rms}


def _block_values(cache, config):
    """Return the tensors of a block's forward pass by name, but for x and y."""
    w, z, swiglu, p = cache.weights, cache.z, cache.swiglu, cache.attention.p
    _, H, T, dh = cache.q.shape
    values = _norm_values("attn", cache.attn_norm)
    # as in model.block
    values["z"] = z
    values["q"] = model.split_heads(z @ w.wq, H)  # (B,T,D) -> (B,H,T,dh)
    values["k"] = model.split_heads(z @ w.wk, H)
    values["v"] = cache.v
    # as in model.rope
    frequencies = float(config.rope_base) ** (-np.arange(0, dh, 2) / dh)
    values["angle"] = np.outer(np.arange(T, dtype=np.float64), frequencies)
    values["q_rot"], values["k_rot"] = cache.q, cache.k
    # as in model.attention and ops.softmax
    scores = cache.q @ cache.k.swapaxes(-1, -2) / np.sqrt(dh)
    masked = np.where(model.causal_mask(T), scores, -np.inf)
    row_max = masked.max(axis=-1, keepdims=True)
    values |= {
        "scores": scores,
        "masked": masked,
        "row_max": row_max[..., 0],
        "exps": np.exp(masked - row_max),
    }
    values |= {"p": p, "o": p @ cache.v, "joined": cache.joined, "brought": cache.joined @ w.wo}
    values |= {"r": cache.ffn_norm.x, "n": cache.n} | _norm_values("ffn", cache.ffn_norm)
    # as in model.swiglu
    values |= {"u": swiglu.u, "up": swiglu.up, "sigmoid": _sigmoid(swiglu.u), "gate": swiglu.gate}
    values |= {"hidden": swiglu.hidden, "wrote": swiglu.hidden @ w.w2}
    return values


def _sigmoid(x):
    """As in ops.silu. Far below zero exp overflows to infinity, and the quotient is a correct 0."""
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-x))


def _head_values(logits, targets, loss, loss_cache, cache):
    """Return the tensors from the final norm to the loss by name."""
    # as in ops.cross_entropy
    logit_max = logits.max(axis=-1, keepdims=True)
    logit_exps = np.exp(logits - logit_max)
    log_probs = logits - logit_max - np.log(logit_exps.sum(axis=-1, keepdims=True))
    losses = -log_probs[loss_cache.one_hot].reshape(np.shape(targets))
    values = _norm_values("final", cache.final_norm)
    values |= {"final": cache.unembedding.x, "logits": logits, "logit_max": logit_max[..., 0]}
    values |= {"logit_exps": logit_exps, "log_probs": log_probs, "probs": loss_cache.p}
    return values | {"losses": losses, "loss": loss}
