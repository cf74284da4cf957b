"""`heed design`: the commands of the tour, and every way to be refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

from heedful.attention import attend, four_vector_problem

AVERAGE = ("average", "--keys", "orthonormal", "--n", 10, "--d", 16, "--of", 0, 1)
FIELDS = {"feasible", "beta", "mass", "error", "certificate"}


def test_the_average_of_two_of_ten(heed) -> None:
    record = heed("design", *AVERAGE, "--tolerance", 0.01, "--json").record
    assert record.keys() >= FIELDS | {"query"}
    assert record["feasible"] is True
    assert abs(record["beta"] - 5.981) < 0.001
    alpha = attend(record["query"], np.eye(10, 16), np.eye(10)).weights
    assert alpha[:2].sum() >= 0.99 - 1e-12
    assert record["mass"] >= 0.99 - 1e-12
    assert record["error"] <= 0.01 + 1e-12


def test_the_table_names_query_bound_and_textbook(heed) -> None:
    shown = heed("design", *AVERAGE).out
    assert "(k_0 + k_1)" in shown
    for said in ("scale β", "no query is shorter than", "textbook", "Certificate"):
        assert said in shown
    assert all(len(line) <= 100 and line == line.rstrip() for line in shown.split("\n"))


@pytest.mark.parametrize("ending", ["svg", "png", "pdf"])
def test_a_figure_of_each_kind(heed, tmp_path, ending) -> None:
    path = tmp_path / f"design.{ending}"
    assert heed("design", *AVERAGE, "--figure", path, "--json").code == 0
    starts = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}
    assert path.read_bytes().startswith(starts[ending])


def test_weights_and_copy(heed) -> None:
    record = heed("design", "weights", "--n", 4, "--to", 0.5, 0.25, 0.25, 0, "--json").record
    assert np.allclose(record["weights"], [0.495, 0.2475, 0.2475, 0.01], atol=1e-6)
    assert heed("design", "copy", "--n", 5, "--of", 3, "--json").record["mass"] >= 0.99 - 1e-12


@pytest.mark.parametrize("as_json", [True, False])
def test_an_impossible_design_gives_its_record_and_one_line(heed, tmp_path, as_json) -> None:
    figure = tmp_path / "none.svg"
    words = ("design", "copy", "--keys", "[[0,0],[1,0],[0,1],[-1,-1]]", "--of", 0)
    answer = heed(*words, "--figure", figure, *(["--json"] if as_json else []))
    assert answer.code == 2
    assert answer.err.count("\n") == 1
    assert answer.err.startswith("heed design copy: ")
    assert not figure.exists()
    if as_json:
        assert answer.record["feasible"] is False
        assert answer.record["query"] is None
        shares = answer.record["certificate"]["combination"]
        assert set(shares) == {"1", "2", "3"}
        assert abs(sum(shares.values()) - 1) < 1e-9
    else:
        assert "impossible" in answer.out
        assert "key 1" in answer.out


def test_heads_that_withstand_noise(heed, tmp_path) -> None:
    words = ("design", "heads", "--n", 4, "--of", 0, 1, "--norm", 12)
    record = heed(*words, "--json").record
    assert record.keys() >= FIELDS | {"queries"}
    assert all(np.linalg.norm(query) <= 12 + 1e-9 for query in record["queries"])
    assert all(record["error"] <= choice["error"] + 1e-12 for choice in record["comparison"])
    shown = heed(*words).out
    assert "one head a target key" in shown
    assert all(len(line) <= 100 for line in shown.split("\n"))


def test_heads_along_both_budgets(heed, tmp_path) -> None:
    path = tmp_path / "heads.png"
    answer = heed(
        "design", "heads", "--n", 3, "--of", 0, 1, "--norm", 8, "--curves", "--figure", path
    )
    assert "Error against the number of heads" in answer.out
    assert path.stat().st_size > 10_000


def test_kqv_solves_the_four_vector_problem(heed, tmp_path) -> None:
    path = tmp_path / "kqv.svg"
    record = heed("design", "kqv", "--json", "--figure", path).record
    assert record.keys() >= FIELDS | {"K", "Q", "V", "without", "additions"}
    four = four_vector_problem()
    K, Q, V = (np.array(record[name]) for name in "KQV")
    c = attend(four.x[:2] @ Q.T, four.x @ K.T, four.x @ V.T).output
    wanted = np.array([four.wanted[0], four.wanted[1]])
    gap = np.linalg.norm(c - wanted, axis=1).max() / np.linalg.norm(wanted, axis=1).max()
    assert gap <= 0.01
    assert abs(gap - record["error"]) < 1e-12
    assert record["without"]["feasible"] is False
    assert path.exists()


def test_kqv_prints_products_matrices_and_why_not_without(heed) -> None:
    shown = heed("design", "kqv").out
    for said in (
        "u_c u_cᵀ + u_d u_dᵀ",
        "As matrices",
        "error",
        "Without K, Q and V it is impossible",
    ):
        assert said in shown
    assert "With 1 u_d added" in shown
    assert "With 1 u_c added" in shown


def test_kqv_without_matrices_is_impossible(heed, tmp_path) -> None:
    figure = tmp_path / "none.png"
    answer = heed("design", "kqv", "--form", "identity", "--figure", figure)
    assert answer.code == 2
    assert answer.err.count("\n") == 1
    assert "average" in answer.err
    assert not figure.exists()


def test_kqv_from_a_file_and_in_place(heed, tmp_path) -> None:
    problem = {"x": [[1, 0], [0, 1]], "wanted": {"0": [0, 1]}}
    (tmp_path / "problem.json").write_text(json.dumps(problem))
    by_file = heed("design", "kqv", "--problem", tmp_path / "problem.json", "--json").record
    in_place = heed("design", "kqv", "--problem", json.dumps(problem), "--json").record
    assert by_file == in_place
    assert by_file["feasible"] is True


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("copy", "--n", "4", "--of", "4"), "--of: key 4 does not exist"),
        (("copy", "--n", "4", "--of", "-1"), "--of: key -1 does not exist"),
        (("copy", "--n", "4", "--of", "one"), "see `heed design copy --help`"),
        (("copy", "--n", "4", "--of", "1", "--tolerance", "0"), "--tolerance: is 0"),
        (("copy", "--n", "4", "--of", "1", "--tolerance", "nan"), "--tolerance: is nan"),
        (("copy", "--n", "4", "--of", "1", "--scale", "0"), "scale"),
        (("average", "--n", "4", "--of", "1", "1"), "names key 1 twice"),
        (("average", "--keys", "[[1,2],[3]]", "--of", "0"), "ragged"),
        (("average", "--keys", "[[1e999,2]]", "--of", "0"), "inf"),
        (("weights", "--n", "3", "--to", "0.5", "0.4", "0"), "sum to 0.9"),
        (("weights", "--n", "3", "--to", "1.5", "-0.5", "0"), "weight 1 is -0.5"),
        (("weights", "--n", "3", "--to", "1", "0"), "has 2 entries"),
        (("weights", "--n", "3", "--to", "1", "x", "0"), "'x' is not a number"),
        (("heads", "--n", "4", "--heads", "0"), "--heads: is 0"),
        (("heads", "--n", "4", "--norm", "-1"), "--norm: is -1"),
        (("heads", "--n", "4", "--noisy", "9"), "--noisy: key 9"),
        (("heads", "--n", "4", "--variance", "-1"), "--variance: is -1"),
        (("kqv", "--form", "none"), "see `heed design kqv --help`"),
        (("kqv", "--norm", "0"), "--norm: is 0"),
        (("kqv", "--problem", "nowhere.json"), "cannot be read"),
        (("kqv", "--problem", "{"), "not valid JSON"),
        (("kqv", "--problem", "{}"), "has no array `x`"),
        (("kqv", "--problem", '{"x": [[1]]}'), "has no object `wanted`"),
        (("kqv", "--problem", '{"x": [[1]], "wanted": {"a": [1]}}'), "no whole number"),
        (("kqv", "--problem", '{"x": [[1]], "wanted": {"3": [1]}}'), "position 3 does not exist"),
        (("kqv", "--problem", '{"x": [[1],[1,2]], "wanted": {"0": [1]}}'), "x: is ragged"),
    ],
)
def test_bad_input(refused, tmp_path, monkeypatch, words, said) -> None:
    monkeypatch.chdir(tmp_path)
    assert said in refused("design", *words, "--figure", "x.svg").err
    assert list(tmp_path.iterdir()) == []
