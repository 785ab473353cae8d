"""The grid by itself in a page: what other widgets may ask of it beyond what TensorGrid and HeadSplit do."""

import json

import pytest
from playwright.sync_api import expect

from labs.widgets.shared import modules

#: Imports the module from a text, as Jupyter does, and draws `self.spec`; what it reports is in `self.heard`.
PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>grid</title><div id="place"></div>
<script type="module">
const url = URL.createObjectURL(new Blob([{script}], {{ type: "text/javascript" }}));
const {{ tensorGrid }} = await import(url);
self.heard = [];
self.handlers = {{ point() {{}}, select: (id) => self.heard.push(id) }};
self.spec = {spec};
self.grid = tensorGrid(document.getElementById("place"), self.spec, self.handlers);
document.body.dataset.ready = "";
</script>
"""

#: Two rows and four columns; one cell is absent, one is disabled.
SPEC = {
    "label": "P",
    "caption": None,
    "corner": ["q", "k"],
    "rows": [{"index": i, "label": None} for i in range(2)],
    "columns": [{"index": i, "label": None} for i in range(4)],
    "groups": None,
    "cells": [
        [{"id": 4 * row + column, "text": f"{row},{column}", "share": None} for column in range(4)]
        for row in range(2)
    ],
    "selected": -1,
    "marked": [],
    "digits": 2,
}
SPEC["cells"][0][1] = None
SPEC["cells"][1][2]["disabled"] = True


@pytest.fixture
def page(tmp_path, serve, open_page):
    script = json.dumps(modules.script("shared/grid.js")).replace("</", "<\\/")
    (tmp_path / "grid.html").write_text(PAGE.format(script=script, spec=json.dumps(SPEC)), "utf8")
    page = open_page(serve(tmp_path) + "grid.html")
    page.wait_for_selector("body[data-ready]")
    return page


def cell(page, row, column):
    return page.locator("tbody tr").nth(row).locator("td").nth(column)


def test_keys_pass_over_absent_cells(page):
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    expect(cell(page, 0, 2)).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(cell(page, 0, 0)).to_be_focused()


def test_keys_stop_where_only_absent_cells_follow(page):
    page.keyboard.press("Tab")
    for key in ("ArrowDown", "ArrowRight", "ArrowUp"):
        page.keyboard.press(key)
    expect(cell(page, 1, 1)).to_be_focused()


def test_absent_cell_is_neither_reachable_nor_selectable(page):
    cell(page, 0, 1).click()
    assert page.evaluate("heard") == []
    assert cell(page, 0, 1).get_attribute("tabindex") is None
    expect(cell(page, 0, 1)).to_have_text("")


def test_disabled_cell_can_be_read_but_not_selected(page):
    cell(page, 1, 2).click(force=True)  # Playwright itself waits for a cell to be enabled
    cell(page, 1, 2).focus()
    page.keyboard.press("Enter")
    expect(cell(page, 1, 2)).to_be_focused()
    assert cell(page, 1, 2).get_attribute("aria-disabled") == "true"
    assert page.evaluate("heard") == []


def test_tab_comes_to_the_first_cell_that_is_there(page):
    page.evaluate(
        "grid.update({ ...spec, caption: 'new', cells: [[null, ...spec.cells[0].slice(1)], spec.cells[1]] })"
    )
    page.keyboard.press("Tab")
    expect(cell(page, 0, 2)).to_be_focused()


def test_update_keeps_elements_and_focus_while_the_frame_stays(page):
    cell(page, 1, 1).focus()
    page.evaluate("""() => {
      const cells = structuredClone(spec.cells);
      cells[1][1].text = "new";
      grid.update({ ...spec, cells, selected: 5 });
    }""")
    expect(cell(page, 1, 1)).to_be_focused()
    expect(cell(page, 1, 1)).to_have_text("new")
    expect(cell(page, 1, 1)).to_have_attribute("aria-selected", "true")


def test_update_may_change_the_shape(page):
    page.evaluate("grid.update({ ...spec, rows: spec.rows.slice(0, 1), cells: spec.cells.slice(0, 1) })")
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.locator("tbody td")).to_have_text(["0,0", "", "0,2", "0,3"])


def test_revealing_what_is_not_there_does_nothing(page):
    page.evaluate("grid.reveal(99)")
    page.evaluate("grid.reveal(1)")  # absent


def test_name_is_said_instead_of_the_text(page):
    page.evaluate("""() => {
      const cells = structuredClone(spec.cells);
      cells[0][0].name = "P[0,0], go there";
      grid.update({ ...spec, cells });
    }""")
    expect(page.get_by_role("gridcell", name="P[0,0], go there", exact=True)).to_have_text("0,0")
    page.evaluate("grid.update(spec)")
    assert cell(page, 0, 0).get_attribute("aria-label") is None


def test_a_resting_pointer_points_at_nothing_new(page):
    page.evaluate("() => { handlers.point = (id) => heard.push(id); }")
    cell(page, 1, 1).hover()
    page.wait_for_function("heard.length > 0")
    page.evaluate("""() => {
      heard.length = 0;
      const rows = spec.rows.map((row) => ({ ...row, label: "new" }));
      grid.update({ ...spec, label: "Q", rows });
    }""")
    page.wait_for_timeout(300)  # the browser looks again what is below the pointer
    assert page.evaluate("heard") == []
    box = cell(page, 1, 1).bounding_box()
    page.mouse.move(box["x"] + 5, box["y"] + 5)
    page.wait_for_function("heard.includes(5)")


def test_what_was_pointed_at_is_not_told_of_a_new_picture(page):
    page.evaluate("() => { handlers.point = (id) => heard.push(id); }")
    page.evaluate("""() => {
      document.querySelector("tbody td").dispatchEvent(new PointerEvent("pointermove", { bubbles: true }));
      grid.update({ ...spec, label: "Q" });
    }""")
    page.evaluate(
        "() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))"
    )
    assert page.evaluate("heard") == []
    cell(page, 1, 1).hover()
    page.wait_for_function("heard.includes(5)")


def test_destroy_takes_everything_away(page):
    page.evaluate("grid.destroy()")
    expect(page.locator("#place > *")).to_have_count(0)
