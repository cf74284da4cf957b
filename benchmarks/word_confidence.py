"""What is a translator's probability of a word worth, and are its warnings right?

    python benchmarks/word_confidence.py fr-en --tatoeba fra.txt.gz [--write]

The held-out part of Tatoeba, which no training saw, is divided by halves: on the first the share of
words that stand in a reference is measured against their probability (`word_confidence.py`), on the
second, and on the test part, the warnings are counted: a word is named as doubtful where fewer than
half of such words were right. Precision: of the words named, how many are in no reference; recall:
of the words in no reference, how many were named. Intervals are a bootstrap over sentences. With
--write the curve goes into the translator's own folder. Stores results/word_confidence.json.
"""

from __future__ import annotations

import argparse
import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
from surroundings import surroundings
from translation_table import RECIPE, sampled

from heedful.cli.translate import DEFAULT_BEAMS
from heedful.data.corpus import Pairs
from heedful.data.splits import References, references
from heedful.files import SHIPPED
from heedful.stats import percentile_interval
from heedful.studies.knowledge.confidence import auroc
from heedful.studies.text_training import TextData, read_parts
from heedful.studies.translation import Translator
from heedful.studies.translation.quality import (
    DOUBT,
    measure_curve,
    right_words,
    word_confidences,
)
from heedful.studies.translation.translator import TranslationFormat

RESULTS = Path(__file__).parent / "results" / "word_confidence.json"
DRAWS = 1_000
Words = list[tuple[list[float], list[bool]]]
"""For each sentence: log p of its words, and whether they are right."""


def judged(translator: Translator, wanted: References) -> Words:
    """Translate sentences, and tell of each word how probable it was and whether it is right."""
    found = []
    translations = translator.translate(wanted.sources, beam=DEFAULT_BEAMS)
    for one, targets in zip(translations, wanted.targets, strict=True):
        if not one.hypotheses:
            continue
        words = word_confidences(translator, one.hypotheses[0])
        right = right_words([word.text for word in words], targets)
        found.append(([float(np.log(max(w.probability, 1e-300))) for w in words], right))
    return found


def counted(words: Words, curve: tuple[tuple[float, float], ...]) -> np.ndarray:
    """Return for each sentence: words named, named and wrong, wrong, all."""
    at, shares = np.array(curve).T
    rows = []
    for logs, right in words:
        named = np.interp(logs, at, shares) < DOUBT if logs else np.array([], dtype=bool)
        wrong = ~np.array(right, dtype=bool)
        rows.append([named.sum(), (named & wrong).sum(), wrong.sum(), len(wrong)])
    return np.array(rows, dtype=float)


def shares(rows: np.ndarray) -> dict[str, float]:
    """Return precision and recall of the warnings, and how many words are wrong at all."""
    named, both, wrong, everything = rows.sum(axis=0)
    return {
        "precision": both / max(named, 1.0),
        "recall": both / max(wrong, 1.0),
        "named": named / everything,
        "wrong": wrong / everything,
    }


def measured(words: Words, curve: tuple[tuple[float, float], ...]) -> dict[str, Any]:
    """Return the warnings' figures with intervals over sentences, and how far p separates."""
    rows = counted(words, curve)
    draw = np.random.default_rng(0)
    drawn = [shares(rows[draw.integers(len(rows), size=len(rows))]) for _ in range(DRAWS)]
    figures: dict[str, Any] = {"sentences": len(rows), "words": int(rows[:, 3].sum())}
    for name, value in shares(rows).items():
        figures[name] = value
        figures[f"{name}_interval"] = percentile_interval(np.array([one[name] for one in drawn]))
    logs = np.concatenate([each for each, _ in words])
    right = np.concatenate([np.array(each, dtype=bool) for _, each in words])
    figures["auroc"] = auroc(logs[right], logs[~right])
    return figures


def main() -> None:
    """Measure the curve and the warnings of one translator."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--tatoeba", type=Path, required=True)
    parser.add_argument("--most", type=int, default=600, help="sentences of each part")
    parser.add_argument("--write", action="store_true", help="keep the curve beside the weights")
    given = parser.parse_args()
    folder = SHIPPED.get(given.model, Path(given.model))
    translator = Translator.open(folder)
    values = tomllib.loads(RECIPE.read_text("utf-8"))["data"] | {"files": [str(given.tatoeba)]}
    values.pop("added_files", None)
    parts = read_parts(TextData.of(values))
    assert isinstance(parts.held_out, Pairs)
    assert isinstance(parts.test, Pairs)
    held_out = judged(translator, sampled(references(parts.held_out), 2 * given.most))
    test = judged(translator, sampled(references(parts.test), given.most))
    first, second = held_out[::2], held_out[1::2]
    curve = measure_curve(
        [log for logs, _ in first for log in logs], [one for _, right in first for one in right]
    )
    rows = {"held out, second half": measured(second, curve), "test part": measured(test, curve)}
    for name, row in rows.items():
        low, high = row["precision_interval"]
        least, most = row["recall_interval"]
        print(
            f"{name}: {row['words']:,} words, {row['wrong']:.1%} in no reference; named "
            f"{row['named']:.1%}, precision {row['precision']:.1%} ({low:.1%} to {high:.1%}), "
            f"recall {row['recall']:.1%} ({least:.1%} to {most:.1%}), AUROC {row['auroc']:.3f}"
        )
    if given.write:
        kept = TranslationFormat.read(folder)
        kept.model_copy(update={"right_words": curve}).write(folder)
    result = {
        "question": "Are a translator's warnings about single words right?",
        "model": given.model,
        "machine": surroundings(),
        "doubt": DOUBT,
        "curve": curve,
        "records": [{"set": name, **row} for name, row in rows.items()],
    }
    RESULTS.write_text(json.dumps(result, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
