"""A training described by one table of settings: text becomes tokens, tokens become batches.

`[data]` names a corpus (`phrasebook`, `biographies`, or files), a tokenizer and a layout. What
follows from the data, the vocabulary and the context of the model, need not be written down.
Everything is a function of the settings, so that a run can be resumed from its config alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import NonNegativeInt, PositiveInt

from heedful.data.batches import Batches, bucketed, packed
from heedful.data.biographies import biographies
from heedful.data.corpus import Documents, Pairs
from heedful.data.phrasebook import phrasebook
from heedful.data.reading import read_corpora
from heedful.data.sequences import Sequences, document_sequences, pair_sequences
from heedful.errors import ConfigError, InputError
from heedful.model.settings import Settings
from heedful.tokenization import Tokenizer
from heedful.tokenization.training import learn_tokenizer
from heedful.training.config import TrainingConfig, config_of

BEGIN, BETWEEN, END = "<begin>", "<to>", "<end>"
MARKS = (BEGIN, BETWEEN, END)


class TextData(Settings):
    """The table `[data]`."""

    source: Literal["phrasebook", "biographies", "files"]
    """Which corpus: the two that are written by this package, or your own files."""
    files: tuple[str, ...] = ()
    """For `files`: pairs or plain text, in any format that `heed data inspect` reads."""
    size: PositiveInt = 20_000
    """Training pairs of the phrasebook, or people in the biographies."""
    held_out: PositiveInt = 500
    """Texts kept from training, on which the loss is evaluated."""
    tokenizer: Literal["characters", "bytes", "bpe"] = "characters"
    """What one token is."""
    vocabulary: PositiveInt = 2_000
    """Ids of a `bpe` tokenizer."""
    layout: Literal["packed", "bucketed"] = "packed"
    """Several texts in each row of `width` tokens; or texts of like length together."""
    width: PositiveInt = 128
    """Tokens in a row; longer texts are cut (pairs: left out)."""
    rows: PositiveInt = 32
    """Rows in a batch; `bucketed` batches hold as many tokens in all."""
    seed: NonNegativeInt = 0
    """Decides the corpus and the order of the batches."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TextTraining:
    """A training ready to run."""

    config: TrainingConfig
    batches: Batches
    held_out: Batches
    tokenizer: Tokenizer
    hashes: dict[str, str]
    """SHA-256 of the corpus, of its files, and of the held-out texts."""


def prepare(values: dict[str, Any]) -> TextTraining:
    """Make everything that a training needs from its settings."""
    data = TextData.of(values.get("data"))
    train, kept = _corpora(data)
    texts = [text for corpus in (train, kept) for side in corpus.sides for text in side]
    size = data.vocabulary if data.tokenizer == "bpe" else None
    tokenizer = learn_tokenizer(data.tokenizer, texts, size=size, marks=MARKS)
    tokenizer.begin, tokenizer.end = tokenizer.id_of(BEGIN), tokenizer.id_of(END)
    config = config_of({**values, "model": _completed(values.get("model"), tokenizer, data)})
    hashes = {"corpus": train.fingerprint, "held out": kept.fingerprint}
    hashes |= {f"file {origin.path}": origin.sha256 for origin in train.origins}
    return TextTraining(
        config=config,
        batches=_batches(_sequences(train, tokenizer, data), data),
        held_out=_batches(_sequences(kept, tokenizer, data), data),
        tokenizer=tokenizer,
        hashes=hashes,
    )


def _corpora(data: TextData) -> tuple[Documents | Pairs, Documents | Pairs]:
    if data.source != "files" and data.files:
        raise ConfigError("data.files", f"do not belong to source = {data.source!r}")
    if data.source == "phrasebook":
        book = phrasebook(data.size, seed=data.seed, held_out=data.held_out)
        train, kept = (
            Pairs(
                name=f"phrasebook, {name}",
                sources=tuple(pair.french for pair in pairs),
                targets=tuple(pair.english for pair in pairs),
                languages=("fr", "en"),
            )
            for name, pairs in (("train", book.train), ("dev", book.dev))
        )
        return train, kept
    if data.source == "biographies":
        documents = biographies(data.size, seed=data.seed).documents
        whole = Documents(name="biographies", texts=documents)
        return _halves(whole, data)
    if not data.files:
        raise ConfigError(
            "data.files", "are none", way_out='write, for instance, files = ["train.tsv"]'
        )
    corpora = read_corpora([Path(file) for file in data.files])
    if len(corpora) > 1:
        raise ConfigError("data.files", f"are {len(corpora)} corpora", expected="one of them")
    return _halves(corpora[0].without_empty(), data)


def _halves(
    corpus: Documents | Pairs, data: TextData
) -> tuple[Documents | Pairs, Documents | Pairs]:
    """Keep some texts from training, spread evenly over the corpus."""
    count = len(corpus)
    if count <= data.held_out:
        raise InputError(
            corpus.name,
            f"has {count:,} texts",
            expected=f"more than the {data.held_out:,} that are held out",
            way_out="set data.held_out lower",
        )
    held = {place * count // data.held_out for place in range(data.held_out)}
    rest = (place for place in range(count) if place not in held)
    return corpus.take(rest, "for training"), corpus.take(sorted(held), "held out")


def _sequences(corpus: Documents | Pairs, tokenizer: Tokenizer, data: TextData) -> Sequences:
    begin, between, end = (_id_of(tokenizer, mark) for mark in MARKS)
    encode = tokenizer.encode_batch
    if isinstance(corpus, Pairs):
        made = pair_sequences(corpus, encode, begin=begin, between=between, end=end)
        return made.without_longer(data.width)
    return document_sequences(corpus, encode, begin=begin, end=end).cut(data.width)


def _batches(sequences: Sequences, data: TextData) -> Batches:
    if data.layout == "packed":
        return packed(sequences, width=data.width, rows=data.rows, seed=data.seed)
    return bucketed(sequences, columns=data.width * data.rows, seed=data.seed)


def _completed(model: Any, tokenizer: Tokenizer, data: TextData) -> Any:
    """Write down what follows from the data: how many ids there are, and how long a row is."""
    if not isinstance(model, dict):
        return model
    return {"vocabulary": tokenizer.size, "context": data.width, **model}


def _id_of(tokenizer: Tokenizer, mark: str) -> int:
    found = tokenizer.id_of(mark)
    assert found is not None
    return found
