"""The knowledge part of the report: what a model learned, and what it makes up."""

from __future__ import annotations

from heedful.studies.knowledge.findings import KnowledgeStudy
from heedful.views.drawing import inline_svg
from heedful.views.knowledge_figures import (
    calibration_figure,
    contrast_figure,
    labels_figure,
    names_figure,
    separation_figure,
    storage_figure,
)
from heedful.views.knowledge_views import FOLLOWED, findings, percent, promise
from heedful.views.page import Block, Figure, Section, Table

COMMAND = "heed study knowledge"


def knowledge_section(
    record: KnowledgeStudy, seconds: float, *, folder: str = "study-knowledge", options: str = ""
) -> Section:
    """Tell a knowledge study that lies in a folder and was run with some options."""
    blocks = [
        _contrast(record, f"{COMMAND} {options}".rstrip()),
        _labels(record),
        _signals(record),
        _calibration(record, folder),
        _names(record),
        _storage(record),
    ]
    return Section(
        name="knowledge",
        title="Knowledge: learned, guessed, made up",
        lead=f"A small decoder reads {_text(record)}, is taught to answer questions, and is then "
        "asked about others. From the outside every answer looks alike; here each one gets a "
        "label.",
        blocks=tuple(block for block in blocks if block is not None),
        findings=findings(record),
        seconds=seconds,
    )


def _contrast(record: KnowledgeStudy, command: str) -> Block:
    groups = list(record.arms[0].groups)
    rows = tuple(
        (
            arm.arm,
            percent(arm.accuracy),
            f"{percent(arm.low)} to {percent(arm.high)}",
            *(_counts(arm.groups.get(group)) for group in groups),
            f"{arm.minutes:.2f}" if arm.kind == "trained" else "–",
        )
        for arm in record.arms
    )
    return Block(
        heading="Why pretraining answers",
        paragraphs=(
            "Fine-tuning teaches the form of an answer; the facts asked about are in the "
            "pretraining text alone. Beside the decoders stand three ways to answer without one: "
            "always the most frequent place, a guess from the letters of the name, and looking "
            "the name up in the text.",
        ),
        figures=(
            Figure(
                svg=inline_svg(contrast_figure(record), "knowledge contrast"),
                caption="Share of right answers with intervals at 95 %; the diamond is the share "
                "for people whom no text has.",
                command=command,
            ),
        ),
        tables=(
            Table(
                columns=("arm", "in the text", "95 %", *groups, "minutes"),
                rows=rows,
                caption="Right answers of each arm, by whether the text has the person and "
                "whether the name hints at a place.",
            ),
        ),
    )


def _labels(record: KnowledgeStudy) -> Block:
    rows = tuple(
        (row.group, "right" if row.right else "wrong", row.label, str(row.confident),
         str(row.unsure))
        for row in record.labels
    )  # fmt: skip
    kept = tuple((row.label, str(row.answered), str(row.withheld)) for row in record.confusion)
    return Block(
        heading="Retrieved, guessed from the name, or made up",
        paragraphs=(
            "A right answer about somebody in the text, whose name does not give it away, was "
            "retrieved. An answer that the name points to, about somebody in no text, was guessed. "
            "What is left was made up, even where luck made it right.",
        ),
        figures=(
            Figure(
                svg=inline_svg(labels_figure(record), "knowledge labels"),
                caption="What the answers are; the pale part of each colour is below the "
                "threshold for answering.",
            ),
        ),
        tables=(
            Table(columns=("group", "answer", "label", "sure", "not sure"), rows=rows,
                  caption="Every answer to the test, counted."),
            Table(columns=("label", "answered", "withheld"), rows=kept,
                  caption="What the threshold does with them."),
        ),
    )  # fmt: skip


def _signals(record: KnowledgeStudy) -> Block | None:
    if not record.auroc:
        return None
    rows = tuple(
        (one.signal, f"{one.auroc:.3f}", f"{one.low:.3f} to {one.high:.3f}") for one in record.auroc
    )
    first = record.auroc[0]
    return Block(
        heading="Can one tell from the outside?",
        paragraphs=(
            f"Each signal ranks {first.positives} retrieved against {first.negatives} made-up "
            "answers. The AUROC is the chance that a retrieved one gets the higher score. The "
            "combination is a logistic regression fitted on the held-out questions.",
        ),
        figures=(
            Figure(
                svg=inline_svg(separation_figure(record), "knowledge signals"),
                caption="AUROC with bootstrap intervals at 95 %.",
            ),
        ),
        tables=(Table(columns=("signal", "AUROC", "95 %"), rows=rows),),
    )


def _calibration(record: KnowledgeStudy, folder: str) -> Block:
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
    return Block(
        heading="Knowing when not to answer",
        paragraphs=(
            f"As it is, the model's probabilities are off by {before.ece:.3f} on average (ECE; "
            f"Brier score {before.brier:.3f}). Divided by the temperature {after.temperature:.2f}, "
            f"chosen on held-out questions, by {after.ece:.3f} (Brier {after.brier:.3f}).",
            f"The threshold {min(risk.threshold, 1.0):.2f} is the lowest at which no more than "
            f"{percent(risk.wanted_error)} of the held-out answers above it are wrong{silent}. "
            f"{promise(record)} {cost}",
        ),
        figures=(
            Figure(
                svg=inline_svg(calibration_figure(record), "knowledge calibration"),
                caption="Left: the larger a dot, the more answers. Right: the surest answers come "
                "first.",
            ),
        ),
        command=f'heed ask {folder} "{record.answers[0].question}"',
    )


def _names(record: KnowledgeStudy) -> Block | None:
    names = record.names
    if names is None:
        return None
    rows = tuple(
        (
            one.name,
            one.answer,
            percent(one.confidence),
            *(f"{one.nearest[way].name} ({one.nearest[way].place})" for way in one.nearest),
        )
        for one in names.examples[:8]
    )
    best = max(names.following, key=lambda one: one.rate - one.chance)
    text = [
        f"Asked about {names.following[-1].count} names that nobody has ({names.made}), the model "
        f"always answers, with a mean confidence of {percent(names.mean_confidence)} against "
        f"{percent(names.mean_confidence_seen)} for people in the text; the threshold lets "
        f"{percent(names.answered)} of these answers through.",
        f"Its answers are most of all those of {FOLLOWED[best.what]}: in {percent(best.rate)}, "
        f"where shuffled answers would agree in {percent(best.chance)}.",
    ]
    if names.effect is not None:
        text.append(
            "Names are grouped by how they sound. A group that decides the answer is what bias "
            "looks like from inside: it helps where the hint is true, and is wrong about everybody "
            "whose name says something else."
        )
    return Block(
        heading="A name never seen",
        paragraphs=tuple(text),
        figures=(
            Figure(
                svg=inline_svg(names_figure(names), "knowledge names"),
                caption="Left: how often the answer is that of something else. Right: the group of "
                "the answer for each group of names.",
            ),
        ),
        tables=(
            Table(
                columns=("name", "answer", "confidence", "fewest edits", "most shared tokens",
                         "most similar state"),
                rows=rows,
                caption="The surest answers about names that nobody has.",
            ),
        ),
    )  # fmt: skip


def _storage(record: KnowledgeStudy) -> Block | None:
    if not record.storage:
        return None
    rows = tuple(
        (
            point.label,
            f"{point.people:,}",
            f"{point.parameters:,}",
            f"{point.exposures[-1]:.0f}",
            percent(point.accuracy[-1]),
            f"{percent(point.low[-1])} to {percent(point.high[-1])}",
        )
        for point in record.storage
    )
    return Block(
        heading="How much is stored",
        paragraphs=(
            "Small trainings that differ in one thing each, with the fine-tuning questions mixed "
            "into the text so that one can ask at any time. All read every document equally "
            "often: more people also mean more steps, and more questions to learn from.",
        ),
        figures=(
            Figure(
                svg=inline_svg(storage_figure(record.storage), "knowledge storage"),
                caption="Right answers about people in the text against how often a document "
                "about each was read.",
            ),
        ),
        tables=(
            Table(
                columns=("", "people in the text", "parameters", "exposures", "right", "95 %"),
                rows=rows,
            ),
        ),
    )


def _text(record: KnowledgeStudy) -> str:
    hints_known = any(group.endswith("-hint") for group in record.arms[0].groups)
    if hints_known:
        return "short biographies of people who do not exist"
    return f"{record.documents:,} documents ({record.corpus})"


def _counts(counts: tuple[int, int] | None) -> str:
    return "–" if counts is None else f"{counts[0]} of {counts[1]}"
