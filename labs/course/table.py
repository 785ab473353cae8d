"""A table as a cell's last line shows it: a real one in pages and notebooks, aligned text elsewhere."""

import html
import numbers
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from labs.course.text import fixed


class Mark(NamedTuple):
    """How a yes or a no is written: a sign for the eye, a word for a screen reader and for plain text."""

    sign: str
    word: str
    name: str  # of its class in the style sheet


#: Signs of different shapes, so that nothing depends on their colour.
MARKS = {True: Mark("✓", "passes", "labs-passes"), False: Mark("✗", "FAILS", "labs-fails")}


class Table:
    """Rows under a heading, the first cell of each row being its name.

    Args:
        heading: the text above each column.
        rows: the cells of each row, one under each heading: a text; a number or an array of numbers, rounded
            as `fixed` does; or True or False, for a check that passes or fails.
        decimals: digits after the point.
        caption: what the table shows, above it; it begins with the claim.

    Raises: ValueError if a row is longer or shorter than the heading.
    """

    def __init__(
        self, heading: Sequence[str], rows: Sequence[Sequence], *, decimals: int = 4, caption: str = ""
    ):
        self.heading, self.caption = tuple(heading), caption
        self.rows = [[_cell(value, decimals) for value in row] for row in rows]
        for row in self.rows:
            if len(row) != len(self.heading):
                raise ValueError(
                    f"every row must have {len(self.heading)} cells, one under each heading; got {row}"
                )

    def _repr_html_(self) -> str:
        head = "".join(
            f'<th scope="col">{html.escape(text)}</th>' if text else "<td></td>" for text in self.heading
        )
        body = "".join(
            f'<tr><th scope="row">{_markup(name)}</th>'
            + "".join(f"<td>{_markup(cell)}</td>" for cell in cells)
            + "</tr>\n"
            for name, *cells in self.rows
        )
        caption = f"<caption>{html.escape(self.caption)}</caption>\n" if self.caption else ""
        return (
            f'<div class="labs-table-scroll"><table class="labs-table">\n{caption}'
            f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></div>"
        )

    def __repr__(self) -> str:
        lines = [self.heading, *([_word(cell) for cell in row] for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        padded = [
            "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)) for line in lines
        ]
        return "\n".join([self.caption] * bool(self.caption) + [line.rstrip() for line in padded])


def _cell(value, decimals: int) -> str | Mark:
    """A value as it is written: a text, or a mark for a yes or a no."""
    match value:
        case str():
            return value
        case bool() | np.bool_():
            return MARKS[bool(value)]
        case numbers.Integral():
            return str(value)
        case numbers.Real():
            return fixed(value, decimals)
    return " ".join(fixed(value, decimals).strip("[]").split())


def _markup(cell: str | Mark) -> str:
    if isinstance(cell, Mark):
        return f'<span class="{cell.name}" role="img" aria-label="{cell.word}">{cell.sign}</span>'
    return html.escape(cell)


def _word(cell: str | Mark) -> str:
    return cell.word if isinstance(cell, Mark) else cell
