"""Sphinx extension: mathematics typeset while the book is built, so that a page needs no script for it.

MathJax 3 (installed from the wheel sphinx-mathjax-offline) runs in QuickJS and draws each formula as SVG. The
SVG is hidden from screen readers; MathML, hidden from view, speaks in its place. The outlines of the letters
are stored once per page, and every formula refers to them.

Sizes are in ex, the x-height of the text around the formula, so formulas fit whatever font the reader has.
Colours are `currentColor`: they follow dark pages, print, and the role classes of `\\class{labs-role-q}{Q}`.

The class names are a contract with the page's script and style sheet: `labs-math` on each formula,
`labs-math-display` on the line of a displayed one, `labs-math-scroll` on the box that scrolls when it is too
wide.
"""

import html
import json
import re
import xml.etree.ElementTree as ET
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import NamedTuple

import quickjs
from docutils import nodes
from sphinx.locale import _
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

from labs.course import palette

logger = logging.getLogger(__name__)

#: The files of MathJax that turn TeX into SVG, in the order in which they are loaded.
MATHJAX_FILES = (
    "loader.js",
    "core.js",
    "adaptors/liteDOM.js",
    "input/tex-full.js",
    "output/svg.js",
    "output/svg/fonts/tex.js",
)

# MathJax looks for a page to typeset when it starts; it is told to do nothing.
BEFORE_MATHJAX = """
var global = globalThis, window = globalThis;
var MathJax = { loader: { load: [] }, startup: { typeset: false, ready() {} } };
"""

GLYPH = "labs-glyph-"
XLINK_HREF = "{http://www.w3.org/1999/xlink}href"


class TexError(ValueError):
    """TeX that cannot be typeset; the message is MathJax's own."""


class Formula(NamedTuple):
    """One formula, ready for the page; the SVG refers to glyphs by `#labs-glyph-NAME`."""

    svg: str
    mathml: str


class Typesetter:
    """MathJax in QuickJS. Every formula is typeset once, every glyph is drawn once."""

    def __init__(self):
        self.glyphs: dict[str, str] = {}  # name -> outline, an SVG path
        self._formulas: dict[tuple[str, bool], Formula] = {}
        context = quickjs.Context()
        context.eval(BEFORE_MATHJAX)
        for name in MATHJAX_FILES:
            context.eval(_mathjax_file(name))
        context.eval((Path(__file__).parent / "mathjax.js").read_text("utf8"))
        self._javascript = context.get("typeset")

    def __call__(self, tex: str, *, display: bool) -> Formula:
        """Typeset one formula.

        Args:
            tex: the formula, without dollar signs.
            display: a displayed formula, with large operators, rather than one inside a line.

        Raises: TexError if MathJax refuses it.
        """
        key = (tex, display)
        if key not in self._formulas:
            answer = json.loads(self._javascript(tex, display))
            if "error" in answer:
                raise TexError(answer["error"])
            for name, outline in re.findall(
                r'<path id="MJX-[^"]*?TEX-([^"]+)" d="([^"]*)"', answer["glyphs"]
            ):
                self.glyphs[name] = outline
            self._formulas[key] = Formula(_tidy_svg(answer["svg"]), _tidy_mathml(answer["mathml"]))
        return self._formulas[key]

    def glyph_table(self, page: str) -> str:
        """The outlines that the formulas of `page`, a piece of HTML, refer to; empty if there are none."""
        used = sorted(set(re.findall(rf'href="#{GLYPH}([^"]+)"', page)))
        if not used:
            return ""
        paths = "".join(f'<path id="{GLYPH}{name}" d="{self.glyphs[name]}"/>' for name in used)
        start = '<svg class="labs-math-glyphs" aria-hidden="true" width="0" height="0">'
        return f"{start}<defs>{paths}</defs></svg>"


def _mathjax_file(name: str) -> str:
    """The text of one of MathJax's files."""
    try:
        installed = files("sphinx-mathjax-offline") or ()
    except PackageNotFoundError:
        installed = ()
    core = next((file for file in installed if file.name == "core.js"), None)
    if core is None:
        raise RuntimeError(
            "MathJax is missing: expected the package sphinx-mathjax-offline, found none of its files; "
            "run: python -m pip install -r requirements.txt"
        )
    return (Path(core.locate()).parent / name).read_text("utf8")


def _tidy_svg(text: str) -> str:
    """Leave out what only MathJax itself would read, and point each glyph at the page's table."""
    ET.register_namespace("", "http://www.w3.org/2000/svg")
    svg = ET.fromstring(text)
    for element in svg.iter():
        element.tag = element.tag.split("}")[-1]
        # data-line and data-frame stay: the style sheet draws the lines of tables by them
        kept = {
            name: value
            for name, value in element.attrib.items()
            if name not in ("id", "role", "focusable", XLINK_HREF)
            and (not name.startswith("data-") or name in ("data-line", "data-frame", "data-table"))
        }
        if XLINK_HREF in element.attrib:
            target = element.attrib[XLINK_HREF]
            kept["href"] = re.sub(r"^#MJX-.*?TEX-", f"#{GLYPH}", target)
        element.attrib.clear()
        element.attrib.update(kept)
    _unwrap(svg)
    svg.set("aria-hidden", "true")
    return ET.tostring(svg, encoding="unicode")


def _unwrap(parent: ET.Element) -> None:
    """Replace each group without attributes by what is in it: MathJax nests several around every letter."""
    children = []
    for child in parent:
        _unwrap(child)
        bare = child.tag == "g" and not child.attrib
        children.extend(child if bare else [child])
    parent[:] = children


def _tidy_mathml(text: str) -> str:
    """Leave out the line breaks and MathJax's own attributes."""
    text = re.sub(r"\n *", "", text)
    return re.sub(r' (?:data-mjx-[a-z-]+|class|id|xmlns)="[^"]*"', "", text)


def breaks_lines(tex: str) -> bool:
    r"""Whether `tex` has a `\\` outside every environment and group, where MathJax would ignore it."""
    depth = 0
    for token in re.findall(r"\\begin\b|\\end\b|\\\\|\\.|[{}]", tex):
        if token == r"\\" and depth == 0:
            return True
        depth += {r"\begin": 1, "{": 1, r"\end": -1, "}": -1}.get(token, 0)
    return False


# Sphinx


def visit_math(translator, node):
    """Write a formula inside a line."""
    _refuse_in_title(node)
    start = translator.starttag(node, "span", "", CLASS="labs-math notranslate nohighlight")
    translator.body.append(start + _formula_html(translator, node, node.astext(), display=False) + "</span>")
    raise nodes.SkipNode


def visit_math_block(translator, node):
    """Write a displayed formula, with its number and a link to it where it has one."""
    tex = node.astext().strip()
    if breaks_lines(tex):
        tex = rf"\begin{{split}}{tex}\end{{split}}"
    formula = _formula_html(translator, node, tex, display=True)
    translator.body.append(
        translator.starttag(node, "div", CLASS="labs-math-display notranslate nohighlight")
    )
    translator.body.append(f'<div class="labs-math labs-math-scroll">{formula}</div>')
    if node["number"]:
        number = get_node_equation_number(translator, node)
        translator.body.append(f'<span class="labs-math-number">({number})')
        translator.add_permalink_ref(node, _("Link to this equation"))
        translator.body.append("</span>")
    translator.body.append("</div>\n")
    raise nodes.SkipNode


def _formula_html(translator, node, tex: str, *, display: bool) -> str:
    """The formula as SVG and MathML; if the TeX is wrong, a warning and the TeX itself."""
    try:
        formula = _typesetter(translator.builder.app)(tex, display=display)
    except TexError as error:
        logger.warning("mathematics: %s in: %s", error, tex, location=node)
        return f"<code>{html.escape(tex)}</code>"
    return f'{formula.svg}<span class="labs-math-mathml">{formula.mathml}</span>'


def _refuse_in_title(node: nodes.Node) -> None:
    """Warn of mathematics in a page's title: other pages show the title too, without this page's glyphs."""
    title = node.parent
    if isinstance(title, nodes.title) and isinstance(title.parent.parent, nodes.document):
        logger.warning("mathematics in a page's title: write the title in words", location=title)


def _typesetter(app) -> Typesetter:
    """The build's one typesetter, started with the first formula: a build that writes no page needs none."""
    if not hasattr(app, "labs_typesetter"):
        app.labs_typesetter = Typesetter()
    return app.labs_typesetter


def add_glyph_table(app, _pagename, _template, context, _doctree):
    """Put the outlines of a page's glyphs before its text."""
    body = context.get("body", "")
    if f'href="#{GLYPH}' in body:
        context["body"] = _typesetter(app).glyph_table(body) + body


def name_environments(_app, doctree):
    """Give each unlabelled amsmath environment a name that is the same in every build.

    MyST gives it a random one.
    """
    environments = [node for node in doctree.findall(nodes.math_block) if "amsmath" in node["classes"]]
    for index, block in enumerate(block for block in environments if block["ids"]):
        random_id, stable_id = block["ids"][0], f"environment-{index}"
        block["ids"] = [stable_id]
        for target in doctree.findall(nodes.target):
            if target.get("refid") == random_id:
                target["refid"] = stable_id


def style_sheet() -> str:
    """The CSS without which formulas would not read right, and a class for the colour of each role."""
    rules = (Path(__file__).parent / "math.css").read_text("utf8")
    return rules + "".join(
        f".labs-role-{role} {{ color: var(--labs-role-{role}); }}\n" for role in palette.ROLES
    )


def write_style_sheet(app):
    """Write the style sheet where Sphinx collects a page's assets."""
    if app.builder.format == "html":
        static = Path(app.outdir, "_static")
        static.mkdir(parents=True, exist_ok=True)
        (static / "labs-math.css").write_text(style_sheet(), "utf8")


def setup(app):
    """Register the renderer `labs_math_svg`; `html_math_renderer` in the configuration chooses it."""
    app.add_html_math_renderer("labs_math_svg", (visit_math, None), (visit_math_block, None))
    app.add_css_file("labs-math.css")
    app.connect("builder-inited", write_style_sheet)
    app.connect("doctree-read", name_environments)
    app.connect("html-page-context", add_glyph_table)
    return {"parallel_read_safe": True, "parallel_write_safe": False}
