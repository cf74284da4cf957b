"""`heed translate`: line i out belongs to line i in."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from heedful.cli.main import main
from heedful.cli.options import LINE_BYTES, blocks_of_lines
from heedful.cli.translate import DEFAULT_BEAMS
from heedful.files import SHIPPED, SHIPPED_TOKENIZER
from heedful.studies.translation import Translator
from heedful.studies.translation.documents import translate_texts

TRAINING = """
steps = 3
tensorboard = false
[model]
preset = "tiny"
initial_std = 0.3
[schedule]
warmup = 1
[data]
source = "SOURCE"
size = 60
held_out = 20
rows = 4
width = 96
tokenizer = "bytes"
"""
LINES = ["Où est la gare ?", "", "Je suis ici.", "x\x07y", "a" * 100_000, "Все", "Oui."]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two short trainings: one on pairs, one on texts."""
    place = tmp_path_factory.mktemp("runs")
    for source in ("phrasebook", "biographies"):
        config = place / f"{source}.toml"
        config.write_text(TRAINING.replace("SOURCE", source), encoding="utf-8")
        assert main(["train", str(config), "--run", str(place / source), "--json"]) == 0
    return place


@pytest.fixture(scope="module")
def run(runs: Path) -> Path:
    return runs / "phrasebook"


@pytest.fixture(scope="module")
def texts(run: Path) -> list[str]:
    """What the function itself says."""
    return [one.text for one in translate_texts(Translator.open(run), LINES)]


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch):
    def give(content: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    return give


def test_texts_are_translated(heed, run: Path, texts: list[str]) -> None:
    assert heed("translate", run, LINES[0]).out == texts[0] + "\n"
    assert heed("translate", run, LINES[0], LINES[2]).out == f"{texts[0]}\n{texts[2]}\n"
    assert heed("translate", run, f"{LINES[0]}\n{LINES[2]}").out == f"{texts[0]}\n{texts[2]}\n"


def test_a_file_and_standard_input_keep_their_lines(
    heed, run: Path, texts: list[str], tmp_path: Path, stdin
) -> None:
    source, target = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("\n".join(LINES) + "\n", encoding="utf-8")
    expected = "\n".join(texts) + "\n"
    answer = heed("translate", run, "--file", source)
    assert (answer.code, answer.out) == (0, expected)
    warned = [line for line in answer.err.splitlines() if "left empty" in line]
    assert [line.split(":")[0] for line in warned] == ["line 4"]
    assert "line 6: 'Все' is not in Latin letters: it was left as it is" in answer.err
    assert len(texts[4]) > 1_000
    assert heed("translate", run, "--file", source, "--output", target).out == ""
    assert target.read_text(encoding="utf-8") == expected
    stdin(source.read_bytes())
    assert heed("translate", run).out == expected


def test_bytes_that_are_no_text_cost_their_line_only(heed, run: Path, texts, stdin) -> None:
    stdin(b"\xef\xbb\xbf" + LINES[0].encode() + b"\r\n\xff\xfe\nA\0B\n" + LINES[6].encode())
    answer = heed("translate", run)
    assert answer.out == f"{texts[0]}\n\n\n{texts[6]}\n"
    assert "line 2: is not UTF-8 (byte 0xFF, character 1); its" in answer.err
    assert "line 3: holds a control character (U+0000" in answer.err


def test_the_lines_of_a_subtitle_are_translated_together(heed, run: Path, tmp_path: Path) -> None:
    subtitles = tmp_path / "film.srt"
    subtitles.write_text("7\n00:00:01,000 --> 00:00:02,000\nJe suis\nici.\n", "utf-8")
    number, time, *rest = heed("translate", run, "--file", subtitles).out.splitlines()
    assert (number, time) == ("7", "00:00:01,000 --> 00:00:02,000")
    assert len(rest) == 2
    assert " ".join(rest).split() == heed("translate", run, "Je suis ici.").out.split()
    single = heed("translate", run, "--file", subtitles, "--no-paragraphs").out.splitlines()
    assert single[2:] == [heed("translate", run, line).out.strip() for line in ("Je suis", "ici.")]
    plain = tmp_path / "film.txt"
    subtitles.rename(plain)
    assert heed("translate", run, "--file", plain).out.splitlines() == single
    again = heed("translate", run, "--file", plain, "--paragraphs").out.splitlines()
    assert again == [number, time, *rest]


def test_strict_stops_and_writes_nothing(heed, run: Path, tmp_path: Path) -> None:
    source, target = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("Oui.\nx\x07y\n", encoding="utf-8")
    answer = heed("translate", run, "--file", source, "--output", target, "--strict")
    assert answer.code == 2
    assert "line 2: holds a control character" in answer.err
    assert [path.name for path in tmp_path.iterdir()] == ["in.txt"]


def test_standard_input_is_answered_line_by_line(run: Path, texts: list[str]) -> None:
    command = [sys.executable, "-m", "heedful", "translate", str(run)]
    environment = {**os.environ, "PYTHONUTF8": "1"}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        for place in (0, 2, 6):  # the next line is sent only after this one was answered
            child.stdin.write(LINES[place].encode() + b"\n")
            child.stdin.flush()
            assert child.stdout.readline().decode() == texts[place] + "\n"
        child.stdin.close()
        assert child.wait(30) == 0


def test_records_of_texts_and_of_lines(heed, run: Path, texts: list[str], stdin) -> None:
    words = ("--beam", 3, "--nbest", 3, "--json")
    record = heed("translate", run, LINES[0], *words, "--alignment").record
    (found,) = record["translations"]
    assert len(found["hypotheses"]) == 3
    assert found["text"] == found["hypotheses"][0]["text"]
    assert record["languages"] == ["fr", "en"]
    assert record["alignments"][0]["source_words"] == ["Où", "est", "la", "gare", "?"]
    stdin(f"{LINES[0]}\n\n".encode())
    lines = [json.loads(line) for line in heed("translate", run, *words).out.splitlines()]
    assert [line["line"] for line in lines] == [1, 2]
    assert lines[0]["hypotheses"][0]["text"] == found["text"]
    assert lines[1]["text"] == ""


def test_scores_and_links_in_columns(heed, run: Path, texts: list[str], stdin) -> None:
    stdin(f"{LINES[0]}\n\n{LINES[2]}\n".encode())
    rows = [row.split("\t") for row in heed("translate", run, "--alignment").out.splitlines()]
    assert [row[0] for row in rows] == ["1", "2", "3"]
    assert [row[4] for row in rows] == [texts[0], "", texts[2]]
    assert float(rows[0][2]) < 0
    assert all("-" in pair for pair in rows[0][5].split())
    assert rows[1][2:] == ["", "", "", ""]


def test_tables_and_the_figure(heed, run: Path, tmp_path: Path) -> None:
    shown = heed("translate", run, LINES[0], "--scores", "--alignment").out
    assert "per token" in shown
    assert "Where each word comes from" in shown
    for kind in ("svg", "png"):
        figure = tmp_path / f"words.{kind}"
        assert heed("translate", run, LINES[0], "--figure", figure).code == 0
        assert figure.stat().st_size > 2_000


def test_int8_says_so(heed, run: Path) -> None:
    record = heed("translate", run, LINES[0], "--int8", "--json").record
    assert record["settings"]["precision"] == "int8"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("x\x07",), "text: holds a control character"),
        (("Oui", "x\x07"), "text 2: holds a control character"),
        (("a" * 95, "--json"), "text: has 97 tokens with its marks"),
        (("a", "--file", "x"), "--file: was given together with texts"),
        (("a", "--output", "x"), "--output: was given together with texts"),
        (("--figure", "x.svg"), "--figure: needs a text"),
        (("a", "--figure", "x.gif"), "--figure: 'x.gif' ends in .gif"),
        (("a", "b", "--figure", "x.svg"), "--figure: was given 2 texts"),
        (("--file", "nowhere.txt"), "nowhere.txt: there is no such file"),
        (("a", "--beam", "0"), "--beam: is 0"),
        (("a", "--nbest", "2"), "--nbest: is 2; at most one for each of the 1 beams"),
        (("a", "--max-tokens", "0"), "--max-tokens: is 0"),
        (("a", "--length-penalty", "nan", "--beam", "2"), "length"),
        (("a", "--paragraphs", "--json"), "--paragraphs: was given together with what is said"),
    ],
)
def test_what_cannot_be_used_is_refused(refused, run: Path, words, said: str) -> None:
    assert said in refused("translate", run, *words).err


def test_without_a_run_the_model_of_the_package_translates(
    heed, refused, run: Path, monkeypatch: pytest.MonkeyPatch, stdin
) -> None:
    monkeypatch.setitem(SHIPPED, "fr-en", run / "model")
    expected = heed("translate", run, LINES[0], "--beam", DEFAULT_BEAMS).out
    for words in ((LINES[0],), ("fr-en", LINES[0]), (run, LINES[0], "--beam", DEFAULT_BEAMS)):
        assert heed("translate", *words).out == expected
    answer = heed("translate", LINES[0], LINES[0])
    assert answer.out == expected * 2
    named, *notes = answer.err.splitlines()
    assert named == "translated by fr-en, the French to English model that comes with Heedful"
    assert all(note.startswith(("text 1: ", "text 2: ")) for note in notes)
    assert heed("translate", "Oui").err.startswith(f"{named}\n")
    assert heed("translate", "").out == "\n"
    stdin(f"{LINES[0]}\n".encode())
    assert heed("translate").out == expected
    for name in ("runs/nowhere", "./nowhere", "x.gguf"):
        assert "no such file or folder" in refused("translate", name).err
    assert "heed translate fr-en TEXT" in refused("translate", "my-run", "Oui.").err


def test_the_model_of_the_package_is_small_and_translates(heed) -> None:
    files = [path for path in SHIPPED_TOKENIZER.parent.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 8_000_000
    for name in ("fr-en", "en-fr"):
        card = (SHIPPED[name] / "README.md").read_text("utf-8")
        assert "CC BY 2.0" in card
        assert "tatoeba.org" in card
    answer = heed("translate", "Où est la gare ?\n\n- Merci. Je suis ici.")
    first, empty, last = answer.out.rstrip("\n").split("\n")
    assert "station" in first
    assert empty == ""
    assert last.startswith("- Thank")
    assert last.endswith("here.")
    assert "gare" in heed("translate", "en-fr", "Where is the station?").out


def test_the_way_back_ranks_what_the_beams_find() -> None:
    sentences = [
        "Les tomates que tu as achetées hier au marché sont déjà pourries.",
        "Combien de temps faut-il pour apprendre à jouer de la harpe ?",
        "Le chat de la voisine dort sur notre canapé depuis ce matin.",
        "Ce livre est beaucoup trop difficile pour un enfant de six ans.",
        "Mon frère a perdu les clés de la voiture pendant le voyage.",
    ]
    alone = list(Translator.open("fr-en", reverse=False).translate(sentences, beam=16, nbest=16))
    translator = Translator.open("fr-en")
    both = list(translator.translate(sentences, beam=16, nbest=16))
    for one, ranked in zip(alone, both, strict=True):
        assert {each.text for each in ranked.hypotheses} == {each.text for each in one.hypotheses}
        order = [each.score for each in ranked.hypotheses]
        assert order == sorted(order, reverse=True)
        back = {each.text: each.reverse or -99.0 for each in ranked.hypotheses}
        # What is put before the likeliest text explains the source better, or has more words.
        first, second = (
            translator.format.ranking(text, back[text]) for text in (ranked.text, one.text)
        )
        assert first >= second
    assert [one.text for one in alone] != [one.text for one in both]


def test_a_run_of_another_study_is_refused(refused, runs: Path, tmp_path: Path) -> None:
    for place in (runs / "biographies", runs / "biographies" / "model"):
        assert "was not trained on pairs" in refused("translate", place, "Oui.").err
    assert "no such file or folder" in refused("translate", tmp_path / "no", "Oui.").err


def test_a_run_that_is_not_finished_translates_too(
    heed, refused, run: Path, texts: list[str], tmp_path: Path
) -> None:
    for name in ("config.json", "manifest.json", "checkpoints"):
        (tmp_path / name).symlink_to(run / name)
    assert heed("translate", tmp_path, LINES[0]).out == texts[0] + "\n"


def test_a_line_is_cut_short_rather_than_kept_forever() -> None:
    chunk = b"x" * 700_000
    ((first,), (second,)) = blocks_of_lines([chunk, chunk, chunk, b"\nab"])
    assert len(first) == LINE_BYTES
    assert second == "ab"
