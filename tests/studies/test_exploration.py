"""The exploration says what the mathematics says."""

from __future__ import annotations

import math

import numpy as np
import pytest

from heedful.attention import attend, orthonormal
from heedful.studies.exploration import Exploration, explore
from heedful.views.exploration import exploration_section
from heedful.views.html import blocks_html


@pytest.fixture(scope="module")
def record() -> Exploration:
    return explore()


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


def test_the_section_tells_the_record_in_markup_of_its_own(record: Exploration) -> None:
    html = blocks_html([exploration_section(record, 1.0)])

    assert html.count("<svg") == html.count("</svg>") >= 8
    assert "<i>k</i><sub>a</sub>" in html
    assert "nan" not in html.lower().split()
