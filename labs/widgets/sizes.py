"""The height of a widget before it is drawn, so that a page can keep its place free and nothing jumps.

All lengths are in rem and repeat css/grid.css; a test in a browser holds the sums to the real heights.
"""

from collections.abc import Iterable, Mapping

import numpy as np

#: The two widths that heights are given for: in pages of at least 720 px, and of 360 px less margins.
WIDE, NARROW = 39.0, 20.0

TITLE = 1.75
CONTROL = 2.0  # one line of options
CAPTION = 1.5
HEADER = 1.25  # one line of column headers
FOLD = 1.5
LINE = 1.5  # a line of text
SCROLLBAR = 1.0

#: At most this many matrices are shown at once.
SIDE_BY_SIDE = 4


def cell_width(texts: Iterable[str]) -> float:
    """The width of cells that have room for every text: 2 rem, and 0.4 rem a character from six on."""
    return max(2.0, 0.4 * max(map(len, texts)))


def header_width(labels: Iterable[str]) -> float:
    """The width of row headers with room for an index and the longest label."""
    return 1.25 + 0.5 * max(map(len, labels), default=1)


def formatted(values: np.ndarray, decimals: int) -> list[str]:
    """Every number as the cells show it."""
    return [f"{value:.{decimals}f}" for value in values.flat]


def labels_of(labels: Mapping[str, list[list[str]]], axes: Iterable[str]) -> list[str]:
    """All labels of the given axes."""
    return [text for axis in axes for texts in labels.get(axis, []) for text in texts]


def row_height(width: float) -> float:
    """The height of a row of cells: on a narrow screen a finger must find it."""
    return 1.75 if width == WIDE else 2.0


def status_height(width: float) -> float:
    """The height of the line that says what is pointed at; on a narrow screen it has two lines."""
    return 0.25 + LINE * (1 if width == WIDE else 2)


def grid_size(rows: int, columns: int, cell: float, header: float, width: float) -> tuple[float, float]:
    """Width and height of a grid without caption; wider than the page, it gets a scroll bar."""
    wanted = header + columns * cell
    height = HEADER + rows * row_height(width)
    return (wanted, height) if wanted <= width else (width, height + SCROLLBAR)


def captioned(rows: int, columns: int, cell: float, header: float, width: float) -> tuple[float, float]:
    """Width and height of a grid with its caption."""
    grid_width, height = grid_size(rows, columns, cell, header, width)
    return grid_width, CAPTION + height


def gap(width: float) -> float:
    """The distance between matrices."""
    return 1.0 if width == WIDE else 0.5


def across(count: int, box_width: float, width: float, distance: float) -> int:
    """How many of `count` boxes stand side by side: as many as fit, but the same number in each line."""
    fit = max(1, int((width + distance) / (box_width + distance)))
    return max(n for n in range(1, fit + 1) if count % n == 0)


def wrapped(count: int, box: tuple[float, float], width: float) -> float:
    """The height of `count` boxes of one width and height, laid out in lines."""
    lines = count // across(count, box[0], width, gap(width))
    return lines * box[1] + (lines - 1) * gap(width)


def flowed(boxes: Iterable[tuple[float, float]], width: float, column_gap: float, row_gap: float) -> float:
    """The height of boxes of different sizes in lines, each line filled as long as the next box fits."""
    lines: list[tuple[float, float]] = []  # width and height of each
    for box_width, height in boxes:
        if lines and lines[-1][0] + column_gap + box_width <= width:
            line_width, line_height = lines.pop()
            lines.append((line_width + column_gap + box_width, max(line_height, height)))
        else:
            lines.append((box_width, height))
    return sum(height for _, height in lines) + (len(lines) - 1) * row_gap
