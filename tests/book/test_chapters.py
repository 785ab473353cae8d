"""What holds for every chapter: its head, its folds; and, once it is rewritten, its length and its times."""

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

CHAPTERS = sorted(path.stem for path in BOOK.glob("*.ipynb"))

#: Those of the second edition, and what new ones are made from.
REWRITTEN = ["02_attention", "template"]

#: Those that wait for it.
FIRST_EDITION = {
    "01_shapes",
    "03_causal_mask",
    "04_rms_norm",
    "05_rope",
    "06_swiglu",
    "07_forward",
    "08_backward_basics",
    "09_backward_attention",
    "10_backward_model",
}

#: What a core may have, and how much more a chapter has with every fold open.
WORDS, CODE_LINES, OPENED = 2700, 200, 1.6


def read(name):
    return nbformat.read(BOOK / f"{name}.ipynb", as_version=4)


@pytest.fixture(params=CHAPTERS)
def chapter(request):
    return read(request.param)


@pytest.fixture(params=REWRITTEN)
def rewritten(request):
    return read(request.param)


def tags(cell):
    return cell.metadata.get("tags", [])


def test_every_chapter_is_of_one_edition():
    assert sorted([*REWRITTEN, *FIRST_EDITION]) == CHAPTERS, "a new chapter belongs to REWRITTEN"


def test_length(rewritten):
    measured = length.measure(rewritten)
    core, whole = measured["core"], length.total(measured)
    assert core.words <= WORDS
    assert core.code_lines <= CODE_LINES
    assert whole.words <= OPENED * WORDS
    assert whole.code_lines <= OPENED * CODE_LINES


def test_stated_times(rewritten):
    """To five minutes."""
    measured, stated = length.measure(rewritten), length.stated_times(rewritten)
    needed = length.Times(
        core=measured["core"].minutes,
        optional=measured["optional"].minutes,
        exercises=length.exercise_minutes(rewritten),
    )
    for name, says, takes in zip(stated._fields, stated, needed, strict=True):
        assert abs(says - takes) <= 2.5, f"{name}: the box says {says} minutes, it takes {takes:.1f}"


def test_the_part_that_it_opens_is_lit(chapter):
    assert "diagram_svg.here(" in chapter.cells[1].source
    assert tags(chapter.cells[1]) == ["remove-input"]


def test_what_answers_a_prediction_is_folded(chapter):
    """What the first cell below the box prints, and what an exercise says to whoever has not tried."""
    cells = chapter.cells
    for box, cell in enumerate(cells):
        if "labs-predict" in cell.source:
            answer = next(after for after in cells[box:] if after.get("outputs"))
            is_widget = re.search(
                r"^(TensorGrid|AttentionHeatmap|TraceExplorer)\(", answer.source, re.MULTILINE
            )
            assert is_widget or "hide-output" in tags(answer), cell.source
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


def test_pictures_define_nothing_that_later_cells_need(rewritten):
    code = [cell.source for cell in rewritten.cells if cell.cell_type == "code"]
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
