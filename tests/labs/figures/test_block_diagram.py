"""The picture of the model says what its data says, and nothing else."""

import re
import xml.etree.ElementTree as ET

import pytest

from labs.figures import block_diagram, palette

SIZES = {"B": 2, "T": 5, "D": 8, "V": 9}
SVG = "{http://www.w3.org/2000/svg}"


def drawn(links=None):
    markup = block_diagram.svg(SIZES, links, label="The model")
    return ET.fromstring(markup.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1))


def test_a_block_has_nine_edges_and_two_of_them_skip():
    assert len(block_diagram.BLOCK_EDGES) == 9
    skips = [(edge.source, edge.target) for edge in block_diagram.BLOCK_EDGES if block_diagram._is_skip(edge)]
    assert skips == [("embedding", "attn_add"), ("attn_add", "ffn_add")]


def test_every_edge_joins_two_nodes_and_every_node_is_reached():
    names = [node.name for node in block_diagram.NODES]
    assert len(set(names)) == len(names)
    assert {end for edge in block_diagram.EDGES for end in edge[:2]} == set(names)
    assert {edge.target for edge in block_diagram.EDGES} == set(names) - {"tokens"}
    assert all(node.role in palette.ROLES for node in block_diagram.NODES)


def test_additions_have_two_inputs_and_everything_else_one():
    for node in block_diagram.NODES:
        inputs = [edge for edge in block_diagram.EDGES if edge.target == node.name]
        assert len(inputs) == {"+": 2}.get(node.label, 0 if node.name == "tokens" else 1), node.name


def test_shapes_are_those_of_the_example():
    written = [text.text for text in drawn().iter(f"{SVG}tspan") if text.get("class") == "labs-diagram-shape"]
    assert written == ["[2,5]", *["[2,5,8]"] * 8, "[2,5,9]"]


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


def test_words_name_every_box_and_what_goes_in():
    words = block_diagram.text()
    assert len(words) == len(block_diagram.NODES)
    assert len(set(words)) == len(words)
    assert words[4] == (
        "first addition: Adds what attention found to the residual stream. "
        "In: (B,T,D) from the attention and X (B,T,D) from the embedding."
    )


def test_a_missing_size_is_refused():
    with pytest.raises(ValueError, match="missing: T, V"):
        block_diagram.svg({"B": 2, "D": 8}, label="The model")
