"""The picture of the model says what its data says, and its data says what the model's code does."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from labs.figures import block_diagram, palette
from labs.figures.block_diagram import BLOCK_EDGES, Edge
from labs.llm import mistakes, model, ops

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


# The nine edges and the code


@pytest.fixture(scope="module")
def drawn_model():
    """A model of one block and its ids, on sizes that are all different, with gains that are not one."""
    config = model.ModelConfig(11, d_model=24, n_heads=4, d_ff=20, norm_eps=0.1, rope_base=50.0)
    rng = np.random.default_rng(0)
    params = model.init_params(config, rng)
    for key in params:
        if key.endswith("norm"):
            params[key] *= rng.uniform(0.7, 1.3, size=params[key].shape)
    return params, rng.integers(11, size=(3, 7)), config


@pytest.fixture(scope="module")
def boxes(drawn_model):
    """The four boxes of the block, each a function of what arrives, made of parts tested on their own."""
    params, _, config = drawn_model
    w = model.block_weights(params, 0)

    def attention(z):
        q, k, v = (model.split_heads(z @ matrix, config.n_heads) for matrix in (w.wq, w.wk, w.wv))
        q, k = model.rope(q, base=config.rope_base), model.rope(k, base=config.rope_base)
        o, _ = model.attention(q, k, v, model.causal_mask(z.shape[1]))
        return model.merge_heads(o) @ w.wo

    return {
        "attn_norm": lambda x: ops.rms_norm(x, w.attn_norm, eps=config.norm_eps)[0],
        "attention": attention,
        "ffn_norm": lambda r: ops.rms_norm(r, w.ffn_norm, eps=config.norm_eps)[0],
        "swiglu": lambda n: model.swiglu(n, w.w1, w.w3, w.w2)[0],
    }


def carried(drawn_model, library=model):
    """What flows along each of the nine edges when the code runs, from its own caches."""
    params, ids, config = drawn_model
    _, cache = library.forward(params, ids, library.ModelConfig(**vars(config)))
    (block,) = cache.blocks
    x, r, y = block.attn_norm.x, block.ffn_norm.x, cache.final_norm.x
    return {
        ("embedding", "attn_norm"): x,
        ("attn_norm", "attention"): block.z,
        ("attention", "attn_add"): block.joined @ block.weights.wo,
        ("embedding", "attn_add"): x,
        ("attn_add", "ffn_norm"): r,
        ("ffn_norm", "swiglu"): block.swiglu.x,
        ("swiglu", "ffn_add"): block.hidden @ block.weights.w2,
        ("attn_add", "ffn_add"): r,
        ("ffn_add", "final_norm"): y,
    }


def follows(edges, boxes, numbers):
    """Whether following these edges gives the numbers of the code, bit for bit, at every node."""
    try:
        out = block_diagram.run(numbers["embedding", "attn_norm"], boxes, edges)
    except ValueError:
        return False
    same = [np.array_equal(out[source], array) for (source, _), array in numbers.items()]
    return all(same) and np.array_equal(out["final_norm"], numbers["ffn_add", "final_norm"])


def test_the_nine_edges_compute_what_the_code_computes(drawn_model, boxes):
    numbers = carried(drawn_model)
    assert [edge[:2] for edge in BLOCK_EDGES] == list(numbers)
    assert follows(BLOCK_EDGES, boxes, numbers)
    assert follows(BLOCK_EDGES[::-1], boxes, numbers)


def test_no_edge_is_missing_and_none_is_too_many(drawn_model, boxes):
    numbers = carried(drawn_model)
    for left_out in BLOCK_EDGES:
        assert not follows([edge for edge in BLOCK_EDGES if edge is not left_out], boxes, numbers), left_out
    order = [node.name for node in block_diagram.NODES]
    for source in order[1 : order.index("final_norm")]:
        for target in order[order.index(source) + 1 : order.index("final_norm") + 1]:
            added = Edge(source, target, "", "B,T,D")
            assert not follows([*BLOCK_EDGES, added], boxes, numbers), added


@pytest.mark.parametrize(
    "name",
    [
        "block: post-norm",
        "block: norm skipped before attention",
        "block: values from x",
        "block: residual missing around attention",
        "block: residual missing around SwiGLU",
        "block: residual from the normalised x",
        "block: branches side by side",
    ],
)
def test_code_that_is_wired_otherwise_does_not_fit_the_picture(drawn_model, boxes, name):
    (mistake,) = (each for each in mistakes.MISTAKES if each.name == name)
    assert not follows(BLOCK_EDGES, boxes, carried(drawn_model, mistakes.plant(mistake).model))


def test_the_symbols_are_those_of_the_code(drawn_model):
    """An edge that carries z is the array that the code calls z."""
    params, ids, config = drawn_model
    _, cache = model.forward(params, ids, config)
    numbers, named = carried(drawn_model), cache.blocks[0]._asdict()
    for edge in BLOCK_EDGES:
        if edge.symbol in named:
            assert np.array_equal(numbers[edge[:2]], named[edge.symbol]), edge
    assert {edge.symbol for edge in BLOCK_EDGES} == {"X", "z", "", "R", "n", "Y"}


@pytest.mark.parametrize(
    ("names", "edges", "message"),
    [
        (("attn_norm", "attention", "ffn_norm"), BLOCK_EDGES, "a function for each of"),
        (block_diagram.BLOCK_BOXES, BLOCK_EDGES[1:], "one array must arrive at attn_norm, got 0"),
        (block_diagram.BLOCK_BOXES, [*BLOCK_EDGES, BLOCK_EDGES[0]], "arrive at attn_norm, got 2"),
        (block_diagram.BLOCK_BOXES, BLOCK_EDGES[:2] + BLOCK_EDGES[4:], "at least one array must arrive at"),
    ],
)
def test_a_way_that_cannot_be_followed_is_refused(names, edges, message):
    with pytest.raises(ValueError, match=message):
        block_diagram.run(np.ones((1, 2, 4)), dict.fromkeys(names, np.copy), edges)


# In a notebook


def test_a_notebook_shows_the_picture_with_its_words():
    shown = block_diagram.show(label="The <model>")
    markup = shown._repr_html_()
    assert repr(shown) == "Figure: The <model>"
    assert '<svg class="labs-diagram" role="img" aria-label="The &lt;model&gt;"' in markup
    assert re.findall("<li>(.*?)</li>", markup) == block_diagram.text()
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
