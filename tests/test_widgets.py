"""Widgets of notebooks: what is dragged there is read here, and what is set here is drawn there.

A page of our own stands in for the notebook: it loads the script of the package and gives it a
model, as anywidget does. `python tests/jupyterlab.py` does the same in JupyterLab.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import browsing
import numpy as np
import pytest
from playwright.sync_api import Page

import heedful as h
from heedful import widgets
from heedful.errors import InputError

HOST = "http://notebook.test/"
PAGE = """<!doctype html><meta charset="utf-8"><body data-jp-theme-light="true">
<script type="module">
  import widget from './widgets.js'
  window.show = (state, buffers) => {
    for (const [name, text] of Object.entries(buffers))
      state[name] = new DataView(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer)
    const heard = {}
    window.saved = 0
    window.model = {
      get: (name) => state[name], set: (name, value) => { state[name] = value },
      save_changes: () => { window.saved += 1 },
      on: (event, call) => (heard[event] ??= []).push(call),
      off: (event, call) => { heard[event] = heard[event].filter((one) => one !== call) },
      tell: (name, value) => {
        state[name] = value
        for (const call of heard[`change:${name}`] ?? []) call()
      },
    }
    const el = document.createElement('div')
    document.body.replaceChildren(el)
    window.close_widget = widget.render({ model: window.model, el })
  }
  window.ready = true
</script>"""


@pytest.fixture(scope="module")
def notebook() -> Iterator[Page]:
    if not widgets.BUNDLE.is_file():
        pytest.skip("the widgets were not built")
    with browsing.chromium() as browser:
        page = browser.new_page(viewport={"width": 900, "height": 1000})
        troubles: list[str] = []
        page.on("pageerror", lambda error: troubles.append(str(error)))

        def answer(route: Any) -> None:
            address = route.request.url
            if address == HOST:
                route.fulfill(body=PAGE, content_type="text/html")
            elif address == f"{HOST}widgets.js":
                route.fulfill(body=widgets.BUNDLE.read_bytes(), content_type="text/javascript")
            elif not address.startswith("data:"):
                troubles.append(f"asked for {address}")
                route.abort()

        page.route("**/*", answer)
        page.goto(HOST)
        page.wait_for_function("() => window.ready")
        yield page
        assert not troubles, troubles


def show(page: Page, widget: Any) -> None:
    """Draw a widget as it stands, with the state that Python would send."""
    import base64

    state, buffers = {}, {}
    for name, value in widget.get_state().items():
        if isinstance(value, bytes | memoryview):
            buffers[name] = base64.b64encode(value).decode()
        elif name != "_esm":
            state[name] = value
    page.evaluate("([state, buffers]) => window.show(state, buffers)", [state, buffers])


def shared(page: Page, name: str) -> Any:
    return page.evaluate("(name) => window.model.get(name)", name)


def test_a_query_is_dragged_and_read_and_set(notebook: Page) -> None:
    plane = widgets.Plane(n=8, query=[6, 0])
    show(notebook, plane)
    x, y = browsing.middle(notebook, "[data-query='0'] .handle")
    box = notebook.locator("svg[data-figure]").first.bounding_box()
    assert box is not None
    centre = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    browsing.drag(notebook, (x, y), [(centre[0] + 20, centre[1] - 60), (centre[0], centre[1] - 90)])
    notebook.wait_for_function("() => window.saved > 0")
    plane.queries = shared(notebook, "queries")
    assert plane.query[1] > 1
    assert abs(plane.query[0]) < 0.1
    assert plane.weights.argmax() == 2  # the key above

    before = notebook.locator("[data-query='0'] .handle").get_attribute("cx")
    notebook.evaluate("() => window.model.tell('queries', [[-6, 0]])")
    notebook.wait_for_function(
        "before => document.body.firstChild.firstChild.shadowRoot"
        ".querySelector('[data-query] .handle').getAttribute('cx') !== before",
        arg=before,
    )
    assert browsing.middle(notebook, "[data-query='0'] .handle")[0] < centre[0] - 50


def test_the_drawn_weights_are_those_of_python(notebook: Page) -> None:
    keys = np.random.default_rng(0).standard_normal((5, 4))
    plane = widgets.Plane(keys, [[1.0, 2, 0, -1], [0, 1, 1, 0]], scale="sqrt_d")
    show(notebook, plane)
    labels = notebook.locator(".key").evaluate_all("all => all.map(one => one.ariaLabel)")
    drawn = [float(label.split("weight ")[1].split(" %")[0]) / 100 for label in labels]
    assert drawn == pytest.approx(list(plane.weights.mean(0)), abs=6e-4)


def test_noise_is_drawn_there_and_worked_out_here(notebook: Page) -> None:
    noise = widgets.NoisyPlane(n=8, query=[30, 30], variance=0.5)
    show(notebook, noise)
    shown = notebook.locator("[data-failure]").inner_text()
    assert float(shown.rstrip(" %")) / 100 == pytest.approx(
        noise.study.exact.failure_probability, abs=6e-3
    )
    noise.variance = 0.0
    assert noise._exact["failure"] == pytest.approx(noise.study.exact.failure_probability)


def test_heads_are_chosen_there_and_sent_from_here(notebook: Page) -> None:
    random = np.random.default_rng(1).random((3, 4, 60, 60))
    heads = widgets.Heads(random / random.sum(-1, keepdims=True))
    show(notebook, heads)
    box = notebook.locator("canvas").bounding_box()
    assert box is not None
    notebook.mouse.click(box["x"] + box["width"] * 0.6, box["y"] + box["height"] * 0.5)
    assert (shared(notebook, "layer"), shared(notebook, "head")) == (1, 2)
    heads.layer, heads.head = 1, 2
    assert np.array_equal(
        np.frombuffer(heads._weights, np.float32).reshape(60, 60), heads.weights.astype(np.float32)
    )
    with pytest.raises(InputError, match="0 to 2"):
        heads.layer = 3


def test_cells_keys_and_claims_are_clicked(notebook: Page) -> None:
    show(notebook, widgets.HeatMap(np.arange(12.0).reshape(3, 4)))
    box = notebook.locator("image").first.bounding_box()
    assert box is not None
    notebook.mouse.click(box["x"] + 0.9 * box["width"], box["y"] + 0.5 * box["height"])
    assert shared(notebook, "cell") == [1, 3]
    show(notebook, h.attend([6, 6, 0, 0], n=4).widget())
    notebook.get_by_label("key 2", exact=True).click()
    assert shared(notebook, "chosen") == [2]
    claims = h.claim("alpha_a >= 0.9", query="k_a", keys="orthonormal", where={"n": 10}).widget()
    show(notebook, claims)
    assert "refuted" in notebook.locator("article").inner_text()
    assert notebook.locator("math").count() == 1
    notebook.get_by_role("button", name="claim", exact=True).click()
    assert shared(notebook, "chosen") == 0


@pytest.mark.parametrize(
    ("attributes", "colours"),
    [
        ({"data-jp-theme-light": "false"}, "dark"),
        ({"data-jp-theme-light": "true"}, "light"),
        ({"data-vscode-theme-kind": "vscode-dark"}, "dark"),
        ({"data-vscode-theme-kind": "vscode-high-contrast-light"}, "light"),
    ],
)
def test_the_colours_are_those_of_the_notebook(notebook: Page, attributes, colours: str) -> None:
    show(notebook, widgets.Weights([0.2, 0.8]))
    notebook.evaluate(
        """given => {
            for (const name of ['data-jp-theme-light', 'data-vscode-theme-kind'])
                document.body.toggleAttribute(name, name in given)
            for (const [name, value] of Object.entries(given))
                document.body.setAttribute(name, value)
        }""",
        attributes,
    )
    notebook.wait_for_function(
        "colours => document.body.firstChild.firstChild.dataset.theme === colours", arg=colours
    )
    paper = notebook.locator(".widget").evaluate("one => getComputedStyle(one).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") == (colours == "light")


def test_without_anywidget_it_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['anywidget'] = None\n"
        "import heedful as h\n"
        "try: h.widgets\n"
        "except h.HeedfulError as error: print(error)\n"
        "print(h.attend([1, 0], n=2).weights.sum())"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8")
    assert "pip install 'heedful[notebook]'" in said.stdout, said.stderr
    assert said.stdout.endswith("1.0\n")


def test_a_record_without_a_widget_says_which_have_one() -> None:
    with pytest.raises(InputError, match="AttentionResult, Trace, Verdict or CheckReport"):
        h.design(copy=1, n=4).widget()
    with pytest.raises(InputError, match="2, as the keys have"):
        widgets.Plane(n=4, query=[1, 2, 3])


def test_what_is_shared_is_plain_json() -> None:
    plane = widgets.Plane(np.eye(3, dtype=np.float32), np.ones(3, np.float32))
    state = {name: getattr(plane, name) for name in ("key_rows", "queries", "_plane", "_copyable")}
    assert json.loads(json.dumps(state)) == state
