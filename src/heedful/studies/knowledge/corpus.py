"""What a knowledge study learns from and asks about: documents, questions and their answers.

`embedded` makes the biographies, where the truth is known: who is in the pretraining text, and
which names point to a place. `from_files` reads a text and two files of questions, such as those
of the course; there only the text itself can say who is in it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from heedful.data.corpus import Documents, Pairs
from heedful.data.readers import read_text, read_tsv
from heedful.data.synthetic.biographies import (
    QUESTION,
    QUESTION_PHRASINGS,
    REGIONS,
    Biographies,
    Person,
    biographies,
)
from heedful.data.text_files import ReadOptions
from heedful.errors import InputError
from heedful.files import sha256
from heedful.records import Record
from heedful.studies.knowledge.evidence import DocumentIndex

_ASKING = tuple(
    re.compile(re.escape(phrasing).replace(re.escape("{n}"), r"(.+?)"), re.IGNORECASE)
    for phrasing in QUESTION_PHRASINGS
)


def name_in(question: str) -> str | None:
    """Return the name that a question asks about, if it is asked in a known way.

    >>> name_in("Where was Ada Lovelace born?"), name_in("Why?")
    ('Ada Lovelace', None)
    """
    asked = " ".join(question.split())
    for pattern in _ASKING:
        match = pattern.fullmatch(asked)
        if match is not None:
            return match[1]
    return None


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class Asked(Record):
    """A question with its answer, and what is known about the person."""

    question: str
    """As it is asked."""
    name: str
    """Who it asks about."""
    answer: str
    """The right answer."""
    seen: bool
    """Whether the pretraining text has the name."""
    hint: bool | None = None
    """Whether the name is of the kind that points to a place; None where nobody knows."""
    pointed: str | None = None
    """The place that the name points to, right or wrong."""

    @classmethod
    def about(cls, name: str) -> Asked:
        """Return the question about somebody whom no text has."""
        return cls(
            question=QUESTION.format(n=name),
            name=name,
            answer="",
            seen=False,
            pointed=pointed_place(name),
        )

    @property
    def group(self) -> str:
        """Seen or unseen, and whether the name hints at a place where that is known."""
        seen = "seen" if self.seen else "unseen"
        return seen if self.hint is None else f"{seen}-{'hint' if self.hint else 'plain'}"


@dataclass(frozen=True, eq=False, kw_only=True)
class KnowledgeCorpus:
    """Documents, and questions in three parts that share nobody."""

    name: str
    """What it is called in tables."""
    documents: tuple[str, ...]
    """The pretraining text, one document each; none is empty."""
    train: tuple[Asked, ...]
    """Questions for fine-tuning."""
    held_out: tuple[Asked, ...]
    """Questions on which temperature and threshold are chosen."""
    test: tuple[Asked, ...]
    """Questions on which everything is measured."""
    notes: tuple[str, ...]
    """What was found odd and what was done about it."""
    hashes: dict[str, str]
    """SHA-256 of what it was made from."""
    known_truth: bool
    """Whether `hint` and `pointed` are known: true of the embedded biographies."""

    @property
    def places(self) -> tuple[str, ...]:
        """The answers of the fine-tuning questions, each once, most frequent first."""
        counts: dict[str, int] = {}
        for one in self.train:
            counts[one.answer] = counts.get(one.answer, 0) + 1
        return tuple(sorted(counts, key=lambda place: (-counts[place], place)))

    @property
    def known_people(self) -> dict[str, str]:
        """Who the text or fine-tuning is about, with their right places: for measuring only."""
        asked = (*self.train, *(one for one in (*self.held_out, *self.test) if one.seen))
        return {one.name: one.answer for one in asked}

    @property
    def evidence(self) -> DocumentIndex:
        """The documents, found by names."""
        return DocumentIndex(self.documents)


def embedded(
    people: int,
    *,
    seed: int = 0,
    phrasings: int = 4,
    exposures: int = 4,
    unseen_share: float = 0.25,
    sentences: int | None = None,
) -> KnowledgeCorpus:
    """Return the biographies of that many people as a corpus to learn from.

    `sentences` cuts every document after so many; the first one says the birth place.

    >>> corpus = embedded(200)
    >>> len(corpus.train), len(corpus.held_out), len(corpus.test)
    (100, 30, 70)
    """
    book = biographies(
        people, seed=seed, phrasings=phrasings, exposures=exposures, unseen_share=unseen_share
    )
    documents = tuple(_beginning(document, sentences) for document in book.documents)
    text = Documents(name="biographies", texts=documents)
    return KnowledgeCorpus(
        name=f"biographies of {people} people",
        documents=documents,
        train=_asked(book, "finetune"),
        held_out=_asked(book, "dev"),
        test=_asked(book, "test"),
        notes=(),
        hashes={"documents": text.fingerprint, "questions": _fingerprint(book)},
        known_truth=True,
    )


def from_files(
    pretrain: Path, train: Path, dev: Path, *, held_out: int | None = None
) -> KnowledgeCorpus:
    """Read documents, one a line, and two files of `question TAB answer`.

    `dev` is the test. A question that stands in both files leaves the training part; so many
    training questions, spread evenly, are held out to choose temperature and threshold on (one
    in ten where no number is given).
    """
    whole = read_text(pretrain)
    text = whole.without_empty()
    learned, asked = _questions(train), _questions(dev)
    notes = []
    if len(text) < len(whole):
        notes.append(f"{pretrain.name}: {len(whole) - len(text)} empty documents left out")
    kept, shared = _without(learned, asked)
    if shared:
        notes.append(
            f"{train.name}: {shared} question{'s' if shared > 1 else ''} that {dev.name} asks too "
            "left out of training"
        )
    held_out = max(len(kept) // 10, 1) if held_out is None else held_out
    if not 1 <= held_out < len(kept):
        raise InputError(
            "held_out",
            f"is {held_out}",
            expected=f"1 to {len(kept) - 1} of the {len(kept)} training questions",
        )
    places = {place * len(kept) // held_out for place in range(held_out)}
    evidence = DocumentIndex(text.texts)
    parts = (
        [one for place, one in enumerate(kept) if place not in places],
        [one for place, one in enumerate(kept) if place in places],
        list(zip(asked.sources, asked.targets, strict=True)),
    )
    train_part, held_part, test_part = (
        tuple(_known_from_text(question, answer, evidence) for question, answer in part)
        for part in parts
    )
    origins = [*whole.origins, *learned.origins, *asked.origins]
    return KnowledgeCorpus(
        name=f"{pretrain.name}, {train.name}, {dev.name}",
        documents=text.texts,
        train=train_part,
        held_out=held_part,
        test=test_part,
        notes=tuple(notes),
        hashes={f"file {Path(origin.path).name}": origin.sha256 for origin in origins},
        known_truth=False,
    )


def pointed_place(name: str) -> str | None:
    """Return the place that a name of the biographies points to, or None.

    >>> pointed_place("Ala Maceworth"), pointed_place("Ala Macalworth"), pointed_place("Ala Rayman")
    (None, 'London', None)
    """
    family = name.rpartition(" ")[2]
    for region in REGIONS:
        for place, ending in region.endings.items():
            families = (
                start + middle + ending for start in region.starts for middle in region.middles
            )
            if family in families:
                return place
    return None


def _beginning(document: str, sentences: int | None) -> str:
    parts = document.split(". ")
    if sentences is None or sentences >= len(parts):
        return document
    return ". ".join(parts[:sentences]) + "."


def _asked(book: Biographies, split: str) -> tuple[Asked, ...]:
    people: dict[int, Person] = {person.id: person for person in book.people}
    return tuple(
        Asked(
            question=one.question,
            name=people[one.person].name,
            answer=one.answer,
            seen=people[one.person].seen,
            hint=people[one.person].hint,
            pointed=pointed_place(people[one.person].name) if people[one.person].hint else None,
        )
        for one in book.asked(split)
    )


def _questions(path: Path) -> Pairs:
    pairs = read_tsv(path, ReadOptions(languages=("question", "answer")))
    for number, (question, answer) in enumerate(
        zip(pairs.sources, pairs.targets, strict=True), start=1
    ):
        if not question.strip() or not answer.strip():
            raise InputError(
                f"{path.name}:{number}",
                "has no question or no answer",
                expected="question TAB answer on every line",
            )
    return pairs


def _without(pairs: Pairs, others: Pairs) -> tuple[list[tuple[str, str]], int]:
    asked = set(others.sources)
    both = list(zip(pairs.sources, pairs.targets, strict=True))
    kept = [pair for pair in both if pair[0] not in asked]
    if len(kept) < 2:
        raise InputError(
            pairs.name, f"has {len(kept)} questions of its own", expected="at least two"
        )
    return kept, len(both) - len(kept)


def _known_from_text(question: str, answer: str, evidence: DocumentIndex) -> Asked:
    name = name_in(question) or question
    return Asked(
        question=question,
        name=name,
        answer=answer,
        seen=bool(evidence.mentions(name)),
    )


def _fingerprint(book: Biographies) -> str:
    lines: Sequence[str] = [f"{one.split}\t{one.question}\t{one.answer}" for one in book.questions]
    return sha256("\n".join(lines))
