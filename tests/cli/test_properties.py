"""`heed properties`."""

from __future__ import annotations

from pathlib import Path

import pytest


def test_every_layer_and_three_laws(heed) -> None:
    record = heed("properties", "--json").record
    holds = {
        (one["layer"], one["law"]): None if one["finding"] is None else one["finding"]["holds"]
        for one in record["findings"]
    }
    assert holds["self-attention", "equivariance"] is True
    assert holds["causal self-attention", "equivariance"] is False
    assert holds["positions + self-attention", "equivariance"] is False
    assert holds["mean of rows", "invariance"] is True
    assert holds["mean of rows", "equivariance"] is None
    assert holds["softmax of rows", "feature"] is True


def test_one_layer_shows_the_case_that_breaks_it(heed) -> None:
    shown = heed("properties", "--layer", "causal self-attention", "--law", "equivariance").out
    assert "π = (1, 0)" in shown
    assert "P f(X)" in shown
    assert all(len(line) <= 100 and line == line.rstrip() for line in shown.split("\n"))


@pytest.mark.parametrize(
    "words", [(), ("--layer", "causal self-attention"), ("--layer", "relu", "--law", "feature")]
)
def test_figures(heed, tmp_path, words) -> None:
    path = tmp_path / "order.png"
    assert heed("properties", *words, "--figure", path).code == 0
    assert path.stat().st_size > 5_000


def test_conjugation_is_for_scores(heed) -> None:
    record = heed("properties", "--layer", "softmax of rows", "--law", "conjugation", "--json")
    assert record.record["findings"][0]["finding"]["holds"] is True


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--layer", "attention"), "--layer: 'attention' is unknown"),
        (("--layer", "relu", "--all"), "together with --all"),
        (("--law", "gravity"), "see `heed properties --help`"),
        (("--length", "1"), "--length: is 1"),
        (("--width", "0"), "--width: is 0"),
        (("--trials", "0"), "--trials: is 0"),
        (("--layer", "mean of rows", "--law", "equivariance"), "turned shape (6, 4) into (4,)"),
    ],
)
def test_bad_input(refused, tmp_path, monkeypatch, words, said) -> None:
    monkeypatch.chdir(tmp_path)
    assert said in refused("properties", *words, "--figure", "x.svg").err
    assert list(tmp_path.iterdir()) == []


def test_the_verb_runs_a_file_only_when_asked(heed, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "import numpy as np\n"
        "def causal_attention(q, k, v):\n"
        "    s = q @ k.T / q.shape[-1] ** 0.5\n"
        "    s = np.where(np.triu(np.ones_like(s)), s, -np.inf)\n"
        "    w = np.exp(s - s.max(-1, keepdims=True))\n"
        "    return w / w.sum(-1, keepdims=True) @ v\n",
        "utf-8",
    )
    shown = heed("properties", "--layer", f"{file}:causal_attention")
    assert shown.code == 1
    assert "running the code" in shown.err
    assert "turned round" in shown.out
    assert heed("properties", "--layer", f"{file}:other").code == 2
    assert heed("properties", "--layer", "nothere.py:f").code == 2
