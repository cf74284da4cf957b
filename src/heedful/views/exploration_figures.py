"""The figures of the exploration: averaging, the hull, noise, heads."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from scipy.spatial import ConvexHull

from heedful.studies.exploration import Averaging, Exploration, NoiseContrast
from heedful.views.drawing import (
    BLUE,
    GREEN,
    GREY,
    MARKER,
    ORANGE,
    PALETTE,
    RED,
    house_style,
    new_figure,
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
        hull = ConvexHull(points)
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


HEAD_LABELS = (
    ("optimal", "best found", BLUE, "-"),
    ("one head a target key", "one head at each key", ORANGE, "--"),
    ("all heads on the sum", "all heads at the sum", RED, "--"),
    ("all heads away from the other keys", "away from the others", GREEN, ":"),
)


def heads_figure(record: Exploration) -> Figure:
    """Draw the error of heads against the norm allowed, and against the number of heads."""
    with house_style():
        figure = new_figure(7.2, 3.3)
        left, right = figure.subplots(1, 2, sharey=True)
        for rows, axes, field in (
            (record.heads.by_beta, left, "beta"),
            (record.heads.by_heads, right, "heads"),
        ):
            for key, label, colour, line in HEAD_LABELS:
                points = [(row[field], max(row[key], 1e-6)) for row in rows or () if key in row]
                if points:
                    axes.plot(
                        *zip(*points, strict=True),
                        line,
                        color=colour,
                        label=label,
                        marker="o",
                        markersize=3.5,
                    )
            axes.set_yscale("log")
            axes.set_ylim(5e-7, 1.6)
        left.set(xlabel=r"largest norm of a query", ylabel=r"error $\sqrt{E\|c - target\|^2}$")
        right.set(xlabel="number of heads")
        right.set_xticks([1, 2, 4, 8])
        left.set_title("Error against the norm")
        right.set_title("… against the heads")
        figure.legend(
            *left.get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8.5
        )
        return figure
