"""A model that others have trained, in the report: what was measured of it, and what follows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from heedful.stats import percent, wilson
from heedful.studies.knowledge.findings import KNOWN, UNKNOWN, UNSURE, SignalSeparation, TestAnswer
from heedful.studies.knowledge.questions import LEVELS
from heedful.studies.knowledge.stored import StoredMeasurement
from heedful.views.blocks import Block, Bullets, Command, Group, Section, Table, Text, group, table
from heedful.views.drawing import (
    BLUE,
    GREY,
    ORANGE,
    RED,
    figure_block,
    house_style,
    new_figure,
)
from heedful.views.knowledge import (
    model_calibration_blocks,
    population_sentence,
    promise_sentence,
    told_apart_table,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BORN = re.compile(r"^In which city or town was (.+) born\?$")
"""How our questions ask for a birth place."""
OUTCOMES = (
    ("right, answered", BLUE, 1.0, True, True),
    ("right, withheld", BLUE, 0.35, True, False),
    ("wrong, answered", RED, 1.0, False, True),
    ("wrong, withheld", GREY, 0.5, False, False),
)
"""In words, how it is drawn, and what it is: right, answered."""


def pretrained_section(record: StoredMeasurement, seconds: float) -> Section:
    """Return the part of the report about a model that others have trained."""
    asked = len(record.calibration.answers)
    return Section(
        name="pretrained",
        title="A model that others have trained",
        lead=f"{record.name} was asked {asked} questions of ours, after as many others had shown "
        "what its confidence is worth. A stored measurement: it was not made by this run, and "
        "comes with the package.",
        blocks=(
            _knows(record),
            _invents(record),
            _told(record),
            _promised(record),
            _examples(record),
            _in_short(record),
        ),
        findings=record.conclusions,
        seconds=seconds,
    )


def measurement_blocks(record: StoredMeasurement) -> Iterator[Block]:
    """Yield what a notebook shows of a stored measurement."""
    yield Text(f"{record.name}, measured on {record.date} ({record.machine})", tone="strong")
    yield from model_calibration_blocks(record.calibration)


def _knows(record: StoredMeasurement) -> Group:
    grid = table("What it knows", "", "asked", "right", "95 %", "answered", "of these wrong")
    for one in record.calibration.levels:
        low, high = wilson(one.right, one.questions)
        grid.row(
            one.level,
            f"{one.questions}",
            f"{one.right} ({percent(one.right / max(one.questions, 1))})",
            "–" if one.level == LEVELS[0] else f"{percent(low)} – {percent(high)}",
            f"{one.known + one.unsure}",
            f"{one.known_wrong + one.unsure_wrong}",
        )
    return group(
        "What it knows",
        f"Measured on {record.date} ({record.machine}), in "
        f"{record.calibration.seconds / 60:.0f} minutes; the weights have the SHA-256 "
        f"{record.calibration.sha256[:16]}…. How well known a thing is, is our judgement.",
        figure_block(
            outcomes_figure(record),
            "pretrained outcomes",
            "Every test answer: right if it had to answer, and whether the threshold lets it "
            "through.",
        ),
        grid,
        Command(record.command),
    )


def _invents(record: StoredMeasurement) -> Group:
    unreal = record.invented
    own = [one for one in unreal if one.confidence > 0]
    grid = table("", "question", "it would say", "its confidence", left=(0, 1),
                 caption="The surest answers about things that do not exist.")  # fmt: skip
    for one in sorted(own, key=lambda one: -one.confidence)[:6]:
        grid.row(one.question, one.answer, percent(one.confidence))
    return group(
        "What it invents",
        f"{len(unreal)} test questions are about countries, people, books and other things whose "
        f"names we made up. {len(unreal) - len(own)} times it repeats words of the question, "
        f"which counts as no answer; {len(own)} times it says something else. Under the "
        f"thresholds, {sum(one.label != UNKNOWN for one in unreal)} of them get an answer.",
        grid,
    )


def _told(record: StoredMeasurement) -> Group:
    return group(
        "Can it be told?",
        "The AUROC is the chance that of two answers the better one gets the higher score: a right "
        "against a wrong one, or a right one against one about something that does not exist. "
        "Familiarity is how far the model expects the question itself.",
        figure_block(
            told_figure(record), "pretrained signals", "AUROC with bootstrap intervals at 95 %."
        ),
        told_apart_table(record.calibration),
    )


def _promised(record: StoredMeasurement) -> Group:
    calibration = record.calibration
    grid = table("Promised and observed", "answers called", "wrong at most", "promise",
                 "observed on the test", "95 %", left=(0, 2))  # fmt: skip
    for label, labels, made in (
        ("known", (KNOWN,), calibration.known),
        ("known or unsure", (KNOWN, UNSURE), calibration.unsure),
    ):
        given = [one for one in calibration.answers if one.label in labels]
        wrong = sum(not one.right for one in given)
        low, high = wilson(wrong, len(given))
        grid.row(
            label,
            percent(made.error),
            "refused" if made.threshold is None else "made",
            f"{wrong} of {len(given)} wrong" if given else "none given",
            f"{percent(low)} – {percent(high)}" if given else "–",
        )
    drift = table("Other mixtures of questions", "about what does not exist", "answered",
                  "of these wrong")  # fmt: skip
    for one in calibration.drift:
        drift.row(percent(one.invented), percent(one.answered), percent(one.error))
    return group(
        "Promised and observed",
        promise_sentence("known", calibration.known),
        promise_sentence("known or unsure", calibration.unsure),
        population_sentence(calibration.population),
        grid,
        drift,
    )


def _examples(record: StoredMeasurement) -> Group:
    return group(
        "Twelve questions",
        "The first three test questions of each kind, in the order of a hash of the question: "
        "nobody chose them. The answers are stored ones.",
        _answers_table(record.examples),
        Command('heed ask smollm2 "What is the capital of France?"'),
    )


def _answers_table(answers: tuple[TestAnswer, ...]) -> Table:
    columns = ("question", "it would say", "which is", "label", "confidence")
    grid = Table("", columns, left=(0, 1, 2, 3), fixed=(3,), caption="Stored answers.")
    for one in answers:
        truth = "right" if one.right else "made up" if one.level == LEVELS[0] else "wrong"
        grid.row(one.question, one.answer, truth, one.label, percent(one.confidence))
    return grid


def _in_short(record: StoredMeasurement) -> Group:
    """Return question 3 of sheet 004, answered in a few lines."""
    answers, given = record.calibration.answers, record.answered
    error = sum(not one.right for one in answers) / max(len(answers), 1)
    names = [
        (found[1], one.answer)
        for one in record.invented
        if one.confidence > 0 and (found := BORN.match(one.question))
    ]
    said = "; ".join(f"{name}: {place}" for name, place in names[:4])
    return group(
        "Question 3 of sheet 004, in short",
        Text(
            "(a) Why pretraining helps. Because the text of pretraining says where people were "
            "born, and the questions of fine-tuning do not: fine-tuning teaches the form of an "
            "answer. The part about knowledge trains both and shows the difference."
        ),
        Text(
            "(b) Why it matters that invention looks like knowledge. A model continues every text, "
            "so it answers every question, in one tone. That hurts three people:"
        ),
        Bullets(
            (
                f"Who relies on it acts on what is not there: answering everything, {record.name} "
                f"is wrong in {percent(error)} of {len(answers)} test questions, and says "
                f"something of its own about {record.says_something} of {len(record.invented)} "
                "things that do not exist.",
                "Whom it is about gets a history that a name gave them: a wrong birth place "
                "follows the sound of the name, and nothing in the answer says so.",
                "Who must check it has to check everything it cannot vouch for: to keep the "
                f"promise, it leaves {len(answers) - len(given)} of {len(answers)} questions "
                "unanswered.",
            ),
            numbered=True,
        ),
        Text(
            "(c) A name that it never saw. It answers all the same, from what the name looks like"
            + (f" ({said}; these people do not exist)" if said else "")
            + ". That is a statement about the group that a name sounds like, given out as a fact "
            "about one person."
        ),
        Text(
            "In full, with an experiment for each: the page “What a pretrained model knows” of "
            "the documentation (docs/considerations.md)."
        ),
    )


def outcomes_figure(record: StoredMeasurement) -> Figure:
    """Draw what the answers of each level are: right or wrong, answered or withheld."""
    levels = list(LEVELS.values())[::-1]
    with house_style():
        figure = new_figure(7.6, 2.9)
        axes = figure.add_subplot()
        for row, level in enumerate(levels):
            own = [one for one in record.calibration.answers if one.level == level]
            left = 0.0
            for words, colour, strength, right, answered in OUTCOMES:
                count = sum(
                    one.right == right and (one.label != UNKNOWN) == answered for one in own
                )
                share = count / max(len(own), 1)
                label = words if row == 0 else None
                axes.barh(row, share, left=left, height=0.6, color=colour, alpha=strength,
                          label=label)  # fmt: skip
                left += share
            axes.annotate(f"n = {len(own)}", (1.01, row), va="center", fontsize=9)
        axes.set_yticks(range(len(levels)), levels)
        axes.set(xlim=(0, 1.1), xlabel="share of the answers")
        axes.xaxis.set_major_formatter(lambda value, _place: f"{100 * value:.0f} %")
        axes.grid(axis="y", visible=False)
        axes.legend(fontsize=9, ncols=4, loc="lower left", bbox_to_anchor=(-0.14, 1.0),
                    columnspacing=1.2, handlelength=1.2)  # fmt: skip
        return figure


def told_figure(record: StoredMeasurement) -> Figure:
    """Draw the AUROC of every signal with its interval, for both distinctions."""
    both: tuple[tuple[str, str, tuple[SignalSeparation, ...]], ...] = (
        ("right or wrong", BLUE, record.calibration.right_or_wrong),
        ("right or invented", ORANGE, record.calibration.real_or_invented),
    )
    names = [one.signal for one in reversed(both[0][2])]
    with house_style():
        figure = new_figure(7.2, 1.0 + 0.42 * len(names))
        axes = figure.add_subplot()
        for shift, (what, colour, some) in zip((0.14, -0.14), both, strict=True):
            for one in some:
                row = names.index(one.signal) + shift
                axes.plot([one.low, one.high], [row, row], color=colour, linewidth=2.4, alpha=0.6)
                axes.plot(one.auroc, row, "o", color=colour, markersize=6)
            axes.plot([], [], "o-", color=colour, label=what)
        axes.axvline(0.5, color=GREY, linestyle="--", linewidth=1.0)
        axes.set_yticks(range(len(names)), names)
        axes.set(xlim=(0.45, 1.01), xlabel="AUROC (0.5: no better than a coin)")
        axes.legend(fontsize=9, ncols=2, loc="lower left", bbox_to_anchor=(-0.02, 1.0))
        return figure
