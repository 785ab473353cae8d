"""The height of a widget before it is drawn, so that a page can keep its place free and nothing jumps.

Nothing here knows a font. The browser makes columns as wide as their texts; what is added up here does not
depend on that: rows and lines of fixed height, and how many matrices stand side by side, which is decided by
counting. All lengths are in rem and repeat grid.css; a test in a browser holds the sums to the real
heights, with several fonts.
"""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

#: The two widths that heights are given for: pages of at least 720 px, and of 360 px.
WIDTHS = WIDE, NARROW = "wide", "narrow"

TITLE = 1.75
CONTROL = 2.0  # one line of options
LINE = 1.5  # a line of text: a caption, the headers of the columns, the summary of a fold
BAR = 0.75  # below every matrix, where its scroll bar is if it is wider than its place

#: At most this many matrices are shown at once.
SIDE_BY_SIDE = 4

#: So many characters side by side are one line of matrices.
_CHARACTERS = {WIDE: 90, NARROW: 46}


def for_widths(size: Callable[[str], float]) -> list[float]:
    """A size on wide and on narrow pages."""
    return [size(width) for width in WIDTHS]


def most_digits(values: np.ndarray, decimals: int) -> int:
    """How many digits the longest number has with these decimals: the cells keep room for as many."""
    return max(sum(map(str.isdigit, f"{value:.{decimals}f}")) for value in np.asarray(values).flat)


def row_height(width: str) -> float:
    """The height of a row of cells: on a narrow page a finger must find it."""
    return 1.75 if width == WIDE else 2.0


def grid_height(rows: int, width: str, lines: int = 1) -> float:
    """The height of a matrix with so many lines above its rows: headers, and perhaps groups and a caption."""
    return lines * LINE + rows * row_height(width) + BAR


def across(columns: Sequence[int], digits: int, width: str) -> int:
    """How many matrices with these numbers of columns stand side by side: the same number in each line.

    A number counts as its digits with a sign and a point, and the row headers as three characters.
    """
    sizes = [count * (digits + 2) + 3 for count in columns]
    fits = [
        n
        for n in range(1, len(sizes) + 1)
        if len(sizes) % n == 0 and all(sum(line) <= _CHARACTERS[width] for line in _lines(sizes, n))
    ]
    return max(fits, default=1)


def stacked(heights: Iterable[float], across: int) -> float:
    """The height of matrices of these heights, so many in a line."""
    return sum(max(line) for line in _lines(list(heights), across))


def _lines(items: Sequence, n: int) -> list[Sequence]:
    return [items[start : start + n] for start in range(0, len(items), n)]


def status_height(width: str, lines: int = 1) -> float:
    """The height of the sentence about what is pointed at: on a narrow page it takes twice as many lines."""
    return 0.25 + LINE * (lines if width == WIDE else 2 * lines)
