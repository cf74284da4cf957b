"""A training from one table: what is held out, what is learned, and what the tokenizer reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from heedful.data.batches import IGNORE
from heedful.data.corpus import Pairs
from heedful.data.splits import overlap
from heedful.errors import ConfigError, InputError
from heedful.model import Decoder, write_folder
from heedful.studies.text_training import BETWEEN, TextData, prepare, read_parts
from heedful.studies.translation import Translator
from heedful.studies.translation.translator import format_of


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    """English and French; every third English sentence is there twice."""
    lines = [f"It is {n}.\tC\u2019est {n}\u202f!" for n in range(600)]
    lines += [f"It is {n}.\tIl est {n}." for n in range(0, 600, 3)]
    path = tmp_path / "pairs.tsv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def table(path: Path, **changes: Any) -> dict[str, Any]:
    return {"source": "files", "files": [str(path)], "translate_from": "fr", **changes}


def settings(files: Path, **changes: Any) -> dict[str, Any]:
    data = table(files, tokenizer="bpe", vocabulary=300, held_out=40, width=64, rows=4, **changes)
    return {"steps": 200, "model": {"preset": "tiny"}, "data": data}


def test_added_pairs_of_one_language_stand_as_those_of_the_corpus(
    pairs: Path, tmp_path: Path
) -> None:
    jumbled = tmp_path / "jumbled.tsv"
    jumbled.write_text("The cat was there.\tThe was cat.\nShe is at home.\tShe home at.\n" * 20)
    parts = read_parts(TextData.of(table(pairs, held_out=60, added_files=[str(jumbled)])))
    assert isinstance(parts.train, Pairs)
    assert parts.train.languages == ("fr", "en")
    found = set(zip(*parts.train.sides, strict=True))
    assert {("The was cat.", "The cat was there."), ("She home at.", "She is at home.")} < found


def test_groups_share_no_sentence_and_lose_none(pairs: Path) -> None:
    parts = read_parts(TextData.of(table(pairs, split="groups", held_out=60, test=90)))
    assert parts.test is not None
    found = [parts.train, parts.held_out, parts.test]
    assert sum(map(len, found)) == 800
    assert len(parts.test) > len(parts.held_out) > 30
    for first in found:
        for second in found:
            assert first is second or not overlap(first, second).any


def test_the_source_is_the_language_that_was_named(pairs: Path) -> None:
    parts = read_parts(TextData.of(table(pairs)))
    assert all(text.startswith(("C\u2019", "Il")) for text in parts.train.sides[0])


def test_files_of_their_own_are_held_out_whole(pairs: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept.tsv"
    kept.write_text("She is seven.\tElle est sept.\n", encoding="utf-8")
    parts = read_parts(TextData.of(table(pairs, held_out_files=[str(kept)])))
    assert len(parts.train) == 800
    assert parts.held_out.sides == (("Elle est sept.",), ("She is seven.",))


def test_learning_all_counts_the_sources_too(pairs: Path) -> None:
    made = {learn: prepare(settings(pairs, learn=learn)) for learn in ("targets", "all")}
    alone, both = (made[learn].batches.batch(0) for learn in ("targets", "all"))
    assert np.array_equal(alone.tokens, both.tokens)
    assert both.learned == both.real
    between = made["all"].tokenizer.id_of(BETWEEN)
    assert (both.targets == between).any()
    assert not (alone.targets == between).any()
    # Held-out figures mean the same whatever training counts.
    kept = [made[learn].held_out.batch(0).targets for learn in ("targets", "all")]
    assert np.array_equal(*kept)
    assert (kept[0] == IGNORE).any()


def test_byte_pairs_are_learned_from_the_training_part_alone(pairs: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept.tsv"
    kept.write_text("It is zzzzzzzz.\tC'est zzzzzzzz.\n" * 40, encoding="utf-8")
    tokenizer = prepare(settings(pairs, held_out_files=[str(kept)])).tokenizer
    assert len(tokenizer.encode("zzzzzzzz")) == 8


def test_plain_reads_every_kind_of_space_alike(pairs: Path) -> None:
    tokenizer = prepare(settings(pairs, plain=True)).tokenizer
    written = ["C'est 3 !", "C\u2019est 3\u00a0!", "C\u2019est 3\u202f!"]
    assert len({tuple(tokenizer.encode(text)) for text in written}) == 1
    assert tokenizer.decode(tokenizer.encode(written[2])) == written[0]


def test_a_translator_reads_what_its_training_read(pairs: Path) -> None:
    values = settings(pairs, same_tokens=True, layout="bucketed")
    made = prepare(values)
    written = format_of(made)
    assert written is not None
    assert written.same_tokens
    decoder = Decoder(made.config.model)
    translator = Translator(decoder, made.tokenizer, written)
    parts = read_parts(TextData.of(values["data"]))
    assert isinstance(parts.held_out, Pairs)
    asked = {tuple(translator.prompt(source)[0]) for source in parts.held_out.sources}
    between, end = translator.marks.between, translator.marks.end
    trained = set()
    for number in range(len(made.held_out)):
        batch = made.held_out.batch(number)
        for row, targets in zip(batch.tokens.tolist(), batch.targets.tolist(), strict=True):
            if between in row:
                place = row.index(between)
                trained.add(tuple(row[: place + 1]))
                kept = targets[place : targets.index(end)]
                # A capital of the beginning is put back.
                text = written.shown(made.tokenizer.decode(kept), "Une source.")
                assert text.startswith("It is ")
                assert kept == made.tokenizer.encode(written.target(text, made.tokenizer))
    assert asked == trained


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"test": 5}, "data.test"),
        ({"source": "phrasebook", "files": [], "translate_from": "fr"}, "data.translate_from"),
        ({"source": "phrasebook", "translate_from": None}, "data.files"),
        ({"files": []}, "data.files"),
        ({"plain": True, "tokenizer": "bytes"}, "data.plain"),
        ({"same_tokens": True, "tokenizer": "bytes"}, "data.same_tokens"),
    ],
)
def test_settings_that_contradict_one_another_are_refused(
    pairs: Path, changes: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ConfigError, match=problem):
        TextData.of(table(pairs, **changes))


@pytest.mark.parametrize("split", ["even", "groups"])
def test_more_held_out_than_there_is_is_refused(pairs: Path, split: str) -> None:
    with pytest.raises(InputError, match="that are held out"):
        read_parts(TextData.of(table(pairs, split=split, held_out=900)))


def test_a_training_begins_with_a_model_and_its_tokenizer(pairs: Path, tmp_path: Path) -> None:
    first = prepare(settings(pairs))
    before = Decoder(first.config.model, seed=3)
    write_folder(before, tmp_path / "model", tokenizer=first.tokenizer)
    values = settings(pairs, start=str(tmp_path / "model"))
    # Exported models have this layout of rotations, and tell it in their config.
    deeper = {"preset": "tiny", "layers": 3, "positions": {"kind": "rotary", "layout": "half"}}
    second = prepare({**values, "model": deeper})
    assert second.adapt is not None
    assert second.tokenizer.encode("It is 7.") == first.tokenizer.encode("It is 7.")
    grown = Decoder(second.config.model, seed=0)
    second.adapt(grown)
    tokens = torch.from_numpy(first.batches.batch(0).tokens[:2])
    torch.testing.assert_close(grown(tokens), before(tokens), rtol=0, atol=1e-5)
    # Another model is another run: a folder is not resumed with it.
    write_folder(Decoder(first.config.model, seed=4), tmp_path / "other", tokenizer=first.tokenizer)
    other = prepare({**settings(pairs, start=str(tmp_path / "other")), "model": deeper})
    assert other.hashes["weights before"] != second.hashes["weights before"]


def test_what_is_no_start_is_told_before_anything_is_written(pairs: Path, tmp_path: Path) -> None:
    made = prepare(settings(pairs))
    write_folder(Decoder(made.config.model, seed=0), tmp_path / "model")
    with pytest.raises(ConfigError, match=r"data\.start: has no tokenizer"):
        prepare(settings(pairs, start=str(tmp_path / "model")))
    with pytest.raises(InputError, match="cannot grow from the weights before it"):
        prepare(settings(pairs, start="fr-en"))
    with pytest.raises(ConfigError, match=r"data\.embeddings: are aligned, and data\.start"):
        prepare(settings(pairs, start="fr-en", embeddings="aligned"))
