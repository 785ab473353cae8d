"""Everything that a widget shows or says comes from the table of strings."""

import json
import re

import pytest

from labs.widgets.shared import modules
from tests.labs.widgets import examples

#: All text of the page, attributes that are read out, and what pointing and choosing brings up; not what is
#: marked as not to be translated (names and shapes).
COLLECT = """
() => {
  const texts = [];
  const walk = (node) => {
    if (node.nodeType === Node.TEXT_NODE) texts.push(node.textContent);
    else if (node.getAttribute("translate") !== "no") {
      for (const name of ["title", "placeholder", "alt", "aria-description"])
        texts.push(node.getAttribute(name) ?? "");
      if (node.getAttribute("role") !== "grid") texts.push(node.getAttribute("aria-label") ?? "");
      node.childNodes.forEach(walk);
    }
  };
  document.querySelectorAll(".labs-root").forEach(walk);
  return texts;
}
"""


def bracketed(text: str) -> str:
    """A text in a made-up language: «text», the {places} kept."""
    return f"«{text}»"


def with_made_up_language(widget):
    table = {
        section: {k: bracketed(v) for k, v in texts.items()} for section, texts in widget.strings.items()
    }
    widget.set_trait("strings", table)
    return widget


def words_outside_brackets(text: str) -> list[str]:
    """The words of two letters or more that stand in no brackets; brackets may be nested."""
    while (shorter := re.sub(r"«[^«»]*»", " ", text)) != text:
        text = shorter
    return re.findall(r"[^\W\d_]{2,}", text)


def test_words_outside_brackets_sees_through_nesting():
    assert words_outside_brackets("«a «nested» one» but not this; X[0,2] = -0.3") == ["but", "not", "this"]


def test_every_kind_of_widget_is_looked_at():
    assert examples.COURSE.keys() == examples.kinds()


@pytest.mark.parametrize("make", examples.COURSE.values(), ids=examples.COURSE)
def test_no_text_is_hard_coded(show, make):
    page = show(with_made_up_language(make()))
    texts = page.evaluate(COLLECT)
    for cell in page.locator(".labs-cell").all()[5:6]:  # not every widget has cells
        cell.click()
    for choice in page.locator("input:is([type=radio], [type=checkbox])").all():
        if choice.is_enabled():  # else its title says why not
            choice.check()
        page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        texts += page.evaluate(COLLECT)
    assert any("«" in text for text in texts)
    # the axis of a column in a head, and the tensors at the numbers as text, are names and not words
    words = [word for text in texts for word in words_outside_brackets(text)]
    assert [word for word in words if word not in ("dh", "logits", "dlogits")] == []


def tables():
    """The table of each folder by its name; that of `shared` has sections."""
    return {
        file.parent.name: json.loads(file.read_text("utf8")) for file in modules.WIDGETS.glob("*/en.json")
    }


def test_every_string_of_the_host_is_used():
    root = modules.WIDGETS.parents[1]
    files = ("book/assets/labs-host.js", "labs/site/widget_views.py")
    sources = "".join((root / file).read_text("utf8") for file in files)
    assert [name for name in tables()["shared"]["host"] if f'"{name}"' not in sources] == []


def test_every_string_is_used():
    sources = "".join(file.read_text("utf8") for file in modules.WIDGETS.glob("*/*.js"))
    shared = tables()["shared"]
    shared.pop("host")
    sections = [*shared.values(), *(texts for folder, texts in tables().items() if folder != "shared")]
    names = [name for texts in sections for name in texts if not name.startswith("axis_")]
    assert [name for name in names if not re.search(rf"\.{name}\b", sources)] == []


def differences(table, english):
    """The texts, by name, that only one of two tables has, or that have other {places} than in English."""
    if isinstance(english, str):
        return [] if set(re.findall(r"\{\w+\}", table)) == set(re.findall(r"\{\w+\}", english)) else [""]
    both = table.keys() & english.keys()
    within = [f"{name} {found}".strip() for name in both for found in differences(table[name], english[name])]
    return sorted([*(table.keys() ^ english.keys()), *within])


def test_differences_between_tables_are_found():
    english = {"host": {"failed": "no: {reason}", "waiting": "wait"}, "hint": "a {name}"}
    assert differences({"host": {"failed": "«{reason}»", "waiting": ""}, "hint": "{name}"}, english) == []
    assert differences({"host": {"failed": "«{raison}»"}, "hint": "", "more": ""}, english) == [
        "hint",
        "host failed",
        "host waiting",
        "more",
    ]


def test_every_language_has_every_text():
    for path in modules.WIDGETS.glob("*/*.json"):
        english = json.loads(path.with_name("en.json").read_text("utf8"))
        assert differences(json.loads(path.read_text("utf8")), english) == [], path
