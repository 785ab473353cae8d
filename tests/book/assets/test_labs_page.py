"""The script at the top of every page, in a real browser, on a small page made by hand."""

from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "book" / "assets" / "labs-page.js"

PAGE = """<!doctype html>
<html lang="en" data-theme="auto"><meta charset="utf-8"><title>page</title>
<script src="labs-page.js"></script>
<details id="shut"><summary>shut</summary>inside</details>
<details id="open" open><summary>open</summary>inside</details>
"""

THEME = "[document.documentElement.dataset.mode, document.documentElement.dataset.theme]"
OPEN = "[...document.querySelectorAll('details')].map((fold) => fold.open)"


@pytest.fixture
def address(tmp_path, serve):
    """The address of a page that has the script in its head."""
    (tmp_path / "labs-page.js").write_bytes(SCRIPT.read_bytes())
    (tmp_path / "page.html").write_text(PAGE, "utf8")
    frame = '<!doctype html><iframe sandbox="allow-scripts" src="page.html"></iframe>'
    (tmp_path / "frame.html").write_text(frame, "utf8")
    return serve(tmp_path)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_follows_the_system(address, open_page, scheme):
    assert open_page(address + "page.html", color_scheme=scheme).evaluate(THEME) == ["auto", scheme]


@pytest.mark.parametrize(
    ("mode", "theme", "expected"),
    [
        ("light", "light", "light"),
        ("dark", "dark", "dark"),
        ("auto", "light", "dark"),  # the system was light when the theme was stored
    ],
)
def test_a_page_is_as_its_reader_has_chosen(address, open_page, mode, theme, expected):
    page = open_page(address + "page.html", color_scheme="dark")
    page.evaluate("(chosen) => Object.assign(localStorage, chosen)", {"mode": mode, "theme": theme})
    page.reload()
    assert page.evaluate(THEME) == [mode, expected]


def test_a_frame_without_storage_gets_one_that_forgets(address, open_page):
    # problems, the errors of the page, must stay empty
    frame = open_page(address + "frame.html", color_scheme="dark").frames[1]
    frame.wait_for_load_state()
    assert frame.evaluate(THEME) == ["auto", "dark"]
    for name in ("localStorage", "sessionStorage"):
        assert frame.evaluate(f"{name}.getItem('a')") is None
        assert frame.evaluate(f"({name}.setItem('a', 1), {name}.getItem('a'))") == "1"
        assert frame.evaluate(f"({name}.removeItem('a'), {name}.getItem('a'))") is None


def test_storage_that_works_is_left_alone(address, open_page):
    page = open_page(address + "page.html")
    assert page.evaluate("[localStorage, sessionStorage].every((storage) => storage instanceof Storage)")


def test_a_dark_page_prints_light(address, open_page):
    page = open_page(address + "page.html", color_scheme="dark")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(THEME) == ["auto", "light"]
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(THEME) == ["auto", "dark"]


@pytest.mark.parametrize("styled", [True, False])
def test_print_opens_folds_where_a_style_sheet_cannot(address, open_page, styled):
    page = open_page("about:blank")
    page.add_init_script(f"CSS.supports = () => {str(styled).lower()}")
    page.goto(address + "page.html")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(OPEN) == [not styled, True]
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(OPEN) == [False, True]
