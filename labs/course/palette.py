"""The one palette: pages, widgets, figures and the notation page all take their colours from here.

Every colour comes in a pair, for light and for dark pages. `tests/labs/figures/test_palette.py` holds each
pair to the contrast that its use needs.
"""

from typing import NamedTuple


class Pair(NamedTuple):
    """One colour on light and on dark pages, as #rrggbb."""

    light: str
    dark: str


#: Text and background of a page.
INK = Pair("#1f2328", "#e6e8eb")
PAPER = Pair("#ffffff", "#14181d")

#: A tensor's role in the model: its colour never changes from chapter to chapter.
ROLES = {
    "tokens": Pair("#5f6368", "#b4b9bf"),  # ids, targets
    "x": Pair("#3d4f60", "#b3c3d1"),  # the residual stream: X, R, Y
    "norm": Pair("#00707c", "#52cbd3"),  # z, n
    "q": Pair("#0060b0", "#70b5f5"),
    "k": Pair("#a84300", "#ff9f61"),
    "v": Pair("#23752f", "#80cf8b"),
    "attention": Pair("#8438a2", "#d39aea"),  # scores, weights P
    "joined": Pair("#a3195b", "#f58fb8"),  # attention output, heads joined
    "ffn": Pair("#7a5900", "#e3c25f"),  # u, gate, hidden
    "logits": Pair("#7d4423", "#dfa988"),  # logits, loss
    "weight": Pair("#5c5f66", "#a3a8ae"),  # parameters
}

#: The diverging scale of a tensor's values: most negative, zero, most positive.  Blue and orange stay apart
#: in every common form of colour blindness; mixed in plain sRGB, so that CSS and matplotlib agree.
NEGATIVE = Pair("#6aa5d8", "#1f5f99")
ZERO = Pair("#f6f6f4", "#232a31")
POSITIVE = Pair("#f0a04b", "#96500f")

#: Background tints that tell heads apart (never the only sign: a label says the same).
HEADS = (
    Pair("#cfe3fb", "#1d3f66"),
    Pair("#ffdcae", "#64401a"),
    Pair("#d3efcf", "#22502a"),
    Pair("#ead5f4", "#4a2a5b"),
)

#: What a reader has selected, and what is wrong.
SELECTED = Pair("#1f2328", "#ffffff")
WRONG = Pair("#b3261e", "#ff8a80")


def variables() -> dict[str, Pair]:
    """Every colour by the name of its CSS custom property, without the leading `--labs-`."""
    return {
        "ink": INK,
        "paper": PAPER,
        "negative": NEGATIVE,
        "zero": ZERO,
        "positive": POSITIVE,
        "selected": SELECTED,
        "wrong": WRONG,
        **{f"role-{name}": pair for name, pair in ROLES.items()},
        **{f"head-{index}": pair for index, pair in enumerate(HEADS)},
    }


# How the places where our pages appear say that they are dark: the built book, JupyterLab, VS Code.
_DARK = ('html[data-theme="dark"]', 'body[data-jp-theme-light="false"]', "body.vscode-dark")


def css() -> str:
    """The palette as CSS custom properties, light by default and dark where the page says so."""

    def block(selector: str, theme: str) -> str:
        lines = (f"  --labs-{name}: {getattr(pair, theme)};" for name, pair in variables().items())
        return "\n".join([f"{selector} {{", *lines, "}"])

    return block(":root", "light") + "\n" + block(", ".join(_DARK), "dark") + "\n"
