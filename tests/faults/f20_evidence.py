"""F20: of 300 lines with planted traps, which does `heed ask` take for evidence of a birth place?

    python tests/faults/f20_evidence.py

Patterns of two kinds, filled with names and places drawn by a seed: lines that say where somebody
was born, and traps that have the person, a place and often the word, but do not say it. The rules
of `studies/knowledge/evidence.py` were mended on one half of the patterns; the other half was
written before that, and what went wrong with it was not looked at. Precision is the share of true
support among the lines that are taken, recall the share of supporting lines that are. Prints both
for both halves, the lines that were judged wrongly (of the second half with -v), and one line of
JSON; exit code 1 where a trap is taken.
"""

from __future__ import annotations

import json
import sys

import numpy as np

from heedful.stats import wilson
from heedful.studies.knowledge.evidence import says_born

PEOPLE = (
    "Ann Lee", "Rona Wesinard", "Juan de la Cruz", "Édith Moreau", "Max Ó Broin", "Douglas P. Fry",
    "Ludwig van Houten", "Mary-Jane O'Neil", "Zoltan Kiss", "Ingrid Sørensen",
)  # fmt: skip
PLACES = (
    "Rome", "New York", "Århus", "Rio de Janeiro", "Bath", "Reading", "St. Louis", "Paris",
    "Vienna", "Stratford-upon-Avon", "Kraków", "Nice",
)  # fmt: skip
SUPPORTING = {
    "mended on": (
        "{n} was born on 3 May 1950 in {p}, and died in {o}.",
        "{n}, who was born in {p}, sings in {o}.",
        "{n} was born and raised in {p}.",
        "Although {n} was born in {p}, the family soon moved to {o}.",
        "In 1950 {n} was born in {p}.",
        "{n}, born in {p} in 1950, moved to {o}.",
        "{n} was a singer. She was born in {p} and died in {o}.",
        "{n} was born in the town of {p}.",
        "{n} was born in {p}; {m} was born in {o}.",
        "{n} hails from {p}.",
        "{m} died in {o}. {n} was born in {p}.",
        "{n} is a singer born in {p}.",
        "{n} (May 3, 1950 {p} - June 4, 2001 {o}) was a painter.",
    ),
    "not looked at": (
        "{n} (b. 3 May 1950, {p}) is a chemist who works in {o}.",
        "{n} was originally from {p}.",
        "Born in {p} on 3 May 1950, {n} studied in {o}.",
        "{n} is a painter who was born in {p}.",
        "{n} lives in {o}. He was born in {p} in 1950.",
        "It was {p} that {n} was born in.",
        "{n} came into the world in {p}.",
        "{n}, a native of {p}, teaches in {o}.",
        "{p} is the birthplace of {n}.",
        "{n}, the baker, was born at {p}.",
        "{n} grew up in {o} but was born in {p}.",
        "The birthplace of {n} is {p}.",
    ),
}
TRAPS = {
    "mended on": (
        "{n} was not born in {p}.",
        "{n} was never born in {p}, but in {o}.",
        "{n} was born in {o}, not in {p}.",
        "{n} was born in {o} and raised in {p}.",
        "{n}'s father was born in {p}.",
        "The daughter of {n} was born in {p}.",
        "{n} was born near {p}.",
        "{n} was born in {o}, a suburb of {p}.",
        "{n} wrote Born in {p}, a novel.",
        "{n} played a man born in {p}.",
        "Was {n} born in {p}?",
        "If {n} had been born in {p}, all would be different.",
    ),
    "not looked at": (
        "{n} was reborn in {p}.",
        "{n}, whose mother was born in {p}, sings.",
        "{n} denies having been born in {p}.",
        "It is not true that {n} was born in {p}.",
        "{m}, born in {p}, married {n}.",
        "{n} adopted a child born in {p}.",
        "{n} was born in {o} and buried in {p}.",
        "{n} was born in {o} to a merchant from {p}.",
        "Had {n} been born in {p}, nobody would know.",
        "{n} was born in {p} County.",
        "{n} was born on the road from {o} to {p}.",
        "{n} asked who was born in {p}.",
        "{n} is a friend of {m}, born in {p}.",
    ),
}
LINES_PER_PATTERN = 6
"""50 patterns: 300 lines."""


def lines(patterns: tuple[str, ...], seed: int) -> list[tuple[str, str, str]]:
    """Return every pattern with names and places drawn: the line, the name, the place."""
    draw = np.random.default_rng(seed)
    made = []
    for pattern in patterns:
        for _ in range(LINES_PER_PATTERN):
            name, other = draw.permutation(PEOPLE)[:2].tolist()
            place, elsewhere = draw.permutation(PLACES)[:2].tolist()
            made.append((pattern.format(n=name, m=other, p=place, o=elsewhere), name, place))
    return made


def scored(half: str, seed: int) -> tuple[dict[str, float], list[str]]:
    """Return precision and recall of one half with their intervals, and what went wrong."""
    supporting, traps = lines(SUPPORTING[half], seed), lines(TRAPS[half], seed + 1)
    missed = [line for line in supporting if not says_born(*line)]
    taken = [line for line in traps if says_born(*line)]
    found = len(supporting) - len(missed)
    precision, recall = wilson(found, found + len(taken)), wilson(found, len(supporting))
    return {
        "lines": len(supporting) + len(traps),
        "precision": found / max(found + len(taken), 1),
        "precision_low": precision[0],
        "precision_high": precision[1],
        "recall": found / len(supporting),
        "recall_low": recall[0],
        "recall_high": recall[1],
        "traps_taken": len(taken),
    }, [f"missed: {one[0]} [{one[2]}]" for one in missed] + [
        f"taken:  {one[0]} [{one[2]}]" for one in taken
    ]


def main() -> int:
    """Score both halves."""
    rows = {}
    for half in SUPPORTING:
        rows[half], wrong = scored(half, seed=21)
        one = rows[half]
        print(
            f"{half:14} {one['lines']} lines  precision {one['precision']:.1%} "
            f"({one['precision_low']:.1%} to {one['precision_high']:.1%})  recall "
            f"{one['recall']:.1%} ({one['recall_low']:.1%} to {one['recall_high']:.1%})"
        )
        if "-v" in sys.argv or half != "not looked at":
            print("\n".join(wrong))
    print(json.dumps(rows))
    return int(any(one["traps_taken"] for one in rows.values()))


if __name__ == "__main__":
    sys.exit(main())
