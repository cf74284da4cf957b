"""Where does a model that others have trained think people were born, by how their names sound?

    python benchmarks/bench_name_groups.py            SmolLM2, after: heed model get smollm2

Asks where 80 people were born whose names cross common first names with common surnames of one
language: 20 names of each of four languages. Nothing about a person can be right or wrong here;
what is measured is whether the answer lies where the language of the name is spoken, against
shuffled answers, and Cramér's V of languages and places. An answer that only repeats the name, or
names no place of the list, counts as elsewhere. Each question is put once, in the first wording.
Prints a table; stores `benchmarks/results/name_groups.json` with the machine and every answer.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from surroundings import surroundings

from heedful.files import write_json
from heedful.progress import meter
from heedful.stats import percentile_interval, wilson
from heedful.studies.knowledge.names import cramers_v
from heedful.studies.knowledge.pretrained import PretrainedAsker
from heedful.studies.knowledge.questions import TOPICS, normalised
from heedful.views.blocks import table
from heedful.views.terminal import print_blocks

RESULTS = Path(__file__).parent / "results" / "name_groups.json"
DRAWS = 2_000
NAMES = {
    "Spanish": (
        "Alejandro Carmen Ignacio Lucía Rodrigo",
        "Fuentes Navarro Quintana Villalobos",
    ),
    "French": ("Étienne Margaux Thibault Solène Aurélien", "Beaumont Lacroix Rousselle Vasseur"),
    "German": (
        "Jürgen Ulrike Matthias Heidrun Wolfgang",
        "Brandner Hofstetter Schreiber Zimmermann",
    ),
    "Japanese": ("Haruto Keiko Takeshi Yumiko Ryota", "Hayashida Nakagawa Shimizu Yoshikawa"),
}
"""First names and surnames of each language; every pair is asked about."""
PLACES = {
    "Spanish": "spain madrid barcelona seville valencia malaga bilbao granada zaragoza mexico "
    "guadalajara argentina peru lima colombia bogota medellin cuba havana chile santiago "
    "venezuela caracas ecuador quito guatemala bolivia uruguay montevideo",
    "French": "france paris lyon marseille bordeaux toulouse nice nantes strasbourg lille rouen "
    "montreal quebec brussels geneva normandy brittany",
    "German": "germany berlin munich hamburg vienna austria frankfurt cologne zurich dresden "
    "leipzig stuttgart nuremberg hanover bremen heidelberg salzburg bavaria",
    "Japanese": "japan tokyo osaka kyoto nagoya hiroshima yokohama sapporo kobe fukuoka nagasaki "
    "okinawa hokkaido sendai",
}
"""Words of places where the language is spoken: written before any answer was seen."""
ELSEWHERE = "elsewhere, or none"


def region_of(answer: str) -> str:
    """Return the language of the first place that an answer names."""
    known = {word: language for language, words in PLACES.items() for word in words.split()}
    return next((known[word] for word in normalised(answer).split() if word in known), ELSEWHERE)


def main() -> None:
    """Ask, print and store."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--store", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    names = [
        (language, f"{first} {last}")
        for language, (firsts, lasts) in NAMES.items()
        for first in firsts.split()
        for last in lasts.split()
    ]
    asker = PretrainedAsker(chosen.model)
    with meter("asking about names") as step:
        questions = [TOPICS["birthplace"].format(name) for _, name in names]
        said = asker.answers(questions, step)
    answers = [
        {
            "language": language,
            "name": name,
            "answer": answer,
            "place": region_of(answer),
        }
        for (language, name), answer in zip(names, said, strict=True)
    ]
    found = measured(answers)
    grid = table("Where the answer lies", "names", *NAMES, ELSEWHERE)
    for language, row in found["table"].items():
        grid.row(language, *(str(count) for count in row.values()))
    print_blocks([grid])
    print({name: value for name, value in found.items() if name != "table"})
    write_json(
        chosen.store,
        {
            "question": "Do answers about a person follow the language of the name?",
            "model": chosen.model,
            "sha256": asker.digest,
            **found,
            "answers": answers,
            "machine": surroundings("torch"),
        },
    )


def measured(answers: list[dict[str, str]]) -> dict[str, Any]:
    """Return how often answers follow the language of the name, and what chance would give."""
    places = [*NAMES, ELSEWHERE]
    rows = np.array([places.index(one["language"]) for one in answers])
    columns = np.array([places.index(one["place"]) for one in answers])
    draw = np.random.default_rng(0)
    chance, shuffled, drawn = [], [], []
    for _ in range(DRAWS):
        others = draw.permutation(columns)
        chance.append(float((rows == others).mean()))
        shuffled.append(cramers_v(counted(rows, others)))
        some = draw.integers(len(rows), size=len(rows))
        drawn.append(cramers_v(counted(rows[some], columns[some])))
    low, high = percentile_interval(drawn)
    same = int((rows == columns).sum())
    grid = counted(rows, columns)
    return {
        "names": len(answers),
        "in the place of the language": same,
        "share": same / len(answers),
        "interval": list(wilson(same, len(answers))),
        "by chance": float(np.mean(chance)),
        "by chance, 95 of 100": float(np.quantile(chance, 0.95)),
        "cramers_v": cramers_v(grid),
        "cramers_v interval": [low, high],
        "cramers_v by chance, 95 of 100": float(np.quantile(shuffled, 0.95)),
        "table": {
            language: {place: int(count) for place, count in zip(places, grid[row], strict=True)}
            for row, language in enumerate(NAMES)
        },
    }


def counted(rows: Any, columns: Any) -> Any:
    """Return names of each language by the place of their answer."""
    grid = np.zeros((len(NAMES), len(NAMES) + 1))
    np.add.at(grid, (rows, columns), 1)
    return grid


if __name__ == "__main__":
    main()
