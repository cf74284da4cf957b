"""How soon does a decoder know the birth places in the course's text, against the course's recipe?

    heed study knowledge --pretrain wiki.txt --train birth_places_train.tsv \\
        --dev birth_dev.tsv --recipe ours --output study-ours      (and the same with cues)
    python benchmarks/bench_knowledge.py --data FOLDER --studies study-ours study-cues
    python benchmarks/bench_knowledge.py                           (draws the stored figures again)

The curves come from the studies. The course's recipe takes the better part of a day of one core, so
its step is timed here and its end is taken from what people publish: 19 to 27 % of birth_dev after
650 epochs, 36.4 % with rotary positions. Between, its accuracy is assumed to grow in proportion to
the epochs. Minutes are those in which a processor worked, all cores added up.

Stores benchmarks/results/knowledge.json and docs/_static/knowledge_curve.svg.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from heedful.machine import examine
from heedful.report.drawing import BLUE, GREY, ORANGE, house_style, new_figure, save
from heedful.studies.knowledge.corpus import from_files
from heedful.studies.knowledge.pipeline import prepare
from heedful.studies.knowledge.recipe import COURSE
from heedful.training.distribution import Alone
from heedful.training.session import Session
from heedful.training.trial import Choice

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "knowledge.json"
FIGURE = HERE.parent / "docs" / "_static" / "knowledge_curve.svg"
THRESHOLDS = (0.10, 0.25, 0.36, 0.50)
PUBLISHED = {"learned": 0.27, "rotary": 0.364}
"""The best that people report after all epochs of the course's recipe."""
COLOURS = {"ours": BLUE, "cues": ORANGE}
NAMES = {"ours": "with questions written from the text", "cues": "names, cues and mixed questions"}


def course_steps(data: Path, steps: int) -> dict[str, Any]:
    """Time the course's recipe, step by step, in both precisions."""
    corpus = from_files(data / "wiki.txt", data / "birth_places_train.tsv", data / "birth_dev.tsv")
    material = prepare(corpus, COURSE)
    model = COURSE.shape.config(material.tokenizer.size, COURSE.context, "learned")
    config = COURSE.training(COURSE.pretraining, model, len(material.documents), 0)
    found: dict[str, Any] = {"steps": config.steps}
    for precision in ("float32", "bfloat16"):
        choice = Choice(precision=precision, lanes=1, compiled=False)
        session = Session(config, material.documents, Alone(), choice)
        session.take_step()
        taken = []
        for _ in range(steps):
            begun = time.process_time()
            session.take_step()
            taken.append(time.process_time() - begun)
        session.close()
        seconds = statistics.median(taken)
        found[f"{precision}, processor seconds a step"] = seconds
        found[f"{precision}, processor minutes for all"] = seconds * config.steps / 60
    return found


def arms_of(study: Path) -> list[dict[str, Any]]:
    """Return the arms of a study, with their curves."""
    record = json.loads((study / "knowledge.json").read_text(encoding="utf-8"))
    recipe = "ours" if record["recipe"]["self_questions"] else "cues"
    kept = ("arm", "accuracy", "low", "high", "minutes", "parameters", "held_out_accuracy", "curve")
    return [
        {"recipe": recipe, **{name: arm[name] for name in kept}}
        for arm in record["arms"]
        if arm["kind"] == "trained" or recipe == "ours"
    ]


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


def ratios(arms: list[dict[str, Any]], course: dict[str, Any]) -> list[dict[str, Any]]:
    """Return how long each curve took to each accuracy, and how much longer the course takes."""
    rows = []
    whole = course["float32, processor minutes for all"]
    for arm in arms:
        positions = "rotary" if "rotary" in arm["arm"] else "learned"
        for wanted in THRESHOLDS if arm["curve"] else ():
            taken = time_to(arm["curve"], wanted)
            reached = wanted <= PUBLISHED[positions]
            expected = whole * wanted / PUBLISHED[positions] if reached else None
            rows.append(
                {
                    "recipe": arm["recipe"],
                    "arm": arm["arm"],
                    "accuracy": wanted,
                    "processor minutes": taken,
                    "course, extrapolated": expected if reached else "never reported",
                    "ratio": expected / taken if expected and taken else None,
                }
            )
    return rows


def draw(result: dict[str, Any]) -> None:
    """Draw accuracy against processor minutes, with the course's recipe beside."""
    whole = result["course"]["float32, processor minutes for all"]
    with house_style():
        figure = new_figure(7.2, 3.8)
        axes = figure.add_subplot()
        for arm in result["arms"]:
            if not arm["curve"]:
                continue
            rotary = "rotary" in arm["arm"]
            curve = sorted({p["step"]: p for p in arm["curve"]}.values(), key=lambda p: p["step"])
            axes.plot(
                [point["processor_minutes"] for point in curve],
                [100 * point["accuracy"] for point in curve],
                color=COLOURS[arm["recipe"]],
                linestyle="-" if rotary else "--",
                marker="o" if rotary else None,
                markersize=3.5,
                label=f"{NAMES[arm['recipe']]}, {'rotary' if rotary else 'learned'} positions",
            )
        axes.errorbar(
            [whole], [23], yerr=[[4], [4]], color=GREY, marker="s", markersize=4, capsize=3,
            linestyle="none", label="the course's recipe at its end, as published",
        )  # fmt: skip
        axes.plot([whole], [100 * PUBLISHED["rotary"]], color=GREY, marker="D", markersize=4,
                  linestyle="none", label="the course's recipe, rotary, as published")  # fmt: skip
        axes.set(xscale="log", ylim=(0, 100), ylabel="exact matches on birth_dev, %",
                 xlabel="processor minutes of pretraining")  # fmt: skip
        axes.legend(loc="upper right", bbox_to_anchor=(1.0, 0.9), fontsize=8)
        save(figure, FIGURE)


def main() -> None:
    """Measure if told where the data is, and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with the three files of the course")
    parser.add_argument("--studies", type=Path, nargs="*", default=[])
    parser.add_argument("--course-steps", type=int, default=5)
    asked = parser.parse_args()
    if asked.data is not None:
        torch.set_num_threads(1)
        arms = [arm for study in asked.studies for arm in arms_of(study)]
        course = course_steps(asked.data, asked.course_steps)
        found = examine()
        result = {
            "question": "How soon does a decoder know the birth places in the course's text?",
            "times": ratios(arms, course),
            "arms": arms,
            "course": course,
            "machine": {
                "cpu": found.cpu,
                "cores": found.cores,
                "threads": 1,
                "date": datetime.now(UTC).isoformat(timespec="seconds"),
                "load": os.getloadavg()[0],
                "torch": torch.__version__,
            },
        }
        RESULTS.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", "utf-8")
    result = json.loads(RESULTS.read_text(encoding="utf-8"))
    for row in result["times"]:
        print(json.dumps(row, ensure_ascii=False))
    draw(result)
    print(f"{RESULTS} and {FIGURE} are written")


if __name__ == "__main__":
    main()
