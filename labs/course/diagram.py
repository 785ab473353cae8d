"""The course's one picture of the model, as data.

Nodes and edges are data, so that the picture, its text and the tests read the same facts, and so that the
picture can be computed with.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np


class Node(NamedTuple):
    """One box (or the sign of an addition) of the diagram."""

    name: str  # unique, used by the edges
    label: str  # written in the box
    title: str  # unlike the label, unique: for text and for screen readers
    role: str  # of labs.course.palette.ROLES: the role of what the box puts out
    page: str  # the chapter that opens this box
    says: str  # one sentence for the text version


class Edge(NamedTuple):
    """Numbers that flow from one node to another."""

    source: str
    target: str
    symbol: str
    shape: str  # in the letters of the notation page
    role: str = ""  # as a Node's; left out, that of the source


NODES = (
    Node("tokens", "tokens", "tokens", "tokens", "01_shapes", "The letters of the example as integers."),
    Node("embedding", "embedding", "embedding", "x", "01_shapes", "One row of the embedding for each token."),
    Node(
        "attn_norm",
        "RMSNorm",
        "RMSNorm before attention",
        "norm",
        "04_rms_norm",
        "Scales each position's vector.",
    ),
    Node(
        "attention",
        "attention",
        "attention",
        "attention",
        "02_attention",
        "Lets each position read earlier ones.",
    ),
    Node(
        "attn_add",
        "+",
        "first addition",
        "x",
        "07_forward",
        "Adds what attention read to the residual stream.",
    ),
    Node("ffn_norm", "RMSNorm", "RMSNorm before SwiGLU", "norm", "04_rms_norm", "Scales again."),
    Node(
        "swiglu",
        "SwiGLU",
        "SwiGLU",
        "ffn",
        "06_swiglu",
        "The feed-forward: works on each position alone, with a gate.",
    ),
    Node(
        "ffn_add", "+", "second addition", "x", "07_forward", "Adds the feed-forward's result to the stream."
    ),
    Node("final_norm", "RMSNorm", "final RMSNorm", "norm", "07_forward", "Scales one last time."),
    Node(
        "unembedding",
        "unembedding",
        "unembedding",
        "logits",
        "07_forward",
        "Gives each letter a score, its logit.",
    ),
    Node(
        "loss",
        "loss",
        "loss",
        "logits",
        "07_forward",
        "Compares the scores with the next tokens: one number.",
    ),
)

#: The part of the model that a deeper model repeats.  These nine edges are the block.
BLOCK_EDGES = (
    Edge("embedding", "attn_norm", "X", "B,T,D"),
    Edge("attn_norm", "attention", "z", "B,T,D"),
    Edge("attention", "attn_add", "attn_out", "B,T,D", role="joined"),
    Edge("embedding", "attn_add", "X", "B,T,D"),
    Edge("attn_add", "ffn_norm", "R", "B,T,D"),
    Edge("ffn_norm", "swiglu", "n", "B,T,D"),
    Edge("swiglu", "ffn_add", "ffn_out", "B,T,D"),
    Edge("attn_add", "ffn_add", "R", "B,T,D"),
    Edge("ffn_add", "final_norm", "Y", "B,T,D"),
)
EDGES = (
    Edge("tokens", "embedding", "ids", "B,T"),
    *BLOCK_EDGES,
    Edge("final_norm", "unembedding", "final", "B,T,D"),
    Edge("unembedding", "loss", "logits", "B,T,V"),
)


def text() -> list[str]:
    """The diagram in words: one sentence a node, in the order of the flow, with what goes in."""
    titles = {node.name: node.title for node in NODES}
    sentences = []
    for node in NODES:
        arrives = [edge for edge in EDGES if edge.target == node.name]
        sources = " and ".join(f"{_in_words(edge)} from the {titles[edge.source]}" for edge in arrives)
        sentences.append(f"{node.title}: {node.says}" + (f" In: {sources}." if arrives else ""))
    return sentences


def _in_words(edge: Edge) -> str:
    return f"{edge.symbol} ({edge.shape})"


#: The nodes of the block that compute something of one array; the other two add.
BLOCK_BOXES = ("attn_norm", "attention", "ffn_norm", "swiglu")


def run(
    x: np.ndarray, boxes: Mapping[str, Callable], edges: Sequence[Edge] = BLOCK_EDGES
) -> dict[str, np.ndarray]:
    """Compute with the picture of the block: send X along its edges.

    Args:
        x: what enters the block, (B,T,D).
        boxes: a function of one array for each of BLOCK_BOXES.
        edges: the edges to follow, in any order.

    Returns: what every node puts out, by its name; under final_norm, which stands behind the block, what it
        receives: Y.
    Raises: ValueError unless boxes has the names of BLOCK_BOXES, one array arrives at every box, and at least
        one where arrays are added.
    """
    if boxes.keys() != set(BLOCK_BOXES):
        raise ValueError(f"boxes must have a function for each of {BLOCK_BOXES}, got {sorted(boxes)}")
    reached = {edge.target for edge in BLOCK_EDGES}
    out = {"embedding": x}
    for name in (node.name for node in NODES if node.name in reached):
        arrives = [out[edge.source] for edge in edges if edge.target == name]
        if not arrives or (name in boxes and len(arrives) > 1):
            wanted = "one array" if name in boxes else "at least one array"
            raise ValueError(f"{wanted} must arrive at {name}, got {len(arrives)}: look at the edges")
        out[name] = boxes[name](*arrives) if name in boxes else sum(arrives[1:], start=arrives[0])
    return out
