"""What does each change of the translator's recipe bring, by itself?

    python benchmarks/bench_ablation.py --tatoeba fra.txt.gz [--libreoffice FILE] [--novels FILE]
        [--jumbled FILE] [--runs FOLDER] [--only NAME ...] [--score] [--append]

Every row is a training of its own by recipes/ablation.toml with one thing changed, of as many steps
and tokens; rows whose files are not given are left out. Trainings are runs in a folder: finished
ones are found, an interrupted one goes on. Then each translates the held-out sentences of Tatoeba
(600 at even distances and all of 11 words and more; the test part stays untouched) with 5 beams.
Gains over the recipe as it is come with a paired bootstrap over the sentences; what another seed
changes is the difference of the rows `the same, seed 1` and `the same, seed 2`. Changes of the
search use the weights of the recipe as it is, and changes of the ranking choose among the 16 texts
that its beams found:

    minimum length   texts with fewer than 0.8 tokens for each token of the source come last
    coverage         + 0.2 Σ_j log min(1, Σ_i a_ij) per token, a_ij the attention of target token i
                     to source token j, the mean over all heads (Wu et al. 2016, arXiv:1609.08144)
    way back         + 0.2 log p(source | text) per token, by the package's en-fr

A sitting is a row for each run of a folder, all of one processor, with a base of its own. Stores it
in benchmarks/results/ablation.json; with --append, beside the sittings that are there. --score only
scores runs that are finished.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from bench_reverse import LONGER, held_out, measured
from score_translation import cost
from surroundings import surroundings

from heedful.data.splits import References
from heedful.errors import HeedfulError
from heedful.files import write_json
from heedful.studies.translation import Translator
from heedful.studies.translation.scoring import paired_gain
from heedful.studies.translation.translator import Hypothesis, is_run
from heedful.training.runs import finished_run

HERE = Path(__file__).parent
RECIPE = HERE / "recipes" / "ablation.toml"
RESULTS = HERE / "results" / "ablation.json"
BASE = "the recipe as it is"
BEAMS, CANDIDATES = 5, 16
LEAST, COVERAGE, WAY_BACK = 0.8, 0.2, 0.2
"""Tokens for each token of the source at least; the weights of coverage and of the way back."""

Ranking = Callable[[Translator, str, tuple[Hypothesis, ...]], list[float]]
"""Scores the texts that were found for a source."""


def not_shorter(translator: Translator, source: str, found: tuple[Hypothesis, ...]) -> list[float]:
    """Put texts that are too short for their source behind all others."""
    least = LEAST * len(translator.prompt(source)[0])
    return [one.score - (100.0 if len(one.tokens) < least else 0.0) for one in found]


@torch.no_grad()
def covering(translator: Translator, source: str, found: tuple[Hypothesis, ...]) -> list[float]:
    """Add what of the source the attention of each text has covered."""
    prompt, _ = translator.prompt(source)
    opening = 0 if translator.marks.begin is None else 1
    scores = []
    for one in found:
        trace = translator.decoder.trace(torch.tensor([[*prompt, *one.tokens[:-1]]]))
        weights = torch.stack([layer.weights for layer in trace.layers]).mean(dim=(0, 2))[0]
        read = weights[len(prompt) - 1 :, opening : len(prompt) - 1]
        read = read / read.sum(dim=1, keepdim=True)  # of what goes to the source
        covered = read.sum(dim=0).clamp(min=1e-9, max=1.0).log().sum()
        scores.append(one.score + COVERAGE * float(covered) / len(one.tokens))
    return scores


def back_again(translator: Translator, source: str, found: tuple[Hypothesis, ...]) -> list[float]:
    """Ask the model for the way back, without a reward for words."""
    assert translator.reverse is not None
    texts = [one.text for one in found]
    logs = translator.reverse.log_probabilities(texts, [source] * len(texts))
    return [one.score + WAY_BACK * log for one, log in zip(found, logs, strict=True)]


@dataclass(frozen=True)
class Change:
    """One row: what is set otherwise, in the training or in the search."""

    settings: tuple[str, ...] = ()
    """As `heed train --set` takes them."""
    search: dict[str, Any] = field(default_factory=dict)
    """As `Translator.translate` takes them."""
    ranking: Ranking | None = None
    """Chooses among the texts of the beams."""
    file: str = ""
    """Which of the files of the command line are added to the pairs."""


CHANGES: dict[str, Change] = {
    BASE: Change(),
    "the same, seed 1": Change(("seed=1",)),
    "the same, seed 2": Change(("seed=2",)),
    "pairs joined to longer ones (30 %)": Change(
        ("data.variation.rounds=2", "data.variation.joined=0.3")
    ),
    "names and numbers exchanged (40 %)": Change(
        ("data.variation.rounds=2", "data.variation.renamed=0.4")
    ),
    "rarer words exchanged for others (30 %)": Change(
        ("data.variation.rounds=2", "data.variation.exchanged=0.3")
    ),
    "words and phrases of the pairs (30 %)": Change(
        ("data.variation.rounds=2", "data.variation.phrases=0.3")
    ),
    "sentences of the LibreOffice help added": Change(("data.added=8000",), file="libreoffice"),
    "novels with written French added": Change(("data.added=20000",), file="novels"),
    "novels to be restored added": Change(("data.added=20000",), file="jumbled"),
    "sources learned too": Change(('data.learn="all"',)),
    "embeddings drawn at random": Change(('data.embeddings="random"',)),
    "twice the tokens a step, half the steps": Change(
        ("data.rows=32", "steps=225", "schedule.warmup=25")
    ),
    "4,000 byte pairs": Change(("data.vocabulary=4000",)),
    "16,000 byte pairs": Change(("data.vocabulary=16000",)),
    "8 layers of 136": Change(
        (
            "model.layers=8",
            "model.width=136",
            "model.attention.heads=2",
            "model.attention.head_width=68",
            "model.feed_forward.width=372",
        )
    ),
    "2 layers of 272": Change(
        (
            "model.layers=2",
            "model.width=272",
            "model.attention.heads=4",
            "model.feed_forward.width=744",
        )
    ),
    "no label smoothing": Change(("label_smoothing=0.0",)),
    "dropout 0.1": Change(("model.dropout.residual=0.1",)),
    "no average of the weights": Change(("average=1e-9",)),
    "AdamW instead of Muon": Change(('optimiser.kind="adamw"', "optimiser.learning_rate=2e-3")),
    "greedy search": Change(search={"beam": 1}),
    "16 beams": Change(search={"beam": 16}),
    "length penalty 0.6": Change(search={"length_penalty": 0.6}),
    "length penalty 1.4": Change(search={"length_penalty": 1.4}),
    f"{CANDIDATES} beams, minimum length {LEAST}": Change(ranking=not_shorter),
    f"{CANDIDATES} beams, coverage {COVERAGE}": Change(ranking=covering),
    f"{CANDIDATES} beams, way back {WAY_BACK}": Change(ranking=back_again),
}


def train(name: str, change: Change, given: argparse.Namespace) -> Path:
    """Train a row in its folder, or find it trained; return the folder."""
    folder: Path = given.runs / _folder(name)
    if _finished(folder):
        return folder
    settings = list(change.settings)
    if change.file:
        settings.append(f"data.added_files={json.dumps([str(getattr(given, change.file))])}")
    words = ["train", str(RECIPE), "--files", str(given.tatoeba), "--run", str(folder)]
    words += ["--set", *settings] if settings else []
    if is_run(folder):
        words = ["resume", str(folder)]
    threads = os.environ | {"OMP_NUM_THREADS": "1"}  # several rows may be trained side by side
    subprocess.run([sys.executable, "-m", "heedful", *words], check=True, env=threads)
    return folder


def _folder(name: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in name).strip("-")


def _finished(folder: Path) -> bool:
    try:
        return finished_run(folder) is not None
    except HeedfulError:
        return False


def translated(change: Change, translator: Translator, wanted: References) -> list[str]:
    """Return the texts of a row."""
    if change.ranking is None:
        search = {"beam": BEAMS} | change.search
        return [one.text for one in translator.translate(wanted.sources, **search)]
    forward = Translator(translator.decoder, translator.tokenizer, translator.format)
    texts = []
    for one in forward.translate(wanted.sources, beam=CANDIDATES, nbest=CANDIDATES):
        scores = change.ranking(translator, one.source, one.hypotheses)
        texts.append(one.hypotheses[scores.index(max(scores))].text)
    return texts


def opened(folder: Path) -> Translator:
    """Open a run, with the package's model for the way back beside it."""
    forward = Translator.open(folder)
    back = Translator.open("en-fr", reverse=False)
    return Translator(forward.decoder, forward.tokenizer, forward.format, reverse=back)


def score(given: argparse.Namespace) -> list[dict[str, Any]]:
    """Score every row that is trained, and print it."""
    wanted = held_out(given.tatoeba, "fr", 600)
    rows: list[dict[str, Any]] = []
    base: list[str] = []
    for name, change in CHANGES.items():
        of_search = bool(change.search) or change.ranking is not None
        folder = given.runs / _folder(BASE if of_search else name)
        if not _finished(folder):
            print(f"{name:40} not trained")
            continue
        back = change.ranking is not None
        translator = opened(folder) if back else Translator.open(folder, reverse=False)
        texts = translated(change, translator, wanted)
        base = base or texts
        gain = paired_gain(texts, base, wanted.targets)
        spent = {} if of_search else cost(folder)
        rows.append({"change": name, "settings": change.settings, "search": change.search,
                     "gain": round(gain.value, 2), "gain_low": round(gain.low, 2),
                     "gain_high": round(gain.high, 2), "p": gain.p_value, "cost": spent,
                     **measured(wanted, texts)})  # fmt: skip
        one = rows[-1]
        print(
            f"{name:40} BLEU {one['all']['bleu']:.1f}  gain {gain.value:+.1f} "
            f"({gain.low:+.1f} to {gain.high:+.1f})  chrF {one['all']['chrf']:.1f}  drops "
            f"{one['all']['dropped']:.1%}, longer {one['longer']['bleu']:.1f} "
            f"{one['longer']['dropped']:.1%}",
            flush=True,
        )
    return rows


def main() -> None:
    """Train every row that was asked for, and score all that are trained."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tatoeba", type=Path, required=True)
    parser.add_argument("--libreoffice", type=Path)
    parser.add_argument("--novels", type=Path, help="written by back_translate.py")
    parser.add_argument("--jumbled", type=Path, help="written by back_translate.py --jumbled")
    parser.add_argument("--runs", type=Path, default=Path("runs-ablation"))
    parser.add_argument("--only", nargs="+", choices=list(CHANGES), help="rows to train")
    parser.add_argument("--score", action="store_true", help="train nothing")
    parser.add_argument("--append", action="store_true", help="keep the sittings that are stored")
    given = parser.parse_args()
    for name, change in CHANGES.items():
        there = not change.file or getattr(given, change.file) is not None
        trains = not change.search and change.ranking is None
        if not given.score and there and trains and name in (given.only or CHANGES):
            train(name, change, given)
    if given.only:
        return
    stored = json.loads(RESULTS.read_text("utf-8"))["sittings"] if given.append else []
    sitting = {"machine": surroundings("torch", "sacrebleu"), "rows": score(given)}
    write_json(RESULTS, {
        "question": __doc__.splitlines()[0],
        "longer": f"{LONGER} words and more",
        "sittings": [*stored, sitting],
    })  # fmt: skip


if __name__ == "__main__":
    main()
