"""The look of the course, in a real browser, on a small page made by hand."""

from pathlib import Path

import pytest

SHEET = Path(__file__).parents[3] / "book" / "assets" / "labs.css"

PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>page</title><link rel="stylesheet" href="labs.css">
<style>.labs-math-scroll, pre {{ width: 300px; overflow-x: auto }}</style>
{body}
"""


@pytest.fixture
def show(tmp_path, open_page):
    """A function `show(body)` that returns a page with the style sheet."""

    def show(body):
        (tmp_path / "labs.css").write_bytes(SHEET.read_bytes())
        (tmp_path / "page.html").write_text(PAGE.format(body=body), "utf8")
        return open_page((tmp_path / "page.html").as_uri())

    return show


@pytest.mark.parametrize(
    "place", ['<div class="labs-math-scroll">{}</div>', '<div class="highlight"><pre>{}</pre></div>']
)
def test_a_line_that_goes_on_behind_the_edge_fades_there(show, place):
    body = "".join(place.format(f'<div style="width: {width}px">x</div>') for width in (200, 600))
    page = show(body)
    fades = """(name) => [...document.querySelectorAll(name)].map((el) => getComputedStyle(el).maskImage)"""
    short, long = page.evaluate(fades, ".labs-math-scroll, pre")
    assert short == "none"
    assert long.startswith("linear-gradient")
    page.evaluate("[...document.querySelectorAll('.labs-math-scroll, pre')][1].scrollLeft = 300")
    page.wait_for_function(
        "getComputedStyle([...document.querySelectorAll('.labs-math-scroll, pre')][1]).maskImage === 'none'"
    )
