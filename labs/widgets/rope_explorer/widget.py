"""RopeExplorer: a query and a key rotated by their positions, and the score that comes of it."""

import numpy as np
import traitlets

from labs.widgets.shared import modules, sizes
from labs.widgets.shared.base import CourseWidget, require_values

#: The positions that the reader can choose are 0 to this one: `LAST_POSITION` of state.js.
LAST_POSITION = 63

#: The bases that the reader can choose, besides the one that is given.
BASES = (1.0, 10.0, 100.0, 1_000.0, 10_000.0, 100_000.0, 1_000_000.0)

#: What is wider or larger no longer fits the grid.
MOST_COLUMNS, MOST_MAGNITUDE = 16, 100.0


class RopeExplorer(CourseWidget):
    """Rotate the pairs of a query at position m and of a key at position n, and watch their score q·k.

    The reader moves m and n, alone or both together, and chooses the base and the pair that is drawn on its
    circle. Two switches break it: the key's pairs are laid out by halves, or the value is rotated as well.

    Args:
        q, k: the query and the key before RoPE, (dh,), dh even and at most 16; copied.
        base: sets how fast each pair rotates: pair r by base ** (-2r / dh) radians a position; 1 to 1e9.
        v: the value at the key's position, (dh,); by default [1, 0] in every pair: its angle is easily seen.

    Raises: TypeError or ValueError, saying which argument and what it must be.
    """

    _esm = modules.script("rope_explorer/view.js")
    _css = modules.style("shared/grid.css", "rope_explorer/style.css")
    sections = ("rope_explorer",)

    q = traitlets.List(traitlets.Float()).tag(sync=True)
    k = traitlets.List(traitlets.Float()).tag(sync=True)
    v = traitlets.List(traitlets.Float()).tag(sync=True)
    #: The bases to choose from, ascending.
    bases = traitlets.List(traitlets.Float()).tag(sync=True)
    #: The magnitude with the strongest colour, and how many digits the cells have room for.
    limit = traitlets.Float().tag(sync=True)
    digits = traitlets.Int().tag(sync=True)
    #: What the reader chooses: the positions of query and key, the base, and the pair on the circle.
    m = traitlets.Int(4).tag(sync=True)
    n = traitlets.Int(1).tag(sync=True)
    base = traitlets.Float().tag(sync=True)
    pair = traitlets.Int(0).tag(sync=True)
    #: Whether m and n move together, the key is paired by halves, and the value is rotated as well.
    together = traitlets.Bool(False).tag(sync=True)
    mixed = traitlets.Bool(False).tag(sync=True)
    rotate_values = traitlets.Bool(False).tag(sync=True)

    def __init__(self, q, k, base: float = 10_000.0, v=None):
        query = _require_vector("q", q)
        key = _require_vector("k", k, query)
        value = np.resize([1.0, 0.0], query.shape) if v is None else _require_vector("v", v, query)
        base = _require_base(base)
        longest = [_longest_pair(vector) for vector in (query, key, value)]
        super().__init__(
            q=query.tolist(),
            k=key.tolist(),
            v=value.tolist(),
            bases=sorted({*BASES, base}),
            base=base,
            limit=max(longest) or 1.0,
            digits=sizes.most_digits(np.array([*longest, longest[0] * longest[1]]), _DECIMALS),
            height=_height,
        )

    @traitlets.validate("m", "n")
    def _require_position(self, proposal):
        name, position = proposal["trait"].name, proposal["value"]
        if not 0 <= position <= LAST_POSITION:
            raise traitlets.TraitError(f"{name} must be a position from 0 to {LAST_POSITION}, got {position}")
        return position

    @traitlets.validate("pair")
    def _require_pair(self, proposal):
        pairs = len(self.q) // 2
        if not 0 <= proposal["value"] < pairs:
            raise traitlets.TraitError(f"pair must be 0 to dh/2 - 1 = {pairs - 1}, got {proposal['value']}")
        return proposal["value"]

    @traitlets.validate("base")
    def _require_choice_of_base(self, proposal):
        if proposal["value"] not in self.bases:
            choices = ", ".join(f"{base:g}" for base in self.bases)
            raise traitlets.TraitError(f"base must be one of {choices}; got {proposal['value']}")
        return proposal["value"]

    def describe(self) -> str:
        width = len(self.q)
        return f"q [{width}] (dh) at position {self.m}, k [{width}] (dh) at position {self.n}"


#: Decimals in the cells: `CELL_DECIMALS` of state.js.
_DECIMALS = 2

#: Heights in rem, from style.css.
_INTRO = {sizes.WIDE: 3.0, sizes.NARROW: 6.0}
_CONTROLS = {sizes.WIDE: 3 * sizes.CONTROL, sizes.NARROW: 7 * sizes.CONTROL}
_PICTURES = {sizes.WIDE: 13.0, sizes.NARROW: 13.0 + 11.5}
_READING = {sizes.WIDE: 0.5 + 9.0, sizes.NARROW: 0.5 + 7.5 + 9.0}
_ROWS = 4


def _require_vector(name: str, values, query: np.ndarray | None = None) -> np.ndarray:
    """Return `values` as a vector (dh,) that RoPE can turn, as wide as the query.

    Raises: TypeError or ValueError, saying what it must be.
    """
    vector = require_values(values, name)
    if query is not None and vector.shape != query.shape:
        raise ValueError(f"{name} must be as wide as q, (dh,) = {query.shape}, got {vector.shape}")
    if vector.ndim != 1 or vector.size % 2 or vector.size > MOST_COLUMNS:
        raise ValueError(
            f"{name} must have shape (dh,) with dh even and at most {MOST_COLUMNS}, got {vector.shape}: "
            "RoPE rotates pairs, and the grid shows one position of one head"
        )
    if np.abs(vector).max() > MOST_MAGNITUDE:
        raise ValueError(
            f"{name} must be at most {MOST_MAGNITUDE:g} in magnitude, got {np.abs(vector).max():g}: scale it"
        )
    return vector


def _longest_pair(vector: np.ndarray) -> float:
    """The largest number that rotation can make of a vector: the length of its longest pair in any layout."""
    neighbours, halves = vector.reshape(-1, 2), vector.reshape(2, -1).T
    return float(np.linalg.norm([*neighbours, *halves], axis=-1).max())


def _require_base(base: float) -> float:
    """Return the base as a float; raise ValueError unless it is a number from 1 to 1e9."""
    number = not isinstance(base, bool) and isinstance(base, int | float | np.integer | np.floating)
    if not (number and 1 <= base <= 1e9):
        raise ValueError(f"base must be a number from 1 to 1e9, got {base!r}")
    return float(base)


def _height(width: str) -> float:
    """The height of the widget in rem on a page of this width."""
    grid = sizes.grid_height(_ROWS, width, lines=3)  # the pairs stand over the columns
    above = sizes.TITLE + _INTRO[width] + _CONTROLS[width] + _PICTURES[width] + _READING[width]
    return above + grid + sizes.status_height(width) + sizes.LINE
