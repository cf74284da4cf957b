"""How many formulas that people wrote are read, as they stand?

    python benchmarks/seed_formulas.py ANSWERS ... [--unread]

ANSWERS are texts with formulas between dollar signs. Counted are the formulas that state something:
a relation between values. Left out are values alone, declarations (∈ ℝ^d, ∼ 𝒩), lists with dots,
and where an index runs (i ≠ a, b). With --unread what is not read is listed with the reason.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from heedful.assignments.submission import formulas_in
from heedful.claims.language import parse, parse_value
from heedful.errors import FormulaError

DECLARES = re.compile(
    r"\\mathbb\{?R|∈\s*ℝ|\\sim|∼|\\(?:l|c)?dots|…|\\mathcal\{?N|\\in\s*\\\{"
    r"|^\w \\neq \w(?:, ?\w)*$"
)
"""What declares, lists or says where an index runs, and states nothing."""
RELATES = re.compile(r"[=<>≈≠≤≥≫≪]|\\(?:approx|neq?|leq?|geq?|gg|ll|to|rightarrow|perp)\b")


def states(formula: str) -> bool:
    """Tell whether a formula states something that can be judged."""
    without = re.sub(r"_\{[^{}]*\}", "", formula)
    return RELATES.search(without) is not None and DECLARES.search(formula.strip()) is None


def reading(formula: str) -> str:
    """Return why a formula is not read; empty if it is."""
    try:
        parse(formula)
    except FormulaError as refused:
        try:
            parse_value(formula)
        except FormulaError:
            return str(refused)
    return ""


def main() -> None:
    """Count the formulas of some texts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("answers", type=Path, nargs="+")
    parser.add_argument("--unread", action="store_true", help="list what is not read")
    given = parser.parse_args()
    all_read = everything = 0
    for path in given.answers:
        text = path.read_text("utf-8")
        found = ((f"${one}$" if tex else one, one) for one, tex in formulas_in(text))
        written = [formula for formula, inside in found if states(inside)]
        unread = [(formula, why) for formula in written if (why := reading(formula))]
        all_read += len(written) - len(unread)
        everything += len(written)
        print(f"{path.name}: {len(written) - len(unread)} of {len(written)} read")
        if given.unread:
            for formula, why in unread:
                print(f"    {' '.join(formula.split())[:160]}\n        {why}")
    print(f"in all: {all_read} of {everything} ({all_read / max(everything, 1):.1%})")


if __name__ == "__main__":
    main()
