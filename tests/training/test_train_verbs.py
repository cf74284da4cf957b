"""`heed train`, `heed resume` and `heed runs`, from the outside."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import forked
import pytest

from heedful.cli.main import main

TEXT = """
steps = 8
save_every = 3
evaluate_every = 4
log_every = 1
tensorboard = false
[model]
preset = "tiny"
width = 32
layers = 1
dropout = { residual = 0.1 }
[schedule]
warmup = 2
[data]
source = "SOURCE"
size = 60
held_out = 20
rows = 4
width = 64
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for source in ("phrasebook", "biographies"):
        text = TEXT.replace("SOURCE", source)
        (tmp_path / f"{source}.toml").write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("source", ["phrasebook", "biographies"])
def test_an_embedded_corpus_is_trained_on(
    source: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", f"{source}.toml", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["finished"]
    assert record["evaluations"][-1]["step"] == 8
    assert main(["model", "info", f"runs/{source}/model", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tokenizer_size"] > 20
    assert main(["resume", f"runs/{source}", "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["weights_sha256"] == record["weights_sha256"]
    for inside in ("model", "checkpoints/step-00000008", "nothing", "result.json"):
        assert main(["resume", f"runs/{source}/{inside}"]) == 2
        assert "is no run" in capsys.readouterr().err
    # A run that is there is refused before its corpus is read.
    assert main(["train", f"{source}.toml", "--set", "data.size=1_000_000_000"]) == 2
    assert "heed resume" in capsys.readouterr().err
    assert main(["runs", "--json"]) == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert (run["state"], run["step"]) == ("finished", 8)
    assert main(["runs"]) == 0
    assert f"runs/{source}" in capsys.readouterr().out


def test_settings_of_the_command_line_take_the_place_of_the_files(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changes = ["steps=3", "optimiser.kind=muon", "data.rows = 2"]
    assert main(["train", "phrasebook.toml", "--folder", "changed", "--set", *changes]) == 0
    config = json.loads((place / "changed" / "config.json").read_text("utf-8"))
    assert (config["steps"], config["save_every"]) == (3, 3)
    assert (config["optimiser"]["kind"], config["data"]["rows"]) == ("muon", 2)
    assert config["data"]["width"] == 64
    capsys.readouterr()
    for wrong in ("steps", "steps=", "=3", "steps=0", "rows=4", "data.rows=many", "a b=3"):
        assert main(["train", "phrasebook.toml", "--set", wrong]) == 2, wrong
        assert capsys.readouterr().err.count("\n") == 1
    assert not (place / "runs").exists()


def test_files_of_pairs_are_trained_on(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [f"le chat {number}\tthe cat {number}" for number in range(90)]
    (place / "cats.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    text = TEXT.replace('"SOURCE"', '"files"\nfiles = ["cats.tsv"]\nlayout = "bucketed"')
    (place / "cats.toml").write_text(text, encoding="utf-8")
    assert main(["train", "cats.toml"]) == 0
    shown = capsys.readouterr().out
    assert "SHA-256 of the weights" in shown
    manifest = json.loads((place / "runs" / "cats" / "manifest.json").read_text("utf-8"))
    assert any(name.startswith("file ") for name in manifest["data"])
    dogs = [f"le chien {number}\tthe dog {number}" for number in range(90)]
    for changed in (lines[::-1], dogs):
        (place / "cats.tsv").write_text("\n".join(changed) + "\n", encoding="utf-8")
        assert main(["resume", "runs/cats"]) == 2
        assert "as when the run began" in capsys.readouterr().err


def test_two_runs_are_compared(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for source in ("phrasebook", "biographies"):
        assert main(["train", f"{source}.toml"]) == 0
    capsys.readouterr()
    assert main(["runs", "compare", "runs/phrasebook", "runs/biographies"]) == 0
    shown = capsys.readouterr().out
    assert "data.source" in shown
    assert "different weights" in shown


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (('source = "SOURCE"', ""), "source"),
        (('"SOURCE"', '"poems"'), "poems"),
        (('"SOURCE"', '"files"'), "files"),
        (('"SOURCE"', '"files"\nfiles = ["none.tsv"]'), "none.tsv"),
        (('"SOURCE"', '"phrasebook"\nfiles = ["x"]'), "files"),
        (("size = 60", "size = -1"), "size"),
        (("steps = 8", "steps = 2"), "warmup"),
        (("layers = 1", "layers = 1\nvocabulary = 3"), "token id"),
        (("rows = 4", "rowz = 4"), "data.rowz: is no setting; did you mean rows?"),
        (("warmup = 2", "warmup = -2"), "schedule.warmup: is -2"),
        (("steps = 8", 'steps = "many"'), "steps: is 'many'"),
        (("log_every", "hog_every"), "hog_every: is no setting; did you mean log_every?"),
        (("layers = ", "layerz = "), "model.layerz: is no setting; did you mean layers?"),
        (("rows = 4", 'rows = 4\ntokenizer = "bpe"\nvocabulary = 9'), "data.vocabulary: is 9"),
        (("[data]", '[compute]\ndevice = "cuda"\n[data]'), "no GPU"),
    ],
)
def test_a_wrong_config_is_refused_before_anything_is_written(
    change: tuple[str, str], found: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = TEXT.replace(*change).replace("SOURCE", "phrasebook")
    (place / "wrong.toml").write_text(text, encoding="utf-8")
    assert main(["train", "wrong.toml"]) == 2
    shown = capsys.readouterr().err
    assert found in shown
    assert shown.count("\n") == 1
    assert not (place / "runs").exists()


LONG = (
    TEXT.replace("SOURCE", "biographies")
    .replace("steps = 8", "steps = 150")
    .replace("save_every = 3", "save_every = 25")
    .replace("evaluate_every = 4", "evaluate_every = 75")
)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the hash of the weights of a training that nobody stopped."""
    folder = tmp_path_factory.mktemp("undisturbed")
    (folder / "long.toml").write_text(LONG, encoding="utf-8")
    assert main(["train", str(folder / "long.toml"), "--run", str(folder / "run")]) == 0
    result = json.loads((folder / "run" / "result.json").read_text("utf-8"))
    return str(result["weights_sha256"])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_command_with_its_code_and_nothing_is_lost(
    number: signal.Signals, undisturbed: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "long.toml").write_text(LONG, encoding="utf-8")
    arguments = ["-m", "heedful", "train", "long.toml", "--run", "stopped"]
    process = forked.start(arguments, place)
    while not (place / "stopped" / "checkpoints" / "step-00000025").exists():
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.005)
    os.kill(process.pid, number)
    out, err = process.communicate()
    assert process.returncode == 128 + number, err
    assert "heed resume stopped" in out
    assert main(["resume", "stopped", "--json"]) == 0
    resumed = json.loads(capsys.readouterr().out)
    assert 25 <= resumed["resumed_from"] < 150
    assert resumed["weights_sha256"] == undisturbed
