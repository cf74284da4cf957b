"""The command line as tests call it: in this process, with what it printed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from heedful.cli.main import main


@dataclass(frozen=True)
class Answer:
    """What one command did."""

    code: int
    out: str
    err: str

    @property
    def record(self) -> Any:
        """Return the JSON on standard output, which must be nothing else."""
        return json.loads(self.out)


Heed = Callable[..., Answer]


@pytest.fixture
def heed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Heed:
    """Return a function that runs `heed` with these words."""
    monkeypatch.delenv("COLUMNS", raising=False)

    def run(*words: object) -> Answer:
        capsys.readouterr()
        code = main([str(word) for word in words])
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    return run


@pytest.fixture
def refused(heed: Heed) -> Heed:
    """Return a function that checks a refusal: exit 2, one line on stderr, nothing printed."""

    def run(*words: object) -> Answer:
        answer = heed(*words)
        assert answer.code == 2, answer
        assert answer.out == ""
        assert answer.err.count("\n") == 1
        assert answer.err.endswith("\n")
        assert ": " in answer.err
        assert "Traceback" not in answer.err
        return answer

    return run
