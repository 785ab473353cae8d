"""Every kind of fault is told, and of texts that look alike only the first."""

import pytest

from tests import axe

PALE = '<p style="color: #ccc; background: #fff">pale</p>'
LINK = '<p>more text than that of the link, and a <a href="#">link</a></p>'


@pytest.mark.parametrize(
    ("article", "found"),
    [
        ('<img src="data:,">', ["image-alt"]),
        (3 * PALE, ["color-contrast"]),
        (PALE + PALE.replace("<p", "<p class=other"), ["color-contrast", "color-contrast"]),
        (PALE + PALE.replace("<p", "<p aria-disabled=true"), ["color-contrast"]),
        (2 * LINK, ["link-in-text-block"]),
    ],
)
def test_violations(serve, open_page, tmp_path, article, found):
    style = "<style>a { color: #444; text-decoration: none; }</style>"
    body = f"<main><article><h1>title</h1>{article}</article></main>"
    text = f'<!doctype html><html lang="en"><title>title</title>{style}{body}'
    (tmp_path / "page.html").write_text(text, "utf8")
    page = open_page(serve(tmp_path) + "page.html")
    assert [line.split(":")[0] for line in axe.violations(page)] == found
