"""The frame by itself in a page: when it draws, what it says, and what it leaves behind."""

import json

import pytest
from playwright.sync_api import expect

from labs.widgets.shared import modules

#: Mounts a widget of two numbers in two linked grids; `self.drawn` lists the states that were drawn.
PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>view</title><main></main>
<script type="module">
const url = URL.createObjectURL(new Blob([{script}], {{ type: "text/javascript" }}));
const {{ mountView }} = await import(url);
const held = {{ values: [1, 2], digits: 1, selected: -1, strings: {{ mine: {{ hint: "Choose." }} }} }};
const listeners = [];
const model = {{
  get: (name) => held[name],
  on: (event, draw) => listeners.push(event),
  off: (event, draw) => listeners.splice(listeners.indexOf(event), 1),
}};
const specOf = (state, id) => ({{
  label: `grid ${{id}}`, caption: null, corner: [null, "d"], groups: null,
  rows: [{{ index: null, label: null }}], columns: [{{ index: id, label: null }}],
  cells: [[{{ id: 0, text: String(state.values[id]), share: null }}]],
}});
const drawn = [];
function build({{ state, status, draw, say, addGrids }}) {{
  const places = [0, 1].map(() => document.createElement("section"));
  const root = document.createElement("article");
  root.append(...places, status);
  addGrids(places, (now) => [specOf(now, 0), specOf(now, 1)], {{
    sentence: (now, id, n = 0) => `cell ${{id}} of grid ${{n}} is ${{now.values[n]}}`,
    select() {{}},
    linked: true,
  }});
  Object.assign(self, {{ draw, say }});
  return {{
    root,
    update: (now, specs) => drawn.push([now.values, specs.map((spec) => spec.label)]),
    destroy: () => drawn.push("destroyed"),
  }};
}}
const given = ["digits"];
const chosen = ["values", "selected"];
const stateOf = (now) => ({{ ...now, strings: {{ own: now.strings.mine }} }});
const el = document.querySelector("main");
const unmount = mountView({{ model, el }}, {{ given, chosen, stateOf, build }});
Object.assign(self, {{ held, listeners, drawn, unmount }});
document.body.dataset.ready = "";
</script>
"""


@pytest.fixture
def page(tmp_path, serve, open_page):
    script = json.dumps(modules.script("shared/view.js")).replace("</", "<\\/")
    (tmp_path / "view.html").write_text(PAGE.format(script=script), "utf8")
    page = open_page(serve(tmp_path) + "view.html")
    page.wait_for_selector("body[data-ready]")
    return page


def test_draws_before_the_next_event_and_once_for_several_changes(page):
    assert page.evaluate("drawn") == [[[1, 2], ["grid 0", "grid 1"]]]
    changes = "for (const n of [3, 4, 5]) { held.values = [n, n]; draw(); }"
    after = page.evaluate(
        f"async () => {{ {changes} await null; return drawn.slice(1); }}"
    )  # no event can come between
    assert after == [[[5, 5], ["grid 0", "grid 1"]]]
    assert page.locator("section td.labs-cell").all_inner_texts() == ["5", "5"]


def test_listens_to_what_the_reader_changes_only(page):
    assert page.evaluate("listeners") == ["change:values", "change:selected"]


def test_says_what_is_pointed_at_or_selected_or_what_to_do(page):
    status = page.locator(".labs-status")
    expect(status).to_have_text("Choose.")
    page.evaluate("held.selected = 0; draw()")
    expect(status).to_have_text("cell 0 of grid 0 is 1")
    page.locator("td.labs-cell").last.hover()
    expect(status).to_have_text("cell 0 of grid 1 is 2")
    expect(page.locator("td.labs-marked")).to_have_count(2)  # in both grids
    page.evaluate("held.values = [3, 4]; draw()")
    expect(status).to_have_text("cell 0 of grid 1 is 4")
    page.evaluate("say((now) => `now ${now.values}`)")
    expect(status).to_have_text("now 3,4")
    page.evaluate("say(null)")
    expect(status).to_have_text("cell 0 of grid 0 is 3")


def test_leaves_nothing_behind(page):
    page.evaluate("draw(); unmount()")
    assert page.evaluate("drawn.length") == 2  # a drawing that was asked for no longer comes
    assert page.evaluate("drawn[1]") == "destroyed"
    assert page.evaluate("listeners") == []
    assert page.evaluate("document.querySelector('main').childElementCount") == 0
