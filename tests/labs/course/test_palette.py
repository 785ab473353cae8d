"""The palette is readable on light and dark pages, and CSS gets every colour of it."""

import re

import numpy as np
import pytest

from labs.course import palette

THEMES = ("light", "dark")
TEXT, GRAPHIC = 4.5, 3.0  # WCAG 2.2, success criteria 1.4.3 and 1.4.11


def rgb(colour):
    return np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255


def luminance(colour):
    channels = rgb(colour) if isinstance(colour, str) else colour
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


def contrast(one, other):
    """WCAG contrast ratio, from 1 (equal) to 21 (black on white)."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_by_hand():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)  # the well-known near miss


@pytest.mark.parametrize("theme", THEMES)
def test_text_on_the_page(theme):
    paper = getattr(palette.PAPER, theme)
    for name in ("INK", "SELECTED", "WRONG"):
        assert contrast(getattr(getattr(palette, name), theme), paper) >= TEXT, name
    for role, pair in palette.ROLES.items():
        assert contrast(getattr(pair, theme), paper) >= TEXT, role


@pytest.mark.parametrize("theme", THEMES)
def test_a_number_is_readable_on_every_cell_colour(theme):
    ink, zero = getattr(palette.INK, theme), rgb(getattr(palette.ZERO, theme))
    for end in (palette.NEGATIVE, palette.POSITIVE):
        for amount in np.linspace(0, 1, 21):
            cell = (1 - amount) * zero + amount * rgb(getattr(end, theme))
            assert contrast(rgb(ink), cell) >= TEXT, (end, amount)
    for head in palette.HEADS:
        assert contrast(ink, getattr(head, theme)) >= TEXT, head


@pytest.mark.parametrize("theme", THEMES)
def test_the_two_ends_of_the_scale_stay_apart_without_red_green_vision(theme):
    """Distance in the blue-yellow direction, which the common forms of colour blindness keep."""
    negative, positive = (rgb(getattr(p, theme)) for p in (palette.NEGATIVE, palette.POSITIVE))
    blueness = [colour @ [-0.5, -0.5, 1] for colour in (negative, positive)]
    assert blueness[0] - blueness[1] > 0.3


def test_no_two_roles_share_a_colour():
    for theme in THEMES:
        colours = [getattr(pair, theme) for pair in palette.ROLES.values()]
        assert len(set(colours)) == len(colours)


def test_css_holds_every_colour_once_a_theme():
    light, dark = palette.css().split("}")[:2]
    for theme, block in (("light", light), ("dark", dark)):
        declared = dict(re.findall(r"--labs-([a-z0-9-]+): (#[0-9a-f]{6});", block))
        assert declared == {name: getattr(pair, theme) for name, pair in palette.variables().items()}
    assert 'data-theme="dark"' in dark
