"""`heed intervene` and `heed lens`."""

from __future__ import annotations

from pathlib import Path

import pytest

from heedful.model import Decoder, preset, write_folder
from heedful.tokenization import characters


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model of letters."""
    tokenizer = characters("abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ.,?!'-\n")
    shape = preset("tiny", vocabulary=tokenizer.size, context=64, initial_std=0.3)
    place = tmp_path_factory.mktemp("models") / "letters"
    write_folder(Decoder(shape, seed=1), place, tokenizer=tokenizer)
    return place


@pytest.fixture
def story(tmp_path: Path) -> Path:
    """A text of letters."""
    path = tmp_path / "story.txt"
    path.write_text("\n".join(["the cat sat on the mat and looked at the moon"] * 20), "utf-8")
    return path


def test_the_verb_measures_and_judges(heed, folder: Path, story: Path) -> None:
    common = ("intervene", folder, "--text", story, "--tokens", 32, "--rows", 4)
    shown = heed(*common, "--ablate", "0.1", "--prompt", "the cat").out
    assert "ablate head 0.1" in shown
    assert "interval over texts" in shown
    record = heed(*common, "--ablate", "0.1", "--scale", "after.1=2", "--json").record
    assert record["effect"]["interventions"] == ["ablate head 0.1", "scale by 2 after of layer 1"]
    refused = heed(*common, "--ablate", "0.1", "--at-least", "50")
    assert refused.code == 1
    assert "refuted" in refused.out


def test_a_sheet_holds_every_kind(heed, folder: Path, story: Path, tmp_path: Path) -> None:
    sheet = tmp_path / "changes.toml"
    sheet.write_text(
        '[[intervention]]\ndo = "knock_out"\nlayer = 0\nkeys = [0]\nqueries = [3, 4]\n'
        '[[intervention]]\ndo = "patch"\nplace = "after"\nlayer = 1\npositions = [2]\n'
        'source = "another"\n',
        "utf-8",
    )
    common = ("intervene", folder, "--text", story, "--tokens", 32, "--rows", 4)
    record = heed(*common, "--sheet", sheet, "--json").record
    assert record["effect"]["interventions"] == [
        "knock out scores of layer 0",
        "patch after of layer 1",
    ]


def test_what_met_nothing_is_an_error_of_one_line(heed, folder: Path, story: Path) -> None:
    common = ("intervene", folder, "--text", story, "--tokens", 32, "--rows", 4)
    failed = heed(*common, "--ablate", "after.0@63")
    assert failed.code == 2
    assert "met nothing" in failed.err
    assert heed(*common).code == 2


def test_the_lens_shows_every_layer(heed, folder: Path) -> None:
    shown = heed("lens", folder, "the cat").out
    assert "layer 1" in shown
    assert "all together" in shown
    record = heed("lens", folder, "the cat", "--token", "a", "--against", "b", "--json").record
    assert record["attribution"]["against"] is not None
    assert heed("lens", folder, "the cat", "--token", "ab").code == 2
