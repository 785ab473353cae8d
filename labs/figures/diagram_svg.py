"""The picture of the model as an SVG whose boxes are links.

Flow is downward; the two residual paths run beside the boxes that they skip.
"""

from collections.abc import Collection
from xml.sax.saxutils import escape, quoteattr

from labs.course import diagram, notation, palette
from labs.figures import style


def show(links: dict[str, str] | None = None, *, label: str) -> style.Shown:
    """The picture with the example's sizes and, under a fold, its text: what a cell's last line shows.

    Args:
        links: address of each page that exists, as for svg.
        label: what the picture shows, for a reader who cannot see it.
    """
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in diagram.text())
    return style.Shown(
        f'<figure class="labs-diagram-figure">{svg(notation.example_sizes(), links, label=label)}'
        f"<details><summary>The picture in words</summary><ol>{items}</ol></details></figure>",
        label,
    )


def here(*lit: str) -> style.Shown:
    """The picture at the head of a chapter, small and without shapes: what a cell's last line shows.

    Args:
        lit: the nodes that the chapter opens, by name.

    Raises: ValueError for the name of no node.
    """
    titles = {node.name: node.title for node in diagram.NODES}
    if unknown := [name for name in lit if name not in titles]:
        raise ValueError(f"lit must name nodes of the diagram, {', '.join(titles)}; got {', '.join(unknown)}")
    label = f"The model from tokens to loss, with its {' and '.join(titles[name] for name in lit)} lit up"
    return style.Shown(f'<figure class="labs-diagram-here">{svg(label=label, lit=lit)}</figure>', label)


# Geometry, in SVG units that are pixels at full size.
_WIDTH, _NARROW_WIDTH, _CENTRE, _BOX_WIDTH, _BOX_HEIGHT, _STEP, _TOP = (
    330, 252, 178, 128, 30, 50, 6,
)  # fmt: skip
_SKIP_X = _CENTRE - _BOX_WIDTH / 2 - 34
_SUM_RADIUS = 11


def svg(
    sizes: dict[str, int] | None = None,
    links: dict[str, str] | None = None,
    *,
    label: str,
    lit: Collection[str] = (),
) -> str:
    """Draw the diagram.

    Args:
        sizes: a number for each letter B, T, D and V, for the shapes beside the arrows; without them the
            picture has no shapes and is narrower.
        links: address of each page that exists; boxes of other pages are drawn without a link.
        label: the accessible name of the picture.
        lit: names of the nodes that are lit up.

    Returns: one `<svg>` element. In the book CSS paints it; its own attributes, which any CSS overrules, make
        it readable where that CSS is missing, on light and on dark ground.
    Raises: ValueError if a letter of a shape has no size.
    """
    letters = {letter for edge in diagram.EDGES for letter in edge.shape.split(",")}
    if sizes is not None and (missing := sorted(letters - sizes.keys())):
        raise ValueError(f"sizes must give a number for B, T, D and V; missing: {', '.join(missing)}")
    middle = _heights()
    height = middle["loss"] + _BOX_HEIGHT / 2 + _TOP
    width = _NARROW_WIDTH if sizes is None else _WIDTH
    parts = [_frame(middle, width)]
    parts += [_arrow(edge, middle, sizes) for edge in diagram.EDGES]
    parts += [
        _box(node, middle[node.name], (links or {}).get(node.page), node.name in lit)
        for node in diagram.NODES
    ]
    return (
        f'<svg class="labs-diagram" role="{"group" if links else "img"}" aria-label={quoteattr(label)} '
        f'viewBox="0 0 {width} {height:g}" width="{width}" height="{height:g}" fill="currentColor" '
        f'font-size="13">' + "".join(parts) + "</svg>"
    )


def _heights() -> dict[str, float]:
    """The height of every node's middle: one step a node, and room where the block's frame passes."""
    heights, y = {}, _TOP + _BOX_HEIGHT / 2
    for node in diagram.NODES:
        y += {"attn_norm": 12, "final_norm": 8}.get(node.name, 0)
        heights[node.name] = y
        y += _STEP
    return heights


def _frame(middle: dict[str, float], picture_width: int) -> str:
    """The rounded frame around the block."""
    top = middle["attn_norm"] - _BOX_HEIGHT / 2 - 23
    height = middle["ffn_add"] + _SUM_RADIUS + 9 - top
    x, y, width = _SKIP_X - 28, top + height / 2, picture_width - 36
    return (
        f'<rect class="labs-diagram-frame" x="34" y="{top:g}" width="{width}" height="{height:g}" '
        'rx="12" fill="none" stroke="currentColor" stroke-opacity="0.3"/>'
        f'<text class="labs-diagram-note" x="{x:g}" y="{y:g}" font-size="11" text-anchor="middle" '
        f'transform="rotate(-90 {x:g} {y:g})">one block</text>'
    )


def _half_height(name: str) -> float:
    return _SUM_RADIUS if name.endswith("_add") else _BOX_HEIGHT / 2


def _is_skip(edge: diagram.Edge) -> bool:
    order = [node.name for node in diagram.NODES]
    return order.index(edge.target) - order.index(edge.source) > 1


def _arrow(edge: diagram.Edge, middle: dict[str, float], sizes: dict[str, int] | None) -> str:
    start, role = middle[edge.source] + _half_height(edge.source), edge.role or _role(edge.source)
    if _is_skip(edge):
        branch = start + (15 if edge.source == "embedding" else 8)  # inside the frame
        end, tip = middle[edge.target], _CENTRE - _SUM_RADIUS
        line = f"M{_CENTRE} {branch:g}H{_SKIP_X + 8:g}q-8 0 -8 8V{end - 8:g}q0 8 8 8H{tip - 6:g}"
        head = f"M{tip - 7:g} {end - 4:g}L{tip:g} {end:g}L{tip - 7:g} {end + 4:g}z"
        label = ""
    else:
        end = middle[edge.target] - _half_height(edge.target)
        line = f"M{_CENTRE} {start:g}V{end - 6:g}"
        head = f"M{_CENTRE - 4} {end - 7:g}L{_CENTRE} {end:g}L{_CENTRE + 4} {end - 7:g}z"
        label = (
            f'<text x="{_CENTRE + 12}" y="{(start + end) / 2 + 4:g}">'
            f'<tspan class="labs-diagram-symbol" font-style="italic">{escape(edge.symbol)}</tspan>'
            f"{'' if sizes is None else _shape(edge, sizes)}</text>"
        )
    colour = palette.ROLES[role].light
    return (
        f'<g style="--labs-role: var(--labs-role-{role})">'
        f'<path class="labs-diagram-line" d="{line}" fill="none" stroke="{colour}" stroke-width="1.6"/>'
        f'<path class="labs-diagram-head" d="{head}" fill="{colour}"/>{label}</g>'
    )


def _shape(edge: diagram.Edge, sizes: dict[str, int]) -> str:
    shape = ",".join(str(sizes[letter]) for letter in edge.shape.split(","))
    return f' <tspan class="labs-diagram-shape" font-size="11">[{shape}]</tspan>'


def _role(name: str) -> str:
    return next(node.role for node in diagram.NODES if node.name == name)


def _box(node: diagram.Node, y: float, link: str | None, lit: bool) -> str:
    colour = palette.ROLES[node.role].light
    fill, width, classes = (colour, 3, " labs-lit") if lit else ("none", 1.6, "")
    paint = f'fill="{fill}" fill-opacity="0.2" stroke="{colour}" stroke-width="{width}"'
    if node.label == "+":
        shape = f'<circle cx="{_CENTRE}" cy="{y:g}" r="{_SUM_RADIUS}" {paint}/>'
    else:
        shape = (
            f'<rect x="{_CENTRE - _BOX_WIDTH / 2:g}" y="{y - _BOX_HEIGHT / 2:g}" '
            f'width="{_BOX_WIDTH}" height="{_BOX_HEIGHT}" rx="7" {paint}/>'
        )
    drawn = (
        f'<g class="labs-diagram-box{classes}" style="--labs-role: var(--labs-role-{node.role})">{shape}'
        f'<text x="{_CENTRE}" y="{y + 4.5:g}" text-anchor="middle" font-weight="600">{escape(node.label)}'
        "</text></g>"
    )
    if link is None:
        return drawn
    return f"<a href={quoteattr(link)} aria-label={quoteattr(f'{node.title}: open its chapter')}>{drawn}</a>"
