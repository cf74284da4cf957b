"""How soon does a decoder know the birth places in the course's text, against the course's recipe?

    heed study knowledge --pretrain wiki.txt --train birth_places_train.tsv \\
        --dev birth_dev.tsv --recipe cues --output study-cues      (and the same with drop, ours)
    python benchmarks/course_recipe.py --data . --run course
    python benchmarks/bench_knowledge.py --course course --studies study-cues study-drop
    python benchmarks/bench_knowledge.py                           (writes the pages again)

Curves and tables come from the records of the studies. What is stored of other studies stays, each
with the machine that it was trained on. The course's recipe takes the better part of a day of one
core: a stretch of it is trained (`course_recipe.py`), and nothing is said of the rest. Minutes are
those in which a processor worked, all cores added up; those of two machines are never compared.

Stores benchmarks/results/knowledge.json, docs/_static/knowledge_curve.svg, and the tables of
docs/knowledge_results.md.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from knowledge_tables import SHOWN, tables, write_tables
from matplotlib.axes import Axes
from surroundings import surroundings

from heedful.views.drawing import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    house_style,
    legend_below,
    new_figure,
    save,
)

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "knowledge.json"
FIGURE = HERE.parent / "docs" / "_static" / "knowledge_curve.svg"
PAGE = HERE.parent / "docs" / "knowledge_results.md"
THRESHOLDS = (0.10, 0.25, 0.36, 0.50)
COLOURS = {"ours": BLUE, "cues": ORANGE, "drop": GREEN}
ARM = ("arm", "kind", "accuracy", "low", "high", "minutes", "pretraining_minutes", "parameters",
       "seeds", "questions", "held_out_accuracy", "curve")  # fmt: skip
ABSTENTION = ("wanted_error", "threshold", "held_out_coverage", "held_out_error", "promised_error",
              "invented", "test_coverage", "test_error", "test_error_low", "test_error_high",
              "error_without")  # fmt: skip


def study_of(folder: Path) -> dict[str, Any]:
    """Return what is kept of a study's record."""
    record = json.loads((folder / "knowledge.json").read_text(encoding="utf-8"))
    settings = record["recipe"]
    return {
        "recipe": "ours" if settings["self_questions"] else settings["spans"],
        "machine": surroundings("torch"),
        "test questions in its text": record["test_questions"],
        "settings": settings,
        "questions": record["questions"],
        "arms": [{name: arm[name] for name in ARM} for arm in record["arms"]],
        "abstention": {name: record["risk_coverage"][name] for name in ABSTENTION},
        "invented names answered": record["names"]["answered"],
        "ece": record["ece"],
        "auroc": record["auroc"],
        "labels": record["labels"],
    }


def time_to(curve: list[dict[str, float]], wanted: float) -> float | None:
    """Return the processor minutes at which a curve first reaches an accuracy."""
    before = (0.0, 0.0)
    for point in curve:
        here = (point["processor_minutes"], point["accuracy"])
        if here[1] >= wanted:
            share = (wanted - before[1]) / (here[1] - before[1])
            return before[0] + share * (here[0] - before[0])
        before = here
    return None


def ratios(studies: list[dict[str, Any]], course: dict[str, Any]) -> list[dict[str, Any]]:
    """Return how long each curve took to each accuracy, and how much longer the course's stretch.

    The course's recipe was below that accuracy after its stretch, so it takes longer still. Only
    where both were trained on one machine is anything said.
    """
    rows = []
    trained = course["processor minutes trained"]
    then = course["accuracy then"]["high"] if "accuracy then" in course else 1.0
    for study in studies:
        compared = study["machine"] == course["machine"]
        for arm in study["arms"]:
            positions = "rotary" if "rotary" in arm["arm"] else "learned"
            for wanted in THRESHOLDS if arm["curve"] else ():
                taken = time_to(arm["curve"], wanted)
                rows.append(
                    {
                        "recipe": study["recipe"],
                        "positions": positions,
                        "accuracy": wanted,
                        "processor minutes": taken,
                        "precision": study["settings"]["precision"],
                        "at least": (
                            trained / taken if compared and taken and then < wanted else None
                        ),
                    }
                )
    return rows


def draw(result: dict[str, Any]) -> None:
    """Draw accuracy against processor minutes, with the course's recipe beside."""
    course = result["course"]
    with house_style():
        figure = new_figure(7.2, 4.0)
        axes = figure.add_subplot()
        for study in result["studies"]:
            for arm in study["arms"]:
                if not arm["curve"]:
                    continue
                rotary = "rotary" in arm["arm"]
                axes.plot(
                    [point["processor_minutes"] for point in arm["curve"]],
                    [100 * point["accuracy"] for point in arm["curve"]],
                    color=COLOURS[study["recipe"]],
                    linestyle="-" if rotary else "--",
                    marker="o" if rotary else None,
                    markersize=3.5,
                    alpha=1.0 if study["settings"]["precision"] == "float32" else 0.45,
                    label=f"{study['recipe']}, {'rotary' if rotary else 'learned'}, "
                    f"{study['settings']['precision']}",
                )
        if "accuracy then" in course:
            _draw_stretch(axes, course)
        axes.set(xlim=(0, None), ylim=(-2, 100), ylabel="exact matches on birth_dev, %",
                 xlabel="processor minutes of pretraining")  # fmt: skip
        legend_below(figure, axes, 3)
        save(figure, FIGURE)


def _draw_stretch(axes: Axes, course: dict[str, Any]) -> None:
    then = course["accuracy then"]
    right = 100 * then["accuracy"]
    axes.errorbar(
        [course["processor minutes trained"]], [right],
        yerr=[[max(right - 100 * then["low"], 0.0)], [100 * then["high"] - right]],
        color=GREY, marker="o", markersize=4, capsize=3, linestyle="none",
        label="the course's recipe after its stretch",
    )  # fmt: skip


def _kind(study: dict[str, Any]) -> tuple[str, str]:
    """A study takes the place of another one of its recipe and precision."""
    return study["recipe"], study["settings"]["precision"]


def _seeds(study: dict[str, Any]) -> int:
    return max(len(arm["seeds"]) for arm in study["arms"])


def main() -> None:
    """Put the records together if told where they are, and write the pages."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--course", type=Path, help="folder of course_recipe.py")
    parser.add_argument("--studies", type=Path, nargs="*", default=[], help="folders of studies")
    asked = parser.parse_args()
    result = json.loads(RESULTS.read_text(encoding="utf-8"))
    if asked.course is not None:
        course = json.loads((asked.course / "course.json").read_text(encoding="utf-8"))
        result["course"] = course | {"machine": surroundings("torch")}
    if asked.studies:
        new = {_kind(study): study for study in map(study_of, asked.studies)}
        kept = [study for study in result["studies"] if _kind(study) not in new]
        # The fairer ones first, in the order of the page; last what has seen the test's questions.
        result["studies"] = sorted(
            [*new.values(), *kept],
            key=lambda one: (list(SHOWN).index(one["recipe"]), -_seeds(one)),
        )
    result["times"] = ratios(result["studies"], result["course"])
    result["machine"] = result["studies"][0]["machine"]
    RESULTS.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", "utf-8")
    draw(result)
    write_tables(PAGE, tables(result))
    print(f"{RESULTS}, {FIGURE} and the tables of {PAGE} are written")


if __name__ == "__main__":
    main()
