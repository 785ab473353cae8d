"""What the course's widgets have in common, and what they refuse."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Real

import anywidget
import numpy as np
import traitlets

from labs.course.palette import ROLES
from labs.widgets.shared import modules, sizes

#: More cells than this are no longer read one by one: show a part.
MOST_CELLS = 512


class CourseWidget(anywidget.AnyWidget):
    """An anywidget with a table of strings, a reserved height and a representation that never changes.

    Args:
        height: the height in rem that a page keeps free, for each of `sizes.WIDTHS`.
        traits: the values of the traits.
    """

    #: The sections of the table of strings that this kind of widget uses.
    sections: tuple[str, ...] = ()

    #: Everything that the widget shows or says, by section.
    strings = traitlets.Dict(read_only=True).tag(sync=True)
    #: Height in rem that a page keeps free, for each of `sizes.WIDTHS`.
    reserve = traitlets.List(traitlets.Float(), minlen=2, maxlen=2).tag(sync=True)

    def __init__(self, *, height: Callable[[str], float], **traits):
        super().__init__(reserve=sizes.for_widths(height), **traits)

    @traitlets.default("strings")
    def _strings(self) -> dict[str, dict[str, str]]:
        return modules.strings(*self.sections)

    def counts(self) -> dict[str, int]:
        """How many the reader chooses from, by the name of the trait: "batch", "head", "selected", ..."""
        return {}

    @traitlets.validate("batch", "head", "layer", "step")
    def _require_index(self, proposal):
        name = proposal["trait"].name
        return require_index(name, proposal["value"], self.counts()[name])

    @traitlets.validate("selected")
    def _require_selected(self, proposal):
        return require_selected(proposal["value"], self.counts()["selected"])

    def describe(self) -> str:
        """What the widget shows, in a few words; it stands where a notebook is read without widgets."""
        raise NotImplementedError

    def __repr__(self) -> str:
        """A text without an address, because a notebook stores it."""
        return f"{type(self).__name__}: {self.describe()}"


def require_values(values, name: str = "values") -> np.ndarray:
    """Return `values` as a float64 array, if a widget can show it.

    Raises: TypeError for anything but real numbers, and for a masked array; ValueError for rows of different
        lengths, for other than 1 to 4 axes, for no or too many cells, and for numbers that are not finite as
        float64.
    """
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError(f"{name} must be an array without a mask, got a masked array: fill it first")
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} must be an array, with rows of one length: {error}") from error
    if array.dtype.kind not in "iufb":
        raise TypeError(f"{name} must be an array of real numbers, got dtype {array.dtype}")
    if not 1 <= array.ndim <= 4:
        raise ValueError(f"{name} must have 1 to 4 axes, got shape {array.shape}")
    if not 0 < array.size <= MOST_CELLS:
        raise ValueError(f"{name} must have 1 to {MOST_CELLS} cells, got shape {array.shape}: show a slice")
    with np.errstate(over="ignore"):  # refused below
        floats = array.astype(np.float64)
    if not np.isfinite(floats).all():
        wrong = str(array[~np.isfinite(floats)][0])  # an f-string would make a float of it
        raise ValueError(f"{name} must be finite, got {wrong}: replace what float64 cannot hold first")
    return floats


def require_name(name: str) -> str:
    """Return `name` if it is a text; raise TypeError if not."""
    if not isinstance(name, str):
        raise TypeError(f"name must be a text, what the page calls the tensor, got {name!r}")
    return name


def require_choice(name: str, value: str, choices: Iterable[str]) -> str:
    """Return `value` if it is one of `choices`; raise ValueError if not."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}; got {value!r}")
    return value


def require_role(role: str) -> str:
    """Return `role` if the palette has a colour for it; raise ValueError if not."""
    return require_choice("role", role, ROLES)


def require_axes(axes: Sequence[str], shape: tuple[int, ...]) -> list[str]:
    """Return the names of an array's axes: a text gives one letter each, a sequence also longer names ("dh").

    Raises: TypeError for anything but a sequence; ValueError unless they are as many as the array has axes,
        distinct, and lower-case letters.
    """
    if not isinstance(axes, Sequence):
        raise TypeError(f"axes must be a text such as 'btd', or a list of texts, got {axes!r}")
    names = list(axes)
    if len(names) != len(shape):
        raise ValueError(f"axes must name each axis of shape {shape} once, got {axes!r}")
    for name in names:
        if not (isinstance(name, str) and name.isascii() and name.isalpha() and name.islower()):
            raise ValueError(f"axes must be lower-case letters such as 'btd', got {axes!r}")
    if len(set(names)) != len(names):
        raise ValueError(f"axes must be distinct, got {axes!r}: two axes of one kind need two letters")
    return names


def require_labels(
    labels: Mapping[str, Sequence] | None, axes: Sequence[str], shape: tuple[int, ...]
) -> dict[str, list[list[str]]]:
    """Return the labels of each axis in one form: a list of lists, one for all or one a first index.

    Args:
        labels: axis name -> one text for each of its indices (a list, or a text of single letters), or a list
            of such lists, one for each index of the first axis: each row of a batch has its own letters.
        axes: the names of the array's axes.
        shape: the array's shape.

    Raises: TypeError for anything but a mapping, and for labels that are not texts; ValueError for an axis
        that is not there or a wrong number of labels.
    """
    if labels is None:
        return {}
    if not isinstance(labels, Mapping):
        raise TypeError(f"labels must be a dict, axis -> a text for each index, got {labels!r}")
    names, checked = list(axes), {}
    for axis, given in labels.items():
        if axis not in names:
            raise ValueError(f"labels must be for one of the axes {', '.join(names)}; got {axis!r}")
        size = shape[names.index(axis)]
        wanted = (
            f"labels[{axis!r}] must be {size} texts, or {shape[0]} lists of {size} texts, "
            f"one for each index of axis {names[0]!r}; got {given!r}"
        )
        lists = _lists_of_texts(given)
        if lists is None:
            raise TypeError(f"{wanted}: a number is written str(number)")
        if len(lists) not in {1, shape[0]} or any(len(texts) != size for texts in lists):
            raise ValueError(wanted)
        checked[axis] = lists
    return checked


def _lists_of_texts(given: object) -> list[list[str]] | None:
    """Return texts as one list, and lists of texts as they are; None for anything else."""
    if not isinstance(given, Iterable):
        return None
    items = list(given)
    if all(isinstance(item, str) for item in items):
        return [items]
    lists = [list(item) if isinstance(item, Iterable) else [item] for item in items]
    return lists if all(isinstance(text, str) for texts in lists for text in texts) else None


def require_limit(limit: float | None, values: np.ndarray) -> float:
    """Return the end of a symmetric colour scale: `limit`, or by default the largest magnitude (1 for zeros).

    Raises: TypeError unless it is a real number; ValueError unless it is positive and finite as float64.
    """
    if limit is None:
        return float(np.abs(values).max()) or 1.0
    if isinstance(limit, bool) or not isinstance(limit, Real):
        raise TypeError(f"limit must be a number, the magnitude of the strongest colour, got {limit!r}")
    try:
        number = float(limit)
    except OverflowError:  # an integer that no float can hold
        number = math.inf
    if not 0 < number < math.inf:
        raise ValueError(
            f"limit must be positive and finite, the magnitude of the strongest colour, got {number}"
        )
    return number


def require_decimals(decimals: int) -> int:
    """Return the number of decimals shown; raise ValueError unless it is 0 to 6."""
    if not (is_integer(decimals) and 0 <= decimals <= 6):
        raise ValueError(f"decimals must be an integer from 0 to 6, got {decimals!r}")
    return int(decimals)


def require_vocabulary(vocabulary: Sequence[str], V: int) -> list[str]:
    """Return the vocabulary as a list; raise unless it has a text for each id."""
    names = list(vocabulary)
    if len(names) != V or not all(isinstance(name, str) and name for name in names):
        raise ValueError(f"vocabulary must be V = {V} texts, one for each id, got {vocabulary!r}")
    return names


def is_integer(value: object) -> bool:
    """Whether `value` is an integer of Python or NumPy; True and False are not."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def require_selected(selected: int, size: int) -> int:
    """Return a position among `size` cells, or -1 for none; raise TraitError for anything else."""
    if not -1 <= selected < size:
        raise traitlets.TraitError(f"selected must be -1 for none or from 0 to {size - 1}, got {selected}")
    return selected


def require_index(name: str, picked: int, size: int) -> int:
    """Return an index on an axis of this size; raise TraitError, naming the trait, for anything else."""
    if not 0 <= picked < size:
        raise traitlets.TraitError(f"{name} must be 0 to {size - 1}, got {picked}")
    return picked


def size_name(axis: str) -> str:
    """An axis in the name of a shape, as the course writes it: "b" is B, "dh" is dh."""
    return axis.upper() if len(axis) == 1 else axis
