"""Which places the letters of a claim may name: `a` of `k_a`, `x_a` or `M[a, b]`.

A claim with letters must hold for every choice of different places. Where nothing tells the
places apart, one choice speaks for all of them: orthonormal, arbitrary or Gaussian keys may be
renumbered, and so may the rows of an arbitrary array. Where something does (keys, values or a
sequence given one by one, a place named by its number, a vector written out), the choices are
judged one by one.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from heedful.claims.compile import CompiledClaim
from heedful.claims.evaluate.float import Evaluator
from heedful.claims.functions import FUNCTIONS
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
from heedful.claims.symbols import Array, Interval, Values
from heedful.claims.worlds import build_world
from heedful.errors import FormulaError

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
