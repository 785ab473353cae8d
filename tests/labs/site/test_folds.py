"""Folds of cells say what lies behind them."""

import json
import re

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

CONF = """
extensions = ["myst_nb", "labs.site.folds"]
nb_execution_mode = "off"
"""


@pytest.mark.parametrize(
    ("tags", "says"),
    [
        (["hide-input"], ["Show the code", "Hide the code"]),
        (["hide-output"], ["Show what it prints", "Hide what it prints"]),
        (
            ["hide-input", "hide-output"],
            ["Show the source", "Hide the source", "Show the output", "Hide the output"],
        ),
        ([], []),
    ],
)
def test_prompts(build_pages, tags, says):
    cell = new_code_cell("print(1)", outputs=[new_output("stream", text="1")], metadata={"tags": tags})
    cell["id"] = "a"
    notebook = json.loads(
        nbformat.writes(new_notebook(cells=[cell], metadata={"language_info": {"name": "python"}}))
    )
    pages, warnings = build_pages({"index.ipynb": json.dumps(notebook)}, CONF)
    html = (pages / "index.html").read_text("utf8")
    assert re.findall('admonition-title">([^<]*)', html) == says
    assert warnings == []
