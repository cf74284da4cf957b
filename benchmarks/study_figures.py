"""The figures of a translation study without its sentences: what the documentation cites.

    heed study translation --recipe benchmarks/recipes/study_tatoeba.toml … --output study-tatoeba
    python benchmarks/study_figures.py study-tatoeba/translation.json

    python benchmarks/study_figures.py study-tatoeba-again/translation.json --compare

A record of a study holds sentences of its corpus; the repository keeps none of these. Prints the
arms and what the study concludes, and stores both in benchmarks/results/study_tatoeba.json, or
under --name. --compare stores nothing: it says which figures differ from the stored ones, but for
minutes, the machine, and where the files lay.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from heedful.files import write_json

RESULTS = Path(__file__).parent / "results"
ARM = (
    *("arm", "pairs", "sentences", "bleu", "bleu_low", "bleu_high", "chrf", "exact", "gain"),
    *("p_value", "work", "work_before", "steps", "chosen", "epochs", "parameters", "trained"),
    *("computed_as", "minutes"),
)
SEED = ("seed", "bleu", "chrf", "loss", "steps", "chosen", "bleu_last", "work")
ELSEWHERE = frozenset({"minutes", "machine", "corpus", "monolingual"})
"""Fields that tell of the machine and of where the files lay."""
WHOLE = ("corpus", "fingerprint", "near", "comparisons", "unequal", "settings", "machine")


def kept(row: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """Return some fields of a record."""
    return {name: row[name] for name in names if name in row}


def means(seeds: list[dict[str, Any]]) -> dict[str, float]:
    """Return the scores of an arm as the means over its seeds."""
    found = {}
    for name in ("bleu", "chrf", "bleu_last"):
        values = [seed[name] for seed in seeds if seed[name] is not None]
        if values:
            found[f"{name}_mean"] = round(sum(values) / len(values), 4)
    return found


def arm_figures(arm: dict[str, Any]) -> dict[str, Any]:
    """Return what of an arm holds no sentence, with its means and its work in 10¹² operations."""
    work = {"work_tera": round(arm["work"] / 1e12, 4)} if "work" in arm else {}
    seeds = [kept(seed, SEED) for seed in arm["seeds"]]
    return kept(arm, ("model", "examples", *ARM)) | work | means(arm["seeds"]) | {"seeds": seeds}


def figures(record: dict[str, Any]) -> dict[str, Any]:
    """Return what of a study holds no sentence."""
    baselines = ("baseline", "pairs", "bleu", "bleu_low", "bleu_high", "chrf")
    prompted = record["prompted"]
    return {
        "question": "What is pretraining worth to a translator of few pairs?",
        **kept(record, WHOLE),
        "arms": [arm_figures(arm) for arm in record["arms"]],
        "prompted": prompted and arm_figures(prompted),
        "baselines": [kept(row, baselines) for row in record["baselines"]],
        "conclusions": [one["text"] for one in record["conclusions"]],
    }


def line(name: str, pairs: int, row: dict[str, Any]) -> str:
    """Return one arm as a line of the table."""
    several = [seed["bleu"] for seed in row["seeds"]]
    each = ", ".join(f"{value:.1f}" for value in several)
    return (
        f"{pairs:>6,}  {name:22} {sum(several) / len(several):5.1f}  ({each})  first seed "
        f"{row['bleu_low']:.1f} to {row['bleu_high']:.1f}  chrF {row['chrf']:.1f}  "
        f"{row.get('work', 0.0) / 1e12:.1f} · 10¹² operations"
    )


def differences(one: Any, other: Any, where: str = "") -> Iterator[str]:
    """Yield the places at which two records of figures differ, but for time and place."""
    if isinstance(one, dict) and isinstance(other, dict):
        for name in sorted({*one, *other} - ELSEWHERE):
            yield from differences(one.get(name), other.get(name), f"{where}.{name}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for place, (mine, theirs) in enumerate(zip(one, other, strict=True)):
            yield from differences(mine, theirs, f"{where}[{place}]")
    elif one != other:
        yield f"{where[1:]}: {one!r} instead of {other!r}"


def main() -> None:
    """Print and store the figures of one study."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("record", type=Path)
    parser.add_argument("--name", default="study_tatoeba", help="of the file among the results")
    parser.add_argument("--compare", action="store_true", help="with what is stored there")
    given = parser.parse_args()
    found = json.loads(json.dumps(figures(json.loads(given.record.read_text("utf-8")))))
    results = RESULTS / f"{given.name}.json"
    if given.compare:
        several = list(differences(found, json.loads(results.read_text("utf-8"))))
        print(*several[:40], f"{len(several)} of the figures differ", sep="\n")
        raise SystemExit(bool(several))
    for arm in sorted(found["arms"], key=lambda one: one["pairs"]):
        print(line(arm["arm"], arm["pairs"], arm))
    if found["prompted"]:
        print(line("elsewhere, prompted", 0, found["prompted"]))
    print(*found["conclusions"], sep="\n")
    write_json(results, found)


if __name__ == "__main__":
    main()
