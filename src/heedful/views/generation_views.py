"""How generated texts are shown: as text, as a list of the best, or token by token."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from heedful.records import Record
from heedful.views.terminal import number, table


@dataclass(frozen=True, eq=False, kw_only=True)
class GeneratedText(Record):
    """One continuation of a prompt, as text."""

    text: str
    """What follows the prompt; marks such as the end of a text are left out."""
    tokens: tuple[int, ...]
    """Its token ids; the last one is an end if `finished`."""
    pieces: tuple[str, ...]
    """Each token by itself, as text."""
    log_probabilities: tuple[float, ...]
    """Of each token under the model itself: temperature 1, nothing filtered."""
    score: float
    """Their sum; from beam search, divided by length^length_penalty."""
    finished: bool
    """Whether it ended by itself; else the limit of tokens cut it off."""


@dataclass(frozen=True, eq=False, kw_only=True)
class GeneratedTexts(Record):
    """What `heed generate` gives."""

    model: str
    """Where the model lies."""
    method: dict[str, Any]
    """How tokens were chosen, with every setting."""
    limit: int
    """New tokens that each continuation could have at most."""
    precision: str
    """How the weights were kept: float32 or int8."""
    prompts: tuple[str, ...]
    """The texts that were continued."""
    texts: tuple[tuple[GeneratedText, ...], ...]
    """For each prompt its continuations: beams best first, samples in the order drawn."""


def running_text(record: GeneratedTexts) -> str:
    """Return prompts with their continuation as plain text, a blank line between two of them."""
    return "\n\n".join(
        prompt + best.text
        for prompt, found in zip(record.prompts, record.texts, strict=True)
        for best in found
    )


def generation_tables(record: GeneratedTexts, *, scores: bool) -> Iterator[RenderableType]:
    """Yield the continuations of each prompt with their scores; `scores` shows every token."""
    for prompt, found in zip(record.prompts, record.texts, strict=True):
        made = table("", "", "score", "tokens", "end", "text", left=(0, 3, 4))
        made.title = Text(_shortened(prompt), style="bold", no_wrap=True, overflow="ellipsis")
        for rank, one in enumerate(found, start=1):
            end = "by itself" if one.finished else f"cut at {record.limit}"
            made.add_row(
                str(rank), number(one.score), str(len(one.tokens)), end, Text(one.text.strip())
            )
        yield made
        if scores:
            for rank, one in enumerate(found, start=1):
                yield _token_table(one, rank if len(found) > 1 else None)


def _token_table(one: GeneratedText, rank: int | None) -> RenderableType:
    title = "Tokens" if rank is None else f"Tokens of {rank}"
    made = table(title, "id", "token", "log p", "p", left=(1,))
    rows = zip(one.tokens, one.pieces, one.log_probabilities, strict=True)
    for token, piece, value in rows:
        made.add_row(str(token), Text(repr(piece)), number(value), number(math.exp(value), 3))
    return made


def _shortened(text: str, most: int = 80) -> str:
    line = " ".join(text.split()) or "(an empty prompt)"
    return line if len(line) <= most else "… " + line[-most:]
