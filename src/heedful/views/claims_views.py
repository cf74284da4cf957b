"""How verdicts are shown in the terminal, and the figure of one of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from heedful.claims.checker import CheckReport, Explanation
from heedful.claims.exports import decisive, looked_at
from heedful.claims.language import with_letters
from heedful.claims.sheet import setting_text, toml_lines
from heedful.claims.verdict import Counterexample, Verdict
from heedful.views.drawing import BLUE, GREEN, ORANGE, house_style, new_figure
from heedful.views.terminal import number, table, verbatim

COLOURS = {"proved": "green", "supported": "cyan", "refuted": "bold red", "undecided": "yellow"}
MOST_BARS = 24
REPEATED = ("left", "right", "gap")
"""Figures of the evidence that its counterexample shows again."""


def check_tables(record: CheckReport) -> Iterator[RenderableType]:
    """Yield a table for each sheet, then who disagrees with whom, then the counts."""
    for sheet in record.sheets:
        claims = [verdict for verdict in record.claims if verdict.sheet == sheet.name]
        if not claims:
            continue
        made = table("", "id", "statement", "verdict", "number", "repair", left=(0, 1, 2, 3, 4))
        made.title = Text(f"{sheet.name}: {sheet.title}" if sheet.title else sheet.name)
        made.columns[0].no_wrap = made.columns[2].no_wrap = True
        for verdict in claims:
            made.add_row(
                Text(verdict.id),
                Text(verdict.says or verdict.expects),
                Text(verdict.verdict, style=COLOURS[verdict.verdict]),
                Text(decisive(verdict)),
                Text(verdict.repair.statement if verdict.repair else ""),
            )
        yield made
    if record.disagreements:
        yield _disagreements(record)
    yield summary(record)


def summary(record: CheckReport) -> Text:
    """Return the counts in a line."""
    claims = "1 claim" if len(record.claims) == 1 else f"{len(record.claims):,} claims"
    line = Text(f"{claims} in {record.seconds:.1f} s: ")
    words = [(word, count) for word, count in record.counts.items() if count]
    for place, (word, count) in enumerate(words):
        line.append(", " if place else "")
        word_shown = word.removesuffix("s") if count == 1 else word
        line.append(f"{count:,} {word_shown}", style=COLOURS.get(word, "bold red"))
    return line


def explanation_tables(record: Explanation) -> Iterator[RenderableType]:
    """Yield the reasoning behind one verdict, from the claim to its repair."""
    claim, verdict = record.claim, record.verdict
    yield Text(f"{verdict.sheet}/{verdict.id}", style="bold")
    yield from _paragraph("", claim.says)
    for formula in claim.expect:
        yield from _paragraph("expects", formula)
    setting = setting_text(claim)
    if setting:
        yield from _paragraph("", "setting:")
        yield verbatim(setting, 4)
    yield from _paragraph("source", claim.source)
    yield Text()
    yield Text.assemble("verdict: ", (verdict.verdict, COLOURS[verdict.verdict]))
    yield from _paragraph("why", f"{verdict.evidence.statement} ({_grounds(verdict)})")
    for place, step in enumerate(verdict.evidence.steps, 1):
        yield from _paragraph("", f"{place}. {step}")
    for name, value in verdict.evidence.numbers.items():
        if verdict.counterexample is None or name not in REPEATED:
            yield from _paragraph("", f"{figure_name(name)} = {_value(value)}")
    if verdict.counterexample is not None:
        yield Text()
        yield from _counterexample(verdict)
    if verdict.repair is not None:
        yield Text()
        yield Text.assemble("repair: ", (verdict.repair.statement, "bold"))
        yield from _paragraph("then it is", verdict.repair.verdict)
        yield verbatim(toml_lines(verdict.repair.changes), 4, style="cyan")


def figure_name(name: str) -> str:
    """Return the name of a figure as people read it.

    >>> figure_name("beta_0"), figure_name("half_width")
    ('β₀', 'half width')
    """
    letters = with_letters(name)
    return letters if letters != name else name.replace("_", " ")


def verdict_figure(verdict: Verdict) -> Figure | None:
    """Draw both sides of the counterexample, or the interval of the draws, if there is one."""
    pairs = None if verdict.counterexample is None else sides(verdict.counterexample)
    if pairs is not None:
        return _sides_figure(verdict, pairs)
    numbers = verdict.evidence.numbers
    if all(isinstance(numbers.get(name), int | float) for name in ("low", "high")):
        return _interval_figure(verdict)
    return None


def sides(counterexample: Counterexample) -> list[tuple[float, float]] | None:
    """Return both sides of a counterexample entry by entry, where they are numbers."""
    try:
        left = np.asarray(counterexample.left, dtype=float).reshape(-1)
        right = np.asarray(counterexample.right, dtype=float).reshape(-1)
    except (TypeError, ValueError):
        return None
    if right.size == 1:
        right = np.broadcast_to(right, left.shape)
    if left.shape != right.shape or not 0 < left.size <= MOST_BARS:
        return None
    if not (np.isfinite(left).all() and np.isfinite(right).all()):
        return None
    return [(float(x), float(y)) for x, y in zip(left, right, strict=True)]


def _sides_figure(verdict: Verdict, pairs: list[tuple[float, float]]) -> Figure:
    with house_style():
        figure = new_figure(7.2, 3.2)
        axes = figure.add_subplot()
        entries = np.arange(len(pairs))  # counted from 0, as keys are
        axes.bar(entries - 0.2, [x for x, _ in pairs], width=0.38, color=BLUE, label="left side")
        axes.bar(entries + 0.2, [y for _, y in pairs], width=0.38, color=ORANGE, label="right side")
        axes.set_xticks(entries)
        axes.set(xlabel="entry")
        axes.set_title(f"{verdict.id}: the smallest case in which it fails".replace("$", r"\$"))
        axes.legend()
        return figure


def _interval_figure(verdict: Verdict) -> Figure:
    numbers = verdict.evidence.numbers
    low, high = float(numbers["low"]), float(numbers["high"])
    middle = float(numbers.get("mean", (low + high) / 2))
    with house_style():
        figure = new_figure(7.2, 1.8)
        axes = figure.add_subplot()
        axes.hlines(0, low, high, color=GREEN, linewidth=6, alpha=0.6, label="interval")
        axes.plot([middle], [0], "o", color=BLUE, label="estimate")
        if isinstance(numbers.get("bound"), int | float):
            axes.axvline(float(numbers["bound"]), color=ORANGE, label="bound")
        axes.set_yticks([])
        axes.set_title(f"{verdict.id}: what the draws say".replace("$", r"\$"))
        axes.legend(loc="upper right")
        return figure


def _disagreements(record: CheckReport) -> RenderableType:
    words = {f"{verdict.sheet}/{verdict.id}": verdict for verdict in record.claims}
    made = table("Where sheets disagree", "one says", "", "another says", "", left=(0, 1, 2, 3))
    for one, other in record.disagreements:
        cells: list[RenderableType] = []
        for name in (one, other):
            verdict = words.get(name)
            says = "" if verdict is None else f": {verdict.says or verdict.expects}"
            word = "unreadable" if verdict is None else verdict.verdict
            cells += [Text(f"{name}{says}"), Text(word, style=COLOURS.get(word, "red"))]
        made.add_row(*cells)
    return made


def _counterexample(verdict: Verdict) -> Iterator[RenderableType]:
    case = verdict.counterexample
    assert case is not None
    said = case.statement in verdict.evidence.statement
    yield Text.assemble("counterexample:", ("" if said else f" {case.statement}", "bold"))
    for name, value in case.symbols.items():
        yield from _paragraph("", f"{name} = {_value(value)}")
    if case.left is not None:
        yield from _paragraph("left side", _value(case.left))
        yield from _paragraph("right side", _value(case.right))
        yield from _paragraph("fails by", number(case.gap))
    if case.command:
        yield from _paragraph("", "see it:")
        yield verbatim(case.command, 4)


def _grounds(verdict: Verdict) -> str:
    evidence = verdict.evidence
    parts = [evidence.method]
    if evidence.draws is not None:
        parts.append(looked_at(verdict))
    if evidence.seed is not None:
        parts.append(f"seed {evidence.seed}")
    return ", ".join([*parts, f"{verdict.seconds:.2f} s"])


def _paragraph(label: str, content: str) -> Iterator[RenderableType]:
    if content:
        yield Padding(Text(f"{label}: {content}" if label else content), (0, 0, 0, 2))


def _value(value: Any) -> str:
    """Write a number, a vector or a matrix so that it can be copied."""
    if isinstance(value, Mapping):
        return "; ".join(f"{_value(item)} for {name}" for name, item in value.items())
    if isinstance(value, bool | str) or value is None:
        return str(value)
    if isinstance(value, int | float | np.generic):
        return number(value, 6)
    if isinstance(value, list | tuple | np.ndarray):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    return str(value)
