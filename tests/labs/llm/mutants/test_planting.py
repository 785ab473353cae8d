"""Mistakes are planted exactly where they say, in fresh modules, and leave the package alone."""

import numpy as np
import pytest

from labs.llm import model, ops
from labs.llm.mutants import planting
from labs.llm.mutants.catalogue import MISTAKES
from labs.llm.mutants.planting import FILES, Edit, Mistake, plant, planted, planted_source, source

BY_NAME = {mistake.name: mistake for mistake in MISTAKES}


def test_a_mistake_describes_itself():
    mistake = BY_NAME["softmax backward: row sum missing"]
    assert mistake.where == "ops.softmax_backward"
    assert mistake.diff == [
        "-    return p * (dp - np.expand_dims(np.vecdot(p, dp, axis=axis), axis))",
        "+    return p * dp",
    ]
    assert BY_NAME["targets: not shifted"].where == "tiny.TARGET_IDS"


def test_a_mistake_reaches_every_module_that_uses_it():
    library = plant(BY_NAME["silu: relu"])
    x = np.array([-1.0, 2.0])
    np.testing.assert_array_equal(library.ops.silu(x), [0, 2])
    np.testing.assert_array_equal(library.model.silu(x), [0, 2])
    assert library.model.ops is library.ops
    assert library.model.silu is library.ops.silu
    assert library.tiny.CONFIG.__class__ is library.model.ModelConfig


def test_the_package_is_left_alone():
    text = {file: source(file) for file in FILES}
    plant(BY_NAME["silu: relu"])
    assert ops.silu(np.array([-1.0]))[0] < 0
    assert model.silu is ops.silu
    planting.source.cache_clear()
    assert text == {file: source(file) for file in FILES}


def test_without_an_edit_the_copy_is_the_package():
    library = plant(Mistake("none", "Nothing is wrong.", "model", ()))
    x = np.arange(24.0).reshape(1, 3, 8)
    np.testing.assert_array_equal(library.model.split_heads(x, 2), model.split_heads(x, 2))
    assert library.model is not model


def test_an_edit_changes_its_own_function_alone():
    right, wrong = "as_gradient(", "as_anything("
    text = planted_source(planted("other", "Another check.", Edit("ops.linear_backward", right, wrong)))
    assert (text.count(right), text.count(wrong)) == (source("ops").count(right) - 1, 1)
    assert text.index("def linear_backward(") < text.index(wrong) < text.index("def embedding(")


@pytest.mark.parametrize(
    ("place", "right", "message"),
    [
        ("ops.linear", "this is nowhere", "exactly once in ops.linear, found it 0 times"),
        ("ops.linear", "x", r"exactly once in ops.linear, found it \d+ times"),
        ("ops.softmax", "x @ weight", "exactly once in ops.softmax, found it 0 times"),
        ("ops.softmin", "return", "in a function of ops.py, found no ops.softmin"),
    ],
)
def test_text_that_does_not_occur_once_is_refused(place, right, message):
    mistake = planted("drifted", "The code has changed.", Edit(place, right, "pass"))
    with pytest.raises(ValueError, match=f"mistake 'drifted' must .* {message}"):
        planted_source(mistake)
