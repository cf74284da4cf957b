"""What a statement says in one case: docs/reference/semantics.md, word by word.

Slow and obvious on purpose: no rewriting, no caching, no shortcuts. The judge never uses it; the
adversary attacks with it what the judge said.

A statement is True, False, None where the balls are too wide to tell, or UNDEFINED, which is a
value of its own and never true.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Final, Literal, TypeAlias

import numpy as np
from flint import arb
from scipy.optimize import linprog

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
    bound_names,
    names_in,
    walk,
)
from heedful.errors import FormulaError
from reference.numbers import (
    Scalar,
    UndefinedError,
    UnknownError,
    ball,
    equal,
    largest,
    less,
    negative,
    normal_distribution,
    over,
    plus,
    power,
    square_root,
    times,
    total,
    whole,
)
from reference.values import (
    ENTRYWISE,
    FUNCTIONS,
    NOTHING,
    Value,
    add,
    column,
    identity,
    inner,
    inverse,
    matrix,
    multiply,
    nonnegative,
    phi,
    rotate,
    rowwise,
    scalar,
    size,
    softmax,
    subtract,
    transpose,
    unit,
    vector,
)

Truth: TypeAlias = bool | Literal["undefined"] | None
UNDEFINED: Final = "undefined"
REACH = 40
"""Standard deviations to which the line is cut into pieces; the mass beyond is below 1e-349."""
PIECES = 600
"""Pieces at most; what is then still too wide makes the enclosure wide, never wrong."""


@dataclass(frozen=True)
class Environment:
    """What every name means in one case."""

    names: Mapping[str, Value] = field(default_factory=dict)
    """Symbols, families (k, v, mu, x, q, alpha, c as matrices or vectors) and definitions."""
    members: Mapping[str, int] = field(default_factory=dict)
    """Letters that stand for a member of a family, and bound indices, from 0."""
    functions: Mapping[str, tuple[tuple[str, ...], Expression]] = field(default_factory=dict)
    """Functions that the sheet defines: parameters and body."""
    undefined: frozenset[str] = frozenset()
    """Definitions that have no value in this case."""
    scale: Scalar = Fraction(1)
    width: int = 2
    base: Scalar = Fraction(10000)
    tolerance: Scalar = Fraction(1, 20)
    noise: tuple[Callable[[Sequence[Scalar]], Environment], int] | None = None
    """How to give the noisy coordinates values, and how many there are; None: nothing random."""

    def with_names(self, **values: Value) -> Environment:
        return replace(self, names={**self.names, **values})


def negation(truth: Truth) -> Truth:
    return truth if truth is None or truth == UNDEFINED else not truth


def conjunction(truths: Iterable[Truth]) -> Truth:
    """False if one is false; else undefined, unknown or true, in this order."""
    met = set()
    for truth in truths:
        if truth is False:
            return False
        met.add(truth)
    return next((word for word in (UNDEFINED, None) if word in met), True)


def disjunction(truths: Sequence[Truth]) -> Truth:
    """True if one is true; else unknown, undefined or false, in this order."""
    return next((word for word in (True, None, UNDEFINED) if word in truths), False)


def truth_of(node: Expression, env: Environment) -> Truth:
    """Return whether a statement holds."""
    try:
        match node:
            case Compare():
                return _compare(node, env)
            case Logic("and", left, right):
                return conjunction([truth_of(left, env), truth_of(right, env)])
            case Logic("or", left, right):
                return disjunction([truth_of(left, env), truth_of(right, env)])
            case Logic("implies", left, right):
                return disjunction([negation(truth_of(left, env)), truth_of(right, env)])
            case Unary("not", operand):
                return negation(truth_of(operand, env))
            case ForAll(indices, condition, body):
                return conjunction(
                    truth_of(body, inner)
                    if condition is None
                    else disjunction([negation(_met(condition, inner)), truth_of(body, inner)])
                    for inner in _ranging(indices, condition, body, env)
                )
            case Call("copyable" | "hull", (which,)):
                return outside_hull(value_of(Name("k"), env), _member(which, env))
    except UndefinedError:
        return UNDEFINED
    except UnknownError:
        return None
    raise FormulaError("formula", "is not a statement")


def _compare(node: Compare, env: Environment) -> Truth:
    left, right = value_of(node.left, env), value_of(node.right, env)
    if node.operator in ("=", "!=", "~"):
        difference = subtract(left, right)
        if node.operator == "~":
            within = env.tolerance if node.within is None else value_of(node.within, env).entries
            apart = abs(difference.entries) if difference.kind == "scalar" else size(difference)
            if difference.kind not in ("scalar", "nothing") and not difference.formal:
                apart = over(apart, largest([Fraction(1), size(right)]))
            return negation(less(within, apart))
        same = conjunction([equal(entry, Fraction(0)) for entry in difference.flat])
        return same if node.operator == "=" else negation(same)
    x, y = left.entries if left.kind == "scalar" else None, right.entries
    if left.kind == "nothing":
        x = Fraction(0)
    if right.kind == "nothing":
        y = Fraction(0)
    if x is None or right.kind not in ("scalar", "nothing"):
        raise FormulaError("formula", "compares what are not two scalars")
    match node.operator:
        case "<":
            return less(x, y)
        case ">":
            return less(y, x)
        case "<=":
            return negation(less(y, x))
    return negation(less(x, y))


def value_of(node: Expression, env: Environment) -> Value:
    """Return what an expression comes to; raise UndefinedError or UnknownError."""
    match node:
        case Number(value):
            return scalar(value)
        case Name(text):
            return _name(text, env)
        case Entry(base, indices):
            result = value_of(base, env)
            for index in indices:
                result = _pick(result, _member(index, env))
            return result
        case Unary("-", operand):
            inside = value_of(operand, env)
            return inside if inside.kind == "nothing" else inside.map(negative)
        case Unary("T", operand):
            return transpose(value_of(operand, env))
        case Binary(operator, left, right):
            return _arithmetic(operator, value_of(left, env), value_of(right, env))
        case Call():
            return _call(node, env)
    raise FormulaError("formula", "is a statement where a value was expected")


def _arithmetic(operator: str, x: Value, y: Value) -> Value:
    match operator:
        case "+":
            return add(x, y)
        case "-":
            return subtract(x, y)
        case "*":
            return multiply(x, y)
    x, y = (scalar(Fraction(0)) if part.kind == "nothing" else part for part in (x, y))
    if y.kind != "scalar":
        raise FormulaError("formula", "only a scalar can divide or be an exponent")
    if operator == "/":
        return replace(x.map(lambda entry: over(entry, y.entries)), formal=x.formal)
    if x.kind == "scalar":
        return scalar(power(x.entries, y.entries))
    exponent = whole(y.entries)
    result = matrix(identity(x.shape[0]))
    for _ in range(abs(exponent)):
        result = multiply(result, x)
    return inverse(result) if exponent < 0 else result


def _name(text: str, env: Environment) -> Value:
    constants = {"pi": arb.pi(), "e": arb.const_e(), "infinity": math.inf}
    if text in env.names:
        return env.names[text]
    base, underscore, member = text.rpartition("_")
    if {text, base} & env.undefined:
        raise UndefinedError(text)
    if underscore and base in env.names:
        place = int(member) - 1 if member.isdigit() else env.members.get(member)
        if place is not None:
            return _pick(env.names[base], place)
    if text in constants:
        return scalar(constants[text])
    if text in env.members:  # an index in arithmetic is the number of its member, from 1
        return scalar(Fraction(env.members[text] + 1))
    raise FormulaError("formula", f"the name {text!r} is not known here")


def _pick(x: Value, place: int) -> Value:
    if x.kind in ("scalar", "nothing") or not 0 <= place < len(x.entries):
        raise FormulaError("formula", "a member that does not exist")
    if x.kind == "matrix":
        return Value("vector", x.entries[place], x.formal)
    if x.formal:
        raise FormulaError("formula", "an entry of arbitrary values is not determined")
    return scalar(x.entries[place])


def _member(node: Expression, env: Environment) -> int:
    """Return a member written as a letter or as a number from 1."""
    if isinstance(node, Name) and node.text in env.members:
        return env.members[node.text]
    return whole(value_of(node, env).entries) - 1


def _met(condition: Expression, env: Environment) -> Truth:
    """Return whether a condition on indices holds; letters compare as the members they name."""
    letters = {name: scalar(Fraction(place + 1)) for name, place in env.members.items()}
    return truth_of(condition, replace(env, names={**letters, **env.names}))


def _ranging(
    indices: tuple[str, ...], condition: Expression | None, body: Expression, env: Environment
) -> Iterator[Environment]:
    """Yield an environment for every value of the bound indices, the condition not yet applied."""
    ranges = [_range(index, condition, body, env) for index in indices]
    for combination in itertools.product(*ranges):
        members = {name: place for name, (place, _) in zip(indices, combination, strict=True)}
        numbers = {
            name: scalar(Fraction(n)) for name, (_, n) in zip(indices, combination, strict=True)
        }
        yield replace(env, members={**env.members, **members}, names={**env.names, **numbers})


def _range(
    index: str, condition: Expression | None, body: Expression, env: Environment
) -> list[tuple[int, int]]:
    """Members of the family below which the index stands, from 1; else positions from 0."""
    names = names_in(body) | (names_in(condition) if condition is not None else set())
    for name in sorted(names):
        base, underscore, member = name.rpartition("_")
        if underscore and member == index and base in env.names and env.names[base].shape:
            return [(place, place + 1) for place in range(env.names[base].shape[0])]
    for part in walk(body):
        for axis, own in enumerate(part.indices if isinstance(part, Entry) else ()):
            if own == Name(index):
                count = value_of(part.base, env).shape[axis]
                return [(place, place + 1) for place in range(count)]
    bounds = [
        part
        for part in (walk(condition) if condition is not None else ())
        if isinstance(part, Compare) and part.operator in ("<", "<=")
    ]
    for part in sorted(bounds, key=lambda part: part.left != Name(index)):  # its own bound first
        try:
            bound = value_of(part.right, env).entries
        except FormulaError:
            continue
        last = math.ceil(bound) if part.operator == "<" else math.floor(bound) + 1
        return [(t, t) for t in range(max(0, last))]
    raise FormulaError("formula", f"the index {index!r} has no range")


def _call(node: Call, env: Environment) -> Value:
    name, arguments = node.function, node.arguments
    if name in env.functions:
        parameters, body = env.functions[name]
        values = [value_of(argument, env) for argument in arguments]
        return value_of(body, env.with_names(**dict(zip(parameters, values, strict=True))))
    if name in ("sum", "prod", "max", "min"):
        return _fold(node, env)
    if name in ("E", "P", "var", "std", "cov"):
        return _statistic(node, env)
    if name == "mass":
        alpha = _name("alpha", env)
        return scalar(total([alpha.entries[_member(each, env)] for each in arguments]))
    values = [value_of(argument, env) for argument in arguments]
    if name in ENTRYWISE:
        return values[0].map(ENTRYWISE[name])
    if name in ("weights", "attention"):
        keys = values[1] if len(values) > 1 else _name("k", env)
        scores = [times(env.scale, inner(row, column(values[0]).entries)) for row in keys.entries]
        alpha = vector(softmax(scores))
        if name == "weights":
            return alpha
        return multiply(transpose(values[2] if len(values) > 2 else _name("v", env)), alpha)
    if name == "selfattention":
        return self_attention(values, env.scale)[1]
    if name == "phi":
        width = whole(values[1].entries) if len(values) > 1 else env.width
        return phi(values[0].entries, width, env.base)
    if name == "rotate":
        return rotate(values[0], values[1], env.base)
    if name in FUNCTIONS:
        return FUNCTIONS[name](*values)
    raise UnknownError


def self_attention(values: Sequence[Value], scale: Scalar) -> tuple[Value, Value]:
    """Return weights and outputs of self-attention of X; K, Q and V left out are identities."""
    x = values[0]
    keys, queries, read = (
        multiply(x, transpose(values[place])) if len(values) > place else x for place in (1, 2, 3)
    )
    scores = multiply(multiply(scalar(scale), queries), transpose(keys))
    alpha = rowwise(softmax)(scores)
    return alpha, multiply(alpha, read)


def _fold(node: Call, env: Environment) -> Value:
    """sum, prod, max and min: over an index, over several values, or over the entries of one."""
    bound = bound_names(node)
    if bound:
        body, range_of = node.arguments
        condition = None if isinstance(range_of, Name) else range_of
        parts = []
        for inner_env in _ranging(bound, condition, body, env):
            met: Truth = True if condition is None else _met(condition, inner_env)
            if met is None:
                raise UnknownError
            if met == UNDEFINED:
                raise UndefinedError("the condition of an index")
            if met:
                parts.append(value_of(body, inner_env))
    elif len(node.arguments) == 1:
        parts = [scalar(entry) for entry in value_of(node.arguments[0], env).flat]
    else:
        parts = [value_of(argument, env) for argument in node.arguments]
    match node.function:
        case "sum":
            result = NOTHING
            for part in parts:
                result = add(result, part)
            return result
        case "prod":
            result = scalar(Fraction(1))
            for part in parts:
                result = multiply(result, part)
            return result
    entries = [Fraction(0) if part.kind == "nothing" else part.entries for part in parts]
    if node.function == "max":
        return scalar(largest(entries))
    return scalar(negative(largest([negative(entry) for entry in entries])))


def outside_hull(keys: Value, place: int) -> Truth:
    """Whether a key is outside the convex hull of the others: a direction in which it is ahead.

    A candidate direction comes from floating point; only exact arithmetic accepts it. Being
    inside is shown by exact weights. What neither shows stays unknown.
    """
    rows = keys.entries
    if any(not isinstance(entry, Fraction) for entry in keys.flat):
        raise UnknownError
    apart = [
        [a - b for a, b in zip(rows[place], row, strict=True)]
        for i, row in enumerate(rows)
        if i != place
    ]
    if not apart:
        return True
    floats = np.array([[float(entry) for entry in row] for row in apart])
    d = floats.shape[1]
    ahead = linprog(
        np.r_[np.zeros(d), -1.0],
        A_ub=np.c_[-floats, np.ones(len(floats))],
        b_ub=np.zeros(len(floats)),
        bounds=[(-1, 1)] * d + [(None, 1)],
    )
    if ahead.status == 0:
        direction = [Fraction(float(entry)) for entry in ahead.x[:d]]
        if all(inner(row, direction) > 0 for row in apart):
            return True
    support = list(range(len(apart)))
    for count in range(1, min(len(support), d + 1) + 1):
        for chosen in itertools.combinations(support, count):
            if _balanced([apart[i] for i in chosen]):
                return False
    return None


def _balanced(rows: Sequence[Sequence[Fraction]]) -> bool:
    """Tell whether some weights ≥ 0 that sum to 1 bring these vectors to zero, exactly."""
    size_, d = len(rows), len(rows[0])
    table = [[rows[j][i] for j in range(size_)] + [Fraction(0)] for i in range(d)]
    table.append([Fraction(1)] * (size_ + 1))
    pivots: list[int] = []
    for place in range(size_):
        found = next((r for r in range(len(pivots), len(table)) if table[r][place]), None)
        if found is None:
            return False
        row = len(pivots)
        table[row], table[found] = table[found], table[row]
        table[row] = [entry / table[row][place] for entry in table[row]]
        for r in range(len(table)):
            if r != row and table[r][place]:
                factor = table[r][place]
                table[r] = [a - factor * b for a, b in zip(table[r], table[row], strict=True)]
        pivots.append(place)
    return all(row[-1] == 0 for row in table[size_:]) and all(row[-1] >= 0 for row in table[:size_])


def _statistic(node: Call, env: Environment) -> Value:
    """E, P, var, std and cov by pieces of one standard normal coordinate.

    On each piece the value is enclosed by evaluating it with the coordinate as a ball; its weight
    is Φ(b) − Φ(a). Conditional statistics divide by the probability of their condition.
    """
    if env.noise is None:
        raise FormulaError("formula", f"{node.function} without noise")
    given = node.given
    first = node.arguments[0]

    def indicator(at: Environment) -> Scalar:
        met: Truth = True if given is None else truth_of(given, at)
        if met == UNDEFINED:
            raise UndefinedError("the condition of a statistic")
        return arb(0).union(arb(1)) if met is None else Fraction(int(bool(met)))

    def event(at: Environment) -> Scalar:
        holds = truth_of(first, at)
        if holds == UNDEFINED:
            raise UndefinedError("an event")
        return arb(0).union(arb(1)) if holds is None else Fraction(int(bool(holds)))

    def mean(quantity: Callable[[Environment], Scalar]) -> Scalar:
        inside = _integral(lambda at: _gated(indicator(at), lambda: quantity(at)), env)
        return inside if given is None else over(inside, _integral(indicator, env))

    if node.function == "P":
        return scalar(unit(mean(event)))
    example = value_of(first, _at(env, Fraction(355, 1130)))
    count = len(example.flat)
    means = [mean(lambda at, i=i: value_of(first, at).flat[i]) for i in range(count)]
    if node.function == "E":
        shape = iter(means)
        return example.map(lambda _: next(shape))
    other = node.arguments[1] if node.function == "cov" else first
    others = [mean(lambda at, i=i: value_of(other, at).flat[i]) for i in range(count)]

    def product(at: Environment) -> Scalar:
        x, y = value_of(first, at).flat, value_of(other, at).flat
        return inner(
            [plus(a, negative(m)) for a, m in zip(x, means, strict=True)],
            [plus(b, negative(m)) for b, m in zip(y, others, strict=True)],
        )

    moment = mean(product)
    if node.function == "cov":
        return scalar(moment)
    moment = nonnegative(moment)
    return scalar(square_root(moment) if node.function == "std" else moment)


def _gated(gate: Scalar, quantity: Callable[[], Scalar]) -> Scalar:
    """gate × quantity, where a gate that is certainly 0 leaves the quantity unasked."""
    return Fraction(0) if isinstance(gate, Fraction) and gate == 0 else times(gate, quantity())


def _at(env: Environment, coordinate: Scalar) -> Environment:
    assert env.noise is not None
    set_noise, directions = env.noise
    if directions > 1:
        raise UnknownError
    return set_noise([coordinate][:directions])


def _integral(quantity: Callable[[Environment], Scalar], env: Environment) -> Scalar:
    """E of a quantity over one standard normal coordinate, enclosed by pieces."""
    assert env.noise is not None
    if env.noise[1] == 0:
        return quantity(env.noise[0]([]))
    pieces: list[tuple[float, Fraction, Fraction, arb]] = []

    def measured(a: Fraction, b: Fraction) -> tuple[float, Fraction, Fraction, arb]:
        mass = ball(normal_distribution(b)) - ball(normal_distribution(a))
        if b <= -6 or a >= 6:  # in the tails the difference of two numbers near 1 loses digits
            low, high = sorted((abs(a), abs(b)))
            root = arb(2).sqrt()
            mass = ((ball(low) / root).erfc() - (ball(high) / root).erfc()) / 2
        middle = ball((a + b) / 2)
        try:
            inside = ball(quantity(_at(env, middle + arb(0, ball((b - a) / 2).upper()))))
            part = inside * mass
        except UnknownError:
            part = arb("nan")
        width = float(part.rad()) if part.is_finite() else math.inf
        return (-width, a, b, part)

    edges = [Fraction(edge) for edge in range(-REACH, REACH + 1)]
    pieces = [measured(a, b) for a, b in itertools.pairwise(edges)]
    heapq.heapify(pieces)
    while len(pieces) < PIECES and pieces[0][0] < -1e-12:
        _, a, b, _ = heapq.heappop(pieces)
        middle = (a + b) / 2
        heapq.heappush(pieces, measured(a, middle))
        heapq.heappush(pieces, measured(middle, b))
    whole_line = sum((piece[3] for piece in pieces), arb(0))
    return whole_line + _tail(quantity, env)


def _tail(quantity: Callable[[Environment], Scalar], env: Environment) -> arb:
    """Enclose what lies beyond REACH: the hull over the whole line times the mass out there.

    An unbounded quantity has no such hull; its enclosure is then infinitely wide.
    """
    mass = (arb(REACH) / arb(2).sqrt()).erfc()
    return ball(quantity(_at(env, arb(0, math.inf)))) * mass
