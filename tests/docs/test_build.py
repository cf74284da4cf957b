"""The site builds without a warning and reads offline."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from lxml import html

DOCS = Path(__file__).resolve().parents[2] / "docs"
# Everything a browser fetches by itself; a link that a reader clicks may lead anywhere.
FETCHED = (
    "//script/@src | //link[not(@rel='canonical')]/@href | //img/@src | //img/@srcset"
    " | //source/@src | //iframe/@src | //video/@src | //audio/@src | //object/@data"
    " | //*[local-name()='use' or local-name()='image']/@href"
)
OUTSIDE = re.compile(r"^\s*(?:[a-z]+:)?//", re.IGNORECASE)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site as strictly as Sphinx can, outside the tree."""
    folder = tmp_path_factory.mktemp("site")
    finished = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "-n", "--keep-going", "-q",
         "-d", str(folder / "doctrees"), "-b", "html", str(DOCS), str(folder / "html")],
        capture_output=True,
        encoding="utf-8",
        timeout=600,
        check=False,
    )  # fmt: skip
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return folder / "html"


def test_no_page_fetches_anything_from_outside(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert pages
    found = [
        f"{page.relative_to(site)}: {address}"
        for page in pages
        for address in html.parse(page).xpath(FETCHED)
        if OUTSIDE.match(address)
    ]
    assert not found, "\n".join(found)


def test_no_style_fetches_anything_from_outside(site: Path) -> None:
    address = re.compile(r"(?:url\(|@import)\s*[\"']?\s*((?:https?:)?//[^\"')\s]+)")
    found = [
        f"{sheet.relative_to(site)}: {match}"
        for sheet in [*site.rglob("*.css"), *site.rglob("*.html")]
        for match in address.findall(sheet.read_text("utf-8"))
    ]
    assert not found, "\n".join(found)


def test_formulas_are_drawn_into_the_page(site: Path) -> None:
    for name in ("copying", "averaging", "noise", "heads", "kqv", "permutation", "positions"):
        page = html.parse(site / "maths" / f"{name}.html")
        drawn = page.xpath("//*[local-name()='svg' and @class='formula']")
        assert drawn
        assert all(formula.get("aria-label") for formula in drawn)
        assert all(formula.get("fill") == "currentColor" for formula in drawn)
        prose = " ".join(page.xpath("//article//p//text()"))
        assert "$" not in prose
        assert "\\" not in prose
