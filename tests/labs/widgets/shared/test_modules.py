"""Joining modules, style sheets and strings into what a widget carries."""

import re
from pathlib import Path

import pytest

from labs.course import palette
from labs.widgets.shared import modules


@pytest.fixture
def join(tmp_path):
    """A function that writes files of one folder, given as name=text without ".js", and joins `entry`."""

    def join(**files):
        for name, text in files.items():
            (tmp_path / f"{name}.js").write_text(text, "utf8")
        return modules.script("entry.js", tmp_path)

    return join


def test_each_file_once_after_the_files_it_imports(join):
    text = join(
        entry='import { b } from "./middle.js";\nimport { a } from "./base.js";\nexport default { a, b };\n',
        middle='import { a } from "./base.js";\nexport const b = a + 1;\n',
        base="export const a = 1;\n",
    )
    assert text == (
        "// base.js\nconst a = 1;\n\n"
        "// middle.js\nconst b = a + 1;\n\n"
        "// entry.js\nexport default { a, b };\n"
    )


def test_modules_come_from_the_own_folder_or_are_shared(tmp_path):
    files = {
        "own/view.js": 'import { a } from "../shared/a.js";\nimport { b } from "./b.js";',
        "own/b.js": 'import { a } from "../shared/a.js";\nexport const b = a + 1;',
        "shared/a.js": 'import { one } from "./one.js";\nexport const a = one;',
        "shared/one.js": "export const one = 1;",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, "utf8")
    text = modules.script("own/view.js", tmp_path)
    assert re.findall("^// (.*)", text, re.MULTILINE) == [
        "shared/one.js",
        "shared/a.js",
        "own/b.js",
        "own/view.js",
    ]


def test_the_entry_keeps_its_exports(join):
    assert "export function f() {}" in join(entry="export function f() {}\nexport default { f };\n")


def test_comments_with_lines_of_their_own_are_left_out(join):
    text = join(
        entry="// What this is.\n/** Two\n * lines. */\nconst a = 1; // one\n"
        'if (a) {\n  // why\n  f("/*"); /* here */ f("*/");\n}\n/* and */ f(a);\n/* end */\nf();\n'
    )
    assert text == (
        "// entry.js\nconst a = 1; // one\n"
        'if (a) {\n  f("/*"); /* here */ f("*/");\n}\n/* and */ f(a);\nf();\n'
    )


@pytest.mark.parametrize(
    "line",
    [
        'import a from "./base.js";',
        'import * as a from "./base.js";',
        'import { a as b } from "./base.js";',
        'import { a } from "https://example.org/base.js";',
        'import { a } from "./base.js"; a();',
        'import "./base.js";',
        'import { a } from "../other_widget/base.js";',
        'const a = await import("./base.js");',
        'export { a } from "./base.js";',
        'export * from "./base.js";',
    ],
)
def test_every_other_form_is_refused_with_its_line(join, line):
    with pytest.raises(ValueError, match=r"entry\.js:2: expected `import \{ a, b \} from"):
        join(entry=f"// first line\n{line}\n", base="export const a = 1;\n")


def test_default_export_of_an_imported_file_is_refused(join):
    with pytest.raises(ValueError, match=r"base\.js:2"):
        join(entry='import { a } from "./base.js";\n', base="export const a = 1;\nexport default a;\n")


def test_missing_name_is_refused(join):
    with pytest.raises(ValueError, match=r"entry\.js:1: base\.js exports \['a'\], but not b"):
        join(entry='import { a, b } from "./base.js";\n', base="export const a = 1;\nconst b = 2;\n")


def test_missing_file_is_refused(join):
    with pytest.raises(ValueError, match=r"entry\.js -> gone\.js: there is no gone\.js"):
        join(entry='import { a } from "./gone.js";\n')


def test_one_name_in_two_files_is_refused(join):
    with pytest.raises(ValueError, match=r"base\.js and entry\.js both declare helper"):
        join(
            entry='import { a } from "./base.js";\nfunction helper() {}\n',
            base="export const a = 1;\nconst helper = 2;\n",
        )


def test_circle_is_refused(join):
    with pytest.raises(ValueError, match=r"entry\.js -> base\.js -> entry\.js form a circle"):
        join(
            entry='import { a } from "./base.js";\nexport const b = 1;\n',
            base='import { b } from "./entry.js";\nexport const a = 1;\n',
        )


def test_style_is_the_palette_and_the_named_sheets():
    text = modules.style("shared/grid.css", "head_split/style.css")
    assert text.startswith(palette.css())
    assert text.index(".labs-grid") < text.index(".labs-batch")


def test_strings_of_the_named_sections_alone():
    assert set(modules.strings("tensor", "head_split")) == {"tensor", "head_split"}


def test_no_class_is_painted_by_the_book_as_well():
    """A class of both looks different in the book: a button there is white on what we leave transparent."""
    book = Path(__file__).parents[4] / "book" / "assets" / "labs.css"
    ours = "".join(sheet.read_text("utf8") for sheet in modules.WIDGETS.glob("*/*.css"))
    classes = [set(re.findall(r"\.(labs-[\w-]+)", text)) for text in (ours, book.read_text("utf8"))]
    assert classes[0] & classes[1] == set()
    assert all(classes)
