"""Words, code lines and minutes of a chapter."""

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from labs.site import length
from labs.site.length import Length

FOLD = "<details class='labs-fold'><summary>Why</summary>\n\nBecause of this.\n\n</details>"


def chapter(*cells):
    return new_notebook(cells=cells)


def text(source, *tags):
    return new_markdown_cell(source, metadata={"tags": list(tags)})


def code(source, *tags):
    return new_code_cell(source, metadata={"tags": list(tags)})


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("One two's three-four.", 3),
        ("The $T$ times $[B,T]$ of it", 6),
        ("As\n\n$$\na = b\n\\frac{c}{d}\n$$\n\nsays", 7),
        ("See [chapter 1](01_shapes.ipynb#a).", 3),
        ('<div class="labs-box labs-start">\n\n**You will** see\n\n</div><!-- not yet -->', 3),
    ],
)
def test_words(source, words):
    assert length.measure(chapter(text(source)))["core"] == Length(words=words)


def test_every_cell_belongs_to_one_part():
    found = length.measure(
        chapter(
            text('Core.\n\n<div class="labs-box labs-predict">\n\nGuess now.\n\n</div>\n\n' + FOLD),
            code("a = 1\n\n# why\nb = 2"),
            code("harness = 1", "hide-input"),
            code("picture = 1", "remove-input"),
            code("print(a)", "hide-output"),  # its code is read
            text("*Optional.* More words. " + FOLD, "optional"),
            code("c = 3\nd = 4", "optional", "hide-input"),
            text("## Test yourself\n\n" + FOLD),
            text("## Exercises\n\nTry it."),
            code("def mine(): ..."),
        )
    )
    assert found == {
        "core": Length(words=3, code_lines=4, boxes=1),
        "folded": Length(words=4, code_lines=2),
        "optional": Length(words=7, code_lines=2),
        "practice": Length(words=9, code_lines=1),
    }
    assert length.total(found) == Length(words=23, code_lines=9, boxes=1)


def test_minutes():
    assert Length(words=2000, code_lines=120, boxes=5).minutes == 20 + 20 + 5


@pytest.mark.parametrize(
    ("says", "expected"),
    [
        ("**Time:** 45 minutes. Parts marked *optional* add 10, the exercises 30.", (45, 10, 30)),
        ("**Time:** 50 minutes. The exercises take 25.", (50, 0, 25)),
    ],
)
def test_stated_times(says, expected):
    assert (
        length.stated_times(chapter(text("# Title"), code("picture"), text(f"Box\n\n{says}\n"))) == expected
    )


def test_a_chapter_without_its_time_is_refused():
    with pytest.raises(ValueError, match=r"must say “\*\*Time:\*\* 45 minutes.*got '# Title'"):
        length.stated_times(chapter(text("# Title")))


def test_exercise_minutes():
    found = chapter(text("**1. Predict** (3 minutes). Say.\n\n**2. Write** (12 minutes, optional). Do."))
    assert length.exercise_minutes(found) == 15
