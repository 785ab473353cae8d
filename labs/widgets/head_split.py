"""HeadSplit: where each number of a tensor lands when its columns are split into heads."""

from collections.abc import Mapping, Sequence
from math import prod

import traitlets

from labs.widgets import modules, sizes
from labs.widgets.base import (
    CourseWidget,
    check_choice,
    check_decimals,
    check_labels,
    check_name,
    check_picked,
    check_role,
    check_selected,
    check_values,
    is_integer,
)


class HeadSplit(CourseWidget):
    """Show a tensor (B,T,D), and where its numbers land in (B,H,T,dh), by the right and by a wrong route.

    The reader chooses the route: `x.reshape(B,T,H,dh).swapaxes(1,2)` or, wrongly, `x.reshape(B,H,T,dh)`.
    A number that is selected is outlined in both tensors.

    Args:
        values: real numbers (B,T,D), at most 512; copied.
        n_heads: H, a divisor of D; dh = D / H.
        name: what the text calls the tensor.
        role: what it is in the model, a key of `labs.figures.palette.ROLES`: its colour.
        labels: for the axes "b" and "t": a text for each index, or for "t" one list of texts a batch.
        decimals: how many are shown.
        route: where to begin: "swap" (right) or "direct" (wrong).
        show: what stands in the cells at first: "values", or "origins": the position and column (t,d).

    Raises: TypeError or ValueError, saying which argument and what it must be.
    """

    _esm = modules.script("head_split.js")
    _css = modules.style("grid.css", "head_split.css")
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
    #: Widths in rem of a cell and of the row headers, and how many heads stand side by side.
    cell = traitlets.Float().tag(sync=True)
    header = traitlets.Float().tag(sync=True)
    across = traitlets.Int().tag(sync=True)
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
        array = check_values(values)
        n_heads, decimals = _check_heads(array.shape, n_heads), check_decimals(decimals)
        shown = check_labels(labels, ("b", "t", "d"), array.shape)
        if "d" in shown:
            raise ValueError("labels must be for the axes b and t: the columns are told apart by their heads")
        cell = sizes.cell_width([*sizes.formatted(array, decimals), _last_origin(array.shape)])
        header = sizes.header_width(sizes.labels_of(shown, ["t"]))
        head_width = header + array.shape[2] // n_heads * cell
        super().__init__(
            name=check_name(name),
            role=check_role(role),
            shape=list(array.shape),
            n_heads=n_heads,
            values=array.ravel().tolist(),
            labels=shown,
            decimals=decimals,
            cell=cell,
            header=header,
            across=sizes.across(n_heads, head_width, sizes.WIDE, _GAP),
            route=check_choice("route", route, ("swap", "direct")),
            show=check_choice("show", show, ("values", "origins")),
            reserve=[
                _height(array.shape, n_heads, cell, header, width) for width in (sizes.WIDE, sizes.NARROW)
            ],
        )

    @traitlets.validate("selected")
    def _check_selected(self, proposal):
        return check_selected(proposal["value"], prod(self.shape))

    @traitlets.observe("selected")
    def _reveal(self, change):
        """The batch of the selected number comes into sight."""
        if change["new"] >= 0:
            self.batch = change["new"] // (self.shape[1] * self.shape[2])

    @traitlets.validate("batch")
    def _check_batch(self, proposal):
        return check_picked("batch", proposal["value"], self.shape[0])

    def describe(self) -> str:
        B, T, D = self.shape
        H = self.n_heads
        return f"{self.name} [{B},{T},{D}] (B,T,D) split into [{B},{H},{T},{D // H}] (B,H,T,dh)"


#: Heights and distances in rem, from css/head_split.css.
_GAP = 0.5
_INTRO = {sizes.WIDE: 3.0, sizes.NARROW: 4.5}
_PATH = {sizes.WIDE: 3.0, sizes.NARROW: 5.5}
_CONTROLS = {sizes.WIDE: 2 * sizes.CONTROL, sizes.NARROW: 4 * sizes.CONTROL}  # route, batch and tick box
_VERDICT = 0.5 + 6.0
_STATUS = 0.25 + 6.0


def _check_heads(shape: tuple[int, ...], n_heads: int) -> int:
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


def _last_origin(shape: tuple[int, ...]) -> str:
    """The longest text of a cell that shows where its number comes from."""
    return f"{shape[1] - 1},{shape[2] - 1}"


def _height(shape: tuple[int, ...], n_heads: int, cell: float, header: float, width: float) -> float:
    """The height of the widget in rem where `width` rem are free; a narrow page shows one batch at a time."""
    B, T, D = shape
    source_width, source = sizes.grid_size(T, D, cell, header, width)
    before = sizes.CAPTION + sizes.HEADER + source + _VERDICT + _STATUS  # the heads stand over the columns
    head_width, head = sizes.grid_size(T, D // n_heads, cell, header, width)
    head += sizes.CAPTION
    across = sizes.across(n_heads, head_width, width, _GAP)
    all_batches = width == sizes.WIDE and B * n_heads <= sizes.SIDE_BY_SIDE
    lines = n_heads // across * (B if all_batches else 1)
    result_width = across * head_width + (across - 1) * _GAP
    result = lines * head + (lines - 1) * _GAP
    side_by_side = source_width + 1.0 + result_width <= width
    split = max(before, result) if side_by_side else before + _GAP + result
    return sizes.TITLE + _INTRO[width] + _PATH[width] + _CONTROLS[width] + split + sizes.FOLD
