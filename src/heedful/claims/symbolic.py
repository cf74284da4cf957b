"""Proofs by SymPy: equations between formulas whose arrays are letters, not numbers.

The tree is evaluated with a SymPy symbol for every entry of every arbitrary array, for each
size the claim declares. If the two sides differ by exactly zero, the equation is proved for
every choice of those entries. SymPy never sees text: its expressions are built from our own
tree, node by node.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import sympy

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
    names_in,
    walk,
)
from heedful.claims.problem import Problem
from heedful.claims.symbols import Array, Interval, Values, size_of
from heedful.claims.verdict import Evidence

if TYPE_CHECKING:
    from heedful.claims.search import Case

MOST_ENTRIES = 40
"""Letters beyond which simplification would take too long."""
KINDS = ("vector", "matrix")


class _Unable(Exception):  # noqa: N818
    """The formula is outside what is built here."""


def prove_symbolically(problem: Problem, cases: Sequence[Case], deadline: float) -> Evidence | None:
    """Prove equations between arbitrary arrays, size by size; None if that is not possible."""
    if problem.noisy or problem.large or problem.small or problem.given is not None:
        return None
    sizes = _sizes(problem, cases)
    if sizes is None:
        return None
    for size in sizes:
        if time.perf_counter() > deadline - 1:
            return None
        try:
            builder = _Builder(problem, size)
            if not all(builder.holds(tree) for tree in problem.expectations):
                return None
        except (_Unable, sympy.ShapeError, TypeError, AttributeError, ZeroDivisionError):
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


def _sizes(problem: Problem, cases: Sequence[Case]) -> list[dict[str, float]] | None:
    """Return the distinct choices of listed scalars, or None when there are intervals of sizes."""
    listed = {name for name, domain in problem.domains.items() if isinstance(domain, Values)}
    if any(isinstance(domain, Interval) and domain.integer for domain in problem.domains.values()):
        return None
    found: dict[tuple[Any, ...], dict[str, float]] = {}
    for case in cases:
        chosen = {name: value for name, value in case.scalars.items() if name in listed}
        found.setdefault(tuple(sorted(chosen.items())), chosen)
    return list(found.values())


class _Builder:
    """Builds SymPy expressions from our trees, for one choice of sizes."""

    def __init__(self, problem: Problem, size: Mapping[str, float]) -> None:
        self.names: dict[str, Any] = {}
        self.families: dict[str, Any] = {}
        self.indices = {name: place for place, name in enumerate(problem.members)}
        self.scale = sympy.Integer(1)
        sizes = problem.sizes(size)
        letters = 0
        for name, value in size.items():
            self.names[name] = _rational(value)
        if "d" in sizes:
            self.names.setdefault("d", sympy.Integer(sizes["d"]))
            self.names.setdefault("I", sympy.eye(sizes["d"]))
        for name, domain in problem.domains.items():
            if isinstance(domain, Interval):
                above = domain.low > 0 or (domain.low == 0 and domain.open_low)
                self.names[name] = sympy.Symbol(name, real=True, positive=above or None)
                letters += 1
            elif isinstance(domain, Array):
                if domain.kind not in KINDS:
                    raise _Unable
                shape = tuple(size_of(part, sizes) for part in domain.shape)
                self.names[name] = _letters(name, shape)
                letters += len(self.names[name])
        if problem.claim.keys is not None:
            letters += self._keys(problem, sizes)
        if letters > MOST_ENTRIES or problem.sequence:
            raise _Unable
        self._heads(problem)
        for name, tree in problem.definitions.items():
            self.names[name] = self.value(tree)

    def holds(self, node: Expression) -> bool:
        """Tell whether an equation is an identity."""
        match node:
            case Logic("and", left, right):
                return self.holds(left) and self.holds(right)
            case ForAll(indices, condition, body):
                if condition is not None and not _plain_condition(condition):
                    raise _Unable
                return all(self._case(indices, condition, body))
            case Compare("=", left, right):
                return _zero(self.value(left) - self._like(left, right))
        raise _Unable

    def _like(self, left: Expression, right: Expression) -> Any:
        first, second = self.value(left), self.value(right)
        if isinstance(first, sympy.MatrixBase) and not isinstance(second, sympy.MatrixBase):
            return sympy.ones(*first.shape) * second
        if isinstance(second, sympy.MatrixBase) and not isinstance(first, sympy.MatrixBase):
            return second[0, 0] if second.shape == (1, 1) else second
        return second

    def _case(
        self, indices: tuple[str, ...], condition: Expression | None, body: Expression
    ) -> list[bool]:
        if len(indices) > 2:
            raise _Unable
        counts = [self._count(index, body) for index in indices]
        results = []
        for place in range(counts[0]):
            for other in range(counts[1] if len(indices) == 2 else 1):
                self.indices[indices[0]] = place
                if len(indices) == 2:
                    self.indices[indices[1]] = other
                if condition is None or self._meets(condition):
                    results.append(self.holds(body))
        return results

    def _meets(self, condition: Expression) -> bool:
        match condition:
            case Logic("and", left, right):
                return self._meets(left) and self._meets(right)
            case Compare("!=", Name(first), Name(second)):
                return self.indices.get(first) != self.indices.get(second)
        raise _Unable

    def _count(self, index: str, body: Expression) -> int:
        for name in names_in(body):
            base, _, member = name.rpartition("_")
            if member == index:
                family = self.families.get(base, self.names.get(base))
                if family is not None:
                    return int(family.shape[0])
        raise _Unable

    def _keys(self, problem: Problem, sizes: Mapping[str, int]) -> int:
        kind = problem.claim.keys
        if problem.key_rows:
            rows = [self.value(row).T for row in problem.key_rows]
            self.families["k"] = sympy.Matrix.vstack(*rows)
        elif kind == "orthonormal":
            self.families["k"] = sympy.Matrix(
                sizes["n"], sizes["d"], lambda i, j: sympy.Integer(int(i == j))
            )
        elif kind == "any":
            self.families["k"] = _letters("k", (sizes["n"], sizes["d"]))
        else:
            raise _Unable
        keys = self.families["k"]
        if problem.claim.scale == "sqrt_d":
            self.scale = 1 / sympy.sqrt(keys.shape[1])
        else:
            self.scale = _rational(float(problem.claim.scale))
        if problem.value_rows:
            self.families["v"] = sympy.Matrix.vstack(
                *[self.value(row).T for row in problem.value_rows]
            )
        else:
            self.families["v"] = (
                keys if problem.claim.values == "keys" else sympy.eye(keys.shape[0])
            )
        return 0 if kind == "orthonormal" else int(keys.shape[0] * keys.shape[1])

    def _heads(self, problem: Problem) -> None:
        if not problem.heads:
            return
        weights = []
        for place, tree in enumerate(problem.heads, start=1):
            query = self.value(tree)
            self.names[f"q_{place}"] = query
            weights.append(self._weights(query, self.families["k"]))
            self.names[f"c_{place}"] = self.families["v"].T * weights[-1]
        self.names["q"] = self.names["q_1"]
        alpha = sum(weights[1:], weights[0]) / len(weights)
        self.families["alpha"] = alpha
        self.names["c"] = self.families["v"].T * alpha

    def _weights(self, query: Any, keys: Any) -> Any:
        return _softmax((keys * query) * self.scale)

    def value(self, node: Expression) -> Any:
        """Return the SymPy expression of a value."""
        match node:
            case Number(value):
                return _rational(value)
            case Name(text):
                return self._name(text)
            case Entry(base, indices):
                return self._entry(base, indices)
            case Unary("-", operand):
                return -self.value(operand)
            case Unary("T", operand):
                inner = self.value(operand)
                return inner.T if isinstance(inner, sympy.MatrixBase) else inner
            case Binary(operator, left, right):
                return self._binary(operator, self.value(left), self.value(right))
            case Call(function, arguments, None):
                return self._call(function, arguments)
        raise _Unable

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
            raise _Unable from None
        if matrices != (False, False):
            raise _Unable
        return left**right

    def _name(self, text: str) -> Any:
        if text in self.names:
            return self.names[text]
        if text in self.families:
            return self.families[text]
        if text in ("pi", "e"):
            return {"pi": sympy.pi, "e": sympy.E}[text]
        base, _, member = text.rpartition("_")
        family = self.families.get(base, self.names.get(base))
        if family is None:
            raise _Unable
        place = int(member) - 1 if member.isdigit() else self.indices.get(member)
        return self._member(family, place)

    def _member(self, family: Any, place: int | None) -> Any:
        if place is None or not isinstance(family, sympy.MatrixBase) or place >= family.shape[0]:
            raise _Unable
        return family[place, 0] if family.shape[1] == 1 else family[place, :].T

    def _entry(self, base: Expression, indices: tuple[Expression, ...]) -> Any:
        made = self.value(base)
        for index in indices:
            if isinstance(index, Name) and index.text in self.indices:
                made = self._member(made, self.indices[index.text])
            elif isinstance(index, Number):
                made = self._member(made, int(index.value) - 1)
            else:
                raise _Unable
        return made

    def _call(self, name: str, arguments: tuple[Expression, ...]) -> Any:
        if name == "sum" and len(arguments) == 2:
            return self._sum(arguments)
        values = [self.value(argument) for argument in arguments]
        if name in ("softmax", "softmax_rows"):
            return _softmax(values[0])
        if name in ("weights", "attention"):
            alpha = self._weights(values[0], values[1] if len(values) > 1 else self.families["k"])
            if name == "weights":
                return alpha
            return (values[2] if len(values) > 2 else self.families["v"]).T * alpha
        if name in _SCALAR and not isinstance(values[0], sympy.MatrixBase):
            return _SCALAR[name](values[0])
        if name == "sum" and isinstance(values[0], sympy.MatrixBase):
            return sum(values[0])
        if name == "ones":
            return sympy.ones(int(values[0]), int(values[1]) if len(values) > 1 else 1)
        if name == "eye":
            return sympy.eye(int(values[0]))
        if name == "norm" and len(values) == 1:
            return sympy.sqrt(sum(entry**2 for entry in values[0]))
        if name == "dot":
            return (values[0].T * values[1])[0, 0]
        if name == "outer":
            return values[0] * values[1].T
        if name == "concat":
            return sympy.Matrix(values)
        raise _Unable

    def _sum(self, arguments: tuple[Expression, ...]) -> Any:
        body, bound = arguments
        index = next((part.text for part in walk(bound) if isinstance(part, Name)), "")
        total: Any = None
        before = self.indices.get(index)
        for place in range(self._count(index, body)):
            self.indices[index] = place
            if not isinstance(bound, Name) and not self._meets(bound):
                continue
            part = self.value(body)
            total = part if total is None else total + part
        if before is None:
            self.indices.pop(index, None)
        else:
            self.indices[index] = before
        if total is None:
            raise _Unable
        return total


def _softmax(logits: Any) -> Any:
    rows, columns = logits.shape
    if columns == 1:
        powers = [sympy.exp(entry) for entry in logits]
        return sympy.Matrix(powers) / sum(powers)
    made = sympy.zeros(rows, columns)
    for row in range(rows):
        powers = [sympy.exp(entry) for entry in logits[row, :]]
        made[row, :] = sympy.Matrix([powers]) / sum(powers)
    return made


def _letters(name: str, shape: tuple[int, ...]) -> Any:
    rows, columns = shape[0], shape[1] if len(shape) == 2 else 1
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
    # Exponentials become letters, so that cancelling is a matter of polynomials.
    top = sympy.numer(sympy.together(entry))
    return bool(sympy.expand(sympy.expand_power_exp(sympy.expand(top))) == 0)


_SCALAR = {
    "exp": sympy.exp,
    "ln": sympy.log,
    "log": sympy.log,
    "sqrt": sympy.sqrt,
    "sin": sympy.sin,
    "cos": sympy.cos,
    "tanh": sympy.tanh,
}
