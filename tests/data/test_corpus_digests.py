"""The written corpora stay the same byte for byte: every set of several sizes and seeds.

Stored results name (corpus, size, seed) and nothing else, so another sentence under the same
name would make them wrong. Whoever changes a corpus on purpose changes its digests, printed by

    python tests/data/test_corpus_digests.py > tests/data/corpus_digests.json

and the results that were computed with it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from heedful.data.synthetic.biographies import biographies
from heedful.data.synthetic.phrasebook import monolingual, phrasebook
from heedful.files import sha256

FILE = Path(__file__).with_name("corpus_digests.json")
PHRASEBOOKS = {
    "phrasebook 300 seed 0": (300, 0, 20),
    "phrasebook 4000 seed 0": (4_000, 0, 500),
    "phrasebook 1500 seed 1": (1_500, 1, 200),
    "phrasebook 1500 seed 77": (1_500, 77, 100),
}
MONOLINGUAL = {
    f"monolingual {language} 1500 seed {seed}": (language, 1_500, seed)
    for language in ("fr", "en")
    for seed in (0, 5)
}
BIOGRAPHIES = {
    "biographies 200 seed 0": (200, {}),
    "biographies 1500 seed 3": (1_500, {"seed": 3}),
    "biographies 400 seed 9 other shares": (
        400,
        {"seed": 9, "phrasings": 9, "exposures": 7, "hint_share": 0.2, "unseen_share": 0.6},
    ),
}


def phrasebook_digests(size: int, seed: int, held_out: int) -> dict[str, str]:
    """Return the digest of each of the five sets, with everything a pair records."""
    book = phrasebook(size, seed=seed, held_out=held_out)
    return {
        name: sha256("\n".join(pair.to_json(indent=None) for pair in pairs))
        for name, pairs in book.splits.items()
    }


def monolingual_digests(language: str, sentences: int, seed: int) -> dict[str, str]:
    """Return the digest of text in one language."""
    return {"text": sha256("\n".join(monolingual(language, sentences, seed)))}


def biography_digests(people: int, settings: dict[str, float]) -> dict[str, str]:
    """Return the digests of people, documents, questions and evidence."""
    book = biographies(people, **settings)  # type: ignore[arg-type]
    parts = {
        "people": [person.to_json(indent=None) for person in book.people],
        "documents": book.documents,
        "questions": [question.to_json(indent=None) for question in book.questions],
        "evidence": [f"{number} {text}" for number, text in book.evidence.items()],
    }
    return {name: sha256("\n".join(lines)) for name, lines in parts.items()}


def all_digests() -> dict[str, dict[str, str]]:
    """Return the digests of every corpus above."""
    return (
        {name: phrasebook_digests(*values) for name, values in PHRASEBOOKS.items()}
        | {name: monolingual_digests(*values) for name, values in MONOLINGUAL.items()}
        | {name: biography_digests(*values) for name, values in BIOGRAPHIES.items()}
    )


def test_the_corpora_are_the_same_byte_for_byte() -> None:
    # In a process of its own, without the type checks at run time: they cost a minute here.
    printed = subprocess.run([sys.executable, __file__], capture_output=True, check=True).stdout
    assert json.loads(printed) == json.loads(FILE.read_text("utf-8"))


if __name__ == "__main__":
    print(json.dumps(all_digests(), indent=1))
