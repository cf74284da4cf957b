"""Verdicts: tables, one explanation, the part of the report, and a page of their own.

For other programs a check is written as JUnit XML for test runners and as CSV for grade books. What
a sheet says ends up in both, so nothing of it may be taken for markup or for the formula of a
spreadsheet.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np

from heedful import __version__
from heedful.claims.checker import WORDS, CheckReport, Explanation, SheetSummary
from heedful.claims.judge import told_apart
from heedful.claims.language import with_letters
from heedful.claims.reasons import WHY_REPAIR, Reason
from heedful.claims.sheet import setting_text, toml_lines
from heedful.claims.sheet.claim import reading
from heedful.claims.verdict import KINDS, Counterexample, Verdict
from heedful.studies.conclusions import Conclusion, calculated
from heedful.views.blocks import (
    Block,
    Cell,
    Code,
    Command,
    Group,
    Section,
    Span,
    Table,
    Text,
    group,
    table,
)
from heedful.views.drawing import BLUE, GREEN, ORANGE, house_style, new_figure
from heedful.views.formatting import many, number, sentence
from heedful.views.html import environment

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TONES = {"proved": "good", "supported": "fine", "refuted": "bad", "undecided": "unsure"}
KIND_TONES = {
    "true": "good",
    "number found": "good",
    "true at our number": "fine",
    "false": "bad",
    "false at our number": "bad",
    "undecided": "unsure",
}
KIND_WORDS = {
    "true": "true",
    "number found": "asked for a number, which was found",
    "true at our number": "true at a number we chose",
    "false": "false whatever number one chooses",
    "false at our number": "false at a number we chose",
    "undecided": "undecided",
}
"""What a verdict says about the source of a claim, in words."""
MOST_BARS = 24
MOST_VALUES = 16
"""Entries of a list that the page shows."""
REPEATED = ("left", "right", "gap")
"""Figures of the evidence that its counterexample shows again."""
SAID = ("beta_0_formula", "low", "high")
"""Figures that the statement or the answer gives already."""


def check_blocks(record: CheckReport) -> Iterator[Block]:
    """Yield a table for each sheet, then where sheets disagree, then the counts."""
    for sheet in record.sheets:
        if any(verdict.sheet == sheet.name for verdict in record.claims):
            yield _sheet_table(record, sheet)
    if record.disagreements:
        yield _disagreements(record)
    yield from _unlike(record)
    for line in record.skipped:
        yield Text(line)
    yield summary(record)
    yield from _kinds_line(record)


def summary(record: CheckReport) -> Text:
    """Return the counts in a line."""
    spans: list[Cell] = [f"{many(len(record.claims), 'claim')} in {record.seconds:.1f} s: "]
    for word, count in record.counts.items():
        if count:
            singular = word.removesuffix("s") if count == 1 else word
            spans += [", "] if len(spans) > 1 else []
            spans.append(Span(f"{count:,} {singular}", TONES.get(word, "bad")))
    return Text(tuple(spans))


def _kinds_line(record: CheckReport) -> Iterator[Block]:
    """Say what the counts mean for the sources, where some numbers are ours."""
    if not any(verdict.number for verdict in record.claims):
        return
    spans: list[Cell] = []
    for kind, count in record.kinds.items():
        if count:
            spans += [", "] if spans else []
            spans.append(Span(f"{count:,} {KIND_WORDS[kind]}", KIND_TONES[kind]))
    yield Text(("Where the source has a word, the number is ours: ", *spans))


def _unlike(record: CheckReport) -> Iterator[Block]:
    for one, other in record.unlike:
        yield Text(f"{one} and {other} are about different things: both may be right.")


def explanation_blocks(record: Explanation) -> Iterator[Block]:
    """Yield the reasoning behind one verdict, from the claim to its repair."""
    claim, verdict = record.claim, record.verdict
    yield Text(f"{verdict.sheet}/{verdict.id}", tone="strong")
    yield from _line("", claim.says)
    for formula in claim.expect:
        yield from _line("expects", formula)
        if reading(formula) != formula:
            yield from _line("read as", reading(formula))
    yield from _line("find", claim.find or "")
    setting = setting_text(claim)
    if setting:
        yield from _line("", "setting:")
        yield Code(setting, 4)
    yield from _line("source", claim.source)
    yield from _line("read as", claim.reading)
    yield from _line("our number", claim.number)
    yield Text("")
    yield from verdict_blocks(verdict, record.reasons)


def verdict_blocks(verdict: Verdict, reasons: tuple[Reason, ...] = ()) -> Iterator[Block]:
    """Yield a verdict with its reasons, its counterexample and its repair."""
    kind = f" ({KIND_WORDS[verdict.kind]})" if verdict.number or verdict.reading else ""
    yield Text(("verdict: ", Span(verdict.verdict, TONES[verdict.verdict]), kind))
    if verdict.answer is not None:
        yield from _line("answer", answer_text(verdict))
    yield from _line("why", f"{verdict.evidence.statement} ({_grounds(verdict)})")
    for place, step in enumerate(verdict.evidence.steps, 1):
        yield from _line("", f"{place}. {step}")
    for name, value in verdict.evidence.numbers.items():
        if not (verdict.counterexample and name in REPEATED) and name not in SAID:
            yield from _line("", f"{figure_name(name)} = {_value(value)}")
    if verdict.counterexample is not None:
        yield Text("")
        yield from _counterexample(verdict)
    for reason in reasons:
        if reason.title != WHY_REPAIR:
            yield from _reason(reason)
    if verdict.repair is not None:
        yield Text("")
        yield Text(("repair: ", Span(verdict.repair.statement, "strong")))
        for reason in reasons:
            if reason.title == WHY_REPAIR:
                yield from (Text(line, indent=2) for line in reason.lines)
        yield from _line("then it is", verdict.repair.verdict)
        yield Code(toml_lines(verdict.repair.changes), 4, tone="code")


def _reason(reason: Reason) -> Iterator[Block]:
    yield Text("")
    yield Text(f"{reason.title[0].lower()}{reason.title[1:]}:")
    yield from (Text(line, indent=2) for line in reason.lines)


def figure_name(name: str) -> str:
    """Return the name of a quantity as people read it.

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


def explanation_figure(record: Explanation) -> Figure | None:
    """Draw what its verdict rests on, if that can be drawn."""
    return verdict_figure(record.verdict)


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


def _sheet_table(record: CheckReport, sheet: SheetSummary) -> Table:
    columns = ("id", "statement", "verdict", "number", "repair")
    title = f"{sheet.name}: {sheet.title}" if sheet.title else sheet.name
    grid = Table(title, columns, left=(0, 1, 2, 3, 4), fixed=(0, 2), long_title="wrap")
    for verdict in record.claims:
        if verdict.sheet == sheet.name:
            word = Span(verdict.verdict, TONES[verdict.verdict])
            repair = verdict.repair.statement if verdict.repair else ""
            grid.row(verdict.id, _says(verdict), word, decisive(verdict), repair)
    return grid


def _disagreements(record: CheckReport, *, contradictions: bool = False) -> Table:
    """Put what one sheet says beside what another says; `contradictions`: only where one errs."""
    known = {f"{verdict.sheet}/{verdict.id}": verdict for verdict in record.claims}
    grid = table("Where sheets disagree", "one says", "", "another says", "", left=(0, 1, 2, 3))
    for names in record.disagreements:
        pair = [known.get(name) for name in names]
        if contradictions and (None in pair or len({one.verdict for one in pair if one}) == 1):
            continue
        cells: list[Cell] = []
        for name, verdict in zip(names, pair, strict=True):
            word = "unreadable" if verdict is None else verdict.verdict
            says = "" if verdict is None else f": {_says(verdict)}"
            cells += [f"{name}{says}", Span(word, TONES.get(word, "bad"))]
        grid.row(*cells)
    return grid


def _counterexample(verdict: Verdict) -> Iterator[Block]:
    case = verdict.counterexample
    assert case is not None
    said = case.statement in verdict.evidence.statement
    yield Text(("counterexample:", Span("" if said else f" {case.statement}", "strong")))
    for name, value in case.symbols.items():
        yield from _line("", f"{name} = {_value(value)}")
    if case.left is not None:
        left, right = _value(case.left), _value(case.right)
        if left == right and isinstance(case.left, float) and isinstance(case.right, float):
            left, right = told_apart(case.left, case.right)
        yield from _line("left side", left)
        yield from _line("right side", right)
        if case.exactly is not None:
            yield from _line("left minus right", case.exactly)
        else:
            yield from _line("fails by", number(case.gap))
    if case.command:
        yield from _line("", "see it:")
        yield Code(case.command, 4)


def _grounds(verdict: Verdict) -> str:
    evidence = verdict.evidence
    parts = [evidence.method]
    if evidence.draws is not None:
        parts.append(looked_at(verdict))
    if evidence.seed is not None:
        parts.append(f"seed {evidence.seed}")
    return ", ".join([*parts, f"{verdict.seconds:.2f} s"])


def _line(label: str, content: str) -> Iterator[Block]:
    if content:
        yield Text(f"{label}: {content}" if label else content, indent=2)


def _value(value: Any, most: int | None = None) -> str:
    """Write a number, a vector or a matrix so that it can be copied; `most` cuts long lists."""
    if isinstance(value, Mapping):
        return "; ".join(f"{_value(item, most)} for {name}" for name, item in value.items())
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        items = [_value(item, most) for item in value[:most]]
        return "[" + ", ".join(items) + ("]" if len(items) == len(value) else ", …]")
    if isinstance(value, bool | str) or value is None:
        return str(value)
    return number(value, 6) if isinstance(value, int | float | np.generic) else str(value)


def claims_section(record: CheckReport, seconds: float) -> Section:
    """Return the part of the report about a check of the catalog."""
    sheets = sorted(record.sheets, key=lambda sheet: (not _is_course(sheet.name), sheet.name))
    blocks = [_overview(record, sheets), _contradictions(record)]
    blocks += [_wrong(record, kind) for kind in ("false", "false at our number")]
    blocks += [_sheet(record, sheet) for sheet in sheets]
    return Section(
        name="claims",
        title="Claims, judged",
        lead="Statements from five course sheets and their answer sets, and facts that belong "
        "beside them; each was judged by the machine alone.",
        blocks=tuple(block for block in blocks if block is not None),
        findings=_findings(record),
        seconds=seconds,
    )


def _overview(record: CheckReport, sheets: list[SheetSummary]) -> Group:
    words = table("", "sheet", "claims", *TONES)
    kinds = table("", "sheet", *(KIND_WORDS[kind] for kind in KINDS))
    for sheet in sheets:
        own = [verdict for verdict in record.claims if verdict.sheet == sheet.name]
        name = f"{sheet.name}: {sheet.title}"
        judged: list[str] = [verdict.verdict for verdict in own]
        words.row(name, str(len(own)), *(str(judged.count(word)) for word in TONES))
        if _is_course(sheet.name):
            said: list[str] = [verdict.kind for verdict in own]
            kinds.row(name, *(str(said.count(kind)) for kind in KINDS))
    return group(
        "All sheets",
        "Proved: by algebra or by rigorous enclosure over the whole declared range. "
        "Supported: every case or draw looked at agreed, and how many is stated. Refuted: "
        "there is a counterexample, the smallest found, and often a repair that holds.",
        words,
        "Where a sheet has a word (much, roughly, nearly) and no number, the number is ours, and "
        "what fails at it may hold at another. So statements that are false whatever number one "
        "chooses are counted apart from those that are false at the number we chose.",
        kinds,
        Command("heed check"),
    )


def _contradictions(record: CheckReport) -> Group | None:
    contradictions = _disagreements(record, contradictions=True)
    if not contradictions.rows:
        return None
    return group(
        "Where the sheets contradict one another",
        "Two statements about the same keys, query and condition: both cannot be right, and the "
        "machine says which one is.",
        contradictions,
    )


def _wrong(record: CheckReport, kind: str) -> Group | None:
    """List what fails in the course sheets, with the case that shows it."""
    wrong = [
        verdict for verdict in record.claims if verdict.kind == kind and _is_course(verdict.sheet)
    ]
    if not wrong:
        return None
    ours = kind == "false at our number"
    grid = table("", "claim", "it says", *(["our number"] if ours else []), "fails", "repair")
    for verdict in wrong:
        case = verdict.counterexample.statement if verdict.counterexample else ""
        repair = verdict.repair.statement if verdict.repair else ""
        number = [verdict.number] if ours else []
        name = f"{verdict.sheet}/{verdict.id}"
        grid.row(name, _says(verdict), *number, case, repair, tone="bad")
    if ours:
        return group(
            "False at a number that we chose",
            f"In {many(len(wrong), 'statement')} the sheet has a word and the number is ours. "
            "These do not hold at it; at another they may.",
            grid,
        )
    return group(
        "False whatever number one chooses",
        f"{many(len(wrong), 'statement')} of the course sheets, read as they are written: no "
        "number in them is ours.",
        grid,
    )


def _sheet(record: CheckReport, sheet: SheetSummary) -> Group | None:
    own = _sheet_table(record, sheet)
    if not own.rows:
        return None
    heading = f"{sheet.name}: {sheet.title or 'all claims'}"
    return group(heading, own, Command(f"heed explain {sheet.name}/{own.rows[0][0]}"))


def _says(verdict: Verdict) -> str:
    return verdict.says or verdict.expects


def _is_course(sheet: str) -> bool:
    return sheet.startswith("seed")


def _findings(record: CheckReport) -> tuple[Conclusion, ...]:
    course = [verdict for verdict in record.claims if _is_course(verdict.sheet)]
    said: list[str] = [verdict.kind for verdict in course]
    wrong = [verdict for verdict in course if verdict.kind == "false"]
    mended = [verdict for verdict in wrong if verdict.repair is not None]
    return (
        calculated(
            "Of {all} statements in the five course sheets, {wrong} are false whatever number one "
            "chooses; for {mended} of these the machine found a repair that holds. {true} are true "
            "as they stand. Where a sheet has a word and no number, the number was found for "
            "{found}; at a number that we chose {ours_true} are true and {ours_false} false.",
            all=len(course),
            wrong=len(wrong),
            mended=len(mended),
            true=said.count("true"),
            found=said.count("number found"),
            ours_true=said.count("true at our number"),
            ours_false=said.count("false at our number"),
        ),
    )


@dataclass(frozen=True)
class Bar:
    """One entry of both sides of a counterexample, with lengths in percent."""

    entry: int
    """Counted from 0, as keys are."""
    left: str
    right: str
    left_length: float
    right_length: float


@dataclass(frozen=True)
class SheetPart:
    """The claims of one sheet, for the page."""

    sheet: SheetSummary
    verdicts: tuple[Verdict, ...]
    problems: tuple[str, ...]


def claims_page(report: CheckReport, title: str = "Claims, checked") -> str:
    """Return the page of a check."""
    templates = environment().overlay()
    templates.filters = {
        **templates.filters,
        "toml": toml_lines,
        "decisive": decisive,
        "bars": _bars,
        "short": lambda value: _value(value, MOST_VALUES),
        "anchor": _anchor,
        "looked_at": looked_at,
        "sentence": sentence,
        "figure_name": figure_name,
    }
    known = {f"{verdict.sheet}/{verdict.id}": verdict for verdict in report.claims}
    return templates.get_template("claims.html.j2").render(
        title=title,
        report=report,
        words=WORDS,
        sections=_sheet_parts(report),
        disagreements=[
            (known[one], known[other])
            for one, other in report.disagreements
            if one in known and other in known
        ],
        version=__version__,
    )


def _sheet_parts(report: CheckReport) -> list[SheetPart]:
    parts = [
        SheetPart(
            sheet,
            tuple(verdict for verdict in report.claims if verdict.sheet == sheet.name),
            tuple(problem.message for problem in report.problems if problem.sheet == sheet.name),
        )
        for sheet in report.sheets
    ]
    return [part for part in parts if part.verdicts or part.problems]


def _bars(verdict: Verdict) -> list[Bar]:
    pairs = None if verdict.counterexample is None else sides(verdict.counterexample)
    if pairs is None:
        return []
    longest = max(abs(x) for pair in pairs for x in pair) or 1.0
    return [
        Bar(
            place,
            number(left),
            number(right),
            round(100 * abs(left) / longest, 2),
            round(100 * abs(right) / longest, 2),
        )
        for place, (left, right) in enumerate(pairs)
    ]


def _anchor(verdict: Verdict) -> str:
    """Return an id that no two claims share and that needs no escaping in a link."""
    name = f"{verdict.sheet}/{verdict.id}"
    return "c-" + "".join(c if c.isascii() and c.isalnum() else f"_{ord(c):x}_" for c in name)


DIGITS = 12
"""Significant figures of the ends of an answer: all that they have."""
COLUMNS = ("sheet", "id", "says", "verdict", "number", "repair", "seconds")

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


def junit_text(report: CheckReport) -> str:
    """Return a check as JUnit XML: a suite a sheet, a case a claim.

    Refuted is a failure, undecided is skipped, what cannot be read is an error.
    """
    root = ElementTree.Element(
        "testsuites",
        name="heed check",
        tests=str(len(report.claims) + len(report.problems)),
        failures=str(report.counts["refuted"]),
        errors=str(len(report.problems)),
        skipped=str(report.counts["undecided"]),
        time=f"{report.seconds:.3f}",
    )
    for sheet in report.sheets:
        claims = [verdict for verdict in report.claims if verdict.sheet == sheet.name]
        problems = [problem for problem in report.problems if problem.sheet == sheet.name]
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=_xml(sheet.name),
            tests=str(len(claims) + len(problems)),
            failures=str(sum(verdict.verdict == "refuted" for verdict in claims)),
            errors=str(len(problems)),
            skipped=str(sum(verdict.verdict == "undecided" for verdict in claims)),
            time=f"{sum(verdict.seconds for verdict in claims):.3f}",
        )
        for verdict in claims:
            _case(suite, verdict)
        for problem in problems:
            case = ElementTree.SubElement(
                suite, "testcase", classname=_xml(sheet.name), name=f"line {problem.line or '?'}"
            )
            ElementTree.SubElement(case, "error", message=_xml(problem.message))
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def csv_text(report: CheckReport) -> str:
    """Return a check as CSV (RFC 4180): one row a claim, and one a problem."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    row: tuple[str, ...]
    for verdict in report.claims:
        row = (
            verdict.sheet,
            verdict.id,
            verdict.says or verdict.expects,
            verdict.verdict,
            decisive(verdict),
            verdict.repair.statement if verdict.repair else "",
        )
        writer.writerow([*map(safe_cell, row), f"{verdict.seconds:.3f}"])
    for problem in report.problems:
        row = (problem.sheet, "", problem.message, "unreadable", "", "")
        writer.writerow([*map(safe_cell, row), ""])
    return buffer.getvalue()


def decisive(verdict: Verdict) -> str:
    """Return the figure that decides a claim: by how much it fails, or the first it rests on.

    Of a figure that depends on the case, such as β₀ for several n, the largest is shown.
    """
    if verdict.answer is not None:
        return answer_text(verdict)
    case = verdict.counterexample
    if case is not None and case.left is None:
        return ""  # a statement without two sides fails, but not by an amount
    if case is not None and case.exactly is not None:
        return f"apart by {case.exactly}"
    if case is not None and math.isfinite(case.gap):
        return f"fails by {_short(case.gap)}"
    numbers = verdict.evidence.numbers
    if _is_number(numbers.get("left")) and _is_number(numbers.get("right")):
        return f"{_short(numbers['left'])} against {_short(numbers['right'])}"
    for name, value in numbers.items():
        if _is_number(value):
            return f"{with_letters(name)} = {_short(value)}"
        if isinstance(value, dict) and value and all(map(_is_number, value.values())):
            case = max(value, key=lambda key: float(value[key]))
            return f"{with_letters(name)} = {_short(value[case])} ({case})"
    return looked_at(verdict)


def answer_text(verdict: Verdict) -> str:
    """Return the number that a claim asked for, between its ends."""
    answer = verdict.answer
    assert answer is not None
    name = with_letters(answer.asks.partition(" ")[2])
    low, high = answer.low, answer.high
    if low is None and high is None:
        return {"proved": "every number", "refuted": "no number"}.get(verdict.verdict, "")
    # Both ends were rounded outwards when they were certified; another rounding could pass them.
    if low is None:
        return f"{name} ≤ {number(high, DIGITS)}"
    if high is None:
        return f"{name} ≥ {number(low, DIGITS)}"
    return f"{number(low, DIGITS)} ≤ {name} ≤ {number(high, DIGITS)}"


def looked_at(verdict: Verdict) -> str:
    """Return how many draws or cases the evidence rests on, in words."""
    count, method = verdict.evidence.draws, verdict.evidence.method
    if count is None:
        return ""
    word = "draw" if "draw" in method else "node" if "quadrature" in method else "case"
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def _case(suite: ElementTree.Element, verdict: Verdict) -> None:
    case = ElementTree.SubElement(
        suite,
        "testcase",
        classname=_xml(verdict.sheet),
        name=_xml(verdict.id),
        time=f"{verdict.seconds:.3f}",
    )
    reason = _xml(verdict.evidence.statement)
    if verdict.verdict == "refuted":
        lines = [verdict.says, verdict.expects, verdict.evidence.statement]
        if verdict.counterexample is not None:
            if verdict.counterexample.statement not in verdict.evidence.statement:
                lines.append(verdict.counterexample.statement)
            lines.append(verdict.counterexample.command or "")
            reason = _xml(verdict.counterexample.statement)
        if verdict.repair is not None:
            lines.append(f"repair: {verdict.repair.statement}")
        failure = ElementTree.SubElement(case, "failure", message=reason, type="refuted")
        failure.text = _xml("\n".join(line for line in lines if line))
    elif verdict.verdict == "undecided":
        ElementTree.SubElement(case, "skipped", message=reason)
    else:
        ElementTree.SubElement(case, "system-out").text = f"{verdict.verdict}: {reason}"


def safe_cell(text: str) -> str:
    """Return a cell that no spreadsheet takes for a formula."""
    # Spreadsheets run cells that begin like this; a quote before them makes them text.
    return f"'{text}" if text.lstrip(" ").startswith(_FORMULA_STARTS) else text


def _xml(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)


def _is_number(value: Any) -> bool:
    if isinstance(value, bool | str) or value is None:
        return False
    try:
        return math.isfinite(value)
    except (TypeError, ValueError, OverflowError):
        return False


def _short(value: float) -> str:
    return f"{float(value):.4g}"
