"""Sphinx extension: the theme's icon font, cut down to the icons in use and put inside the style sheet.

The theme ships Font Awesome with some two thousand icons. The book shows about thirty.
"""

import base64
import io
import re
from pathlib import Path

import pydata_sphinx_theme
from fontTools import subset
from sphinx.util import logging

logger = logging.getLogger(__name__)

#: Read from the installed theme: a build that writes nothing copies no assets, and ours are cut already.
THEME = Path(pydata_sphinx_theme.__file__).parent / "theme/pydata_sphinx_theme/static"
STYLE_SHEET = "styles/pydata-sphinx-theme.css"
FONTS = ("fa-solid-900", "fa-regular-400", "fa-brands-400")

# .fa-moon:before,.fa-night:before{content:"\f186"}
ICON_RULE = re.compile(r'((?:\.fa-[a-z0-9-]+:before,?)+)\{content:"(?:\\([0-9a-f]+)|(.))"\}')
PRIVATE_USE = range(0xE000, 0xF900)  # where icon fonts keep their pictures


def names_in(text: str) -> set[str]:
    """The Font Awesome class names in HTML, CSS or JavaScript."""
    return set(re.findall(r"\bfa-[a-z0-9-]+", text))


def characters_in(css: str) -> set[int]:
    """The icons that a style sheet shows by character, written as such or as an escape."""
    written = {ord(character) for character in css}
    escaped = {int(code, 16) for code in re.findall(r"\\([0-9a-f]{4})\b", css)}
    return {code for code in written | escaped if code in PRIVATE_USE}


def cut_style_sheet(css: str, used: set[str]) -> tuple[str, set[int]]:
    """The theme's style sheet without the rules of unused icons, and the characters it still shows."""

    def keep(rule):
        return rule[0] if used & names_in(rule[1]) else ""

    cut = ICON_RULE.sub(keep, css)
    return cut, characters_in(cut)


def cut_font(path: Path, characters: set[int]) -> bytes | None:
    """The font with these characters only, as WOFF2; None if it has none of them."""
    options = subset.Options()
    options.flavor = "woff2"
    options.hinting = False
    options.layout_features = []
    file = io.BytesIO()
    with subset.load_font(str(path), options) as font:
        cutter = subset.Subsetter(options)
        cutter.populate(unicodes=characters)
        cutter.subset(font)
        if not font.getBestCmap():
            return None
        subset.save_font(font, file, options)
    return file.getvalue()


def embed_font(css: str, name: str, font: bytes | None) -> str:
    """Let the style sheet's font `name` be these bytes, or a font that is nowhere if there are none."""
    source = "local(none)"
    if font:
        source = f'url(data:font/woff2;base64,{base64.b64encode(font).decode()}) format("woff2")'
    files = rf'url\([^)]*/{name}\.woff2\) format\("woff2"\)(,url\([^)]*/{name}\.ttf\) format\("truetype"\))?'
    css, count = re.subn(files, lambda _: source, css)
    if count == 0:
        raise RuntimeError(f"expected the theme's style sheet to load {name}.woff2, found no such rule")
    return css


def cut_icons(app, exception):
    """Replace the site's icon fonts by the few icons that its pages use."""
    if exception or app.builder.format != "html":
        return
    static = Path(app.outdir, "_static")
    texts = [page.read_text("utf8") for page in Path(app.outdir).rglob("*.html")]
    texts.append((THEME / "scripts/pydata-sphinx-theme.js").read_text("utf8"))
    used = set().union(*map(names_in, texts))

    css, characters = cut_style_sheet((THEME / STYLE_SHEET).read_text("utf8"), used)
    for sheet in static.rglob("*.css"):
        if sheet != static / STYLE_SHEET:
            characters |= characters_in(sheet.read_text("utf8"))
    for name in FONTS:
        font = cut_font(THEME / f"vendor/fontawesome/webfonts/{name}.woff2", characters)
        css = embed_font(css, name, font)
    (static / STYLE_SHEET).write_text(css, "utf8")
    for unused in ("vendor/fontawesome/webfonts/*", "scripts/fontawesome.js*", "**/*.map"):
        for file in static.glob(unused):
            file.unlink()


def setup(app):
    """Cut the icons once the pages are written."""
    app.connect("build-finished", cut_icons)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
