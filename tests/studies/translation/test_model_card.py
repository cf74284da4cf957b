"""Cards: what the run's own files say, and what was measured."""

from __future__ import annotations

import json
from pathlib import Path

from small_translators import letters, llama_like

from heedful.studies.translation import TranslationFormat
from heedful.studies.translation.model_card import CARD, write_card


def _run(folder: Path) -> Path:
    (folder / "model").mkdir(parents=True)
    config = {
        "model": llama_like(letters().size).model_dump(mode="json"),
        "data": {"source": "files", "files": ["pairs.tsv"], "seed": 3},
        "optimiser": {"kind": "muon", "learning_rate": 0.002},
    }
    manifest = {"data": {"corpus": "ab" * 32}, "cpu": "a processor", "versions": {"torch": "2"}}
    result = {
        "step": 1_200,
        "epoch": 2.5,
        "tokens": 34_567,
        "seconds": 90.0,
        "computed_as": "float32",
        "weights_sha256": "cd" * 32,
        "evaluations": [{"step": 1_200, "values": {"loss": 1.25}}],
    }
    for name, content in (("config", config), ("manifest", manifest), ("result", result)):
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    return folder


def test_a_card_holds_data_config_figures_limits_and_uses(tmp_path: Path) -> None:
    run = _run(tmp_path / "first")
    TranslationFormat(languages=("fr", "en")).write(run / "model")
    path = write_card(
        run,
        figures={"BLEU": {"test": 41.25, "low": 40.0}, "signature": "nrefs:1"},
        notes=["One reference."],
        limits=["Trained on short sentences."],
    )
    text = path.read_text(encoding="utf-8")
    assert path == run / CARD
    for said in (
        "# first",
        "translates French into English",
        "- files: pairs.tsv",
        f"SHA-256 of corpus: `{'ab' * 32}`",
        "- attention.heads: 4",
        "`<begin> source <to> target <end>`",
        "1,200 steps, 2.50 epochs, 34,567 tokens",
        "1.5 minutes",
        "- BLEU.test: 41.25",
        "- signature: nrefs:1",
        "- loss at step 1,200: 1.25",
        "- One reference.",
        "- Trained on short sentences.",
        "## Not to be used for",
        "heed translate RUN",
    ):
        assert said in text, said
    assert write_card(run, title="Second").read_text(encoding="utf-8").startswith("# Second\n")


def test_a_model_of_texts_has_a_card_too(tmp_path: Path) -> None:
    text = write_card(_run(tmp_path / "texts")).read_text(encoding="utf-8")
    assert "continues texts" in text
    assert "translate" not in text


def test_a_run_without_figures_says_so(tmp_path: Path) -> None:
    assert "none was measured" in write_card(tmp_path).read_text(encoding="utf-8")
