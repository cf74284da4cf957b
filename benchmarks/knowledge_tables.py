"""The tables of docs/knowledge_results.md and docs/capacity.md, made from the stored figures.

A table stands in the page between `<!-- table NAME -->` and `<!-- end NAME -->`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from heedful.studies.conclusions import sentences
from heedful.studies.knowledge.findings import CapacityPoint, CapacityStudy

BASELINES = {
    "name only": "name only: naive Bayes over its letters",
    "retrieval": "looking it up in the text: the first known place after *born*",
}


def write_tables(page: Path, tables: dict[str, list[str]]) -> None:
    """Put every table into the page; one that the page has no room for is an error."""
    text = page.read_text(encoding="utf-8")
    for name, lines in tables.items():
        made = "\n".join(lines)
        pattern = rf"(<!-- table {name} -->\n).*?(<!-- end {name} -->)"
        text, count = re.subn(
            pattern, lambda found, made=made: f"{found[1]}\n{made}\n\n{found[2]}", text, flags=re.S
        )
        if count != 1:
            raise SystemExit(f"{page} has {count} places for the table {name}")
    page.write_text(text, encoding="utf-8")


def tables(result: dict[str, Any]) -> dict[str, list[str]]:
    """Return the lines of every table by its name."""
    return {
        "headline": list(_headline(result["studies"])),
        "arms": list(_arms(result["studies"])),
        "curve": list(_curves(result["studies"])),
        "course": list(_course(result["course"])),
        "times": list(_times(result["times"])),
        "abstention": list(_abstention(result["studies"])),
    }


SHOWN = {
    "cues": "rules for what a name, a date and a place is, no test question",
    "drop": "no rule about language, no test question",
    "ours": "what a reader wrote is stored: nearly all test questions are in its text",
}


def _headline(studies: list[dict[str, Any]]) -> Iterator[str]:
    """Say what each recipe reaches with rotary positions, where most seeds were trained."""
    for recipe, what in SHOWN.items():
        arms = [
            (len(arm["seeds"]), study, arm)
            for study in studies
            for arm in study["arms"]
            if study["recipe"] == recipe and "rotary" in arm["arm"]
        ]
        if not arms:
            continue
        seeds, study, arm = max(arms, key=lambda one: one[0])
        found = f"{_percent(arm['accuracy'])} % ({_percent(arm['low'])} to {_percent(arm['high'])})"
        minutes = arm["curve"][-1]["processor_minutes"]
        yield (
            f"- `{recipe}` ({what}): {found}, {seeds} seed{'s' if seeds > 1 else ''}, "
            f"{minutes:.1f} processor minutes of pretraining in {study['settings']['precision']}"
        )


def capacity_tables(study: CapacityStudy) -> dict[str, list[str]]:
    """Return the table of a study of capacity, and what it concludes."""
    exposures = sorted({point.exposures for point in study.points})
    lines = [
        "| parameters | people | text | "
        + " | ".join(f"{one:,} readings" for one in exposures)
        + " |",
        "|---|---|---|" + "---|" * len(exposures),
    ]
    rows: dict[tuple[int, bool], dict[int, CapacityPoint]] = {}
    for point in study.points:
        rows.setdefault((point.parameters, point.varied), {})[point.exposures] = point
    for (parameters, varied), found in sorted(rows.items()):
        people = next(iter(found.values())).people
        text = "varied" if varied else "the same"
        cells = " | ".join(_bits(found.get(one)) for one in exposures)
        lines.append(f"| {parameters:,} | {people:,} | {text} | {cells} |")
    said = [f"- {line}" for line in sentences(study.conclusions)]
    missing = [f"- {line}" for line in study.left_out]
    return {"bits": lines, "conclusions": said, "left out": missing}


def _bits(point: CapacityPoint | None) -> str:
    if point is None:
        return ""
    return f"{point.stored:.2f} ({point.low:.2f} to {point.high:.2f}); asked {point.asked:.2f}"


def _arms(studies: list[dict[str, Any]]) -> Iterator[str]:
    yield (
        "| arm | right, % | 95 % | each seed, % | test questions in its text | held out, % | "
        "parameters, millions | processor minutes |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    baselines: dict[str, str] = {}
    for study in studies:
        for arm in study["arms"]:
            interval = f"{_percent(arm['low'])} to {_percent(arm['high'])}"
            right = _percent(arm["accuracy"])
            if arm["kind"] == "baseline":
                name = BASELINES.get(arm["arm"]) or _always(arm["arm"])
                baselines[name] = f"| {name} | {right} | {interval} | | | | | |"
                continue
            minutes = f"{arm['curve'][-1]['processor_minutes']:.1f}" if arm["curve"] else ""
            seeds = ", ".join(_percent(value) for value in arm["seeds"].values())
            name = f"{_title(study)}, {_named(arm)}"
            trained = arm["arm"] != "no pretraining"
            seen = study["test questions in its text"] if trained else 0
            yield (
                f"| {name} | {right} | {interval} | {seeds} | {seen} | "
                f"{_percent(arm['held_out_accuracy'])} | {arm['parameters'] / 1e6:.2f} | "
                f"{minutes} |"
            )
    yield from baselines.values()


def _curves(studies: list[dict[str, Any]]) -> Iterator[str]:
    yield "| recipe | processor minutes: right, % |"
    yield "|---|---|"
    for study in studies:
        for arm in study["arms"]:
            if arm["curve"]:
                points = "; ".join(
                    f"{point['processor_minutes']:.2f}: {_percent(point['accuracy'])}"
                    for point in arm["curve"]
                )
                yield f"| {_title(study)}, {_named(arm)} | {points} |"


def _course(course: dict[str, Any]) -> Iterator[str]:
    yield "| the course's recipe | |"
    yield "|---|---|"
    yield f"| parameters | {course['parameters']:,} |"
    yield f"| all of it | {course['steps']:,} steps, {course['positions']:,} positions |"
    share = course["steps trained"] / course["steps"]
    minutes = course["processor minutes trained"]
    yield f"| trained | {course['steps trained']} steps, {minutes:.1f} processor minutes |"
    yield f"| share of its steps | {_percent(share)} % |"
    losses = "; ".join(f"{one['step']}: {one['loss']:.2f}" for one in course["curve"])
    yield f"| steps: loss of a character | {losses} |"
    for name, key in (
        ("`birth_dev`, then fine-tuned", "accuracy then"),
        ("held-out questions", "held-out accuracy then"),
        ("training questions", "training accuracy then"),
    ):
        found = course.get(key)
        if found is None:
            continue
        yield (
            f"| {name}: right | {_percent(found['accuracy'])} % "
            f"({_percent(found['low'])} to {_percent(found['high'])}) |"
        )
    for name, seconds in course["processor seconds a step"].items():
        whole = course["processor minutes for all"][name]
        yield f"| {name} | {seconds:.2f} processor seconds a step, {whole:,.0f} minutes for all |"


def _times(times: list[dict[str, Any]]) -> Iterator[str]:
    yield "| accuracy | recipe | processor minutes | the course's recipe takes longer by at least |"
    yield "|---|---|---|---|"
    for row in times:
        taken, least = row["processor minutes"], row["at least"]
        cells = (
            f"{_percent(row['accuracy'], 0)} %",
            f"`{row['recipe']}`, {row['precision']}, {row['positions']}",
            "not reached" if taken is None else f"{taken:.2f}",
            "" if least is None else f"{least:.0f} ×",
        )
        yield f"| {' | '.join(cells)} |"


def _abstention(studies: list[dict[str, Any]]) -> Iterator[str]:
    yield (
        "| recipe | wrong, answering all, % | wanted, % | threshold | answered of `birth_dev`, % | "
        "wrong of these, % | invented names answered, % |"
    )
    yield "|---|---|---|---|---|---|---|"
    for study in studies:
        found = study["abstention"]
        wrong = "–"
        if found["test_error"] is not None:
            low, high = _percent(found["test_error_low"]), _percent(found["test_error_high"])
            wrong = f"{_percent(found['test_error'])} ({low} to {high})"
        threshold = "none" if found["threshold"] > 1 else f"{found['threshold']:.3f}"
        cells = (
            _title(study),
            _percent(found["error_without"]),
            _percent(found["wanted_error"], 0),
            threshold,
            _percent(found["test_coverage"]),
            wrong,
            _percent(study["invented names answered"]),
        )
        yield f"| {' | '.join(cells)} |"


def _title(study: dict[str, Any]) -> str:
    return f"`{study['recipe']}`, {study['settings']['precision']}"


def _always(name: str) -> str:
    return name.replace("most frequent (", "always ").rstrip(")")


def _named(arm: dict[str, Any]) -> str:
    if arm["arm"] == "no pretraining":
        return "no pretraining"
    return "rotary positions" if "rotary" in arm["arm"] else "learned positions"


def _percent(share: float | None, digits: int = 1) -> str:
    return "" if share is None else f"{100 * share:.{digits}f}"
