"""How far a study is: its trainings, added up by the tokens that they will read, at most."""

from __future__ import annotations

from heedful.progress import Parts, Tell
from heedful.studies.translation.records import ELSEWHERE, HERE, LONGER, SCRATCH
from heedful.studies.translation.runs import Report
from heedful.studies.translation.settings import StudySettings

LANGUAGE_MODEL = "language model"
AS_SLOW = 100.0
"""A token of a large model, in tokens of the small one: no more than a guess for the meter."""


def training_name(arm: str, pairs: int) -> str:
    """Return what the training of an arm is called while it runs."""
    return f"{arm}, {pairs:,} pairs"


class StudyProgress(Parts):
    """The trainings of a study, in the order in which they come."""

    def __init__(self, settings: StudySettings, tell: Tell | None) -> None:
        super().__init__(_sizes(settings), tell)

    def report(self, name: str) -> Report:
        """Return the hook of the training that begins now."""
        self.begin(name, name)
        return lambda state: self.tell(f"{name}: {state.line}", name, state.step / state.steps)


def _sizes(settings: StudySettings) -> dict[str, float]:
    scratch, tuning, text = settings.scratch, settings.fine_tuning, settings.pretraining
    shares = {pairs: pairs / settings.sizes[-1] for pairs in settings.sizes}
    sizes: dict[str, float] = {
        training_name(SCRATCH, pairs): float(scratch.steps_for(share) * scratch.columns)
        for pairs, share in shares.items()
    }
    sizes[LANGUAGE_MODEL] = float(text.steps * text.columns)
    for pairs, share in shares.items():
        tuned = float(tuning.steps_for(share) * tuning.columns)
        sizes[training_name(HERE, pairs)] = tuned
        if pairs in settings.clocked:
            sizes[training_name(LONGER, pairs)] = sizes[LANGUAGE_MODEL] + tuned
    large = settings.elsewhere
    for pairs in (large.sizes or settings.sizes) if large.model else ():
        sizes[training_name(ELSEWHERE, pairs)] = AS_SLOW * large.steps * large.columns
    return sizes
