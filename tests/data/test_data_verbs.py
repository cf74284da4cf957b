"""`heed data inspect`: what a user sees."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from heedful.cli.train import data_app
from heedful.errors import InputError

SCRIPT = Path(__file__).parents[1] / "faults" / "fuzz_readers.py"


def run(*arguments: str | Path) -> int:
    code = data_app([str(argument) for argument in arguments], exit_on_error=False)
    assert isinstance(code, int)
    return code


@pytest.fixture
def parallel(tmp_path: Path) -> list[Path]:
    paths = []
    for part, french, english in (
        ("train", "Il est là.\nElle est là.\n", "He is here.\nShe is here.\n"),
        ("test", "Il est là.\nNous\u202fsommes là.\n", "He is in.\n[bold]We are here.\n"),
    ):
        for language, text in (("fr", french), ("en", english)):
            path = tmp_path / f"{part}.{language}.gz"
            path.write_bytes(gzip.compress(text.encode()))
            paths.append(path)
    return paths


def test_tables_show_facts_leaks_and_examples(
    parallel: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("inspect", *parallel) == 0
    shown = capsys.readouterr().out
    assert "train.fr+en: 2 pairs" in shown
    assert "narrow no-break space" in shown
    assert "Shared texts" in shown
    assert "“Il est là.”" in shown
    assert "[bold]We are here." in shown, "texts are never markup"


def test_the_record_is_json(parallel: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert run("inspect", *parallel, "--json", "--source", "en", "--examples", "1") == 0
    record = json.loads(capsys.readouterr().out)
    assert [corpus["sides"][0]["language"] for corpus in record["corpora"]] == ["en", "en"]
    assert record["overlaps"][0]["targets"] == 1
    assert [len(corpus["examples"]) for corpus in record["corpora"]] == [1, 1]


def test_a_figure_is_drawn(parallel: list[Path], tmp_path: Path) -> None:
    assert run("inspect", *parallel, "--figure", tmp_path / "lengths.svg") == 0
    assert "<svg" in (tmp_path / "lengths.svg").read_text("utf-8")
    with pytest.raises(InputError, match="--figure"):
        run("inspect", *parallel, "--figure", tmp_path / "lengths.txt")


def test_flags_reach_the_readers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.txt"
    path.write_text("1\tun\tone\n2\tdeux\ttwo\n", "utf-8")
    flags = ("--columns", "2", "3", "--languages", "fr", "en", "--source", "en", "--json")
    assert run("inspect", path, *flags) == 0
    (corpus,) = json.loads(capsys.readouterr().out)["corpora"]
    assert corpus["examples"][0]["texts"] == ["one", "un"]
    assert run("inspect", path, "--format", "text", "--unit", "file", "--json") == 0
    assert json.loads(capsys.readouterr().out)["corpora"][0]["count"] == 1
    with pytest.raises(InputError, match="more than 5 bytes"):
        run("inspect", path, "--max-bytes", "5")
    path = tmp_path / "a.jsonl"
    path.write_text('{"a": "x", "b": "y"}\n', "utf-8")
    assert run("inspect", path, "--fields", "b", "--json") == 0
    assert json.loads(capsys.readouterr().out)["corpora"][0]["kind"] == "documents"


def test_a_terminal_obeys_no_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.txt"
    path.write_text("\x1b[2J\u202eevil\n" * 2, "utf-8")
    assert run("inspect", path) == 0
    shown = capsys.readouterr().out
    assert "\\x1b[2J\\u202eevil" in shown
    assert "\x1b" not in shown
    assert "\u202e" not in shown


@pytest.mark.parametrize("count", [200, pytest.param(1000, marks=pytest.mark.long)])
def test_generated_files_for_every_reader(count: int) -> None:
    finished = subprocess.run(
        [sys.executable, str(SCRIPT), "--count", str(count), "--seed", "7"],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert finished.stdout.count("accepted") == 7
