"""Cards: what the run's own files say, and what was measured."""

from __future__ import annotations

import json
from pathlib import Path

from small_translators import letters, llama_like

from heedful.studies.translation import TranslationFormat
from heedful.studies.translation.model_card import CARD, write_card
from heedful.training.hooks import TrainingResult


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


def test_the_minutes_are_those_of_all_sessions(tmp_path: Path) -> None:
    run = _run(tmp_path / "resumed")
    result = TrainingResult(
        run=str(run),
        finished=True,
        stopped_by="steps",
        step=40,
        epoch=1.0,
        loss=1.0,
        evaluations=(),
        tokens=400,
        seconds=60.0,
        processor_seconds=60.0,
        tokens_per_second=1.0,
        utilisation=0.5,
        parameters=10,
        computed_as="float32",
        checkpoint="",
        weights_sha256="cd" * 32,
        resumed_from=20,
        skipped={},
        notes=(),
    )
    (run / "result.json").write_text(result.to_json(), encoding="utf-8")
    clock = {10: 60.0, 20: 120.0, 30: 30.0, 40: 60.0}  # resumed after step 20
    lines = [
        json.dumps({"step": step, "seconds": seconds, "processor_seconds": seconds})
        for step, seconds in clock.items()
    ]
    (run / "metrics.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert "- 3.0 minutes, computed as float32" in write_card(run).read_text(encoding="utf-8")


def test_a_model_of_texts_has_a_card_too(tmp_path: Path) -> None:
    text = write_card(_run(tmp_path / "texts")).read_text(encoding="utf-8")
    assert "continues texts" in text
    assert "translate" not in text


def test_a_run_without_figures_says_so(tmp_path: Path) -> None:
    assert "none was measured" in write_card(tmp_path).read_text(encoding="utf-8")
