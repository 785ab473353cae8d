"""Sphinx extension: the widgets of a page, in the form that the page's host script reads.

MyST-NB embeds the state of every model that the notebook ever made, each with the full text of its module.
Here a page keeps the models that its views reach, and a module is stored once per site, in `_static/widgets`:

    KEY.js       the ES module, which a page that comes from a server imports
    KEY.text.js  the same as text, for pages that may not import files, such as those opened from disk
    KEY.css      its style sheet

The models name it with `_module: KEY`, and the page says where it is with

    <script type="application/vnd.labs.widget-module" data-key="KEY" src="...KEY.js">

which no browser runs. Widgets and host speak the language of the page, whatever they spoke when the notebook
was run. Every view stands in a box that reserves its height, so that nothing on the page moves when the
widget appears, and holds a note for the reader until it does.
"""

import hashlib
import html
import json
import re
from pathlib import Path

from sphinx.util import logging

from labs.widgets.shared.modules import strings

logger = logging.getLogger(__name__)

STATE_TYPE = "application/vnd.jupyter.widget-state+json"
MODULE_TYPE = "application/vnd.labs.widget-module"
STRINGS_TYPE = "application/vnd.labs.strings+json"
VIEW = re.compile(r'<script type="application/vnd\.jupyter\.widget-view\+json">(.*?)</script>', re.S)
REFERENCE = re.compile(r"IPY_MODEL_(\w+)")

#: What only a live kernel's front end reads: where to find the code of a model and how Jupyter lays it out.
JUPYTER_ONLY = re.compile(
    "_(model|view)_(module|module_version|count)|_dom_classes|_anywidget_id|layout|style|tabbable|tooltip"
)

#: Height in rem of a view without a `reserve` trait, on wide and on narrow pages: room for one sentence.
DEFAULT_RESERVE = (4, 6)


def reachable(models: dict[str, dict], views: list[str]) -> dict[str, dict]:
    """The models that these views show, directly or inside another, in the order in which they are met."""
    found: dict[str, dict] = {}
    waiting = list(reversed(views))
    while waiting:
        name = waiting.pop()
        if name in models and name not in found:
            found[name] = models[name]
            waiting.extend(reversed(REFERENCE.findall(json.dumps(models[name]["state"]))))
    return found


def lighten_models(models: dict[str, dict]) -> dict[str, dict]:
    """The models without what only Jupyter reads."""
    return {
        name: {
            **model,
            "state": {key: value for key, value in model["state"].items() if not JUPYTER_ONLY.fullmatch(key)},
        }
        for name, model in models.items()
    }


def translate(models: dict[str, dict], language: str) -> None:
    """Put the strings of a language into the states of the course's widgets."""
    for model in models.values():
        state = model["state"]
        if state.get("_anywidget_id", "").startswith("labs.widgets."):
            state["strings"] = strings(*state["strings"], language=language)


def take_module(state: dict) -> tuple[str, dict[str, str]] | None:
    """Replace the module in a model's state by its key; returns key and files by ending, if it has one."""
    if "_esm" not in state:
        return None
    script, sheet = state.pop("_esm"), state.pop("_css", "")
    key = hashlib.sha256(json.dumps([script, sheet]).encode()).hexdigest()[:12]
    state["_module"] = key
    text = json.dumps(script, ensure_ascii=False)
    files = {"js": script, "text.js": f'(self.labsModules ??= {{}})["{key}"] = {text};\n'}
    return key, files | ({"css": sheet} if sheet else {})


def reserve(models: dict[str, dict], name: str) -> tuple[float, float]:
    """The height in rem that the view of a model needs, on wide and on narrow pages."""
    model = models.get(name)
    if model is None:
        return DEFAULT_RESERVE
    if "reserve" in model["state"]:
        wide, narrow = model["state"]["reserve"]
        return wide, narrow
    children = REFERENCE.findall(json.dumps(model["state"].get("children", [])))
    if not children:
        return DEFAULT_RESERVE
    wide, narrow = zip(*(reserve(models, child) for child in children), strict=True)
    beside = model["model_name"] == "HBoxModel"
    return max(wide) if beside else sum(wide), sum(narrow)


def box(view: str, height: tuple[float, float], note: str) -> str:
    """A view in a box of reserved height, below a place that holds a note until the widget appears.

    The note is part of the page itself, because the script that would write it may be what is missing.
    """
    wide, narrow = height
    waiting = f'<p class="labs-host-note labs-waiting" role="note">{html.escape(note)}</p>'
    return (
        f'<div class="labs-widget" style="--labs-reserve-wide:{wide}rem;--labs-reserve-narrow:{narrow}rem">'
        f'<div class="labs-view">{waiting}</div>'
        f"{view}</div>"
    )


def short_names(models: dict[str, dict]) -> dict[str, str]:
    """Names that are the same in every build, in place of Jupyter's random ones."""
    return {name: f"w{index}" for index, name in enumerate(models)}


def rename(text: str, names: dict[str, str]) -> str:
    """Put the new names of models into JSON text."""
    if not names:
        return text
    return re.sub("|".join(names), lambda found: names[found[0]], text)


def prepare_widgets(app, pagename, _template, context, _doctree):
    """Rewrite the widgets of a page: its state, its modules, the boxes of its views."""
    body = context.get("body", "")
    scripts = context["script_files"]
    embedded = [script for script in scripts if script.attributes.get("type") == STATE_TYPE]
    views = [json.loads(found)["model_id"] for found in VIEW.findall(body)]
    models: dict[str, dict] = {}
    for script in embedded:
        scripts.remove(script)
        models |= json.loads(script.attributes["body"])["state"]
    if not views:
        return
    for name in views:
        if name not in models:
            logger.warning("a widget has no state; is its notebook executed?", location=pagename)

    language = context["language"]
    translate(models, language)
    models = reachable(lighten_models(models), views)
    modules = dict(filter(None, (take_module(model["state"]) for model in models.values())))
    for key, files in modules.items():
        _write_module(app, key, files)
        app.add_js_file(f"widgets/{key}.js", type=MODULE_TYPE, **{"data-key": key})
        if "css" in files:
            app.add_css_file(f"widgets/{key}.css", priority=900)  # after the style sheet of the course

    names = short_names(models)
    state = json.dumps({"version_major": 2, "version_minor": 0, "state": models}, separators=(",", ":"))
    app.add_js_file(None, type=STATE_TYPE, body=_inline(rename(state, names)))
    said = strings("host", language=language)["host"]
    app.add_js_file(None, type=STRINGS_TYPE, body=_inline(json.dumps(said)))

    def boxed(found):
        name = json.loads(found[1])["model_id"]
        return box(rename(found[0], names), reserve(models, name), said["waiting"])

    context["body"] = VIEW.sub(boxed, body)


def _inline(data: str) -> str:
    """JSON that may stand in a script element."""
    return data.replace("</", r"<\/")


def _write_module(app, key: str, files: dict[str, str]) -> None:
    """Store a module's files where Sphinx collects a page's assets."""
    folder = Path(app.outdir, "_static", "widgets")
    folder.mkdir(parents=True, exist_ok=True)
    for ending, text in files.items():
        (folder / f"{key}.{ending}").write_text(text, "utf8")


def drop_unused_modules(app, exception):
    """Delete the modules that an earlier build stored and no page names any more."""
    if exception or app.builder.format != "html":
        return
    pages = "".join(page.read_text("utf8") for page in Path(app.outdir).rglob("*.html"))
    for file in Path(app.outdir, "_static", "widgets").glob("*"):
        key = file.name.split(".")[0]
        if f"widgets/{key}.js" not in pages:
            file.unlink()


def setup(app):
    """Connect the rewriting, after MyST-NB has added a page's widget state."""
    app.connect("html-page-context", prepare_widgets, priority=900)
    app.connect("build-finished", drop_unused_modules)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
