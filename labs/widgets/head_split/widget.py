"""HeadSplit: where each number of a tensor lands when its columns are split into heads."""

from collections.abc import Mapping, Sequence
from functools import partial
from math import prod

import traitlets

from labs.widgets.shared import modules, sizes
from labs.widgets.shared.base import (
    CourseWidget,
    is_integer,
    require_choice,
    require_decimals,
    require_labels,
    require_name,
    require_role,
    require_values,
)


class HeadSplit(CourseWidget):
    """Show a tensor (B,T,D), and where its numbers land in (B,H,T,dh), by the right and by a wrong route.

    The reader chooses the route: `x.reshape(B,T,H,dh).swapaxes(1,2)` or, wrongly, `x.reshape(B,H,T,dh)`.
    A number that is selected is outlined in both tensors.

    Args:
        values: real numbers (B,T,D), at most 512; copied.
        n_heads: H, a divisor of D; dh = D / H.
        name: what the text calls the tensor.
        role: what it is in the model, a key of `labs.course.palette.ROLES`: its colour.
        labels: for the axes "b" and "t": a text for each index, or for "t" one list of texts a batch.
        decimals: how many are shown.
        route: where to begin: "swap" (right) or "direct" (wrong).
        show: what stands in the cells at first: "values", or "origins": the position and column (t,d).

    Raises: TypeError or ValueError, saying which argument and what it must be.
    """

    _esm = modules.script("head_split/view.js")
    _css = modules.style("shared/grid.css", "head_split/style.css")
    sections = ("tensor", "head_split")

    name = traitlets.Unicode().tag(sync=True)
    role = traitlets.Unicode().tag(sync=True)
    #: (B, T, D) and H.
    shape = traitlets.List(traitlets.Int()).tag(sync=True)
    n_heads = traitlets.Int().tag(sync=True)
    #: The numbers, row-major.
    values = traitlets.List(traitlets.Float()).tag(sync=True)
    labels = traitlets.Dict().tag(sync=True)
    decimals = traitlets.Int().tag(sync=True)
    #: How many digits the cells have room for.
    digits = traitlets.Int().tag(sync=True)
    #: How many heads stand side by side on wide and on narrow pages, and whether beside the tensor.
    across = traitlets.List(traitlets.Int()).tag(sync=True)
    beside = traitlets.Bool().tag(sync=True)
    #: What the reader chooses: the route, what the cells show, the batch, and a position in `values` or -1.
    route = traitlets.Enum(("swap", "direct"), "swap").tag(sync=True)
    show = traitlets.Enum(("values", "origins"), "values").tag(sync=True)
    batch = traitlets.Int(0).tag(sync=True)
    selected = traitlets.Int(-1).tag(sync=True)

    def __init__(
        self,
        values,
        n_heads: int,
        name: str = "Q",
        role: str = "q",
        labels: Mapping[str, Sequence] | None = None,
        decimals: int = 2,
        route: str = "swap",
        show: str = "values",
    ):
        array = require_values(values)
        n_heads, decimals = _require_heads(array.shape, n_heads), require_decimals(decimals)
        shown = require_labels(labels, ("b", "t", "d"), array.shape)
        if "d" in shown:
            raise ValueError("labels must be for the axes b and t: the columns are told apart by their heads")
        _, T, D = array.shape
        digits = max(sizes.most_digits(array, decimals), len(f"{T - 1}{D - 1}"))
        layout = (array.shape, n_heads, digits)
        super().__init__(
            name=require_name(name),
            role=require_role(role),
            shape=list(array.shape),
            n_heads=n_heads,
            values=array.ravel().tolist(),
            labels=shown,
            decimals=decimals,
            digits=digits,
            across=sizes.for_widths(partial(_across, *layout)),
            beside=_beside(*layout, sizes.WIDE),
            route=require_choice("route", route, ("swap", "direct")),
            show=require_choice("show", show, ("values", "origins")),
            height=partial(_height, *layout),
        )

    def counts(self) -> dict[str, int]:
        return {"batch": self.shape[0], "selected": prod(self.shape)}

    @traitlets.observe("selected")
    def _reveal(self, change):
        """The batch of the selected number comes into sight."""
        if change["new"] >= 0:
            self.batch = change["new"] // (self.shape[1] * self.shape[2])

    def describe(self) -> str:
        B, T, D = self.shape
        H = self.n_heads
        return f"{self.name} [{B},{T},{D}] (B,T,D) split into [{B},{H},{T},{D // H}] (B,H,T,dh)"


#: Heights in rem, from style.css.
_INTRO = {sizes.WIDE: 3.0, sizes.NARROW: 4.5}
_PATH = {sizes.WIDE: 3.0, sizes.NARROW: 5.5}
_CONTROLS = {sizes.WIDE: 2 * sizes.CONTROL, sizes.NARROW: 4 * sizes.CONTROL}  # route, batch and tick box
_VERDICT = 6.0
_STATUS = 0.25 + 6.0


def _require_heads(shape: tuple[int, ...], n_heads: int) -> int:
    """Return the number of heads; raise ValueError unless the shape is (B,T,D) and H divides D."""
    if len(shape) != 3:
        raise ValueError(f"values must be (B,T,D), got shape {shape}")
    if not is_integer(n_heads) or n_heads < 1:
        raise ValueError(f"n_heads must be a positive integer, got {n_heads!r}")
    n_heads = int(n_heads)  # D may be too large for a narrow type
    B, T, D = shape
    if D % n_heads:
        raise ValueError(
            f"n_heads must divide D: values (B,T,D) = ({B},{T},{D}) cannot be split into H = {n_heads} heads "
            f"(B,H,T,dh), because dh = {D}/{n_heads} is not whole"
        )
    return n_heads


def _across(shape: tuple[int, ...], n_heads: int, digits: int, width: str) -> int:
    """How many heads stand side by side on a page of this width."""
    return sizes.across([shape[2] // n_heads] * n_heads, digits, width)


def _beside(shape: tuple[int, ...], n_heads: int, digits: int, width: str) -> bool:
    """Whether all heads stand in one line with the tensor; on a narrow page they never do."""
    D = shape[2]
    columns = [D, *[D // n_heads] * n_heads]
    return width == sizes.WIDE and sizes.across(columns, digits, width) == len(columns)


def _height(shape: tuple[int, ...], n_heads: int, digits: int, width: str) -> float:
    """The height of the widget in rem on a page of this width; a narrow page shows one batch at a time."""
    B, T, _ = shape
    layout = (shape, n_heads, digits, width)
    before = sizes.grid_height(T, width, lines=3) + _VERDICT + _STATUS  # the heads stand over the columns
    all_batches = width == sizes.WIDE and B * n_heads <= sizes.SIDE_BY_SIDE
    heads = [sizes.grid_height(T, width, lines=2)] * n_heads
    result = sizes.stacked(heads, _across(*layout)) * (B if all_batches else 1)
    split = max(before, result) if _beside(*layout) else before + result
    return sizes.TITLE + _INTRO[width] + _PATH[width] + _CONTROLS[width] + split + sizes.LINE
