"""What was measured of a model that others have trained, as it comes with the package.

`measured.json` holds the record of `heed ask smollm2 --calibrate`, its date and its machine;
`benchmarks/bench_ask.py --ship` writes it. So a report shows it without the weights, the same on
every machine, whatever lies in a cache. It is a stored measurement, and says so.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from heedful.stats import Estimate, percent, wilson
from heedful.studies.conclusions import Basis, Conclusion, Measurement, Study
from heedful.studies.knowledge.findings import (
    KNOWN,
    UNKNOWN,
    Drift,
    LevelResult,
    ModelCalibration,
    Promise,
    SignalSeparation,
    TestAnswer,
)
from heedful.studies.knowledge.questions import LEVELS

STORED = "measured.json"
"""Beside this module."""
JOINED = "all, combined"
"""The signal that labels are decided by."""
EXAMPLES_OF_A_LEVEL = 3


@dataclass(frozen=True, eq=False, kw_only=True)
class StoredMeasurement(Study):
    """The calibration and the test of one model, and when and where it was made."""

    name: str
    """What its makers call the model."""
    calibration: ModelCalibration
    """Without the signals of each answer."""
    date: str
    """The day on which it was asked."""
    machine: str
    """What it ran on."""
    command: str
    """What makes the measurement again."""

    @property
    def examples(self) -> tuple[TestAnswer, ...]:
        """The first test answers of each level: their order is that of a hash, so nobody chose."""
        answers = self.calibration.answers
        return tuple(
            one
            for level in LEVELS.values()
            for one in [own for own in answers if own.level == level][:EXAMPLES_OF_A_LEVEL]
        )

    @property
    def invented(self) -> tuple[TestAnswer, ...]:
        """The answers about things that do not exist."""
        return tuple(one for one in self.calibration.answers if one.level == LEVELS[0])

    @property
    def answered(self) -> tuple[TestAnswer, ...]:
        """The answers that it gives: called known or unsure."""
        return tuple(one for one in self.calibration.answers if one.label != UNKNOWN)

    @property
    def says_something(self) -> int:
        """Answers about things that do not exist with more in them than words of the question."""
        return sum(one.confidence > 0 for one in self.invented)

    @property
    def conclusions(self) -> tuple[Conclusion, ...]:
        """What it knows, what it invents, whether it can be told, and what the promise did."""
        calibration, given = self.calibration, self.answered
        unreal = sum(one.label != UNKNOWN for one in self.invented)
        known = sum(one.label == KNOWN for one in given)
        return (
            self._share(
                f"{self.name} gets {{value}} of our test questions right if it must answer",
                sum(one.right for one in calibration.answers),
                len(calibration.answers),
                "questions",
            ),
            self._share(
                f"asked about things that do not exist, {self.name} says more than words of the "
                f"question in {{value}}; {unreal} of these answers pass its threshold",
                self.says_something,
                len(self.invented),
                "questions about such things",
            ),
            *(self._told(what, one) for what, one in self._joined),
            self._share(
                f"{_made(calibration.known, 'known')}, {_made(calibration.unsure, 'unsure')}. "
                f"On the test {known} answers are called known and {len(given) - known} unsure, "
                "and {value} of all these are wrong",
                sum(not one.right for one in given),
                len(given),
                "answers",
            ),
        )

    @property
    def _joined(self) -> list[tuple[str, SignalSeparation]]:
        both = {
            "right from wrong answers": self.calibration.right_or_wrong,
            "right answers from those about things that do not exist": (
                self.calibration.real_or_invented
            ),
        }
        return [(what, one) for what, some in both.items() for one in some if one.signal == JOINED]

    def _share(self, said: str, count: int, of: int, what: str) -> Conclusion:
        low, high = wilson(count, of)
        return Measurement(
            about=f"what {self.name} knows",
            said=f"Stored measurement of {self.date}: {said}",
            estimate=Estimate(value=count / of if of else 0.0, low=low, high=high, count=of),
            basis=Basis(cases=of, of=what, one_model=True),
            show=percent,
        ).conclude()

    def _told(self, what: str, one: SignalSeparation) -> Conclusion:
        count = one.positives + one.negatives
        return Measurement(
            about=f"whether {what} can be told",
            said=f"Stored measurement of {self.date}: five signals, joined, tell {what} with an "
            "AUROC of {value}",
            estimate=Estimate(value=one.auroc, low=one.low, high=one.high, count=count),
            basis=Basis(cases=count, of="answers", one_model=True),
            show=lambda value: f"{value:.2f}",
            null=0.5,
        ).conclude()


def _made(made: Promise, label: str) -> str:
    """Say of one promise whether it was made.

    >>> refused = Promise(error=0.2, confidence=0.95, threshold=None, choosing=9, testing=9,
    ...                   tested=1, answered=3, wrong=1, needed=None)
    >>> _made(refused, "known")
    'a promise of at most 20 % wrong answers among those called known is refused'
    """
    among = "known" if label == "known" else "known or unsure"
    first = "a promise of" if label == "known" else "one of"
    made_or_not = "refused" if made.threshold is None else "made"
    return (
        f"{first} at most {percent(made.error)} wrong answers among those called {among} is "
        f"{made_or_not}"
    )


def stored_measurement() -> StoredMeasurement:
    """Return the measurement that comes with the package."""
    text = files(__package__).joinpath(STORED).read_text(encoding="utf-8")
    return read_measurement(json.loads(text))


def read_measurement(content: dict[str, Any]) -> StoredMeasurement:
    """Return the record that a measurement was written from."""
    found: dict[str, Any] = dict(content["calibration"])
    parts = {
        "levels": LevelResult,
        "right_or_wrong": SignalSeparation,
        "real_or_invented": SignalSeparation,
        "drift": Drift,
    }
    for name, kind in parts.items():
        found[name] = tuple(kind(**one) for one in found[name])
    found["answers"] = tuple(TestAnswer(**{"signals": {}, **one}) for one in found["answers"])
    promises = {name: Promise(**found[name]) for name in ("known", "unsure")}
    said = {name: str(content[name]) for name in ("name", "date", "machine", "command")}
    return StoredMeasurement(calibration=ModelCalibration(**{**found, **promises}), **said)


def written_measurement(
    record: ModelCalibration, *, name: str, command: str, date: str, machine: str
) -> dict[str, Any]:
    """Return what `measured.json` holds of a calibration; the signals of each answer stay out."""
    found = record.to_dict()
    for one in found["answers"]:
        del one["signals"]
    return {
        "name": name,
        "command": command,
        "date": date,
        "machine": machine,
        "calibration": found,
    }
