"""The directive `{block-diagram}`: the picture of the model, its boxes linked to the chapters that exist."""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from labs.course import diagram
from labs.figures import diagram_svg


class block_diagram_node(nodes.General, nodes.Element):  # noqa: N801, docutils' own spelling
    """Stands for the picture until the addresses of the pages are known."""


class BlockDiagram(SphinxDirective):
    """Puts the picture and, under a fold, its text in the page."""

    def run(self) -> list[nodes.Node]:
        return [block_diagram_node(docname=self.env.docname)]


def visit(self, node: nodes.Element) -> None:
    """Write the picture as HTML, with links relative to the page that shows it."""
    builder = self.builder
    here = node["docname"]
    folder = here[: here.rfind("/") + 1]
    links = {
        step.page: builder.get_relative_uri(here, folder + step.page)
        for step in diagram.NODES
        if folder + step.page in builder.env.found_docs
    }
    label = "The model that this course follows, from tokens to one loss"
    self.body.append(diagram_svg.show(links, label=label)._repr_html_())
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive with Sphinx."""
    app.add_node(block_diagram_node, html=(visit, None))
    app.add_directive("block-diagram", BlockDiagram)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
