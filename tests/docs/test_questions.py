"""Every claim, command and page in the table of questions exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from heedful.claims.sheet import catalog
from heedful.cli.main import main

PAGE = Path(__file__).resolve().parents[2] / "docs" / "questions.md"
ROWS = [
    [cell.strip() for cell in line.strip("|\n ").split("|")]
    for line in PAGE.read_text("utf-8").splitlines()
    if line.startswith("| ") and not line.startswith("| Question")
]


def test_every_claim_named_is_in_the_catalog() -> None:
    known = {f"{sheet.name}/{claim.id}" for sheet in catalog() for claim in sheet.claims}
    named = {name for row in ROWS for name in re.findall(r"`([^`]+)`", row[3])}
    assert named <= known, named - known


def test_every_sheet_has_its_questions() -> None:
    sheets = {name for row in ROWS for name in re.findall(r"\b00[0-4]\b", row[1])}
    assert sheets == {"000", "001", "002", "003", "004"}
    assert len(ROWS) >= 25


@pytest.mark.parametrize(
    "command", sorted({found for row in ROWS for found in re.findall(r"`(heed [^`]+)`", row[2])})
)
def test_every_command_exists_with_its_flags(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = command.split()[1:]
    assert main([*(word for word in words if not word.startswith("--")), "--help"]) == 0
    help_text = capsys.readouterr().out
    for word in words:
        if word.startswith("--"):
            assert word in help_text, command


def test_every_section_is_a_page() -> None:
    for row in ROWS:
        (target,) = re.findall(r"\]\(([^)]+)\)", row[5])
        assert (PAGE.parent / target).is_file(), target
        assert row[4] in ("Attention", "Claims", "Positions", "Models")
