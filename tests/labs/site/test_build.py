"""A build fails loudly, succeeds quietly, and never shows what is no longer true."""

import filecmp
import json
import re
import shutil
import socket
import threading
import urllib.request

import pytest

from labs.site import build
from labs.site.build import BuildError

MADE_FROM = {"code": "c", "assets": "a"}
KEPT = (".jupyter_cache", "jupyter_execute", ".doctrees", "html")


def test_root_is_the_repository():
    assert (build.ROOT / "_config.yml").exists()
    assert (build.ROOT / "labs/site/build.py").exists()


# The whole way


def files_of(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def comparable(content):
    """The content of a file without the two differences that no reader meets."""
    # MyST-NB writes one style sheet so late that the first build cannot know its checksum
    content = re.sub(rb"(mystnb\.\w+\.css)\?v=\w+", rb"\1", content)
    # Sphinx keeps words in the search index that no page has any more
    return re.sub(rb', "\w+": \[\]', b"", content)


def test_an_incremental_build_equals_a_fresh_one(book, write_notebook):
    page, notebook = book / "book/index.md", book / "book/notebook.ipynb"
    picture = "import matplotlib.pyplot as plt\n\nplt.plot([1, {}])\nplt.show()"
    old_text, new_notebook = page.read_text("utf8"), notebook.read_bytes()
    page.write_text("# Old\n\n$z$\n", "utf8")
    write_notebook(notebook, picture.format(3))
    site = build.build(book)
    assert "Old" in (site / "book/index.html").read_text("utf8")

    page.write_text(old_text, "utf8")
    notebook.write_bytes(new_notebook)
    incremental = book / "incremental"
    shutil.copytree(build.build(book), incremental)
    shutil.rmtree(book / "_build")
    fresh = build.build(book)
    assert files_of(incremental) == files_of(fresh)
    for name in files_of(fresh):
        one, other = ((site / name).read_bytes() for site in (incremental, fresh))
        assert comparable(one) == comparable(other), name


def test_an_unchanged_build_writes_no_page(book):
    def written():
        pages = (build.build(book) / "book").glob("*.html")
        return {page.name: page.stat().st_mtime_ns for page in pages}

    before = written()
    assert set(before) == {"index.html", "notebook.html"}
    assert written() == before


def test_a_failing_cell_fails_the_build_until_it_is_mended(book, write_notebook, capfd):
    notebook = book / "book/notebook.ipynb"
    write_notebook(notebook, "x = 0", "print('so far')\n1 / x")
    for _ in range(2):  # a second try must not pass because the page has been read already
        with pytest.raises(BuildError) as failure:
            build.build(book)
        message = str(failure.value)
        assert message.startswith("book/notebook.ipynb failed:\nAn error occurred while executing")
        assert "1 / x" in message
        assert "ZeroDivisionError: division by zero" in message
        assert "\x1b" not in message
    write_notebook(notebook, "x = 1", "1 / x")
    build.build(book)
    assert "Kernel is running" not in capfd.readouterr().err


def test_warnings_fail_the_build_each_time(book, capfd):
    (book / "_toc.yml").write_text("format: jb-book\nroot: book/index\n", "utf8")
    (book / "book/index.md").write_text("# Title\n\n[gone](gone.md)\n\n$\\wrong$\n\n### Too deep\n", "utf8")
    for _ in range(2):
        with pytest.raises(BuildError, match="The book was not built: the messages above say why"):
            build.build(book)
        told = capfd.readouterr().err
        assert "index.md:3: WARNING: 'myst' cross-reference target not found: 'gone.md'" in told
        assert "index.md:5: WARNING: mathematics: Undefined control sequence" in told
        assert "index.md:7: WARNING: Non-consecutive header level" in told


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
        text = record if isinstance(record, str) else json.dumps(record)
        (tmp_path / "_build/made-from.json").write_text(text, "utf8")
    build.drop_stale(tmp_path, MADE_FROM)
    assert {path.name for path in (tmp_path / "_build").iterdir()} - {"made-from.json"} == left


def test_a_change_of_the_code_executes_notebooks_again(book, write_notebook):
    write_notebook(
        book / "book/notebook.ipynb", "from pathlib import Path", "Path('../labs/code.py').read_text()"
    )
    page = build.build(book) / "book/notebook.html"
    assert "ANSWER = 42" in page.read_text("utf8")
    (book / "labs/code.py").write_text("ANSWER = 43\n", "utf8")
    build.build(book)
    assert "ANSWER = 43" in page.read_text("utf8")


def test_a_change_of_an_asset_reaches_every_page(book):
    page = build.build(book) / "book/index.html"

    def version():
        return re.search(r"labs\.css\?v=(\w+)", page.read_text("utf8"))[1]

    before = version()
    with (book / "book/assets/labs.css").open("a", encoding="utf8") as sheet:
        sheet.write("p { color: red; }\n")
    build.build(book)
    assert version() != before
    assert filecmp.cmp(book / "book/assets/labs.css", page.parents[1] / "_static/labs.css", shallow=False)


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
