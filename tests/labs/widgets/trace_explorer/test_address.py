"""Addresses of entries: written, read back, and refused."""

import pytest


@pytest.fixture(scope="module")
def call(javascript):
    return javascript("trace_explorer/address.js")


STEPS = [
    {"key": "ids", "axes": ["b", "t"], "shape": [2, 5]},
    {"key": "blocks.0.dscores", "axes": ["b", "h", "i", "j"], "shape": [2, 3, 5, 5]},
    {"key": "blocks.1.dscores", "axes": ["b", "h", "i", "j"], "shape": [2, 3, 5, 5]},
    {"key": "blocks.0.wq", "axes": ["m", "d"], "shape": [8, 8]},
    {"key": "loss", "axes": [], "shape": []},
]


def test_written(call):
    assert call("traceAddress", "dscores", STEPS[1], [0, 1, 3, 2]) == "trace=dscores,b0,h1,3,2"
    assert (
        call("traceAddress", "blocks.1.dscores", STEPS[2], [0, 1, 3, 2]) == "trace=blocks.1.dscores,b0,h1,3,2"
    )
    assert call("traceAddress", "ids", STEPS[0], [1, 4]) == "trace=ids,b1,4"
    assert call("traceAddress", "wq", STEPS[3], [6, 7]) == "trace=wq,6,7"
    assert call("traceAddress", "loss", STEPS[4], []) == "trace=loss"


@pytest.mark.parametrize(
    ("fragment", "place", "index"),
    [
        ("#trace=dscores,b0,h1,3,2", 1, [0, 1, 3, 2]),
        ("#trace=dscores%2Cb0%2Ch1%2C3%2C2", 1, [0, 1, 3, 2]),  # as some programs send links
        ("#trace=blocks.0.dscores,b0,h1,3,2", 1, [0, 1, 3, 2]),
        ("#trace=blocks.1.dscores,b1,h2,4,4", 2, [1, 2, 4, 4]),
        ("#trace=ids,b1,4", 0, [1, 4]),
        ("#trace=wq,6,7", 3, [6, 7]),
        ("#trace=loss", 4, []),
    ],
)
def test_read(call, fragment, place, index):
    assert call("readAddress", fragment, STEPS) == {"place": place, "index": index}


def test_a_tensor_without_an_entry(call):
    assert call("readAddress", "#trace=dscores", STEPS) == {"place": 1, "index": None, "picked": {}}
    found = {"place": 1, "index": None, "picked": {"b": 1, "h": 2}}
    assert call("readAddress", "#trace=dscores,b1,h2", STEPS) == found
    assert call("readAddress", "#trace=wq", STEPS) == {"place": 3, "index": None, "picked": {}}


@pytest.mark.parametrize("fragment", ["", "#", "#the-residual-stream", "#traces=ids", "#%E0%A4%A"])
def test_other_addresses_are_not_ours(call, fragment):
    assert call("readAddress", fragment, STEPS) is None


def test_a_long_wrong_address_is_cut(call):
    found = call("readAddress", "#trace=" + 50_000 * "x", STEPS)
    assert found == {"wrong": 59 * "x" + "…"}
    assert call("readAddress", "#trace=" + 60 * "\N{GRINNING FACE}", STEPS) == {
        "wrong": 60 * "\N{GRINNING FACE}"
    }
    assert (
        call("readAddress", "#trace=" + 61 * "\N{GRINNING FACE}", STEPS)["wrong"]
        == 59 * "\N{GRINNING FACE}" + "…"
    )


@pytest.mark.parametrize(
    "asked",
    [
        "",
        "dscore",
        "scores,b0,h1,3,2",
        "dscores,b0,h1,3",
        "dscores,b0",
        "dscores,h1,b0,3,2",
        "dscores,0,1,3,2",
        "dscores,b2,h1,3,2",
        "dscores,b0,h1,3,5",
        "dscores,b0,h1,3,-1",
        "dscores,b0,h1,3,2,1",
        "dscores,b0,h1,3,2.0",
        "wq,b0,7",
        "loss,0",
        "%",
    ],
)
def test_wrong(call, asked):
    assert call("readAddress", f"#trace={asked}", STEPS) == {"wrong": asked}
