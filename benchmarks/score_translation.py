"""How well does a trained run translate sentences that it has never seen?

    python benchmarks/score_translation.py RUN                           the test part of its split
    python benchmarks/score_translation.py RUN --corpus test.fr test.en  a test set of its own
    python benchmarks/score_translation.py RUN --lines sentences.txt     show, without references

Greedy and beam search; BLEU (13a, every reference that the corpus has), chrF, both with the
95 % interval of 1,000 bootstrap samples, exact matches, and BLEU by length and by words that
training never saw. The figures go under the name of the run into results/translation.json,
with the minutes that its training took.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sacrebleu
from sacrebleu.metrics import BLEU

from heedful.data.corpus import Pairs
from heedful.data.readers import read_corpora
from heedful.data.splits import References, one_word_away, overlap, references
from heedful.data.text_files import ReadOptions
from heedful.machine import examine
from heedful.studies.text_training import CorpusParts, TextData, read_parts
from heedful.studies.translation import Translator
from heedful.studies.translation.scoring import PlainCHRF
from heedful.training.runs import finished_run

RESULTS = Path(__file__).parent / "results" / "translation.json"
LENGTHS = ((1, 4), (5, 8), (9, 12), (13, 20), (21, 1_000))
BOOTSTRAP = 1_000


def words(text: str) -> list[str]:
    """Return the words of a text, in lower case: letters and digits between anything else."""
    return "".join(c if c.isalnum() else " " for c in text.casefold()).split()


def streams(targets: Sequence[Sequence[str]]) -> list[list[str | None]]:
    """Return references as sacreBLEU takes them: the first of every source, the second, …"""
    most = max(map(len, targets))
    return [[each[n] if n < len(each) else None for each in targets] for n in range(most)]


def scored(outputs: list[str], targets: Sequence[Sequence[str]]) -> dict[str, Any]:
    """Return BLEU and chrF with their intervals and signatures, and the share of exact matches."""
    found: dict[str, Any] = {"sentences": len(outputs)}
    for name, metric in (("bleu", BLEU()), ("chrf", PlainCHRF())):
        score = metric.corpus_score(outputs, streams(targets), n_bootstrap=BOOTSTRAP)
        mean, half = float(score._mean), float(score._ci)
        found |= {
            name: round(float(score.score), 2),
            f"{name}_low": round(max(mean - half, 0.0), 2),
            f"{name}_high": round(min(mean + half, 100.0), 2),
            f"{name}_signature": str(metric.get_signature()),
        }
    found["bleu_first_reference"] = round(
        BLEU().corpus_score(outputs, streams(targets)[:1]).score, 2
    )
    exact = sum(made in wanted for made, wanted in zip(outputs, targets, strict=True))
    found["exact"] = round(exact / len(outputs), 4)
    return found


def grouped(
    test: References, outputs: Sequence[str], name_of: Callable[[str], str | None]
) -> dict[str, dict[str, float]]:
    """Return the BLEU of the sources that share a name."""
    places: dict[str, list[int]] = {}
    for place, source in enumerate(test.sources):
        name = name_of(source)
        if name is not None:
            places.setdefault(name, []).append(place)
    return {
        name: {
            "sentences": len(chosen),
            "bleu": round(
                BLEU()
                .corpus_score(
                    [outputs[place] for place in chosen],
                    streams([test.targets[place] for place in chosen]),
                )
                .score,
                2,
            ),
        }
        for name, chosen in sorted(places.items())
    }


def length_name(source: str) -> str | None:
    """Return the class of a source by its words."""
    count = len(words(source))
    for low, high in LENGTHS:
        if low <= count <= high:
            return f"{low:02d}+ words" if high >= 1_000 else f"{low:02d}-{high:02d} words"
    return None


def test_set(run: Path, corpus: Sequence[Path]) -> tuple[Pairs, CorpusParts]:
    """Return what the run is judged by and what it was trained on."""
    data = TextData.of(json.loads((run / "config.json").read_text("utf-8"))["data"])
    parts = read_parts(data)
    if corpus:
        (found,) = read_corpora(list(corpus), ReadOptions(source=data.translate_from))
    else:
        assert parts.test is not None, "this run kept no test part: give --corpus"
        found = parts.test
    assert isinstance(found, Pairs)
    return found, parts


def cost(run: Path) -> dict[str, Any]:
    """Return what the training took; a resumed one is the sum of its pieces."""
    finished = finished_run(run)
    assert finished is not None, f"{run} is not finished"
    result, processor = finished.result.to_dict(), finished.processor_seconds / 60
    return {
        "minutes": round(finished.seconds / 60, 1),
        "processor_minutes": round(processor, 1),
        "two_core_minutes": round(processor / 2, 1),
        "steps": result["step"],
        "epochs": round(result["epoch"], 2),
        "tokens": result["tokens"],
        "parameters": result["parameters"],
        "computed_as": result["computed_as"],
        "evaluation": result["evaluations"][-1]["values"] if result["evaluations"] else {},
    }


def measure(run: Path, corpus: Sequence[Path], beam: int, penalty: float) -> dict[str, Any]:
    """Translate the test set both ways and score it."""
    test, parts = test_set(run, corpus)
    wanted = references(test)
    seen = {word for text in parts.train.sides[0] for word in words(text)}
    shared = overlap(parts.train, test)
    translator = Translator.open(run)
    made: dict[str, Any] = {
        "test": {
            "name": test.name,
            "pairs": len(test),
            "sources": len(wanted.sources),
            "with_several_references": wanted.with_several,
            "sentences_shared_with_training": shared.sources,
            "alike_but_for_case_and_punctuation": shared.alike,
            "one_word_away_from_training": one_word_away(parts.train.sides[0], wanted.sources),
        },
        "training_pairs": len(parts.train),
    }
    for name, size in (("greedy", 1), ("beam", beam)):
        started = time.process_time()
        found = translator.translate(wanted.sources, beam=size, length_penalty=penalty)
        outputs = [translation.text for translation in found]
        seconds = time.process_time() - started
        made[name] = scored(outputs, wanted.targets) | {
            "beams": size,
            "length_penalty": penalty if size > 1 else None,
            "processor_seconds": round(seconds, 1),
            "by_length": grouped(wanted, outputs, length_name),
            "by_unseen_words": grouped(
                wanted,
                outputs,
                lambda source: "all seen" if set(words(source)) <= seen else "with unseen",
            ),
        }
    return made


def rows_of(name: str, made: dict[str, Any], training: dict[str, Any]) -> dict[str, list[Any]]:
    """Return the figures of a run as flat rows, one list for each table."""
    tables: dict[str, list[Any]] = {
        "test_sets": [{"run": name, **made["test"], "training_pairs": made["training_pairs"]}],
        "trainings": [{"run": name, **training}],
        "scores": [],
        "by_length": [],
        "by_unseen_words": [],
    }
    for way in ("greedy", "beam"):
        flat = {key: value for key, value in made[way].items() if not isinstance(value, dict)}
        tables["scores"].append({"run": name, "search": way, **flat})
        for kind in ("by_length", "by_unseen_words"):
            for part, found in made[way][kind].items():
                tables[kind].append({"run": name, "search": way, "sources": part, **found})
    return tables


def store(name: str, tables: dict[str, list[Any]]) -> None:
    """Put the rows of a run in the place of its former ones."""
    stored = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    found = examine()
    kept = {
        kind: [row for row in stored.get(kind, []) if row["run"] != name] + rows
        for kind, rows in tables.items()
    }
    result = {
        "question": "How well do runs translate sentences that they have never seen?",
        "date": datetime.now(tz=UTC).date().isoformat(),
        "machine": {"cpu": found.cpu, "cores": found.cores, "sacrebleu": sacrebleu.__version__},
        **kept,
    }
    RESULTS.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", "utf-8")


def show(name: str, made: dict[str, Any]) -> None:
    """Print the table of one run."""
    print(f"{name}: {made['test']['sources']:,} sources, {made['test']['pairs']:,} references")
    for way in ("greedy", "beam"):
        row = made[way]
        print(
            f"  {way:7} BLEU {row['bleu']:.2f} [{row['bleu_low']:.2f}, {row['bleu_high']:.2f}]"
            f"  chrF {row['chrf']:.2f}  exact {row['exact']:.1%}  {row['processor_seconds']:.0f} s"
        )
        for kind in ("by_length", "by_unseen_words"):
            cells = (f"{k} {v['bleu']:.1f} ({v['sentences']})" for k, v in row[kind].items())
            print("          " + "; ".join(cells))


def main() -> None:
    """Score one run and store the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--corpus", type=Path, nargs="+", default=[])
    parser.add_argument("--lines", type=Path, help="sentences to translate instead, one a line")
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--length-penalty", type=float, default=1.0)
    parser.add_argument("--no-store", action="store_true", help="print only")
    given = parser.parse_args()
    if given.lines is not None:
        lines = given.lines.read_text("utf-8").splitlines()
        translator = Translator.open(given.run)
        for found in translator.translate(
            lines, beam=given.beam, length_penalty=given.length_penalty
        ):
            print(f"{found.source}\n    {found.text}")
        return
    made = measure(given.run, given.corpus, given.beam, given.length_penalty)
    show(given.run.name, made)
    tables = rows_of(given.run.name, made, cost(given.run))
    if not given.no_store:
        store(given.run.name, tables)
    print(json.dumps(tables, ensure_ascii=False))


if __name__ == "__main__":
    main()
