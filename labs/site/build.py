"""Build the book into `_build/html` and serve it on this machine.

What a build leaves behind (`_build`) makes the next one fast, but only while it is true: executed notebooks
depend on `labs/` and the pinned packages, written pages on the assets and the configuration.
`_build/made-from.json` records both, and what no longer holds is thrown away before building.
"""

import functools
import hashlib
import http.server
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

#: The top of the repository; labs is installed from there.
ROOT = Path(__file__).resolve().parents[2]

#: What every executed notebook depends on, besides itself.
CODE = ("labs", "constraints.txt")
#: What every written page depends on, besides its text.
ASSETS = ("book/assets", "_config.yml", "_toc.yml")

# A kernel says this on the error channel; Jupyter Book's kernels listen on this machine only.
KERNEL_NOTICE = "Kernel is running over TCP without encryption"


class BuildError(RuntimeError):
    """The book could not be built; the message says why and what to do."""


def build(root: Path = ROOT) -> Path:
    """Execute the notebooks and write the site; warnings are errors.

    Args:
        root: the folder of `_config.yml` and `_toc.yml`.

    Returns: the folder of the site, `root/_build/html`.
    Raises: BuildError if anything went wrong.
    """
    made_from = {"code": fingerprint(root, CODE), "assets": fingerprint(root, ASSETS)}
    drop_stale(root, made_from)
    _write_record(root, made_from | {"finished": False})
    afresh = not (root / "_build/.jupyter_cache").exists()
    print(f"Building the book{', executing every notebook: about a minute' * afresh} ...", flush=True)
    arguments = ["build", str(root), "--warningiserror", "--keep-going", "--nitpick", "--quiet"]
    failed = _run_jupyter_book(arguments, root)
    failures = notebook_failures(root)
    if failed or failures:
        raise BuildError("\n\n".join([*failures, "The book was not built: the messages above say why."]))
    _write_record(root, made_from | {"finished": True})
    return root / "_build/html"


def _run_jupyter_book(arguments: list[str], folder: Path) -> bool:
    """Run Jupyter Book in a process of its own, pass its messages on, and say whether it failed."""
    command = [sys.executable, "-c", "from jupyter_book.cli.main import main; main()", *arguments]
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True, "encoding": "utf8"}
    show = str if sys.stderr.isatty() else without_colours
    with subprocess.Popen(command, cwd=folder, **pipes) as process:
        for line in process.stderr:
            if KERNEL_NOTICE not in line:
                print(show(line), end="", file=sys.stderr, flush=True)
    return process.returncode != 0


def notebook_failures(root: Path) -> list[str]:
    """For each notebook that failed in the last build, its name and the traceback of the failing cell."""
    folder = root / "_build/html/reports"
    failures = []
    for report in sorted(folder.rglob("*.err.log")):
        name = report.relative_to(folder).as_posix().removesuffix(".err.log") + ".ipynb"
        # a report begins with the way into the kernel, which says nothing about the notebook
        text = report.read_text("utf8").split("CellExecutionError: ", 1)[-1]
        failures.append(f"{name} failed:\n{without_colours(text).strip()}")
    return failures


def without_colours(text: str) -> str:
    """What a program wrote for a terminal, as plain text."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


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
    stale = ["html/reports"]  # or a notebook that was mended would still count as failed
    if record.get("code") != made_from["code"]:
        stale += [".jupyter_cache", "jupyter_execute", ".doctrees", "html"]
    elif not record["finished"]:
        # Sphinx shows a warning only when it reads the page, so a failed build would now succeed
        stale += [".doctrees", "html"]
    elif record["assets"] != made_from["assets"]:
        stale += ["html"]
    for name in stale:
        shutil.rmtree(root / "_build" / name, ignore_errors=True)


def _read_record(root: Path) -> dict:
    """What the last build was made from; empty if there was none."""
    try:
        return json.loads((root / "_build/made-from.json").read_text("utf8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return {}


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
