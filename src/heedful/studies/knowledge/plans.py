"""Which study is run: on the embedded biographies, as a quick trial, or on files."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import torch

from heedful.studies.knowledge.corpus import KnowledgeCorpus, embedded, from_files
from heedful.studies.knowledge.curves import StoragePlan
from heedful.studies.knowledge.knowledge_study import StudyPlan
from heedful.studies.knowledge.recipe import COURSE, CUES, EMBEDDED, OURS, QUICK, STORAGE, Recipe

PEOPLE, UNSEEN = 500, 0.4
"""In the embedded study, and the share of them that no text has."""
EXPOSURES = 4
"""Documents about each of them, each in words of its own."""
SEEDS = 2
MOST_PROCESSES = 4
"""Trainings at once at most: each takes about half a gigabyte."""


def plan_for(
    files: tuple[Path, Path, Path] | None = None,
    *,
    recipe: Literal["ours", "cues", "course"] = "ours",
    quick: bool = False,
    seed: int = 0,
    changes: dict[str, Any] | None = None,
) -> tuple[KnowledgeCorpus, StudyPlan]:
    """Return the corpus and the plan; `changes` that are None change nothing.

    Changes may name `objective`, `minutes` or `steps` of pretraining, `seeds`, `wanted_error`.
    """
    if files is not None:
        corpus = from_files(*files)
        base = QUICK_FILES if quick else {"ours": OURS, "cues": CUES, "course": COURSE}[recipe]
        plan = StudyPlan(recipe=base, seed=seed, quick=quick)
    elif quick:
        corpus = embedded(60, seed=seed, exposures=2, phrasings=2, sentences=1)
        plan = StudyPlan(recipe=QUICK, seed=seed, quick=True, unseen=24, storage=QUICK_STORAGE,
                         storage_recipe=QUICK.changed(questions_mixed=1))  # fmt: skip
    else:
        corpus = embedded(PEOPLE, seed=seed, exposures=EXPOSURES, phrasings=EXPOSURES,
                          unseen_share=UNSEEN, sentences=1)  # fmt: skip
        plan = StudyPlan(recipe=EMBEDDED, seed=seed, seeds=SEEDS, storage=STORAGE_PLAN,
                         storage_recipe=STORAGE)  # fmt: skip
    return corpus, _changed(plan, changes or {})


STORAGE_PLAN = StoragePlan(people=(75, 150, 300), widths=(32, 64), exposures=4, evaluations=4)
QUICK_STORAGE = StoragePlan(people=(40, 60), widths=(16, 32), exposures=2, evaluations=2)
QUICK_FILES = QUICK.changed(context=128, vocabulary=1_000)


def _changed(plan: StudyPlan, changes: dict[str, Any]) -> StudyPlan:
    given = {name: value for name, value in changes.items() if value is not None}
    recipe: Recipe = plan.recipe
    stage = {name: given[name] for name in ("minutes", "steps") if name in given}
    if stage:
        recipe = recipe.changed(pretraining=recipe.pretraining.changed(**stage))
    if "objective" in given:
        recipe = recipe.changed(objective=given["objective"])
    return StudyPlan(
        recipe=recipe,
        seeds=given.get("seeds", plan.seeds),
        seed=plan.seed,
        wanted_error=given.get("wanted_error", plan.wanted_error),
        unseen=plan.unseen,
        storage=plan.storage,
        storage_recipe=plan.storage_recipe,
        quick=plan.quick,
        # A time limit is kept by timing steps, which others beside them would disturb.
        processes=1 if plan.quick or recipe.pretraining.minutes else _usable(),
    )


def _usable() -> int:
    """Return how many trainings of one thread this machine has room for."""
    return 1 if torch.cuda.is_available() else min(torch.get_num_threads(), MOST_PROCESSES)
