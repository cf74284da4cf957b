"""A failing case in words and numbers, and the command that shows it."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from typing import Any

import numpy as np

from heedful.claims.compile import CompiledClaim
from heedful.claims.language.tree import Call, walk
from heedful.claims.values import Value
from heedful.claims.verdict import Counterexample

SHOWN = 8
"""Significant figures of a number that is shown."""
TELLING = 0.0228
"""The quantile of the draw shown for a claim about a distribution: two deviations below."""
MOST_SHOWN = 6
"""Entries of a vector that a sentence lists."""
MOST_KEYS = 12
"""Keys that are written out in a command, at most."""


def describe(compiled: CompiledClaim, case: Any, outcome: Any) -> Counterexample:
    """Return the counterexample of a failing case."""
    symbols: dict[str, Any] = {name: _plain(value) for name, value in case.scalars.items()}
    symbols.update({name: _listed(array) for name, array in case.arrays.items()})
    truth, world = outcome.truth, outcome.world
    worst = _telling_draw(compiled, outcome)
    left, right = _of(truth.left, worst), _of(truth.right, worst)
    parts = [f"{name} = {_words(value)}" for name, value in symbols.items()]
    members = ", ".join(f"{name} is key {place}" for name, place in world.indices.items())
    where = "With " + ", ".join(parts) if parts else "Here"
    if members and compiled.claim.keys is not None:
        where += f" ({members}, counted from 0)"
    gap = float(np.max(truth.gap))
    sides = ""
    if left is not None and right is not None:
        sides = f" the left side is {_words(left)} and the right side {_words(right)}"
    statement = f"{where}{',' if sides else ''}{sides or ' it fails'}."
    return Counterexample(
        symbols=symbols,
        left=left,
        right=right,
        gap=gap,
        statement=statement,
        command=_noise_command(compiled, case) or _command(compiled, world, worst),
    )


def _telling_draw(compiled: CompiledClaim, outcome: Any) -> int:
    """Return the draw that shows the failure: the worst one, or one two deviations out."""
    gaps = outcome.truth.gap
    if len(gaps) > 1 or not compiled.noisy:
        return int(np.argmax(gaps))
    weights = outcome.world.weights
    return 0 if weights is None else int(np.searchsorted(np.cumsum(weights), TELLING))


def _noise_command(compiled: CompiledClaim, case: Any) -> str | None:
    """Return the `heed noise` command of a claim about orthonormal means with one noisy key."""
    claim = compiled.claim
    if claim.keys != "gaussian" or not compiled.statistical:
        return None
    noisy = [name for name in claim.covariance if name != "others"]
    members = {name: place for place, name in enumerate(compiled.members)}
    if len(noisy) != 1 or claim.covariance.get("others", "0").strip() != "0":
        return None
    name = noisy[0]
    variance_text = re.fullmatch(
        rf"([\d./]+)\s*\*?\s*mu_{name}\s*\*?\s*mu_{name}\s*(?:\^T|ᵀ|')",
        claim.covariance[name].strip(),
    )
    beta = case.scalars.get("beta")
    if variance_text is None or beta is None:
        return None
    heads = []
    for text in (claim.query,) if claim.query is not None else claim.heads:
        inner = re.fullmatch(r"beta\s*\*?\s*\(?([^()]*)\)?", text.strip())
        if inner is None:
            return None
        head = re.sub(r"mu_(\w+)", lambda m: str(members.get(m[1], m[1])), inner[1])
        heads.append(head.replace(" ", ""))
    variance = float(Fraction(variance_text[1]))
    n, d = int(case.scalars["n"]), int(case.scalars.get("d", case.scalars["n"]))
    return (
        f"heed noise --n {n} --d {d} --noisy {members[name]} --variance {variance:g} "
        f"--heads {' '.join(heads)} --beta {beta:g}"
    )


def _command(compiled: CompiledClaim, world: Any, worst: int) -> str | None:
    """Return a `heed attend` or `heed copyable` command with exactly the numbers of the case."""
    keys, query = world.families.get("k"), world.symbols.get("q") or world.symbols.get("q_1")
    if keys is None or compiled.sequence:
        return None
    source = _source(compiled, _row(keys, worst))
    if source is not None and query is None and _about_hulls(compiled):
        return f"heed copyable {source}"
    if source is None or query is None or query.kind != "vector":
        return None
    numbers = " ".join(str(_short(x)) for x in _row(query, worst))
    scale = f" --scale {compiled.claim.scale}" if compiled.claim.scale != 1 else ""
    return f"heed attend {source} --query {numbers}{scale}"


def _about_hulls(compiled: CompiledClaim) -> bool:
    return any(
        isinstance(node, Call) and node.function in ("copyable", "hull", "distance")
        for tree in compiled.expectations
        for node in walk(tree)
    )


def _source(compiled: CompiledClaim, rows: Any) -> str | None:
    """Return the options that give a command these keys; None if they are too many to write."""
    n, d = rows.shape
    if compiled.claim.keys == "orthonormal":
        return f"--n {n}" if d == n else f"--n {n} --d {d}"
    if max(n, d) > MOST_KEYS:
        return None
    return "--keys '" + json.dumps([[_short(x) for x in row] for row in rows]) + "'"


def _of(value: Value | None, worst: int) -> Any:
    if value is None:
        return None
    row = _row(value, worst)
    return _plain(float(row)) if np.ndim(row) == 0 else _listed(row)


def _listed(array: Any) -> Any:
    return (np.asarray(array) + 0.0).tolist()  # no -0, which is nothing but 0 to a reader


def _row(value: Value, worst: int) -> Any:
    return value.array[min(worst, len(value.array) - 1)]


def _short(value: float) -> Any:
    rounded = float(f"{float(value):.{SHOWN}g}")
    return int(rounded) if rounded == round(rounded) and abs(rounded) < 1e15 else rounded


def _plain(value: float) -> Any:
    return int(value) if float(value) == round(float(value)) and abs(value) < 1e15 else float(value)


def _words(value: Any) -> str:
    if isinstance(value, list):
        if len(value) > MOST_SHOWN:
            return "[" + ", ".join(_words(entry) for entry in value[:MOST_SHOWN]) + ", …]"
        return "[" + ", ".join(_words(entry) for entry in value) + "]"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
