"""The recipes are in an order in which they can be computed."""

from labs.llm.parameters import ModelConfig, param_axes
from labs.llm.trace import formula, recipes


def test_a_recipe_is_read_from_its_line():
    recipe = next(recipe for _, _, recipe in recipes.in_order(1) if recipe.name == "dr")
    assert recipe == recipes.Recipe(
        name="dr",
        axes="btd",
        formula="dy[b, t, d] + dr_branch[b, t, d]",
        by="model.block_backward",
        part=None,
        of="r",
    )


def test_every_formula_reads_only_what_was_computed_before():
    known = {key.split(".")[-1] for key in param_axes(ModelConfig(9))} | {"ids", "targets"}
    for phase, layer, recipe in recipes.in_order(1):
        assert layer in (None, 0)
        tree = formula.parse(recipe.formula, recipe.axes)
        assert set(formula.tensor_names(tree)) <= known, recipe.name
        assert (recipe.part is None) == (recipe.of is not None), recipe.name
        assert recipe.of is None or (phase == "backward" and recipe.of in known), recipe.name
        known.add(recipe.name)


def test_layers_follow_each_other_and_the_way_back_is_reversed():
    passed = [(phase, layer) for phase, layer, recipe in recipes.in_order(3) if recipe.name in ("x", "dx")]
    assert passed == [
        (phase, l) for phase, order in (("forward", 1), ("backward", -1)) for l in range(3)[::order]
    ]
    names = [[recipe.name for _, l, recipe in recipes.in_order(3) if l == layer] for layer in range(3)]
    assert names[0] == names[1] == names[2]
