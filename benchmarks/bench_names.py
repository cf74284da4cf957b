"""Are the names that `heed study heads` gives true? Decoders built by construction know.

    python benchmarks/bench_names.py

Ten models of the GPT-2 shape and ten of the Llama shape, each with sixteen heads whose roles
were built in (`heedful.studies.heads.behaviour`), as they are and with noise on every weight.
Noise is relative to a matrix's largest column. A head with much noise may no longer do what it was
built for: so beside what heads were built for stands what they do, on 24 other texts, by the keys
that the roles speak of (as much of the reading as a name promises). Names are held to that.

Prints a table and one JSON line; stores benchmarks/results/names.json.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from surroundings import surroundings

from heedful.stats import percent
from heedful.studies.heads.behaviour import construct, score_names
from heedful.views.blocks import table
from heedful.views.terminal import print_blocks

RESULTS = Path(__file__).parent / "results" / "names.json"
NOISE = (0.0, 0.1, 0.2, 0.3)
MODELS = 10


def rounded(share: tuple[float, float, float]) -> list[float | None]:
    """Return a share and its interval; nothing where there is none."""
    return [None if math.isnan(value) else round(value, 4) for value in share]


def main() -> None:
    """Score, print and store."""
    scores: dict[str, Any] = {}
    for noise in NOISE:
        models = [construct(s, n, noise=noise) for s in ("gpt2", "llama") for n in range(MODELS)]
        scored = score_names(models)
        scores[f"{noise:g}"] = [
            one.to_dict() | {"precision": rounded(one.precision), "recall": rounded(one.recall)}
            for one in scored
        ]
        shown = table(
            *(f"noise {noise:g}", "name", "built", "does", "given", "right", "precision", "recall")
        )
        for one in scored:
            counts = (str(one.built), str(one.does), str(one.given), str(one.right))
            rates = (one.precision, one.recall)
            said = ("–" if not (b - a < 1) else f"{percent(x)} ({percent(a)} to {percent(b)})"
                    for x, a, b in rates)  # fmt: skip
            shown.row(one.name, *counts, *said)
        print_blocks([shown])
    record = {
        "machine": surroundings("torch"),
        "models": 2 * MODELS,
        "heads": sum(one["built"] for one in scores["0"]),
        "noise": scores,
    }
    print(json.dumps(record))
    RESULTS.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
