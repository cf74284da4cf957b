"""Do names and numbers that a translator never met come through, with stand-ins and without?

    python benchmarks/bench_stand_ins.py fr-en --tatoeba fra.txt.gz

Sentences of the test part of Tatoeba whose source and reference share a well known name (Tom,
Mary, Boston, Tokyo) or a number in digits. The name is replaced on both sides by one of PERSONS or
PLACES, of which no training pair has any, the number by another of as many digits. Counted:
translations that have every such word, and BLEU against the changed references, which a paired
bootstrap compares. Stores benchmarks/results/stand_ins.json.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import tomllib
from pathlib import Path
from typing import Any

from score_translation import scored
from surroundings import surroundings
from translation_table import RECIPE

from heedful.cli.translate import DEFAULT_BEAMS
from heedful.data.corpus import Pairs
from heedful.data.splits import References, references
from heedful.stats import wilson
from heedful.studies.text_training import TextData, read_parts
from heedful.studies.translation import Translator
from heedful.studies.translation.documents import translate_texts
from heedful.studies.translation.quality import numbers
from heedful.studies.translation.scoring import paired_gain

RESULTS = Path(__file__).parent / "results" / "stand_ins.json"
PERSONS = ("Karim", "Thibault", "Solène", "Maëlle", "Gaspard", "Nolwenn", "Bastien", "Capucine")
PLACES = (
    "Vesoul",
    "Quimper",
    "Grenoble",
    "Perpignan",
    "Besançon",
    "Rouen",
    "Carcassonne",
    "Vannes",
)
KNOWN = {"Tom": PERSONS, "Mary": PERSONS, "Boston": PLACES, "Tokyo": PLACES}
"""All of them begin with a consonant, as those that they replace do."""


def exchanged(source: str, targets: tuple[str, ...], draw: random.Random) -> Any:
    """Return a pair with other names and numbers, and these; None where it has none."""
    words: list[str] = []
    for name, others in KNOWN.items():
        if all(re.search(rf"\b{name}\b", text) for text in (source, *targets)):
            word = draw.choice([one for one in others if one not in words])
            source, *rest = (re.sub(rf"\b{name}\b", word, text) for text in (source, *targets))
            targets = tuple(rest)
            words.append(word)
    for number in sorted(numbers(source)):
        if all(re.search(rf"\b{number}\b", text) for text in (source, *targets)):
            low = 10 ** (len(number) - 1)
            word = str(draw.randrange(low + 1, 10 * low))
            source, *rest = (re.sub(rf"\b{number}\b", word, text) for text in (source, *targets))
            targets = tuple(rest)
            words.append(word)
    return (source, targets, words) if words else None


def sentences(file: Path, most: int) -> tuple[References, list[list[str]]]:
    """Return the sentences with other names and numbers, and which ones each has."""
    values = tomllib.loads(RECIPE.read_text("utf-8"))["data"] | {"files": [str(file)]}
    parts = read_parts(TextData.of(values))
    assert isinstance(parts.test, Pairs)
    trained = " ".join(parts.train.sides[0])
    assert not any(re.search(rf"\b{word}\b", trained) for word in (*PERSONS, *PLACES))
    whole, draw = references(parts.test), random.Random(0)
    found = [exchanged(*pair, draw) for pair in zip(whole.sources, whole.targets, strict=True)]
    found = [one for one in found if one is not None]
    found = [found[place * len(found) // most] for place in range(min(most, len(found)))]
    sources, targets, words = zip(*found, strict=True)
    return References(sources=sources, targets=targets), list(words)


def main() -> None:
    """Translate with stand-ins and without, and count."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--tatoeba", type=Path, required=True)
    parser.add_argument("--most", type=int, default=300)
    given = parser.parse_args()
    translator = Translator.open(given.model)
    wanted, words = sentences(given.tatoeba, given.most)
    written, rows, texts = translator.format, [], {}
    for name, stand_ins in (("without", ()), ("with stand-ins", written.stand_ins)):
        translator.format = written.model_copy(update={"stand_ins": stand_ins})
        found = translate_texts(translator, wanted.sources, beam=DEFAULT_BEAMS)
        texts[name] = [one.text for one in found]
        kept = sum(
            all(re.search(rf"(?<!\w){word}(?!\w)", text) for word in several)
            for text, several in zip(texts[name], words, strict=True)
        )
        low, high = wilson(kept, len(words))
        row = {"translated": name, "all_words_kept": kept, "share": kept / len(words)}
        rows.append(row | {"low": low, "high": high} | scored(texts[name], wanted.targets))
        print(f"{name:15} {kept} of {len(words)} keep every word, BLEU {rows[-1]['bleu']:.1f}")
    gain = paired_gain(texts["with stand-ins"], texts["without"], wanted.targets)
    print(f"gain {gain.value:+.1f} ({gain.low:+.1f} to {gain.high:+.1f})")
    record = {
        "question": __doc__.splitlines()[0],
        "model": Path(given.model).name,
        "machine": surroundings("torch", "sacrebleu"),
        "sentences": len(words),
        "rows": rows,
        "gain": {"bleu": gain.value, "low": gain.low, "high": gain.high, "p": gain.p_value},
    }
    RESULTS.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
