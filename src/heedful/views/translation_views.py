"""How translations are shown: beside their sources, with scores, and word by word."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, get_font
from rich.console import RenderableType
from rich.text import Text

from heedful.records import Record
from heedful.views.drawing import BLUE, house_style, new_figure
from heedful.views.terminal import number, paragraph, table

if TYPE_CHECKING:
    from heedful.studies.translation import Translation
    from heedful.studies.translation.alignment import Alignment
else:  # these records live beside torch, without which the report must work
    Alignment = Translation = Record

SHOWN = 0.15
"""Source words that get less of the reading are left out of the text."""
MOST_WORDS = 40
"""Words on a side of the figure; longer lines are cut, and it says so."""
# From nothing to the house's blue: what is not read is the page itself, light or dark.
READING = LinearSegmentedColormap.from_list("reading", [(0, f"{BLUE}00"), (1, f"{BLUE}ff")])


@dataclass(frozen=True, eq=False, kw_only=True)
class TranslatedTexts(Record):
    """What `heed translate` gives for texts on the command line."""

    model: str
    """Where the translator lies."""
    languages: tuple[str, str]
    """From which language into which."""
    settings: dict[str, Any]
    """How the translations were searched for."""
    translations: tuple[Translation, ...]
    """One for each text."""
    alignments: tuple[Alignment | None, ...] = ()
    """One for each text where they were asked for; None for an empty text."""


def translation_tables(record: TranslatedTexts, *, scores: bool) -> Iterator[RenderableType]:
    """Yield each text with its translations; `scores` adds how likely the model finds them."""
    for place, one in enumerate(record.translations):
        headers = ("", "translation", "log p", "per token", "tokens") if scores else ("", "")
        made = table("", *headers, left=(0, 1))
        made.title = Text(one.source.strip(), style="bold", no_wrap=True, overflow="ellipsis")
        for rank, hypothesis in enumerate(one.hypotheses, start=1):
            cut = "" if hypothesis.finished else " … (cut)"
            cells: list[str | Text] = [str(rank), Text(hypothesis.text + cut)]
            if scores:
                cells += [number(hypothesis.log_probability), number(hypothesis.per_token)]
                cells.append(str(len(hypothesis.tokens)))
            made.add_row(*cells)
        yield made
        alignment = record.alignments[place] if record.alignments else None
        if alignment is not None:
            yield from alignment_tables(alignment)


def alignment_tables(record: Alignment) -> Iterator[RenderableType]:
    """Yield, for each output word, the source words it read."""
    made = table("Read by each word", "output", "source words and their share", "on the source",
                 left=(0, 1))  # fmt: skip
    for word, row, mass in zip(record.target_words, record.weights, record.mass, strict=True):
        made.add_row(Text(word), Text(_read(record.source_words, row)), f"{mass:.0%}")
    yield made
    heads = ", ".join(f"layer {one.layer} head {one.head}" for one in record.heads)
    if heads:
        yield paragraph(
            f"Mean of {heads}: the heads that read the source most, and most differently from "
            "word to word. What a head reads is not proof of what the model used."
        )


def alignment_figure(record: Alignment) -> Figure:
    """Draw who read whom: a row for each output word, a column for each source word."""
    rows = [drawable(word) for word in record.target_words[:MOST_WORDS]]
    columns = [drawable(word) for word in record.source_words[:MOST_WORDS]]
    weights = np.asarray(record.weights)[: len(rows), : len(columns)]
    with house_style():
        longest = max(map(len, rows), default=1)
        figure = new_figure(
            max(3.4, 1.3 + 0.09 * longest + 0.52 * len(columns)), max(2.4, 1.7 + 0.36 * len(rows))
        )
        axes = figure.add_subplot()
        axes.grid(False)
        axes.pcolormesh(weights, cmap=READING, vmin=0.0, vmax=1.0, edgecolors="none")
        _label_cells(axes, weights)
        axes.set_xticks(np.arange(len(columns)) + 0.5, columns, rotation=40, ha="left")
        axes.set_yticks(np.arange(len(rows)) + 0.5, rows)
        axes.xaxis.tick_top()
        axes.tick_params(length=0, labelsize=10)
        axes.invert_yaxis()
        for spine in axes.spines.values():
            spine.set_visible(False)
        cut = len(rows) < len(record.target_words) or len(columns) < len(record.source_words)
        note = f"\nthe first {MOST_WORDS} words of each side" if cut else ""
        axes.set_xlabel("share of its reading of the source, in %" + note, fontsize=9)
        return figure


def drawable(word: str) -> str:
    """Return a word with a box for each letter that the font of the figures does not have."""
    font = get_font(findfont("DejaVu Sans"))
    return "".join(letter if font.get_char_index(ord(letter)) else "□" for letter in word)


def tabbed_lines(
    one: Translation, line: int, alignment: Alignment | None, *, aligned: bool
) -> Iterator[str]:
    """Yield line, rank, log p, log p per token and text; with `aligned`, the links of the best."""
    rows = [
        [f"{found.log_probability:.4f}", f"{found.per_token:.4f}", found.text.replace("\t", " ")]
        for found in one.hypotheses
    ] or [["", "", ""]]
    for rank, row in enumerate(rows, start=1):
        links = alignment.pairs if alignment is not None and rank == 1 else ""
        yield "\t".join([str(line), str(rank), *row, *([links] if aligned else [])])


def _read(words: Sequence[str], row: Any) -> str:
    order = sorted(range(len(words)), key=lambda place: -row[place])
    shown = [place for place in order if row[place] >= SHOWN] or order[:1]
    return ", ".join(f"{words[place]} {row[place]:.0%}" for place in shown)


def _label_cells(axes: Any, weights: Any) -> None:
    """Write the share into every cell that has some, in a colour that can be read on it."""
    for (row, column), value in np.ndenumerate(weights):
        if value < 0.095:
            continue
        colour = {"color": "white"} if value > 0.55 else {}
        axes.text(
            column + 0.5, row + 0.5, f"{100 * value:.0f}", ha="center", va="center",
            fontsize=8, **colour,
        )  # fmt: skip
