"""`heed copyable`."""

from __future__ import annotations

import numpy as np
import pytest

from heedful.attention import grid


def test_the_corners_of_a_grid(heed) -> None:
    record = heed("copyable", "--keys", "grid", "--n", 27, "--d", 3, "--json").record
    corners = np.abs(grid(27, 3)).min(axis=1) == 1
    assert record["copyable"] == corners.tolist()
    assert record["count"] == 8


def test_the_table_says_which_and_how_far(heed) -> None:
    words = ("copyable", "--keys", "[[0,0],[2,0],[0,2],[0.5,0.5]]")
    shown = heed(*words).out
    assert shown.startswith("3 of 4 keys can be copied")
    assert "3    no" in shown
    assert "exact" in heed(*words, "--exact-margins").out


@pytest.mark.parametrize(
    "keys", ["[[0,0],[2,0],[0,2],[0.5,0.5]]", "[[0,0],[1,1]]", "[[1,2]]", "[[0],[1],[2]]"]
)
@pytest.mark.parametrize("exact", [(), ("--exact-margins",)])
def test_figures_of_planes_lines_and_points(heed, tmp_path, keys, exact) -> None:
    path = tmp_path / "hull.svg"
    assert heed("copyable", "--keys", keys, *exact, "--figure", path).code == 0
    assert path.stat().st_size > 5_000


def test_many_keys_are_summed_up(heed) -> None:
    shown = heed("copyable", "--keys", "gaussian", "--n", 300, "--d", 4).out
    assert "The largest margins" in shown
    assert shown.count("\n") < 40


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--keys", "[[1,2],[3]]"), "ragged"),
        (("--keys", "[[]]"), "--keys: is empty"),
        (("--keys", "[[1,NaN]]"), "is nan"),
        (("--keys", "[1,2]"), "2 axes were expected"),
        (("--keys", "sphere", "--n", "-3"), "--n: is -3"),
        (("--workers", "0"), "--workers: is 0"),
        (("--keys", "weights.pt"), "neither a file nor a standard set"),
    ],
)
def test_bad_input(refused, tmp_path, monkeypatch, words, said) -> None:
    monkeypatch.chdir(tmp_path)
    assert said in refused("copyable", *words, "--figure", "x.svg").err
    assert list(tmp_path.iterdir()) == []
