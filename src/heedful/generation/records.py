"""What generation gives: token ids with their log-probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from heedful.records import Record


@dataclass(frozen=True, eq=False, kw_only=True)
class Continuation(Record):
    """One way in which a prompt goes on."""

    tokens: tuple[int, ...]
    """New tokens; the last one is an end if `finished`."""
    log_probabilities: tuple[float, ...]
    """Of each new token under the model itself: temperature 1, nothing filtered."""
    score: float
    """Their sum; from beam search, divided by length^length_penalty."""
    finished: bool
    """Whether it ended by itself; else the limit of tokens cut it off."""


@dataclass(frozen=True, eq=False, kw_only=True)
class GenerationResult(Record):
    """The continuations of every prompt."""

    method: dict[str, Any]
    """How tokens were chosen, with every setting."""
    limit: int
    """New tokens that each continuation could have at most."""
    precision: str
    """How the weights were kept: float32 (as they are) or int8."""
    prompts: tuple[tuple[int, ...], ...]
    """The token ids that were continued."""
    continuations: tuple[tuple[Continuation, ...], ...]
    """For each prompt its continuations: beams best first, samples in the order drawn."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Step(Record):
    """One new token for each row that still runs."""

    rows: tuple[int, ...]
    """Which rows: prompt 0 with its samples first, then prompt 1, …"""
    tokens: tuple[int, ...]
    """The new token of each."""
    log_probabilities: tuple[float, ...]
    """Its log-probability under the model itself."""
    finished: tuple[bool, ...]
    """Whether the row has come to its end with it."""
