"""A training described by one table of settings: text becomes tokens, tokens become batches.

`[data]` names a corpus (`phrasebook`, `biographies`, or files), a tokenizer and a layout. What
follows from the data, the vocabulary and the context of the model, need not be written down.
Everything is a function of the settings, so that a run can be resumed from its config alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from heedful.data.batches import (
    Batches,
    Sequences,
    bucketed,
    document_sequences,
    packed,
    pair_sequences,
)
from heedful.data.corpus import Documents, Pairs
from heedful.errors import ConfigError, InputError
from heedful.studies.text_corpora import Parts, TextData, read_parts
from heedful.tokenization import Tokenizer, learn_tokenizer
from heedful.training.config import TrainingConfig, config_of

BEGIN, BETWEEN, END = "<begin>", "<to>", "<end>"
MARKS = (BEGIN, BETWEEN, END)


@dataclass(frozen=True, eq=False, kw_only=True)
class TextTraining:
    """A training ready to run."""

    config: TrainingConfig
    batches: Batches
    held_out: Batches
    tokenizer: Tokenizer
    hashes: dict[str, str]
    """SHA-256 of the corpus, of its files, and of the held-out texts."""
    languages: tuple[str, str] | None
    """From which language into which, for pairs; None for texts that stand alone."""


def prepare(values: dict[str, Any]) -> TextTraining:
    """Make everything that a training needs from its settings."""
    data = TextData.of(values.get("data"))
    _configured(values, data, data.vocabulary)  # what is wrong is told before a corpus is read
    parts = read_parts(data)
    train, kept = parts.train, parts.held_out
    tokenizer = _tokenizer(parts, data)
    config = _configured(values, data, tokenizer.size)
    hashes = {"corpus": train.fingerprint, "held out": kept.fingerprint}
    hashes |= {f"file {origin.path}": origin.sha256 for origin in train.origins}
    return TextTraining(
        config=config,
        batches=_batches(_sequences(train, tokenizer, data, learn_all=data.learn == "all"), data),
        held_out=_batches(_sequences(kept, tokenizer, data), data),
        tokenizer=tokenizer,
        hashes=hashes,
        languages=train.languages if isinstance(train, Pairs) else None,
    )


def _tokenizer(parts: Parts, data: TextData) -> Tokenizer:
    # Characters that are only in held-out texts need an id too; bytes have all of theirs.
    read = [parts.train] if data.tokenizer == "bpe" else [parts.train, parts.held_out]
    texts = [text for corpus in read for side in corpus.sides for text in side]
    size = data.vocabulary if data.tokenizer == "bpe" else None
    try:
        tokenizer = learn_tokenizer(data.tokenizer, texts, size=size, marks=MARKS, plain=data.plain)
    except InputError as error:
        if error.where != "size":
            raise
        raise ConfigError("data.vocabulary", error.problem, expected=error.expected) from None
    tokenizer.begin, tokenizer.end = tokenizer.id_of(BEGIN), tokenizer.id_of(END)
    return tokenizer


def _sequences(
    corpus: Documents | Pairs, tokenizer: Tokenizer, data: TextData, *, learn_all: bool = False
) -> Sequences:
    begin, between, end = (_id_of(tokenizer, mark) for mark in MARKS)
    encode = tokenizer.encode_batch
    if isinstance(corpus, Pairs):
        made = pair_sequences(corpus, encode, begin=begin, between=between, end=end)
        if learn_all:
            made = replace(made, prompts=np.zeros_like(made.prompts))
        return made.without_longer(data.width)
    return document_sequences(corpus, encode, begin=begin, end=end).cut(data.width)


def _batches(sequences: Sequences, data: TextData) -> Batches:
    if data.layout == "packed":
        return packed(sequences, width=data.width, rows=data.rows, seed=data.seed)
    return bucketed(sequences, columns=data.width * data.rows, seed=data.seed)


def _configured(values: dict[str, Any], data: TextData, vocabulary: int) -> TrainingConfig:
    """Write down what follows from the data: how many ids there are, and how long a row is."""
    model = values.get("model")
    if isinstance(model, dict):
        model = {"vocabulary": vocabulary, "context": data.width, **model}
    return config_of({**values, "model": model})


def _id_of(tokenizer: Tokenizer, mark: str) -> int:
    found = tokenizer.id_of(mark)
    assert found is not None
    return found
