"""The knowledge study, and the replies of its model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from heedful.studies.conclusions import sentences
from heedful.studies.knowledge.findings import (
    KNOWN,
    TWO_BITS,
    UNKNOWN,
    AskReplies,
    AskReply,
    Calibration,
    CapacityStudy,
    GroupEffect,
    KnowledgeStudy,
    ModelCalibration,
    ModelReplies,
    ModelReply,
    NameStudy,
    Promise,
    RiskCoverage,
    SignalSeparation,
    StoragePoint,
)
from heedful.studies.knowledge.questions import LEVELS
from heedful.views.blocks import Block, Bullets, Command, Group, Section, Table, Text, group, table
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
    figure_block,
    house_style,
    legend_below,
    new_figure,
)
from heedful.views.formatting import number, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FOLLOWED = {
    "pointed": "the place that the name points to",
    "edits": "the place of the seen name with the fewest edits",
    "tokens": "the place of the seen name with the most shared tokens",
    "hidden": "the place of the seen name with the most similar state",
    "frequent": "the most frequent answer",
}
NEARNESS = {
    "edits": "{score:.0f} edits away",
    "tokens": "{score:.0%} of tokens shared",
    "hidden": "cosine {score:.2f} inside the model",
}


def knowledge_blocks(record: KnowledgeStudy) -> Iterator[Block]:
    """Yield what `heed study knowledge` prints."""
    questions = record.questions
    yield Text(
        f"{record.corpus}: {record.documents:,} documents, {questions['training']:,} questions "
        f"for fine-tuning, {questions['held out']:,} held out, {questions['test']:,} asked."
    )
    yield _arms(record)
    yield _labels(record)
    yield _signals(record)
    yield _confidence(record)
    yield _promises(record)
    if record.names is not None:
        yield _following(record.names)
    if record.storage:
        yield _storage(record)
    yield Bullets(sentences(record.conclusions))
    notes = list(record.notes)
    if record.quick:
        notes.append("--quick only tries the machinery; its figures say nothing")
    if notes:
        yield Text("Notes:")
        yield Bullets(tuple(notes))
    yield Text(f"{record.minutes:.1f} minutes; the model for `heed ask` is {record.run}")


def _arms(record: KnowledgeStudy) -> Table:
    groups = list(record.arms[0].groups) if record.arms else []
    caption = (
        "Right answers of each arm, by whether the text has the person and whether the name "
        "hints at a place; work in 10¹² operations a seed."
    )
    columns = ("arm", "in the text", "95 %", *groups, "work")
    grid = table("Right answers", *columns, caption=caption)
    for arm in record.arms:
        grid.row(
            arm.arm,
            percent(arm.accuracy),
            _interval(arm.low, arm.high),
            *(_counts(arm.groups.get(group)) for group in groups),
            f"{arm.work / 1e12:.2f}" if arm.kind == "trained" else "–",
        )
    return grid


def _labels(record: KnowledgeStudy) -> Table:
    columns = ("person, name", "answer", "label", "sure", "not sure")
    title = f"What the answers of {record.main_arm!r} are"
    grid = table(title, *columns, left=(0, 1, 2), caption="Every answer to the test, counted.")
    for row in record.labels:
        answer = "right" if row.right else "wrong"
        grid.row(row.group, answer, row.label, str(row.confident), str(row.unsure))
    return grid


def _signals(record: KnowledgeStudy) -> Block:
    if not record.auroc:
        return Text("There were too few retrieved or made-up answers to tell them apart.")
    first = record.auroc[0]
    title = f"Telling {first.positives} retrieved from {first.negatives} made-up answers"
    groups = record.auroc_by_names
    grid = table(title, "signal", "AUROC", "95 %", *groups)
    for place, one in enumerate(record.auroc):
        grid.row(
            one.signal,
            f"{one.auroc:.3f}",
            f"{one.low:.3f} – {one.high:.3f}",
            *(f"{some[place].auroc:.3f}" for some in groups.values()),
        )
    return grid


def _confidence(record: KnowledgeStudy) -> Table:
    grid = table("Confidence", "", "temperature", "ECE", "Brier")
    for name, one in zip(("as it is", "scaled"), record.calibration, strict=True):
        grid.row(name, number(one.temperature, 3), f"{one.ece:.3f}", f"{one.brier:.3f}")
    return grid


def _promises(record: KnowledgeStudy) -> Table:
    """Return what is promised at several error rates, and what was observed."""
    columns = ("score", "wrong at most", "promise", "tested on", "observed on the test")
    title = "What can be promised, at 95 %"
    grid = table(title, *columns, left=(0, 2), caption="Thresholds are tested in a fixed order.")
    for one in record.promises:
        made = one.promise
        found = f"{made.wrong} of {made.answered} wrong"
        if made.threshold is not None:
            observed = f"{one.wrong} of {one.answered} wrong"
            grid.row(one.score, percent(made.error), "made", found, observed)
            continue
        way_out = "no number would do" if made.needed is None else f"{made.needed:,} would do"
        refused = f"refused: {made.choosing + made.testing} questions; {way_out}"
        grid.row(one.score, percent(made.error), refused, found, "–")
    return grid


def _following(names: NameStudy) -> Table:
    count = max(one.count for one in names.following)
    grid = table(f"{count} names never seen: the answer is", "", "share", "95 %", "by chance")
    for one in names.following:
        fewer = "" if one.count == count else f" ({one.count} names)"
        interval = _interval(one.low, one.high)
        grid.row(FOLLOWED[one.what] + fewer, percent(one.rate), interval, percent(one.chance))
    return grid


def _storage(record: KnowledgeStudy) -> Table:
    columns = ("", "people in the text", "parameters", "exposures", "right", "95 %")
    grid = table("How much is stored", *columns)
    for point in record.storage:
        asked = bool(point.accuracy)
        grid.row(
            point.label,
            f"{point.people:,}",
            f"{point.parameters:,}",
            number(point.exposures[-1] if point.exposures else None, 3),
            percent(point.accuracy[-1] if asked else None),
            _interval(point.low[-1], point.high[-1]) if asked else "–",
        )
    return grid


def capacity_blocks(record: CapacityStudy) -> Iterator[Block]:
    """Yield what `heed study capacity` prints."""
    yield Text(
        f"People with {record.value_bits:.0f} bits of values each, read so many times. Bits are "
        "those stored in a parameter; the interval covers seeds, or people where there is one."
    )
    columns = ("text", "parameters", "people", "readings", "stored", "95 %", "asked by name")
    grid = table("Bits in a parameter", *columns, "seeds")
    for one in record.points:
        grid.row(
            "varied" if one.varied else "the same",
            f"{one.parameters:,}",
            f"{one.people:,}",
            f"{one.exposures:,}",
            f"{one.stored:.2f}",
            f"{one.low:.2f} – {one.high:.2f}",
            f"{one.asked:.2f}",
            str(len(one.seeds)),
        )
    yield grid
    yield Bullets(sentences(record.conclusions))
    if record.left_out:
        yield Text("Left out, since it would take more work than the study allows itself:")
        yield Bullets(record.left_out)
    if record.quick:
        yield Text("--quick only tries the machinery; its decoder is smaller than all others")
    yield Text(f"{record.processor_minutes:.1f} processor minutes of training")


def capacity_figure(record: CapacityStudy) -> Figure:
    """Draw bits in a parameter against readings: stored in the text, and asked for by name."""
    kinds = [varied for varied in (False, True) if any(p.varied == varied for p in record.points)]
    sizes = sorted({point.parameters for point in record.points})
    with house_style():
        figure = new_figure(3.9 * max(len(kinds), 1), 3.8)
        panels = figure.subplots(1, max(len(kinds), 1), sharey=True, squeeze=False)[0]
        for axes, varied in zip(panels, kinds, strict=False):
            for colour, size in zip(PALETTE, sizes, strict=False):
                own = [p for p in record.points if (p.parameters, p.varied) == (size, varied)]
                if not own:
                    continue
                read = [one.exposures for one in own]
                axes.plot(read, [one.stored for one in own], "o-", color=colour, markersize=4,
                          label=f"{size / 1e6:.2f} million parameters")  # fmt: skip
                axes.fill_between(read, [one.low for one in own], [one.high for one in own],
                                  color=colour, alpha=0.15)  # fmt: skip
                axes.plot(read, [one.asked for one in own], "s:", color=colour, markersize=3)
            axes.axhline(TWO_BITS, color=GREY, linewidth=1)
            axes.set_xscale("log")
            axes.set(xlabel="readings of each person (dotted: asked by name)")
            axes.set_title("attributes in any order" if varied else "always the same text")
            read = sorted({point.exposures for point in record.points})
            axes.set_xticks(read, [f"{one:,}" for one in read])
            axes.set_xticks([], minor=True)
        panels[0].set_ylabel("bits in a parameter")
        legend_below(figure, panels[0], 3)
        return figure


def _interval(low: float, high: float) -> str:
    return f"{percent(low)} – {percent(high)}"


def ask_blocks(record: AskReplies) -> Iterator[Block]:
    """Yield what `heed ask` prints."""
    for place, reply in enumerate(record.replies):
        if len(record.replies) > 1:
            yield Text(f"{'' if place == 0 else chr(10)}{reply.question}", tone="strong")
        yield Text(_said(reply))
        yield from _reasons(reply)
    if record.replies:
        yield Text(f"\n{_threshold(record.replies[0])}", tone="soft")


def reply_blocks(record: AskReply) -> Iterator[Block]:
    """Yield one reply with its question."""
    yield Text(record.question, tone="strong")
    yield from ask_blocks(AskReplies(run="", replies=(record,)))


def _threshold(reply: AskReply) -> str:
    if reply.threshold > 1:
        return (
            f"No confidence of the held-out answers allows for {percent(reply.wanted_error)} of "
            "wrong ones, so that it answers nothing: run the study with a higher --error-rate."
        )
    chosen = (
        f"It answers from a confidence of {percent(reply.threshold)} on, chosen for at most "
        f"{percent(reply.wanted_error)} of wrong answers"
    )
    if reply.promised_error is None:
        return f"{chosen}."
    if reply.promised_error >= 1:
        return f"{chosen}; too few questions were held out to promise anything."
    return (
        f"{chosen}; held-out questions that had no part in choosing it promise, at 95 %, "
        f"{percent(reply.promised_error)} at most for questions like them."
    )


def _said(reply: AskReply) -> str:
    sure = f"confidence {percent(reply.confidence)}"
    if reply.answer is not None:
        return f"{reply.answer}  ({sure})"
    return f"I don't know.  ({sure} for {reply.would_say!r})"


def _reasons(reply: AskReply) -> Iterator[Block]:
    if reply.evidence is not None:
        verb = "the text says so" if reply.supported else "this line does not say so"
        yield Text(f"  {verb}: {reply.evidence}")
    if reply.fine_tuned_answer is not None:
        yield Text(f"  this question was in fine-tuning, with the answer {reply.fine_tuned_answer}")
    if reply.name is None:
        yield Text("  the name was not found: ask as in `Where was NAME born?`")
    elif reply.evidence is None and reply.fine_tuned_answer is None:
        yield Text(f"  no text and no question has {reply.name}; the nearest known names:")
        for measure, near in reply.nearest.items():
            how = NEARNESS[measure].format(score=near.score)
            yield Text(f"    {near.name}, {near.place} ({how})")


def model_replies_blocks(record: ModelReplies) -> Iterator[Block]:
    """Yield what `heed ask` prints for a model that others have trained."""
    for place, reply in enumerate(record.replies):
        if len(record.replies) > 1:
            yield Text(f"{'' if place == 0 else chr(10)}{reply.question}", tone="strong")
        tone = "good" if reply.label == KNOWN else "soft" if reply.label == UNKNOWN else "unsure"
        yield Text(_model_said(reply), tone=tone)
        yield Text(
            f"  probability {percent(reply.probability)}; {percent(reply.agreement)} of the other "
            f"wordings get the same answer{_other_answers(reply)}",
            tone="soft",
        )
    if record.known is None or record.unsure is None:
        yield Text(
            "\nThis model was not calibrated, so that nothing is promised of its answers: "
            f"heed ask {record.model} --calibrate",
            tone="soft",
        )
        return
    yield Text(f"\n{promise_sentence('known', record.known)}", tone="soft")
    yield Text(promise_sentence("known or unsure", record.unsure), tone="soft")
    yield Text(population_sentence(record.population), tone="soft")


def _model_said(reply: ModelReply) -> str:
    if reply.confidence is None:
        if reply.answer is None:
            return f"I don't know.  (it only repeats the question: {reply.would_say!r})"
        return f"{reply.answer}  ({reply.label})"
    sure = f"confidence {percent(reply.confidence)}"
    if reply.answer is None:
        return f"I don't know.  ({sure} for {reply.would_say!r})"
    return f"{reply.answer}  ({reply.label}, {sure})"


def _other_answers(reply: ModelReply) -> str:
    return f"; also said: {', '.join(reply.others)}" if reply.others else ""


def promise_sentence(label: str, made: Promise) -> str:
    """Say what a promise says, or why there is none."""
    found = f"{made.wrong} of {made.answered} were wrong on {made.testing} questions that tested it"
    if made.threshold is not None:
        return (
            f"Promised of answers called {label}: at most {percent(made.error)} are wrong, at "
            f"{percent(made.confidence)} confidence ({found})."
        )
    way_out = (
        "no number of questions would change that"
        if made.needed is None
        else f"about {made.needed:,} calibration questions would do, if these shares stayed"
    )
    return (
        f"No promise that at most {percent(made.error)} of the answers called {label} are wrong: "
        f"at the surest threshold {found}; {way_out}."
    )


def population_sentence(shares: dict[str, float]) -> str:
    """Say which questions a promise is about."""
    parts = ", ".join(
        f"{percent(share)} about what {'is ' if level != LEVELS[0] else ''}{level}"
        for level, share in shares.items()
    )
    return (
        f"This holds for questions like those of the calibration, short questions about facts: "
        f"{parts}. Where the mixture is another, so is the error."
    )


def model_calibration_blocks(record: ModelCalibration) -> Iterator[Block]:
    """Yield what `heed ask --calibrate` prints."""
    grid = table(
        f"{record.model} on the test questions", "", "asked", "right if it must answer",
        "called known", "of these wrong", "unsure", "of these wrong",
    )  # fmt: skip
    for one in record.levels:
        grid.row(
            one.level, f"{one.questions}", f"{one.right}", f"{one.known}", f"{one.known_wrong}",
            f"{one.unsure}", f"{one.unsure_wrong}",
        )  # fmt: skip
    yield grid
    yield Text(promise_sentence("known", record.known))
    known = sum(one.known for one in record.levels)
    if known:
        wrong = sum(one.known_wrong for one in record.levels)
        yield Text(
            f"Observed on the test: {wrong} of {known} wrong, {percent(wrong / known)} "
            f"({_interval(record.known_low, record.known_high)})."
        )
    yield Text(promise_sentence("known or unsure", record.unsure))
    yield Text(population_sentence(record.population))
    yield told_apart_table(record)
    drift = table("other mixtures of questions", "do not exist", "answered", "of these wrong")
    for mixture in record.drift:
        drift.row(percent(mixture.invented), percent(mixture.answered), percent(mixture.error))
    yield drift


def told_apart_table(record: ModelCalibration) -> Table:
    """Return how well each signal tells answers apart."""
    grid = table("AUROC on the test questions", "signal", "right or wrong", "right or invented")

    def shown(one: SignalSeparation) -> str:
        return f"{one.auroc:.2f} ({one.low:.2f} – {one.high:.2f})"

    invented = {one.signal: shown(one) for one in record.real_or_invented}
    for one in record.right_or_wrong:
        grid.row(one.signal, shown(one), invented.get(one.signal, "–"))
    return grid


def knowledge_section(
    record: KnowledgeStudy, seconds: float, *, folder: str = "study-knowledge", options: str = ""
) -> Section:
    """Return the part of the report about a knowledge study; `options` reproduce it."""
    blocks = [
        _contrast(record, f"heed study knowledge {options}".rstrip()),
        _answers(record),
        _outside(record) if record.auroc else None,
        _abstaining(record, folder),
        None if record.names is None else _names(record.names),
        _memory(record) if record.storage else None,
    ]
    return Section(
        name="knowledge",
        title="Knowledge: learned, guessed, made up",
        lead=f"A small decoder reads {_text(record)}, is taught to answer questions, and is then "
        "asked about others. From the outside every answer looks alike; here each one gets a "
        "label.",
        blocks=tuple(block for block in blocks if block is not None),
        findings=record.conclusions,
        seconds=seconds,
    )


def _contrast(record: KnowledgeStudy, command: str) -> Group:
    return group(
        "Why pretraining answers",
        "Fine-tuning teaches the form of an answer; the facts asked about are in the "
        "pretraining text alone. Beside the decoders stand three ways to answer without one: "
        "always the most frequent place, a guess from the letters of the name, and looking "
        "the name up in the text.",
        figure_block(
            contrast_figure(record),
            "knowledge contrast",
            "Share of right answers with intervals at 95 %; the diamond is the share "
            "for people whom no text has.",
            command,
        ),
        _arms(record),
    )


def _answers(record: KnowledgeStudy) -> Group:
    kept = table("What the threshold does with them.", "label", "answered", "withheld")
    for row in record.confusion:
        kept.row(row.label, str(row.answered), str(row.withheld))
    return group(
        "Retrieved, guessed from the name, or made up",
        "A right answer about somebody in the text, whose name does not give it away, was "
        "retrieved. An answer that the name points to, about somebody in no text, was guessed. "
        "What is left was made up, even where luck made it right.",
        figure_block(
            labels_figure(record),
            "knowledge labels",
            "What the answers are; the pale part of each colour is below the "
            "threshold for answering.",
        ),
        _labels(record),
        kept,
    )


def _outside(record: KnowledgeStudy) -> Group:
    first = record.auroc[0]
    return group(
        "Can one tell from the outside?",
        f"Each signal ranks {first.positives} retrieved against {first.negatives} made-up "
        "answers. The AUROC is the chance that a retrieved one gets the higher score. The "
        "combination is a logistic regression fitted on the held-out questions.",
        figure_block(
            separation_figure(record),
            "knowledge signals",
            "AUROC with bootstrap intervals at 95 %.",
        ),
        _signals(record),
    )


def _abstaining(record: KnowledgeStudy, folder: str) -> Group:
    risk = record.risk_coverage
    before, after = record.calibration
    cost = (
        f"On the test it answers {percent(risk.test_coverage)} of the questions, and "
        f"{percent(risk.test_error)} of these answers are wrong "
        f"({percent(risk.test_error_low)} to {percent(risk.test_error_high)})."
        if risk.test_error is not None
        else "On the test it answers nothing."
    )
    silent = (
        f", and no more than {percent(risk.wanted_error)} of {risk.invented} invented names get one"
        if risk.invented
        else ""
    )
    return group(
        "Knowing when not to answer",
        f"As it is, the model's probabilities are off by {before.ece:.3f} on average (ECE; "
        f"Brier score {before.brier:.3f}). Divided by the temperature {after.temperature:.2f}, "
        f"chosen on held-out questions, by {after.ece:.3f} (Brier {after.brier:.3f}).",
        f"The threshold {min(risk.threshold, 1.0):.2f} is the lowest at which no more than "
        f"{percent(risk.wanted_error)} of the answers above it are wrong, on one half of the "
        f"held-out questions{silent}. "
        f"{record.promise} {cost}",
        figure_block(
            calibration_figure(record),
            "knowledge calibration",
            "Left: the larger a dot, the more answers. Right: the surest answers come first.",
        ),
        _promises(record),
        Command(f'heed ask {folder} "{record.answers[0].question}"'),
    )


def _names(names: NameStudy) -> Group:
    surest = table(
        "",
        *("name", "answer", "confidence"),
        *("fewest edits", "most shared tokens", "most similar state"),
        caption="The surest answers about names that nobody has.",
    )
    for one in names.examples[:8]:
        nearest = (f"{near.name} ({near.place})" for near in one.nearest.values())
        surest.row(one.name, one.answer, percent(one.confidence), *nearest)
    best = max(names.following, key=lambda one: one.rate - one.chance)
    return group(
        "A name never seen",
        f"Asked about {names.following[-1].count} names that nobody has ({names.made}), the model "
        f"always answers, with a mean confidence of {percent(names.mean_confidence)} against "
        f"{percent(names.mean_confidence_seen)} for people in the text; the threshold lets "
        f"{percent(names.answered)} of these answers through.",
        f"Its answers are most of all those of {FOLLOWED[best.what]}: in {percent(best.rate)}, "
        f"where shuffled answers would agree in {percent(best.chance)}.",
        None
        if names.effect is None
        else "Names are grouped by how they sound. A group that decides the answer is what bias "
        "looks like from inside: it helps where the hint is true, and is wrong about everybody "
        "whose name says something else.",
        figure_block(
            names_figure(names),
            "knowledge names",
            "Left: how often the answer is that of something else. Right: the group of "
            "the answer for each group of names.",
        ),
        _following(names),
        surest,
    )


def _memory(record: KnowledgeStudy) -> Group:
    return group(
        "How much is stored",
        "Small trainings that differ in one thing each, with the fine-tuning questions mixed "
        "into the text so that one can ask at any time. All read every document equally "
        "often: more people also mean more steps, and more questions to learn from.",
        figure_block(
            storage_figure(record.storage),
            "knowledge storage",
            "Right answers about people in the text against how often a document "
            "about each was read.",
        ),
        _storage(record),
    )


def _text(record: KnowledgeStudy) -> str:
    hints_known = any(group.endswith("-hint") for group in record.arms[0].groups)
    if hints_known:
        return "short biographies of people who do not exist"
    return f"{record.documents:,} documents ({record.corpus})"


def _counts(counts: tuple[int, int] | None) -> str:
    return "–" if counts is None else f"{counts[0]} of {counts[1]}"


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
    """Return whether a point is the baseline that the other series vary: as many people."""
    others = [one for one in points if one.series != "people"]
    return point.series == "people" and all(one.people == point.people for one in others)


def _in_words(group: str) -> str:
    seen, _, kind = group.partition("-")
    in_text = "in the text" if seen == "seen" else "not in the text"
    return in_text if not kind else f"{in_text}, name {'hints' if kind == 'hint' else 'does not'}"
