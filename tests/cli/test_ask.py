"""`heed ask` with a model that others have trained."""

from __future__ import annotations

from pathlib import Path

import pytest
from model_of_bytes import model_of_bytes

from heedful.studies.knowledge.pretrained import WORDINGS

QUESTION = "What is the capital of Peru?"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return model_of_bytes(tmp_path_factory.mktemp("models") / "bytes")


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_a_folder_is_asked_and_says_that_nothing_is_promised(heed, folder: Path) -> None:
    shown = heed("ask", folder, QUESTION)
    assert shown.code == 0
    assert "was not calibrated" in " ".join(shown.out.split())
    record = heed("ask", folder, QUESTION, "Who wrote Hamlet?", "--json").record
    assert [one["question"] for one in record["replies"]] == [QUESTION, "Who wrote Hamlet?"]
    assert len(record["replies"][0]["wordings"]) == len(WORDINGS)
    assert record["known"] is None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((QUESTION, "--error", 1.5), "--error: is 1.5"),
        ((QUESTION, "--calibrate"), "--calibrate: was given together with a question"),
        (("  ",), "question: is empty"),
    ],
)
def test_what_cannot_be_done_is_refused(refused, folder: Path, words, said: str) -> None:
    assert said in refused("ask", folder, *words).err


def test_flags_of_models_are_refused_for_a_study(refused, tmp_path: Path) -> None:
    (tmp_path / "ask.json").write_text("{}")
    assert (
        "--error: was given for a knowledge study"
        in refused("ask", tmp_path, QUESTION, "--error", 0.1).err
    )


def test_a_model_that_is_not_there_says_how_to_fetch_it(refused) -> None:
    assert "heed model get smollm2" in refused("ask", "smollm2", QUESTION).err
