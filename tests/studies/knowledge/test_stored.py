"""The measurement that comes with the package: the one of the benchmark, read without weights."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from heedful.studies.knowledge.findings import UNKNOWN
from heedful.studies.knowledge.questions import LEVELS, questions_of
from heedful.studies.knowledge.stored import (
    EXAMPLES_OF_A_LEVEL,
    StoredMeasurement,
    read_measurement,
    stored_measurement,
    written_measurement,
)

MEASURED = Path(__file__).parents[3] / "benchmarks" / "results" / "ask.json"


@pytest.fixture(scope="module")
def stored() -> StoredMeasurement:
    return stored_measurement()


def test_it_is_the_measurement_of_the_benchmark(stored: StoredMeasurement) -> None:
    measured = json.loads(MEASURED.read_text("utf-8"))
    for one in measured["answers"]:
        one["signals"] = {}  # these stay out of the package
    shipped = stored.calibration.to_dict()
    assert shipped == {name: measured[name] for name in shipped}
    assert stored.date == measured["machine"]["date"][:10]


def test_what_is_written_is_read_again(stored: StoredMeasurement) -> None:
    about = {name: getattr(stored, name) for name in ("name", "command", "date", "machine")}
    again = read_measurement(written_measurement(stored.calibration, **about))
    assert again.to_dict() == stored.to_dict()


def test_examples_are_the_first_of_each_level_and_nobody_chose_them(
    stored: StoredMeasurement,
) -> None:
    for level, words in LEVELS.items():
        first = [one.text for one in questions_of("test") if one.level == level]
        shown = [one.question for one in stored.examples if one.level == words]
        assert shown == first[:EXAMPLES_OF_A_LEVEL]


def test_every_conclusion_has_an_interval_and_the_day(stored: StoredMeasurement) -> None:
    assert len(stored.conclusions) == 5
    for one in stored.conclusions:
        assert one.stands
        assert one.text.startswith(f"Stored measurement of {stored.date}")
        assert "one model" in one.text
    answered = [one for one in stored.calibration.answers if one.label != UNKNOWN]
    assert f"{len(answered)} unsure" in stored.conclusions[-1].text


def test_reading_it_needs_no_torch() -> None:
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from heedful.studies.knowledge.stored import stored_measurement\n"
        "assert stored_measurement().conclusions"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
