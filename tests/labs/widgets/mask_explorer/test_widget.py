"""MaskExplorer: its traits in Python, and in a page with mouse, keyboard and screen reader."""

import json
import re

import numpy as np
import pytest
import traitlets
from playwright.sync_api import expect

from labs.llm import tiny
from labs.llm.model import ModelConfig, causal_mask, forward, init_params
from labs.widgets import MaskExplorer, TensorGrid
from tests import axe

IDS, CONFIG = tiny.INPUT_IDS, tiny.CONFIG
GIVEN = {
    "params": tiny.params(),
    "config": CONFIG,
    "ids": IDS,
    "targets": tiny.TARGET_IDS,
    "vocabulary": tiny.VOCABULARY,
}


@pytest.fixture
def widget():
    return MaskExplorer(**GIVEN)


# ---- Python ----


def test_traits(widget):
    assert widget.shape == [2, 2, 5, 4]
    assert widget.settings == {"D": 8, "H": 2, "base": 10000.0, "eps": 1e-5}
    assert {key: len(numbers) for key, numbers in widget.params.items()} == {
        key: array.size for key, array in tiny.params().items()
    }
    assert widget.ids == widget.tokens == IDS.ravel().tolist()
    assert widget.last_targets == [tiny.VOCABULARY.index(letter) for letter in "dl"]
    assert (widget.causal, widget.same_position, widget.flipped) == (True, False, [])
    assert widget.padding == [False] * 10
    assert repr(widget) == "MaskExplorer: logits [2,5,9] (B,T,V) of one layer, causal mask"


def test_state_is_json_without_nan(widget):
    json.dumps(
        {name: value for name, value in widget.get_state().items() if name != "layout"}, allow_nan=False
    )


DEEP = ModelConfig(9, d_model=8, n_heads=2, n_layers=2, d_ff=16)
LARGE = ModelConfig(9, d_model=40, n_heads=2, n_layers=1, d_ff=16)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"config": DEEP}, ValueError, "params must have the keys"),
        ({"config": DEEP, "params": init_params(DEEP, 0)}, ValueError, "one layer, got n_layers = 2"),
        ({"config": LARGE, "params": init_params(LARGE, 0)}, ValueError, "at most 8192 numbers, got 9160"),
        (
            {"params": tiny.params() | {"final_norm": np.full(8, np.inf)}},
            ValueError,
            r"params\['final_norm'\] must be finite, got inf",
        ),
        ({"ids": IDS * 1.0}, TypeError, "ids must be integers"),
        ({"ids": IDS + 5}, ValueError, r"ids must lie in \[0, V\) = \[0, 9\)"),
        ({"ids": IDS[0]}, ValueError, r"ids and targets must both be \(B,T\), got \(5,\) and \(2, 5\)"),
        ({"targets": IDS}, ValueError, r"targets must be the ids one position on"),
        ({"vocabulary": "abc"}, ValueError, "vocabulary must be V = 9 texts"),
        ({"vocabulary": [*"abcdefgh", ""]}, ValueError, "vocabulary must be V = 9 texts"),
        (
            {"ids": np.zeros((1, 23), int), "targets": np.zeros((1, 23), int)},
            ValueError,
            "at most 512, got B = 1, T = 23, V = 9",
        ),
    ],
)
def test_refused(change, error, message):
    with pytest.raises(error, match=message):
        MaskExplorer(**GIVEN | change)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("batch", 2),
        ("head", -1),
        ("padding", [True]),
        ("tokens", [9] * 10),
        ("tokens", [0]),
        ("flipped", [25]),
        ("flipped", [3, 3]),
    ],
)
def test_traits_refused(widget, name, value):
    with pytest.raises(traitlets.TraitError, match=name):
        setattr(widget, name, value)


# ---- in a page ----


def grid(page, index):
    """Scores, masked scores, weights, output, logits."""
    return page.locator(".labs-pairs .labs-grid").nth(index)


def cell(page, index, i, j):
    return grid(page, index).locator("tbody tr").nth(i).locator("td").nth(j)


def moved(page):
    return page.locator(".labs-text tbody tr").nth(3).locator("td")


def rows(page, index, columns):
    """The texts of a grid, row by row, without sums."""
    lines = grid(page, index).locator("tbody tr").all()[:5]
    return [line.locator("td").all_inner_texts()[:columns] for line in lines]


def written(array):
    return [[f"{value:z.2f}" for value in row] for row in array]


def check_numbers(page, mask, ids=IDS, batch=0, head=0, params=None, config=CONFIG):
    """Wait for the logits of NumPy, and see that every grid shows NumPy's numbers."""
    logits, cache = forward(params or tiny.params(), ids, config, mask=mask)
    q, k, v, p = (array[batch, head] for array in cache.blocks[0].attention)
    scores = q @ k.T / np.sqrt(config.d_head)
    expect(grid(page, 4).locator("td.labs-cell")).to_have_text(
        [text for row in written(logits[batch]) for text in row]
    )
    for index, array in enumerate((scores, np.where(mask, scores, -np.inf), p, p @ v)):
        assert rows(page, index, array.shape[1])[: len(scores)] == written(array)


def with_entries(*pairs):
    """The causal mask with these entries turned over."""
    mask = causal_mask(5)
    for pair in pairs:
        mask[pair] = not mask[pair]
    return mask


def press(page, control, by):
    """Use a check box or a button, with the mouse or with the keyboard."""
    if by == "mouse":
        control.click()
    else:
        control.focus()
        page.keyboard.press("Space")


def test_causal_mask_by_mouse(show, widget):
    page = show(widget)
    check_numbers(page, causal_mask(5))
    assert page.locator(".labs-leak").count() == 0
    page.get_by_label("causal mask").uncheck()
    check_numbers(page, np.ones((5, 5), bool))
    expect(page.locator(".labs-leak")).to_have_count(2 * 4)
    expect(page.locator(".labs-verdict")).to_contain_text("A leak at position 0, 1, 2, 3:")
    expect(page.locator(".labs-verdict")).to_have_class("labs-verdict labs-is-wrong")


def test_causal_mask_by_keyboard(show, widget):
    page = show(widget)
    for key in ("Tab", "Tab", "Tab", "Space"):
        page.keyboard.press(key)
    expect(page.get_by_label("causal mask")).not_to_be_checked()
    check_numbers(page, np.ones((5, 5), bool))


def test_batch_and_head(show, widget):
    page = show(widget)
    page.get_by_role("group", name="batch").get_by_role("radio", name="1").check()
    page.get_by_role("group", name="head").get_by_role("radio", name="1").check()
    check_numbers(page, causal_mask(5), batch=1, head=1)
    expect(page.get_by_label("token at position 2 “u”")).to_have_value("u")
    page.get_by_label("token at position 4").select_option("s")
    page.get_by_label("padding at position 3").check()
    ids, mask = IDS.copy(), causal_mask(5)
    ids[1, 4], mask[3:, 3] = tiny.VOCABULARY.index("s"), False
    check_numbers(page, mask, ids, batch=1, head=1)
    page.get_by_role("group", name="batch").get_by_role("radio", name="0").check()
    check_numbers(page, causal_mask(5), head=1)  # the other text has not changed


@pytest.mark.parametrize("index", [0, 1, 2])
def test_single_entries_by_mouse(show, widget, index):
    page = show(widget)
    cell(page, index, 1, 4).click()
    check_numbers(page, with_entries((1, 4)))
    expect(page.locator(".labs-status")).to_contain_text("query 1 “t” may read key 4 “n”")
    expect(page.locator(".labs-verdict")).to_contain_text("Not causal: query 1 “t” reads key 4 “n”")
    cell(page, index, 3, 0).click()
    check_numbers(page, with_entries((1, 4), (3, 0)))
    cell(page, index, 1, 4).click()
    check_numbers(page, with_entries((3, 0)))


def test_single_entries_by_keyboard(show, widget):
    page = show(widget)
    cell(page, 1, 0, 0).focus()
    for key in ("ArrowRight", "Enter"):
        page.keyboard.press(key)
    check_numbers(page, with_entries((0, 1)))
    expect(cell(page, 1, 0, 1)).to_have_class("labs-cell labs-leak labs-negative labs-marked")
    page.keyboard.press("Escape")  # there is nothing to clear
    page.keyboard.press("Space")
    check_numbers(page, causal_mask(5))


def test_single_entries_by_touch(show, widget):
    page = show(widget, width=360, has_touch=True)
    cell(page, 1, 2, 3).tap()
    check_numbers(page, with_entries((2, 3)))


@pytest.mark.parametrize("by", ["mouse", "keyboard"])
def test_padding(show, widget, by):
    page = show(widget)
    box = page.get_by_label("padding at position 1 “t”")
    if by == "mouse":
        box.check()
    else:
        box.focus()
        page.keyboard.press("Space")
    mask = causal_mask(5)
    mask[2:, 1] = False  # row 1 still reads position 0
    mask[1, 1] = False
    check_numbers(page, mask)
    expect(page.locator(".labs-text tbody tr").nth(2).locator("td")).to_have_text(["t", "–", "e", "n", "d"])


def test_a_row_with_nothing_to_read(show, widget):
    page = show(widget)
    expect(page.locator(".labs-report-title")).to_have_text("To try")
    page.get_by_label("padding at position 0").check()
    expect(page.locator(".labs-report-title")).to_have_text("query 0 “a” has nothing to read")
    assert rows(page, 1, 5)[0] == ["-inf"] * 5
    assert rows(page, 2, 5)[0] == ["NaN"] * 5
    expect(moved(page)).to_have_text(["NaN", "0", "0", "0", "0"])
    cell(page, 1, 0, 0).click()  # as the library advises
    expect(page.locator(".labs-report-title")).to_have_text("To try")
    mask = causal_mask(5)
    mask[1:, 0] = False
    check_numbers(page, mask)


def test_batch_and_head_by_keyboard(show, widget):
    page = show(widget)
    for key in ("Tab", "ArrowRight", "Tab", "ArrowRight"):
        page.keyboard.press(key)
    check_numbers(page, causal_mask(5), batch=1, head=1)


def change_of(ids, mask):
    logits = [forward(tiny.params(), each, CONFIG, mask=mask)[0][0] for each in (IDS, ids)]
    return ["0" if value == 0 else f"{value:z.2f}" for value in np.abs(logits[1] - logits[0]).max(axis=1)]


@pytest.mark.parametrize("by", ["mouse", "keyboard"])
def test_another_token(show, widget, by):
    page = show(widget)
    tokens = page.get_by_label("token at position 3 “e”")
    if by == "mouse":
        tokens.select_option("s")
    else:
        tokens.focus()
        page.keyboard.press("s")
    ids = IDS.copy()
    ids[0, 3] = tiny.VOCABULARY.index("s")
    check_numbers(page, causal_mask(5), ids)
    change = change_of(ids, causal_mask(5))
    assert change[:3] == ["0"] * 3
    expect(moved(page)).to_have_text(change)
    expect(page.locator(".labs-moved-verdict")).to_contain_text("moved the logits of position 3, 4.")
    assert grid(page, 0).locator("tbody th").all_inner_texts() == [f"{t} {x}" for t, x in enumerate("attsn")]
    cell(page, 1, 1, 3).click()
    expect(moved(page)).to_have_text(change_of(ids, with_entries((1, 3))))
    expect(page.locator(".labs-moved-verdict")).to_contain_text("comes after position 1")


@pytest.mark.parametrize("by", ["mouse", "keyboard"])
def test_targets_at_the_same_position(show, widget, by):
    page = show(widget)
    press(page, page.get_by_label("targets at the same position"), by)
    expect(page.locator(".labs-text tbody tr").nth(2).locator("td")).to_have_text(list("atten"))
    expect(page.locator(".labs-leak")).to_have_count(2 * 5)
    for i in range(5):
        expect(cell(page, 1, i, i)).to_have_class(re.compile("labs-leak"))
    check_numbers(page, causal_mask(5))  # the forward pass knows no targets
    expect(page.locator(".labs-verdict")).to_contain_text("the residual path carries each token")


@pytest.mark.parametrize("by", ["mouse", "keyboard"])
def test_start_again(show, widget, by):
    page = show(widget)
    page.get_by_label("causal mask").uncheck()
    page.get_by_label("targets at the same position").check()
    page.get_by_label("padding at position 0").check()
    page.get_by_label("token at position 4").select_option("s")
    cell(page, 1, 0, 3).click()
    press(page, page.get_by_role("button", name="Start again"), by)
    check_numbers(page, causal_mask(5))
    expect(page.get_by_label("causal mask")).to_be_checked()
    expect(page.get_by_label("targets at the same position")).not_to_be_checked()
    expect(page.get_by_label("padding at position 0")).not_to_be_checked()
    expect(moved(page)).to_have_text(["0"] * 5)


def test_results_are_read_but_not_chosen(show, widget):
    page = show(widget)
    cell(page, 3, 2, 1).hover()
    expect(page.locator(".labs-status")).to_contain_text("position 2 “t”, column 1 of the output: ")
    cell(page, 4, 2, 1).hover()
    expect(page.locator(".labs-status")).to_contain_text("position 2 “t” gives “c” the logit ")
    cell(page, 4, 2, 1).click(force=True)
    check_numbers(page, causal_mask(5))


def test_another_shape(show):
    config = ModelConfig(6, d_model=12, n_heads=2, n_layers=1, d_ff=5, rope_base=50.0)
    params = init_params(config, 0)
    words = np.random.default_rng(0).integers(0, 6, (3, 5))
    page = show(MaskExplorer(params, config, words[:, :4], words[:, 1:], ["one", *"bcdef"]))
    page.get_by_role("group", name="batch").get_by_role("radio", name="2").check()
    check_numbers(page, causal_mask(4), words[:, :4], batch=2, params=params, config=config)


def test_views_of_one_model_stay_in_step(show, widget):
    page = show(widget, widget)
    page.get_by_label("causal mask").first.uncheck()
    page.get_by_label("token at position 4").first.select_option("s")
    second = page.locator(".labs-mask-explorer").nth(1)
    expect(second.get_by_label("causal mask")).not_to_be_checked()
    expect(second.get_by_label("token at position 4")).to_have_value("s")


def test_same_numbers_as_text(show, widget):
    page = show(widget)
    page.locator("summary").click()
    blocks = page.locator("pre").inner_text().split("\n\n")
    assert [block.splitlines()[0] for block in blocks] == [
        "S[0,0]",
        "S + M[0,0]",
        "P[0,0]",
        "O[0,0]",
        "logits[0]",
    ]
    assert blocks[4].splitlines()[2].split() == ["t=0", "a", *rows(page, 4, 9)[0]]


def test_screen_readers_are_given_names(show, widget):
    page = show(widget)
    expect(page.get_by_role("table", name="Tokens, padding, targets")).to_have_count(1)
    expect(page.get_by_role("grid", name="S + M[0,0]")).to_have_count(1)
    expect(page.get_by_role("rowheader", name="padding")).to_have_count(1)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(show, widget, theme):
    page = show(widget, theme=theme, reduced_motion="reduce")
    page.get_by_label("causal mask").uncheck()
    page.get_by_label("padding at position 0").check()
    page.get_by_label("token at position 4").select_option("s")
    page.locator("summary").click()
    assert axe.violations(page) == []


def test_narrow_page_does_not_scroll(show, widget):
    page = show(widget, width=360, device_scale_factor=2)  # as phones have
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    boxes = "[...document.querySelectorAll('.labs-grid-box')]"
    assert page.evaluate(f"{boxes}.every(box => box.scrollWidth <= box.clientWidth)")


def test_leaks_are_outlined_whatever_comes_later(show, widget):
    widget.causal = False
    page = show(widget, TensorGrid(np.ones((2, 3)), axes="td"), forced_colors="active")
    expect(page.locator(".labs-leak").first).to_have_css("outline-style", "double")


def test_cleanup_leaves_nothing(show, widget):
    page = show(widget)
    page.evaluate("labsHost.close()")
    expect(page.locator(".labs-root")).to_have_count(0)
