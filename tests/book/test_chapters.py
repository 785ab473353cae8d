"""What holds for every chapter of the second edition: its length, its times, its head."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from labs.site import length, notebook_file

BOOK = Path(__file__).parents[2] / "book"

#: Chapters that were rewritten, and what new ones are made from; the others follow.
CHAPTERS = ["02_attention", "template"]

#: What a core may have, and how much more a chapter has with every fold open.
WORDS, CODE_LINES, OPENED = 2700, 200, 1.6


@pytest.fixture(params=CHAPTERS)
def chapter(request):
    return nbformat.read(BOOK / f"{request.param}.ipynb", as_version=4)


def tags(cell):
    return cell.metadata.get("tags", [])


def test_length(chapter):
    measured = length.measure(chapter)
    core, whole = measured["core"], length.total(measured)
    assert core.words <= WORDS
    assert core.code_lines <= CODE_LINES
    assert whole.words <= OPENED * WORDS
    assert whole.code_lines <= OPENED * CODE_LINES


def test_stated_times(chapter):
    """To five minutes."""
    measured, stated = length.measure(chapter), length.stated_times(chapter)
    assert abs(stated.core - measured["core"].minutes) <= 2.5
    assert abs(stated.optional - measured["optional"].minutes) <= 2.5
    assert abs(stated.exercises - length.exercise_minutes(chapter)) <= 2.5


def test_the_part_that_it_opens_is_lit(chapter):
    assert "diagram_svg.here(" in chapter.cells[1].source
    assert tags(chapter.cells[1]) == ["remove-input"]


def test_what_answers_a_prediction_is_folded(chapter):
    """The output of the first code cell below the box, and what an exercise says to whoever has not tried."""
    cells = chapter.cells
    for box, cell in enumerate(cells):
        if "labs-predict" in cell.source:
            answer = next(after for after in cells[box:] if after.cell_type == "code")
            assert "hide-output" in tags(answer), cell.source
    for cell in cells:
        if re.search(r"^(print\()?check_\w+\(", cell.source, re.MULTILINE):
            assert "hide-output" in tags(cell), cell.source


@pytest.mark.parametrize(("stored", "code"), [("1", 0), ("2", 1)])
def test_nbval_compares_what_is_folded(tmp_path, stored, code):
    cell = new_code_cell("print(1)", execution_count=1, metadata={"tags": ["hide-output"]})
    cell.outputs = [new_output("stream", text=f"{stored}\n")]
    path = tmp_path / "folded.ipynb"
    nbformat.write(notebook_file.stored_form(new_notebook(cells=[cell])), path)
    nbval = ["--nbval", "--nbval-current-env", "-p", "no:cacheprovider", "-q", "-n", "0"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *nbval, path], capture_output=True, text=True, cwd=tmp_path
    )
    assert run.returncode == code, run.stdout


def test_pictures_define_nothing_that_later_cells_need(chapter):
    code = [cell.source for cell in chapter.cells if cell.cell_type == "code"]
    for number, source in enumerate(code):
        if "style.show(" in source or "labs.widgets" in source:
            names = {
                node.id
                for node in ast.walk(ast.parse(source))
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            }
            imported = {
                alias.asname or alias.name
                for node in ast.walk(ast.parse(source))
                if isinstance(node, ast.ImportFrom)
                for alias in node.names
            }
            for later in code[number + 1 :]:
                stored = {
                    n.id
                    for n in ast.walk(ast.parse(later))
                    if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
                }
                used = {
                    n.id
                    for n in ast.walk(ast.parse(later))
                    if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)
                }
                again = "style.show(" in later or "labs.widgets" in later
                assert again or not (used - stored) & (names | imported), later
