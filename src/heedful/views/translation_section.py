"""The translation part of the report: from scratch against pretrained, told from its record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType

from heedful.records import Record
from heedful.views.drawing import inline_svg
from heedful.views.page import Block, Figure, Section, Table
from heedful.views.terminal import bullets, paragraph, table
from heedful.views.translation_figures import clock_figure, sizes_figure
from heedful.views.translation_views import alignment_figure

if TYPE_CHECKING:
    from heedful.studies.translation.records import (
        ArmResult,
        Comparison,
        Example,
        TranslationStudy,
    )
else:  # these records live beside torch, without which the report must work
    ArmResult = Comparison = Example = TranslationStudy = Record

COLUMNS = ("arm", "pairs", "BLEU", "95 %", "chrF", "exact", "minutes", "above scratch", "p")
LANGUAGES = {"fr": "French", "en": "English", "de": "German", "es": "Spanish", "it": "Italian"}
BASELINE_NAMES = {
    "copy": "copy the source",
    "dictionary": "word for word (IBM model 1)",
    "nearest": "nearest training sentence",
}


def study_tables(record: TranslationStudy) -> Iterator[RenderableType]:
    """Yield what `heed study translation` prints."""
    made = table(f"Translation, {record.corpus}", *COLUMNS, left=(0,))
    for row in map(_arm_row, record.arms):
        made.add_row(*row)
    yield made
    others = table("Baselines", "", "pairs", "BLEU", "95 %", "chrF", "exact", left=(0,))
    for row in _baseline_rows(record):
        others.add_row(*row)
    yield others
    yield paragraph(f"BLEU: {record.arms[0].signature}")
    yield bullets(record.verdicts)
    yield paragraph("Not equal between the arms:")
    yield bullets(record.unequal)
    if record.elsewhere:
        yield paragraph(record.elsewhere)


def translation_section(record: TranslationStudy, seconds: float) -> Section:
    """Tell a study of translation."""
    blocks = [
        _comparison(record),
        _clock(record),
        _inequality(record),
        _breakdown(record),
        _reading(record),
        _samples(record),
        _examples("The best translations", record.best, record),
        _examples("The worst translations", record.worst, record),
    ]
    first, last = (LANGUAGES.get(code, code) for code in record.languages)
    return Section(
        name="translation",
        title="Translation",
        lead=f"A decoder learns to translate {first} to {last} ({record.corpus}): from the pairs "
        "alone, and from weights that were pretrained before. Same pairs, same test, with "
        "intervals.",
        blocks=tuple(block for block in blocks if block is not None),
        findings=_findings(record),
        seconds=seconds,
    )


def _comparison(record: TranslationStudy) -> Block:
    size = record.arms[0].parameters
    return Block(
        heading="From scratch against pretrained",
        paragraphs=(
            f"One decoder of {size:,} parameters, trained on nested sets of pairs; the same "
            "decoder after it learned to continue texts of each language; and, where a public "
            "checkpoint is at hand, that one fine-tuned. The intervals are of a bootstrap over "
            "the test sentences, and p is of a paired one: both arms are judged on the same "
            "resampled sentences.",
            *record.verdicts,
            *([record.elsewhere] if record.elsewhere else []),
        ),
        figures=(
            Figure(
                svg=inline_svg(sizes_figure(record), "translation quality against pairs"),
                caption="BLEU on the test against the number of training pairs. Grey: what needs "
                "no network.",
                command=record.command,
            ),
        ),
        tables=(
            Table(
                columns=COLUMNS,
                rows=tuple(map(_arm_row, record.arms)),
                caption=f"{record.arms[0].sentences} test sentences; exact: the translation is a "
                f"reference, letter by letter. BLEU: {record.arms[0].signature}; chrF: "
                f"{record.arms[0].chrf_signature}",
            ),
            Table(
                columns=("baseline", "pairs", "BLEU", "95 %", "chrF", "exact"),
                rows=tuple(_baseline_rows(record)),
                caption="What needs no network, on the same test",
            ),
        ),
    )


def _clock(record: TranslationStudy) -> Block:
    return Block(
        heading="Against the clock",
        paragraphs=(
            "The same trainings by minutes, on development sentences. The shaded minutes are "
            "pretraining, before the first pair: they are a price, paid once for all sizes, and "
            "here each size is charged all of it.",
        ),
        figures=(
            Figure(
                svg=inline_svg(clock_figure(record), "translation quality against minutes"),
                caption="BLEU on development sentences against minutes of training; evaluations "
                f"are not counted. Machine: {record.machine}.",
            ),
        ),
        tables=(
            Table(
                columns=("pairs", "arm", "against", "BLEU above", "p", "sentences", "minutes"),
                rows=tuple(_comparison_row(row, record) for row in record.comparisons),
                caption="Paired bootstrap tests",
                marks=tuple(
                    "" if row.p_value >= 0.05 else "good" if row.gain > 0 else "bad"
                    for row in record.comparisons
                ),
            ),
        ),
    )


def _inequality(record: TranslationStudy) -> Block:
    return Block(heading="What is not equal between the arms", paragraphs=record.unequal)


def _breakdown(record: TranslationStudy) -> Block:
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
            tables.append(Table(columns=columns, rows=rows, caption=f"{caption}, {most:,} pairs"))
    return Block(
        heading="Where it is good, and where it is not",
        paragraphs=(
            "A high score on sentences like those of training says little about others. So the "
            "test is taken apart, and sentences that are longer than any in training, or put "
            "known words together in new ways, have tests of their own where the corpus has them.",
        ),
        tables=tuple(tables),
    )


def _reading(record: TranslationStudy) -> Block | None:
    found = record.alignment
    if found is None:
        return None
    judged = max((r for r in record.arms if r.arm == record.judged), key=lambda r: r.pairs)
    return Block(
        heading="Who reads whom",
        paragraphs=(
            "While it writes a word, a decoder reads the source through its heads. The figure "
            "shows the heads that read the source most, and most differently from word to word: "
            "where the order of the two languages differs, so does the order of reading. What a "
            "head reads is no proof of what the model used.",
        ),
        figures=(
            Figure(
                svg=inline_svg(alignment_figure(found), "alignment of one translation"),
                caption="Source words (columns) read by each output word (rows); "
                f"{judged.label}, {judged.pairs:,} pairs.",
                command=f'heed translate {judged.run} "{found.source}" --alignment',
            ),
        ),
    )


def _samples(record: TranslationStudy) -> Block | None:
    most = max(result.pairs for result in record.arms)
    chosen = [r for r in record.arms if r.pairs == most and r.arm == record.judged and r.samples]
    if not chosen:
        return None
    rows = []
    for sample in chosen[0].samples[:4]:
        for number, (step, text) in enumerate(sample.translations.items()):
            rows.append((sample.source if number == 0 else "", f"{step:,}", text))
        rows.append(("", "reference", sample.reference))
    return Block(
        heading="While it learns",
        paragraphs=(f"Development sentences in the course of one training: {chosen[0].label}, "
                    f"{most:,} pairs.",),
        tables=(Table(columns=("source", "step", "translation"), rows=tuple(rows)),),
    )  # fmt: skip


def _examples(heading: str, examples: Sequence[Example], record: TranslationStudy) -> Block | None:
    if not examples:
        return None
    arms = list(examples[0].translations)
    return Block(
        heading=heading,
        paragraphs=(
            f"Of {len(examples)} test sentences, by the chrF of the arm "
            f"{_label(record.judged, record)}; beside it the other arms, each at the largest "
            "number of pairs that it saw.",
        ),
        tables=(
            Table(
                columns=("source", "a reference", *(_label(arm, record) for arm in arms), "chrF"),
                rows=tuple(
                    (
                        example.source,
                        example.references[0],
                        *(example.translations.get(arm, "–") for arm in arms),
                        f"{example.chrf:.0f}",
                    )
                    for example in examples
                ),
            ),
        ),
    )


def _findings(record: TranslationStudy) -> tuple[str, ...]:
    best = max(record.arms, key=lambda result: result.bleu)
    first = min(result.pairs for result in record.arms)
    pairs = [c for c in record.comparisons if c.pairs == first and c.against == "scratch"]
    found = [
        f"A decoder of {best.parameters:,} parameters reaches {best.bleu:.1f} BLEU "
        f"({best.bleu_low:.1f} to {best.bleu_high:.1f}) on unseen sentences of the "
        f"{record.corpus} with {best.pairs:,} pairs, {best.label}, in {best.minutes:.1f} minutes "
        f"of training; {best.exact:.0%} of the translations are exact.",
    ]
    won = [c for c in pairs if c.gain > 0 and c.p_value < 0.05 and c.arm != "scratch, same clock"]
    if won:
        gain = max(won, key=lambda c: c.gain)
        found.append(
            f"With {first:,} pairs, pretraining is worth {gain.gain:+.1f} BLEU "
            f"({_label(gain.arm, record)}, {_p(gain.p_value)})."
        )
    return tuple(found)


def _arm_row(result: ArmResult) -> tuple[str, ...]:
    return (
        result.label,
        f"{result.pairs:,}",
        f"{result.bleu:.1f}",
        _interval(result),
        f"{result.chrf:.1f}",
        f"{result.exact:.0%}",
        f"{result.minutes:.2f}",
        "" if result.gain is None else f"{result.gain:+.1f}",
        "" if result.p_value is None else _p_alone(result.p_value),
    )


def _baseline_rows(record: TranslationStudy) -> Iterator[tuple[str, ...]]:
    for row in record.baselines:
        # The source itself does not depend on the pairs: once is enough.
        if row.baseline == "copy" and row.pairs != record.baselines[0].pairs:
            continue
        yield (
            BASELINE_NAMES[row.baseline],
            "" if row.baseline == "copy" else f"{row.pairs:,}",
            f"{row.bleu:.1f}",
            _interval(row),
            f"{row.chrf:.1f}",
            f"{row.exact:.0%}",
        )


def _comparison_row(row: Comparison, record: TranslationStudy) -> tuple[str, ...]:
    return (
        f"{row.pairs:,}",
        _label(row.arm, record),
        _label(row.against, record),
        f"{row.gain:+.1f}",
        _p_alone(row.p_value),
        f"{row.sentences:,}",
        f"{row.minutes:.2f} against {row.minutes_against:.2f}",
    )


def _slice_rows(shown: Sequence[ArmResult], field: str) -> tuple[tuple[str, ...], ...]:
    names: dict[str, dict[str, Any]] = {}
    for result in shown:
        for part in getattr(result, field):
            names.setdefault(part.name, {})[result.arm] = part
    rows = []
    for name, parts in names.items():
        sentences = max(part.sentences for part in parts.values())
        cells = [
            f"{parts[r.arm].bleu:.1f} ({_interval(parts[r.arm])}), {parts[r.arm].exact:.0%}"
            if r.arm in parts
            else "–"
            for r in shown
        ]
        rows.append((name, f"{sentences:,}", *cells))
    return tuple(rows)


def _interval(row: Any) -> str:
    return f"{row.bleu_low:.1f}–{row.bleu_high:.1f}"


def _label(arm: str, record: TranslationStudy) -> str:
    return next((result.label for result in record.arms if result.arm == arm), arm)


def _p(value: float) -> str:
    """Write a p-value; a bootstrap of 1,000 cannot tell less than one in a thousand."""
    return "p\u00a0<\u00a00.002" if value < 0.002 else f"p\u00a0=\u00a0{value:.3f}"


def _p_alone(value: float) -> str:
    return _p(value).removeprefix("p\u00a0").removeprefix("=\u00a0")
