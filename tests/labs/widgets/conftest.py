"""What the widget tests share: pages that show widgets, and their modules without a browser."""

import json
import math
import re
from pathlib import Path

import pydata_sphinx_theme
import pytest
import quickjs
import sphinx_book_theme
from ipywidgets.embed import dependency_state, embed_data

from labs.widgets.shared import modules

ASSETS = Path(__file__).parents[3] / "book" / "assets"
HOST = ASSETS / "labs-host.js"

#: The theme's own style sheets and the book's, because a widget must look right under them.
THEME = (
    *(
        Path(package.__file__).parent / "theme" / name / "static" / "styles" / f"{name.replace('_', '-')}.css"
        for package, name in (
            (pydata_sphinx_theme, "pydata_sphinx_theme"),
            (sphinx_book_theme, "sphinx_book_theme"),
        )
    ),
    ASSETS / "labs.css",
)

#: A column of text as wide as the book's: 676 px in a page of 1280 px, 326 px in one of 360 px.
COLUMN = """main {
  box-sizing: content-box;
  width: min(676px, 100vw - 34px);
  margin: 0 auto;
}"""

PAGE = """<!doctype html>
<html lang="en" data-theme="{theme}">
<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>widgets</title>
{sheets}<style>{column}</style>
<main class="bd-article"><h1>Widgets</h1>
<script type="application/vnd.jupyter.widget-state+json">{state}</script>
{views}
</main><script src="labs-host.js"></script>
</html>
"""

VIEW = """<div class="labs-widget" style="--labs-reserve-wide:{}rem;--labs-reserve-narrow:{}rem">
<script type="application/vnd.jupyter.widget-view+json">{}</script></div>
"""


def inline(data) -> str:
    """JSON that may stand in a script element."""
    return json.dumps(data).replace("</", "<\\/")


def page_of(widgets, theme="light", folded=False) -> str:
    """A page that shows the widgets from their state, as the built book does, perhaps in a closed fold."""
    widgets = list(widgets)
    # by default the state of every widget that the process ever made is embedded
    data = embed_data(views=widgets, state=dependency_state(widgets, drop_defaults=False))
    before, after = ("<details id=fold><summary>Open</summary>", "</details>") if folded else ("", "")
    return PAGE.format(
        theme=theme,
        sheets="".join(f'<link rel="stylesheet" href="{sheet.name}">' for sheet in THEME),
        column=COLUMN,
        state=inline(data["manager_state"]),
        views=before
        + "".join(
            VIEW.format(*widget.reserve, inline(view))
            for widget, view in zip(widgets, data["view_specs"], strict=True)
        )
        + after,
    )


@pytest.fixture
def show(tmp_path, serve, open_page):
    """A function `show(*widgets, theme="light", folded=False, **page)`: a page with their views, all drawn.

    A widget that is given twice gets two views. `page` goes to `open_page`.
    """

    def show(*widgets, theme="light", folded=False, **page):
        (tmp_path / "page.html").write_text(page_of(widgets, theme, folded), "utf8")
        for file in (HOST, *THEME):
            (tmp_path / file.name).write_bytes(file.read_bytes())
        opened = open_page(serve(tmp_path) + "page.html", shared=True, **page)
        opened.wait_for_selector("html[data-labs-widgets=ready]")
        return opened

    return show


def run_module(entry: str):
    """A function `call(name, *arguments)` that calls a function of a module or of what it imports."""
    text = re.sub(r"^export (default )?", _unexported, modules.script(entry), flags=re.MULTILINE)
    context = quickjs.Context()
    context.eval(text)
    context.eval("var call = (name, text) => JSON.stringify(eval(name)(...JSON.parse(text)))")
    call = context.get("call")
    return lambda name, *arguments: json.loads(call(name, json.dumps(arguments)))


def _unexported(found: re.Match) -> str:
    """The same declaration in a script that is no module."""
    return "const widget = " if found[1] else ""


@pytest.fixture(scope="session")
def javascript():
    """A function `javascript(entry)` that returns `call(name, *arguments)` for the functions of a module."""
    return run_module


#: How arithmetic is written for a reader, and how Python writes it.
AS_PYTHON = ((r"√(\d[\d.]*)", r"sqrt(\1)"), ("√", "sqrt"), ("·", "*"), (r"\^", "**"))
NAMES = {name: getattr(math, name) for name in ("exp", "log", "sqrt", "cos", "sin", "inf")} | {"max": max}


def number_of(text: str) -> float:
    """The number that a text of arithmetic, as a widget writes it, gives."""
    for written, python in AS_PYTHON:
        text = re.sub(written, python, text)
    assert not set(re.findall(r"[a-z_]{2,}", text)) - NAMES.keys(), f"more than numbers in {text}"
    return eval(text, {"__builtins__": {}}, NAMES)  # a text of numbers and the names above


@pytest.fixture(scope="session")
def arithmetic():
    """The function `arithmetic(text)`: the number that a text of arithmetic gives."""
    return number_of
