"""Every mistake of the catalogue can be planted, and everything public is done wrong somewhere."""

import inspect
from collections import Counter

import pytest

from labs.llm import model, ops, parameters
from labs.llm.mutants.catalogue import MISTAKES
from labs.llm.mutants.planting import ORIGINAL, plant


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
    helpers = {"require_params", "require_arrays", "require_keys", "require_config"}
    helpers |= {"param_axes", "param_shapes", "block_weights"}
    helpers = {f"parameters.{name}" for name in helpers} | {"model.loss_and_grads"}
    right = functions - {mistake.where for mistake in MISTAKES}
    assert right - helpers == set(), "plant a mistake in each of these in labs/llm/mutants/catalogue.py"
    assert helpers - right == set()
