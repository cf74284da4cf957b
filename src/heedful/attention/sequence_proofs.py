"""Why K, Q and V of an asked form cannot exist: proofs in plain words.

Whatever the weights are, they are non-negative and sum to 1, so with V = I an output is a
point of the convex hull of the inputs. A wanted output outside the hull is out of reach for
every K and Q, and a direction shows it. With V free, two facts remain: equal inputs have
equal outputs, and a position with input 0 reads everything equally.
"""

from __future__ import annotations

from decimal import ROUND_DOWN, ROUND_UP, Context
from typing import Any

import numpy as np

from heedful.attention.hull import separate
from heedful.attention.outer_products import Frame
from heedful.attention.sequence_record import SequenceCertificate
from heedful.attention.sequence_search import same_vectors


def outside_hull(
    x: Any, positions: tuple[int, ...], Y: Any, allowed: float, frame: Frame
) -> SequenceCertificate | None:
    """Prove for which wanted outputs no weights at all would do, the farthest one in full."""
    found = {p: separate(x - wanted) for p, wanted in zip(positions, Y, strict=True)}
    outside = {p: one for p, one in found.items() if one.margin > allowed}
    if not outside:
        return None
    words = dict(zip(positions, map(frame.sum_of_vectors, Y), strict=True))
    position = max(outside, key=lambda p: outside[p].margin)
    farthest = outside[position]
    weights = np.zeros(len(x))
    weights[farthest.members] = farthest.weights
    others = "".join(
        f"; nor can c_{p} be {words[p]}, which is {at_least(one.margin)} away from every average"
        for p, one in outside.items()
        if p != position
    )
    return SequenceCertificate(
        kind="outside the hull",
        proof=True,
        position=position,
        distance=farthest.margin,
        direction=farthest.direction,
        weights=weights,
        nearest=weights @ x,
        statement=(
            f"c_{position} cannot be {words[position]}: with V = I every output is an average of "
            f"x_0 … x_{len(x) - 1}, and the nearest average, {frame.sum_of_vectors(weights @ x)}, "
            f"is {at_least(farthest.margin)} away; along "
            f"{frame.sum_of_vectors(farthest.direction)} every x_j stays at least that far short "
            f"of it, so no K and Q, and no weights at all, can reach it{others}"
        ),
    )


def equal_inputs(
    x: Any, positions: tuple[int, ...], Y: Any, allowed: float
) -> SequenceCertificate | None:
    """Prove that two positions with one input cannot have two outputs, if they should."""
    size = float(np.linalg.norm(x, axis=1).max()) or 1.0
    wanted = dict(zip(positions, Y, strict=True))
    for group in same_vectors(x, size):
        asked = [position for position in group if position in wanted]
        for second in asked[1:]:
            half = float(np.linalg.norm(wanted[second] - wanted[asked[0]])) / 2
            if half > allowed:
                return SequenceCertificate(
                    kind="equal inputs",
                    proof=True,
                    position=second,
                    distance=half,
                    statement=(
                        f"positions {asked[0]} and {second} have the same input, so they have "
                        "the same query, the same weights and the same output for every K, Q "
                        f"and V; the two outputs wanted lie {2 * half:.4g} apart, so one of them "
                        f"is missed by at least {at_least(half)}"
                    ),
                )
    return None


def zero_input(
    x: Any, positions: tuple[int, ...], Y: Any, allowed: float, *, values_fixed: bool
) -> SequenceCertificate | None:
    """Prove that a position with input 0 gets the plain mean, if something else is wanted."""
    mean = x.mean(axis=0)
    size = float(np.abs(x).max()) or 1.0
    if not values_fixed and np.abs(mean).max() > 1e-12 * size:
        return None  # V may send the mean anywhere
    for position, wanted in zip(positions, Y, strict=True):
        if np.any(x[position]):
            continue
        reached = mean if values_fixed else np.zeros_like(wanted)
        distance = float(np.linalg.norm(wanted - reached))
        if distance > allowed:
            what = "the mean of the inputs" if values_fixed else "V times their mean, which is 0"
            return SequenceCertificate(
                kind="zero input",
                proof=True,
                position=position,
                distance=distance,
                nearest=reached,
                statement=(
                    f"x_{position} = 0 has the query 0 for every Q, so position {position} reads "
                    f"all inputs equally and its output is {what}; the wanted output is "
                    f"{distance:.4g} away from that"
                ),
            )
    return None


def nothing_to_choose(position: int, output: Any, wanted: Any, frame: Frame) -> SequenceCertificate:
    """State that K = Q = V = I gives another output, though other weights would do."""
    distance = float(np.linalg.norm(output - wanted))
    return SequenceCertificate(
        kind="nothing to choose",
        proof=True,
        position=position,
        distance=distance,
        nearest=output,
        statement=(
            f"with K = Q = V = I there is nothing to choose: c_{position} is "
            f"{frame.sum_of_vectors(output, negligible=1e-4)}, which is {distance:.4g} away "
            f"from the wanted {frame.sum_of_vectors(wanted)}; other weights could come closer"
        ),
    )


def at_least(bound: float) -> str:
    """Write a lower bound, rounded down so that the sentence stays true."""
    return f"{float(Context(prec=4, rounding=ROUND_DOWN).create_decimal(bound)):.4g}"


def at_most(bound: float) -> str:
    """Write an upper bound, rounded up so that the sentence stays true."""
    return f"{float(Context(prec=4, rounding=ROUND_UP).create_decimal(bound)):.4g}"
