"""The picture shows what its data says, with words beside it."""

import re
import xml.etree.ElementTree as ET

import pytest

from labs.course import diagram, palette
from labs.figures import diagram_svg

SIZES = {"B": 2, "T": 5, "D": 8, "V": 9}
SVG = "{http://www.w3.org/2000/svg}"


def drawn(links=None, sizes=SIZES, lit=()):
    markup = diagram_svg.svg(sizes, links, label="The model", lit=lit)
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


@pytest.mark.parametrize("sizes", [SIZES, None])
def test_nothing_is_drawn_outside_the_picture(sizes):
    picture = drawn(sizes=sizes)
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


def test_at_the_head_of_a_chapter_its_part_is_lit_and_every_arrow_has_a_name():
    shown = diagram_svg.here("attn_norm", "ffn_norm")
    label = (
        "The model from tokens to loss, with its RMSNorm before attention and RMSNorm before SwiGLU lit up"
    )
    assert repr(shown) == f"Figure: {label}"
    assert shown._repr_html_().count('class="labs-diagram-box labs-lit"') == 2
    assert "labs-diagram-shape" not in shown._repr_html_()
    names = [tspan.text for tspan in drawn(sizes=None).iter(f"{SVG}tspan")]
    assert names == ["ids", "X", "z", "attn_out", "R", "n", "ffn_out", "Y", "final", "logits"]


def test_a_lit_box_is_seen_without_colours():
    widths = [box.get("stroke-width") for box in drawn(lit=["attention"]).iter(f"{SVG}rect")][1:]  # the frame
    assert widths == ["1.6", "1.6", "1.6", "3", *["1.6"] * 5]


def test_what_is_lit_must_exist():
    with pytest.raises(ValueError, match=r"lit must name nodes of the diagram, tokens, .*; got mask"):
        diagram_svg.here("attention", "mask")
