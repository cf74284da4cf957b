"""Statements about attention, and what a machine can say about them.

A claim is read (`sheet`, `language`), compiled, judged and, if it fails, repaired; `checker` does
so for many. This room sees attention, positions and the base modules; it never imports torch.
Begin with `judge`, then `functions` (the language) and `proofs`.
"""

from heedful.claims.checker import (
    CheckReport,
    KeySetting,
    arbitrary,
    check,
    claim,
    gaussian,
    orthonormal,
    unit,
)
from heedful.claims.judge import judge_claim
from heedful.claims.sheet.claim import Claim
from heedful.claims.sheet.sheet import Sheet, load_sheet
from heedful.claims.verdict import Counterexample, Evidence, Repair, Verdict

__all__ = [
    "CheckReport",
    "Claim",
    "Counterexample",
    "Evidence",
    "KeySetting",
    "Repair",
    "Sheet",
    "Verdict",
    "arbitrary",
    "check",
    "claim",
    "gaussian",
    "judge_claim",
    "load_sheet",
    "orthonormal",
    "unit",
]
