"""A build fails loudly, succeeds quietly, and never shows what is no longer true."""

import contextlib
import filecmp
import json
import os
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
import threading
import urllib.request

import pytest

from labs.site import build
from labs.site.build import BuildError
from labs.site.environment import SiteError

MADE_FROM = {"code": "c", "assets": "a"}
KEPT = (".jupyter_cache", "jupyter_execute", ".doctrees", "html")


# The whole way


def files_of(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def comparable(content):
    """The content of a file without the two differences that no reader meets."""
    # MyST-NB writes one style sheet so late that the first build cannot know its checksum
    content = re.sub(rb"(mystnb\.\w+\.css)\?v=\w+", rb"\1", content)
    # Sphinx keeps words in the search index that no page has any more
    return re.sub(rb', "\w+": \[\]', b"", content)


def test_an_incremental_build_equals_a_fresh_one(rebuilt_book, write_notebook):
    page, notebook = rebuilt_book / "book/index.md", rebuilt_book / "book/notebook.ipynb"
    old_text, old_notebook = page.read_text("utf8"), notebook.read_bytes()
    fresh = rebuilt_book / "fresh"
    shutil.copytree(rebuilt_book / "_build/html", fresh)
    page.write_text("# Other\n\n$z$\n", "utf8")
    write_notebook(notebook, "import matplotlib.pyplot as plt\n\nplt.plot([1, 3])\nplt.show()")
    site = build.build(rebuilt_book)
    assert "Other" in (site / "book/index.html").read_text("utf8")
    assert list(site.rglob("*.png"))

    page.write_text(old_text, "utf8")
    notebook.write_bytes(old_notebook)
    build.build(rebuilt_book)
    assert files_of(site) == files_of(fresh)
    for name in files_of(fresh):
        one, other = ((folder / name).read_bytes() for folder in (site, fresh))
        assert comparable(one) == comparable(other), name


def test_an_unchanged_build_runs_nothing_and_writes_no_page(rebuilt_book, capsys):
    def written():
        pages = (rebuilt_book / "_build/html/book").glob("*.html")
        return {page.name: page.stat().st_mtime_ns for page in pages}

    before = written()
    assert set(before) == {"index.html", "notebook.html"}
    build.build(rebuilt_book)
    assert written() == before
    assert capsys.readouterr().out == "Building the book ...\n"


def test_jupyter_book_finds_every_output_in_the_cache(built_once):
    with contextlib.closing(sqlite3.connect(built_once[1] / build.CACHE / "global.db")) as database:
        assert database.execute("SELECT count(*) FROM nbcache").fetchone() == (1,)
        assert database.execute("SELECT count(*) FROM nbproject").fetchone() == (0,)  # what it ran itself


def test_warnings_fail_the_build_each_time(book, capfd):
    (book / "_toc.yml").write_text("format: jb-book\nroot: book/index\n", "utf8")
    (book / "book/index.md").write_text("# Title\n\n[gone](gone.md)\n\n$\\wrong$\n\n### Too deep\n", "utf8")
    with pytest.raises(BuildError, match="The book was not built: the messages above say why"):
        build.build(book)
    told = capfd.readouterr().err
    assert "index.md:3: WARNING: 'myst' cross-reference target not found: 'gone.md'" in told
    assert "index.md:5: WARNING: mathematics: Undefined control sequence" in told
    assert "index.md:7: WARNING: Non-consecutive header level" in told
    # Sphinx says nothing about a page that it has read already: the next build must read it again
    assert json.loads((book / "_build/made-from.json").read_text("utf8"))["finished"] is False


# Notebooks


@pytest.fixture
def notebook(tmp_path):
    """The path of the only notebook of a book that Jupyter Book never comes to build."""
    (tmp_path / "_config.yml").write_text("title: Small\n", "utf8")
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: book/notebook\n", "utf8")
    (tmp_path / "book").mkdir()
    return tmp_path / "book/notebook.ipynb"


def run_again(root):
    """Run the notebooks of a book whose outputs are not in the cache; what went wrong, by name."""
    failures = build.execute(build.notebooks_of(root), root)
    return {path.relative_to(root).as_posix(): told for path, told in failures.items()}


def test_a_notebook_that_fails_is_named_in_the_last_line(notebook, write_notebook, tmp_path, capfd):
    write_notebook(notebook, "x = 0", "print('so far')\n1 / x")
    for _ in range(2):  # a second try must not pass because of something that the first has left
        with pytest.raises(BuildError) as failure:
            build.build(tmp_path)
        first, *_, last = str(failure.value).splitlines()
        assert first == f"{notebook}: code cell 2 failed:"
        assert last == "The book was not built because of book/notebook.ipynb: see above."
        assert "1 / x" in str(failure.value)
        assert "ZeroDivisionError: division by zero" in str(failure.value)
    assert capfd.readouterr().err == ""
    write_notebook(notebook, "x = 1", "1 / x")
    assert run_again(tmp_path) == {}


def test_all_that_fail_are_named_and_the_others_are_run(notebook, write_notebook, tmp_path, capsys):
    (tmp_path / "_toc.yml").write_text(
        "format: jb-book\nroot: book/notebook\n"
        "chapters: [{file: book/conflict}, {file: book/loud}, {file: book/page}, {file: book/sound}]",
        "utf8",
    )
    write_notebook(notebook, "import os\nos._exit(1)")
    notebook.with_name("conflict.ipynb").write_text("<<<<<<< HEAD\n")
    notebook.with_name("page.md").touch()
    drawn = "import matplotlib.pyplot as plt\n\nplt.title('中')\nplt.show()"
    write_notebook(notebook.with_name("loud.ipynb"), drawn)
    write_notebook(notebook.with_name("sound.ipynb"), "1")
    failures = run_again(tmp_path)
    assert list(failures) == ["book/notebook.ipynb", "book/conflict.ipynb", "book/loud.ipynb"]
    assert "code cell 1 killed its kernel" in failures["book/notebook.ipynb"]
    assert "unresolved merge conflict on line 1" in failures["book/conflict.ipynb"]
    assert re.search(
        r"loud\.ipynb: code cell 1: expected nothing on stderr, got: ", failures["book/loud.ipynb"]
    )
    assert "Glyph 20013" in failures["book/loud.ipynb"]
    assert capsys.readouterr().out.splitlines()[-1] == "Running book/sound.ipynb ..."
    failed_again = run_again(tmp_path)
    assert list(failed_again) == list(failures)
    assert "sound" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("global.db", lambda path: path.write_bytes(b"garbage" * 1000)),
        ("global.db", lambda path: path.write_bytes(b"")),
        ("executed/*/base.ipynb", lambda path: path.write_text(path.read_text("utf8")[:100], "utf8")),
        ("executed/*/base.ipynb", lambda path: path.unlink()),
    ],
    ids=["garbage", "empty", "cut", "gone"],
)
def test_a_damaged_cache_is_thrown_away_with_a_sentence(
    notebook, write_notebook, tmp_path, capsys, name, damage
):
    write_notebook(notebook, "1")
    assert run_again(tmp_path) == {}
    (found,) = (tmp_path / build.CACHE).glob(name)
    damage(found)
    capsys.readouterr()
    assert run_again(tmp_path) == {}
    told, ran = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"The outputs kept in .*\.jupyter_cache are damaged \(.+\): every notebook .*", told)
    assert ran == "Running book/notebook.ipynb ..."
    assert run_again(tmp_path) == {}
    assert capsys.readouterr().out == ""


def test_outputs_that_cannot_be_kept_are_an_error(notebook, write_notebook, tmp_path, monkeypatch):
    def full(*_, **__):
        raise RuntimeError("cache") from OSError("disk is full")

    monkeypatch.setattr(build.JupyterCacheBase, "cache_notebook_bundle", full)
    write_notebook(notebook, "1")
    (told,) = run_again(tmp_path).values()
    assert re.search(r"the outputs of \S*notebook\.ipynb cannot be stored in \S*: disk is full", told)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("_toc.yml", None, "has no _toc.yml: restore it with `git restore _toc.yml`"),
        ("_config.yml", None, "has no _config.yml: restore it"),
        ("_toc.yml", "[]", "_toc.yml is damaged: toc is not a mapping"),
        ("_toc.yml", "root: [", "(?s)_toc.yml is damaged: .*line 1, column 8"),
        ("_config.yml", "", "_config.yml is damaged: expected settings by name, got ''"),
        ("_config.yml", "a: [", "(?s)_config.yml is damaged: .*line 1, column 5"),
    ],
)
@pytest.mark.usefixtures("notebook")
def test_a_missing_or_damaged_configuration_is_named(tmp_path, name, text, said):
    (tmp_path / name).unlink() if text is None else (tmp_path / name).write_text(text)
    with pytest.raises(BuildError, match=said):
        build.build(tmp_path)


INTERRUPT = """
import os, signal

os.kill(os.getppid(), signal.SIGINT)
while True:
    pass
"""

BUILD = """
import sys
from functools import partial
from pathlib import Path
from labs.site import __main__, build

build.build = partial(build.build, Path(sys.argv[1]))
sys.exit(__main__.main(["build"]))
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no signal of the kind")
def test_ctrl_c_ends_the_build_at_once_and_the_next_one_starts_afresh(notebook, write_notebook, tmp_path):
    write_notebook(notebook, INTERRUPT)
    command = [sys.executable, "-c", BUILD, str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTHONWARNINGS": ""})
    assert (run.returncode, run.stderr) == (130, "\nInterrupted; nothing is half done: run it again.\n")
    assert json.loads((tmp_path / "_build/made-from.json").read_text("utf8"))["finished"] is False
    with contextlib.closing(sqlite3.connect(tmp_path / build.CACHE / "global.db")) as database:
        assert database.execute("SELECT count(*) FROM nbcache").fetchone() == (0,)


def test_an_environment_of_another_folder_is_refused(tmp_path, monkeypatch):
    def refuse():
        raise SiteError("another folder's")

    monkeypatch.setattr(build, "require_own_code", refuse)
    with pytest.raises(SiteError, match="another folder's"):
        build.build(tmp_path)


# What is kept


def test_fingerprint_sees_names_and_contents(tmp_path):
    (tmp_path / "labs").mkdir()
    file = tmp_path / "labs/a.py"
    seen = []

    def look():
        seen.append(build.fingerprint(tmp_path, ["labs", "constraints.txt"]))

    look()
    file.write_text("1")
    look()
    file.write_text("2")
    look()
    file.rename(tmp_path / "labs/b.py")
    look()
    (tmp_path / "constraints.txt").write_text("numpy==2")
    look()
    assert len(set(seen)) == len(seen)
    (tmp_path / "labs/__pycache__").mkdir()
    (tmp_path / "labs/__pycache__/a.pyc").write_text("1")
    (tmp_path / "elsewhere.py").write_text("1")
    look()
    assert seen[-1] == seen[-2]


@pytest.mark.parametrize(
    ("record", "left"),
    [
        (None, set()),
        ("{broken", set()),
        ("[]", set()),
        ("null", set()),
        ('"code"', set()),
        ('{"code": 1}', set()),
        (b"\xff\xfe", set()),
        ({"code": "c"}, {".jupyter_cache", "jupyter_execute"}),
        ({"code": "c", "finished": "yes"}, {".jupyter_cache", "jupyter_execute"}),
        ({"code": "c", "finished": True}, {".jupyter_cache", "jupyter_execute", ".doctrees"}),
        (MADE_FROM | {"finished": True}, set(KEPT)),
        (MADE_FROM | {"finished": True, "code": "other"}, set()),
        (MADE_FROM | {"finished": False}, {".jupyter_cache", "jupyter_execute"}),
        (
            MADE_FROM | {"finished": True, "assets": "other"},
            {".jupyter_cache", "jupyter_execute", ".doctrees"},
        ),
    ],
)
def test_what_no_longer_holds_is_thrown_away(tmp_path, record, left):
    for name in KEPT:
        (tmp_path / "_build" / name).mkdir(parents=True)
    if record is not None:
        content = json.dumps(record).encode() if isinstance(record, dict) else record
        content = content.encode() if isinstance(content, str) else content
        (tmp_path / "_build/made-from.json").write_bytes(content)
    build.drop_stale(tmp_path, MADE_FROM)
    assert {path.name for path in (tmp_path / "_build").iterdir()} - {"made-from.json"} == left


def test_what_cannot_be_thrown_away_is_an_error(tmp_path):
    (tmp_path / "_build").mkdir()
    (tmp_path / "_build/html").touch()
    with pytest.raises(NotADirectoryError):
        build.drop_stale(tmp_path, MADE_FROM)


def test_a_change_of_the_code_executes_notebooks_again(rebuilt_book):
    page = rebuilt_book / "_build/html/book/notebook.html"
    assert "ANSWER = 42" in page.read_text("utf8")
    (rebuilt_book / "labs/code.py").write_text("ANSWER = 43\n", "utf8")
    build.build(rebuilt_book)
    assert "ANSWER = 43" in page.read_text("utf8")


def test_a_change_of_an_asset_reaches_every_page(rebuilt_book):
    page = rebuilt_book / "_build/html/book/index.html"

    def version():
        return re.search(r"labs\.css\?v=(\w+)", page.read_text("utf8"))[1]

    before = version()
    sheet = rebuilt_book / "book/assets/labs.css"
    sheet.write_text(sheet.read_text("utf8") + "p { color: red; }\n", "utf8")
    build.build(rebuilt_book)
    assert version() != before
    assert filecmp.cmp(sheet, page.parents[1] / "_static/labs.css", shallow=False)


# Reading it


def get(server):
    with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/index.html") as answer:
        return answer.read().decode()


def test_server_serves_the_folder_on_this_machine_only(tmp_path, capfd):
    (tmp_path / "index.html").write_text("hello", "utf8")
    with build.start_server(tmp_path, port=0) as server:
        threading.Thread(target=server.serve_forever).start()
        assert server.server_address[0] == "127.0.0.1"
        assert get(server) == "hello"
        server.shutdown()
    assert capfd.readouterr() == ("", "")


def test_a_busy_port_is_left_alone(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = busy.getsockname()[1]
        with build.start_server(tmp_path, port) as server:
            assert server.server_port != port


def test_serving_nothing_is_refused(tmp_path):
    with pytest.raises(
        BuildError, match=r"nothing is built in .*_build.html: build first with `python -m labs"
    ):
        build.serve(tmp_path)


def test_serving_prints_the_address_and_ends_cleanly(tmp_path, capsys, monkeypatch):
    (tmp_path / "_build/html").mkdir(parents=True)
    (tmp_path / "_build/html/index.html").touch()

    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(build.Server, "serve_forever", interrupted)
    build.serve(tmp_path, port=0)
    assert re.fullmatch(
        r"Reading at http://127\.0\.0\.1:\d+/ \(Ctrl-C ends it\)\n\nEnded\.\n", capsys.readouterr().out
    )
