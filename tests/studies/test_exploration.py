"""The exploration says what the mathematics says."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from heedful.attention import attend, orthonormal
from heedful.cli.main import main
from heedful.studies.exploration import Exploration, explore
from heedful.views.exploration import exploration_section
from heedful.views.html import blocks_html


@pytest.fixture(scope="module")
def record() -> Exploration:
    return explore()


@pytest.fixture(scope="module")
def html(record: Exploration) -> str:
    """The section with all its figures, drawn once."""
    return blocks_html([exploration_section(record, 1.0)])


def test_errors_of_averaging_are_those_of_attention_itself(record: Exploration) -> None:
    keys = orthonormal(10)
    errors = record.averaging.errors[10]
    for beta, error in zip(record.averaging.betas[::20], errors[::20], strict=True):
        reading = attend(beta * (keys[0] + keys[1]), keys)
        assert math.isclose(1 - float(reading.mass([0, 1])), error, abs_tol=1e-12)


def test_the_least_query_reaches_its_tolerance_and_is_shorter_than_the_textbook(
    record: Exploration,
) -> None:
    design = record.average
    reading = attend(design.query, orthonormal(10, 16))

    assert float(reading.mass([0, 1])) >= 0.99 - 1e-12
    assert np.linalg.norm(design.query) < design.certificate.textbook_norm


def test_looking_away_beats_two_heads_beats_one(record: Exploration) -> None:
    one, two, away = (study.exact.std[0] for study in record.noise.studies)

    assert away < 1e-12 < two < one
    for study, draws in zip(record.noise.studies, record.noise.draws, strict=True):
        error = study.sampled.std_se[0] * math.sqrt(study.sampled.draws / len(draws))
        assert abs(np.std(draws) - study.exact.std[0]) <= 5 * error + 1e-9


def test_two_heads_help_when_every_key_is_noisy(record: Exploration) -> None:
    assert record.everywhere[2] < 0.8 * record.everywhere[1]


def test_the_record_becomes_json(record: Exploration) -> None:
    assert record.to_dict()["sequence"]["feasible"] is True


def test_the_section_tells_the_record_in_markup_of_its_own(html: str) -> None:
    assert html.count("<svg") == html.count("</svg>") >= 8
    assert "<i>k</i><sub>a</sub>" in html
    assert "nan" not in html.lower().split()


def test_a_distance_stands_with_its_norm_and_the_command_prints_it(
    record: Exploration, html: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = f"heed design kqv --norm {record.addition_norm:g}"
    assert command in html
    assert f"norm {record.addition_norm:g}:" in html
    assert main(command.split()[1:]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    error = f"{record.additions[-1].error:.4g} away from u_b"
    assert error == "17.32 away from u_b"
    assert error in printed


def test_the_failing_share_is_that_of_the_scale_beside_it(record: Exploration) -> None:
    two = record.noise.studies[1]
    said = next(one.text for one in record.conclusions if "steadier" in one.text)
    assert f"they fail in {two.exact.failure_probability:.1%} of the draws" in said
    assert f"in {two.limit.failure_probability:.1%} however large" in said
    readme = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
    percent = f"{100 * two.exact.failure_probability:.1f} % of the draws"
    assert percent in readme
    assert all(one.stands for one in record.conclusions)
