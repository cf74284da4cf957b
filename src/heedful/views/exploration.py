"""The first part of the report: attention explored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import scipy  # its parts are imported when they are first used

from heedful.studies.exploration import Averaging, Exploration, NoiseContrast
from heedful.views.attention import cloud_figure, robust_heads_figure, sequence_figure
from heedful.views.blocks import Block, Command, Formula, Group, Section, group, table
from heedful.views.drawing import (
    BLUE,
    GREEN,
    GREY,
    MARKER,
    PALETTE,
    RED,
    figure_block,
    house_style,
    new_figure,
)
from heedful.views.formatting import number, sentence

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def exploration_section(record: Exploration, seconds: float) -> Section:
    """Return the part of the report about attention itself."""
    return Section(
        name="attention",
        title="Attention, explored",
        lead="One query over n keys: what it can read, what it cannot, and what noise does to it.",
        blocks=(
            _operation(),
            _averaging(record),
            _copying(record),
            _noise(record),
            _heads(record),
            _sequence(record),
            _order(record),
        ),
        findings=record.conclusions,
        seconds=seconds,
    )


def exploration_blocks(record: Exploration) -> Iterator[Block]:
    """Yield what a notebook shows: the part of the report."""
    yield exploration_section(record, 0.0)


def exploration_figure(record: Exploration) -> Figure:
    """Draw what noise does to one head and to two."""
    return noise_figure(record.noise)


def _operation() -> Group:
    return group(
        "The operation",
        Formula(
            r"c = \sum_i \alpha_i v_i, \qquad "
            r"\alpha_i = \dfrac{\exp(k_i^\top q)}{\sum_j \exp(k_j^\top q)}"
        ),
        "A query q gives each key k a weight, and reads the average of the values under "
        "these weights. Everything below is a question about this one line, computed in "
        "double precision. The error of a design is the share of the reading that goes "
        "astray: whatever the values are, the output is off by at most that share of their "
        "diameter.",
        Command("heed attend --n 4 --query 6 6 0 0"),
    )


def _averaging(record: Exploration) -> Group:
    averaging, average = record.averaging, record.average
    certificate = average.certificate
    scales = table("", "keys n", "weight of each under k_a + k_b", "β for an error of 1 %")
    for n, needed in averaging.needed.items():
        scales.row(str(n), f"{averaging.unscaled[n]:.3f}", f"{needed:.2f}")
    return group(
        "Averaging two values",
        Formula(r"\beta = \ln\dfrac{(n-m)(1-\varepsilon)}{m\,\varepsilon}"),
        f"With perpendicular unit keys, the query k_a + k_b gives each of its two keys a "
        f"weight of {averaging.unscaled[10]:.2f} when there are ten keys, and "
        f"{averaging.unscaled[64]:.2f} when there are 64: it does not average them, it reads "
        "everything a little. A scale is needed, and it grows with the logarithm of the "
        "number of keys; the formula gives the smallest one for m of n keys and error ε.",
        f"Nor is β(k_a + k_b) the least query that does it. Pushing the other keys down as "
        f"well as pulling the two up reaches the same weights with a norm of "
        f"{number(average.norm)} instead of {number(certificate.textbook_norm)}; no shorter "
        f"query exists (proved: at least {number(certificate.norm_lower_bound)}).",
        figure_block(
            averaging_figure(averaging),
            "error over beta",
            "The share of the reading that misses the two wanted values. The dotted "
            "line is the query without a scale; dots mark the smallest scale for 1 %.",
            "heed design average --n 10 --d 16 --of 0 1 --tolerance 0.01",
        ),
        scales,
    )


def _copying(record: Exploration) -> Group:
    plane = [[float(x) for x in row] for row in record.plane.tolist()]
    return group(
        "Which values can be copied at all",
        "A query copies value j when k_j leads every other key along it, and such a "
        "direction exists exactly when k_j is a corner of the convex hull of the keys. A key "
        "inside the hull is an average of others, and its logit is that average of theirs: "
        "it can never lead.",
        record.hidden.certificate.statement,
        f"In a crowd this is the rule, not the exception: of 500 random keys in four "
        f"dimensions only {record.crowd.count} can be copied. The same question decides which "
        "tokens an output layer can ever predict.",
        figure_block(
            hull_figure(record),
            "keys and their hull",
            "Six keys in the plane. The red ones lie inside; the dashed lines are the "
            "combination of corners that gives k₀, which proves that no query copies it.",
            f"heed design copy --keys '{plane}' --of 0",
        ),
        Command("heed copyable --keys gaussian --n 500 --d 4"),
    )


def _noise(record: Exploration) -> Group:
    noise = record.noise
    spreads = table(
        "",
        *("queries", "std of α_a, exact", "sampled", "P(c off by > 0.1)", "the same as β → ∞"),
        caption="Ten keys, norm 50 a head (√2 times that for the sum).",
    )
    for name, study in zip(noise.names, noise.studies, strict=True):
        exact, sampled, limit = study.exact, study.sampled, study.limit
        spreads.row(
            name,
            "–" if exact is None else f"{exact.std[0]:.4f}",
            f"{sampled.std[0]:.4f} ± {sampled.std_se[0]:.4f}",
            "–" if exact is None else f"{exact.failure_probability:.4f}",
            "–" if limit is None else f"{limit.failure_probability:.4f}",
        )
    return group(
        "Noisy keys: one head, two heads, or one that looks away",
        Formula(r"k_a \sim N(\mu_a,\ \frac{1}{2}\mu_a\mu_a^\top)"),
        "One key keeps its direction but varies in length. A single head at μ_a + μ_b then "
        "swings between the two values, as every course sheet says. Two heads, one at each "
        "key, are steadier, but they are not steady: whenever the noisy key turns around, "
        "head a reads all the other values instead. That happens with probability "
        "Φ(−√2) = 0.0786 however large the scale is.",
        "What no sheet says: one head is enough. A query that is perpendicular to both keys "
        "and pushes all the others down never feels the noise, because the noise moves k_a "
        "along a direction that this query does not look at. Several heads are not what "
        "makes attention robust here; looking away from the noise is.",
        *_cloud_block(noise),
        figure_block(
            noise_figure(noise),
            "alpha over draws",
            "The weight of the noisy key over 4,000 draws of it. It should be ½.",
        ),
        spreads,
        Command(noise.commands[1]),
    )


def _cloud_block(noise: NoiseContrast) -> Iterator[Block]:
    cloud = noise.studies[0].cloud
    if cloud is not None:
        yield figure_block(
            cloud_figure(cloud),
            "figure 1 of the sheets",
            "Figure 1 of the course sheets: μ_a, and where k_a may lie: along μ_a or against it, "
            "with any length.",
        )


def _heads(record: Exploration) -> Group:
    return group(
        "The best heads, searched for",
        "The machine may choose its queries freely within a norm. "
        + sentence(record.heads.certificate.statement),
        "Looking away works because one direction is noisy and the others are not. When "
        "every key varies in length, no direction is safe, and there several heads do help: "
        f"the best single head found errs by {number(record.everywhere[1], 3)}, two heads by "
        f"{number(record.everywhere[2], 3)}.",
        figure_block(
            robust_heads_figure(record.heads),
            "error of heads",
            "Root mean square distance of the output from the average of the two "
            "values. More heads at the same norm buy little; the right direction buys all.",
            "heed design heads --n 10 --d 16 --of 0 1 --noisy 0 --variance 0.5 "
            "--heads 2 --norm 50 --curves",
        ),
    )


def _sequence(record: Exploration) -> Group:
    design = record.sequence
    expressions = design.expressions
    return group(
        "Keys, queries and values from one sequence",
        "Four perpendicular vectors u_a … u_d; the sequence x₀ = u_d + u_b, x₁ = u_a, "
        "x₂ = u_c + u_b; wanted: c₀ ≈ u_b − u_c and c₁ ≈ u_b. Without matrices: "
        f"{record.without_matrices.certificate.statement}.",
        "Adding another vector to x₁ does not help, and not for the reason usually given. With "
        f"vectors of norm {record.addition_norm:g}: {record.additions[-1].statement}.",
        Command(f"heed design kqv --norm {record.addition_norm:g}"),
        "With matrices it is easy; here the vectors have norm 1. "
        f"K = {expressions['K']}, Q = {expressions['Q']}, V = {expressions['V']}. "
        f"The error is {number(design.error)} of the outputs' size, "
        f"and {number(design.beta)} is the smallest scale that reaches a mass of "
        f"{number(design.mass)}.",
        figure_block(
            sequence_figure(design),
            "matrices",
            "The matrices found, and the weights they give.",
            "heed design kqv",
        ),
    )


def _order(record: Exploration) -> Group:
    laws = table("", "respected", "layer", "what was found")
    for name, equivariance in record.order.items():
        holds = equivariance.holds
        laws.row(
            "yes" if holds else "no", name, equivariance.statement, tone="good" if holds else "bad"
        )
    features = "self-attention, features permuted"
    laws.row("no", features, record.features.statement, tone="bad")
    return group(
        "Does a layer know the order of its tokens?",
        Formula(r"f(PX) = P\,f(X)"),
        "A layer that respects every permutation of its tokens cannot know their order. "
        "Self-attention and the feed-forward layer do respect it (the claims part proves "
        "it); a causal mask or position embeddings break it. Writing the permutation on the "
        "other side, XΠ, permutes features instead of tokens, and there it fails.",
        laws,
        Command("heed properties --all"),
    )


def averaging_figure(record: Averaging) -> Figure:
    """Draw the error of β(k_a + k_b) over β, one curve a number of keys."""
    with house_style():
        figure = new_figure(7.2, 3.6)
        axes = figure.add_subplot()
        for colour, (n, errors) in zip(PALETTE, record.errors.items(), strict=False):
            axes.plot(record.betas, errors, color=colour)
            place = int(np.argmin(np.abs(errors - 0.3))) if n > 3 else 12
            axes.annotate(
                f"n = {n}",
                (record.betas[place], errors[place]),
                xytext=(5, 3),
                textcoords="offset points",
                color=colour,
                fontsize=9,
            )
            axes.plot([record.needed[n]], [record.tolerance], "o", color=colour, markersize=5)
        axes.axhline(record.tolerance, color=GREY, linewidth=0.9, linestyle="--")
        axes.text(0.1, record.tolerance * 0.83, "1 % astray", fontsize=8, color=GREY, va="top")
        axes.axvline(1.0, color=GREY, linewidth=0.9, linestyle=":")
        axes.text(1.08, 0.0017, r"$q = k_a + k_b$", fontsize=9, color=GREY)
        axes.set(
            xlabel=r"scale $\beta$ of the query $\beta(k_a + k_b)$",
            ylabel="share that goes astray",
            ylim=(1e-3, 1.2),
            yscale="log",
            xlim=(0, 14),
        )
        axes.set_title("Averaging two values takes a scale that grows with the number of keys")
        return figure


def hull_figure(record: Exploration) -> Figure:
    """Draw keys in the plane, their hull, and the combination that hits a hidden key."""
    with house_style():
        figure = new_figure(7.2, 3.7)
        axes = figure.add_subplot()
        points = record.plane
        hull = scipy.spatial.ConvexHull(points)
        loop = np.append(hull.vertices, hull.vertices[0])
        corners = {int(corner) for corner in hull.vertices}
        axes.fill(points[loop, 0], points[loop, 1], color=BLUE, alpha=0.08)
        axes.plot(points[loop, 0], points[loop, 1], color=BLUE, linewidth=1.0)
        for other, weight in (record.hidden.certificate.combination or {}).items():
            axes.plot(
                *zip(points[0], points[other], strict=True),
                color=RED,
                linewidth=1.0,
                linestyle="--",
            )
            middle = 0.45 * points[0] + 0.55 * points[other]
            axes.text(
                float(middle[0]),
                float(middle[1]),
                f"{weight:.2f}",
                color=RED,
                fontsize=8.5,
                ha="center",
                va="bottom",
            )
        for place, (x, y) in enumerate(points):
            inside = place not in corners
            axes.plot([x], [y], "o", color=RED if inside else BLUE, markersize=7)
            outward = np.array([x, y]) - points.mean(axis=0)
            shift = 13 * outward / max(float(np.linalg.norm(outward)), 0.2)
            if inside:
                shift = np.array([9.0, -11.0])
            axes.annotate(
                f"$k_{place}$",
                (x, y),
                xytext=tuple(shift),
                fontsize=11,
                textcoords="offset points",
                ha="center",
                va="center",
            )
        axes.set_aspect("equal")
        axes.set(xlim=(-1.7, 1.7), ylim=(-1.2, 1.25))
        axes.set_xticks([])
        axes.set_yticks([])
        axes.grid(visible=False)
        for spine in axes.spines.values():
            spine.set_visible(False)
        axes.set_title("A key can be copied exactly when it is a corner", pad=10)
        return figure


def noise_figure(record: NoiseContrast) -> Figure:
    """Draw the distribution of α_a over draws of the noisy key, one panel a choice of heads."""
    with house_style():
        figure = new_figure(7.2, 2.9)
        panels = figure.subplots(1, len(record.names), sharey=True)
        for axes, name, study, draws, colour in zip(
            panels, record.names, record.studies, record.draws, (RED, BLUE, GREEN), strict=True
        ):
            axes.hist(
                draws,
                bins=np.linspace(-0.0125, 1.0125, 42),
                color=colour,
                alpha=0.75,
                weights=np.full(len(draws), 1 / len(draws)),
            )
            axes.axvline(0.5, color=MARKER, linewidth=0.8, linestyle=":")
            spread = float(study.exact.std[0]) if study.exact is not None else float("nan")
            axes.set_title(name, fontsize=9.5)
            axes.text(
                0.03, 0.96, f"std {spread:.3f}", transform=axes.transAxes, va="top", fontsize=9
            )
            axes.set(xlabel=r"$\alpha_a$", xlim=(-0.03, 1.03), ylim=(0, 1.02))
            axes.set_xticks([0, 0.5, 1], ["0", "½", "1"])
        panels[0].set_ylabel("share of the draws")
        return figure
