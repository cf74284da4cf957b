"""Checks the certificates of `heed check --certificate`: exact rationals, and nothing of Heedful.

Run it as `python certificate_checker.py FOLDER`. A certificate states relations, case by case, such
as ["<=", ["exp", ["var", "beta"]], "7/2"]. An `enclosure` holds on the ranges of its variables, by
intervals that are rounded outwards and halved where need be, and by cells of one standard normal
variable. In an `identity` both sides are the same quotient of sums of monomials times exp of
polynomials. In a `hull` a direction leads all other points, or a combination of them is the point.
"""

import hashlib
import json
import math
import sys
from fractions import Fraction as Q
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

BITS, FINE = 128, 224  # ends are whole multiples of 2^-128, and inside of series of 2^-224
ONE = 1 << BITS
LARGEST, INF = 300 * ONE, float("inf")  # beyond exp(±300) an end is as good as infinity and 0
TWO_PI = 6283185307179586476925286766559005768 * ONE // 10**36  # and at most 400 more
Interval = tuple[Any, Any]  # a lower and an upper end; both may be infinite


class Rejected(Exception):  # noqa: N818 - it is an answer
    """A certificate that proves nothing."""


def _number(text: str) -> Interval:
    return math.floor(Q(text) * ONE), math.ceil(Q(text) * ONE)


def _plus(x: Interval, y: Interval) -> Interval:
    return x[0] + y[0], x[1] + y[1]


def _times(x: Interval, y: Interval) -> Interval:
    def end(a: Any, b: Any) -> Any:
        if a == 0 or b == 0:  # also times an infinite end: the limit of 0 times finite ones
            return 0
        return a * b if abs(a) < INF > abs(b) else INF if (a > 0) == (b > 0) else -INF

    ends = [end(a, b) for a in x for b in y]
    low, high = min(ends), max(ends)
    return low if low == -INF else low >> BITS, high if high == INF else -(-high >> BITS)


def _square(x: Interval) -> Interval:
    low, high = _times(x, x)
    return 0 if x[0] <= 0 <= x[1] else low, high


def _inverse(x: Interval) -> Interval:
    if x[0] <= 0 <= x[1]:
        raise ValueError("may divide by zero")
    low, high = (0 if abs(end) == INF else ONE * ONE // end for end in (x[1], x[0]))
    return low, high + 1


@cache
def exp_of(x: int) -> Interval:
    """Enclose exp of x 2^-BITS: a Taylor sum at |x|/2^m below 1/4, squared m times."""
    if abs(x) > LARGEST:
        return (exp_of(LARGEST)[0], INF) if x > 0 else (0, exp_of(-LARGEST)[1])
    m = (abs(x) >> BITS).bit_length() + 3
    y = abs(x) << (FINE - BITS) >> m
    total = term = 1 << FINE
    for k in range(1, 60):
        term = (term * y >> FINE) // k
        total += term
    low, high = total, total + 200  # 60 terms cut off, the rest of the series, and y cut off
    for _ in range(m):
        low, high = low * low >> FINE, (high * high >> FINE) + 1
    if x < 0:
        low, high = (1 << 2 * FINE) // high, (1 << 2 * FINE) // low + 1
    return low >> (FINE - BITS), -(-high >> (FINE - BITS))


def _root(x: Interval) -> Interval:
    low = math.isqrt(max(x[0], 0) << BITS)
    return low, x[1] if x[1] == INF else math.isqrt(x[1] << BITS) + 1


@cache
def below(x: int) -> Interval:
    """Enclose 1/2 + Σ (−1)^k x^(2k+1) / (2^k k! (2k + 1)) / √(2π), at most 8: P(ξ ≤ x)."""
    total, power, k = 0, x << (FINE - BITS), 0
    step = x * x << 2 * (FINE - BITS) >> FINE
    while k <= 64 or abs(power) > 1 << (FINE - BITS):
        total += power // (2 * k + 1)
        power = -(power * step >> FINE) // (2 * k + 2)
        k += 1
    # k roundings by 2^-224, each carried on e^32-fold at most, and the next term: below 2^-64.
    middle, slack = total >> (FINE - BITS), 1 << (BITS - 64)
    share = _times(_inverse(_root((TWO_PI, TWO_PI + 400))), (middle - slack, middle + slack))
    return max(ONE // 2 + share[0], 0), min(ONE // 2 + share[1], ONE)


def value(node: Any, ranges: dict[str, Interval]) -> Interval:
    """Enclose an expression over the ranges of its variables."""
    if isinstance(node, str):
        return _number(node)
    head, *rest = node
    if head == "var":
        return ranges[rest[0]]
    if head in ("E", "variance", "std", "P"):
        return statistic(head, rest[0], rest[1], ranges)
    parts = [value(part, ranges) for part in rest]
    x = parts[0]
    if head in ("+", "*"):
        for part in parts[1:]:
            x = _plus(x, part) if head == "+" else _times(x, part)
        return x
    if head == "exp":
        return 0 if x[0] == -INF else exp_of(x[0])[0], INF if x[1] == INF else exp_of(x[1])[1]
    if head == "max":
        return max(part[0] for part in parts), max(part[1] for part in parts)
    return {"inverse": _inverse, "sqrt": _root}[head](x)


def truth(relation: Any, ranges: dict[str, Interval]) -> bool | None:
    """Return True or False where a relation surely holds or fails on all of the ranges."""
    operator, x, y = relation[0], value(relation[1], ranges), value(relation[2], ranges)
    if operator in (">", ">="):
        operator, x, y = operator.replace(">", "<"), y, x
    if operator not in ("<", "<="):
        raise Rejected(f"{operator!r} is not known")
    if x[1] < y[0] or (operator == "<=" and x[1] == y[0] and x[1] != INF):
        return True
    return False if x[0] > y[1] or (operator == "<" and x[0] == y[1]) else None


@cache
def _cells() -> list[tuple[Interval, Interval]]:
    inner = (11 * ONE * k // 640 - 11 * ONE // 2 for k in range(641))
    edges = [-8 * ONE, -7 * ONE, *inner, 7 * ONE, 8 * ONE]
    made: list[Any] = [((-INF, edges[0]), (0, below(edges[0])[1]))]
    for low, high in pairwise(edges):
        a, b = below(low), below(high)
        made.append(((low, high), (max(0, b[0] - a[1]), b[1] - a[0])))
    return [*made, ((edges[-1], INF), (0, ONE - below(edges[-1])[0]))]


def statistic(head: str, name: str, parts: Any, ranges: dict[str, Interval]) -> Interval:
    """Enclose P of relations; E of a value; variance or std of a vector."""
    if head == "P":
        low = high = 0
        for span, mass in _cells():
            said = [truth(part, {**ranges, name: span}) for part in parts]
            low += mass[0] if all(word is True for word in said) else 0
            high += 0 if any(word is False for word in said) else mass[1]
        return low, min(high, ONE)
    variance: Interval = (0, 0)
    for part in parts:
        values = [(value(part, {**ranges, name: span}), mass) for span, mass in _cells()]
        bounded = ((v, m) for v, m in values if INF not in (abs(v[0]), abs(v[1])))
        middle = sum(m[0] * (v[0] + v[1]) >> (BITS + 1) for v, m in bounded)
        shift: Interval = (0, 0)  # of the mean from the middle, which makes wide cells cost little
        spread: Interval = (0, 0)
        for v, mass in values:
            apart = _plus(v, (-middle, -middle))
            shift = _plus(shift, _times(mass, apart))
            spread = _plus(spread, _times(mass, _square(apart)))
        if head == "E":
            return _plus((middle, middle), shift)
        low, high = _square(shift)
        variance = _plus(variance, (max(0, spread[0] - high), max(0, spread[1] - low)))
    return _root(variance) if head == "std" else variance


def holds(relations: Any, ranges: dict[str, Interval], depth: int = 14) -> bool:
    """Tell whether relations hold on all of the ranges, halving them where need be."""
    try:
        if all(truth(relation, ranges) is True for relation in relations):
            return True
    except ValueError:
        pass
    if not ranges or depth == 0:
        return False
    name = max(ranges, key=lambda each: ranges[each][1] - ranges[each][0])
    low, high = ranges[name]
    middle = 2 * abs(low) + 20 * ONE if high == INF else (low + high) // 2
    parts = ({**ranges, name: half} for half in ((low, middle), (middle, high)))
    return all(holds(relations, part, depth - 1) for part in parts)


def quotient(node: Any) -> tuple[Any, Any]:
    """Return numerator and denominator, sums {(monomial, polynomial): c} of c · m · exp(p)."""
    if isinstance(node, str):
        return ({((), ()): Q(node)} if Q(node) else {}), {((), ()): Q(1)}
    head, *rest = node
    if head == "var":
        return {(((rest[0], 1),), ()): Q(1)}, {((), ()): Q(1)}
    parts = [quotient(part) for part in rest]
    top, bottom = parts[0]
    if head in ("+", "*"):
        for above, under in parts[1:]:
            if head == "*":
                top, bottom = _product(top, above), _product(bottom, under)
            elif under == bottom:
                top = _sum(top, above)
            else:
                top = _sum(_product(top, under), _product(above, bottom))
                bottom = _product(bottom, under)
        return top, bottom
    if head == "inverse" and top:
        return bottom, top
    if head == "exp" and set(bottom) == {((), ())} and all(not inside for _, inside in top):
        inside = tuple(sorted((power, c / bottom[(), ()]) for (power, _), c in top.items()))
        return {((), inside): Q(1)}, {((), ()): Q(1)}
    if head in ("relu", "sqrt"):  # functions of which nothing is known but their argument
        known = f"{head} {sorted(top.items())} / {sorted(bottom.items())}"
        return {(((known, 1),), ()): Q(1)}, {((), ()): Q(1)}
    raise Rejected(f"{head!r} is not part of an identity")


def _sum(x: Any, y: Any) -> Any:
    total = dict(x)
    for key, c in y.items():
        total[key] = total.get(key, 0) + c
    return {key: c for key, c in total.items() if c}


def _product(x: Any, y: Any) -> Any:
    total: Any = {}
    for (m, e), c in x.items():
        for (n, f), d in y.items():
            key = tuple(tuple(sorted(_sum(dict(a), dict(b)).items())) for a, b in ((m, n), (e, f)))
            total[key] = total.get(key, 0) + c * d
    return {key: c for key, c in total.items() if c}


def digest(certificate: dict[str, Any]) -> str:
    """Return the SHA-256 of what a certificate says."""
    content = {key: item for key, item in certificate.items() if key != "digest"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def check(certificate: dict[str, Any]) -> None:
    """Raise Rejected unless every case of a certificate is proved."""
    try:
        cases = certificate["cases"]
        said = cases and all(case.get("relations") or case.get("points") for case in cases)
        if certificate["digest"] != digest(certificate) or not said:
            raise Rejected("its content was changed, or it says nothing")
        kinds = {"enclosure": check_enclosure, "identity": _check_identity, "hull": _check_hull}
        for case in cases:
            kinds[certificate["kind"]](case)
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise Rejected(f"it cannot be read ({error!r})") from None


def _check_identity(case: dict[str, Any]) -> None:
    for operator, left, right in case["relations"]:
        (top, bottom), (other, lower) = quotient(left), quotient(right)
        if operator != "=" or _product(top, lower) != _product(other, bottom):
            raise Rejected("two sides are not the same")


def check_enclosure(case: dict[str, Any]) -> None:
    """Reject relations that do not hold everywhere on the ranges of a case."""
    ranges = {
        name: (_number(low)[0], INF if high is None else _number(high)[1])
        for name, (low, high) in case["ranges"].items()
    }
    if any(low > high for low, high in ranges.values()) or not holds(case["relations"], ranges):
        raise Rejected("a relation is not proved")


def _check_hull(case: dict[str, Any]) -> None:
    points = [[Q(x) for x in point] for point in case["points"]]
    own = points.pop(case["of"])
    apart = [[x - y for x, y in zip(own, point, strict=True)] for point in points]
    if "direction" in case:
        q = [Q(x) for x in case["direction"]]
        proved = min(sum(a * x for a, x in zip(q, row, strict=True)) for row in apart) > 0
    else:
        w = [Q(x) for x in case["weights"]]
        sums = [sum(a * x for a, x in zip(w, col, strict=True)) for col in zip(*apart, strict=True)]
        proved = min(w) >= 0 and sum(w) == 1 and not any(sums)
    if not proved:
        raise Rejected("the point is not where it is said to be")


def _main(folder: str) -> int:
    paths, rejected = sorted(Path(folder).glob("*.json")), 0
    for path in paths:
        try:
            check(json.loads(path.read_text(encoding="utf-8")))
        except (Rejected, json.JSONDecodeError, RecursionError) as reason:
            rejected += 1
            print(f"{path.name}: rejected, {reason}")
    print(f"{len(paths) - rejected} accepted, {rejected} rejected")
    return 1 if rejected or not paths else 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1]))
