"""Pages are light or dark as the system is, even where no script runs."""

import pytest

from labs.site.system_theme import follow_system

DARK = "@media (prefers-color-scheme:dark)"
LIGHT = "@media (prefers-color-scheme:light)"


@pytest.mark.parametrize(
    ("css", "twins"),
    [
        ("html[data-theme=dark]{color:red}", DARK + "{html[data-theme=auto]{color:red}}"),
        (
            """html[data-theme="light"] .a, [data-theme='light'] .b { color: red }""",
            LIGHT + "{html[data-theme=auto] .a, [data-theme=auto] .b { color: red }}",
        ),
        (
            "html[data-theme=dark],html[data-theme=light]{color:red}",
            LIGHT
            + "{html[data-theme=dark],html[data-theme=auto]{color:red}}"
            + DARK
            + "{html[data-theme=auto],html[data-theme=light]{color:red}}",
        ),
    ],
)
def test_a_rule_for_a_theme_gets_a_twin_for_the_system(css, twins):
    assert follow_system(css) == css + twins


def test_what_stands_around_a_rule_is_not_repeated():
    rule = "html[data-theme=dark] a{color:red}"
    twin = DARK + "{html[data-theme=auto] a{color:red}}"
    before = '@charset "UTF-8"; b{c:d}/* one; two */\n'
    assert follow_system(before + rule + "e{f:g}") == before + rule + twin + "e{f:g}"
    assert follow_system("@media print{" + rule + "}") == "@media print{" + rule + twin + "}"


def test_other_rules_stay_as_they_are():
    css = 'html[data-theme]{a:b}a{content:"[data-theme=dark]"}html:not([data-theme]){c:d}'
    assert follow_system(css) == css


def test_a_style_sheet_is_rewritten_once():
    once = follow_system("html[data-theme=dark]{color:red}")
    assert follow_system(once) == once


# In a built page

COLOURS = """(selectors) => selectors.map((selector) => {
  const style = getComputedStyle(document.querySelector(selector));
  return [selector, style.color, style.backgroundColor];
})"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    ("name", "selectors"),
    [("index", ["body", "article a", "summary"]), ("notebook", [".highlight", ".highlight .kn"])],
)
def test_a_page_looks_the_same_without_javascript(built_book, open_page, problems, name, selectors, scheme):
    address = (built_book / f"book/{name}.html").as_uri()
    colours = [
        open_page(address, color_scheme=scheme, java_script_enabled=enabled).evaluate(COLOURS, selectors)
        for enabled in (True, False)
    ]
    assert colours[0] == colours[1]
    problems.clear()  # scripts that were fetched in advance for nothing
