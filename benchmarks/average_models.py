"""Two translators of one shape, averaged: which share of the second one is best?

    python benchmarks/average_models.py FIRST SECOND --tatoeba fra.txt.gz [--output FOLDER]
        [--record FILE]

FIRST and SECOND are runs or folders of models; SECOND went on from FIRST, or both from one start,
so that the weights between them are those of a translator too (Wortsman et al. 2022,
arXiv:2203.05482). For each share the held-out sentences of Tatoeba are translated with 5 beams in
one direction, and 200 phrases of held-out pairs (`heedful.data.phrases`), of which those are
counted that come out as the pair has them. Chosen is, of the shares within half a point of the
highest BLEU, the one with most phrases. Its model goes into FOLDER, with its matrices in 8 bits.
Stores results/average_models.json, or FILE.
"""

from __future__ import annotations

import argparse
import copy
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import torch
from bench_reverse import LONGER, held_out, measured
from surroundings import surroundings
from translation_table import RECIPE

from heedful.data.corpus import Pairs
from heedful.data.phrases import Phrases, TwoTexts, WordTranslations, as_text
from heedful.files import write_json
from heedful.model import write_folder
from heedful.studies.text_training import TextData, read_parts
from heedful.studies.translation import Translator
from heedful.studies.translation.translator import suppress_marks

RESULTS = Path(__file__).parent / "results" / "average_models.json"
SHARES = (0.0, 0.25, 0.5, 0.6, 0.67, 0.75, 1.0)
BEAMS, PHRASES = 5, 200
HALF_A_POINT = 0.5


def held_out_phrases(tatoeba: Path) -> list[TwoTexts]:
    """Return phrases of the held-out pairs, in an order that was drawn once."""
    values = tomllib.loads(RECIPE.read_text("utf-8"))["data"] | {"files": [str(tatoeba)]}
    parts = read_parts(TextData.of(values))
    assert isinstance(parts.train, Pairs)
    assert isinstance(parts.held_out, Pairs)
    train, kept = (list(zip(*one.sides, strict=True)) for one in (parts.train, parts.held_out))
    known = Phrases.of([*train, *kept], WordTranslations.of([*train, *kept]))
    found = list(dict.fromkeys(phrase for two in kept for phrase in known.of_pair(two)))
    order = np.random.default_rng(0).permutation(len(found))[:PHRASES]
    return [as_text(found[place], capital=False) for place in order]


def between(first: Translator, second: Translator, share: float) -> Translator:
    """Return the translator whose weights lie between those of two."""
    decoder, other = copy.deepcopy(first.decoder), second.decoder.state_dict()
    with torch.no_grad():
        for name, value in decoder.state_dict().items():
            if value.is_floating_point():
                value.lerp_(other[name], share)
    return Translator(decoder, second.tokenizer, second.format)


def main() -> None:
    """Measure every share, and keep the model of the one that was chosen."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("first")
    parser.add_argument("second")
    parser.add_argument("--tatoeba", type=Path, required=True)
    parser.add_argument("--output", type=Path, help="write the chosen model here")
    parser.add_argument("--record", type=Path, default=RESULTS, help="write the figures here")
    given = parser.parse_args()
    wanted, phrases = held_out(given.tatoeba, "fr", 600), held_out_phrases(given.tatoeba)
    first, second = (Translator.open(one, reverse=False) for one in (given.first, given.second))
    rows: list[dict[str, Any]] = []
    for share in SHARES:
        translator = between(first, second, share)
        scores = measured(wanted, translator.texts(wanted.sources, beam=BEAMS))
        found = translator.texts([source for source, _ in phrases], beam=BEAMS)
        right = sum(text == target for text, (_, target) in zip(found, phrases, strict=True))
        rows.append({"share": share, "phrases": right, **scores})
        every, longer = scores["all"], scores["longer"]
        print(
            f"{share:.2f} of the second: BLEU {every['bleu']:.1f}, chrF {every['chrf']:.1f}, drops "
            f"{every['dropped']:.1%}; {LONGER} words and more: {longer['bleu']:.1f}, drops "
            f"{longer['dropped']:.1%}; {right} of {len(phrases)} phrases",
            flush=True,
        )
    least = max(row["all"]["bleu"] for row in rows) - HALF_A_POINT
    chosen = max((row for row in rows if row["all"]["bleu"] >= least), key=lambda r: r["phrases"])
    print(f"chosen: {chosen['share']}")
    write_json(given.record, {
        "question": __doc__.splitlines()[0],
        "machine": surroundings("torch", "sacrebleu"),
        "phrases": len(phrases),
        "chosen": chosen["share"],
        "rows": rows,
    })  # fmt: skip
    if given.output is not None:
        made = between(first, second, chosen["share"])
        write_folder(
            made.decoder, given.output, tokenizer=made.tokenizer, form="heedful", dtype=torch.int8
        )
        suppress_marks(given.output, made.marks)
        made.format.write(given.output)


if __name__ == "__main__":
    main()
