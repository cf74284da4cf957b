"""The judge, with a diary of every text that is tokenised and every claim that is judged.

The diary is kept by Python's own profiling hook: nothing of the engine is replaced.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from heedful.claims.judge import judge_claim as judge
from heedful.claims.sheet import Claim
from heedful.claims.verdict import Verdict

NOTED = {
    ("tokens.py", "tokenize"): ("tokens", "text"),
    ("judge.py", "judge_claim"): ("judged", "claim"),
}
"""Which calls are noted: as what, and by which argument."""


@contextmanager
def noting() -> Iterator[None]:
    """Write every call of the functions above into the file $DIARY."""
    diary = Path(os.environ["DIARY"])

    def note(frame: FrameType, event: str, _argument: Any) -> None:
        code = frame.f_code
        key = (code.co_filename.rpartition("/")[2], code.co_name)
        if event == "call" and key in NOTED:
            kind, argument = NOTED[key]
            content = " ".join(str(frame.f_locals[argument]).split())
            with diary.open("a", encoding="utf-8") as file:
                file.write(f"{kind}\t{content}\n")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(before)


def judge_claim(claim: Claim, *, sheet: str = "", seconds: float | None = None) -> Verdict:
    """Judge a claim, and note what that takes."""
    with noting():
        return judge(claim, sheet=sheet, seconds=seconds)
