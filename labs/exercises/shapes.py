"""Checks for the exercises of chapter 1: the shape ledger, cutting into heads, and joining them again."""

import re
from collections.abc import Callable, Mapping
from math import prod

import numpy as np

from labs.exercises.language import say
from labs.exercises.verdict import Case, Verdict, judge, shown
from labs.llm.model import merge_heads, split_heads

#: The ledger of chapter 1: an expression, and its shape in the letters of the notation page.
LEDGER = {
    "ids": "B,T",
    "embedding": "V,D",
    "x = embedding[ids]": "B,T,D",
    "q = x @ wq": "B,T,D",
    "q.reshape(B, T, H, dh)": "B,T,H,dh",
    "heads = split_heads(q, H)": "B,H,T,dh",
    "heads[:, 1]": "B,T,dh",
    "heads[:, :, 0]": "B,H,dh",
    "merge_heads(heads)": "B,T,D",
    "merge_heads(heads) @ wo": "B,T,D",
}

#: What formulas write where shapes have a letter: the first two columns of the notation page.
LETTERS = {"d": "D", "d_h": "dh", "f": "F"}


def check_ledger(ledger: Mapping[str, str]) -> Verdict:
    """Judge a shape ledger: every expression of LEDGER with its shape in letters, "B,T,D"; "?" is open.

    Returns: passed only if every shape is right; the message counts the right ones and names the first other.
    """
    if not isinstance(ledger, Mapping):
        return Verdict(
            False, say("Give the ledger, a dict: check_ledger(ledger); got {given}.", given=shown(ledger))
        )
    unknown = [line for line in ledger if line not in LEDGER]
    missing = [line for line in LEDGER if line not in ledger]
    if unknown or missing:
        changed = shown((unknown + missing)[0])
        return Verdict(
            False,
            say("Keep the lines as they are: {changed} was changed, added or removed.", changed=changed),
        )
    problems = {line: _shape_problem(ledger[line], expected) for line, expected in LEDGER.items()}
    wrong = [line for line, problem in problems.items() if problem]
    if wrong:
        done = len(LEDGER) - len(wrong)
        return Verdict(
            False,
            say(
                "{done} of {count} lines are right. Next, {line}: {problem}",
                done=done,
                count=len(LEDGER),
                line=wrong[0],
                problem=problems[wrong[0]],
            ),
        )
    return Verdict(True, say("All {count} shapes agree with the code.", count=len(LEDGER)))


def _shape_problem(given: object, expected: str) -> str:
    """What is wrong with one line, or nothing."""
    if not isinstance(given, str):
        return say('write the shape as text in letters, such as "B,T"; got {given}.', given=shown(given))
    letters = [LETTERS.get(letter, letter) for letter in re.findall(r"[^\s,()\[\]]+", given)]
    wanted = expected.split(",")
    if letters == wanted:
        return ""
    if set(letters) <= {"?"}:
        return say("which letters, in which order?")
    if any(letter.isdigit() for letter in letters):
        return say("use letters. B and H are both 2 in the example, so numbers would hide a swap.")
    written = f"({','.join(letters)})"
    if sorted(letters) == sorted(wanted):
        return say("{written} has the right letters in another order.", written=written)
    if len(letters) != len(wanted):
        axes = say("1 axis") if len(letters) == 1 else say("{count} axes", count=len(letters))
        return say(
            "{written} has {axes}; the array has {wanted}.", written=written, axes=axes, wanted=len(wanted)
        )
    return say("{written} is not its shape.", written=written)


def check_split(split: Callable[[np.ndarray, int], np.ndarray]) -> Verdict:
    """Judge a function that cuts (B,T,D) into heads (B,H,T,dh), for two sets of sizes that all differ."""
    return judge(
        split,
        _split_case(B=3, T=7, H=4, dh=6),
        _split_case(B=2, T=9, H=3, dh=5),
        call="check_split(my_split)",
        praise=say("Every number is where it belongs, on sizes that are all different."),
    )


def _split_case(B: int, T: int, H: int, dh: int) -> Case:
    x = _numbered(B, T, H * dh)
    return Case(
        (x, H),
        given=say("x of shape {x} and {H} heads", x=x.shape, H=H),
        expected=split_heads(x, H),
        traps={
            say("This is the direct reshape. Cut D into (H, dh) first, then move H."): x.reshape(B, H, T, dh),
            say("Head h takes columns h, h + H, h + 2H. It should take dh neighbours: D = (H, dh)."): (
                x.reshape(B, T, dh, H).transpose(0, 3, 1, 2)
            ),
        },
        hint=say("Head 1 of position 2 should be x[0, 2, {dh}:{end}].", dh=dh, end=2 * dh),
    )


def check_merge(merge: Callable[[np.ndarray], np.ndarray]) -> Verdict:
    """Judge a function that joins heads (B,H,T,dh) to (B,T,D), for two sets of sizes that all differ."""
    return judge(
        merge,
        _merge_case(B=3, T=7, H=4, dh=6),
        _merge_case(B=2, T=9, H=3, dh=5),
        call="check_merge(my_merge)",
        praise=say("Position by position, the heads stand side by side again."),
    )


def _merge_case(B: int, T: int, H: int, dh: int) -> Case:
    heads = _numbered(B, H, T, dh)
    return Case(
        (heads,),
        given=say("heads of shape {heads}", heads=heads.shape),
        expected=merge_heads(heads),
        traps={say("T has to come before H when the last two axes merge."): heads.reshape(B, T, H * dh)},
        hint=say("Position 2, columns {dh} to {end}, should be heads[0, 1, 2].", dh=dh, end=2 * dh),
    )


def _numbered(*shape: int) -> np.ndarray:
    """Numbers that are all different, and change if they are rounded to integers or to float32."""
    return np.arange(prod(shape)).reshape(shape) + 0.1
