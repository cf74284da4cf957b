"""The world of a claim: what every name means in one of its cases.

Symbols of `where` come first, then keys, values and heads (or a sequence), then `let`, in this
order; later names may use earlier ones.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from flint import arb, ctx

from heedful.claims import Claim
from heedful.claims.language.tree import (
    Call,
    Entry,
    Expression,
    Name,
    bound_names,
    map_children,
    walk,
)
from heedful.claims.sheet.claim import DefinitionHead, ParsedFormula, map_formulas, read_claim
from heedful.errors import FormulaError
from reference.meaning import (
    UNDEFINED,
    Environment,
    Truth,
    conjunction,
    disjunction,
    negation,
    self_attention,
    truth_of,
    value_of,
)
from reference.numbers import (
    Scalar,
    UndefinedError,
    UnknownError,
    negative,
    over,
    plus,
    sign,
    square_root,
    times,
    whole,
)
from reference.values import (
    Value,
    add,
    column,
    identity,
    inner,
    matrix,
    multiply,
    scalar,
    softmax,
    stack,
    transpose,
    vector,
)

PRECISION = 256
"""Bits of a ball; enough to tell apart what differs by 1e-60."""
FAMILIES = ("k", "v", "mu", "x", "q", "c", "alpha")
STATISTICS = ("E", "P", "var", "std", "cov", "quantile")


def truth(
    claim: Claim,
    scalars: Mapping[str, Scalar],
    arrays: Mapping[str, Value],
    letters: Mapping[str, int],
) -> Truth:
    """Return whether a claim holds in one case: symbols, arrays, and which keys letters name."""
    before, ctx.prec = ctx.prec, PRECISION
    try:
        claim = read_claim(claim)
        env = environment_of(claim, scalars, arrays, letters)
        expected = [tree_of(text) for text in claim.expect]
        given = None if claim.given is None else tree_of(claim.given)
        if given is not None and any(map(has_statistic, expected)):
            expected = [with_given(tree, given) for tree in expected]
            given = None
        holds = conjunction([truth_of(tree, env) for tree in expected])
        return holds if given is None else disjunction([negation(truth_of(given, env)), holds])
    except UndefinedError:
        return UNDEFINED
    except UnknownError:
        return None
    finally:
        ctx.prec = before


def tree_of(text: str) -> Expression:
    """Return the tree of a formula that has been read."""
    assert isinstance(text, ParsedFormula)
    return text.tree


def has_statistic(tree: Expression) -> bool:
    """Tell whether a formula speaks about a distribution."""
    return any(isinstance(node, Call) and node.function in STATISTICS for node in walk(tree))


def with_given(tree: Expression, given: Expression) -> Expression:
    """Return a formula whose statistics are under the claim's condition unless under their own."""
    tree = map_children(tree, lambda part: with_given(part, given))
    if isinstance(tree, Call) and tree.given is None and tree.function in STATISTICS:
        return replace(tree, given=given)
    return tree


def letters_of(claim: Claim) -> list[str]:
    """Return the letters that name keys (a, b, j, …) in the order in which they appear."""
    claim = read_claim(claim)
    trees: list[Expression] = []
    map_formulas(claim, lambda _, text: trees.append(tree_of(text)) or text)
    order = ("expect", "given", "query", "heads", "sequence", "matrices", "covariance", "let")
    place = {name: number for number, name in enumerate(order)}
    trees.sort(key=lambda tree: place.get(str((tree.position.field or ("",))[0]), len(order)))
    heads = {DefinitionHead.of(key) for key in claim.let}
    symbols = {*claim.where, *(head.name for head in heads)}
    bound = {index for tree in trees for node in walk(tree) for index in bound_names(node)}
    bound |= {name for head in heads for name in head.parameters or ()}
    letters: dict[str, None] = {}
    for node in (node for tree in trees for node in walk(tree)):
        named: list[str] = []
        if isinstance(node, Name) and node.text not in symbols:
            base, _, member = node.text.rpartition("_")
            named = [member] if base.rstrip("0123456789") in FAMILIES or base in symbols else []
        elif isinstance(node, Entry):
            named = [index.text for index in node.indices if isinstance(index, Name)]
        elif isinstance(node, Call) and node.function in ("mass", "copyable", "hull", "distance"):
            named = [part.text for part in node.arguments if isinstance(part, Name)]
        for letter in named:
            if not letter.isdigit() and letter not in bound | symbols:
                letters.setdefault(letter)
    for letter in claim.covariance:
        if letter != "others":
            letters.setdefault(letter)
    return list(letters)


def choices_of_letters(claim: Claim) -> list[dict[str, int]]:
    """Return every meaning of the letters that counts: all choices of different given places.

    Where neither keys, values nor a sequence are given one by one it does not matter which a
    letter names, unless a place is also named by its number.
    """
    letters = letters_of(claim)
    given = (claim.keys, claim.means, claim.values, claim.sequence)
    rows = next((r for r in given if isinstance(r, list | tuple) and r), None)
    if rows is None:
        return [{letter: place for place, letter in enumerate(letters)}]
    choices = itertools.permutations(range(len(rows)), len(letters))
    return [dict(zip(letters, choice, strict=True)) for choice in choices]


def exact(number: Any) -> Fraction:
    """Return a number of a sheet as the decimal it was written as."""
    return number if isinstance(number, Fraction) else Fraction(str(number))


def environment_of(
    claim: Claim,
    scalars: Mapping[str, Scalar],
    arrays: Mapping[str, Value],
    letters: Mapping[str, int],
) -> Environment:
    """Return what every name means in one case of a claim whose formulas have been read."""
    heads = {DefinitionHead.of(key): tree_of(text) for key, text in claim.let.items()}
    names: dict[str, Value] = {name: scalar(value) for name, value in scalars.items()}
    names.update(arrays)
    if isinstance(claim.means, list | tuple):
        names["n"] = scalar(Fraction(len(claim.means)))
        if not isinstance(claim.means[0], str):
            names["d"] = scalar(Fraction(len(claim.means[0])))
    if "n" in names:
        names.setdefault("d", names["n"])
    if "d" in names:
        names.setdefault("I", matrix(identity(whole(names["d"].entries))))
    env = Environment(
        names=names,
        members=letters,
        functions={h.name: (h.parameters, tree) for h, tree in heads.items() if h.parameters},
        width=whole(names["d"].entries) if "d" in names else 2,
        base=exact(claim.positions.get("base", 10000)),
        tolerance=exact(claim.tolerance),
    )
    random = [name for name, spec in claim.where.items() if str(spec).startswith("normal")]
    if claim.keys != "gaussian" and not random:
        return furnished(claim, env)
    directions = sum(math.prod(shape_of(str(claim.where[name]), names)) for name in random)
    if claim.keys == "gaussian":
        directions += sum(map(len, factors_of(claim, with_means(claim, env))))

    def place(coordinates: Sequence[Scalar]) -> Environment:
        """Return the world with every noisy coordinate given a value."""
        left = list(coordinates)
        drawn: dict[str, Value] = {}
        for name in random:
            shape = shape_of(str(claim.where[name]), names)
            block, left = left[: math.prod(shape)], left[math.prod(shape) :]
            drawn[name] = shaped(block, shape)
        return furnished(claim, env.with_names(**drawn), left)

    # Outside of statistics a random number is any number of the whole line.
    return replace(place([arb(0, math.inf)] * directions), noise=(place, directions))


def shaped(numbers: Sequence[Scalar], shape: Sequence[int]) -> Value:
    """Return numbers as a scalar, a vector, or a matrix row by row."""
    if not shape:
        return scalar(numbers[0])
    if len(shape) == 1:
        return vector(numbers)
    return matrix([numbers[row * shape[1] : (row + 1) * shape[1]] for row in range(shape[0])])


def shape_of(spec: str, names: Mapping[str, Value]) -> list[int]:
    """Return the sizes of "matrix T x d", "normal vector 2d", "unit vector 3", …"""
    kinds = r"(unit |normal )?(vector|matrix|permutation|distribution|orthonormal|normal)\b"
    parts = re.split(r"[x×,]", re.sub(kinds, "", spec))
    return [size_in(part, names) for part in parts if part.strip()]


def size_in(text: str, names: Mapping[str, Value]) -> int:
    """Return a size such as "T", "4" or "2d" as a number."""
    found = re.fullmatch(r"(\d*)\s*\*?\s*([A-Za-z_]\w*)?", text.strip())
    assert found is not None, text
    return int(found[1] or 1) * (whole(names[found[2]].entries) if found[2] else 1)


def rows_of(rows: Sequence[Any], env: Environment) -> Value:
    """Return keys, means or values that are given as rows of numbers or as formulas."""
    return matrix(
        [
            column(value_of(tree_of(row), env)).entries if isinstance(row, str) else map(exact, row)
            for row in rows
        ]
    )


def with_means(claim: Claim, env: Environment) -> Environment:
    """Give mu its meaning: the rows of `means`, or perpendicular unit vectors."""
    if isinstance(claim.means, list | tuple):
        return env.with_names(mu=rows_of(claim.means, env))
    n, d = (whole(env.names[size].entries) for size in ("n", "d"))
    return env.with_names(mu=matrix(identity(n, d)))


def factors_of(claim: Claim, env: Environment) -> list[list[list[Scalar]]]:
    """Return for every key the columns of an L with Σ = L Lᵀ, by exact elimination."""
    factors = []
    n, d = env.names["mu"].shape
    for key in range(n):
        own = (x for x, place in env.members.items() if place == key and x in claim.covariance)
        text = claim.covariance.get(next(own, "others"))
        columns: list[list[Scalar]] = []
        if text is not None:
            sigma = value_of(tree_of(text), env)
            if sigma.kind == "scalar":
                sigma = multiply(sigma, matrix(identity(d)))
            rest = [list(row) for row in sigma.entries]
            for place in range(d):
                pivot = rest[place][place]
                if sign(pivot) < 0:
                    raise FormulaError("covariance", "is not positive semidefinite")
                if sign(pivot) == 0:
                    continue
                step = [row[place] for row in rest]
                columns.append([over(entry, square_root(pivot)) for entry in step])
                rest = [
                    [
                        plus(rest[i][j], negative(over(times(step[i], step[j]), pivot)))
                        for j in range(d)
                    ]
                    for i in range(d)
                ]
        factors.append(columns)
    return factors


def furnished(claim: Claim, env: Environment, coordinates: Sequence[Scalar] = ()) -> Environment:
    """Give keys, values, heads, a sequence and the definitions their meaning, in this order."""
    if claim.keys is not None:
        env = with_keys(claim, env, coordinates)
        env = replace(env, scale=scale_of(claim, env.names["k"].shape[1]))
    if claim.sequence:
        env = with_sequence(claim, env)
    elif claim.keys is not None:
        env = with_heads(claim, env)
    for key, text in claim.let.items():
        head = DefinitionHead.of(key)
        if head.parameters is None:
            try:
                env = env.with_names(**{head.name: value_of(tree_of(text), env)})
            except UndefinedError:
                env = replace(env, undefined=env.undefined | {head.name})
    return env


def with_keys(claim: Claim, env: Environment, coordinates: Sequence[Scalar]) -> Environment:
    """Give k (and mu) its meaning; arbitrary keys are an array of the case."""
    if isinstance(claim.keys, list | tuple):
        keys = rows_of(claim.keys, env)
        sizes = {name: scalar(Fraction(x)) for name, x in zip("nd", keys.shape, strict=True)}
        return env.with_names(**{**sizes, **env.names, "k": keys})
    if claim.keys in ("unit", "any"):
        return env
    if claim.keys == "orthonormal":
        n, d = (whole(env.names[size].entries) for size in ("n", "d"))
        return env.with_names(k=matrix(identity(n, d)))
    env = with_means(claim, env)
    left = list(coordinates)
    rows = []
    for mean, columns in zip(env.names["mu"].entries, factors_of(claim, env), strict=True):
        row = list(mean)
        for direction in columns:
            z = left.pop(0)
            row = [plus(entry, times(z, step)) for entry, step in zip(row, direction, strict=True)]
        rows.append(row)
    return env.with_names(k=matrix(rows))


def scale_of(claim: Claim, d: int) -> Scalar:
    """Return what multiplies k·q."""
    if claim.scale == "sqrt_d":
        return over(Fraction(1), square_root(Fraction(d)))
    return exact(claim.scale)


def with_sequence(claim: Claim, env: Environment) -> Environment:
    """Give x, k, q, v, alpha and c of self-attention their meaning."""
    x = stack(*[value_of(tree_of(text), env) for text in claim.sequence])
    given = {name: value_of(tree_of(text), env) for name, text in claim.matrices.items()}
    parts = [given.get(name, matrix(identity(x.shape[1]))) for name in ("K", "Q", "V")]
    alpha, outputs = self_attention([x, *parts], scale_of(claim, x.shape[1]))
    k, q, v = (multiply(x, transpose(part)) for part in parts)
    return env.with_names(x=x, alpha=alpha, c=outputs, k=k, q=q, v=v)


def with_heads(claim: Claim, env: Environment) -> Environment:
    """Give v, and with a query or heads also q, alpha and c (averages over the heads)."""
    n = env.names["k"].shape[0]
    if isinstance(claim.values, list | tuple):
        values = rows_of(claim.values, env)
    else:
        values = env.names["k"] if claim.values == "keys" else matrix(identity(n), formal=True)
    env = env.with_names(v=values)
    queries = claim.heads if claim.query is None else (claim.query,)
    if not queries:
        return env
    names: dict[str, Value] = {}
    alphas, outputs = [], []
    for place, text in enumerate(queries, start=1):
        q = value_of(tree_of(text), env)
        scores = [times(env.scale, inner(row, column(q).entries)) for row in env.names["k"].entries]
        alphas.append(vector(softmax(scores)))
        outputs.append(multiply(transpose(values), alphas[-1]))
        names |= {f"q_{place}": q, f"alpha{place}": alphas[-1], f"c_{place}": outputs[-1]}
    if len(queries) == 1:
        names["q"] = names["q_1"]
    share = scalar(Fraction(1, len(queries)))
    alpha, output = alphas[0], outputs[0]
    for more_alpha, more_output in zip(alphas[1:], outputs[1:], strict=True):
        alpha, output = add(alpha, more_alpha), add(output, more_output)
    return env.with_names(**names, alpha=multiply(share, alpha), c=multiply(share, output))
