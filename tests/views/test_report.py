"""`heed lab` as a user runs it: one offline page, kept parts, and clear refusals."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest

from heedful.cli.main import main
from heedful.data.synthetic.phrasebook import phrasebook
from heedful.model.weights.published import cached_path
from heedful.studies.conclusions import calculated
from heedful.studies.knowledge.stored import stored_measurement
from heedful.studies.lab import (
    SUMMARY,
    Laboratory,
    PartRecord,
    lab_record,
    translation_settings,
)
from heedful.studies.translation.corpus import read_study_corpus
from heedful.views.blocks import Section, group
from heedful.views.html import maths
from heedful.views.report import part_of, write_report


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("lab")
    assert main(["lab", "--output", str(output), "--only", "positions"]) == 0
    return output


def test_the_page_is_one_file_that_asks_for_nothing_outside(folder: Path) -> None:
    page = (folder / "report.html").read_text(encoding="utf-8")

    assert "<script" not in page
    assert not re.search(r"(?:src|href)=[\"'](?!#|data:)", page)
    assert "url(http" not in page
    assert "@import" not in page
    assert "default-src 'none'" in page
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))


def test_a_finished_part_is_kept_and_a_broken_one_is_run_again(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lab", "--output", str(folder), "--only", "positions", "--json"]) == 0
    said = capsys.readouterr()
    assert "kept from an earlier run" in said.err
    record = json.loads(said.out)
    assert record["parts"][0]["name"] == "positions"
    assert record["findings"]

    (folder / "parts" / "positions.json").write_text("{ half")
    assert main(["lab", "--output", str(folder), "--only", "positions"]) == 0
    assert "kept" not in capsys.readouterr().err


def test_an_unknown_part_and_a_file_in_the_way_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lab", "--output", str(tmp_path / "x"), "--only", "atention"]) == 2
    assert not (tmp_path / "x").exists()
    (tmp_path / "file").write_text("")
    assert main(["lab", "--output", str(tmp_path / "file")]) == 2
    assert len(capsys.readouterr().err.strip().split("\n")) == 2


def part(name: str, findings: int = 4) -> PartRecord:
    section = Section(
        name=name,
        title=name.title(),
        lead="What was asked.",
        blocks=(group("Block"),),
        findings=tuple(calculated(f"{name} {number} was found.") for number in range(findings)),
        seconds=75.0,
    )
    return replace(part_of(section, section_record()), command=f"heed lab --only {name}")


def section_record() -> PartRecord:
    return PartRecord(name="", title="", findings=(), seconds=0.0, html="", record={})


def test_the_summary_has_the_weightiest_findings_and_each_part_its_time_and_command(
    tmp_path: Path,
) -> None:
    parts = (part("attention"), part("claims", 1))
    assert lab_record(Laboratory(output=tmp_path), parts, tmp_path).summary == (
        "attention 0 was found.", "attention 1 was found.", "claims 0 was found.",
    )  # fmt: skip
    path = write_report(tmp_path, parts, command="heed lab --scale quick", notice="Only a try.")
    page = path.read_text(encoding="utf-8")
    top, rest = page.split('id="attention"')
    assert "Only a try." in top
    assert top.count("was found.") == SUMMARY + 1
    assert "attention 3 was found." in rest
    assert rest.count("1 min 15 s") == 2
    for name in ("attention", "claims"):
        assert f"<code>heed lab --only {name}</code>" in rest
    assert "<code>heed lab --scale quick</code>" in rest
    assert "@media print" in page


def test_the_contents_stay_and_lead_to_every_heading_and_one_of_each_part_is_unfolded(
    folder: Path,
) -> None:
    page = (folder / "report.html").read_text(encoding="utf-8")
    contents = page[page.index("<nav") : page.index("</nav>")]
    links = re.findall(r'href="#([^"]+)"', contents)
    assert links == ["summary", "positions", "positions-0", "positions-1"]
    assert all(f'id="{link}"' in page for link in links)
    folded = re.findall(r"<details( open)?>\n<summary><h3>", page)
    assert folded == [" open", ""]
    assert "position: sticky" in page
    # Browsers hide what is folded by `content-visibility`; paper has no headings to click.
    printed = page[page.index("@media print") :]
    assert "details::details-content { content-visibility: visible" in printed


def test_a_section_shows_its_first_findings_and_folds_the_rest() -> None:
    said = part("attention", findings=5).html
    shown, rest = said.split('<details class="more">')
    assert shown.count("was found.") == 3
    assert "2 more findings" in rest
    assert rest.count("was found.") == 2


def test_another_scale_is_another_result(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["lab", "--output", str(folder), "--only", "positions", "--json", "--scale", "quick"]
    assert main(asked) == 0
    said = capsys.readouterr()
    assert "kept" not in said.err
    record = json.loads(said.out)
    assert record["scale"] == "quick"
    assert record["parts"][0]["command"] == "heed lab --only positions --scale quick"
    assert record["summary"] == record["findings"][:SUMMARY]
    assert "only try the machinery" in (folder / "report.html").read_text("utf-8")


def test_a_corpus_is_known_by_its_content(tmp_path: Path) -> None:
    file = tmp_path / "pairs.tsv"
    file.write_text("oui\tyes\n", encoding="utf-8")
    bench = Laboratory(output=tmp_path, scale="quick", corpus=(file,))
    before = bench.decisive(("scale", "corpus"))
    assert before.keys() == {"scale", "corpus"}
    assert bench.decisive(()) == {}
    file.write_text("non\tno\n", encoding="utf-8")
    assert bench.decisive(("scale", "corpus")) != before
    assert bench.command("translation").endswith(f"--scale quick --corpus {file}")
    assert "--corpus" not in bench.command("claims")


def test_a_missing_corpus_is_refused_before_anything_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["lab", "--output", str(tmp_path / "x"), "--corpus", str(tmp_path / "none.tsv")]
    assert main(asked) == 2
    assert "--corpus" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_sizes_fit_the_corpus(tmp_path: Path) -> None:
    file = tmp_path / "pairs.tsv"
    pairs = phrasebook(600, held_out=20).train
    lines = "".join(f"{pair.french}\t{pair.english}\n" for pair in pairs)
    file.write_text(lines, encoding="utf-8")
    quick = Laboratory(output=tmp_path, scale="quick", corpus=(file,))
    small = translation_settings(quick)
    assert small.corpus == (str(file),)
    assert small.sizes == (200, 400)
    course = translation_settings(Laboratory(output=tmp_path, scale="course"))
    standard = translation_settings(Laboratory(output=tmp_path, scale="standard"))
    assert course.sizes[-1] > standard.sizes[-1]


def test_the_scale_of_the_course_takes_all_pairs_of_a_corpus(tmp_path: Path) -> None:
    file = tmp_path / "pairs.tsv"
    pairs = phrasebook(3_000, held_out=20).train
    lines = "".join(f"{pair.french}\t{pair.english}\n" for pair in pairs)
    file.write_text(lines, encoding="utf-8")
    corpus = translation_settings(Laboratory(output=tmp_path, scale="course", corpus=(file,)))
    *few, everything = corpus.sizes
    assert everything > few[-1]
    assert len(read_study_corpus(corpus).train) == everything
    usual = translation_settings(Laboratory(output=tmp_path, scale="course"))
    assert corpus.scratch.steps > usual.scratch.steps
    assert corpus.scratch.steps_for(few[-1] / everything) == usual.scratch.steps


def test_subscripts_are_set_and_the_rest_is_escaped() -> None:
    assert maths("<b> mu_a & x_12 W_Q k_ab multiple") == (
        "&lt;b&gt; <i>μ</i><sub>a</sub> &amp; x_12 <i>W</i><sub>Q</sub> k_ab multiple"
    )


def test_a_public_model_takes_part_only_where_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    plain = translation_settings(Laboratory(output=tmp_path))
    cached = cached_path("smollm2")
    cached.parent.mkdir(parents=True)
    cached.write_bytes(b"")
    assert translation_settings(Laboratory(output=tmp_path)) == plain
    assert plain.elsewhere.model is None
    lab = Laboratory(output=tmp_path, model="smollm2")
    named = translation_settings(lab).elsewhere
    assert (named.model, named.sizes) == ("smollm2", (500,))
    assert lab.command("translation").endswith("--model smollm2")
    assert lab.decisive(("model",)) == {"model": "smollm2"}


def test_a_public_model_is_shown_as_a_stored_measurement_whatever_lies_in_a_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = []
    for cache in ("empty", "full"):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / cache))
        if cache == "full":
            cached_path("smollm2").parent.mkdir(parents=True)
            cached_path("smollm2").write_bytes(b"no model")
        output = tmp_path / f"lab-{cache}"
        assert main(["lab", "--output", str(output), "--only", "pretrained"]) == 0
        page = (output / "report.html").read_text("utf-8")
        pages.append(page[page.index("<h2>A model that others") : page.index('<p class="time">')])
    assert pages[0] == pages[1]
    text = " ".join(re.sub("<[^>]+>", " ", pages[0]).split())
    stored = stored_measurement()
    assert "it was not made by this run" in text
    assert stored.date in text
    assert stored.command in text
    for one in stored.calibration.levels:
        assert f"{one.level} {one.questions} {one.right} (" in text
    for one in stored.examples:
        assert one.question in unescape(text)
        assert one.answer in unescape(text)
    assert "No promise that at most 20 % of the answers called known are wrong" in text
    for part in ("(a)", "(b)", "(c)"):
        assert part in text
