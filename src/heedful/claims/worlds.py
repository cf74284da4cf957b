"""Worlds: a compiled claim with a value for every symbol, noise drawn, a place for every letter.

The letters of a claim name places: `a` of `k_a`, `x_a` or `M[a, b]`. A claim with letters must
hold for every choice of different places. Where nothing tells the places apart, one choice speaks
for all of them: orthonormal, arbitrary or Gaussian keys may be renumbered, and so may the rows of
an arbitrary array. Where something does (keys, values or a sequence given one by one, a place named
by its number, a vector written out), the choices are judged one by one.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, TypeVar

import numpy as np

from heedful.attention.operation import scale_of
from heedful.claims.compile import Array, CompiledClaim, Interval, Values, size_of
from heedful.claims.evaluate.float import Evaluator, World
from heedful.claims.functions import FUNCTIONS
from heedful.claims.language import show
from heedful.claims.language.tree import (
    Binary,
    Call,
    Compare,
    Entry,
    Expression,
    Name,
    Number,
    Unary,
    bound_names,
    children,
    names_in,
    walk,
)
from heedful.claims.sheet.claim import field_error
from heedful.claims.values import NoValueError, Value, add, constant, multiply, scalar, transpose
from heedful.errors import FormulaError

QUADRATURE_NODES = 4001
"""Nodes of the midpoint rule over one noisy direction."""
REACH = 9.0
"""How many standard deviations they cover: beyond lies a mass of 2e-19."""

V = TypeVar("V")


@dataclass(frozen=True)
class Noise:
    """The random part of a world: independent standard normal coordinates and their weights."""

    coordinates: Any
    """(B, R): one column for each noisy direction."""
    weights: Any = None
    """(B,), or None for plain draws."""


def build_world(
    compiled: CompiledClaim,
    scalars: Mapping[str, Any],
    arrays: Mapping[str, Any],
    *,
    noise: Noise | None = None,
) -> World:
    """Return the world of one case."""
    claim = compiled.claim
    plain = {name: value for name, value in scalars.items() if not isinstance(value, Value)}
    sizes = compiled.sizes(plain)
    symbols = {name: _valued(value) for name, value in scalars.items()}
    symbols.update({name: _valued(array) for name, array in arrays.items() if name != "k"})
    if "d" in sizes and "d" not in symbols:
        symbols["d"] = scalar(sizes["d"])
    if sizes.get("d", 0) > 0:
        symbols.setdefault("I", Value(np.eye(sizes["d"])[None], "matrix"))
    world = World(
        symbols=symbols,
        indices=compiled.indices,
        width=sizes.get("d", 2),
        base=float(claim.positions.get("base", 10000.0)),
        tolerance=float(claim.tolerance),
        weights=None if noise is None else noise.weights,
    )
    columns = 0
    if noise is not None:
        world, columns = _random_symbols(compiled, world, sizes, noise)
    if claim.keys is not None:
        world = _with_keys(compiled, world, sizes, arrays, noise, columns)
    if compiled.sequence:
        world = _with_sequence(compiled, world)
    elif claim.keys is not None:
        world = _with_heads(compiled, _with_values(compiled, world))
    for name, tree in compiled.definitions.items():
        try:
            value = Evaluator(world).value(tree)
        except NoValueError as error:  # which matters only where the name is used
            world = replace(world, missing={**world.missing, name: error})
            continue
        world = replace(world, symbols={**world.symbols, name: value})
    return world


def _valued(given: Any) -> Value:
    """Return a number or an array as a value; one that is a value already may hold many cases."""
    return given if isinstance(given, Value) else constant(given)


def noise_directions(compiled: CompiledClaim, scalars: Mapping[str, float]) -> int:
    """Return how many independent normal coordinates a case needs."""
    sizes = compiled.sizes(scalars)
    count = 0
    for domain in compiled.domains.values():
        if isinstance(domain, Array) and domain.random:
            count += int(np.prod([size_of(part, sizes) for part in domain.shape], initial=1))
    if compiled.claim.keys == "gaussian":
        most = count + sizes["n"] * sizes["d"]
        probe = build_world(compiled, scalars, {}, noise=Noise(np.zeros((1, most))))
        count += sum(factor.shape[1] for factor in _factors(compiled, probe))
    return count


def quadrature_noise(nodes: int = QUADRATURE_NODES, reach: float = REACH) -> Noise:
    """Return the midpoint nodes and weights of one standard normal coordinate."""
    from scipy.special import ndtr

    edges = np.linspace(-reach, reach, nodes + 1)
    # On the far side the masses are differences of numbers near 1: take them from the near side.
    weights = np.where(edges[1:] <= 0, np.diff(ndtr(edges)), -np.diff(ndtr(-edges)))
    return Noise(((edges[1:] + edges[:-1]) / 2)[:, None], weights / weights.sum())


def drawn_noise(directions: int, draws: int, rng: np.random.Generator) -> Noise:
    """Return independent draws of every noisy direction."""
    return Noise(rng.standard_normal((draws, directions)))


def _random_symbols(
    compiled: CompiledClaim, world: World, sizes: Mapping[str, int], noise: Noise
) -> tuple[World, int]:
    column = 0
    symbols = dict(world.symbols)
    for name, domain in compiled.domains.items():
        if isinstance(domain, Array) and domain.random:
            shape = tuple(size_of(part, sizes) for part in domain.shape)
            count = int(np.prod(shape, initial=1))
            block = noise.coordinates[:, column : column + count]
            kinds: Any = ("scalar", "vector", "matrix")[len(shape)]
            symbols[name] = Value(block.reshape(len(block), *shape), kinds)
            column += count
    return replace(world, symbols=symbols), column


def _with_keys(
    compiled: CompiledClaim,
    world: World,
    sizes: Mapping[str, int],
    arrays: Mapping[str, Any],
    noise: Noise | None,
    column: int,
) -> World:
    kind = compiled.claim.keys
    if compiled.key_rows:
        rows = _stack(world, compiled.key_rows)
        symbols = {**world.symbols}
        symbols.setdefault("n", scalar(rows.shape[0]))
        symbols.setdefault("d", scalar(rows.shape[1]))
        return _scaled(compiled, replace(world, symbols=symbols), rows)
    n, d = sizes["n"], sizes["d"]
    highest = max(world.indices.values(), default=-1)
    if highest >= n and not compiled.sequence:
        raise TooFewKeysError(n, highest + 1)
    if kind in ("unit", "any"):
        return _scaled(compiled, world, _valued(arrays["k"]))
    if n > d and not compiled.mean_rows:
        raise field_error(
            ("where",),
            f"{n} keys in {d} dimensions",
            expected=f"d ≥ n for {kind} keys",
        )
    rows = _stack(world, compiled.mean_rows) if compiled.mean_rows else constant(np.eye(n, d))
    if kind == "orthonormal":
        return _scaled(compiled, world, rows)
    world = replace(world, families={**world.families, "mu": rows})
    if noise is None:
        raise field_error(("keys",), "are Gaussian, but nothing is drawn")
    keys = np.broadcast_to(rows.array, (len(noise.coordinates), n, d)).copy()
    for key, factor in enumerate(_factors(compiled, world)):
        width = factor.shape[1]
        block = noise.coordinates[:, column : column + width]
        keys[:, key] += block @ factor.T
        column += width
    return _scaled(compiled, world, Value(keys, "matrix"))


class TooFewKeysError(FormulaError):
    """A case with fewer keys than the claim names: not a case of the claim at all."""

    def __init__(self, n: int, named: int) -> None:
        super().__init__(
            "where.n",
            f"n = {n} but {named} members are named",
            expected=f"n ≥ {named}",
            field=("where", "n"),
        )


def _factors(compiled: CompiledClaim, world: World) -> list[Any]:
    """Return L_i with Σ_i = L_i L_iᵀ for every key, with no column where there is no noise."""
    means = world.families["mu"]
    n, d = means.shape
    factors = []
    for key in range(n):
        names = [name for name, place in world.indices.items() if place == key]
        member = next((name for name in names if name in compiled.covariance), "others")
        tree = compiled.covariance.get(member)
        if tree is None:
            factors.append(np.zeros((d, 0)))
            continue
        covariance = Evaluator(world).value(tree)
        if covariance.kind == "scalar" and any(name.startswith("mu_") for name in names_in(tree)):
            # mu_a mu_a is a number, and would be taken for noise in every direction.
            raise field_error(
                ("covariance", member),
                f"{show(tree)} is a number",
                expected=f"a symmetric {d} x {d} matrix",
                hint="write the outer product with a transpose: mu_a mu_a^T",
            )
        factors.append(_factor(covariance, d, member))
    return factors


def _factor(covariance: Value, d: int, member: str) -> Any:
    matrix = covariance.array[0]
    if covariance.kind == "scalar":
        matrix = float(matrix) * np.eye(d)
    if matrix.shape != (d, d) or not np.allclose(matrix, matrix.T):
        raise field_error(
            ("covariance", member),
            f"is a {covariance.describe()}",
            expected=f"a symmetric {d} x {d} matrix",
        )
    sizes, directions = np.linalg.eigh(matrix)
    if sizes[0] < -1e-9 * max(abs(sizes[0]) * 1e-3, sizes[-1]):
        raise field_error(
            ("covariance", member), f"has the eigenvalue {sizes[0]:.3g}", expected="none below 0"
        )
    kept = sizes > 1e-14 * max(0.0, sizes[-1])  # however small a variance is, it is noise
    return directions[:, kept] * np.sqrt(sizes[kept])


def _scaled(compiled: CompiledClaim, world: World, rows: Value) -> World:
    scale: Any = compiled.claim.scale
    number = scale_of("sqrt_d" if scale == "sqrt_d" else float(scale), rows.shape[1])
    return replace(world, families={**world.families, "k": rows}, scale=number)


def _with_values(compiled: CompiledClaim, world: World) -> World:
    keys = world.families["k"]
    if compiled.value_rows:
        values = _stack(world, compiled.value_rows)
    elif compiled.claim.values == "keys":
        values = keys
    else:
        values = Value(np.eye(keys.shape[0])[None], "matrix", formal=True)
    return replace(world, families={**world.families, "v": values})


def _with_heads(compiled: CompiledClaim, world: World) -> World:
    if not compiled.heads:
        return world
    evaluator = Evaluator(world)
    queries = [evaluator.value(tree) for tree in compiled.heads]
    alphas = [evaluator.apply("weights", query) for query in queries]
    outputs = [evaluator.apply("attention", query) for query in queries]
    share = scalar(1 / len(queries))
    symbols, families = names_of_heads(
        queries, alphas, outputs, lambda parts: multiply(share, reduce(add, parts))
    )
    return replace(world, families=world.families | families, symbols=world.symbols | symbols)


def names_of_heads(
    queries: Sequence[V],
    alphas: Sequence[V],
    outputs: Sequence[V],
    mean: Callable[[Sequence[V]], V],
) -> tuple[dict[str, V], dict[str, V]]:
    """Return the symbols and families that heads give, in any arithmetic.

    Head h has its query q_h, its weights alphah and its output c_h; α and c are their means. The
    query of a single head is also called q.
    """
    symbols, families = {"c": mean(outputs)}, {"alpha": mean(alphas)}
    if len(queries) == 1:
        symbols["q"] = queries[0]
    for head, (query, alpha, output) in enumerate(zip(queries, alphas, outputs, strict=True), 1):
        symbols |= {f"q_{head}": query, f"c_{head}": output}
        families[f"alpha{head}"] = alpha
    return symbols, families


def _with_sequence(compiled: CompiledClaim, world: World) -> World:
    x = _stack(world, compiled.sequence)
    families = {**world.families, "x": x}
    for name, family in (("K", "k"), ("Q", "q"), ("V", "v")):
        if name in compiled.matrices:
            matrix = Evaluator(world).value(compiled.matrices[name])
            families[family] = multiply(x, transpose(matrix))
        else:
            families[family] = x
    scale: Any = compiled.claim.scale
    number = scale_of("sqrt_d" if scale == "sqrt_d" else float(scale), x.shape[1])
    logits = multiply(multiply(scalar(number), families["q"]), transpose(families["k"]))
    alpha = Evaluator(world).apply("softmax", logits)
    families["alpha"] = alpha
    families["c"] = multiply(alpha, families["v"])
    return replace(world, families=families, scale=number)


def _stack(world: World, rows: tuple[Expression, ...]) -> Value:
    parts = [Evaluator(world).value(row) for row in rows]
    matrix: Value = Evaluator(world).apply("stack", *parts)
    return matrix


# Which places the letters name ---------------------------------------------------------------

MOST_ASSIGNMENTS = 60
"""Choices of places for the letters of a claim that are judged one by one."""
MOST_PLACES = 64
"""Places of a family among which a letter chooses, at most."""
OF_KEYS = ("k", "v", "mu", "alpha")
"""Families with one member for each key; `c` and `q` have one in a sequence."""
POSITIONAL = ("concat", "onehot", "stack", "rows", "phi", "rotate", "causal", "argmax")
"""Functions that tell the places of an array apart."""


@dataclass(frozen=True)
class Assignments:
    """The claim once for every choice of places that is looked at."""

    claims: tuple[CompiledClaim, ...]
    choices: int
    """How many choices there are."""

    @property
    def complete(self) -> bool:
        """Whether every choice is looked at."""
        return len(self.claims) >= self.choices


def assignments(compiled: CompiledClaim) -> Assignments:
    """Return the claim for every choice of different places that its letters may name."""
    letters = compiled.members
    pools = _Places(compiled).pools() if letters else {}
    if not any(pools.values()):
        return Assignments((compiled,), 1)
    bound = [letter for letter in letters if pools[letter]]
    count = math.prod(len(pools[letter]) for letter in bound)
    if count <= 100 * MOST_ASSIGNMENTS:
        choices = [
            choice
            for choice in itertools.product(*(pools[letter] for letter in bound))
            if len(set(choice)) == len(choice)
        ]
        count = len(choices)
        step = max(1, math.ceil(count / MOST_ASSIGNMENTS))
        choices = choices[::step]
    else:
        choices = list(_drawn([pools[letter] for letter in bound], compiled.claim.seed))
    made = tuple(
        dataclasses.replace(compiled, places=_completed(letters, dict(zip(bound, c, strict=True))))
        for c in choices
    )
    return Assignments(made or (compiled,), max(1, count))


def _drawn(pools: Sequence[Sequence[int]], seed: int) -> Iterator[tuple[int, ...]]:
    rng = np.random.default_rng(seed)
    drawn: dict[tuple[int, ...], None] = {}
    for _ in range(20 * MOST_ASSIGNMENTS):
        choice = tuple(int(pool[int(rng.integers(len(pool)))]) for pool in pools)
        if len(set(choice)) == len(choice):
            drawn.setdefault(choice)
    yield from itertools.islice(drawn, MOST_ASSIGNMENTS)


def _completed(letters: Sequence[str], chosen: Mapping[str, int]) -> tuple[int, ...]:
    """Give the letters that may be renumbered the first places that are left."""
    rest = (place for place in itertools.count() if place not in set(chosen.values()))
    return tuple(chosen[letter] if letter in chosen else next(rest) for letter in letters)


class _Places:
    """What the letters of one claim stand below, and what tells places apart there."""

    def __init__(self, compiled: CompiledClaim) -> None:
        self.compiled = compiled
        self.nodes = [node for tree in compiled.trees for node in walk(tree)]
        self.bound = {index for node in self.nodes for index in bound_names(node)}
        claim = compiled.claim
        rows = compiled.key_rows or compiled.mean_rows or compiled.value_rows
        self.given: dict[str, int] = {}
        if rows:
            self.given.update(dict.fromkeys((*OF_KEYS, "c", "q"), len(rows)))
        if compiled.sequence:
            sequence = dict.fromkeys((*OF_KEYS, "c", "q", "x"), len(compiled.sequence))
            self.given.update(sequence)
        self.free = {name for name, domain in compiled.domains.items() if isinstance(domain, Array)}
        if claim.keys is not None and not rows and not compiled.sequence:
            self.free.update((*OF_KEYS, "c", "q"))

    def pools(self) -> dict[str, list[int]]:
        """Return the places each letter may name; none where they may be renumbered."""
        letters = self.compiled.members
        pools: dict[str, list[int]] = {letter: [] for letter in letters}
        for letter in letters:
            sizes = [size for base in self._bases(letter) if (size := self._given_size(base))]
            if sizes:
                pools[letter] = list(range(min(max(sizes), MOST_PLACES)))
        loose = [letter for letter in letters if not pools[letter]]
        if not loose:
            return pools
        if self._told_apart():
            most = min(self._largest(), MOST_PLACES)
            return {letter: pools[letter] or list(range(most)) for letter in letters}
        if numbers := self._numbers():
            # Places without a number may be renumbered: as many of them as there are letters.
            fresh = [place for place in range(MOST_PLACES) if place not in numbers]
            candidates = sorted(numbers) + fresh[: len(letters)]
            return {letter: pools[letter] or candidates for letter in letters}
        return pools

    def _bases(self, letter: str) -> Iterator[Expression | str]:
        """Yield the families and expressions below which a letter stands."""
        for node in self.nodes:
            match node:
                case Name(text) if text.rpartition("_")[2] == letter and "_" in text:
                    yield text.rpartition("_")[0].rstrip("0123456789")
                case Entry(base, indices):
                    if any(isinstance(own, Name) and own.text == letter for own in indices):
                        yield base
                case Call(function, arguments) if FUNCTIONS[function].takes == "members":
                    if any(isinstance(own, Name) and own.text == letter for own in arguments):
                        yield "alpha"

    def _given_size(self, base: Expression | str) -> int:
        """Return how many places a family has whose places are given; 0 for any other."""
        if isinstance(base, Unary) and base.operator == "T":
            base = base.operand
        name = base.text if isinstance(base, Name) else base
        if isinstance(name, str):
            if name in self.compiled.definitions:
                return self._evaluated(Name(name))
            return self.given.get(name, 0)
        return self._evaluated(name)

    def _evaluated(self, base: Expression) -> int:
        """Return the largest side of an expression in some cases, or the largest size known."""
        sizes = [0]
        rng = np.random.default_rng(self.compiled.claim.seed)
        cases = list(itertools.islice(self.compiled.scalar_cases(rng, 8), 8))
        for scalars in cases:
            try:
                world = build_world(self.compiled, scalars, {})
                sizes += Evaluator(world).value(base).shape
            except (FormulaError, KeyError):
                continue
        return max(sizes) or self._largest()

    def _largest(self) -> int:
        """Return the largest size that a symbol of the claim can be."""
        sizes = [4]
        for name, domain in self.compiled.domains.items():
            if isinstance(domain, Values) and (name in "ndT" or self._is_size(name)):
                sizes.append(int(max(domain.numbers)))
            elif isinstance(domain, Interval) and domain.integer:
                sizes.append(MOST_PLACES)
            elif isinstance(domain, Array):
                sizes += [int(part) for part in domain.shape if part.isdigit()]
        width = self.compiled.claim.positions.get("width")
        return max([*sizes, *([int(width)] if isinstance(width, int) else [])])

    def _is_size(self, name: str) -> bool:
        return any(
            name in part
            for domain in self.compiled.domains.values()
            if isinstance(domain, Array)
            for part in domain.shape
        )

    def _numbers(self) -> set[int]:
        """Return the places of families that may be renumbered which are named by a number."""
        numbers: set[int] = set()
        heads = ("c", "q")  # c_1 is the output of the first head
        for node in self.nodes:
            if isinstance(node, Name):
                base, _, member = node.text.rpartition("_")
                plain = base.rstrip("0123456789")
                if member.isdigit() and plain in self.free and plain not in heads:
                    numbers.add(int(member) - 1)
            elif isinstance(node, Entry):
                for own in node.indices:
                    if isinstance(own, Number) and own.value.denominator == 1:
                        numbers.add(int(own.value) - 1)
        return numbers

    def _told_apart(self) -> bool:
        """Tell whether a function or an order of indices tells free places apart."""
        written = (
            *self.compiled.expectations,
            *([] if self.compiled.given is None else [self.compiled.given]),
            *self.compiled.heads,
            *self.compiled.matrices.values(),
            *self.compiled.covariance.values(),
            *self.compiled.definitions.values(),
        )
        return any(self._tells(tree) for tree in written)

    def _tells(self, tree: Expression) -> bool:
        members = {
            name.rpartition("_")[2]
            for name in names_in(tree)
            if "_" in name and name.rpartition("_")[0].rstrip("0123456789") in self.free
        }
        # Standing alone, c is the output and d the dimension, whatever letters there are.
        meant = {*self.free, *self.given, *self.compiled.domains, *self.compiled.definitions}
        indices = members & (self.bound | set(self.compiled.members)) - meant - {"n", "d"}
        for node in walk(tree):
            if isinstance(node, Call) and node.function in POSITIONAL:
                return True
            if isinstance(node, Compare) and node.operator in ("=", "!="):
                sides = (node.left, node.right)
                if all(isinstance(side, Name) for side in sides):
                    continue  # i != a tells no more than that they differ
            if isinstance(node, Binary | Compare) and any(
                isinstance(part, Name) and part.text in indices for part in children(node)
            ):
                return True
        return False
