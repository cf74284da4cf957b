"""Throw formulas at the parser: mutated ones, soups of tokens, random characters.

    python tests/faults/fuzz_formulas.py --count 100000

Only FormulaError may come back, with a column inside the text; every answer within a second;
what is accepted must survive printing and parsing in both styles. Fails otherwise, with the
formula that did it.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Callable

from memory_peak import peak_megabytes

from heedful.claims.functions import FUNCTIONS
from heedful.claims.language import parse, show
from heedful.claims.language.parser import FormulaLimits
from heedful.errors import FormulaError

FUNCTIONS_OF_THE_SHEET = {"f": 1, "g": (1, 3)}
SLOWEST_ALLOWED = 1.0
MEMORY_ALLOWED = 512  # megabytes
WIDE = FormulaLimits(characters=100_000)

VALID = (
    "c ≈ (v_a+v_b)/2 within 0.02",
    "f(P X) = P f(X)",
    "phi(s) != phi(t) for all s != t < T",
    "std(alpha_a) <= 0.05",
    "P(||c - (v_a+v_b)/2|| <= 0.1) >= 0.95",
    "k_i^T k_j = 0 for all i != j",
    "alpha_i ≈ 0 for all i != a, b",
    "E(x given that k_a^T q > 0) = 1/2 (v_a + v_b)",
    "sum(alpha_i, i != a, b) <= 1 - mass(a, b) and 0 <= entropy(alpha) <= ln(n)",
    "‖A⁻¹ᵀ x‖₂ ≤ |β|² √2 or not x in {a, b, c}",
    "∀ i, j where i < n and j < n: A[i, j] = (x_i' y_j)[1]",
    "x_{1}^{2} .T = 1e-3 => -y ~ 0.5 within .5 given that 0 < r <= 1",
    "softmax(K q)[a] - weights(beta (k_a + k_b))[b] = 0",
    "max(alpha_i, i where i = a or i = b) >= min(x, 0)",
)
PIECES = (
    *"+-*/^()[]{},:'|‖√<>=~≈≤≥≠∈∀→·−ᵀ²₁xyabijTβΣ01fg_.%\\\"",
    *("||", "<=", ">=", "!=", "⁻¹", "^T", ".T", "..", "__", "2.5", "1e-3", ".5"),
    *("and", "or", "not", "implies", "given", "that", "within", "for", "all", "in", "where"),
    *("k_a", "alpha_i", "μ_a", "infinity"),
    *FUNCTIONS,
)
ODD = "\x00\t\n \u200b\u202e\ud800é̂аαβ𝛼½∑≫⊗🙂ﬁⅷ٣０ＡΑ"


def mutated(rng: random.Random) -> str:
    """Return a valid formula with some characters removed, doubled, swapped or replaced."""
    text = rng.choice(VALID)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(text) + 1)
        other = rng.choice(VALID)
        cut = rng.randrange(len(other) + 1)
        text = rng.choice(
            (
                text[:at] + text[at + rng.randint(1, 4) :],
                text[:at] + rng.choice(PIECES) + text[at:],
                text[:at] + rng.choice(ODD) + text[at:],
                text[:at] + other[cut:],
                text[at:] + " " + text[:at],
                f"{text[:at]}({text[at:]})",
            )
        )
    return text


def soup(rng: random.Random) -> str:
    """Return tokens in no order."""
    glue = rng.choice(("", " "))
    return glue.join(rng.choices(PIECES, k=rng.randint(1, 120)))


def repeated(rng: random.Random) -> str:
    """Return one or two pieces repeated many times: deep or long."""
    pattern = "".join(rng.choices(PIECES, k=rng.randint(1, 3)))
    return pattern * rng.randint(1, 500) + rng.choice(PIECES) + rng.choice(("", ")" * 40, " = 1"))


def characters(rng: random.Random) -> str:
    """Return random characters, mostly of the kinds that formulas use."""
    alphabet = rng.choice(("ab_^T(x)=<1.e-|' ", ODD + "xy=12", "".join(PIECES)))
    if rng.random() < 0.2:
        return "".join(chr(rng.randrange(0x110000)) for _ in range(rng.randint(0, 60)))
    return "".join(rng.choices(alphabet, k=rng.randint(0, 520)))


def grown(rng: random.Random) -> str:
    """Return a formula grown from a grammar, so that most of them are accepted."""

    def value(depth: int) -> str:
        if depth == 0 or rng.random() < 0.25:
            return rng.choice(("x", "k_a", "alpha_i", "2", "0.5", "β", "v_1", "T", "P"))
        one, two = value(depth - 1), value(depth - 1)
        return rng.choice(
            (f"{one} + {two}", f"{one} * {two}", f"({one}) ({two})", f"({one})/({two})",
             f"-{one}", f"({one})^T", f"({one})^2", f"norm({one})", f"‖{one}‖", f"({one})[{two}]",
             f"sum({one}, i != a)", f"E({one} given {two} > 0)", f"f({one})", f"√({one})",
             f"max({one}, {two})", f"x^({one})")
        )  # fmt: skip

    def statement(depth: int) -> str:
        one, two = value(3), value(3)
        simple = f"{one} {rng.choice(('<', '<=', '=', '!=', '≈', '>'))} {two}"
        if depth == 0 or rng.random() < 0.3:
            return simple
        left, right = statement(depth - 1), statement(depth - 1)
        return rng.choice(
            (f"{left} and {right}", f"({left}) or {right}", f"not ({left})",
             f"({left}) implies ({right})", f"({left}) for all i != a, b",
             f"{one} ~ {two} within 1", f"({left}) given that {right}", f"{one} in [0, {two}]",
             f"∀ s, t < T: {left}")
        )  # fmt: skip

    return statement(rng.randint(0, 3))


KINDS: tuple[Callable[[random.Random], str], ...] = (mutated, soup, repeated, characters, grown)


def outcome(text: str) -> str:
    """Return what became of a formula; anything but an answer or a FormulaError escapes."""
    try:
        tree = parse(text, functions=FUNCTIONS_OF_THE_SHEET)
    except FormulaError as error:
        column = error.column
        if column is None or not 1 <= column <= len(text) + 1 or "\n" in str(error):
            raise AssertionError(f"bad column or message: {error!s}") from error
        return "refused"
    for style in ("plain", "unicode"):
        again = parse(show(tree, style), functions=FUNCTIONS_OF_THE_SHEET, limits=WIDE)
        if again != tree:
            raise AssertionError(f"{style} text reads differently: {show(tree, style)}")
    return "accepted"


def main() -> int:
    """Run the fuzzing and print its figures; 1 if anything went wrong."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--count", type=int, default=2000)
    options.add_argument("--seed", type=int, default=0)
    chosen = options.parse_args()
    rng = random.Random(chosen.seed)
    counts: Counter[tuple[str, str]] = Counter()
    slowest, slowest_text = 0.0, ""
    began = time.perf_counter()
    for number in range(chosen.count):
        kind = KINDS[number % len(KINDS)]
        text = kind(rng)
        start = time.perf_counter()
        try:
            result = outcome(text)
        except Exception as error:
            print(f"FAILED on {text!r}\n  {type(error).__name__}: {error}")
            return 1
        seconds = time.perf_counter() - start
        counts[kind.__name__, result] += 1
        if seconds > slowest:
            slowest, slowest_text = seconds, text
    total = time.perf_counter() - began
    memory = peak_megabytes()
    for kind in KINDS:
        accepted, refused = (counts[kind.__name__, word] for word in ("accepted", "refused"))
        print(f"{kind.__name__:12} {accepted:7} accepted {refused:7} refused")
    print(f"{chosen.count} formulas in {total:.1f} s, seed {chosen.seed}, at most {memory:.0f} MB")
    print(f"slowest: {1000 * slowest:.1f} ms (parsed, shown and parsed again): {slowest_text!r}")
    return int(slowest > SLOWEST_ALLOWED or memory > MEMORY_ALLOWED)


if __name__ == "__main__":
    sys.exit(main())
