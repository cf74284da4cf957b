"""Statements of the course sheets, judged by measurements."""

from __future__ import annotations

from dataclasses import dataclass

from heedful.records import Record, Word
from heedful.stats import Estimate


@dataclass(frozen=True, eq=False, kw_only=True)
class Finding(Record):
    """A statement of a course sheet, and what the study says of it."""

    name: str
    """Short, for tables."""
    says: str
    """The statement, in our words."""
    verdict: Word
    """In the words of the claims."""
    statement: str
    """Why, with its numbers."""
    estimate: Estimate | None = None
    """The number that decides, where one does."""


def sign_verdict(estimate: Estimate) -> Word:
    """Judge "this is below zero" by an interval: all of it, none of it, or neither.

    >>> sign_verdict(Estimate(value=-2.0, low=-3.0, high=-1.0, count=5))
    'supported'
    """
    if estimate.high < 0:
        return "supported"
    return "refuted" if estimate.low >= 0 else "undecided"
