"""`heed export`: what is written, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from heedful.model import Decoder, preset, write_folder
from heedful.positions.encodings import Alibi
from heedful.tokenization import characters


@pytest.fixture
def model(tmp_path: Path) -> Path:
    tokenizer = characters("abc ")
    config = preset("tiny", vocabulary=tokenizer.size, context=16)
    write_folder(Decoder(config, seed=0), tmp_path / "model", tokenizer=tokenizer)
    return tmp_path / "model"


def test_a_table_says_what_was_written(heed, refused, model: Path, tmp_path: Path) -> None:
    shown = heed("export", model, "--to", "hf", tmp_path / "out", "--dtype", "bfloat16").out
    assert "huggingface, family llama" in shown
    assert "as bfloat16" in shown
    assert "model.safetensors" in shown
    record = heed("export", model, tmp_path / "own", "--to", "heedful", "--json").record
    assert record["form"] == "heedful"
    assert record["translates"] is None
    assert "heedful" in heed("model", "info", tmp_path / "own").out
    assert "exists already" in refused("export", model, tmp_path / "out").err
    assert "no such run" in refused("export", tmp_path / "no", tmp_path / "new").err
    assert "does not exist" in refused("export", model, tmp_path / "a" / "b").err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "out", "own"]


def test_a_setting_in_the_way_is_named(heed, refused, tmp_path: Path) -> None:
    write_folder(Decoder(preset("tiny").changed(positions=Alibi())), tmp_path / "model")
    said = refused("export", tmp_path / "model", tmp_path / "out").err
    assert "positions.kind is 'alibi'" in said
    assert "llama, has positions.kind = 'rotary'" in said
    assert "--to heedful" in said
    assert not (tmp_path / "out").exists()
    assert heed("export", tmp_path / "model", tmp_path / "out", "--to", "heedful").code == 0
