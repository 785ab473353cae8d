"""Each page loads what it uses, and nothing else."""

import re
from types import SimpleNamespace

import pytest

from labs.course import palette
from labs.site import light_pages


def asset(filename, body=None):
    return SimpleNamespace(filename=filename, attributes={"body": body} if body else {})


def kept(body, *names):
    """Which of these assets a page with this text keeps."""
    context = {"body": body, "script_files": [asset(f"_static/{name}") for name in names], "css_files": []}
    light_pages.keep_used_assets(None, None, None, context, None)
    return [script.filename.removeprefix("_static/") for script in context["script_files"]]


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("design-tabs.js", '<div class="sd-tab-set docutils">'),
        ("sphinx-design.min.css", '<details class="sd-sphinx-override sd-dropdown">'),
        ("togglebutton.js", '<div class="toggle docutils">'),
        ("togglebutton.css", '<div class="admonition dropdown">'),
        ("copybutton.js", '<div class="highlight"><pre>'),
        ("clipboard.min.js", '<div class="highlight"><pre>'),
    ],
)
def test_an_asset_is_kept_where_it_is_used_only(name, body):
    assert kept(body, name, "doctools.js") == [name, "doctools.js"]
    assert kept('<p class="other">sd-tab-set toggle highlight</p>', name, "doctools.js") == ["doctools.js"]


@pytest.mark.parametrize(
    ("script", "body"),
    [
        ("let toggleHintShow = 'Click to show';", '<div class="toggle docutils">'),
        ("var togglebuttonSelector = '.toggle';", '<div class="admonition dropdown">'),
        ("DOCUMENTATION_OPTIONS.search_as_you_type = true;", ""),
        ("DOCUMENTATION_OPTIONS.search_as_you_type = false;", None),
        ("DOCUMENTATION_OPTIONS.pagename = 'book/index';", None),
    ],
)
def test_an_inline_script_is_kept_where_it_is_used_only(script, body):
    assert light_pages.is_used(asset(None, script), body or "") is (body is not None)
    assert light_pages.is_used(asset(None, script), "") is (body == "")


def test_inline_script_of_the_theme_is_dropped_by_its_text():
    tags = "<script src='a.js'></script>\n <script x>a.b\n</script>\n<script>c</script>"
    rest = "<script src='a.js'></script>\n<script>c</script>"
    assert light_pages.without_inline_script(tags, "a.b") == rest
    for html in (rest, tags + tags):
        with pytest.raises(RuntimeError, match="expected the theme to have one inline script"):
            light_pages.without_inline_script(html, "a.b")


def test_repeated_scripts_are_dropped_and_the_order_is_kept():
    twice = [asset(None, "let a"), asset("b.js"), asset(None, "let c"), asset(None, "let a"), asset("b.js")]
    context = {"script_files": twice, "css_files": []}
    light_pages.keep_used_assets(None, None, None, context, None)
    found = [(script.filename, script.attributes.get("body")) for script in context["script_files"]]
    assert found == [(None, "let a"), ("b.js", None), (None, "let c")]


def test_scripts_are_dropped_by_their_file_name():
    tags = (
        '  <script defer src="../_static/scripts/a.js?digest=1"></script>\n'
        '<script src="../_static/ba.js"></script><script src="a.jsx"></script><script>a.js</script>'
        '<script src="_static/a.js"></script>'
    )
    rest = '<script src="../_static/ba.js"></script><script src="a.jsx"></script><script>a.js</script>'
    assert light_pages.without_scripts(tags, "a.js") == rest


# In a built page


def test_pages_are_without_what_they_do_not_use(built_book):
    page = (built_book / "book/index.html").read_text("utf8")
    for name in ("fontawesome.js", "searchindex.js", "searchtools.js", "thebe", "mathjax", "copybutton"):
        assert name not in page.lower()
    assert "copybutton.js" in (built_book / "book/notebook.html").read_text("utf8")


def test_no_script_is_loaded_twice(built_book):
    for page in built_book.rglob("*.html"):
        sources = re.findall(r'<script[^>]* src="([^"]+)"', page.read_text("utf8"))
        assert len(sources) == len(set(sources)), page.name


def test_search_page_keeps_its_scripts(built_book):
    page = (built_book / "search.html").read_text("utf8")
    for name in ("searchtools.js", "language_data.js", "searchindex.js"):
        assert page.count(name) == 1, name


def test_palette_is_a_file_of_the_site(built_book):
    assert (built_book / "_static/labs-palette.css").read_text("utf8").startswith(palette.css().rstrip())
    page = (built_book / "book/index.html").read_text("utf8")
    assert page.index("labs-palette.css") < page.index("labs.css")


def test_title_of_the_course_is_in_a_landmark(built_book):
    page = (built_book / "book/index.html").read_text("utf8")
    assert re.search(r'<nav class="labs-home" aria-label="Home">\s*<a class="navbar-brand', page)


def test_a_dark_page_prints_light(built_book, open_page):
    page = open_page((built_book / "book/index.html").as_uri(), color_scheme="dark")
    theme = "document.documentElement.dataset.theme"
    assert page.evaluate(theme) == "dark"
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(theme) == "light"
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(theme) == "dark"


def test_our_pages_have_no_inline_scripts(built_book):
    page = (built_book / "book/notebook.html").read_text("utf8")
    assert re.findall(r"<script(?:(?! src=| type=)[^>])*>", page) == []
    assert page.index("labs-page.js") < page.index("documentation_options.js")


def test_a_jekyll_host_serves_every_file(built_book):
    assert (built_book / ".nojekyll").exists()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_has_its_theme_before_the_theme_s_own_script_runs(built_book, browser, scheme):
    with browser.new_context(color_scheme=scheme) as context:
        page = context.new_page()
        page.route("**/pydata-sphinx-theme.js*", lambda route: route.abort())
        page.goto((built_book / "book/index.html").as_uri())
        assert page.evaluate("document.documentElement.dataset.theme") == scheme


@pytest.mark.parametrize("javascript", [True, False])
def test_print_opens_every_fold(built_book, open_page, problems, javascript):
    page = open_page((built_book / "book/index.html").as_uri(), java_script_enabled=javascript)
    page.wait_for_load_state("networkidle")
    printed = re.findall(rb"/URI \(https://example\.org/(\w+)\)", page.pdf())
    assert sorted(printed) == [b"admonition", b"dropdown", b"fold", b"toggle"]
    problems.clear()  # without JavaScript: scripts that were fetched in advance for nothing


@pytest.mark.parametrize("show", ["", "document.getElementById('pst-search-dialog').showModal()"])
def test_the_magnifier_stands_before_what_one_types(built_book, open_page, show):
    page = open_page((built_book / "search.html").as_uri())
    page.evaluate(show)
    field = page.locator("form.bd-search:visible").last
    icon, text = (field.locator(name).bounding_box() for name in ("i", "input"))
    assert icon["width"] > 0
    assert icon["x"] + icon["width"] <= text["x"]
