"""Small books to build: one by Sphinx alone, one by Jupyter Book with the course's own configuration."""

import shutil
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace

from labs.site import build

ROOT = Path(__file__).resolve().parents[3]

INDEX = r"""
# Landing page

A line with $x^2$, and {eq}`eq-sum`.

$$\class{labs-role-q}{Q} = 1$$ (eq-sum)

\begin{align}
a &= b
\end{align}

<details><summary>Fold</summary>

[link](https://example.org/fold)

</details>

:::{dropdown} Dropdown
[link](https://example.org/dropdown)
:::

:::{toggle}
[link](https://example.org/toggle)
:::

:::{admonition} Admonition
:class: dropdown
[link](https://example.org/admonition)
:::
"""

WIDGET = """
import anywidget
import traitlets


class Greeting(anywidget.AnyWidget):
    _esm = "export default { render({ el, model }) { el.textContent = 'hello ' + model.get('name'); } }"
    _css = ".greeting { color: red; }"
    name = traitlets.Unicode().tag(sync=True)
    reserve = traitlets.List([3, 5]).tag(sync=True)

    def __repr__(self):
        return f"Greeting({self.name})"


Greeting(name="Ada")
"""


@pytest.fixture
def build_pages(tmp_path):
    """A function `build_pages({name: text}, conf)` that builds Markdown pages with Sphinx alone.

    It returns the folder of the pages and the list of warnings.
    """

    def build_pages(pages, conf):
        source = tmp_path / "source"
        source.mkdir()
        (source / "conf.py").write_text(conf, "utf8")
        for name, text in pages.items():
            (source / name).write_text(text, "utf8")
        log = tmp_path / "warnings"
        with docutils_namespace(), log.open("w", encoding="utf8") as warnings:
            folders = [source, source, tmp_path / "html", tmp_path / "trees"]
            Sphinx(*folders, "html", status=None, warning=warnings).build()
        return tmp_path / "html", build.without_colours(log.read_text("utf8")).splitlines()

    return build_pages


def write_notebook(path, *cells):
    """Write a notebook, never run, with a title and these code cells; ids do not depend on chance."""
    cells = [new_markdown_cell("# Notebook"), *map(new_code_cell, cells)]
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(new_notebook(cells=cells, metadata=metadata), path)


@pytest.fixture(name="write_notebook")
def write_notebook_fixture():
    """The function `write_notebook(path, *cells)`."""
    return write_notebook


def write_book(root):
    """Write a book of two pages under `root`, with the course's own configuration and assets."""
    shutil.copytree(ROOT / "book/assets", root / "book/assets")
    for name in ("_config.yml", "constraints.txt"):
        shutil.copy(ROOT / name, root)
    (root / "labs").mkdir()
    (root / "labs/code.py").write_text("ANSWER = 42\n", "utf8")
    (root / "_toc.yml").write_text(
        "format: jb-book\nroot: book/index\nchapters: [{file: book/notebook}]\n", "utf8"
    )
    (root / "book/index.md").write_text(INDEX, "utf8")
    look = "from pathlib import Path\n\nprint(Path('../labs/code.py').read_text())"
    write_notebook(root / "book/notebook.ipynb", WIDGET.strip(), look, "Greeting(name='Bob')")


@pytest.fixture
def book(tmp_path):
    """The folder of a small book that is not built."""
    write_book(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def built_once(tmp_path_factory):
    """The folder of a small book, built, and a copy of it."""
    root, copy = tmp_path_factory.mktemp("book") / "book", tmp_path_factory.mktemp("copy") / "book"
    root.mkdir()
    write_book(root)
    build.build(root)
    shutil.copytree(root, copy)
    return root, copy


@pytest.fixture
def built_book(built_once):
    """The site of a small book, for looking only."""
    return built_once[0] / "_build/html"


@pytest.fixture
def rebuilt_book(built_once):
    """The folder of a small book that is built, to change it and build it again.

    It is put back afterwards, in the same place: Sphinx starts afresh in another.
    """
    root, copy = built_once
    yield root
    shutil.rmtree(root)
    shutil.copytree(copy, root)
