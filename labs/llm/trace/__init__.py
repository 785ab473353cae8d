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
    log_chances, surprises    the logarithm of chances; minus it at each target, whose mean is the loss
    attn_mean                 of RMSNorm backward: the mean of dattn_unit * attn_unit; so for ffn and final
    dz_q, dz_k, dz_v          what comes back to z through q, k and v; so for dn_u and dn_up
    dr_branch, dx_branch      what comes back through a branch; the rest went past it

Any other name with a d in front is the gradient of the loss with respect to what follows the d.
"""

import functools
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from labs.llm import arguments, model, ops
from labs.llm.ops import LinearCache, linear_backward
from labs.llm.parameters import param_axes
from labs.llm.trace import formula

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


# The formulas, in order


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


class _Recipe(NamedTuple):
    """What is known of a step before there are numbers."""

    name: str
    axes: str
    formula: str
    by: str
    part: str | None  # None for a gradient, which belongs where its tensor does
    of: str | None  # name of the tensor whose gradient it is, or a share of the gradient


def _recipe(line, by, part=None, of=None):
    """Return the recipe that a line such as "r[b, t, d] = x[b, t, d] + brought[b, t, d]" spells."""
    entry, text = line.split(" = ", 1)
    name, _, letters = entry.rstrip("]").partition("[")
    return _Recipe(name, letters.replace(", ", ""), text, by, part, of)


def _steps(part, by, *lines):
    """Return the recipes of what a box of the diagram computes with one function."""
    return tuple(_recipe(line, by, part=part) for line in lines)


def _gradients(by, *lines):
    """Return the recipes of gradients: dX is that of X."""
    return tuple(_share(by, line, line[1:].split("[")[0]) for line in lines)


def _share(by, line, of):
    """Return the recipe of a share of the gradient of tensor `of`."""
    return _recipe(line, by, of=of)


_EVERY = "for b in range(B) for t in range(T)"


def _rms_norm(norm, x, y):
    """Return the recipes of y = rms_norm(x), where `norm` is attn, ffn or final."""
    return _steps(
        f"{norm}_norm",
        "ops.rms_norm",
        f"{norm}_inv_rms[b, t] = 1 / sqrt(sum({x}[b, t, d] ** 2 for d in range(D)) / D + eps)",
        f"{norm}_unit[b, t, d] = {x}[b, t, d] * {norm}_inv_rms[b, t]",
        f"{y}[b, t, d] = {norm}_norm[d] * {norm}_unit[b, t, d]",
    )


def _rms_norm_backward(norm, y):
    """Return the recipes of RMSNorm backward from dy, all but the last one."""
    by, unit = "ops.rms_norm_backward", f"{norm}_unit"
    products = f"d{unit}[b, t, d] * {unit}[b, t, d]"
    return (
        *_gradients(by, f"d{norm}_norm[d] = sum(d{y}[b, t, d] * {unit}[b, t, d] {_EVERY})"),
        *_gradients(by, f"d{unit}[b, t, d] = d{y}[b, t, d] * {norm}_norm[d]"),
        *_steps(f"{norm}_norm", by, f"{norm}_mean[b, t] = sum({products} for d in range(D)) / D"),
    )


def _rms_norm_to(dx, norm, of):
    """Return the last recipe of RMSNorm backward: dx, the gradient of `of` or a share of it."""
    line = (
        f"{dx}[b, t, d] = {norm}_inv_rms[b, t]"
        f" * (d{norm}_unit[b, t, d] - {norm}_unit[b, t, d] * {norm}_mean[b, t])"
    )
    return _share("ops.rms_norm_backward", line, of)


def _rotated(x, y, even, odd):
    """Return the line of y = rope(x): pair (2r, 2r + 1) turns by angle r, back with the signs exchanged."""
    cos, sin = "cos(angle[t, e // 2])", "sin(angle[t, e // 2])"
    own = f"{x}[b, h, t, e] * {cos}"
    after, before = f"{x}[b, h, t, e + 1] * {sin}", f"{x}[b, h, t, e - 1] * {sin}"
    return f"{y}[b, h, t, e] = {own} {even} {after} if e % 2 == 0 else {own} {odd} {before}"


_LOOKED_UP = _steps("embedding", "ops.embedding", "x[b, t, d] = embedding[ids[b, t], d]")
_FROM_BELOW = _steps("embedding", "model.block", "x[b, t, d] = y[b, t, d]")

_BLOCK = (
    *_rms_norm("attn", "x", "z"),
    *_steps(
        "attention",
        "model.block",
        "q[b, h, t, e] = sum(z[b, t, m] * wq[m, h * dh + e] for m in range(D))",
        "k[b, h, t, e] = sum(z[b, t, m] * wk[m, h * dh + e] for m in range(D))",
        "v[b, h, t, e] = sum(z[b, t, m] * wv[m, h * dh + e] for m in range(D))",
    ),
    *_steps(
        "attention",
        "model.rope",
        "angle[t, r] = t * base ** (-2 * r / dh)",
        _rotated("q", "q_rot", "-", "+"),
        _rotated("k", "k_rot", "-", "+"),
    ),
    *_steps(
        "attention",
        "model.attention",
        "scores[b, h, i, j] = sum(q_rot[b, h, i, e] * k_rot[b, h, j, e] for e in range(dh)) / sqrt(dh)",
        "masked[b, h, i, j] = scores[b, h, i, j] if j <= i else -inf",
    ),
    *_steps(
        "attention",
        "ops.softmax",
        "row_max[b, h, i] = max(masked[b, h, i, j] for j in range(T))",
        "exps[b, h, i, j] = exp(masked[b, h, i, j] - row_max[b, h, i])",
        "p[b, h, i, j] = exps[b, h, i, j] / sum(exps[b, h, i, c] for c in range(T))",
    ),
    *_steps(
        "attention",
        "model.attention",
        "o[b, h, t, e] = sum(p[b, h, t, j] * v[b, h, j, e] for j in range(T))",
    ),
    *_steps("attention", "model.merge_heads", "joined[b, t, m] = o[b, m // dh, t, m % dh]"),
    *_steps(
        "attention",
        "model.block",
        "brought[b, t, d] = sum(joined[b, t, m] * wo[m, d] for m in range(D))",
    ),
    *_steps("attn_add", "model.block", "r[b, t, d] = x[b, t, d] + brought[b, t, d]"),
    *_rms_norm("ffn", "r", "n"),
    *_steps(
        "swiglu",
        "model.swiglu",
        "u[b, t, f] = sum(n[b, t, d] * w1[d, f] for d in range(D))",
        "up[b, t, f] = sum(n[b, t, d] * w3[d, f] for d in range(D))",
    ),
    *_steps("swiglu", "ops.sigmoid", "sigmoid[b, t, f] = 1 / (1 + exp(-u[b, t, f]))"),
    *_steps("swiglu", "ops.silu", "gate[b, t, f] = u[b, t, f] * sigmoid[b, t, f]"),
    *_steps(
        "swiglu",
        "model.swiglu",
        "hidden[b, t, f] = gate[b, t, f] * up[b, t, f]",
        "wrote[b, t, d] = sum(hidden[b, t, f] * w2[f, d] for f in range(F))",
    ),
    *_steps("ffn_add", "model.block", "y[b, t, d] = r[b, t, d] + wrote[b, t, d]"),
)

_HEAD = (
    *_rms_norm("final", "y", "final"),
    *_steps(
        "unembedding",
        "ops.linear",
        "logits[b, t, v] = sum(final[b, t, d] * unembedding[d, v] for d in range(D))",
    ),
    *_steps(
        "loss",
        "ops.cross_entropy",
        "logit_max[b, t] = max(logits[b, t, v] for v in range(V))",
        "logit_exps[b, t, v] = exp(logits[b, t, v] - logit_max[b, t])",
        "log_chances[b, t, v] = "
        "logits[b, t, v] - logit_max[b, t] - log(sum(logit_exps[b, t, c] for c in range(V)))",
        "chances[b, t, v] = logit_exps[b, t, v] / sum(logit_exps[b, t, c] for c in range(V))",
        "surprises[b, t] = -log_chances[b, t, targets[b, t]]",
        f"loss = sum(surprises[b, t] {_EVERY}) / (B * T)",
    ),
)

_HEAD_BACKWARD = (
    *_gradients(
        "ops.cross_entropy_backward",
        "dlogits[b, t, v] = (chances[b, t, v] - (1 if v == targets[b, t] else 0)) / (B * T)",
    ),
    *_gradients(
        "ops.linear_backward",
        "dfinal[b, t, d] = sum(dlogits[b, t, v] * unembedding[d, v] for v in range(V))",
        f"dunembedding[d, v] = sum(final[b, t, d] * dlogits[b, t, v] {_EVERY})",
    ),
    *_rms_norm_backward("final", "final"),
)

_FROM_FINAL = (_rms_norm_to("dy", "final", of="y"),)
_FROM_ABOVE = _gradients("model.block_backward", "dy[b, t, d] = dx[b, t, d]")

_BLOCK_BACKWARD = (
    # y = r + wrote
    *_gradients("model.block_backward", "dwrote[b, t, d] = dy[b, t, d]"),
    # wrote = hidden @ w2
    *_gradients(
        "ops.linear_backward",
        "dhidden[b, t, f] = sum(dwrote[b, t, d] * w2[f, d] for d in range(D))",
        f"dw2[f, d] = sum(hidden[b, t, f] * dwrote[b, t, d] {_EVERY})",
    ),
    # hidden = gate * up
    *_gradients(
        "model.swiglu_backward",
        "dgate[b, t, f] = dhidden[b, t, f] * up[b, t, f]",
        "dup[b, t, f] = dhidden[b, t, f] * gate[b, t, f]",
    ),
    # gate = u * sigmoid
    *_gradients(
        "ops.silu_backward",
        "du[b, t, f] = dgate[b, t, f] * sigmoid[b, t, f] * (1 + u[b, t, f] * (1 - sigmoid[b, t, f]))",
    ),
    # u = n @ w1, up = n @ w3
    *_gradients(
        "ops.linear_backward",
        f"dw1[d, f] = sum(n[b, t, d] * du[b, t, f] {_EVERY})",
        f"dw3[d, f] = sum(n[b, t, d] * dup[b, t, f] {_EVERY})",
    ),
    _share("ops.linear_backward", "dn_u[b, t, d] = sum(du[b, t, f] * w1[d, f] for f in range(F))", of="n"),
    _share("ops.linear_backward", "dn_up[b, t, d] = sum(dup[b, t, f] * w3[d, f] for f in range(F))", of="n"),
    *_gradients("model.swiglu_backward", "dn[b, t, d] = dn_u[b, t, d] + dn_up[b, t, d]"),
    # n = rms_norm(r), and r also went past the branch untouched
    *_rms_norm_backward("ffn", "n"),
    _rms_norm_to("dr_branch", "ffn", of="r"),
    *_gradients("model.block_backward", "dr[b, t, d] = dy[b, t, d] + dr_branch[b, t, d]"),
    # r = x + brought
    *_gradients("model.block_backward", "dbrought[b, t, d] = dr[b, t, d]"),
    # brought = joined @ wo
    *_gradients(
        "ops.linear_backward",
        "djoined[b, t, m] = sum(dbrought[b, t, d] * wo[m, d] for d in range(D))",
        f"dwo[m, d] = sum(joined[b, t, m] * dbrought[b, t, d] {_EVERY})",
    ),
    # joined = merge_heads(o)
    *_gradients("model.split_heads", "do[b, h, t, e] = djoined[b, t, h * dh + e]"),
    # o = p @ v
    *_gradients(
        "model.attention_backward",
        "dv[b, h, t, e] = sum(p[b, h, i, t] * do[b, h, i, e] for i in range(T))",
        "dp[b, h, i, j] = sum(do[b, h, i, e] * v[b, h, j, e] for e in range(dh))",
    ),
    # p = softmax(masked)
    *_gradients(
        "ops.softmax_backward",
        "dscores[b, h, i, j] = "
        "p[b, h, i, j] * (dp[b, h, i, j] - sum(p[b, h, i, c] * dp[b, h, i, c] for c in range(T)))",
    ),
    # scores = q_rot @ k_rot^T / sqrt(dh)
    *_gradients(
        "model.attention_backward",
        "dq_rot[b, h, t, e] = sum(dscores[b, h, t, j] * k_rot[b, h, j, e] for j in range(T)) / sqrt(dh)",
        "dk_rot[b, h, t, e] = sum(dscores[b, h, i, t] * q_rot[b, h, i, e] for i in range(T)) / sqrt(dh)",
    ),
    *_gradients("model.rope", _rotated("dq_rot", "dq", "+", "-"), _rotated("dk_rot", "dk", "+", "-")),
    # q, k, v = z @ wq, z @ wk, z @ wv; column d of a weight is entry d % dh of head d // dh
    *_gradients(
        "ops.linear_backward",
        f"dwq[m, d] = sum(z[b, t, m] * dq[b, d // dh, t, d % dh] {_EVERY})",
        f"dwk[m, d] = sum(z[b, t, m] * dk[b, d // dh, t, d % dh] {_EVERY})",
        f"dwv[m, d] = sum(z[b, t, m] * dv[b, d // dh, t, d % dh] {_EVERY})",
    ),
    *(
        _share(
            "ops.linear_backward",
            f"dz_{y}[b, t, d] = "
            f"sum(d{y}[b, h, t, e] * w{y}[d, h * dh + e] for h in range(H) for e in range(dh))",
            of="z",
        )
        for y in "qkv"
    ),
    *_gradients("model.block_backward", "dz[b, t, d] = dz_q[b, t, d] + dz_k[b, t, d] + dz_v[b, t, d]"),
    # z = rms_norm(x), and x also went past the branch untouched
    *_rms_norm_backward("attn", "z"),
    _rms_norm_to("dx_branch", "attn", of="x"),
    *_gradients("model.block_backward", "dx[b, t, d] = dr[b, t, d] + dx_branch[b, t, d]"),
)

_EMBEDDING_BACKWARD = _gradients(
    "ops.embedding_backward", f"dembedding[v, d] = sum(dx[b, t, d] {_EVERY} if ids[b, t] == v)"
)


# The numbers


def trace(params, ids, targets, config):
    """Run the model forward and backward, and record every tensor on the way.

    Args:
        params, ids, targets, config: as for model.loss_and_grads, with params in float64: a formula is
            evaluated in float64, and numbers in float32 would differ from it in the seventh digit.

    Returns: the Trace. What is given comes first: ids, targets and params; then the forward pass to the loss;
        then the backward pass down to the gradient of every parameter.
    Raises: TypeError unless params are float64; ValueError or TypeError if params, ids or targets do not fit
        the config.
    """
    logits, cache = model.forward(params, ids, config)
    if logits.dtype != np.float64:
        raise TypeError(
            f"params must be float64, got {logits.dtype}: formulas are evaluated in float64, "
            "so convert each array, for example array.astype(np.float64)"
        )
    loss, loss_cache = ops.cross_entropy(logits, targets)
    recorder = _Recorder()
    recorder.give("ids", cache.embedding.ids, "bt", "tokens")
    recorder.give("targets", targets, "bt", "loss")
    for key in param_axes(config):
        recorder.give(key, params[key], *_PARAMETERS[key.split(".")[-1]])

    streams = [block_cache.attn_norm.x for block_cache in cache.blocks] + [cache.final_norm.x]
    for l, block_cache in enumerate(cache.blocks):
        values = _block_values(block_cache) | {"x": streams[l], "y": streams[l + 1]}
        recorder.record("forward", (*(_FROM_BELOW if l else _LOOKED_UP), *_BLOCK), values, l)
    recorder.record("forward", _HEAD, _head_values(logits, targets, loss, loss_cache, cache))

    values = _head_backward_values(loss_cache, cache)
    recorder.record("backward", _HEAD_BACKWARD, values)
    dy, first = values["dy"], _FROM_FINAL
    for l in reversed(range(config.n_layers)):
        values = _block_backward_values(dy, cache.blocks[l])
        recorder.record("backward", (*first, *_BLOCK_BACKWARD), values, l)
        dy, first = values["dx"], _FROM_ABOVE
    dembedding = ops.embedding_backward(dy, cache.embedding)
    recorder.record("backward", _EMBEDDING_BACKWARD, {"dembedding": dembedding})
    return Trace(tuple(recorder.steps.values()), _sizes(cache.embedding.ids, config))


def _sizes(ids, config):
    (B, T), dh = ids.shape, config.d_head
    sizes = {"B": B, "T": T, "D": config.d_model, "H": config.n_heads, "dh": dh, "dh/2": dh // 2}
    sizes |= {"F": config.d_ff, "V": config.vocab_size}
    sizes |= {"eps": float(config.norm_eps), "base": float(config.rope_base)}
    return sizes


class _Recorder:
    """Gathers steps, and finds what a name means in a formula."""

    def __init__(self):
        self.steps = {}
        self.latest = {}  # name -> key of the last step of this name

    def give(self, key, value, axes, part):
        """Record a tensor that is given."""
        layer = int(key.split(".")[1]) if key.startswith("blocks.") else None
        name = key.split(".")[-1]
        self._add(
            Step(
                key=key,
                name=name,
                axes=axes,
                value=_frozen(value),
                formula=None,
                reads={},
                phase="given",
                part=part,
                by=None,
                layer=layer,
                gradient_of=None,
            )
        )

    def record(self, phase, recipes, values, layer=None):
        """Record a step for each recipe, in their order, with the array of its name in `values`."""
        for recipe in recipes:
            name = recipe.name
            of = None if recipe.of is None else self._key(recipe.of, layer)
            self._add(
                Step(
                    key=name if layer is None else f"blocks.{layer}.{name}",
                    name=name,
                    axes=recipe.axes,
                    value=_frozen(values[name]),
                    formula=recipe.formula,
                    reads={read: self._key(read, layer) for read in _names(recipe)},
                    phase=phase,
                    part=recipe.part if of is None else self.steps[of].part,
                    by=recipe.by,
                    layer=layer,
                    gradient_of=of,
                )
            )

    def _key(self, name, layer):
        """Return the key of the tensor that a step of `layer` calls `name`: the layer's own, or the latest.

        So the x of a block is read from the y of the block below, and its dy from the dx of the block above.
        """
        own = f"blocks.{layer}.{name}"
        return own if own in self.steps else self.latest[name]

    def _add(self, step):
        self.steps[step.key] = step
        self.latest[step.name] = step.key


def _frozen(value):
    """Return a copy that nobody can write into."""
    array = np.array(value, order="C")
    array.setflags(write=False)
    return array


def _names(recipe):
    return formula.tensor_names(formula.parse(recipe.formula, recipe.axes))


def _rms_norm_values(norm, cache):
    return {f"{norm}_inv_rms": cache.inv_rms[..., 0], f"{norm}_unit": cache.x * cache.inv_rms}


def _rms_norm_backward_values(norm, dy, cache):
    """Return dx, and by their names the other tensors of RMSNorm backward."""
    dx, dgain = ops.rms_norm_backward(dy, cache)
    # as in ops.rms_norm_backward
    unit, dunit = cache.x * cache.inv_rms, dy * cache.gain
    mean = np.vecdot(dunit, unit) / cache.gain.size
    return dx, {f"d{norm}_norm": dgain, f"d{norm}_unit": dunit, f"{norm}_mean": mean}


def _block_values(cache):
    """Return the tensors of a block's forward pass by name, but for x and y."""
    w, z, swiglu = cache.weights, cache.z, cache.swiglu
    _, H, T, dh = cache.q.shape
    values = {"z": z, "r": cache.ffn_norm.x, "n": cache.n}
    values |= _rms_norm_values("attn", cache.attn_norm) | _rms_norm_values("ffn", cache.ffn_norm)
    # as in model.block
    q, k = model.split_heads(z @ w.wq, H), model.split_heads(z @ w.wk, H)  # (B,T,D) -> (B,H,T,dh)
    values |= {"q": q, "k": k, "v": cache.v, "q_rot": cache.q, "k_rot": cache.k}
    values |= {"joined": cache.joined, "brought": cache.joined @ w.wo}
    # as in model.rope
    frequencies = float(cache.config.rope_base) ** (-np.arange(0, dh, 2) / dh)
    values["angle"] = np.outer(np.arange(T, dtype=np.float64), frequencies)
    # as in model.attention and ops.softmax
    scores = cache.q @ cache.k.swapaxes(-1, -2) / math.sqrt(dh)
    masked = np.where(model.causal_mask(T), scores, -np.inf)
    row_max = masked.max(axis=-1, keepdims=True)
    values |= {
        "scores": scores,
        "masked": masked,
        "row_max": row_max[..., 0],
        "exps": np.exp(masked - row_max),
    }
    values |= {"p": cache.attention.p, "o": cache.attention.p @ cache.v}
    # as in model.swiglu
    values |= {"u": swiglu.u, "up": swiglu.up, "sigmoid": ops.sigmoid(swiglu.u), "gate": swiglu.gate}
    return values | {"hidden": swiglu.hidden, "wrote": swiglu.hidden @ w.w2}


def _head_values(logits, targets, loss, loss_cache, cache):
    """Return the tensors from the final norm to the loss by name."""
    values = _rms_norm_values("final", cache.final_norm)
    # as in ops.cross_entropy
    logit_max = logits.max(axis=-1, keepdims=True)
    logit_exps = np.exp(logits - logit_max)
    log_chances = logits - logit_max - np.log(logit_exps.sum(axis=-1, keepdims=True))
    surprises = -log_chances[loss_cache.one_hot].reshape(np.shape(targets))
    values |= {"final": cache.unembedding.x, "logits": logits, "logit_max": logit_max[..., 0]}
    values |= {"logit_exps": logit_exps, "log_chances": log_chances, "chances": loss_cache.p}
    return values | {"surprises": surprises, "loss": loss}


def _head_backward_values(loss_cache, cache):
    """Return the gradients from the loss to the last block's dy by name."""
    # as in model.backward
    dlogits = ops.cross_entropy_backward(1.0, loss_cache)
    dfinal, dunembedding = linear_backward(dlogits, cache.unembedding)
    dy, values = _rms_norm_backward_values("final", dfinal, cache.final_norm)
    return values | {"dlogits": dlogits, "dfinal": dfinal, "dunembedding": dunembedding, "dy": dy}


def _block_backward_values(dy, cache):
    """Return the tensors of a block's backward pass by name."""
    w, z, swiglu, config = cache.weights, cache.z, cache.swiglu, cache.config
    values = {"dy": dy, "dwrote": dy}
    # as in model.swiglu_backward
    dhidden, values["dw2"] = linear_backward(dy, LinearCache(swiglu.hidden, w.w2))
    dgate, dup = dhidden * swiglu.up, dhidden * swiglu.gate
    du = ops.silu_backward(dgate, swiglu.u)
    dn_u, values["dw1"] = linear_backward(du, LinearCache(cache.n, w.w1))
    dn_up, values["dw3"] = linear_backward(dup, LinearCache(cache.n, w.w3))
    dn = dn_u + dn_up
    values |= {
        "dhidden": dhidden,
        "dgate": dgate,
        "dup": dup,
        "du": du,
        "dn_u": dn_u,
        "dn_up": dn_up,
        "dn": dn,
    }
    # as in model.block_backward
    dr_branch, rest = _rms_norm_backward_values("ffn", dn, cache.ffn_norm)
    dr = dy + dr_branch
    djoined, values["dwo"] = linear_backward(dr, LinearCache(cache.joined, w.wo))
    do = model.split_heads(djoined, config.n_heads)  # (B,T,D) -> (B,H,T,dh)
    values |= rest | {"dr_branch": dr_branch, "dr": dr, "dbrought": dr, "djoined": djoined, "do": do}
    dq_rot, dk_rot, dv = model.attention_backward(do, cache.attention)
    # as in model.attention_backward
    dp = do @ cache.v.swapaxes(-1, -2)
    values |= {"dv": dv, "dp": dp, "dscores": ops.softmax_backward(dp, cache.attention.p)}
    values |= {"dq_rot": dq_rot, "dk_rot": dk_rot}
    # as in model.block_backward again
    dq = model.rope(dq_rot, cache.positions, base=config.rope_base, inverse=True)
    dk = model.rope(dk_rot, cache.positions, base=config.rope_base, inverse=True)
    dz_q, values["dwq"] = linear_backward(model.merge_heads(dq), LinearCache(z, w.wq))
    dz_k, values["dwk"] = linear_backward(model.merge_heads(dk), LinearCache(z, w.wk))
    dz_v, values["dwv"] = linear_backward(model.merge_heads(dv), LinearCache(z, w.wv))
    dz = dz_q + dz_k + dz_v
    dx_branch, rest = _rms_norm_backward_values("attn", dz, cache.attn_norm)
    values |= {"dq": dq, "dk": dk, "dz_q": dz_q, "dz_k": dz_k, "dz_v": dz_v, "dz": dz}
    return values | rest | {"dx_branch": dx_branch, "dx": dr + dx_branch}
