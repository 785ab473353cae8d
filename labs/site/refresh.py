"""Run notebooks and store their outputs, exactly as a clean restart-and-run-all gives them.

A stored notebook holds no trace of the machine or the moment: two runs of the same code write the same bytes.
"""

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

from labs.figures import notation
from labs.site.build import ROOT, without_colours

#: The only metadata that a stored notebook has.
METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}

#: Names a live object of a kernel that is gone; a reader without a kernel sees the text beside it.
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"

#: The text between `<!-- generated: NAME -->` and `<!-- end -->` in a page, by NAME.
GENERATED: dict[str, Callable[[], str]] = {
    "sizes": notation.sizes_markdown,
    "tensors": notation.tensors_markdown,
}

SECTION = re.compile(r"(<!-- generated: (\S+) -->\n).*?(<!-- end -->)", re.S)


class RefreshError(RuntimeError):
    """A notebook could not be run; the message names it, the cell and the error."""


def notebooks(root: Path = ROOT) -> list[Path]:
    """Every notebook of the book."""
    return sorted((root / "book").glob("*.ipynb"))


def refresh(paths: list[Path] | None = None, root: Path = ROOT) -> None:
    """Run these notebooks, or all, and rewrite the generated sections of the pages.

    A notebook that fails keeps its file; the others are still run.

    Raises: RefreshError at the end if any failed.
    """
    failures = []
    for path in notebooks(root) if paths is None else paths:
        try:
            print(f"{path.name}: {'changed' if refresh_notebook(path) else 'unchanged'}", flush=True)
        except RefreshError as error:
            print(f"{path.name}: FAILED", flush=True)
            failures.append(str(error))
    for page in sorted((root / "book").glob("*.md")):
        if _write_if_changed(page, with_generated_sections(page.read_text("utf8"))):
            print(f"{page.name}: changed", flush=True)
    if failures:
        raise RefreshError("\n\n".join(failures))


def refresh_notebook(path: Path) -> bool:
    """Run one notebook in its own folder and store its outputs; returns whether the file changed.

    Raises: RefreshError if a cell fails or the result is not fit to be stored; the file is then as it was.
    """
    notebook, started = _read(path), [0]
    client = NotebookClient(
        notebook,
        kernel_name=METADATA["kernelspec"]["name"],
        resources={"metadata": {"path": str(path.parent)}},
        timeout=600,
        record_timing=False,
        store_widget_state=False,
        on_cell_execute=lambda cell, cell_index: started.append(cell_index),  # noqa: ARG005  (named by nbclient)
        coalesce_streams=True,  # how a kernel cuts its output into messages depends on the moment
    )
    try:
        client.execute(stderr=subprocess.DEVNULL)  # of the kernel itself; that of a cell is an output
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
        report = without_colours(str(error)).strip()
        number = sum(cell.cell_type == "code" for cell in notebook.cells[: started[-1] + 1])
        raise RefreshError(f"{path}: code cell {number} failed:\n{report}") from error
    clean(notebook)
    if found := problems(notebook):
        raise RefreshError(f"{path} is not stored:\n" + "\n".join(found))
    return _write_if_changed(path, nbformat.writes(notebook) + "\n")


def _read(path: Path):
    """Read a notebook; raise RefreshError for a path that is none."""
    if path.suffix != ".ipynb" or not path.is_file():
        raise RefreshError(
            f"expected the path of a notebook (.ipynb), got {path}: "
            "the generated sections of pages are rewritten every time, without being named"
        )
    try:
        return nbformat.read(path, as_version=4)
    except nbformat.reader.NotJSONError as error:
        raise RefreshError(f"{path} is not a notebook: {str(error)[:80]}") from error


def clean(notebook) -> None:
    """Take out of an executed notebook what differs from run to run."""
    notebook.metadata = nbformat.from_dict(METADATA)
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            output.get("data", {}).pop(WIDGET_VIEW, None)
            output.get("metadata", {}).pop(WIDGET_VIEW, None)


def problems(notebook) -> list[str]:
    """What keeps a notebook from being stored as it is, one line each; empty if nothing does."""
    found = []
    if notebook.metadata != METADATA:
        found.append(f"metadata: expected {METADATA}, got {dict(notebook.metadata)}")
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for number, cell in enumerate(code, start=1):
        name = f"code cell {number}"
        if cell.execution_count != number:
            found.append(f"{name}: expected the execution count {number}, got {cell.execution_count}")
        if "execution" in cell.metadata:
            found.append(f"{name}: expected no record of when it ran, got {dict(cell.metadata.execution)}")
        for output in cell.outputs:
            if output.output_type == "error":
                found.append(f"{name}: expected no error, got {output.ename}: {output.evalue}")
            if output.get("name") == "stderr":
                found.append(f"{name}: expected nothing on stderr, got: {output.text.strip()}")
            if re.search(r"\b0x[0-9a-f]{6,}\b", json.dumps(output)):
                found.append(f"{name}: expected the same output in every run, got a memory address")
            if WIDGET_VIEW in output.get("data", {}):
                found.append(f"{name}: expected the widget's text, got also a reference to a kernel's object")
    return found


def with_generated_sections(page: str) -> str:
    """The text of a page with its generated sections written anew.

    Raises: RefreshError if a section's name is not one of GENERATED.
    """

    def section(found):
        start, name, end = found.groups()
        if name not in GENERATED:
            raise RefreshError(f"expected a generated section named one of {sorted(GENERATED)}, got {name!r}")
        return f"{start}{GENERATED[name]().strip()}\n{end}"

    return SECTION.sub(section, page)


def _write_if_changed(path: Path, text: str) -> bool:
    """Replace a file in one step, so that nobody ever reads half of it; leave it alone if it is the same."""
    if path.read_text("utf8") == text:
        return False
    new = path.with_name(f".{path.name}.new")
    new.write_text(text, "utf8", newline="\n")
    os.replace(new, path)
    return True
