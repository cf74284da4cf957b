"""Write the French of English sentences that have none: pairs for training a translator.

    python benchmarks/back_translate.py runs/back eltec_eng.txt.gz --tatoeba fra.txt.gz \\
        --output novels.en-fr.tsv.gz [--kept 0.5] [--most 20000]
    python benchmarks/back_translate.py --jumbled eltec_eng.txt.gz --tatoeba fra.txt.gz \\
        --output jumbled.en-fr.tsv.gz

A translator into French (`recipes/back_translator.toml`) reads the sentences of novels. The English
side is a real sentence, and it is the one that is learned; the French may have mistakes. Only
sentences of 4 to 22 words are taken without names whose words stand three times or more in
Tatoeba's English: for others it would make up the French. Of the translations those are kept of
which the model is surest, by log p per token: the others read as nonsense. With --jumbled nobody
translates: each sentence stands beside itself with words left out and moved, to be restored.
"""

from __future__ import annotations

import argparse
import gzip
import re
import time
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np

from heedful.data.readers import read_corpus
from heedful.files import write_atomic
from heedful.studies.translation import Translator
from heedful.studies.translation.corpus import jumbled
from heedful.studies.translation.documents import sentences

SHORTEST, LONGEST = 4, 22
SEEN = 3
LINES = 2_048
"""Sentences that are translated between two lines of progress."""
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_STRAIGHT = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "—": "-", "–": "-"})


def known_words(tatoeba: Path) -> set[str]:
    """Return the words that Tatoeba's English has often enough."""
    pairs = read_corpus(tatoeba).from_language("en")
    counts = Counter(word for text in pairs.sources for word in _WORD.findall(text.lower()))
    return {word for word, count in counts.items() if count >= SEEN}


def fitting(novels: Path, known: set[str]) -> Iterator[str]:
    """Yield the sentences of the novels that such a translator can read."""
    with gzip.open(novels, "rt", encoding="utf-8") as lines:
        for line in lines:
            for text, _ in sentences(line.strip().translate(_STRAIGHT)):
                plain = text.strip("\"'- ") if text.count('"') != 2 else text.replace('"', "")
                words = _WORD.findall(plain)
                if (
                    SHORTEST <= len(words) <= LONGEST
                    and plain[0].isupper()
                    and plain[-1] in ".!?"
                    and not re.search(r'["()\[\]_*;]|--', plain)
                    and all(word.lower() in known for word in words)
                    and not any(word[0].isupper() and word[:1] != "I" for word in words[1:])
                ):
                    yield plain


def fits(english: str, french: str) -> bool:
    """Say whether a translation is about as long as its source, and does not repeat itself."""
    words = french.lower().split()
    couples = list(pairwise(words))
    ratio = len(words) / len(english.split())
    return 0.6 <= ratio <= 1.8 and len(set(couples)) == len(couples)


def main() -> None:
    """Translate, and write the pairs as lines of English, a tab, and French."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", type=Path, nargs="?")
    parser.add_argument("novels", type=Path)
    parser.add_argument("--tatoeba", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--kept", type=float, default=0.5)
    parser.add_argument("--most", type=int, help="sentences, at even distances")
    parser.add_argument("--jumbled", action="store_true", help="translate nothing")
    options = parser.parse_args()
    if options.model is None and not options.jumbled:
        parser.error("a MODEL, or --jumbled")
    found = list(dict.fromkeys(fitting(options.novels, known_words(options.tatoeba))))
    print(f"{len(found):,} sentences fit", flush=True)
    if options.most is not None and options.most < len(found):
        found = [found[place * len(found) // options.most] for place in range(options.most)]
    if options.jumbled:
        draw = np.random.default_rng(0)
        write_pairs(options.output, [f"{one}\t{jumbled(one, draw)}" for one in found])
        return
    translator = Translator.open(options.model)
    scored, begun = [], time.monotonic()
    for start in range(0, len(found), LINES):
        scored += [
            (one.hypotheses[0].per_token, one.source, one.text)
            for one in translator.translate(found[start : start + LINES])
            if one.hypotheses and one.hypotheses[0].finished and fits(one.source, one.text)
        ]
        seconds = time.monotonic() - begun
        print(f"{min(start + LINES, len(found)):,} translated, {seconds:.0f} s", flush=True)
    least = sorted((sure for sure, _, _ in scored), reverse=True)[int(options.kept * len(scored))]
    pairs = [f"{english}\t{french}" for sure, english, french in scored if sure > least]
    print(f"kept: log p per token above {least:.2f}")
    write_pairs(options.output, pairs)


def write_pairs(output: Path, pairs: list[str]) -> None:
    """Write lines of English, a tab, and what stands for its French."""
    text = "\n".join(pairs) + "\n"
    write_atomic(output, gzip.compress(text.encode(), mtime=0))
    print(f"{len(pairs):,} pairs in {output}")


if __name__ == "__main__":
    main()
