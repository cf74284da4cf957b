"""How far a study is: what is going on, and the share of the work that is behind it."""

from __future__ import annotations

from collections.abc import Callable

from heedful.studies.translation.records import HERE, LONGER, SCRATCH
from heedful.studies.translation.runs import Report
from heedful.studies.translation.settings import StudySettings
from heedful.training.hooks import Progress

Tell = Callable[[str, float], None]
"""Gets what is going on, and the share of the study that is done."""

AS_SLOW = 100.0
"""A token of a large model, in tokens of the small one: no more than a guess for the meter."""


class Meter:
    """Adds up the trainings of a study by the tokens that they will read, at most."""

    def __init__(self, settings: StudySettings, tell: Tell | None) -> None:
        self.tell = tell
        self.work: dict[str, float] = {}
        scratch, tuning, text = settings.scratch, settings.fine_tuning, settings.pretraining
        self.work["language-model"] = text.steps * text.columns
        for pairs in settings.sizes:
            share = pairs / settings.sizes[-1]
            self.work[f"{SCRATCH}, {pairs:,} pairs"] = scratch.steps_for(share) * scratch.columns
            self.work[f"{HERE}, {pairs:,} pairs"] = tuning.steps_for(share) * tuning.columns
        for pairs in settings.clocked:
            both = self.work["language-model"] + self.work.get(f"{HERE}, {pairs:,} pairs", 0.0)
            self.work[f"{LONGER}, {pairs:,} pairs"] = both
        if settings.elsewhere.model:
            large = settings.elsewhere
            self.rest = AS_SLOW * large.steps * large.columns
            for pairs in large.sizes or settings.sizes:
                self.work[f"elsewhere {pairs}"] = self.rest
        self.behind: set[str] = set()
        self.now = ""

    @property
    def total(self) -> float:
        """All the work there is."""
        return sum(self.work.values(), 0.0)

    def say(self, what: str) -> None:
        """Tell what is going on."""
        if self.tell is not None:
            self.tell(what, self._done() / self.total)

    def told(self, name: str) -> Report | None:
        """Return what a training tells of each step."""
        if self.now:
            self.behind.add(self.now)
        self.now = name
        if self.tell is None:
            return None
        before, whole = self._done(), self.work.get(name, 0.0)

        def report(state: Progress) -> None:
            assert self.tell is not None
            share = (before + whole * state.step / state.steps) / self.total
            self.tell(
                f"{name}: step {state.step:,}/{state.steps:,}, loss {state.loss:.3f}, "
                f"{state.tokens_per_second:,.0f} tokens/s",
                share,
            )

        return report

    def _done(self) -> float:
        return sum((self.work.get(name, 0.0) for name in self.behind), 0.0)
