"""A notebook is refused with a reason, run as a reader runs it, and stored without a trace of anybody."""

import json
import subprocess
import sys

import nbformat
import pytest

from labs.site import notebook_file
from labs.site.environment import SiteError


@pytest.fixture
def path(tmp_path):
    return tmp_path / "notebook.ipynb"


# Reading


SOUND = json.dumps({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1)

CONFLICT = SOUND.replace(' "metadata"', '<<<<<<< HEAD\n "metadata"')


def of_format(major, minor):
    return SOUND.replace('"nbformat": 4', f'"nbformat": {major}').replace('_minor": 5', f'_minor": {minor}')


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (CONFLICT, "has an unresolved merge conflict on line 3: take one side with `git checkout --ours`"),
        (SOUND[:40], r"is damaged or not a notebook at all \(Unterminated string starting at: line 4"),
        ("", r"is damaged or not a notebook at all \(Expecting value: line 1 column 1 \(char 0\)\): repair"),
        ("# A page", r"is damaged or not a notebook at all \(Expecting value"),
        ("[]", r"is not a notebook: expected an object with a list of cells, got '\[\]'"),
        ("{}", r"is not a notebook: expected an object with a list of cells, got '\{\}'"),
        (SOUND.replace("[]", "{}"), "is not a notebook: expected an object with a list of cells"),
        (of_format(3, 0), "has notebook format 3.0, but the book needs 4.5: open it in JupyterLab"),
        (of_format(4, 6), "has notebook format 4.6, but the book needs 4.5"),
        (of_format(4, '"x"'), "has notebook format 4.x, but the book needs 4.5"),
        ('{"cells": []}', "has notebook format None.None, but the book needs 4.5"),
        (SOUND.replace("[]", "[{}]"), "is not a notebook of format 4: .*"),
        (SOUND.replace("[]", "[1]"), "is not a notebook of format 4: .*"),
        (SOUND.replace("[]", '[{"cell_type": "poem", "metadata": {}, "source": ""}]'), ".* 4: .*poem"),
        ("ü".encode("latin-1"), "is damaged: expected UTF-8 text"),
    ],
    ids=map(str, range(15)),
)
def test_what_is_no_notebook_is_refused_by_name(path, text, said):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(SiteError, match=rf"(?s)notebook\.ipynb {said}") as refused:
        notebook_file.read(path)
    assert len(str(refused.value).splitlines()) == 1


def test_a_path_without_a_notebook_is_refused(tmp_path):
    (tmp_path / "folder.ipynb").mkdir()
    (tmp_path / "page.md").touch()
    for name in ("folder.ipynb", "page.md", "missing.ipynb"):
        with pytest.raises(SiteError, match=rf"expected the path of a notebook \(\.ipynb\), got .*{name}"):
            notebook_file.read(tmp_path / name)


@pytest.mark.parametrize("minor", range(6))
def test_every_minor_format_is_read(path, minor):
    path.write_text(of_format(4, minor))
    assert notebook_file.read(path).cells == []


# Running


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("1 / 0", "code cell 2 failed:\n.*ZeroDivisionError: division by zero"),
        ("input()", "code cell 2 failed:\n.*StdinNotImplementedError"),
        (
            "import os\nos._exit(1)",
            "code cell 2 killed its kernel: either it ended the process, or",
        ),
    ],
)
def test_a_cell_that_fails_is_named(path, write_notebook, cell, said):
    write_notebook(path, "x = 1", cell, "print('never run')")
    with pytest.raises(SiteError, match=rf"(?s)^\S*notebook\.ipynb: {said}") as failure:
        notebook_file.run(notebook_file.read(path), path)
    assert "\x1b" not in str(failure.value)


def test_a_cell_that_does_not_end_is_named(path, write_notebook, monkeypatch):
    monkeypatch.setattr(notebook_file, "TIMEOUT", 1)
    write_notebook(path, "while True: pass")
    with pytest.raises(SiteError, match=r"notebook\.ipynb: code cell 1 did not finish within 1 seconds"):
        notebook_file.run(notebook_file.read(path), path)


@pytest.mark.parametrize("name", ["no-such-kernel", "dying"])
def test_a_kernel_that_does_not_start_is_told(path, write_notebook, monkeypatch, tmp_path, name):
    kernel = tmp_path / "jupyter/kernels/dying"
    kernel.mkdir(parents=True)
    (kernel / "kernel.json").write_text('{"argv": ["python", "-c", ""], "display_name": "", "language": ""}')
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    monkeypatch.setitem(notebook_file.METADATA["kernelspec"], "name", name)
    write_notebook(path, "1")
    with pytest.raises(SiteError, match=r"notebook\.ipynb cannot be run, because no kernel starts \("):
        notebook_file.run(notebook_file.read(path), path)


RUN = """
import sys
from pathlib import Path
from labs.site import notebook_file

notebook_file.METADATA["kernelspec"]["name"] = "no-such-kernel"
path = Path(sys.argv[1])
try:
    notebook_file.run(notebook_file.read(path), path)
except notebook_file.SiteError as error:
    print(error)
"""


def test_nothing_follows_what_is_told(path, write_notebook):
    write_notebook(path, "1")
    run = subprocess.run([sys.executable, "-c", RUN, str(path)], capture_output=True, text=True, check=True)
    assert "no kernel starts" in run.stdout
    assert run.stderr == ""


def test_what_a_cell_wrote_on_stderr_is_quoted(path, write_notebook):
    write_notebook(path, "1", "import sys\nprint('careful', file=sys.stderr)\nprint('fine')")
    notebook = notebook_file.read(path)
    notebook_file.run(notebook, path)
    assert notebook_file.stderr(notebook) == ["code cell 2: expected nothing on stderr, got: careful"]


def test_the_state_of_widgets_is_kept_if_asked_for(path, write_notebook):
    write_notebook(path, "import ipywidgets\nipywidgets.IntSlider()")
    notebook = notebook_file.read(path)
    notebook_file.run(notebook, path, store_widget_state=True)
    assert "widgets" in notebook.metadata


# What is stored


def stored(*outputs, count=1, **metadata):
    """A notebook as `refresh` writes it, with one code cell."""
    cell = nbformat.v4.new_code_cell("1", execution_count=count, outputs=list(outputs), metadata=metadata)
    return nbformat.v4.new_notebook(cells=[cell], metadata=notebook_file.METADATA)


def text_output(text, metadata=None, **data):
    return nbformat.v4.new_output(
        "execute_result", {"text/plain": text, **data}, execution_count=1, metadata=metadata or {}
    )


#: What the author of a chapter may say about a cell.
WANTED = {
    "tags": ["remove-output"],
    "mystnb": {"image": {"alt": "a line"}},
}


def test_what_is_wanted_stays():
    notebook = stored(text_output("1"), **WANTED)
    assert notebook_file.stored_form(notebook) == notebook
    assert notebook_file.problems(notebook) == []


EXECUTION_INFO = {"status": "ok", "user": {"displayName": "Ada", "userId": "1"}, "timestamp": 1}

#: What editors, notebook servers and people leave in a cell's metadata, one at a time.
UNWANTED = {
    "executionInfo": EXECUTION_INFO,  # Colab
    "outputId": "f1a9c9f0",
    "colab": {"base_uri": "https://localhost:8080/"},
    "execution": {"iopub.status.busy": "2026-01-01"},  # JupyterLab, with recording of times
    "ExecuteTime": {"end_time": "2026-01-01"},
    "vscode": {"languageId": "python"},
    "pycharm": {"name": "#%%"},
    "papermill": {"duration": 1.0},
    "nbdime-conflicts": {"local_diff": []},
    "collapsed": False,
    "scrolled": True,
    "editable": True,
    "slideshow": {"slide_type": ""},
    "id": "abc",
    "name": "Ada",
    "tags": [],
    "mystnb": {},
    "jupyter": {"source_hidden": True},  # somebody folded it while reading
}


@pytest.mark.parametrize(
    ("tags", "folds"),
    [
        (["hide-input"], {"source_hidden": True}),
        (["remove-input"], {"source_hidden": True}),
        (["hide-output"], {"outputs_hidden": True}),
        (["hide-input", "hide-output"], {"source_hidden": True, "outputs_hidden": True}),
    ],
)
def test_what_the_page_folds_jupyterlab_folds(tags, folds):
    notebook = stored(text_output("1"), tags=tags)
    assert notebook_file.problems(notebook) == ["code cell 1: `refresh` would change metadata.jupyter"]
    assert notebook_file.stored_form(notebook).cells[0].metadata == {"tags": tags, "jupyter": folds}


@pytest.mark.parametrize("key", UNWANTED)
def test_other_metadata_of_a_cell_is_found_and_taken_out(key):
    cell = nbformat.v4.new_markdown_cell("text", metadata={key: UNWANTED[key]})
    notebook = stored(**{key: UNWANTED[key]})
    notebook.cells.append(cell)
    assert notebook_file.problems(notebook) == [
        f"code cell 1: `refresh` would change metadata.{key}",
        f"markdown cell 1: `refresh` would change metadata.{key}",
    ]
    assert [cell.metadata for cell in notebook_file.stored_form(notebook).cells] == [{}, {}]


@pytest.mark.parametrize("key", ["colab", "widgets", "vscode", "authors", "title", "toc", "jupytext"])
def test_other_metadata_of_a_notebook_is_found_and_taken_out(key):
    notebook = stored()
    notebook.metadata = nbformat.from_dict(notebook.metadata | {key: {"name": "Ada"}})
    notebook.metadata.language_info.version = "3.11.7"
    named = ", ".join(sorted([f"metadata.{key}", "metadata.language_info.version"]))
    assert notebook_file.problems(notebook) == [f"notebook: `refresh` would change {named}"]
    assert notebook_file.stored_form(notebook) == stored() | {"cells": notebook.cells}


def with_unknown_fields():
    """A notebook with a field that the format does not know wherever one can be."""
    notebook = stored(text_output("1"), nbformat.v4.new_output("stream", text="a"))
    for place in (notebook, notebook.cells[0], *notebook.cells[0].outputs):
        place["user"] = "Ada"
    return notebook


@pytest.mark.parametrize(
    ("notebook", "named"),
    [
        (
            stored(text_output("1", {"user": "Ada"})),
            "code cell 1: `refresh` would change outputs.0.metadata",
        ),
        (
            stored(text_output("1", **{notebook_file.WIDGET_VIEW: {}})),
            "outputs.0.data." + notebook_file.WIDGET_VIEW,
        ),
        (with_unknown_fields(), "code cell 1: `refresh` would change outputs.0.user, outputs.1.user, user"),
        (stored() | {"nbformat_minor": 4}, "notebook: `refresh` would change nbformat_minor"),
    ],
)
def test_whatever_else_a_notebook_can_carry_is_found_and_taken_out(notebook, named):
    notebook = nbformat.from_dict(notebook)
    assert named in "\n".join(notebook_file.problems(notebook))
    clean = notebook_file.stored_form(notebook)
    assert "Ada" not in json.dumps(clean)
    assert notebook_file.problems(clean) == []


def test_a_pasted_picture_is_not_thrown_away_but_keeps_the_notebook_from_being_stored():
    notebook = stored()
    picture = {"image.png": {"image/png": "aaaa"}}
    notebook.cells.append(nbformat.v4.new_markdown_cell("![](attachment:image.png)", attachments=picture))
    assert notebook_file.stored_form(notebook).cells[1].attachments == picture
    assert notebook_file.problems(notebook) == [
        "markdown cell 1: expected pictures to be files, got image.png"
    ]


@pytest.mark.parametrize(
    ("notebook", "said"),
    [
        (stored(count=None), "expected the execution count 1, got None"),
        (stored(count=2), "expected the execution count 1, got 2"),
        (
            stored(nbformat.v4.new_output("error", ename="E", evalue="v", traceback=[])),
            "expected no error, got E: v",
        ),
        (
            stored(nbformat.v4.new_output("stream", name="stderr", text="w")),
            "expected nothing on stderr, got: w",
        ),
        (stored(text_output("<A at 0x7fb73421e6d0>")), "got a memory address"),
    ],
)
def test_each_problem_of_an_output_is_found(notebook, said):
    (problem,) = notebook_file.problems(notebook)
    assert problem.startswith("code cell 1: ")
    assert said in problem


# Names of cells


def cells(*ids, source="same"):
    found = []
    for name in ids:
        found.append(nbformat.from_dict({"cell_type": "markdown", "metadata": {}, "source": source}))
        if name is not None:
            found[-1]["id"] = name
    return found


def test_ids_that_are_there_stay():
    assert notebook_file.cell_names(cells("a", "c01", "x" * 64)) == ["a", "c01", "x" * 64]


@pytest.mark.parametrize("bad", [None, "", "x" * 65, "with space", "ä", 7])
def test_a_cell_without_a_sound_id_gets_one_from_its_content(bad):
    (name,) = notebook_file.cell_names(cells(bad))
    assert name == "8df12ca7"
    assert notebook_file.cell_names(cells(bad, source="other")) != [name]


def test_ids_are_unique():
    names = notebook_file.cell_names(cells("a", "a", None, "8df12ca7"))
    assert names == ["a", "8df12ca7-2", "8df12ca7-3", "8df12ca7"]


@pytest.mark.parametrize("ids", [("a", "a"), ("a", None)])
def test_missing_and_repeated_ids_are_problems(ids):
    notebook = stored()
    notebook.cells += cells(*ids)
    assert notebook_file.problems(notebook) == ["markdown cell 2: `refresh` would change id"]
