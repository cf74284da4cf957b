"""Prompts of any lengths, checked and set side by side for one cache.

Shorter prompts are padded on the left, so that all rows get their next token in one column. Prompts
of one length that begin alike, as questions after the same examples do, have their common beginning
read once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from heedful.errors import InputError
from heedful.generation.fast import FastStep
from heedful.generation.methods import DEFAULT_TOKENS, Stops
from heedful.model import Cache, DecoderConfig

WORTH_SHARING = 16
"""Tokens in common from which reading them once saves more than copying what was read."""


@dataclass(frozen=True, eq=False)
class Prompts:
    """Rows of token ids that fit a model, and how far each may go on."""

    rows: tuple[tuple[int, ...], ...]
    limits: tuple[int, ...]
    """New tokens of each row at most; its prompt leaves room for them."""
    ends: frozenset[int]
    """Ids that end a text."""

    @classmethod
    def of(cls, config: DecoderConfig, prompts: Any, stops: Stops) -> Prompts:
        """Check everything that a user can get wrong, before any work."""
        rows = tuple(_row(config, number, row) for number, row in enumerate(_rows(prompts)))
        _check_ends(config, stops.ends)
        longest = max(map(len, rows))
        # The last new token is never read again, so it needs no place in the context.
        room = config.context - longest + 1
        if stops.tokens is not None and stops.tokens > room:
            raise InputError(
                "tokens",
                f"{stops.tokens} new tokens do not fit after a prompt of {longest}",
                expected=f"the context of this model is {config.context}",
                hint=f"ask for at most {room}, or shorten the prompt",
            )
        limit = stops.tokens or min(DEFAULT_TOKENS, room)
        return cls(rows, (limit,) * len(rows), frozenset(stops.ends))

    @classmethod
    def limited(
        cls, config: DecoderConfig, prompts: Any, limits: Sequence[int], ends: Iterable[int]
    ) -> Prompts:
        """Check prompts that may each go on as far as its own limit says."""
        rows = tuple(_row(config, number, row) for number, row in enumerate(_rows(prompts)))
        ends = frozenset(ends)
        _check_ends(config, ends)
        if len(limits) != len(rows):
            raise InputError(
                "limits", f"are {len(limits)}", expected=f"one for each of {len(rows)} prompts"
            )
        for number, (row, limit) in enumerate(zip(rows, limits, strict=True)):
            room = config.context - len(row) + 1
            if not 1 <= limit <= room:
                raise InputError(
                    f"limits[{number}]",
                    f"is {limit}, after a prompt of {len(row)} tokens",
                    expected=f"1 to {room} new tokens fit into the context of {config.context}",
                )
        return cls(rows, tuple(limits), ends)

    @property
    def limit(self) -> int:
        """New tokens of any row at most."""
        return max(self.limits)

    def read(self, step: FastStep) -> tuple[Tensor, Cache]:
        """Let a model read the prompts; return the logits of the next token, and the cache."""
        longest = max(map(len, self.rows))
        padding = [longest - len(row) for row in self.rows]
        tokens: Int[Tensor, "rows longest"] = torch.tensor(
            [[0] * count + list(row) for count, row in zip(padding, self.rows, strict=True)],
            device=step.embedding.device,
        )
        capacity = longest + self.limit - 1
        shared = 0 if any(padding) or step.precision != "float32" else _common_start(self.rows)
        if shared >= WORTH_SHARING:
            cache = step.decoder.new_cache(1, capacity=capacity)
            step.read_prompts(tokens[:1, :shared], cache)
            cache.select(torch.zeros(len(self.rows), dtype=torch.long, device=tokens.device))
            return step.read_prompts(tokens[:, shared:], cache), cache
        cache = step.decoder.new_cache(len(self.rows), capacity=capacity, padding=padding)
        if step.precision == "float32":
            return step.read_prompts(tokens, cache), cache
        # Rounded maps share one scale among all rows they are given: with whole prompts that
        # costs too much, and it is the new tokens that come one by one.
        with torch.inference_mode():
            return step.decoder.logits(step.decoder.hidden(tokens, cache=cache)[:, -1]), cache


def _common_start(rows: Sequence[Sequence[int]]) -> int:
    """Return how many tokens all rows begin with alike, short of the whole; 0 for one row."""
    if len(rows) < 2:
        return 0
    columns = zip(*(row[:-1] for row in rows), strict=False)
    return sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, columns))


def _check_ends(config: DecoderConfig, ends: Iterable[int]) -> None:
    for end in ends:
        if not 0 <= end < config.vocabulary:
            raise InputError(
                "stops.ends",
                f"holds the id {end}",
                expected=f"ids 0 to {config.vocabulary - 1} were expected",
            )


def _rows(prompts: Any) -> Sequence[Any]:
    rows = prompts.tolist() if hasattr(prompts, "tolist") else prompts
    if not isinstance(rows, Sequence) or isinstance(rows, str) or not rows:
        raise InputError(
            "prompts",
            f"is {prompts!r:.60}",
            expected="at least one row of token ids was expected",
        )
    return rows


def _row(config: DecoderConfig, number: int, row: Any) -> tuple[int, ...]:
    where = f"prompts[{number}]"
    row = row.tolist() if hasattr(row, "tolist") else row
    if not isinstance(row, Sequence) or isinstance(row, str):
        raise InputError(where, f"is {row!r:.60}", expected="a row of token ids was expected")
    if not row:
        raise InputError(where, "is empty", expected="at least one token was expected")
    for token in row:
        if isinstance(token, bool) or not isinstance(token, int):
            raise InputError(where, f"holds {token!r:.40}", expected="whole numbers were expected")
        if not 0 <= token < config.vocabulary:
            raise InputError(
                where,
                f"holds the id {token}",
                expected=f"ids 0 to {config.vocabulary - 1} were expected",
                hint="use the tokenizer that belongs to this model",
            )
    if len(row) > config.context:
        raise InputError(
            where,
            f"has {len(row)} tokens",
            expected=f"the context of this model is {config.context}",
            hint="shorten the prompt",
        )
    return tuple(row)
