"""Which method knows where the words of a translation come from: ours, and those of Inseq?

    python benchmarks/bench_attribution.py [RUN] [--inseq FOLDER] [--sentences 100]

`heed study attribution` on a translator (unless one is named, that which `make lab` trains from
scratch on 8,000 pairs), and beside it the methods of Inseq on the same weights as `transformers`
reads them, on the same sentences, counted alike. Inseq wants packages that nothing else here needs,
so it is installed apart and named by its folder:

    pip install --no-deps --target FOLDER inseq captum treescope

Inseq gets the same tokens (this is checked) and its own defaults; of gradients the norm is taken,
as its `aggregate` does; attention is the mean over all heads of all layers. Prints a table and one
JSON line; stores benchmarks/results/attribution.json.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from surroundings import surroundings

from heedful.studies.exporting import export
from heedful.studies.translation.attribution import (
    NO_OTHERS,
    ForcedTranslation,
    Scores,
    reading_of,
    study_attribution,
    words_of,
)
from heedful.studies.translation.translator import Translator
from heedful.views.terminal import print_blocks
from heedful.views.translation import attribution_blocks

RESULTS = Path(__file__).parent / "results" / "attribution.json"
TRAINED = "lab/translation/runs/scratch-8000-*"
METHODS = ("attention", "input_x_gradient", "integrated_gradients", "occlusion", "value_zeroing")
"""Of Inseq: beside ours in this order, and one that we have not."""


def inseq_methods(
    folder: Path, model: Path, translator: Translator
) -> tuple[dict[str, Callable[[ForcedTranslation], Scores]], dict[str, str]]:
    """Return the methods of Inseq on an exported model by name, and why others do not run."""
    sys.path.append(str(folder))
    import inseq

    found: dict[str, Callable[[ForcedTranslation], Scores]] = {}
    failed: dict[str, str] = {}
    text = "Je suis ici."
    tokens = translator.tokenizer.encode("I am here.")
    trial = reading_of(translator, text, tokens, words_of(translator, text, tokens)[0])
    for method in METHODS:
        name = f"Inseq {method}"
        try:
            tried = InseqMethod(inseq.load_model(str(model), method), translator)
            tried(trial)
        except Exception as error:  # whatever another program raises is the finding
            failed[name] = f"{type(error).__name__}: {error}".splitlines()[0][:200]
            print(f"{name} does not run here: {failed[name]}", flush=True)
        else:
            found[name] = tried
    return found, failed


class InseqMethod:
    """One method of Inseq: the score of every source token for every target token."""

    def __init__(self, model: Any, translator: Translator) -> None:
        self.model, self.core = model, translator.tokenizer.core

    def __call__(self, reading: ForcedTranslation) -> Scores:
        """Return the scores for one sentence and its translation."""
        prompt, whole = list(reading.prompt), [*reading.prompt, *reading.target]
        begin, text = (self.core.decode(ids, skip_special_tokens=False) for ids in (prompt, whole))
        encoded = self.model.tokenizer(text, add_special_tokens=False)["input_ids"]
        if encoded != whole:
            raise SystemExit(f"{text!r} has other tokens in transformers: {encoded}, not {whole}")
        out = self.model.attribute(
            begin, text, show_progress=False, attr_pos_start=len(prompt), skip_special_tokens=False
        )
        (one,) = out.sequence_attributions
        assert [token.id for token in one.target] == whole
        found = one.target_attributions
        while found.ndim > 2:  # of gradients the width; of attention layers and heads
            found = (
                found.mean(-1)
                if "attention" in out.info["attribution_method"]
                else found.norm(dim=-1)
            )
        columns = np.asarray(found)[reading.sources, -len(reading.target) :]
        return np.nan_to_num(columns.T.astype(np.float64))


def main() -> int:
    """Try, print, store."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("run", type=Path, nargs="?")
    options.add_argument("--inseq", type=Path)
    options.add_argument("--sentences", type=int, default=100)
    chosen = options.parse_args()
    run = chosen.run or next(iter(Path().glob(TRAINED)), None)
    if run is None:
        sys.exit(f"no run was named, and there is no {TRAINED}: `make lab` leaves one")
    translator = Translator.open(run)
    others: Any = NO_OTHERS
    failed: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="heedful-inseq-") as place:
        if chosen.inseq is not None:
            exported = Path(place) / "model"
            export(run, exported)
            others, failed = inseq_methods(chosen.inseq, exported, translator)
        record = study_attribution(translator, run.name, sentences=chosen.sentences, others=others)
    print_blocks(attribution_blocks(record))
    stored = {
        "benchmark": "attribution",
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": surroundings("torch", "transformers"),
        **json.loads(record.to_json()),
        "not_run": failed,
    }
    RESULTS.write_text(json.dumps(stored, indent=2, ensure_ascii=False) + "\n", "utf-8")
    print(json.dumps(stored, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
