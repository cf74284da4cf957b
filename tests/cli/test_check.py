"""`heed check` and `heed explain` as a user meets them, with the real engine."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from heedful.claims.sheet import catalog
from heedful.cli.main import main

TRUE = """
[[claim]]
id = "sum"
says = "The weights sum to one."
keys = "orthonormal"
where = { n = [2, 3] }
query = "k_a"
expect = "sum(alpha_i, i) = 1"
"""
VACUOUS = """
[[claim]]
id = "vacuous"
keys = "orthonormal"
where = { n = [2, 3] }
query = "k_a"
given = "n > 5"
expect = "alpha_a = 7"
"""
FALSE = """
[[claim]]
id = "average"
says = "The sum of two keys, unscaled, averages their values."
keys = "orthonormal"
where = { n = 4 }
query = "k_a + k_b"
expect = "c ≈ (v_a + v_b)/2 within 0.02"
disagrees_with = "sum"
"""
TYPO = '[[claim]]\nid = "typo"\nexpect = "1 = 1 )"\n'


@pytest.fixture
def sheet(tmp_path: Path) -> Path:
    return tmp_path / "sheet.toml"


def test_exit_codes_say_what_was_found(sheet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for text, code in ((TRUE, 0), (TRUE + FALSE, 1), (TRUE + FALSE + TYPO, 2)):
        sheet.write_text(text, "utf-8")
        assert main(["check", str(sheet), "--workers", "1"]) == code
        shown = capsys.readouterr()
        assert "The weights sum to one." in " ".join(shown.out.split())
        if code == 2:
            assert shown.err.startswith(f"{sheet}:{text.count(chr(10))}:17: claim 'typo'")
            assert shown.err.count("\n") == 1


def test_undecided_alone_is_no_failure_but_is_said(
    sheet: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sheet.write_text(VACUOUS, "utf-8")
    assert main(["check", str(sheet)]) == 0
    shown = capsys.readouterr()
    assert "nothing is refuted, but 1 claim is undecided" in shown.err


def test_json_has_the_promised_fields(sheet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sheet.write_text(TRUE + FALSE, "utf-8")
    assert main(["check", str(sheet), "--json"]) == 1
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    for verdict in report["claims"]:
        assert set(verdict) >= {
            "sheet", "id", "says", "verdict", "evidence", "counterexample", "repair", "seconds",
        }  # fmt: skip
    assert [verdict["verdict"] for verdict in report["claims"]] == ["proved", "refuted"]
    assert report["counts"]["refuted"] == 1
    assert report["disagreements"] == []
    assert report["unlike"] == [["sheet/average", "sheet/sum"]]


def test_files_for_others_are_written_whole(
    sheet: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sheet.write_text(TRUE + FALSE, "utf-8")
    files = {kind: tmp_path / f"out.{kind}" for kind in ("junit", "csv", "html")}
    flags = [part for kind, path in files.items() for part in (f"--{kind}", str(path))]
    assert main(["check", str(tmp_path), *flags]) == 1
    assert ElementTree.parse(files["junit"]).getroot().get("failures") == "1"
    assert len(files["csv"].read_bytes().split(b"\r\n")) == 4
    assert "The weights sum to one." in files["html"].read_text("utf-8")
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
    capsys.readouterr()
    assert main(["check", str(sheet), "--csv", str(tmp_path / "no" / "x.csv")]) == 2
    assert "--csv" in capsys.readouterr().err


def test_bad_requests_are_refused_in_a_line(
    sheet: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sheet.write_text(TRUE, "utf-8")
    for arguments, says in (
        (["check", str(tmp_path / "missing.toml")], "does not exist"),
        (["check", str(sheet), "--only", "smu"], "did you mean sum?"),
        (["check", str(sheet), "--workers", "0"], "workers"),
        (["check", str(sheet), "--seconds", "nan"], "seconds"),
        (["check", "--watch"], "no sheet was named"),
        (["explain", "smu", "--sheet", str(sheet)], "did you mean sum?"),
        (["explain", "sum", "--sheet", str(sheet), "--figure", "x.gif"], "--figure"),
    ):
        assert main(arguments) == 2, arguments
        shown = capsys.readouterr().err
        assert says in shown
        assert shown.count("\n") == 1


def test_an_explanation_can_be_followed_to_the_end(
    sheet: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sheet.write_text(TRUE + FALSE, "utf-8")
    figure = tmp_path / "average.svg"
    words = ["explain", "average", "--sheet", str(sheet)]
    assert main([*words, "--figure", str(figure)]) == 0
    shown = capsys.readouterr().out
    assert "verdict: refuted" in shown
    assert figure.read_text("utf-8").startswith("<?xml")

    assert main([*words, "--json"]) == 0
    verdict = json.loads(capsys.readouterr().out)["verdict"]
    # The counterexample is a command that runs, and the repair a claim that holds.
    assert main(shlex.split(verdict["counterexample"]["command"])[1:]) == 0
    assert "Where the query reads" in capsys.readouterr().out
    pasted = shown[shown.index("then it is:") :].split("\n", 1)[1]
    changes = tomllib.loads("\n".join(line.strip() for line in pasted.splitlines()))
    assert changes == verdict["repair"]["changes"]
    query = f'query = "{changes["query"]}"'
    sheet.write_text(FALSE.replace('query = "k_a + k_b"', query), "utf-8")
    assert main(["check", str(sheet)]) == 0


@pytest.mark.parametrize("verb", ["check", "explain"])
def test_the_examples_of_the_help_name_claims_that_exist(
    verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([verb, "--help"]) == 0
    named = re.findall(r"\b([a-z]+/[a-z-]+)(?: |\n)", capsys.readouterr().out)
    known = {f"{sheet.name}/{claim.id}" for sheet in catalog() for claim in sheet.claims}
    assert named
    assert set(named) <= known


def test_watching_checks_again_until_it_is_interrupted(sheet: Path) -> None:
    sheet.write_text(TRUE, "utf-8")
    with subprocess.Popen(
        [sys.executable, "-m", "heedful", "check", str(sheet), "--watch", "--json"],
        stdout=subprocess.PIPE,
        encoding="utf-8",
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    ) as process:
        try:
            for text, verdicts in ((TRUE, ["proved"]), (TRUE + FALSE, ["proved", "refuted"])):
                _save(sheet, text)
                # A save may be seen twice: read until the page is about this text.
                while [claim["verdict"] for claim in _document(process)["claims"]] != verdicts:
                    pass
            time.sleep(0.2)
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=150) == 1  # as the last check said
        finally:
            process.kill()


def _save(sheet: Path, text: str) -> None:
    """Save as editors do: whole, by renaming."""
    fresh = sheet.with_suffix(".new")
    fresh.write_text(text, "utf-8")
    fresh.replace(sheet)


def _document(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Read one JSON document from a process that goes on."""
    assert process.stdout is not None
    lines: list[str] = []
    while not lines or lines[-1] != "}\n":
        lines.append(process.stdout.readline())
        assert lines[-1], "the process ended"
    found: dict[str, Any] = json.loads("".join(lines))
    return found
