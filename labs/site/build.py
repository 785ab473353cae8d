"""Build the book into `_build/html` and serve it on this machine.

What a build leaves behind (`_build`) makes the next one fast, but only while it is true: executed notebooks
depend on `labs/` and the pinned packages, written pages on the assets and the configuration.
`_build/made-from.json` records both, and what no longer holds is thrown away before building.
"""

import functools
import hashlib
import http.server
import json
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import yaml
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from jupyter_cache.cache.main import JupyterCacheBase
from sphinx_external_toc.parsing import MalformedError, SiteMap, parse_toc_data
from sqlalchemy.exc import SQLAlchemyError

from labs.site import notebook_file
from labs.site.environment import ROOT, SiteError, read_text, require_own_code
from labs.site.notebook_file import without_colours

#: What every executed notebook depends on, besides itself.
CODE = ("labs", "constraints.txt")
#: What every written page depends on, besides its text.
ASSETS = ("book/assets", "_config.yml", "_toc.yml")

#: The outputs of the notebooks, in Jupyter Book's own cache.
CACHE = "_build/.jupyter_cache"

#: Jupyter Book's command, without the traceback that it adds after Sphinx has said what is wrong.
JUPYTER_BOOK = """
import sys
from jupyter_book.cli.main import main

try:
    main()
except RuntimeError as error:
    sys.exit(str(error))
"""


class BuildError(SiteError):
    """The book could not be built; the message says why and what to do."""


def build(root: Path = ROOT) -> Path:
    """Execute the notebooks and write the site; warnings are errors.

    Args:
        root: the folder of `_config.yml` and `_toc.yml`.

    Returns: the folder of the site, `root/_build/html`.
    Raises: BuildError if anything went wrong; SiteError if notebooks would import another folder's code.
    """
    require_own_code()
    paths = notebooks_of(root)
    made_from = {"code": fingerprint(root, CODE), "assets": fingerprint(root, ASSETS)}
    drop_stale(root, made_from)
    _write_record(root, made_from | {"finished": False})
    afresh = not (root / CACHE).exists()
    print(f"Building the book{', executing every notebook: about a minute' * afresh} ...", flush=True)
    if failures := execute(paths, root):
        names = " and ".join(path.relative_to(root).as_posix() for path in failures)
        raise BuildError(
            "\n\n".join([*failures.values(), f"The book was not built because of {names}: see above."])
        )
    arguments = ["build", str(root), "--warningiserror", "--keep-going", "--nitpick", "--quiet"]
    if _run_jupyter_book(arguments, root):
        raise BuildError("The book was not built: the messages above say why.")
    _write_record(root, made_from | {"finished": True})
    return root / "_build/html"


def notebooks_of(root: Path) -> list[Path]:
    """The notebooks that the table of contents lists.

    Raises: BuildError if there is no configuration or no table of contents.
    """
    for name, parse in (("_config.yml", config_of), ("_toc.yml", toc_of)):
        try:
            parsed = parse(read_text(root / name))
        except FileNotFoundError as error:
            raise BuildError(f"{root} has no {name}: restore it with `git restore {name}`") from error
        except (MalformedError, yaml.YAMLError) as error:
            raise BuildError(f"{root / name} is damaged: {error}") from error
    return [path for path in (root / f"{page}.ipynb" for page in parsed) if path.exists()]


def config_of(text: str) -> dict:
    """The settings in the text of a `_config.yml`."""
    settings = yaml.safe_load(text)
    if not isinstance(settings, dict):
        raise MalformedError(f"expected settings by name, got {text[:30]!r}")
    return settings


def toc_of(text: str) -> SiteMap:
    """The table of contents in the text of a `_toc.yml`."""
    return parse_toc_data(yaml.safe_load(text))


def execute(paths: Iterable[Path], root: Path) -> dict[Path, str]:
    """Run the notebooks whose outputs are not in the cache yet, and store the outputs there.

    Jupyter Book would run them too, but without naming the notebook: for a broken file or kernel it only
    shows a traceback of its own code.

    Returns: what went wrong, by notebook; the others are run all the same.
    """
    failures = {}
    cache = open_cache(root / CACHE)
    try:
        for path in paths:
            try:
                notebook = notebook_file.read(path)
                if not _is_cached(notebook, cache):
                    print(f"Running {path.relative_to(root).as_posix()} ...", flush=True)
                    _run_into_cache(notebook, path, cache)
            except SiteError as error:
                failures[path] = str(error)
    finally:
        cache.db.dispose()
    return failures


def open_cache(folder: Path) -> JupyterCacheBase:
    """The cache in this folder, cleared if anything in it is damaged."""
    cache = get_cache(folder)
    try:
        for record in cache.list_cache_records():
            cache.get_cache_bundle(record.pk)
    except Exception as error:  # a damaged database or notebook can raise any
        reason = str(error).split("\n")[0]
        print(
            f"The outputs kept in {folder} are damaged ({reason}): every notebook will run again.", flush=True
        )
        cache.db.dispose()
        cache.clear_cache()
    return cache


def _is_cached(notebook, cache: JupyterCacheBase) -> bool:
    """Whether the cache has the outputs of this notebook's code."""
    try:
        cache.match_cache_notebook(notebook)
    except KeyError:
        return False
    return True


def _run_into_cache(notebook, path: Path, cache: JupyterCacheBase) -> None:
    """Run a notebook and store its outputs in the cache, unless any of them is on stderr."""
    notebook_file.run(notebook, path, store_widget_state=True)
    if complaints := notebook_file.stderr(notebook):
        raise BuildError("\n".join(f"{path}: {complaint}" for complaint in complaints))
    try:
        cache.cache_notebook_bundle(CacheBundleIn(notebook, str(path)), check_validity=False, overwrite=True)
    except (RuntimeError, SQLAlchemyError) as error:
        reason = error.__cause__ or error
        raise BuildError(f"the outputs of {path} cannot be stored in {cache.path}: {reason}") from error


def _run_jupyter_book(arguments: list[str], folder: Path) -> bool:
    """Run Jupyter Book in a process of its own, pass its messages on, and say whether it failed."""
    command = [sys.executable, "-c", JUPYTER_BOOK, *arguments]
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True, "encoding": "utf8"}
    show = str if sys.stderr.isatty() else without_colours
    with subprocess.Popen(command, cwd=folder, **pipes) as process:
        for line in process.stderr:
            print(show(line), end="", file=sys.stderr, flush=True)
    return process.returncode != 0


# What is kept from one build to the next


def fingerprint(root: Path, names: Iterable[str]) -> str:
    """A hash of these files, and of every file in these folders: of their names and of their contents."""
    digest = hashlib.sha256()
    for file in sorted(file for name in names for file in [root / name, *(root / name).rglob("*")]):
        if file.is_file() and "__pycache__" not in file.parts:
            digest.update(f"{file.relative_to(root).as_posix()}\0".encode())
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def drop_stale(root: Path, made_from: dict[str, str]) -> None:
    """Throw away what `_build` holds and a fresh build from these fingerprints would write differently."""
    record = _read_record(root)
    stale = []
    if record.get("code") != made_from["code"]:
        stale = [".jupyter_cache", "jupyter_execute", ".doctrees", "html"]
    elif record.get("finished") is not True:
        # Sphinx shows a warning only when it reads the page, so a failed build would now succeed
        stale = [".doctrees", "html"]
    elif record.get("assets") != made_from["assets"]:
        stale = ["html"]
    for path in (root / "_build" / name for name in stale):
        if path.exists():
            shutil.rmtree(path)


def _read_record(root: Path) -> dict:
    """What the last build was made from; empty if there was none, or if the record is damaged."""
    try:
        record = json.loads((root / "_build/made-from.json").read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def _write_record(root: Path, record: dict) -> None:
    """Write down what this build is made from, and whether it came to its end."""
    (root / "_build").mkdir(exist_ok=True)
    (root / "_build/made-from.json").write_text(json.dumps(record, indent=1) + "\n", "utf8")


# Reading it


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    """Serves a folder and writes no log."""

    def log_message(self, *_):
        pass


def start_server(folder: Path, port: int = 8000) -> http.server.ThreadingHTTPServer:
    """A server of `folder` for this machine only, on `port` or on a free one if that is busy."""
    handler = functools.partial(QuietHandler, directory=str(folder))
    try:
        return Server(("127.0.0.1", port), handler)
    except OSError:
        return Server(("127.0.0.1", 0), handler)


class Server(http.server.ThreadingHTTPServer):
    """Never shares its port with another program, as Python's own would on some systems."""

    allow_reuse_address = sys.platform != "win32"


def serve(root: Path = ROOT, port: int = 8000) -> None:
    """Serve the built site until Ctrl-C.

    Raises: BuildError if nothing is built.
    """
    site = root / "_build/html"
    if not (site / "index.html").exists():
        raise BuildError(f"nothing is built in {site}: build first with `python -m labs.site build`")
    with start_server(site, port) as server:
        print(f"Reading at http://127.0.0.1:{server.server_port}/ (Ctrl-C ends it)", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print("\nEnded.")
