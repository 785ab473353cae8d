"""What a page keeps of its widgets' state, and the box that each view stands in."""

import json
import re
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
from playwright.sync_api import expect

from labs.site import widget_views
from labs.site.widget_views import box, lighten_models, reachable, rename, reserve, short_names, take_module
from labs.widgets import HeadSplit
from labs.widgets.shared import modules

GRID = {"model_name": "AnyModel", "state": {"_esm": "export {}", "_css": ".a {}", "reserve": [12, 20.5]}}
PLAIN = {"model_name": "IntSliderModel", "state": {"value": 1}}


def layout_of(name, *children):
    references = [f"IPY_MODEL_{child}" for child in children]
    return {
        "model_name": name,
        "state": {"children": references, "layout": "IPY_MODEL_lay", "_view_count": None},
    }


def test_models_that_no_view_reaches_are_dropped():
    models = {"a": GRID, "b": PLAIN, "row": layout_of("HBoxModel", "b"), "lost": GRID, "lay": PLAIN}
    assert list(reachable(models, ["row", "a"])) == ["row", "b", "lay", "a"]
    assert list(reachable(lighten_models(models), ["row", "a"])) == ["row", "b", "a"]


def test_models_that_refer_to_each_other_are_met_once():
    models = {"a": layout_of("VBoxModel", "b"), "b": layout_of("VBoxModel", "a")}
    assert list(reachable(models, ["a", "a"])) == ["a", "b"]


def test_what_only_jupyter_reads_is_dropped():
    state = {
        "_model_module": "anywidget",
        "_model_module_version": "~0.11.*",
        "_view_count": None,
        "_anywidget_id": "labs.Grid",
        "_esm": "export {}",
        "layout": "IPY_MODEL_l",
        "layouts": 3,
        "values": [1],
    }
    (model,) = lighten_models({"a": {"model_name": "AnyModel", "state": state}}).values()
    assert model["state"] == {"_esm": "export {}", "layouts": 3, "values": [1]}
    assert "layout" in state  # the caller's own is as it was


def test_module_is_replaced_by_its_key():
    one, same, other = (
        {"_esm": "text </script>", "n": 1},
        {"_esm": "text </script>", "n": 2},
        {"_esm": "no"},
    )
    key, files = take_module(one)
    assert one == {"n": 1, "_module": key}
    assert take_module(same) == (key, files)
    assert take_module(other)[0] != key
    assert files == {
        "js": "text </script>",
        "text.js": f'(self.labsModules ??= {{}})["{key}"] = "text </script>";\n',
    }
    assert take_module({"value": 1}) is None


def test_style_sheet_is_a_file_of_its_own_and_part_of_the_key():
    red, blue = ({"_esm": "text", "_css": f"a {{ color: {colour} }}"} for colour in ("red", "blue"))
    key, files = take_module(red)
    assert files["css"] == "a { color: red }"
    assert "_css" not in red
    assert take_module(blue)[0] != key


@pytest.mark.parametrize(
    ("model", "height"),
    [
        ("grid", (12, 20.5)),
        ("slider", widget_views.DEFAULT_RESERVE),
        ("unknown", widget_views.DEFAULT_RESERVE),
        ("row", (12, 26.5)),  # side by side on wide pages, below each other on narrow ones
        ("column", (16, 26.5)),
    ],
)
def test_reserved_height(model, height):
    models = {"grid": GRID, "slider": PLAIN}
    models |= {
        "row": layout_of("HBoxModel", "grid", "slider"),
        "column": layout_of("VBoxModel", "grid", "slider"),
    }
    assert reserve(models, model) == height


def test_box_reserves_height_and_holds_a_note_in_the_place_before_the_view():
    waiting = modules.strings("host")["host"]["waiting"]
    html = box("<script></script>", (12, 20.5), waiting)
    assert 'class="labs-widget" style="--labs-reserve-wide:12rem;--labs-reserve-narrow:20.5rem"' in html
    note = r'<div class="labs-view"><p class="[^"]*" role="note">[^<]*needs JavaScript[^<]*</p></div>'
    assert re.search(note + "<script></script></div>$", html)


def test_names_are_the_same_in_every_build():
    names = short_names({"9f3b": {}, "07aa": {}})
    assert rename('{"children": ["IPY_MODEL_07aa"], "id": "9f3b"}', names) == (
        '{"children": ["IPY_MODEL_w1"], "id": "w0"}'
    )
    assert rename("text", {}) == "text"


# On a page


class App:
    """As much of a Sphinx application as `prepare_widgets` uses."""

    def __init__(self, outdir):
        self.outdir = outdir
        self.scripts = []
        self.sheets = []

    def add_css_file(self, filename, **_):
        self.sheets.append(filename)

    def add_js_file(self, filename, **attributes):
        self.scripts.append(SimpleNamespace(filename=filename, attributes=attributes))


def prepare(tmp_path, body, models, language="en"):
    app = App(tmp_path)
    state = json.dumps({"state": models})
    app.add_js_file(None, type=widget_views.STATE_TYPE, body=state)
    context = {"body": body, "script_files": app.scripts, "language": language}
    widget_views.prepare_widgets(app, "page", None, context, None)
    return app, context["body"]


def view(name):
    return f'<script type="application/vnd.jupyter.widget-view+json">{{"model_id": "{name}"}}</script>'


def test_page_gets_state_modules_and_boxes(tmp_path):
    models = {
        "aaaa": {"state": {"_esm": "</script>", "_css": "a {}", "reserve": [1, 2], "text": "</b>"}},
        "bbbb": {"state": {"_esm": "</script>", "_css": "a {}", "reserve": [3, 4]}},
    }
    app, body = prepare(tmp_path, view("bbbb") + "<p>" + view("aaaa"), models)
    module, state, _ = app.scripts
    key = re.fullmatch(r"widgets/(\w+)\.js", module.filename)[1]
    assert module.attributes == {"type": widget_views.MODULE_TYPE, "data-key": key}
    assert app.sheets == [f"widgets/{key}.css"]
    written = {file.name: file.read_text("utf8") for file in (tmp_path / "_static/widgets").iterdir()}
    assert written[f"{key}.js"] == "</script>"
    assert written[f"{key}.css"] == "a {}"
    assert sorted(written) == [f"{key}.css", f"{key}.js", f"{key}.text.js"]
    assert "</" not in state.attributes["body"]  # would end the script
    assert json.loads(state.attributes["body"])["state"] == {
        "w0": {"state": {"reserve": [3, 4], "_module": key}},
        "w1": {"state": {"reserve": [1, 2], "text": "</b>", "_module": key}},
    }
    assert re.findall(r'wide:(\d)rem.*?"model_id": "(\w+)"', body) == [("3", "w0"), ("1", "w1")]


@pytest.fixture
def made_up_language(tmp_path, monkeypatch):
    """The widgets' files with a table in «xx», which has every text in brackets, beside each in English."""
    folder = tmp_path / "widgets"
    shutil.copytree(modules.WIDGETS, folder)
    for table in folder.glob("*/en.json"):
        text = re.sub(r'": "(.*)"', r'": "«\1»"', table.read_text("utf8"))
        table.with_name("xx.json").write_text(text, "utf8")
    monkeypatch.setattr(modules, "WIDGETS", folder)


def split_and_another():
    """The models of a HeadSplit, as far as is needed, and of somebody else's widget with `strings`."""
    state = HeadSplit(np.ones((1, 2, 4)), 2).get_state(["_anywidget_id", "strings"])
    return {
        "aaaa": {"state": state},
        "bbbb": {"state": {"_anywidget_id": "theirs.Widget", "strings": ["of", "another"]}},
    }


@pytest.mark.usefixtures("made_up_language")
def test_widgets_and_host_speak_the_language_of_the_page(tmp_path):
    app, body = prepare(tmp_path, view("aaaa") + view("bbbb"), split_and_another(), "xx")
    state, said = (json.loads(script.attributes["body"]) for script in app.scripts)
    assert state["state"]["w0"]["state"]["strings"] == modules.strings("tensor", "head_split", language="xx")
    assert state["state"]["w0"]["state"]["strings"]["tensor"]["axis_b"] == "«batch»"
    assert state["state"]["w1"]["state"]["strings"] == ["of", "another"]
    assert said == modules.strings("host", language="xx")["host"]
    assert app.scripts[1].attributes["type"] == widget_views.STRINGS_TYPE
    assert body.count("«This widget has not started yet.") == 2


def test_a_language_without_a_table_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"no shared/xx\.json for pages in the language 'xx': translate"):
        prepare(tmp_path, view("aaaa"), split_and_another(), "xx")


def test_state_without_views_is_dropped(tmp_path):
    app, body = prepare(tmp_path, "<p>", {"aaaa": GRID})
    assert app.scripts == []
    assert body == "<p>"


def test_view_without_state_is_a_warning(tmp_path, monkeypatch):
    warnings = []
    monkeypatch.setattr(widget_views.logger, "warning", lambda text, **_: warnings.append(text))
    prepare(tmp_path, view("aaaa"), {})
    assert warnings == ["a widget has no state; is its notebook executed?"]


def test_modules_that_no_page_names_are_deleted(tmp_path):
    folder = tmp_path / "_static/widgets"
    folder.mkdir(parents=True)
    for name in ("old.js", "old.text.js", "old.css", "new.js", "new.text.js", "new.css"):
        (folder / name).touch()
    (tmp_path / "page.html").write_text('<script src="_static/widgets/new.js"></script>', "utf8")
    app = SimpleNamespace(outdir=tmp_path, builder=SimpleNamespace(format="html"))
    widget_views.drop_unused_modules(app, None)
    assert sorted(file.name for file in folder.iterdir()) == ["new.css", "new.js", "new.text.js"]


def test_a_module_is_stored_once(built_book):
    files = sorted(file.name for file in (built_book / "_static/widgets").iterdir())
    key = files[0].split(".")[0]
    assert files == [f"{key}.css", f"{key}.js", f"{key}.text.js"]
    page = (built_book / "book/notebook.html").read_text("utf8")
    assert '"_esm"' not in page
    assert page.count(f"{key}.js") == page.count(f"{key}.css") == 1
    assert f"{key}.text.js" not in page  # only a page that may not import the module loads its text
    assert page.index(f"{key}.css") > page.index("labs.css")


READY = "html[data-labs-widgets=ready]"
GREETINGS = ["hello Ada", "hello Bob"]


def greetings(page):
    """What stands in the place of each widget."""
    return [text.strip() for text in page.locator(".labs-widget").all_inner_texts()]


def test_widgets_run_in_the_page(built_book, open_page):
    page = open_page((built_book / "book/notebook.html").as_uri())
    page.wait_for_selector(READY)
    assert greetings(page) == GREETINGS


#: The strictest policy that the README asks of whoever hosts the book.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "font-src 'self' data:; base-uri 'none'; form-action 'self'"
)


def under(policy):
    """A route that adds a content security policy to every answer."""

    def fulfill(route):
        answer = route.fetch()
        route.fulfill(response=answer, headers=answer.headers | {"content-security-policy": policy})

    return fulfill


def test_page_needs_no_script_but_files_of_its_own_server(built_book, serve, open_page, problems):
    page = open_page("about:blank")
    page.route("**/*", under(POLICY))
    page.goto(f"{serve(built_book)}book/notebook.html")
    page.wait_for_selector(READY)
    assert greetings(page) == GREETINGS
    # nothing else is refused: only the theme's own buttons for print and full screen are written that way
    assert len(problems) == page.locator("[onclick]").count() == 2
    assert all("Executing inline event handler" in problem for problem in problems)
    problems.clear()


def test_page_runs_in_a_sandboxed_frame(built_book, serve, open_page, tmp_path):
    frame = f'<iframe sandbox="allow-scripts" src="{serve(built_book)}book/notebook.html"></iframe>'
    (tmp_path / "frame.html").write_text(frame, "utf8")
    frame = open_page(f"{serve(tmp_path)}frame.html").frames[1]
    frame.wait_for_selector(READY)
    assert greetings(frame) == GREETINGS


# What a reader sees where a widget does not run

HOST, MODULE, PAGE = "**/labs-host.js*", "**/widgets/*.js*", "**/notebook.html"


def answer(**given):
    return lambda route: route.fulfill(**given)


def edited(pattern, replacement):
    """A route that changes the text of what it serves."""

    def fulfill(route):
        answer = route.fetch()
        text, count = re.subn(pattern, lambda _: replacement, answer.text(), flags=re.S)
        assert count > 0
        route.fulfill(response=answer, body=text)

    return fulfill


def as_text(route):
    """A server that calls every script a text, and tells the browser to believe it."""
    answer = route.fetch()
    headers = answer.headers | {"content-type": "text/plain", "x-content-type-options": "nosniff"}
    route.fulfill(response=answer, headers=headers)


def script(body):
    return answer(body=body, content_type="text/javascript")


def throwing(name):
    return script(f"export default {{ {name}() {{ throw new Error('no') }} }}")


STATE = r'(<script type="application/vnd\.jupyter\.widget-state\+json">).*?</script>'
DAMAGED = '<script type="application/vnd.jupyter.widget-state+json">{"version_major": 2</script>'


@pytest.fixture
def with_route(built_book, serve, open_page, problems):
    """A function that opens the page with the widgets while a route answers for the server."""

    def with_route(address, route):
        page = open_page("about:blank")
        page.route(address, route)
        page.goto(f"{serve(built_book)}book/notebook.html")
        return page

    yield with_route
    problems.clear()  # they differ from case to case


@pytest.mark.parametrize(
    ("address", "route"),
    [
        pytest.param(HOST, lambda route: route.abort(), id="the request for the host fails"),
        pytest.param(HOST, answer(status=404), id="the host is missing"),
        pytest.param("**/*.js*", as_text, id="scripts served as text"),
        pytest.param(HOST, script("let a = ;"), id="an old browser cannot read the host"),
        pytest.param(HOST, script("throw new Error('at once')"), id="the host throws"),
        pytest.param(PAGE, under("script-src 'none'"), id="no scripts allowed"),
        pytest.param(MODULE, script("await new Promise(() => {})"), id="the module never comes"),
    ],
)
def test_a_widget_says_so_in_its_place_if_the_host_cannot(with_route, address, route):
    expect_notes(with_route(address, route))


@pytest.mark.parametrize(
    ("address", "route"),
    [
        pytest.param(MODULE, lambda route: route.abort(), id="the request for the module fails"),
        pytest.param(MODULE, answer(status=404), id="the module is missing"),
        pytest.param(MODULE, as_text, id="the module is served as text"),
        pytest.param(MODULE, script("export default {"), id="the module is damaged"),
        pytest.param(MODULE, script("throw new Error()"), id="the module throws"),
        pytest.param(MODULE, script("export const a = 1"), id="the module has no widget"),
        pytest.param(MODULE, throwing("initialize"), id="initialize throws"),
        pytest.param(MODULE, throwing("render"), id="render throws"),
        pytest.param(PAGE, edited(STATE, ""), id="the state is missing"),
        pytest.param(PAGE, edited(STATE, DAMAGED), id="the state is damaged"),
        pytest.param(PAGE, edited(r'"_module":"\w+"', '"_module":"gone"'), id="the module is not named"),
    ],
)
def test_a_widget_says_so_in_its_place_if_it_cannot_start(with_route, address, route):
    page = with_route(address, route)
    page.wait_for_selector(READY)
    expect_notes(page)


def test_a_widget_says_so_where_javascript_is_off(built_book, open_page, problems):
    page = open_page((built_book / "book/notebook.html").as_uri(), java_script_enabled=False)
    assert page.get_by_role("note").first.is_visible()  # at once
    expect_notes(page)
    problems.clear()  # scripts that were fetched in advance for nothing


def expect_notes(page):
    """In the place of each widget stands one sentence that one can see, and it says what to do."""
    page.evaluate("""for (const note of document.querySelectorAll(".labs-waiting"))
        for (const waiting of note.getAnimations()) waiting.finish();""")
    for widget in page.locator(".labs-widget").all():
        expect(widget.locator("p")).to_be_visible()
        expect(widget).to_have_text(re.compile("download the notebook", re.I))


def test_the_note_is_hidden_while_the_widget_may_still_come(with_route):
    visibility = """(note) => {
        const [waiting] = note.getAnimations();
        return [0, 4999, 5001].map((time) => {
            waiting.currentTime = time;
            return getComputedStyle(note).visibility;
        });
    }"""
    note = with_route(HOST, lambda route: route.abort()).locator(".labs-waiting").first
    assert note.evaluate(visibility) == ["hidden", "hidden", "visible"]
