"""Notebooks are stored as a clean run gives them, byte for byte the same each time, or not at all."""

import json

import nbformat
import pytest

from labs.site import notebook_file, refresh
from labs.site.environment import SiteError


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
    assert notebook_file.problems(stored) == []
    first = notebook.read_bytes()
    assert not refresh.refresh_notebook(notebook)
    assert notebook.read_bytes() == first


def test_notebook_runs_in_its_own_folder(notebook, write, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    write("from pathlib import Path", "print(Path.cwd().name)")
    refresh.refresh_notebook(notebook)
    assert cells_of(notebook)[1].outputs[0].text == "book\n"


def test_what_must_not_be_stored_goes_and_what_the_author_says_stays(notebook, write):
    write("1")
    text = json.loads(notebook.read_text("utf8"))
    text["metadata"] |= {"widgets": {}, "colab": {}, "language_info": {"name": "python", "version": "3.0"}}
    text["cells"][1]["metadata"] = {
        "tags": ["hide-input"],
        "execution": {"iopub.status.busy": "2026-01-01"},  # JupyterLab, with recording of times
        "executionInfo": {"user": {"displayName": "Ada"}},  # Colab
    }
    notebook.write_text(json.dumps(text), "utf8")
    assert refresh.refresh_notebook(notebook)
    stored = nbformat.read(notebook, as_version=4)
    assert stored.metadata == notebook_file.METADATA
    assert stored.cells[1].metadata == {"tags": ["hide-input"], "jupyter": {"source_hidden": True}}


def test_ids_do_not_depend_on_who_refreshes(notebook, write):
    write("1", "2")
    text = json.loads(notebook.read_text("utf8"))
    del text["cells"][0]["id"], text["cells"][2]["id"]

    def names(minor):
        notebook.write_text(json.dumps(text | {"nbformat_minor": minor}), "utf8")
        refresh.refresh_notebook(notebook)
        return [cell.id for cell in nbformat.read(notebook, as_version=4).cells]

    assert names(4) == names(5) == ["3b9e26d9", "cell-1", "8ebe5900"]


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
        ("import os\nos._exit(1)", "code cell 2 killed its kernel"),
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
    with pytest.raises(SiteError, match=f"(?s)notebook.ipynb.*{said}"):
        refresh.refresh_notebook(notebook)
    assert notebook.read_bytes() == before
    assert [path.name for path in notebook.parent.iterdir()] == ["notebook.ipynb"]


def test_the_others_are_refreshed_when_one_fails(notebook, write, write_notebook, tmp_path, capsys):
    write("1 / 0")
    write_notebook(notebook.with_name("other.ipynb"), "print('hello')")
    with pytest.raises(SiteError, match=r"notebook\.ipynb: code cell 1 failed"):
        refresh.refresh(root=tmp_path)
    assert capsys.readouterr().out == "notebook.ipynb: FAILED\nother.ipynb: changed\n"


def test_what_is_no_notebook_is_named_and_the_others_are_refreshed(tmp_path, write, notebook, capsys):
    write("1")
    broken = tmp_path / "broken.ipynb"
    broken.write_text("<<<<<<< HEAD")
    with pytest.raises(SiteError, match=r"broken\.ipynb has an unresolved merge conflict on line 1"):
        refresh.refresh([broken, notebook], tmp_path)
    assert capsys.readouterr().out == "broken.ipynb: FAILED\nnotebook.ipynb: changed\n"


def test_named_notebooks_only(notebook, write, write_notebook, tmp_path):
    write("1 / 0")
    other = notebook.with_name("other.ipynb")
    write_notebook(other, "print('hello')")
    refresh.refresh([other], root=tmp_path)
    assert cells_of(other)[0].execution_count == 1


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
    with pytest.raises(SiteError, match=r"expected a generated section named one of \[.*\], got 'nonsense'"):
        refresh.with_generated_sections(page)


def test_a_section_that_fails_is_named_beside_a_notebook_that_fails(tmp_path, write, capsys):
    write("1 / 0")
    (tmp_path / "book/page.md").write_text(PAGE, "utf8")
    with pytest.raises(SiteError, match=r"(?s)notebook\.ipynb: code cell 1 failed.*page\.md: expected a gen"):
        refresh.refresh(root=tmp_path)
    assert capsys.readouterr().out == "notebook.ipynb: FAILED\npage.md: FAILED\n"


def test_a_full_disk_leaves_the_file_and_nothing_beside_it(notebook, write, monkeypatch):
    write("1")
    before = notebook.read_bytes()

    def full(*_):
        raise OSError("no space left")

    monkeypatch.setattr(refresh.os, "replace", full)
    with pytest.raises(OSError, match="no space left"):
        refresh.refresh_notebook(notebook)
    assert notebook.read_bytes() == before
    assert [path.name for path in notebook.parent.iterdir()] == ["notebook.ipynb"]


def test_an_environment_of_another_folder_is_refused(tmp_path, monkeypatch):
    def refuse():
        raise SiteError("another folder's")

    monkeypatch.setattr(refresh, "require_own_code", refuse)
    with pytest.raises(SiteError, match="another folder's"):
        refresh.refresh(root=tmp_path)


def test_refresh_writes_the_sections_of_pages(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(refresh, "GENERATED", {"names": lambda: "new"})
    (tmp_path / "book").mkdir()
    (tmp_path / "book/page.md").write_text(PAGE, "utf8")
    refresh.refresh(root=tmp_path)
    refresh.refresh(root=tmp_path)
    assert (tmp_path / "book/page.md").read_text("utf8") == PAGE.replace("old", "new")
    assert capsys.readouterr().out == "page.md: changed\n"
