"""`heed generate`."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from heedful.generation import Stops, generate
from heedful.model import Decoder, load, preset, write_folder
from heedful.tokenization import characters

LETTERS = "abcdefghij klm"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model of letters, random and so of many opinions."""
    tokenizer = characters(LETTERS)
    config = preset("tiny", vocabulary=tokenizer.size, context=32, initial_std=0.3)
    place = tmp_path_factory.mktemp("models") / "letters"
    write_folder(Decoder(config, seed=1), place, tokenizer=tokenizer)
    return place


def test_the_text_goes_on_as_the_function_says(heed, folder: Path) -> None:
    model = load(folder)
    assert model.tokenizer is not None
    row = model.tokenizer.encode("bad cab")
    truth = generate(model.decoder, [row], stops=Stops(tokens=9)).continuations[0][0]
    text = model.tokenizer.decode(truth.tokens)
    assert heed("generate", folder, "bad cab", "--tokens", 9).out == f"bad cab{text}\n"
    record = heed("generate", folder, "bad cab", "--tokens", 9, "--json").record
    (found,) = record["texts"][0]
    assert found["text"] == text
    assert found["tokens"] == list(truth.tokens)
    assert "".join(found["pieces"]) == text
    assert found["log_probabilities"] == pytest.approx(truth.log_probabilities)
    assert record["method"] == {"kind": "greedy"}
    assert record["precision"] == "float32"


def test_streamed_text_is_the_text(heed, folder: Path) -> None:
    words = ("generate", folder, "a mad", "--temperature", 1.3, "--seed", 5)
    assert heed(*words, "--stream").out == heed(*words).out


def test_a_seed_repeats_and_another_does_not(heed, folder: Path) -> None:
    words = ("generate", folder, "a mad", "--top-k", 8, "--min-p", 0.01, "--seed")
    assert heed(*words, 1).out == heed(*words, 1).out
    assert heed(*words, 1).out != heed(*words, 2).out


def test_several_prompts_and_the_best_of_each(heed, folder: Path) -> None:
    words = ("generate", folder, "fed", "a big cab", "--beams", 4, "--nbest", 3, "--tokens", 6)
    record = heed(*words, "--length-penalty", 0.5, "--json").record
    assert [len(found) for found in record["texts"]] == [3, 3]
    assert record["method"]["length_penalty"] == 0.5
    for found in record["texts"]:
        scores = [one["score"] for one in found]
        assert scores == sorted(scores, reverse=True)
        for one in found:
            expected = sum(one["log_probabilities"]) / math.sqrt(len(one["tokens"]))
            assert one["score"] == pytest.approx(expected)
    shown = heed(*words).out
    assert "cut at 6" in shown
    assert "a big cab" in shown


def test_scores_show_every_token(heed, folder: Path) -> None:
    shown = heed("generate", folder, "fed", "--tokens", 4, "--scores").out
    record = heed("generate", folder, "fed", "--tokens", 4, "--json").record
    assert "log p" in shown
    for piece in record["texts"][0][0]["pieces"]:
        assert repr(piece) in shown


def test_samples_are_as_many_as_asked_for(heed, folder: Path) -> None:
    words = ("generate", folder, "fed", "--temperature", 2, "--nbest", 4, "--json")
    texts = [one["text"] for one in heed(*words).record["texts"][0]]
    assert len(set(texts)) > 1
    assert len(texts) == 4


def test_int8_says_so(heed, folder: Path) -> None:
    record = heed("generate", folder, "fed", "--precision", "int8", "--json").record
    assert record["precision"] == "int8"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "prompt: is missing"),
        (("",), "prompt: is empty"),
        (("a", ""), "prompt 2: is empty"),
        (("xyz",), "'x', which this tokenizer does not know"),
        (("a" * 33,), "prompt: has 33 tokens; the context of this model is 32"),
        (("a", "--tokens", "33"), "--tokens: 33 new tokens do not fit after a prompt of 1"),
        (("a", "--tokens", "0"), "--tokens: is 0"),
        (("a", "--temperature", "0"), "--temperature: is 0.0"),
        (("a", "--temperature", "nan"), "--temperature: is nan"),
        (("a", "--top-k", "0"), "--top-k: is 0"),
        (("a", "--top-p", "1.5"), "--top-p: is 1.5"),
        (("a", "--min-p", "-1"), "--min-p: is -1.0"),
        (("a", "--beams", "0"), "--beams: is 0"),
        (("a", "--beams", "2", "--nbest", "3"), "--nbest: is 3; at most one for each of the 2"),
        (("a", "--top-k", "2", "--nbest", "0"), "--nbest: is 0"),
        (("a", "--beams", "2", "--top-p", "0.5"), "--beams: was given together with --top-p"),
        (("a", "--nbest", "2"), "--nbest: is 2, but the likeliest token"),
        (("a", "--seed", "2"), "--seed: is 2, but nothing is drawn"),
        (("a", "--top-k", "2", "--seed", "-2"), "--seed: is -2"),
        (("a", "--length-penalty", "1"), "there is no search; add --beams"),
        (("a", "--stream", "--json"), "--stream: was given together with --json"),
        (("a", "b", "--stream"), "--stream: was given together with several prompts"),
        (("a", "--stream", "--beams", "2"), "--stream: was given together with --beams"),
        (("a", "--precision", "int4"), "int4"),
    ],
)
def test_what_cannot_be_used_is_refused(refused, folder: Path, words, said: str) -> None:
    assert said in refused("generate", folder, *words).err


def test_a_model_without_a_tokenizer_is_refused(refused, tmp_path: Path) -> None:
    write_folder(Decoder(preset("tiny"), seed=0), tmp_path / "bare")
    assert "has no tokenizer" in refused("generate", tmp_path / "bare", "a").err
    assert "no such file" in refused("generate", tmp_path / "nowhere", "a").err


def test_weights_that_are_no_numbers_are_refused(refused, folder: Path, tmp_path: Path) -> None:
    model = load(folder)
    with torch.no_grad():
        model.decoder.blocks[0].feed_forward.down.weight[0, 0] = torch.nan
    write_folder(model.decoder, tmp_path / "damaged", tokenizer=model.tokenizer)
    refused("generate", tmp_path / "damaged", "a")
