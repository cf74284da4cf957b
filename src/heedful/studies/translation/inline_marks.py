"""Marks inside a sentence: taken out before it is translated, and put where they belong after it.

    Il a travaillé **trois heures**, mais en vain.    He worked **three hours**, but in vain.

Whoever cuts a sentence at its marks translates halves of sentences. Here the whole sentence is
translated, and a pair of marks goes around the words that its words have become: those that say the
same to the letter, such as a name or a number; else those that the model made from them, as
`attribution.align` tells; else those at the same share of the sentence. The last two are guesses,
so that a mark may be a word off, but none is lost.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from heedful.studies.translation.attribution import Alignment

Span = tuple[int, int]
INLINE = re.compile(
    r"</?\w[^<>]*>"  # a tag, as in HTML and subtitles
    r"|\*\*|(?<!\w)__|__(?!\w)"  # strong
    r"|(?<!\w)[*_](?=\w)|(?<=[\w.!?…])[*_](?!\w)"  # stressed
    r"|!?\[(?=[^\[\]]*\]\()|\]\([^()\s]*\)"  # both ends of a link
)
"""Marks of Markdown and of subtitles that stand around words."""
_WORD = re.compile(r"\w+(?:['’-]\w+)*")


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A mark that was taken out of a text."""

    text: str
    place: int
    """Where it stood in the text without marks."""
    opens: bool
    """Whether it belongs to the words after it; else to those before."""
    other: int | None = None
    """The place of the mark that it is paired with, if it is."""

    def moved(self, start: int) -> Mark:
        """Return the same mark, counted from a place."""
        other = None if self.other is None else self.other - start
        return replace(self, place=self.place - start, other=other)


def taken_out(text: str) -> tuple[str, list[Mark]]:
    """Return a text without its inline marks, and the marks.

    >>> taken_out("un <i>beau</i> jour")
    ('un beau jour', [Mark(text='<i>', place=3, opens=True, other=7),
                      Mark(text='</i>', place=7, opens=False, other=3)])
    """
    parts: list[str] = []
    marks: list[Mark] = []
    end = length = 0
    waiting: dict[str, list[int]] = {}
    for found in INLINE.finditer(text):
        parts.append(text[end : found.start()])
        length, end = length + len(parts[-1]), found.end()
        name, closes = _kind(found[0])
        first = waiting[name].pop() if closes is not False and waiting.get(name) else None
        if first is not None:
            opening = marks[first]
            marks[first] = replace(opening, other=length)
            marks.append(Mark(text=found[0], place=length, opens=False, other=opening.place))
            continue
        if not closes:
            waiting.setdefault(name, []).append(len(marks))
        marks.append(Mark(text=found[0], place=length, opens=not closes))
    return "".join([*parts, text[end:]]), marks


def _kind(mark: str) -> tuple[str, bool | None]:
    """Return what a mark is paired by, and whether it closes; None: it may open or close."""
    if mark.startswith("<"):
        return re.findall(r"\w+", mark)[0].casefold(), mark.startswith("</")
    if mark[0] in "*_":
        return mark, None
    return "link", mark.startswith("]")


def put_back(
    source: str, marks: Sequence[Mark], text: str, alignment: Alignment | None = None
) -> str:
    """Return a translation with the marks that were taken out of its source.

    >>> source, marks = taken_out("Elle habite à **Lyon** depuis 2019.")
    >>> put_back(source, marks, "She has lived in Lyon since 2019.")
    'She has lived in **Lyon** since 2019.'
    """
    links = _Links(source, text, alignment)
    parts, end = [], 0
    # Of marks at one place the order is that of the source, as a stable sort leaves it.
    for place, mark in sorted(
        ((links.place(mark), mark) for mark in marks), key=lambda one: one[0]
    ):
        parts += [text[end:place], mark.text]
        end = place
    return "".join([*parts, text[end:]])


class _Links:
    """Which part of a translation comes from which part of its source."""

    def __init__(self, source: str, text: str, alignment: Alignment | None) -> None:
        self.source, self.text = source, text
        self.weights = None if alignment is None else alignment.weights
        if alignment is None:
            self.sources, self.targets = (
                [word.span() for word in _WORD.finditer(one)] for one in (source, text)
            )
        else:
            self.sources = _in_order(alignment.source_words, source)
            self.targets = _in_order(alignment.target_words, text)

    def place(self, mark: Mark) -> int:
        """Return where a mark goes."""
        part = self._part(mark)
        first, last = self._to_the_letter(part) or self._of_words(part)
        return first if mark.opens else last

    def _part(self, mark: Mark) -> Span:
        """Return the part of the source that a mark belongs to; by itself, the nearest word."""
        if mark.other is not None:
            start, end = sorted((mark.place, min(max(mark.other, 0), len(self.source))))
            return start, end
        if mark.opens:
            after = [end for _, end in self.sources if end > mark.place]
            return mark.place, min(after, default=len(self.source))
        before = [start for start, _ in self.sources if start < mark.place]
        return max(before, default=0), mark.place

    def _to_the_letter(self, part: Span) -> Span | None:
        """Return where the text says the same as a part of the source, if it does so once."""
        said = self.source[slice(*part)].strip(" ,;:.!?")
        found = list(re.finditer(rf"(?<!\w){re.escape(said)}(?!\w)", self.text)) if said else []
        return found[0].span() if len(found) == 1 else None

    def _of_words(self, part: Span) -> Span:
        """Return from the first to the last word that comes from a part of the source."""
        start, end = part
        inside = [n for n, word in enumerate(self.sources) if word[0] < end and start < word[1]]
        if not self.targets or not inside:
            place = round(start / max(len(self.source), 1) * len(self.text))
            return place, place
        if self.weights is not None:
            made = [n for n, row in enumerate(self.weights) if int(row.argmax()) in inside]
            made = made or [int(self.weights[:, inside].sum(axis=1).argmax())]
        else:
            scale = len(self.targets) / len(self.sources)
            made = [min(int(n * scale), len(self.targets) - 1) for n in inside]
        return self.targets[made[0]][0], self.targets[made[-1]][1]


def _in_order(words: Sequence[str], text: str) -> list[Span]:
    """Return where words stand in a text, one after the other; of a missing one, where it would."""
    spans, end = [], 0
    for word in words:
        found = re.compile(re.escape(word), re.IGNORECASE).search(text, end)
        spans.append(found.span() if found else (end, end))
        end = spans[-1][1]
    return spans
