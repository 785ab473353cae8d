"""Run notebooks and store their outputs, exactly as a clean restart-and-run-all gives them.

A stored notebook holds no trace of the machine or the moment, except what its own code prints of them: that,
nbval finds.
"""

import os
import re
from collections.abc import Callable
from pathlib import Path

import nbformat

from labs.course import notation
from labs.site import notebook_file
from labs.site.environment import ROOT, SiteError, read_text, require_own_code

#: The text between `<!-- generated: NAME -->` and `<!-- end -->` in a page, by NAME.
GENERATED: dict[str, Callable[[], str]] = {
    "sizes": notation.sizes_markdown,
    "tensors": notation.tensors_markdown,
}

SECTION = re.compile(r"(<!-- generated: (\S+) -->\n).*?(<!-- end -->)", re.S)


def notebooks(root: Path = ROOT) -> list[Path]:
    """Every notebook of the book."""
    return sorted((root / "book").glob("*.ipynb"))


def refresh(paths: list[Path] | None = None, root: Path = ROOT) -> None:
    """Run these notebooks, or all, and rewrite the generated sections of the pages.

    A notebook that fails keeps its file; the others are still run.

    Raises: SiteError at the end if any failed.
    """
    require_own_code()
    failures = []
    for path in notebooks(root) if paths is None else paths:
        try:
            print(f"{path.name}: {'changed' if refresh_notebook(path) else 'unchanged'}", flush=True)
        except SiteError as error:
            print(f"{path.name}: FAILED", flush=True)
            failures.append(str(error))
    for page in sorted((root / "book").glob("*.md")):
        try:
            if _write_if_changed(page, with_generated_sections(read_text(page))):
                print(f"{page.name}: changed", flush=True)
        except SiteError as error:
            print(f"{page.name}: FAILED", flush=True)
            failures.append(f"{page}: {error}")
    if failures:
        raise SiteError("\n\n".join(failures))


def refresh_notebook(path: Path) -> bool:
    """Run one notebook in its own folder and store its outputs; returns whether the file changed.

    Raises: SiteError if a cell fails or the result is not fit to be stored; the file is then as it was.
    """
    notebook = notebook_file.read(path)
    notebook_file.run(notebook, path)
    stored = notebook_file.stored_form(notebook)
    if found := notebook_file.problems(stored):
        raise SiteError(f"{path} was not stored:\n" + "\n".join(found))
    return _write_if_changed(path, nbformat.writes(stored) + "\n")


def with_generated_sections(page: str) -> str:
    """The text of a page with its generated sections written anew.

    Raises: SiteError if a section's name is not one of GENERATED.
    """

    def section(found):
        start, name, end = found.groups()
        if name not in GENERATED:
            raise SiteError(f"expected a generated section named one of {sorted(GENERATED)}, got {name!r}")
        return f"{start}{GENERATED[name]().strip()}\n{end}"

    return SECTION.sub(section, page)


def _write_if_changed(path: Path, text: str) -> bool:
    """Replace a file in one step, so that nobody ever reads half of it; leave it alone if it is the same."""
    if path.read_text("utf8") == text:
        return False
    new = path.with_name(f".{path.name}.new")
    try:
        new.write_text(text, "utf8", newline="\n")
        os.replace(new, path)
    finally:
        new.unlink(missing_ok=True)  # still there only if something failed
    return True
