"""What the course's widgets have in common, and the checks of what they are given."""

from collections.abc import Mapping, Sequence

import anywidget
import numpy as np
import traitlets

from labs.figures.palette import ROLES
from labs.widgets import modules

#: More cells than this are no longer read one by one: show a part.
MOST_CELLS = 512


class CourseWidget(anywidget.AnyWidget):
    """An anywidget with a table of strings, a reserved height and a representation that never changes."""

    #: The sections of the table of strings that this kind of widget uses.
    sections: tuple[str, ...] = ()

    #: Everything that the widget shows or says, by section.
    strings = traitlets.Dict(read_only=True).tag(sync=True)
    #: Height in rem that a page keeps free: where it is at least 720 px wide, and where it is 360 px wide.
    reserve = traitlets.List(traitlets.Float(), minlen=2, maxlen=2).tag(sync=True)

    @traitlets.default("strings")
    def _strings(self) -> dict[str, dict[str, str]]:
        return modules.strings(*self.sections)

    def describe(self) -> str:
        """What the widget shows, in a few words; it stands where a notebook is read without widgets."""
        raise NotImplementedError

    def __repr__(self) -> str:
        """A text without an address, because a notebook stores it."""
        return f"{type(self).__name__}: {self.describe()}"


def check_values(values, name: str = "values") -> np.ndarray:
    """Return `values` as a float64 array, if a widget can show it.

    Raises: TypeError for anything but real numbers; ValueError for other than 1 to 4 axes, for no or too many
        cells, and for numbers that are not finite.
    """
    array = np.asarray(values)
    if array.dtype.kind not in "iufb":
        raise TypeError(f"{name} must be an array of real numbers, got dtype {array.dtype}")
    if not 1 <= array.ndim <= 4:
        raise ValueError(f"{name} must have 1 to 4 axes, got shape {array.shape}")
    if not 0 < array.size <= MOST_CELLS:
        raise ValueError(f"{name} must have 1 to {MOST_CELLS} cells, got shape {array.shape}: show a slice")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got {array[~np.isfinite(array)][0]}: replace it first")
    return array.astype(np.float64)


def check_role(role: str) -> str:
    """Return `role` if the palette has a colour for it; raise ValueError if not."""
    if role not in ROLES:
        raise ValueError(f"role must be one of {', '.join(ROLES)}, got {role!r}")
    return role


def check_axes(axes: Sequence[str], shape: tuple[int, ...]) -> list[str]:
    """Return the names of an array's axes: a text gives one letter each, a sequence also longer names ("dh").

    Raises: ValueError unless they are as many as the array has axes, distinct, and lower-case letters.
    """
    names = list(axes)
    if len(names) != len(shape):
        raise ValueError(f"axes must name each axis of shape {shape} once, got {axes!r}")
    if len(set(names)) != len(names):
        raise ValueError(f"axes must be distinct, got {axes!r}: two axes of one kind need two letters")
    for name in names:
        if not (isinstance(name, str) and name.isascii() and name.isalpha() and name.islower()):
            raise ValueError(f"axes must be lower-case letters such as 'btd', got {axes!r}")
    return names


def check_labels(
    labels: Mapping[str, Sequence] | None, axes: Sequence[str], shape: tuple[int, ...]
) -> dict[str, list[list[str]]]:
    """Return the labels of each axis in one form: a list of lists, one for all or one a first index.

    Args:
        labels: axis name -> one text for each of its indices (a list, or a text of single letters), or a list
            of such lists, one for each index of the first axis: each row of a batch has its own letters.
        axes: the names of the array's axes.
        shape: the array's shape.

    Raises: ValueError for an axis that is not there or a wrong number of labels.
    """
    checked = {}
    for axis, given in (labels or {}).items():
        if axis not in axes:
            raise ValueError(f"labels must be for one of the axes {', '.join(axes)}; got {axis!r}")
        size = shape[list(axes).index(axis)]
        one = all(isinstance(item, str) for item in given)
        lists = [list(given)] if one else [list(item) for item in given]
        if len(lists) not in {1, shape[0]} or any(len(texts) != size for texts in lists):
            raise ValueError(
                f"labels[{axis!r}] must be {size} texts, or {shape[0]} lists of {size} texts, "
                f"one for each index of axis {axes[0]!r}; got {given!r}"
            )
        checked[axis] = lists
    return checked


def check_limit(limit: float | None, values: np.ndarray) -> float:
    """Return the end of a symmetric colour scale: `limit`, or by default the largest magnitude (1 for zeros).

    Raises: ValueError unless it is positive and finite.
    """
    if limit is None:
        return float(np.abs(values).max()) or 1.0
    if not (np.isfinite(limit) and limit > 0):
        raise ValueError(f"limit must be positive, the magnitude of the strongest colour, got {limit}")
    return float(limit)


def check_decimals(decimals: int) -> int:
    """Return the number of decimals shown; raise ValueError unless it is 0 to 6."""
    if not (isinstance(decimals, int) and 0 <= decimals <= 6):
        raise ValueError(f"decimals must be an integer from 0 to 6, got {decimals!r}")
    return decimals


def check_selected(selected: int, size: int) -> int:
    """Return a position among `size` cells, or -1 for none; raise TraitError for anything else."""
    if not -1 <= selected < size:
        raise traitlets.TraitError(f"selected must be -1 for none or from 0 to {size - 1}, got {selected}")
    return selected


def check_picked(name: str, picked: int, size: int) -> int:
    """Return an index on an axis of this size; raise TraitError, naming the trait, for anything else."""
    if not 0 <= picked < size:
        raise traitlets.TraitError(f"{name} must be 0 to {size - 1}, got {picked}")
    return picked


def size_name(axis: str) -> str:
    """An axis in the name of a shape, as the course writes it: "b" is B, "dh" is dh."""
    return axis.upper() if len(axis) == 1 else axis
