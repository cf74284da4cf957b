"""Worlds: a compiled claim with a value for every symbol, and its noise drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, TypeVar

import numpy as np

from heedful.attention.operation import scale_of
from heedful.claims.compile import CompiledClaim
from heedful.claims.evaluate.float import Evaluator, World
from heedful.claims.language import show
from heedful.claims.language.tree import Expression, names_in
from heedful.claims.sheet.claim import field_error
from heedful.claims.symbols import Array, size_of
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
