"""The formulas of both passes, in the order in which they are computed.

Names are those of the text. Beside them stand steps in between, which the library does not name or keep:

    attn_inv_rms, attn_unit   of z = attn_norm * attn_unit, attn_unit = x * attn_inv_rms; so for ffn and final
    angle                     by which RoPE turns pair r at position t, in radians
    row_max, exps             of the softmax of a row: its largest score, and exp(score - largest)
    attn_out, ffn_out         what attention and SwiGLU add to the residual stream
    sigmoid                   of gate = u * sigmoid
    logit_max, logit_exps     as row_max and exps, of a row of logits
    log_probs, nll            the logarithm of probs; minus it at each target, whose mean is the loss
    attn_mean                 of RMSNorm backward: the mean of dattn_unit * attn_unit; so for ffn and final
    dz_q, dz_k, dz_v          what comes back to z through q, k and v; so for dn_u and dn_up
    dr_branch, dx_branch      what comes back through a branch; the rest went past it

Any other name with a d in front is the gradient of the loss with respect to what follows the d.
"""

from typing import NamedTuple

#: Axes and part of the parameters.
PARAMETERS = {
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


class Recipe(NamedTuple):
    """What is known of a step before there are numbers."""

    name: str
    axes: str
    formula: str
    by: str
    part: str | None  # None for a gradient, which belongs where its tensor does
    of: str | None  # name of the tensor whose gradient it is, or a share of the gradient


def _recipe(line, by, part=None, of=None):
    """Return the recipe that a line such as "r[b, t, d] = x[b, t, d] + attn_out[b, t, d]" spells."""
    entry, text = line.split(" = ", 1)
    name, _, letters = entry.rstrip("]").partition("[")
    return Recipe(name, letters.replace(", ", ""), text, by, part, of)


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
        "attn_out[b, t, d] = sum(joined[b, t, m] * wo[m, d] for m in range(D))",
    ),
    *_steps("attn_add", "model.block", "r[b, t, d] = x[b, t, d] + attn_out[b, t, d]"),
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
        "ffn_out[b, t, d] = sum(hidden[b, t, f] * w2[f, d] for f in range(F))",
    ),
    *_steps("ffn_add", "model.block", "y[b, t, d] = r[b, t, d] + ffn_out[b, t, d]"),
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
        "log_probs[b, t, v] = "
        "logits[b, t, v] - logit_max[b, t] - log(sum(logit_exps[b, t, c] for c in range(V)))",
        "probs[b, t, v] = logit_exps[b, t, v] / sum(logit_exps[b, t, c] for c in range(V))",
        "nll[b, t] = -log_probs[b, t, targets[b, t]]",
        f"loss = sum(nll[b, t] {_EVERY}) / (B * T)",
    ),
)

_HEAD_BACKWARD = (
    *_gradients(
        "ops.cross_entropy_backward",
        "dlogits[b, t, v] = (probs[b, t, v] - (1 if v == targets[b, t] else 0)) / (B * T)",
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
    # y = r + ffn_out
    *_gradients("model.block_backward", "dffn_out[b, t, d] = dy[b, t, d]"),
    # ffn_out = hidden @ w2
    *_gradients(
        "ops.linear_backward",
        "dhidden[b, t, f] = sum(dffn_out[b, t, d] * w2[f, d] for d in range(D))",
        f"dw2[f, d] = sum(hidden[b, t, f] * dffn_out[b, t, d] {_EVERY})",
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
    # r = x + attn_out
    *_gradients("model.block_backward", "dattn_out[b, t, d] = dr[b, t, d]"),
    # attn_out = joined @ wo
    *_gradients(
        "ops.linear_backward",
        "djoined[b, t, m] = sum(dattn_out[b, t, d] * wo[m, d] for d in range(D))",
        f"dwo[m, d] = sum(joined[b, t, m] * dattn_out[b, t, d] {_EVERY})",
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


def in_order(n_layers):
    """Yield the recipes of both passes with their phase and their layer, None outside the blocks."""
    layers = range(n_layers)
    for l in layers:
        yield from (("forward", l, recipe) for recipe in (*(_FROM_BELOW if l else _LOOKED_UP), *_BLOCK))
    yield from (("forward", None, recipe) for recipe in _HEAD)
    yield from (("backward", None, recipe) for recipe in _HEAD_BACKWARD)
    for l in reversed(layers):
        dy = _FROM_ABOVE if l < n_layers - 1 else _FROM_FINAL
        yield from (("backward", l, recipe) for recipe in (*dy, *_BLOCK_BACKWARD))
    yield from (("backward", None, recipe) for recipe in _EMBEDDING_BACKWARD)
