"""A folder of hostile sheets: each is refused in one line, and nothing of it is executed."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hostile_sheets.hostile_cases import SILLY, write_all

HERE = Path(__file__).parent / "hostile_sheets"
MESSAGES = HERE / "messages.json"
MEMORY = 4 * 2**30


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Read the folder in a process of its own, under an audit hook and with little memory."""
    base = tmp_path_factory.mktemp("hostile")
    folder = base / "sheets"
    folder.mkdir()
    names = write_all(folder, base / "outside.toml")
    before = sorted(os.walk(base))
    finished = subprocess.run(
        [sys.executable, "-P", str(HERE / "watched.py"), str(folder)],
        cwd=base,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),
    )
    assert finished.returncode == 0, finished.stderr
    result: dict[str, Any] = json.loads(finished.stdout)
    assert sorted(result["said"]) == names
    assert sorted(os.walk(base)) == before, "a sheet has made or removed a file"
    return result


def test_nothing_is_executed_opened_or_written(found: dict[str, Any]) -> None:
    assert found["events"] == []


def test_every_sheet_is_refused_in_one_line(found: dict[str, Any]) -> None:
    assert len(found["said"]) >= 150
    for name, lines in found["said"].items():
        assert lines, name
        for line in lines:
            assert "\n" not in line, name
            assert len(line) < 700, name
            assert line.isprintable(), name
            place = line.removeprefix("judge: ")
            assert place.startswith((f"{name}.toml", "judged: ")), (name, line)


def test_a_claim_that_makes_no_sense_never_holds(found: dict[str, Any]) -> None:
    for name in SILLY:
        for line in found["said"][f"silly-{name}"]:
            assert line not in ("judged: proved", "judged: supported"), name


def test_the_messages_are_the_ones_on_record(found: dict[str, Any]) -> None:
    refused = {
        # What the judge says has tests of its own; here it matters that it refuses.
        name: ["judge: refused" if line.startswith("judge: ") else line for line in lines]
        for name, lines in found["said"].items()
        if not name.startswith("silly")
    }
    if os.environ.get("RECORD_MESSAGES"):
        MESSAGES.write_text(json.dumps(refused, indent=1, ensure_ascii=False) + "\n", "utf-8")
    assert refused == json.loads(MESSAGES.read_text("utf-8"))


def test_each_sheet_takes_seconds_at_most(found: dict[str, Any]) -> None:
    assert found["reading"] < 10
    assert found["slowest"] < 30


def test_two_thousand_generated_sheets_raise_nothing() -> None:
    finished = subprocess.run(
        [sys.executable, str(HERE.parent / "fuzz_sheets.py"), "--count", "2000", "--seed", "7"],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
