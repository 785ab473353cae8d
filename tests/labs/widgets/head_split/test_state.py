"""Where numbers land, held to labs.llm and NumPy; sizes differ pairwise, so that no swapped axis passes."""

import numpy as np
import pytest

from labs.llm.model import split_heads
from labs.widgets.shared import modules

SHAPES = [((2, 5, 8), 2), ((3, 7, 24), 4), ((1, 3, 6), 6), ((2, 4, 5), 1)]


@pytest.fixture(scope="module")
def call(javascript):
    return javascript("head_split/state.js")


def numbered(shape):
    """The array whose numbers are their own positions."""
    return np.arange(np.prod(shape)).reshape(shape)


def by_route(route, x, H):
    B, T, D = x.shape
    return split_heads(x, H) if route == "swap" else x.reshape(B, H, T, D // H)


@pytest.mark.parametrize("route", ["swap", "direct"])
@pytest.mark.parametrize(("shape", "H"), SHAPES)
def test_origin_is_what_numpy_does(call, route, shape, H):
    assert call("headSplitOrigin", route, shape, H) == by_route(route, numbered(shape), H).ravel().tolist()


@pytest.mark.parametrize(("shape", "H"), SHAPES)
def test_home_is_where_split_heads_puts_it(call, shape, H):
    heads = split_heads(numbered(shape), H)
    for flat in range(0, heads.size, 5):
        assert call("headSplitHome", flat, shape, H) == [int(i[0]) for i in np.where(heads == flat)]


@pytest.mark.parametrize(("shape", "H"), SHAPES)
def test_rightly_placed_is_where_the_routes_agree(call, shape, H):
    x = numbered(shape)
    agree = by_route("direct", x, H) == by_route("swap", x, H)
    origin = call("headSplitOrigin", "direct", shape, H)
    assert call("rightlyPlaced", origin, shape, H) == agree.ravel().tolist()


@pytest.mark.parametrize(("shape", "H"), SHAPES)
def test_path_ends_in_the_result(call, shape, H):
    for route in ("swap", "direct"):
        path = call("headSplitPath", route, shape, H)
        assert path[0]["sizes"] == list(shape)
        assert path[-1]["sizes"] == list(by_route(route, numbered(shape), H).shape)
    B, T, D = shape
    assert call("headSplitPath", "swap", shape, H)[1]["sizes"] == [B, T, H, D // H]


def state(call, route="swap", show="values"):
    """What the widget shows of the course's shape."""
    shape = (2, 5, 8)
    return call(
        "headSplitState",
        {
            "name": "Q",
            "shape": shape,
            "n_heads": 2,
            "values": numbered(shape).ravel().tolist(),
            "labels": {},
            "decimals": 0,
            "route": route,
            "show": show,
            "batch": 0,
            "selected": -1,
            "strings": modules.strings("tensor", "head_split"),
        },
    )


@pytest.mark.parametrize(
    ("route", "flat", "sentence"),
    [
        ("swap", 21, "Q[0,2,5] lands at heads[0,1,2,1]: batch 0, head 1, position 2, column 1."),
        (
            "direct",
            21,
            "Q[0,2,5] lands at heads[0,1,0,1]: batch 0, head 1, position 0, column 1. "
            "Wrong: it belongs to head 1, position 2.",
        ),
        (
            "direct",
            0,
            "Q[0,0,0] lands at heads[0,0,0,0]: batch 0, head 0, position 0, column 0. "
            "Here that happens to be right.",
        ),
    ],
)
def test_landing_in_words(call, route, flat, sentence):
    assert call("landing", state(call, route), flat) == sentence


def test_grids_of_the_heads_hold_what_the_route_puts_there(call):
    for route in ("swap", "direct"):
        heads = by_route(route, numbered((2, 5, 8)), 2)
        spec = call("headSpec", state(call, route), 1, 0)
        assert [[cell["id"] for cell in row] for row in spec["cells"]] == heads[1, 0].tolist()
        assert spec["label"] == "heads[1,0]"


def test_tint_follows_the_head_that_a_number_belongs_to(call):
    cells = call("headSpec", state(call, "direct"), 0, 0)["cells"]
    assert cells[0][0]["className"] == "labs-head-0"
    assert cells[1][0]["className"] == "labs-head-1 labs-wrong"  # Q[0,0,4]


def test_origins_are_position_and_column(call):
    cells = call("headSpec", state(call, show="origins"), 0, 1)["cells"]
    assert cells[2][1]["text"] == "2,5"


def test_source_has_its_heads_over_its_columns(call):
    spec = call("sourceSpec", state(call))
    assert [(group["text"], group["span"]) for group in spec["groups"]] == [("head 0", 4), ("head 1", 4)]
