"""Blocks in the terminal: at most 100 columns wide, plain text when it is piped."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable
from typing import TextIO

from rich import table as rich_table
from rich import text as rich_text
from rich.box import Box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding

from heedful.studies.conclusions import sentences
from heedful.views import blocks
from heedful.views.blocks import Block, Bullets, Cell, Code, Command, Figure, Formula, Table, Text
from heedful.views.formatting import sentence

WIDEST = 100
"""Maximum width of a view in columns, however wide the terminal is."""

ONE_RULE = Box("    \n    \n ── \n    \n    \n    \n    \n    \n")
"""A table with one line under its header, and no other."""

STYLES = {
    "": "",
    "strong": "bold",
    "soft": "dim",
    "good": "green",
    "fine": "cyan",
    "bad": "bold red",
    "unsure": "yellow",
    "code": "cyan",
}


def console(file: TextIO | None = None, width: int = WIDEST) -> Console:
    """Return the console of standard output; plain text when it is not a terminal."""
    screen = Console(highlight=False, soft_wrap=False, file=file)
    known = screen.is_terminal or "COLUMNS" in os.environ
    screen.width = min(screen.width, width) if known else width
    return screen


def print_blocks(view: Iterable[Block], width: int = WIDEST) -> None:
    """Print the blocks of a view, with a blank line on both sides of a table."""
    sys.stdout.write(_captured(console(width=width), view))


def written(view: Iterable[Block], width: int = WIDEST) -> str:
    """Return what `print_blocks` would print into a file."""
    return _captured(console(io.StringIO(), width), view)


def _captured(screen: Console, view: Iterable[Block]) -> str:
    with screen.capture() as captured:
        before: Block | None = None
        for block in _flat(view):
            gap = isinstance(before, Bullets) or Table in (type(before), type(block))
            if before is not None and gap:
                screen.print()
            # What is to be copied may be longer than a line.
            screen.print(_rendered(block), crop=False)
            before = block
    # A table pads its cells; nobody wants these blanks in a file or in a pasted example.
    lines = captured.get().split("\n")
    return "\n".join(lines if screen.is_terminal else [line.rstrip() for line in lines])


def _flat(view: Iterable[Block]) -> Iterable[Block]:
    """Yield the blocks one by one: headings and findings as text, captions of figures left out."""
    for block in view:
        if isinstance(block, blocks.Section):
            yield Text(block.title, tone="strong")
            yield Text(block.lead)
            yield from _flat(block.blocks)
            yield Bullets(tuple(map(sentence, sentences(block.findings))))
        elif isinstance(block, blocks.Group):
            yield Text(block.heading, tone="strong")
            yield from _flat(block.blocks)
        elif isinstance(block, Figure):
            if block.command:
                yield Command(block.command)
        else:
            yield block


def _rendered(block: Block) -> RenderableType:
    if isinstance(block, Table):
        return _table(block)
    if isinstance(block, Text):
        spans = [(span.text, STYLES.get(span.tone, span.tone)) for span in block.spans]
        text = rich_text.Text.assemble(*spans)
        return Padding(text, (0, 0, 0, block.indent)) if block.indent else text
    if isinstance(block, Code):
        return _code(block.text, block.indent, STYLES.get(block.tone, block.tone))
    if isinstance(block, Command):
        return _code(f"$ {block.command}")
    if isinstance(block, Formula):
        return rich_text.Text(block.latex)
    assert isinstance(block, Bullets)
    grid = rich_table.Table.grid(padding=(0, 1, 0, 0))
    for mark, item in zip(block.marks, block.items, strict=True):
        grid.add_row(rich_text.Text(mark), rich_text.Text(item))
    return grid


def _code(text: str, indent: int = 0, style: str = "") -> RenderableType:
    lines = "\n".join(" " * indent + line for line in text.split("\n"))
    # A console joins texts that it prints, and forgets that this one does not wrap; not in a group.
    return Group(rich_text.Text(lines, style=style, no_wrap=True, overflow="ignore"))


def _table(block: Table) -> rich_table.Table:
    title: rich_text.Text | None = None
    if block.title:
        # A title may be longer than its table is wide; it stays on one line all the same.
        title = rich_text.Text(
            block.title,
            style="bold",
            no_wrap=block.long_title != "wrap",
            overflow={"keep": "ignore", "cut": "ellipsis", "wrap": "fold"}[block.long_title],  # type: ignore[arg-type]
        )
    grid = rich_table.Table(
        title=title,
        title_justify="left",
        box=ONE_RULE,
        show_edge=False,
        show_header=any(block.columns),
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    for place, column in enumerate(block.columns):
        justify = "left" if place in block.left else "right"
        grid.add_column(
            rich_text.Text(column),
            justify=justify,  # type: ignore[arg-type]
            overflow="fold",
            no_wrap=place in block.fixed,
        )
    for place, row in enumerate(block.rows):
        grid.add_row(*map(_cell, row), end_section=place in block.gaps)
    return grid


def _cell(cell: Cell) -> rich_text.Text:
    if isinstance(cell, str):
        return rich_text.Text(cell)
    style = STYLES.get(cell.tone, cell.tone)
    return rich_text.Text(cell.text, style=style, no_wrap=not cell.wrap)
