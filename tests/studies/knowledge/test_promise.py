"""What the threshold promises holds in 95 of 100 calibrations, whatever the model is like."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "faults"))

from f17_promise import POPULATIONS, WANTED, broken

from heedful.studies.knowledge.confidence import PROMISING, risk_coverage

CALIBRATIONS = 150


@pytest.mark.parametrize("wanted", WANTED)
@pytest.mark.parametrize("name", POPULATIONS)
def test_a_promise_is_rarely_broken(name: str, wanted: float) -> None:
    # More than 17 of 150 at 5 % each would come once in 1,000 honest runs of all 15 cases.
    assert broken(POPULATIONS[name], wanted, CALIBRATIONS, halves=True) <= 17


def test_the_answers_that_choose_make_a_promise_that_is_broken() -> None:
    # The mistake that this test is for is found by it: beyond 5 % by three standard errors.
    worst = max(
        broken(errors, wanted, 400, halves=False)
        for errors in POPULATIONS.values()
        for wanted in WANTED
    )
    assert worst > 0.05 * 400 + 3 * np.sqrt(400 * 0.05 * 0.95)


def test_half_of_the_questions_has_no_part_in_choosing() -> None:
    draw = np.random.default_rng(0)
    confidence, right = draw.random(100), draw.random(100) < 0.7
    changed = right.copy()
    changed[PROMISING] = ~changed[PROMISING]
    test = (confidence, right)
    one, two = (risk_coverage((confidence, r), test, 0.3) for r in (right, changed))
    assert one.threshold == two.threshold
    assert one.promising == one.promising_answered + int(
        (confidence[PROMISING] < one.threshold).sum()
    )
    assert one.promising_wrong + two.promising_wrong == one.promising_answered


def test_too_few_answers_promise_nothing() -> None:
    confidence, right = np.array([0.9, 0.1]), np.array([True, False])
    assert risk_coverage((confidence, right), (confidence, right), 0.1).promised_error == 1.0
