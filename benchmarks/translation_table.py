"""One table for all translators: several test sets, BLEU and chrF, and what is wrong by rule.

    python benchmarks/translation_table.py MODEL --tatoeba fra.txt.gz --multi30k test.fr test.en

MODEL is a run, an exported translator, or fr-en. The sets: the test part of Tatoeba as
recipes/translator.toml divides it; of it the sentences more than one word away from every training
sentence, and those of 15 words and more; Multi30k 2016, out of domain; sentences of the LibreOffice
help that no recipe took for training (--libreoffice); and of our own 100 everyday sentences
with two references (recipes/everyday_fr_en.tsv), of which none is in Tatoeba, and 80 words and
phrases as they stand in lists, headings and tables (recipes/phrases_fr_en.tsv). With
--most, larger sets are sampled at even distances (of the first, before its parts are taken; long
sentences are always all taken). The figures go under the name of the model, or under --name, into
results/translator.json. --plain searches without what `heed translate` adds: in one
direction, without stand-ins.
"""

from __future__ import annotations

import argparse
import json
import time
import tomllib
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

import sacrebleu
from score_translation import cost, scored, words

from heedful.cli.translate import DEFAULT_BEAMS
from heedful.data.corpus import Pairs
from heedful.data.readers import read_corpora
from heedful.data.splits import References, near_known, references
from heedful.data.text_files import ReadOptions
from heedful.machine import examine
from heedful.studies.text_training import TextData, read_parts
from heedful.studies.translation import Translator
from heedful.studies.translation.documents import translate_texts
from heedful.studies.translation.quality import count_faults

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "translator.json"
RECIPE = HERE / "recipes" / "translator.toml"
OWN = {
    "everyday": HERE / "recipes" / "everyday_fr_en.tsv",
    "words and phrases": HERE / "recipes" / "phrases_fr_en.tsv",
}
"""A source and its references a line."""
ONCE_TRAINED = 3_000
"""Sentences of the LibreOffice help that an earlier recipe took for training: they stay out of the
set, so that all rows are of the same sentences."""
LONG = 15
"""Words from which a sentence is long."""


def part(whole: References, chosen: Iterable[bool]) -> References:
    """Return the sources that were chosen, with their references."""
    kept = [place for place, one in enumerate(chosen) if one]
    return References(
        sources=tuple(whole.sources[place] for place in kept),
        targets=tuple(whole.targets[place] for place in kept),
    )


def sampled(whole: References, most: int | None) -> References:
    """Return at most so many sources, at even distances."""
    count = len(whole.sources)
    if most is None or count <= most:
        return whole
    kept = {place * count // most for place in range(most)}
    return part(whole, (place in kept for place in range(count)))


def tatoeba(file: Path, most: int | None) -> dict[str, References]:
    """Return the test part, what of it is far from training, and its long sentences."""
    values = tomllib.loads(RECIPE.read_text("utf-8"))["data"] | {"files": [str(file)]}
    values.pop("added_files", None)
    parts = read_parts(TextData.of(values))
    assert isinstance(parts.test, Pairs)
    whole = references(parts.test)
    some = sampled(whole, most)
    near = near_known(parts.train.sides[0], some.sources)
    return {
        "Tatoeba, test part": some,
        "of it far from training": part(some, (not one for one in near)),
        "of it 15 words and more": part(whole, (len(words(s)) >= LONG for s in whole.sources)),
    }


def libreoffice(file: Path, tatoeba: Path, most: int | None) -> References:
    """Return sentences of the help, on neither side in training."""
    values = tomllib.loads(RECIPE.read_text("utf-8"))["data"]
    values |= {"files": [str(tatoeba)], "added_files": [str(file)], "added": ONCE_TRAINED}
    trained = {text for side in read_parts(TextData.of(values)).train.sides for text in side}
    (found,) = read_corpora([file], ReadOptions())
    assert isinstance(found, Pairs)
    found = found.from_language("fr")
    kept = [
        place
        for place, texts in enumerate(zip(*found.sides, strict=True))
        if all(len(words(text)) > 3 and text[-1] in ".!?" for text in texts)
        and trained.isdisjoint(texts)
    ]
    return sampled(references(found.take(kept)), most)


def test_sets(given: argparse.Namespace) -> dict[str, References]:
    """Read every set that was asked for."""
    sets = {}
    for kind, file in OWN.items():
        rows = [line.split("\t") for line in file.read_text("utf-8").splitlines()]
        targets = tuple(tuple(row[1:]) for row in rows)
        sets[kind] = References(sources=tuple(row[0] for row in rows), targets=targets)
    if given.multi30k:
        (found,) = read_corpora(given.multi30k, ReadOptions(source="fr"))
        assert isinstance(found, Pairs)
        sets["Multi30k 2016, out of domain"] = sampled(references(found), given.most)
    if given.libreoffice:
        sets["LibreOffice help"] = libreoffice(given.libreoffice, given.tatoeba, given.most)
    return sets | (tatoeba(given.tatoeba, given.most) if given.tatoeba else {})


def translated(
    translator: Translator, sets: Iterable[References], search: dict[str, Any], *, plain: bool
) -> tuple[dict[str, str], float]:
    """Translate every source once; also return the processor seconds."""
    started = time.process_time()
    sources = list(dict.fromkeys(source for wanted in sets for source in wanted.sources))
    found = (
        translator.translate(sources, **search)
        if plain
        else translate_texts(translator, sources, **search)
    )
    texts = {source: one.text for source, one in zip(sources, found, strict=True)}
    return texts, time.process_time() - started


def measure(texts: dict[str, str], wanted: References) -> dict[str, Any]:
    """Score the translations of one set."""
    found = [texts[source] for source in wanted.sources]
    faults = count_faults(wanted.sources, found, wanted.targets).to_dict()
    shares = {name: round(faults[name], 4) for name in ("dropped", "loops", "invented_numbers")}
    return scored(found, wanted.targets) | shares


def store(name: str, rows: Sequence[dict[str, Any]], run: Path | None = None) -> None:
    """Put the rows of a model in the place of its former ones; of its run, what it cost."""
    stored = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    machine = examine()
    kept = [row for row in stored.get("scores", []) if row["model"] != name]
    trainings = stored.get("trainings", [])
    if run is not None:
        trainings = [row for row in trainings if row["model"] != name]
        trainings.append({"model": name, **cost(run)})
    result = {
        "question": "How well do translators do on sentences of several kinds?",
        "date": datetime.now(tz=UTC).date().isoformat(),
        "machine": {"cpu": machine.cpu, "cores": machine.cores, "sacrebleu": sacrebleu.__version__},
        "trainings": trainings,
        "scores": [*kept, *rows],
    }
    RESULTS.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", "utf-8")


def main() -> None:
    """Score one model on every set."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--tatoeba", type=Path)
    parser.add_argument("--multi30k", type=Path, nargs=2)
    parser.add_argument("--libreoffice", type=Path, help="needs --tatoeba")
    parser.add_argument("--run", type=Path, help="its training, for what it cost")
    parser.add_argument("--most", type=int, help="sentences of a set")
    parser.add_argument("--beam", type=int, default=DEFAULT_BEAMS)
    parser.add_argument("--length-penalty", type=float, default=1.0)
    parser.add_argument("--plain", action="store_true", help="one direction, no stand-ins")
    parser.add_argument("--name", help="what the rows are stored under; default: the model's")
    parser.add_argument("--show", action="store_true", help="print the translations of our own")
    parser.add_argument("--no-store", action="store_true", help="print only")
    given = parser.parse_args()
    sets = test_sets(given)
    search = {"beam": given.beam, "length_penalty": given.length_penalty}
    translator = Translator.open(given.model, reverse=not given.plain)
    texts, seconds = translated(translator, sets.values(), search, plain=given.plain)
    name = given.name or Path(given.model).name
    print(f"{len(texts):,} sentences translated in {seconds:.0f} processor seconds", flush=True)
    rows = []
    for kind, wanted in sets.items():
        row = {"model": name, "set": kind, **search, **measure(texts, wanted)}
        rows.append(row)
        print(
            f"{kind:30} {row['sentences']:5,}  BLEU {row['bleu']:.1f} "
            f"[{row['bleu_low']:.1f}, {row['bleu_high']:.1f}]  chrF {row['chrf']:.1f}  dropped "
            f"{row['dropped']:.1%}  loops {row['loops']:.1%}  "
            f"numbers {row['invented_numbers']:.1%}",
            flush=True,
        )
    if given.show:
        for source in chain.from_iterable(sets[kind].sources for kind in OWN):
            print(f"{source}\n    {texts[source]}")
    if not given.no_store:
        store(name, rows, given.run)


if __name__ == "__main__":
    main()
