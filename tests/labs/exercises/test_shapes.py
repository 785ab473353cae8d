"""Each check accepts differently written right answers, and rejects the stub and the typical wrong ones."""

import numpy as np
import pytest
from einops import rearrange

from labs.exercises import shapes
from labs.llm import model

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
        (lambda x, n: x.reshape(3, 7, 6, n).transpose(0, 3, 1, 2), "every fourth column"),
        (lambda x, n: model.split_heads(x, n)[:, ::-1], "numbers are not"),
        (lambda x, n: model.split_heads(x, n) + 1e-9, "numbers are not"),
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
        (lambda h: h.reshape(3, 7, 24), "T has to stand before H"),
        (lambda h: h.swapaxes(1, 2), "should have the shape (3, 7, 24); got (3, 7, 4, 6)"),
        (lambda h: h.transpose(0, 2, 3, 1).reshape(3, 7, 24), "numbers are not"),
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


@pytest.mark.parametrize(
    ("change", "hint"),
    [
        ({}, "0 of 10 lines are right so far. Next, ids: which letters"),
        (shapes.LEDGER | {"x @ wq": "?"}, "3 of 10"),
        (shapes.LEDGER | {"ids": "2,5"}, "numbers would hide a swap"),
        (shapes.LEDGER | {"ids": (2, 5)}, "got (2, 5)"),
        (shapes.LEDGER | {"ids": "T,B"}, "another order"),
        (shapes.LEDGER | {"ids": "B,T,D"}, "has 3 axes; the array has 2"),
        (shapes.LEDGER | {"ids": "B,D"}, "is not its shape"),
        (shapes.LEDGER | {"q[:, 1]": "B,H,dh"}, "6 of 10"),
        (shapes.LEDGER | {"q[:, 2]": "B,T"}, "'q[:, 2]' was changed, added or removed"),
    ],
)
def test_an_open_or_wrong_ledger_is_rejected_with_a_hint(change, hint):
    verdict = shapes.check_ledger(STUB | change)
    assert not verdict.passed
    assert hint in verdict.message, verdict


def test_a_removed_line_is_noticed():
    short = {line: letters for line, letters in shapes.LEDGER.items() if line != "ids"}
    assert "'ids' was changed" in shapes.check_ledger(short).message
