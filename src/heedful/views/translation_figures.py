"""The figures of a study of translation: quality against pairs, and against the clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from heedful.records import Record
from heedful.views.drawing import BLUE, GREEN, GREY, ORANGE, RED, house_style, new_figure

if TYPE_CHECKING:
    from heedful.studies.translation.records import ArmResult, TranslationStudy
else:  # these records live beside torch, without which the report must work
    ArmResult = TranslationStudy = Record

STYLES = {
    "scratch": (ORANGE, "-", "o"),
    "scratch, same clock": (RED, "none", "D"),
    "here": (BLUE, "-", "o"),
    "elsewhere": (GREEN, "-", "s"),
}
"""Colour, line and mark of each arm."""
BASELINE_LINES = {"dictionary": "--", "nearest": ":", "copy": "-."}
ASIDE = {"scratch": 0.97, "here": 1.03, "elsewhere": 1.0, "scratch, same clock": 1.0}
"""Moves the marks of arms apart, so that intervals do not hide one another."""


def sizes_figure(record: TranslationStudy) -> Figure:
    """Draw BLEU on the test against the number of pairs, with intervals."""
    with house_style():
        figure = new_figure(7.2, 4.0)
        axes = figure.add_subplot()
        for arm, (colour, line, mark) in STYLES.items():
            found = sorted((r for r in record.arms if r.arm == arm), key=lambda r: r.pairs)
            if found:
                _with_intervals(axes, found, colour, line, mark)
        for baseline, line in BASELINE_LINES.items():
            rows = [row for row in record.baselines if row.baseline == baseline]
            axes.plot(
                [row.pairs for row in rows],
                [row.bleu for row in rows],
                line,
                color=GREY,
                linewidth=1.2,
                label=f"baseline: {baseline}",
            )
        _pairs_axis(axes, record)
        axes.set(xlabel="training pairs", ylabel="BLEU on the test", ylim=(0, 100))
        axes.set_title("Quality against the number of pairs, with 95 % intervals")
        figure.legend(
            *axes.get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8.5
        )
        return figure


def clock_figure(record: TranslationStudy) -> Figure:
    """Draw BLEU on development sentences against minutes, a panel for each number of pairs."""
    sizes = sorted({r.pairs for r in record.arms})[-3:]
    with house_style():
        figure = new_figure(7.2, 3.3)
        panels = figure.subplots(1, len(sizes), sharey=True, squeeze=False)[0]
        handles: dict[str, Artist] = {}
        for axes, pairs in zip(panels, sizes, strict=True):
            for arm, (colour, _, _) in STYLES.items():
                for result in record.arms:
                    if (result.arm, result.pairs) != (arm, pairs):
                        continue
                    points = [point for point in result.curve if point.bleu is not None]
                    line = "--" if arm == "scratch, same clock" else "-"
                    (drawn,) = axes.plot(
                        [point.minutes for point in points],
                        [point.bleu for point in points],
                        line,
                        color=colour,
                        marker="o",
                        markersize=3,
                        linewidth=1.4,
                    )
                    handles.setdefault(result.label, drawn)
                    if result.minutes_before:
                        axes.axvspan(0, result.minutes_before, color=colour, alpha=0.08, lw=0)
            axes.set_title(f"{pairs:,} pairs", fontsize=10)
            axes.set_xlabel("minutes of training")
            axes.set_xlim(left=0)
        panels[0].set_ylabel("BLEU, development")
        panels[0].set_ylim(bottom=0)
        figure.legend(
            list(handles.values()), list(handles), loc="outside lower center", ncols=4, fontsize=8.5
        )
        return figure


def _with_intervals(axes: Axes, found: list[ArmResult], colour: str, line: str, mark: str) -> None:
    pairs = np.array([result.pairs for result in found]) * ASIDE[found[0].arm]
    bleu = np.array([result.bleu for result in found])
    low = np.array([result.bleu_low for result in found])
    high = np.array([result.bleu_high for result in found])
    axes.errorbar(
        pairs,
        bleu,
        # An interval is centred on the mean of its resamples, which may miss the score by a hair.
        yerr=np.maximum([bleu - low, high - bleu], 0.0),
        color=colour,
        linestyle=line,
        marker=mark,
        markersize=5,
        capsize=3,
        label=found[0].label,
    )


def _pairs_axis(axes: Axes, record: TranslationStudy) -> None:
    sizes = sorted({result.pairs for result in record.arms})
    axes.set_xscale("log")
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axes.minorticks_off()
