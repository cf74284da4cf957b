"""Retrieved, guessed from the name, or made up: what each answer is, where the truth is known.

    person   answer                        label
    seen     right, not what the name says retrieved
    seen     right, and what the name says retrieved or guessed
    any      wrong, but what the name says guessed from the name
    unseen   right, and what the name says guessed from the name
    any      anything else                 made up   (an unseen plain name may be right by luck)

"Seen" means that the pretraining text has the person. "What the name says" is known on the
biographies; elsewhere it is what a guesser that knows only the letters of the name says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool

from heedful.studies.knowledge.records import AnswerRecord, Confusion, LabelCount

RETRIEVED = "retrieved"
EITHER = "retrieved or guessed"
GUESSED = "guessed from the name"
MADE_UP = "made up"
LABELS = (RETRIEVED, EITHER, GUESSED, MADE_UP)


def label_of(*, seen: bool, right: bool, said: str, pointed: str | None) -> str:
    """Return the label of one answer.

    >>> label_of(seen=True, right=True, said="Rome", pointed=None)
    'retrieved'
    >>> label_of(seen=False, right=False, said="Rome", pointed=None)
    'made up'
    """
    by_name = pointed is not None and said == pointed
    if seen and right:
        return EITHER if by_name else RETRIEVED
    return GUESSED if by_name else MADE_UP


def label_counts(answers: Sequence[AnswerRecord], threshold: float) -> tuple[LabelCount, ...]:
    """Return how many answers of each group and outcome have which label, sure or not."""
    counted: Counter[tuple[str, bool, str, bool]] = Counter(
        (one.group, one.right, one.label, one.confidence >= threshold) for one in answers
    )
    keys = sorted(
        {key[:3] for key in counted}, key=lambda key: (key[0], not key[1], LABELS.index(key[2]))
    )
    return tuple(
        LabelCount(
            group=group,
            right=right,
            label=label,
            confident=counted[group, right, label, True],
            unsure=counted[group, right, label, False],
        )
        for group, right, label in keys
    )


def confusion(answers: Sequence[AnswerRecord], threshold: float) -> tuple[Confusion, ...]:
    """Return what the threshold does with the answers of each label."""
    return tuple(
        Confusion(
            label=label,
            answered=sum(one.label == label and one.confidence >= threshold for one in answers),
            withheld=sum(one.label == label and one.confidence < threshold for one in answers),
        )
        for label in LABELS
    )


def retrieved_or_made_up(
    answers: Sequence[AnswerRecord],
) -> tuple[Bool[np.ndarray, " answers"], Bool[np.ndarray, " answers"]]:
    """Return which answers were surely retrieved, and which were made up."""
    labels = np.array([one.label for one in answers])
    return labels == RETRIEVED, labels == MADE_UP
