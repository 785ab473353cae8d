"""The widgets in a real JupyterLab: the reader's choices reach Python, and the keys reach the widget."""

import json
import os
import secrets
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from playwright.sync_api import expect

#: No request to another host: no news, no updates, no list of extensions.
OFFLINE = (
    "--LabApp.news_url=None",
    "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    "--LabApp.extension_manager=readonly",
)

#: Starting servers and kernels takes seconds, and much longer on a machine that is busy.
PATIENCE = 60

#: Which cells of the notebook are the active ones.
ACTIVE = "cells => cells.map(cell => cell.classList.contains('jp-mod-active'))"

HEAD_SPLIT = (
    "import numpy as np\n"
    "from labs.widgets import HeadSplit\n"
    "widget = HeadSplit((np.arange(80).reshape(2, 5, 8) - 40) / 50, n_heads=2)\n"
    "widget",
    "print('Python sees', widget.selected, widget.batch, widget.route, widget.show)",
    "widget.selected = 79",
)

#: The widgets of the chapters on the forward pass, each with the example that the course gives it.
FORWARD_PASS = (
    "from labs.llm import tiny\n"
    "from labs.llm.model import causal_mask, forward\n"
    "from labs.widgets import AttentionHeatmap, MaskExplorer, RopeExplorer\n"
    "params, ids = tiny.params(), tiny.INPUT_IDS\n"
    "block = forward(params, ids, tiny.CONFIG)[1].blocks[0]\n"
    "heatmap = AttentionHeatmap(block.q, block.k, causal_mask(5), labels='atten', rotated=True)\n"
    "heatmap",
    "mask = MaskExplorer(params, tiny.CONFIG, ids, tiny.TARGET_IDS, tiny.VOCABULARY)\nmask",
    "rope = RopeExplorer(block.q[0, 0, 4], block.k[0, 0, 1])\nrope",
    "print('Python sees', heatmap.axis, mask.causal, rope.m, rope.mixed)",
)

TRACE = (
    "from labs.llm import tiny\n"
    "from labs.widgets import TraceExplorer\n"
    "given = tiny.params(), tiny.CONFIG, tiny.INPUT_IDS, tiny.TARGET_IDS, tiny.VOCABULARY\n"
    "widget = TraceExplorer(*given)\n"
    "widget",
    "step = widget.steps[widget.step]\n"
    "print('Python sees', step['name'], widget.batch, widget.head, widget.selected, len(widget.trail))",
    "widget.step = [step['name'] for step in widget.steps].index('dscores')",
)


def notebook(sources: tuple[str, ...]) -> str:
    cells = [
        {
            "cell_type": "code",
            "id": f"cell-{i}",
            "source": source,
            "metadata": {},
            "outputs": [],
            "execution_count": None,
        }
        for i, source in enumerate(sources)
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return json.dumps({"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5})


def private(home: Path) -> dict[str, str]:
    """An environment in which Jupyter reads and writes nothing of this machine's user."""
    places = {
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        "IPYTHONDIR": "ipython",
    }
    return os.environ | {name: str(home / place) for name, place in places.items()}


def address(server: subprocess.Popen, home: Path, token: str) -> str:
    """The server's address, once it answers; it picks a free port itself and writes it to a file."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and server.poll() is None:
        for file in (home / "runtime").glob("jpserver-*.json"):
            try:
                url = json.loads(file.read_text())["url"]
                urllib.request.urlopen(f"{url}api/status?token={token}", timeout=5).close()
                return url
            except (json.JSONDecodeError, urllib.error.URLError):
                pass  # half written, or not listening yet
        time.sleep(0.1)
    raise RuntimeError(f"JupyterLab did not start:\n{(home / 'log').read_text()[-2000:]}")


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """The address, with its token, of each notebook in a running JupyterLab: a function of its name."""
    home, root = tmp_path_factory.mktemp("jupyter"), tmp_path_factory.mktemp("notebooks")
    (root / "head_split.ipynb").write_text(notebook(HEAD_SPLIT), "utf8")
    (root / "forward_pass.ipynb").write_text(notebook(FORWARD_PASS), "utf8")
    (root / "trace.ipynb").write_text(notebook(TRACE), "utf8")
    # older versions take out of the page what is scrolled out of sight
    settings = home / "settings/@jupyterlab/notebook-extension/tracker.jupyterlab-settings"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({"windowingMode": "none"}), "utf8")
    token = secrets.token_hex(16)
    command = [
        sys.executable,
        "-m",
        "jupyterlab",
        "--no-browser",
        "--allow-root",
        "--ip=127.0.0.1",
        "--port=0",
    ]
    options = [f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={root}", *OFFLINE]
    with (home / "log").open("w") as log:
        server = subprocess.Popen([*command, *options], env=private(home), stdout=log, stderr=log)
        try:
            start = address(server, home, token)
            yield lambda name: f"{start}lab/workspaces/{name}/tree/{name}.ipynb?token={token}&reset"
        finally:
            server.terminate()  # it ends its kernels first
            server.wait(PATIENCE)


@pytest.fixture
def run_notebook(lab, open_page, problems):
    """A function that opens one of the notebooks, runs it and returns its page."""

    def run_notebook(name, cells):
        page = open_page(lab(name), width=1400, height=1400)
        page.set_default_timeout(1000 * PATIENCE)
        expect(page.locator("#jp-main-statusbar")).to_contain_text("| Idle", timeout=1000 * PATIENCE)
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        last = page.locator(".jp-CodeCell .jp-InputArea-prompt").nth(cells - 1)
        expect(last).to_have_text(f"[{cells}]:", timeout=1000 * PATIENCE)
        return page

    yield run_notebook
    assert [problem for problem in problems if problem.startswith("uncaught")] == []
    problems.clear()  # what JupyterLab itself has to say to the console is not ours


def run(page, number):
    """Run one cell again; returns its output."""
    cell = page.locator(".jp-CodeCell").nth(number)
    before = cell.locator(".jp-InputArea-prompt").inner_text()
    cell.locator(".cm-content").click()
    page.keyboard.press("Control+Enter")
    prompt = cell.locator(".jp-InputArea-prompt")
    expect(prompt).not_to_have_text(before, timeout=1000 * PATIENCE)
    expect(prompt).not_to_have_text("[*]:", timeout=1000 * PATIENCE)
    return cell.locator(".jp-OutputArea-output")


def source(page, row, column):
    return page.locator(".labs-source tbody tr").nth(row).locator("td").nth(column)


def test_python_and_reader_see_the_same(run_notebook):
    page = run_notebook("head_split", len(HEAD_SPLIT))
    expect(page.locator(".labs-source .labs-cell")).to_have_count(40, timeout=1000 * PATIENCE)
    # the last cell of the notebook selected Q[1,4,7]
    expect(source(page, 4, 7)).to_have_attribute("aria-selected", "true")
    expect(page.locator(".labs-status")).to_contain_text("Q[1,4,7] lands at heads[1,1,4,3]")

    page.get_by_role("radio", name="0", exact=True).check()
    source(page, 2, 5).click()
    page.get_by_role("radio", name="direct reshape").check()
    expect(page.locator(".labs-verdict")).to_contain_text("16 of 80")
    expect(run(page, 1)).to_have_text("Python sees 21 0 direct values")

    page.get_by_label("show each number's origin").check()
    source(page, 2, 5).focus()
    active = page.locator(".jp-Cell").evaluate_all(ACTIVE)
    for key in ("ArrowDown", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    expect(source(page, 3, 6)).to_be_focused()
    assert page.locator(".jp-Cell").evaluate_all(ACTIVE) == active  # the keys were not the notebook's as well
    expect(run(page, 1)).to_have_text("Python sees 30 0 direct origins")

    source(page, 3, 6).focus()
    page.keyboard.press("Escape")
    expect(run(page, 1)).to_have_text("Python sees -1 0 direct origins")


def test_the_widgets_of_the_forward_pass_are_live(run_notebook):
    page = run_notebook("forward_pass", len(FORWARD_PASS))
    expect(page.locator(".labs-root")).to_have_count(3, timeout=1000 * PATIENCE)
    assert run(page, 3).inner_text().strip() == "Python sees keys True 4 False"

    page.get_by_role("radio", name="queries").check()
    page.get_by_role("checkbox", name="causal mask").uncheck()
    page.get_by_role("checkbox", name="wrong: pair the key by halves").check()
    slider = page.get_by_role("slider", name="query at m")
    slider.focus()
    slider.press("ArrowRight")
    expect(run(page, 3)).to_have_text("Python sees queries False 5 True")


def test_the_trace_is_walked(run_notebook):
    page = run_notebook("trace", len(TRACE))
    title, address = page.locator(".labs-trace-explorer .labs-title"), page.url
    expect(title).to_have_text("dscores [2,2,5,5] (B,H,T,T)", timeout=1000 * PATIENCE)  # the last cell
    expect(run(page, 1)).to_have_text("Python sees dscores 0 0 -1 0")

    page.locator(".labs-trace-explorer .labs-stop").filter(has_text="dq_rot").click()
    expect(title).to_have_text("dq_rot [2,2,5,4] (B,H,T,dh)")
    page.get_by_role("group", name="head").get_by_role("radio", name="1").check()
    page.locator(".labs-matrix td.labs-cell").nth(4 * 3 + 1).click()
    active = page.locator(".jp-Cell").evaluate_all(ACTIVE)
    page.keyboard.press("ArrowRight")
    expect(page.locator(".labs-placed")).to_contain_text("dq_rot[0,1,3,2] = ")
    assert page.locator(".jp-Cell").evaluate_all(ACTIVE) == active  # the key was not the notebook's as well
    expect(run(page, 1)).to_have_text(f"Python sees dq_rot 0 1 {3 * 4 + 2} 0")

    page.get_by_role("grid", name="dscores[0,1]").locator(".labs-read").first.click()
    expect(title).to_have_text("dscores [2,2,5,5] (B,H,T,T)")
    expect(run(page, 1)).to_have_text(f"Python sees dscores 0 1 {3 * 5} 1")
    slider = page.get_by_role("slider", name="step")
    slider.focus()
    slider.press("Home")
    expect(title).to_have_text("x [2,5,8] (B,T,D)")
    assert page.url == address  # it is JupyterLab's
