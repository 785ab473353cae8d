"""What the diagram says is what the code of the model does."""

import numpy as np
import pytest

from labs.course import diagram, palette
from labs.course.diagram import BLOCK_EDGES, Edge
from labs.llm import model, ops
from labs.llm.mutants import catalogue, planting


def test_every_edge_joins_two_nodes_and_every_node_is_reached():
    names = [node.name for node in diagram.NODES]
    assert len(set(names)) == len(names)
    assert {end for edge in diagram.EDGES for end in edge[:2]} == set(names)
    assert {edge.target for edge in diagram.EDGES} == set(names) - {"tokens"}
    assert all(node.role in palette.ROLES for node in diagram.NODES)


def test_additions_have_two_inputs_and_everything_else_one():
    for node in diagram.NODES:
        inputs = [edge for edge in diagram.EDGES if edge.target == node.name]
        assert len(inputs) == {"+": 2}.get(node.label, 0 if node.name == "tokens" else 1), node.name


def test_words_name_every_box_and_what_goes_in():
    words = diagram.text()
    assert len(words) == len(diagram.NODES)
    assert len(set(words)) == len(words)
    assert words[4] == (
        "first addition: Adds what attention read to the residual stream. "
        "In: attn_out (B,T,D) from the attention and X (B,T,D) from the embedding."
    )


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
        q, k, v = (model.split_heads(ops.linear(z, matrix), config.n_heads) for matrix in (w.wq, w.wk, w.wv))
        q, k = model.rope(q, base=config.rope_base), model.rope(k, base=config.rope_base)
        o, _ = model.attention(q, k, v, model.causal_mask(z.shape[1]))
        return ops.linear(model.merge_heads(o), w.wo)

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
        ("attention", "attn_add"): ops.linear(block.joined, block.weights.wo),
        ("embedding", "attn_add"): x,
        ("attn_add", "ffn_norm"): r,
        ("ffn_norm", "swiglu"): block.swiglu.x,
        ("swiglu", "ffn_add"): ops.linear(block.hidden, block.weights.w2),
        ("attn_add", "ffn_add"): r,
        ("ffn_add", "final_norm"): y,
    }


def follows(edges, boxes, numbers):
    """Whether following these edges gives the numbers of the code, bit for bit, at every node."""
    try:
        out = diagram.run(numbers["embedding", "attn_norm"], boxes, edges)
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
    order = [node.name for node in diagram.NODES]
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
    (mistake,) = (each for each in catalogue.MISTAKES if each.name == name)
    assert not follows(BLOCK_EDGES, boxes, carried(drawn_model, planting.plant(mistake).model))


def test_the_symbols_are_those_of_the_code(drawn_model):
    """An edge that carries z is the array that the code calls z."""
    params, ids, config = drawn_model
    _, cache = model.forward(params, ids, config)
    numbers, named = carried(drawn_model), cache.blocks[0]._asdict()
    for edge in BLOCK_EDGES:
        if edge.symbol in named:
            assert np.array_equal(numbers[edge[:2]], named[edge.symbol]), edge
    assert {edge.symbol for edge in BLOCK_EDGES} == {"X", "z", "attn_out", "R", "n", "ffn_out", "Y"}
    assert all(edge.symbol for edge in diagram.EDGES)


@pytest.mark.parametrize(
    ("names", "edges", "message"),
    [
        (("attn_norm", "attention", "ffn_norm"), BLOCK_EDGES, "a function for each of"),
        (diagram.BLOCK_BOXES, BLOCK_EDGES[1:], "one array must arrive at attn_norm, got 0"),
        (diagram.BLOCK_BOXES, [*BLOCK_EDGES, BLOCK_EDGES[0]], "arrive at attn_norm, got 2"),
        (diagram.BLOCK_BOXES, BLOCK_EDGES[:2] + BLOCK_EDGES[4:], "at least one array must arrive at"),
    ],
)
def test_a_way_that_cannot_be_followed_is_refused(names, edges, message):
    with pytest.raises(ValueError, match=message):
        diagram.run(np.ones((1, 2, 4)), dict.fromkeys(names, np.copy), edges)


# In a notebook
