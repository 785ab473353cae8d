"""What axe, the accessibility checker, finds in a page."""

from axe_playwright_python.sync_playwright import Axe

#: Without fetching the style sheets again, which file:// forbids, or collecting what passed.
OPTIONS = {"preload": False, "resultTypes": ["violations"]}

#: The rules about the looks of a text, which take several times as long as all others.
LOOKS = ["color-contrast", "link-in-text-block"]

#: Marks, of all elements with a text of their own that look alike by what style sheets ask for, the first.
MARK_FIRST = """() => {
    const styled = ["class", "style", "aria-selected", "aria-disabled"];
    const seen = new Set();
    for (const element of document.querySelectorAll("body *")) {
        delete element.dataset.first;
        if (![...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim())) continue;
        const path = [];
        for (let e = element; e; e = e.parentElement) {
            path.push(e.tagName, ...styled.map((name) => e.getAttribute(name)));
        }
        const kind = JSON.stringify(path);
        if (!seen.has(kind)) element.dataset.first = "";
        seen.add(kind);
    }
}"""


def violations(page):
    """What axe finds in a page, one line each; of texts that look alike the looks are judged once."""
    page.evaluate(MARK_FIRST)
    every_other_rule = {"rules": {rule: {"enabled": False} for rule in LOOKS}}
    runs = [
        Axe().run(page, options=OPTIONS | every_other_rule),
        Axe().run(page, context={"include": [["[data-first]"]]}, options=OPTIONS | {"runOnly": LOOKS}),
    ]
    return [
        f"{violation['id']}: {violation['help']}: {node['html'][:200]}"
        for run in runs
        for violation in run.response["violations"]
        for node in violation["nodes"]
    ]
