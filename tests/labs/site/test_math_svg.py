"""Formulas as pictures that fit the text, with words for those who listen, and errors that name the line."""

import re
import xml.etree.ElementTree as ET

import pytest

from labs.course import palette
from labs.site import math_svg
from labs.site.math_svg import TexError, Typesetter, breaks_lines

CONF = 'extensions = ["myst_parser", "labs.site.math_svg"]\nhtml_math_renderer = "labs_math_svg"\n'
CONF += 'myst_enable_extensions = ["dollarmath", "amsmath"]\n'


@pytest.fixture(scope="module")
def typeset():
    return Typesetter()


def size(formula):
    """Width and height in ex."""
    svg = ET.fromstring(formula.svg)
    return tuple(float(svg.get(name).removesuffix("ex")) for name in ("width", "height"))


def test_a_letter_is_as_high_as_its_letters_around(typeset):
    _, height = size(typeset("x", display=False))
    assert height == pytest.approx(1, abs=0.05)  # 1ex is the x-height of the text's font


def test_depth_below_the_line_lowers_the_picture(typeset):
    shift = re.search(r"vertical-align: (-?[\d.]+)ex", typeset("y_j", display=False).svg)
    assert -1 < float(shift[1]) < -0.3


def test_display_is_larger_than_inline(typeset):
    tex = r"\sum_{j=1}^{T} p_j"
    assert size(typeset(tex, display=True))[1] > size(typeset(tex, display=False))[1]


def test_colour_is_that_of_the_text_unless_a_role_says_otherwise(typeset):
    svg = typeset(r"\class{labs-role-q}{Q} K", display=False).svg
    outer = ET.fromstring(svg).find("g")
    assert outer.get("fill") == outer.get("stroke") == "currentColor"
    (group,) = (g for g in outer.iter("g") if "labs-role-q" in g.get("class", "").split())
    assert len(list(group.iter("use"))) == 1
    assert not re.search("#[0-9a-f]{6}", svg)


def test_screen_readers_hear_mathml_and_not_the_picture(typeset):
    formula = typeset(r"\frac{1}{\sqrt{d_h}}", display=False)
    assert ET.fromstring(formula.svg).get("aria-hidden") == "true"
    words = ET.fromstring(formula.mathml)
    assert words.tag == "math"
    assert [element.tag for element in words.iter()][1:4] == ["mfrac", "mn", "msqrt"]


@pytest.mark.parametrize(
    "tex",
    [
        r"\begin{aligned} a &= b \\ c &= d \end{aligned}",
        r"\begin{cases} 1 & \text{if } x < 0 \\ 0 & \text{otherwise} \end{cases}",
        r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}",
        r"\begin{array}{c|c} 1 & 2 \\ \hline 3 & 4 \end{array}",
        r"\begin{align*} a &= b \tag{7} \end{align*}",
        r"\operatorname{softmax}\!\left(\frac{QK^\top}{\sqrt{d_h}}\right) \in \mathbb{R}^{B \times T}",
        r"\underbrace{x}_{[2,5,8]} \odot \hat{y} \boxed{z} \mathrm{d}x",
    ],
)
def test_what_the_course_writes_is_drawn(typeset, tex):
    formula = typeset(tex, display=True)
    for text in formula:
        assert "merror" not in text
        assert ' id="' not in text  # two formulas on a page would have the same
    names = set(re.findall(rf'href="#{math_svg.GLYPH}([^"]+)"', formula.svg))
    assert names
    assert names <= set(typeset.glyphs)


def test_lines_of_tables_are_marked_for_the_style_sheet(typeset):
    svg = typeset(r"\begin{array}{c|c} 1 & 2 \\ \hline 3 & 4 \end{array}", display=True).svg
    assert re.findall(r'data-line="(\w)"', svg) == ["v", "h"]
    assert "line[data-line]" in math_svg.style_sheet()


@pytest.mark.parametrize(
    ("tex", "said"),
    [
        (r"\unknown{x}", r"Undefined control sequence \unknown"),
        (r"\frac{1}{2", "Missing close brace"),
        ("a & b", "Misplaced &"),
    ],
)
def test_wrong_tex_is_refused(typeset, tex, said):
    with pytest.raises(TexError, match=re.escape(said)):
        typeset(tex, display=False)
    assert typeset("x", display=False).svg  # and the next formula is none the worse


def test_a_tag_can_be_used_again(typeset):
    assert typeset(r"x \tag{1}", display=True)
    assert typeset(r"y \tag{1}", display=True)


@pytest.mark.parametrize(
    ("tex", "breaks"),
    [
        (r"a = b \\ c = d", True),
        (r"\begin{cases} 1 \\ 2 \end{cases}", False),
        (r"\begin{cases} 1 \\ 2 \end{cases} \\ x", True),
        (r"\sum_{\substack{i \\ j}} x", False),
        (r"\{ a \\ b", True),
    ],
)
def test_line_breaks_outside_environments_are_found(tex, breaks):
    assert breaks_lines(tex) is breaks


def test_every_role_has_its_colour():
    for role in palette.ROLES:
        assert f".labs-role-{role} {{ color: var(--labs-role-{role}); }}" in math_svg.style_sheet()


# In pages


def test_page_holds_each_outline_that_it_uses_once(build_pages):
    pages = {
        "index.md": "# Title\n\n$x$ $x$ $$y$$\n\n```{toctree}\nother\n```\n",
        "other.md": "# Other\n\n$z$\n",
    }
    html, warnings = build_pages(pages, CONF)
    assert warnings == []
    for name, letters in (("index", 2), ("other", 1)):
        page = (html / f"{name}.html").read_text("utf8")
        ids = re.findall(rf'<path id="({math_svg.GLYPH}[^"]+)"', page)
        assert len(ids) == letters
        assert set(ids) == set(re.findall(rf'href="#({math_svg.GLYPH}[^"]+)"', page))


def test_page_has_the_classes_of_the_contract(build_pages):
    html, _ = build_pages({"index.md": "# Title\n\n$x$\n\n$$y$$\n"}, CONF)
    page = (html / "index.html").read_text("utf8")
    assert re.search(r'<span class="labs-math [^"]*"><svg', page)
    assert re.search(
        r'<div class="labs-math-display [^"]*">\s*<div class="labs-math labs-math-scroll"><svg', page
    )
    assert "labs-math.css" in page
    assert (html / "_static/labs-math.css").read_text("utf8") == math_svg.style_sheet()


def test_numbered_formulas_are_linked(build_pages):
    html, warnings = build_pages({"index.md": "# Title\n\nSee {eq}`sum`.\n\n$$x \\\\ y$$ (sum)\n"}, CONF)
    page = (html / "index.html").read_text("utf8")
    assert warnings == []
    assert re.search(r'href="#equation-sum">\(1\)</a>', page)
    assert re.search(r'id="equation-sum">.*<span class="labs-math-number">\(1\)', page, re.S)


def test_environments_have_the_same_names_in_every_build(build_pages):
    text = "# Title\n\n\\begin{align}\na &= b\n\\end{align}\n\n\\begin{gather}\na\n\\end{gather}\n"
    html, _ = build_pages({"index.md": text}, CONF)
    page = (html / "index.html").read_text("utf8")
    assert re.findall(r'id="(environment-\d+)"', page) == ["environment-0", "environment-1"]
    assert re.findall(r'href="#(environment-\d+)"', page) == ["environment-0", "environment-1"]


@pytest.mark.parametrize(("text", "line"), [("A $\\wrong$ line.", 3), ("Two\nlines.\n\n$$\n\\wrong\n$$", 6)])
def test_wrong_tex_is_a_warning_with_file_and_line(build_pages, text, line):
    html, warnings = build_pages({"index.md": f"# Title\n\n{text}\n"}, CONF)
    (warning,) = warnings
    assert re.search(rf"index\.md:{line}: WARNING: mathematics: .*\\wrong", warning)
    assert r"<code>\wrong</code>" in (html / "index.html").read_text("utf8")


def test_mathematics_in_a_page_title_is_a_warning(build_pages):
    _, warnings = build_pages({"index.md": "# Title $x$\n\n## Section $y$\n"}, CONF)
    (warning,) = warnings
    assert re.search(r"index\.md:1: WARNING: mathematics in a page's title", warning)


def test_a_missing_package_says_what_to_install(monkeypatch):
    monkeypatch.setattr(math_svg, "files", lambda _: [])
    with pytest.raises(RuntimeError, match="pip install -r requirements"):
        Typesetter()
