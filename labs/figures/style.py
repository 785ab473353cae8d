"""The house style of the course's matplotlib figures: one look, readable on light and on dark pages.

A figure is shown as an SVG inside the page, not as a picture beside it, so its text uses the page's fonts and
its colours are the CSS custom properties of labs.course.palette: the page turns dark and the figure with it.
"""

import html
import io
import re
from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from labs.course import palette

#: Blue for negative, orange for positive: the scale of every tensor, mixed as CSS mixes it.
DIVERGING = LinearSegmentedColormap.from_list(
    "labs-diverging", [palette.NEGATIVE.light, palette.ZERO.light, palette.POSITIVE.light]
)

# Numbers inside cells stay dark on every page, because the cells stay light: one step beside INK, so that
# they are not taken for INK below.
_CELL_INK = "#1f2329"

_STYLE = {
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": palette.INK.light,
    "axes.labelcolor": palette.INK.light,
    "text.color": palette.INK.light,
    "xtick.color": palette.INK.light,
    "ytick.color": palette.INK.light,
    "lines.linewidth": 1.8,
    "svg.fonttype": "none",  # text stays text: small, searchable, in the page's font
    "svg.hashsalt": "labs",  # the same figure gives the same bytes
}


def figure(width: float = 6.6, height: float = 2.6, **subplots) -> tuple[Figure, np.ndarray]:
    """A figure in the house style, with its axes.

    Args:
        width, height: in inches at 100 pixels each; the text column of a page is 7.4 inches wide.
        subplots: passed to `Figure.subplots`, for example `ncols=2`.

    Returns: the figure and an array of its axes, always 1-D.
    """
    with mpl.rc_context(_STYLE):
        made = Figure(figsize=(width, height), layout="constrained")
        axes = np.atleast_1d(made.subplots(**subplots)).ravel()
    return made, axes


def cells(
    axes: Axes,
    values: np.ndarray,
    *,
    rows: Sequence[str],
    columns: Sequence[str],
    row_axis: str,
    column_axis: str,
    title: str = "",
    limit: float | None = None,
    decimals: int = 2,
) -> None:
    """Draw a matrix as a grid of cells on the diverging scale, each with its number.

    Args:
        axes: where to draw.
        values: (R,C), finite.
        rows, columns: a label for each row and each column.
        row_axis, column_axis: what the two axes are, with their letter: "position t", "head h".
        title: stands above the grid.
        limit: the value of the strongest colour; the largest magnitude of values if None.
        decimals: digits after the point.

    Raises: ValueError if values is not a finite matrix or the labels do not fit it.
    """
    values = np.asarray(values, dtype=float)
    if values.ndim != 2 or values.shape != (len(rows), len(columns)):
        raise ValueError(
            f"values must be a matrix of {len(rows)} rows and {len(columns)} columns, one for each label; "
            f"got the shape {values.shape}"
        )
    if not np.isfinite(values).all():
        raise ValueError("values must be finite; got NaN or infinity")
    limit = limit or float(np.abs(values).max()) or 1.0
    with mpl.rc_context(_STYLE):
        axes.pcolormesh(
            values, cmap=DIVERGING, vmin=-limit, vmax=limit, edgecolors=palette.PAPER.light, linewidth=2
        )
        for (row, column), value in np.ndenumerate(values):
            text = f"{value:.{decimals}f}".replace("-0." + "0" * decimals, "0." + "0" * decimals)
            axes.text(column + 0.5, row + 0.5, text, ha="center", va="center", color=_CELL_INK, fontsize=9)
        axes.set_xticks(np.arange(len(columns)) + 0.5, columns)
        axes.set_yticks(np.arange(len(rows)) + 0.5, rows)
        axes.set_xlabel(column_axis)
        axes.set_ylabel(row_axis)
        axes.set_title(title)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        axes.set_aspect("equal")
        axes.invert_yaxis()


class Shown:
    """A figure as a notebook shows it: the SVG with its alternative text, and the caption below."""

    def __init__(self, markup: str, alt: str):
        self._markup, self._alt = markup, alt

    def _repr_html_(self) -> str:
        return self._markup

    def __repr__(self) -> str:
        return f"Figure: {self._alt}"


def show(drawn: Figure, *, alt: str, caption: str = "") -> Shown:
    """Turn a figure into what a cell's last line shows.

    Args:
        drawn: a figure made by `figure`.
        alt: what the picture shows, for a reader who cannot see it.
        caption: begins with the claim or with what to do.

    Raises: ValueError if alt is empty.
    """
    if not alt.strip():
        raise ValueError(
            "alt must say what the figure shows, for readers who cannot see it; got an empty text"
        )
    buffer = io.StringIO()
    with mpl.rc_context(_STYLE):
        drawn.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = _fit_for_a_page(svg).replace("<svg ", f'<svg role="img" aria-label="{html.escape(alt)}" ', 1)
    below = f"<figcaption>{html.escape(caption)}</figcaption>" if caption else ""
    return Shown(f'<figure class="labs-figure">\n{svg}\n{below}</figure>', alt)


def _fit_for_a_page(svg: str) -> str:
    """Take out what would reach beyond this figure (a style sheet for everything, ids), and use page colours.

    Every palette colour becomes its custom property, with the light colour where there is no page.
    """
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'<style type="text/css">[^<]*</style>', "", svg)
    svg = re.sub(r'<g id="[^"]*"', "<g", svg)
    svg = re.sub(r"<defs>\s*</defs>", "", svg)
    svg = re.sub(r"\n\s*", "\n", svg).strip()
    for name, pair in palette.variables().items():
        if name not in ("selected", "negative", "zero", "positive"):  # cells keep their colours
            svg = svg.replace(f": {pair.light}", f": var(--labs-{name}, {pair.light})")
    return svg
