"""TraceExplorer: every number of one forward and one backward pass, and how each of them comes about."""

from collections.abc import Mapping, Sequence
from functools import partial
from math import prod

import numpy as np
import traitlets

from labs.course import diagram, notation
from labs.llm.model import ModelConfig
from labs.llm.trace import Step, Trace, formula, trace
from labs.widgets.shared import modules, sizes
from labs.widgets.shared.base import MOST_CELLS, CourseWidget, require_index, require_vocabulary

#: A page carries every number of both passes, eight bytes each: larger models make it slow to load.
MOST_NUMBERS = 16_384

#: The axes that the reader picks an index on; the others, at most two, are the rows and columns of a matrix.
PICKED_AXES = ("b", "h")


class TraceExplorer(CourseWidget):
    """Step through one forward and one backward pass, and ask any number where it came from.

    A map of the model, drawn from the trace, has a stop for every tensor. The tensor of the current stop is
    shown as a grid, for the chosen batch and head. For the selected entry the widget shows the formula in
    symbols, with its indices and with its numbers, the terms that add up, and the entries it was computed
    from, where they live; a click on one of them goes there.

    Args:
        params: the parameters, as from `labs.llm.model.init_params`.
        config: their ModelConfig.
        ids: the tokens, (B,T).
        targets: the token that follows each of them, (B,T).
        vocabulary: a text for each id.
        backward: whether the backward pass is shown too.

    All tensors together may have at most 16384 numbers, and a matrix at most 512 cells.

    Raises: TypeError or ValueError, saying which argument and what it must be.
    """

    _esm = modules.script("trace_explorer/view.js")
    _css = modules.style("shared/grid.css", "shared/attention.css", "trace_explorer/style.css")
    sections = ("tensor", "attention", "trace_explorer")

    #: All tensors, one after the other: float64, little-endian, row-major; equal tensors are stored once.
    numbers = traitlets.Bytes().tag(sync=True)
    #: One record a tensor, in order of computation: see `_record`.
    steps = traitlets.List(traitlets.Dict()).tag(sync=True)
    #: What the letters and settings in a formula stand for: B, T, ..., eps, base.
    sizes = traitlets.Dict().tag(sync=True)
    layers = traitlets.Int().tag(sync=True)
    labels = traitlets.Dict().tag(sync=True)
    #: What the reader chooses: the tensor, which layer the map shows, batch, head,
    step = traitlets.Int().tag(sync=True)
    layer = traitlets.Int(0).tag(sync=True)
    batch = traitlets.Int(0).tag(sync=True)
    head = traitlets.Int(0).tag(sync=True)
    #: the entry of the shown matrix, row-major, or -1 for one that the widget chooses,
    selected = traitlets.Int(-1).tag(sync=True)
    #: and where the reader came from by following numbers: [step, batch, head, selected] each.
    trail = traitlets.List(traitlets.List(traitlets.Int(), minlen=4, maxlen=4)).tag(sync=True)

    def __init__(
        self,
        params: Mapping,
        config: ModelConfig,
        ids,
        targets,
        vocabulary: Sequence[str],
        backward: bool = True,
    ):
        letters = require_vocabulary(vocabulary, config.vocab_size)
        traced = trace(params, ids, targets, config)
        kept = [step for step in traced.steps if backward or step.phase != "backward"]
        _require_steps(kept)
        numbers, starts = _joined(kept)
        labels = _labels(np.asarray(ids), letters)
        super().__init__(
            numbers=numbers,
            steps=[_record(step, traced, start) for step, start in zip(kept, starts, strict=True)],
            sizes=dict(traced.sizes),
            layers=config.n_layers,
            labels=labels,
            step=next(n for n, step in enumerate(kept) if step.phase != "given"),
            height=partial(_height, config, np.shape(ids)[1]),
        )

    def counts(self) -> dict[str, int]:
        return {
            "step": len(self.steps),
            "layer": self.layers,
            "batch": self.sizes["B"],
            "head": self.sizes["H"],
            "selected": self._cells(),
        }

    @traitlets.validate("trail")
    def _require_trail(self, proposal):
        for step, *_ in proposal["value"]:
            require_index("step of the trail", step, len(self.steps))
        return proposal["value"]

    @traitlets.observe("step")
    def _reveal(self, _change):
        """The map shows the layer of the new tensor; an entry that it does not have is no longer selected."""
        if self.selected >= self._cells():
            self.selected = -1
        if (layer := self.steps[self.step]["layer"]) is not None:
            self.layer = layer

    def _cells(self) -> int:
        """How many cells the shown matrix has."""
        return prod(_matrix(self.steps[self.step]["axes"], self.steps[self.step]["shape"]))

    def describe(self) -> str:
        phases = [step["phase"] for step in self.steps]
        passes = f"{phases.count('forward')} tensors forward"
        if "backward" in phases:
            passes += f" and {phases.count('backward')} backward"
        return f"{passes}, every number with its formula"


def _require_steps(steps: Sequence[Step]) -> None:
    """Raise ValueError unless a page can carry the trace and show every matrix."""
    for step in steps:
        if not (np.isfinite(step.value) | (step.value == -np.inf)).all():
            raise ValueError(f"the trace must hold numbers, got NaN or inf in {step.key}: look at params")
        cells = prod(_matrix(step.axes, step.value.shape))
        if cells > MOST_CELLS:
            raise ValueError(
                f"a matrix may have at most {MOST_CELLS} cells, got {cells} in {step.key} "
                f"{step.value.shape}: take a smaller model"
            )
    count = sum(step.value.size for step in steps)
    if count > MOST_NUMBERS:
        raise ValueError(
            f"the trace may have at most {MOST_NUMBERS} numbers, got {count}: "
            "take a smaller model, fewer tokens, or backward=False"
        )


def _matrix(axes: Sequence[str], shape: Sequence[int]) -> tuple[int, ...]:
    """The part of a shape that is shown at once."""
    return tuple(size for axis, size in zip(axes, shape, strict=True) if axis not in PICKED_AXES)


def _joined(steps: Sequence[Step]) -> tuple[bytes, list[int]]:
    """All tensors as one text of bytes, and where each begins, counted in numbers."""
    places: dict[bytes, int] = {}
    parts: list[bytes] = []
    starts, end = [], 0
    for step in steps:
        data = np.ascontiguousarray(step.value, "<f8").tobytes()
        if data not in places:
            places[data] = end
            parts.append(data)
            end += step.value.size
        starts.append(places[data])
    return b"".join(parts), starts


def _record(step: Step, traced: Trace, start: int) -> dict:
    """A step as the page reads it.

    `start` is where its numbers begin, `formula` its tree, `reads` name in the formula -> key; `limit` the
    magnitude with the strongest colour, `digits` how many the cells have room for.
    """
    decimals = _decimals(step.value)
    return {
        "key": step.key,
        "name": step.name,
        "axes": list(step.axes),
        "shape": list(step.value.shape),
        "start": start,
        "formula": None if step.formula is None else formula.parse(step.formula, step.axes),
        "reads": dict(step.reads),
        "phase": step.phase,
        "part": step.part,
        "layer": step.layer,
        "by": step.by,
        "of": step.gradient_of,
        "role": _role(step, traced),
        "decimals": decimals,
        "digits": sizes.most_digits(step.value, decimals),
        "limit": float(np.abs(step.value[np.isfinite(step.value)]).max(initial=0)) or 1.0,
    }


def _decimals(value: np.ndarray) -> int:
    """How many decimals the cells show: none of integers, else two to six.

    As many as show every number exactly, or, where that takes too many, three digits of the largest.
    """
    if value.dtype.kind in "iub":
        return 0
    finite = value[np.isfinite(value)]
    largest = np.abs(finite).max(initial=0)
    most = 2 if largest == 0 else int(np.clip(2 - np.floor(np.log10(largest)), 2, 6))
    return next((n for n in range(2, most) if (finite.round(n) == finite).all()), most)


#: The role of each tensor that the notation page names, and what stands for the others: that of their part.
_ROLES = {name: tensor.role for tensor in notation.TENSORS for name in tensor.code.split(", ")}
_PART_ROLES = {node.name: node.role for node in diagram.NODES}


def _role(step: Step, traced: Trace) -> str:
    """The role of a tensor: a gradient has that of its tensor, q_rot that of q."""
    if step.gradient_of is not None:
        return _role(traced[step.gradient_of], traced)
    if step.name in _ROLES:
        return _ROLES[step.name]
    if step.phase == "given":
        return "tokens" if step.name in ("ids", "targets") else "weight"
    stem = step.name.split("_")[0]
    if step.phase == "backward":
        stem = stem.removeprefix("d")
    return _ROLES.get(stem, _PART_ROLES[step.part])


def _labels(ids: np.ndarray, letters: list[str]) -> dict[str, list[list[str]]]:
    """The letters of positions, for each batch, and of the vocabulary."""
    words = [[letters[i] for i in row] for row in ids]
    return {"t": words, "i": words, "j": words, "v": [letters]}


#: Heights in rem, from style.css, on wide and narrow pages: introduction, controls and map ...
_ABOVE = {
    sizes.WIDE: 3.0 + 2.0 + 21.0 + 2.0 + 2.0 + 1.5 + 1.5,
    sizes.NARROW: 7.5 + 4.0 + 27.0 + 4.0 + 4.0 + 3.0 + 1.5,
}
#: ... the least height of matrix and formula, the formula alone, the title of the sources and of one source.
_DETAIL, _FORMULA, _TITLES = 10.5, 9.0, 3.0
_SOURCE_ROW = 1.5


def _height(config: ModelConfig, T: int, width: str) -> float:
    """The height in rem that a page keeps free: room for the first tensor, X, and for most of the others."""
    matrix = sizes.grid_height(T, width)
    detail = max(_DETAIL, matrix) if width == sizes.WIDE else 0.5 + matrix + _FORMULA
    sources = 2 * (sizes.LINE + sizes.BAR) + (config.vocab_size + T) * _SOURCE_ROW + 2 * _TITLES
    return _ABOVE[width] + detail + sizes.status_height(width) + sources + 2 * sizes.LINE
