"""Planted mistakes: small named changes to the source of this package, and how to run the package with one.

A mistake replaces text in one function. The text has to occur there exactly once, so a mistake cannot drift
away from the code: when the function changes, planting it fails loudly until it is put right. The mistakes
themselves are in `catalogue.py`; `table.py` asks the checks which of them they catch.
"""

import ast
import builtins
import difflib
import functools
import itertools
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import NamedTuple

from labs.llm import arguments, model, ops, parameters, tiny
from labs.llm.training import data

#: The files that mistakes are planted in, by the names of their modules. Each may import those before it.
FILES = {
    "ops": "ops.py",
    "parameters": "parameters.py",
    "model": "model.py",
    "tiny": "tiny/__init__.py",
    "data": "training/data.py",
}


ROOM = Path(arguments.__file__).parent


class Library(NamedTuple):
    """The modules of this package, the real ones or a mutant's."""

    ops: ModuleType
    parameters: ModuleType
    model: ModuleType
    tiny: ModuleType
    data: ModuleType


#: The package as it is, without a mistake.
ORIGINAL = Library(ops, parameters, model, tiny, data)


class Edit(NamedTuple):
    """A change to the text of one function, or of another statement that gives a module one of its names."""

    place: str  # ops.softmax
    right: str
    wrong: str


class Mistake(NamedTuple):
    """What is done wrong in one file."""

    name: str
    story: str  # what is wrong, in one sentence
    file: str  # one of FILES
    edits: tuple[Edit, ...]

    @property
    def where(self):
        """The function that the mistake is planted in, such as model.attention; of several the first."""
        return self.edits[0].place

    @property
    def diff(self):
        """The changed lines as in a unified diff, each beginning with - or +."""
        lines = difflib.unified_diff(
            source(self.file).splitlines(), planted_source(self).splitlines(), n=0, lineterm=""
        )
        return [line for line in lines if line[0] in "-+" and line[:3] not in ("---", "+++")]


def planted(name, story, *edits):
    """Return the Mistake of these edits, all in one file."""
    (file,) = {edit.place.partition(".")[0] for edit in edits}
    return Mistake(name, story, file, edits)


@functools.cache
def source(file):
    """Return the source text of one of FILES."""
    return (ROOM / FILES[file]).read_text(encoding="utf-8")


def planted_source(mistake):
    """Return the source text of the mistake's file with the mistake in it.

    Raises: ValueError unless every place is there, and the right text of every edit exactly once in it.
    """
    text = source(mistake.file)
    for place, right, wrong in mistake.edits:
        start, end = _span(text, place, mistake)
        count = text[start:end].count(right)
        if count != 1:
            raise ValueError(
                f"mistake {mistake.name!r} must find its text exactly once in {place}, found it "
                f"{count} times: copy the line from there again\n{right}"
            )
        text = text[:start] + text[start:end].replace(right, wrong) + text[end:]
    return text


def _span(text, place, mistake):
    """Return where in the text of a file the statement stands that defines the last name of `place`."""
    name = place.partition(".")[2]
    starts = list(itertools.accumulate((len(line) for line in text.splitlines(keepends=True)), initial=0))
    for statement in ast.parse(text).body:
        defined = {getattr(statement, "name", None)}
        for target in getattr(statement, "targets", []):
            defined |= {node.id for node in ast.walk(target) if isinstance(node, ast.Name)}
        if name in defined:
            return starts[statement.lineno - 1], starts[statement.end_lineno]
    raise ValueError(
        f"mistake {mistake.name!r} must be planted in a function of {FILES[mistake.file]}, found no {place}: "
        "has it got another name?"
    )


def plant(mistake):
    """Return the Library with a mistake in it: fresh modules, the real ones are left alone."""
    fresh = {}
    for file in FILES:
        text = planted_source(mistake) if file == mistake.file else source(file)
        fresh[file] = _execute(file, text, fresh, f"{FILES[file]} with mistake: {mistake.name}")
    return Library(**fresh)


def _execute(file, text, fresh, filename):
    """Run source text as the module of `file`; what it imports of `fresh` comes from there."""
    package = SimpleNamespace(arguments=arguments, **fresh)

    def import_(name, *details):
        if name == "labs.llm":
            return package
        return fresh.get(name.removeprefix("labs.llm.")) or builtins.__import__(name, *details)

    module = ModuleType(getattr(ORIGINAL, file).__name__)
    module.__file__ = str(ROOM / FILES[file])
    module.__builtins__ = {**vars(builtins), "__import__": import_}
    exec(compile(text, filename, "exec"), vars(module))
    return module
