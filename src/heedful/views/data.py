"""A corpus: counts and lengths, odd characters, shared texts, a few examples.

Texts of a corpus come from strangers: characters that a terminal would obey are escaped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from heedful.data.inspection import CorpusFacts, Inspection, Lengths, SideFacts
from heedful.data.published import FetchedCorpus
from heedful.data.splits import Overlap
from heedful.data.text_files import shown
from heedful.views.blocks import Block, Bullets, Text, table
from heedful.views.drawing import PALETTE, house_style, new_figure
from heedful.views.formatting import many, number, sentence

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_ODD = 12
LONGEST_EXAMPLE = 160


def inspection_blocks(record: Inspection) -> Iterator[Block]:
    """Yield what `heed data inspect` prints."""
    for corpus in record.corpora:
        yield from _corpus_blocks(corpus)
    if record.overlaps:
        yield _overlap_table(record.overlaps)
        for overlap in record.overlaps:
            if overlap.examples:
                quoted = ", ".join(f"“{_example(text, 60)}”" for text in overlap.examples[:3])
                yield Text(f"Shared by {overlap.first} and {overlap.second}: {quoted}.")


def fetched_data_blocks(record: FetchedCorpus) -> Iterator[Block]:
    """Yield what `heed data get` prints."""
    grid = table(record.title, "file", "bytes", "state", left=(0, 2))
    for file in record.files:
        state = "fetched and checked" if file.fresh else "there already, checked"
        grid.row(file.path, f"{file.bytes:,}", state)
    yield grid
    yield Text(f"Licence: {record.licence}.")


def inspection_figure(record: Inspection) -> Figure:
    """Draw how long the texts are: one panel a corpus, one line a side."""
    with house_style():
        figure = new_figure(7.2, 2.9 * len(record.corpora))
        panels = figure.subplots(len(record.corpora), 1, squeeze=False)[:, 0]
        for axes, corpus in zip(panels, record.corpora, strict=True):
            for side, colour in zip(corpus.sides, PALETTE, strict=False):
                lengths = side.words
                label = f"{side.language} (median {number(lengths.median)})"
                axes.stairs(lengths.counts, lengths.edges, color=colour, fill=True, alpha=0.25)
                axes.stairs(lengths.counts, lengths.edges, color=colour, label=label)
            axes.set_title(shown(corpus.name))
            axes.locator_params(axis="x", integer=True)
            axes.set_xlabel("words in a text")
            axes.set_ylabel("texts")
            axes.legend()
        return figure


def _corpus_blocks(corpus: CorpusFacts) -> Iterator[Block]:
    languages = [shown(side.language) for side in corpus.sides]
    title = f"{shown(corpus.name)}: {corpus.count:,} {corpus.kind}"
    grid = table(title, "", *languages, left=(0,))
    for name, cells in _rows(corpus.sides):
        grid.row(name, *cells)
    yield grid
    yield Bullets(tuple(map(sentence, _findings(corpus))))
    odd = [(side, found) for side in corpus.sides for found in side.odd[:MOST_ODD]]
    if odd:
        grid = table("Odd characters", "in", "code", "name", "why", "times", left=(0, 1, 2, 3))
        for side, found in odd:
            grid.row(
                shown(side.language), found.code, found.name.lower(), found.kind, f"{found.count:,}"
            )
        yield grid
        more = sum(len(side.odd[MOST_ODD:]) for side in corpus.sides)
        if more:
            yield Text(f"And {more} more odd characters, which are rarer.")
    if corpus.examples:
        grid = table("Examples", "line", *languages, left=tuple(range(1, len(languages) + 1)))
        for example in corpus.examples:
            texts = [_example(text) for text in example.texts]
            grid.row(f"{example.number:,}", *texts)
        yield grid


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


def _findings(corpus: CorpusFacts) -> Iterator[str]:
    pairs = corpus.kind == "pairs"
    what = "pair" if pairs else "document"
    yield from (shown(note) for note in corpus.notes)
    if corpus.left_out:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in corpus.left_out.items())
        yield f"not read as {what}s: {reasons}"
    yield f"{many(corpus.duplicates, what)} repeated exactly, {many(corpus.empty, what)} empty"
    if pairs:
        yield f"{many(corpus.untranslated, what)} with two equal sides"
        yield (
            f"{corpus.groups:,} groups are linked by shared sentences, the largest with "
            f"{many(corpus.largest_group, what)}: split by group"
        )
        first, second = (side.language for side in corpus.sides)
        yield (
            f"several translations: {corpus.several_targets:,} texts in {first}, "
            f"{corpus.several_sources:,} in {second}"
        )
    yield f"fingerprint {corpus.fingerprint}"
    for origin in corpus.origins:
        yield f"SHA-256 of {shown(origin.path)} ({origin.bytes:,} bytes): {origin.sha256}"


def _overlap_table(overlaps: Sequence[Overlap]) -> Block:
    grid = table("Shared texts", "of", "in", "whole", "sources", "targets", "nearly", left=(0, 1))
    for found in overlaps:
        grid.row(
            shown(found.second),
            shown(found.first),
            *(f"{count:,}" for count in (found.pairs, found.sources, found.targets, found.alike)),
        )
    return grid


def _quantiles(lengths: Lengths) -> str:
    return " · ".join(
        number(value) for value in (lengths.median, lengths.p90, lengths.p99, lengths.longest)
    )


def _example(text: str, most: int = LONGEST_EXAMPLE) -> str:
    return shown(text if len(text) <= most else text[: most - 1] + "…")
