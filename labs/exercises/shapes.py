"""Checks for the exercises of chapter 1: the shape ledger, cutting into heads, and joining them again."""

from collections.abc import Callable, Mapping

import numpy as np

from labs.exercises.verdict import Verdict, judge
from labs.llm.model import merge_heads, split_heads

#: The ledger of chapter 1: an expression, and its shape in the letters of the notation page.
LEDGER = {
    "ids": "B,T",
    "embedding": "V,D",
    "x = embedding[ids]": "B,T,D",
    "x @ wq": "B,T,D",
    "(x @ wq).reshape(B, T, H, dh)": "B,T,H,dh",
    "q = split_heads(x @ wq, H)": "B,H,T,dh",
    "q[:, 1]": "B,T,dh",
    "q[:, :, 0]": "B,H,dh",
    "merge_heads(q)": "B,T,D",
    "merge_heads(q) @ wo": "B,T,D",
}


def check_ledger(ledger: Mapping[str, str]) -> Verdict:
    """Judge a shape ledger: every expression of LEDGER with its shape in letters, "B,T,D"; "?" is open.

    Returns: passed only if every shape is right; the message names the first line that is not.
    """
    unknown = [line for line in ledger if line not in LEDGER]
    missing = [line for line in LEDGER if line not in ledger]
    if unknown or missing:
        return Verdict(
            False, f"Keep the lines as they are: {(unknown + missing)[0]!r} was changed, added or removed."
        )
    for line, expected in LEDGER.items():
        problem = _shape_problem(ledger[line], expected)
        if problem:
            done = list(LEDGER).index(line)
            return Verdict(False, f"{done} of {len(LEDGER)} lines are right so far. Next, {line}: {problem}")
    return Verdict(True, f"All {len(LEDGER)} shapes agree with the code.")


def _shape_problem(given: object, expected: str) -> str:
    """What is wrong with one line, or nothing."""
    if not isinstance(given, str):
        return f'write the shape as text in letters, such as "B,T"; got {given!r}.'
    letters = [letter.strip() for letter in given.strip("()[] ").split(",")]
    wanted = expected.split(",")
    if letters == wanted:
        return ""
    if letters == ["?"]:
        return "which letters, in which order?"
    if any(letter.isdigit() for letter in letters):
        return "use letters. B and H are both 2 in the example, so numbers would hide a swap."
    if sorted(letters) == sorted(wanted):
        return f"({given}) has the right letters in another order."
    if len(letters) != len(wanted):
        return f"({given}) has {len(letters)} axes; the array has {len(wanted)}."
    return f"({given}) is not its shape."


def check_split(split: Callable[[np.ndarray, int], np.ndarray]) -> Verdict:
    """Judge a function that cuts (B,T,D) into heads (B,H,T,dh), on sizes that are all different."""
    x = np.arange(3 * 7 * 24.0).reshape(3, 7, 24)  # B=3, T=7, D=24; H=4, dh=6
    every_fourth = x.reshape(3, 7, 6, 4).transpose(0, 3, 1, 2)
    return judge(
        split,
        (x, 4),
        given="x of shape (3, 7, 24) and 4 heads",
        expected=split_heads(x, 4),
        traps={
            "This is the direct reshape. Cut D into (H, dh) first, then move H.": x.reshape(3, 4, 7, 6),
            "Head h takes every fourth column. It should take dh neighbours: D = (H, dh).": every_fourth,
        },
        hint="Head 1 of position 2 should be x[0, 2, 6:12].",
        praise="Every number is where it belongs, on sizes that are all different.",
    )


def check_merge(merge: Callable[[np.ndarray], np.ndarray]) -> Verdict:
    """Judge a function that joins heads (B,H,T,dh) to (B,T,D), on sizes that are all different."""
    heads = np.arange(3 * 4 * 7 * 6.0).reshape(3, 4, 7, 6)  # B=3, H=4, T=7, dh=6
    return judge(
        merge,
        (heads,),
        given="heads of shape (3, 4, 7, 6)",
        expected=merge_heads(heads),
        traps={"T has to stand before H when the last two axes join.": heads.reshape(3, 7, 24)},
        hint="Position 2, columns 6 to 12, should be heads[0, 1, 2].",
        praise="Position by position, the heads stand side by side again.",
    )
