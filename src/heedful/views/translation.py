"""Translations, who reads whom, and the study of translation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from heedful.data.corpus import LANGUAGES
from heedful.records import Record
from heedful.studies.conclusions import sentences
from heedful.views.blocks import Block, Bullets, Cell, Group, Section, Table, Text, group, table
from heedful.views.drawing import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RED,
    figure_block,
    house_style,
    legend_below,
    new_figure,
)
from heedful.views.formatting import number

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from heedful.studies.translation import Translation
    from heedful.studies.translation.attribution import Alignment, AttributionStudy
    from heedful.studies.translation.quality import WordConfidence
    from heedful.studies.translation.results import (
        ArmResult,
        Comparison,
        Example,
        TranslationStudy,
    )
else:  # these records live beside torch, without which the views must work
    Alignment = AttributionStudy = Translation = WordConfidence = Record
    ArmResult = Comparison = Example = TranslationStudy = Record

SHOWN = 0.15
"""Source words that get less of the reading are left out of the text."""
MOST_WORDS = 40
"""Words on a side of the figure; longer lines are cut, and it says so."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TranslatedTexts(Record):
    """What `heed translate` gives for texts on the command line."""

    model: str
    """Path of the translator."""
    languages: tuple[str, str]
    """Source and target language."""
    settings: dict[str, Any]
    """How the translations were searched for."""
    translations: tuple[Translation, ...]
    """One for each text."""
    alignments: tuple[Alignment | None, ...] = ()
    """One for each text where they were asked for; None for an empty text."""
    words: tuple[tuple[WordConfidence, ...], ...] = ()
    """For each text, where it was asked for, the words of its best translation."""


def translation_blocks(record: TranslatedTexts, *, scores: bool) -> Iterator[Block]:
    """Yield each text with its translations; `scores` adds how likely the model finds them."""
    for place, one in enumerate(record.translations):
        columns = ("", "translation", "log p", "per token", "tokens") if scores else ("", "")
        grid = Table(one.source.strip(), columns, left=(0, 1), long_title="cut")
        for rank, hypothesis in enumerate(one.hypotheses, start=1):
            cells = [str(rank), hypothesis.text + ("" if hypothesis.finished else " … (cut)")]
            if scores:
                cells += [number(hypothesis.log_probability), number(hypothesis.per_token)]
                cells.append(str(len(hypothesis.tokens)))
            grid.row(*cells)
        yield grid
        alignment = record.alignments[place] if record.alignments else None
        if alignment is not None:
            yield from alignment_blocks(alignment)
        if record.words:
            yield from _confidence_blocks(record.words[place])


def _confidence_blocks(words: Sequence[WordConfidence]) -> Iterator[Block]:
    """Yield how sure the translator is of each word, and what that was worth before."""
    measured = any(word.right is not None for word in words)
    grid = table("How sure of each word", "word", "p", "such words were right", left=(0,))
    for word in words:
        right = "–" if word.right is None else f"{word.right:.0%}"
        grid.row(
            word.text, f"{word.probability:.3f}", right + ("  doubtful" if word.doubtful else "")
        )
    yield grid
    yield Text(
        "p is the product over the tokens of a word. The last column was measured on held-out "
        "sentences: of words with such a p, how many stood in a reference."
        if measured
        else "p is the product over the tokens of a word. What it is worth was not measured for "
        "this translator."
    )


METHOD_WORDS = {
    "attention": "what the heads that align read",
    "value norm": "the same, times the norm of what each value adds",
    "gradient": "gradient of log p times embedding",
    "integrated": "gradients integrated from mean embeddings",
    "erasure": "how far log p of the word falls when a source word is taken out",
    "diagonal": "control: the word at the same relative place",
    "random": "control: any word",
}
"""What each method of attribution looks at."""


def alignment_blocks(record: Alignment) -> Iterator[Block]:
    """Yield, for each output word, the source words it read."""
    looks = record.method in ("attention", "value norm")
    last = "on the source" if looks else "score"
    grid = table("Where each word comes from", "output", "source words and their share", last,
                 left=(0, 1))  # fmt: skip
    for word, row, mass in zip(record.target_words, record.weights, record.mass, strict=True):
        grid.row(word, _read(record.source_words, row), f"{mass:.0%}" if looks else number(mass))
    yield grid
    heads = ", ".join(one.name for one in record.heads)
    if heads:
        yield Text(
            f"By {record.method}, the mean of {heads}: the heads that read the source most, and "
            "most differently from word to word. What a head reads is not proof of what the model "
            "used."
        )
    elif record.target_words and record.source_words:
        yield Text(f"By {record.method}: {METHOD_WORDS[record.method]}.")


def alignment_figure(record: Alignment) -> Figure:
    """Draw who read whom: a row for each output word, a column for each source word."""
    from matplotlib.colors import LinearSegmentedColormap

    # From nothing to the house's blue: what is not read is the page itself, light or dark.
    colours = LinearSegmentedColormap.from_list("reading", [(0, f"{BLUE}00"), (1, f"{BLUE}ff")])
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
        axes.pcolormesh(weights, cmap=colours, vmin=0.0, vmax=1.0, edgecolors="none")
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
        axes.set_xlabel(f"share of each source word in %, by {record.method}" + note, fontsize=9)
        return figure


def attribution_blocks(record: AttributionStudy) -> Iterator[Block]:
    """Yield what `heed study attribution` prints."""
    yield Text(
        f"{record.model}, {record.sentences} test sentences of the phrasebook with their reference "
        f"translations: {record.linked_words:,} of {record.target_words:,} words have a known "
        f"source, {record.sure_links:,} of them one word for one word."
    )
    grid = table(
        "Methods of attribution",
        *("method", "alignment error", "1 out", "2 out", "3 out", "ms", "what it looks at"),
        left=(0, 6),
        caption="Alignment error rate (0 is perfect) with a bootstrap interval over sentences; "
        "fall of log p of a word in nats when the 1, 2, 3 source words with the highest scores are "
        "taken out, with 95 % intervals over sentences; processor milliseconds a sentence.",
    )
    for one in record.trials:
        error = one.alignment_error
        grid.row(
            one.method,
            f"{100 * error.value:.1f} % ({100 * error.low:.1f} to {100 * error.high:.1f})",
            *(f"{fall.value:.2f} ± {fall.error:.2f}" for fall in one.deletion),
            f"{1000 * one.seconds:.0f}" if one.seconds else "",
            METHOD_WORDS.get(one.method, "another program"),
        )
    yield grid
    yield Bullets(tuple(one.text for one in record.conclusions))
    yield Text(
        "Erasure chooses its first word by taking words out, so no method can be ahead of it there."
    )


def attribution_figure(record: AttributionStudy) -> Figure:
    """Draw the alignment error of each method, and how log p falls as its words are taken out."""
    colours = dict(zip(METHOD_WORDS, (BLUE, PURPLE, ORANGE, RED, GREEN, GREY, GREY), strict=True))
    with house_style():
        figure = new_figure(8.4, 3.4)
        left, right = figure.subplots(1, 2)
        for place, one in enumerate(record.trials):
            error = one.alignment_error
            left.barh(
                place, error.value, color=colours.get(one.method, GREY), height=0.62, alpha=0.85
            )
            spread = [[error.value - error.low], [error.high - error.value]]
            left.errorbar(error.value, place, xerr=spread, color="black", capsize=3, linewidth=1.1)
            right.errorbar(
                [0, *range(1, len(one.deletion) + 1)],
                [0.0, *(fall.value for fall in one.deletion)],
                yerr=[0.0, *(fall.error for fall in one.deletion)],
                color=colours.get(one.method, GREY),
                marker="o",
                ms=3.5,
                linewidth=1.5,
                capsize=2.5,
                linestyle="--" if one.method in ("diagonal", "random") else "-",
                label=one.method,
            )
        left.set_yticks(range(len(record.trials)), [one.method for one in record.trials])
        left.invert_yaxis()
        left.set(xlabel="alignment error rate", xlim=(0, 1))
        left.set_title("Does it name the right word?")
        right.set(xlabel="source words taken out", ylabel="fall of log p (nats)", ylim=(0, None))
        right.set_xticks(range(len(record.trials[0].deletion) + 1))
        right.set_title("Does the translation need it?")
        right.legend(fontsize=8)
        return figure


def drawable(word: str) -> str:
    """Return a word with a box for each letter that the font of the figures does not have."""
    from matplotlib.font_manager import findfont, get_font

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


BASELINE_NAMES = {
    "copy": "copy the source",
    "dictionary": "word for word (IBM model 1)",
    "nearest": "nearest training sentence",
}


def study_blocks(record: TranslationStudy) -> Iterator[Block]:
    """Yield what `heed study translation` prints."""
    yield _arms(record)
    if _several(record):
        yield _over_seeds(record)
    yield _baselines(record)
    yield Text(f"BLEU: {record.arms[0].signature}")
    yield Bullets(sentences(record.conclusions))
    yield Text("Not equal between the arms:")
    yield Bullets(tuple(record.unequal))
    if record.elsewhere:
        yield Text(record.elsewhere)


def translation_section(record: TranslationStudy, seconds: float) -> Section:
    """Return the part of the report about a translation study."""
    blocks = [
        _comparison(record),
        _by_work(record),
        group("What is not equal between the arms", record.unequal),
        _breakdown(record),
        _reading(record),
        _samples(record),
        _examples("The best translations", record.best, record),
        _examples("The worst translations", record.worst, record),
        _everyday(record),
    ]
    first, last = (LANGUAGES.get(code, code) for code in record.languages)
    return Section(
        name="translation",
        title="Translation",
        lead=f"A decoder learns to translate {first} to {last} ({record.corpus}): from the pairs "
        "alone, and from weights that were pretrained before. Same pairs, same test, with "
        "intervals.",
        blocks=tuple(block for block in blocks if block is not None),
        findings=record.conclusions,
        seconds=seconds,
    )


def _comparison(record: TranslationStudy) -> Group:
    size = record.arms[0].parameters
    return group(
        "From scratch against pretrained",
        f"One decoder of {size:,} parameters, trained on nested sets of pairs; the same "
        "decoder after it learned to continue texts of each language; and, where a public "
        "checkpoint is at hand, that one fine-tuned. The intervals are of a bootstrap over "
        "the test sentences, and p is of a paired one: both arms are judged on the same "
        "resampled sentences. "
        + (
            "Where an arm was trained from several seeds, the first one is shown; the table over "
            "seeds has all, with intervals that cover sentences and seeds."
            if _several(record)
            else "Each arm was trained once, from one seed: intervals and p say what other "
            "sentences would give, not what another seed would."
        ),
        record.elsewhere or None,
        figure_block(
            sizes_figure(record),
            "translation quality against pairs",
            "BLEU on the test against the number of training pairs. Grey: what needs no network.",
            record.command,
        ),
        _arms(record),
        _over_seeds(record) if _several(record) else None,
        _baselines(record),
    )


def _arms(record: TranslationStudy) -> Table:
    first = record.arms[0]
    columns = ("arm", "pairs", "BLEU", "95 %", "chrF", "exact", "work", "above scratch", "p")
    caption = (
        f"{first.sentences} test sentences; exact: the translation is a reference, letter by "
        f"letter; work in 10¹² operations; {'the first' if _several(record) else 'one'} seed. "
        f"BLEU: {first.signature}; "
        f"chrF: {first.chrf_signature}"
    )
    grid = table(f"Translation, {record.corpus}", *columns, caption=caption)
    for result in record.arms:
        grid.row(
            result.label,
            f"{result.pairs:,}",
            *_scores(result),
            _work(result.work),
            "" if result.gain is None else f"{result.gain:+.1f}",
            "" if result.p_value is None else _p_alone(result.p_value),
        )
    if record.prompted is not None:
        shown = record.prompted
        grid.row(shown.label, f"{shown.examples} shown", *_scores(shown), "0", "", "")
    return grid


def _several(record: TranslationStudy) -> bool:
    """Say whether some arm was trained from more than one seed."""
    return any(len(result.seeds) > 1 for result in record.arms)


def _over_seeds(record: TranslationStudy) -> Table:
    columns = (
        "arm", "pairs", "BLEU of each seed", "mean", "last weights", "against", "BLEU above",
        "95 %", "work",
    )  # fmt: skip
    caption = (
        "Every seed draws other pairs. Gains are of the seeds and sentences that both arms have; "
        "their intervals are of a paired bootstrap over sentences, widened by Student's interval "
        "over seeds where there are several. Last weights: the mean BLEU without early stopping. "
        "Work in 10¹² operations, pretraining here included"
    )
    grid = table("Over seeds", *columns, caption=caption)
    for result in record.arms:
        found = [
            row for row in record.comparisons if (row.arm, row.pairs) == (result.arm, result.pairs)
        ]
        each = ", ".join(f"{one.bleu:.1f}" for one in result.seeds)
        means = (f"{result.mean:.1f}", f"{result.last_mean:.1f}")
        opening = (result.label, f"{result.pairs:,}", each, *means)
        work = _work(result.work)
        for place, row in enumerate(found):
            gain = f"{row.gain_low:+.1f} to {row.gain_high:+.1f}"
            before = ("",) * len(opening) if place else opening
            against = _label(row.against, record)
            grid.row(*before, against, f"{row.gain:+.1f}", gain, "" if place else work)
        if not found:
            grid.row(*opening, "", "", "", work)
    if record.prompted is not None:
        shown = record.prompted
        each = ", ".join(f"{one.bleu:.1f}" for one in shown.seeds)
        mean = sum(one.bleu for one in shown.seeds) / len(shown.seeds)
        grid.row(shown.label, f"{shown.examples} shown", each, f"{mean:.1f}", "", "", "", "", "0")
    return grid


def _baselines(record: TranslationStudy) -> Table:
    columns = ("", "pairs", "BLEU", "95 %", "chrF", "exact")
    grid = table("Baselines", *columns, caption="What needs no network, on the same test")
    for row in record.baselines:
        # The source itself does not depend on the pairs: once is enough.
        if row.baseline == "copy" and row.pairs != record.baselines[0].pairs:
            continue
        pairs = "" if row.baseline == "copy" else f"{row.pairs:,}"
        grid.row(BASELINE_NAMES[row.baseline], pairs, *_scores(row))
    return grid


def _by_work(record: TranslationStudy) -> Group:
    columns = ("pairs", "arm", "against", "BLEU above", "95 %", "p", "sentences", "work")
    seeds = "all seeds that both arms have" if _several(record) else "one seed"
    tests = table(f"Paired bootstrap tests over test sentences, {seeds}", *columns)
    for row in record.comparisons:
        tests.row(
            f"{row.pairs:,}",
            _label(row.arm, record),
            _label(row.against, record),
            f"{row.gain:+.1f}",
            f"{row.gain_low:+.1f} to {row.gain_high:+.1f}",
            _p_alone(row.p_value),
            f"{row.sentences:,}",
            f"{_work(row.work)} against {_work(row.work_against)}",
        )
    minutes = sum(result.minutes for result in record.arms)
    return group(
        "Against work",
        "The same trainings by the operations that they took, on development sentences. The "
        "shaded part is pretraining, before the first pair: it is a price, paid once for all "
        "sizes, and here each size is charged all of it. Work is counted, in 10¹² operations, and "
        "is the same on a busy machine; minutes are not.",
        figure_block(
            work_figure(record),
            "translation quality against work",
            "BLEU on development sentences against work; evaluations are not counted. Added "
            f"up, the trainings took {minutes:.1f} minutes on {record.machine}.",
        ),
        tests,
    )


def _work(operations: float) -> str:
    """Write operations in units of 10¹²."""
    return f"{operations / 1e12:.2f}"


def _breakdown(record: TranslationStudy) -> Group:
    most = max(result.pairs for result in record.arms)
    shown = [r for r in record.arms if r.pairs == most]
    tables = []
    for caption, field in (
        ("By words in the source", "by_length"),
        ("By source words that training does not hold", "by_unseen"),
        ("Other test sets", "splits"),
    ):
        rows = _slice_rows(shown, field)
        if rows:
            columns = ("", "sentences", *(f"{result.label}: BLEU, exact" for result in shown))
            tables.append(Table(f"{caption}, {most:,} pairs", columns, rows))
    return group(
        "Where it is good, and where it is not",
        "A high score on sentences like those of training says little about others. So the "
        "test is taken apart, and sentences that are longer than any in training, or put "
        "known words together in new ways, have tests of their own where the corpus has them.",
        tables,
    )


def _reading(record: TranslationStudy) -> Group | None:
    alignment = record.alignment
    if alignment is None:
        return None
    judged = max((r for r in record.arms if r.arm == record.judged), key=lambda r: r.pairs)
    return group(
        "Who reads whom",
        "While it writes a word, a decoder reads the source through its heads. The figure "
        "shows the heads that read the source most, and most differently from word to word: "
        "where the order of the two languages differs, so does the order of reading. What a "
        "head reads is no proof of what the model used.",
        figure_block(
            alignment_figure(alignment),
            "alignment of one translation",
            "Source words (columns) read by each output word (rows); "
            f"{judged.label}, {judged.pairs:,} pairs.",
            f'heed translate {judged.run} "{alignment.source}" --alignment',
        ),
    )


def _samples(record: TranslationStudy) -> Group | None:
    most = max(result.pairs for result in record.arms)
    chosen = [r for r in record.arms if r.pairs == most and r.arm == record.judged and r.samples]
    if not chosen:
        return None
    grid = table("", "source", "step", "translation")
    for sample in chosen[0].samples[:4]:
        for place, (step, text) in enumerate(sample.translations.items()):
            grid.row(sample.source if place == 0 else "", f"{step:,}", text)
        grid.row("", "reference", sample.reference)
    return group(
        "While it learns",
        f"Development sentences in the course of one training: {chosen[0].label}, {most:,} pairs.",
        grid,
    )


def _examples(heading: str, examples: Sequence[Example], record: TranslationStudy) -> Group | None:
    if not examples:
        return None
    arms = list(examples[0].translations)
    grid = table("", "source", "a reference", *(_label(arm, record) for arm in arms), "chrF")
    for example in examples:
        translations = (example.translations.get(arm, "–") for arm in arms)
        grid.row(example.source, example.references[0], *translations, f"{example.chrf:.0f}")
    return group(
        heading,
        f"Of {len(examples)} test sentences, by the chrF of the arm "
        f"{_label(record.judged, record)}; beside it the other arms, each at the largest "
        "number of pairs that it saw.",
        grid,
    )


def _everyday(record: TranslationStudy) -> Group | None:
    """Show what a small corpus is worth outside of it, beside a translator of a large one."""
    if not record.everyday:
        return None
    names = list(record.everyday[0].translations)
    heads = (_label(name, record) if name == record.judged else name for name in names)
    grid = table("", "source", "a reference", *heads)
    for example in record.everyday:
        grid.row(example.source, example.references[0], *example.translations.values())
    return group(
        "Sentences of your own",
        f"What a visitor might type. {names[0]} comes with the package and learned from "
        "Tatoeba's sentences; the decoders of this page know only their corpus. "
        'Try yours: heed translate "Où est la gare ?"',
        grid,
    )


def _scores(row: Any) -> tuple[str, str, str, str]:
    return f"{row.bleu:.1f}", _interval(row), f"{row.chrf:.1f}", f"{row.exact:.0%}"


def _slice_rows(shown: Sequence[ArmResult], field: str) -> list[tuple[Cell, ...]]:
    names: dict[str, dict[str, Any]] = {}
    for result in shown:
        for part in getattr(result, field):
            names.setdefault(part.name, {})[result.arm] = part
    rows: list[tuple[Cell, ...]] = []
    for name, parts in names.items():
        sentences = max(part.sentences for part in parts.values())
        cells = [
            f"{parts[r.arm].bleu:.1f} ({_interval(parts[r.arm])}), {parts[r.arm].exact:.0%}"
            if r.arm in parts
            else "–"
            for r in shown
        ]
        rows.append((name, f"{sentences:,}", *cells))
    return rows


def _interval(row: Any) -> str:
    return f"{row.bleu_low:.1f}–{row.bleu_high:.1f}"


def _label(arm: str, record: TranslationStudy) -> str:
    if record.prompted is not None and arm == "elsewhere, prompted":
        return str(record.prompted.label)
    return next((result.label for result in record.arms if result.arm == arm), arm)


def _p_alone(value: float) -> str:
    """Write a p-value; a bootstrap of 1,000 cannot tell less than one in a thousand."""
    return "<\u00a00.002" if value < 0.002 else f"{value:.3f}"


STYLES = {
    "scratch": (ORANGE, "-", "o"),
    "scratch, same work": (RED, "none", "D"),
    "here": (BLUE, "-", "o"),
    "elsewhere": (GREEN, "-", "s"),
    "elsewhere, all": (GREEN, "--", "D"),
}
"""Colour, line and mark of each arm."""
GRID = 20
"""BLEU between two lines of the grid; a figure ends at one of them."""
BASELINE_LINES = {"dictionary": "--", "nearest": ":", "copy": "-."}
ASIDE = {
    "scratch": 0.97,
    "here": 1.03,
    "elsewhere": 1.0,
    "elsewhere, all": 1.06,
    "scratch, same work": 1.0,
}
"""Moves the marks of arms apart, so that intervals do not hide one another."""


def sizes_figure(record: TranslationStudy) -> Figure:
    """Draw BLEU on the test against the number of pairs, with intervals."""
    with house_style():
        figure = new_figure(7.2, 4.0)
        axes = figure.add_subplot()
        for arm, (colour, line, mark) in STYLES.items():
            found = sorted((r for r in record.arms if r.arm == arm), key=lambda r: r.pairs)
            if found:
                _with_intervals(axes, found, colour, line, mark)
        for baseline, line in BASELINE_LINES.items():
            rows = [row for row in record.baselines if row.baseline == baseline]
            axes.plot(
                [row.pairs for row in rows],
                [row.bleu for row in rows],
                line,
                color=GREY,
                linewidth=1.2,
                label=f"baseline: {baseline}",
            )
        _pairs_axis(axes, record)
        highest = max((row.bleu_high for row in record.arms), default=0.0)
        top = min(100, GRID * (1 + int(highest // GRID)))
        axes.set(xlabel="training pairs", ylabel="BLEU on the test", ylim=(0, top))
        axes.set_title("Quality against the number of pairs, with 95 % intervals")
        legend_below(figure, axes, 3)
        return figure


def work_figure(record: TranslationStudy) -> Figure:
    """Draw BLEU on development sentences against work, a panel for each number of pairs."""
    sizes = sorted({r.pairs for r in record.arms})[-3:]
    with house_style():
        figure = new_figure(7.2, 3.3)
        panels = figure.subplots(1, len(sizes), sharey=True, squeeze=False)[0]
        handles: dict[str, Artist] = {}
        for axes, pairs in zip(panels, sizes, strict=True):
            for arm, (colour, _, _) in STYLES.items():
                for result in record.arms:
                    if (result.arm, result.pairs) != (arm, pairs):
                        continue
                    points = [point for point in result.curve if point.bleu is not None]
                    line = "--" if arm in ("scratch, same work", "elsewhere, all") else "-"
                    (drawn,) = axes.plot(
                        [point.work / 1e12 for point in points],
                        [point.bleu for point in points],
                        line,
                        color=colour,
                        marker="o",
                        markersize=3,
                        linewidth=1.4,
                    )
                    handles.setdefault(result.label, drawn)
                    if result.work_before:
                        axes.axvspan(0, result.work_before / 1e12, color=colour, alpha=0.08, lw=0)
            axes.set_title(f"{pairs:,} pairs", fontsize=10)
            axes.set_xlabel(r"work, $10^{12}$ operations")
            axes.set_xlim(left=0)
        panels[0].set_ylabel("BLEU, development")
        panels[0].set_ylim(bottom=0)
        figure.legend(
            list(handles.values()), list(handles), loc="outside lower center", ncols=4, fontsize=8.5
        )
        return figure


def _with_intervals(axes: Axes, found: list[ArmResult], colour: str, line: str, mark: str) -> None:
    pairs = np.array([result.pairs for result in found]) * ASIDE[found[0].arm]
    bleu = np.array([result.bleu for result in found])
    low = np.array([result.bleu_low for result in found])
    high = np.array([result.bleu_high for result in found])
    axes.errorbar(
        pairs,
        bleu,
        # An interval is centred on the mean of its resamples, which may miss the score by a hair.
        yerr=np.maximum([bleu - low, high - bleu], 0.0),
        color=colour,
        linestyle=line,
        marker=mark,
        markersize=5,
        capsize=3,
        label=found[0].label,
    )


def _pairs_axis(axes: Axes, record: TranslationStudy) -> None:
    sizes = sorted({result.pairs for result in record.arms})
    axes.set_xscale("log")
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axes.minorticks_off()
