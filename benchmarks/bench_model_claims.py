"""How much of what people say about models can be decided? And does `transformers` agree?

    python benchmarks/bench_model_claims.py [--translator RUN] [--stories FILE] [--smollm2]
    python benchmarks/bench_model_claims.py --part heads --stories FILE --smollm2
    python benchmarks/bench_model_claims.py --part tasks

`sheet` judges the statements of `model_claims/statements.toml` about a translator of our own
(trained here from `docs/examples/phrasebook.toml` if no run is given: a minute or two),
stories260K and SmolLM2. Every refutation by a text is computed once more with plain `transformers`
in float64, from a folder that Heedful exported, and must give the number shown. `heads` finds the
least weights of all heads of the first layer; `tasks` proves the accuracy of the largest-of-four
model and tries all its inputs. Prints a table and one line of JSON, and stores them in
results/model_claims.json. (Its part `exactness` is what `tests/model_claims/enumerated.py` finds.)
"""

from __future__ import annotations

import argparse
import datetime
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from heedful.claims.judge import judge_claim
from heedful.claims.language.tree import Compare
from heedful.claims.sheet import load_sheet
from heedful.claims.sheet.claim import Claim, ParsedFormula, read_claim
from heedful.claims.verdict import Verdict
from heedful.data.synthetic.phrasebook import monolingual
from heedful.files import write_json
from heedful.machine import cpu_name, load
from heedful.model import write_folder
from heedful.model_claims.first_layer import NAMED, FirstLayer, extremes
from heedful.model_claims.statements import (
    Meaning,
    NamedModel,
    TextEvaluator,
    TextValues,
    instances,
    open_model,
)
from heedful.model_claims.tasks import (
    LARGEST_OF_FOUR,
    MODULAR_SUM,
    enclosed_accuracy,
    enumerated_accuracy,
    proved_accuracy,
    train_task,
)

HERE = Path(__file__).parent
SHEET = HERE / "model_claims" / "statements.toml"
RESULTS = HERE / "results" / "model_claims.json"
RECIPE = HERE.parent / "docs" / "examples" / "phrasebook.toml"
SAME = 1e-6
"""How near the number of `transformers` must be, relative to the larger of 1 and the number."""
ENGLISH = (
    "Once upon a time there was a little girl named Lily.",
    "The dog ran in the park and saw a big red ball.",
    "Tom and his mom went to the store to buy some food.",
    "One day, a bird sat on a tree and sang a song.",
    "Lily was sad because her toy was lost.",
    "The cat and the mouse were good friends.",
    "He wanted to play with his new red car.",
    "The sun was hot and the kids ran to the sea.",
)


def translator(run: Path | None, scratch: Path) -> Path:
    """Return the run of a translator: the one given, or one trained now."""
    if run is None:
        run = scratch / "phrasebook"
        command = [sys.executable, "-m", "heedful", "train", str(RECIPE), "--run", str(run)]
        subprocess.run(command, check=True)
    return run


class TransformersTrace:
    """What `transformers` computes for a text, as far as statements speak of it."""

    def __init__(self, folder: Path, tokens: list[int]) -> None:
        import transformers

        model: Any = transformers.AutoModelForCausalLM.from_pretrained(
            folder, attn_implementation="eager", dtype=torch.float64
        )
        streams: list[Tensor] = []
        vectors: dict[str, list[Tensor]] = {"q_proj": [], "k_proj": []}
        width = model.config.head_dim
        for layer in model.model.layers:
            layer.register_forward_hook(
                lambda _, __, out: streams.append(out[0] if isinstance(out, tuple) else out)
            )
            for name, kept in vectors.items():
                getattr(layer.self_attn, name).register_forward_hook(
                    lambda _, __, out, kept=kept: kept.append(
                        out.unflatten(-1, (-1, width)).transpose(1, 2)
                    )
                )
        with torch.no_grad():
            out = model(torch.tensor([tokens]), output_attentions=True, output_hidden_states=True)
        layers = [
            SimpleNamespace(weights=weights, after=stream, queries=queries, keys=keys)
            for weights, stream, queries, keys in zip(
                out.attentions, streams, vectors["q_proj"], vectors["k_proj"], strict=True
            )
        ]
        self.trace: Any = SimpleNamespace(
            embedded=out.hidden_states[0], layers=layers, logits=out.logits
        )


def with_transformers(
    folder: Path, claim: Claim, verdict: Verdict, model: NamedModel
) -> tuple[float, float] | None:
    """Return the two sides of a refutation by a text, from the numbers of `transformers`.

    None where the refutation has no text: a mean over a corpus.
    """
    case = verdict.counterexample
    if case is None or "tokens" not in case.symbols:
        return None
    tokens = list(case.symbols["tokens"])
    formula: Any = read_claim(claim).expect[0]
    assert isinstance(formula, ParsedFormula)
    meaning = Meaning(model.decoder)
    values = TextValues(TransformersTrace(folder, tokens).trace, torch.tensor([tokens]))
    evaluator = TextEvaluator(meaning, values)
    indices = {name: value for name, value in case.symbols.items() if isinstance(value, int)}
    for one in instances(formula.tree, meaning, len(tokens)):
        same = all(indices.get(name) == value for name, value in one.env.items())
        if same and isinstance(one.statement, Compare):
            sides = (one.statement.left, one.statement.right)
            left, right = (float(evaluator.number(side, one.env)[0]) for side in sides)
            return left, right
    return None


class Sheet:
    """The statements about three models, judged one by one."""

    def __init__(self, scratch: Path, chosen: argparse.Namespace) -> None:
        self.scratch, self.seconds = scratch, chosen.seconds
        self.names = {}
        if not chosen.no_translator:
            self.names["TRANSLATOR"] = str(translator(chosen.translator, scratch))
        if chosen.stories is not None:
            self.names["STORIES"] = str(chosen.stories)
        if chosen.smollm2:
            self.names["SMOLLM2"] = "smollm2"
        french = [text for text in monolingual("fr", 4_000, seed=7) if len(text) > 8][:60]
        corpora = {"TRANSLATOR": french, "STORIES": ENGLISH, "SMOLLM2": ENGLISH}
        for name, texts in corpora.items():
            self._corpus(name).write_text("\n\n".join(texts), encoding="utf-8")
        self.rows: list[dict[str, Any]] = []

    def _corpus(self, name: str) -> Path:
        return self.scratch / f"{name.lower()}.txt"

    def run(self) -> list[dict[str, Any]]:
        """Judge all statements about the models that are there."""
        for claim in load_sheet(SHEET.read_text("utf-8")).claims:
            if claim.model in self.names:
                self.rows.append(self._judged(claim))
                print("  ".join(f"{value}" for value in self.rows[-1].values()), flush=True)
        return self.rows

    def _judged(self, claim: Claim) -> dict[str, Any]:
        name = str(claim.model)
        model = open_model(self.names[name])
        real = claim.changed(model=self.names[name], corpus=str(self._corpus(name)))
        began = time.process_time()
        verdict = judge_claim(real, seconds=self.seconds)
        row = {
            "id": claim.id,
            "says": claim.says,
            "verdict": verdict.verdict,
            "seconds": round(time.process_time() - began, 2),
            "number": "",
            "transformers": "",
            "agrees": "",
            "wrong": verdict.verdict != "undecided" and verdict.holds != (claim.says == "true"),
        }
        folder = self.scratch / name.lower()
        if verdict.verdict == "refuted" and not folder.exists():
            write_folder(model.decoder, folder, tokenizer=model.tokenizer)
        again = with_transformers(folder, real, verdict, model)
        if verdict.counterexample is not None and again is not None:
            left, right = verdict.counterexample.left, verdict.counterexample.right
            near = all(
                abs(ours - theirs) <= SAME * max(1.0, abs(ours))
                for ours, theirs in zip((left, right), again, strict=True)
            )
            row |= {
                "number": f"{left:.6g}",
                "transformers": f"{again[0]:.6g}",
                "agrees": "yes" if near else "no",
            }
        return row


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what a sheet comes to."""
    words = [row["verdict"] for row in rows]
    compared = [row for row in rows if row["transformers"]]
    refuted = sum(word == "refuted" for word in words)
    return {
        "statements": len(rows),
        "false": sum(row["says"] == "false" for row in rows),
        **{word: words.count(word) for word in sorted(set(words))},
        "decided": sum(word != "undecided" for word in words),
        "against what is true": sum(row["wrong"] for row in rows),
        "refutations by a text": len(compared),
        "agreeing with transformers": sum(row["agrees"] == "yes" for row in compared),
        "refutations by a mean over a corpus": refuted - len(compared),
        "processor seconds": round(sum(row["seconds"] for row in rows), 1),
    }


def heads(name: str, lengths: list[int], places: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the least weights of every head of the first layer, with their texts."""
    model, rows = open_model(name), []
    for head in range(model.decoder.config.attention.heads):
        began, start = time.perf_counter(), time.process_time()
        layer = FirstLayer(model.decoder, head, begin=model.begin)
        chosen = {place: NAMED[place] for place in places}
        found = extremes(layer, chosen, lengths, kinds=["least"], tokenizer=model.tokenizer)
        for one in found:
            rows.append(
                {
                    "head": head + 1,
                    "places": one.places,
                    "length": one.length,
                    "least weight": one.weight,
                    "certified": [f"{end:.12g}" for end in one.certified],
                    "place of the query": one.query + 1,
                    "text": one.text,
                    "made by the tokenizer": one.produced,
                    "processor seconds of the head": round(time.process_time() - start, 1),
                    "seconds of the head": round(time.perf_counter() - began, 1),
                }
            )
            print(rows[-1], flush=True)
    return rows


def tasks() -> list[dict[str, Any]]:
    """Return the accuracies of the two tasks, found in every way there is, with their cost."""
    rows = []
    for name, task in (("largest of four", LARGEST_OF_FOUR), ("modular sum", MODULAR_SUM)):
        start = time.process_time()
        decoder = train_task(task)
        trained = round(time.process_time() - start, 1)
        ways = (proved_accuracy, enumerated_accuracy)
        if task.kind == "sum":
            ways = (enclosed_accuracy, enumerated_accuracy)
        for way in ways:
            start, busy = time.process_time(), load()
            report = way(decoder, task)
            rows.append(
                {
                    "task": name,
                    "method": report.method,
                    "inputs": report.inputs,
                    "right": report.right,
                    "tried": report.tried,
                    "processor seconds": round(time.process_time() - start, 2),
                    "processor seconds of training": trained,
                    "load": busy,
                }
            )
            print(rows[-1], flush=True)
    return rows


def stored() -> dict[str, Any]:
    """Return the stored figures."""
    return json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}


def store(part: dict[str, Any]) -> None:
    """Put a part into the stored figures, beside what is there."""
    content = {"question": "What can be decided about trained models?", **stored(), **part}
    content["machine"] = {
        "cpu": cpu_name(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "load": load(),
    }
    write_json(RESULTS, content)


def main() -> None:
    """Run one part, and store its figures."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    options.add_argument("--part", choices=["sheet", "heads", "tasks"], default="sheet")
    options.add_argument("--translator", type=Path, help="a run trained on pairs")
    options.add_argument("--no-translator", action="store_true")
    options.add_argument("--stories", type=Path, help="stories260K.bin")
    options.add_argument("--smollm2", action="store_true")
    options.add_argument("--seconds", type=float, default=60.0, help="for each statement")
    chosen = options.parse_args()
    part: dict[str, Any] = {}
    if chosen.part == "tasks":
        part["tasks"] = tasks()
    elif chosen.part == "heads":
        if chosen.stories is not None:
            part["stories260K heads"] = heads(
                str(chosen.stories), [4, 16, 64], ("previous", "first", "self")
            )
        if chosen.smollm2:
            part["smollm2 heads"] = heads("smollm2", [8, 64], ("previous", "first"))
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            part["smollm2 heads, megabytes"] = round(peak / 1000)
    else:
        with tempfile.TemporaryDirectory() as scratch:
            judged = {row["id"]: row for row in Sheet(Path(scratch), chosen).run()}
            rows = [row for row in stored().get("statements", []) if row["id"] not in judged]
            part["statements"] = [*rows, *judged.values()]  # of models that are not here now, too
            part["sheet"] = summary(part["statements"])
    store(part)
    print(json.dumps(part, ensure_ascii=False))


if __name__ == "__main__":
    main()
