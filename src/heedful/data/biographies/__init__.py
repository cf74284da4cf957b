"""The biographies: people who do not exist, and questions about where they were born.

`biographies(people, seed=...)` gives people, pretraining text, questions and evidence.
"""

from __future__ import annotations

from heedful.data.biographies.people import (
    GROUPS,
    HINT_STRENGTH,
    SPLITS,
    Biographies,
    Person,
    Question,
    biographies,
)
from heedful.data.biographies.phrasings import QUESTION, QUESTION_PHRASINGS

__all__ = [
    "GROUPS",
    "HINT_STRENGTH",
    "QUESTION",
    "QUESTION_PHRASINGS",
    "SPLITS",
    "Biographies",
    "Person",
    "Question",
    "biographies",
]
