"""What is read before the first pair: text of one language at a time, as token sequences.

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

import numpy as np

from heedful.data.batches import Sequences, document_sequences, pair_sequences
from heedful.data.corpus import Documents, Pairs
from heedful.errors import InputError
from heedful.studies.translation.format import Marks
from heedful.tokenization import Tokenizer

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
    made = pair_sequences(
        pairs, tokenizer.encode_batch, begin=marks.begin, between=marks.between, end=marks.end
    )
    return made.without_longer(longest)


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
