"""Attention: for a query, designed, with noisy keys, and in a sequence.

Noise is shown exact beside sampled beside the limit, as a table and as boxes; K, Q and V of a
sequence as outer products, as matrices, and as heat maps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy  # its parts are imported when they are first used

from heedful.attention.design import Certificate, Design
from heedful.attention.distribution import KeyCloud, NoiseStudy
from heedful.attention.hull import Copyable
from heedful.attention.operation import AttentionResult, Reading
from heedful.attention.robust import HeadsChoice, HeadsDesign
from heedful.attention.sequence import Addition, SequenceDesign
from heedful.views.blocks import Block, Bullets, Span, Text, facts, table
from heedful.views.drawing import (
    BLUE,
    GREEN,
    GREY,
    MARKER,
    ORANGE,
    PURPLE,
    RED,
    draw_matrix,
    house_style,
    legend_below,
    new_figure,
)
from heedful.views.formatting import at_least, at_most, many, matrix, number, sentence, some, vector

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

READING_ROWS = 20
"""Keys listed in the terminal; the rest is summed up."""


def reading_blocks(record: Reading) -> Iterator[Block]:
    """Yield the weights and outputs of one query or many."""
    weights = np.asarray(record.weights)
    if weights.ndim == 1:
        yield from _one_query(record, weights)
    else:
        yield from _many_queries(record)


def result_blocks(record: AttentionResult) -> Iterator[Block]:
    """Yield the same for what `attend` returned."""
    parts = {one.name: getattr(record, one.name) for one in fields(record)}
    yield from reading_blocks(Reading(**parts, mass_on=None, mass=None))


def reading_figure(record: Reading | AttentionResult) -> Figure:
    """Draw the weights: bars for one query, a heat map for many."""
    weights = np.asarray(record.weights)
    with house_style():
        if weights.ndim == 1:
            figure = new_figure(7.2, 3.2)
            axes = figure.add_subplot()
            inside = set(getattr(record, "mass_on", None) or range(len(weights)))
            colours = [BLUE if key in inside else GREY for key in range(len(weights))]
            axes.bar(np.arange(len(weights)), weights, color=colours, width=0.8)
            axes.set(xlabel="key $i$", ylabel=r"$\alpha_i$", ylim=(0, 1))
            axes.set_title("Where the query reads")
            axes.locator_params(axis="x", integer=True)
            return figure
        grid = weights.reshape(-1, weights.shape[-1])
        figure = new_figure(7.2, min(7.2, 2.2 + 0.22 * len(grid)))
        axes = figure.add_subplot()
        image = axes.imshow(grid, vmin=0, vmax=1, cmap="Blues", aspect="auto")
        axes.grid(visible=False)
        axes.set(xlabel="key", ylabel="query")
        axes.set_title("Where each query reads")
        figure.colorbar(image, ax=axes, label=r"$\alpha$")
        return figure


def largest_first(*values: np.ndarray) -> np.ndarray:
    """Return the places of the largest values first; ties of the first are told by the next.

    What is equal but for rounding stays in its order: processors round differently.

    >>> largest_first(np.array([0.25, 0.25 + 1e-16, 0.5])).tolist()
    [2, 0, 1]
    """
    keys = [-np.round(np.asarray(one, dtype=np.float64), 12) for one in reversed(values)]
    return np.lexsort(keys)


def _one_query(record: Reading, weights: np.ndarray) -> Iterator[Block]:
    grid = table("Where the query reads", "key", "k·q", "α", "", left=(0, 3))
    order = largest_first(weights)
    logits = np.asarray(record.logits)
    for key in order[:READING_ROWS]:
        bar = "█" * round(24 * float(weights[key]))
        grid.row(str(int(key)), number(logits[key]), f"{weights[key]:.6f}", bar)
    if len(order) > READING_ROWS:
        rest = order[READING_ROWS:]
        grid.row(f"{len(rest)} others", "", f"{weights[rest].sum():.6f}", "")
    yield grid
    spread = (
        f"spread over {number(float(np.asarray(record.effective_keys)))} keys "
        f"(entropy {number(float(np.asarray(record.entropy)))} nats)"
    )
    yield Text(f"c = {vector(np.asarray(record.output))}")
    if record.mass_on is not None:
        names = ", ".join(map(str, record.mass_on))
        yield Text(f"mass on {{{names}}} = {float(np.asarray(record.mass)):.6f}")
    yield Text(spread)


def _many_queries(record: Reading) -> Iterator[Block]:
    weights = np.asarray(record.weights)
    rows = weights.reshape(-1, weights.shape[-1])
    outputs = np.asarray(record.output).reshape(len(rows), -1)
    effective = np.asarray(record.effective_keys).reshape(-1)
    columns = ["query", "most read key", "its α", "keys read", "c"]
    masses = None
    if record.mass_on is not None:
        columns.insert(4, "mass on {" + ", ".join(map(str, record.mass_on)) + "}")
        masses = np.asarray(record.mass).reshape(-1)
    grid = table("Where each query reads", *columns, left=(0, len(columns) - 1))
    for row in range(min(len(rows), READING_ROWS)):
        best = int(np.argmax(rows[row]))
        cells = [str(row), str(best), f"{rows[row, best]:.4f}", number(effective[row])]
        if masses is not None:
            cells.append(f"{masses[row]:.4f}")
        grid.row(*cells, vector(outputs[row], most=6))
    if len(rows) > READING_ROWS:
        grid.row(f"{len(rows) - READING_ROWS} more", *[""] * (len(columns) - 1))
    yield grid
    if record.mean is not None:
        yield Text(f"mean of all outputs: {vector(np.asarray(record.mean), most=12)}")


DESIGN_ROWS = 12
"""Keys listed in the terminal; the rest is summed up."""
MOST_BARS = 40
"""Keys drawn one by one; of more, those that are wanted or read most."""
WANTED = {"copy": "copy the value of", "average": "average the values of", "weights": "weigh"}


def design_blocks(record: Design, keys: Any = None) -> Iterator[Block]:
    """Yield a design; if its keys are given, the query is written as a combination of them."""
    found = "" if record.feasible else ": impossible" if _proved(record) else ": none was found"
    solved = record.query is not None and record.weights is not None
    rows = _query_rows(record, keys) if solved else _refusal_rows(record)
    yield facts(f"A query to {_wanted(record)}{found}", *rows)
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
    return f"{WANTED[record.kind]} keys {{{some(record.of)}}}"


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


def _weights_table(record: Design, weights: Any) -> Block:
    grid = table("What it reads", "key", "wanted", "α", "", left=(0, 3))
    order = largest_first(record.target, weights)
    for key in order[:DESIGN_ROWS].tolist():
        bar = "█" * round(24 * float(weights[key]))
        grid.row(str(key), number(record.target[key]), f"{weights[key]:.6f}", bar)
    rest = order[DESIGN_ROWS:]
    if len(rest):
        grid.row(
            f"{len(rest)} others", number(record.target[rest].sum()), f"{weights[rest].sum():.6f}"
        )
    return grid


def _proof(proof: Certificate) -> Iterator[Block]:
    yield Text(f"Certificate ({proof.kind}): {sentence(proof.statement)}")
    if proof.combination is not None:
        yield Text(f"λ: {_shares(proof.combination)}", indent=2)
    if proof.affine is not None and len(proof.affine) > 1:
        yield Text(f"a: {_shares(proof.affine)}", indent=2)


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
        shown = np.sort(largest_first(record.target, weights)[:MOST_BARS])
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


COPYABLE_ROWS = 20
"""Keys listed one by one; of more, those with the largest margins."""
MOST_NAMES = 16
"""In the plane, up to this many keys carry their number."""
FEW = 60
"""Up to this many margins are drawn one by one."""


def copyable_blocks(record: Copyable) -> Iterator[Block]:
    """Yield how many keys can be copied, how that was decided, and the margins."""
    n = len(record.copyable)
    grid = table(f"{record.count:,} of {n:,} keys can be copied", "decided by", "keys")
    for stage, count in record.stages.items():
        if count and stage != "undecided":
            grid.row(stage, f"{count:,}")
    if record.undecided:
        grid.row("left open by rounding", f"{len(record.undecided):,}")
    if grid.rows:
        yield grid
    else:
        yield Text(f"{record.count:,} of {n:,} keys can be copied")
    yield _margins(record)
    kind = "exact" if record.exact_margins else "certified lower and upper bounds"
    took = f" ({record.seconds:.0f} s)" if record.seconds >= 1 else ""
    yield Text(
        f"The margin is the distance of a key from the hull of the others ({kind}); where it is "
        f"0, no query copies the key.{took}"
    )
    if record.undecided:
        yield Text(f"Left open by rounding: keys {some(record.undecided, COPYABLE_ROWS)}")


def copyable_figure(record: Copyable, keys: Any = None) -> Figure:
    """Draw the margins in order; keys of the plane are drawn with their hull as well."""
    plane = None if keys is None or np.shape(keys)[1] != 2 else np.asarray(keys)
    with house_style():
        if plane is None:
            figure = new_figure(7.2, 3.6)
            _draw_margins(figure.add_subplot(), record)
            return figure
        figure = new_figure(9.0, 4.2)
        left, right = figure.subplots(1, 2, gridspec_kw={"width_ratios": (1.15, 1)})
        _draw_hull(left, record, plane)
        _draw_margins(right, record)
        return figure


def _margins(record: Copyable) -> Block:
    n = len(record.copyable)
    order = largest_first(record.margin)
    few = n <= COPYABLE_ROWS
    chosen = np.arange(n) if few else order[: COPYABLE_ROWS // 2]
    grid = table(
        "Margins" if few else "The largest margins",
        "key",
        "copyable",
        *(("margin",) if record.exact_margins else ("margin ≥", "≤")),
        left=(0, 1),
    )
    for key in chosen.tolist():
        word = "yes" if record.copyable[key] else "open" if key in record.undecided else "no"
        cells = [at_least(record.margin[key])]
        if not record.exact_margins:
            cells.append(at_most(record.margin_upper[key]) if word != "no" else "0")
        grid.row(str(key), word, *cells)
    return grid


def _draw_margins(axes: Axes, record: Copyable) -> None:
    n = len(record.copyable)
    chosen = np.flatnonzero(record.copyable & np.isfinite(record.margin))
    chosen = chosen[np.argsort(-record.margin[chosen], kind="stable")]
    lower, upper = record.margin[chosen], record.margin_upper[chosen]
    places = np.arange(1, len(chosen) + 1)
    few = len(chosen) <= FEW
    if not record.exact_margins and few:
        axes.vlines(places, lower, upper, color=BLUE, alpha=0.35, linewidth=4, label="bounds")
    elif not record.exact_margins:
        axes.plot(places, upper, ".", color=GREY, markersize=2.5, label="at most")
    label = "exact" if record.exact_margins else "at least"
    axes.plot(places, lower, "o" if few else "-", color=BLUE, markersize=4.5, label=label)
    if record.count < n:
        label = "cannot be copied"
        axes.axvspan(record.count + 0.5, n + 0.5, color=ORANGE, alpha=0.2, lw=0, label=label)
    if len(chosen):
        axes.set_yscale("log")
        # At least a decade, or a logarithmic axis has no labels.
        axes.set_ylim(lower.min() / 3, max(upper.max(), lower.max()) * 3.5)
    axes.set(xlabel="keys, sorted by margin", ylabel="margin", xlim=(0.5, n + 0.5))
    axes.locator_params(axis="x", integer=True)
    axes.legend(fontsize=9, loc="best")
    axes.set_title(f"{record.count:,} of {n:,} can be copied")


def _draw_hull(axes: Axes, record: Copyable, keys: Any) -> None:
    # Equal keys cannot be copied and are corners all the same: the outline is that of all keys.
    try:
        corners = scipy.spatial.ConvexHull(keys).vertices
        outline = keys[np.append(corners, corners[0])]
        axes.plot(*outline.T, color=GREY, linewidth=1.2, zorder=1)
        axes.fill(*outline.T, color=GREY, alpha=0.1, linewidth=0, zorder=0)
    except scipy.spatial.QhullError:
        pass  # fewer than three corners: there is no area to draw
    open_keys = np.isin(np.arange(len(keys)), record.undecided)
    groups = (
        ("can be copied", record.copyable, BLUE, "o"),
        ("cannot", ~record.copyable & ~open_keys, ORANGE, "X"),
        ("left open", open_keys, GREEN, "s"),
    )
    for label, chosen, colour, mark in groups:
        if chosen.any():
            x, y = keys[chosen].T
            axes.scatter(x, y, color=colour, marker=mark, s=34, label=label, zorder=2, linewidth=0)
    if len(keys) <= MOST_NAMES:
        for key, place in enumerate(keys):
            axes.annotate(
                str(key), tuple(place), textcoords="offset points", xytext=(5, 4), fontsize=8,
                color=MARKER,
            )  # fmt: skip
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.1)
    axes.set(xlabel="first dimension", ylabel="second dimension")
    axes.legend(fontsize=9, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3)
    axes.set_title("The keys and their hull")


Curve = Sequence[Mapping[str, float | int]]
"""Errors along a budget: its value under "beta" or "heads", the choices under their names."""

MOST_HEADS = 8
"""Queries written out in the terminal."""
FLOOR = 1e-9
"""Errors below this are rounding; the figure ends here."""


def robust_heads_blocks(record: HeadsDesign, keys: Any = None) -> Iterator[Block]:
    """Yield the queries found, how they compare, and the error curves if there are any."""
    count = len(record.queries)
    wanted = some(np.flatnonzero(record.target_weights))
    title = f"{many(count, 'head')} for keys {{{wanted}}}, ‖q‖ ≤ {number(record.norm)}"
    grid = table(title, "head", "‖q‖", "query", left=(0, 2))
    for head, query in enumerate(record.queries[:MOST_HEADS]):
        written = None if keys is None else in_keys(query, keys)
        grid.row(str(head), number(np.linalg.norm(query)), written or vector(query))
    if count > MOST_HEADS:
        grid.row(f"{count - MOST_HEADS} more")
    yield grid
    yield _heads_comparison(record)
    for budget, name, curve in (
        ("beta", "Error against the norm allowed", record.by_beta),
        ("heads", "Error against the number of heads", record.by_heads),
    ):
        if curve is not None:
            yield _curve_table(name, budget, curve)
    yield Text("The error is √E‖c − target‖²; squared, it is bias² + variance.")
    yield Text(f"Certificate: {sentence(record.certificate.statement)}")


def robust_heads_figure(record: HeadsDesign) -> Figure:
    """Draw the error against the norm and against the number of heads (see `error_curves`)."""
    assert record.by_beta is not None
    assert record.by_heads is not None
    with house_style():
        figure = new_figure(9.0, 4.4)
        left, right = figure.subplots(1, 2, sharey=True)
        _draw_curve(left, "beta", record.by_beta)
        left.set_xscale("log")
        norms = [float(point["beta"]) for point in record.by_beta]
        left.set_xticks(norms, [number(norm) for norm in norms])
        left.minorticks_off()
        left.set(xlabel=r"norm allowed, $\beta$", ylabel=r"error $\sqrt{E\|c - t\|^2}$")
        left.set_title(f"{len(record.queries)} heads, longer queries")
        _draw_curve(right, "heads", record.by_heads)
        right.set_xticks([int(point["heads"]) for point in record.by_heads])
        right.set(xlabel="number of heads")
        right.set_title(rf"More heads, $\beta \leq$ {number(record.norm)}")
        left.set_yscale("log")
        lowest = min(float(point["optimal"]) for point in (*record.by_beta, *record.by_heads))
        left.set_ylim(bottom=max(lowest / 3, FLOOR))
        legend_below(figure, left, 2)
        return figure


def _heads_comparison(record: HeadsDesign) -> Block:
    grid = table("Compared at this budget", "choice", "error", "± s.e.", "bias", "std", "mass on S")
    rows: list[tuple[str, HeadsDesign | HeadsChoice]] = [("found here", record)]
    rows += [(choice.name, choice) for choice in record.comparison]
    for name, choice in rows:
        # The standard error is that of the square: d√x = dx / (2√x).
        se = choice.standard_error / (2 * choice.error) if choice.error else 0.0
        grid.row(
            name,
            number(choice.error),
            number(se, 2) if se else "exact",
            number(choice.squared_bias**0.5),
            number(choice.variance**0.5),
            f"{choice.mass:.4f}",
        )
    return grid


def _curve_table(name: str, budget: str, curve: Curve) -> Block:
    symbol = {"beta": "β", "heads": "heads"}[budget]
    grid = table(name, "choice", *(f"{symbol} = {number(point[budget])}" for point in curve))
    for choice in _choices(curve, budget):
        cells = [number(point[choice], 3) if choice in point else "–" for point in curve]
        grid.row("found here" if choice == "optimal" else choice, *cells)
    return grid


def _choices(curve: Curve, budget: str) -> list[str]:
    """Return the names of the choices, the optimum first, in the order they appear."""
    return list(dict.fromkeys(name for point in curve for name in point if name != budget))


def _draw_curve(axes: Axes, budget: str, curve: Curve) -> None:
    colours = (ORANGE, GREEN, PURPLE, RED, GREY)
    marks = ("s", "^", "v", "D", "P")
    others = sorted(name for name in _choices(curve, budget) if name != "optimal")
    for place, name in enumerate(others):
        points = [point for point in curve if name in point]
        axes.plot(
            [point[budget] for point in points],
            [point[name] for point in points],
            marker=marks[place % len(marks)],
            color=colours[place % len(colours)],
            markersize=4.5,
            linewidth=1.3,
            label=name,
        )
    axes.plot(
        [point[budget] for point in curve],
        [point["optimal"] for point in curve],
        "o-",
        color=BLUE,
        markersize=5.5,
        linewidth=2.4,
        label="found by the search",
    )


MOST_KEYS = 6
"""Keys shown one by one: the noisy ones, those wanted, and those read most."""


@dataclass(frozen=True, eq=False, kw_only=True)
class NoiseComparison(NoiseStudy):
    """A study, and a second one of other heads over the same noisy keys."""

    versus: NoiseStudy
    """The study of the other heads."""

    @classmethod
    def of(cls, first: NoiseStudy, second: NoiseStudy) -> NoiseComparison:
        """Put two studies side by side; the record reads as the first one."""
        own = {field.name: getattr(first, field.name) for field in fields(NoiseStudy)}
        return cls(**own, versus=second)


def noise_blocks(record: NoiseStudy) -> Iterator[Block]:
    """Yield the weights of the keys of interest, then how often it fails."""
    studies = _studies(record)
    keys = shown_keys(record)
    title = "What noise does to " + " and ".join(heads_of(study) for study in studies)
    grid = table(title, "", *_headings(studies), left=(0,))
    for key in keys:
        grid.row(f"α_{key} mean", *_weight_cells(studies, "mean", key))
        grid.row(f"α_{key} std", *_weight_cells(studies, "std", key), gap=True)
    for name, cells in _outcome_rows(studies):
        grid.row(name, *cells)
    yield grid
    others = record.keys - len(keys)
    if others:
        rest = np.setdiff1d(np.arange(record.keys), keys)
        mean = max(float(_best(study).mean[rest].max()) for study in studies)
        keys_said = "key has" if others == 1 else f"{others} keys have each"
        yield Text(f"The other {keys_said} a mean α of at most {number(mean)}.")
    yield Text(
        f"t = average value of the wanted keys; a draw fails when ‖c − t‖ > {number(record.radius)}"
        f". Sampled: {record.sampled.draws:,} draws, ± one standard error."
    )
    for study in studies:
        yield Text(_grounds(study, named=len(studies) > 1))


def noise_figure(record: NoiseStudy) -> Figure:
    """Draw the noisy key itself, then α of the keys of interest, a panel for each choice of heads.

    The first panel is figure 1 of the course sheets: μ_a, and where k_a may lie.
    """
    studies = _studies(record)
    cloud = record.cloud
    with house_style():
        count = len(studies) + (cloud is not None)
        figure = new_figure(4.4 * count + (2.0 if count == 1 else 0.6), 3.7)
        panels = list(figure.subplots(1, count, squeeze=False)[0])
        if cloud is not None:
            draw_cloud(panels.pop(0), cloud)
        keys = shown_keys(record)
        for axes, study in zip(panels, studies, strict=True):
            _draw_boxes(axes, study, keys)
            failing = 100 * _best(study).failure_probability
            axes.set_title(f"{heads_of(study)}: fails {failing:.3g} % of draws")
            axes.sharey(panels[0]) if axes is not panels[0] else None
        panels[0].set_ylabel(r"$\bar\alpha_i$ over the draws")
        legend_below(figure, panels[0], 4)
        return figure


def cloud_figure(cloud: KeyCloud) -> Figure:
    """Draw figure 1 of the course sheets alone: μ_a, and where k_a may lie."""
    with house_style():
        figure = new_figure(5.0, 3.4)
        draw_cloud(figure.add_subplot(), cloud)
        return figure


def draw_cloud(axes: Axes, cloud: KeyCloud) -> None:
    """Draw a mean as an arrow, and draws of its key around it in red."""
    points = np.asarray(cloud.draws)
    axes.plot(points[:, 0], points[:, 1], "o", color=RED, markersize=3, alpha=0.35, zorder=2)
    axes.annotate(
        "", tuple(cloud.mean), (0, 0), arrowprops={"arrowstyle": "-|>", "color": BLUE, "lw": 2.2}
    )
    axes.annotate(rf"$\mu_{{{cloud.key}}}$", tuple(cloud.mean), (4, 9), textcoords="offset points")
    axes.plot([0], [0], "+", color=BLUE, markersize=9)
    reach = float(np.abs(points).max()) * 1.08
    axes.set(xlim=(-reach, reach), ylim=(-reach / 2, reach / 2), aspect="equal")
    axes.set(xlabel=rf"along $\mu_{{{cloud.key}}}$", ylabel="across it")
    axes.set_title(rf"Where $k_{{{cloud.key}}}$ may lie ({len(points)} draws)")


def heads_of(study: NoiseStudy) -> str:
    """Name the heads of a study: `2 heads on 0, 1`, or `1 head on 0+1`.

    (The text of each head is the combination of keys that its query points to.)
    """
    names = [name.replace(" ", "") for name in study.names]
    return f"{many(study.heads, 'head')} on {some(names, 6)}"


def shown_keys(record: NoiseStudy) -> list[int]:
    """Return the keys of interest, ascending: noisy ones first, then those read most."""
    read = np.max(
        [np.maximum(_best(study).mean, study.noiseless) for study in _studies(record)], axis=0
    )
    most = [key for key in largest_first(read).tolist() if read[key] > 0.01]
    return sorted(dict.fromkeys([*record.noisy[:MOST_KEYS], *most]))[:MOST_KEYS]


def _studies(record: NoiseStudy) -> list[NoiseStudy]:
    return [record, record.versus] if isinstance(record, NoiseComparison) else [record]


def _best(study: NoiseStudy) -> Any:
    return study.sampled if study.exact is None else study.exact


def _headings(studies: list[NoiseStudy]) -> Iterator[str]:
    for study in studies:
        name = heads_of(study)  # stands above the widest of its three columns
        yield from (
            ("exact", "sampled", "β → ∞")
            if len(studies) == 1
            else ("\nexact", f"{name}\nsampled", "\nβ → ∞")
        )


def _weight_cells(studies: list[NoiseStudy], what: str, key: int) -> Iterator[str]:
    for study in studies:
        exact = "–" if study.exact is None else f"{getattr(study.exact, what)[key]:.4f}"
        limit = "–" if study.limit is None else f"{getattr(study.limit, what)[key]:.4f}"
        drawn = getattr(study.sampled, what)[key]
        yield from (exact, f"{drawn:.4f} ± {getattr(study.sampled, what + '_se')[key]:.4f}", limit)


def _outcome_rows(studies: list[NoiseStudy]) -> Iterator[tuple[str, list[str]]]:
    fails, between, errors = [], [], []
    for study in studies:
        exact, sampled, limit = study.exact, study.sampled, study.limit
        fails += [
            "–" if exact is None else f"{exact.failure_probability:.4f}",
            f"{sampled.failure_probability:.4f}",
            "–" if limit is None else _four(limit.failure_probability),
        ]
        between += ["", f"{sampled.failure_low:.4f}…{sampled.failure_high:.4f}", ""]
        squared = None if exact is None else exact.mean_squared_error
        errors += [_four(squared, root=True), _four(sampled.mean_squared_error, root=True), ""]
    yield "P(fails)", fails
    yield "  95 % interval", between
    yield "√E‖c − t‖²", errors


def _four(value: float | None, *, root: bool = False) -> str:
    return "–" if value is None else f"{value**0.5 if root else value:.4f}"


def _grounds(study: NoiseStudy, *, named: bool) -> str:
    start = f"{heads_of(study)}: " if named else ""
    if study.exact is None:
        said = f"{start}No exact answer, because {study.exact_reason}."
    else:
        said = (
            f"{start}Exact to {study.exact.certified_error:.1g} ({study.exact.nodes:,} nodes); the "
            f"draws agree with it within {number(study.agreement, 2)} standard errors."
        )
    if study.limit is None:
        said += f" No limit, because {study.limit_reason}."
    return said


def _draw_boxes(axes: Axes, study: NoiseStudy, keys: list[int]) -> None:
    best = _best(study)
    drawn = best if best.quantiles is not None else study.sampled
    for place, key in enumerate(keys):
        first = place == 0
        if drawn.quantiles is not None:
            low, lower, middle, upper, high = drawn.quantiles[:, key]
            axes.vlines(place - 0.12, low, high, color=BLUE, linewidth=1.4)
            axes.bar(
                place - 0.12,
                upper - lower,
                bottom=lower,
                width=0.3,
                color=BLUE,
                alpha=0.45,
                label="half of the draws (line: 90 %)" if first else None,
            )
            axes.hlines(middle, place - 0.27, place + 0.03, color=BLUE, linewidth=2.2)
        axes.errorbar(
            place + 0.18,
            best.mean[key],
            yerr=best.std[key],
            fmt="o",
            color=ORANGE,
            markersize=5,
            capsize=3,
            label="mean ± std" if first else None,
        )
        if study.limit is not None:
            axes.plot(
                place + 0.36,
                study.limit.mean[key],
                "D",
                markerfacecolor="none",
                color=GREEN,
                markersize=5,
                label=r"mean as $\beta \to \infty$" if first else None,
            )
    wanted = study.noiseless[keys]
    axes.hlines(
        wanted,
        np.arange(len(keys)) - 0.42,
        np.arange(len(keys)) + 0.46,
        color=MARKER,
        linestyle=":",
        linewidth=1.2,
        label="without noise",
    )
    axes.set_xticks(np.arange(len(keys)), [f"{key}" for key in keys])
    axes.set(xlabel="key $i$", xlim=(-0.6, len(keys) - 0.35), ylim=(-0.08, 1.08))
    axes.grid(visible=False, axis="x")


LARGEST = 8
"""Matrices with more rows or columns are not written out."""
FORMS = {
    "kqv": "K, Q and V for",
    "values": "K and Q (V = I) for",
    "identity": "Without matrices (K = Q = V = I), for",
}


@dataclass(frozen=True, eq=False, kw_only=True)
class FourVectorsDesign(SequenceDesign):
    """An answer to the four-vector problem, beside what happens without matrices."""

    without: SequenceDesign | None
    """The same problem with K = Q = V = I, beside an answer with all three matrices."""
    additions: tuple[Addition, ...]
    """What adding u_d or u_c to x_1 would change without matrices."""

    @classmethod
    def of(
        cls,
        design: SequenceDesign,
        *,
        without: SequenceDesign | None,
        additions: tuple[Addition, ...],
    ) -> FourVectorsDesign:
        """Put the answers together; the record reads as `design`."""
        own = {field.name: getattr(design, field.name) for field in fields(SequenceDesign)}
        return cls(**own, without=without, additions=additions)


def sequence_blocks(record: SequenceDesign) -> Iterator[Block]:
    """Yield the matrices, what each position reads and gets, and the certificate."""
    yield _summary(record)
    if record.form != "identity":
        yield from _matrices(record)
    if record.weights is not None:
        yield _reading(record)
    proof = record.certificate
    yield Text(f"Certificate ({proof.kind}): {sentence(proof.statement)}")
    if isinstance(record, FourVectorsDesign):
        yield from _without_matrices(record)


def sequence_figure(record: SequenceDesign) -> Figure:
    """Draw K, Q, V and the weights as heat maps."""
    with house_style():
        figure = new_figure(10.0, 3.1)
        panels = figure.subplots(1, 4)
        for axes, name in zip(panels, "KQV", strict=False):
            W = getattr(record, name)
            draw_matrix(axes, W, float(np.abs(W).max()) or 1.0)
            axes.set_title(f"${name}$")
        assert record.weights is not None
        axes = panels[3]
        draw_matrix(axes, record.weights, 1.0, "Blues")
        axes.set_yticks(range(len(record.positions)), [str(p) for p in record.positions])
        axes.set(xlabel="reads position", ylabel="position")
        axes.set_title(r"$\alpha$")
        for axes in panels:
            axes.set_aspect("equal")
        title = f"K, Q and V with an error of {number(record.error)}"
        figure.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
        return figure


def _summary(record: SequenceDesign) -> Block:
    word = (
        ""
        if record.feasible
        else ": impossible"
        if record.certificate.proof
        else ": none was found"
    )
    outputs = some([f"c_{p} = {record.expressions[f'y_{p}']}" for p in record.positions], 4)
    grid = table(f"{FORMS[record.form]} {outputs}{word}", "", "", left=(0, 1))
    if record.form != "identity":
        for name in "KQV":
            if name in record.expressions:
                grid.row(name, record.expressions[name])
    if record.beta is not None:
        grid.row("scale β", f"{number(record.beta)} (smallest that reaches the tolerance)")
    if record.error is not None:
        absolute = "" if record.error_scale == 1 else f", {number(record.error_absolute)} absolute"
        grid.row("error", f"{number(record.error)}{absolute} (allowed: {number(record.tolerance)})")
    return grid


def _matrices(record: SequenceDesign) -> Iterator[Block]:
    shown = [(name, getattr(record, name)) for name in "KQV"]
    if any(W is None or max(W.shape) > LARGEST for _, W in shown):
        return
    grid = table("As matrices", *(name for name, _ in shown), left=(0, 1, 2))
    grid.row(*(Span(matrix(W), wrap=False) for _, W in shown))
    yield grid


def _reading(record: SequenceDesign) -> Block:
    grid = table("What each position reads", "position", "α", "c", "wanted", left=(0, 1, 2, 3))
    assert record.weights is not None
    for row, position in enumerate(record.positions[:20]):
        grid.row(
            str(position),
            vector(record.weights[row], digits=3, most=6),
            record.expressions.get(f"c_{position}", ""),
            record.expressions[f"y_{position}"],
        )
    return grid


def _without_matrices(record: FourVectorsDesign) -> Iterator[Block]:
    if record.without is not None and not record.without.feasible:
        proof = record.without.certificate
        wanted = record.expressions[f"y_{proof.position}"]
        yield Text("")
        yield Text(
            f"Without K, Q and V it is impossible: every output is an average of the inputs, and "
            f"c_{proof.position} = {wanted} is {at_least(proof.distance)} or more away from each."
        )
    yield Text("")
    yield Text("Adding a vector to x_1, without matrices:")
    yield Bullets(tuple(sentence(addition.statement) for addition in record.additions))
