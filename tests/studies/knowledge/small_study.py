"""A study small enough for tests: it answers in the right form, and knows next to nothing."""

from __future__ import annotations

from pathlib import Path

from heedful.studies.knowledge.corpus import KnowledgeCorpus, embedded
from heedful.studies.knowledge.findings import KnowledgeStudy
from heedful.studies.knowledge.knowledge_study import study_knowledge
from heedful.studies.knowledge.plans import QUICK, Shape, Stage, StudyPlan

STAGE = Stage(epochs=3, rows=16, learning_rate=1e-2)
RECIPE = QUICK.changed(
    shape=Shape(width=32, layers=2, heads=2), pretraining=STAGE, finetuning=STAGE
)


def small_corpus() -> KnowledgeCorpus:
    """Return few people."""
    return embedded(60, exposures=1, phrasings=1, unseen_share=0.4, sentences=1)


def small_plan() -> StudyPlan:
    """Return a plan of a few steps, without storage."""
    return StudyPlan(recipe=RECIPE, unseen=12)


def small_study(folder: Path) -> KnowledgeStudy:
    """Run it."""
    return study_knowledge(small_corpus(), small_plan(), folder)
