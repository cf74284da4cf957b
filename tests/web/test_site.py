"""`heed site`: a folder that a plain file server serves from a subpath, and that asks nobody."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from browsing import PHONE, Visit, accessibility_problems, visiting
from playwright.sync_api import Browser, expect

from heedful.claims import Sheet
from heedful.claims.sheet import catalog
from heedful.cli.main import main
from heedful.errors import InputError
from heedful.files import SHIPPED
from heedful.web.answers import as_json
from heedful.web.app import built_folder
from heedful.web.attention_api import (
    ENCODINGS,
    DesignQuestion,
    NoiseQuestion,
    OrderQuestion,
    SceneQuestion,
    StudyQuestion,
    _design,
    _noise,
    _order,
    _scene,
    _study,
)
from heedful.web.site import BEAMS, MANIFEST, Site, write_site

pytest.importorskip("onnx")
SENTENCES = (
    "Où est la gare ?",
    "Je voudrais deux billets pour Paris, s’il vous plaît.",
    "Il pleut.",
    "Combien coûtent ces trois livres ?",
    "Elle n'a jamais vu la mer, et son frère non plus.",
    "« Bonjour », dit-il en ouvrant la porte.",
    "Nous partirons demain à 7 h 30.",
    "L'hôtel est fermé depuis 1987 !",
    "zut",
    "Le chat dort sur le canapé pendant que les enfants jouent dans le jardin.",
)


class Hosted(NamedTuple):
    """A site, and where a file server has it."""

    site: Site
    folder: Path
    address: str


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextlib.contextmanager
def hosted(folder: Path) -> Iterator[str]:
    """Serve a folder as `python -m http.server` does; give its address."""
    handler = functools.partial(_Quiet, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


QUICKLY_JUDGED = {
    "values.none", "average.two-keys", "002.2.1.a.scaled", "003.4.b", "003.4.a.note",
    "004.e.i.really",
}  # fmt: skip
"""Claims of `ours`, the shortest sheet of the catalog: proved, and supported by trials."""


@contextlib.contextmanager
def site_with(sheet: Sheet, factory: pytest.TempPathFactory) -> Iterator[Hosted]:
    """Write a site with one sheet, twice, below two folders of a host."""
    if not (built_folder() / "site" / "index.html").is_file():
        pytest.skip("the page was not built")
    root = factory.mktemp("host")
    folder = root / "course" / "attention"
    folder.parent.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(factory.mktemp("cache")))
        settings: Any = {"translator": SHIPPED["fr-en"], "beams": BEAMS}
        first = write_site(folder, sheets=[sheet], meter=lambda _: lambda *_: None, **settings)
        again = write_site(folder, sheets=[sheet], meter=lambda _: lambda *_: None, **settings)
    assert not first.kept_verdicts
    assert again.kept_verdicts
    assert sum(again.claims.values()) == len(sheet.claims)
    with hosted(root) as address:
        yield Hosted(again, folder, f"{address}/course/attention/")


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosted]:
    """Return a site with some claims of each kind of verdict that the sheet has."""
    sheet = next(one for one in catalog() if one.name == "ours")
    few = tuple(claim for claim in sheet.claims if claim.id in QUICKLY_JUDGED)
    with site_with(dataclasses.replace(sheet, claims=few), tmp_path_factory) as site:
        assert set(site.site.claims) == {"proved", "supported"}
        assert len(few) == len(QUICKLY_JUDGED)
        yield site


@contextlib.contextmanager
def at_home(browser: Browser, host: Hosted, view: str, **settings: Any) -> Iterator[Visit]:
    """Open a view; nothing may go wrong there, and no request may leave the site."""
    with visiting(browser, f"{host.address}#/{view}", **settings) as visit:
        asked: list[str] = []
        visit.page.on("request", lambda request: asked.append(request.url))
        yield visit
        assert visit.troubles == []
        away = [one for one in asked if not one.startswith((host.address, "data:", "blob:"))]
        assert away == []


def test_the_folder_is_small_and_whole(host: Hosted) -> None:
    written = json.loads((host.folder / MANIFEST).read_text("utf-8"))["files"]
    found = {
        path.relative_to(host.folder).as_posix(): path.stat().st_size
        for path in host.folder.rglob("*")
        if path.is_file() and path.name != MANIFEST
    }
    assert written == found
    assert sum(found.values()) == host.site.bytes < 25e6
    assert not list(host.folder.parent.glob(".*")), "something unfinished was left"


def test_a_folder_of_others_is_not_touched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    assert main(["site", str(tmp_path)]) == 2
    assert "no site of ours" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    with pytest.raises(InputError, match="does not exist"):
        write_site(tmp_path / "a" / "b", translator=tmp_path, beams=1, meter=lambda _: print)


def _asked(visit: Visit, path: str, question: dict[str, Any]) -> Any:
    return visit.page.evaluate(
        """async ([path, question]) => JSON.parse(JSON.stringify(await heedfulAsk(path, question),
            (_, value) => ArrayBuffer.isView(value) ? [...value] : value))""",
        [path, question],
    )


KEYS: list[dict[str, Any]] = [
    {"kind": "circle", "n": 8, "d": 2},
    {"kind": "orthonormal", "n": 6, "d": 7},
    {"kind": "simplex", "n": 5, "d": 4},
    {"kind": "sphere", "n": 12, "d": 3, "seed": 4},
    {"kind": "gaussian", "n": 9, "d": 2, "seed": 1},
    {"kind": "grid", "n": 9, "d": 2},
    {"kind": "grid", "n": 11, "d": 3},
]


def _scenes(visit: Visit) -> None:
    """Scenes: the same keys, the same plane but for its axes, the same keys that can be copied."""
    for place, keys in enumerate(KEYS):
        plane = ("auto", "round", "principal", "keys")[place % 4]
        question = {**keys, "plane": plane, "through": [0, 1] if plane == "keys" else []}
        question["values"] = "circle" if place % 2 else "keys"
        ours = json.loads(as_json(_scene(SceneQuestion(**question))))
        theirs = _asked(visit, "attention/scene", question)
        if keys["kind"] == "simplex":  # any turn of it will do
            np.testing.assert_allclose(*_grams(ours["keys"], theirs["keys"]), atol=1e-12)
            continue
        np.testing.assert_allclose(theirs["keys"], ours["keys"], atol=1e-12)
        assert theirs["copyable"] == ours["copyable"], question
        assert theirs["shown"] == pytest.approx(ours["shown"])


def _grams(*arrays: Any) -> list[Any]:
    return [np.asarray(one) @ np.asarray(one).T for one in arrays]


DESIGN = ("beta", "norm", "mass", "error")
CERTIFICATE = ("kind", "margin", "best_mass", "norm_lower_bound", "closed_form")
"""Not the cap and its floor: they follow from a combination of other keys, and there are many."""


def _designs(visit: Visit) -> None:
    """Designs: the same verdict, query length, mass and certificate."""
    for keys in KEYS:
        made = json.loads(as_json(_scene(SceneQuestion(**keys))))["keys"]
        for kind, of, scale, tolerance in (
            ("copy", [0], 1.0, 0.01),
            ("copy", [4], "sqrt_d", 0.2),
            ("average", [0, 1], 1.0, 0.001),
            ("average", [1, 3, 4], 1.0, 0.3),
            ("average", list(range(len(made))), 1.0, 0.1),
        ):
            question = {"kind": kind, "of": of, "scale": scale, "tolerance": tolerance}
            question["keys"] = made
            ours = json.loads(as_json(_design(DesignQuestion(**question))))["design"]
            theirs = _asked(visit, "attention/design", question)["design"]
            where = (keys, kind, of)
            assert theirs["feasible"] == ours["feasible"], where
            there, here = ({**one, **one["certificate"]} for one in (theirs, ours))
            for name in (*DESIGN, *CERTIFICATE):
                number = isinstance(here[name], int | float)
                near = pytest.approx(here[name], rel=1e-4, abs=1e-7) if number else here[name]
                assert there[name] == near, (where, name)
            if here["ceiling"] is not None:
                assert here["best_mass"] - 1e-6 <= there["ceiling"] < 1 - tolerance
                assert sum(there["combination"].values()) == pytest.approx(1.0)


def _noisy(visit: Visit) -> None:
    """Noise: the same exact figures; draws within their intervals; heads that are as robust."""
    rng = np.random.default_rng(3)
    for keys, isotropic in ((KEYS[0], 0.0), (KEYS[1], 0.0), (KEYS[4], 0.0), (KEYS[3], 0.05)):
        made = json.loads(as_json(_scene(SceneQuestion(**keys))))
        question: dict[str, Any] = {
            "keys": made["keys"], "values": made["values"], "scale": 1.0, "noisy": 1,
            "variance": 0.6, "isotropic": isotropic, "of": [0, 1],
        }  # fmt: skip
        heads = (8 * rng.standard_normal((3, len(made["keys"][0])))).tolist()
        more = {"layers": [heads[:1], heads], "radius": 0.3}
        ours = json.loads(as_json(_noise(NoiseQuestion(**question, **more, draws=20_000))))
        theirs = _asked(visit, "attention/noise", {**question, **more})
        for here, there in zip(ours["layers"], theirs["layers"], strict=True):
            exact = isotropic == 0
            assert there["method"] == here["method"] == ("exact" if exact else "sampled")
            loose = 1e-6 if exact else 0.05
            for name in ("weights_mean", "weights_std", "mean", "covariance", "target", "error"):
                np.testing.assert_allclose(there[name], here[name], atol=loose, err_msg=name)
            assert there["failure_low"] <= here["failure_high"] + 1e-12
            assert here["failure_low"] <= there["failure_high"] + 1e-12
            assert there["limit_failure"] == pytest.approx(here["limit_failure"], abs=1e-9)
        robust = {**question, "kind": "robust", "heads": 2, "norm": 20.0}
        best = json.loads(as_json(_design(DesignQuestion(**robust))))["heads"]
        found = _asked(visit, "attention/design", robust)["heads"]
        names = {one["name"]: one["error"] for one in best["comparison"]}
        for one in found["comparison"]:
            assert one["error"] == pytest.approx(names[one["name"]], rel=0.05, abs=1e-6)
        assert found["error"] <= 1.1 * best["error"] + 0.01


def test_attention_is_that_of_python(browser: Browser, host: Hosted) -> None:
    with at_home(browser, host, "attention") as visit:
        expect(visit.page.locator("[data-failure='0']")).to_contain_text("%")
        _scenes(visit)
        _designs(visit)
        _noisy(visit)
        visit.page.get_by_role("button", name="Average these").click()
        expect(visit.page.get_by_text("Possible.")).to_be_visible()


STATEMENTS_OF_TRIALS = ("rotary scores", "any two of", "φ(t + 1)")
"""Their figures are of other trials, or of rounding."""


def test_positions_are_those_of_python(browser: Browser, host: Hosted) -> None:
    with at_home(browser, host, "positions") as visit:
        expect(visit.page.get_by_text("What it promises")).to_be_visible()
        for encoding in ENCODINGS:
            question = {"kind": encoding["name"], "length": 300, "width": 16, "base": 500.0}
            ours = json.loads(as_json(_study(StudyQuestion(**question))))
            theirs = _asked(visit, "positions/study", question)
            for here, there in zip(ours["statements"], theirs["statements"], strict=True):
                if not here.startswith(STATEMENTS_OF_TRIALS):
                    assert there == here
            if ours["wavelengths"] is not None:
                waves = (theirs["wavelengths"]["lengths"], ours["wavelengths"]["lengths"])
                np.testing.assert_allclose(*waves)
            if ours["smallest_distance"] is not None:
                assert theirs["smallest_distance"]["gap"] == ours["smallest_distance"]["gap"]
        for positions, mask in ((False, False), (True, False), (False, True)):
            order = {"first": "le chat dort", "second": "dort le chat"}
            asked = {**order, "positions": positions, "mask": mask}
            ours = json.loads(as_json(_order(OrderQuestion(**asked))))
            theirs = _asked(visit, "positions/order", asked)
            for here, there in zip(ours["sentences"], theirs["sentences"], strict=True):
                np.testing.assert_allclose(there["weights"], here["weights"], atol=1e-12)
            assert theirs["law"]["holds"] == ours["law"]["holds"]
            assert theirs["mean_change"] == pytest.approx(ours["mean_change"], abs=1e-12)


@pytest.mark.long
def test_a_whole_sheet_comes_with_verdicts_and_explanations(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    sheet = next(one for one in catalog() if one.name == "ours")
    with site_with(sheet, tmp_path_factory) as site:
        test_claims_come_with_verdicts_and_explanations(browser, site)


def test_claims_come_with_verdicts_and_explanations(browser: Browser, host: Hosted) -> None:
    with at_home(browser, host, "claims") as visit:
        page = visit.page
        expect(page.locator("article.claim")).to_have_count(sum(host.site.claims.values()))
        page.get_by_text("Explanation", exact=True).first.click()
        expect(page.locator(".reasons[open] div.lines, .reasons[open] p").first).to_be_visible()
        assert accessibility_problems(page) == []
        page.get_by_role("tab", name="Assignment").click()
        expect(page.get_by_role("heading", name="Exploring attention")).to_be_visible()
        page.get_by_role("tab", name="Your own").click()
        expect(page.get_by_text("heed serve", exact=False).first).to_be_visible()


def test_the_translator_says_what_python_says(browser: Browser, host: Hosted) -> None:
    from heedful.studies.translation import Translator, align

    translator = Translator.open(SHIPPED["fr-en"], reverse=False)
    read = [text if text[-1] in ".!?" else f"{text}." for text in SENTENCES]
    known = list(translator.translate(read, beam=BEAMS, nbest=BEAMS))
    with at_home(browser, host, "models") as visit:
        page = visit.page
        for text, one in zip(SENTENCES, known, strict=True):
            page.get_by_label("French sentence").fill(text)
            page.get_by_role("button", name="Translate", exact=True).click()
            best = page.locator("ol[data-tokens]")
            expect(best).to_have_attribute("data-source", one.source)
            tokens = " ".join(map(str, one.hypotheses[0].tokens))
            assert best.get_attribute("data-tokens") == tokens, one.source
            assert page.locator("ol .text").first.inner_text() == one.text
        expect(page.get_by_role("button", name="Translate", exact=True)).to_be_enabled()
        links = align(translator, known[-1])
        expect(page.get_by_role("img", name="Alignment of a translation")).to_be_visible()
        shown = json.loads(str(best.get_attribute("data-links")))
        assert shown == list(links.links)
        heads = translator.decoder.config.layers * translator.decoder.config.attention.heads
        expect(page.locator(".grid button")).to_have_count(heads)
        assert accessibility_problems(page) == []


def test_from_a_disk_all_but_the_translator_works(browser: Browser, host: Hosted) -> None:
    with visiting(browser, f"{(host.folder / 'index.html').as_uri()}#/attention") as visit:
        page = visit.page
        expect(page.locator("[data-failure='0']")).to_contain_text("%")
        page.get_by_role("link", name="Claims").click()
        expect(page.locator("article.claim").first).to_be_visible()
        page.get_by_role("link", name="Translator").click()
        expect(page.get_by_role("alert")).to_contain_text("opened from a disk")
        assert visit.troubles == []


HEADINGS = {
    "attention": "Attention",
    "claims": "Claims",
    "positions": "Positions",
    "models": "Translator",
}


def test_a_phone_needs_no_sideways_scrolling(browser: Browser, host: Hosted) -> None:
    with at_home(browser, host, "attention", size=PHONE, colours="dark") as visit:
        page = visit.page
        for view, heading in HEADINGS.items():
            page.goto(f"{host.address}#/{view}")  # only the part after # is new: nothing is loaded
            expect(page.get_by_role("heading", level=1)).to_have_text(heading)
            assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0], view
