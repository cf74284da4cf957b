"""The figures of the knowledge study."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from heedful.studies.knowledge.findings import (
    Calibration,
    GroupEffect,
    KnowledgeStudy,
    NameStudy,
    RiskCoverage,
    StoragePoint,
)
from heedful.views.drawing import (
    BLUE,
    GREEN,
    GREY,
    INK,
    MARKER,
    ORANGE,
    PALETTE,
    PURPLE,
    RED,
    house_style,
    new_figure,
)

LABEL_COLOURS = {
    "retrieved": BLUE,
    "retrieved or guessed": GREEN,
    "guessed from the name": ORANGE,
    "made up": RED,
}
SHORT = {
    "pointed": "what the name points to",
    "edits": "nearest name: edits",
    "tokens": "nearest name: tokens",
    "hidden": "nearest name: state",
    "frequent": "most frequent answer",
}
SERIES = {"people": "How many people", "width": "How large a model", "phrasings": "How it is said"}


def contrast_figure(record: KnowledgeStudy) -> Figure:
    """Draw how often each arm is right, about people in the text and about others."""
    arms = record.arms[::-1]
    with_unseen = any(arm.unseen_accuracy is not None for arm in arms)
    with house_style():
        figure = new_figure(7.2, 0.55 + 0.48 * len(arms))
        axes = figure.add_subplot()
        for row, arm in enumerate(arms):
            colour = BLUE if arm.kind == "trained" else GREY
            axes.barh(row, arm.accuracy, height=0.55, color=colour, alpha=0.85)
            axes.plot([arm.low, arm.high], [row, row], color=MARKER, linewidth=1.2)
            axes.annotate(
                f"{100 * arm.accuracy:.0f} %", (max(arm.high, arm.accuracy), row), xytext=(5, -3.5),
                textcoords="offset points", fontsize=9,
            )  # fmt: skip
            if arm.unseen_accuracy is not None:
                axes.plot(arm.unseen_accuracy, row, "D", color=ORANGE, markersize=6, zorder=4)
        axes.set_yticks(range(len(arms)), [arm.arm for arm in arms])
        axes.set(xlim=(0, 1.12), xlabel="share of right answers")
        axes.xaxis.set_major_formatter(lambda value, _place: f"{100 * value:.0f} %")
        axes.grid(axis="y", visible=False)
        if with_unseen:
            axes.plot([], [], "D", color=ORANGE, markersize=6, label="people whom no text has")
            axes.legend(fontsize=9, loc="upper right")
        axes.set_title("Right answers about people in the pretraining text")
        return figure


def labels_figure(record: KnowledgeStudy) -> Figure:
    """Draw what the answers are, one bar a group; the surest part of each is darker."""
    groups = list(dict.fromkeys(row.group for row in record.labels))
    with house_style():
        figure = new_figure(8.0, 1.1 + 0.5 * len(groups))
        axes = figure.add_subplot()
        for row, group in enumerate(reversed(groups)):
            own = [one for one in record.labels if one.group == group]
            total = sum(one.confident + one.unsure for one in own)
            left = 0.0
            for label, colour in LABEL_COLOURS.items():
                sure = sum(one.confident for one in own if one.label == label) / total
                unsure = sum(one.unsure for one in own if one.label == label) / total
                axes.barh(row, sure, left=left, height=0.6, color=colour)
                axes.barh(row, unsure, left=left + sure, height=0.6, color=colour, alpha=0.35)
                left += sure + unsure
            axes.annotate(f"n = {total}", (1.01, row), va="center", fontsize=9)
        axes.set_yticks(range(len(groups)), [_in_words(group) for group in reversed(groups)])
        axes.set(xlim=(0, 1.1), xlabel="share of the answers")
        axes.xaxis.set_major_formatter(lambda value, _place: f"{100 * value:.0f} %")
        axes.grid(axis="y", visible=False)
        for label, colour in LABEL_COLOURS.items():
            axes.bar(0, 0, color=colour, label=label)
        axes.legend(fontsize=9, ncols=4, loc="lower left", bbox_to_anchor=(-0.32, 1.0),
                    columnspacing=1.2, handlelength=1.2)  # fmt: skip
        return figure


def separation_figure(record: KnowledgeStudy) -> Figure:
    """Draw the AUROC of every signal with its interval."""
    with house_style():
        figure = new_figure(7.2, 0.9 + 0.36 * len(record.auroc))
        axes = figure.add_subplot()
        for row, one in enumerate(reversed(record.auroc)):
            colour = PURPLE if "combined" in one.signal else BLUE
            axes.plot([one.low, one.high], [row, row], color=colour, linewidth=2.4, alpha=0.6)
            axes.plot(one.auroc, row, "o", color=colour, markersize=7)
            axes.annotate(
                f"{one.auroc:.2f}", (1.0, row), xytext=(8, -3.5), textcoords="offset points",
                fontsize=9, annotation_clip=False,
            )  # fmt: skip
        axes.axvline(0.5, color=GREY, linestyle="--", linewidth=1.0)
        names = [one.signal for one in reversed(record.auroc)]
        axes.set_yticks(range(len(names)), names)
        lowest = min([0.45, *(one.low for one in record.auroc)])
        axes.set(xlim=(lowest - 0.03, 1.01), xlabel="AUROC (0.5: no better than a coin)")
        axes.set_title("Which signal tells retrieved from made up")
        return figure


def calibration_figure(record: KnowledgeStudy) -> Figure:
    """Draw the reliability diagram and what abstaining buys."""
    with house_style():
        figure = new_figure(9.0, 3.7)
        first, second = figure.subplots(1, 2)
        _draw_reliability(first, record.calibration)
        _draw_risk(second, record.risk_coverage)
        return figure


def names_figure(record: NameStudy) -> Figure:
    """Draw what answers about unseen names follow, and the table of groups and answers."""
    with house_style():
        if record.effect is None:
            figure = new_figure(7.2, 3.2)
            _draw_following(figure.add_subplot(), record)
            return figure
        figure = new_figure(9.6, 3.9)
        first, second = figure.subplots(1, 2, width_ratios=(1.0, 1.15))
        _draw_following(first, record)
        _draw_groups(second, record.effect)
        return figure


def storage_figure(points: tuple[StoragePoint, ...]) -> Figure:
    """Draw accuracy against exposures, one panel a thing that is varied."""
    usual = next((point for point in points if _is_usual(point, points)), points[0])
    series = [name for name in SERIES if any(point.series == name for point in points)]
    with house_style():
        figure = new_figure(3.3 * len(series), 3.3)
        panels = figure.subplots(1, len(series), sharey=True, squeeze=False)[0]
        for axes, name in zip(panels, series, strict=True):
            own = [point for point in points if point.series == name]
            if name != usual.series:
                own.append(usual)
            for colour, point in zip(PALETTE, own, strict=False):
                label = point.label
                if name != usual.series and point is usual:
                    label = "several phrasings" if name == "phrasings" else "the usual width"
                axes.plot(point.exposures, point.accuracy, "o-", color=colour, markersize=4,
                          label=label)  # fmt: skip
                axes.fill_between(point.exposures, point.low, point.high, color=colour, alpha=0.12)
            axes.set(xlabel="exposures of each person", ylim=(0, 1.02))
            axes.set_title(SERIES[name])
            axes.legend(fontsize=8, loc="upper left")
        panels[0].set_ylabel("right answers")
        panels[0].yaxis.set_major_formatter(lambda value, _place: f"{100 * value:.0f} %")
        return figure


def _draw_reliability(axes: Axes, both: tuple[Calibration, ...]) -> None:
    axes.plot([0, 1], [0, 1], color=GREY, linestyle="--", linewidth=1.0)
    for one, colour, name in zip(both, (ORANGE, BLUE), ("as it is", "scaled"), strict=True):
        x = [part.confidence for part in one.bins]
        y = [part.accuracy for part in one.bins]
        for part in one.bins:
            axes.plot([part.confidence] * 2, [part.low, part.high], color=colour, alpha=0.35)
        axes.plot(x, y, "-", color=colour, linewidth=1.2)
        axes.scatter(x, y, s=[12 + 1.2 * part.count for part in one.bins], color=colour, zorder=3,
                     label=f"{name}: ECE {one.ece:.2f}")  # fmt: skip
    axes.set(xlim=(0, 1.03), ylim=(0, 1.03), xlabel="confidence", ylabel="share right")
    axes.legend(fontsize=9, loc="upper left")
    axes.set_title("Does confidence mean what it says")


def _draw_risk(axes: Axes, risk: RiskCoverage) -> None:
    axes.plot(risk.coverage, risk.risk, color=BLUE)
    axes.axhline(risk.wanted_error, color=GREY, linestyle="--", linewidth=1.0)
    axes.annotate(
        f"wanted: {100 * risk.wanted_error:.0f} %", (0.02, risk.wanted_error), xytext=(0, 3),
        textcoords="offset points", fontsize=9, color=GREY,
    )  # fmt: skip
    if risk.test_error is not None:
        axes.plot(risk.test_coverage, risk.test_error, "o", color=ORANGE, markersize=8, zorder=4)
        axes.annotate(
            f"threshold {risk.threshold:.2f}:\n{100 * risk.test_coverage:.0f} % answered, "
            f"{100 * risk.test_error:.0f} % of it wrong",
            (0.02, 0.97), xycoords="axes fraction", va="top", fontsize=9, color=ORANGE,
        )  # fmt: skip
    top = max(0.05, 1.45 * max(risk.risk, default=0.1))
    axes.set(xlim=(0, 1.02), ylim=(0, min(top, 1.02)), xlabel="share of questions answered",
             ylabel="share of these wrong")  # fmt: skip
    axes.set_title("What abstaining buys")


def _draw_following(axes: Axes, record: NameStudy) -> None:
    rows = record.following[::-1]
    for row, one in enumerate(rows):
        axes.barh(row, one.rate, height=0.55, color=BLUE, alpha=0.85)
        axes.plot([one.low, one.high], [row, row], color=MARKER, linewidth=1.2)
        axes.plot([one.chance] * 2, [row - 0.36, row + 0.36], color=ORANGE, linewidth=2.4)
    axes.plot([], [], color=ORANGE, linewidth=2.4, label="by chance")
    axes.set_yticks(range(len(rows)), [SHORT[one.what] for one in rows])
    axes.set(xlim=(0, 1.02), xlabel="the answer is the same in")
    axes.xaxis.set_major_formatter(lambda value, _place: f"{100 * value:.0f} %")
    axes.grid(axis="y", visible=False)
    axes.legend(fontsize=9, loc="lower right")
    axes.set_title("Whose answer a new name gets")


def _draw_groups(axes: Axes, effect: GroupEffect) -> None:
    table = np.array(effect.table, dtype=float)
    shares = table / np.maximum(table.sum(axis=1, keepdims=True), 1)
    axes.imshow(shares, vmin=0, vmax=1, cmap="Blues", aspect="auto")
    axes.grid(visible=False)
    for row, column in np.ndindex(*shares.shape):
        if shares[row, column] >= 0.005:
            ink = "white" if shares[row, column] > 0.55 else INK
            axes.annotate(f"{100 * shares[row, column]:.0f}", (column, row), ha="center",
                          va="center", fontsize=8, color=ink)  # fmt: skip
    axes.set_xticks(range(len(effect.places)), effect.places, rotation=35, ha="right", fontsize=9)
    axes.set_yticks(range(len(effect.groups)), effect.groups, fontsize=9)
    axes.set(xlabel="group of the answer (%)", ylabel="group of the name")
    axes.set_title(f"Cramér's V = {effect.cramers_v:.2f}")


def _is_usual(point: StoragePoint, points: tuple[StoragePoint, ...]) -> bool:
    """Tell the case that the other series are varied around: as many people as they have."""
    others = [one for one in points if one.series != "people"]
    return point.series == "people" and all(one.people == point.people for one in others)


def _in_words(group: str) -> str:
    seen, _, kind = group.partition("-")
    in_text = "in the text" if seen == "seen" else "not in the text"
    return in_text if not kind else f"{in_text}, name {'hints' if kind == 'hint' else 'does not'}"
