"""`heed positions`."""

from __future__ import annotations

import numpy as np
import pytest

from heedful.positions import SCHEMES, sinusoidal


def test_the_record_holds_the_table(heed) -> None:
    record = heed("positions", "--length", 20, "--width", 8, "--json").record
    assert np.allclose(record["table"], sinusoidal(20, 8), rtol=0, atol=0)
    assert record["uniqueness"]["unique"] is True


@pytest.mark.parametrize("kind", SCHEMES)
def test_every_kind_has_a_view_and_a_figure(heed, tmp_path, kind) -> None:
    path = tmp_path / f"{kind}.svg"
    answer = heed("positions", "--kind", kind, "--length", 30, "--width", 8, "--figure", path)
    assert answer.code == 0
    assert "order can be seen" in answer.out
    assert all(len(line) <= 100 and line == line.rstrip() for line in answer.out.split("\n"))
    assert path.stat().st_size > 5_000


def test_a_table_of_your_own(heed) -> None:
    words = ("positions", "--kind", "learned", "--length", 3, "--json", "--table")
    assert heed(*words, "[[1,2],[3,4],[1,2]]").record["statements"][0].startswith("the given table")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--width", "7"), "--width: is 7, which is odd"),
        (("--length", "1"), "--length: is 1"),
        (("--base", "-3"), "--base: is -3"),
        (("--kind", "stars"), "see `heed positions --help`"),
        (("--table", "[[1]]"), "--table: was given for sinusoidal"),
        (("--kind", "learned", "--table", "[[1],[2,3]]"), "--table"),
        (("--kind", "alibi", "--heads", "0"), "--heads"),
    ],
)
def test_bad_input(refused, tmp_path, monkeypatch, words, said) -> None:
    monkeypatch.chdir(tmp_path)
    assert said in refused("positions", *words, "--figure", "x.svg").err
    assert list(tmp_path.iterdir()) == []
