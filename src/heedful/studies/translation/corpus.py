"""What a study reads: pairs to learn from, sentences to be judged by, text of one language.

The phrasebook brings all of it. From files, the test is a part of the corpus that shares no
sentence with the rest, unless it has files of its own; a pair of training whose source is in
the test all the same is left out, and counted.

Text of one language is for pretraining, and becomes token sequences:

    source language    begin text end                            a language model
    target language    between text end                          a language model
    restoring          begin jumbled sentence between sentence end

Each language stands under the mark that opens it in a pair. Restoring uses text of the target
language alone: words of a sentence are left out or moved a little, and the sentence as it was
comes after the mark. A decoder learns there to read what is before the mark while it writes what
comes after, which plain text never asks of it, and which a translator does in every sentence.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from heedful.data.batches import Sequences, document_sequences, pair_sequences, shuffled
from heedful.data.corpus import Documents, Pairs
from heedful.data.readers import read_corpora
from heedful.data.splits import linked_groups, references, split
from heedful.data.synthetic.phrasebook import Pair, monolingual, phrasebook
from heedful.data.text_files import ReadOptions
from heedful.errors import InputError
from heedful.studies.translation.recipe import StudySettings
from heedful.studies.translation.translator import Marks
from heedful.tokenization import Tokenizer


@dataclass(frozen=True, eq=False, kw_only=True)
class TestSet:
    """Sentences to translate, each with all its references."""

    __test__ = False  # its name is no invitation to pytest

    name: str
    sources: tuple[str, ...]
    references: tuple[tuple[str, ...], ...]

    def first(self, count: int) -> TestSet:
        """Return the first sentences."""
        return TestSet(
            name=self.name, sources=self.sources[:count], references=self.references[:count]
        )

    def __len__(self) -> int:
        return len(self.sources)


@dataclass(frozen=True, eq=False, kw_only=True)
class StudyCorpus:
    """Everything that a study reads."""

    name: str
    train: Pairs
    """In an order in which the beginning is a smaller corpus of the same kind."""
    development: TestSet
    test: TestSet
    others: tuple[TestSet, ...]
    """Further test sets."""
    source_text: Documents | None
    """Text in the source language alone; None where there is none."""
    target_text: Documents | None
    normalise: str
    """How sources are written: see `TranslationFormat`."""
    notes: tuple[str, ...]
    """What was decided on the way."""

    @property
    def has_text(self) -> bool:
        """Whether there is text of both languages to pretrain on."""
        return self.source_text is not None and self.target_text is not None

    def first(self, count: int, draw: int = 0) -> Pairs:
        """Return the first training pairs; of another draw, the first in another order."""
        if not draw:
            return self.train.take(range(count), f"the first {count:,}")
        order = shuffled(len(self.train), draw, 0)[:count].tolist()
        return self.train.take(order, f"{count:,} of draw {draw}")


def read_study_corpus(settings: StudySettings) -> StudyCorpus:
    """Read or write everything, and refuse sizes that the corpus does not have."""
    corpus = _from_files(settings) if settings.corpus else _from_phrasebook(settings)
    if len(corpus.train) < settings.sizes[-1]:
        raise InputError(
            "sizes",
            f"ask for {settings.sizes[-1]:,} pairs",
            expected=f"{corpus.name} has {len(corpus.train):,} to learn from",
            hint=f"use --sizes … {len(corpus.train)}",
        )
    return corpus


def _from_phrasebook(settings: StudySettings) -> StudyCorpus:
    held_out = max(settings.sentences, settings.development)
    book = phrasebook(settings.sizes[-1], seed=settings.seed, held_out=held_out)
    texts = [
        Documents(
            name=f"phrasebook, {language}",
            texts=monolingual(language, settings.texts, settings.seed, held_out=held_out),
        )
        for language in ("fr", "en")
    ]
    return StudyCorpus(
        name="phrasebook",
        train=Pairs(
            name="phrasebook",
            sources=tuple(pair.french for pair in book.train),
            targets=tuple(pair.english for pair in book.train),
            languages=("fr", "en"),
        ),
        development=_judged("development", book.dev).first(settings.development),
        test=_judged("test", book.test).first(settings.sentences),
        others=tuple(
            _judged(name, pairs).first(settings.others)
            for name, pairs in (
                ("longer than training", book.test_length),
                ("new combinations of known words", book.test_unseen),
            )
            if pairs
        ),
        source_text=texts[0],
        target_text=texts[1],
        normalise="keyboard",
        notes=("no sentence of a test, and none of its other translations, is in training",),
    )


def _judged(name: str, pairs: Sequence[Pair]) -> TestSet:
    return TestSet(
        name=name,
        sources=tuple(pair.french for pair in pairs),
        references=tuple(pair.references for pair in pairs),
    )


def _from_files(settings: StudySettings) -> StudyCorpus:
    corpus = _pairs(settings.corpus, settings.source, "--corpus")
    if settings.test:
        train, test = corpus, _pairs(settings.test, settings.source, "--test")
        train, development = _parted(train, settings.development, settings.seed)
        notes = [f"the test is {test.name}; development sentences are a part of the corpus"]
    else:
        train, test = _parted(corpus, settings.sentences, settings.seed)
        train, development = _parted(train, settings.development, settings.seed + 1)
        notes = ["training, development and test share no sentence, on either side"]
    judged, developed = _gathered("test", test), _gathered("development", development)
    known = set(judged.sources)
    kept = [place for place, source in enumerate(train.sources) if source not in known]
    if len(kept) < len(train):
        notes.append(f"{len(train) - len(kept):,} training pairs left out: their source is tested")
    order = shuffled(len(kept), settings.seed, 0).tolist()
    train = train.take(kept[place] for place in order)
    texts = tuple(map(_text, settings.monolingual)) or (None, None)
    return StudyCorpus(
        name=corpus.name,
        train=train,
        development=developed.first(settings.development),
        test=judged.first(settings.sentences),
        others=(),
        source_text=texts[0],
        target_text=texts[1],
        normalise="nfc",
        notes=tuple(notes),
    )


def _pairs(paths: Sequence[str], source: str | None, where: str) -> Pairs:
    found = read_corpora([Path(path) for path in paths], ReadOptions(source=source))
    if len(found) != 1 or not isinstance(found[0], Pairs):
        raise InputError(
            where,
            f"{', '.join(Path(path).name for path in paths)} is not one corpus of pairs",
            expected="one file of pairs, or two files such as train.fr and train.en",
            hint="see what a file holds with: heed data inspect FILE",
        )
    return found[0].without_empty()


def _parted(corpus: Pairs, count: int, seed: int) -> tuple[Pairs, Pairs]:
    """Return a corpus without about `count` of its linked groups, and these."""
    groups = linked_groups(corpus).count
    if groups < 2 * count:
        raise InputError(
            corpus.name,
            f"has {groups:,} groups of sentences that share none",
            expected=f"at least {2 * count:,}, to keep {count:,} of them from training",
            hint="set `sentences` and `development` lower in a recipe",
        )
    share = count / groups
    made = split(corpus, {"train": 1.0 - share, "kept": share}, seed=seed)
    train, kept = (corpus.take(made.indices(name)) for name in ("train", "kept"))
    if not len(kept):
        raise InputError(corpus.name, "is too small to be divided")
    return train, kept


def _gathered(name: str, pairs: Pairs) -> TestSet:
    known = references(pairs)
    return TestSet(name=name, sources=known.sources, references=known.targets)


def _text(path: str) -> Documents:
    (found,) = read_corpora([Path(path)])
    if not isinstance(found, Documents):
        raise InputError("--monolingual", f"{path} holds pairs", expected="plain text")
    return found.without_empty()


LEFT_OUT = 0.1
"""Share of the words that a jumbled sentence lacks."""
MOVED = 3.0
"""Words change places with others less than this far away."""
KEPT = 50
"""Texts of each kind on which pretraining is watched, at most."""

_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+")


def sentences_of(text: str) -> list[str]:
    """Cut a text after marks that end a sentence.

    >>> sentences_of("He sees it. Does he? Yes.")
    ['He sees it.', 'Does he?', 'Yes.']
    """
    return [part for part in _SENTENCE_END.split(text.strip()) if part]


def jumbled(sentence: str, draw: np.random.Generator) -> str:
    """Leave out some words of a sentence, and move others a little.

    >>> jumbled("one", np.random.default_rng(0))
    'one'
    """
    words = np.array(sentence.split(" "))
    places = np.argsort(np.arange(len(words)) + draw.uniform(0.0, MOVED, len(words)))
    kept = draw.random(len(words)) >= LEFT_OUT
    found = words[places][kept[places]]
    return " ".join(found if len(found) else words)


def text_sequences(
    text: Documents, tokenizer: Tokenizer, *, opening: int, end: int, longest: int
) -> Sequences:
    """Write texts after the mark of their language; long ones are cut."""
    return document_sequences(text, tokenizer.encode_batch, begin=opening, end=end).cut(longest)


def restoring_sequences(
    text: Documents, tokenizer: Tokenizer, marks: Marks, *, longest: int, seed: int
) -> Sequences:
    """Write each sentence after itself, jumbled."""
    draw = np.random.default_rng(seed)
    whole = [sentence for one in text.texts for sentence in sentences_of(one)]
    pairs = Pairs(
        name=text.name,
        sources=tuple(jumbled(sentence, draw) for sentence in whole),
        targets=tuple(whole),
    )
    sequences = pair_sequences(
        pairs, tokenizer.encode_batch, begin=marks.begin, between=marks.between, end=marks.end
    )
    return sequences.without_longer(longest)


def parted(sequences: Sequences, name: str) -> tuple[Sequences, Sequences]:
    """Return all but the first sequences, and these: they are watched, not learned."""
    count = min(KEPT, len(sequences) // 10)
    if not count:
        raise InputError(name, f"holds {len(sequences)} texts", expected="at least ten")
    places = np.arange(len(sequences))
    return sequences.take(places[count:]), sequences.take(places[:count])


def joined(several: list[Sequences]) -> Sequences:
    """Return the sequences of several in one."""
    lengths = np.concatenate([one.lengths for one in several])
    return Sequences(
        tokens=np.concatenate([one.tokens for one in several]),
        starts=np.concatenate([[0], np.cumsum(lengths)]),
        prompts=np.concatenate([one.prompts for one in several]),
    )
