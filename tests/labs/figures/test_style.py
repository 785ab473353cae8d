"""Figures in the house style: stable bytes, alternative text, colours of the page."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from labs.course import palette
from labs.figures import style

VALUES = np.array([[1.2, -0.001, 0.0], [-0.4, 0.6, -1.2]])


def drawn(values=VALUES, **options):
    figure, (axes,) = style.figure(height=2)
    options = {"rows": ["0", "1"], "columns": ["a", "t", "e"]} | options
    style.cells(axes, values, row_axis="head h", column_axis="position t", **options)
    return style.show(figure, alt="Two rows & three columns", caption="Look at <the> last cell.")


def svg(shown):
    markup = shown._repr_html_()
    return ET.fromstring(markup[markup.index("<svg") : markup.index("</svg>") + 6])


def test_the_same_figure_gives_the_same_bytes():
    assert drawn()._repr_html_() == drawn()._repr_html_()


def test_cells_show_every_number_and_no_negative_zero():
    texts = ["".join(text.itertext()) for text in svg(drawn()).iter("{http://www.w3.org/2000/svg}text")]
    assert [text for text in texts if "." in text] == ["1.20", "0.00", "0.00", "-0.40", "0.60", "-1.20"]
    assert {"a", "t", "e", "head h", "position t"} <= set(texts)


def test_colours_are_those_of_css():
    """The largest magnitude gets the end of the scale, and half of it the middle of the mix."""
    fills = re.findall(r"fill: (#[0-9a-f]{6}); stroke", drawn()._repr_html_())
    assert fills[0] == palette.POSITIVE.light
    assert fills[5] == palette.NEGATIVE.light
    ends = [
        np.array([int(c[i : i + 2], 16) for i in (1, 3, 5)])
        for c in (palette.ZERO.light, palette.POSITIVE.light)
    ]
    half = np.array([int(fills[4][i : i + 2], 16) for i in (1, 3, 5)])
    np.testing.assert_allclose(half, (ends[0] + ends[1]) / 2, atol=2)


def test_text_turns_with_the_page_and_numbers_in_cells_do_not():
    markup = drawn()._repr_html_()
    assert f"var(--labs-ink, {palette.INK.light})" in markup
    assert style._CELL_INK in markup
    assert not re.search(rf"(?<!, ){palette.INK.light}", markup)


def test_nothing_reaches_beyond_the_figure():
    markup = drawn()._repr_html_()
    assert "<style" not in markup
    assert set(re.findall(r'<(\w+)[^>]* id="', markup)) <= {"clipPath", "path"}
    assert "http" not in re.sub(r'xmlns(:\w+)?="[^"]*"', "", markup)


def test_alternative_text_and_caption_are_escaped():
    shown = drawn()
    assert svg(shown).get("aria-label") == "Two rows & three columns"
    assert "<figcaption>Look at &lt;the&gt; last cell.</figcaption>" in shown._repr_html_()
    assert repr(shown) == "Figure: Two rows & three columns"


def test_global_style_is_left_alone():
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    drawn()
    assert dict(mpl.rcParams) == before


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: drawn(np.zeros((3, 2))),
            r"2 rows and 3 columns, one for each label; got the shape \(3, 2\)",
        ),
        (lambda: drawn(np.zeros(3)), r"got the shape \(3,\)"),
        (lambda: drawn(np.full((2, 3), np.nan)), "finite"),
        (lambda: style.show(style.figure()[0], alt=" "), "alt must say"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()
