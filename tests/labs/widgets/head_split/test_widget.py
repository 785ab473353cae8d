"""HeadSplit: its traits in Python, and in a page with mouse, keyboard and screen reader."""

import numpy as np
import pytest
import traitlets
from playwright.sync_api import expect

from labs.course import palette
from labs.llm.model import split_heads
from labs.widgets import HeadSplit, TensorGrid
from tests import axe

WORDS = [list("atten"), list("causa")]


@pytest.fixture
def values():
    """Numbers (2,5,8) that are all different with two decimals."""
    return (np.arange(80).reshape(2, 5, 8) - 40) / 50


@pytest.fixture
def widget(values):
    return HeadSplit(values, 2)


# ---- Python ----


def test_traits(widget, values):
    assert widget.shape == [2, 5, 8]
    assert widget.n_heads == 2
    assert widget.values == values.ravel().tolist()
    assert (widget.route, widget.show, widget.batch, widget.selected) == ("swap", "values", 0, -1)
    assert repr(widget) == "HeadSplit: Q [2,5,8] (B,T,D) split into [2,2,5,4] (B,H,T,dh)"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_heads": 3}, r"values \(B,T,D\) = \(2,5,8\) cannot be split into H = 3 heads \(B,H,T,dh\)"),
        ({"n_heads": 0}, "positive integer, got 0"),
        ({"n_heads": 2.0}, r"positive integer, got 2\.0"),
        ({"n_heads": True}, "positive integer, got True"),
        ({"values": np.zeros((5, 8))}, r"values must be \(B,T,D\), got shape \(5, 8\)"),
        ({"role": "queries"}, "role must be one of"),
        ({"route": "transpose"}, "route must be one of swap, direct; got 'transpose'"),
        ({"show": "names"}, "show must be one of values, origins; got 'names'"),
        ({"decimals": True}, "decimals must be an integer from 0 to 6, got True"),
        ({"labels": {"d": "abcdefgh"}}, "labels must be for the axes b and t"),
    ],
)
def test_refused(values, change, message):
    with pytest.raises(ValueError, match=message):
        HeadSplit(**{"values": values, "n_heads": 2} | change)


def test_name_refused(values):
    with pytest.raises(TypeError, match="name must be a text"):
        HeadSplit(values, 2, name=3)


def test_integers_of_any_width_count_heads():
    """128 heads fit into eight bits; the 256 columns that they divide do not."""
    widget = HeadSplit(np.ones((2, 1, 256)), np.uint8(128), decimals=np.int8(1))
    assert (widget.n_heads, widget.decimals) == (128, 1)
    with pytest.raises(ValueError, match="cannot be split into H = 100 heads"):
        HeadSplit(np.ones((2, 1, 256)), np.int8(100))


def test_selecting_a_number_brings_its_batch(widget):
    widget.selected = 40
    assert widget.batch == 1
    widget.selected = -1
    assert widget.batch == 1


def test_traits_refused(widget):
    with pytest.raises(traitlets.TraitError, match="from 0 to 79"):
        widget.selected = 80
    with pytest.raises(traitlets.TraitError, match="batch must be 0 to 1, got 2"):
        widget.batch = 2


# ---- in a page ----


def source(page):
    return page.locator(".labs-source .labs-cell")


def head(page, batch, index):
    return page.locator(".labs-batch").nth(batch).locator(".labs-grid").nth(index).locator(".labs-cell")


def written(array):
    return [f"{value:.2f}" for value in array.ravel()]


@pytest.mark.parametrize("route", ["swap", "direct"])
def test_shows_where_numpy_puts_every_number(show, values, route):
    page = show(HeadSplit(values, 2, route=route))
    result = split_heads(values, 2) if route == "swap" else values.reshape(2, 2, 5, 4)
    assert source(page).all_inner_texts() == written(values[0])
    for b in range(2):
        for h in range(2):
            assert head(page, b, h).all_inner_texts() == written(result[b, h])


def test_routes_by_mouse(show, widget):
    page = show(widget)
    expect(page.locator(".labs-verdict")).to_contain_text("80 of 80 numbers are where they belong.")
    expect(page.locator(".labs-wrong")).to_have_count(0)
    page.get_by_role("radio", name="direct reshape").check()
    expect(page.locator(".labs-verdict")).to_contain_text("16 of 80 numbers are where they belong.")
    expect(page.locator(".labs-wrong")).to_have_count(64)
    assert page.locator(".labs-stage").all_inner_texts() == ["(B,T,D)\n[2,5,8]", "(B,H,T,dh)\n[2,2,5,4]"]
    page.get_by_role("radio", name="reshape, then swap axes").check()
    expect(page.locator(".labs-wrong")).to_have_count(0)
    assert page.locator(".labs-stage").all_inner_texts()[1] == "(B,T,H,dh)\n[2,5,2,4]"


def test_routes_by_keyboard(show, widget):
    page = show(widget)
    page.keyboard.press("Tab")
    expect(page.get_by_role("radio", name="reshape, then swap axes")).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(page.locator(".labs-wrong")).to_have_count(64)


def test_with_the_right_route_each_head_has_one_tint(show, widget):
    page = show(widget)
    for h in range(2):
        assert {*head(page, 0, h).evaluate_all("cells => cells.map(cell => cell.className)")} == {
            f"labs-cell labs-head-{h}"
        }
    page.get_by_role("radio", name="direct reshape").check()
    expect(
        page.locator(".labs-batch").first.locator(".labs-grid").first.locator(".labs-head-1")
    ).to_have_count(8)


def test_style_sheets_of_a_later_widget_change_nothing(show, widget, values):
    page = show(widget, TensorGrid(values))
    tint = bytes.fromhex(palette.HEADS[1].light[1:])
    color = f"rgb({', '.join(map(str, tint))})"
    expect(head(page, 0, 1).first).to_have_css("background-color", color)
    expect(page.locator(".labs-head-split .labs-status")).to_have_css("min-height", "102px")  # 6 rem


def test_origins_in_the_cells(show, values):
    page = show(HeadSplit(values, 2, route="direct"))
    page.get_by_label("show each number's origin").check()
    expect(head(page, 0, 1).first).to_have_text("2,4")
    assert source(page).all_inner_texts() == [f"{t},{d}" for t in range(5) for d in range(8)]


def test_selected_number_is_outlined_in_both_tensors(show, widget):
    page = show(widget)
    source(page).nth(2 * 8 + 5).click()
    expect(page.locator("[aria-selected=true]")).to_have_count(2)
    expect(head(page, 0, 1).nth(2 * 4 + 1)).to_have_attribute("aria-selected", "true")
    expect(page.locator(".labs-status")).to_have_text(
        "Q[0,2,5] lands at heads[0,1,2,1]: batch 0, head 1, position 2, column 1."
    )
    page.get_by_role("radio", name="direct reshape").check()
    expect(head(page, 0, 1).nth(1)).to_have_attribute("aria-selected", "true")
    expect(page.locator(".labs-status")).to_contain_text("Wrong: it belongs to head 1, position 2.")


def test_pointed_number_is_marked_in_both_tensors(show, widget):
    page = show(widget)
    head(page, 1, 0).nth(0).hover()
    expect(page.locator(".labs-marked")).to_have_count(1)  # batch 1 is not in the source grid
    head(page, 0, 0).nth(0).hover()
    expect(page.locator(".labs-marked")).to_have_count(2)
    expect(source(page).first).to_have_class("labs-cell labs-head-0 labs-marked")


def test_number_of_another_batch_brings_its_batch(show, widget, values):
    page = show(widget)
    head(page, 1, 1).nth(0).click()
    expect(page.get_by_role("radio", name="1", exact=True)).to_be_checked()
    expect(source(page)).to_have_text(written(values[1]))
    expect(source(page).nth(4)).to_have_attribute("aria-selected", "true")


def test_batch_by_mouse(show, widget, values):
    page = show(widget)
    page.get_by_role("radio", name="1", exact=True).check()
    expect(source(page)).to_have_text(written(values[1]))


def test_keyboard_selects(show, widget):
    page = show(widget)
    for key in ("Tab", "Tab", "Tab", "Tab", "ArrowDown", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    expect(source(page).nth(9)).to_be_focused()
    expect(page.locator("[aria-selected=true]")).to_have_count(2)


def test_touch_selects(show, widget):
    page = show(widget, width=360, has_touch=True)
    source(page).nth(9).tap()
    expect(page.locator("[aria-selected=true]")).to_have_count(2)
    expect(page.locator(".labs-status")).to_contain_text("Q[0,1,1] lands at heads[0,0,1,1]")


def test_views_of_one_model_stay_in_step(show, widget):
    page = show(widget, widget)
    page.get_by_role("radio", name="direct reshape").first.check()
    page.locator(".labs-source").first.locator(".labs-cell").nth(3).click()
    page.get_by_label("show each number's origin").first.check()
    second = page.locator(".labs-root").nth(1)
    expect(second.get_by_role("radio", name="direct reshape")).to_be_checked()
    expect(second.locator("[aria-selected=true]")).to_have_text(["0,3", "0,3"])


def test_letters_stand_at_the_positions_of_each_batch(show, values):
    page = show(HeadSplit(values, 2, labels={"t": WORDS}))
    assert page.locator(".labs-batch").nth(1).locator("tbody th").all_inner_texts() == [
        f"{t} {letter}" for _ in range(2) for t, letter in enumerate("causa")
    ]
    source(page).nth(2 * 8).hover()
    expect(page.locator(".labs-status")).to_contain_text("position 2 “t”, column 0.")


def test_another_shape(show):
    values = np.arange(3 * 7 * 24).reshape(3, 7, 24)
    page = show(HeadSplit(values, 4, decimals=0))
    heads = split_heads(values, 4)
    page.get_by_role("radio", name="2", exact=True).check()
    expect(head(page, 2, 3)).to_have_text([str(n) for n in heads[2, 3].ravel()])
    expect(page.locator(".labs-batch:visible")).to_have_count(1)  # twelve grids would be too many
    page.get_by_role("radio", name="direct reshape").check()
    right = int((values.reshape(3, 4, 7, 6) == heads).sum())
    expect(page.locator(".labs-verdict")).to_contain_text(f"{right} of 504 numbers")


def test_same_numbers_as_text(show, widget, values):
    page = show(widget)
    page.locator("summary").click()
    blocks = page.locator("pre").inner_text().split("\n\n")
    assert [block.splitlines()[0] for block in blocks] == ["Q[0]", "heads[0,0]", "heads[0,1]"]
    assert blocks[2].splitlines()[2].split() == ["t=0", *written(values[0, 0, 4:])]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(show, values, theme):
    page = show(
        HeadSplit(values, 2, labels={"t": WORDS}, route="direct"), theme=theme, reduced_motion="reduce"
    )
    source(page).nth(9).click()
    page.locator("summary").click()
    assert axe.violations(page) == []


def test_narrow_page_does_not_scroll(show, widget):
    page = show(widget, width=360)
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    assert page.evaluate(
        "[...document.querySelectorAll('.labs-grid-box')].every(b => b.scrollWidth <= b.clientWidth)"
    )


def test_forced_colours_keep_wrong_places_visible(show, values):
    page = show(HeadSplit(values, 2, route="direct"), forced_colors="active")
    wrong = page.locator(".labs-wrong").first
    assert wrong.evaluate("node => getComputedStyle(node).borderTopStyle") == "dashed"


def test_cleanup_leaves_nothing(show, widget):
    page = show(widget)
    page.evaluate("labsHost.close()")
    expect(page.locator(".labs-root")).to_have_count(0)
