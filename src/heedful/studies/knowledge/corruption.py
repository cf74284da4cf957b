"""Pretraining texts: a part of the document is taken out, and has to be said at the end.

    document    Ann Lee was born in Rome. She sings.
    corrupted   Ann Lee was born in ⁇. She sings. ⁇ Rome
                prefix              mask suffix  mask span

A model that reads on can say the span only if it has stored the fact, or if the rest of the
document gives it away. Afterwards a question is one more such text: `question ⁇ answer`.

Spans are drawn in three ways. `random` is the course's: the document is cut to a random length,
and a run of tokens of random length (a quarter on average) is taken out anywhere. `facts` takes
whole runs of capitalised words and numbers: names, places, dates. Each document is corrupted in
several ways; what a training sees is decided before it begins, so that it can be resumed.

`cues` takes out more: everything that carries a fact, but for the name.

    document   Ann Lee. Ann Lee (born 3 May 1950 in Rome) sings in Paris .
    text       Ann Lee ⁇ born # in ⁇ Rome

In the course's way the dates, titles and places left standing in a document tell it apart from all
others, and a model may store its facts under those; a question has only the name.

`drop` does the same without knowing what a name, a date or a place is. Words are what stands
between spaces. The first few words of a document stay; of those just before the span each is
dropped at random, at a rate drawn anew for every text, so that often little is left but the first
words, and the span must be recalled.

    text       Ann Lee. Ann ⁇ (born 1950 ⁇ in Rome)
    text       Ann Lee. ⁇ in ⁇ Rome

What may be asked for is learned by counting: for a share of the texts, the span is one that some
training question has as its answer. Whether it is the first such string of the document or a later
one is drawn as often as each was the right one in the documents of the training questions. The
other texts ask for any few words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Literal

import numpy as np
from jaxtyping import Float64

from heedful.data.batches import Encode, Sequences
from heedful.errors import InputError
from heedful.studies.knowledge.corpus import Asked
from heedful.studies.knowledge.reader import DATES, Mentions, mentions

Spans = Literal["random", "facts", "cues", "drop"]
"""Anything; names, places and dates; such a phrase after its cue alone; or anything, with words
dropped."""
SHORTEST = 4
"""Tokens that the course leaves of a document at least."""
KEPT = 7 / 8
"""Share of the context that it leaves at most: 112 characters of 128."""
_WORD = r"[A-Z0-9\u00c0-\u00de](?:[\w'’.-]*\w)?"
_FACT = re.compile(rf"{_WORD}(?: {_WORD})*")
_OPENINGS = {"He", "She", "It", "The", "His", "Her", "On", "In", "By", "For", "Today", "A", "An"}
"""Words that have a capital only because a sentence begins with them."""
LONGEST_CUE = 5
OF_PLACE = frozenset({"born", "b", "in", "at", "(", DATES})
"""A phrase soon after one of these may be a place."""
OFTEN = 4.0
"""How much oftener such a phrase is asked for than another."""
FEWEST_FIRST, MOST_FIRST = 2, 5
"""How many first words of a document stay where words are dropped: drawn between these."""
MOST_BEFORE = 3
"""Words before the span that may stay."""
MOST_SAID = 3
"""Words of a span, where it is not an answer."""


def corrupted(
    documents: Sequence[str],
    encode: Encode,
    *,
    mask: int,
    end: int,
    longest: int,
    spans: Spans = "random",
    variants: int = 8,
    learn_all: bool = True,
    seed: int = 0,
) -> Sequences:
    """Return every document in `variants` corruptions, of at most `longest` tokens to predict.

    With `learn_all` every token is learned, as in the course; else the span alone.

    >>> letters = lambda texts: [[ord(letter) for letter in text] for text in texts]
    >>> sequences = corrupted(["abcdefgh"], letters, mask=1, end=2, longest=16, variants=3)
    >>> len(sequences), sequences.tokens.tolist().count(1), sequences.tokens.tolist().count(2)
    (3, 6, 3)
    """
    if longest < SHORTEST + 3:
        raise InputError("longest", f"is {longest}", expected=f"at least {SHORTEST + 3}")
    draw = np.random.default_rng(np.random.SeedSequence([seed, 7]))
    if spans == "random":
        room = max(min(longest - 2, int(longest * KEPT)), SHORTEST)
        parts = _random_parts(encode(documents), room, variants, draw)
    elif spans == "facts":
        parts = _fact_parts(documents, encode, longest - 2, variants, draw)
    else:
        raise InputError("spans", f"is {spans!r}", expected="random or facts were expected")
    rows, prompts = [], []
    for prefix, span, suffix in parts:
        rows.append([*prefix, mask, *suffix, mask, *span, end])
        prompts.append(0 if learn_all else len(prefix) + len(suffix) + 2)
    return Sequences.of(rows, prompts)


Parts = list[tuple[list[int], list[int], list[int]]]
"""Prefix, span and suffix of each corrupted document."""


def _random_parts(
    documents: list[list[int]], room: int, variants: int, draw: np.random.Generator
) -> Parts:
    parts: Parts = []
    for document in documents:
        for _ in range(variants):
            most = min(len(document), room)
            kept = int(draw.integers(min(SHORTEST, most), most + 1))
            length = int(draw.integers(1, max(kept // 2, 1) + 1))
            start = int(draw.integers(0, kept - length + 1))
            parts.append((document[:start], document[start : start + length],
                         document[start + length : kept]))  # fmt: skip
    return parts


def _fact_parts(
    documents: Sequence[str], encode: Encode, room: int, variants: int, draw: np.random.Generator
) -> Parts:
    pieces: list[str] = []
    for document in documents:
        facts = fact_spans(document) or [(0, len(document))]
        order = draw.permutation(len(facts))
        for turn in range(variants):
            start, end = facts[int(order[turn % len(facts)])]
            pieces += [document[:start], document[start:end], document[end:]]
    encoded = encode(pieces)
    parts: Parts = []
    for place in range(0, len(encoded), 3):
        prefix, span, suffix = encoded[place : place + 3]
        # Documents begin with who they are about: what does not fit is cut from their end.
        span = span[:room]
        prefix = prefix[: room - len(span)]
        parts.append((prefix, span, suffix[: room - len(span) - len(prefix)]))
    return parts


def fact_spans(document: str) -> list[tuple[int, int]]:
    """Return where runs of capitalised words and numbers stand, but for whom it is about.

    The first run of several words is taken for the name. It is what the facts are stored
    under, and never taken out.

    >>> text = "Ann Lee was born in Rome. She came on 3 May 1950."
    >>> [text[start:end] for start, end in fact_spans(text)]
    ['Rome', '3 May 1950']
    """
    spans = []
    name_met = False
    for match in _FACT.finditer(document):
        start, end = match.span()
        words = match[0].split(" ")
        if words[0] in _OPENINGS:
            start += len(words[0]) + 1
            words = words[1:]
        if not name_met and len(words) > 1 and words[0].isalpha():
            name_met = True
        elif words:
            spans.append((start, end))
    return spans


def cue_sequences(
    documents: Sequence[str],
    encode: Encode,
    *,
    mask: int,
    end: int,
    longest: int,
    variants: int,
    seed: int = 0,
) -> Sequences:
    """Return `name ⁇ cue ⁇ phrase` for every document, `variants` times with other draws.

    Only the phrase is learned. Documents without a title or a phrase give nothing.

    >>> letters = lambda texts: [[ord(letter) for letter in text] for text in texts]
    >>> sequences = cue_sequences(["Ann. Born in Rome ."] * 9, letters, mask=1, end=2, longest=40,
    ...                      variants=2)
    >>> len(sequences), "".join(map(chr, sequences.tokens[-6:-1]))
    (18, '\\x01Rome')
    """
    draw = np.random.default_rng(np.random.SeedSequence([seed, 11]))
    texts: list[str] = []
    for document in mentions(documents):
        if document.name and document.phrases:
            texts += _drawn(document, variants, draw)
    if not texts:
        raise InputError(
            "documents",
            "hold no phrase under a name",
            expected='documents such as "Ann Lee. Ann Lee was born in Rome ."',
            hint='use spans = "facts"',
        )
    return _learned_spans(encode(texts), mask=mask, end=end, longest=longest)


def _learned_spans(encoded: Sequence[list[int]], *, mask: int, end: int, longest: int) -> Sequences:
    """Join every three texts by masks; those that are too long are left out."""
    rows: list[list[int]] = []
    prompts: list[int] = []
    for name, cue, phrase in zip(encoded[::3], encoded[1::3], encoded[2::3], strict=True):
        if len(name) + len(cue) + len(phrase) + 2 <= longest:
            rows.append([*name, mask, *cue, mask, *phrase, end])
            prompts.append(len(name) + len(cue) + 2)
    return Sequences.of(rows, prompts)


def cue_texts(documents: Sequence[str]) -> list[str]:
    """Return every phrase, and every cue in full: what a tokenizer should have seen."""
    texts: list[str] = []
    for document in mentions(documents):
        for phrase in document.phrases:
            texts += [document.text(phrase), " " + " ".join(document.cue(phrase, LONGEST_CUE))]
    return texts


def dropped_sequences(
    documents: Sequence[str],
    encode: Encode,
    *,
    asked: Sequence[Asked],
    of_answers: float,
    mask: int,
    end: int,
    longest: int,
    variants: int,
    seed: int = 0,
) -> Sequences:
    """Return `first words ⁇ some words before ⁇ span`, `variants` times for every document.

    A share `of_answers` of the spans are answers to what is `asked` in training, in documents that
    hold one. Only the span is learned.

    >>> letters = lambda texts: [[ord(letter) for letter in text] for text in texts]
    >>> lee = Asked(question="Where was Ann Lee born?", name="Ann Lee", answer="Rome", seen=True)
    >>> sequences = dropped_sequences(["Ann Lee. Born in Rome ."] * 9, letters, asked=[lee],
    ...                               of_answers=1.0, mask=1, end=2, longest=40, variants=2)
    >>> len(sequences), "".join(map(chr, sequences.tokens[-6:-1]))
    (18, '\\x01Rome')
    """
    draw = np.random.default_rng(np.random.SeedSequence([seed, 13]))
    held = _held_answers(documents, asked)
    counts = _order_counts(documents, held, asked)
    texts: list[str] = []
    for document, found in zip(documents, held, strict=True):
        words = [word.span() for word in re.finditer(r"\S+", document)]
        chances = counts[: len(found)] / counts[: len(found)].sum()
        for _ in range(variants):
            if found and draw.random() < of_answers:
                span = found[int(draw.choice(len(found), p=chances))]
            elif len(words) > FEWEST_FIRST:
                first = int(draw.integers(FEWEST_FIRST, len(words)))
                last = min(first + int(draw.integers(MOST_SAID)), len(words) - 1)
                span = words[first][0], words[last][1]
            else:
                continue
            texts += _dropped(document, words, span, draw)
    return _learned_spans(encode(texts), mask=mask, end=end, longest=longest)


def _held_answers(documents: Sequence[str], asked: Sequence[Asked]) -> list[list[tuple[int, int]]]:
    """Return where each document holds an answer to any of the questions."""
    answers = sorted({one.answer for one in asked}, key=lambda answer: (-len(answer), answer))
    if not answers:
        return [[] for _ in documents]
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, answers))})(?!\w)")
    return [[match.span() for match in pattern.finditer(document)] for document in documents]


def _order_counts(
    documents: Sequence[str], held: Sequence[Sequence[tuple[int, int]]], asked: Sequence[Asked]
) -> Float64[np.ndarray, " orders"]:
    """Return how often the first, the second, … answer that a document holds was the right one.

    Counted in the documents that begin with a name of a training question, from one on. A
    string that no other question has as its answer would not have been found without this one.
    """
    counts = np.ones(max(map(len, held), default=1))
    known = Counter(one.answer for one in asked)
    about: dict[str, list[Asked]] = {}
    for one in asked:
        about.setdefault(one.name.partition(" ")[0], []).append(one)
    for document, found in zip(documents, held, strict=True):
        for one in about.get(document.split(maxsplit=1)[0], []):
            if not document.startswith(one.name):
                continue
            texts = [document[start:end] for start, end in found]
            others = [text for text in texts if known[text] > (text == one.answer)]
            if one.answer in others:
                counts[others.index(one.answer)] += 1
    return counts


def _dropped(
    document: str,
    words: Sequence[tuple[int, int]],
    span: tuple[int, int],
    draw: np.random.Generator,
) -> list[str]:
    """Return what stays of the beginning, what stays before the span, and the span."""
    start, after = span
    before = [document[first : min(last, start)] for first, last in words if first < start]
    kept = min(int(draw.integers(FEWEST_FIRST, MOST_FIRST + 1)), len(before))
    near = before[max(len(before) - int(draw.integers(MOST_BEFORE + 1)), kept) :]
    rate = draw.random()
    stays = [word for word in near if draw.random() < rate]
    # The space makes the first word the same tokens here as inside of a question.
    return ["".join(f" {word}" for word in part) for part in (before[:kept], stays)] + [
        document[start:after]
    ]


def _drawn(document: Mentions, variants: int, draw: np.random.Generator) -> list[str]:
    phrases = document.phrases
    weights = np.array(
        [
            OFTEN if OF_PLACE.intersection(document.cue(phrase, LONGEST_CUE)) else 1.0
            for phrase in phrases
        ]
    )
    texts: list[str] = []
    for number in draw.choice(len(phrases), size=variants, p=weights / weights.sum()):
        phrase = phrases[int(number)]
        cue = document.cue(phrase, int(draw.integers(0, LONGEST_CUE + 1)))
        # The space makes the name the same tokens here as inside of a question.
        texts += [" " + document.name, "".join(f" {word}" for word in cue), document.text(phrase)]
    return texts
