"""Every session in a `console` block of the documentation prints what the page shows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import console
import pytest
from cyclopts import App

from heedful.cli.main import build_app

SESSIONS = [block for page in console.pages() for block in console.blocks(page)]


@pytest.mark.parametrize("block", SESSIONS, ids=str)
def test_a_session_prints_what_the_page_shows(block: console.Block) -> None:
    report = console.differences(block)
    assert not report, f"{report}\n`make docs-update` writes the real output into the pages"


def verbs(app: App, name: str = "heed") -> Iterator[str]:
    """Yield the full name of every command below `app`."""
    for word in app:
        if not word.startswith("-"):
            yield f"{name} {word}"
            yield from verbs(app[word], f"{name} {word}")


def test_the_reference_shows_the_help_of_every_command() -> None:
    page = (console.ROOT / "docs" / "reference" / "cli.md").read_text("utf-8")
    shown = set(re.findall(r"^\$ (heed .+) --help$", page, re.MULTILINE))
    known = set(verbs(build_app()))
    assert shown == known, f"docs/reference/cli.md differs by {sorted(shown ^ known)}"


@pytest.mark.parametrize(
    ("expected", "found", "agree"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a\nb\n", "a\nc\n", False),
        ("a\n", "a\nb\n", False),
        ("a\n[...]\nd\n", "a\nb\nc\nd\n", True),
        ("a\n[...]\nd\n", "a\nd\n", True),
        ("a\n[...]\nd\n", "a\nb\nc\n", False),
        ("took [...] s\n", "took 3.1 s\n", True),
        ("took [...] s\n", "took\n3.1 s\n", False),
        ("(a|b) .*\n", "a\n", False),
    ],
)
def test_only_an_elision_may_differ(expected: str, found: str, agree: bool) -> None:
    assert console.agrees(expected, found) is agree


def test_writing_fills_in_the_output_and_is_then_in_agreement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text(
        "Before.\n\n```console\n$ heed --version\n```\n\n"
        "```console\n$ heed attend \\\n    --no-such-flag\nold\n$ echo $?\n```\n\nAfter.\n",
        encoding="utf-8",
    )
    assert console.write(page) == (True, [])
    text = page.read_text("utf-8")
    assert re.search(r"\$ heed --version\nheedful \d+\.\d+", text)
    assert "old" not in text
    assert "$ echo $?\n2\n" in text
    assert text.startswith("Before.")
    assert text.endswith("After.\n")
    assert not any(console.differences(block) for block in console.blocks(page))
    assert console.write(page) == (False, [])


@pytest.mark.parametrize(
    ("line", "left_out"),
    [
        ("judging claims: 50 %, 15 s", True),
        ("training: 7 %, 1 min 2 s, about 12 min 4 s left", True),
        ("alpha_a: 50 %", False),
        ("Correct: 50 %, of 15 questions", False),
    ],
)
def test_only_lines_of_progress_are_left_out(line: str, left_out: bool) -> None:
    assert (console.PROGRESS.fullmatch(line) is not None) is left_out


def test_only_our_own_commands_are_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "ROOT", tmp_path)
    block = console.Block(tmp_path / "page.md", 1, "$ rm -rf nothing\n")
    with pytest.raises(ValueError, match="only heed"):
        console.differences(block)
