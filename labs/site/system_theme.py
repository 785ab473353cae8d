"""Sphinx extension: pages are light or dark as the reader's system is, even where no script runs.

The theme colours links, code and boxes by `<html data-theme="light">` or `"dark"`, which a script sets. As
it is served, a page says "auto", for which the theme has no rules. Here every rule for one of the two themes
gets a twin for "auto", behind the media query of that theme.
"""

import re
from pathlib import Path

#: A style rule whose selector names a theme; before it ends a block, a statement or a comment.
RULE = re.compile(r"""[^{};/]*\[data-theme=["']?(?:light|dark)["']?\][^{};/]*\{[^{}]*\}""")


def follow_system(css: str) -> str:
    """The style sheet with a twin for "auto" beside each rule for a theme."""

    def with_twins(rule: re.Match) -> str:
        twins = [rule[0]]
        for theme in ("light", "dark"):
            twin, count = re.subn(rf"""\[data-theme=["']?{theme}["']?\]""", "[data-theme=auto]", rule[0])
            if count:
                twins.append(f"@media (prefers-color-scheme:{theme}){{{twin.strip()}}}")
        return "".join(twins)

    return css if "[data-theme=auto]" in css else RULE.sub(with_twins, css)


def add_twins(app, exception):
    """Rewrite the style sheets of the site; one that an earlier build has rewritten stays as it is."""
    if exception or app.builder.format != "html":
        return
    for sheet in Path(app.outdir, "_static").rglob("*.css"):
        css = sheet.read_text("utf8")
        if (followed := follow_system(css)) != css:
            sheet.write_text(followed, "utf8")


def setup(app):
    """Connect it, after the theme and the cut of its icons have written their style sheets."""
    app.connect("build-finished", add_twins, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
