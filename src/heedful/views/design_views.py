"""How a design is shown: the query with its certificate, and α beside what was ordered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.console import RenderableType

from heedful.attention.design.queries import Certificate, Design
from heedful.views.drawing import BLUE, GREEN, MARKER, ORANGE, house_style, new_figure
from heedful.views.terminal import at_least, at_most, number, paragraph, sentence, table, vector

MOST_KEYS = 12
"""Keys listed in the terminal; the rest is summed up."""
MOST_BARS = 40
"""Keys drawn one by one; of more, those that are wanted or read most."""
WANTED = {"copy": "copy the value of", "average": "average the values of", "weights": "weigh"}


def design_tables(record: Design, keys: Any = None) -> Iterator[RenderableType]:
    """Yield the terminal view of a design; with its keys the query is written in them."""
    found = "" if record.feasible else ": impossible" if _proved(record) else ": none was found"
    made = table(f"A query to {_wanted(record)}{found}", "", "", left=(0, 1))
    if record.query is not None and record.weights is not None:
        for name, said in _query_rows(record, keys):
            made.add_row(name, said)
    else:
        for name, said in _refusal_rows(record):
            made.add_row(name, said)
    yield made
    if record.weights is not None:
        yield _weights_table(record, record.weights)
    yield from _proof(record.certificate)


def design_figure(record: Design) -> Figure:
    """Draw α beside the wanted weights, and the query's norm beside its bounds."""
    assert record.weights is not None
    norms = _norms(record)
    with house_style():
        figure = new_figure(8.2, 3.4)
        bars, lengths = figure.subplots(1, 2, gridspec_kw={"width_ratios": (3, 1.35)})
        _draw_weights(bars, record, record.weights)
        places = np.arange(len(norms))
        colours = {"this query": BLUE, "lower bound": GREEN}
        lengths.bar(
            places, list(norms.values()), width=0.6, color=[colours.get(x, ORANGE) for x in norms]
        )
        for place, value in zip(places, norms.values(), strict=True):
            lengths.annotate(
                number(value),
                (place, value),
                textcoords="offset points",
                xytext=(0, 3),
                ha="center",
                fontsize=9,
            )
        lengths.set_xticks(places, [name.replace(" ", "\n") for name in norms], fontsize=9)
        lengths.set(ylabel=r"$\|q\|$", xlim=(-0.6, len(norms) - 0.4))
        lengths.margins(y=0.12)
        lengths.grid(visible=False)
        lengths.set_title("Its length")
        return figure


def in_keys(query: Any, keys: Any) -> str | None:
    """Write a query in orthonormal keys, alike ones together; None if they are not orthonormal.

    >>> in_keys(np.array([2.0, 2.0, -1.0, 0.0]), np.eye(3, 4))
    '2 (k_0 + k_1) − k_2'
    """
    keys = np.asarray(keys)
    n, d = keys.shape
    if n > d or np.abs(keys @ keys.T - np.eye(n)).max() > 1e-12:
        return None
    shares = keys @ query
    size = float(np.abs(shares).max())
    if np.linalg.norm(query - shares @ keys) > 1e-6 * size:
        return None
    alike: dict[str, list[int]] = {}
    for key, share in enumerate(shares.tolist()):
        if abs(share) > 1e-9 * size:
            alike.setdefault(number(share), []).append(key)
    parts = sorted(alike.items(), key=lambda part: (-abs(float(part[0])), part[1]))
    return _sum(dict(parts)) if len(parts) <= 6 else None


def _sum(alike: Mapping[str, list[int]]) -> str:
    text = ""
    for share, members in alike.items():
        sign = "−" if share.startswith("-") else "+"
        size = share.lstrip("-")
        names = [f"k_{key}" for key in members]
        if len(names) > 4:
            names = [names[0], names[1], "…", names[-1]]
        inside = " + ".join(names) if len(members) == 1 else f"({' + '.join(names)})"
        text += f" {sign} " if text else ("−" if sign == "−" else "")
        text += (f"{size} " if size != "1" else "") + inside
    return text or "0"


def _proved(record: Design) -> bool:
    """Tell whether the certificate shows that no query exists, rather than that none was found."""
    proof = record.certificate
    return proof.ceiling is not None or proof.floor is not None


def _wanted(record: Design) -> str:
    if len(record.of) == 1:
        return f"{WANTED[record.kind]} key {record.of[0]}"
    shown = ", ".join(map(str, record.of[:8])) + (", …" if len(record.of) > 8 else "")
    return f"{WANTED[record.kind]} keys {{{shown}}}"


def _query_rows(record: Design, keys: Any) -> Iterator[tuple[str, str]]:
    written = None if keys is None else in_keys(record.query, keys)
    yield "query q", written or vector(record.query)
    if record.beta is not None:
        formula = record.certificate.closed_form
        yield (
            "scale β",
            number(record.beta)
            + (
                f" = {formula.split(' = ', 1)[-1]}"
                if formula
                else " (smallest along the separating direction)"
            ),
        )
    yield "mass on S", f"{record.mass:.6f}"
    yield "error", f"{number(record.error)} (allowed: {number(record.tolerance)})"
    yield "length ‖q‖", _length(record)


def _length(record: Design) -> str:
    proof, said = record.certificate, number(record.norm)
    if proof.norm_lower_bound is not None:
        said += f"; no query is shorter than {at_least(proof.norm_lower_bound)}"
    if proof.textbook_norm is not None:
        said += f"; the textbook's β Σ k_i: {number(proof.textbook_norm)}"
    return said


def _refusal_rows(record: Design) -> Iterator[tuple[str, str]]:
    proof = record.certificate
    yield "query q", "none"
    yield "allowed error", number(record.tolerance)
    if proof.ceiling is not None:
        whatever = "whatever the query" if len(record.of) == 1 else "with the wanted ratios"
        yield "mass on S", f"at most {at_most(proof.ceiling)}, {whatever}"
    if proof.best_mass is not None:
        yield "best mass found", number(proof.best_mass)
    if proof.floor is not None:
        yield "error", f"at least {at_least(proof.floor)}, whatever the query"
    if proof.best_error is not None:
        yield "best error found", number(proof.best_error)


def _weights_table(record: Design, weights: Any) -> RenderableType:
    made = table("What it reads", "key", "wanted", "α", "", left=(0, 3))
    order = np.lexsort((-weights, -record.target))
    for key in order[:MOST_KEYS].tolist():
        bar = "█" * round(24 * float(weights[key]))
        made.add_row(str(key), number(record.target[key]), f"{weights[key]:.6f}", bar)
    rest = order[MOST_KEYS:]
    if len(rest):
        made.add_row(
            f"{len(rest)} others", number(record.target[rest].sum()), f"{weights[rest].sum():.6f}"
        )
    return made


def _proof(proof: Certificate) -> Iterator[RenderableType]:
    yield paragraph(f"Certificate ({proof.kind}): {sentence(proof.statement)}")
    if proof.combination is not None:
        yield paragraph(f"λ: {_shares(proof.combination)}", indent=2)
    if proof.affine is not None and len(proof.affine) > 1:
        yield paragraph(f"a: {_shares(proof.affine)}", indent=2)


def _shares(shares: Mapping[int, float], most: int = 8) -> str:
    shown = [f"{number(share)} on key {key}" for key, share in list(shares.items())[:most]]
    rest = len(shares) - most
    return ", ".join(shown) + (f", … {rest} more" if rest > 0 else "")


def _norms(record: Design) -> dict[str, float]:
    proof = record.certificate
    named = {
        "lower bound": proof.norm_lower_bound,
        "this query": record.norm,
        "textbook query": proof.textbook_norm,
    }
    return {name: value for name, value in named.items() if value is not None}


def _draw_weights(axes: Axes, record: Design, weights: Any) -> None:
    shown = np.arange(len(weights))
    if len(shown) > MOST_BARS:
        shown = np.sort(np.lexsort((-weights, -record.target))[:MOST_BARS])
    places = np.arange(len(shown))
    axes.bar(places, weights[shown], width=0.72, color=BLUE, label=r"$\alpha_i$")
    wanted = record.target[shown] > 0
    axes.hlines(
        record.target[shown][wanted],
        places[wanted] - 0.45,
        places[wanted] + 0.45,
        color=MARKER,
        linewidth=1.6,
        label="wanted",
    )
    if len(shown) <= 16:
        axes.set_xticks(places, [str(key) for key in shown])
    else:
        axes.set_xticks(places[wanted][:16], [str(key) for key in shown[wanted][:16]])
    top = max(float(weights.max()), float(record.target.max()))
    axes.set(xlabel="key $i$", ylabel=r"$\alpha_i$", ylim=(0, 1.25 * top))
    axes.grid(visible=False, axis="x")
    axes.legend(loc="upper right", ncols=2)
    others = ", most read keys" if len(shown) < len(weights) else ""
    axes.set_title(f"What the query reads (error {number(record.error)}{others})")
