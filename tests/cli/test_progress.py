"""Progress where nobody sees a bar: a line now and then, on stderr."""

from __future__ import annotations

import pytest

from heedful.cli import progress


def test_long_work_says_where_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    with progress.long_progress("counting") as step:
        step(0, 0)  # nobody knows yet how much there is
        step(1, 4)
        step(4, 4)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert [line.split(",")[0] for line in printed.err.splitlines()] == [
        "counting: 25 %",
        "counting: 100 %",
    ]


def test_short_work_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.long_progress("counting") as step:
        for done in range(100):
            step(done, 100)
    assert capsys.readouterr() == ("", "")
