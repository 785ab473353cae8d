"""Dependencies point one way, are declared, and are pinned; every test file mirrors a file of the code."""

import ast
import importlib.metadata
import re
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
LABS = ROOT / "labs"

#: What each part of labs may import of the others.
MAY_IMPORT = {
    "llm": {"llm"},
    "course": {"course", "llm"},
    "figures": {"figures", "course", "llm"},
    "widgets": {"widgets", "course", "llm"},
    "exercises": {"exercises", "course", "llm"},
    "site": {"site", "widgets", "exercises", "figures", "course", "llm"},
}


def imports(path):
    """The dotted names of everything that a module imports."""
    for node in ast.walk(ast.parse(path.read_text("utf8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively; we write imports out"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def modules():
    return sorted(path for path in LABS.rglob("*.py") if path.parent != LABS)


def test_every_part_of_labs_is_known():
    assert {path.parent.name for path in LABS.glob("*/__init__.py")} == set(MAY_IMPORT)


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.relative_to(LABS).as_posix())
def test_dependencies_point_one_way(path):
    part = path.relative_to(LABS).parts[0]
    for name in imports(path):
        if name.startswith("labs."):
            assert name.split(".")[1] in MAY_IMPORT[part], f"{part} must not import {name}"


@pytest.mark.parametrize(
    "path", sorted((LABS / "llm").rglob("*.py")), ids=lambda path: path.relative_to(LABS).as_posix()
)
def test_the_model_needs_numpy_only(path):
    tops = {name.split(".")[0] for name in imports(path)}
    assert tops - set(sys.stdlib_module_names) <= {"numpy", "labs"}


# Declared and pinned


def declared():
    """Every requirement that we declare ourselves, with the file that does."""
    for line in (ROOT / "requirements.txt").read_text("utf8").splitlines():
        line = line.split("#")[0].strip()
        if line and not line.startswith("-"):
            yield "requirements.txt", Requirement(line)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))
    for line in project["project"]["dependencies"]:
        yield "pyproject.toml", Requirement(line)
    for line in project["project"]["optional-dependencies"]["test"]:
        yield "pyproject.toml [test]", Requirement(line)
    for line in project["build-system"]["requires"]:
        yield "pyproject.toml [build-system]", Requirement(line)


def pins():
    """The exact versions of constraints.txt, one or more for each name."""
    found = {}
    for line in (ROOT / "constraints.txt").read_text("utf8").splitlines():
        if line and not line.startswith("#"):
            requirement = Requirement(line)
            (specifier,) = requirement.specifier
            assert specifier.operator == "==", line
            found.setdefault(requirement.name.lower(), []).append(specifier.version)
    return found


def test_every_declared_package_is_pinned_within_its_range():
    pinned = pins()
    for file, requirement in declared():
        versions = pinned.get(requirement.name.lower(), [])
        assert versions, f"{requirement.name} of {file} is not in constraints.txt"
        for version in versions:
            assert requirement.specifier.contains(version), f"{file}: {requirement} and the pin {version}"


@pytest.mark.skipif(Path(sys.prefix).name != ".venv-oldest", reason="only `make test-oldest` can tell")
def test_the_oldest_permitted_packages_exist():
    for file, requirement in declared():
        bounds = [spec.version for spec in requirement.specifier if spec.operator == ">="]
        if bounds:  # what builds the package is pinned instead
            found = importlib.metadata.version(requirement.name)
            assert Version(found) == Version(bounds[0]), f"{file}: {requirement} begins at {found}"


def test_a_package_declared_twice_has_one_range():
    ranges = {}
    for _, requirement in declared():
        ranges.setdefault(requirement.name.lower(), set()).add(str(requirement.specifier))
    assert {name: found for name, found in ranges.items() if len(found) > 1} == {}


def test_the_customers_packages_are_required():
    names = {requirement.name for file, requirement in declared() if file == "requirements.txt"}
    assert {"jupyter-book", "numpy", "matplotlib", "ipywidgets", "nbval"} <= names


#: Where an import name is not the package's name.
PACKAGES = {"IPython": "ipython", "fontTools": "fonttools", "quickjs": "quickjs-ng", "yaml": "pyyaml"}
PACKAGES |= {"xdist": "pytest-xdist"}
PACKAGES |= {"jupyter_book": "jupyter-book", "axe_playwright_python": "axe-playwright-python"}


#: Read as text, never imported; the script that runs it names its PyTorch.
NEVER_IMPORTED = LABS / "course/in_pytorch.py"


def test_nothing_imports_what_is_only_read():
    for path in [*LABS.rglob("*.py"), *(ROOT / "tests").rglob("*.py")]:
        assert not any("course.in_pytorch" in name for name in imports(path)), path


def test_everything_imported_is_pinned():
    pinned = pins()
    for path in [*LABS.rglob("*.py"), *(ROOT / "tests").rglob("*.py")]:
        if path == NEVER_IMPORTED:
            continue
        for top in (
            {name.split(".")[0] for name in imports(path)} - set(sys.stdlib_module_names) - {"labs", "tests"}
        ):
            package = PACKAGES.get(top, top.replace("_", "-"))
            assert package in pinned, (
                f"{path.relative_to(ROOT)} imports {top}, which constraints.txt does not pin"
            )


# Mirrors


#: Tests of what several files do together.
ACROSS_FILES = {"test_bad_input.py", "test_jupyterlab.py", "test_fonts.py", "test_strings.py"}


def test_every_test_file_mirrors_a_file():
    for test in (ROOT / "tests/labs").rglob("test_*.py"):
        folder, stem = LABS / test.parent.relative_to(ROOT / "tests/labs"), test.stem.removeprefix("test_")
        mirrored = [folder / f"{stem}.py", folder / f"{stem}.js", folder / stem]
        mirrored += [folder / "__init__.py"] * (stem == folder.name)
        assert test.name in ACROSS_FILES or any(path.exists() for path in mirrored), (
            f"{test.relative_to(ROOT)} tests no file"
        )


def test_every_module_has_its_test():
    for path in modules():
        if path.name not in {"__init__.py", "__main__.py"}:
            test = ROOT / "tests" / path.relative_to(ROOT).with_name(f"test_{path.name}")
            assert test.exists(), f"{path.relative_to(ROOT)} has no test file"


# The documents name what is there


#: What CONTRIBUTING.md calls the widget and the chapter that its reader is about to write.
TO_BE_WRITTEN = re.compile(r"/gain_slider/|^book/11_name")


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE"])
def test_documents_name_files_that_exist(document):
    text = (ROOT / document).read_text("utf8")
    names = re.findall(r"`((?:benchmarks|book|labs|tests|\.ci|\.github)/[\w./-]*|LICENSE[\w-]*)`", text)
    names += re.findall(r"\]\((?!https?:)([^)#]+)\)", text)
    for name in names:
        assert TO_BE_WRITTEN.search(name) or (ROOT / name).exists(), f"{document} names {name}"


def test_title_version_and_licence_are_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf8"))
    book = yaml.safe_load((ROOT / "_config.yml").read_text("utf8"))
    licence = (ROOT / "LICENSE").read_text("utf8")
    changelog = (ROOT / "CHANGELOG.md").read_text("utf8")
    readme = (ROOT / "README.md").read_text("utf8")
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()  # what the format requires
    assert citation["title"] == book["title"]
    assert readme.startswith(f"# {book['title']}\n")
    assert book["title"] in project["description"]
    assert book["title"] in " ".join(licence.split())
    assert citation["version"] == project["version"]
    assert re.findall(r"^## \[(.*?)\]", changelog, re.MULTILINE)[:2] == ["Unreleased", project["version"]]
    assert citation["license"] == project["license"] == "MIT"
    assert [author["name"] for author in citation["authors"]] == [book["author"]]
    assert f"\nMIT License\n\nCopyright (c) {book['copyright']} {book['author']}\n" in licence
    (address,) = re.findall(
        r'href="(https://creativecommons[^"]*)" rel="license"', book["html"]["extra_footer"]
    )
    assert address in licence
    assert (ROOT / "LICENSE-text").read_text("utf8").startswith("Attribution 4.0 International\n")
    for file in project["license-files"]:
        assert (ROOT / file).is_file()


def test_decisions_are_numbered_and_short():
    pages = sorted((ROOT / "book/decisions").glob("*.md"))
    assert [int(page.name[:4]) for page in pages] == list(range(1, len(pages) + 1))
    for page in pages:
        assert len(page.read_text("utf8").splitlines()) <= 40, page.name


def test_contents_and_pages_agree():
    contents = yaml.safe_load((ROOT / "_toc.yml").read_text("utf8"))
    listed = {contents["root"], *re.findall(r"file: (\S+)", (ROOT / "_toc.yml").read_text("utf8"))}
    files = [path for path in (ROOT / "book").glob("*.*") if path.suffix in {".md", ".ipynb"}]
    pages = {path.relative_to(ROOT).with_suffix("").as_posix() for path in files}
    assert listed == pages - {"book/template"}, "every page is listed in _toc.yml, and nothing else is"
