"""Each check accepts differently written right answers, and rejects the stub and the typical wrong ones."""

from pathlib import Path

import numpy as np
import pytest
from einops import rearrange

from labs.exercises import shapes
from labs.llm import model

NOTATION = Path(__file__).parents[3] / "book" / "notation.md"

STUB = dict.fromkeys(shapes.LEDGER, "?")


def loops(x, n_heads):
    B, T, D = x.shape
    dh = D // n_heads
    heads = np.empty((B, n_heads, T, dh))
    for head in range(n_heads):
        heads[:, head] = x[:, :, head * dh : (head + 1) * dh]
    return heads


@pytest.mark.parametrize(
    "split",
    [
        model.split_heads,
        loops,
        lambda x, n: x.reshape(*x.shape[:2], n, -1).transpose(0, 2, 1, 3),
        lambda x, n: rearrange(x, "b t (h e) -> b h t e", h=n),
        lambda x, n: np.stack(np.split(x, n, axis=-1), axis=1),
    ],
)
def test_right_splits_are_accepted(split):
    assert shapes.check_split(split).passed


@pytest.mark.parametrize(
    ("split", "hint"),
    [
        (lambda x, n: None, "still needs its line"),  # noqa: ARG005
        (lambda x, n: x.reshape(3, n, 7, 6), "direct reshape"),
        (lambda x, n: x.reshape(3, 7, n, 6), "should have the shape (3, 4, 7, 6); got (3, 7, 4, 6)"),
        (lambda x, n: x.reshape(3, 7, n, 6).transpose(2, 0, 1, 3), "got (4, 3, 7, 6)"),
        (lambda x, n: x.reshape(3, 7, 6, n).transpose(0, 3, 1, 2), "takes columns h, h + H, h + 2H"),
        (lambda x, n: model.split_heads(x, n)[:, ::-1], "numbers are not"),
        (lambda x, n: model.split_heads(x, n) + 1e-9, "Right to about 12 digits"),
        (lambda x, n: model.split_heads(x, n).astype(np.float32), "digits: compute in float64"),
        (lambda x, n: model.split_heads(x, n).astype(int), "numbers are not"),
        (lambda x, n: x.reshape(3, 7, 4, 6).swapaxes(1, 2), "not for x of shape (2, 9, 15) and 3 heads"),  # noqa: ARG005
        (lambda x, n: np.stack([x[..., i : i + 6] for i in range(0, x.shape[2], 6)], 1), "but not for x"),  # noqa: ARG005
        (lambda x, n: x.reshape(2, 5, 2, 4), "stopped with ValueError"),  # noqa: ARG005, works on the example only
    ],
)
def test_wrong_splits_are_rejected_with_a_hint(split, hint):
    verdict = shapes.check_split(split)
    assert not verdict.passed
    assert hint in verdict.message, verdict


@pytest.mark.parametrize(
    "merge",
    [
        model.merge_heads,
        lambda h: np.concatenate(list(h.swapaxes(0, 1)), axis=-1),
        lambda h: rearrange(h, "b h t e -> b t (h e)"),
    ],
)
def test_right_merges_are_accepted(merge):
    assert shapes.check_merge(merge).passed


@pytest.mark.parametrize(
    ("merge", "hint"),
    [
        (lambda h: None, "still needs its line"),  # noqa: ARG005
        (lambda h: h.reshape(3, 7, 24), "T has to come before H"),
        (lambda h: h.swapaxes(1, 2), "should have the shape (3, 7, 24); got (3, 7, 4, 6)"),
        (lambda h: h.transpose(0, 2, 3, 1).reshape(3, 7, 24), "numbers are not"),
        (lambda h: h.swapaxes(1, 2).reshape(3, 7, 24), "but not for heads of shape (2, 3, 9, 5)"),
        (np.zeros((3, 7, 24)), "Give the function itself: check_merge(my_merge); got ndarray"),
    ],
)
def test_wrong_merges_are_rejected_with_a_hint(merge, hint):
    verdict = shapes.check_merge(merge)
    assert not verdict.passed
    assert hint in verdict.message, verdict


def test_the_ledger_agrees_with_the_code():
    """The answers are not taken on trust: every line is run, on sizes that are all different."""
    config = model.ModelConfig(vocab_size=11, d_model=24, n_heads=4, n_layers=1, d_ff=20)
    params = model.init_params(config, seed=0)
    sizes = {"B": 3, "T": 7, "D": 24, "H": 4, "dh": 6, "V": 11}
    ids = np.arange(21).reshape(3, 7) % 11
    names = {
        "ids": ids,
        "embedding": params["embedding"],
        "wq": params["blocks.0.wq"],
        "wo": params["blocks.0.wo"],
    }
    names |= {"split_heads": model.split_heads, "merge_heads": model.merge_heads, **sizes}
    for line, letters in shapes.LEDGER.items():
        name, _, expression = line.rpartition(" = ")
        value = eval(expression, names)  # our own table
        names[name or "_"] = value
        assert value.shape == tuple(sizes[letter] for letter in letters.split(",")), line


def test_a_full_ledger_is_accepted_however_it_is_written():
    assert shapes.check_ledger(shapes.LEDGER).passed
    assert shapes.check_ledger(
        {line: f"({s.replace(',', ', ')})" for line, s in shapes.LEDGER.items()}
    ).passed
    assert shapes.check_ledger({line: f"[{s}]" for line, s in shapes.LEDGER.items()}).passed
    assert shapes.check_ledger({line: s.replace(",", " ") for line, s in shapes.LEDGER.items()}).passed


def test_the_letters_of_the_formulas_are_accepted():
    as_in_the_text = {line: s.replace("D", "d").replace("dh", "d_h") for line, s in shapes.LEDGER.items()}
    assert as_in_the_text["x = embedding[ids]"] == "B,T,d"
    assert as_in_the_text["heads[:, 1]"] == "B,T,d_h"
    assert shapes.check_ledger(as_in_the_text).passed
    for text, code in shapes.LETTERS.items():
        assert f"| ${text}$ | `{code}` |" in NOTATION.read_text(encoding="utf-8")


@pytest.mark.parametrize("ledger", [None, 3, "B,T", ["B,T"], shapes.check_ledger])
def test_what_is_no_ledger_gets_a_sentence(ledger):
    verdict = shapes.check_ledger(ledger)
    assert not verdict.passed
    assert "Give the ledger, a dict: check_ledger(ledger); got " in verdict.message


@pytest.mark.parametrize(
    ("change", "hint"),
    [
        ({}, "0 of 10 lines are right. Next, ids: which letters"),
        (shapes.LEDGER | {"q = x @ wq": "?"}, "9 of 10 lines are right. Next, q = x @ wq: which letters"),
        (shapes.LEDGER | {"ids": "?", "merge_heads(heads)": "?,?,?"}, "8 of 10 lines are right. Next, ids:"),
        (shapes.LEDGER | {"ids": ""}, "which letters"),
        (shapes.LEDGER | {"ids": "2,5"}, "numbers would hide a swap"),
        (shapes.LEDGER | {"ids": (2, 5)}, "got (2, 5)"),
        (shapes.LEDGER | {"ids": object()}, "got <object object"),
        (shapes.LEDGER | {"ids": "(T,B)"}, "ids: (T,B) has the right letters in another order"),
        (shapes.LEDGER | {"ids": "B,T,D"}, "has 3 axes; the array has 2"),
        (shapes.LEDGER | {"ids": "BT"}, "(BT) has 1 axis; the array has 2"),
        (shapes.LEDGER | {"ids": "B,D"}, "is not its shape"),
        (shapes.LEDGER | {"heads[:, 1]": "B,H,dh"}, "9 of 10 lines are right. Next, heads[:, 1]"),
        (shapes.LEDGER | {"heads[:, 2]": "B,T"}, "'heads[:, 2]' was changed, added or removed"),
        (shapes.LEDGER | {7: "B,T"}, "lines as they are: 7 was changed"),
    ],
)
def test_an_open_or_wrong_ledger_is_rejected_with_a_hint(change, hint):
    verdict = shapes.check_ledger(STUB | change)
    assert not verdict.passed
    assert hint in verdict.message, verdict


def test_a_removed_line_is_noticed():
    short = {line: letters for line, letters in shapes.LEDGER.items() if line != "ids"}
    assert "'ids' was changed" in shapes.check_ledger(short).message
