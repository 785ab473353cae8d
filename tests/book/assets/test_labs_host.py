"""The script that runs widgets in built pages, in a real browser, on small pages made by hand."""

import base64
import json
from pathlib import Path

import pytest
from playwright.sync_api import expect

from labs.widgets.shared.modules import strings

HOST = Path(__file__).parents[3] / "book" / "assets" / "labs-host.js"
STRINGS = strings("host")["host"]

#: A widget that shows a number in a button and counts up; it keeps in `log` what happens to it.
COUNTER = """
self.log ??= [];
self.log.push("module");
export default {
  initialize({ model }) {
    self.log.push("initialize");
    return () => self.log.push("initialize cleanup");
  },
  render({ model, el }) {
    self.log.push("render");
    const button = document.createElement("button");
    const draw = () => { button.textContent = model.get("count"); };
    button.addEventListener("click", () => {
      model.set("count", model.get("count") + 1);
      model.save_changes();
    });
    model.on("change:count", draw);
    draw();
    el.append(button);
    return () => { self.log.push("render cleanup"); button.remove(); };
  },
};
"""


def inline(data):
    return json.dumps(data).replace("</", "<\\/")


def model(state, name="AnyModel", **more):
    return {"model_name": name, "model_module": "anywidget", "state": state, **more}


def counter(count=0):
    return model({"_module": "counter", "count": count})


def view(model_id, before=""):
    data = inline({"model_id": model_id, "version_major": 2})
    script = f'<script type="application/vnd.jupyter.widget-view+json">{data}</script>'
    return f'<div class="place">{before}{script}</div>'


PAGE = """<!doctype html>
<html lang="{lang}"><meta charset="utf-8"><title>page</title>
<script defer src="labs-host.js"></script>
<script defer src="labs-host.js"></script>
<script type="application/vnd.jupyter.widget-state+json">{state}</script>
<script type="application/vnd.labs.strings+json">{strings}</script>
{body}
{modules}
"""

MODULE = '<script type="application/vnd.labs.widget-module" data-key="{key}" src="{key}.js?v=1"></script>'


@pytest.fixture
def load(tmp_path, serve, open_page):
    """A function that returns a page, ready, written as the build writes it; the host stands in it twice.

    `load(models, body, modules={key: script}, scheme="http", lang="en", said=STRINGS)`: `counter` is always
    one of the modules.
    """

    def load(models, body, modules=None, scheme="http", lang="en", state=None, said=STRINGS):
        text = inline({"version_major": 2, "version_minor": 0, "state": models}) if state is None else state
        modules = {"counter": COUNTER} | (modules or {})
        for key, script in modules.items():
            (tmp_path / f"{key}.js").write_text(script, "utf8")
            text_of = f'(self.labsModules ??= {{}})["{key}"] = {json.dumps(script)};'
            (tmp_path / f"{key}.text.js").write_text(text_of, "utf8")
        tags = "".join(MODULE.format(key=key) for key in modules)
        (tmp_path / "page.html").write_text(
            PAGE.format(lang=lang, state=text, strings=inline(said), body=body, modules=tags), "utf8"
        )
        (tmp_path / "labs-host.js").write_bytes(HOST.read_bytes())
        base = serve(tmp_path) if scheme == "http" else f"{tmp_path.as_uri()}/"
        page = open_page(base + "page.html")
        page.wait_for_selector("html[data-labs-widgets=ready]")
        return page

    return load


@pytest.fixture
def answer(load):
    """A function `answer(body)`: what `body` returns in the `render({ model, el, signal, ... })` of a widget.

    Its model holds n = 1, list = [1, { "a": 2 }] and whatever else is given.
    """

    def answer(body, buffers=(), **state):
        script = (
            f"export default {{ async render(given) {{ self.answer = await ({CALL % body})(given); }} }};"
        )
        probe = model({"_module": "probe", "n": 1, "list": [1, {"a": 2}], **state}, buffers=list(buffers))
        return load({"m": probe}, view("m"), {"probe": script}).evaluate("self.answer")

    return answer


CALL = "async ({ model, el, signal, experimental }) => { %s }"


# ---- mounting ----


@pytest.mark.parametrize("scheme", ["http", "file"])
def test_views_run_without_a_kernel(load, scheme):
    page = load({"a": counter(3), "b": counter(5)}, view("a") + view("b"), scheme=scheme)
    buttons = page.get_by_role("button")
    expect(buttons).to_have_text(["3", "5"])
    buttons.first.click()
    expect(buttons).to_have_text(["4", "5"])


@pytest.mark.parametrize("scheme", ["http", "file"])
def test_code_in_the_state_works_as_well(load, scheme):
    state = {"_esm": COUNTER, "_css": "button { color: rgb(4, 5, 6) }", "count": 7}
    page = load({"a": model(state)}, view("a"), scheme=scheme)
    expect(page.get_by_role("button")).to_have_text("7")
    expect(page.get_by_role("button")).to_have_css("color", "rgb(4, 5, 6)")


def test_the_widget_stands_where_its_view_is(load):
    page = load({"a": counter(1)}, "<p>before</p>" + view("a") + "<p>after</p>")
    assert page.locator("p, button").all_inner_texts() == ["before", "1", "after"]


def test_what_stands_in_the_place_of_a_widget_stays_until_the_widget_is_drawn(load):
    script = """
      self.seen = [];
      const look = () => self.seen.push(document.querySelector(".labs-view").textContent);
      look();
      export default { initialize: look, render({ el }) { look(); el.append("drawn"); } };
    """
    body = view("a", '<p>before</p><div class="labs-view">waiting</div>')
    page = load({"a": model({"_module": "slow"})}, body, {"slow": script})
    assert page.evaluate("seen") == ["waiting", "waiting", ""]
    assert page.locator(".place > :not(script)").all_inner_texts() == ["before", "drawn"]


def test_a_policy_that_allows_only_files_of_the_page_s_own_server(load):
    policy = """<meta http-equiv="Content-Security-Policy" content="default-src 'self'">"""
    page = load({"a": counter(3)}, policy + view("a"))
    page.get_by_role("button").click()
    expect(page.get_by_role("button")).to_have_text("4")
    loaded = page.evaluate("performance.getEntriesByType('resource').map((e) => e.name.split('/').pop())")
    assert [name for name in loaded if ".js" in name] == ["labs-host.js", "counter.js?v=1"]


def test_a_frame_without_an_origin(load, tmp_path, serve, open_page):
    load({"a": counter(3)}, view("a"))  # writes the page
    (tmp_path / "frame.html").write_text('<iframe sandbox="allow-scripts" src="page.html"></iframe>', "utf8")
    frame = open_page(serve(tmp_path) + "frame.html").frame_locator("iframe")
    frame.get_by_role("button").click()
    expect(frame.get_by_role("button")).to_have_text("4")


def test_views_of_one_model_stay_in_step(load):
    page = load({"a": counter(3)}, view("a") * 3)
    page.get_by_role("button").nth(1).click()
    expect(page.get_by_role("button")).to_have_text(["4", "4", "4"])


@pytest.mark.parametrize("scheme", ["http", "file"])
def test_module_runs_once_a_page_and_initialize_once_a_model(load, scheme):
    page = load({"a": counter(), "b": counter()}, view("a") + view("a") + view("b"), scheme=scheme)
    assert sorted(page.evaluate("log")) == ["initialize"] * 2 + ["module"] + ["render"] * 3


def test_style_sheet_in_the_state_is_added_once_a_page(load):
    state = {"_esm": COUNTER, "_css": "button { color: rgb(1, 2, 3) }", "count": 7}
    page = load({"a": model(state), "b": model(state)}, view("a") + view("b"))
    expect(page.get_by_role("button")).to_have_count(2)
    styles = page.evaluate("[...document.querySelectorAll('style')].map((style) => style.textContent)")
    assert styles.count(state["_css"]) == 1


def test_initialize_is_over_before_render(load):
    script = """export default {
      async initialize({ model }) { await new Promise((done) => setTimeout(done)); model.set("n", 2); },
      render({ model, el }) { el.textContent = `n is ${model.get("n")}`; },
    };"""
    page = load({"a": model({"_module": "late", "n": 1})}, view("a"), {"late": script})
    expect(page.locator(".place")).to_have_text("n is 2")


def test_default_export_may_be_a_function(load):
    script = "export default async () => ({ render({ el }) { el.textContent = 'made'; } });"
    page = load({"a": model({"_module": "made"})}, view("a"), {"made": script})
    expect(page.locator(".place")).to_have_text("made")


def test_close_calls_every_cleanup(load):
    page = load({"a": counter()}, view("a") + view("a"))
    page.evaluate("labsHost.close()")
    cleanups = [entry for entry in page.evaluate("log") if "cleanup" in entry]
    assert sorted(cleanups) == ["initialize cleanup", "render cleanup", "render cleanup"]
    expect(page.get_by_role("button")).to_have_count(0)


def test_boxes_lay_out_their_children(load):
    children = ["IPY_MODEL_a", "IPY_MODEL_b"]
    models = {"a": counter(1), "b": counter(2)}
    for kind, same_line in (("HBoxModel", True), ("VBoxModel", False)):
        page = load({**models, "box": model({"children": children}, kind)}, view("box"))
        expect(page.get_by_role("button")).to_have_text(["1", "2"])
        first, second = (button.bounding_box() for button in page.get_by_role("button").all())
        assert (first["y"] == second["y"]) is same_line


def test_page_without_widgets_is_ready(tmp_path, serve, open_page):
    (tmp_path / "labs-host.js").write_bytes(HOST.read_bytes())
    (tmp_path / "page.html").write_text("<title>page</title><script src=labs-host.js></script>", "utf8")
    open_page(serve(tmp_path) + "page.html").wait_for_selector(
        "html[data-labs-widgets=ready]", state="attached"
    )


def test_host_that_comes_late_still_runs(tmp_path, serve, open_page):
    (tmp_path / "labs-host.js").write_bytes(HOST.read_bytes())
    (tmp_path / "page.html").write_text("<title>page</title>", "utf8")
    page = open_page(serve(tmp_path) + "page.html")
    page.add_script_tag(url="labs-host.js")
    page.wait_for_selector("html[data-labs-widgets=ready]", state="attached")


# ---- the model, with Backbone's semantics ----


def test_set_is_heard_at_once_by_name_and_then_as_a_whole(answer):
    assert answer("""
      const heard = [];
      model.on("change:n", (_, value) => heard.push(["change:n", value, model.get("n")]));
      model.on("change:list", () => heard.push(["change:list"]));
      model.on("change", () => heard.push(["change"]));
      model.set({ n: 2, list: [] });
      return heard;
    """) == [["change:n", 2, 2], ["change:list"], ["change"]]


def test_equal_values_are_no_change(answer):
    assert answer("""
      let changes = 0;
      model.on("change", () => changes++);
      model.set("n", 1);
      model.set("list", [1, { a: 2 }]);
      model.save_changes();
      const unchanged = changes;
      model.set("list", [1, { a: 3 }]);
      model.set("list", [1, { a: 3, b: 4 }]);
      model.set("list", { 0: 1, 1: { a: 3, b: 4 } });
      return [unchanged, changes];
    """) == [0, 3]


def test_set_within_a_listener_ends_in_one_more_change(answer):
    assert answer("""
      const heard = [];
      model.on("change:n", () => model.set("m", model.get("n") * 10));
      model.on("change:m", (_, value) => heard.push(value));
      model.on("change", () => heard.push("change"));
      model.on("change", () => model.set("last", model.get("m")));
      model.set("n", 2);
      return [...heard, model.get("last")];
    """) == [20, "change", "change", 20]


@pytest.mark.parametrize(
    ("off", "left"),
    [
        ("model.off()", []),
        ("model.off('change:n')", ["b1", "b2"]),
        ("model.off('change:a change:b')", ["n1"]),
        ("model.off('change:b', b1)", ["n1", "b2"]),
        ("model.off(null, b1)", ["n1", "b2"]),
        ("model.off('change:b', () => {})", ["n1", "b1", "b2"]),
    ],
)
def test_off_in_all_its_forms(answer, off, left):
    listeners = """
      const heard = [];
      const b1 = () => heard.push("b1");
      model.on("change:n", () => heard.push("n1"));
      model.on("change:b", b1);
      model.on("change:a change:b", () => heard.push("b2"));
    """
    assert answer(f"{listeners} {off}; model.set({{ n: 2, b: 2 }}); return heard;") == left


def test_off_reaches_only_the_listeners_of_its_own_view(load):
    script = """export default { render({ model, el }) {
      model.on("change:n", () => { el.textContent = `heard ${model.get("n")}`; });
      const button = document.createElement("button");
      button.addEventListener("click", () => { model.off(); model.set("n", 2); });
      el.append(button);
    } };"""
    page = load({"a": model({"_module": "deaf", "n": 1})}, view("a") * 2, {"deaf": script})
    page.get_by_role("button").first.click()
    assert page.locator(".place").all_inner_texts() == ["", "heard 2"]


def test_error_in_a_listener_does_not_stop_the_others(answer, problems):
    assert answer("""
      let heard = false;
      model.on("change:n", () => { throw new Error("deaf"); });
      model.on("change:n", () => { heard = true; });
      model.set("n", 2);
      return heard;
    """)
    assert [problem.splitlines()[0] for problem in problems] == ["uncaught: deaf"]
    problems.clear()


def test_all_hears_everything(answer):
    assert answer("""
      const heard = [];
      model.on("all", (event) => heard.push(event));
      model.set("n", 2);
      return heard;
    """) == ["change:n", "change"]


def test_another_model_by_its_reference(answer):
    assert answer("return (await model.widget_manager.get_model('IPY_MODEL_m')).get('n')") == 1


def test_commands_say_that_they_need_python(answer):
    assert "needs Python" in answer("return experimental.invoke('f').catch((error) => error.message)")


def test_signal_ends_with_the_host(answer):
    assert answer("""
      const before = signal.aborted;
      await labsHost.close();
      return [before, signal.aborted];
    """) == [False, True]


def test_binary_values_come_back_as_dataview(answer):
    data = base64.b64encode(bytes([1, 2, 255])).decode()
    buffers = [{"path": ["deep", "here", 1], "data": data, "encoding": "base64"}]
    assert answer(
        """
        const value = model.get("deep").here[1];
        return [value.constructor.name, value.byteLength, value.getUint8(2)];
        """,
        buffers,
        deep={"here": [0, None]},
    ) == ["DataView", 3, 255]


# ---- what can go wrong ----


def expect_one_failure(page, problems, reason):
    """One widget says what failed and what to do; the counter beside it works."""
    note = page.get_by_role("note")
    expect(note).to_have_count(1)
    for part in (reason, "The rest of the page works", "Reload the page", "download the notebook"):
        expect(note).to_contain_text(part)
    page.get_by_role("button").click()
    expect(page.get_by_role("button")).to_have_text("1")
    assert any("a widget could not start" in problem and reason in problem for problem in problems)
    problems.clear()


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("export default {", "Unexpected end of input"),
        ("throw new Error('at import')", "at import"),
        ("export const render = 1", "no default export"),
        ("export default { initialize() { throw new Error('at start') } }", "at start"),
        (
            "export default { async render({ el }) { el.append('half'); throw new Error('at render') } }",
            "at render",
        ),
        ("import { a } from 'other'; export default { a };", "Failed to resolve module specifier"),
    ],
)
@pytest.mark.parametrize("scheme", ["http", "file"])
def test_error_in_one_widget_leaves_the_others_alone(load, problems, script, reason, scheme):
    models = {"bad": model({"_module": "bad"}), "good": counter()}
    page = load(models, view("bad") + view("good"), {"bad": script}, scheme=scheme)
    expect_one_failure(page, problems, reason)
    expect(page.get_by_text("half")).to_have_count(0)


@pytest.mark.parametrize("scheme", ["http", "file"])
def test_module_whose_file_is_missing(load, problems, scheme):
    models = {"bad": model({"_module": "gone"}), "good": counter()}
    page = load(models, view("bad") + view("good") + MODULE.format(key="gone"), scheme=scheme)
    expect(page.get_by_role("note")).to_contain_text("gone")
    problems[:] = [problem for problem in problems if "a widget could not start" in problem]
    expect_one_failure(page, problems, "module")


def test_module_whose_text_is_damaged(load, tmp_path, problems):
    (tmp_path / "torn.text.js").write_text("(self.labsModules ??= {", "utf8")
    models = {"bad": model({"_module": "torn"}), "good": counter()}
    body = view("bad") + view("good") + MODULE.format(key="torn")
    expect_one_failure(load(models, body, scheme="file"), problems, "its module torn is missing")


def test_missing_module(load, problems):
    page = load({"bad": model({"_module": "gone"}), "good": counter()}, view("bad") + view("good"))
    expect_one_failure(page, problems, "its module gone is missing")


def test_error_in_a_box_leaves_its_other_children_alone(load, problems):
    box = model({"children": ["IPY_MODEL_bad", "IPY_MODEL_good"]}, "VBoxModel")
    page = load({"bad": model({"_module": "gone"}), "good": counter(), "box": box}, view("box"))
    expect_one_failure(page, problems, "its module gone is missing")


def test_view_without_a_model(load):
    page = load({"good": counter()}, view("gone") + view("good"))
    expect(page.get_by_role("note")).to_contain_text("not stored with the page")
    expect(page.get_by_role("button")).to_have_text("0")


@pytest.mark.parametrize("state", ["{ not json", '{"version_major": 2}'])
def test_state_that_cannot_be_read(load, problems, state):
    page = load({}, view("a"), state=state)
    expect(page.get_by_role("note")).to_contain_text("not stored with the page")
    assert len(problems) == 1
    assert "the state of this page's widgets cannot be read" in problems[0]
    problems.clear()


def test_binary_value_in_an_unknown_encoding(load, problems):
    buffers = [{"path": ["data"], "data": "0102", "encoding": "hex"}]
    page = load({"a": model({"_module": "counter"}, buffers=buffers)}, view("a"))
    expect(page.get_by_role("note")).to_contain_text("not stored with the page")
    assert "a buffer must be base64, got hex" in problems[0]
    problems.clear()


def test_view_that_cannot_be_read(load, problems):
    broken = view("gone").replace('{"model_id"', "{ not json")
    page = load({"good": counter()}, broken + view("good"))
    expect_one_failure(page, problems, "Expected property name")


def test_control_of_ipywidgets_says_that_it_needs_python(load):
    page = load({"a": model({"value": 3}, "IntSliderModel"), "b": counter()}, view("a") + view("b"))
    note = page.get_by_role("note")
    expect(note).to_contain_text("IntSlider")
    expect(note).to_contain_text("needs Python")
    expect(note).to_contain_text("Download this page's notebook")
    expect(page.get_by_role("button")).to_have_text("0")


def test_message_is_text_and_never_markup(load, problems):
    script = "throw new Error('<img src=x>')"
    page = load({"a": model({"_module": "bad"})}, view("a"), {"bad": script})
    expect(page.get_by_role("note")).to_contain_text("<img src=x>")
    expect(page.locator("img")).to_have_count(0)
    problems.clear()


@pytest.mark.parametrize("lang", ["en", "en-GB", "xx", ""])
def test_any_language_of_the_page_will_do(load, lang):
    page = load({"a": model({}, "IntSliderModel")}, view("a"), lang=lang)
    expect(page.get_by_role("note")).to_contain_text("needs Python")


@pytest.mark.parametrize(
    ("said", "note"), [({"needs_python": "«{kind}»"}, "«IntSlider»"), ({}, "needs_python")]
)
def test_says_what_the_table_of_the_page_says(load, said, note):
    page = load({"a": model({}, "IntSliderModel")}, view("a"), said=said)
    expect(page.get_by_role("note")).to_have_text(note)


# ---- formulas ----


@pytest.mark.parametrize("what", ["labs-math-scroll", "labs-table-scroll"])
def test_what_overflows_is_in_reach_of_the_keyboard_only_while_it_does(load, what):
    style = (
        f"<style>.{what} {{ overflow-x: auto }} .wide {{ width: 600px }} .short {{ width: 100px }}</style>"
    )
    places = "".join(f'<div class="{what}"><div class="{kind}">x</div></div>' for kind in ("wide", "short"))
    page = load({}, style + places)
    wide, short = page.locator(f".{what}").all()
    page.set_viewport_size({"width": 400, "height": 300})
    expect(wide).to_have_attribute("tabindex", "0")
    assert short.get_attribute("tabindex") is None
    page.set_viewport_size({"width": 1000, "height": 300})
    expect(wide).not_to_have_attribute("tabindex", "0")


def test_formula_in_a_fold_is_measured_when_it_opens(load):
    formula = (
        '<div class="labs-math-scroll" style="overflow-x: auto"><div style="width: 3000px">x</div></div>'
    )
    page = load({}, f"<details><summary>more</summary>{formula}</details>")
    assert page.locator(".labs-math-scroll").get_attribute("tabindex") is None
    page.get_by_text("more").click()
    expect(page.locator(".labs-math-scroll")).to_have_attribute("tabindex", "0")
