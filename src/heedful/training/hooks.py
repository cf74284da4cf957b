"""What a training tells, and what others may tell it.

A study passes an `evaluate` callable: training itself never generates text and never reads it.
Early stopping is a function of the evaluations so far, so that a resumed run stops where an
undisturbed one would.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from torch import Tensor

from heedful.errors import InputError
from heedful.model import Decoder
from heedful.records import Record


@dataclass(frozen=True, eq=False, kw_only=True)
class Evaluation(Record):
    """What an `evaluate` callable found after one step."""

    step: int
    """Steps taken."""
    values: dict[str, float]
    """Its numbers, by name."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Progress:
    """Where a training is; made after every step."""

    step: int
    """Steps taken, those before a resume included."""
    steps: int
    """Steps to take."""
    epoch: int
    """Full passes over the data."""
    loss: float
    """Mean loss of a learned token in this step."""
    gradient_norm: float
    """Length of the gradient before clipping."""
    rate_share: float
    """The learning rate, as a share of its highest."""
    tokens_per_second: float
    """Real tokens, without padding, since the training began or was resumed."""
    utilisation: float
    """Model operations a second, as a share of what large matrix products reach here."""
    seconds_left: float
    """At this speed."""

    @property
    def line(self) -> str:
        """All of it that fits beside a bar."""
        return (
            f"step {self.step:,}/{self.steps:,}  loss {self.loss:.3f}  "
            f"{self.tokens_per_second:,.0f} tokens/s  {self.utilisation:.0%} used"
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class TrainingResult(Record):
    """How a training ended."""

    run: str
    """Its folder."""
    finished: bool
    """Whether it is done; otherwise it can be resumed."""
    stopped_by: str
    """`steps`, `evaluation` (early stopping), or the name of a signal."""
    step: int
    """Steps taken."""
    epoch: float
    """Passes over the data."""
    loss: float | None
    """Of the last step; None where no step was taken."""
    evaluations: tuple[Evaluation, ...]
    """Every evaluation, in order."""
    tokens: int
    """Real tokens read, over the whole run."""
    seconds: float
    """Since it began or was resumed."""
    processor_seconds: float
    """Of all cores together in that time: what it cost, also where others used the machine."""
    tokens_per_second: float
    """In that time."""
    utilisation: float
    """Of the machine, as in `Progress`."""
    parameters: int
    """Trained numbers."""
    computed_as: str
    """Precision, lanes, compilation."""
    checkpoint: str
    """The last one: a folder that every verb for models opens."""
    weights_sha256: str
    """Of its `model.safetensors`: the same for the same weights."""
    resumed_from: int | None
    """The step of the checkpoint from which it went on; None for a fresh start."""
    skipped: dict[str, str]
    """Checkpoints that were damaged, and how."""
    notes: tuple[str, ...]
    """What differs from the machine on which the run began."""


Evaluate: TypeAlias = Callable[[Decoder, int], Mapping[str, float]]
"""Gets the decoder, in evaluation mode and without gradients, and the steps taken."""
Stop: TypeAlias = Callable[[Sequence[Evaluation]], bool]
"""Gets every evaluation so far; True ends the training."""
Report: TypeAlias = Callable[[Progress], None]
Adapt: TypeAlias = Callable[[Decoder], None]
"""Changes a decoder before it is trained; must do the same each time."""


@dataclass(frozen=True, kw_only=True)
class Hooks:
    """What a caller adds to a training."""

    evaluate: Evaluate | None = None
    """Called every `evaluate_every` steps and at the end."""
    stop: Stop | None = None
    """Called after each evaluation."""
    report: Report | None = None
    """Called after every step; must be quick."""
    initial: Mapping[str, Tensor] | None = field(default=None, repr=False)
    """Weights to start from, by the names of the decoder; None: drawn from the seed."""
    adapt: Adapt | None = None
    """Called once with the decoder, its weights in place: what it freezes is neither trained nor
    saved, so that checkpoints of a fine-tuning hold its few numbers alone."""


def no_better(metric: str, rounds: int) -> Stop:
    """Return a rule: stop when a metric has not fallen for so many evaluations.

    >>> rule = no_better("loss", 2)
    >>> seen = [Evaluation(step=s, values={"loss": v}) for s, v in ((1, 2.0), (2, 2.1), (3, 2.2))]
    >>> rule(seen[:2]), rule(seen)
    (False, True)
    """
    if rounds < 1:
        raise InputError("rounds", f"are {rounds}", expected="at least 1 was expected")

    def rule(evaluations: Sequence[Evaluation]) -> bool:
        values = [evaluation.values[metric] for evaluation in evaluations]
        return len(values) > rounds and min(values[-rounds:]) >= min(values[:-rounds])

    return rule
