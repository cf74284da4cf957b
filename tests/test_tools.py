"""What happens where a browser cannot be had: one line that helps, and no failure."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import tools


def test_without_a_browser_its_tests_end_in_one_line() -> None:
    words = ["-m", "pytest", "-n", "0", "-p", "no:cacheprovider", "tests/web/test_browser.py"]
    done = subprocess.run(
        [sys.executable, *words],
        cwd=Path(__file__).parents[1],
        env=os.environ | {"HEEDFUL_BROWSER": "/nowhere"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    assert done.stdout.count(tools.NO_BROWSER) == 1
    assert "failed" not in done.stdout


def test_every_way_to_a_browser_is_tried_before_it_is_given_up(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tried: list[str] = []

    def refused(words: list[str], **_settings: object) -> None:
        tried.append(words[0] if "playwright" not in words else "playwright")
        raise OSError("there is no network")

    monkeypatch.setenv("HEEDFUL_BROWSER", "/nowhere")
    monkeypatch.setattr(tools, "_run", refused)
    assert not tools.bring_browser()
    assert len(tried) >= 2
    assert tried[-1] == "playwright"
    assert capsys.readouterr().out.rstrip().endswith(tools.NO_BROWSER)
