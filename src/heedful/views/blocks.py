"""What a view is made of: text, lists, tables, figures, formulas, commands, and groups of them.

A subject module turns a record into blocks, once. The terminal, the HTML pages, a notebook and
JSON render the same blocks (`terminal.py`, `html.py`, `View._repr_html_`, `Record.to_dict`), so
that no table is written twice. All text in a block is plain: a renderer escapes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, ClassVar, Literal

from heedful.errors import InputError
from heedful.records import Record
from heedful.studies.conclusions import Conclusion

Tone = str
"""How a text looks: "", "strong", "soft", "good", "fine", "bad", "unsure", "code", or a #colour."""


@dataclass(frozen=True, eq=False)
class Block(Record):
    """Base of everything a view consists of."""

    kind: ClassVar[str] = ""
    """Which renderer takes the block."""

    def to_dict(self) -> dict[str, object]:
        """Return the block as plain values, with its kind."""
        return {"kind": self.kind, **super().to_dict()}


@dataclass(frozen=True, eq=False)
class Span(Record):
    """A piece of text with a tone; also a cell of a table whose lines must not wrap."""

    text: str
    tone: Tone = ""
    wrap: bool = True


Cell = str | Span


@dataclass(frozen=True, eq=False)
class Text(Block):
    """One paragraph, plain or of several spans."""

    kind: ClassVar[str] = "text"
    text: str | tuple[Cell, ...] = ""
    indent: int = 0
    tone: Tone = ""

    @property
    def spans(self) -> tuple[Span, ...]:
        """The paragraph as spans, in order."""
        parts = (self.text,) if isinstance(self.text, str) else self.text
        return tuple(Span(part, self.tone) if isinstance(part, str) else part for part in parts)


@dataclass(frozen=True, eq=False)
class Code(Block):
    """Lines to be copied: never wrapped, so that pasting them gives them back."""

    kind: ClassVar[str] = "code"
    text: str
    indent: int = 0
    tone: Tone = ""


@dataclass(frozen=True, eq=False)
class Command(Block):
    """A command line that reproduces what stands above it."""

    kind: ClassVar[str] = "command"
    command: str


@dataclass(frozen=True, eq=False)
class Formula(Block):
    """A displayed equation in LaTeX."""

    kind: ClassVar[str] = "formula"
    latex: str


@dataclass(frozen=True, eq=False)
class Bullets(Block):
    """A list of sentences, with bullets or numbered."""

    kind: ClassVar[str] = "bullets"
    items: tuple[str, ...]
    numbered: bool = False

    @property
    def marks(self) -> tuple[str, ...]:
        """What stands before each item."""
        return tuple(f"{i}." if self.numbered else "•" for i in range(1, len(self.items) + 1))


@dataclass(frozen=True, eq=False)
class Table(Block):
    """A table; columns in `left` align left, the others right."""

    kind: ClassVar[str] = "table"
    title: str
    columns: tuple[str, ...]
    rows: list[tuple[Cell, ...]] = field(default_factory=list)
    left: tuple[int, ...] = (0,)
    caption: str = ""
    """What a page says about the table; a terminal shows its title only."""
    tones: list[Tone] = field(default_factory=list)
    """The tone of the first cell of each row, or nothing."""
    gaps: set[int] = field(default_factory=set)
    """Rows with a blank line below them in the terminal."""
    fixed: tuple[int, ...] = ()
    """Columns that never wrap."""
    long_title: Literal["keep", "cut", "wrap"] = "keep"
    """What happens to a title that is wider than the terminal."""

    def row(self, *cells: Cell, tone: Tone = "", gap: bool = False) -> None:
        """Add a row; missing cells at its end stay empty."""
        if gap:
            self.gaps.add(len(self.rows))
        self.rows.append(cells)
        self.tones.append(tone)


@dataclass(frozen=True, eq=False)
class Figure(Block):
    """A drawing with its caption and the command that reproduces it."""

    kind: ClassVar[str] = "figure"
    svg: str
    caption: str
    command: str = ""


@dataclass(frozen=True, eq=False)
class Group(Block):
    """Blocks under one heading."""

    kind: ClassVar[str] = "group"
    heading: str
    blocks: tuple[Block, ...] = ()


UNFOLDED_FINDINGS = 3
"""Findings at the head of a section that are not folded: what one reads before going on."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Section(Block):
    """One part of the report."""

    kind: ClassVar[str] = "section"
    name: str
    title: str
    lead: str
    blocks: tuple[Block, ...]
    findings: tuple[Conclusion, ...] = ()
    """What was found, weightiest first: the summary takes the first two."""
    seconds: float = 0.0

    @property
    def leading(self) -> tuple[Conclusion, ...]:
        """The findings that a page shows unfolded."""
        return self.findings[:UNFOLDED_FINDINGS]

    @property
    def further(self) -> tuple[Conclusion, ...]:
        """Those that it folds."""
        return self.findings[UNFOLDED_FINDINGS:]

    @property
    def contents(self) -> tuple[str, ...]:
        """The headings of its groups; a page folds all of them but one."""
        return tuple(block.heading for block in self.blocks if isinstance(block, Group))

    @property
    def unfolded(self) -> int:
        """Which group a page shows unfolded: the first with a figure, or else the first."""
        groups = [block for block in self.blocks if isinstance(block, Group)]
        drawn = (
            place
            for place, one in enumerate(groups)
            if any(isinstance(block, Figure) for block in one.blocks)
        )
        return next(drawn, 0)


@dataclass(frozen=True, eq=False)
class View(Record):
    """The blocks of one record, as a notebook shows them and `print` writes them."""

    blocks: tuple[Block, ...]

    def _repr_html_(self) -> str:
        from heedful.views.html import notebook_html

        return notebook_html(self.blocks)

    def __str__(self) -> str:
        from heedful.views.terminal import written

        return written(self.blocks)


def group(heading: str, *blocks: Block | str | Iterable[Block | str] | None) -> Group:
    """Return a group; strings become paragraphs, None is left out, iterables are unpacked.

    >>> [block.kind for block in group("", "Why.", None, [Formula("x"), "More."]).blocks]
    ['text', 'formula', 'text']
    """
    flat: list[Block] = []
    for block in blocks:
        if isinstance(block, str):
            flat.append(Text(block))
        elif isinstance(block, Block):
            flat.append(block)
        elif block is not None:
            flat.extend(group("", *block).blocks)
    return Group(heading, tuple(flat))


def table(title: str, *columns: str, left: tuple[int, ...] = (0,), caption: str = "") -> Table:
    """Return an empty table."""
    return Table(title, columns, left=left, caption=caption)


def facts(title: str, *rows: tuple[str, Cell] | None) -> Table:
    """Return a table of names and values, without headings; None is left out."""
    grid = table(title, "", "", left=(0, 1))
    for row in rows:
        if row is not None:
            grid.row(*row)
    return grid


VIEWS = {
    "AttentionResult": "attention:result_blocks",
    "Reading": "attention:reading_blocks",
    "Design": "attention:design_blocks",
    "Copyable": "attention:copyable_blocks",
    "HeadsDesign": "attention:robust_heads_blocks",
    "NoiseStudy": "attention:noise_blocks",
    "SequenceDesign": "attention:sequence_blocks",
    "OrderStudy": "order:order_blocks",
    "PositionsStudy": "order:positions_blocks",
    "LayerCheck": "order:layer_blocks",
    "InterventionReport": "models:intervention_blocks",
    "CheckReport": "claims:check_blocks",
    "Exploration": "exploration:exploration_blocks",
    "Explanation": "claims:explanation_blocks",
    "Verdict": "claims:verdict_blocks",
    "TranslationStudy": "translation:study_blocks",
    "Alignment": "translation:alignment_blocks",
    "AttributionStudy": "translation:attribution_blocks",
    "KnowledgeStudy": "knowledge:knowledge_blocks",
    "CapacityStudy": "knowledge:capacity_blocks",
    "AskReplies": "knowledge:ask_blocks",
    "ModelReplies": "knowledge:model_replies_blocks",
    "ModelCalibration": "knowledge:model_calibration_blocks",
    "AskReply": "knowledge:reply_blocks",
    "StoredMeasurement": "pretrained:measurement_blocks",
    "HeadsStudy": "heads:heads_blocks",
    "ModelInfo": "models:info_blocks",
    "Verification": "models:verification_blocks",
    "Export": "models:export_blocks",
    "Fetched": "models:fetched_blocks",
    "FinishedRun": "models:finished_blocks",
    "TrainingResult": "models:training_blocks",
    "RunList": "models:runs_blocks",
    "RunComparison": "models:comparison_blocks",
    "Inspection": "data:inspection_blocks",
    "Installation": "models:installation_blocks",
    "LabRecord": "report:lab_blocks",
    "CourseGrades": "assignments:course_blocks",
}
"""Which function makes the blocks of a record, by the name of its class; loaded when needed."""
FIGURES = {
    "AttentionResult": "attention:reading_figure",
    "Reading": "attention:reading_figure",
    "Design": "attention:design_figure",
    "Copyable": "attention:copyable_figure",
    "HeadsDesign": "attention:robust_heads_figure",
    "NoiseStudy": "attention:noise_figure",
    "SequenceDesign": "attention:sequence_figure",
    "OrderStudy": "order:order_figure",
    "PositionsStudy": "order:positions_figure",
    "Exploration": "exploration:exploration_figure",
    "Explanation": "claims:explanation_figure",
    "Verdict": "claims:verdict_figure",
    "Alignment": "translation:alignment_figure",
    "AttributionStudy": "translation:attribution_figure",
    "TranslationStudy": "translation:sizes_figure",
    "KnowledgeStudy": "knowledge:labels_figure",
    "CapacityStudy": "knowledge:capacity_figure",
    "StoredMeasurement": "pretrained:outcomes_figure",
    "HeadsStudy": "heads:heads_map",
    "FinishedRun": "models:finished_figure",
    "TrainingResult": "models:training_figure",
    "Trace": "models:trace_figure",
    "Inspection": "data:inspection_figure",
}
"""Which function draws a record; loaded when needed."""


def view(record: Record) -> View:
    """Return a record as a notebook shows it and `print` writes it."""
    blocks = _known(record, VIEWS)
    if blocks is None:
        raise InputError("record", f"there is no view of a {type(record).__name__}")
    return View(tuple(blocks(record)))


def shown(record: Record) -> View:
    """Return any record as a notebook shows it: its view, or else its fields."""
    if isinstance(record, View):
        return record
    if isinstance(record, Block):
        return View((record,))
    if _known(record, VIEWS) is not None:
        return view(record)
    from heedful.views.fields import field_blocks

    return View(tuple(field_blocks(record)))


def figure_of(record: Record) -> Any:
    """Return any record as a Matplotlib figure: its drawing, its arrays, or its tables as text."""
    draw = _known(record, FIGURES)
    drawn = None if draw is None else draw(record)
    if drawn is not None:
        return drawn
    from heedful.views.fields import field_figure

    return field_figure(record)


def _known(record: Record, registry: dict[str, str]) -> Callable[[Record], Any] | None:
    for kind in type(record).__mro__:
        if kind.__name__ in registry:
            module, function = registry[kind.__name__].split(":")
            found: Callable[[Record], Any] = getattr(
                import_module(f"heedful.views.{module}"), function
            )
            return found
    return None
