"""AttentionHeatmap: its traits in Python, and in a page with mouse, keyboard and screen reader."""

import json

import numpy as np
import pytest
import traitlets
from playwright.sync_api import expect

from labs.llm import tiny
from labs.llm.model import causal_mask, forward
from labs.llm.ops import softmax
from labs.widgets import AttentionHeatmap
from tests import axe

LETTERS = [list(word[:-1]) for word in tiny.WORDS]
AXES = {"keys": -1, "queries": -2, "heads": 1}


@pytest.fixture(scope="module")
def cache():
    """The attention of the course's example: q, k, v and p."""
    return forward(tiny.params(), tiny.INPUT_IDS, tiny.CONFIG)[1].blocks[0].attention


@pytest.fixture
def widget(cache):
    """Before any mask."""
    return AttentionHeatmap(cache.q, cache.k, labels=LETTERS, rotated=True)


@pytest.fixture
def masked(cache):
    return AttentionHeatmap(cache.q, cache.k, causal_mask(5), LETTERS, rotated=True)


@pytest.fixture(scope="module")
def scores(cache):
    return cache.q @ cache.k.swapaxes(-1, -2) / 2


# ---- Python ----


def test_traits(widget, cache):
    assert widget.shape == [2, 2, 5, 4]
    assert widget.q == cache.q.ravel().tolist()
    assert widget.k == cache.k.ravel().tolist()
    assert widget.mask == [True] * 25
    assert widget.labels == {"i": LETTERS, "j": LETTERS}
    assert (widget.batch, widget.head, widget.axis, widget.selected) == (0, 0, "keys", 20)
    assert repr(widget) == "AttentionHeatmap: P [2,2,5,5] (B,H,T,T) after RoPE"


def test_the_arrays_memory_layout_does_not_matter(cache):
    turned = np.asfortranarray(cache.q)
    assert AttentionHeatmap(turned, cache.k).q == cache.q.ravel().tolist()


def test_one_list_of_letters_for_every_batch(cache):
    assert AttentionHeatmap(cache.q, cache.k, labels="abcde").labels["i"] == [list("abcde")]


def test_state_is_json_without_nan(masked):
    json.dumps(
        {name: value for name, value in masked.get_state().items() if name != "layout"}, allow_nan=False
    )


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"q": np.zeros((2, 5, 4))}, ValueError, r"q must be \(B,H,T,dh\), got shape \(2, 5, 4\)"),
        ({"k": np.zeros((2, 2, 4, 4))}, ValueError, r"k must have the shape of q.*got \(2, 2, 4, 4\)"),
        ({"q": np.full((2, 2, 5, 4), np.nan)}, ValueError, "q must be finite, got nan"),
        ({"k": [["a"]]}, TypeError, "k must be an array of real numbers"),
        ({"q": np.full((2, 2, 5, 4), 9.0), "k": np.full((2, 2, 5, 4), 9.0)}, ValueError, "got 162"),
        (
            {"q": np.zeros((1, 1, 23, 2)), "k": np.zeros((1, 1, 23, 2))},
            ValueError,
            r"T\*T <= 512, got T = 23",
        ),
        ({"mask": np.ones((5, 5))}, TypeError, "mask must be boolean, True = may read, got dtype float64"),
        ({"mask": np.ones((2, 1, 5, 5), bool)}, ValueError, r"mask must have shape \(T,T\) = \(5, 5\), got"),
        ({"mask": np.tri(5, k=-1, dtype=bool)}, ValueError, "got nothing in row 0"),
        ({"labels": "abc"}, ValueError, "must be 5 texts, or 2 lists of 5 texts"),
    ],
)
def test_refused(cache, change, error, message):
    with pytest.raises(error, match=message):
        AttentionHeatmap(**{"q": cache.q, "k": cache.k} | change)


@pytest.mark.parametrize(
    ("name", "value"), [("batch", 2), ("head", -1), ("selected", 25), ("selected", -2), ("axis", "values")]
)
def test_traits_refused(widget, name, value):
    with pytest.raises(traitlets.TraitError, match=name):
        setattr(widget, name, value)


# ---- in a page ----


def grid(page, index):
    return page.locator(".labs-pairs .labs-grid").nth(index)


def cell(page, index, i, j):
    return grid(page, index).locator("tbody tr").nth(i).locator("td").nth(j)


def rows(page, index):
    """The texts of a grid, row by row, without the sums."""
    lines = grid(page, index).locator("tbody tr").all()[:5]
    return [line.locator("td").all_inner_texts()[:5] for line in lines]


def written(array):
    return [[f"{value:z.2f}" for value in row] for row in array]


def step(page, index):
    """The numbers of one of the two tables, and the line below it."""
    box = page.locator(".labs-step-box").nth(index)
    numbers = [line.locator("td").all_inner_texts() for line in box.locator("tbody tr").all()]
    return numbers, box.locator(".labs-step-result").inner_text()


def status(page):
    return page.locator(".labs-status")


@pytest.mark.parametrize("axis", AXES)
def test_axis_by_mouse(show, widget, scores, axis):
    page = show(widget)
    page.get_by_role("radio", name="queries").check()  # leaves the axis that is chosen at first
    page.get_by_role("radio", name=axis).check()
    weights = softmax(scores, axis=AXES[axis])[0, 0]
    expect(cell(page, 1, 0, 5)).to_have_text(f"{weights[0].sum():z.2f}")
    assert rows(page, 0) == written(scores[0, 0])
    assert rows(page, 1) == written(weights)
    assert [cell(page, 1, i, 5).inner_text() for i in range(5)] == written([weights.sum(axis=1)])[0]
    assert [cell(page, 1, 5, j).inner_text() for j in range(5)] == written([weights.sum(axis=0)])[0]
    wrong = [not np.isclose(total, 1) for total in weights.sum(axis=1)]
    assert page.locator(".labs-not-one").count() == sum(wrong)


def test_axis_by_keyboard(show, widget, scores):
    page = show(widget)
    for key in ("Tab", "Tab", "Tab", "ArrowRight"):
        page.keyboard.press(key)
    expect(page.get_by_role("radio", name="queries")).to_be_checked()
    expect(page.locator(".labs-verdict")).to_contain_text("The wrong axis: each column adds up to one")
    assert rows(page, 1) == written(softmax(scores, axis=-2)[0, 0])


def test_batch_and_head_by_mouse(show, widget, scores):
    page = show(widget)
    page.get_by_role("group", name="batch").get_by_role("radio", name="1").check()
    page.get_by_role("group", name="head").get_by_role("radio", name="1").check()
    expect(cell(page, 0, 0, 0)).to_have_text(f"{scores[1, 1, 0, 0]:z.2f}")
    assert rows(page, 0) == written(scores[1, 1])
    assert rows(page, 1) == written(softmax(scores)[1, 1])
    assert grid(page, 0).locator("tbody th").all_inner_texts() == [f"{t} {x}" for t, x in enumerate("causa")]


def test_batch_and_head_by_keyboard(show, widget, scores):
    page = show(widget)
    for key in ("Tab", "ArrowRight", "Tab", "ArrowRight"):
        page.keyboard.press(key)
    expect(cell(page, 0, 0, 0)).to_have_text(f"{scores[1, 1, 0, 0]:z.2f}")
    assert rows(page, 0) == written(scores[1, 1])


def entry(cache, scores, b, h, i, j):
    """The tables and lines of an entry, as NumPy has them, for the right axis."""
    q, k = cache.q[b, h, i], cache.k[b, h, j]
    powers = np.exp(scores[b, h, i])
    shares = softmax(scores)[b, h, i]

    def lines(columns):
        return [[f"{value:z.4f}" for value in row] for row in zip(*columns, strict=True)]

    dot = f"{q @ k:z.4f}"
    return (
        ([*lines((q, k, q * k)), ["", "", dot]], f"{dot} / √4 = {q @ k / 2:z.4f}, the score"),
        (
            [*lines((scores[b, h, i], powers, shares)), ["", f"{powers.sum():z.4f}", "1.0000"]],
            f"{powers[j]:z.4f} / {powers.sum():z.4f} = {shares[j]:z.4f}, the weight",
        ),
    )


def test_entry_by_mouse(show, widget, cache, scores):
    page = show(widget)
    assert (step(page, 0), step(page, 1)) == entry(cache, scores, 0, 0, 4, 0)  # chosen for the reader
    cell(page, 1, 2, 3).click()
    page.mouse.move(0, 0)
    expect(page.locator("[aria-selected=true]")).to_have_count(2)
    expect(cell(page, 0, 2, 3)).to_have_attribute("aria-selected", "true")
    assert (step(page, 0), step(page, 1)) == entry(cache, scores, 0, 0, 2, 3)
    expect(status(page)).to_contain_text("query 2 “t” reads key 3 “e”: score ")


def test_entry_by_keyboard_and_escape(show, widget, cache, scores):
    page = show(widget)
    for key in ("Tab", "Tab", "Tab", "Tab", "ArrowDown", "ArrowRight", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    expect(cell(page, 1, 1, 2)).to_have_attribute("aria-selected", "true")
    assert (step(page, 0), step(page, 1)) == entry(cache, scores, 0, 0, 1, 2)
    page.keyboard.press("Escape")
    expect(page.locator(".labs-step-box").first).to_be_hidden()
    expect(page.locator(".labs-nothing")).to_be_visible()


def test_entry_by_touch(show, widget, cache, scores):
    page = show(widget, width=360, has_touch=True)
    cell(page, 1, 3, 1).tap()
    expect(page.locator(".labs-step-title").first).to_have_text("query 3 “e” meets key 1 “t”")
    assert (step(page, 0), step(page, 1)) == entry(cache, scores, 0, 0, 3, 1)


def test_entry_follows_batch_and_head(show, widget, cache, scores):
    page = show(widget)
    cell(page, 0, 2, 3).click()
    page.get_by_role("group", name="head").get_by_role("radio", name="1").check()
    expect(page.locator(".labs-step-result").first).to_have_text(entry(cache, scores, 0, 1, 2, 3)[0][1])
    assert (step(page, 0), step(page, 1)) == entry(cache, scores, 0, 1, 2, 3)


def test_sums_are_read_but_not_selected(show, widget):
    page = show(widget)
    cell(page, 1, 3, 5).click(force=True)  # it says that it is disabled
    expect(status(page)).to_have_text("The row of query 3 “e” adds up to 1.00.")
    expect(cell(page, 1, 4, 0)).to_have_attribute("aria-selected", "true")


def test_mask(show, masked, cache, scores):
    page = show(masked)
    assert rows(page, 0) == written(scores[0, 0])
    assert rows(page, 1) == written(np.where(causal_mask(5), scores[0, 0], -np.inf))  # "-inf"
    assert rows(page, 2) == written(cache.p[0, 0])
    assert page.locator(".labs-masked").count() == 2 * 10
    cell(page, 1, 0, 4).click()
    expect(page.locator(".labs-step-result").first).to_contain_text("the mask forbids this pair: -inf")


def test_forbidden_pairs_look_forbidden(show, masked):
    page = show(masked)
    image = "node => getComputedStyle(node).backgroundImage"
    assert "gradient" in cell(page, 2, 0, 4).evaluate(image)
    assert cell(page, 2, 4, 0).evaluate(image) == "none"


def test_forced_colours_keep_forbidden_pairs_visible(show, masked):
    page = show(masked, forced_colors="active")
    border = "node => getComputedStyle(node).borderTopStyle"
    assert cell(page, 1, 0, 4).evaluate(border) == "dashed"
    assert cell(page, 1, 4, 0).evaluate(border) == "solid"


def test_title_says_before_or_after_rope(show, widget, cache):
    page = show(widget, AttentionHeatmap(cache.q, cache.k))
    titles = [" ".join(text.split()) for text in page.locator(".labs-title").all_inner_texts()]
    assert titles == ["P [2,2,5,5] (B,H,T,T), after RoPE", "P [2,2,5,5] (B,H,T,T), before RoPE"]


def test_another_shape(show):
    q, k = np.random.default_rng(0).standard_normal((2, 1, 6, 3, 2))
    page = show(AttentionHeatmap(q, k))
    expect(page.get_by_role("group", name="batch")).to_have_count(0)  # there is nothing to choose
    page.get_by_role("combobox", name="head").select_option("5")
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(2)
    expect(cell(page, 0, 0, 0)).to_have_text(f"{scores[0, 5, 0, 0]:z.2f}")
    lines = [line.locator("td").all_inner_texts() for line in grid(page, 0).locator("tbody tr").all()]
    assert lines == written(scores[0, 5])


def test_views_of_one_model_stay_in_step(show, widget):
    page = show(widget, widget)
    page.get_by_role("radio", name="heads").first.check()
    page.locator(".labs-heatmap").first.locator(".labs-cell").nth(3).click()
    second = page.locator(".labs-heatmap").nth(1)
    expect(second.get_by_role("radio", name="heads")).to_be_checked()
    expect(second.locator("[aria-selected=true]")).to_have_count(2)
    expect(second.locator(".labs-step-title").first).to_have_text("query 0 “a” meets key 3 “e”")


def test_same_numbers_as_text(show, masked, cache):
    page = show(masked)
    page.locator("summary").click()
    blocks = page.locator("pre").inner_text().split("\n\n")
    names = [block.splitlines()[0] for block in blocks]
    assert names[:3] == ["S[0,0]", "S + M[0,0]", "P[0,0]"]
    assert names[3:] == ["query 4 “n” meets key 0 “a”", "All keys query 4 “n” may read"]
    assert blocks[2].splitlines()[3].split()[2:] == [*written(cache.p[0, 0])[1], "1.00"]
    assert blocks[4].splitlines()[2].split() == ["j=0", "a", *step(page, 1)[0][0]]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(show, masked, theme):
    page = show(masked, theme=theme, reduced_motion="reduce")
    page.get_by_role("radio", name="queries").check()
    page.locator("summary").click()
    assert axe.violations(page) == []


def test_narrow_page_does_not_scroll(show, masked):
    page = show(masked, width=360)
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    boxes = "[...document.querySelectorAll('.labs-grid-box, .labs-step-box')]"
    assert page.evaluate(f"{boxes}.every(box => box.scrollWidth <= box.clientWidth)")


def test_masked_grids_stand_side_by_side_in_a_wide_page(show, masked):
    page = show(masked)
    tops = [grid(page, index).bounding_box()["y"] for index in range(3)]
    assert tops == [tops[0]] * 3


def test_print_shows_the_entry(show, widget):
    page = show(widget)
    page.emulate_media(media="print")
    expect(page.locator(".labs-more")).to_be_hidden()
    expect(page.locator(".labs-step-box").first).to_be_visible()


def test_cleanup_leaves_nothing(show, widget):
    page = show(widget)
    page.evaluate("labsHost.close()")
    expect(page.locator(".labs-root")).to_have_count(0)
