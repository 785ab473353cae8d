"""TensorGrid: its traits in Python, and in a page with mouse, keyboard and screen reader."""

import re

import numpy as np
import pytest
import traitlets
from playwright.sync_api import expect

from labs.course import palette
from labs.widgets import TensorGrid
from tests import axe

WORDS = [list("atten"), list("causa")]


@pytest.fixture
def values():
    """Round numbers (2,5,8) from -0.80 to 0.78, among them zero; the largest magnitude is negative."""
    return (np.arange(80).reshape(2, 5, 8) - 40) / 50


@pytest.fixture
def grid(values):
    return TensorGrid(values, labels={"t": WORDS})


# ---- Python ----


def test_traits(grid, values):
    assert grid.shape == [2, 5, 8]
    assert grid.values == values.ravel().tolist()
    assert grid.limit == 0.8
    assert grid.labels == {"t": WORDS}
    assert grid.selected == -1


def test_the_arrays_memory_layout_does_not_matter(values):
    turned = values.T
    assert TensorGrid(turned, axes="dtb").values == turned.ravel().tolist()


def test_representation_has_no_address(grid):
    assert repr(grid) == "TensorGrid: X [2,5,8] (B,T,D)"
    assert (
        repr(TensorGrid(np.zeros((2, 5, 4)), axes=("h", "t", "dh"), name="q"))
        == "TensorGrid: q [2,5,4] (H,T,dh)"
    )


def test_selected_must_be_a_cell(grid):
    grid.selected = 79
    with pytest.raises(traitlets.TraitError, match="from 0 to 79"):
        grid.selected = 80


@pytest.mark.parametrize(
    ("shape", "picked"),
    [
        ((5,), 0),
        ((5, 8), 0),
        ((2, 5, 8), 0),
        ((5, 5, 8), 1),
        ((2, 2, 5, 5), 0),
        ((3, 2, 5, 5), 1),
        ((9, 5, 3, 3), 2),
    ],
)
def test_as_many_axes_side_by_side_as_make_four_matrices(shape, picked):
    assert TensorGrid(np.zeros(shape), axes="bhtd"[-len(shape) :]).picked == [0] * picked


def test_selected_cell_comes_into_sight():
    grid = TensorGrid(np.zeros((3, 2, 4, 5)), axes="bhtd")
    grid.selected = 2 * 40 + 1
    assert grid.picked == [2]
    grid.selected = -1
    assert grid.picked == [2]


def test_picked_must_be_an_index_on_each_picked_axis(grid):
    assert grid.picked == []
    many = TensorGrid(np.zeros((3, 2, 4, 5)), axes="bhtd")
    many.picked = [2]
    for wrong in ([3], [-1], [], [0, 0]):
        with pytest.raises(traitlets.TraitError, match="one index below each of"):
            many.picked = wrong


def test_wrong_axes_are_refused(values):
    with pytest.raises(ValueError, match=r"axes must name each axis of shape \(2, 5, 8\) once, got 'td'"):
        TensorGrid(values, axes="td")


def test_decimals_may_be_numpys(values):
    assert type(TensorGrid(values, decimals=np.int64(1)).decimals) is int


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"name": 3}, TypeError, "name must be a text"),
        ({"role": ["x"]}, ValueError, "role must be one of"),
        ({"axes": 3}, TypeError, "axes must be a text such as 'btd'"),
        ({"labels": ["a"]}, TypeError, "labels must be a dict"),
        ({"labels": {"t": [1, 2, 3, 4, 5]}}, TypeError, "must be 5 texts"),
        ({"decimals": True}, ValueError, "decimals must be an integer"),
        ({"limit": "a"}, TypeError, "limit must be a number"),
        ({"values": np.ma.masked_array([[1.0]], True), "axes": "td"}, TypeError, "without a mask"),
    ],
)
def test_refused(values, change, error, message):
    with pytest.raises(error, match=message):
        TensorGrid(**{"values": values} | change)


# ---- in a page ----


def cell(page, row, column, grid=0):
    return page.locator(".labs-grid").nth(grid).locator("tbody tr").nth(row).locator("td").nth(column)


def status(page, view=0):
    return page.locator(".labs-status").nth(view)


def test_shows_every_number(show, grid, values):
    page = show(grid)
    texts = page.locator(".labs-cell").all_inner_texts()
    assert texts == [f"{value:.2f}" for value in values.ravel()]
    assert page.locator(".labs-title").inner_text().split() == ["X", "[2,5,8]", "(B,T,D)"]
    assert page.locator("tbody th").all_inner_texts() == [
        f"{t} {word[t]}" for word in WORDS for t in range(5)
    ]


def channels(color: str) -> list[float]:
    """Red, green and blue from 0 to 255 of a computed colour, "rgb(...)" or "color(srgb ...)"."""
    numbers = [float(number) for number in re.findall(r"[\d.]+", color)][:3]
    return [255 * number for number in numbers] if color.startswith("color") else numbers


def mixed(end: palette.Pair, share: float, theme: str) -> list[float]:
    """The colour that the scale has `share` of the way from zero to `end`."""
    ends = (bytes.fromhex(getattr(pair, theme)[1:]) for pair in (palette.ZERO, end))
    return [(1 - share) * zero + share * full for zero, full in zip(*ends, strict=True)]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_are_the_palettes_scale(show, grid, theme):
    page = show(grid, theme=theme, reduced_motion="reduce")
    for flat, end, share in ((0, palette.NEGATIVE, 1), (20, palette.NEGATIVE, 0.5), (40, palette.ZERO, 0)):
        color = (
            page.locator(".labs-cell").nth(flat).evaluate("node => getComputedStyle(node).backgroundColor")
        )
        assert channels(color) == pytest.approx(mixed(end, share, theme), abs=1)
    positive = page.locator(".labs-cell").nth(60).evaluate("node => getComputedStyle(node).backgroundColor")
    assert channels(positive) == pytest.approx(mixed(palette.POSITIVE, 0.5, theme), abs=1)


def test_pointing_at_a_number_says_which_it_is(show, grid):
    page = show(grid)
    expect(status(page)).to_have_text(grid.strings["tensor_grid"]["hint"])
    cell(page, 2, 5).hover()
    expect(status(page)).to_have_text("X[0,2,5] = -0.38: position 2 “t”")
    page.mouse.move(0, 0)
    expect(status(page)).to_have_text(grid.strings["tensor_grid"]["hint"])


def test_click_selects_and_clears(show, grid):
    page = show(grid)
    cell(page, 2, 5).click()
    page.mouse.move(0, 0)
    expect(cell(page, 2, 5)).to_have_attribute("aria-selected", "true")
    expect(status(page)).to_have_text("X[0,2,5] = -0.38: position 2 “t”")
    cell(page, 2, 5).click()
    expect(page.locator("[aria-selected=true]")).to_have_count(0)


@pytest.mark.parametrize(
    ("keys", "row", "column"),
    [
        ("ArrowRight", 0, 1),
        ("ArrowDown", 1, 0),
        ("ArrowRight ArrowDown ArrowLeft ArrowUp", 0, 0),
        ("ArrowUp ArrowLeft", 0, 0),
        ("ArrowDown End", 1, 7),
        ("ArrowDown End Home", 1, 0),
        ("Control+End", 4, 7),
        ("Control+End ArrowRight ArrowDown", 4, 7),
        ("Control+End Control+Home", 0, 0),
    ],
)
def test_keys_move_the_focus(show, grid, keys, row, column):
    page = show(grid)
    page.keyboard.press("Tab")
    for key in keys.split():
        page.keyboard.press(key)
    expect(cell(page, row, column)).to_be_focused()
    expect(status(page)).to_contain_text(f"X[0,{row},{column}] = ")
    assert page.locator(".labs-grid").first.locator("[tabindex='0']").count() == 1


def test_each_grid_is_one_stop_of_tab(show, grid):
    page = show(grid)
    for target in (cell(page, 0, 0), cell(page, 0, 0, grid=1), page.locator("summary")):
        page.keyboard.press("Tab")
        expect(target).to_be_focused()


def test_tab_comes_back_to_where_it_left(show, grid):
    page = show(grid)
    for key in ("Tab", "ArrowDown", "ArrowRight", "Tab", "Shift+Tab"):
        page.keyboard.press(key)
    expect(cell(page, 1, 1)).to_be_focused()


@pytest.mark.parametrize("key", ["Enter", "Space"])
def test_keys_select_and_clear(show, grid, key):
    page = show(grid)
    for press in ("Tab", "ArrowRight", key):
        page.keyboard.press(press)
    expect(cell(page, 0, 1)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Escape")
    expect(page.locator("[aria-selected=true]")).to_have_count(0)


def test_views_of_one_model_stay_in_step(show, grid):
    page = show(grid, grid)
    cell(page, 1, 3, grid=2).click()
    expect(cell(page, 1, 3)).to_have_attribute("aria-selected", "true")
    expect(status(page)).to_contain_text("X[0,1,3]")


def test_widgets_do_not_touch_each_other(show, grid, values):
    page = show(grid, TensorGrid(-values))
    cell(page, 1, 3).click()
    expect(page.locator("[aria-selected=true]")).to_have_count(1)


def test_reader_picks_on_the_axes_that_do_not_fit(show):
    values = np.arange(3 * 2 * 2 * 3).reshape(3, 2, 2, 3)
    page = show(TensorGrid(values, axes="bhtd", decimals=0))
    assert page.locator(".labs-cell").all_inner_texts() == [str(n) for n in range(12)]
    page.get_by_role("radio", name="2").check()
    expect(page.locator(".labs-cell")).to_have_text([str(n) for n in range(24, 36)])
    assert page.locator(".labs-caption").all_inner_texts() == ["batch 2, head 0", "batch 2, head 1"]


def test_many_indices_are_a_list(show):
    values = np.arange(6 * 2 * 3).reshape(6, 2, 3)
    page = show(TensorGrid(values, decimals=0))
    page.get_by_label("batch").select_option("5")
    expect(page.locator(".labs-cell")).to_have_text([str(n) for n in range(30, 36)])


def test_cell_that_python_selects_is_in_sight(show):
    grid = TensorGrid(np.arange(6 * 2 * 3).reshape(6, 2, 3), decimals=0)
    grid.selected = 31
    page = show(grid)
    expect(page.locator("[aria-selected=true]")).to_have_text("31")


def test_screen_readers_are_given_a_grid_with_headers(show, grid):
    page = show(grid)
    first = page.get_by_role("grid", name="X[0]")
    expect(first.get_by_role("columnheader")).to_have_count(8)
    expect(first.get_by_role("rowheader")).to_have_count(5)
    expect(first.get_by_role("gridcell", name="-0.80", exact=True)).to_have_count(1)
    assert page.get_by_role("status").get_attribute("role") == "status"


def test_same_numbers_as_text(show, grid):
    page = show(grid)
    page.locator("summary").click()
    lines = page.locator("pre").inner_text().splitlines()
    assert lines[0] == "X[0]"
    assert lines[2].split() == ["t=0", "a", *(f"{n / 50:.2f}" for n in range(-40, -32))]
    assert len(lines) == 2 * 7 + 1


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 1280), ("light", 360)])
def test_axe_finds_nothing(show, grid, theme, width):
    page = show(grid, theme=theme, width=width, reduced_motion="reduce")
    page.locator("summary").click()
    assert axe.violations(page) == []


def test_narrow_page_does_not_scroll_and_cells_are_large_enough(show, grid):
    page = show(grid, width=360)
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    assert page.evaluate(
        "[...document.querySelectorAll('.labs-grid-box')].every(b => b.scrollWidth <= b.clientWidth)"
    )
    size = cell(page, 0, 0).bounding_box()
    assert min(size["width"], size["height"]) >= 32


def test_wide_grid_scrolls_in_its_own_box(show):
    page = show(TensorGrid(np.ones((2, 24)), axes="td"), width=360)
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    page.keyboard.press("Tab")
    page.keyboard.press("End")
    assert page.locator(".labs-grid-box").evaluate("box => box.scrollLeft") > 0


def test_print_hides_what_is_of_the_moment(show, grid):
    page = show(grid)
    cell(page, 1, 1).click()
    page.emulate_media(media="print")
    expect(page.locator(".labs-more")).to_be_hidden()
    expect(status(page)).to_be_hidden()
    assert cell(page, 1, 1).evaluate("node => getComputedStyle(node).outlineStyle") == "none"
    assert cell(page, 1, 1).evaluate("node => getComputedStyle(node).printColorAdjust") == "exact"


def test_forced_colours_keep_cells_and_selection_visible(show, grid):
    page = show(grid, forced_colors="active", reduced_motion="reduce")
    cell(page, 1, 1).click()
    page.mouse.move(0, 0)
    page.locator("h1").evaluate("node => { node.style.backgroundColor = 'Highlight' }")
    background = "node => getComputedStyle(node).backgroundColor"
    assert cell(page, 1, 1).evaluate(background) == page.locator("h1").evaluate(background)
    assert cell(page, 1, 2).evaluate("node => getComputedStyle(node).borderTopColor") != "rgba(0, 0, 0, 0)"


@pytest.mark.parametrize(("motion", "duration"), [("reduce", "0s"), ("no-preference", "0.15s")])
def test_moves_only_where_motion_is_welcome(show, grid, motion, duration):
    page = show(grid, reduced_motion=motion)
    assert cell(page, 0, 0).evaluate("node => getComputedStyle(node).transitionDuration") == duration


def test_cleanup_leaves_nothing(show, grid):
    page = show(grid)
    page.evaluate("labsHost.close()")
    expect(page.locator(".labs-root")).to_have_count(0)
