"""Notebooks are stored as a clean run gives them, byte for byte the same each time, or not at all."""

import json

import nbformat
import pytest

from labs.site import refresh
from labs.site.refresh import RefreshError


@pytest.fixture
def notebook(tmp_path):
    return tmp_path / "book/notebook.ipynb"


@pytest.fixture
def write(notebook, write_notebook):
    """A function that writes the notebook with these code cells."""
    notebook.parent.mkdir()
    return lambda *cells: write_notebook(notebook, *cells)


def cells_of(path):
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


def test_outputs_are_stored_and_stay_the_same(notebook, write):
    write("x = 20", "print(x)\nprint(x)", "x + 1")
    before = nbformat.read(notebook, as_version=4)
    assert refresh.refresh_notebook(notebook)
    stored = nbformat.read(notebook, as_version=4)
    assert [cell.id for cell in stored.cells] == [cell.id for cell in before.cells]
    assert [cell.execution_count for cell in cells_of(notebook)] == [1, 2, 3]
    assert cells_of(notebook)[1].outputs[0].text == "20\n20\n"
    assert cells_of(notebook)[2].outputs[0].data == {"text/plain": "21"}
    assert refresh.problems(stored) == []
    first = notebook.read_bytes()
    assert not refresh.refresh_notebook(notebook)
    assert notebook.read_bytes() == first


def test_notebook_runs_in_its_own_folder(notebook, write, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    write("from pathlib import Path", "print(Path.cwd().name)")
    refresh.refresh_notebook(notebook)
    assert cells_of(notebook)[1].outputs[0].text == "book\n"


def test_only_the_allowed_metadata_is_stored(notebook, write):
    write("1")
    text = json.loads(notebook.read_text("utf8"))
    text["metadata"]["widgets"] = {"state": {}}
    text["metadata"]["language_info"] = {"name": "python", "version": "3.0"}
    text["cells"][1]["metadata"]["tags"] = ["hide-input"]
    notebook.write_text(json.dumps(text), "utf8")
    refresh.refresh_notebook(notebook)
    stored = nbformat.read(notebook, as_version=4)
    assert stored.metadata == refresh.METADATA
    assert stored.cells[1].metadata == {"tags": ["hide-input"]}  # the author's own stays


def test_of_a_widget_its_text_is_stored(notebook, write):
    write("import ipywidgets", "ipywidgets.IntSlider()")
    refresh.refresh_notebook(notebook)
    (output,) = cells_of(notebook)[1].outputs
    assert list(output.data) == ["text/plain"]
    assert output.data["text/plain"].startswith("IntSlider(")


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("1 / 0", "code cell 2 failed:\n.*ZeroDivisionError: division by zero"),
        ("import os\nos._exit(1)", "code cell 2 failed:\n.*[Kk]ernel died"),
        (
            "import sys\nprint('careful', file=sys.stderr)",
            "code cell 2: expected nothing on stderr, got: careful",
        ),
        ("object()", "code cell 2: expected the same output in every run, got a memory address"),
    ],
)
def test_a_notebook_that_fails_keeps_its_file(notebook, write, cell, said):
    write("x = 1", cell, "print('never stored')")
    before = notebook.read_bytes()
    with pytest.raises(RefreshError, match=f"(?s)notebook.ipynb.*{said}"):
        refresh.refresh_notebook(notebook)
    assert notebook.read_bytes() == before
    assert [path.name for path in notebook.parent.iterdir()] == ["notebook.ipynb"]


def test_the_others_are_refreshed_when_one_fails(notebook, write, write_notebook, tmp_path, capsys):
    write("1 / 0")
    write_notebook(notebook.with_name("other.ipynb"), "print('hello')")
    with pytest.raises(RefreshError, match=r"notebook\.ipynb: code cell 1 failed"):
        refresh.refresh(root=tmp_path)
    assert capsys.readouterr().out == "notebook.ipynb: FAILED\nother.ipynb: changed\n"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("page.md", "# A page", r"expected the path of a notebook \(\.ipynb\), got .*page\.md"),
        ("missing.ipynb", None, r"expected the path of a notebook \(\.ipynb\), got .*missing\.ipynb"),
        ("broken.ipynb", "# A page", r"broken\.ipynb is not a notebook"),
    ],
)
def test_what_is_no_notebook_is_refused(tmp_path, name, text, said):
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    with pytest.raises(RefreshError, match=said):
        refresh.refresh([path], tmp_path)


def test_named_notebooks_only(notebook, write, write_notebook, tmp_path):
    write("1 / 0")
    other = notebook.with_name("other.ipynb")
    write_notebook(other, "print('hello')")
    refresh.refresh([other], root=tmp_path)
    assert cells_of(other)[0].execution_count == 1


# What must not be stored


def stored(*outputs, count=1, **metadata):
    """A notebook as `refresh` writes it, with one code cell."""
    cell = nbformat.v4.new_code_cell("1", execution_count=count, outputs=list(outputs), metadata=metadata)
    return nbformat.v4.new_notebook(cells=[cell], metadata=refresh.METADATA)


def text_output(text, **data):
    return nbformat.v4.new_output("execute_result", {"text/plain": text, **data}, execution_count=1)


def test_a_clean_notebook_has_no_problems():
    assert refresh.problems(stored(text_output("1"), tags=["remove-input"])) == []


@pytest.mark.parametrize(
    ("notebook", "said"),
    [
        (stored(count=None), "expected the execution count 1, got None"),
        (stored(count=2), "expected the execution count 1, got 2"),
        (stored(execution={"iopub.status.busy": "2026-01-01"}), "expected no record of when it ran"),
        (
            stored(nbformat.v4.new_output("error", ename="E", evalue="v", traceback=[])),
            "expected no error, got E: v",
        ),
        (
            stored(nbformat.v4.new_output("stream", name="stderr", text="w")),
            "expected nothing on stderr, got: w",
        ),
        (stored(text_output("<A at 0x7fb73421e6d0>")), "got a memory address"),
        (
            stored(text_output("W", **{refresh.WIDGET_VIEW: {"model_id": "1"}})),
            "reference to a kernel's object",
        ),
    ],
)
def test_each_problem_is_found(notebook, said):
    (problem,) = refresh.problems(notebook)
    assert problem.startswith("code cell 1: ")
    assert said in problem


def test_other_metadata_is_found():
    notebook = stored()
    notebook.metadata["widgets"] = {}
    (problem,) = refresh.problems(notebook)
    assert problem.startswith("metadata: expected")


# Generated sections


PAGE = "before\n<!-- generated: names -->\nold\n<!-- end -->\nafter\n"


def test_sections_are_written_between_their_marks(monkeypatch):
    monkeypatch.setattr(refresh, "GENERATED", {"names": lambda: "| new |\n"})
    once = refresh.with_generated_sections(PAGE)
    assert once == PAGE.replace("old", "| new |")
    assert refresh.with_generated_sections(once) == once
    assert refresh.with_generated_sections(PAGE.replace("old\n", "")) == once


def test_an_unknown_section_is_refused():
    page = PAGE.replace("names", "nonsense")
    with pytest.raises(
        RefreshError, match=r"expected a generated section named one of \[.*\], got 'nonsense'"
    ):
        refresh.with_generated_sections(page)


def test_refresh_writes_the_sections_of_pages(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(refresh, "GENERATED", {"names": lambda: "new"})
    (tmp_path / "book").mkdir()
    (tmp_path / "book/page.md").write_text(PAGE, "utf8")
    refresh.refresh(root=tmp_path)
    refresh.refresh(root=tmp_path)
    assert (tmp_path / "book/page.md").read_text("utf8") == PAGE.replace("old", "new")
    assert capsys.readouterr().out == "page.md: changed\n"
