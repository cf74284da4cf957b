"""`heed noise`: exact and sampled side by side, and every way to be refused."""

from __future__ import annotations

import numpy as np
import pytest

SETTING = (
    "noise", "--keys", "orthonormal", "--n", 10, "--d", 16, "--noisy", 0, "--variance", 0.5,
    "--beta", 50,
)  # fmt: skip


@pytest.mark.parametrize(("heads", "std"), [(("0", "1"), 0.138), (("0+1",), 0.489)])
def test_the_spread_of_two_heads_and_of_one(heed, heads, std) -> None:
    record = heed(*SETTING, "--heads", *heads, "--json").record
    for answer in (record["exact"], record["sampled"]):
        assert answer.keys() >= {"mean", "std", "failure_probability"}
        assert len(answer["mean"]) == len(answer["std"]) == 10
    assert abs(record["exact"]["std"][0] - std) < 0.001
    # Fixed seed; five standard errors would fail for one seed in about two million.
    gap = np.subtract(record["exact"]["std"], record["sampled"]["std"])
    assert (np.abs(gap) <= 5 * np.array(record["sampled"]["std_se"]) + 1e-6).all()
    assert record["sampled"]["draws"] == 10_000


def test_versus_puts_a_second_study_beside_the_first(heed) -> None:
    both = heed(*SETTING, "--heads", 0, 1, "--versus", "0+1", "--json").record
    first = heed(*SETTING, "--heads", 0, 1, "--json").record
    second = heed(*SETTING, "--heads", "0+1", "--json").record
    assert both.pop("versus") == second
    assert both == first


def test_the_tables_fit_and_name_both(heed) -> None:
    shown = heed(*SETTING, "--heads", 0, 1, "--versus", "0+1").out
    for said in ("2 heads on 0, 1", "1 head on 0+1", "exact", "sampled", "β → ∞", "P(fails)"):
        assert said in shown
    assert all(len(line) <= 100 and line == line.rstrip() for line in shown.split("\n"))


def test_without_an_exact_answer_the_reason_is_given(heed) -> None:
    answer = heed("noise", "--n", 6, "--isotropic", 0.1, "--draws", 200)
    assert "No exact answer, because" in answer.out
    record = heed("noise", "--n", 6, "--isotropic", 0.1, "--draws", 200, "--json").record
    assert record["exact"] is None
    assert record["exact_reason"]


@pytest.mark.parametrize("ending", ["svg", "png", "pdf"])
def test_figures(heed, tmp_path, ending) -> None:
    path = tmp_path / f"noise.{ending}"
    words = ("noise", "--n", 4, "--draws", 200, "--versus", "0+1")
    assert heed(*words, "--figure", path, "--json").code == 0
    assert path.stat().st_size > 5_000


def test_covariances_from_a_file_serve_all_keys_or_each(heed, tmp_path) -> None:
    Sigma = np.diag([0.5, 0.0, 0.0])
    np.save(tmp_path / "one.npy", Sigma)
    np.save(tmp_path / "each.npy", np.stack([Sigma] * 3))
    words = ("noise", "--n", 3, "--draws", 100, "--json", "--covariances")
    assert heed(*words, tmp_path / "one.npy").record == heed(*words, tmp_path / "each.npy").record


def test_the_target_is_the_average_of_the_values_the_heads_name(heed) -> None:
    words = ("noise", "--n", 3, "--heads", "0", "2", "--draws", 100, "--json")
    record = heed(*words, "--values", "[[1,0],[5,5],[3,4]]").record
    assert record["target"] == [2.0, 2.0]
    assert heed(*words, "--target", 1).record["target"] == [0.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--heads", "9+x"), "--heads"),
        (("--heads", "12"), "--heads: key 12"),
        (("--versus", "12"), "--versus: key 12"),
        (("--beta", "inf"), "--beta: is inf"),
        (("--noisy", "10"), "--noisy: key 10"),
        (("--noisy", "1", "1"), "names key 1 twice"),
        (("--variance", "-0.5"), "--variance: is -0.5"),
        (("--variance", "nan"), "--variance: is nan"),
        (("--isotropic", "-1"), "--isotropic: is -1"),
        (("--draws", "1"), "--draws: is 1"),
        (("--draws", "many"), "see `heed noise --help`"),
        (("--seed", "-1"), "--seed: is -1"),
        (("--radius", "-1"), "--radius: is -1"),
        (("--target", "77"), "--target: key 77"),
        (("--values", "[[1]]"), "--values: has 1 rows"),
        (("--covariances", "[[1,0],[0,1]]"), "covariances[0]: has shape (2, 2)"),
        (("--covariances", "[1,2]"), "covariances"),
        (("--covariances", "[[1]]", "--noisy", "0"), "together with --covariances"),
        (("--covariances", "[[1]]", "--isotropic", "1"), "together with --covariances"),
    ],
)
def test_bad_input(refused, tmp_path, monkeypatch, words, said) -> None:
    monkeypatch.chdir(tmp_path)
    assert said in refused("noise", *words, "--figure", "x.svg").err
    assert list(tmp_path.iterdir()) == []


def test_a_covariance_that_is_none(refused) -> None:
    words = ("noise", "--keys", "[[1,0],[0,1]]", "--covariances")
    assert "eigenvalue is -1" in refused(*words, "[[1,2],[2,1]]").err
    assert "not symmetric" in refused(*words, "[[1,2],[0,1]]").err
