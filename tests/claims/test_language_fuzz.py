"""Whatever is typed, the answer is a tree or a FormulaError, soon."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.claims.functions import FUNCTIONS
from heedful.claims.language import parse, parse_value, show
from heedful.errors import FormulaError

SCRIPT = Path(__file__).parents[1] / "faults" / "fuzz_formulas.py"

pieces = st.sampled_from(
    [*"+-*/^()[]{},:'|‖√<>=~≈≤≥≠∈∀→·ᵀ²₁ .αβ0123", "!=", "<=", " for all ", " given that ", " in ",
     " within ", " where ", " and ", " or ", " not ", " implies ", "||", "x", "k_a", "T", "i", "a",
     "_", *FUNCTIONS]
)  # fmt: skip


def answered(text: str) -> None:
    for read in (parse, parse_value):
        start = time.process_time()
        refusal: FormulaError | None = None
        try:
            assert show(read(text))
        except FormulaError as error:
            refusal = error
        assert time.process_time() - start < 1.0
        if refusal is not None:
            assert refusal.column is not None
            assert 1 <= refusal.column <= len(text) + 1
            assert "\n" not in str(refusal).encode("utf-8").decode("utf-8")


@settings(deadline=None, max_examples=100)
@given(st.text(max_size=520))
def test_any_text_is_answered(text: str) -> None:
    answered(text)


@settings(deadline=None, max_examples=100)
@given(st.lists(pieces, max_size=120).map("".join))
def test_any_soup_of_pieces_is_answered(text: str) -> None:
    answered(text)


def test_two_thousand_generated_formulas() -> None:
    command = [sys.executable, str(SCRIPT), "--count", "2000", "--seed", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2000 formulas in" in done.stdout
