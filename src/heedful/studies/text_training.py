"""A training described by one table of settings: text becomes tokens, tokens become batches.

`[data]` names a corpus (`phrasebook`, `biographies`, or files), a tokenizer and a layout. What
follows from the data, the vocabulary and the context of the model, need not be written down.
Everything is a function of the settings, so that a run can be resumed from its config alone.

A corpus of your own is divided in one of three ways. `even` takes texts at even distances;
`groups` keeps linked groups whole, so that no sentence of one part is in another; and files of
their own may hold what is kept from training.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import safetensors.torch
import torch
from pydantic import NonNegativeInt, PositiveInt

from heedful.data.alignment import aligned_embeddings
from heedful.data.batches import (
    Batches,
    Sequences,
    bucketed,
    document_sequences,
    packed,
    pair_sequences,
    shuffled,
)
from heedful.data.corpus import Documents, Pairs
from heedful.data.readers import read_corpora
from heedful.data.splits import alike, linked_groups, split
from heedful.data.synthetic.biographies import biographies
from heedful.data.synthetic.phrasebook import phrasebook
from heedful.data.text_files import ReadOptions
from heedful.data.variation import Variation, varied
from heedful.errors import ConfigError, InputError
from heedful.files import sha256
from heedful.model import Decoder, Pretrained, load
from heedful.model.decoder import check_growth
from heedful.settings import Settings
from heedful.tokenization import Tokenizer, learn_tokenizer
from heedful.tokenization.same_tokens import SameTokens
from heedful.training.config import TrainingConfig, config_of
from heedful.training.hooks import Adapt


class TextData(Settings):
    """The table `[data]`."""

    table: ClassVar[str | None] = "data"

    source: Literal["phrasebook", "biographies", "files"]
    """Which corpus: the two that are written by this package, or your own files."""
    files: tuple[str, ...] = ()
    """For `files`: pairs or plain text, in any format that `heed data inspect` reads."""
    added_files: tuple[str, ...] = ()
    """For `files`: pairs of another kind, for training only; their whole sentences are taken."""
    added: PositiveInt | tuple[PositiveInt, ...] = 5_000
    """How many pairs of each of `added_files` are taken at most: one number, or one for each."""
    held_out_files: tuple[str, ...] = ()
    """Texts kept from training that have files of their own; then none of `files` is kept."""
    translate_from: str | None = None
    """For pairs: the language of the source, such as "fr". None: the first side."""
    size: PositiveInt = 20_000
    """Training pairs of the phrasebook, or people in the biographies."""
    held_out: PositiveInt = 500
    """Texts kept from training, on which the loss is evaluated; with `groups`, linked groups."""
    test: NonNegativeInt = 0
    """Linked groups kept from both, for the figures at the very end; needs `groups`."""
    split: Literal["even", "groups"] = "even"
    """How `files` are divided: at even distances, or by linked groups (about as many as asked)."""
    tokenizer: Literal["characters", "bytes", "bpe"] = "characters"
    """What one token is."""
    vocabulary: PositiveInt = 2_000
    """Ids of a `bpe` tokenizer."""
    plain: bool = False
    """For `bpe`: read no-break spaces as spaces and curved apostrophes as straight ones."""
    same_tokens: bool = False
    """For pairs and `bpe`: at the beginning of a text, alone, and behind an elision a word has the
    tokens that it has inside of one (`heedful.tokenization.same_tokens`)."""
    variation: Variation | None = None
    """For pairs: joined to longer texts, and with other names and numbers, in training."""
    learn: Literal["targets", "all"] = "targets"
    """For pairs: whether the loss counts the targets only, or the sources too."""
    embeddings: Literal["random", "aligned"] = "random"
    """For pairs: first embeddings drawn at random, or those of source tokens beside the target
    tokens that translate them, as the training pairs tell (`heedful.data.alignment`)."""
    start: str | None = None
    """A model whose weights the training begins with, and whose tokenizer it takes: `fr-en`, a run,
    or a folder. Layers that it lacks begin as layers that change nothing."""
    layout: Literal["packed", "bucketed"] = "packed"
    """Several texts in each row of `width` tokens; or texts of like length together."""
    width: PositiveInt = 128
    """Tokens in a row; longer texts are cut (pairs: left out)."""
    rows: PositiveInt = 32
    """Rows in a batch; `bucketed` batches hold as many tokens in all."""
    seed: NonNegativeInt = 0
    """Decides the corpus, its division, and the order of the batches."""

    def model_post_init(self, _context: object) -> None:
        """Check the settings against one another."""
        if self.source != "files":
            for name in ("files", "added_files", "held_out_files", "translate_from"):
                if getattr(self, name):
                    raise ConfigError(f"data.{name}", f"do not belong to source = {self.source!r}")
        elif not self.files:
            raise ConfigError(
                "data.files", "are none", hint='write, for instance, files = ["train.tsv"]'
            )
        grouped = self.source == "files" and self.split == "groups" and not self.held_out_files
        if self.test and not grouped:
            raise ConfigError(
                "data.test",
                f"is {self.test}",
                expected='linked groups are kept for tests only from files with split = "groups"',
                hint="set it to 0, or divide the files by groups",
            )
        if self.start is not None and self.embeddings == "aligned":
            raise ConfigError(
                "data.embeddings",
                "are aligned, and data.start has embeddings too",
                hint="leave one of them out",
            )
        for name in ("plain", "same_tokens"):
            if getattr(self, name) and self.tokenizer != "bpe":
                raise ConfigError(
                    f"data.{name}", "is true", expected=f"not with a tokenizer of {self.tokenizer}"
                )


@dataclass(frozen=True, eq=False, kw_only=True)
class CorpusParts:
    """A corpus, divided."""

    train: Documents | Pairs
    held_out: Documents | Pairs
    """For the evaluations during training."""
    test: Documents | Pairs | None = None
    """For the figures at the end; None where none was asked for."""


def read_parts(data: TextData) -> CorpusParts:
    """Read or write the corpus that the settings name, and divide it."""
    parts = _divided(data)
    return _with_added(parts, data) if data.added_files else parts


def _divided(data: TextData) -> CorpusParts:
    if data.source == "phrasebook":
        return _phrasebook(data)
    if data.source == "biographies":
        documents = biographies(data.size, seed=data.seed).documents
        return _evenly(Documents(name="biographies", texts=documents), data)
    corpus = _one_corpus(data.files, ReadOptions())
    train = _turned(corpus, data)
    if data.held_out_files:
        kept = _one_corpus(data.held_out_files, ReadOptions())
        if isinstance(kept, Pairs) and isinstance(corpus, Pairs) and not _named(kept, data):
            # A few lines do not tell their languages; they are laid out as the others are.
            kept = _one_corpus(data.held_out_files, ReadOptions(languages=corpus.languages))
        return CorpusParts(train=train, held_out=_turned(kept, data))
    return _by_groups(train, data) if data.split == "groups" else _evenly(train, data)


def _with_added(parts: CorpusParts, data: TextData) -> CorpusParts:
    """Add pairs to the training part: whole sentences that no other part holds."""
    most = data.added if isinstance(data.added, tuple) else (data.added,) * len(data.added_files)
    if len(most) != len(data.added_files):
        raise ConfigError(
            "data.added",
            f"has {len(most)} numbers for {len(data.added_files)} files",
            expected="one number, or one for each of data.added_files",
        )
    others = [part for part in (parts.held_out, parts.test) if part is not None]
    known = {alike(text) for part in others for side in part.sides for text in side}
    for file, count in zip(data.added_files, most, strict=True):
        corpus = _one_corpus((file,), ReadOptions())
        if data.files and isinstance(corpus, Pairs) and not _named(corpus, data):
            # Sentences to be restored are of one language on both sides; they stand as the others.
            whole = _one_corpus(data.files, ReadOptions())
            layout = whole.languages if isinstance(whole, Pairs) else None
            corpus = _one_corpus((file,), ReadOptions(languages=layout))
        added = _turned(corpus, data)
        if not isinstance(parts.train, Pairs) or not isinstance(added, Pairs):
            raise ConfigError("data.added_files", "are no pairs", expected="pairs, beside pairs")
        parts = replace(parts, train=_both(parts.train, added, known, count, data.seed))
    return parts


def _both(train: Pairs, added: Pairs, known: set[str], most: int, seed: int) -> Pairs:
    """Return the training pairs and some of the added ones, none of them in `known`."""
    fitting = [
        place
        for place, texts in enumerate(zip(*added.sides, strict=True))
        if all(_is_sentence(text) and alike(text) not in known for text in texts)
    ]
    chosen = shuffled(len(fitting), seed, 0)[:most]
    taken = added.take([fitting[place] for place in sorted(chosen.tolist())])
    return replace(
        train,
        sources=train.sources + taken.sources,
        targets=train.targets + taken.targets,
        origins=train.origins + added.origins,
        notes=(*train.notes, f"{len(taken):,} pairs of {added.name} added"),
    )


def _is_sentence(text: str) -> bool:
    return len(text.split()) > 2 and text[0].isupper() and text.rstrip()[-1] in ".!?"


def _one_corpus(files: tuple[str, ...], reading: ReadOptions) -> Documents | Pairs:
    corpora = read_corpora([Path(file) for file in files], reading)
    if len(corpora) > 1:
        raise ConfigError("data.files", f"are {len(corpora)} corpora", expected="one of them")
    return corpora[0].without_empty()


def _named(pairs: Pairs, data: TextData) -> bool:
    return data.translate_from is None or data.translate_from in pairs.languages


def _turned(corpus: Documents | Pairs, data: TextData) -> Documents | Pairs:
    if data.translate_from is None or not isinstance(corpus, Pairs):
        return corpus
    return corpus.from_language(data.translate_from)


def _phrasebook(data: TextData) -> CorpusParts:
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
    return CorpusParts(train=train, held_out=kept)


def _evenly(corpus: Documents | Pairs, data: TextData) -> CorpusParts:
    count = len(corpus)
    if count <= data.held_out:
        raise _too_few(corpus, count, "texts", data.held_out)
    held = {place * count // data.held_out for place in range(data.held_out)}
    rest = (place for place in range(count) if place not in held)
    return CorpusParts(
        train=corpus.take(rest, "for training"), held_out=corpus.take(sorted(held), "held out")
    )


def _by_groups(corpus: Documents | Pairs, data: TextData) -> CorpusParts:
    count = linked_groups(corpus).count
    wanted = {"held out": data.held_out, "test": data.test}
    if count <= sum(wanted.values()):
        raise _too_few(corpus, count, "linked groups", sum(wanted.values()))
    shares = {name: number / count for name, number in wanted.items() if number}
    made = split(corpus, {"train": 1.0 - sum(shares.values()), **shares}, seed=data.seed)
    parts = {part.name: corpus.take(part.indices, part.name) for part in made.parts}
    if 0 in map(len, parts.values()):
        raise _too_few(corpus, count, "linked groups", sum(wanted.values()))
    return CorpusParts(train=parts["train"], held_out=parts["held out"], test=parts.get("test"))


def _too_few(corpus: Documents | Pairs, count: int, what: str, kept: int) -> InputError:
    return InputError(
        corpus.name,
        f"has {count:,} {what}",
        expected=f"more than the {kept:,} that are held out",
        hint="set data.held_out lower",
    )


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
    adapt: Adapt | None = None
    """What changes the first weights of the decoder; None: they are as the seed draws them."""


def prepare(values: dict[str, Any]) -> TextTraining:
    """Make everything that a training needs from its settings."""
    data = TextData.of(values.get("data"))
    _configured(values, data, data.vocabulary)  # what is wrong is told before a corpus is read
    parts = read_parts(data)
    train, kept = parts.train, parts.held_out
    before = None if data.start is None else load(data.start)
    tokenizer = _tokenizer(parts, data) if before is None else _tokenizer_of(before)
    config = _configured(values, data, tokenizer.size)
    hashes = {"corpus": train.fingerprint, "held out": kept.fingerprint}
    hashes |= {f"file {origin.path}": origin.sha256 for origin in train.origins}
    adapt: Adapt | None = None
    if before is not None:
        check_growth(config.model, before.decoder.config)
        weights = {name: value.contiguous() for name, value in before.decoder.state_dict().items()}
        hashes["weights before"] = sha256(safetensors.torch.save(weights))
        adapt = partial(Decoder.grow_from, before=before.decoder)
    if data.embeddings == "aligned":
        if not isinstance(train, Pairs):
            raise ConfigError("data.embeddings", "are for pairs", expected="a corpus of pairs")
        adapt = _aligning(_as_read(train, tokenizer, data), tokenizer, data.seed)
    if data.same_tokens and not isinstance(train, Pairs):
        raise ConfigError("data.same_tokens", "is true", expected="a corpus of pairs")
    if data.variation is not None:
        if not isinstance(train, Pairs):
            raise ConfigError("data.variation", "is for pairs", expected="a corpus of pairs")
        train = varied(train, data.variation, data.seed)
    return TextTraining(
        config=config,
        batches=_batches(_sequences(train, tokenizer, data, learn_all=data.learn == "all"), data),
        held_out=_batches(_sequences(kept, tokenizer, data), data),
        tokenizer=tokenizer,
        hashes=hashes,
        languages=train.languages if isinstance(train, Pairs) else None,
        adapt=adapt,
    )


def _aligning(pairs: Pairs, tokenizer: Tokenizer, seed: int) -> Adapt:
    """Return what gives a decoder embeddings that know which tokens translate which."""

    def adapt(decoder: Decoder) -> None:
        sources, targets = (tokenizer.encode_batch(list(side)) for side in pairs.sides)
        width = decoder.config.width
        table = aligned_embeddings(sources, targets, tokenizer.size, width, seed)
        with torch.no_grad():
            for weight in (decoder.embedding.weight, decoder.head_weight):
                weight.copy_(torch.from_numpy(table))

    return adapt


def _tokenizer(parts: CorpusParts, data: TextData) -> Tokenizer:
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


def _tokenizer_of(before: Pretrained) -> Tokenizer:
    """Return the tokenizer of a model that a training begins with."""
    tokenizer = before.tokenizer
    if tokenizer is None or None in map(tokenizer.id_of, MARKS):
        raise ConfigError(
            "data.start",
            "has no tokenizer of a training here",
            expected=f"one that knows {', '.join(MARKS)}, as a run of `heed train` has",
        )
    tokenizer.begin, tokenizer.end = tokenizer.id_of(BEGIN), tokenizer.id_of(END)
    return tokenizer


def _sequences(
    corpus: Documents | Pairs, tokenizer: Tokenizer, data: TextData, *, learn_all: bool = False
) -> Sequences:
    begin, between, end = (_id_of(tokenizer, mark) for mark in MARKS)
    encode = tokenizer.encode_batch
    if isinstance(corpus, Pairs):
        read = _as_read(corpus, tokenizer, data)
        made = pair_sequences(read, encode, begin=begin, between=between, end=end)
        if learn_all:
            made = replace(made, prompts=np.zeros_like(made.prompts))
        return made.without_longer(data.width)
    return document_sequences(corpus, encode, begin=begin, end=end).cut(data.width)


def _as_read(pairs: Pairs, tokenizer: Tokenizer, data: TextData) -> Pairs:
    """Return pairs as the tokenizer is given them."""
    if not data.same_tokens:
        return pairs
    same = SameTokens(tokenizer.encode)
    return replace(
        pairs,
        sources=tuple(same.source(text, pairs.languages[0]) for text in pairs.sources),
        targets=tuple(map(same.target, pairs.targets)),
    )


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
