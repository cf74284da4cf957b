"""How a knowledge study and the replies of its model are shown in the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from heedful.studies.knowledge.findings import Arm, AskReplies, AskReply, Following, KnowledgeStudy
from heedful.views.terminal import bullets, number, paragraph, table

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


def knowledge_tables(record: KnowledgeStudy) -> Iterator[RenderableType]:
    """Yield what `heed study knowledge` prints."""
    questions = record.questions
    yield paragraph(
        f"{record.corpus}: {record.documents:,} documents, {questions['training']:,} questions "
        f"for fine-tuning, {questions['held out']:,} held out, {questions['test']:,} asked."
    )
    yield _arms(record)
    yield _labels(record)
    yield _separations(record)
    yield _calibration(record)
    if record.names is not None:
        yield _names(record)
    if record.storage:
        yield _storage(record)
    yield bullets(findings(record))
    notes = list(record.notes)
    if record.quick:
        notes.append("--quick only tries the machinery; its figures say nothing")
    if notes:
        yield paragraph("Notes:")
        yield bullets(notes)
    yield paragraph(f"{record.minutes:.1f} minutes; the model for `heed ask` is {record.run}")


def findings(record: KnowledgeStudy) -> tuple[str, ...]:
    """Return what was found, one sentence each."""
    main = arm_named(record, record.main_arm)
    without = arm_named(record, "no pretraining")
    made = []
    if main is not None and without is not None:
        made.append(
            f"Without pretraining {percent(without.accuracy)} of the answers are right, with it "
            f"{percent(main.accuracy)} ({percent(main.low)} to {percent(main.high)}), on "
            f"{main.questions} questions whose answers only the pretraining text gives."
        )
        guesser = arm_named(record, "name only")
        if main.unseen_accuracy is not None and guesser is not None:
            beside = guesser.unseen_accuracy or 0.0
            made.append(
                f"About people whom it never saw it is right in {percent(main.unseen_accuracy)}; "
                f"a guesser that knows only letters of names reaches {percent(beside)}."
            )
    if record.auroc:
        best = max(record.auroc, key=lambda one: one.auroc)
        made.append(
            f"The signal that tells retrieved from made-up answers best is {best.signal}: AUROC "
            f"{best.auroc:.2f} ({best.low:.2f} to {best.high:.2f})."
        )
    risk = record.risk_coverage
    if risk.test_error is not None:
        made.append(
            f"Answering everything, {percent(risk.error_without)} is wrong; answering only above "
            f"a threshold chosen for {percent(risk.wanted_error)}, {percent(risk.test_error)} of "
            f"what is answered ({percent(risk.test_coverage)} of the questions). {promise(record)}"
        )
    else:
        made.append(
            f"No confidence is high enough for {percent(risk.wanted_error)} of wrong answers: with "
            f"this threshold it answers none of the questions of the test."
        )
    names = record.names
    if names is not None and names.effect is not None:
        made.append(
            f"Answers about names never seen follow the group of the name: Cramér's V "
            f"{names.effect.cramers_v:.2f} ({names.effect.low:.2f} to {names.effect.high:.2f}), "
            f"where chance reaches {names.effect.by_chance:.2f}."
        )
    return tuple(made)


def promise(record: KnowledgeStudy) -> str:
    """Say what the threshold promises of questions that nobody has asked yet."""
    risk = record.risk_coverage
    kept = round(risk.held_out_coverage * record.questions["held out"])
    return (
        f"{kept} answered questions of the {record.questions['held out']} held out promise, at "
        f"95 %, no more than {percent(risk.promised_error)}."
    )


def arm_named(record: KnowledgeStudy, name: str) -> Arm | None:
    """Return the arm of that name."""
    return next((arm for arm in record.arms if arm.arm == name), None)


def percent(share: float | None) -> str:
    """Write a share as people say it.

    >>> percent(0.934), percent(0.004), percent(None)
    ('93 %', '0.4 %', '–')
    """
    if share is None:
        return "–"
    return f"{100 * share:.1f} %" if 0 < share < 0.0995 else f"{100 * share:.0f} %"


def _arms(record: KnowledgeStudy) -> RenderableType:
    groups = list(record.arms[0].groups) if record.arms else []
    made = table(
        "Right answers", "arm", "in the text", "95 %", *(group for group in groups), "minutes"
    )
    for arm in record.arms:
        made.add_row(
            arm.arm,
            percent(arm.accuracy),
            f"{percent(arm.low)} – {percent(arm.high)}",
            *(percent(_share(arm.groups.get(group))) for group in groups),
            f"{arm.minutes:.2f}" if arm.kind == "trained" else "–",
        )
    return made


def _labels(record: KnowledgeStudy) -> RenderableType:
    made = table(
        f"What the answers of {record.main_arm!r} are",
        "person, name", "answer", "label", "sure", "not sure", left=(0, 1, 2),
    )  # fmt: skip
    for row in record.labels:
        made.add_row(row.group, "right" if row.right else "wrong", row.label,
                     str(row.confident), str(row.unsure))  # fmt: skip
    return made


def _separations(record: KnowledgeStudy) -> RenderableType:
    if not record.auroc:
        return paragraph("There were too few retrieved or made-up answers to tell them apart.")
    first = record.auroc[0]
    made = table(
        f"Telling {first.positives} retrieved from {first.negatives} made-up answers",
        "signal", "AUROC", "95 %",
    )  # fmt: skip
    for one in record.auroc:
        made.add_row(one.signal, f"{one.auroc:.3f}", f"{one.low:.3f} – {one.high:.3f}")
    return made


def _calibration(record: KnowledgeStudy) -> RenderableType:
    made = table("Confidence", "", "temperature", "ECE", "Brier")
    for name, one in zip(("as it is", "scaled"), record.calibration, strict=True):
        made.add_row(name, number(one.temperature, 3), f"{one.ece:.3f}", f"{one.brier:.3f}")
    return made


def _names(record: KnowledgeStudy) -> RenderableType:
    assert record.names is not None
    names = max(one.count for one in record.names.following)
    made = table(
        f"{names} names never seen: the answer is", "", "share", "95 %", "by chance",
    )  # fmt: skip
    for one in record.names.following:
        some = "" if one.count == names else f" ({one.count} names)"
        made.add_row(FOLLOWED[one.what] + some, *_following(one))
    return made


def _following(one: Following) -> tuple[str, str, str]:
    return percent(one.rate), f"{percent(one.low)} – {percent(one.high)}", percent(one.chance)


def _storage(record: KnowledgeStudy) -> RenderableType:
    made = table("How much is stored", "", "seen people", "parameters", "exposures", "right")
    for point in record.storage:
        made.add_row(
            point.label,
            f"{point.people:,}",
            f"{point.parameters:,}",
            number(point.exposures[-1] if point.exposures else None, 3),
            percent(point.accuracy[-1] if point.accuracy else None),
        )
    return made


def ask_tables(record: AskReplies) -> Iterator[RenderableType]:
    """Yield what `heed ask` prints."""
    for place, reply in enumerate(record.replies):
        if len(record.replies) > 1:
            yield Text(f"{'' if place == 0 else chr(10)}{reply.question}", style="bold")
        yield Text(_said(reply))
        yield from (Text(line) for line in _reasons(reply))
    if record.replies:
        yield Text(f"\n{_threshold(record.replies[0])}", style="dim")


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
    return f"{chosen}; what was held out promises {percent(reply.promised_error)} at most."


def _said(reply: AskReply) -> str:
    sure = f"confidence {percent(reply.confidence)}"
    if reply.answer is not None:
        return f"{reply.answer}  ({sure})"
    return f"I don't know.  ({sure} for {reply.would_say!r})"


def _reasons(reply: AskReply) -> Iterator[str]:
    if reply.evidence is not None:
        verb = "the text says so" if reply.supported else "the text does not say so"
        yield f"  {verb}: {reply.evidence}"
    if reply.fine_tuned_answer is not None:
        yield f"  this question was in fine-tuning, with the answer {reply.fine_tuned_answer}"
    if reply.name is None:
        yield "  the name was not found: ask as in `Where was NAME born?`"
    elif reply.evidence is None and reply.fine_tuned_answer is None:
        yield f"  no text and no question has {reply.name}; the nearest known names:"
        for measure, near in reply.nearest.items():
            how = NEARNESS[measure].format(score=near.score)
            yield f"    {near.name}, {near.place} ({how})"


def _share(counts: tuple[int, int] | None) -> float | None:
    return None if counts is None or counts[1] == 0 else counts[0] / counts[1]
