"""Intervals hold what they promise: checked by their definitions and by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from heedful.stats import Estimate, bootstrap_mean, clopper_pearson_upper, standard_errors, wilson


def test_wilson_stays_valid_at_the_ends() -> None:
    assert wilson(0, 50)[0] == 0.0
    assert wilson(0, 50)[1] > 0.05
    assert wilson(50, 50)[1] == 1.0
    assert wilson(0, 0) == (0.0, 1.0)
    low, high = wilson(5_000, 10_000)
    assert math.isclose((high - low) / 2, 1.96 * 0.005, rel_tol=1e-3)


@given(right=st.integers(0, 50), more=st.integers(0, 50))
def test_an_interval_holds_its_share(right: int, more: int) -> None:
    low, high = wilson(right, right + more)
    share = right / max(right + more, 1)
    assert 0.0 <= low <= share + 1e-12
    assert share - 1e-12 <= high <= 1.0


@given(st.integers(1, 200), st.data())
def test_clopper_pearson_is_the_rate_that_would_rarely_go_so_well(
    count: int, data: st.DataObject
) -> None:
    wrong = data.draw(st.integers(0, count - 1))
    upper = clopper_pearson_upper(wrong, count)
    assert upper > wrong / count
    assert math.isclose(binom.cdf(wrong, count, upper), 0.05, abs_tol=1e-9)


def test_students_interval_covers_the_mean() -> None:
    random = np.random.default_rng(0)
    covered = [
        one.low <= 3.0 <= one.high
        for one in (Estimate.of(random.normal(3.0, 2.0, 6)) for _ in range(400))
    ]
    # 400 intervals of 95 %: outside 91 to 98.5 % happens with probability below 1e-3.
    assert 0.91 <= np.mean(covered) <= 0.985
    assert Estimate.of([2.0]).high == math.inf
    assert Estimate.over_blocks([1.0, 2.0], 4).value == 1.5
    slope = Estimate.of_slope([0.0, 1.0, 2.0], [[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]])
    assert slope.value == pytest.approx(1.5)


def test_a_bootstrap_interval_is_as_wide_as_the_normal_one() -> None:
    random = np.random.default_rng(1)
    values = random.normal(3.0, 2.0, 400)
    low, high = bootstrap_mean(values, random)
    assert low < values.mean() < high
    # 2,000 resamples: each end is off by about 2 % of the width.
    assert (high - low) / 2 == pytest.approx(1.96 * values.std() / 20, rel=0.12)


def test_standard_errors_are_those_of_a_normal_sample() -> None:
    variances = np.array([4.0, 0.0])
    of_mean, of_std = standard_errors(variances, 3 * variances**2, 100)
    np.testing.assert_allclose(of_mean, [0.2, 0.0])
    np.testing.assert_allclose(of_std, [2 / math.sqrt(200), 0.0])  # σ/√(2N)
