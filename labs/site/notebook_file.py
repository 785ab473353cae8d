"""A notebook as a file: how it is read and run, and what it may hold when it is stored.

A stored notebook has what is listed here and nothing else, so it holds no trace of a person, a machine or a
moment in time.
"""

import atexit
import copy
import hashlib
import itertools
import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import nbformat
from jupyter_client.kernelspec import NoSuchKernel
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

from labs.site.environment import SiteError, read_text

#: The only metadata that a stored notebook has.
METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}

#: The only metadata that a stored cell keeps.
CELL_METADATA = ("tags", "mystnb")

#: What JupyterLab folds a cell by, and nothing else: the tags, by which the page folds it, say both.
FOLDS = {"hide-input": "source_hidden", "remove-input": "source_hidden", "hide-output": "outputs_hidden"}

#: The fields of a stored output, by its type; its "metadata" is empty.
OUTPUTS = {
    "stream": ("name", "text"),
    "display_data": ("data", "metadata"),
    "execute_result": ("data", "execution_count", "metadata"),
    "error": ("ename", "evalue", "traceback"),
}

#: Refers to an object in a kernel that is gone; a reader without a kernel sees the text beside it.
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"

#: Seconds that one cell may take.
TIMEOUT = 120


def read(path: Path):
    """Read a notebook as it is, ready to be run.

    Raises: SiteError, which names the file and says what is wrong with it.
    """
    if path.suffix != ".ipynb" or not path.is_file():
        raise SiteError(f"expected the path of a notebook (.ipynb), got {path}")
    text = read_text(path)
    if marks := re.search(r"^<{7} ", text, re.MULTILINE):
        line = text.count("\n", 0, marks.start()) + 1
        raise SiteError(
            f"{path} has an unresolved merge conflict on line {line}: take one side with "
            f"`git checkout --ours` or `--theirs`, then refresh the notebook"
        )
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise SiteError(
            f"{path} is damaged or not a notebook at all ({error}): repair it, or use `git restore`"
        ) from error
    if not isinstance(found, dict) or not isinstance(found.get("cells"), list):
        raise SiteError(
            f"{path} is not a notebook: expected an object with a list of cells, got {text[:40]!r}"
        )
    version = (found.get("nbformat"), found.get("nbformat_minor"))
    if version not in [(4, minor) for minor in range(6)]:
        raise SiteError(
            f"{path} has notebook format {version[0]}.{version[1]}, but the book needs 4.5: "
            "open it in JupyterLab (`make lab`) and save it"
        )
    try:
        notebook = nbformat.reader.reads(text)
        nbformat.validate(stored_form(notebook))
    except (nbformat.ValidationError, AttributeError, KeyError, TypeError) as error:
        reason = str(error).split("\n")[0] or type(error).__name__
        raise SiteError(f"{path} is not a notebook of format 4: {reason}") from error
    return notebook


def run(notebook, path: Path, *, store_widget_state: bool = False) -> None:
    """Execute a notebook in the folder of `path`, as a clean restart-and-run-all does.

    Args:
        notebook: as `read` returns it; it gets the outputs, and an id for each cell.
        path: the path of its file.
        store_widget_state: whether the notebook's metadata gets the state of its widgets, as a page needs it.

    Raises: SiteError, which names the file, the cell and what happened.
    """
    for cell, name in zip(notebook.cells, cell_names(notebook.cells), strict=True):
        cell["id"] = name
    notebook.nbformat_minor = 5
    started = []  # the cells that were started, by index
    client = NotebookClient(
        notebook,
        kernel_name=METADATA["kernelspec"]["name"],
        resources={"metadata": {"path": str(path.parent)}},
        timeout=TIMEOUT,
        record_timing=False,
        store_widget_state=store_widget_state,
        on_cell_execute=lambda cell, cell_index: started.append(cell_index),  # noqa: ARG005  (named by nbclient)
        coalesce_streams=True,  # how a kernel cuts its output into messages depends on the moment
    )

    try:
        client.execute(stderr=subprocess.DEVNULL)  # of the kernel itself; that of a cell is an output
    except Exception as error:
        if vars(client).get("_async_cleanup_kernel_future"):
            # nbclient catches Ctrl-C, shuts down the kernel and then fails in one of many ways
            raise KeyboardInterrupt from error
        if client.km is None:  # otherwise nbclient's clean-up would end this process with a traceback
            atexit.unregister(client._cleanup_kernel)
        place = f"{path}: {places(notebook)[started[-1]]}" if started else str(path)
        raise SiteError(f"{place} {_what_happened(error)}") from error


def _what_happened(error: Exception) -> str:
    """The end of a sentence that begins by naming a cell."""
    match error:
        case CellExecutionError():
            return f"failed:\n{without_colours(str(error)).strip()}"
        case CellTimeoutError():
            return f"did not finish within {TIMEOUT} seconds"
        case DeadKernelError():
            return "killed its kernel: either it ended the process, or the machine ran out of memory"
        case NoSuchKernel() | RuntimeError():
            return f"cannot be run, because no kernel starts ({error}): try `python -m ipykernel_launcher`"
    return f"cannot be run: {error!r}"


def without_colours(text: str) -> str:
    """What a program wrote for a terminal, as plain text."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


# What is stored


def stored_form(notebook) -> dict:
    """A notebook without everything that must not be stored; the notebook itself stays as it is."""
    names = cell_names(notebook["cells"])
    return nbformat.from_dict(
        {
            "cells": [stored_cell(*named) for named in zip(notebook["cells"], names, strict=True)],
            "metadata": METADATA,
            "nbformat": 4,
            "nbformat_minor": 5,
        }
    )


def stored_cell(cell, name: str) -> dict:
    """One cell of a stored notebook."""
    metadata = {key: cell["metadata"].get(key) for key in CELL_METADATA}
    metadata["jupyter"] = {key: True for tag, key in FOLDS.items() if tag in (metadata["tags"] or ())}
    stored = {
        "cell_type": cell["cell_type"],
        "id": name,
        "metadata": {key: value for key, value in metadata.items() if value},
        "source": cell["source"],
    }
    if cell["cell_type"] == "code":
        stored["execution_count"] = cell.get("execution_count")
        stored["outputs"] = [stored_output(output) for output in cell["outputs"]]
    elif cell.get("attachments"):
        stored["attachments"] = cell["attachments"]  # somebody's picture: `problems` reports it
    return copy.deepcopy(stored)


def stored_output(output) -> dict:
    """One output of a stored cell."""
    stored = {key: output[key] for key in ("output_type", *OUTPUTS[output["output_type"]])}
    if "metadata" in stored:
        stored["metadata"] = {}
        stored["data"] = {kind: data for kind, data in output["data"].items() if kind != WIDGET_VIEW}
    return stored


def cell_names(cells) -> list[str]:
    """The id of each cell: its own if it has one, otherwise one made from its contents.

    So everyone who stores the same notebook gives its cells the same ids.
    """
    names = [cell.get("id") for cell in cells]
    for i, name in enumerate(names):
        if not (isinstance(name, str) and re.fullmatch(r"[\w-]{1,64}", name, re.ASCII)) or name in names[:i]:
            names[i] = None
    for i, cell in enumerate(cells):
        if names[i] is None:
            stem = hashlib.sha256(f"{cell['cell_type']}\n{cell['source']}".encode()).hexdigest()[:8]
            candidates = itertools.chain([stem], (f"{stem}-{number}" for number in itertools.count(2)))
            names[i] = next(candidate for candidate in candidates if candidate not in names)
    return names


# What keeps a notebook from being stored


def problems(notebook) -> list[str]:
    """What keeps a notebook from being stored as it is, one line each; empty if nothing does."""
    stored = stored_form(notebook)
    pairs = [
        ("notebook", notebook, stored),
        *zip(places(notebook), notebook.cells, stored.cells, strict=True),
    ]
    found = [
        f"{place}: `refresh` would change {', '.join(changed)}"
        for place, one, other in pairs
        if (changed := [name for name in differences(one, other) if not name.startswith("cells")])
    ]
    found += stderr(stored)
    for place, cell in zip(places(stored), stored.cells, strict=True):
        found += [
            f"{place}: expected pictures to be files, got {name}" for name in cell.get("attachments", {})
        ]
        for output in cell.get("outputs", []):
            if output.output_type == "error":
                found.append(f"{place}: expected no error, got {output.ename}: {output.evalue}")
            if re.search(r"\b0x[0-9a-f]{6,}\b", json.dumps(output)):
                found.append(f"{place}: expected the same output in every run, got a memory address")
    counts = [cell.execution_count for cell in stored.cells if cell.cell_type == "code"]
    for number, count in enumerate(counts, start=1):
        if count != number:
            found.append(f"code cell {number}: expected the execution count {number}, got {count}")
    return found


def stderr(notebook) -> list[str]:
    """What the cells of a notebook wrote to stderr, one line for each cell that did."""
    return [
        f"{place}: expected nothing on stderr, got: {output.text.strip()}"
        for place, cell in zip(places(notebook), notebook.cells, strict=True)
        for output in cell.get("outputs", [])
        if output.get("name") == "stderr"
    ]


def places(notebook) -> list[str]:
    """What messages call the cells: their type and a number, counted from one as in JupyterLab's brackets."""
    counts = Counter()
    found = []
    for cell in notebook.cells:
        counts[cell.cell_type] += 1
        found.append(f"{cell.cell_type} cell {counts[cell.cell_type]}")
    return found


def differences(one, other, name: str = "") -> Iterator[str]:
    """The dotted names of what differs between two structures of dictionaries and lists."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(one.keys() | other.keys()):
            yield from differences(one.get(key), other.get(key), f"{name}.{key}".lstrip("."))
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, (mine, its) in enumerate(zip(one, other, strict=True)):
            yield from differences(mine, its, f"{name}.{number}")
    elif one != other:
        yield name
