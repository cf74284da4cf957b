"""Changes that may mend a refuted claim, and how they are tried."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from heedful.claims.language import parse
from heedful.claims.language.tree import Expression
from heedful.claims.problem import Problem
from heedful.claims.sheet.claim import Claim
from heedful.claims.verdict import Verdict
from heedful.errors import FormulaError

SECONDS_EACH = 4.0


@dataclass(frozen=True)
class Candidate:
    """A change that may mend a claim."""

    kind: str
    statement: str
    changes: dict[str, Any]
    """Fields of the claim with what they become; None where one is left out."""


def judged(claim: Claim) -> Verdict | None:
    """Judge a changed claim, without looking for its repair; None if it cannot be read."""
    from heedful.claims.judge import judge  # the judge looks for repairs, repairs ask the judge

    try:
        return judge(claim, seconds=SECONDS_EACH, repair=False)
    except FormulaError:
        return None


def written_tree(text: str, problem: Problem) -> Expression:
    """Return an expectation as written, before definitions are expanded."""
    arities = {
        key.partition("(")[0].strip(): key.count(",") + 1 for key in problem.claim.let if "(" in key
    }
    return parse(text, functions=arities)
