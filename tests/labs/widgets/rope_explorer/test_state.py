"""Scores of rotated vectors in JavaScript, held to labs.llm; test_rotation.py tests the rotation."""

import numpy as np
import pytest

from labs.llm.model import rope
from labs.widgets.shared import modules

WIDTHS = [2, 4, 6, 16]


@pytest.fixture(scope="module")
def call(javascript):
    return javascript("rope_explorer/state.js")


def vector(width, seed):
    return np.random.default_rng(seed).normal(size=width)


def rotated(x, position, base=10_000.0, layout="neighbours"):
    """What labs.llm makes of x (dh,); by halves it is the same rotation with the numbers in another order."""
    to_halves = np.arange(x.size).reshape(-1, 2).T.ravel()
    to_neighbours = np.argsort(to_halves)
    if layout == "neighbours":
        return rope(x[np.newaxis], [position], base=base)[0]
    return rope(x[np.newaxis, to_neighbours], [position], base=base)[0, to_halves]


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-12)


def held(width=6, **changes):
    """What the model of a widget holds, as JavaScript gets it."""
    return {
        "q": vector(width, 1).tolist(),
        "k": vector(width, 2).tolist(),
        "v": vector(width, 3).tolist(),
        "m": 11,
        "n": 8,
        "base": 100.0,
        "pair": 1,
        "mixed": False,
        "rotate_values": False,
        "together": False,
        "limit": 2.0,
        "strings": modules.strings("rope_explorer"),
    } | changes


def state(call, width=6, **changes):
    return call("ropeState", held(width, **changes))


def score(now, m, n, layout):
    q, k = np.array(now["q"]), np.array(now["k"])
    return rotated(q, m, now["base"]) @ rotated(k, n, now["base"], layout)


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("width", WIDTHS)
def test_scores_are_numpys(call, width, mixed):
    now = state(call, width, mixed=mixed)
    layout = "halves" if mixed else "neighbours"
    close(now["score"], score(now, 11, 8, layout))
    close(now["scoreFurtherOn"], score(now, 18, 15, layout))
    close(now["scoreInOneLayout"], score(now, 11, 8, "neighbours"))
    assert now["bound"] == pytest.approx(np.linalg.norm(now["q"]) * np.linalg.norm(now["k"]))


@pytest.mark.parametrize("layout", ["neighbours", "halves"])
def test_curve_is_the_score_at_every_distance(call, layout):
    now = state(call)
    curve = call("scoreCurve", now, 5, 0, 63, layout)
    close(curve, [[n - 5, score(now, 5, n, layout)] for n in range(64)])


def test_only_mixed_layouts_see_more_than_the_distance(call):
    def differs(width, **changes):
        now = state(call, width, **changes)
        return not call("sameScore", now, now["score"], now["scoreFurtherOn"])

    assert [differs(width) for width in WIDTHS] == [False] * 4
    assert [differs(width, mixed=True) for width in WIDTHS] == [False, True, True, True]  # dh = 2: one layout


@pytest.mark.parametrize(
    ("together", "name", "position", "change"),
    [
        (False, "m", 60, {"m": 60}),
        (False, "n", 0, {"n": 0}),
        (True, "m", 14, {"m": 14, "n": 11}),
        (True, "n", 9, {"m": 12, "n": 9}),
        (True, "m", 0, {"m": 3, "n": 0}),  # the other one has come to the beginning
        (True, "n", 63, {"m": 63, "n": 60}),  # and here to the end
    ],
)
def test_slide(call, together, name, position, change):
    assert call("slide", {"m": 11, "n": 8, "together": together}, name, position) == change


def test_angles(call):
    rows = call("angleRows", state(call, rotate_values=True))
    theta = 100.0 ** (-2 / 6)
    expected = [("q", 11), ("k", 8), ("v", 8), ("distance", -3)]
    assert [(row["name"], row["angle"]) for row in rows] == [(name, f"{p} × θ") for name, p in expected]
    assert [row["radians"] for row in rows] == [f"{p * theta:.4f}" for _, p in expected]
    assert [row["degrees"] for row in rows] == [f"{np.degrees(p * theta):.1f}" for _, p in expected]


def test_value_is_not_rotated(call):
    now = state(call)
    assert now["rotated"]["v"] == now["valueFurtherOn"] == now["v"]
    assert call("angleRows", now)[2] == {
        "name": "v",
        "angle": "not rotated",
        "radians": "0.0000",
        "degrees": "0.0",
    }


@pytest.mark.parametrize("mixed", [False, True])
def test_grid(call, mixed):
    now = state(call, mixed=mixed, rotate_values=True)
    spec = call("rotatedSpec", now)
    q = rotated(np.array(now["q"]), 11, 100.0)
    k = rotated(np.array(now["k"]), 8, 100.0, "halves" if mixed else "neighbours")
    v = rotated(np.array(now["v"]), 8, 100.0)
    texts = [[cell["text"] for cell in row] for row in spec["cells"]]
    assert texts == [[f"{number:.2f}" for number in row] for row in (q, k, q * k, v)]
    key = [7, 10] if mixed else [8, 9]  # the second pair of the key
    assert spec["marked"] == [2, 3, *key, 14, 15, 20, 21]
    assert {call("pairOfCell", now, cell) for cell in spec["marked"]} == {1}
    assert [group["text"] for group in spec["groups"]] == ["pair 0", "pair 1", "pair 2"]


def test_cells_in_words(call):
    now = state(call, mixed=True)
    q, k = (now["rotated"][name] for name in "qk")
    assert call("cellSentence", now, 9) == (
        f"k[3] = {k[3]:.4f}, before rotation {now['k'][3]:.4f}: pair 0."  # by halves
    )
    assert call("cellSentence", now, 13) == f"q[1] × k[1] = {q[1] * k[1]:.4f}."


def findings(call, **changes):
    return [(each["text"], each["wrong"]) for each in call("verdictOf", state(call, **changes))["findings"]]


def test_verdict_of_the_right_model(call):
    right = score(held(), 11, 8, "neighbours")
    assert call("verdictOf", state(call))["score"] == f"Score q·k = {right:.4f} at n - m = -3."
    assert findings(call) == [
        (f"Both 7 further on: {right:.4f}, the same.", False),
        ("The value is passed on unchanged.", False),
    ]


def test_verdict_of_mixed_layouts(call):
    now = held()
    further, right = score(now, 18, 15, "halves"), score(now, 11, 8, "neighbours")
    assert findings(call, mixed=True)[:2] == [
        (f"Both 7 further on: {further:.4f}, not the same!", True),
        (f"Paired alike: {right:.4f}. No error says so.", True),
    ]
    # a key at position 0 is not rotated in either layout
    assert findings(call, mixed=True, n=0)[1] == ("Paired alike: the same here.", False)


def test_verdict_of_rotated_values(call):
    here, further = (rotated(np.array(held()["v"]), n, 100.0)[2:4] for n in (8, 15))
    assert findings(call, rotate_values=True)[1] == (
        f"Pair 1 of the value is [{here[0]:.2f}, {here[1]:.2f}], "
        f"but 7 further on [{further[0]:.2f}, {further[1]:.2f}].",
        True,
    )


@pytest.mark.parametrize(
    ("value", "text"), [(1, "1"), (0.01, "0.01"), (0.00031622776, "0.0003162"), (1e-8, "1e-8")]
)
def test_significant(call, value, text):
    assert call("significant", value) == text


@pytest.mark.parametrize(
    ("limit", "mark"), [(1, 1), (1.9, 1), (2.4, 2), (7, 5), (43, 20), (0.07, 0.05), (1000, 1000)]
)
def test_round_mark(call, limit, mark):
    assert call("roundMark", limit) == pytest.approx(mark, rel=1e-15)
