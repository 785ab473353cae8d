"""How long a chapter is and how long it takes, counted from its notebook.

A chapter's *core* is what everybody reads: it is neither folded nor optional, and ends where the questions
begin. Everything else is counted apart, because a reader decides whether to open it.
"""

import re
from typing import NamedTuple

#: The parts of a chapter. A cell with the tag `optional` is optional, and the practice begins with one of the
#: headings of PRACTICE; in both, what is folded counts as well.
PARTS = ("core", "optional", "practice", "folded")
PRACTICE = ("## Test yourself", "## Exercises")

#: What reading takes. Fitted to the times that careful readers needed for ten chapters of this course: on
#: average it is 6 minutes off, for chapters of 60 to 130 minutes.
WORDS_A_MINUTE, CODE_LINES_A_MINUTE, MINUTES_A_BOX = 100, 6, 1

_FOLD = re.compile(r"<details.*?</details>", re.DOTALL)


class Length(NamedTuple):
    """What a part of a chapter has."""

    words: int = 0  # a formula in a line counts as one, a line of formulas as five
    code_lines: int = 0  # without blank ones
    boxes: int = 0  # that ask for a prediction

    @property
    def minutes(self) -> float:
        """What it takes to read it, try it and think."""
        return (
            self.words / WORDS_A_MINUTE + self.code_lines / CODE_LINES_A_MINUTE + self.boxes * MINUTES_A_BOX
        )


def measure(notebook) -> dict[str, Length]:
    """Return the Length of each of PARTS."""
    found = dict.fromkeys(PARTS, Length())
    part = "core"
    for cell in notebook["cells"]:
        source, tags = cell["source"], cell["metadata"].get("tags", [])
        if cell["cell_type"] == "markdown" and source.startswith(PRACTICE):
            part = "practice"
        here = "optional" if "optional" in tags else part
        if cell["cell_type"] == "code":
            folded = here == "core" and not {"hide-input", "remove-input"}.isdisjoint(tags)
            _add(found, "folded" if folded else here, Length(code_lines=_code_lines(source)))
        elif cell["cell_type"] == "markdown" and here == "core":
            _add(found, "core", _text_length(_FOLD.sub("", source)))
            _add(found, "folded", _text_length(" ".join(_FOLD.findall(source))))
        elif cell["cell_type"] == "markdown":
            _add(found, here, _text_length(source))
    return found


def total(lengths: dict[str, Length]) -> Length:
    """Return the Length of all parts together: the chapter with every fold open."""
    return Length(*map(sum, zip(*lengths.values(), strict=True)))


#: How a chapter's first box says them.
TIMES = (
    "**Time:** 45 minutes. Parts marked *optional* add 10, the exercises 30.",
    "**Time:** 45 minutes. The exercises take 30.",
)


class Times(NamedTuple):
    """Minutes, as a chapter's first box states them."""

    core: int
    optional: int
    exercises: int


def stated_times(notebook) -> Times:
    """Return what the first box says; it stands in one of the first three cells.

    Raises: ValueError unless it says so in one of the two ways of TIMES.
    """
    first = "\n".join(cell["source"] for cell in notebook["cells"][:3])
    found = re.search(
        r"\*\*Time:\*\* (\d+) minutes\. "
        r"(?:Parts marked \*optional\* add (\d+), the|The) exercises (?:take )?(\d+)\.",
        first,
    )
    if not found:
        ways = " or ".join(f"“{way}”" for way in TIMES)
        raise ValueError(f"the first box must say {ways}, got {first[-120:]!r}")
    return Times(*(int(minutes or 0) for minutes in found.groups()))


def exercise_minutes(notebook) -> int:
    """Return the sum of what the exercises say they take: "**1. Predict** (3 minutes)."."""
    text = "\n".join(cell["source"] for cell in notebook["cells"] if cell["cell_type"] == "markdown")
    return sum(map(int, re.findall(r"^\*\*\d+\. \w+\*\* \((\d+) minutes", text, re.MULTILINE)))


def _add(found: dict[str, Length], part: str, more: Length) -> None:
    found[part] = Length(*map(sum, zip(found[part], more, strict=True)))


def _code_lines(source: str) -> int:
    return sum(bool(line.strip()) for line in source.splitlines())


def _text_length(text: str) -> Length:
    boxes = text.count("labs-predict")
    for pattern, word in (
        (r"<!--.*?-->", ""),
        (r"\$\$.*?\$\$", " x x x x x "),
        (r"\$[^$]+\$", " x "),
        (r"<[^>]+>", " "),
        (r"\]\([^)]*\)", "]"),  # the address of a link
    ):
        text = re.sub(pattern, word, text, flags=re.DOTALL)
    return Length(words=len(re.findall(r"[\w’'-]+", text)), boxes=boxes)
