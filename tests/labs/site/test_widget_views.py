"""What a page keeps of its widgets' state, and the box that each view stands in."""

import json
import re
from types import SimpleNamespace

import pytest

from labs.site import widget_views
from labs.site.widget_views import box, lighten_models, reachable, rename, reserve, short_names, take_module

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
    key, file = take_module(one)
    assert one == {"n": 1, "_module": key}
    assert take_module(same) == (key, file)
    assert take_module(other)[0] != key
    assert file == f'(self.labsModules ??= {{}})["{key}"] = ["text </script>", ""];\n'
    assert take_module({"value": 1}) is None


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


def test_box_reserves_height_and_says_what_is_missing_without_javascript():
    html = box("<script></script>", (12, 20.5))
    assert 'class="labs-widget" style="--labs-reserve-wide:12rem;--labs-reserve-narrow:20.5rem"' in html
    assert re.search(r"<noscript><p>[^<]*needs JavaScript[^<]*</p></noscript><script></script></div>$", html)


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

    def add_js_file(self, filename, **attributes):
        self.scripts.append(SimpleNamespace(filename=filename, attributes=attributes))


def prepare(tmp_path, body, models):
    app = App(tmp_path)
    state = json.dumps({"state": models})
    app.add_js_file(None, type=widget_views.STATE_TYPE, body=state)
    context = {"body": body, "script_files": app.scripts}
    widget_views.prepare_widgets(app, "page", None, context, None)
    return app.scripts, context["body"]


def view(name):
    return f'<script type="application/vnd.jupyter.widget-view+json">{{"model_id": "{name}"}}</script>'


def test_page_gets_state_modules_and_boxes(tmp_path):
    models = {
        "aaaa": {"model_name": "AnyModel", "state": {"_esm": "</script>", "reserve": [1, 2], "text": "</b>"}}
    }
    models["bbbb"] = {"model_name": "AnyModel", "state": {"_esm": "</script>", "reserve": [3, 4]}}
    (module, state), body = prepare(tmp_path, view("bbbb") + "<p>" + view("aaaa"), models)
    key = re.fullmatch(r"widgets/(\w+)\.js", module.filename)[1]
    assert module.attributes == {"priority": 400, "defer": "defer"}
    assert (tmp_path / f"_static/widgets/{key}.js").exists()
    assert "</" not in state.attributes["body"]  # would end the script
    assert json.loads(state.attributes["body"])["state"] == {
        "w0": {"model_name": "AnyModel", "state": {"reserve": [3, 4], "_module": key}},
        "w1": {"model_name": "AnyModel", "state": {"reserve": [1, 2], "text": "</b>", "_module": key}},
    }
    assert re.findall(r'wide:(\d)rem.*?"model_id": "(\w+)"', body) == [("3", "w0"), ("1", "w1")]


def test_state_without_views_is_dropped(tmp_path):
    scripts, body = prepare(tmp_path, "<p>", {"aaaa": GRID})
    assert scripts == []
    assert body == "<p>"


def test_view_without_state_is_a_warning(tmp_path, monkeypatch):
    warnings = []
    monkeypatch.setattr(widget_views.logger, "warning", lambda text, **_: warnings.append(text))
    prepare(tmp_path, view("aaaa"), {})
    assert warnings == ["a widget has no state; is its notebook executed?"]


def test_modules_that_no_page_names_are_deleted(tmp_path):
    folder = tmp_path / "_static/widgets"
    folder.mkdir(parents=True)
    (folder / "old.js").touch()
    (folder / "new.js").touch()
    (tmp_path / "page.html").write_text('<script src="_static/widgets/new.js"></script>', "utf8")
    app = SimpleNamespace(outdir=tmp_path, builder=SimpleNamespace(format="html"))
    widget_views.drop_unused_modules(app, None)
    assert [file.name for file in folder.iterdir()] == ["new.js"]


def test_a_module_is_stored_once_and_read_before_the_host(built_book):
    (module,) = (built_book / "_static/widgets").glob("*.js")
    page = (built_book / "book/notebook.html").read_text("utf8")
    assert "export default" in module.read_text("utf8")
    assert '"_esm"' not in page
    assert page.count(module.name) == 1
    assert page.index(module.name) < page.index("labs-host.js")


def test_widgets_run_in_the_page(built_book, open_page):
    page = open_page((built_book / "book/notebook.html").as_uri())
    page.wait_for_function("document.documentElement.dataset.labsWidgets === 'ready'")
    assert [text.strip() for text in page.locator(".labs-widget").all_inner_texts()] == [
        "hello Ada",
        "hello Bob",
    ]
