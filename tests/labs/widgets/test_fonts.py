"""Every text of every widget fits, in whatever font the reader's machine has, and nothing moves."""

import os
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.labs.widgets import examples

#: A machine that has two families of one folder and no other font.
CONFIGURATION = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>{folder}</dir>
  <cachedir>{cache}</cachedir>
  <selectfont>
    <rejectfont><pattern><patelt name="scalable"><bool>true</bool></patelt></pattern></rejectfont>
    <acceptfont><pattern><patelt name="family"><string>{sans}</string></patelt></pattern></acceptfont>
    <acceptfont><pattern><patelt name="family"><string>{mono}</string></patelt></pattern></acceptfont>
  </selectfont>
  {aliases}
  <match target="pattern">
    <edit name="family" mode="append_last"><string>{sans}</string></edit>
  </match>
</fontconfig>
"""

ALIAS = '<alias binding="strong"><family>{}</family><prefer><family>{}</family></prefer></alias>'


class Font(NamedTuple):
    """Where Debian and Ubuntu have it, and its families."""

    package: str
    folder: str  # in /usr/share/fonts/truetype
    sans: str
    mono: str


FONTS = {
    "wide": Font("fonts-dejavu-core", "dejavu", "DejaVu Sans", "DejaVu Sans Mono"),
    "like Arial": Font("fonts-liberation", "liberation", "Liberation Sans", "Liberation Mono"),
    "tall": Font("fonts-sawarabi-gothic", "sawarabi-gothic", "Sawarabi Gothic", "Sawarabi Gothic"),
}


@pytest.fixture(scope="module", params=FONTS.values(), ids=FONTS)
def font(request):
    folder = Path("/usr/share/fonts/truetype") / request.param.folder
    if not folder.is_dir():
        missing = f"no fonts in {folder}: apt-get install {request.param.package}"
        pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)
    return request.param


@pytest.fixture(scope="module")
def browser(launch, font, tmp_path_factory):
    """A Chromium on a machine that has this font and no other."""
    home = tmp_path_factory.mktemp("fonts")
    folder = Path("/usr/share/fonts/truetype") / font.folder
    faces = dict.fromkeys(("sans-serif", "serif", "system-ui", "Arial"), font.sans) | {"monospace": font.mono}
    aliases = "\n  ".join(ALIAS.format(*pair) for pair in faces.items())
    text = CONFIGURATION.format(
        folder=folder, cache=home / "cache", sans=font.sans, mono=font.mono, aliases=aliases
    )
    (home / "fonts.conf").write_text(text, "utf8")
    chromium = launch(env=os.environ | {"FONTCONFIG_FILE": str(home / "fonts.conf")})
    yield chromium
    chromium.close()


def fonts_in(page, selector) -> set[str]:
    """The families that the browser draws these elements with."""
    session = page.context.new_cdp_session(page)
    session.send("DOM.enable")
    session.send("CSS.enable")
    root = session.send("DOM.getDocument")["root"]["nodeId"]
    nodes = session.send("DOM.querySelectorAll", {"nodeId": root, "selector": selector})["nodeIds"]
    return {
        each["familyName"]
        for node in nodes
        for each in session.send("CSS.getPlatformFontsForNode", {"nodeId": node})["fonts"]
    }


#: `faultsOf(root)` is a list of everything that does not fit, one line each; `walk(n)` uses every control of
#: the n-th widget, and gathers the faults of each state; `steps(n)` walks through the steps of a trace.
LOOK = """() => {
  const EDGE = 0.6;  // px: positions are rounded
  const roots = () => [...document.querySelectorAll(".labs-root")];
  const isShown = (node) => node.getClientRects().length > 0;
  const short = (node) => `${node.className || node.tagName} “${node.textContent.slice(0, 60)}”`;
  // what has a place of its own, on one line
  const LINES = `.labs-grid :is(th, td), .labs-angles :is(th, td), .labs-title, .labs-caption, .labs-stage,
    .labs-stop, .labs-part-name, .labs-press, .labs-slider > span, .labs-source-title, .labs-step-title,
    legend, summary`;

  /** Where the text of a node is drawn, which is not always where its box says. */
  function textBox(node) {
    const range = document.createRange();
    range.selectNodeContents(node);
    return range.getBoundingClientRect();
  }

  function lineFaults(node) {
    if (!isShown(node)) return [];
    const box = node.getBoundingClientRect();
    const text = textBox(node);
    if (node.scrollWidth > node.clientWidth && getComputedStyle(node).display !== "inline") {
      return [`cut: ${short(node)} ${node.scrollWidth} > ${node.clientWidth}`];
    }
    const sticksOut = text.width > 0 && (text.left < box.left - EDGE || text.right > box.right + EDGE);
    return sticksOut ? [`sticks out: ${short(node)} ${text.width} in ${box.width}`] : [];
  }

  /** Two texts of a row that touch read as one number. */
  function touching(row) {
    const filled = [...row.children].filter((cell) => cell.textContent !== "" && isShown(cell));
    const boxes = filled.map(textBox);
    const touches = (box, n) => n > 0 && box.left < boxes[n - 1].right + 2;
    return filled.filter((_, n) => touches(boxes[n], n)).map((cell) => `touches: ${short(cell)}`);
  }

  function selectFaults(node) {
    const { width } = node.getBoundingClientRect();
    node.style.width = "max-content";
    const wanted = node.getBoundingClientRect().width;
    node.style.width = "";
    return wanted > width + EDGE ? [`cut: list ${node.textContent.slice(0, 30)} ${wanted} > ${width}`] : [];
  }

  function pictureFaults(svg) {
    const frame = svg.getBoundingClientRect();
    return [...svg.querySelectorAll("text")].flatMap((text) => {
      const box = text.getBoundingClientRect();
      const inside = box.left >= frame.left - EDGE && box.right <= frame.right + EDGE;
      return inside ? [] : [`outside its picture: ${text.textContent}`];
    });
  }

  /** Everything but what lies in a box that scrolls stays within the widget. */
  function beyond(root) {
    const right = root.getBoundingClientRect().right;
    return [...root.querySelectorAll("*")].flatMap((node) => {
      if (node.parentElement.closest(".labs-grid-box, .labs-step-box, pre, svg") || !isShown(node)) return [];
      const box = node.getBoundingClientRect();
      return box.right > right + EDGE ? [`beyond the widget: ${short(node)} by ${box.right - right}`] : [];
    });
  }

  self.faultsOf = (root) => [
    ...[...root.querySelectorAll(LINES)].flatMap(lineFaults),
    ...[...root.querySelectorAll(".labs-grid tr")].flatMap(touching),
    ...[...root.querySelectorAll("select")].flatMap(selectFaults),
    ...[...root.querySelectorAll("svg")].flatMap(pictureFaults),
    ...beyond(root),
  ];
  self.heightOf = (root) => root.getBoundingClientRect().height;
  // what a change asks a frame for was asked before this, and is drawn when this is called
  const frame = () => new Promise((done) => requestAnimationFrame(done));

  /** The widths of the grids, which must not change while a reader plays. */
  const widths = (root) => [...root.querySelectorAll(".labs-grid:not(.labs-text, .labs-numbers)")]
    .filter(isShown).map((grid) => Math.round(grid.getBoundingClientRect().width));

  self.walk = async (n) => {
    const root = roots()[n];
    const found = [];
    const before = { height: heightOf(root), widths: String(widths(root)) };
    const look = async (state) => {
      await frame();
      found.push(...faultsOf(root).map((fault) => `${state}: ${fault}`));
      if (Math.abs(heightOf(root) - before.height) > 1) found.push(`${state}: height ${heightOf(root)}`);
      const now = String(widths(root));
      if (now !== before.widths) found.push(`${state}: the columns moved from ${before.widths} to ${now}`);
    };
    const change = (node, values) => {
      Object.assign(node, values);
      node.dispatchEvent(new Event(node.type === "range" ? "input" : "change", { bubbles: true }));
    };
    for (const input of root.querySelectorAll("input:is([type=radio], [type=checkbox]):enabled")) {
      input.click();
      await look(`${input.type} ${input.parentElement.textContent}`);
    }
    for (const list of root.querySelectorAll("select")) {
      change(list, { selectedIndex: list.options.length - 1 });
      await look("a list at its end");
    }
    for (const slider of root.querySelectorAll("input[type=range]")) {
      for (const value of [slider.max, slider.min]) {
        change(slider, { value });
        await look(`a slider at ${value}`);
      }
    }
    for (const input of root.querySelectorAll("input[type=checkbox]:checked:enabled")) {
      input.click();
      await look(`back ${input.parentElement.textContent}`);
    }
    // the sentences about what is pointed at, and what is chosen
    for (const grid of root.querySelectorAll(".labs-grid[role=grid]")) {
      const cells = [...grid.querySelectorAll(".labs-cell[tabindex]")].filter(isShown);
      for (const cell of cells.length > 40 ? [cells[0], ...cells.slice(-8)] : cells) {
        cell.focus({ preventScroll: true });
        await frame();
        const { height } = root.getBoundingClientRect();
        if (Math.abs(height - before.height) > 1) found.push(`at ${cell.textContent}: height ${height}`);
      }
      cells.at(-1)?.click();
      await look(`${grid.ariaLabel}, the last cell`);
    }
    return [...new Set(found)];
  };

  self.steps = async (n) => {
    const root = roots()[n];
    const [found, seen] = [[], new Set()];
    const slider = root.querySelector("input[type=range]");
    for (let step = 1; step <= Number(slider.max); step++) {
      slider.value = step;
      slider.dispatchEvent(new Event("input", { bubbles: true }));
      await frame();
      seen.add(root.querySelector(".labs-title").textContent);
      found.push(...faultsOf(root).map((fault) => `step ${step}: ${fault}`));
      const { scrollWidth } = document.documentElement;
      if (scrollWidth > innerWidth) found.push(`step ${step}: the page scrolls, ${scrollWidth} px`);
    }
    return [[...new Set(found)], seen.size];
  };
}"""

#: How much of the page has moved, as browsers count it, since it was opened.
SHIFT = """() => new Promise((done) => {
  let sum = 0;
  const add = (entries) => entries.forEach((entry) => (sum += entry.value));
  const observer = new PerformanceObserver((list) => add(list.getEntries()));
  observer.observe({ type: "layout-shift", buffered: true });
  setTimeout(() => {
    add(observer.takeRecords());
    done(sum);
  });
})"""

#: Pages of these widths; a phone has two pixels for one.
WIDTHS = {1280: {}, 360: {"device_scale_factor": 2, "has_touch": True}}


@pytest.fixture
def looked_at(show):
    """A function `looked_at(*widgets, width)` that opens a page with the functions of LOOK."""

    def looked_at(*widgets, width):
        page = show(*widgets, width=width, reduced_motion="reduce", **WIDTHS[width])
        page.evaluate(LOOK)
        return page

    return looked_at


def reserved(widget, width):
    return 17 * widget.reserve[0 if width > 720 else 1]  # a rem is 17 px in the book


def faults(page, made, width):
    """What does not fit in a page as it opens, by the name of the widget; `made` is name -> widget."""
    found = page.evaluate("[...document.querySelectorAll('.labs-root')].map((root) => faultsOf(root))")
    heights = page.evaluate("[...document.querySelectorAll('.labs-root')].map(heightOf)")
    for (_, widget), height, more in zip(made.items(), heights, found, strict=True):
        kept = reserved(widget, width)
        right = (
            height <= kept if type(widget).__name__.startswith("TraceExplorer") else abs(height - kept) <= 1
        )
        more += [] if right else [f"{height} px high, {kept} reserved"]
    shift, whole = page.evaluate(SHIFT), page.evaluate("document.documentElement.scrollWidth")
    return {
        **dict(zip(made, found, strict=True)),
        "page": ([f"{whole} px wide"] if whole != width else [])
        + ([f"moved {shift}"] if shift > 0.02 else []),
    }


def require_none(found):
    lines = [f"{name}: {fault}" for name, faults in found.items() for fault in faults]
    assert not lines, "\n" + "\n".join(lines)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_widgets_of_the_course_fit(looked_at, font, width):
    """In every state that a reader can bring about no text is cut, no column moves, no height changes."""
    assert examples.COURSE.keys() == examples.kinds()
    made = {name: make() for name, make in examples.COURSE.items()}
    page = looked_at(*made.values(), width=width)
    assert fonts_in(page, "h1, .labs-cell, .labs-controls *, .labs-verdict") == {font.sans}
    assert fonts_in(page, ".labs-shape, .labs-stage *") == {font.mono}
    found = faults(page, made, width)
    boxes = page.locator(".labs-grid-box, .labs-step-box")
    found["scrolls"] = boxes.evaluate_all(
        "boxes => boxes.filter(n => n.scrollWidth > n.clientWidth).map(n => n.innerText)"
    )
    for n, name in enumerate(made):
        if name != "TraceExplorer":  # see below
            found[f"{name}, walked"] = page.evaluate("n => walk(n)", n)
    require_none(found)


@pytest.mark.parametrize("width", WIDTHS)
def test_other_sizes_fit(looked_at, width):
    """What is wider than its place scrolls there; the reserved heights are the real ones."""
    made = {name: make() for name, make in examples.OTHERS.items()}
    require_none(faults(looked_at(*made.values(), width=width), made, width))


@pytest.mark.parametrize("width", WIDTHS)
def test_every_step_of_the_trace_fits(looked_at, width):
    widget = examples.COURSE["TraceExplorer"]()
    page = looked_at(widget, width=width)
    height = page.locator(".labs-root").bounding_box()["height"]
    assert height <= reserved(widget, width) <= height + 20 * 17  # the first tensor; most others as well
    found, seen = page.evaluate("steps(0)")
    require_none({"TraceExplorer": found})
    assert seen > 80
