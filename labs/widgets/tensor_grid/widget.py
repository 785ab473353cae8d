"""TensorGrid: a small array as grids of cells, the picture that all other widgets are made of."""

from collections.abc import Mapping, Sequence
from functools import partial
from math import prod

import numpy as np
import traitlets

from labs.widgets.shared import modules, sizes
from labs.widgets.shared.base import (
    CourseWidget,
    require_axes,
    require_decimals,
    require_labels,
    require_limit,
    require_name,
    require_role,
    require_values,
    size_name,
)


class TensorGrid(CourseWidget):
    """Show every number of a small array, coloured on one scale that is symmetric about zero.

    The last two axes are rows and columns. As many as fit of the axes before them are laid out side by side;
    on the others the reader picks an index. The cell that the reader selects is `selected`.

    Args:
        values: real numbers with 1 to 4 axes and at most 512 cells; copied.
        axes: a name for each axis: a text of letters ("btd"), or a sequence where one is longer.
        name: what the text calls the array.
        role: what it is in the model, a key of `labs.course.palette.ROLES`: its colour.
        labels: axis name -> a text for each of its indices, or a list of those for each index of axis 0.
        decimals: how many are shown.
        limit: the magnitude with the strongest colour; by default the largest in `values`. Give two grids the
            same one to compare them.

    Raises: TypeError or ValueError, saying which argument and what it must be.
    """

    _esm = modules.script("tensor_grid/view.js")
    _css = modules.style("shared/grid.css")
    sections = ("tensor", "tensor_grid")

    name = traitlets.Unicode().tag(sync=True)
    role = traitlets.Unicode().tag(sync=True)
    axes = traitlets.List(traitlets.Unicode()).tag(sync=True)
    shape = traitlets.List(traitlets.Int()).tag(sync=True)
    #: The numbers, row-major.
    values = traitlets.List(traitlets.Float()).tag(sync=True)
    labels = traitlets.Dict().tag(sync=True)
    decimals = traitlets.Int().tag(sync=True)
    limit = traitlets.Float().tag(sync=True)
    #: How many digits the cells have room for.
    digits = traitlets.Int().tag(sync=True)
    #: How many matrices stand side by side, on wide and on narrow pages.
    across = traitlets.List(traitlets.Int()).tag(sync=True)
    #: Index picked on each axis that is neither shown side by side nor rows nor columns.
    picked = traitlets.List(traitlets.Int()).tag(sync=True)
    #: Position in `values` of the selected cell, or -1.
    selected = traitlets.Int(-1).tag(sync=True)

    def __init__(
        self,
        values,
        axes: Sequence[str] = "btd",
        name: str = "X",
        role: str = "x",
        labels: Mapping[str, Sequence] | None = None,
        decimals: int = 2,
        limit: float | None = None,
    ):
        array = require_values(values)
        names = require_axes(axes, array.shape)
        shown = require_labels(labels, names, array.shape)
        decimals = require_decimals(decimals)
        digits = sizes.most_digits(array, decimals)
        super().__init__(
            name=require_name(name),
            role=require_role(role),
            axes=names,
            shape=list(array.shape),
            values=array.ravel().tolist(),
            labels=shown,
            decimals=decimals,
            limit=require_limit(limit, array),
            digits=digits,
            across=sizes.for_widths(partial(_across, array.shape, digits)),
            picked=[0] * _picked_axes(array.shape),
            height=partial(_height, array.shape, digits),
        )

    def counts(self) -> dict[str, int]:
        return {"selected": prod(self.shape)}

    @traitlets.observe("selected")
    def _reveal(self, change):
        """The selected cell comes into sight."""
        if change["new"] >= 0:
            index = np.unravel_index(change["new"], self.shape)
            self.picked = [int(i) for i in index[: len(self.picked)]]

    @traitlets.validate("picked")
    def _require_picked(self, proposal):
        picked, most = proposal["value"], self.shape[: _picked_axes(self.shape)]
        if len(picked) != len(most) or not all(0 <= i < size for i, size in zip(picked, most, strict=True)):
            raise traitlets.TraitError(f"picked must have one index below each of {most}, got {picked}")
        return picked

    def describe(self) -> str:
        numbers, letters = ",".join(map(str, self.shape)), ",".join(map(size_name, self.axes))
        return f"{self.name} [{numbers}] ({letters})"


def _tiled_axes(shape: Sequence[int]) -> int:
    """How many leading axes are laid out side by side: as many as make at most SIDE_BY_SIDE matrices."""
    leading = list(shape[:-2])
    return max(n for n in range(len(leading) + 1) if prod(leading[len(leading) - n :]) <= sizes.SIDE_BY_SIDE)


def _picked_axes(shape: Sequence[int]) -> int:
    """How many leading axes the reader picks an index on."""
    return max(0, len(shape) - 2 - _tiled_axes(shape))


def _shown(shape: Sequence[int]) -> int:
    """How many matrices are shown at once."""
    return prod(shape[_picked_axes(shape) : -2])


def _across(shape: Sequence[int], digits: int, width: str) -> int:
    """How many matrices stand side by side on a page of this width."""
    return sizes.across([shape[-1]] * _shown(shape), digits, width)


def _height(shape: Sequence[int], digits: int, width: str) -> float:
    """The height of the widget in rem on a page of this width."""
    rows, lines = (1, *shape)[-2], 2 if len(shape) > 2 else 1  # with or without captions
    matrices = sizes.stacked(
        [sizes.grid_height(rows, width, lines)] * _shown(shape), _across(shape, digits, width)
    )
    controls = sizes.CONTROL if _picked_axes(shape) else 0
    return sizes.TITLE + controls + matrices + sizes.status_height(width) + sizes.LINE
