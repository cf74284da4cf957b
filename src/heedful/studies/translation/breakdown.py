"""Where translations are good and where they are not: by length, by unseen words, by example."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from heedful.data.corpus import Pairs
from heedful.studies.translation.baselines import words_of
from heedful.studies.translation.corpora import TestSet
from heedful.studies.translation.records import Example, Slice
from heedful.studies.translation.scoring import sentence_chrf, slice_of

LENGTHS = ((5, "up to 5 words"), (8, "6 to 8 words"), (11, "9 to 11 words"))
LONGER_YET = "12 words and more"
SHOWN = 20
"""Examples of the best and of the worst."""


def by_length(test: TestSet, translations: Sequence[str]) -> tuple[Slice, ...]:
    """Score sentences by the number of words in the source; marks are no words."""

    def kind(source: str) -> str:
        count = sum(word[0].isalnum() for word in words_of(source))
        return next((name for most, name in LENGTHS if count <= most), LONGER_YET)

    return _slices(test, translations, [name for _, name in LENGTHS] + [LONGER_YET], kind)


def by_unseen(test: TestSet, translations: Sequence[str], pairs: Pairs) -> tuple[Slice, ...]:
    """Score sentences by the number of their words that no training source holds."""
    known = {word for source in pairs.sources for word in words_of(source)}
    names = ("every word seen", "one word unseen", "more words unseen")

    def kind(source: str) -> str:
        return names[min(sum(word not in known for word in set(words_of(source))), 2)]

    return _slices(test, translations, names, kind)


def extremes(
    test: TestSet, translations: dict[str, Sequence[str]], judged: str, count: int = SHOWN
) -> tuple[tuple[Example, ...], tuple[Example, ...]]:
    """Return the best and the worst translations of one arm, with those of the others.

    Among perfect ones the longer is the better; an arm that translated fewer sentences is left
    out where it has none.
    """
    found = [
        Example(
            source=source,
            references=known,
            translations={
                arm: texts[place] for arm, texts in translations.items() if place < len(texts)
            },
            chrf=sentence_chrf(translations[judged][place], known),
        )
        for place, (source, known) in enumerate(zip(test.sources, test.references, strict=True))
        if place < len(translations[judged])
    ]
    order = sorted(found, key=lambda example: (-example.chrf, -len(example.source)))
    return tuple(order[:count]), tuple(reversed(order[-count:]))


def _slices(
    test: TestSet, translations: Sequence[str], names: Sequence[str], kind: Callable[[str], str]
) -> tuple[Slice, ...]:
    places: dict[str, list[int]] = {name: [] for name in names}
    for place, source in enumerate(test.sources[: len(translations)]):
        places[kind(source)].append(place)
    return tuple(
        slice_of(
            name,
            [translations[place] for place in chosen],
            [test.references[place] for place in chosen],
        )
        for name, chosen in places.items()
        if chosen
    )
