"""Do the widgets work in JupyterLab? `python tests/jupyterlab.py`, about 5 minutes.

Installs the package with its extra `notebook` beside JupyterLab into a new environment, opens a
notebook in Chromium, drags the query of a widget with the mouse and reads it in the next cell.
Frame times, memory and requests to other hosts are measured. `--python` names an environment that
has both already; `--pictures` a folder for screenshots. Not part of the suite: JupyterLab is large.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "web")]

import browsing  # noqa: E402

START_SECONDS = 120.0
DRAG_SECONDS = 4.0
RECORDS = """\
given = {"query": "k_a + k_b", "keys": "orthonormal", "where": {"n": 10}}
inside = [[0, 0], [1, 0], [0, 1], [-1, -1]]
records = [
    h.attend([6, 6, 0, 0], n=4),
    h.design(average=[0, 1], n=10),
    h.design(copy=0, keys=inside),
    h.design(average=[0, 1], n=6, noisy={0: 0.5}),
    h.noise(["0+1"], n=10, noisy={0: 0.5}),
    h.noise(["0", "1"], n=10, noisy={0: 0.5}),
    h.claim("alpha_a >= 0.4", **given),
    h.claim("c ≈ (v_a + v_b)/2 within 0.02", **given),
    h.check_layer(lambda q, k, v: v, "attention"),
    h.check_layer(lambda n: [[True] * n] * n, "mask"),
]
for record in records:
    display(record)
print(len(records), "records")
"""
CELLS = [
    "import heedful as h\nplane = h.widgets.NoisyPlane(n=8, query=[6, 0])\nplane",
    "print('read', plane.query.tolist(), int(plane.weights.argmax()))",
    "plane.query = [0, -6]\nprint('set')",
    "import numpy as np\nrandom = np.random.default_rng(0)\n"
    "w = random.random((12, 12, 512, 512), dtype=np.float32)\n"
    "w = np.tril(w) ** 8\nw /= w.sum(-1, keepdims=True)\nheads = h.widgets.Heads(w)\nheads",
    "print('chosen', heads.layer, heads.head, round(float(heads.weights[5, :6].sum()), 3))",
    "given = {'query': 'k_a', 'keys': 'orthonormal', 'where': {'n': 10}}\n"
    "h.claim('alpha_a >= 0.9', **given).widget()",
    RECORDS,
]  # fmt: skip


def notebook() -> str:
    """Return the notebook as JSON."""
    cells = [
        {"cell_type": "code", "id": f"c{i}", "metadata": {}, "outputs": [], "execution_count": None,
         "source": source}
        for i, source in enumerate(CELLS)
    ]  # fmt: skip
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return json.dumps({"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5})


def installed(folder: Path) -> Path:
    """Install package and JupyterLab into a new environment; return its Python."""
    subprocess.run([sys.executable, "-m", "venv", folder / "environment"], check=True)
    python = folder / "environment" / "bin" / "python"
    wanted = [f"{ROOT}[notebook]", "jupyterlab>=4.6,<5"]
    subprocess.run([python, "-m", "pip", "install", "--quiet", *wanted], check=True)
    return python


@contextmanager
def jupyterlab(python: Path, folder: Path) -> Iterator[str]:
    """Start JupyterLab in a folder; yield its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    home = {"JUPYTER_CONFIG_DIR": str(folder / "config"), "JUPYTER_DATA_DIR": str(folder / "data"),
            "JUPYTERLAB_SETTINGS_DIR": str(folder / "settings"),
            "JUPYTERLAB_WORKSPACES_DIR": str(folder / "workspaces"),
            "IPYTHONDIR": str(folder / "ipython")}  # fmt: skip
    server = subprocess.Popen(
        [python, "-m", "jupyterlab", "--no-browser", "--allow-root", "--expose-app-in-browser",
         f"--ServerApp.port={port}", "--IdentityProvider.token=", "--ServerApp.ip=127.0.0.1",
         f"--ServerApp.root_dir={folder}", "--LabApp.check_for_updates_class="
         "jupyterlab.NeverCheckForUpdate", "--LabApp.news_url="],
        cwd=folder, env=os.environ | home, stdout=subprocess.DEVNULL,
        stderr=(folder / "server.log").open("w"),
    )  # fmt: skip
    address = f"http://127.0.0.1:{port}"
    try:
        ends = time.monotonic() + START_SECONDS
        while True:
            try:
                urllib.request.urlopen(f"{address}/api", timeout=2).close()
                break
            except OSError:
                if time.monotonic() > ends or server.poll() is not None:
                    raise SystemExit((folder / "server.log").read_text()[-2000:]) from None
                time.sleep(0.5)
        yield address
    finally:
        server.terminate()
        server.wait(timeout=30)


IDLE = """() => {
    const session = window.jupyterapp?.shell.currentWidget?.sessionContext?.session
    return session?.kernel?.status === 'idle'
}"""
RUN = """async (number) => {
    const notebook = window.jupyterapp.shell.currentWidget.content
    notebook.activeCellIndex = number
    await window.jupyterapp.commands.execute('notebook:run-cell')
    notebook.widgets[number].node.scrollIntoView({ block: 'start' })
    const outputs = notebook.widgets[number].model.outputs.toJSON()
    return outputs.map((one) => one.text ?? one.evalue ?? '').flat().join('')
}"""


def run_cell(page: Any, number: int) -> str:
    """Run a cell of the notebook; return what it printed when it has ended."""
    said: str = page.evaluate(RUN, number)
    page.wait_for_timeout(700)
    return said


def frames(taken: list[float]) -> str:
    """Return frame times in words."""
    ordered = sorted(taken)
    middle, late = ordered[len(ordered) // 2], ordered[int(0.95 * len(ordered))]
    return (
        f"{len(taken)} frames, half within {middle:.0f} ms, 19 of 20 within {late:.0f} ms, "
        f"longest {ordered[-1]:.0f} ms"
    )


def tried(page: Any, pictures: Path | None) -> None:
    """Use the widgets as a reader would, and print what was seen."""
    run_cell(page, 0)
    handle = page.locator("[data-query='0'] .handle")
    handle.wait_for(timeout=60_000)
    box = page.locator("svg[data-figure]").first.bounding_box()
    centre = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    grip = browsing.middle(page, "[data-query='0'] .handle")
    browsing.drag(page, grip, [(centre[0] + 30, centre[1] - 80), (centre[0], centre[1] - 95)])
    page.wait_for_timeout(500)
    read = json.loads(re.search(r"read (\[.*?\])", run_cell(page, 1))[1])  # type: ignore[index]
    assert abs(read[0]) < 0.2 < 1 < read[1], read
    print(f"dragged    upwards; the next cell reads q = ({read[0]:.2f}, {read[1]:.2f})", flush=True)
    run_cell(page, 2)
    page.locator("svg[data-figure]").first.scroll_into_view_if_needed()
    page.wait_for_timeout(500)
    box = page.locator("svg[data-figure]").first.bounding_box()
    below = browsing.middle(page, "[data-query='0'] .handle")[1] - (box["y"] + box["height"] / 2)
    assert below > 50, below
    print("set        q = (0, -6) in Python; the handle stands below the middle", flush=True)
    print(f"drag       {frames(browsing.frames_of_a_drag(page, DRAG_SECONDS))}", flush=True)
    if pictures:
        page.screenshot(path=pictures / "jupyterlab-plane.png")
    began = time.monotonic()
    run_cell(page, 3)
    canvas = page.locator("canvas[style*='min-width']").first
    canvas.wait_for(timeout=120_000)
    print(f"heads      12 x 12 heads of 512 tokens shown after {time.monotonic() - began:.1f} s")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    taken = browsing.frames_of_a_move(page, box, DRAG_SECONDS, radius=box["height"] / 3)
    print(f"heads      under the pointer: {frames(taken)}", flush=True)
    clicks = [(h, layer) for layer in range(0, 12, 4) for h in range(0, 12, 3)]

    def click(turn: int) -> None:
        h, layer = clicks[turn % len(clicks)]
        x, y = (h + 0.5) / 12 * box["width"], (layer + 0.5) / 12 * box["height"]
        page.mouse.click(box["x"] + x, box["y"] + y)

    taken = browsing.frames_while(page, click, DRAG_SECONDS)
    print(f"heads      another chosen, again and again: {frames(taken)}", flush=True)
    page.mouse.click(box["x"] + 7.5 / 12 * box["width"], box["y"] + 4.5 / 12 * box["height"])
    page.wait_for_timeout(1500)
    print(f"heads      {run_cell(page, 4).strip()}", flush=True)
    run_cell(page, 5)
    page.locator("article math").first.wait_for(timeout=60_000)
    assert "10 records" in run_cell(page, 6)
    memory = page.evaluate("() => performance.memory.usedJSHeapSize") / 1e6
    print(f"memory     {memory:.0f} MB of JavaScript, JupyterLab among them", flush=True)


def pictured(page: Any, pictures: Path) -> None:
    """Take the ten records and the plane, light and dark."""
    page.set_viewport_size({"width": 1200, "height": 5200})
    for theme in ("JupyterLab Light", "JupyterLab Dark"):
        order = "theme => window.jupyterapp.commands.execute('apputils:change-theme', { theme })"
        page.evaluate(order, theme)
        page.wait_for_timeout(2500)
        name = theme.split()[1].lower()
        page.screenshot(path=pictures / f"jupyterlab-{name}.png")


def main() -> None:
    """Install, open, try; print a line for each step."""
    parser = argparse.ArgumentParser(description="Try the widgets in JupyterLab.")
    parser.add_argument("--python", type=Path, help="of an environment with JupyterLab and us")
    parser.add_argument("--pictures", type=Path, help="where screenshots go")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="heedful-jupyterlab-") as place:
        folder = Path(place)
        python = options.python or installed(folder)
        # All cells stay in the page; by default those out of sight are taken out of it.
        tracker = folder / "settings" / "@jupyterlab" / "notebook-extension"
        tracker.mkdir(parents=True)
        (tracker / "tracker.jupyterlab-settings").write_text('{"windowingMode": "none"}')
        (folder / "note.ipynb").write_text(notebook(), encoding="utf-8")
        outside: list[str] = []
        with jupyterlab(python, folder) as address, browsing.chromium() as browser:
            page = browser.new_page(viewport={"width": 1200, "height": 950})

            def answer(route: Any) -> None:
                url = route.request.url
                if url.startswith((address, "data:", "blob:")):
                    route.continue_()
                else:
                    outside.append(url)
                    route.abort()

            page.route("**/*", answer)
            page.goto(f"{address}/lab/tree/note.ipynb")
            page.locator(".jp-Notebook .jp-Cell").first.wait_for(timeout=120_000)
            page.wait_for_function(IDLE, timeout=120_000)
            tried(page, options.pictures)
            print(
                f"outside    {len(outside)} requests {outside[:3] if outside else ''}", flush=True
            )
            if options.pictures:
                pictured(page, options.pictures)
    assert not outside


if __name__ == "__main__":
    main()
