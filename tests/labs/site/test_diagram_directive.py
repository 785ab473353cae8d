"""The picture in a page: links to the chapters that exist, and the same thing in words."""

import re

import pytest
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace

from labs.course import diagram


@pytest.fixture
def page(tmp_path):
    """The HTML of a page with the picture, in a book that has chapter 1 and no other."""
    book = tmp_path / "book"
    book.mkdir()
    (tmp_path / "conf.py").write_text(
        'extensions = ["labs.site.diagram_directive"]\nroot_doc = "book/index"\n'
    )
    (book / "index.rst").write_text("Index\n=====\n\n.. block-diagram::\n\n.. toctree::\n\n   01_shapes\n")
    (book / "01_shapes.rst").write_text("Shapes\n======\n")
    folders = [tmp_path, tmp_path, tmp_path / "out", tmp_path / "trees"]
    with docutils_namespace():
        Sphinx(*folders, "html", status=None, warningiserror=True).build()
    return (tmp_path / "out/book/index.html").read_text("utf8")


def test_boxes_link_to_chapters_that_exist(page):
    assert re.findall(r'<a href="([^"]*)" aria-label="([^"]*)"', page) == [
        ("01_shapes.html", "tokens: open its chapter"),
        ("01_shapes.html", "embedding: open its chapter"),
    ]


def test_the_words_stand_below_the_picture(page):
    fold = page[page.index("<details>") : page.index("</details>")]
    assert page.index("</svg>") < page.index("<details>")
    assert re.findall("<li>(.*?)</li>", fold) == diagram.text()
