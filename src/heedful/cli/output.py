"""How verbs print: tables or JSON, and a figure if one is asked for."""

from __future__ import annotations

import codecs
import json as json_library
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

from cyclopts import App, Parameter

from heedful.errors import InputError, RunError
from heedful.records import Record

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from heedful.views.blocks import Block

JsonFlag = Annotated[bool, Parameter(help="Print the record as JSON.", negative="")]
FigurePath = Annotated[
    Path | None, Parameter(help="Also draw it: a path ending in .svg, .png or .pdf.")
]

FIGURE_KINDS = (".svg", ".png", ".pdf")

AnyRecord = TypeVar("AnyRecord", bound=Record)


def verb_group(name: str, purpose: str) -> App:
    """Return a verb that has verbs of its own, such as `heed design copy`."""
    return App(name=name, help=purpose, help_format="plaintext", result_action="return_value")


def show(record: AnyRecord, view: Callable[[AnyRecord], Iterable[Block]], *, json: bool) -> None:
    """Print the record as JSON, or as the blocks of its view."""
    if json:
        print(escaped(record.to_json()))
        return
    from heedful.views.terminal import print_blocks

    print_blocks(view(record))


def escaped(text: str) -> str:
    """Return JSON that standard output can say: where it is not UTF-8, in ASCII with escapes.

    Elsewhere a sign that an encoding lacks is replaced; JSON must lose nothing.
    """
    if codecs.lookup(sys.stdout.encoding or "utf-8").name == "utf-8":
        return text
    # JSON escapes UTF-16, half by half.
    halves = re.compile(r"[^\x00-\x7f]")
    return halves.sub(lambda sign: json_library.dumps(sign[0])[1:-1], text)


def check_figure_path(figure: Path | None) -> None:
    """Refuse a figure that could not be written, before any work is done."""
    if figure is None:
        return
    if figure.suffix.lower() not in FIGURE_KINDS:
        raise InputError(
            "--figure",
            f"{figure.name!r} ends in {figure.suffix or 'nothing'}",
            expected=f"one of {', '.join(FIGURE_KINDS)} was expected",
            hint=f"try --figure {figure.with_suffix('.svg')}",
        )
    if not figure.resolve().parent.is_dir():
        raise InputError(
            "--figure",
            f"the folder {figure.resolve().parent} does not exist",
            hint="make it first, or choose another path",
        )


def draw(record: AnyRecord, figure: Path | None, figure_of: Callable[[AnyRecord], Figure]) -> None:
    """Write the figure of a record, if one was asked for."""
    if figure is None:
        return
    from heedful.views.drawing import save

    try:
        save(figure_of(record), figure)
    except OSError as error:
        raise RunError(
            "--figure",
            f"{figure} cannot be written ({error.strerror or error})",
            hint="choose another path",
        ) from None
