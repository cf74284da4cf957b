"""What the threshold promises holds in 95 of 100 calibrations, whatever the model is like."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "faults"))

from f17_promise import POPULATIONS, WANTED, broken, broken_in_order

from heedful.errors import InputError
from heedful.studies.knowledge.confidence import PROMISING, promise, risk_coverage

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


@pytest.mark.parametrize("name", POPULATIONS)
def test_thresholds_tested_in_a_fixed_order_rarely_break_their_promise(name: str) -> None:
    for wanted in WANTED:
        # More than 12 of 80 at 5 % each would come once in 5,000 honest runs of all 15 cases.
        assert broken_in_order(POPULATIONS[name], wanted, 80)[0] <= 12


def test_a_promise_is_made_where_the_answers_allow_it() -> None:
    # Above 0.7 five of a hundred are wrong: at 20 % most calibrations make it.
    assert broken_in_order(POPULATIONS["steps"], 0.2, 50)[1] <= 15


def test_the_order_ends_at_the_first_threshold_that_is_not_passed() -> None:
    # The slow meaning: walk down from the start by hand, and stop.
    draw = np.random.default_rng(2)
    scores, chance = draw.random((2, 300))
    right = chance < scores
    made = promise((scores[:100], right[:100]), (scores[100:], right[100:]), 0.3)
    assert made.threshold is not None
    rest, outcome = scores[100:], right[100:]

    def passes(threshold: float) -> bool:
        kept = rest >= threshold
        return bool(binom.cdf((~outcome[kept]).sum(), kept.sum(), 0.3) <= 0.05)

    below = np.sort(scores[:100][scores[:100] < made.threshold])[::-1]
    assert passes(made.threshold)
    assert not passes(below[0])
    kept = rest >= made.threshold
    assert (made.answered, made.wrong) == (kept.sum(), (~outcome[kept]).sum())


def test_outcomes_of_testing_questions_do_not_move_the_order() -> None:
    draw = np.random.default_rng(3)
    scores, right = draw.random(90), np.ones(90, dtype=bool)
    choosing = (scores[:30], draw.random(30) < 0.8)
    one = promise(choosing, (scores[30:], right[30:]), 0.2)
    two = promise(choosing, (scores[30:], ~right[30:]), 0.2)
    assert one.threshold == 0.0  # all right: everything may be answered
    assert two.threshold is None
    assert two.tested == 1


@pytest.mark.parametrize("count", [0, 1, 7])
def test_a_refusal_says_how_many_questions_would_do(count: int) -> None:
    scores, right = np.linspace(1, 0, 2 * count), np.ones(2 * count, dtype=bool)
    few = promise((scores[::2], right[::2]), (scores[1::2], right[1::2]), 0.05)
    assert few.threshold is None
    assert few.needed is not None
    enough = few.needed + few.needed % 2
    scores, right = np.linspace(1, 0, enough), np.ones(enough, dtype=bool)
    assert (
        promise((scores[::2], right[::2]), (scores[1::2], right[1::2]), 0.05).threshold is not None
    )


def test_where_no_number_of_questions_would_do_the_refusal_says_so() -> None:
    scores, right = np.linspace(1, 0, 200), np.arange(200) % 2 == 0
    refused = promise((scores[::2], right[::2][::-1]), (scores, right), 0.2)
    assert (refused.threshold, refused.needed) == (None, None)


@pytest.mark.parametrize("error", [0.0, 1.0, -1.0, float("nan")])
def test_an_error_that_is_no_share_is_refused(error: float) -> None:
    some = (np.array([0.5]), np.array([True]))
    with pytest.raises(InputError, match="error"):
        promise(some, some, error)
