"""A conclusion is said only where everything that it needs is there."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.stats import Estimate, wilson
from heedful.studies.conclusions import (
    Basis,
    Contrast,
    Floor,
    Largest,
    Measurement,
    Side,
    calculated,
    difference_of,
    differences,
)

COMMON = {"width": 64, "seed": 0, "steps": 400}


def estimate(value: float, low: float, high: float) -> Estimate:
    return Estimate(value=value, low=low, high=high, count=500)


def contrast(**changes: Any) -> Contrast:
    """Return a contrast that has everything; `changes` take something away."""
    given: dict[str, Any] = {
        "about": "pretraining",
        "one": Side(name="a", value=30.0, settings={**COMMON, "pretraining": True}, work=2e12),
        "other": Side(name="b", value=20.0, settings={**COMMON, "pretraining": False}, work=2e12),
        "differ": "pretraining",
        "difference": estimate(10.0, 8.0, 12.0),
        "basis": Basis(cases=500, of="test sentences", seeds=3),
        "higher": "Pretraining helps",
        "lower": "Pretraining harms",
        "same": "They cannot be told apart",
        "show": lambda value: f"{value:.1f} BLEU",
        "floor": Floor(least=2.0, why="below it is noise"),
        "equal_work": True,
    }
    return Contrast(**{**given, **changes})


def test_a_contrast_with_everything_concludes_with_numbers_cases_seeds_and_work() -> None:
    made = contrast().conclude()
    assert made.stands
    assert made.text.startswith("Pretraining helps: 30.0 BLEU against 20.0 BLEU")
    for word in ("8.0 BLEU to 12.0 BLEU", "500 test sentences", "3 seeds", "10¹² operations"):
        assert word in made.text
    harms = contrast(difference=estimate(-10.0, -12.0, -8.0)).conclude()
    assert harms.text.startswith("Pretraining harms")
    same = contrast(difference=estimate(1.0, -1.0, 3.0)).conclude()
    assert same.text.startswith("They cannot be told apart")


def test_a_second_setting_that_differs_is_named_instead_of_a_conclusion() -> None:
    other = Side(name="b", value=20.0, settings={**COMMON, "pretraining": False, "width": 32})
    made = contrast(other=other, equal_work=False).conclude()
    assert not made.stands
    assert "width: 64 and 32" in made.text
    assert "helps" not in made.text


def test_a_setting_that_only_one_side_has_differs() -> None:
    assert differences({"rank": 16}, {}) == ("rank",)
    other = Side(name="b", value=20.0, settings={"pretraining": False, "seed": 0, "steps": 400})
    assert not contrast(other=other, equal_work=False).conclude().stands


def test_arms_that_differ_in_nothing_conclude_nothing() -> None:
    one = contrast().one
    assert "differ in nothing" in contrast(other=one).conclude().text


def test_numbers_below_the_floor_conclude_nothing() -> None:
    # What `--quick` once called a victory: +0.1 BLEU, p = 0.003, at 0.1 against 0.0.
    made = contrast(
        one=replace(contrast().one, value=0.1),
        other=replace(contrast().other, value=0.0),
        difference=estimate(0.1, 0.05, 0.15),
    ).conclude()
    assert not made.stands
    assert "at least 2.0 BLEU" in made.text


@pytest.mark.parametrize(("one", "other"), [(2e12, 1e12), (None, 1e12), (0.0, 0.0)])
def test_unequal_or_uncounted_budgets_are_not_the_same_budget(
    one: float | None, other: float
) -> None:
    made = contrast(
        one=replace(contrast().one, work=one), other=replace(contrast().other, work=other)
    ).conclude()
    assert not made.stands
    assert "equal work" in made.text


def test_no_interval_is_no_conclusion() -> None:
    assert not contrast(difference=estimate(10.0, -math.inf, math.inf)).conclude().stands


def test_one_seed_is_said_to_be_one() -> None:
    one = contrast(basis=Basis(cases=500, of="test sentences", seeds=1)).conclude()
    assert "one seed" in one.text
    assert "not another seed" in one.text
    assert "not another seed" not in contrast().conclude().text


@given(st.floats(-50, 50), st.floats(0, 20), st.integers(1, 5))
def test_who_is_ahead_is_decided_by_the_interval_alone(
    value: float, reach: float, seeds: int
) -> None:
    made = contrast(
        difference=estimate(value, value - reach, value + reach),
        basis=Basis(cases=9, of="questions", seeds=seeds),
    ).conclude()
    said = "helps" if value - reach > 0 else "harms" if value + reach < 0 else "told apart"
    assert said in made.text.split(":")[0]


def test_a_measurement_needs_an_interval_above_its_floor_and_without_no_effect() -> None:
    def measured(**changes: Any) -> Measurement:
        given: dict[str, Any] = {
            "about": "the score",
            "said": "It reaches {value}",
            "estimate": estimate(30.0, 28.0, 32.0),
            "basis": Basis(cases=500, of="sentences"),
            "show": lambda value: f"{value:.1f}",
        }
        return Measurement(**{**given, **changes})

    assert measured().conclude().text.startswith("It reaches 30.0 (28.0 to 32.0; 500 sentences")
    assert not measured(floor=Floor(least=29.0, why="x")).conclude().stands
    assert not measured(null=31.0).conclude().stands
    assert not measured(estimate=estimate(30.0, -math.inf, math.inf)).conclude().stands


def test_the_most_says_of_how_many_and_is_above_no_effect() -> None:
    def most(values: dict[str, Estimate]) -> Largest:
        return Largest(
            about="heads",
            said="The loss rises most without {names}",
            values=values,
            of=270,
            what="heads",
            show=lambda value: f"{value:+.3f}",
        )

    # What was once said of one head of 270: "the loss rises most without 1.4 (−0.012)".
    alone = most({"1.4": estimate(-0.012, -0.02, -0.004)}).conclude()
    assert not alone.stands
    assert "1 of 270 heads measured" in alone.text
    none = most({"1.4": estimate(-0.012, -0.02, -0.004), "2.1": estimate(0.0, -0.1, 0.1)})
    assert not none.conclude().stands
    some = most({"1.4": estimate(0.2, 0.1, 0.3), "2.1": estimate(0.0, -0.1, 0.1)}).conclude()
    assert some.stands
    assert "1.4 (+0.200" in some.text
    assert "2 of 270 heads measured" in some.text
    assert "2.1" not in some.text


def test_what_was_not_calculated_is_missing() -> None:
    assert calculated("α is {alpha:.2f}", alpha=0.5).text == "α is 0.50"
    for nothing in (None, math.nan, math.inf):
        made = calculated("The weight: {alpha:.2f}", alpha=nothing)
        assert not made.stands
        assert "alpha" in made.missing


def test_the_interval_of_a_difference_covers_at_least_as_often_as_it_says() -> None:
    draw = np.random.default_rng(0)
    first, second, count, trials = 0.7, 0.4, 60, 400
    covered = 0
    for _ in range(trials):
        sides = []
        for share in (first, second):
            right = int(draw.binomial(count, share))
            low, high = wilson(right, count)
            sides.append(Estimate(value=right / count, low=low, high=high, count=count))
        made = difference_of(*sides)
        covered += made.low <= first - second <= made.high
    # 95 % of 400; fewer than 365 would come once in 2,000 honest runs.
    assert covered >= 365
