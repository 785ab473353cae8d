"""Mistakes are planted exactly where they say, in fresh modules, and leave the package alone."""

import inspect
from collections import Counter

import numpy as np
import pytest

from labs.llm import mistakes, model, ops, parameters
from labs.llm.mistakes import FILES, MISTAKES, ORIGINAL, Mistake, plant, planted_source, source

BY_NAME = {mistake.name: mistake for mistake in MISTAKES}


def test_there_are_many_and_each_has_its_own_name():
    assert len(MISTAKES) >= 60
    assert [name for name, count in Counter(mistake.name for mistake in MISTAKES).items() if count > 1] == []


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_each_mistake_can_be_planted(mistake):
    assert mistake.story.endswith(".")
    assert mistake.diff
    assert {line[0] for line in mistake.diff} <= {"-", "+"}
    library = plant(mistake)
    assert not {id(module) for module in library} & {id(module) for module in ORIGINAL}


def test_every_operation_is_done_wrong_somewhere():
    functions = {
        f"{module.__name__.split('.')[-1]}.{name}"
        for module in (ops, parameters, model)
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__ and not name.startswith("_")
    }
    helpers = {"check_params", "check_arrays", "check_keys", "require_config"}
    helpers |= {"param_axes", "param_shapes", "block_weights"}
    helpers = {f"parameters.{name}" for name in helpers} | {"model.loss_and_grads"}
    right = functions - {mistake.where for mistake in MISTAKES}
    assert right - helpers == set(), "plant a mistake in each of these in labs/llm/mistakes.py"
    assert helpers - right == set()


def test_a_mistake_describes_itself():
    mistake = BY_NAME["softmax backward: row sum missing"]
    assert mistake.where == "ops.softmax_backward"
    assert mistake.diff == [
        "-    return p * (dp - np.expand_dims(np.vecdot(p, dp, axis=axis), axis))",
        "+    return p * dp",
    ]
    assert BY_NAME["targets: not shifted"].where == "tiny"


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
    mistakes.source.cache_clear()
    assert text == {file: source(file) for file in FILES}


def test_without_an_edit_the_copy_is_the_package():
    library = plant(Mistake("none", "Nothing is wrong.", "model", ()))
    x = np.arange(24.0).reshape(1, 3, 8)
    np.testing.assert_array_equal(library.model.split_heads(x, 2), model.split_heads(x, 2))
    assert library.model is not model


@pytest.mark.parametrize(
    ("right", "count"),
    [("this is nowhere", "0 times"), ("import numpy as np\n", None), ("return ", r"\d+ times")],
)
def test_text_that_does_not_occur_once_is_refused(right, count):
    mistake = Mistake("drifted", "The code has changed.", "ops", ((right, "pass"),))
    if count is None:
        assert "import numpy" not in planted_source(mistake)
        return
    with pytest.raises(
        ValueError, match=f"'drifted' must find its text exactly once in ops.py, found it {count}"
    ):
        planted_source(mistake)
