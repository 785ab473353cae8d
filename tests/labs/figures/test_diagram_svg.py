"""The picture shows what its data says, with words beside it."""

import re
import xml.etree.ElementTree as ET

import pytest

from labs.course import diagram, palette
from labs.figures import diagram_svg

SIZES = {"B": 2, "T": 5, "D": 8, "V": 9}
SVG = "{http://www.w3.org/2000/svg}"


def drawn(links=None):
    markup = diagram_svg.svg(SIZES, links, label="The model")
    return ET.fromstring(markup.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1))


def test_a_block_has_nine_edges_and_two_of_them_skip():
    assert len(diagram.BLOCK_EDGES) == 9
    skips = [(edge.source, edge.target) for edge in diagram.BLOCK_EDGES if diagram_svg._is_skip(edge)]
    assert skips == [("embedding", "attn_add"), ("attn_add", "ffn_add")]


def test_only_pages_that_exist_are_linked_and_links_have_names():
    assert not list(drawn().iter(f"{SVG}a"))
    links = list(drawn({"01_shapes": "01_shapes.html"}).iter(f"{SVG}a"))
    assert [link.get("href") for link in links] == ["01_shapes.html"] * 2
    assert [link.get("aria-label") for link in links] == [
        "tokens: open its chapter",
        "embedding: open its chapter",
    ]


def test_nothing_is_drawn_outside_the_picture():
    picture = drawn()
    width, height = (float(picture.get(side)) for side in ("width", "height"))
    for path in picture.iter(f"{SVG}path"):
        for x, y in re.findall(r"[ML]([\d.]+) ([\d.]+)", path.get("d")):
            assert 0 <= float(x) <= width
            assert 0 <= float(y) <= height
    for box in picture.iter(f"{SVG}rect"):
        assert float(box.get("x")) + float(box.get("width")) <= width
        assert float(box.get("y")) + float(box.get("height")) <= height


def test_a_missing_size_is_refused():
    with pytest.raises(ValueError, match="missing: T, V"):
        diagram_svg.svg({"B": 2, "D": 8}, label="The model")


# The nine edges and the code


def test_a_notebook_shows_the_picture_with_its_words():
    shown = diagram_svg.show(label="The <model>")
    markup = shown._repr_html_()
    assert repr(shown) == "Figure: The <model>"
    assert '<svg class="labs-diagram" role="img" aria-label="The &lt;model&gt;"' in markup
    assert re.findall("<li>(.*?)</li>", markup) == diagram.text()
    assert markup.index("</svg>") < markup.index("<details>")
    assert "[2,5,8]" in markup


def test_the_picture_is_painted_where_the_book_is_missing():
    """Without CSS a box would be a black rectangle: everything says itself how it is painted."""
    for element in drawn().iter():
        tag = element.tag.removeprefix(SVG)
        if tag in ("rect", "circle", "path"):
            assert element.get("fill"), element.attrib
            assert element.get("stroke") or element.get("fill") != "none", element.attrib
    assert drawn().get("fill") == "currentColor"  # the text
    (line, *_) = drawn().iter(f"{SVG}path")
    assert line.get("stroke") == palette.ROLES["tokens"].light


def test_shapes_are_those_of_the_example():
    written = [text.text for text in drawn().iter(f"{SVG}tspan") if text.get("class") == "labs-diagram-shape"]
    assert written == ["[2,5]", *["[2,5,8]"] * 8, "[2,5,9]"]
