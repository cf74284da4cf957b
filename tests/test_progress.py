"""Progress on stderr: a line now and then where nobody sees a bar; parts that add up."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from heedful import progress


def test_long_work_says_where_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    with progress.meter("counting") as step:
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
    with progress.meter("counting") as step:
        for done in range(100):
            step(done, 100)
    assert capsys.readouterr() == ("", "")


def test_the_estimate_counts_from_where_the_work_was_resumed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = iter([0.0, 10.0, 20.0])
    # Not the clock of everybody: pytest, in the same process, looks at it too.
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    meter = progress.Meter("training")
    assert meter.left(0.5) == ""  # half of it was done before
    assert meter.left(0.75) == "about 20 s left"


def test_parts_add_up_and_end_at_the_whole() -> None:
    shares: list[float] = []
    parts = progress.Parts({"a": 1, "b": 3}, lambda _what, share: shares.append(share))
    parts.tell("a", "a", 0.5)
    parts.begin("b", "b")
    parts.tell("b", "b", 1 / 3)
    parts.finish("done")
    assert shares == [0.125, 0.25, 0.5, 1.0]


def test_other_ranks_keep_quiet(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    with progress.meter("training") as show:
        show(1, 2)
    assert capsys.readouterr() == ("", "")
