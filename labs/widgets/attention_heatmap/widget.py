"""AttentionHeatmap: the scores and weights of attention, and how each of them comes about."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import traitlets

from labs.llm.arguments import require_shape
from labs.widgets.shared import modules, sizes
from labs.widgets.shared.base import (
    MOST_CELLS,
    CourseWidget,
    require_labels,
    require_values,
)

#: The widget shows e to the power of a score; beyond this the columns would hardly fit.
LARGEST_SCORE = 20.0

_DECIMALS = 2


class AttentionHeatmap(CourseWidget):
    """Show scores, masked scores and weights of one head: rows are queries i, columns keys j.

        scores[b,h,i,j] = q[b,h,i] . k[b,h,j] / sqrt(dh),   weights = softmax(scores where mask, else -inf)

    The reader chooses batch, head and the axis of the softmax; "queries" and "heads" are wrong on purpose,
    and the sums of rows and columns show it. For the selected entry the widget shows the two vectors, their
    products, the sum, the scale, and the scores that share in the softmax.

    Args:
        q, k: queries and keys, (B,H,T,dh), at most 512 numbers each; copied.
        mask: boolean (T,T), True = may read; None allows everything, and no masked scores are shown.
        labels: a text for each position, or a list of texts for each batch.
        rotated: whether q and k have been through RoPE; the title says so.

    Raises: TypeError or ValueError, saying which argument and what it must be.
    """

    _esm = modules.script("attention_heatmap/view.js")
    _css = modules.style("shared/grid.css", "shared/attention.css", "attention_heatmap/style.css")
    sections = ("tensor", "attention", "attention_heatmap")

    #: Queries and keys, row-major, and their shape (B, H, T, dh).
    q = traitlets.List(traitlets.Float()).tag(sync=True)
    k = traitlets.List(traitlets.Float()).tag(sync=True)
    shape = traitlets.List(traitlets.Int()).tag(sync=True)
    #: Which pairs are allowed, (T,T) row-major.
    mask = traitlets.List(traitlets.Bool()).tag(sync=True)
    labels = traitlets.Dict().tag(sync=True)
    rotated = traitlets.Bool().tag(sync=True)
    decimals = traitlets.Int(_DECIMALS).tag(sync=True)
    #: How many digits the cells have room for.
    digits = traitlets.Int().tag(sync=True)
    #: How many grids stand side by side, on wide and on narrow pages.
    across = traitlets.List(traitlets.Int()).tag(sync=True)
    #: What the reader chooses: batch, head, the axis of the softmax, and an entry i*T + j or -1.
    batch = traitlets.Int(0).tag(sync=True)
    head = traitlets.Int(0).tag(sync=True)
    axis = traitlets.Enum(("keys", "queries", "heads"), "keys").tag(sync=True)
    selected = traitlets.Int(-1).tag(sync=True)

    def __init__(self, q, k, mask=None, labels: Sequence | None = None, rotated: bool = False):
        queries, keys = _require_queries_and_keys(q, k)
        B, H, T, dh = queries.shape
        allowed = np.ones((T, T), bool) if mask is None else _require_mask(mask, T)
        shown = _require_position_labels(labels, (B, H, T, T))
        scores = _scores(queries, keys)
        digits = sizes.most_digits(np.append(scores, T), _DECIMALS)  # T: a column of weights may add up to it
        columns = [T, T + 1] if allowed.all() else [T, T, T + 1]
        super().__init__(
            q=queries.ravel().tolist(),
            k=keys.ravel().tolist(),
            shape=[B, H, T, dh],
            mask=allowed.ravel().tolist(),
            labels=shown,
            rotated=bool(rotated),
            digits=digits,
            across=sizes.for_widths(partial(sizes.across, columns, digits)),
            selected=T * (T - 1),  # the last query and the first key: nothing forbids this pair
            height=partial(_height, queries.shape, columns, digits),
        )

    def counts(self) -> dict[str, int]:
        B, H, T, _ = self.shape
        return {"batch": B, "head": H, "selected": T * T}

    def describe(self) -> str:
        B, H, T, _ = self.shape
        return f"P [{B},{H},{T},{T}] (B,H,T,T) {'after' if self.rotated else 'before'} RoPE"


def _require_queries_and_keys(q, k) -> tuple[np.ndarray, np.ndarray]:
    """Return queries and keys as float64 arrays of one shape (B,H,T,dh).

    Raises: TypeError or ValueError unless they are that, with T*T cells and scores that can be shown.
    """
    queries, keys = require_values(q, "q"), require_values(k, "k")
    if queries.ndim != 4:
        raise ValueError(f"q must be (B,H,T,dh), got shape {queries.shape}: split the heads first")
    if keys.shape != queries.shape:
        raise ValueError(f"k must have the shape of q, (B,H,T,dh) = {queries.shape}, got {keys.shape}")
    T = queries.shape[2]
    if T * T > MOST_CELLS:
        raise ValueError(
            f"q must have few enough positions that T*T <= {MOST_CELLS}, got T = {T}: show a slice"
        )
    largest = np.abs(_scores(queries, keys)).max()
    if largest > LARGEST_SCORE:
        raise ValueError(
            f"q and k must give scores from -{LARGEST_SCORE:g} to {LARGEST_SCORE:g}, got {largest:.4g}: "
            "e to that power would not fit; scale q or k down"
        )
    return queries, keys


def _require_mask(mask, T: int) -> np.ndarray:
    """Return the mask as a boolean array (T,T) that lets every query read something; raise if it is not."""
    array = np.asarray(mask)
    if array.dtype != bool:
        raise TypeError(f"mask must be boolean, True = may read, got dtype {array.dtype}")
    require_shape("mask", array, "(T,T)", (T, T), "one for all words and heads")
    if not array.any(axis=1).all():
        row = int(np.argmin(array.any(axis=1)))
        raise ValueError(f"mask must let every query read something, got nothing in row {row}")
    return array


def _require_position_labels(labels: Sequence | None, shape: tuple[int, ...]) -> dict[str, list[list[str]]]:
    """Return the labels of the positions for queries and keys alike; `shape` is (B,H,T,T)."""
    return {} if labels is None else require_labels({"i": labels, "j": labels}, ["b", "h", "i", "j"], shape)


def _scores(q: np.ndarray, k: np.ndarray) -> np.ndarray:
    return q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])


#: Heights in rem, from style.css.
_VERDICT = {sizes.WIDE: 3.0, sizes.NARROW: 6.0}
_STEP = 1.5 + 3.0  # its title and its line of arithmetic
_NUMBER = 1.5


def _height(shape: tuple[int, ...], columns: Sequence[int], digits: int, width: str) -> float:
    """The height of the widget in rem on a page of this width, for grids of so many columns."""
    B, H, T, dh = shape
    pickers = (B > 1) + (H > 1)
    # a wide page has the pickers in one line; in a narrow one the three axes take two
    lines = (pickers > 0) + 1 if width == sizes.WIDE else pickers + 2
    heights = [sizes.grid_height(rows, width, lines=2) for rows in columns]  # they are square
    tables = [(rows + 2) * _NUMBER + _STEP for rows in (dh, max(T, H))]
    steps = max(tables) if width == sizes.WIDE else sum(tables) + 0.5
    above = sizes.TITLE + lines * sizes.CONTROL + sizes.stacked(heights, sizes.across(columns, digits, width))
    return above + _VERDICT[width] + sizes.status_height(width) + 0.5 + steps + sizes.LINE
