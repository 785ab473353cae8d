"""The shared browser fixtures: what they let through, and what they must not."""

import os
import subprocess
import sys

import pytest

from tests.conftest import pytest_xdist_make_scheduler


@pytest.fixture
def site(tmp_path, serve):
    """The address of a directory with one page; `site.write(html)` says what is on it."""

    def write(html):
        (tmp_path / "page.html").write_text(f"<!doctype html><title>page</title>{html}", "utf8")
        return serve(tmp_path) + "page.html"

    return write


def test_serves_a_directory(site, open_page):
    page = open_page(site("<p>hello</p>"))
    assert page.inner_text("p") == "hello"


def test_page_has_the_asked_width(site, open_page):
    page = open_page(site(""), width=360)
    assert page.evaluate("innerWidth") == 360


@pytest.mark.parametrize(
    ("html", "said"),
    [
        ("<script>console.error('broken')</script>", "console error: broken"),
        ("<script>console.warn('careful')</script>", "console warning: careful"),
        ("<script>throw new Error('uncaught')</script>", "uncaught: uncaught"),
        ("<img src=missing.png alt=''>", "console error: Failed to load resource"),
    ],
)
def test_problems_are_recorded(site, open_page, problems, html, said):
    page = open_page(site(html))
    page.wait_for_load_state("networkidle")
    assert len(problems) == 1
    assert problems[0].startswith(said)
    problems.clear()


def test_no_name_is_resolved_not_even_of_this_machine(site, open_page, problems):
    page = open_page(site(""))
    elsewhere = page.url.replace("127.0.0.1", "localhost")
    page.evaluate("url => fetch(url, { mode: 'no-cors' }).catch(() => null)", elsewhere)
    assert f"failed request: {elsewhere}" in problems
    problems.clear()


@pytest.mark.parametrize(("ci", "outcome"), [("", "1 skipped"), ("true", "1 error")])
def test_without_a_browser_tests_are_skipped_but_fail_in_ci(ci, outcome):
    test = f"{__file__}::test_serves_a_directory"
    environment = os.environ | {"LABS_BROWSER": "/no/such/browser", "CI": ci}
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", test],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert outcome in run.stdout
    assert "apt-get install chromium" in run.stdout


def test_what_stays_together_on_one_worker(pytestconfig, monkeypatch):
    monkeypatch.setattr(pytestconfig.option, "dist", "loadfile")
    monkeypatch.setattr(pytestconfig.option, "tx", ["popen"])
    scope = pytest_xdist_make_scheduler(pytestconfig, None)._split_scope
    pages, widgets = "tests/book/test_pages.py", "tests/labs/widgets"
    assert scope("book/01_shapes.ipynb::Cell 0") == scope("book/01_shapes.ipynb::Cell 7")
    assert scope("tests/labs/llm/test_ops.py::test_a") == scope("tests/labs/llm/test_ops.py::test_b")
    assert scope(f"{widgets}/test_jupyterlab.py::test_a") == scope(f"{widgets}/test_jupyterlab.py::test_b")
    assert scope(f"{widgets}/shared/test_dom.py::test_a") == scope(f"{widgets}/shared/test_dom.py::test_b")
    for each in ("head_split", "trace_explorer"):
        folder = f"{widgets}/{each}"
        assert scope(f"{folder}/test_widget.py::test_a") != scope(f"{folder}/test_widget.py::test_b")
        assert scope(f"{folder}/test_state.py::test_a") == scope(f"{folder}/test_state.py::test_b")
    assert scope(f"{widgets}/test_fonts.py::test_a[1]") != scope(f"{widgets}/test_fonts.py::test_a[2]")
    assert scope(f"{pages}::test_a[index phone]") == scope(f"{pages}::test_b[index phone]")
    assert scope(f"{pages}::test_a[index phone]") != scope(f"{pages}::test_a[index laptop]")


def test_pages_share_a_context_only_where_they_ask(open_page, site):
    url = site("")
    first, second = (open_page(url, shared=True) for _ in range(2))
    assert first.context is second.context
    assert open_page(url, shared=True, color_scheme="dark").context is not first.context
    assert open_page(url).context is not first.context
