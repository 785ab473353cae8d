"""The icon font is cut to the icons that pages show, and no further."""

import base64
import io
import re

import pytest
from fontTools.ttLib import TTFont

from labs.site import icons

SHEET = (
    '.fa-sun:before{content:"\\f185"}.fa-moon:before,.fa-night:before{content:"\\f186"}'
    '.fa-n:before{content:"N"}.note{--icon:"\\f05a"}a{color:red}'
)


def test_names_are_found_in_html_and_javascript():
    assert icons.names_in('<i class="fa-solid fa-sun fa-lg">') == {"fa-solid", "fa-sun", "fa-lg"}
    assert icons.names_in('add("fa-moon")') == {"fa-moon"}


def test_characters_are_found_written_and_escaped():
    assert icons.characters_in('a{content:"\uf101"}b{content:"\\f185"}c{content:"\\2014"}') == {
        0xF101,
        0xF185,
    }


def test_rules_of_unused_icons_are_dropped():
    css, characters = icons.cut_style_sheet(SHEET, {"fa-night"})
    assert css == '.fa-moon:before,.fa-night:before{content:"\\f186"}.note{--icon:"\\f05a"}a{color:red}'
    assert characters == {0xF186, 0xF05A}


def characters_of(font):
    with TTFont(io.BytesIO(font)) as opened:
        return set(opened.getBestCmap())


def test_font_keeps_the_characters_asked_for():
    font = icons.cut_font(icons.THEME / "vendor/fontawesome/webfonts/fa-solid-900.woff2", {0xF185, 0xF186})
    assert characters_of(font) == {0xF185, 0xF186}
    assert len(font) < 2000


def test_font_without_any_of_the_characters_is_none():
    assert icons.cut_font(icons.THEME / "vendor/fontawesome/webfonts/fa-brands-400.woff2", {0xF185}) is None


@pytest.mark.parametrize(
    ("font", "source"), [(b"font", "data:font/woff2;base64,Zm9udA=="), (None, "local(none)")]
)
def test_font_is_put_inside_the_style_sheet(font, source):
    before = 'a{src:url(../x/fa.woff2) format("woff2"),url(../x/fa.ttf) format("truetype")}'
    after = icons.embed_font(before, "fa", font)
    assert source in after
    assert "../x/" not in after


def test_another_theme_is_refused():
    with pytest.raises(RuntimeError, match=r"expected .* fa-solid-900\.woff2, found no such rule"):
        icons.embed_font("a{color:red}", "fa-solid-900", b"font")


# In a built site


def test_site_shows_every_icon_of_its_pages(built_book):
    css = (built_book / "_static" / icons.STYLE_SHEET).read_text("utf8")
    fonts = re.findall(r"data:font/woff2;base64,([A-Za-z0-9+/=]+)", css)
    shown = set().union(*(characters_of(base64.b64decode(font)) for font in fonts))
    _, named = icons.cut_style_sheet(
        (icons.THEME / icons.STYLE_SHEET).read_text("utf8"),
        icons.names_in("".join(page.read_text("utf8") for page in built_book.rglob("*.html"))),
    )
    assert {0xF002, 0xF186} <= shown  # the search button's, the dark mode's
    assert named <= shown
    assert len(css) < len((icons.THEME / icons.STYLE_SHEET).read_text("utf8"))


def test_site_holds_no_other_icon_font(built_book):
    assert list(built_book.rglob("*fontawesome*.js")) == []
    assert list(built_book.rglob("*.woff2")) == list(built_book.rglob("*.ttf")) == []
