"""Every page of the built book: complete, offline, readable by everyone, light; every notebook stored clean.

The site is built once per run, by the function behind `python -m labs.site build`.
"""

import functools
import gzip
import os
import re
import sqlite3
from contextlib import closing
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from labs.site import build, notebook_file, refresh
from tests import axe
from tests.conftest import new_page

#: The pages of the table of contents, and the two that are made for every book: start and search.
CONTENTS = re.findall(r"(?:root|file): (\S+)", (build.ROOT / "_toc.yml").read_text("utf8"))
PAGES = [*CONTENTS, "index", "search"]

#: What a page may weigh with its scripts, style sheets, fonts and pictures, compressed, in bytes.
BUDGET = 350_000

#: How far the content may jump while a page loads, as Chromium counts it (cumulative layout shift).
MOST_SHIFT = 0.02

every_page = pytest.mark.parametrize("name", PAGES)


@pytest.fixture(scope="session")
def site(tmp_path_factory, testrun_uid):
    """The folder of the built site; one process of the run builds it, the others wait for that."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    # a database is a lock that every platform has, and it remembers what came of the build
    with closing(sqlite3.connect(shared / f"{testrun_uid}.db", timeout=1200)) as database, database:
        database.execute("BEGIN EXCLUSIVE")
        database.execute("CREATE TABLE IF NOT EXISTS builds (error TEXT)")
        row = database.execute("SELECT error FROM builds").fetchone()
        if row is None:
            row = (_error_of_build(),)
            database.execute("INSERT INTO builds VALUES (?)", row)
    if row[0]:
        pytest.fail(row[0], pytrace=False)
    return build.ROOT / "_build/html"


def _error_of_build():
    try:
        build.build()
    except build.BuildError as error:
        return str(error)
    return None


def test_every_page_is_tested(site):
    built = {path.relative_to(site).with_suffix("").as_posix() for path in site.rglob("*.html")}
    assert {name for name in built if not name.startswith("_static/")} == set(PAGES)


# In a browser


#: How each page is visited: address, width, colour scheme.
VISITS = {"laptop": ("http", 1280, "light"), "phone": ("file", 360, "dark")}


@pytest.fixture(scope="session")
def addresses(site, serve):
    """The address of the site on a server and on the disk."""
    return {"http": serve(site), "file": f"{site.as_uri()}/"}


def ready(page):
    """Wait until the page is what its reader sees."""
    page.wait_for_load_state("load")
    page.wait_for_selector("html[data-labs-widgets=ready]")
    return page


@pytest.fixture(scope="module", params=[f"{name} {visit}" for name in PAGES for visit in VISITS])
def visit(request, addresses, browser):
    """A page, opened once for all that is asked of it; in the end nothing may have gone wrong in it.

    No other host can be reached, so a page that asks for one ends with a failed request.
    """
    name, visit = request.param.split()
    scheme, width, colours = VISITS[visit]
    problems = []
    page = new_page(browser, f"{addresses[scheme]}{name}.html", problems, width=width, color_scheme=colours)
    yield ready(page)
    page.context.close()
    assert problems == [], f"{request.param} reported problems"


def test_page_has_a_title(visit):
    assert visit.title()


def test_nothing_jumps_while_the_page_loads(visit):
    shift = visit.evaluate("""() => new Promise((done) => {
        let total = 0;
        new PerformanceObserver((list) => {
            for (const entry of list.getEntries()) if (!entry.hadRecentInput) total += entry.value;
        }).observe({ type: "layout-shift", buffered: true });
        requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => done(total))));
    })""")
    assert shift < MOST_SHIFT


def test_every_widget_is_drawn(visit):
    for widget in visit.locator(".labs-widget").all():
        assert widget.locator(".labs-host-note").all_inner_texts() == []
        drawn = widget.locator(":scope > :not(script, noscript)")
        assert drawn.count() == 1
        assert drawn.bounding_box()["height"] > 20


def test_axe_finds_nothing(visit):
    wanted = visit.evaluate("matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light'")
    assert visit.evaluate("document.documentElement.dataset.theme") == wanted
    assert axe.violations(visit) == []


def test_page_does_not_scroll_sideways(visit):
    # the last question to a page, because it opens every fold
    visit.evaluate("document.querySelectorAll('details').forEach((fold) => (fold.open = true))")
    wide = """[...document.querySelectorAll("article *")]
        .filter((e) => e.getBoundingClientRect().right > innerWidth + 1).slice(0, 5)
        .map((e) => e.outerHTML.slice(0, 200))"""
    width, page = visit.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert width <= page, visit.evaluate(wide)


def test_the_start_page_leads_to_the_book(addresses, open_page):
    for address in addresses.values():
        assert ready(open_page(f"{address}index.html")).url == f"{address}book/index.html"


@pytest.mark.parametrize("scheme", ["http", "file"])
def test_search_finds_pages(addresses, open_page, scheme):
    page = ready(open_page(f"{addresses[scheme]}search.html?q=tensor"))
    page.wait_for_selector("#search-results li a")


# In the files


class Page(HTMLParser):
    """The start tags of an HTML text, each as (name, attributes)."""

    def __init__(self, text):
        super().__init__()
        self.tags = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    @functools.cached_property
    def ids(self):
        return {attributes["id"] for _, attributes in self.tags if "id" in attributes}


@functools.cache
def read(path):
    return Page(path.read_text("utf8"))


def loads(page):
    """The addresses that a page loads by itself, without anybody following a link."""
    for tag, attributes in page.tags:
        if tag in ("script", "img", "iframe", "source", "video", "audio", "embed", "input", "track"):
            yield attributes.get("src", "")
            yield from (part.split()[0] for part in attributes.get("srcset", "").split(",") if part.strip())
        if tag == "link" and attributes.get("rel") not in ("next", "prev", "search", "canonical"):
            yield attributes.get("href", "")
        if tag == "object":
            yield attributes.get("data", "")
        if tag in ("use", "image"):
            yield attributes.get("href", attributes.get("xlink:href", ""))


def foreign_in_html(text):
    """The addresses on other hosts that a page loads."""
    return [url for url in loads(Page(text)) if re.match(r"(https?:)?//", url)] + foreign_in_css(text)


def foreign_in_css(text):
    """The addresses on other hosts that a style sheet loads."""
    return re.findall(r"""(?:url\(\s*|@import\s+)\\?["']?((?:https?:)?//[^\s"')]+)""", text)


def foreign_in_javascript(text):
    """The addresses on other hosts that a script, or a module stored in it, loads."""
    call = r"(?:fetch|import|importScripts|Worker|EventSource|WebSocket|sendBeacon)\s*\("
    source = r"""\.(?:src|href)\s*=|\.open\(\s*\\?["']\w+\\?["']\s*,|\bfrom\b|\bimport\b"""
    return re.findall(rf"""(?:{call}|{source})\s*\\?["'`]((?:https?|wss?)?:?//[^\s"'`\\]+)""", text)


@pytest.mark.parametrize(
    ("find", "text"),
    [
        (foreign_in_html, '<script src="https://x.org/a.js"></script>'),
        (foreign_in_html, '<link rel="stylesheet" href="//x.org/a.css">'),
        (foreign_in_html, '<link rel="preload" href="https://x.org/a">'),
        (foreign_in_html, '<img srcset="a.png 1x, https://x.org/b.png 2x">'),
        (foreign_in_html, '<iframe src="https://x.org/"></iframe>'),
        (foreign_in_html, '<p style="background: url(https://x.org/a.png)">'),
        (foreign_in_css, "@import 'https://x.org/a.css'"),
        (foreign_in_css, "src: url( 'http://x.org/a.woff2' )"),
        (foreign_in_javascript, "fetch('https://x.org/')"),
        (foreign_in_javascript, 'import d3 from "https://x.org/d3"'),
        (foreign_in_javascript, "await import(`https://x.org/d3`)"),
        (foreign_in_javascript, r'["import d3 from \"https://x.org/d3\""]'),
        (foreign_in_javascript, 'script.src = "https://x.org/a.js"'),
        (foreign_in_javascript, 'request.open("GET", "https://x.org/")'),
    ],
)
def test_foreign_addresses_are_recognised(find, text):
    assert len(find(text)) == 1
    assert find(text.replace("https:", "").replace("http:", "").replace("//x.org", "x.org")) == []


def test_a_link_to_a_paper_is_no_foreign_address():
    assert foreign_in_html('<a href="https://arxiv.org/abs/1706.03762">paper</a>') == []


def test_no_file_loads_from_another_host(site):
    finders = {".html": foreign_in_html, ".css": foreign_in_css, ".js": foreign_in_javascript}
    for path in site.rglob("*"):
        if path.suffix in finders:
            assert finders[path.suffix](path.read_text("utf8")) == [], path.relative_to(site)


def without_words(page):
    """The pictures of a page that a screen reader cannot name: no alternative text, or a file's name."""
    for tag, attributes in page.tags:
        if tag == "img":
            words = attributes.get("alt", "")
        elif tag == "svg" and attributes.get("role") == "img":
            words = attributes.get("aria-label", "")
        else:
            continue
        if not re.search(r"\w", words) or re.search(r"\.(png|svg|jpe?g|gif)$|[\w-]/[\w-]*/|^_", words):
            yield words


@pytest.mark.parametrize(
    ("html", "found"),
    [
        ('<img src="a.png">', [""]),
        ('<img src="a.png" alt=" ">', [" "]),
        ('<img src="a.png" alt="../_images/a4f.png">', ["../_images/a4f.png"]),
        ('<img src="a.png" alt="Weights of head 1/2: the diagonal is dark.">', []),
        ('<svg role="img"></svg>', [""]),
        ('<svg role="img" aria-label="A block"></svg><svg aria-hidden="true"></svg>', []),
    ],
)
def test_pictures_without_words_are_recognised(html, found):
    assert list(without_words(Page(html))) == found


@every_page
def test_pictures_have_words(site, name):
    assert list(without_words(read(site / f"{name}.html"))) == []


def broken_links(path):
    """The links of a page to files or places of the site that are not there."""
    page = read(path)
    for tag, attributes in page.tags:
        for url in filter(None, (attributes.get("href"), attributes.get("src"))):
            parts = urlsplit(url)
            if parts.scheme or parts.netloc or tag == "use":
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            place = unquote(parts.fragment)
            if not target.is_file() or (place and place not in read(target).ids):
                yield url


def test_broken_links_are_recognised(tmp_path):
    links = [
        "other.html",
        "other.html#here",
        "#top",
        "https://x.org/",
        "gone.html",
        "other.html#gone",
        "#gone",
    ]
    page = tmp_path / "page.html"
    page.write_text('<p id="top">' + "".join(f'<a href="{link}">' for link in links), "utf8")
    (tmp_path / "other.html").write_text('<p id="here">', "utf8")
    assert list(broken_links(page)) == links[4:]


@every_page
def test_links_lead_somewhere(site, name):
    assert list(broken_links(site / f"{name}.html")) == []


def weights(path):
    """The compressed size in bytes of a page and of everything that it loads, by path."""
    files = [path]
    for url in loads(read(path)):
        if url and not url.startswith(("data:", "#")):
            files.append((path.parent / unquote(urlsplit(url).path)).resolve())
    for sheet in [file for file in files if file.suffix == ".css"]:
        for url in re.findall(r"""url\(\s*["']?([^)"']+)""", sheet.read_text("utf8")):
            if not url.startswith(("data:", "#")):
                files.append((sheet.parent / urlsplit(url).path).resolve())
    return {file: len(gzip.compress(file.read_bytes())) for file in files}


def test_weight_counts_what_the_page_loads(tmp_path):
    (tmp_path / "page.html").write_text(
        '<link rel="stylesheet" href="a.css?v=1"><script src="a.js"></script><script src="a.js"></script>'
        '<img src="data:,x" alt=""><a href="big.bin">'
    )
    (tmp_path / "a.css").write_text("@font-face { src: url('a.woff2') }")
    for name in ("a.js", "a.woff2", "big.bin"):
        (tmp_path / name).write_bytes(os.urandom(1000))
    found = weights(tmp_path / "page.html")
    assert sorted(file.name for file in found) == ["a.css", "a.js", "a.woff2", "page.html"]
    assert found[tmp_path / "a.js"] > 1000


@every_page
def test_page_is_light(site, name):
    found = weights(site / f"{name}.html")
    heaviest = sorted(found, key=found.get, reverse=True)[:5]
    told = ", ".join(f"{file.name} {found[file] / 1000:.0f}" for file in heaviest)
    print(f"{name}: {sum(found.values()) / 1000:.0f} kB compressed; {told}")
    assert sum(found.values()) < BUDGET


# The notebooks and pages as they are stored


@pytest.mark.parametrize("path", refresh.notebooks(), ids=lambda path: path.name)
def test_notebook_is_stored_as_refresh_writes_it(path):
    assert notebook_file.problems(notebook_file.read(path)) == []


@pytest.mark.parametrize("path", sorted(Path(build.ROOT, "book").glob("*.md")), ids=lambda path: path.name)
def test_generated_sections_are_up_to_date(path):
    text = path.read_text("utf8")
    assert refresh.with_generated_sections(text) == text, "run `make refresh`"
