"""A calibration that gives every answer of a model one label, under a promise made or refused."""

from __future__ import annotations

import math
from pathlib import Path

from heedful.studies.knowledge.findings import KNOWN, UNKNOWN, UNSURE
from heedful.studies.knowledge.pretrained import (
    SIGNALS,
    Calibrated,
    PretrainedAsker,
    wordings_digest,
)
from heedful.studies.knowledge.questions import questions_of, shares

CONFIDENCE = 0.9
WRONG = {KNOWN: 0.0, UNSURE: 0.3, UNKNOWN: 0.8}
"""Share of wrong answers in the calibration: the promises of 20 % and 50 % are made, or refused."""


def keep_calibration(model: Path, label: str) -> None:
    """Keep a calibration for a model, as `heed ask MODEL --calibrate` does."""
    none = tuple(0.0 for _ in SIGNALS)
    asked = [(CONFIDENCE, place >= 60 * WRONG[label]) for place in range(60)]
    calibrated = Calibrated(
        wordings=wordings_digest(),
        weights=(math.log(CONFIDENCE / (1 - CONFIDENCE)) + 1e-6, *none),
        mean=none,
        scale=tuple(1.0 for _ in SIGNALS),
        choosing=tuple(asked),
        testing=tuple(asked),
        population=shares(questions_of("calibration")),
    )
    PretrainedAsker(model).keep(calibrated)
