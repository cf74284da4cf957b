"""What asking a model gives; needs no torch."""

from __future__ import annotations

from dataclasses import dataclass

from heedful.records import Record
from heedful.studies.knowledge.records import Neighbour


@dataclass(frozen=True, eq=False, kw_only=True)
class AskReply(Record):
    """The reply to one question."""

    question: str
    """As it was asked."""
    name: str | None
    """Who it asks about; None where it is not asked in a known way."""
    answer: str | None
    """The answer; None is "I don't know"."""
    would_say: str
    """What the model would say if it had to."""
    confidence: float
    """How sure it is, after temperature scaling."""
    threshold: float
    """Below it there is no answer."""
    wanted_error: float
    """The error rate for which the threshold was chosen."""
    promised_error: float | None
    """What the held-out questions promise of the answers above it, at 95 %, if that is known."""
    evidence: str | None
    """A line of the pretraining text about the person, if there is one."""
    supported: bool
    """Whether that line holds what the model would say."""
    fine_tuned_answer: str | None
    """The answer given in fine-tuning, where this very question was asked there."""
    nearest: dict[str, Neighbour]
    """For a name in no text and no question: the nearest known names by edits, tokens, hidden."""


@dataclass(frozen=True, eq=False, kw_only=True)
class AskReplies(Record):
    """What `heed ask` gives."""

    run: str
    """Where the model lies."""
    replies: tuple[AskReply, ...]
    """In the order of the questions."""
