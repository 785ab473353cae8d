"""What the folds of cells are called: a reader is told what lies behind them.

An author tags a cell `hide-input` (harness) or `hide-output` (what answers a prediction). MyST-NB folds it
in the page, and `refresh` writes the metadata with which JupyterLab does.
"""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

#: By the part of the cell that is hidden: what the closed and the open fold say.
PROMPTS = {
    "input": ("Show the code", "Hide the code"),
    "output": ("Show what it prints", "Hide what it prints"),
    "input+output": ("Show the {type}", "Hide the {type}"),  # source, output
}


class FoldPrompts(SphinxPostTransform):
    """Puts the words in, before MyST-NB's own transform makes the folds."""

    default_priority = 198  # MyST-NB's is 199
    formats = ("html",)

    def run(self, **_kwargs) -> None:
        for node in self.document.findall(nodes.container):
            if node.get("hide_mode") in PROMPTS:
                node["prompt_show"], node["prompt_hide"] = PROMPTS[node["hide_mode"]]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the transform with Sphinx."""
    app.add_post_transform(FoldPrompts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
