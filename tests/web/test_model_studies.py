"""Translations, questions and heads on the Models view: the answers of the studies, by id only."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from page_server import client_of, own_headers, settings_for
from trained_runs import PEOPLE

from heedful.studies.translation import Translator, align
from heedful.studies.translation.attribution import BEST_METHOD, METHODS
from heedful.studies.translation.documents import translate_texts
from heedful.studies.translation.translator import FILE
from heedful.web import shelves
from heedful.web.shelves import id_of

TEXT = "Je suis ici."


@pytest.fixture(scope="module")
def ask(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return a function that asks the server as the page does."""
    settings = replace(settings_for(tmp_path_factory.mktemp("page")), runs=runs)
    client = client_of(settings, own_headers())

    def asked(path: str, question: Any = None, status: int = 200) -> Any:
        answer = client.post(f"/api/models/{path}", json=question or {})
        assert answer.status_code == status, answer.text
        return answer.json()

    return asked


@pytest.fixture(scope="module")
def model(runs: Path) -> str:
    return id_of(runs / "pairs" / "model")


def test_the_list_says_who_translates_and_who_can_be_asked(ask: Any, model: str) -> None:
    found = ask("list")
    assert [(one["id"], one["translates"]) for one in found["models"]] == [(model, True)]
    assert len(found["askers"]) == 1
    assert shelves.TRANSLATION == FILE


def test_runs_have_readable_names_and_two_are_compared(
    ask: Any, runs: Path, tmp_path: Path
) -> None:
    found = {one["folder"]: one for one in ask("runs")["runs"]}
    (people,) = (name for name in found if name.startswith("people-"))
    assert (found["pairs"]["name"], found[people]["name"]) == ("pairs", "people")
    compared = ask("compare", {"first": found["pairs"]["id"], "second": found[people]["id"]})
    assert "steps" in [one["name"] for one in compared["config"]]
    assert compared["same_weights"] is False
    assert str(runs) not in str(compared["results"])
    ask("compare", {"first": found["pairs"]["id"], "second": "0"}, status=422)

    study = tmp_path / "knowledge"
    for name in ("rotary-0-0123abcd", "rotary-0-4567abcd", "learned-1-89ababcd"):
        (study / "runs" / name).mkdir(parents=True)
        (study / "runs" / name / "config.json").write_text("{}", "utf-8")
    (tmp_path / "parts").mkdir()
    for place in (study, tmp_path / "parts"):  # the lab keeps its parts under the same name
        (place / "knowledge.json").write_text("{}", "utf-8")
    shelf = shelves.Shelves(tmp_path)
    assert set(shelf.names().values()) == {
        ("learned 1", "knowledge"),
        ("rotary-0-0123abcd", "knowledge"),  # two would be called the same
        ("rotary-0-4567abcd", "knowledge"),
    }
    assert shelf.askers() == []
    (study / "runs" / "rotary-0-0123abcd" / "ask.json").write_text("{}", "utf-8")
    assert [one.name for one in shelf.askers()] == ["knowledge"]


def test_translations_and_alignment_are_those_of_the_study(
    ask: Any, model: str, runs: Path
) -> None:
    found = ask("translate", {"model": model, "text": TEXT, "beam": 3, "rank": 1})
    translator = Translator.open(runs / "pairs")
    known = next(translator.translate([TEXT], beam=3, nbest=3, max_tokens=256))
    assert [one["text"] for one in found["translation"]["hypotheses"]] == [
        one.text for one in known.hypotheses
    ]
    # Above it stands what `heed translate` says of the same text.
    (whole,) = translate_texts(translator, [TEXT], beam=3)
    assert found["whole"] == {"text": whole.text, "notes": list(whole.notes)}
    aligned = align(translator, known, 1)
    np.testing.assert_allclose(found["alignment"]["weights"], aligned.weights, atol=1e-6)
    assert found["alignment"]["target_words"] == list(aligned.target_words)


def test_a_text_of_several_sentences_is_translated_sentence_by_sentence(
    ask: Any, model: str, runs: Path
) -> None:
    text = f"{TEXT} {TEXT}"
    found = ask("translate", {"model": model, "text": text, "beam": 2})["whole"]["text"]
    (whole,) = translate_texts(Translator.open(runs / "pairs"), [text], beam=2)
    assert found == whole.text
    # So is one that is too long to be read as one sentence: there is nothing to align then.
    long = ask("translate", {"model": model, "text": " ".join([TEXT] * 40), "beam": 2})
    assert long["whole"]["text"].count(" ") > 40
    assert long["alignment"] is None
    assert long["translation"]["hypotheses"] == []


def test_a_translation_says_how_it_was_aligned_and_what_else_could_stand_there(
    ask: Any, model: str, runs: Path
) -> None:
    question = {"model": model, "text": TEXT, "beam": 2}
    found = ask("translate", question)
    assert found["alignment"]["method"] == found["best_method"] == BEST_METHOD
    assert found["methods"] == list(METHODS)
    by_heads = ask("translate", {**question, "method": "attention"})["alignment"]
    assert by_heads["method"] == "attention"
    assert by_heads["heads"]
    ask("translate", {**question, "method": "guess"}, 422)
    tokens = found["translation"]["hypotheses"][0]["tokens"]
    assert len(found["pieces"][0]) == len(tokens)
    place = {"model": model, "text": TEXT, "prefix": tokens[:2]}
    others = ask("alternatives", place)["alternatives"]
    assert [one["probability"] for one in others] == sorted(
        (one["probability"] for one in others), reverse=True
    )
    translator = Translator.open(runs / "pairs")
    for one in others:
        assert one["tokens"][:3] == [*tokens[:2], one["id"]]
        assert "<end>" not in one["text"]
    prompt, _ = translator.prompt(TEXT)
    with torch.inference_mode():
        logits = translator.decoder(torch.tensor([[*prompt, *tokens[:2]]]))[0, -1]
    assert others[0]["id"] == int(logits.argmax())
    assert ask("alternatives", {**place, "prefix": [10**6]}, 422)["where"] == "prefix"


def test_every_head_at_a_glance_and_some_taken_away(ask: Any, model: str) -> None:
    question = {"model": model, "text": TEXT}
    small = ask("overview", question)
    read = ask("read", question)
    assert (small["layers"], small["heads"]) == (read["layers"], read["heads"])
    side = min(32, small["tokens"])
    assert small["pictures"]["shape"] == [small["layers"], small["heads"], side, side]
    heads = [{"layer": 0, "head": 1}]
    effect = ask("intervene", {**question, "heads": heads})
    assert effect["loss"] != effect["changed_loss"]
    for one in effect["next"][:3]:
        before = next(next_["probability"] for next_ in read["next"] if next_["id"] == one["id"])
        assert one["before"] == pytest.approx(before, rel=1e-5)
    wrong = ask("intervene", {**question, "heads": [{"layer": 0, "head": 99}]}, 422)
    assert "head" in wrong["error"]
    ask("intervene", {**question, "heads": []}, 422)


def test_a_chosen_token_is_read_after_the_sentence(ask: Any, model: str) -> None:
    question = {"model": model, "text": TEXT}
    chosen = ask("read", question)["next"][0]
    longer = ask("read", {**question, "continuation": [chosen["id"]]})
    assert longer["tokens"][-1] == chosen["token"]
    assert ask("read", {**question, "continuation": [10**6]}, 422)["where"] == "continuation"


def test_a_translator_reads_the_translation_too(ask: Any, model: str) -> None:
    alone = ask("read", {"model": model, "text": TEXT})["tokens"]
    both = ask("read", {"model": model, "text": TEXT, "target": [5, 6, 7]})["tokens"]
    assert both[: len(alone)] == alone
    assert both[len(alone)] == "<to>"
    assert len(both) == len(alone) + 1 + 3
    wrong = {"model": model, "text": TEXT, "target": [10**6]}
    assert ask("read", wrong, 422)["where"] == "target"


def test_heads_are_watched_on_a_sentence_and_on_a_sample(ask: Any, model: str) -> None:
    one = ask("behaviour", {"model": model, "text": TEXT, "target": [5, 6, 7, 8]})
    heads = one["behaviour"]["heads"]
    assert sum(one["behaviour"]["counts"].values()) == len(heads)
    assert all(0 <= head["masses"]["source"]["value"] <= 1 for head in heads)
    many = ask("behaviour", {"model": model, "on": "sample"})
    assert len(many["behaviour"]["heads"]) == len(heads)
    assert many["behaviour"]["repeated"] > 0
    assert {"duplicate", "induction"} <= set(many["behaviour"]["heads"][0]["masses"])
    assert ask("behaviour", {"model": model, "text": "a"}, 422)["where"] == "text"


def test_a_question_is_answered_or_not(ask: Any) -> None:
    asker = ask("list")["askers"][0]["id"]
    seen = next(one for one in PEOPLE.train if one.seen)
    reply = ask("ask", {"asker": asker, "text": seen.question})["reply"]
    assert seen.name in reply["evidence"]
    assert (reply["answer"] is None) == (reply["confidence"] < 0.99)
    stranger = ask("ask", {"asker": asker, "text": "Where was Nobody Atall born?"})["reply"]
    assert set(stranger["nearest"]) == {"edits", "tokens", "hidden"}
    assert ask("ask", {"asker": asker, "text": "  "}, 422)["where"] == "question"


@pytest.mark.parametrize("name", ["../pairs", "/etc", "pairs", "", "%2e%2e"])
def test_nothing_but_an_id_is_taken(ask: Any, name: str) -> None:
    for path, question in (
        ("translate", {"model": name, "text": "a"}),
        ("behaviour", {"model": name, "text": "a"}),
        ("behaviour", {"model": name, "on": "sample"}),
        ("ask", {"asker": name, "text": "a"}),
    ):
        assert "unknown" in ask(path, question, 422)["error"]
