r"""LaTeX is read as the same tree as the language's own spelling.

The long form, 100,000 rounds and 100,000 mutations: `python tests/claims/test_latex.py 100000`;
with the name of a file behind it, the mutations that were read go there with their readings.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from pathlib import Path
from typing import TextIO

import pytest
from formula_trees import DECLARED, size_and_depth, statements, values
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from latex_spellings import STYLES, Style, spelled

from heedful.claims.language import parse, parse_value, show, tex
from heedful.claims.language.parser import FormulaLimits
from heedful.claims.language.tree import Expression, Field
from heedful.claims.sheet import catalog
from heedful.claims.sheet.claim import ParsedFormula, map_formulas, read_formulas
from heedful.errors import FormulaError

pytestmark = pytest.mark.filterwarnings("ignore:Do not use the `random` module")

WIDE = FormulaLimits(characters=20_000, depth=60)
ROUNDS = 150
CHUNK = 5_000
"""Of the long form, between two lines of its progress."""


def fits(tree: Expression) -> bool:
    size, depth = size_and_depth(tree)
    return size <= 200 and depth <= 20


@settings(deadline=None, max_examples=ROUNDS)
@given(tree=statements(), style=st.sampled_from(STYLES), seed=st.integers(0, 999))
def test_a_statement_in_any_spelling_is_the_same_tree(
    tree: Expression, style: Style, seed: int
) -> None:
    assume(fits(tree))
    assert parse(spelled(tree, style, seed), functions=DECLARED, limits=WIDE) == tree


@settings(deadline=None, max_examples=ROUNDS)
@given(tree=values(), style=st.sampled_from(STYLES), seed=st.integers(0, 999))
def test_a_value_in_any_spelling_is_the_same_tree(
    tree: Expression, style: Style, seed: int
) -> None:
    assume(fits(tree))
    assert parse_value(spelled(tree, style, seed), functions=DECLARED, limits=WIDE) == tree


@pytest.mark.parametrize("style", STYLES)
def test_the_catalog_in_latex_is_the_same_catalog(style: Style) -> None:
    read = 0
    for sheet in catalog():
        for claim in sheet.claims:
            trees: dict[Field, Expression] = {}

            def in_latex(field: Field, text: str, trees: dict[Field, Expression] = trees) -> str:
                assert isinstance(text, ParsedFormula)
                trees[field] = text.tree
                return spelled(text.tree, style, seed=len(trees))

            again, errors = read_formulas(map_formulas(claim, in_latex))
            assert not errors, f"{sheet.name}/{claim.id}: {errors[0]}"

            def compare(field: Field, text: str, trees: dict[Field, Expression] = trees) -> str:
                assert isinstance(text, ParsedFormula)
                assert text.tree == trees[field], text
                return text

            map_formulas(again, compare)
            read += 1
    assert read >= 200


READ = [
    (r"\frac{\exp(k_i^\top q)}{\sum_{j=1}^n \exp(k_j^\top q)}",
     "exp(k_i^T q) / sum(exp(k_j^T q), j)"),
    (r"c \approx \frac12 (v_a + v_b)", "c ~ (1/2) * (v_a + v_b)"),
    (r"\|k_i\| = 1", "norm(k_i) = 1"),
    (r"\lVert k_i \rVert_2^2 = 1", "norm(k_i, 2)^2 = 1"),
    (r"\mu^{\top}_a \mu_b = 0", "mu_a^T mu_b = 0"),
    (r"\mathbb{E}[\alpha_a \mid k_a^\top q > 0] \geq 0.5", "E(alpha_a given k_a^T q > 0) >= 0.5"),
    (r"\text{softmax}\left(\frac{QK^\top}{\sqrt{d}}\right)V = H", "softmax(Q K^T / sqrt(d)) V = H"),
    (r"\Phi_{(t,2i)} = \sin(t)", "phi(t)[2 i + 1] = sin(t)"),
    (r"\langle k_a, q \rangle = \beta", "k_a^T q = beta"),
    (r"k_i \perp k_j \text{ for all } i \neq j", "k_i^T k_j = 0 for all i != j"),
    (r"\alpha_{i \neq j} \approx 0", "alpha_i ~ 0 for all i != j"),
    (r"\alpha_i = 0, \quad \text{for } i \notin \{a, b\}", "alpha_i = 0 for all i not in {a, b}"),
    (r"\sum_{i \in \{a,b\}} \alpha_i = 1", "sum(alpha_i, i in {a, b}) = 1"),
    (r"\sum_{i=1,\, i \neq j}^{n} \alpha_i = 0", "sum(alpha_i, i != j) = 0"),
    (r"\sum_{i=2}^{m} x_i = 0", "sum(x_i, i >= 2 and i <= m) = 0"),
    (r"\begin{pmatrix} 1 & 0 \\ 0 & 1 \end{pmatrix} x = x",
     "rows(concat(1, 0), concat(0, 1)) x = x"),
    (r"\begin{pmatrix} 1 \\ 2 \end{pmatrix} = x", "concat(1, 2) = x"),
    (r"\begin{aligned} x &= y \\ &= z \\ c &\approx d. \end{aligned}", "x = y = z and c ~ d"),
    (r"\hat{c}_a = \vec{c}", "c_hat_a = c"),
    (r"X_{\text{perm}} = PX", "X_perm = P X"),
    (r"P(QK^\top)P^\top = A", "P * (Q K^T) P^T = A"),
    (r"P[AB] = \mathbf{1} b_1", "P * (A B) = one b_1"),
    (r"2 \cdot 10^{-3} = x", "0.002 = x"),
    (r"\max_{i} \alpha_i \le 1", "max(alpha_i, i) <= 1"),
    (r"\sqrt[3]{x} = 1", "x^(1/3) = 1"),
    (r"x_1 = 1 \tag{4} \label{eq:x}", "x_1 = 1"),
    (r"\underbrace{k_a^\top k_a}_{=1} = 1", "k_a^T k_a = 1"),
    (r"\alpha_a \overset{!}{=} 1", "alpha_a = 1"),
    (r"\ln n \ge 0", "ln(n) >= 0"),
    (r"\sin^2(x) + \cos^2(x) = 1", "sin(x)^2 + cos(x)^2 = 1"),
    (r"i \in \{1, \dots, n\}", "i >= 1 and i <= n"),
    (r"10\,000 = x", "10000 = x"),
    (r"x = 1, \text{ for } \beta \gg 0", "beta >> 0 implies x = 1"),
    (r"X_{\text{perm, pos}} = PX", "X_perm_pos = P X"),
    (r"x \text{alphabet} = \beta", "x * alphabet = beta"),
    (r"\sum_{i, j} x_i x_j = 1", "sum(sum(x_i x_j, j), i) = 1"),
    (r"\sum_{i, j = 1}^{n} x_i x_j = 1", "sum(sum(x_i x_j, j where j <= n), i where i <= n) = 1"),
    (r"\sum_{i \neq j} x_i = 1 - x_j", "sum(x_i, i != j) = 1 - x_j"),
    (r"\sum_i \sum_{j \neq i} x_i x_j = 1", "sum(sum(x_i x_j, j != i), i) = 1"),
    (r"\alpha_{1j \neq 3} \approx 0", "alpha_1_j ~ 0 for all j != 3"),
]  # fmt: skip


@pytest.mark.parametrize(("latex", "own"), READ)
def test_latex_means_what_the_language_says(latex: str, own: str) -> None:
    read = parse if any(sign in own for sign in "=<>~") else parse_value
    assert show(read(latex)) == show(read(own))


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("½(v_a + v_b) ≈ c", "(1/2) * (v_a + v_b) ~ c"),
        ("1/2(v_a+v_b) ≈ c", "(1/2) * (v_a + v_b) ~ c"),
        ("Σᵢ αᵢ = 1", "sum(alpha_i, i) = 1"),
        ("Σ_i α_i v_i = c", "sum(alpha_i v_i, i) = c"),
        ("∑_{i=1}^n α_i = 1", "sum(alpha_i, i) = 1"),
        ("sum_{i != a, b} alpha_i <= 0.1", "sum(alpha_i, i != a, b) <= 0.1"),
        ("sum_i(x_i) = 1", "sum(x_i, i) = 1"),
        ("Σ_a = s I", "Sigma_a = s I"),
        ("k_a ⊥ k_b", "k_a^T k_b = 0"),
        ("α_i ≈ 0 for i ∉ {a, b}", "alpha_i ~ 0 for all i not in {a, b}"),
        ("α_a ≥ 0.9.", "alpha_a >= 0.9"),
    ],
)
def test_letters_as_people_type_them(text: str, own: str) -> None:
    assert parse(text) == parse(own)


ASKED = [
    (r"q' = \beta k_a", r"x^\top"),
    (r"\sum_i x_i + y_i = 1", "x_i + y_i"),
    (r"\exp k_i q = 1", r"\exp(x y)"),
    (r"\alpha_{12} = 1", r"_{1, 2}"),
    (r"W_{qk} = \beta", r"\text{qk}"),
    (r"q^{(1)} = \beta", "_{1}"),
    (r"1e-3 = \beta", "10^"),
    (r"x[1] = \beta", "_{[1]}"),
    (r"k_a \sim \mu_a", r"\approx"),
    (r"\sum x_i = 1", r"\operatorname{sum}"),
    (r"a/b c = \beta", "(a / b) * c"),
    (r"\prod_i x_i y = 1", "prod(x_i * y, i)"),
    (r"1\frac12 = \beta", r"\cdot"),
    (r"\exp{x + y} = 1", r"\exp(x + y)"),
    (r"\exp{x} y = 1", r"\exp(x y)"),
    (r"perm = \beta", r"\mathrm{perm}"),
    (r"0{,}5 = \beta", "decimal point"),
    (r"\sum_{i \neq j} x_i x_j = 0", r"\text{ where }"),
    (r"\sum_{1 \le i < j \le n} x_i = 0", r"\text{ where }"),
]


@pytest.mark.parametrize(("latex", "way"), ASKED)
def test_what_has_two_readings_is_asked_about(latex: str, way: str) -> None:
    with pytest.raises(FormulaError, match="two ways") as asked:
        parse(latex)
    assert way in asked.value.hint


REFUSED = [
    (r"x \le T_1 \text{for all t} \le y", 11, "not part of a formula"),
    (r"x \le T_1 \;\text{fo1}", 13, "not part of a formula"),
    (r"{}_{[1]} = \beta", 3, "nothing stands before"),
    (r"\input{secret}", 1, "never run"),
    (r"x = \write18{ls}", 5, "never run"),
    (r"\def\x{1} \x = 1", 1, "never run"),
    (r"\alpha_i \geq \foo", 15, "not known"),
    (r"\mathbf{x} = x", 14, "two things"),
    (r"\frac{1}{} = x", 9, "empty"),
    (r"\left( x \right] = 1", 16, "closed by"),
    (r"x \in \mathbb{R}^d", 7, "vector d"),
    (r"${x + y}^2 = 1$", 9, "round brackets"),
    (r"\begin{tikzpicture} x \end{tikzpicture}", 1, "environment"),
    (r"\text{clearly } x = 1", 1, "outside the formula"),
    (r"\sum_{i=0}^{n-1} \alpha_i = 1", 7, "counted from 1"),
    (r"x = $1$ + 2", 5, "second piece"),
    (r"\operatorname{softmaxx}(x) = 1", 1, "did you mean softmax?"),
    (r"\exp(. 5) = \beta", 6, "a point"),
    (r"\operatorname{foo} x = 1", 1, "not a function"),
    (r"0.00\mathbf2 = x", 5, "of a number"),
    (r"x = \text\top", 5, "no argument"),
    (r"k_a^{&T} = \beta", 6, "& inside braces"),
]


@pytest.mark.parametrize(("latex", "column", "says"), REFUSED)
def test_what_cannot_be_read_is_refused_at_its_place(latex: str, column: int, says: str) -> None:
    with pytest.raises(FormulaError) as refused:
        parse(latex)
    assert refused.value.column == column
    assert says in str(refused.value)


PIECES = [
    r"\frac", r"\top", "{", "}", "^", "_", "(", ")", "[", "]", r"\left(", r"\right)", r"\|", "|",
    r"\sum_{i}", r"\alpha", "k_a", "x", "2", "+", "-", "=", r"\approx", r"\neq", ",", r"\\", "&",
    r"\text{for all }", r"\exp", r"\,", "i", "T", r"\mathbf", r"\hat", "'", ".", r"\in",
    r"\{", r"\}",
]  # fmt: skip


def mutated(text: str, chance: random.Random) -> str:
    """Return a text with a few pieces deleted, doubled, swapped or put in."""
    for _ in range(chance.randint(1, 3)):
        at, other = sorted(chance.randrange(len(text) + 1) for _ in range(2))
        match chance.randrange(4):
            case 0:
                text = text[:at] + text[at + chance.randint(1, 4) :]
            case 1:
                text = text[:at] + chance.choice(PIECES) + text[at:]
            case 2:
                text = text[:at] + text[at:other] + text[at:]
            case _:
                text = text[:at] + text[other:] + text[at:other]
    return text


def check_mutation(text: str) -> str:
    """Return whether a text is read or refused; what is read is echoed in one reading."""
    try:
        tree = parse(text, functions=DECLARED, limits=WIDE)
    except FormulaError as error:
        inside = error.column is not None and 1 <= error.column <= len(text) + 1
        return "refused" if inside else "refused nowhere"
    assert parse(f"${tex(tree)}$", functions=DECLARED, limits=WIDE) == tree
    assert parse(show(tree), functions=DECLARED, limits=WIDE) == tree
    return "read"


@settings(deadline=None, max_examples=ROUNDS)
@given(tree=statements(2), style=st.sampled_from(STYLES), seed=st.integers(0, 9999))
def test_mutated_latex_is_refused_or_echoed_in_one_reading(
    tree: Expression, style: Style, seed: int
) -> None:
    assume(fits(tree))
    text = mutated(spelled(tree, style, seed), random.Random(seed))
    assert check_mutation(text) in ("read", "refused")


def long_form(rounds: int, sample: TextIO | None = None) -> None:
    """Run the properties of this file as often as asked; accepted mutations go to `sample`."""
    seen: set[str] = set()
    counts: Counter[str] = Counter()
    quiet = settings(
        deadline=None,
        max_examples=min(rounds, CHUNK),
        database=None,
        suppress_health_check=list(HealthCheck),
        derandomize=False,
    )

    @quiet
    @given(tree=st.one_of(statements(), values()), seed=st.integers(0, 10**6))
    def rounds_of_spelling(tree: Expression, seed: int) -> None:
        assume(fits(tree))
        style = STYLES[seed % 3]
        counts[style] += 1
        text = spelled(tree, style, seed)
        try:
            again = parse(text, functions=DECLARED, limits=WIDE)
        except FormulaError as refused:
            if "is a value" not in str(refused):
                raise AssertionError(text) from refused
            again = parse_value(text, functions=DECLARED, limits=WIDE)
        assert again == tree, text

    @quiet
    @given(tree=statements(2), seed=st.integers(0, 10**6))
    def rounds_of_mutation(tree: Expression, seed: int) -> None:
        assume(fits(tree))
        text = mutated(spelled(tree, STYLES[seed % 3], seed), random.Random(seed))
        found = check_mutation(text)
        counts[found] += 1
        if found == "read" and sample is not None and text not in seen:
            seen.add(text)
            echoed = show(parse(text, functions=DECLARED, limits=WIDE))
            print(f"{text}\n    {echoed}", file=sample)

    while sum(counts[style] for style in STYLES) < rounds:
        rounds_of_spelling()
        print(dict(counts), flush=True)
    while counts["read"] + counts["refused"] < rounds:
        rounds_of_mutation()
        print(dict(counts), flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        with Path(sys.argv[2]).open("w", encoding="utf-8") as accepted:
            long_form(int(sys.argv[1]), accepted)
    else:
        long_form(int(sys.argv[1]))
