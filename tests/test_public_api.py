"""`import heedful`: what it offers, what it loads, and that it does what the rooms do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import heedful as h
from heedful.attention import attend, design_average, orthonormal
from heedful.errors import InputError

SHEET = """
[[claim]]
id = "b"
keys = "orthonormal"
where = { n = [2, 3] }
query = "k_a + k_b"
expect = "c ≈ (v_a + v_b)/2 within 0.02"
"""
SETTINGS = {
    "steps": 2,
    "schedule": {"warmup": 1},
    "model": {"preset": "tiny", "layers": 1},
    "data": {"source": "phrasebook", "size": 200, "held_out": 20, "rows": 4},
}


def test_importing_it_loads_neither_numpy_nor_torch() -> None:
    code = "import sys, heedful; print(sorted({m.partition('.')[0] for m in sys.modules}))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True,
        env=os.environ,
    ).stdout  # fmt: skip
    for heavy in ("numpy", "torch", "scipy", "sympy", "matplotlib", "pydantic"):
        assert f"'{heavy}'" not in loaded


def test_every_public_name_is_there_and_documented() -> None:
    assert set(h.__all__) <= set(dir(h))
    for name in h.__all__:
        assert getattr(h, name).__doc__, f"heedful.{name} has no docstring"
    with pytest.raises(AttributeError, match="no attribute 'attened'"):
        h.attened  # noqa: B018


def test_type_checkers_see_the_same_names() -> None:
    stub = (Path(h.__file__).parent / "__init__.pyi").read_text("utf-8")
    seen = {line.split()[-1] for line in stub.splitlines() if line.startswith("from ")}
    assert seen == set(h.__all__)


def test_attention_and_designs_are_those_of_the_room() -> None:
    keys = orthonormal(4)
    assert np.array_equal(h.attend([6, 6, 0, 0], n=4).weights, attend([6, 6, 0, 0], keys).weights)
    ours, theirs = h.design(average=[0, 1], n=4), design_average(keys, [0, 1], tolerance=0.01)
    assert np.array_equal(ours.query, theirs.query)
    assert h.design(copy=2, n=4).certificate.statement
    with pytest.raises(InputError, match="one of copy=, average= or weights="):
        h.design(n=4)


def test_noise_of_one_head_swings_and_of_two_hardly() -> None:
    one = h.noise(["0+1"], n=4, noisy={0: 0.5}, draws=200)
    two = h.noise(["0", "1"], n=4, noisy={0: 0.5}, draws=200)
    assert one.exact is not None
    assert two.exact is not None
    assert one.exact.std[0] > 3 * two.exact.std[0]


def test_claims_are_judged_one_and_many(tmp_path: Path) -> None:
    verdict = h.claim("c ≈ (v_a + v_b)/2 within 0.02", query="k_a + k_b", keys="orthonormal",
                      where={"n": 10})  # fmt: skip
    assert verdict.verdict == "refuted"
    (tmp_path / "answers.toml").write_text(SHEET, "utf-8")
    report = h.check([tmp_path])
    assert [each.verdict for each in report.claims] == ["refuted"]


def test_a_model_is_trained_found_loaded_and_translates(tmp_path: Path) -> None:
    run = tmp_path / "run"
    first = h.train(SETTINGS, run)
    assert first.result.step == 2
    again = h.train(SETTINGS, run)
    assert again.result.weights_sha256 == first.result.weights_sha256
    assert h.load(run).decoder.config.layers == 1
    assert len(h.translate(run, "Bonjour .", "Merci .")) == 2


def test_an_unknown_study_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="translation, knowledge, capacity, heads or attention"):
        h.study("poetry", tmp_path)  # type: ignore[arg-type]
