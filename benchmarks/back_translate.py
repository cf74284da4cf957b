"""Write the French of English sentences that have none: pairs for training a translator.

    python benchmarks/back_translate.py runs/back eltec_eng.txt.gz --tatoeba fra.txt.gz \\
        --output novels.en-fr.tsv.gz [--most 60000]

A translator into French (`recipes/back_translator.toml`) reads the sentences of novels. The English
side is a real sentence, and it is the one that is learned; the French may have mistakes. Only
sentences of 4 to 22 words are taken whose words, but for names, stand twice or more in Tatoeba's
English: for others it would make up the French. They are drawn at even distances.
"""

from __future__ import annotations

import argparse
import gzip
import re
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from heedful.data.readers import read_corpus
from heedful.files import write_atomic
from heedful.studies.translation import Translator
from heedful.studies.translation.documents import sentences

SHORTEST, LONGEST = 4, 22
SEEN = 2
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
                    and all(word.lower() in known or word[0].isupper() for word in words[1:])
                    and words[0].lower() in known
                    and sum(word[0].isupper() and word != "I" for word in words[1:]) <= 2
                ):
                    yield plain


def main() -> None:
    """Translate, and write the pairs as lines of English, a tab, and French."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("novels", type=Path)
    parser.add_argument("--tatoeba", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--most", type=int, default=60_000)
    options = parser.parse_args()
    found = list(dict.fromkeys(fitting(options.novels, known_words(options.tatoeba))))
    taken = [found[i * len(found) // options.most] for i in range(options.most)]
    taken = taken if len(found) > options.most else found
    print(f"{len(found):,} sentences fit, {len(taken):,} are translated", flush=True)
    translator = Translator.open(options.model)
    pairs, begun = [], time.monotonic()
    for start in range(0, len(taken), LINES):
        english = taken[start : start + LINES]
        for one, french in zip(english, translator.texts(english), strict=True):
            ratio = len(french.split()) / len(one.split())
            if french and 0.5 <= ratio <= 2.0:
                pairs.append(f"{one}\t{french}")
        seconds = time.monotonic() - begun
        print(f"{start + len(english):,} of {len(taken):,}, {seconds:.0f} s", flush=True)
    text = "\n".join(pairs) + "\n"
    write_atomic(options.output, gzip.compress(text.encode(), mtime=0))
    print(f"{len(pairs):,} pairs in {options.output}")


if __name__ == "__main__":
    main()
