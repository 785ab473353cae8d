"""Widgets that several tests look at: at least one of every kind, and what makes one hard to lay out."""

import numpy as np

from labs.llm import tiny
from labs.llm.model import ModelConfig, causal_mask, forward
from labs.llm.parameters import init_params
from labs.widgets import (
    AttentionHeatmap,
    HeadSplit,
    MaskExplorer,
    RopeExplorer,
    TensorGrid,
    TraceExplorer,
)
from labs.widgets.shared.base import CourseWidget

LETTERS = [list(word[:-1]) for word in tiny.WORDS]

#: What MaskExplorer and TraceExplorer take, for the course's example.
GIVEN = (tiny.params(), tiny.CONFIG, tiny.INPUT_IDS, tiny.TARGET_IDS, tiny.VOCABULARY)


def kinds() -> set[str]:
    """The name of every kind of widget of the package: an instance may have a class of its own."""
    found, below = set(), CourseWidget.__subclasses__()
    while below:
        kind = below.pop()
        below += kind.__subclasses__()
        if kind.__module__.startswith("labs.widgets"):
            found.add(kind.__name__)
    return found


def _attention():
    return forward(tiny.params(), tiny.INPUT_IDS, tiny.CONFIG)[1].blocks[0].attention


def _heatmap(**more):
    q, k, *_ = _attention()
    return AttentionHeatmap(q, k, labels=LETTERS, rotated=True, **more)


def _rope(**more):
    q, k, *_ = _attention()
    return RopeExplorer(q[0, 1, 4], k[0, 1, 1], **more)


def _deep():
    config = ModelConfig(7, d_model=8, n_heads=2, n_layers=2, d_ff=6)
    words = np.random.default_rng(0).integers(0, 7, (3, 6))
    return TraceExplorer(init_params(config, 1), config, words[:, :-1], words[:, 1:], "abcdefg")


#: The widgets as chapters show them.
COURSE = {
    "TensorGrid": lambda: TensorGrid(tiny.params()["embedding"][tiny.INPUT_IDS], labels={"t": LETTERS}),
    "HeadSplit": lambda: HeadSplit(-3 * tiny.params()["embedding"][tiny.INPUT_IDS], 2, labels={"t": LETTERS}),
    "AttentionHeatmap": lambda: _heatmap(mask=causal_mask(5)),
    "MaskExplorer": lambda: MaskExplorer(*GIVEN),
    "RopeExplorer": _rope,
    "TraceExplorer": lambda: TraceExplorer(*GIVEN),
}


def numbers(*shape):
    return np.linspace(-1, 1, int(np.prod(shape))).reshape(shape)


def plain_heatmap(*shape, **more):
    return AttentionHeatmap(numbers(*shape), -numbers(*shape), **more)


#: Other sizes: what is picked, stacked, long or wider than a page.
OTHERS = {
    "vector": lambda: TensorGrid(numbers(8), axes="d"),
    "weights": lambda: TensorGrid(numbers(2, 2, 5, 5), axes="bhqk", labels={"q": "atten", "k": "atten"}),
    "picked": lambda: TensorGrid(numbers(3, 4, 7, 6), axes=("b", "h", "t", "dh")),
    "list": lambda: TensorGrid(numbers(9, 2, 2, 3), axes="bhtd"),
    "wide": lambda: TensorGrid(numbers(8, 24), axes="td"),
    "long": lambda: TensorGrid(-1234.5 * np.abs(numbers(3, 3)), axes="td", decimals=6),
    "words": lambda: TensorGrid(
        numbers(2, 3), axes="td", labels={"t": ["one", "attend"], "d": ["Q", "causal", "m"]}
    ),
    "large split": lambda: HeadSplit(numbers(3, 7, 24), 4),
    "plain heatmap": lambda: plain_heatmap(2, 2, 5, 4, labels=LETTERS),
    "one word": lambda: plain_heatmap(1, 4, 7, 6),
    "tall heatmap": lambda: plain_heatmap(3, 1, 3, 10),
    "wide heatmap": lambda: plain_heatmap(1, 1, 20, 2),
    "large scores": lambda: AttentionHeatmap(
        3 * _attention().q, 1.7 * _attention().k, causal_mask(5), labels=LETTERS
    ),
    "widest head": lambda: RopeExplorer(*9 * numbers(2, 16), base=123_456.0),
    "deep": _deep,
}
