"""How a corpus is shown: counts and lengths, what is odd, what is shared, a few examples.

Texts of a corpus are strangers: they are shown as they are except for characters that a terminal
would obey, which are written as escapes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from rich.console import RenderableType
from rich.text import Text

from heedful.data.files import shown
from heedful.data.inspection import CorpusFacts, Inspection, Lengths, SideFacts
from heedful.data.published import FetchedCorpus
from heedful.data.splits import Overlap
from heedful.views.drawing import PALETTE, house_style, new_figure
from heedful.views.terminal import bullets, number, paragraph, sentence, table

MOST_ODD = 12
LONGEST_EXAMPLE = 160


def inspection_tables(record: Inspection) -> Iterator[RenderableType]:
    """Yield what `heed data inspect` prints."""
    for facts in record.corpora:
        yield from _corpus_tables(facts)
    if record.overlaps:
        yield _overlap_table(record.overlaps)
        for overlap in record.overlaps:
            if overlap.examples:
                quoted = ", ".join(f"“{_example(text, 60)}”" for text in overlap.examples[:3])
                yield paragraph(f"Shared by {overlap.first} and {overlap.second}: {quoted}.")


def fetched_data_tables(record: FetchedCorpus) -> Iterator[RenderableType]:
    """Yield what `heed data get` prints."""
    made = table(record.title, "file", "bytes", "state", left=(0, 2))
    for file in record.files:
        state = "fetched and checked" if file.fresh else "there already, checked"
        made.add_row(Text(file.path), f"{file.bytes:,}", state)
    yield made
    yield paragraph(f"Licence: {record.licence}.")


def inspection_figure(record: Inspection) -> Figure:
    """Draw how long the texts are: one panel a corpus, one line a side."""
    with house_style():
        figure = new_figure(7.2, 2.9 * len(record.corpora))
        panels = figure.subplots(len(record.corpora), 1, squeeze=False)[:, 0]
        for axes, facts in zip(panels, record.corpora, strict=True):
            for side, colour in zip(facts.sides, PALETTE, strict=False):
                lengths = side.words
                label = f"{side.language} (median {number(lengths.median)})"
                axes.stairs(lengths.counts, lengths.edges, color=colour, fill=True, alpha=0.25)
                axes.stairs(lengths.counts, lengths.edges, color=colour, label=label)
            axes.set_title(shown(facts.name))
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
            axes.set_xlabel("words in a text")
            axes.set_ylabel("texts")
            axes.legend()
        return figure


def _corpus_tables(facts: CorpusFacts) -> Iterator[RenderableType]:
    languages = [shown(side.language) for side in facts.sides]
    title = f"{shown(facts.name)}: {facts.count:,} {facts.kind}"
    made = table(title, "", *languages, left=(0,))
    for name, cells in _rows(facts.sides):
        made.add_row(name, *cells)
    yield made
    yield bullets(Text(sentence(line)).plain for line in _findings(facts))
    odd = [(side, found) for side in facts.sides for found in side.odd[:MOST_ODD]]
    if odd:
        made = table("Odd characters", "in", "code", "name", "why", "times", left=(0, 1, 2, 3))
        for side, found in odd:
            made.add_row(
                shown(side.language), found.code, found.name.lower(), found.kind, f"{found.count:,}"
            )
        yield made
        more = sum(len(side.odd[MOST_ODD:]) for side in facts.sides)
        if more:
            yield paragraph(f"And {more} more odd characters, which are rarer.")
    if facts.examples:
        made = table("Examples", "line", *languages, left=tuple(range(1, len(languages) + 1)))
        for example in facts.examples:
            texts = [Text(_example(text)) for text in example.texts]
            made.add_row(f"{example.number:,}", *texts)
        yield made


def _rows(sides: Sequence[SideFacts]) -> Iterator[tuple[str, list[str]]]:
    yield "distinct texts", [f"{side.distinct:,}" for side in sides]
    yield "words: mean", [f"{side.words.mean:.1f}" for side in sides]
    yield "words: median · 90 % · 99 % · most", [_quantiles(side.words) for side in sides]
    yield "characters: mean", [f"{side.characters.mean:.1f}" for side in sides]
    yield (
        "characters: median · 90 % · 99 % · most",
        [_quantiles(side.characters) for side in sides],
    )
    yield "distinct characters", [f"{side.alphabet:,}" for side in sides]
    for name, field in (
        ("empty", "empty"),
        ("not composed (NFC)", "not_nfc"),
        ("with direction marks", "with_direction_marks"),
        ("with white space at an end", "untrimmed"),
    ):
        counts = [getattr(side, field) for side in sides]
        if any(counts):
            yield name, [f"{count:,}" for count in counts]


def _findings(facts: CorpusFacts) -> Iterator[str]:
    pairs = facts.kind == "pairs"
    what = "pair" if pairs else "document"
    yield from (shown(note) for note in facts.notes)
    if facts.left_out:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in facts.left_out.items())
        yield f"not read as {what}s: {reasons}"
    yield f"{_many(facts.duplicates, what)} repeated exactly, {_many(facts.empty, what)} empty"
    if pairs:
        yield f"{_many(facts.untranslated, what)} with two equal sides"
        yield (
            f"{facts.groups:,} groups are linked by shared sentences, the largest with "
            f"{_many(facts.largest_group, what)}: split by group"
        )
        first, second = (side.language for side in facts.sides)
        yield (
            f"several translations: {facts.several_targets:,} texts in {first}, "
            f"{facts.several_sources:,} in {second}"
        )
    yield f"fingerprint {facts.fingerprint}"
    for origin in facts.origins:
        yield f"SHA-256 of {shown(origin.path)} ({origin.bytes:,} bytes): {origin.sha256}"


def _overlap_table(overlaps: Sequence[Overlap]) -> RenderableType:
    made = table("Shared texts", "of", "in", "whole", "sources", "targets", "nearly", left=(0, 1))
    for found in overlaps:
        made.add_row(
            Text(shown(found.second)),
            Text(shown(found.first)),
            *(f"{count:,}" for count in (found.pairs, found.sources, found.targets, found.alike)),
        )
    return made


def _quantiles(lengths: Lengths) -> str:
    return " · ".join(
        number(value) for value in (lengths.median, lengths.p90, lengths.p99, lengths.longest)
    )


def _example(text: str, most: int = LONGEST_EXAMPLE) -> str:
    return shown(text if len(text) <= most else text[: most - 1] + "…")


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
