"""TraceExplorer: its traits in Python, and in a page with mouse, keyboard, touch and addresses."""

import base64
import gzip
import json
import re
import statistics

import numpy as np
import pytest
import traitlets
from ipywidgets.embed import embed_data
from playwright.sync_api import expect

from labs.llm import tiny
from labs.llm.model import ModelConfig
from labs.llm.parameters import init_params
from labs.llm.trace import trace
from labs.site import widget_views
from labs.widgets import TensorGrid, TraceExplorer
from tests import axe

GIVEN = {
    "params": tiny.params(),
    "config": tiny.CONFIG,
    "ids": tiny.INPUT_IDS,
    "targets": tiny.TARGET_IDS,
    "vocabulary": tiny.VOCABULARY,
}
TRACED = trace(GIVEN["params"], GIVEN["ids"], GIVEN["targets"], GIVEN["config"])
COMPUTED = [step for step in TRACED.steps if step.formula is not None]


def value(name):
    """The library's array of this name."""
    return next(step.value for step in TRACED.steps if step.name == name)


@pytest.fixture
def widget():
    return TraceExplorer(**GIVEN)


# ---- Python ----


def test_traits(widget):
    assert len(widget.steps) == len(TRACED.steps)
    assert (widget.layers, widget.batch, widget.head, widget.selected, widget.trail) == (1, 0, 0, -1, [])
    assert widget.steps[widget.step]["name"] == "x"
    assert widget.labels["i"] == [list("atten"), list("causa")]
    assert widget.labels["v"] == [list(tiny.VOCABULARY)]
    assert widget.sizes["dh"] == 4
    counts = [sum(step.phase == phase for step in TRACED.steps) for phase in ("forward", "backward")]
    assert repr(widget) == (
        f"TraceExplorer: {counts[0]} tensors forward and {counts[1]} backward, every number with its formula"
    )


def stored(widget):
    """The array of each step as the widget carries it, by key."""
    numbers = np.frombuffer(widget.numbers, "<f8")
    count = {step["key"]: int(np.prod(step["shape"])) for step in widget.steps}
    return {
        step["key"]: numbers[step["start"] : step["start"] + count[step["key"]]].reshape(step["shape"])
        for step in widget.steps
    }


def test_numbers_are_the_librarys(widget):
    arrays = stored(widget)
    assert arrays.keys() == {step.key for step in TRACED.steps}
    for step in TRACED.steps:
        np.testing.assert_array_equal(arrays[step.key], step.value)


def test_equal_tensors_are_stored_once(widget):
    starts = {step["name"]: step["start"] for step in widget.steps}
    assert starts["dffn_out"] == starts["dy"]
    assert len(widget.numbers) < 8 * sum(step.value.size for step in TRACED.steps)


def test_forward_only():
    widget = TraceExplorer(**GIVEN, backward=False)
    assert {step["phase"] for step in widget.steps} == {"given", "forward"}
    assert len(widget.numbers) < len(TraceExplorer(**GIVEN).numbers) / 1.5
    assert repr(widget) == "TraceExplorer: 39 tensors forward, every number with its formula"


def test_roles_are_the_courses(widget):
    roles = {step["name"]: step["role"] for step in widget.steps}
    assert roles["ids"] == "tokens"
    assert roles["q_rot"] == roles["q"] == roles["dq"] == roles["dq_rot"] == "q"
    assert roles["scores"] == roles["row_max"] == roles["dscores"] == "attention"
    assert roles["x"] == roles["dx"] == roles["dx_branch"] == "x"
    assert roles["final_norm"] == roles["dfinal_norm"] == roles["wq"] == roles["dwq"] == "weight"
    assert roles["attn_inv_rms"] == roles["dz_q"] == "norm"


def test_state_is_json_without_nan(widget):
    state = {name: held for name, held in widget.get_state().items() if name not in ("layout", "numbers")}
    json.dumps(state, allow_nan=False)


def test_the_build_keeps_the_numbers(widget):
    models = embed_data(views=[widget], drop_defaults=False)["manager_state"]["state"]
    [buffer] = widget_views.lighten_models(models)[widget.model_id]["buffers"]
    assert (buffer["path"], buffer["encoding"]) == (["numbers"], "base64")
    assert base64.b64decode(buffer["data"]) == widget.numbers


def test_the_page_carries_little(widget):
    """At most 80 KB compressed, as the page stores them: numbers in base64, the rest as JSON."""
    state = widget.get_state(["numbers", "steps", "sizes", "labels", "strings"])
    numbers = base64.b64encode(state.pop("numbers")).decode()
    assert len(gzip.compress(json.dumps(state | {"numbers": numbers}).encode())) < 80_000
    code = widget._esm + widget._css
    assert len(gzip.compress(code.encode())) < 25_000


def with_nan(embedding, letter):
    embedding[tiny.VOCABULARY.index(letter), 3] = np.nan
    return embedding


WIDE = ModelConfig(9, d_model=32, n_heads=2, n_layers=1, d_ff=64)
DEEP = ModelConfig(9, d_model=16, n_heads=2, n_layers=4, d_ff=30)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"config": WIDE}, ValueError, "is it made for another config"),
        (
            {"config": WIDE, "params": init_params(WIDE, 0)},
            ValueError,
            r"at most 512 cells, got 1024 in blocks.0.wq \(32, 32\): take a smaller model",
        ),
        (
            {"config": DEEP, "params": init_params(DEEP, 0)},
            ValueError,
            r"at most 16384 numbers, got \d{5}: take a smaller model, fewer tokens, or backward=False",
        ),
        ({"ids": tiny.INPUT_IDS * 1.0}, TypeError, "ids must be integers"),
        ({"ids": tiny.INPUT_IDS[0]}, ValueError, "ids"),
        ({"targets": tiny.TARGET_IDS + 8}, ValueError, "targets"),
        ({"vocabulary": "abc"}, ValueError, "vocabulary must be V = 9 texts"),
        (
            # d is never an input, so the forward pass does not meet it
            {"params": tiny.params() | {"embedding": with_nan(tiny.params()["embedding"], "d")}},
            ValueError,
            "the trace must hold numbers, got NaN or inf in embedding: look at params",
        ),
        (
            {"params": {key: array.astype(np.float32) for key, array in tiny.params().items()}},
            TypeError,
            "params must be float64",
        ),
    ],
)
def test_refused(change, error, message):
    with pytest.raises(error, match=message):
        TraceExplorer(**GIVEN | change)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("step", -1),
        ("step", 999),
        ("layer", 1),
        ("batch", 2),
        ("head", -1),
        ("selected", 40),
        ("trail", [[0, 0, 0]]),
        ("trail", [[999, 0, 0, 0]]),
    ],
)
def test_traits_refused(widget, name, wrong):
    with pytest.raises(traitlets.TraitError, match=name):
        setattr(widget, name, wrong)


def test_an_entry_that_is_not_there_is_not_kept(widget):
    widget.selected = 39  # of x, 5 * 8
    widget.step = next(n for n, step in enumerate(widget.steps) if step["name"] == "attn_inv_rms")
    assert widget.selected == -1


def test_the_map_shows_the_layer_of_the_tensor():
    widget, _ = deep_widget()
    keys = [step["key"] for step in widget.steps]
    widget.step = keys.index("blocks.1.scores")
    assert widget.layer == 1
    widget.step = keys.index("loss")
    assert widget.layer == 1
    widget.step = keys.index("blocks.0.q")
    assert widget.layer == 0


# ---- in a page ----


def main_grid(page):
    return page.locator(".labs-matrix .labs-grid").first


def cell(page, row, column):
    return main_grid(page).locator("tbody tr").nth(row).locator(".labs-cell").nth(column)


def numbers(page):
    return [
        line.locator(".labs-cell").all_inner_texts() for line in main_grid(page).locator("tbody tr").all()
    ]


def read_texts(page, label):
    """The numbers of the outlined cells of a source."""
    return page.get_by_role("grid", name=label, exact=True).locator(".labs-read").all_inner_texts()


def stop(page, name):
    name = page.locator(".labs-stop-name").get_by_text(name, exact=True)
    return page.locator(".labs-stop").filter(has=name)


#: Go to an address within the page; when this is done, the widget has drawn what it asks for.
GO = """hash => new Promise((done) => {
  if (location.hash === `#${hash}`) done();
  addEventListener("hashchange", () => setTimeout(done), { once: true });
  location.hash = hash;
})"""


def at(page, hash_):
    """Go to an address within the page, and wait until it is shown; the title may be that of before."""
    page.evaluate(GO, hash_)
    name = re.match(r"trace=([a-z_0-9]+)", hash_)[1]
    expect(page.locator(".labs-title")).to_have_text(re.compile(rf"^{name}( |$)"))


def shown(array, decimals=2):
    rows = np.atleast_2d(array)
    return [["-inf" if entry == -np.inf else f"{entry:z.{decimals}f}" for entry in row] for row in rows]


#: Measure how long each drawing takes, with the layout that it brings about.
DRAWINGS = """() => {
  window.drawingTimes = [];
  const later = window.queueMicrotask.bind(window);
  window.queueMicrotask = (draw) => later(() => {
    const before = performance.now();
    draw();
    document.body.getBoundingClientRect();
    window.drawingTimes.push(performance.now() - before);
  });
}"""


@pytest.mark.parametrize("width", [1280, 360])
def test_every_step_shows_the_librarys_numbers(show, widget, width, record_property):
    """Walk from the first step to the last; how long each takes to draw is recorded, not judged."""
    page = show(widget, width=width)
    page.evaluate(DRAWINGS)
    at(page, "trace=q,b1,h1")  # the choices are kept
    at(page, "trace=x")
    times = []
    for number, step in enumerate(COMPUTED, start=1):
        expect(page.locator(".labs-slider-number")).to_have_text(f"{number} of {len(COMPUTED)}")
        picked = tuple(1 for axis in step.axes if axis in "bh")
        decimals = widget.steps[TRACED.steps.index(step)]["decimals"]
        assert numbers(page) == shown(step.value[picked], decimals), step.key
        assert page.evaluate("document.documentElement.scrollWidth") == width, step.key
        times.append(page.evaluate("Math.max(...drawingTimes.splice(0))"))
        if number < len(COMPUTED):
            page.get_by_role("button", name="next step").click()
    expect(page.get_by_role("button", name="next step")).to_have_attribute("aria-disabled", "true")
    record_property(
        f"milliseconds a step at {width} px, drawing and layout",
        f"median {statistics.median(times):.1f}, worst {max(times):.1f}",
    )


def test_a_selected_score(show, widget):
    page = show(widget)
    stop(page, "scores").click()
    page.get_by_role("group", name="head").get_by_role("radio", name="1").check()
    cell(page, 3, 2).click()
    score, q, k = value("scores")[0, 1, 3, 2], value("q_rot")[0, 1, 3], value("k_rot")[0, 1, 2]
    expect(page.locator(".labs-result")).to_have_text(f"= {score:.4f} more exactly {score:.10f}")
    expect(page.locator(".labs-placed")).to_have_text(
        "scores[0,1,3,2] = (Σe q_rot[0,1,3,e] · k_rot[0,1,2,e]) / √4"
    )
    assert read_texts(page, "q_rot[0,1]") == [f"{entry:.2f}" for entry in q]
    assert read_texts(page, "k_rot[0,1]") == [f"{entry:.2f}" for entry in k]
    terms = page.get_by_role("table", name="Terms of the sum (4)").locator("tbody tr")
    found = [float(line.locator("td").nth(2).inner_text()) for line in terms.all()]
    assert found == pytest.approx(q * k, abs=5e-5)
    expect(page.locator(".labs-status")).to_have_text(
        f"scores[0,1,3,2] = {score:.10f}: batch 0, head 1, query 3 “e”, key 2 “t”"
    )
    expect(stop(page, "q_rot")).to_have_class(re.compile("labs-source"))
    expect(stop(page, "scores")).to_have_attribute("aria-current", "step")


def test_a_selected_gradient(show, widget):
    page = show(widget)
    page.get_by_role("radio", name="backward").check()
    expect(page.locator(".labs-title")).to_have_text("dlogits [2,5,9] (B,T,V)")
    stop(page, "dscores").click()
    cell(page, 3, 2).click()
    p, dp, ds = value("p")[0, 0, 3], value("dp")[0, 0, 3], value("dscores")[0, 0, 3, 2]
    expect(page.locator(".labs-result b")).to_have_text(f"= {ds:#.4g}")
    assert [float(text) for text in read_texts(page, "p[0,0]")] == pytest.approx(p, abs=5e-3)
    assert len(read_texts(page, "dp[0,0]")) == len(dp)
    expect(stop(page, "dp")).to_have_class(re.compile("labs-source.*labs-under-source"))


def test_following_a_source_and_back(show, widget):
    page = show(widget)
    stop(page, "scores").click()
    cell(page, 3, 2).click()
    back = page.get_by_role("button", name="return")
    expect(back).to_have_attribute("aria-disabled", "true")
    page.get_by_role("grid", name="k_rot[0,0]").locator("tbody tr").nth(2).locator("td").nth(1).click()
    expect(page.locator(".labs-title")).to_have_text("k_rot [2,2,5,4] (B,H,T,dh)")
    expect(cell(page, 2, 1)).to_have_attribute("aria-selected", "true")
    expect(cell(page, 2, 1)).to_be_focused()
    expect(back).to_have_text("return to scores[0,0,3,2]")
    page.get_by_role("grid", name="angle").locator(".labs-read").click()
    expect(page.locator(".labs-title")).to_have_text("angle [5,2] (T,dh/2)")
    expect(page.locator(".labs-status")).to_contain_text("angle[2,0] = 2: position 2, pair 0")
    back.click()
    expect(page.locator(".labs-title")).to_have_text("k_rot [2,2,5,4] (B,H,T,dh)")
    back.click()
    expect(page.locator(".labs-title")).to_have_text("scores [2,2,5,5] (B,H,T,T)")
    expect(cell(page, 3, 2)).to_have_attribute("aria-selected", "true")
    expect(back).to_have_attribute("aria-disabled", "true")


def test_a_button_that_can_do_nothing_does_nothing(show, widget):
    page = show(widget)
    for name in ("previous step", "return"):
        page.get_by_role("button", name=name).click(force=True)
    page.get_by_role("button", name="next step").click()
    expect(page.locator(".labs-title")).to_have_text("attn_inv_rms [2,5] (B,T)")


def test_what_was_not_read_leads_nowhere(show, widget):
    page = show(widget)
    stop(page, "scores").click()
    page.get_by_role("grid", name="k_rot[0,0]").locator("td.labs-cell").first.click(force=True)
    expect(page.locator(".labs-title")).to_have_text("scores [2,2,5,5] (B,H,T,T)")


def test_a_gradient_leads_into_the_forward_pass(show, widget):
    page = show(widget)
    at(page, "trace=dwq,2,5")
    page.get_by_role("grid", name="z[1]").locator(".labs-read").nth(3).click()
    expect(page.locator(".labs-title")).to_have_text("z [2,5,8] (B,T,D)")
    expect(page.get_by_role("radio", name="forward")).to_be_checked()
    expect(page.get_by_role("group", name="batch").get_by_role("radio", name="1")).to_be_checked()
    expect(cell(page, 3, 2)).to_have_attribute("aria-selected", "true")
    page.get_by_role("button", name="return").click()
    expect(page.locator(".labs-title")).to_have_text("dwq [8,8] (D,D)")
    expect(page.get_by_role("group", name="batch").get_by_role("radio", name="0")).to_be_checked()


def test_what_is_given(show, widget):
    page = show(widget)
    stop(page, "wq").click()
    expect(page.locator(".labs-about")).to_have_text("Given, not computed.")
    expect(page.locator(".labs-entry")).not_to_contain_text("Given")  # once is enough
    assert numbers(page) == shown(value("wq"))
    for part in (".labs-heading", ".labs-origin", ".labs-terms"):
        expect(page.locator(part)).to_be_hidden()
    page.get_by_role("button", name="next step").click()
    expect(page.locator(".labs-title")).to_have_text("q [2,2,5,4] (B,H,T,dh)")


def test_masked_entries_look_masked(show, widget):
    page = show(widget)
    stop(page, "masked").click()
    expect(cell(page, 1, 3)).to_have_class(re.compile("labs-masked"))
    cell(page, 1, 3).click()
    expect(page.locator(".labs-result")).to_have_text("= -inf")
    expect(page.locator(".labs-remarks")).to_have_text("Here 3 > 1.")


def test_a_token_that_is_never_an_input(show, widget):
    page = show(widget)
    at(page, f"trace=dembedding,{tiny.VOCABULARY.index('d')},2")
    expect(page.locator(".labs-result")).to_have_text("= 0")
    expect(page.locator(".labs-terms-result")).to_have_text("No term contributes: the sum is exactly 0.")
    expect(page.locator(".labs-source-tensor")).to_have_count(0)


def test_readers_are_links(show, widget):
    page = show(widget)
    at(page, "trace=dr,b0,3,2")
    readers = page.locator(".labs-readers")
    expect(readers).to_have_text("r is read by ffn_inv_rms ffn_unit y")
    readers.get_by_role("button", name="ffn_unit").click()
    expect(page.locator(".labs-title")).to_have_text("ffn_unit [2,5,8] (B,T,D)")
    at(page, "trace=loss")
    expect(readers).to_have_text("")


@pytest.mark.parametrize(
    ("hash_", "terms"),
    [
        ("trace=angle,3,1", 0),
        ("trace=masked,b0,h0,1,3", 0),
        ("trace=dembedding,4,1", 1),  # d is never an input: a sum without terms
        ("trace=attn_norm,3", 0),
    ],
)
def test_where_nothing_was_read_nothing_can_be_followed(show, widget, hash_, terms):
    page = show(widget)
    at(page, "trace=scores,b0,h0,3,2")
    expect(page.get_by_text("Choose an outlined number to go there.")).to_be_visible()
    at(page, hash_)
    expect(page.locator(".labs-heading")).to_be_hidden()
    expect(page.locator(".labs-terms:visible")).to_have_count(terms)


def test_variables_of_a_maximum_are_set_low(show, widget):
    page = show(widget)
    at(page, "trace=logit_max,b0,3")
    expect(page.locator(".labs-symbols")).to_have_text("logit_max[b,t] = maxv logits[b,t,v]")
    expect(page.locator(".labs-symbols sub")).to_have_text("v")
    expect(page.locator(".labs-symbols span").first).to_have_text("logit_max")  # in its colour


# ---- pointing ----


def test_a_resting_pointer_does_not_name_another_number(show, widget):
    page = show(widget)
    at(page, "trace=z,b0,4,3")
    cell(page, 1, 1).hover()
    expect(page.locator(".labs-status")).to_contain_text("z[0,1,1] = ")
    at(page, "trace=n,b0,4,3")
    expect(page.locator(".labs-title")).to_have_text("n [2,5,8] (B,T,D)")
    assert cell(page, 1, 1).evaluate("node => node.matches(':hover')")  # another cell of the new picture
    page.wait_for_timeout(300)  # the browser looks again what is below the pointer
    expect(page.locator(".labs-status")).to_contain_text("n[0,4,3] = ")
    cell(page, 2, 1).hover()
    expect(page.locator(".labs-status")).to_contain_text("n[0,2,1] = ")


def test_what_was_not_read_does_not_answer(show, widget):
    page = show(widget)
    at(page, "trace=scores,b0,h0,3,2")
    source = page.get_by_role("grid", name="q_rot[0,0]")
    source.locator(".labs-read").first.hover()
    expect(page.locator(".labs-status")).to_contain_text("q_rot[0,0,3,0] = ")
    source.locator("tbody td.labs-absent").first.hover()
    expect(page.locator(".labs-status")).to_contain_text("scores[0,0,3,2] = ")


# ---- keyboard and touch ----


def test_slider_by_keyboard(show, widget):
    page = show(widget)
    slider = page.get_by_role("slider", name="step")
    slider.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    expect(page.locator(".labs-title")).to_have_text("z [2,5,8] (B,T,D)")
    expect(slider).to_be_focused()
    expect(slider).to_have_attribute("aria-valuetext", "4 of 86")
    page.keyboard.press("End")
    expect(page.locator(".labs-title")).to_have_text("dembedding [9,8] (V,D)")


def test_selected_entry_by_keyboard(show, widget):
    page = show(widget)
    cell(page, 4, 1).click()
    for key in ("ArrowUp", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    expect(cell(page, 3, 3)).to_be_focused()
    expect(cell(page, 3, 3)).to_have_attribute("aria-selected", "true")
    expect(page.locator(".labs-placed")).to_have_text("x[0,3,3] = embedding[3,3]")
    page.keyboard.press("Escape")  # an entry is always selected
    page.keyboard.press("Enter")
    expect(cell(page, 3, 3)).to_have_attribute("aria-selected", "true")


def test_tab_reaches_the_selected_entry_and_the_sources(show, widget):
    page = show(widget)
    stop(page, "scores").click()
    cell(page, 3, 2).click()
    expect(page.get_by_role("grid", name="q_rot[0,0]").locator(".labs-read")).to_have_count(4)
    page.keyboard.press("Tab")  # the terms, which may scroll
    page.keyboard.press("Tab")
    expect(page.get_by_role("grid", name="q_rot[0,0]").locator(".labs-read").first).to_be_focused()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.locator(".labs-title")).to_have_text("q_rot [2,2,5,4] (B,H,T,dh)")
    expect(cell(page, 3, 1)).to_be_focused()


def test_map_by_keyboard(show, widget):
    page = show(widget)
    stop(page, "x").focus()
    page.keyboard.press("ArrowRight")  # the part
    page.keyboard.press("ArrowRight")
    expect(page.locator(".labs-map [tabindex='0']")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".labs-title")).to_have_text("attn_inv_rms [2,5] (B,T)")
    expect(page.locator(".labs-map [tabindex='0']")).to_have_count(1)
    page.keyboard.press("End")
    page.keyboard.press("ArrowRight")  # there is nothing behind it
    page.keyboard.press("Enter")
    expect(page.locator(".labs-title")).to_have_text("loss")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Space")
    expect(page.locator(".labs-title")).to_have_text("x [2,5,8] (B,T,D)")


def test_map_by_keyboard_from_row_to_row(show, widget):
    page = show(widget)
    rows = (
        """() => [...document.querySelectorAll('.labs-map button')].map(n => n.getBoundingClientRect().top)"""
    )
    for name, keys in (("x", "ArrowDown"), ("loss", "ArrowUp")):
        stop(page, name).focus()
        tops = sorted(set(page.evaluate(rows)), reverse=keys == "ArrowUp")
        assert len(tops) > 8
        for top in tops[tops.index(stop(page, name).bounding_box()["y"]) + 1 :]:
            page.keyboard.press(keys)
            assert page.evaluate("document.activeElement.getBoundingClientRect().top") == top
        page.keyboard.press(keys)  # there is nothing behind it
    # from the end of the backward map to dscores in a few presses
    stop(page, "dscores").or_(page.get_by_role("radio", name="backward")).first.check()
    stop(page, "dlogits").focus()
    for _ in range(8):
        page.keyboard.press("ArrowUp")
        if page.evaluate("document.activeElement.closest('.labs-part').innerText").startswith("attention"):
            break
    else:
        raise AssertionError("no way to the attention")


def test_parts_lead_to_their_first_step(show, widget):
    page = show(widget)
    page.get_by_role("button", name="SwiGLU").click()
    expect(page.locator(".labs-title")).to_have_text("u [2,5,16] (B,T,F)")
    page.get_by_role("radio", name="backward").check()
    page.get_by_role("button", name="SwiGLU").click()
    expect(page.locator(".labs-title")).to_have_text("dffn_out [2,5,8] (B,T,D)")


def test_by_touch(show, widget):
    page = show(widget, width=360, has_touch=True)
    page.get_by_role("button", name="attention").tap()
    expect(page.locator(".labs-title")).to_have_text("q [2,2,5,4] (B,H,T,dh)")
    stop(page, "scores").tap()
    cell(page, 3, 2).tap()
    expect(page.locator(".labs-placed")).to_contain_text("scores[0,0,3,2]")
    page.get_by_role("grid", name="q_rot[0,0]").locator(".labs-read").nth(2).tap()
    expect(page.locator(".labs-title")).to_have_text("q_rot [2,2,5,4] (B,H,T,dh)")
    expect(cell(page, 3, 2)).to_have_attribute("aria-selected", "true")
    page.get_by_role("button", name="return").tap()
    expect(page.locator(".labs-title")).to_have_text("scores [2,2,5,5] (B,H,T,T)")


def test_narrow_pages_show_the_stops_of_one_part(show, widget):
    page = show(widget, width=360)
    expect(stop(page, "scores")).to_be_hidden()
    expect(stop(page, "attn_out")).to_be_visible()  # what the part hands on
    page.get_by_role("button", name="attention").click()
    expect(stop(page, "scores")).to_be_visible()
    expect(stop(page, "u")).to_be_hidden()


def test_wide_matrices_are_scrolled_to_what_matters(show, widget):
    page = show(widget, width=360)
    at(page, "trace=u,b0,4,15")
    source = page.get_by_role("grid", name="w1", exact=True)
    for seen, grid in ((cell(page, 4, 15), main_grid(page)), (source.locator(".labs-read").first, source)):
        box = grid.locator("xpath=..").bounding_box()
        place = seen.bounding_box()
        assert box["x"] <= place["x"]
        assert place["x"] + place["width"] <= box["x"] + box["width"] + 1
    at(page, "trace=u,b0,4,0")
    expect(cell(page, 4, 0)).to_have_attribute("aria-selected", "true")
    assert cell(page, 4, 0).bounding_box()["x"] >= main_grid(page).locator("xpath=..").bounding_box()["x"]


def test_a_widget_in_a_fold_is_right_when_the_fold_opens(show, widget):
    widget.step = next(n for n, step in enumerate(widget.steps) if step["name"] == "u")
    widget.selected = 4 * 16 + 15
    places = """() => [...document.querySelectorAll(".labs-root td, .labs-root th")].map((node) => {
      const root = node.closest(".labs-root").getBoundingClientRect();
      const { x, y, width, height } = node.getBoundingClientRect();
      return [x - root.x, y - root.y, width, height].map(Math.round);
    })"""
    expected = show(widget, width=360).evaluate(places)
    page = show(widget, width=360, folded=True)
    page.get_by_text("Open", exact=True).click()
    expect(cell(page, 4, 15)).to_be_visible()
    assert page.evaluate(places) == expected


def test_row_headers_stay_in_sight(show, widget):
    page = show(widget, width=360)
    at(page, "trace=u,b0,4,15")
    for grid in (main_grid(page), page.get_by_role("grid", name="w1", exact=True)):
        box = grid.locator("xpath=..")
        assert box.evaluate("node => node.scrollLeft") > 100
        head = grid.locator("tbody th").nth(4)
        assert head.bounding_box()["x"] == pytest.approx(box.bounding_box()["x"], abs=1)
        on_top = """node => {
          const { x, y } = node.getBoundingClientRect();
          return node.contains(document.elementFromPoint(x + 5, y + 5));
        }"""
        head.scroll_into_view_if_needed()
        assert head.evaluate(on_top)
    at(page, "trace=u,b0,4,3")  # not behind the headers
    edge = main_grid(page).locator("tbody th").first.bounding_box()
    assert cell(page, 4, 3).bounding_box()["x"] >= edge["x"] + edge["width"] - 1


# ---- forward only, and several layers ----


def test_forward_only_has_no_backward_pass(show):
    page = show(TraceExplorer(**GIVEN, backward=False))
    expect(page.get_by_role("radio", name="backward")).to_have_count(0)
    page.get_by_role("slider", name="step").focus()
    page.keyboard.press("End")
    expect(page.locator(".labs-title")).to_have_text("loss")


def deep_widget():
    config = ModelConfig(7, d_model=8, n_heads=2, n_layers=2, d_ff=6)
    words = np.random.default_rng(0).integers(0, 7, (3, 6))
    given = (init_params(config, 1), config, words[:, :-1], words[:, 1:])
    return TraceExplorer(*given, "abcdefg"), trace(given[0], given[2], given[3], config)


def test_layers(show):
    widget, traced = deep_widget()
    page = show(widget)
    stop(page, "scores").click()
    page.get_by_role("group", name="layer").get_by_role("radio", name="1").check()
    expect(page.locator(".labs-about")).to_contain_text("from q_rot, k_rot")
    page.wait_for_function("location.hash === '#trace=blocks.1.scores,b0,h0,4,1'")
    assert numbers(page) == shown(traced["blocks.1.scores"].value[0, 0])
    page.get_by_role("radio", name="backward").check()
    stop(page, "dq").click()
    page.get_by_role("group", name="layer").get_by_role("radio", name="0").check()
    # the title is the same in both layers: only the address says that the other one is drawn
    page.wait_for_function("location.hash.startsWith('#trace=blocks.0.dq,')")
    decimals = next(step["decimals"] for step in widget.steps if step["key"] == "blocks.0.dq")
    assert numbers(page) == shown(traced["blocks.0.dq"].value[0, 0], decimals)


# ---- copying ----


def test_copy(show, widget):
    page = show(widget, permissions=["clipboard-read", "clipboard-write"])
    at(page, "trace=scores,b0,h1,3,2")
    page.get_by_role("button", name="copy as text").click()
    expect(page.locator(".labs-note")).to_have_text("Copied.")
    lines = page.evaluate("navigator.clipboard.readText()").splitlines()
    score = value("scores")[0, 1, 3, 2]
    assert lines[0] == f"scores[0,1,3,2] = {score:.10f}: batch 0, head 1, query 3 “e”, key 2 “t”"
    assert lines[4] == page.locator(".labs-filled").inner_text()
    assert f"= {score:.4f} more exactly {score:.10f}" in lines
    assert lines[-1].startswith("Together ")
    expect(page.get_by_role("textbox")).to_have_count(0)


def test_copy_where_the_browser_does_not_allow_it(show, widget):
    page = show(widget)
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('not allowed')); }")
    page.get_by_role("button", name="copy as text").click()
    box = page.get_by_role("textbox", name="copy as text")
    expect(box).to_be_visible()
    expect(page.locator(".labs-note")).to_contain_text("press Ctrl+C")
    text = box.input_value()
    assert text.startswith("x[0,4,1] = ")
    assert page.evaluate("[document.activeElement.selectionStart, document.activeElement.selectionEnd]") == [
        0,
        len(text),
    ]
    page.get_by_role("button", name="next step").click()
    expect(box).to_be_hidden()


# ---- addresses ----


def fresh(page, hash_):
    """Open the page anew, at an address."""
    url = page.url.split("#")[0]
    page.goto("about:blank")
    page.goto(f"{url}#{hash_}")
    page.wait_for_selector("html[data-labs-widgets=ready]")


def test_an_address_opens_an_entry(show, widget):
    page = show(TensorGrid(np.ones((40, 3)), axes="td"), widget, height=600)
    fresh(page, "trace=dscores,b0,h1,3,2")
    expect(page.locator(".labs-title").nth(1)).to_have_text("dscores [2,2,5,5] (B,H,T,T)")
    expect(page.locator(".labs-trace-explorer .labs-status")).to_contain_text("dscores[0,1,3,2] = ")
    top = page.locator(".labs-trace-explorer .labs-head").bounding_box()["y"]
    assert 64 <= top < 100  # below the bar of the book
    fresh(page, "trace=scores,b1,h1")
    assert 64 <= page.locator(".labs-trace-explorer").bounding_box()["y"] < 100  # the map too
    expect(page.locator(".labs-trace-explorer .labs-status")).to_contain_text("scores[1,1,4,1] = ")


def test_the_address_follows_the_reader(show, widget):
    page = show(widget)
    before = page.evaluate("history.length")
    page.wait_for_timeout(600)
    assert page.evaluate("location.hash") == ""  # nothing has moved
    stop(page, "scores").click()
    page.get_by_role("group", name="head").get_by_role("radio", name="1").check()
    cell(page, 3, 2).click()
    page.wait_for_function("location.hash === '#trace=scores,b0,h1,3,2'")
    stop(page, "loss").click()
    page.wait_for_function("location.hash === '#trace=loss'")
    assert page.evaluate("history.length") == before


@pytest.mark.parametrize("wrong", ["trace=nonsense", "trace=scores,b0,h1,3,9", "trace=scores,3"])
def test_a_wrong_address_is_said_and_changes_nothing(show, widget, wrong):
    page = show(widget)
    fresh(page, wrong)
    expect(page.locator(".labs-note")).to_have_text(
        f"This page's address asks for “{wrong.removeprefix('trace=')}”, which is not here."
    )
    expect(page.locator(".labs-title")).to_have_text("x [2,5,8] (B,T,D)")
    page.get_by_role("button", name="next step").click()
    expect(page.locator(".labs-note")).to_have_text("")


@pytest.mark.parametrize("width", [1280, 360])
def test_a_long_wrong_address(show, widget, width):
    page = show(widget, width=width)
    fresh(page, "trace=" + 50_000 * "x")
    expect(page.locator(".labs-note")).to_contain_text("xxx…”, which is not here.")
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert len(page.locator(".labs-note").inner_text()) < 130
    expect(page.locator(".labs-note")).to_be_in_viewport()


def test_what_is_followed_comes_into_sight(show, widget):
    page = show(widget, height=500)
    at(page, "trace=dw1,3,9")
    source = page.get_by_role("grid", name="du[1]").locator(".labs-read").last
    source.scroll_into_view_if_needed()
    source.click()
    expect(page.locator(".labs-title")).to_have_text("du [2,5,16] (B,T,F)")
    expect(cell(page, 4, 9)).to_be_focused()
    head = page.locator(".labs-head").bounding_box()
    assert 64 <= head["y"] <= 500 - head["height"]
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    page.get_by_role("button", name="return").focus()
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    page.keyboard.press("Enter")
    expect(page.locator(".labs-title")).to_have_text("dw1 [8,16] (D,F)")
    head = page.locator(".labs-head").bounding_box()
    assert 64 <= head["y"] <= 500 - head["height"]


def test_what_is_in_sight_stays_where_it_is(show, widget):
    page = show(widget, height=1600)
    at(page, "trace=scores,b0,h0,3,2")
    page.evaluate("() => { document.body.style.paddingBottom = '1000px'; scrollTo(0, 40); }")
    page.get_by_role("grid", name="q_rot[0,0]").locator(".labs-read").first.click()
    expect(page.locator(".labs-title")).to_have_text("q_rot [2,2,5,4] (B,H,T,dh)")
    assert page.evaluate("scrollY") == 40


def test_choices_that_change_nothing_are_off(show, widget):
    page = show(widget)
    batch, head = (page.get_by_role("group", name=name) for name in ("batch", "head"))
    one = head.get_by_role("radio", name="1")
    expect(batch.get_by_role("radio", name="1")).to_be_enabled()
    expect(one).to_be_disabled()
    expect(head).to_have_attribute("title", "x is the same for every head")
    stop(page, "scores").click()
    expect(one).to_be_enabled()
    assert head.get_attribute("title") is None
    one.check()
    stop(page, "wo").click()
    expect(batch.get_by_role("radio", name="1")).to_be_disabled()
    expect(one).to_be_disabled()
    expect(one).to_be_checked()  # kept
    stop(page, "p").click()
    expect(page.locator(".labs-status")).to_contain_text("p[0,1,")


def test_outlined_numbers_have_names(show, widget):
    page = show(widget)
    at(page, "trace=o,b0,h1,3,2")
    weight = f"{value('p')[0, 1, 3, 0]:.2f}"
    expect(page.get_by_role("gridcell", name=f"p[0,1,3,0] = {weight}, go there")).to_have_text(weight)
    expect(page.get_by_role("button", name="attn_inv_rms (B,T), computed already")).to_have_text(
        re.compile("^attn_inv_rms")
    )


def test_other_anchors_keep_working(show, widget):
    page = show(widget)
    page.evaluate("document.querySelector('h1').id = 'top-of-page'")
    stop(page, "scores").click()
    page.wait_for_function("location.hash.startsWith('#trace=')")
    page.evaluate("scrollTo(0, 400); location.hash = 'top-of-page'")
    page.wait_for_function("scrollY < 400")
    page.wait_for_timeout(600)
    assert page.evaluate("location.hash") == "#top-of-page"
    expect(page.locator(".labs-title")).to_have_text("scores [2,2,5,5] (B,H,T,T)")
    expect(page.locator(".labs-note")).to_have_text("")


def test_only_the_first_of_two_has_the_address(show):
    page = show(TraceExplorer(**GIVEN, backward=False), TraceExplorer(**GIVEN))
    first, second = (page.locator(".labs-trace-explorer").nth(n) for n in (0, 1))
    fresh(page, "trace=p,b0,h1,3,2")
    expect(first.locator(".labs-title")).to_have_text("p [2,2,5,5] (B,H,T,T)")
    expect(second.locator(".labs-title")).to_have_text("x [2,5,8] (B,T,D)")
    second.get_by_role("button", name="next step").click()
    expect(second.locator(".labs-title")).to_have_text("attn_inv_rms [2,5] (B,T)")
    page.wait_for_timeout(600)
    assert page.evaluate("location.hash") == "#trace=p,b0,h1,3,2"


def test_without_our_host_the_address_is_left_alone(show, widget):
    page = show(widget)
    page.evaluate("""async () => {
        const state = JSON.parse(document.querySelector('[type*="widget-state"]').textContent).state;
        const own = Object.values(state).find((model) => model.state._esm).state;
        const { data } = Object.values(state).find((model) => model.buffers?.length).buffers[0];
        own.numbers = new DataView(Uint8Array.from(atob(data), (c) => c.charCodeAt(0)).buffer);
        await labsHost.close();
        self.labsHost = undefined;
        const model = { get: (name) => own[name], set: (values) => Object.assign(own, values) };
        model.on = model.off = model.save_changes = () => {};
        const address = URL.createObjectURL(new Blob([own._esm], { type: 'text/javascript' }));
        const { default: module } = await import(address);
        location.hash = 'trace=scores,b0,h1,3,2';
        module.render({ model, el: document.querySelector('main') });
    }""")
    expect(page.locator(".labs-title")).to_have_text("x [2,5,8] (B,T,D)")
    page.wait_for_timeout(300)
    expect(page.locator(".labs-title")).to_have_text("x [2,5,8] (B,T,D)")
    expect(page.locator("details").last).not_to_contain_text("#trace")


# ---- looks, and screen readers ----


def test_views_of_one_model_stay_in_step(show, widget):
    page = show(widget, widget)
    page.get_by_role("button", name="next step").first.click()
    second = page.locator(".labs-trace-explorer").nth(1)
    expect(second.locator(".labs-title")).to_have_text("attn_inv_rms [2,5] (B,T)")


def test_same_numbers_as_text(show, widget):
    page = show(widget)
    stop(page, "scores").click()
    expect(page.locator(".labs-title")).to_have_text("scores [2,2,5,5] (B,H,T,T)")
    page.get_by_text("The numbers as text").click()
    lines = page.locator("pre").inner_text().splitlines()
    assert lines[0] == "scores[0,0]"
    assert lines[4].split() == ["i=2", "t", *numbers(page)[2]]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_axe_finds_nothing(show, widget, theme, width):
    page = show(widget, theme=theme, width=width, reduced_motion="reduce")
    for summary in page.locator("summary").all():
        summary.click()
    for hash_ in ("trace=masked,b0,h1,3,2", "trace=dwq,2,5"):
        at(page, hash_)
        assert axe.violations(page) == []


def test_what_is_current_shows_in_forced_colours(show, widget):
    page = show(widget, forced_colors="active")
    current, other = page.locator(".labs-current"), stop(page, "z")
    background = "node => getComputedStyle(node).backgroundColor"
    assert current.evaluate(background) != other.evaluate(background)
    # only without adjustment is the name's colour that of its ground, and not under a plate of the page's
    expect(current).to_have_css("forced-color-adjust", "none")
    page.locator("h1").evaluate("n => { n.style.cssText = 'color: HighlightText; background: Highlight'; }")
    for name in ("color", "backgroundColor"):
        style = f"node => getComputedStyle(node).{name}"
        assert page.locator(".labs-current .labs-stop-name").evaluate(style) in (
            page.locator("h1").evaluate(style),
            "rgba(0, 0, 0, 0)",
        )
    expect(page.locator(".labs-read").first).to_have_css("outline-style", "solid")


def test_what_is_computed_has_a_frame_in_forced_colours(show, widget):
    page = show(widget, forced_colors="active")
    at(page, "trace=scores,b0,h0,3,2")
    color = "node => getComputedStyle(node).borderTopColor"
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    expect(stop(page, "q")).to_have_class(re.compile("labs-done"))
    assert stop(page, "q").evaluate(color) != paper
    assert stop(page, "p").evaluate(color) == paper
    expect(stop(page, "q_rot")).to_have_css("border-style", "dashed")


def test_print_keeps_the_picture(show, widget):
    page = show(widget)
    at(page, "trace=scores,b0,h1,3,2")
    page.emulate_media(media="print")
    expect(page.locator(".labs-walk")).to_be_hidden()
    expect(page.locator(".labs-map")).to_be_visible()
    expect(page.locator(".labs-read").first).to_have_css("outline-style", "solid")
    expect(cell(page, 3, 2)).to_have_css("outline-style", "solid")
    expect(page.locator(".labs-hint")).to_be_hidden()
    expect(page.locator(".labs-heading")).to_be_visible()


@pytest.mark.parametrize("hash_", ["trace=dw2,3,2", "trace=dw1,3,9", "trace=du,b0,4,3"])
def test_print_loses_no_column_and_no_term(show, widget, hash_):
    page = show(widget, width=650)  # A4 without its margins
    at(page, hash_)
    page.emulate_media(media="print")
    for box in page.locator(".labs-grid-box").all():
        style = box.evaluate("n => [getComputedStyle(n).overflow, getComputedStyle(n).maxHeight]")
        assert style == ["visible", "none"]
    for grid in page.locator(".labs-grid:visible").all():
        right = grid.bounding_box()["x"] + grid.bounding_box()["width"]
        assert right <= 650, grid.get_attribute("aria-label")
    cut = "[...document.querySelectorAll('.labs-cell')].filter(n => n.scrollWidth > n.clientWidth + 1)"
    assert page.evaluate(f"{cut}.map(n => n.textContent)") == []


def test_cleanup_leaves_nothing(show, widget):
    page = show(widget)
    page.get_by_role("button", name="next step").click()
    page.evaluate("""() => {
        window.removed = [];
        const remove = window.removeEventListener;
        window.removeEventListener = (type, ...more) => { removed.push(type); remove(type, ...more); };
    }""")
    page.evaluate("labsHost.close()")
    expect(page.locator(".labs-root")).to_have_count(0)
    assert "hashchange" in page.evaluate("removed")
    page.wait_for_timeout(600)
    assert page.evaluate("location.hash") == ""  # what was about to be written is not
