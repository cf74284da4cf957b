"""What no network is needed for: copying, a dictionary learned from the pairs, and memory.

- `copy`: the source itself. Names, numbers and cognates are worth something.
- `dictionary`: IBM model 1. The probability t(e | f) that word f is written as word e is fitted
  to the pairs by expectation and maximisation; a source is then translated word for word.
- `nearest`: the target of the training source that shares the most, the rarest words most.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

import numpy as np
from jaxtyping import Float, Int
from scipy.sparse import csr_array

from heedful.data.corpus import Pairs

Baseline = Literal["copy", "dictionary", "nearest"]
BASELINES: tuple[Baseline, ...] = ("copy", "dictionary", "nearest")
ROUNDS = 6
"""Of expectation and maximisation; more changes little."""
NOTHING = 0
"""The id of the empty word, which explains target words that no source word brings."""

_WORD = re.compile(r"\w+['’]?|[^\w\s]")
_SPACE_BEFORE = re.compile(r"\s+([.,;:!?…])")


def words_of(text: str) -> list[str]:
    """Return the words and marks of a text in small letters; l' is a word of its own.

    >>> words_of("L'hôtel est là !")
    ["l'", 'hôtel', 'est', 'là', '!']
    """
    return _WORD.findall(text.lower())


def translate_baseline(baseline: Baseline, pairs: Pairs, sources: Sequence[str]) -> tuple[str, ...]:
    """Translate sources in one of the three ways."""
    if baseline == "copy":
        return tuple(sources)
    if baseline == "nearest":
        return nearest(pairs, sources)
    return word_for_word(dictionary(pairs), sources)


def dictionary(pairs: Pairs, rounds: int = ROUNDS) -> dict[str, str]:
    """Learn for each source word its likeliest target word; "" where it is likeliest to vanish.

    >>> pairs = Pairs(name="x", sources=("le chat", "le chien"), targets=("the cat", "the dog"))
    >>> dictionary(pairs)["chien"]
    'dog'
    """
    source_ids: dict[str, int] = {"": NOTHING}
    target_ids: dict[str, int] = {}
    f, e, place = _links(pairs, source_ids, target_ids)
    cells, of_link = np.unique(f * len(target_ids) + e, return_inverse=True)
    cell_source, cell_target = np.divmod(cells, len(target_ids))
    t: Float[np.ndarray, " cells"] = np.full(len(cells), 1.0)
    for _ in range(rounds):
        # How much of each target word each source word of its sentence explains.
        share = t[of_link]
        share /= np.bincount(place, share)[place]
        counts = np.bincount(of_link, share, minlength=len(cells))
        t = counts / np.bincount(cell_source, counts)[cell_source]
    best: dict[int, tuple[float, int]] = {}
    for source, target, value in zip(
        cell_source.tolist(), cell_target.tolist(), t.tolist(), strict=True
    ):
        if source not in best or value > best[source][0]:
            best[source] = (value, target)
    known = list(target_ids)
    return {word: known[best[number][1]] for word, number in source_ids.items() if number in best}


def word_for_word(lexicon: dict[str, str], sources: Sequence[str]) -> tuple[str, ...]:
    """Write each word of each source as the lexicon has it; unknown words stay as they are."""
    made = []
    for source in sources:
        text = " ".join(lexicon.get(word, word) for word in words_of(source))
        text = _SPACE_BEFORE.sub(r"\1", text)
        made.append(text[:1].upper() + text[1:])
    return tuple(made)


def nearest(pairs: Pairs, sources: Sequence[str]) -> tuple[str, ...]:
    """Return the target of the training source that is most like each source (tf-idf, cosine)."""
    ids: dict[str, int] = {}
    train = [[ids.setdefault(word, len(ids)) for word in words_of(text)] for text in pairs.sources]
    asked = [[ids[word] for word in words_of(text) if word in ids] for text in sources]
    rarity = np.log(len(train) / _documents(train, len(ids)))
    similarity = (_unit_rows(asked, rarity) @ _unit_rows(train, rarity).T).toarray()
    return tuple(pairs.targets[place] for place in similarity.argmax(axis=1).tolist())


def _links(
    pairs: Pairs, source_ids: dict[str, int], target_ids: dict[str, int]
) -> tuple[Int[np.ndarray, " links"], Int[np.ndarray, " links"], Int[np.ndarray, " links"]]:
    """Return every (source word, target word) of every pair, and which target word it explains."""
    f, e, place = [], [], []
    number = 0
    for source, target in zip(pairs.sources, pairs.targets, strict=True):
        sources = [NOTHING, *(source_ids.setdefault(w, len(source_ids)) for w in words_of(source))]
        targets = [target_ids.setdefault(w, len(target_ids)) for w in words_of(target)]
        f.append(np.tile(sources, len(targets)))
        e.append(np.repeat(targets, len(sources)))
        place.append(np.repeat(np.arange(number, number + len(targets)), len(sources)))
        number += len(targets)
    found = (np.concatenate(each).astype(np.int64) for each in (f, e, place))
    return next(found), next(found), next(found)


def _documents(rows: Sequence[Sequence[int]], count: int) -> Int[np.ndarray, " words"]:
    return np.bincount([word for row in rows for word in set(row)], minlength=count)


def _unit_rows(rows: Sequence[Sequence[int]], rarity: Float[np.ndarray, " words"]) -> csr_array:
    flat = np.fromiter((word for row in rows for word in row), np.int64)
    ends = np.cumsum([0, *map(len, rows)])
    made = csr_array((rarity[flat], flat, ends), shape=(len(rows), len(rarity)))
    made.sum_duplicates()
    lengths = np.sqrt((made * made).sum(axis=1))
    lengths[lengths == 0] = 1.0
    return csr_array(made / lengths[:, None])
