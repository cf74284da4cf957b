"""`heed attend`."""

from __future__ import annotations

import numpy as np
import pytest

from heedful.attention import attend


def test_json_is_what_the_function_gives(heed) -> None:
    record = heed("attend", "--n", 4, "--query", 6, 6, 0, 0, "--mass-on", 0, 1, "--json").record
    truth = attend([6.0, 6.0, 0.0, 0.0], np.eye(4), np.eye(4))
    assert np.allclose(record["weights"], truth.weights, rtol=0, atol=1e-15)
    assert np.isclose(record["mass"], truth.weights[:2].sum())


def test_a_query_may_be_negative_and_come_from_a_file(heed, tmp_path) -> None:
    by_flag = heed("attend", "--keys", "[[1,0],[0,1],[1,1]]", "--query", 3, -1, "--json").record
    np.save(tmp_path / "q.npy", np.array([3.0, -1.0]))
    by_file = heed(
        "attend", "--keys", "[[1,0],[0,1],[1,1]]", "--query", tmp_path / "q.npy", "--json"
    ).record
    assert by_flag == by_file


def test_toward_is_a_combination_of_keys(heed) -> None:
    toward = heed("attend", "--n", 3, "--toward", "0+1", "--beta", 4, "--json").record
    assert toward == heed("attend", "--n", 3, "--query", 4, 4, 0, "--json").record


def test_many_queries_with_a_causal_mask(heed, tmp_path) -> None:
    np.save(tmp_path / "q.npy", np.eye(3))
    words = ("attend", "--n", 3, "--query", tmp_path / "q.npy", "--causal")
    weights = np.array(heed(*words, "--json").record["weights"])
    assert np.array_equal(weights, np.tril(weights))
    figure = tmp_path / "many.svg"
    answer = heed(*words, "--figure", figure)
    assert "Where each query reads" in answer.out
    assert figure.read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--n", "3"), "--query: no query was given"),
        (("--n", "3", "--query", "1", "0", "0", "--toward", "0"), "together with --toward"),
        (("--n", "3", "--query", "1", "x", "0"), "'x' is not a number"),
        (("--n", "3", "--query", "1", "0"), "the keys have dimension 3"),
        (("--n", "0", "--toward", "0"), "--n: is 0"),
        (("--n", "5", "--d", "3", "--toward", "0"), "perpendicular"),
        (("--keys", "[[1,2],[3]]", "--toward", "0"), "ragged"),
        (("--keys", "[]", "--toward", "0"), "--keys"),
        (("--keys", "[[1,NaN]]", "--toward", "0"), "entry [0, 1] is nan"),
        (("--keys", '[["a","b"]]', "--toward", "0"), "not a real number type"),
        (("--keys", "nowhere.npy", "--toward", "0"), "there is no file"),
        (("--keys", "cube", "--toward", "0"), "neither a file nor a standard set"),
        (("--keys", "[[1,0]]", "--n", "3", "--toward", "0"), "--n: is 3"),
        (("--n", "3", "--toward", "0+7"), "key 7 does not exist"),
        (("--n", "3", "--toward", "0+x"), "cannot be read"),
        (("--n", "3", "--toward", "0", "--scale", "big"), "--scale"),
        (("--n", "3", "--toward", "0", "--mass-on", "3"), "--mass-on: key 3"),
        (("--n", "3", "--toward", "0", "--values", "[[1],[2]]"), "--values: has 2 rows"),
        (("--n", "3", "--toward", "0", "--causal"), "--causal"),
        (("--n", "3", "--toward", "0", "--figure", "x.gif"), "--figure: 'x.gif' ends in .gif"),
        (("--n", "3", "--toward", "0", "--figure", "nowhere/x.svg"), "does not exist"),
    ],
)
def test_bad_input(refused, tmp_path, monkeypatch, words, said) -> None:
    monkeypatch.chdir(tmp_path)
    assert said in refused("attend", *words).err
    assert list(tmp_path.iterdir()) == []
