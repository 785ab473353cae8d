"""The heights that pages reserve are the heights that widgets have."""

import numpy as np
import pytest

from labs.llm import tiny
from labs.widgets import AttentionHeatmap, HeadSplit, MaskExplorer, RopeExplorer, TensorGrid, sizes

WORDS = [list("atten"), list("causa")]


def test_cells_and_headers_grow_with_their_texts():
    assert sizes.cell_width(["0.00", "-0.31"]) == 2.0
    assert sizes.cell_width(["-12.31"]) == pytest.approx(2.4)
    assert sizes.header_width([]) == 1.75
    assert sizes.header_width(["a", "attend"]) == 4.25


@pytest.mark.parametrize(
    ("count", "width", "expected"), [(4, 9.0, 4), (4, 12.0, 2), (3, 18.0, 1), (1, 99.0, 1)]
)
def test_lines_have_the_same_number_of_matrices(count, width, expected):
    assert sizes.across(count, width, 39.0, 1.0) == expected


def test_boxes_flow_in_lines():
    boxes = [(10, 3), (10, 5), (12, 4)]
    assert sizes.flowed(boxes, 34, 1, 2) == 5
    assert sizes.flowed(boxes, 33, 1, 2) == 5 + 2 + 4
    assert sizes.flowed(boxes, 20, 1, 2) == 3 + 2 + 5 + 2 + 4


def numbers(*shape):
    return np.linspace(-1, 1, int(np.prod(shape))).reshape(shape)


def heatmap(*shape, **more):
    return AttentionHeatmap(numbers(*shape), -numbers(*shape), **more)


def all_wrong(widget):
    """The widget where it says most: far positions and both switches."""
    widget.m, widget.n = 63, 60
    widget.mixed = widget.rotate_values = True
    return widget


def explorer(**chosen):
    widget = MaskExplorer(tiny.params(), tiny.CONFIG, tiny.INPUT_IDS, tiny.TARGET_IDS, tiny.VOCABULARY)
    for name, value in chosen.items():
        setattr(widget, name, value)
    return widget


#: name -> a widget, and by how much in px it may be lower than what is reserved for it: grids that are wider
#: than the page have a scroll bar, which takes room in some browsers only.
WIDGETS = {
    "course": lambda: (TensorGrid(numbers(2, 5, 8), labels={"t": WORDS}), 0),
    "vector": lambda: (TensorGrid(numbers(8), axes="d"), 0),
    "weights": lambda: (TensorGrid(numbers(2, 2, 5, 5), axes="bhqk", labels={"q": "atten", "k": "atten"}), 0),
    "picked": lambda: (TensorGrid(numbers(3, 4, 7, 6), axes=("b", "h", "t", "dh")), 0),
    "list": lambda: (TensorGrid(numbers(9, 2, 2, 3), axes="bhtd"), 0),
    "wide": lambda: (TensorGrid(numbers(8, 24), axes="td"), 16),
    "split": lambda: (HeadSplit(numbers(2, 5, 8), 2, labels={"t": WORDS}), 0),
    "wrong": lambda: (HeadSplit(numbers(2, 5, 8), 2, labels={"t": WORDS}, route="direct", show="origins"), 0),
    "heatmap": lambda: (heatmap(2, 2, 5, 4, labels=WORDS), 0),
    "masked heatmap": lambda: (heatmap(2, 2, 5, 4, labels=WORDS, mask=np.tri(5, dtype=bool)), 0),
    "one word": lambda: (heatmap(1, 4, 7, 6), 0),
    "tall heatmap": lambda: (heatmap(3, 1, 3, 10), 0),
    "wide heatmap": lambda: (heatmap(1, 1, 20, 2), 32),
    "mask": lambda: (explorer(), 0),
    "nothing to read": lambda: (explorer(padding=[True] + [False] * 9, causal=False, tokens=[3] * 10), 0),
    "same position": lambda: (explorer(same_position=True, flipped=[4]), 0),
    "large": lambda: (HeadSplit(numbers(3, 7, 24), 4), 16),
    "rope": lambda: (RopeExplorer(*numbers(2, 4)), 0),
    "all wrong": lambda: (all_wrong(RopeExplorer(*9 * numbers(2, 16), base=123_456.0)), 16),
}


@pytest.mark.parametrize("width", [1280, 768, 360])
def test_reserved_height_is_the_real_one(show, width):
    made = {name: make() for name, make in WIDGETS.items()}
    page = show(*(widget for widget, _ in made.values()), width=width)
    # once as it opens, once with the longest sentence that a reader can make it say
    for act in ("() => 0", "root => [...root.querySelectorAll('.labs-cell')].at(-1).click()"):
        page.locator(".labs-root").evaluate_all(f"roots => roots.forEach({act})")
        page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        for (name, (widget, less)), place in zip(
            made.items(), page.locator(".labs-widget").all(), strict=True
        ):
            reserved = 16 * widget.reserve[0 if width >= 720 else 1]
            assert reserved - less - 1 <= place.bounding_box()["height"] <= reserved + 1, name
