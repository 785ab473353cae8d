"""RopeExplorer: its traits in Python, and in a page with mouse, keyboard, touch and screen reader."""

import gzip
import json
import re

import numpy as np
import pytest
import traitlets
from ipywidgets.embed import dependency_state
from playwright.sync_api import expect

from labs.llm import tiny
from labs.llm.model import rope, split_heads
from labs.llm.ops import rms_norm
from labs.widgets import RopeExplorer
from labs.widgets.rope_explorer.widget import LAST_POSITION
from tests import axe


@pytest.fixture(scope="module")
def vectors():
    """The query of position 4 and the key of position 1, as in chapter 5."""
    params, config = tiny.params(), tiny.CONFIG
    z, _ = rms_norm(params["embedding"][tiny.INPUT_IDS], params["blocks.0.attn_norm"], eps=config.norm_eps)
    q, k = (split_heads(z @ params[f"blocks.0.{name}"], config.n_heads) for name in ("wq", "wk"))
    return q[0, 0, 4], k[0, 0, 1]


@pytest.fixture
def widget(vectors):
    return RopeExplorer(*vectors)


def rotated(x, position, base=10_000.0):
    return rope(x[np.newaxis], [position], base=base)[0]


def by_halves(x, position):
    """The same rotation for x (4,) whose pairs are (0,2) and (1,3)."""
    return rotated(x[[0, 2, 1, 3]], position)[[0, 2, 1, 3]]


def score(vectors, m, n, base=10_000.0):
    q, k = vectors
    return rotated(q, m, base) @ rotated(k, n, base)


# ---- Python ----


def test_traits(widget, vectors):
    assert [widget.q, widget.k] == [vector.tolist() for vector in vectors]
    assert widget.v == [1, 0, 1, 0]
    assert (widget.m, widget.n, widget.base, widget.pair) == (4, 1, 10_000, 0)
    assert (widget.together, widget.mixed, widget.rotate_values) == (False, False, False)
    assert repr(widget) == "RopeExplorer: q [4] (dh) at position 4, k [4] (dh) at position 1"


def test_another_base_can_be_chosen_and_chosen_again(vectors):
    widget = RopeExplorer(*vectors, base=500_000)
    assert widget.base == 500_000
    assert widget.bases == [1, 10, 100, 1_000, 10_000, 100_000, 500_000, 1_000_000]


def test_vectors_are_copied(vectors):
    q = vectors[0].copy()
    widget = RopeExplorer(q, vectors[1])
    q[0] = 7
    assert widget.q[0] == vectors[0][0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"q": np.zeros(3), "k": np.zeros(3)}, r"q must have shape \(dh,\) with dh even .* got \(3,\): RoPE"),
        ({"q": np.zeros(18), "k": np.zeros(18)}, r"dh even and at most 16, got \(18,\)"),
        ({"q": np.zeros((1, 4))}, r"q must have shape \(dh,\) .* got \(1, 4\)"),
        ({"k": np.zeros(6)}, r"k must be as wide as q, \(dh,\) = \(4,\), got \(6,\)"),
        ({"v": np.zeros(2)}, r"v must be as wide as q, \(dh,\) = \(4,\), got \(2,\)"),
        ({"k": [0, 0, np.nan, 0]}, "k must be finite, got nan"),
        ({"k": [0, 0, -101, 0]}, "k must be at most 100 in magnitude, got 101: scale it"),
        ({"base": 0.5}, r"base must be a number from 1 to 1e9, got 0\.5"),
        ({"base": np.inf}, "base must be a number from 1 to 1e9, got inf"),
        ({"base": np.nan}, "base must be a number from 1 to 1e9, got nan"),
        ({"base": "10000"}, "base must be a number from 1 to 1e9, got '10000'"),
        ({"base": True}, "base must be a number from 1 to 1e9, got True"),
    ],
)
def test_refused(vectors, change, message):
    with pytest.raises(ValueError, match=message):
        RopeExplorer(**{"q": vectors[0], "k": vectors[1]} | change)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("m", 64, "m must be a position from 0 to 63, got 64"),
        ("n", -1, "n must be a position from 0 to 63, got -1"),
        ("pair", 2, "pair must be 0 to dh/2 - 1 = 1, got 2"),
        ("base", 777.0, r"base must be one of 1, 10, 100, 1000, 10000, 100000, 1e\+06; got 777"),
    ],
)
def test_traits_refused(widget, name, value, message):
    with pytest.raises(traitlets.TraitError, match=message):
        setattr(widget, name, value)


def test_takes_little_of_a_page(widget):
    state = dependency_state([widget], drop_defaults=False)
    assert len(gzip.compress(json.dumps(state).encode())) < 16_000


# ---- in a page ----


def slider(page, name):
    return page.get_by_role("slider", name=name)


def query_slider(page):
    return slider(page, "query at m")


def key_slider(page):
    return slider(page, "key at n")


def verdict(page):
    return page.locator(".labs-rope-verdict")


def expect_score(page, value, distance):
    expect(verdict(page)).to_contain_text(f"Score q·k = {value:.4f} at n - m = {distance}.")


def cells(page):
    return page.locator(".labs-rotated .labs-cell")


def written(*vectors):
    return [f"{value + 0.0:.2f}" for vector in vectors for value in vector]


def angles(page, row):
    """The cells of a row of the table of angles, its heading not counted."""
    return page.locator(".labs-angles tbody tr").nth(row).locator("th, td")


def points(page, selector):
    """The corners of a line, as numbers (n,2)."""
    text = page.locator(selector).get_attribute("points")
    return np.array([[float(x) for x in point.split(",")] for point in text.split()])


def tip(page, name):
    """Where the arrow of a vector ends, second axis upwards."""
    dot = page.locator(f".labs-vector-{name} .labs-tip")
    return np.array([float(dot.get_attribute("cx")), -float(dot.get_attribute("cy"))])


def curve_scores(page, selector):
    """The scores that a drawn curve shows, read off its axis: two of its lines have a number."""
    lines = page.locator(".labs-score-curve .labs-axis").all()
    heights = [float(line.get_attribute("y1")) for line in lines]
    marks = [float(text) for text in page.locator(".labs-score-curve .labs-tick").all_text_contents()[:3]]
    assert heights == sorted(heights, reverse=True)  # larger scores stand higher
    slope = (marks[2] - marks[0]) / (heights[2] - heights[0])
    return marks[0] + slope * (points(page, selector)[:, 1] - heights[0])


def test_opens_with_the_numbers_of_numpy(show, widget, vectors):
    page = show(widget)
    q, k = rotated(vectors[0], 4), rotated(vectors[1], 1)
    expect_score(page, score(vectors, 4, 1), -3)
    assert cells(page).all_inner_texts() == written(q, k, q * k, [1, 0, 1, 0])
    table = [
        ["q: 4 × θ", "4.0000", "229.2"],
        ["k: 1 × θ", "1.0000", "57.3"],
        ["v: not rotated", "0.0000", "0.0"],
        ["n - m: -3 × θ", "-3.0000", "-171.9"],
    ]
    for row, texts in enumerate(table):
        expect(angles(page, row)).to_have_text(texts)


@pytest.mark.parametrize("pair", [0, 1])
def test_circle_shows_the_rotated_pair(show, widget, vectors, pair):
    page = show(widget)
    page.get_by_role("group", name="pair on the circle").get_by_label(str(pair)).check()
    columns = slice(2 * pair, 2 * pair + 2)
    expect(page.locator(".labs-angles thead th").first).to_have_text(f"pair {pair}, θ = {[1, 0.01][pair]}")
    pairs = {
        "q": rotated(vectors[0], 4)[columns],
        "k": rotated(vectors[1], 1)[columns],
        "v": np.array([1, 0]),
    }
    scale = 76 / max(map(np.linalg.norm, pairs.values()))
    for name, numbers in pairs.items():
        np.testing.assert_allclose(tip(page, name), scale * numbers, atol=1e-9)


def test_curve_shows_the_score_at_every_distance(show, widget, vectors):
    page = show(widget)
    expected = [score(vectors, 0, distance) for distance in range(-LAST_POSITION, LAST_POSITION + 1)]
    np.testing.assert_allclose(curve_scores(page, ".labs-curve:not(.labs-wrong-curve)"), expected, atol=0.02)
    here = page.locator(".labs-point")
    corner = points(page, ".labs-curve:not(.labs-wrong-curve)")[LAST_POSITION - 3]
    where = [float(here.get_attribute(name)) for name in ("cx", "cy")]
    np.testing.assert_allclose(where, corner, atol=0.01)


def test_positions_by_mouse(show, widget, vectors):
    page = show(widget)
    for locate in (query_slider, key_slider):
        box = locate(page).bounding_box()
        page.mouse.click(box["x"] + 0.7 * box["width"], box["y"] + box["height"] / 2)
    m, n = (int(locate(page).input_value()) for locate in (query_slider, key_slider))
    assert 35 < m < 55
    assert 35 < n < 55
    expect_score(page, score(vectors, m, n), n - m)
    expect(page.locator(".labs-slider-number")).to_have_text([str(m), str(n)])


def test_positions_by_keyboard(show, widget, vectors):
    page = show(widget)
    page.keyboard.press("Tab")
    expect(query_slider(page)).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect_score(page, score(vectors, 5, 1), -4)
    page.keyboard.press("Tab")
    expect(key_slider(page)).to_be_focused()
    page.keyboard.press("End")
    expect_score(page, score(vectors, 5, 63), 58)
    page.keyboard.press("Home")
    expect_score(page, score(vectors, 5, 0), -5)


def test_positions_by_touch(show, widget, vectors):
    page = show(widget, width=360, has_touch=True)
    box = query_slider(page).bounding_box()
    page.touchscreen.tap(box["x"] + 0.5 * box["width"], box["y"] + box["height"] / 2)
    expect(query_slider(page)).not_to_have_value("4")
    m = int(query_slider(page).input_value())
    expect_score(page, score(vectors, m, 1), 1 - m)


def test_both_together_change_nothing_but_the_angles(show, widget, vectors):
    page = show(widget)
    page.get_by_label("slide both together").check()
    query_slider(page).press("End")
    expect(key_slider(page)).to_have_value("60")
    expect_score(page, score(vectors, 4, 1), -3)
    expect(verdict(page)).to_contain_text(f"Both 7 further on: {score(vectors, 70, 67):.4f}, the same.")
    expect(angles(page, 0).first).to_have_text("q: 63 × θ")
    expect(angles(page, 1).first).to_have_text("k: 60 × θ")
    key_slider(page).press("Home")
    expect(query_slider(page)).to_have_value("3")
    expect_score(page, score(vectors, 4, 1), -3)


def test_a_slider_stopped_by_the_other_one_goes_back(show, widget):
    page = show(widget)
    page.get_by_label("slide both together").check()
    query_slider(page).press("Home")
    expect(query_slider(page)).to_have_value("3")
    query_slider(page).press("ArrowLeft")  # the key is at 0: the model does not change
    expect(query_slider(page)).to_have_value("3")


def test_base_by_mouse_and_keyboard(show, widget, vectors):
    page = show(widget)
    page.get_by_label("base").select_option("100")
    expect_score(page, score(vectors, 4, 1, base=100), -3)
    page.get_by_label("base").press("ArrowUp")
    expect_score(page, score(vectors, 4, 1, base=10), -3)
    np.testing.assert_allclose(
        curve_scores(page, ".labs-curve:not(.labs-wrong-curve)"),
        [score(vectors, 0, n, base=10) for n in range(-63, 64)],
        atol=0.02,
    )


def test_pair_by_keyboard(show, widget):
    page = show(widget)
    page.get_by_role("radio", name="0", exact=True).press("ArrowRight")
    expect(page.get_by_role("radio", name="1", exact=True)).to_be_checked()
    expect(angles(page, 0)).to_have_text(["q: 4 × θ", "0.0400", "2.3"])


def test_pair_by_its_numbers(show, widget):
    page = show(widget)
    expect(page.locator(".labs-marked")).to_have_text([cells(page).nth(i).inner_text() for i in PAIR_0])
    cells(page).nth(2).click()
    expect(page.get_by_role("radio", name="1", exact=True)).to_be_checked()
    cells(page).nth(2).focus()
    for key in ("ArrowLeft", "Enter"):
        page.keyboard.press(key)
    expect(page.get_by_role("radio", name="0", exact=True)).to_be_checked()
    expect(cells(page).nth(1)).to_be_focused()


#: The cells of pair 0 in the four rows of the grid.
PAIR_0 = (0, 1, 4, 5, 8, 9, 12, 13)


def test_pointed_number_in_words(show, widget, vectors):
    page = show(widget)
    cells(page).nth(5).hover()
    after, before = rotated(vectors[1], 1)[1], vectors[1][1]
    expect(page.locator(".labs-status")).to_have_text(
        f"k[1] = {after:.4f}, before rotation {before:.4f}: pair 0."
    )


@pytest.mark.parametrize("key", ["click", " "])
def test_mixed_layouts(show, widget, vectors, key):
    page = show(widget)
    box = page.get_by_label("wrong: pair the key by halves")
    box.click() if key == "click" else box.press(key)
    q, k = rotated(vectors[0], 4), by_halves(vectors[1], 1)
    expect_score(page, q @ k, -3)
    expect(verdict(page)).to_contain_text(f"Paired alike: {score(vectors, 4, 1):.4f}.")
    expect(verdict(page)).to_contain_text(
        f"Both 7 further on: {rotated(vectors[0], 11) @ by_halves(vectors[1], 8):.4f}, not the same!"
    )
    assert cells(page).all_inner_texts()[4:8] == written(k)
    np.testing.assert_allclose(
        curve_scores(page, ".labs-wrong-curve"),
        [q @ by_halves(vectors[1], n) for n in range(64)],
        atol=0.02,
    )
    # sliding both now changes the score
    page.get_by_label("slide both together").check()
    query_slider(page).press("ArrowRight")
    expect_score(page, rotated(vectors[0], 5) @ by_halves(vectors[1], 2), -3)


@pytest.mark.parametrize("key", ["click", " "])
def test_rotated_values(show, vectors, key):
    v = np.array([0.5, -0.25, 2.0, 1.0])
    page = show(RopeExplorer(*vectors, v=v))
    box = page.get_by_label("wrong: rotate the value too")
    box.click() if key == "click" else box.press(key)
    here, further = (rotated(v, n)[:2] for n in (1, 8))
    expect(verdict(page)).to_contain_text(
        f"Pair 0 of the value is [{here[0]:.2f}, {here[1]:.2f}], "
        f"but 7 further on [{further[0]:.2f}, {further[1]:.2f}]."
    )
    expect_score(page, score(vectors, 4, 1), -3)  # the score does not know
    assert cells(page).all_inner_texts()[12:] == written(rotated(v, 1))
    expect(angles(page, 2)).to_have_text(["v: 1 × θ", "1.0000", "57.3"])


def test_views_of_one_model_stay_in_step(show, widget):
    page = show(widget, widget)
    first, second = page.locator(".labs-root").all()
    first.get_by_role("slider", name="key at n").press("End")
    first.get_by_label("wrong: pair the key by halves").check()
    expect(second.get_by_role("slider", name="key at n")).to_have_value("63")
    expect(second.get_by_label("wrong: pair the key by halves")).to_be_checked()
    assert (
        second.locator(".labs-rope-verdict").inner_text() == first.locator(".labs-rope-verdict").inner_text()
    )


def test_widest_head(show):
    q, k = 2 * np.random.default_rng(0).normal(size=(2, 16))
    page = show(RopeExplorer(q, k, base=500_000))
    page.get_by_label("pair on the circle").select_option("7")
    expect_score(page, rotated(q, 4, 500_000) @ rotated(k, 1, 500_000), -3)
    assert cells(page).all_inner_texts()[:16] == written(rotated(q, 4, 500_000))
    theta = 500_000 ** (-14 / 16)
    expect(page.locator(".labs-angles thead th").first).to_have_text(f"pair 7, θ = {theta:.8f}")


def test_one_pair_and_nothing_in_it(show):
    page = show(RopeExplorer(np.zeros(2), np.zeros(2), v=np.zeros(2)))
    expect_score(page, 0, -3)
    assert not re.search("NaN|Infinity", page.locator(".labs-root").inner_html())


def test_same_numbers_as_text(show, widget, vectors):
    page = show(widget)
    page.locator("summary").click()
    grid, curve = page.locator("pre").inner_text().split("\n\n")
    assert grid.splitlines()[2].split() == ["q", *written(rotated(vectors[0], 4))]
    rows = [line.split() for line in curve.splitlines()[1:]]
    assert rows == [[str(n - 4), f"{score(vectors, 4, n):.4f}"] for n in range(64)]


def test_pictures_are_described(show, widget, vectors):
    page = show(widget)
    expect(page.get_by_role("img", name="Pair 0 of query, key and value")).to_be_visible()
    name = f"At distance -3 it is {score(vectors, 4, 1):.4f}."
    expect(page.get_by_role("img", name=name)).to_be_visible()


def test_says_a_verdict_again_only_when_it_changed(show, widget):
    page = show(widget)
    kept = verdict(page).locator("p").first.element_handle()
    page.get_by_role("radio", name="1", exact=True).check()
    expect(page.locator(".labs-angles thead th").first).to_contain_text("pair 1")
    assert kept.evaluate("node => node.isConnected")
    key_slider(page).press("End")
    expect_score(page, score((np.array(widget.q), np.array(widget.k)), 4, 63), 59)
    assert not kept.evaluate("node => node.isConnected")


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 1280), ("light", 360)])
def test_axe_finds_nothing(show, widget, theme, width):
    widget.mixed = widget.rotate_values = True
    page = show(widget, theme=theme, width=width, reduced_motion="reduce")
    page.locator("summary").click()
    assert axe.violations(page) == []


def test_narrow_page_does_not_scroll(show, widget):
    page = show(widget, width=360)
    assert page.evaluate("document.documentElement.scrollWidth") == 360


def test_forced_colours_draw_in_the_readers_colours(show, widget):
    page = show(widget, forced_colors="active")
    colour = "node => getComputedStyle(node).stroke"
    ink = page.locator("h1").evaluate("node => getComputedStyle(node).color")
    for part in (".labs-vector-q .labs-after", ".labs-here", ".labs-curve >> nth=0"):
        assert page.locator(part).evaluate(colour) == ink, part


def test_cleanup_leaves_nothing(show, widget):
    page = show(widget)
    page.evaluate("labsHost.close()")
    expect(page.locator(".labs-root")).to_have_count(0)
