"""Which source words each word of a translation comes from, by one of the methods of `attribution`.

Of the two methods that look at attention, the heads that align are taken. The decoder reads `begin
source between target` once more and keeps a trace. For each head, α̃_t is how the query from which
target token t was predicted spreads its reading over the source tokens, made to sum to 1. A head
that aligns reads the source at all, and reads different words for different outputs:

    score = mass · information
    mass         mean over t of what the head gives to the source
    information  H(mean of α̃_t) − mean of H(α̃_t), in bits

A head that always looks at the same word is sharp and still tells nothing: its information is 0.
The weights of the best heads are averaged. Scores are summed over the tokens of a source word, and
averaged over those of a target word.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from heedful.errors import InputError
from heedful.model.config import head_name
from heedful.records import Record
from heedful.studies.translation.attribution import (
    BEST_METHOD,
    METHODS,
    ForcedTranslation,
    Method,
    head_weights,
    scores,
)
from heedful.studies.translation.translator import Translation, Translator, in_one_line
from heedful.tokenization import Tokenizer

MOST_HEADS = 4
"""Heads that are averaged at most."""
NEAR = 0.5
"""A head joins the best one if it scores at least this share of it."""

_WORDS = re.compile(r"\w+(?:['’-]\w+)*|[^\w\s]")
_ELIDING_WORDS = re.compile(r"\w+(?:-\w+)*['’]?|[^\w\s]")
"""In French the apostrophe ends a word: l'hôtel is two."""
ELIDING = ("fr", "fra", "it", "ita")

Weights = Float[np.ndarray, "heads targets sources"]
"""Attention from target tokens to source tokens, for every head of every layer."""


@dataclass(frozen=True, eq=False, kw_only=True)
class AligningHead(Record):
    """A head whose weights were used."""

    layer: int
    """From 0."""
    head: int
    """From 0."""
    name: str
    """As it is called everywhere."""
    mass: float
    """Share of its reading that it gives to the source, on average."""
    information: float
    """Bits that a target token's reading tells about which target token it is."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Alignment(Record):
    """Words of a source and of its translation, and who read whom."""

    source: str
    """The source as the model read it."""
    text: str
    """Its translation."""
    source_words: tuple[str, ...]
    """Words and marks of the source."""
    target_words: tuple[str, ...]
    """Words and marks of the translation."""
    weights: Float[np.ndarray, "targets sources"]
    """The share of each source word in the score of each output word; rows sum to 1."""
    mass: Float[np.ndarray, " targets"]
    """The whole score that the source has for each output word. Of attention: how much of its
    reading the word gave to the source. Of erasure: nats of log p."""
    links: tuple[int, ...]
    """The source word with the highest score for each output word."""
    heads: tuple[AligningHead, ...]
    """The heads that were averaged, best first; none where the method looks at no heads."""
    method: Method = BEST_METHOD
    """How it was found out."""

    @property
    def pairs(self) -> str:
        """The links as `source-target` numbers from 0, the form that other tools read."""
        return " ".join(f"{link}-{place}" for place, link in enumerate(self.links))


def align(
    translator: Translator, translation: Translation, rank: int = 0, method: Method = BEST_METHOD
) -> Alignment:
    """Return the alignment of one of a line's translations: the best one, or that of `rank`."""
    if not 0 <= rank < len(translation.hypotheses):
        raise InputError(
            "rank",
            f"is {rank}",
            expected=f"the line has {len(translation.hypotheses)} translations",
        )
    hypothesis = translation.hypotheses[rank]
    tokens = hypothesis.tokens[:-1] if hypothesis.finished else hypothesis.tokens
    return align_tokens(translator, translation.source, tokens, method)


def align_tokens(
    translator: Translator, source: str, tokens: Sequence[int], method: Method = BEST_METHOD
) -> Alignment:
    """Return the alignment of a source with any translation of it, given as tokens."""
    if method not in METHODS:
        raise InputError("method", f"is {method!r}", expected=f"one of {', '.join(METHODS)}")
    text = translator.format.written(source)
    sources, targets, shown = words_of(translator, text, tokens)
    if not targets.words or not sources.words:
        return _nothing(text, shown, sources, targets, method)
    found, heads = _scored(reading_of(translator, source, tokens, sources), method)
    raw = of_words(found, sources, targets)
    mass = raw.sum(axis=1)
    # A word that owes nothing to the source has no row; it is spread evenly, with mass 0.
    even = np.full_like(raw, 1 / raw.shape[1])
    rows = np.divide(raw, mass[:, None], out=even, where=mass[:, None] > 0)
    return Alignment(
        source=text,
        text=shown,
        source_words=sources.words,
        target_words=targets.words,
        weights=rows,
        mass=mass,
        links=tuple(int(place) for place in rows.argmax(axis=1)),
        heads=heads,
        method=method,
    )


def of_words(
    found: Float[np.ndarray, "tokens source_tokens"], sources: TextWords, targets: TextWords
) -> Float[np.ndarray, "targets sources"]:
    """Return the scores of words, from those of their tokens."""
    return targets.joined(sources.joined(found.T).T, mean=True)


def words_of(
    translator: Translator, text: str, tokens: Sequence[int]
) -> tuple[TextWords, TextWords, str]:
    """Return the words of a written source and of a translation, and the text of the latter."""
    languages = translator.format.languages
    sources = TextWords.of(text, languages[0], _spans_of_text(translator.tokenizer, text))
    shown, spans = _spans_of_tokens(translator.tokenizer, tokens)
    return sources, TextWords.of(shown, languages[1], spans), shown


def reading_of(
    translator: Translator, source: str, tokens: Sequence[int], words: TextWords
) -> ForcedTranslation:
    """Return a source and a translation of it as the decoder of a translator reads them."""
    prompt, problem = translator.prompt(source)
    if problem:
        raise InputError("source", problem)
    opening = 0 if translator.marks.begin is None else 1
    return ForcedTranslation(
        translator.decoder, tuple(prompt), opening, tuple(tokens), words.owners
    )


def _scored(
    reading: ForcedTranslation, method: Method
) -> tuple[Float[np.ndarray, "targets sources"], tuple[AligningHead, ...]]:
    if method not in ("attention", "value norm"):
        return scores(reading, method), ()
    weights = head_weights(reading, norms=method == "value norm")
    heads = weights.shape[0] // reading.decoder.config.layers
    scored = head_scores(weights)
    chosen = _chosen([mass * bits for mass, bits in scored])
    named = tuple(
        AligningHead(
            layer=head // heads,
            head=head % heads,
            name=head_name(head // heads, head % heads),
            mass=scored[head][0],
            information=scored[head][1],
        )
        for head in chosen
    )
    return weights[chosen].mean(axis=0), named


def head_scores(weights: Weights) -> list[tuple[float, float]]:
    """Return mass and information of each head."""
    mass = weights.sum(axis=2)
    shares = weights / np.maximum(mass[:, :, None], np.finfo(float).tiny)
    information = _entropy(shares.mean(axis=1)) - _entropy(shares).mean(axis=1)
    return [
        (float(one), max(0.0, float(bits)))
        for one, bits in zip(mass.mean(axis=1), information, strict=True)
    ]


def _chosen(scores: Sequence[float]) -> list[int]:
    order = sorted(range(len(scores)), key=lambda head: -scores[head])
    return [head for head in order[:MOST_HEADS] if scores[head] >= NEAR * scores[order[0]]]


def _entropy(shares: np.ndarray) -> np.ndarray:
    logs = np.log2(shares, out=np.zeros_like(shares), where=shares > 0)
    found: np.ndarray = -(shares * logs).sum(axis=-1)
    return found


@dataclass(frozen=True, eq=False)
class TextWords:
    """The words of a text, and the word that each of its tokens belongs to."""

    words: tuple[str, ...]
    owners: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]
    """Where each word stands in the text."""

    @classmethod
    def of(cls, text: str, language: str, spans: Sequence[tuple[int, int]]) -> TextWords:
        pattern = _ELIDING_WORDS if language in ELIDING else _WORDS
        found = list(pattern.finditer(text))
        # A token owns the space before its word, so a space alone belongs to the word after it.
        ends = [word.end() for word in found]
        last = max(len(found) - 1, 0)
        owners = [
            next((place for place, end in enumerate(ends) if end > start), last)
            for start, _ in spans
        ]
        spans = tuple(word.span() for word in found)
        return cls(tuple(word.group() for word in found), tuple(owners), spans)

    def joined(self, rows: np.ndarray, *, mean: bool = False) -> np.ndarray:
        """Return one row for each word: the sum, or the mean, of the rows of its tokens."""
        words = np.zeros((len(self.words), rows.shape[1]))
        np.add.at(words, list(self.owners), rows)
        if mean:
            counts = np.bincount(self.owners, minlength=len(self.words))
            words /= np.maximum(counts, 1)[:, None]
        return words


def _spans_of_text(tokenizer: Tokenizer, text: str) -> list[tuple[int, int]]:
    return list(tokenizer.core.encode(text, add_special_tokens=False).offsets)


def _spans_of_tokens(
    tokenizer: Tokenizer, tokens: Sequence[int]
) -> tuple[str, list[tuple[int, int]]]:
    """Return the text of tokens and where in it each one lies."""
    prefixes = [tokens[:count] for count in range(1, len(tokens) + 1)]
    texts = tokenizer.decode_batch(prefixes)
    # Half a character is shown as U+FFFD until its other half comes: no prefix may shrink.
    ends = list(itertools.accumulate((len(text) for text in texts), max))
    return in_one_line(texts[-1] if texts else ""), list(itertools.pairwise([0, *ends]))


def _nothing(
    text: str, shown: str, sources: TextWords, targets: TextWords, method: Method
) -> Alignment:
    shape = (len(targets.words), len(sources.words))
    return Alignment(
        source=text,
        text=shown,
        source_words=sources.words,
        target_words=targets.words,
        weights=np.zeros(shape),
        mass=np.zeros(shape[0]),
        links=(),
        heads=(),
        method=method,
    )
