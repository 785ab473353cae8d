"""One thing has one name: names that were given up do not come back."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

#: The names given up, as words of code, and the ones that are used instead.
GIVEN_UP = {
    "chances": "probs",
    "log_chances": "log_probs",
    "surprises": "nll",
    "brought": "attn_out",
    "wrote": "ffn_out",
    "dbrought": "dattn_out",
    "dwrote": "dffn_out",
    "LinearCache": "linear(x, weight) and linear_backward(dy, x, weight)",
    "check_params": "require_params",
    "check_arrays": "require_arrays",
    "check_checkpoint": "require_checkpoint",
    "check_state": "require_state",
    "block_diagram": "diagram",
    "tiny_search": "search",
    "turnPairs": "rotatePairs",
    "turned_q": "rotated_q",
    "shares": "weights",
    "as_drawn": "initial",
}


def code():
    """Every piece of code by where it stands: files of Python and JavaScript, cells of notebooks."""
    files = [
        *(ROOT / "labs").rglob("*.py"),
        *(ROOT / "labs").rglob("*.js"),
        *(ROOT / "benchmarks").glob("*.py"),
    ]
    for file in files:
        yield file.relative_to(ROOT).as_posix(), file.read_text("utf8")
    for file in (ROOT / "book").glob("*.ipynb"):
        for cell in json.loads(file.read_text("utf8"))["cells"]:
            if cell["cell_type"] == "code":
                yield f"book/{file.name}, cell {cell['id']}", "".join(cell["source"])


def identifiers(text):
    """The words of a piece of code, without comments, docstrings and sentences: those may use any word."""
    text = re.sub(r'"""(?:(?!""").)*"""|/\*(?:(?!\*/).)*\*/', " ", text, flags=re.DOTALL)
    text = re.sub(r"(?:#|//) .*", " ", text)
    text = re.sub(r'"[^"\n]*\w \w[^"\n]*"', " ", text)
    return set(re.findall(r"\w+", text))


def test_sentences_are_no_identifiers():
    text = 'wrote = 1  # what it brought\n"""Chances."""\nsay("nobody wrote it", "chances", dwrote)'
    assert identifiers(text) == {"wrote", "1", "say", "chances", "dwrote"}


@pytest.mark.parametrize("name", GIVEN_UP)
def test_a_name_that_was_given_up_is_not_used(name):
    places = [place for place, text in code() if name in identifiers(text)]
    assert places == [], f"say {GIVEN_UP[name]}"
