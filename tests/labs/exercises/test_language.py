"""Everything that exercises say comes through `say`, and so from one table for each language."""

import ast
import importlib
import inspect
import json
import pkgutil
import re
from pathlib import Path

import pytest

import labs.exercises
from labs.exercises import language
from labs.exercises.language import say

FOLDER = Path(language.__file__).parent
MODULES = sorted(path for path in FOLDER.glob("*.py") if path.stem not in ("__init__", "language"))


@pytest.fixture
def made_up(monkeypatch, tmp_path):
    """A function `made_up(table)` after which readers speak a language with this table."""
    monkeypatch.setattr(language, "TABLES", tmp_path)
    monkeypatch.setenv("LABS_LANGUAGE", "xx")
    return lambda table: (tmp_path / "xx.json").write_text(json.dumps(table), "utf8")


def test_english_is_what_stands_in_the_code():
    assert say("The gain is missing.") == "The gain is missing."
    assert say("T={T} and base={base:g}", T=3, base=1e4) == "T=3 and base=10000"
    assert say("a set {0}") == "a set {0}"  # without places, braces are braces


def test_another_language(made_up):
    made_up({"Row {row} of {count}.": "{count} rows, this is {row}."})
    assert say("Row {row} of {count}.", row=1, count=2) == "2 rows, this is 1."
    with pytest.raises(ValueError, match=r"xx\.json must translate 'Right\.'"):
        say("Right.")


def test_a_language_without_a_table_is_refused(made_up):
    assert made_up
    with pytest.raises(ValueError, match=r"there is no xx\.json for readers of 'xx'"):
        say("Right.")


#: What has a word and a space.
SENTENCE = re.compile(r"[A-Za-z]{2}.* |\S .*[A-Za-z]{2}")


def is_code(node, parents):
    """Whether a text is code or a list of names: how a check is called, or a cell of a ledger."""
    parent = parents[node]
    if isinstance(parent, ast.keyword):
        return parent.arg == "call"
    if isinstance(parent, ast.Dict) and isinstance(parents[parent], ast.Assign):
        return parents[parent].targets[0].id == "LEDGER"
    if isinstance(parent, ast.Call):
        return getattr(parent.func, "id", "") == "_entry" and node in parent.args[:3]
    return isinstance(parent, ast.JoinedStr) and node.value == "O = P V. "


def unsaid(path):
    """The sentences of a module, neither docstrings nor code, that do not go through `say`."""
    tree = ast.parse(path.read_text("utf8"))
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and SENTENCE.search(node.value):
            parent = parents[node]
            said = isinstance(parent, ast.Call) and getattr(parent.func, "id", "") == "say"
            if not (said or isinstance(parent, ast.Expr) or is_code(node, parents)):
                yield node.value


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_every_sentence_goes_through_say(path):
    assert [*unsaid(path)] == []


def checks():
    """Every check of an exercise."""
    for module in pkgutil.iter_modules(labs.exercises.__path__):
        members = vars(importlib.import_module(f"labs.exercises.{module.name}"))
        for name, check in members.items():
            if name.startswith("check_") and inspect.isfunction(check):
                yield pytest.param(check, id=f"{module.name}.{name}")


@pytest.mark.parametrize("check", [*checks()])
def test_every_check_speaks_the_readers_language(check, monkeypatch):
    class Marked(dict):
        def __missing__(self, sentence):
            return f"«{sentence}»"

        def __contains__(self, sentence):
            return True

    monkeypatch.setenv("LABS_LANGUAGE", "xx")
    monkeypatch.setattr(language, "_table", lambda _: Marked())
    verdict = check(*[None] * len(inspect.signature(check).parameters))
    assert re.fullmatch(r"«Not yet\.» (\w+: )?«.*»", repr(verdict))
