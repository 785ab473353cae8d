"""Each check accepts differently written right answers, and rejects the stub and the typical wrong ones."""

import inspect
from fractions import Fraction

import numpy as np
import pytest

from labs.course.notation import example_sizes
from labs.exercises import backward_model
from labs.exercises.backward_model import LEDGER
from labs.llm import model, ops, tiny
from labs.llm.trace import trace

# By pencil

PENCIL = {"unit": [1.4, -0.2], "dgain": [1.4, -1.0], "dunit": [2, 5], "dx": [0.148, 1.036]}


def test_the_pencil_numbers_are_those_of_the_library():
    x, gain, dy = np.array([7.0, -1.0]), np.array([2.0, 1.0]), np.array([1.0, 5.0])
    dx, dgain = ops.rms_norm_backward(dy, ops.rms_norm(x, gain, eps=1e-12)[1])
    np.testing.assert_allclose(PENCIL["dx"], dx, rtol=1e-12)
    np.testing.assert_allclose(PENCIL["dgain"], dgain, rtol=1e-12)


@pytest.mark.parametrize(
    "answer",
    [
        PENCIL,
        {key: np.array(numbers) for key, numbers in PENCIL.items()},
        PENCIL | {"unit": (Fraction(7, 5), Fraction(-1, 5)), "dx": [0.15, 1.04]},
    ],
)
def test_right_pencil_numbers_are_accepted(answer):
    assert backward_model.check_pencil(**answer).passed


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (dict.fromkeys(PENCIL), "unit: still open; a list of 2 numbers"),
        ({"unit": [2.8, -0.2]}, "The gain comes after unit"),
        ({"unit": [0.99, -0.14]}, "not by the length"),
        ({"unit": [0.28, -0.04]}, "not by the mean square"),
        ({"dgain": [7, -5]}, "not dy times x"),
        ({"dgain": [2.8, -1]}, "The gain itself is not in its gradient"),
        ({"dunit": [1, 5]}, "so is what comes back"),
        ({"dx": [0.4, 1]}, "direct path only"),
        ({"dx": [-0.1, 1.07]}, "divide the sum by 2"),
        ({"dx": [0.74, 5.18]}, "factor 1/5 is missing"),
        ({"dx": [0.65, 0.96]}, "is subtracted"),
        ({"dx": [-0.86, 1.18]}, "holds unit, not x"),
        ({"dx": [1, 2, 3]}, "dx: a list of 2 numbers is expected, got a list of 3 numbers"),
        ({"dx": None}, "dx: still open"),
    ],
)
def test_open_and_wrong_pencil_numbers_are_rejected_with_a_hint(wrong, hint):
    verdict = backward_model.check_pencil(**PENCIL | wrong)
    assert not verdict.passed
    assert hint in verdict.message, verdict


# RMSNorm


def norm_back(dy, x, gain, eps):
    inv_rms = 1 / np.sqrt(np.mean(x**2, axis=-1, keepdims=True) + eps)
    unit, dunit = x * inv_rms, dy * gain
    return inv_rms * (dunit - unit * np.mean(dunit * unit, axis=-1, keepdims=True))


def norm_back_by_jacobian(dy, x, gain, eps):
    out = np.empty_like(x)
    for place in np.ndindex(x.shape[:-1]):
        row, D = x[place], gain.size
        rho = (row @ row / D + eps) ** -0.5
        jacobian = np.diag(gain) @ (rho * np.eye(D) - rho**3 * np.outer(row, row) / D)  # dy_j / dx_i
        out[place] = dy[place] @ jacobian
    return out


def norm_back_by_the_library(dy, x, gain, eps):
    return ops.rms_norm_backward(dy, ops.rms_norm(x, gain, eps=eps)[1])[0]


@pytest.mark.parametrize("function", [norm_back, norm_back_by_jacobian, norm_back_by_the_library])
def test_right_norms_are_accepted(function):
    assert backward_model.check_rms_norm_backward(function).passed


def replaced(function, old, new):
    """The function with a piece of its source changed."""
    source = inspect.getsource(function)
    assert source.count(old) == 1, (old, source)
    space = {"np": np, "slope_at": lambda u: ops.silu_backward(np.ones_like(u), u)}
    exec(source.replace(old, new), space)
    return space[function.__name__]


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        ("(dunit - unit * np.mean(dunit * unit, axis=-1, keepdims=True))", "dunit", "second term is missing"),
        ("dy * gain", "dy", "The gain is missing."),
        ("np.mean(dunit * unit,", "np.mean(dy * unit,", "missing inside the mean"),
        ("(dunit - unit", "(dy - unit", "in the first term too"),
        ("(dunit - unit", "(dunit + unit", "subtracted, not added"),
        ("np.mean(dunit * unit,", "np.sum(dunit * unit,", "it is a mean"),
        ("dunit * unit, axis=-1", "dunit * unit, axis=None", "for each position alone"),
        ("dunit * unit, axis=-1", "dunit * unit, axis=1", "along the positions"),
        ("return inv_rms * ", "return ", "in front is missing"),
        (" + eps", "", "eps is missing"),
        ("return inv_rms * (dunit - unit", "return 2 * inv_rms * (dunit - unit", "inv_rms * (dunit - unit"),
        ("return ", "return None and ", "still needs its line"),
        ("return ", "x += 1; return ", "writes into its argument"),
        ("return ", "return 1.00000001 * ", "Right to about 8 digits"),
        ("+ eps", "+ 0.1", "but not for dy and x of shape (2, 5, 9)"),
        ("return ", "return (1, 2) or ", "returns tuple"),
    ],
)
def test_wrong_norms_are_rejected_with_a_hint(old, new, hint):
    verdict = backward_model.check_rms_norm_backward(replaced(norm_back, old, new))
    assert not verdict.passed
    assert hint in verdict.message, verdict


def test_the_way_forward_is_recognised():
    def forward(dy, x, gain, eps):  # noqa: ARG001
        return ops.rms_norm(x, gain, eps=eps)[0]

    assert "forward pass, not the backward" in backward_model.check_rms_norm_backward(forward).message


# SwiGLU


def swiglu_back(dffn_out, n, w1, w3, w2):
    u, up = n @ w1, n @ w3
    sigma = 1 / (1 + np.exp(-u))
    gate = u * sigma
    dhidden = dffn_out @ w2.T
    slope = sigma * (1 + u * (1 - sigma))
    dgate = dhidden * up
    dup = dhidden * gate
    return (dgate * slope) @ w1.T + dup @ w3.T


def swiglu_back_by_positions(dffn_out, n, w1, w3, w2):
    out = np.zeros_like(n)
    for place in np.ndindex(n.shape[:2]):
        u, up = w1.T @ n[place], w3.T @ n[place]
        slope = ops.silu_backward(np.ones_like(u), u)
        dhidden = w2 @ dffn_out[place]
        for f in range(len(u)):
            out[place] += dhidden[f] * (up[f] * slope[f] * w1[:, f] + u[f] / (1 + np.exp(-u[f])) * w3[:, f])
    return out


def swiglu_back_by_the_library(dffn_out, n, w1, w3, w2):
    return model.swiglu_backward(dffn_out, model.swiglu(n, w1, w3, w2)[1])[0]


@pytest.mark.parametrize("function", [swiglu_back, swiglu_back_by_positions, swiglu_back_by_the_library])
def test_right_swiglus_are_accepted(function):
    assert backward_model.check_swiglu_backward(function).passed


def both_factors_missing(dffn_out, n, w1, w3, w2):
    u = n @ w1
    sigma = 1 / (1 + np.exp(-u))
    dhidden = dffn_out @ w2.T
    du = dhidden * (sigma + u * sigma * (1 - sigma))
    dup = dhidden * sigma
    return du @ w1.T + dup @ w3.T


def test_the_notebooks_version_is_rejected_with_a_hint():
    verdict = backward_model.check_swiglu_backward(both_factors_missing)
    assert not verdict.passed
    assert "Each arm lacks a factor" in verdict.message


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        (" + dup @ w3.T", "", "n also feeds up"),
        ("(dgate * slope) @ w1.T + ", "", "n also feeds u "),
        ("dgate = dhidden * up", "dgate = dhidden", "the factor up is missing"),
        ("dup = dhidden * gate", "dup = dhidden", "the factor gate is missing"),
        ("dup = dhidden * gate", "dup = dhidden * u", "gate is u times its sigmoid"),
        ("dup = dhidden * gate", "dup = dhidden * sigma", "not times the sigmoid alone"),
        ("gate = u * sigma\n", "gate, up = up, u * sigma\n", "gate and up are swapped"),
        ("(dgate * slope)", "dgate", "slope of SiLU is missing"),
        ("slope = sigma * (1 + u * (1 - sigma))", "slope = slope_at(gate)", "belongs at u"),
        ("@ w1.T + dup @ w3.T", "@ w3.T + dup @ w1.T", "matrices of the two arms are swapped"),
        (" + dup @", " - dup @", "arms add"),
        ("return (dgate * slope)", "return (2 * dgate * slope)", "dhidden = dffn_out @ w2.T"),
        ("return ", "return None and ", "still needs its line"),
        ("dffn_out @ w2.T", "dffn_out @ w2", "stopped with ValueError"),
        ("return (dgate", "return (gate * up) @ w2 if True else (dgate", "forward pass, not the backward"),
        ("return ", "n *= 2; return ", "writes into its argument"),
        ("return (dgate", "return (n.shape[1] / 7) * (dgate", "but not for n of shape (2, 5, 9)"),
    ],
)
def test_wrong_swiglus_are_rejected_with_a_hint(old, new, hint):
    verdict = backward_model.check_swiglu_backward(replaced(swiglu_back, old, new))
    assert not verdict.passed
    assert hint in verdict.message, verdict


# The ledger


def solution():
    """The ledger as the notebook's answer has it."""
    return {
        name: (entry.axes, entry.written_by[0], ", ".join(sorted(entry.read_for)))
        for name, entry in LEDGER.items()
    }


def kept_arrays():
    """The arrays of the example by the names of the ledger."""
    params, config = tiny.params(), tiny.CONFIG
    logits, cache = model.forward(params, tiny.INPUT_IDS, config)
    block = cache.blocks[0]
    return {
        "probs": ops.cross_entropy(logits, tiny.TARGET_IDS)[1].p,
        "final": cache.final,
        "y": cache.final_norm.x,
        "hidden": block.hidden,
        "gate": block.swiglu.gate,
        "up": block.swiglu.up,
        "u": block.swiglu.u,
        "n": block.n,
        "r": block.ffn_norm.x,
        "joined": block.joined,
        "p": block.attention.p,
        "v": block.v,
        "k_rot": block.k,
        "q_rot": block.q,
        "z": block.z,
        "x": block.attn_norm.x,
    }


def way_back(kept, upstream):
    """Every gradient by its own line; where `upstream` has a gradient, the lines behind it read that one."""
    params, (H, dh) = tiny.params(), (tiny.CONFIG.n_heads, tiny.CONFIG.d_head)
    _, cache = model.forward(params, tiny.INPUT_IDS, tiny.CONFIG)
    block, w = cache.blocks[0], model.block_weights(params, 0)
    one_hot = np.eye(tiny.CONFIG.vocab_size)[tiny.TARGET_IDS]
    grads = {}

    def line(name, value):
        grads[name] = value
        return upstream.get(name, value)

    def rows(array):
        return array.reshape(-1, array.shape[-1])

    def norm(dout, name, cached):
        return ops.rms_norm_backward(dout, cached._replace(x=kept[name]))

    dlogits = line("dlogits", (kept["probs"] - one_hot) / one_hot[..., 0].size)
    line("dunembedding", rows(kept["final"]).T @ rows(dlogits))
    dfinal = line("dfinal", dlogits @ params["unembedding"].T)
    dy, dgain = norm(dfinal, "y", cache.final_norm)
    line("dfinal_norm", dgain)
    dy = line("dy", dy)
    line("dw2", rows(kept["hidden"]).T @ rows(dy))
    dhidden = line("dhidden", dy @ w.w2.T)
    dgate, dup = line("dgate", dhidden * kept["up"]), line("dup", dhidden * kept["gate"])
    du = line("du", ops.silu_backward(dgate, kept["u"]))
    line("dw1", rows(kept["n"]).T @ rows(du))
    line("dw3", rows(kept["n"]).T @ rows(dup))
    dn = line("dn", du @ w.w1.T + dup @ w.w3.T)
    dr, dgain = norm(dn, "r", block.ffn_norm)
    line("dffn_norm", dgain)
    dr = line("dr", dy + dr)
    line("dwo", rows(kept["joined"]).T @ rows(dr))
    do = line("do", model.split_heads(dr @ w.wo.T, H))
    line("dv", kept["p"].swapaxes(-1, -2) @ do)
    dp = line("dp", do @ kept["v"].swapaxes(-1, -2))
    dscores = line("dscores", ops.softmax_backward(dp, kept["p"]))
    dq_rot = line("dq_rot", dscores @ kept["k_rot"] / np.sqrt(dh))
    dk_rot = line("dk_rot", dscores.swapaxes(-1, -2) @ kept["q_rot"] / np.sqrt(dh))
    dq, dk = (line(f"d{name}", model.rope(g, inverse=True)) for name, g in (("q", dq_rot), ("k", dk_rot)))
    split = {"wq": dq, "wk": dk, "wv": upstream.get("dv", grads["dv"])}
    merged = {name: model.merge_heads(gradient) for name, gradient in split.items()}
    for name, gradient in merged.items():
        line(f"d{name}", rows(kept["z"]).T @ rows(gradient))
    dz = line("dz", sum(gradient @ getattr(w, name).T for name, gradient in merged.items()))
    dx, dgain = norm(dz, "x", block.attn_norm)
    line("dattn_norm", dgain)
    line("dx", dr + dx)
    return grads


def test_the_lines_of_the_way_back_are_right():
    found = way_back(kept_arrays(), upstream={})
    _, grads = model.loss_and_grads(tiny.params(), tiny.INPUT_IDS, tiny.TARGET_IDS, tiny.CONFIG)
    for key, gradient in grads.items():
        if key != "embedding":  # read from dx and the ids alone
            np.testing.assert_allclose(found[f"d{key.split('.')[-1]}"], gradient, rtol=1e-10, err_msg=key)


@pytest.mark.parametrize("name", LEDGER)
def test_the_ledger_says_which_lines_read_an_array(name):
    """What turns NaN when the array does, while all upstream gradients stay as they are."""
    kept = kept_arrays()
    right = way_back(kept, upstream={})
    found = way_back(kept | {name: np.full_like(kept[name], np.nan)}, upstream=right)
    assert {key for key, gradient in found.items() if np.isnan(gradient).any()} == LEDGER[name].read_for


def test_the_ledger_says_which_shape_an_array_has():
    sizes = example_sizes()
    for name, array in kept_arrays().items():
        assert array.shape == tuple(sizes[axis] for axis in LEDGER[name].axes.split(",")), name


def test_the_ledger_says_which_function_wrote_an_array():
    steps = trace(tiny.params(), tiny.INPUT_IDS, tiny.TARGET_IDS, tiny.CONFIG).steps
    by = {step.name: step.by.split(".")[-1] for step in steps if step.phase == "forward"}
    by["v"] = "split_heads"  # which the trace counts among the lines of the block
    assert [name for name, entry in LEDGER.items() if by[name] not in entry.written_by] == []
    assert set().union(*(entry.written_by for entry in LEDGER.values())) <= {
        *by.values(),
        "attention",
        "linear",
    }


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"n": ["B, T, D", "rms_norm", "dw3 and dw1"]},
        {
            "n": ("[B, T, D].", "ops.rms_norm()", "dw3, dw1."),
            "r": ("B T D", "labs.llm.model.block", "dffn_norm/dr"),
        },
        {"hidden": ("(B,T,F)", " swiglu ", "dw2, dw2"), "v": ("B,H,T,d_h", "split_heads", "dp")},
        {"p": ("B,H,T,T", "softmax", "dscores dv"), "gate": ("B,T,F", "silu", "dup")},
    ],
)
def test_right_ledgers_are_accepted(change):
    assert backward_model.check_ledger(solution() | change).passed


@pytest.mark.parametrize(
    ("change", "hint"),
    [
        ({"hidden": (None, None, None)}, "hidden: shape is still open"),
        ({"hidden": ("B,T,F", None, None)}, "hidden: written by is still open"),
        ({"hidden": ("B,T,F", "swiglu", None)}, "hidden: read for is still open"),
        ({"hidden": ("B,T,D", "swiglu", "dw2")}, "hidden: not this shape. It has 3 axes"),
        ({"p": ("B,T,T", "attention", "dv, dscores")}, "p: not this shape. It has 4 axes"),
        ({"hidden": ("B,T,F", "block", "dw2")}, "hidden: another function wrote it"),
        ({"hidden": ("B,T,F", "block swiglu", "dw2")}, "hidden: another function wrote it"),
        ({"hidden": ("B,T,F", "", "dw2")}, "hidden: another function wrote it"),
        ({"joined": ("B,T,D", "split_heads", "dwo")}, "joined: another function wrote it"),
        ({"x": ("B,T,D", "embedding", "dembedding")}, "x: not these gradients"),
        ({"u": ("B,T,F", "swiglu", "du", "")}, "u: three texts are expected"),
        (
            {"hidden": ("B,T,F", "swiglu", "dgate")},
            "hidden: not these gradients, or not all of them.",
        ),
        ({"gate": ("B,T,F", "swiglu", "dgate")}, "gate: not these gradients, or not all of them. A product"),
        ({"p": ("B,H,T,T", "attention", "dv")}, "p: not these gradients, or not all of them. O = P V"),
        ({"u": ("B,T,F", "swiglu", "W1")}, "u: W1 is not the name of a gradient here"),
        ({"u": ("B,T,F", "swiglu", "")}, "u: not these gradients"),
        ({"u": ("B,T,F", "swiglu", ["du"])}, "u: read for should be a text, got ['du']"),
        ({"u": "du"}, "u: three texts are expected: shape, written by, read for; got 'du'"),
        ({"u": None}, "u: three texts are expected"),
        ({"scores": ("B,H,T,T", "attention", "dp"), 3: None}, "There should be no row for 'scores'."),
    ],
)
def test_open_and_wrong_ledgers_are_rejected_with_a_hint(change, hint):
    verdict = backward_model.check_ledger(solution() | change)
    assert not verdict.passed
    assert hint in verdict.message, verdict


@pytest.mark.parametrize("ledger", [None, [], "hidden", 3])
def test_a_ledger_of_another_kind_is_rejected(ledger):
    assert "should be a dict" in backward_model.check_ledger(ledger).message


def test_a_missing_row_is_named():
    ledger = solution()
    del ledger["z"]
    assert backward_model.check_ledger(ledger).message == "z: this row is missing."
