"""What every browser test shares: a Chromium that reaches no other host, a local server, watched pages."""

import functools
import http.server
import os
import re
import shutil
import threading
from pathlib import Path

import pytest

#: Programs that are a Chromium, in the order in which they are looked for.
BROWSERS = ("chromium", "chromium-browser", "google-chrome")

#: Every name but 127.0.0.1 fails to resolve, and the browser itself sends nothing on its own.
OFFLINE = (
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-quic",
)

#: How long an expectation waits for the page, in milliseconds: as long as an action does, because on a busy
#: machine a browser may come to nothing for seconds.
PATIENCE = 30_000

NO_BROWSER = (
    "no Chromium found: install one (Debian and Ubuntu: apt-get install chromium) "
    "or set LABS_BROWSER to the path of a Chromium or Chrome"
)


def find_browser() -> str | None:
    """The path of a Chromium: the environment variable LABS_BROWSER, else the first of BROWSERS on PATH."""
    names = (os.environ["LABS_BROWSER"],) if "LABS_BROWSER" in os.environ else BROWSERS
    return next(filter(None, map(shutil.which, names)), None)


@pytest.fixture(scope="session")
def browser_path():
    """The path of the browser; without one the test is skipped, and fails where CI is set."""
    path = find_browser()
    if path is None:
        pytest.fail(NO_BROWSER) if os.environ.get("CI") else pytest.skip(NO_BROWSER)
    return path


@pytest.fixture(scope="module")
def launch(browser_path):
    """A function `launch(**options)` that starts a headless Chromium; it reaches 127.0.0.1 and nothing else.

    It lives for one module, not for the session: while it runs, this thread has a running event loop,
    and a test in a later module may want its own.
    """
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        yield functools.partial(playwright.chromium.launch, executable_path=browser_path, args=list(OFFLINE))


@pytest.fixture(scope="module")
def browser(launch):
    """A headless Chromium."""
    chromium = launch()
    yield chromium
    chromium.close()


@pytest.fixture
def problems():
    """Everything that went wrong in the pages of `open_page`, one line each; at the end it must be empty.

    A test that provokes a problem asserts what it is and then calls `problems.clear()`.
    """
    found = []
    yield found
    assert found == [], "the page reported problems"


def watch(page, found):
    """Append the page's console errors and warnings, uncaught errors and failed requests to `found`."""

    def hear(message):
        if message.type in ("error", "warning"):
            found.append(f"console {message.type}: {message.text}")

    page.on("console", hear)
    page.on("pageerror", lambda error: found.append(f"uncaught: {error}"))
    page.on("requestfailed", lambda request: found.append(f"failed request: {request.url}"))


def new_page(browser, url, found, **context):
    """Open `url` in a context of its own; everything that goes wrong in the page lands in `found`."""
    return page_in(new_context(browser, **context), url, found)


def new_context(browser, *, width=1280, height=900, **context):
    """A context whose pages have this size; the rest is for Playwright."""
    return browser.new_context(viewport={"width": width, "height": height}, **context)


def page_in(context, url, found):
    """Open `url` in a context; everything that goes wrong in the page lands in `found`."""
    page = context.new_page()
    watch(page, found)
    page.goto(url)
    return page


@pytest.fixture(scope="module")
def shared_context(browser):
    """A function `shared_context(url, **context)` that returns one context for all who ask for the same.

    One page of it stays open: a page of the same site then starts in its process, at half the cost.
    """
    contexts = {}

    def shared_context(url, **how):
        key = repr(sorted(how.items()))
        if key not in contexts:
            contexts[key] = new_context(browser, **how)
            contexts[key].new_page().goto(url)
        return contexts[key]

    yield shared_context
    for context in contexts.values():
        context.close()


@pytest.fixture
def open_page(browser, problems, shared_context):
    """A function `open_page(url, *, shared=False, width=1280, height=900, **context)`: a Playwright page.

    Each page has a context of its own, unless it is `shared`: that is for pages that store nothing, which
    share the contexts of their module. `color_scheme="dark"`, `has_touch=True`, ... are passed on to the
    context, and all troubles of a page land in `problems`.
    """
    close = []

    def open_page(url, *, shared=False, **how):
        if shared:
            page = page_in(shared_context(url, **how), url, problems)
            close.append(page.close)
        else:
            page = new_page(browser, url, problems, **how)
            close.append(page.context.close)
        return page

    yield open_page
    for each in close:
        each()


class Folders(http.server.SimpleHTTPRequestHandler):
    """Serves the server's folder number N as /N/ and writes no log."""

    def translate_path(self, path):
        number, _, rest = path.removeprefix("/").partition("/")
        self.directory = self.server.folders[int(number)]
        return super().translate_path(f"/{rest}")

    def do_GET(self):
        """Serve a file; a browser asks for /favicon.ico unbidden, so its absence is no fault of the page."""
        if self.path == "/favicon.ico":
            self.send_response(204)
            self.end_headers()
        else:
            super().do_GET()

    def log_message(self, *_):
        pass


@pytest.fixture(scope="session")
def serve():
    """A function `serve(directory)` that returns the address, "http://127.0.0.1:PORT/N/", of its files."""
    # one server for all: to end one takes half a second, and there are hundreds of folders
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Folders) as server:
        server.folders = []
        threading.Thread(target=server.serve_forever, daemon=True).start()

        def serve(directory: Path) -> str:
            server.folders.append(str(directory))
            return f"http://127.0.0.1:{server.server_port}/{len(server.folders) - 1}/"

        yield serve
        server.shutdown()


def pytest_terminal_summary(terminalreporter):
    """Print what tests recorded: how far the model is from independent computations, how long steps take."""
    for report in terminalreporter.getreports("passed"):
        for name, value in report.user_properties:
            if report.when == "call" and name.startswith(("worst relative error", "milliseconds")):
                terminalreporter.write_line(f"{name}: {value}")


def pytest_collection_modifyitems(items):
    """Mark the tests that open pages in a browser."""
    for item in items:
        if "browser_path" in getattr(item, "fixturenames", ()):
            item.add_marker("browser")


#: Long files whose tests share little: their parts spread over the workers. What stays together is one test,
#: or, of the pages of the book, all questions to one page.
SPREAD = re.compile(
    r"(tests/book/test_pages\.py)::\w+\[(.*)\]|(tests/labs/widgets/(?:\w+/test_widget|test_(?!jupyterlab)\w+)\.py::.*)"
)


@pytest.hookimpl(optionalhook=True)  # without xdist nobody asks
def pytest_xdist_make_scheduler(config, log):
    """With `--dist loadfile`, tests stay together file by file, notebooks too, except for those of SPREAD."""
    from xdist.scheduler import LoadFileScheduling

    class Spreading(LoadFileScheduling):
        def _split_scope(self, nodeid):
            if found := SPREAD.fullmatch(nodeid):
                return "::".join(filter(None, found.groups()))
            return super()._split_scope(nodeid)

    return Spreading(config, log) if config.getvalue("dist") == "loadfile" else None
