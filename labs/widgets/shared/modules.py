"""The files of the widgets, as the texts that a widget carries: a script, a style sheet, its strings.

A widget's module is loaded from a text, not from an address, so `import ... from "./state.js"` has nothing to
be relative to. `script` therefore joins a module and the modules it imports into one text, without a bundler.
"""

import json
import posixpath
import re
from pathlib import Path

from labs.course import palette

#: The folder with a folder for each widget, and `shared`.
WIDGETS = Path(__file__).parents[1]

#: The one form of import that is joined, from the own folder or from `shared`; names keep their names.
_IMPORT = re.compile(r'import \{ (?P<names>\w+(?:, \w+)*) \} from "(?P<file>(?:\.|\.\./shared)/\w+\.js)";')
#: A declaration at the top level of a module, with or without `export`.
_DECLARATION = re.compile(
    r"^(?P<export>export )?(?:async )?(?:function\*?|class|const|let) (?P<name>\w+)", re.MULTILINE
)
#: Anything else that begins like an import or an export.
_OTHER = re.compile(r"import\b|export (?!(?:async )?(?:function|class|const|let) )|.*\bimport\(")

#: A comment that has its lines for itself.
_COMMENT = re.compile(r"^ *(?://[^\n]*|/\*(?:(?!\*/).)*\*/)\n", re.MULTILINE | re.DOTALL)


def script(entry: str, directory: Path = WIDGETS) -> str:
    """Join the module `entry` and everything it imports into the text of one module.

    Each file appears once, after the files it imports. All of them share one scope, so the top-level names of
    all files must differ. Only the entry keeps its `export`s. Comments with lines of their own are left out:
    they are a quarter of what a page would load.

    Args:
        entry: a module by its path in `directory`, such as "head_split/view.js".
        directory: where the folders of the modules are.

    Raises: ValueError, naming file and line, for an import or export of any other form, a name that the
        imported file does not export, a name declared in two files, a missing file, or a circle of imports.
    """
    parts: dict[str, str] = {}  # file name -> text, in dependency order
    _collect(entry, directory, parts, (entry,))
    _refuse_clashes(parts)
    return "\n".join(f"// {name}\n{_COMMENT.sub('', text)}" for name, text in parts.items())


def _collect(name: str, directory: Path, parts: dict[str, str], path: tuple[str, ...]) -> None:
    """Add a module, after those it imports, to `parts`; `path` is the chain of imports that led here."""
    if name in path[:-1]:
        raise ValueError(f"the imports {' -> '.join(path)} form a circle: move what both need elsewhere")
    if name in parts:
        return
    lines = []
    for number, line in enumerate(_read(name, directory, path).splitlines(), start=1):
        where = f"{name}:{number}"
        if imported := _IMPORT.fullmatch(line):
            file = posixpath.normpath(posixpath.join(posixpath.dirname(name), imported["file"]))
            _collect(file, directory, parts, (*path, file))
            _refuse_missing(imported["names"].split(", "), file, directory, where)
        elif _OTHER.match(line) and not (len(path) == 1 and line.startswith("export default ")):
            raise ValueError(
                f'{where}: expected `import {{ a, b }} from "./file.js";` or from "../shared/file.js", or '
                f"`export` before a declaration (`export default` only in view.js), got `{line.strip()}`"
            )
        else:
            lines.append(line if len(path) == 1 else line.removeprefix("export "))
    parts[name] = "\n".join(lines).strip() + "\n"


def _read(name: str, directory: Path, path: tuple[str, ...]) -> str:
    file = directory / name
    if not file.is_file():
        raise ValueError(f"{' -> '.join(path)}: there is no {name} in {directory.name}/")
    return file.read_text("utf8")


def _refuse_missing(names: list[str], file: str, directory: Path, where: str) -> None:
    """Raise ValueError unless `file` exports every one of `names`."""
    text = (directory / file).read_text("utf8")
    exported = {found["name"] for found in _DECLARATION.finditer(text) if found["export"]}
    if missing := sorted(set(names) - exported):
        raise ValueError(f"{where}: {file} exports {sorted(exported)}, but not {', '.join(missing)}")


def _refuse_clashes(parts: dict[str, str]) -> None:
    """Raise ValueError if two modules declare the same top-level name."""
    owner: dict[str, str] = {}
    for file, text in parts.items():
        for found in _DECLARATION.finditer(text):
            other = owner.setdefault(found["name"], file)
            if other != file:
                raise ValueError(f"{other} and {file} both declare {found['name']}: rename one of them")


def style(*names: str) -> str:
    """The palette's properties, then the named style sheets, without comments, as one text."""
    sheets = (_COMMENT.sub("", (WIDGETS / name).read_text("utf8")) for name in names)
    return "\n".join([palette.css(), *sheets])


def strings(*sections: str, language: str = "en") -> dict[str, dict[str, str]]:
    """What a widget shows or says: sections that are shared, and its own, named like its folder.

    Raises: ValueError for a language without a table.
    """
    shared = _table("shared", language)
    return {name: shared[name] if name in shared else _table(name, language) for name in sections}


def _table(folder: str, language: str) -> dict:
    file = WIDGETS / folder / f"{language}.json"
    if not file.is_file():
        raise ValueError(
            f"there is no {folder}/{file.name} for pages in the language {language!r}: "
            + ("write it" if language == "en" else f"translate {folder}/en.json")
        )
    return json.loads(file.read_text("utf8"))
