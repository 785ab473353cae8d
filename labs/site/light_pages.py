"""Sphinx extension: each page loads what it uses, and nothing else.

Jupyter Book puts the assets of all its extensions on every page. Here the page loses those that it does not
use, and the theme's templates lose theirs (`templates/`).
"""

import re
from pathlib import Path, PurePosixPath

from markupsafe import Markup

from labs.course import palette

#: How a page looks that has something to fold with buttons.
FOLDS = r'class="[^"]*(\btoggle\b|\badmonition\b[^"]*\bdropdown\b)'
NEVER = r"(?!)"

#: Assets that a page keeps only if its text matches: file name, or beginning of an inline script -> pattern.
USED_BY = {
    "design-tabs.js": r'class="[^"]*\bsd-tab-set\b',
    "sphinx-design.min.css": r'class="[^"]*\bsd-',
    "togglebutton.js": FOLDS,
    "togglebutton.css": FOLDS,
    "let toggle": FOLDS,
    "var togglebutton": FOLDS,
    "clipboard.min.js": r'class="highlight"',
    "copybutton.js": r'class="highlight"',
    "copybutton.css": r'class="highlight"',
    "DOCUMENTATION_OPTIONS.pagename =": NEVER,  # for a choice between versions of the book
    "DOCUMENTATION_OPTIONS.search_as_you_type = false": NEVER,  # as if it were not said
}


def keep_used_assets(_app, _pagename, _template, context, _doctree):
    """Take the scripts and style sheets that the page does not use, and repeated ones, off its lists."""
    body = context.get("body", "")
    for assets in (context["script_files"], context["css_files"]):
        seen = set()
        kept = []
        for asset in assets:
            identity = (asset.filename, asset.attributes.get("body"))
            if identity not in seen and is_used(asset, body):
                kept.append(asset)
            seen.add(identity)
        assets[:] = kept


def is_used(asset, body: str) -> bool:
    """Whether the page with this text uses the script or style sheet."""
    name = PurePosixPath(asset.filename).name if asset.filename else asset.attributes.get("body", "")
    return all(re.search(pattern, body) for begin, pattern in USED_BY.items() if name.startswith(begin))


def without_scripts(tags: str, *names: str) -> Markup:
    """The HTML `tags` without the scripts of these file names."""
    for name in names:
        tags = re.sub(rf'[ \t]*<script[^>]*/{re.escape(name)}[?"][^>]*></script>\n?', "", tags)
    return Markup(tags)


def without_inline_script(tags: str, text: str) -> Markup:
    """The HTML `tags` without the inline script that contains `text`.

    Raises: RuntimeError unless there is exactly one: the theme has changed.
    """
    script = rf"[ \t]*<script(?:(?! src=)[^>])*>(?:(?!</script>).)*{re.escape(text)}.*?</script>\n?"
    tags, count = re.subn(script, "", tags, flags=re.S)
    if count != 1:
        raise RuntimeError(f"expected the theme to have one inline script with {text!r}, found {count}")
    return Markup(tags)


def add_templates(app, _config):
    """Let the templates beside this file go before the theme's."""
    app.config.templates_path.append(str(Path(__file__).parent / "templates"))


def prepare(app):
    """Give the templates their filters, and write the palette where Sphinx collects a page's assets."""
    if app.builder.format != "html":
        return
    filters = app.builder.templates.environment.filters
    filters |= {"without_scripts": without_scripts, "without_inline_script": without_inline_script}
    static = Path(app.outdir, "_static")
    static.mkdir(parents=True, exist_ok=True)
    (static / "labs-palette.css").write_text(palette.css(), "utf8")


def drop_unused_images(app, exception):
    """Delete the pictures that an earlier build stored and no page shows any more."""
    if exception or app.builder.format != "html":
        return
    used = {name for _pages, name in app.env.images.values()}
    for file in Path(app.outdir, "_images").glob("*"):
        if file.name not in used:
            file.unlink()


def setup(app):
    """Connect it all."""
    app.add_css_file("labs-palette.css", priority=400)
    app.connect("config-inited", add_templates)
    app.connect("builder-inited", prepare)
    app.connect("build-finished", drop_unused_images)
    # after everyone who adds an asset to a page
    app.connect("html-page-context", keep_used_assets, priority=950)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
