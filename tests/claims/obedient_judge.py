"""A judge that does what a claim's sentence tells it to: how the limits are put to the test."""

from __future__ import annotations

import os
import time
from pathlib import Path

from heedful.claims.sheet import Claim
from heedful.claims.verdict import Evidence, Verdict, Word
from heedful.errors import FormulaError, RunError


def judge(claim: Claim, *, sheet: str = "", seconds: float | None = None) -> Verdict:
    """Behave as the claim says, and note that it was asked."""
    order, _, detail = claim.says.partition(" ")
    if diary := os.environ.get("DIARY"):
        with Path(diary).open("a", encoding="utf-8") as file:
            file.write(f"{os.getpid()} {claim.id}\n")
    match order:
        case "sleep":
            time.sleep(float(detail))
        case "spin":
            while True:
                pass
        case "grow":
            hoard = [bytearray(8 * 2**20) for _ in range(int(detail))]
            assert hoard
        case "abort":
            os.abort()
        case "stumble":
            raise ZeroDivisionError("one\nby zero")
        case "refuse":
            field = tuple(detail.split("."))
            raise FormulaError(detail, "is not understood", expected="something else", field=field)
        case "give-up":
            raise RunError("solver", "did not converge")
    word: Word = "refuted" if order == "false" else "proved"
    evidence = Evidence(method="obedience", statement=f"{sheet} told it so")
    return Verdict(
        sheet=sheet, id=claim.id, says=claim.says, expects=claim.expect[0],
        verdict=word, evidence=evidence,
    )  # fmt: skip
