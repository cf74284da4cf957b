"""A claim made ready to be judged: its definitions written out, its symbols given ranges.

What `where` may say of a free symbol; examples of it come simplest first:

    n = 10, n = [2, 3, 10]         one value, or each of several
    beta = "large" / "small"       from some β₀ on / as ε → 0
    r = "[0, 1]", "(0, 10)"        every number of an interval
    m = "2..64", "integer >= 2"    every whole number of a range
    x = "any", "positive"          every (positive) number
    X = "matrix T x d"             also: vector d, unit vector d, permutation T,
                                   distribution n, orthonormal n x d
    z = "normal", "normal vector d"    random, drawn anew in every draw
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from heedful.attention.keys import KEY_FAMILIES
from heedful.claims.functions import FUNCTIONS, STATISTICS
from heedful.claims.language import constant, substitute
from heedful.claims.language.tree import (
    Call,
    Compare,
    Entry,
    Expression,
    ForAll,
    Limit,
    Logic,
    Name,
    Position,
    bound_names,
    children,
    map_children,
    names_in,
    rational,
    walk,
)
from heedful.claims.language.tree import mentions as mentioned
from heedful.claims.sheet.claim import (
    Claim,
    DefinitionHead,
    ParsedFormula,
    field_error,
    nearest,
    read_claim,
)
from heedful.errors import FormulaError

# What a symbol may be ------------------------------------------------------------------------

LARGE = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 1e3, 1e4)
"""Where a claim about a large scale is looked at; it must hold from some point on."""
SMALL = (1e-2, 1e-4, 1e-6, 1e-9)
INEXACT = ("unit vector", "distribution", "orthonormal")
"""Arrays that are of their kind only up to rounding."""
MOST_VALUES = 64
MOST_WHOLE_NUMBERS = 1000
"""Ranges of so many whole numbers are looked at one by one."""


@dataclass(frozen=True)
class Values:
    """One of a few numbers."""

    numbers: tuple[float, ...]


@dataclass(frozen=True)
class Interval:
    """Every number (or whole number) between two ends."""

    low: float
    high: float
    integer: bool = False
    open_low: bool = False
    open_high: bool = False

    def examples(self, rng: np.random.Generator, count: int) -> tuple[float, ...]:
        """Return simple numbers of the interval first, then random ones."""
        simple = [0.0, 1.0, -1.0, 0.5, 2.0, -2.0, 3.0, 5.0, 10.0, -10.0, 64.0, 100.0, 1e3, 1e-3]
        ends = [end for end in (self.low, self.high) if math.isfinite(end)]
        low = self.low if math.isfinite(self.low) else min(-1e3, self.high - 1e3)
        high = self.high if math.isfinite(self.high) else max(1e3, self.low + 1e3)
        middle = [(low + high) / 2]
        random = list(rng.uniform(low, high, size=count))
        plain = sorted((x for x in simple if self.contains(x)), key=abs)
        far = [x for x in (1e3, -1e3, 1e6) if self.contains(x) and not ends]
        candidates = [*plain[: count - 5], *far, *ends, *middle, *plain[count - 5 :], *random]
        if self.integer:
            candidates = [float(round(x)) for x in candidates]
        kept = list(dict.fromkeys(x for x in candidates if self.contains(x)))
        return tuple(kept[:count])

    def contains(self, x: float) -> bool:
        """Tell whether x is inside."""
        above = x > self.low if self.open_low else x >= self.low
        below = x < self.high if self.open_high else x <= self.high
        return above and below and (not self.integer or x == round(x))


@dataclass(frozen=True)
class Large:
    """A scale that is as large as one likes: the claim must hold from some β₀ on."""


@dataclass(frozen=True)
class Small:
    """A positive number as small as one likes."""


@dataclass(frozen=True)
class Array:
    """An arbitrary vector or matrix, or one of a special kind."""

    kind: str
    shape: tuple[str, ...]

    @property
    def random(self) -> bool:
        """Whether it is drawn from a distribution, rather than arbitrary."""
        return self.kind.startswith("normal")


Domain = Values | Interval | Large | Small | Array

_ARRAY = re.compile(
    r"(vector|unit vector|matrix|permutation|distribution|orthonormal|normal vector|"
    r"normal matrix|normal)(?:\s+(.+))?"
)
_INTERVAL = re.compile(r"([\[(])\s*([^,\s]+)\s*,\s*([^,\s]+)\s*([\])])")
_AXES = {
    "vector": 1,
    "unit vector": 1,
    "distribution": 1,
    "permutation": 1,
    "normal vector": 1,
    "matrix": 2,
    "orthonormal": 2,
    "normal matrix": 2,
    "normal": 0,
}
_EXPECTED = (
    'a number, a list of numbers, "large", "small", "any", "positive", an interval such as '
    '"[0, 1]", whole numbers such as "2..64", or an array such as "matrix T x d"'
)


def domain_of(name: str, spec: Any) -> Domain:
    """Read what a symbol may be.

    >>> domain_of("n", [2, 3])
    Values(numbers=(2.0, 3.0))
    >>> domain_of("X", "matrix T x d")
    Array(kind='matrix', shape=('T', 'd'))
    """
    if isinstance(spec, bool):
        raise _unknown(name, spec)
    if isinstance(spec, int | float):
        return Values((_finite(name, spec),))
    if isinstance(spec, list | tuple):
        return _values(name, spec)
    if not isinstance(spec, str):
        raise _unknown(name, spec)
    text = " ".join(spec.split())
    words: dict[str, Domain] = {
        "large": Large(),
        **dict.fromkeys((">> 0", "≫ 0", ">> 1", "≫ 1", ">>0", "≫0"), Large()),
        "small": Small(),
        "vanishing": Small(),
        "any": Interval(-math.inf, math.inf),
        "real": Interval(-math.inf, math.inf),
        "positive": Interval(0.0, math.inf, open_low=True),
        "natural": Interval(0.0, math.inf, integer=True),
    }
    if text in words:
        return words[text]
    if found := re.fullmatch(r"(-?\d+)\s*\.\.\s*(-?\d+)", text):
        first, last = int(found[1]), int(found[2])
        _told_apart(name, found[1])
        _told_apart(name, found[2])
        if 0 <= last - first < MOST_WHOLE_NUMBERS:  # few enough to look at every one
            return Values(tuple(float(number) for number in range(first, last + 1)))
        return Interval(float(first), float(last), integer=True)
    if found := re.fullmatch(r"integer(?:s)?\s*(>=|>)\s*(-?\d+)", text):
        low = float(found[2]) + (1.0 if found[1] == ">" else 0.0)
        return Interval(low, math.inf, integer=True)
    if found := _INTERVAL.fullmatch(text):
        low, high = _end(name, found[2]), _end(name, found[3])
        if not low < high:
            raise FormulaError(
                f"where.{name}",
                f"the interval {text} is empty",
                expected="the first end below the second",
            )
        return Interval(low, high, open_low=found[1] == "(", open_high=found[4] == ")")
    if found := _ARRAY.fullmatch(text):
        shape = tuple(part.strip() for part in re.split(r"[x×,]", found[2] or "") if part.strip())
        if len(shape) != _AXES[found[1]]:
            raise FormulaError(
                f"where.{name}",
                f"{text!r} names {len(shape)} sizes",
                expected=f"{_AXES[found[1]]} for a {found[1]}",
            )
        return Array(found[1], shape)
    raise _unknown(name, spec)


def array_examples(
    domain: Array, sizes: Mapping[str, int], rng: np.random.Generator, count: int
) -> Iterator[Any]:
    """Yield examples of an array, simplest first: small whole numbers, then random ones."""
    shape = tuple(size_of(part, sizes) for part in domain.shape)
    makers = {
        "vector": _plain,
        "matrix": _plain,
        "unit vector": _unit,
        "permutation": _permutation,
        "distribution": _distribution,
        "orthonormal": _orthonormal,
    }
    maker = makers[domain.kind]
    for position in range(count):
        yield maker(shape, rng, position)


def size_of(text: str, sizes: Mapping[str, int]) -> int:
    """Return a size such as "T", "4" or "2d" as a number."""
    found = re.fullmatch(r"(\d*)\s*\*?\s*([A-Za-z_]\w*)?", text)
    if found is None or not (found[1] or found[2]):
        raise FormulaError("where", f"{text!r} is not a size", expected='a size such as "d" or "4"')
    factor = int(found[1]) if found[1] else 1
    if not found[2]:
        return factor
    if found[2] not in sizes:
        raise FormulaError(
            "where",
            f"the size {found[2]!r} is not declared",
            expected=f"one of {', '.join(sorted(sizes)) or 'none'}",
            hint=f"declare it, for instance where = {{ {found[2]} = [2, 3] }}",
        )
    return factor * int(sizes[found[2]])


def _plain(shape: tuple[int, ...], rng: np.random.Generator, position: int) -> Any:
    if position == 0 and len(shape) == 2 and shape[0] == shape[1]:
        return np.eye(shape[0])
    if position <= 1:
        return rng.integers(-1, 2, size=shape).astype(float)
    if position == 2:
        return np.zeros(shape)
    if position <= 4:
        return rng.integers(-3, 4, size=shape).astype(float)
    return rng.standard_normal(shape) * (1.0 if position % 3 else 4.0)


def _unit(shape: tuple[int, ...], rng: np.random.Generator, position: int) -> Any:
    if position < shape[0]:
        return np.eye(shape[0])[position]
    draw = rng.standard_normal(shape)
    return draw / np.linalg.norm(draw)


def _permutation(shape: tuple[int, ...], rng: np.random.Generator, position: int) -> Any:
    order = np.arange(shape[0])
    if position == 0 and shape[0] > 1:
        order[:2] = order[1::-1]  # the simplest: two neighbours change places
    else:
        order = rng.permutation(shape[0])
    return np.eye(shape[0])[order]


def _distribution(shape: tuple[int, ...], rng: np.random.Generator, position: int) -> Any:
    if position == 0:
        return np.full(shape, 1.0 / shape[0])
    if position == 1:
        return np.eye(shape[0])[0]
    return rng.dirichlet(np.full(shape[0], 0.5 if position % 2 else 2.0))


def _orthonormal(shape: tuple[int, ...], rng: np.random.Generator, position: int) -> Any:
    if shape[0] > shape[1]:
        raise FormulaError(
            "where",
            f"{shape[0]} rows cannot be orthonormal in {shape[1]} dimensions",
            expected="at most as many rows as columns",
        )
    if position == 0:
        return np.eye(shape[0], shape[1])
    return np.linalg.qr(rng.standard_normal((shape[1], shape[0])))[0].T


def _values(name: str, spec: Any) -> Values:
    if not spec or len(spec) > MOST_VALUES:
        raise FormulaError(
            f"where.{name}",
            f"lists {len(spec)} values",
            expected=f"1 to {MOST_VALUES} numbers were expected",
        )
    return Values(tuple(_finite(name, value) for value in spec))


def _finite(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _unknown(name, value)
    if isinstance(value, int) and abs(value) > 10**18:
        raise FormulaError(f"where.{name}", f"{value:.3e} is out of range", expected="below 1e18")
    if not math.isfinite(value):
        raise FormulaError(f"where.{name}", f"is {value}", expected="a finite number")
    return _told_apart(name, str(value))


def _told_apart(name: str, text: str) -> float:
    """Return a number, or refuse one that float64 would take for another."""
    number = float(text)
    if Fraction(text) != Fraction(repr(number)):
        raise FormulaError(
            f"where.{name}",
            f"{text} has more digits than float64 can tell apart; it would be read as {number!r}",
            expected="a number of at most 15 digits",
        )
    return number


def _end(name: str, text: str) -> float:
    special = {"inf": math.inf, "+inf": math.inf, "∞": math.inf, "-inf": -math.inf, "-∞": -math.inf}
    if text in special:
        return special[text]
    try:
        return _told_apart(name, text)
    except (ValueError, OverflowError):
        raise FormulaError(
            f"where.{name}", f"{text!r} is not a number", expected="the end of an interval"
        ) from None


def _unknown(name: str, spec: Any) -> FormulaError:
    return FormulaError(
        f"where.{name}", f"{str(spec)[:60]!r} is not understood", expected=_EXPECTED
    )


# A claim made ready --------------------------------------------------------------------------

MOST_NODES = 20_000
"""How large a formula may become when definitions are written out."""
DEFAULT_SIZES = {"n": (2, 3, 5, 10), "d": (2, 3), "T": (2, 3, 5)}
MOST_COMBINATIONS = 20_000
MOST_CONSTANTS = 6
"""Numbers of the formulas that are tried for a symbol of an interval."""
TAKEN = {"k", "v", "mu", "c"}
"""Names that have a meaning already in a claim with keys."""
CONSTANTS = ("pi", "e", "infinity", "I")
FAMILIES = ("k", "v", "mu", "x", "q", "c", "alpha")


@dataclass(frozen=True)
class CompiledClaim:
    """A claim whose formulas have been read."""

    claim: Claim
    expectations: tuple[Expression, ...]
    given: Expression | None
    heads: tuple[Expression, ...]
    sequence: tuple[Expression, ...]
    matrices: dict[str, Expression]
    covariance: dict[str, Expression]
    definitions: dict[str, Expression]
    domains: dict[str, Domain]
    key_rows: tuple[Expression, ...]
    value_rows: tuple[Expression, ...]
    mean_rows: tuple[Expression, ...] = ()
    places: tuple[int, ...] | None = None
    """Which keys the letters name, from 0; None: the first ones, where it does not matter."""

    @cached_property
    def statement(self) -> Expression:
        """All expectations joined, under the condition if there is one."""
        whole = self.expectations[0]
        for part in self.expectations[1:]:
            whole = Logic("and", whole, part)
        if self.given is None or self.statistical:
            return whole
        return Logic("implies", self.given, whole)

    @cached_property
    def statistical(self) -> bool:
        """Whether the claim speaks about a distribution: E, P, var, std, cov, quantile."""
        return any(
            isinstance(node, Call) and node.function in STATISTICS
            for part in self.expectations
            for node in walk(part)
        )

    @cached_property
    def noisy(self) -> bool:
        """Whether anything is drawn from a distribution."""
        return self.claim.keys == "gaussian" or any(
            isinstance(domain, Array) and domain.random for domain in self.domains.values()
        )

    @cached_property
    def trees(self) -> tuple[Expression, ...]:
        """Every formula of the claim."""
        optional = () if self.given is None else (self.given,)
        return (
            *self.expectations,
            *optional,
            *self.heads,
            *self.sequence,
            *self.matrices.values(),
            *self.covariance.values(),
            *self.definitions.values(),
            *self.key_rows,
            *self.value_rows,
            *self.mean_rows,
        )

    @cached_property
    def members(self) -> tuple[str, ...]:
        """The named members (a, b, j, …) in the order in which they appear."""
        nodes = [node for tree in self.trees for node in walk(tree)]
        bound = {index for node in nodes for index in bound_names(node)}
        members: dict[str, None] = {}
        for node in nodes:
            for member in _members_of(node, set(self.domains)):
                if member not in bound:
                    members.setdefault(member)
        for index in self.covariance:
            if index != "others":
                members.setdefault(index)
        return tuple(members)

    @cached_property
    def indices(self) -> dict[str, int]:
        """The named members with the positions they stand for, from 0."""
        places = range(len(self.members)) if self.places is None else self.places
        return dict(zip(self.members, places, strict=True))

    @cached_property
    def large(self) -> tuple[str, ...]:
        """The symbols that are arbitrarily large."""
        return tuple(name for name, domain in self.domains.items() if isinstance(domain, Large))

    @cached_property
    def small(self) -> tuple[str, ...]:
        """The symbols that are arbitrarily small."""
        return tuple(name for name, domain in self.domains.items() if isinstance(domain, Small))

    @cached_property
    def constants(self) -> tuple[float, ...]:
        """The numbers that the formulas name: where a claim about an interval is likely to fail."""
        numbers = (rational(node) for tree in self.trees for node in walk(tree))
        return tuple(
            dict.fromkeys(
                float(x)
                for value in numbers
                if value is not None and abs(value) < 10**6
                for x in (value, -value)
            )
        )

    def scalar_cases(
        self, rng: np.random.Generator, most: int = 1200
    ) -> Iterator[dict[str, float]]:
        """Yield values for every scalar that is neither large nor small, smallest first."""
        choices: dict[str, tuple[float, ...]] = {}
        for name, domain in self.domains.items():
            if isinstance(domain, Values):
                choices[name] = domain.numbers
            elif isinstance(domain, Interval):
                named = [x for x in self.constants if domain.contains(x)][:MOST_CONSTANTS]
                choices[name] = tuple(dict.fromkeys([*domain.examples(rng, 12), *named]))
        names = list(choices)
        cases = [
            dict(zip(names, combination, strict=True))
            for combination in _combinations(list(choices.values()), rng)
        ]
        cases.sort(key=lambda case: sum(abs(value) for value in case.values()))
        if len(cases) > most:
            # Keep the smallest, and an even selection of the rest up to the largest.
            places = np.unique(np.linspace(0, len(cases) - 1, most).round().astype(int))
            cases = [cases[place] for place in places]
        yield from cases

    def sizes(self, case: Mapping[str, float]) -> dict[str, int]:
        """Return the whole numbers of a case: what may be the size of an array."""
        sizes = {name: int(value) for name, value in case.items() if value == round(value)}
        if "n" in sizes and "d" not in sizes:
            sizes["d"] = sizes["n"]
        return sizes


def _combinations(
    choices: list[tuple[float, ...]], rng: np.random.Generator
) -> list[tuple[float, ...]]:
    """Return every combination, or a random selection with both ends when there are too many."""
    if math.prod(len(each) for each in choices) <= MOST_COMBINATIONS:
        return list(itertools.product(*choices))
    ends = [tuple(each[0] for each in choices), tuple(each[-1] for each in choices)]
    drawn = {
        tuple(each[int(rng.integers(len(each)))] for each in choices)
        for _ in range(MOST_COMBINATIONS // 10)
    }
    return [*ends, *sorted(drawn)]


def compile_claim(claim: Claim) -> CompiledClaim:
    """Make a claim ready, or say what is wrong with it; formulas are read unless they have been."""
    claim = read_claim(claim)
    if not claim.expect:
        raise field_error(("expect",), "expects nothing", expected="a formula under `expect`")
    functions: dict[str, tuple[tuple[str, ...], Expression]] = {}
    definitions: dict[str, str] = {}
    for key, text in claim.let.items():
        head = DefinitionHead.of(key)
        if head.parameters is None:
            definitions[head.name] = text
        else:
            functions[head.name] = (head.parameters, _tree(text))

    def expanded(text: str) -> Expression:
        return expand(_tree(text), functions)

    heads = tuple(map(expanded, (claim.query,) if claim.query is not None else claim.heads))

    def named(text: str) -> Expression:
        tree = expanded(text)
        return _of_first_head(tree) if len(heads) > 1 and len(set(heads)) == 1 else tree

    expectations = tuple(map(named, claim.expect))
    given = None if claim.given is None else named(claim.given)
    if given is not None:
        expectations = tuple(with_given(tree, given) for tree in expectations)
    compiled = CompiledClaim(
        claim=claim,
        expectations=expectations,
        given=given,
        heads=heads,
        sequence=tuple(map(expanded, claim.sequence)),
        matrices={name: expanded(text) for name, text in claim.matrices.items()},
        covariance={name: expanded(text) for name, text in claim.covariance.items()},
        definitions={name: expanded(text) for name, text in definitions.items()},
        domains=_domains(claim),
        key_rows=_rows(claim.keys, "keys", expanded),
        value_rows=_rows(claim.values, "values", expanded),
        mean_rows=_rows(claim.means, "means", expanded),
    )
    compiled = _with_moving(compiled)
    _check(compiled)
    _check_letters(compiled)
    return compiled


def _with_moving(compiled: CompiledClaim) -> CompiledClaim:
    """Return a claim in which every limit says what moves, and that symbol has no other range."""
    domains = dict(compiled.domains)

    def named(node: Expression) -> Expression:
        node = map_children(node, named)
        if not isinstance(node, Limit):
            return node
        moving = [*compiled.large, *compiled.small]
        symbol = node.symbol or (moving[0] if len(moving) == 1 else "")
        if not symbol:
            raise node.error(
                "it is not said what moves",
                expected="one symbol that is large or small, or `as beta -> infinity`",
            )
        target = node.target
        if not node.symbol and symbol in compiled.small:
            target = "0"
        kind = Large if target == "infinity" else Small
        if symbol in compiled.claim.where and not isinstance(compiled.domains[symbol], kind):
            raise field_error(
                ("where", symbol),
                f"{symbol} moves, and has a range",
                expected=f"no range of its own, or {kind.__name__.lower()!r}",
            )
        domains[symbol] = kind()
        return dataclasses.replace(node, symbol=symbol, target=target)

    expectations = tuple(map(named, compiled.expectations))
    return dataclasses.replace(compiled, expectations=expectations, domains=domains)


def _tree(text: str) -> Expression:
    assert isinstance(text, ParsedFormula)  # read_claim has read all of them
    return text.tree


def expand(
    tree: Expression,
    functions: Mapping[str, tuple[tuple[str, ...], Expression]],
    depth: int = 0,
) -> Expression:
    """Replace every call of a claim's own function by its body."""
    if depth > 20:
        raise tree.error("a definition refers to itself", expected="no circles")
    calls = [node for node in walk(tree) if isinstance(node, Call) and node.function in functions]
    if not calls:
        if sum(1 for _ in walk(tree)) > MOST_NODES:
            raise tree.error(
                f"expands to more than {MOST_NODES} parts", expected="smaller definitions"
            )
        return tree

    def rebuilt(node: Expression) -> Expression:
        node = map_children(node, rebuilt)
        if not isinstance(node, Call) or node.function not in functions:
            return node
        parameters, body = functions[node.function]
        if len(parameters) != len(node.arguments):
            raise node.error(
                f"{node.function} got {len(node.arguments)} arguments",
                expected=f"{len(parameters)}",
            )
        return substitute(body, dict(zip(parameters, node.arguments, strict=True)))

    return expand(rebuilt(tree), functions, depth + 1)


def _of_first_head(tree: Expression) -> Expression:
    """Name what equal heads give together by the first of them: the mean of equals is each."""
    if isinstance(tree, Name):
        base, underscore, member = tree.text.partition("_")
        names = {"c": "c_1", "alpha": "alpha1"}
        if tree.text in names:
            return dataclasses.replace(tree, text=names[tree.text])
        if base == "alpha" and underscore:
            return dataclasses.replace(tree, text=f"alpha1_{member}")
    return map_children(tree, _of_first_head)


def with_given(tree: Expression, given: Expression) -> Expression:
    """Put a claim's condition inside every statistic that has none of its own."""
    tree = map_children(tree, lambda part: with_given(part, given))
    if isinstance(tree, Call) and tree.given is None and tree.function in STATISTICS:
        return dataclasses.replace(tree, given=given)
    return tree


def _domains(claim: Claim) -> dict[str, Domain]:
    specs = dict(claim.where)
    if claim.keys is not None and not isinstance(claim.keys, list | tuple):
        specs.setdefault("n", list(DEFAULT_SIZES["n"]))
        if claim.keys in ("unit", "any"):
            specs.setdefault("d", list(DEFAULT_SIZES["d"]))
    if isinstance(claim.means, list | tuple) and claim.means:
        _match_means(claim, specs)
    width = claim.positions.get("width")
    if width is not None:
        specs.setdefault("d", width)
    domains = {name: _domain(name, spec) for name, spec in specs.items()}
    sizes = {"n", "d"} if claim.keys is not None else set()
    for domain in tuple(domains.values()):
        if isinstance(domain, Array):
            for part in domain.shape:
                size = part.lstrip("0123456789* ")
                sizes.add(size)
                if size and size not in domains:
                    domains[size] = domain_of(size, list(DEFAULT_SIZES.get(size, (2, 3))))
    for size in sorted(sizes & set(domains)):
        _check_size(size, domains[size])
    return domains


def _match_means(claim: Claim, specs: dict[str, Any]) -> None:
    """Let given means decide how many keys there are, and refuse sizes that say otherwise."""
    sizes = {"n": len(claim.means)}
    if isinstance(claim.means[0], list | tuple):
        sizes["d"] = len(claim.means[0])
    for name, size in sizes.items():
        if name in claim.where and claim.where[name] != size:
            raise field_error(
                ("where", name),
                f"is {claim.where[name]}, but the means are {len(claim.means)} rows",
                expected=f"{name} = {size}, or nothing",
            )
        specs[name] = size


def _domain(name: str, spec: Any) -> Domain:
    try:
        return domain_of(name, spec)
    except FormulaError as error:
        raise field_error(
            ("where", name), error.problem, expected=error.expected, hint=error.hint
        ) from None


def _check_size(name: str, domain: Domain) -> None:
    """Refuse half a key, or a matrix of minus two rows."""
    for value in domain.numbers if isinstance(domain, Values) else ():
        if value < 1 or value != round(value):
            raise field_error(
                ("where", name), f"is {value:g}", expected="a size is a whole number from 1 on"
            )


def _rows(given: Any, name: str, expanded: Callable[[str], Expression]) -> tuple[Expression, ...]:
    """Return one expression for each row: of a formula, or of a list of numbers."""
    if not isinstance(given, list | tuple):
        return ()
    rows: list[Expression] = []
    for place, row in enumerate(given):
        if isinstance(row, str):
            rows.append(expanded(row))
            continue
        if not row:
            raise field_error((name, place), "is an empty row", expected="a row of numbers")
        position = Position(1, (name, place))
        rows.append(Call("concat", tuple(map(constant, row)), position=position))
    return tuple(rows)


def _check(compiled: CompiledClaim) -> None:
    claim = compiled.claim
    if (
        claim.keys is not None
        and not isinstance(claim.keys, list | tuple)
        and (claim.keys not in KEY_FAMILIES)
    ):
        raise field_error(
            ("keys",),
            f"{str(claim.keys)[:60]!r} is not known",
            expected=f"one of {', '.join(KEY_FAMILIES)}, or rows of numbers",
            hint=nearest(str(claim.keys), KEY_FAMILIES),
        )
    taken = sorted(set(claim.where) & TAKEN) if claim.keys is not None else []
    if taken:
        raise field_error(
            ("where", taken[0]),
            f"{taken[0]!r} already has a meaning in a claim with keys",
            expected="another name",
        )
    kind = claim.positions.get("kind", "sinusoidal")
    if kind not in ("sinusoidal", "rotary"):
        raise field_error(
            ("positions", "kind"),
            f"{str(kind)[:60]!r} is not known",
            expected='"sinusoidal" for phi(t), or "rotary" for rotate(x, t)',
        )
    if claim.query is not None and claim.heads:
        raise field_error(("query",), "is given together with `heads`", expected="one of the two")
    if compiled.heads and claim.keys is None:
        raise field_error(
            ("query",),
            "is given without `keys`",
            expected='for instance keys = "orthonormal"',
        )
    if claim.find is not None:
        _check_open_number(compiled, claim.find.partition(" ")[2])
    if len(compiled.large) > 1:
        raise field_error(
            ("where",),
            f"has {len(compiled.large)} large symbols",
            expected="at most one; write the others in terms of it",
        )


def _check_open_number(compiled: CompiledClaim, name: str) -> None:
    """Refuse a name under `find` that has a meaning already, or that no formula leaves open."""
    claim = compiled.claim
    defined = {DefinitionHead.of(key).name for key in claim.let}
    families = {*FAMILIES} if claim.sequence else {*FAMILIES} - {"x"}
    if name in {*compiled.domains, *defined, *families, *CONSTANTS}:
        raise field_error(
            ("find",),
            f"{name!r} has a meaning already",
            expected="a name that neither `where` nor `let` declares",
        )
    statements = (*compiled.expectations, *(() if compiled.given is None else (compiled.given,)))
    if not any(name in mentioned(tree) for tree in statements):
        raise field_error(
            ("find",),
            f"no formula of the claim leaves {name!r} open",
            expected=f"a formula with it, such as alpha_a >= {name}",
        )


def _check_letters(compiled: CompiledClaim) -> None:
    """Refuse a letter that is bound in one place and stands free in another: two readings."""
    nodes = [node for tree in compiled.trees for node in walk(tree)]
    bound = {index for node in nodes for index in bound_names(node)}

    def check(node: Expression, inside: frozenset[str]) -> None:
        inside |= frozenset(bound_names(node))
        for letter in _members_of(node, set(compiled.domains)):
            if letter in bound and letter not in inside:
                raise node.error(
                    f"{letter} is free here, and bound elsewhere by `for all` or a sum",
                    expected="one meaning for a letter",
                    hint=f"for one {letter} throughout write `for all i where i != {letter}`; "
                    "for every one, another letter here",
                )
        for child in children(node):
            check(child, inside)

    for tree in compiled.trees:
        check(tree, frozenset())


def _members_of(node: Expression, symbols: set[str]) -> Iterator[str]:
    if isinstance(node, Name):
        base, underscore, member = node.text.rpartition("_")
        if (
            underscore
            and not member.isdigit()
            and node.text not in symbols
            and (base in FAMILIES or base in symbols)
        ):
            yield member
    if isinstance(node, Entry):
        for index in node.indices:
            if isinstance(index, Name) and index.text not in symbols:
                yield index.text
    if isinstance(node, Call) and FUNCTIONS[node.function].takes == "members":
        for argument in node.arguments:
            if isinstance(argument, Name) and argument.text not in symbols:
                yield argument.text


def mentions(compiled: CompiledClaim, *names: str) -> bool:
    """Tell whether any formula uses one of these names, or a member of them."""
    used = {name for tree in compiled.trees for name in names_in(tree)}
    return any(name in used or any(u.startswith(f"{name}_") for u in used) for name in names)


def equations_only(compiled: CompiledClaim) -> bool:
    """Tell whether the claim consists of equations and nothing else."""
    return all(_is_equation(tree) for tree in compiled.expectations)


def _is_equation(node: Expression) -> bool:
    match node:
        case Logic("and", left, right):
            return _is_equation(left) and _is_equation(right)
        case ForAll(_, _, body):
            return _is_equation(body)
        case Compare("=", _, _):
            return True
    return False
