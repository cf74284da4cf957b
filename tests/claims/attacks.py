"""Attacks on a verdict, in the reference meaning.

A claim that was called proved is tried at the ends and simple numbers of its ranges, at random
ones, uphill from the case that holds most narrowly, and on whole pieces of its intervals. The
counterexample of one that was called refuted must not hold.
"""

from __future__ import annotations

import itertools
import math
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from flint import ctx
from reference.meaning import UNDEFINED, Environment, Truth, truth_of, value_of
from reference.numbers import UndefinedError, UnknownError, ball
from reference.values import Value, identity, inverse, matrix, multiply, scalar, vector
from reference.world import (
    PRECISION,
    choices_of_letters,
    environment_of,
    exact,
    letters_of,
    shape_of,
    tree_of,
    truth,
)

from heedful.claims import Claim, Verdict
from heedful.claims.language.tree import Compare, Expression, Logic
from heedful.claims.sheet.claim import read_claim
from heedful.errors import FormulaError

MOST_LETTERS = 24
"""Choices of keys for letters, of which so many are tried in each case."""
INEXACT = ("unit vector", "distribution", "orthonormal")
"""Arrays that the judge rounds to float64, so that they are not quite of their kind."""

# ---- cases of a claim, exactly ----

SIMPLE = [Fraction(x) for x in (0, 1, -1, "1/2", 2, -2, 3, 10, -10, 1000, "1/1000")]


def numbers_of(spec: Any, rng: random.Random, named: list[Fraction]) -> list[Fraction]:
    """Return exact numbers of a range: its ends, simple ones, those of the formulas, random."""
    if isinstance(spec, int | float):
        return [exact(spec)]
    if isinstance(spec, list | tuple):
        return [exact(value) for value in spec]
    drawn = [Fraction(rng.randint(-999, 999), rng.randint(1, 40)) for _ in range(6)]
    if spec in ("any", "real"):
        return [*SIMPLE, *named, *drawn]
    if spec == "positive":
        return [abs(x) for x in (*SIMPLE, *named, *drawn) if x]
    if spec == "large":
        return [Fraction(x) for x in (10**40, 10**60 + 1, 10**80 + 7)]
    if spec in ("small", "vanishing"):
        return [Fraction(1, 10**60), Fraction(1, 10**80)]
    whole_numbers = [x for x in (*SIMPLE, *named) if x.denominator == 1]
    if spec == "natural":
        return [x for x in whole_numbers if x >= 0]
    if found := re.fullmatch(r"(-?\d+)\s*\.\.\s*(-?\d+)", spec):
        low, high = int(found[1]), int(found[2])
        some = range(low, high + 1)
        chosen = some if len(some) <= 300 else rng.sample(some, 60)
        return [*(x for x in whole_numbers if low <= x <= high), *map(Fraction, chosen)]
    if found := re.fullmatch(r"integers?\s*(>=|>)\s*(-?\d+)", spec):
        first = int(found[2]) + (found[1] == ">")
        return [x for x in (*whole_numbers, *map(Fraction, range(first, first + 9))) if x >= first]
    low, high, open_low, open_high = interval_of(spec)
    step = (high - low) / 1000
    ends = [low + step / 1000 * open_low, high - step / 1000 * open_high, (low + high) / 2]
    inside = [x for x in (*SIMPLE, *named) if low < x < high]
    return [*ends, *inside, *(low + step * rng.randint(1, 999) for _ in range(8))]


def interval_of(spec: Any) -> tuple[Fraction, Fraction, bool, bool]:
    """Return the ends of an interval (±1000 for infinity), and whether they are left out."""
    found = re.fullmatch(r"([\[(])\s*([^,\s]+)\s*,\s*([^,\s]+)\s*([\])])", str(spec))
    if found is None:
        raise ValueError(spec)
    ends = [re.sub(r"inf|∞", "1000", end) for end in (found[2], found[3])]
    return Fraction(ends[0]), Fraction(ends[1]), found[1] == "(", found[4] == ")"


def array_of(spec: str, shape: list[int], rng: random.Random, place: int) -> Value:
    """Return an exact array of a kind: simple ones first."""
    if spec.startswith("permutation"):
        return matrix(rng.sample(identity(shape[0]), shape[0]))
    if spec.startswith("distribution"):
        weights = [rng.randint(0 if place % 2 else 1, 9) for _ in range(shape[0])]
        weights[0] += 1
        return vector([Fraction(weight, sum(weights)) for weight in weights])
    if spec.startswith("unit vector"):
        return vector(unit_vector(shape[0], rng, place))
    if spec.startswith("orthonormal"):
        return matrix(rotation(shape[1], rng)[: shape[0]])
    count = math.prod(shape)
    if place == 0:
        numbers = [Fraction(int(i % (shape[-1] + 1) == 0)) for i in range(count)]
    elif place == 1:
        numbers = [Fraction(0)] * count
    elif place < 6:
        numbers = [Fraction(rng.randint(-3, 3)) for _ in range(count)]
    else:
        size = rng.choice([1, 1, 30])
        numbers = [size * Fraction(rng.randint(-400, 400), 97) for _ in range(count)]
    if len(shape) == 1:
        return vector(numbers)
    return matrix([numbers[row * shape[1] : (row + 1) * shape[1]] for row in range(shape[0])])


def unit_vector(d: int, rng: random.Random, place: int) -> list[Fraction]:
    """Return a rational point of the sphere: the projection of a rational point of the plane."""
    if place < d:
        return identity(d)[place]
    flat = [Fraction(rng.randint(-6, 6), rng.randint(1, 5)) for _ in range(d - 1)]
    square = sum((x * x for x in flat), Fraction(0))
    return [*(2 * x / (1 + square) for x in flat), (square - 1) / (square + 1)]


def rotation(d: int, rng: random.Random) -> list[list[Fraction]]:
    """Return a rational orthogonal matrix: (I − A)(I + A)^-1 with A antisymmetric."""
    a = [[Fraction(0)] * d for _ in range(d)]
    for i, j in itertools.combinations(range(d), 2):
        a[i][j] = Fraction(rng.randint(-3, 3), rng.randint(1, 3))
        a[j][i] = -a[i][j]
    above, below = (
        matrix([[int(i == j) + sign * a[i][j] for j in range(d)] for i in range(d)])
        for sign in (1, -1)
    )
    return [list(row) for row in multiply(below, inverse(above)).entries]


@dataclass(frozen=True)
class Ranges:
    """The symbols of a claim: numbers that each may be, and specifications of its arrays."""

    scalars: dict[str, Any]
    arrays: dict[str, str]

    @classmethod
    def of(cls, claim: Claim) -> Ranges:
        """Return the ranges of a claim, with the sizes that it leaves to the laboratory."""
        where = dict(claim.where)
        if isinstance(claim.keys, str) and not isinstance(claim.means, list | tuple):
            where.setdefault("n", [2, 3, 5, 10])
            if claim.keys in ("unit", "any"):
                where.setdefault("d", [2, 3])
        if claim.positions.get("width") is not None:
            where.setdefault("d", claim.positions["width"])
        kinds = r"(vector|unit vector|matrix|permutation|distribution|orthonormal) (.+)"
        found = {name: re.fullmatch(kinds, str(spec)) for name, spec in where.items()}
        arrays = {name: str(where[name]) for name, match in found.items() if match}
        for match in filter(None, found.values()):
            for size in re.findall(r"\b\d*([A-Za-wyz]\w*)", match[2]):
                where.setdefault(size, {"T": [2, 3, 5]}.get(size, [2, 3]))
        scalars = {
            name: spec
            for name, spec in where.items()
            if name not in arrays and not str(spec).startswith("normal")
        }
        if claim.keys in ("unit", "any"):
            arrays["k"] = claim.keys
        return cls(scalars, arrays)


Case = tuple[dict[str, Any], dict[str, Value]]


def cases_of(
    claim: Claim, rng: random.Random, from_: Fraction | None = None, most: int = 40
) -> Iterator[Case]:
    """Yield exact cases of the ranges of a claim; large symbols start where the proof does."""
    ranges = Ranges.of(claim)
    texts = " ".join(map(str, (*claim.expect, claim.given, claim.query, *claim.let.values())))
    named = [Fraction(text) for text in re.findall(r"\d+/\d+|\d+\.?\d*", texts)[:8]]
    named += [-x for x in named]
    choices = {
        name: list(dict.fromkeys(numbers_of(spec, rng, named)))
        for name, spec in ranges.scalars.items()
    }
    for name, spec in ranges.scalars.items():
        if spec == "large" and from_ is not None:
            choices[name] = [from_, from_ + 1, 2 * from_ + 1, 100 * from_ + 10**6]
    few = math.prod(map(len, choices.values())) <= most
    combinations = list(itertools.product(*choices.values())) if few else []
    for place in range(most):
        if few and not ranges.arrays and place >= len(combinations):
            return
        chosen = (
            combinations[place % len(combinations)]
            if few
            else [rng.choice(each) for each in choices.values()]
        )
        numbers = dict(zip(choices, chosen, strict=True))
        names = {name: scalar(value) for name, value in numbers.items()}
        arrays = {
            name: array_of(spec, shape_of(spec, names), rng, place)
            for name, spec in ranges.arrays.items()
            if name != "k"
        }
        if "k" in ranges.arrays:
            n, d = int(numbers["n"]), int(numbers["d"])
            if claim.keys == "unit":
                arrays["k"] = matrix([unit_vector(d, rng, place) for _ in range(n)])
            else:
                arrays["k"] = array_of("matrix", [n, d], rng, place)
        yield numbers, arrays


# ---- attacks ----


def fails(claim: Claim, case: Case, letters: list[dict[str, int]]) -> Truth:
    """Return False or UNDEFINED if a claim is so for some choice of letters, else True or None."""
    worst: Truth = True
    numbers, arrays = case
    if len(letters) == 1 and letters[0] and _told_apart(claim) and numbers.get("n", 99) <= 5:
        places = itertools.permutations(range(int(numbers["n"])), len(letters[0]))
        letters = [dict(zip(letters[0], choice, strict=True)) for choice in places]
    for choice in letters:
        if isinstance(claim.keys, str) and not claim.sequence and choice:
            n = numbers.get("n", len(choice) if isinstance(claim.means, str) else math.inf)
            if n < len(choice):
                continue  # fewer keys than letters is no case of the claim
        found = truth(claim, numbers, arrays, choice)
        if found is False or found == UNDEFINED:
            return found
        worst = None if found is None else worst
    return worst


def _told_apart(claim: Claim) -> bool:
    """Tell whether a place may be named by its number, so that it matters which a letter names."""
    texts = " ".join(map(str, (*claim.expect, claim.given, claim.query, *claim.heads)))
    texts += " ".join(map(str, claim.let.values()))
    named = r"_\d|\[\d|onehot|argmax|concat|stack|phi|\b[ij]\s*[<>=!]=?\s*\d"
    return re.search(named, texts) is not None


@dataclass(frozen=True)
class Effort:
    """How much is spent on one claim."""

    cases: int = 40
    noisy_cases: int = 2
    """The same for claims about noise, where every case is an integral."""
    steps: int = 40
    """Changes that are tried uphill from the case that holds most narrowly."""
    pieces: int = 60
    """Pieces of ranges that are halved in search of one on which a claim fails."""


WHOLE = Effort()


def attack(
    claim: Claim, rng: random.Random, from_: Fraction | None = None, effort: Effort = WHOLE
) -> str | None:
    """Return a case in which a claim that was called proved is not true, if one is found."""
    claim = read_claim(claim)
    letters = choices_of_letters(claim)
    if len(letters) > MOST_LETTERS:
        letters = rng.sample(letters, MOST_LETTERS)
    noisy = claim.keys == "gaussian" or "normal" in str(claim.where)
    narrowest: tuple[float, Case] | None = None
    most = effort.noisy_cases if noisy else effort.cases
    for case in itertools.islice(cases_of(claim, rng, from_, effort.cases), most):
        found = fails(claim, case, letters)
        if found is False or found == UNDEFINED:
            return shown_case(case, found)
        if not noisy and effort.steps:
            reached = margin(claim, case, letters[0])
            if narrowest is None or reached < narrowest[0]:
                narrowest = reached, case
    if noisy:
        return None
    climbed = None if narrowest is None else climb(claim, rng, letters, narrowest, effort.steps)
    return climbed or bisection(claim, rng, letters, effort.pieces)


def shown_case(case: Case, found: Truth) -> str:
    """Return a failing case in words."""
    numbers, arrays = case
    shown = {name: str(x) for name, x in numbers.items()}
    shown |= {name: str([str(x) for x in value.flat]) for name, value in arrays.items()}
    return f"{'undefined' if found else 'false'} at {shown}"


def margin(claim: Claim, case: Case, letters: dict[str, int]) -> float:
    """Return how far a claim is from failing in a case: what a climb makes smaller."""
    with ctx.workprec(PRECISION):
        try:
            env = environment_of(claim, *case, letters)
            return min(slack(tree_of(text), env) for text in claim.expect)
        except (UndefinedError, UnknownError, FormulaError, OverflowError):
            return math.inf


def slack(node: Expression, env: Environment) -> float:
    """Return by how much a statement holds, roughly; infinity where that says nothing."""
    match node:
        case Compare("<" | "<=" | ">" | ">=" as operator, left, right):
            sides = [ball(value_of(side, env).entries) for side in (left, right)]
            apart = sides[1] - sides[0] if operator in ("<", "<=") else sides[0] - sides[1]
            size = 1 + abs(float(sides[0].mid())) + abs(float(sides[1].mid()))
            return float(apart.mid()) / size if apart.is_finite() else math.inf
        case Logic("and", left, right):
            return min(slack(left, env), slack(right, env))
        case Logic("or", left, right):
            return max(slack(left, env), slack(right, env))
        case Logic("implies", left, right):
            return slack(right, env) if truth_of(left, env) else math.inf
    return math.inf


def climb(
    claim: Claim,
    rng: random.Random,
    letters: list[dict[str, int]],
    start: tuple[float, Case],
    steps: int,
) -> str | None:
    """Change one number at a time, keep what brings the claim closer to failing."""
    least, case = start
    if not math.isfinite(least):
        return None
    free = [name for name, spec in claim.where.items() if _moves(spec)]
    free += [name for name in case[1] if name == "k" and claim.keys == "any"]
    for step in range(steps if free else 0):
        name = rng.choice(free)
        changed = _moved(claim, case, name, rng, Fraction(1, 1 + step // 8))
        if changed is None:
            continue
        found = fails(claim, changed, letters)
        if found is False or found == UNDEFINED:
            return shown_case(changed, found)
        reached = margin(claim, changed, letters[0])
        if reached < least:
            least, case = reached, changed
    return None


def _moves(spec: Any) -> bool:
    """Tell whether a symbol has neighbours: an interval, any number, a vector or a matrix."""
    text = str(spec)
    return text in ("any", "real", "positive") or text.startswith(("vector", "matrix", "[", "("))


def _moved(claim: Claim, case: Case, name: str, rng: random.Random, size: Fraction) -> Case | None:
    numbers, arrays = case
    spec = claim.where.get(name)
    if name in arrays:
        entries = list(arrays[name].flat)
        place = rng.randrange(len(entries))
        near = rng.choice([*entries, Fraction(0)])
        step = size * Fraction(rng.randint(-200, 200), 100)
        entries[place] = near if rng.random() < 0.2 else entries[place] + step
        left = iter(entries)
        return numbers, {**arrays, name: arrays[name].map(lambda _: next(left))}
    if isinstance(spec, list | tuple) or not isinstance(numbers.get(name), Fraction):
        return None
    width = Fraction(4)
    if str(spec).startswith(("[", "(")):
        low, high, open_low, open_high = interval_of(spec)
        width = (high - low) / 4
    value = numbers[name] + size * width * Fraction(rng.randint(-100, 100), 100)
    if str(spec).startswith(("[", "(")):
        value = min(max(value, low), high)
        if (value == low and open_low) or (value == high and open_high):
            return None
    if spec == "positive" and value <= 0:
        return None
    return {**numbers, name: value}, arrays


def bisection(
    claim: Claim, rng: random.Random, letters: list[dict[str, int]], pieces: int
) -> str | None:
    """Look for a piece of the intervals on which a claim fails, by halving undecided ones."""
    intervals = {
        name: interval_of(spec)[:2]
        for name, spec in claim.where.items()
        if isinstance(spec, str) and re.fullmatch(r"[\[(][^a-z∞]*[\])]", spec)
    }
    if not 1 <= len(intervals) <= 2:
        return None
    for numbers, arrays in itertools.islice(cases_of(claim, rng), 1):
        boxes = [intervals]
        for _ in range(pieces):
            if not boxes:
                break
            box = boxes.pop(0)
            balls = {name: ball(low).union(ball(high)) for name, (low, high) in box.items()}
            found = fails(claim, ({**numbers, **balls}, arrays), letters)
            if found is False or found == UNDEFINED:
                shown = {name: f"[{low}, {high}]" for name, (low, high) in box.items()}
                return f"{'undefined' if found else 'false'} on {shown}"
            if found is None:
                name = max(box, key=lambda each: box[each][1] - box[each][0])
                low, high = box[name]
                middle = (low + high) / 2
                boxes += [{**box, name: half} for half in ((low, middle), (middle, high))]
    return None


def confirmed(claim: Claim, verdict: Verdict) -> bool:
    """Tell whether the counterexample of a refuted claim may be one: it does not surely hold."""
    return truth_at_counterexample(claim, verdict) is not True


def truth_at_counterexample(claim: Claim, verdict: Verdict) -> Truth:
    """Return what a claim comes to where the judge says that it fails; None: cannot be told.

    Arrays that are unit vectors, distributions or orthonormal only up to rounding are no case.
    """
    shown = verdict.counterexample
    if shown is None or any(str(spec).startswith(INEXACT) for spec in claim.where.values()):
        return None
    if claim.keys == "unit":
        return None
    numbers: dict[str, Any] = {}
    arrays: dict[str, Value] = {}
    for name, value in shown.symbols.items():
        if isinstance(value, list):
            listed = isinstance(value[0], list)
            rows = [list(map(exact, row)) for row in value] if listed else []
            arrays[name] = matrix(rows) if listed else vector(list(map(exact, value)))
        else:
            numbers[name] = exact(value)
    if "low" in verdict.evidence.numbers:  # it fails somewhere between two numbers
        ends = [Fraction(repr(verdict.evidence.numbers[end])) for end in ("low", "high")]
        between = {name: x for name, x in numbers.items() if ends[0] <= x <= ends[1]}
        numbers |= dict.fromkeys(between, ball(ends[0]).union(ball(ends[1])))
    letters = choices_of_letters(claim)
    if "k" in arrays:  # given there, so that it matters which of them a letter names
        named = letters_of(claim)
        places = itertools.permutations(range(len(arrays["k"].entries)), len(named))
        letters = [dict(zip(named, choice, strict=True)) for choice in places]
    return fails(claim, (numbers, arrays), letters)


Agreement = Literal["agrees", "disagrees", "cannot tell"]


def agreement(claim: Claim, verdict: Verdict, effort: Effort) -> Agreement:
    """Return whether the reference meaning agrees with a verdict, as far as it can tell.

    With *refuted* it agrees if the claim is false or undefined at the counterexample, with
    *proved* and *supported* if it is true in some cases and in none of them false.
    """
    try:
        claim = read_claim(claim)
        if verdict.verdict == "refuted":
            found = truth_at_counterexample(claim, verdict)
            return "cannot tell" if found is None else "disagrees" if found is True else "agrees"
        letters = choices_of_letters(claim)[:MOST_LETTERS]
        noisy = claim.keys == "gaussian" or "normal" in str(claim.where)
        most = effort.noisy_cases if noisy else effort.cases
        # Only a proof says from where on a claim about a large symbol holds.
        proved = verdict.verdict == "proved"
        thresholds = (verdict.evidence.numbers.get("beta_0") or {}) if proved else {}
        from_ = Fraction(max(thresholds.values())) if thresholds else None
        cases = itertools.islice(cases_of(claim, random.Random(0), from_, effort.cases), most)
        answers = [fails(claim, case, letters) for case in cases]
    except (FormulaError, KeyError, ValueError, AssertionError):
        return "cannot tell"
    if False in answers or UNDEFINED in answers:
        return "disagrees"
    return "agrees" if True in answers else "cannot tell"
