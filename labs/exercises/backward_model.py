"""Checks for the exercises of chapter 10: RMSNorm and SwiGLU backward, and the ledger of what is kept."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from labs.exercises.language import say
from labs.exercises.pencil import Line, judge_numbers
from labs.exercises.verdict import RTOL, Case, Verdict, judge, shown
from labs.llm.model import swiglu, swiglu_backward
from labs.llm.ops import rms_norm, rms_norm_backward, silu, silu_backward


def check_pencil(
    unit: Sequence[float] | None,
    dgain: Sequence[float] | None,
    dunit: Sequence[float] | None,
    dx: Sequence[float] | None,
) -> Verdict:
    """Judge one vector's way back through RMSNorm by pencil: x = [7, -1], gain [2, 1], dy = [1, 5]."""
    x, gain, dy = np.array([7.0, -1.0]), np.array([2.0, 1.0]), np.array([1.0, 5.0])
    inv_rms = 1 / 5
    unit_right, dunit_right = x * inv_rms, dy * gain
    mean = np.mean(dunit_right * unit_right)
    return judge_numbers(
        {
            "unit": Line(
                unit,
                unit_right,
                {
                    say("The gain comes after unit."): gain * unit_right,
                    say("Divide by the root of the mean square, not by the length."): x / np.linalg.norm(x),
                    say("Divide by the root of the mean square, not by the mean square."): x / 25,
                },
            ),
            "dgain": Line(
                dgain,
                dy * unit_right,
                {
                    say("The gain multiplies unit, so its gradient is dy times unit, not dy times x."): dy
                    * x,
                    say("The gain itself is not in its gradient."): dunit_right * unit_right,
                },
            ),
            "dunit": Line(
                dunit, dunit_right, {say("unit is multiplied by the gain: so is what comes back."): dy}
            ),
            "dx": Line(
                dx,
                inv_rms * (dunit_right - unit_right * mean),
                {
                    say("This is the direct path only: x is in the factor too."): inv_rms * dunit_right,
                    say("The mean is over d numbers: divide the sum by 2."): (
                        inv_rms * (dunit_right - 2 * unit_right * mean)
                    ),
                    say("The factor 1/5 is missing."): dunit_right - unit_right * mean,
                    say("The second term is subtracted: a longer vector has a smaller factor."): (
                        inv_rms * (dunit_right + unit_right * mean)
                    ),
                    say("The second term holds unit, not x."): inv_rms * (dunit_right - x * mean),
                },
            ),
        },
        praise=say("Both terms, and the result is at a right angle to x."),
    )


def check_rms_norm_backward(function: Callable[..., np.ndarray]) -> Verdict:
    """Judge function(dy, x, gain, eps): the gradient of an RMSNorm's input, (B,T,D)."""
    rng = np.random.default_rng(10)
    return judge(
        function,
        _rms_norm_case(rng, (3, 7, 6), eps=0.1),
        _rms_norm_case(rng, (2, 5, 9), eps=0.3),
        call="check_rms_norm_backward(my_rms_norm_backward)",
        praise=say("Both terms, each position for itself, the gain inside."),
        rtol=RTOL,
    )


def _rms_norm_case(rng: np.random.Generator, shape: tuple[int, int, int], eps: float) -> Case:
    x, dy = 2 * rng.normal(size=shape), rng.normal(size=shape)
    gain = rng.uniform(0.5, 1.5, size=shape[-1])
    _, cache = rms_norm(x, gain, eps=eps)
    right, _ = rms_norm_backward(dy, cache)

    def wrong(dunit: np.ndarray, inside: np.ndarray, axis: int | None = -1, times: float = 1) -> np.ndarray:
        """The formula with another mean."""
        unit = x * cache.inv_rms
        mean = np.mean(inside * unit, axis=axis, keepdims=True)
        return cache.inv_rms * (dunit - times * unit * mean)

    dunit = dy * gain
    without_eps = rms_norm_backward(dy, rms_norm(x, gain, eps=1e-12)[1])[0]
    return Case(
        (dy, x, gain, eps),
        given=say("dy and x of shape {shape} and gain of shape {gain}", shape=shape, gain=gain.shape),
        expected=right,
        traps={
            say("The second term is missing: every x is in the factor too."): wrong(dunit, dunit, times=0),
            say("The gain is missing."): wrong(dy, dy),
            say("The gain is missing inside the mean: it is of dunit times unit."): wrong(dunit, dy),
            say("The gain belongs in the first term too."): wrong(dy, dunit),
            say("The second term is subtracted, not added."): wrong(dunit, dunit, times=-1),
            say("The sum has to be divided by D: it is a mean."): wrong(dunit, dunit, times=shape[-1]),
            say("The mean runs along the features, the last axis, for each position alone."): (
                wrong(dunit, dunit, axis=None)
            ),
            say("The mean runs along the positions. It belongs along the features."): wrong(
                dunit, dunit, axis=1
            ),
            say("The factor inv_rms in front is missing."): right / cache.inv_rms,
            say("eps is missing in the factor."): without_eps,
            say("This is the forward pass, not the backward pass."): rms_norm(x, gain, eps=eps)[0],
        },
        hint=say(
            "inv_rms * (dunit - unit * mean), with unit = x * inv_rms, dunit = dy * gain, and the mean of "
            "dunit * unit along the last axis."
        ),
    )


def check_swiglu_backward(function: Callable[..., np.ndarray]) -> Verdict:
    """Judge function(dffn_out, n, w1, w3, w2): the gradient of SwiGLU's input, (B,T,D)."""
    rng = np.random.default_rng(11)
    return judge(
        function,
        _swiglu_case(rng, 3, 7, 6, 10),
        _swiglu_case(rng, 2, 5, 9, 8),
        call="check_swiglu_backward(my_swiglu_backward)",
        praise=say("Both arms, each with the other's factor."),
        rtol=RTOL,
    )


def _swiglu_case(rng: np.random.Generator, B: int, T: int, D: int, F: int) -> Case:
    n, dffn_out = rng.normal(size=(B, T, D)), rng.normal(size=(B, T, D))
    w1, w3, w2 = rng.normal(size=(D, F)), rng.normal(size=(D, F)), rng.normal(size=(F, D))
    _, cache = swiglu(n, w1, w3, w2)
    right = swiglu_backward(dffn_out, cache)[0]
    u, up, gate, dhidden = cache.u, cache.up, cache.gate, dffn_out @ w2.T
    arm_u, arm_up = silu_backward(dhidden * up, u) @ w1.T, (dhidden * gate) @ w3.T
    sigmoid = 1 / (1 + np.exp(-u))
    return Case(
        (dffn_out, n, w1, w3, w2),
        given=say(
            "n of shape {n}, w1 and w3 of shape {w1} and w2 of shape {w2}",
            n=n.shape,
            w1=w1.shape,
            w2=w2.shape,
        ),
        expected=right,
        traps={
            say("Each arm lacks a factor. A product hands each factor the other one."): (
                silu_backward(dhidden, u) @ w1.T + (dhidden * sigmoid) @ w3.T
            ),
            say("One arm is there. n also feeds up = n @ w3, and the two add."): arm_u,
            say("One arm is there. n also feeds u = n @ w1, and the two add."): arm_up,
            say("The gate gets dhidden times up: the factor up is missing."): (
                silu_backward(dhidden, u) @ w1.T + arm_up
            ),
            say("up gets dhidden times gate: the factor gate is missing."): arm_u + dhidden @ w3.T,
            say("up gets dhidden times gate, and gate is u times its sigmoid."): arm_u + (dhidden * u) @ w3.T,
            say("up gets dhidden times gate, not times the sigmoid alone."): arm_u
            + (dhidden * sigmoid) @ w3.T,
            say("A product gives each factor the other one: gate and up are swapped."): (
                silu_backward(dhidden * gate, u) @ w1.T + (dhidden * up) @ w3.T
            ),
            say("The slope of SiLU is missing between gate and u."): (dhidden * up) @ w1.T + arm_up,
            say("The slope of SiLU is taken at gate; it belongs at u."): (
                silu_backward(dhidden * up, gate) @ w1.T + arm_up
            ),
            say("The matrices of the two arms are swapped."): (
                silu_backward(dhidden * up, u) @ w3.T + (dhidden * gate) @ w1.T
            ),
            say("The arms add; here the second one is subtracted."): arm_u - arm_up,
            say("This is the forward pass, not the backward pass."): (silu(u) * up) @ w2,
        },
        hint=say(
            "dhidden = dffn_out @ w2.T; du = dhidden * up * slope of SiLU at u; dup = dhidden * gate; then "
            "du @ w1.T + dup @ w3.T."
        ),
    )


class Entry(NamedTuple):
    """One array that the forward pass keeps."""

    axes: str  # the letters of its shape
    written_by: tuple[str, ...]  # the first is the answer, others say the same
    read_for: frozenset[str]  # the gradients whose own line reads it
    hint: str  # for another set of gradients


def _entry(axes: str, written_by: str, read_for: str, hint: str) -> Entry:
    return Entry(axes, tuple(written_by.split()), frozenset(read_for.split()), hint)


_DOT = say("Going back through a matrix product needs its input for the matrix's gradient only.")
_FACTOR = say("A product hands each factor the other one.")

#: The ledger, from the loss back to the embedding.
LEDGER = {
    "probs": _entry("B,T,V", "cross_entropy softmax", "dlogits", say("dlogits is probs minus one-hot.")),
    "final": _entry("B,T,D", "rms_norm", "dunembedding", _DOT),
    "y": _entry("B,T,D", "block", "dfinal_norm dy", say("unit = y * inv_rms is in both lines of the norm.")),
    "hidden": _entry("B,T,F", "swiglu", "dw2", _DOT),
    "gate": _entry("B,T,F", "swiglu silu", "dup", _FACTOR),
    "up": _entry("B,T,F", "swiglu linear", "dgate", _FACTOR),
    "u": _entry("B,T,F", "swiglu linear", "du", say("The slope of SiLU is taken at u.")),
    "n": _entry("B,T,D", "rms_norm", "dw1 dw3", f"{_DOT} {say('There are two matrices.')}"),
    "r": _entry("B,T,D", "block", "dffn_norm dr", say("unit = r * inv_rms is in both lines of the norm.")),
    "joined": _entry("B,T,D", "merge_heads", "dwo", _DOT),
    "p": _entry(
        "B,H,T,T",
        "attention softmax",
        "dv dscores",
        say("O = P V has P as a factor, and the softmax is undone."),
    ),
    "v": _entry("B,H,T,dh", "split_heads", "dp", f"O = P V. {_FACTOR}"),
    "k_rot": _entry("B,H,T,dh", "rope", "dq_rot", f"{say('The scores are Q times K.')} {_FACTOR}"),
    "q_rot": _entry("B,H,T,dh", "rope", "dk_rot", f"{say('The scores are Q times K.')} {_FACTOR}"),
    "z": _entry("B,T,D", "rms_norm", "dwq dwk dwv", f"{_DOT} {say('There are three matrices.')}"),
    "x": _entry(
        "B,T,D", "embedding", "dattn_norm dx", say("unit = x * inv_rms is in both lines of the norm.")
    ),
}


def check_ledger(ledger: Mapping[str, tuple[str, str, str]]) -> Verdict:
    """Judge a ledger of what the forward pass keeps.

    Args:
        ledger: for each name of LEDGER: the letters of its shape, the function that wrote it, and the
            gradients whose own line reads it, as three texts: ("B,T,F", "swiglu", "dw2").

    Returns: passed only if all rows are right; the message names the first cell that is not.
    """
    if not isinstance(ledger, Mapping):
        return Verdict(
            False,
            say("The ledger should be a dict with one row for each name; got {given}.", given=shown(ledger)),
        )
    for name, entry in LEDGER.items():
        if name not in ledger:
            return Verdict(False, say("{name}: this row is missing.", name=name))
        problem = _row_problem(ledger[name], entry)
        if problem:
            return Verdict(False, f"{name}: {problem}")
    for name in ledger:
        if name not in LEDGER:
            return Verdict(False, say("There should be no row for {given}.", given=shown(name)))
    return Verdict(True, say("All {count} rows, from the loss back to the embedding.", count=len(LEDGER)))


def _row_problem(row: object, entry: Entry) -> str:
    """What is wrong with one row, or nothing."""
    if not isinstance(row, tuple | list) or len(row) != 3:
        return say("three texts are expected: shape, written by, read for; got {given}.", given=shown(row))
    for title, given in zip((say("shape"), say("written by"), say("read for")), row, strict=True):
        if given is None:
            return say("{title} is still open.", title=title)
        if not isinstance(given, str):
            return say("{title} should be a text, got {given}.", title=title, given=shown(given))
    axes, written_by, read_for = map(_words, row)
    if ",".join(axes).replace("_", "") != entry.axes:  # dh is often written d_h
        return say("not this shape. It has {count} axes.", count=entry.axes.count(",") + 1)
    if len(written_by) != 1 or written_by[0] not in entry.written_by:
        return say("another function wrote it. Whose result is it, with this name, in the forward pass?")
    unknown = [gradient for gradient in read_for if gradient not in _GRADIENTS]
    if unknown:
        return say("{name} is not the name of a gradient here, such as dw2, dup or dscores.", name=unknown[0])
    if set(read_for) != entry.read_for:
        return say("not these gradients, or not all of them. {hint}", hint=entry.hint)
    return ""


def _words(text: str) -> list[str]:
    """The names in a text, whatever stands between them; a module in front, as in ops.softmax, counts not."""
    return [word for word in re.findall(r"\w+(?!\w*\.\w)", text) if word != "and"]


#: Every name that a reader may expect in the last column.
_GRADIENTS = frozenset().union(*(entry.read_for for entry in LEDGER.values())) | {
    *("dfinal", "dffn_out", "dhidden", "dn", "dattn_out", "djoined", "do", "dq", "dk", "dz", "dembedding"),
}
