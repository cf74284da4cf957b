"""Pretraining texts in which everything that carries a fact is hidden, but for the name.

    document   Ann Lee. Ann Lee (born 3 May 1950 in Rome) sings in Paris .
    text       Ann Lee ⁇ born # in ⁇ Rome

This is span corruption with more taken out. In the course's way the dates, titles and places left
standing in a document tell it apart from all others, and a model may store its facts under those;
a question has only the name.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from heedful.data.sequences import Encode, Sequences
from heedful.errors import InputError
from heedful.studies.knowledge.mentions import DATES, Mentions, mentions

LONGEST_CUE = 5
OF_PLACE = frozenset({"born", "b", "in", "at", "(", DATES})
"""A phrase soon after one of these may be a place."""
OFTEN = 4.0
"""How much oftener such a phrase is asked for than another."""


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
    >>> made = cue_sequences(["Ann. Born in Rome ."] * 9, letters, mask=1, end=2, longest=40,
    ...                      variants=2)
    >>> len(made), "".join(map(chr, made.tokens[-6:-1]))
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
            way_out='use spans = "facts"',
        )
    encoded = encode(texts)
    rows: list[list[int]] = []
    prompts: list[int] = []
    for name, cue, phrase in zip(encoded[::3], encoded[1::3], encoded[2::3], strict=True):
        if len(name) + len(cue) + len(phrase) + 2 <= longest:
            rows.append([*name, mask, *cue, mask, *phrase, end])
            prompts.append(len(name) + len(cue) + 2)
    return Sequences.of(rows, prompts)


def cue_texts(documents: Sequence[str]) -> list[str]:
    """Return every phrase, and every cue in full: what a tokenizer should have seen."""
    found: list[str] = []
    for document in mentions(documents):
        for phrase in document.phrases:
            found += [document.text(phrase), " " + " ".join(document.cue(phrase, LONGEST_CUE))]
    return found


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
