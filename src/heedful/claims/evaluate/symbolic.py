"""Proofs by SymPy: equations between formulas whose arrays are letters, not numbers.

The tree is evaluated with a SymPy symbol for every entry of every arbitrary array, for each
size the claim declares. If the two sides differ by exactly zero, the equation is proved for
every choice of those entries. SymPy never sees text: its expressions are built from our own
tree, node by node.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from types import ModuleType
from typing import TYPE_CHECKING, Any

import sympy

from heedful.claims.compile import Array, CompiledClaim, Interval, Values, size_of
from heedful.claims.evaluate import Setting, TreeEvaluator
from heedful.claims.functions import FUNCTIONS, NotSymbolic
from heedful.claims.language.tree import (
    Binary,
    Call,
    Compare,
    Entry,
    Expression,
    ForAll,
    Logic,
    Name,
    Number,
    Unary,
    walk,
)
from heedful.claims.verdict import Evidence
from heedful.errors import FormulaError

if TYPE_CHECKING:
    from heedful.claims.search import Case

MOST_ENTRIES = 40
"""Letters beyond which simplification would take too long."""
MOST_OPERATIONS = 200
"""Operations of a number that is compared with 0."""
KINDS = ("vector", "matrix")


def prove_symbolically(
    problem: CompiledClaim, cases: Sequence[Case], deadline: float
) -> Evidence | None:
    """Prove equations between arbitrary arrays, size by size; None if that is not possible."""
    if problem.noisy or problem.large or problem.small or problem.given is not None:
        return None
    sizes = _sizes(problem, cases)
    if sizes is None:
        return None
    for size in sizes:
        if time.thread_time() > deadline - 1:
            return None
        try:
            letters = letters_for(problem, size)
            if not all(letters.holds(tree) for tree in problem.expectations):
                return None
        except _OUTSIDE:
            return None
    shown = "; ".join(", ".join(f"{k}={v:g}" for k, v in size.items()) for size in sizes) or "all"
    return Evidence(
        method="algebra",
        statement=f"Both sides are the same expression in their letters ({shown}).",
        steps=(
            "write every entry of every array as a letter",
            "expand both sides and subtract: nothing is left",
        ),
    )


def equal_at(problem: CompiledClaim, case: Case, relation: Compare) -> bool:
    """Tell whether both sides of a comparison are surely equal in one case, as ln(3) and −ln(1/3).

    Only two numbers of few operations are compared: SymPy takes long over more of them.
    """
    try:
        letters = letters_for(problem, case.scalars, numbers=case)
        apart = letters.value(relation.left) - letters.value(relation.right)
        if not isinstance(apart, sympy.Expr | int) or sympy.count_ops(apart) > MOST_OPERATIONS:
            return False
        # No simplify: its polynomials in e of degree 100,000 end the process.
        return _is_zero(apart) or _is_zero(sympy.expand_log(apart, factor=True))
    except (*_OUTSIDE, KeyError):
        return False


def _sizes(problem: CompiledClaim, cases: Sequence[Case]) -> list[dict[str, float]] | None:
    """Return the distinct choices of listed scalars, or None when there are intervals of sizes."""
    listed = {name for name, domain in problem.domains.items() if isinstance(domain, Values)}
    if any(isinstance(domain, Interval) and domain.integer for domain in problem.domains.values()):
        return None
    found: dict[tuple[Any, ...], dict[str, float]] = {}
    for case in cases:
        chosen = {name: value for name, value in case.scalars.items() if name in listed}
        found.setdefault(tuple(sorted(chosen.items())), chosen)
    return list(found.values())


@dataclass(frozen=True)
class LetterWorld(Setting[Any]):
    """One choice of sizes, with a letter for everything that is not chosen."""

    scale: Any = 1
    """What multiplies k·q."""


class Letters(TreeEvaluator[Any]):
    """Writes formulas as SymPy expressions and matrices."""

    world: LetterWorld
    sympy: ModuleType = sympy
    """For the meanings of functions, which must not import SymPy themselves."""

    def __init__(self, world: LetterWorld) -> None:
        self.world = world

    def holds(self, node: Expression) -> bool:
        """Tell whether an equation is an identity."""
        match node:
            case Logic("and", left, right):
                return self.holds(left) and self.holds(right)
            case ForAll(indices, condition, body):
                if condition is not None and not _plain_condition(condition):
                    raise NotSymbolic("a condition on more than indices")
                return all(inner.holds(body) for inner, _ in self.cases(indices, condition, body))
            case Compare("=", left, right):
                return _zero(self.value(left) - self.like(left, right))
        raise NotSymbolic("a statement that is no equation")

    def like(self, left: Expression, right: Expression) -> Any:
        """Return the right side in the shape of the left one."""
        first, second = self.value(left), self.value(right)
        if isinstance(first, sympy.MatrixBase) and not isinstance(second, sympy.MatrixBase):
            return sympy.ones(*first.shape) * second
        if isinstance(second, sympy.MatrixBase) and not isinstance(first, sympy.MatrixBase):
            return second[0, 0] if second.shape == (1, 1) else second
        return second

    def value(self, node: Expression) -> Any:
        """Return the SymPy expression of a value."""
        match node:
            case Number(value):
                return _rational(value)
            case Name(text):
                return self.name(text)
            case Entry():
                return self.entry(node, "an entry")
            case Unary("-", operand):
                return -self.value(operand)
            case Unary("T", operand):
                inner = self.value(operand)
                return inner.T if isinstance(inner, sympy.MatrixBase) else inner
            case Binary(operator, left, right):
                return self._binary(operator, self.value(left), self.value(right))
            case Call(function, _, None) if function in FUNCTIONS:
                return self._call(node)
        raise NotSymbolic("a statement where a value was expected")

    def apply(self, name: str, *arguments: Any) -> Any:
        """Apply a function of the language to arguments that have been written in letters."""
        function = FUNCTIONS[name]
        return function.in_letters(self if function.in_world else sympy, *arguments)

    def _call(self, node: Call) -> Any:
        function = FUNCTIONS[node.function]
        if function.kind == "statistic":
            return function.in_letters(sympy, node)
        if function.kind != "binder":
            return self.apply(node.function, *self.arguments(function, node))
        parts = self.parts(node)
        if len(node.arguments) == 1 and isinstance(parts[0], sympy.MatrixBase):
            parts = list(parts[0])
        if not parts:
            raise NotSymbolic("a fold over nothing")
        return function.in_letters(sympy, parts)

    def _binary(self, operator: str, left: Any, right: Any) -> Any:
        matrices = isinstance(left, sympy.MatrixBase), isinstance(right, sympy.MatrixBase)
        if operator in "+-" and matrices == (True, False):
            right = sympy.ones(*left.shape) * right
        if operator in "+-" and matrices == (False, True):
            left = sympy.ones(*right.shape) * left
        try:
            if operator == "+":
                return left + right
            if operator == "-":
                return left - right
            if operator == "*":
                if all(matrices) and left.shape[1] != right.shape[0] and left.shape == right.shape:
                    left = left.T  # two vectors: their inner product
                made = left * right
                return made[0, 0] if all(matrices) and made.shape == (1, 1) else made
            if operator == "/":
                return left / right
        except (sympy.ShapeError, ZeroDivisionError, TypeError):
            raise NotSymbolic("shapes that do not fit") from None
        if matrices != (False, False):
            raise NotSymbolic("a power of a matrix")
        return left**right

    def constant(self, text: str) -> Any:
        """Return pi or e."""
        return {"pi": sympy.pi, "e": sympy.E}.get(text)

    def whole_number(self, number: int) -> Any:
        """Return a whole number."""
        return sympy.Integer(number)

    def as_whole(self, value: Any, what: str) -> int:
        """Return an expression as the whole number it is."""
        if not value.is_Integer:
            raise NotSymbolic(f"{what} that is a letter")
        return int(value)

    def size(self, value: Any) -> int | None:
        """Return how many members a vector or matrix has."""
        return int(value.shape[0]) if isinstance(value, sympy.MatrixBase) else None

    def limit(self, node: Expression) -> float | None:
        """Return None: positions are not run over in letters."""
        return None

    def meets(self, condition: Expression) -> bool:
        """Tell whether bound indices meet a condition on them and on numbers."""
        match condition:
            case Logic("and", left, right):
                return self.meets(left) and self.meets(right)
            case Logic("or", left, right):
                return self.meets(left) or self.meets(right)
            case Compare("!=", Name(first), Name(second)):
                return self.world.indices.get(first) != self.world.indices.get(second)
            case Compare("<" | "<=" | ">" | ">=" as operator, left, right):
                x, y = self.value(left), self.value(right)
                if x.is_Rational and y.is_Rational:
                    return bool({"<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y}[operator])
        raise NotSymbolic("a condition of another kind")

    def member(self, family: Any, position: int, text: str) -> Any:
        """Return one entry of a vector or row of a matrix."""
        if not isinstance(family, sympy.MatrixBase) or not 0 <= position < family.shape[0]:
            raise NotSymbolic("a member that does not exist")
        return family[position, 0] if family.shape[1] == 1 else family[position, :].T


def letters_for(
    problem: CompiledClaim,
    size: Mapping[str, float],
    most: int = MOST_ENTRIES,
    numbers: Case | None = None,
) -> Letters:
    """Return the evaluator of a claim for one choice of its sizes, with at most so many letters.

    With numbers, the entries of that case stand in the place of the letters, exactly.
    """
    sizes = problem.sizes(size)
    symbols: dict[str, Any] = {name: _rational(value) for name, value in size.items()}
    count = 0
    if "d" in sizes:
        symbols.setdefault("d", sympy.Integer(sizes["d"]))
        symbols.setdefault("I", sympy.eye(sizes["d"]))
    for name, domain in problem.domains.items():
        if isinstance(domain, Interval):
            above = domain.low > 0 or (domain.low == 0 and domain.open_low)
            symbols[name] = (
                sympy.Symbol(name, real=True, positive=above or None)
                if numbers is None
                else _rational(numbers.exact.get(name, numbers.scalars[name]))
            )
            count += 1
        elif isinstance(domain, Array):
            if domain.kind not in KINDS and numbers is None:
                raise NotSymbolic(f"a {domain.kind} in letters")
            shape = tuple(size_of(part, sizes) for part in domain.shape)
            symbols[name] = _letters(name, shape, numbers)
            count += len(symbols[name])
    indices = problem.indices
    world = LetterWorld(symbols=symbols, indices=indices)
    if problem.claim.keys is not None:
        world = _with_keys(problem, world, sizes, numbers)
        keys = world.families["k"]
        count += 0 if problem.claim.keys == "orthonormal" else keys.shape[0] * keys.shape[1]
    if count > most or problem.sequence:
        raise NotSymbolic("too many letters, or a sequence")
    if problem.heads:
        world = _with_heads(problem, world)
    for name, tree in problem.definitions.items():
        world = replace(world, symbols={**world.symbols, name: Letters(world).value(tree)})
    return Letters(world)


def _with_keys(
    problem: CompiledClaim, world: LetterWorld, sizes: Mapping[str, int], numbers: Case | None
) -> LetterWorld:
    letters = Letters(world)

    def stacked(rows: Sequence[Expression]) -> Any:
        return sympy.Matrix.vstack(*[letters.value(row).T for row in rows])

    kind = problem.claim.keys
    if problem.key_rows:
        keys = stacked(problem.key_rows)
    elif kind == "orthonormal":
        keys = sympy.Matrix(sizes["n"], sizes["d"], lambda i, j: sympy.Integer(int(i == j)))
    elif kind == "any" or (kind == "unit" and numbers is not None):
        keys = _letters("k", (sizes["n"], sizes["d"]), numbers)
    else:
        raise NotSymbolic(f"{kind} keys")
    if problem.value_rows:
        values = stacked(problem.value_rows)
    else:
        values = keys if problem.claim.values == "keys" else sympy.eye(keys.shape[0])
    scale = (
        1 / sympy.sqrt(keys.shape[1])
        if problem.claim.scale == "sqrt_d"
        else _rational(float(problem.claim.scale))
    )
    return replace(world, families={"k": keys, "v": values}, scale=scale)


def _with_heads(problem: CompiledClaim, world: LetterWorld) -> LetterWorld:
    letters = Letters(world)
    symbols, weights = dict(world.symbols), []
    for place, tree in enumerate(problem.heads, start=1):
        query = letters.value(tree)
        weights.append(letters.apply("weights", query))
        symbols[f"q_{place}"] = query
        symbols[f"c_{place}"] = world.families["v"].T * weights[-1]
    symbols["q"] = symbols["q_1"]
    alpha = sum(weights[1:], weights[0]) / len(weights)
    symbols["c"] = world.families["v"].T * alpha
    return replace(world, symbols=symbols, families={**world.families, "alpha": alpha})


def _letters(name: str, shape: tuple[int, ...], numbers: Case | None = None) -> Any:
    rows, columns = shape[0], shape[1] if len(shape) == 2 else 1
    if numbers is not None:
        return sympy.Matrix(rows, columns, [_rational(x) for x in numbers.arrays[name].flat])
    return sympy.Matrix(
        rows, columns, lambda i, j: sympy.Symbol(f"{name}[{i + 1},{j + 1}]", real=True)
    )


def _rational(value: float | Fraction) -> Any:
    fraction = value if isinstance(value, Fraction) else Fraction(repr(float(value)))
    return sympy.Rational(fraction.numerator, fraction.denominator)


def _plain_condition(condition: Expression) -> bool:
    return all(isinstance(node, Logic | Compare | Name) for node in walk(condition))


def _zero(difference: Any) -> bool:
    """Tell whether an expression is identically zero."""
    entries = list(difference) if isinstance(difference, sympy.MatrixBase) else [difference]
    return all(_is_zero(entry) for entry in entries)


def _is_zero(entry: Any) -> bool:
    if entry == 0:
        return True
    plain = sympy.expand(sympy.expand_power_exp(sympy.together(entry)))
    if plain == 0:
        return True
    if sympy.expand(sympy.expand_trig(plain)) == 0:
        return True
    if plain.has(sympy.sin, sympy.cos) and sympy.expand(plain.rewrite(sympy.exp)) == 0:
        return True
    # Exponentials become letters, so that cancelling is a matter of polynomials.
    top = sympy.numer(sympy.together(entry))
    return bool(sympy.expand(sympy.expand_power_exp(sympy.expand(top))) == 0)


_OUTSIDE = (
    NotSymbolic,
    FormulaError,
    sympy.ShapeError,
    TypeError,
    AttributeError,
    ValueError,
    NotImplementedError,
    ArithmeticError,
    RecursionError,
)
"""What a formula outside of letters ends in; SymPy refuses in several ways."""
