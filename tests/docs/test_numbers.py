"""Every measured number of the documentation says where it is from, and what it says is true."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import measurements
import pytest

ROOT = Path(__file__).resolve().parents[2]


def load() -> ModuleType:
    """Import docs/numbers.py under a name that Python's own `numbers` does not have."""
    spec = importlib.util.spec_from_file_location("docs_numbers", ROOT / "docs" / "numbers.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["docs_numbers"] = module
    spec.loader.exec_module(module)
    return module


numbers = load()


def test_every_measured_number_names_its_record_or_source_or_is_printed_on_its_page() -> None:
    missing = [f"{block}: {', '.join(found)}" for block, found in numbers.unsourced()]
    assert not missing, "\n".join(missing) + "\nsee the head of docs/numbers.py for the ways"


def test_a_number_that_cites_a_record_is_in_it() -> None:
    wrong = [
        f"{block}: {', '.join(found)}: not in {', '.join(block.sources)}"
        for block, found in numbers.unlike_their_record()
    ]
    assert not wrong, "\n".join(wrong)


def test_every_note_names_something_that_there_is() -> None:
    assert not numbers.unknown_records()


def blocks_of(text: str, tmp_path: Path) -> list[object]:
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")
    return list(numbers.blocks(page))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("It reaches 52.9 BLEU.", ["52.9"]),
        ("It is right in 8 % of them.", ["8"]),
        ("It took 40 minutes.", ["40"]),
        ("There are 3,594 sources.", ["3,594"]),
        ("Two heads, 4 layers, figure 1.", []),
        ("See `0.123`, $x = 0.5$, [0.9](https://x.y), 2026-11-16, Python 3.11, 95 % interval.", []),
        ("```toml\nsteps = 4000\n```", []),
        ("It prints 0.95.\n\n```console\n$ heed x\nP 0.9493\n```", []),
        ("It prints 9.5 %.\n\n```console\n$ heed x\nP 0.0949\n```", []),
        ("It prints 0.96.\n\n```console\n$ heed x\nP 0.9493\n```", ["0.96"]),
    ],
)
def test_what_a_measured_number_is(text: str, found: list[str], tmp_path: Path) -> None:
    made = [number for block in blocks_of(text, tmp_path) for number in block.numbers]  # type: ignore[attr-defined]
    assert made == found


def test_a_note_holds_for_its_section_only(tmp_path: Path) -> None:
    text = (
        "# A\n\n## B\n\n<!-- figures: knowledge.json -->\n\nIt is 77.8 %.\n\n"
        "### C\n\nIt is 70.2 %.\n\n## D\n\nIt is 66.0 %.\n"
    )
    sourced = {
        block.numbers[0]: bool(block.sources)  # type: ignore[attr-defined]
        for block in blocks_of(text, tmp_path)
        if block.numbers  # type: ignore[attr-defined]
    }
    assert sourced == {"77.8": True, "70.2": True, "66.0": False}


def test_figures_taken_under_load_are_marked() -> None:
    for path in sorted(measurements.RESULTS.glob("*.json")):
        result = json.loads(path.read_text("utf-8"))
        if not isinstance(result, dict):
            continue
        known = measurements.load_of(result)
        quiet = known is not None and known[0] <= 0.5
        assert bool(measurements.under_load(result)) == (not quiet), path.name
    for load, marked in ((28.6, True), (0.8, True), (0.4, False)):
        mark = measurements.under_load({"machine": {"cores": 2, "load": load}})
        assert ("under load" in mark) is marked


def test_what_stands_beside_the_score_of_tatoeba() -> None:
    for page in numbers.pages():
        text = page.read_text("utf-8")
        if "52.9" in text and "Tatoeba" in text:
            assert "927 of the 3,594" in text, page
            assert "one substituted word away" in text
    results = (ROOT / "docs" / "translation_results.md").read_text("utf-8")
    opus = next(line for line in results.split("\n\n") if "OPUS-MT" in line)
    assert "huggingface.co" in opus
    assert "own domain" in opus


def test_the_fairer_recipe_is_the_headline() -> None:
    page = (ROOT / "docs" / "knowledge_results.md").read_text("utf-8")
    assert "494 of the 500 test questions" in page
    trained = (("cues", "float32"), ("drop", "float32"), ("ours", "bfloat16"))
    places = [page.index(f"| `{recipe}`, {kind}, rotary positions |") for recipe, kind in trained]
    assert places == sorted(places)
    assert page.index("- `cues` (") < page.index("- `drop` (") < page.index("- `ours` (")
    for unsourced in ("36.4 %", "19 to 27"):
        assert unsourced not in page
