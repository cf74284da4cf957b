"""How good is a translator after 10, 20 and 40 processor minutes, beside JoeyNMT?

    pip install --no-deps --target FOLDER joeynmt==2.3.0 sentencepiece==0.2.0 \\
        subword-nmt sacremoses datasets
    OMP_NUM_THREADS=1 python benchmarks/bench_joey.py fra.txt.gz --joeynmt FOLDER
    OMP_NUM_THREADS=1 python benchmarks/bench_joey.py fra.txt.gz --minutes 0.5 --most 50

Both learn from the same part of Tatoeba, split by linked groups as benchmarks/recipes/
translator.toml has it, with 8,000 ids of byte pairs (SentencePiece for JoeyNMT), and
translate the same test sources with beam 5; BLEU is sacreBLEU's, with every reference.

JoeyNMT has the settings that it documents for its small Transformer of IWSLT14, a corpus of as
many pairs: 6 + 6 layers of width 256, Adam at 3e-4 with a plateau, 4,096 tokens a batch, dropout
0.3. Its weights are kept whenever its processor time passes a budget; validations, and what comes
before the first step, are not on that clock. These settings are for hours on a graphics card, so
JoeyNMT has a second side whose settings were fitted to such budgets (FITTED): 3 + 3 layers of width
192, and a rate that warms up within minutes. Batch and rate have the least loss after three minutes
(5.29 with 2,048 tokens a batch, 3.75 with 1,024, 3.42 with 512; 3.86 with 1,024 at half the rate).
Our recipe ends in a decay, so that it is trained once for each budget: its steps are the budget,
less what comes before the first step, by the time of a step, measured on a few. Both compute in
float32, which is all that JoeyNMT has on a processor. Where JoeyNMT is not at hand, a line says so
and ours goes on. Newer versions of sentencepiece lack a method that it calls.

Prints a line for each side and budget as soon as it is scored, and stores it in
benchmarks/results/joey.json with the machine that it was measured on; other rows stay as they are.
So two cores can measure one side each at once (--sides), and one budget can be measured by itself.
Weights of JoeyNMT are kept in a folder (--work): a second call there only scores them.

JoeyNMT's search ends after 1.5 times as many tokens as the longest source of a batch has, which is
what it does where nothing else is set, and sources come to it sorted by length. Its documented 100
tokens would take hours here: early weights never end a sentence, and no keys are cached.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from score_translation import scored
from surroundings import surroundings

from heedful.data.corpus import Pairs
from heedful.data.splits import References, references
from heedful.files import write_json
from heedful.studies.text_training import CorpusParts, TextData, TextTraining, prepare, read_parts
from heedful.studies.translation import Translator
from heedful.studies.translation.translator import format_of, keep_model
from heedful.training import Hooks, train
from heedful.training.config import merged, read_values
from heedful.training.hooks import TrainingResult
from heedful.training.runs import trained_decoder

HERE = Path(__file__).parent
RECIPE, RESULTS = HERE / "recipes" / "translator.toml", HERE / "results" / "joey.json"
MINUTES = (10.0, 20.0, 40.0)
JOEY, FITTED, OURS = "JoeyNMT 2.3.0", "JoeyNMT 2.3.0, fitted", "heedful"
SIDES = (JOEY, FITTED, OURS)
RATE = 2e-3
IDS, BEAM, TRIAL = 8_000, 5, 20
LAYERS: dict[str, Any] = {
    "type": "transformer",
    "num_layers": 6,
    "num_heads": 4,
    "embeddings": {"embedding_dim": 256, "scale": True, "dropout": 0.0},
    "hidden_size": 256,
    "ff_size": 1024,
    "dropout": 0.3,
}
LEARN = """
import json, sys, time
from pathlib import Path
import sentencepiece
from joeynmt import builders, training
from joeynmt.config import load_config
from joeynmt.helpers import make_model_dir

folder, budgets = Path(sys.argv[1]), json.loads(sys.argv[2])
sentencepiece.SentencePieceTrainer.train(
    input=",".join(str(folder / f"train.{side}") for side in ("fr", "en")),
    model_prefix=str(folder / "pieces"), vocab_size=int(sys.argv[3]), model_type="bpe",
    character_coverage=1.0, unk_id=0, pad_id=1, bos_id=2, eos_id=3,
    pad_piece="<pad>", minloglevel=2,
)
pieces = [line.split("\\t")[0] for line in open(folder / "pieces.vocab", encoding="utf-8")]
(folder / "vocab.txt").write_text("\\n".join(pieces[4:]) + "\\n", encoding="utf-8")
cfg = load_config(folder / "config.yaml")
make_model_dir(Path(cfg["model_dir"]), overwrite=True)
spent = {"validating": 0.0, "began": None}
losses = []

class Manager(training.TrainManager):
    def _validate(self, data):
        began = time.process_time()
        super()._validate(data)
        spent["validating"] += time.process_time() - began

    def _train_step(self, batch):
        now = time.process_time() - spent["validating"]
        spent["began"] = now if spent["began"] is None else spent["began"]
        if now - spent["began"] >= 60 * budgets[0]:
            began = time.process_time()
            self._save_checkpoint(False, float("nan"))
            path = Path(self.model_dir) / f"{self.stats.steps}.ckpt"
            path.rename(folder / f"at-{budgets[0]:g}.ckpt")
            size = sum(value.numel() for value in self.model.parameters())
            row = {"minutes": budgets[0], "steps": self.stats.steps,
                "processor_minutes": (now - spent["began"]) / 60, "parameters": size,
                "loss": sum(losses[-100:]) / 100}
            (folder / f"at-{budgets.pop(0):g}.json").write_text(json.dumps(row))
            spent["validating"] += time.process_time() - began
            if not budgets:
                raise KeyboardInterrupt
        found = super()._train_step(batch)
        losses.append(found[0])
        return found

class Plateau(builders.ReduceLROnPlateau):
    def __init__(self, *given, verbose=False, **named):  # which torch no longer takes
        super().__init__(*given, **named)

builders.ReduceLROnPlateau = Plateau
training.TrainManager = Manager
training.train(0, None, cfg, skip_test=True)
"""
"""What runs beside JoeyNMT: pieces, then a training that leaves its weights on the way."""


def joey_config(folder: Path, rate: float | None) -> dict[str, Any]:
    """Return the settings of JoeyNMT's small Transformer, for these files; with a rate: fitted."""
    side = {
        "max_length": 100,
        "lowercase": False,
        "normalize": False,
        "level": "bpe",
        "tokenizer_type": "sentencepiece",
        "tokenizer_cfg": {"model_file": str(folder / "pieces.model")},
        "voc_file": str(folder / "vocab.txt"),
    }
    documented = {
        "name": "tatoeba",
        "model_dir": str(folder / "model"),
        "use_cuda": False,
        "fp16": False,
        "random_seed": 42,
        "num_workers": 0,
        "data": {
            "train": str(folder / "train"),
            "dev": str(folder / "dev"),
            "dataset_type": "plain",
            "src": {"lang": "fr", **side},
            "trg": {"lang": "en", **side},
        },
        "testing": {
            "beam_size": BEAM,
            "beam_alpha": 1.0,
            "batch_size": 1024,
            "batch_type": "token",
            "max_output_length": -1,
            "eval_metrics": ["bleu"],
        },
        "training": {
            "optimizer": "adam",
            "normalization": "tokens",
            "adam_betas": [0.9, 0.999],
            "scheduling": "plateau",
            "patience": 5,
            "decrease_factor": 0.7,
            "loss": "crossentropy",
            "learning_rate": 0.0003,
            "learning_rate_min": 1e-8,
            "label_smoothing": 0.1,
            "batch_size": 4096,
            "batch_type": "token",
            "early_stopping_metric": "bleu",
            "epochs": 100,
            "validation_freq": 1000,
            "logging_freq": 100,
            "shuffle": True,
            "print_valid_sents": [0],
            "keep_best_ckpts": 1,
        },
        "model": {
            "initializer": "xavier_uniform",
            "embed_initializer": "xavier_uniform",
            "bias_initializer": "zeros",
            "init_gain": 1.0,
            "embed_init_gain": 1.0,
            "tied_embeddings": True,
            "tied_softmax": True,
            "encoder": LAYERS,
            "decoder": LAYERS,
        },
    }
    return documented if rate is None else merged(documented, fitted(rate))


def fitted(rate: float) -> dict[str, Any]:
    """Return what is other where the settings are to suit budgets of minutes on one core."""
    layers = {
        "num_layers": 3,
        "num_heads": 3,
        "embeddings": {"embedding_dim": 192},
        "hidden_size": 192,
        "ff_size": 768,
        "dropout": 0.1,
        "layer_norm": "pre",
    }
    return {
        "training": {
            "adam_betas": [0.9, 0.98],
            "scheduling": "warmupinversesquareroot",
            "learning_rate": rate,
            "learning_rate_warmup": 300,
            "learning_rate_min": 1e-5,
            "batch_size": 512,
            "validation_freq": 10**6,
        },
        "model": {"encoder": layers, "decoder": layers},
    }


def write_files(parts: CorpusParts, folder: Path, rate: float | None) -> None:
    """Write the split as JoeyNMT reads it."""
    for name, pairs in (("train", parts.train), ("dev", parts.held_out)):
        assert isinstance(pairs, Pairs)
        for language, texts in zip(("fr", "en"), pairs.sides, strict=True):
            lines = "".join(f"{' '.join(text.split())}\n" for text in texts)
            (folder / f"{name}.{language}").write_text(lines, "utf-8")
    (folder / "config.yaml").write_text(as_yaml(joey_config(folder, rate)), "utf-8")


def as_yaml(config: dict[str, Any]) -> str:
    """Write settings as YAML, which JSON is but for numbers: 1e-08 would be a text there."""
    return re.sub(r"(?<=[ :])(\d+)(?=e-)", r"\1.0", json.dumps(config))


def of_joey(
    parts: CorpusParts,
    test: References,
    minutes: list[float],
    library: Path,
    folder: Path,
    rate: float | None,
) -> Iterator[dict[str, Any]]:
    """Train JoeyNMT, or find it trained, and score its weights at each budget."""
    known = {**os.environ, "PYTHONPATH": str(library)}
    rows = [folder / f"at-{budget:g}.json" for budget in minutes]
    if not all(row.exists() for row in rows):
        write_files(parts, folder, rate)
        words = [sys.executable, "-c", LEARN, str(folder), json.dumps(minutes), str(IDS)]
        done = subprocess.run(words, env=known, capture_output=True, text=True, check=False)
        if not rows[0].exists():
            print("JoeyNMT: not measured;", (done.stderr.strip().splitlines() or ["no output"])[-1])
    order = sorted(range(len(test.sources)), key=lambda i: len(test.sources[i]))
    sources = "".join(f"{' '.join(test.sources[i].split())}\n" for i in order)
    for row in (json.loads(row.read_text("utf-8")) for row in rows if row.exists()):
        config = joey_config(folder, rate)
        config["testing"]["load_model"] = str(folder / f"at-{row['minutes']:g}.ckpt")
        (folder / "test.yaml").write_text(as_yaml(config), "utf-8")
        made = subprocess.run(
            [sys.executable, "-m", "joeynmt", "translate", str(folder / "test.yaml")],
            env=known, input=sources, capture_output=True, text=True, check=False,
        )  # fmt: skip
        lines = made.stdout.splitlines()[-len(order) :]
        if made.returncode or len(lines) != len(order):
            print("JoeyNMT: no translations;", (made.stderr.strip().splitlines() or ["?"])[-1])
            continue
        texts = [text for _, text in sorted(zip(order, lines, strict=True))]
        yield {"side": JOEY if rate is None else FITTED, **row, **scored(texts, test.targets)}


def of_ours(
    values: dict[str, Any], test: References, minutes: float, folder: Path
) -> dict[str, Any]:
    """Train our recipe with as many steps as fit into a budget, and score it.

    All that comes before the first step counts too: byte pairs, and which tokens translate which.
    """
    warmup = int(values["schedule"]["warmup"])

    def learn(steps: int, where: Path, hooks: Hooks) -> tuple[TextTraining, TrainingResult, float]:
        """Return what was trained, how it ended, and the processor seconds of all of it."""
        began = time.process_time()
        rare = {"evaluate_every": 10**6, "save_every": 10**6}
        fitting = {"schedule": {"warmup": min(warmup, steps // 5)}}
        made = prepare(merged(values, {"steps": steps, **rare, **fitting}))
        hooks = replace(hooks, adapt=made.adapt)
        result = train(made.config, made.batches, where, data=made.hashes, hooks=hooks)
        return made, result, time.process_time() - began

    ends: list[float] = []
    hooks = Hooks(report=lambda _state: ends.append(time.process_time()))
    *_, seconds = learn(TRIAL, folder / "trial", hooks)
    each = (ends[-1] - ends[3]) / (len(ends) - 4)  # the first ones warm up
    before = seconds - TRIAL * each
    run = folder / "run"
    made, result, seconds = learn(max(round((60 * minutes - before) / each), 10), run, Hooks())
    keep_model(run, lambda: trained_decoder(run), made.tokenizer, format_of(made))
    texts = Translator.open(run).texts(test.sources, beam=BEAM)
    return {
        "side": OURS,
        "minutes": minutes,
        "steps": result.step,
        "processor_minutes": seconds / 60,
        "parameters": result.parameters,
        **scored(texts, test.targets),
    }


def measured(
    given: argparse.Namespace,
    values: dict[str, Any],
    parts: CorpusParts,
    test: References,
    folder: Path,
) -> Iterator[dict[str, Any]]:
    """Yield the rows of the sides and budgets that were asked for."""
    minutes = sorted(given.minutes)
    for side, rate in ((JOEY, None), (FITTED, given.rate)):
        if side not in given.sides:
            continue
        if given.joeynmt is None:
            print(f"{side}: not at hand (--joeynmt FOLDER)")
            continue
        own = folder / ("documented" if rate is None else f"fitted-{rate:g}")
        own.mkdir(exist_ok=True)
        yield from of_joey(parts, test, minutes, given.joeynmt.resolve(), own, rate)
    for budget in minutes if OURS in given.sides else ():
        yield of_ours(values, test, budget, folder / f"ours-{budget:g}")


def store(row: dict[str, Any]) -> None:
    """Put a row in the place of the former one of its side and budget."""
    stored = json.loads(RESULTS.read_text("utf-8"))["rows"] if RESULTS.exists() else []
    key = (row["side"], row["minutes"])
    rows = [one for one in stored if (one["side"], one["minutes"]) != key]
    rows = sorted([*rows, row], key=lambda one: (one["side"], one["minutes"]))
    write_json(RESULTS, {"question": __doc__.splitlines()[0], "rows": rows})


def main() -> None:
    """Measure the sides, and store the figures of whole budgets."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path, help="fra.txt.gz of Tatoeba")
    parser.add_argument("--joeynmt", type=Path, help="the folder that it was installed into")
    parser.add_argument("--minutes", type=float, nargs="+", default=list(MINUTES))
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=SIDES)
    parser.add_argument("--rate", type=float, default=RATE, help="of the fitted settings")
    parser.add_argument("--work", type=Path, help="keep JoeyNMT's weights here")
    parser.add_argument("--most", type=int, help="test sources, at most; nothing is stored then")
    given = parser.parse_args()
    values = merged(
        read_values(RECIPE),
        {"data": {"files": [str(given.corpus)]}, "compute": {"precision": "float32"}},
    )
    parts = read_parts(TextData.of(values["data"]))
    assert isinstance(parts.test, Pairs)
    test = references(parts.test)
    test = References(sources=test.sources[: given.most], targets=test.targets[: given.most])
    where = surroundings("torch")
    with tempfile.TemporaryDirectory() as place:
        work = given.work or Path(place)
        work.mkdir(parents=True, exist_ok=True)
        for row in measured(given, values, parts, test, work.resolve()):
            print(
                f"{row['side']:22} {row['minutes']:5g} min ({row['processor_minutes']:.1f} used), "
                f"{row['steps']:6,} steps, {row['parameters']:,} parameters: BLEU "
                f"{row['bleu']:.1f} ({row['bleu_low']:.1f} to {row['bleu_high']:.1f}), "
                f"chrF {row['chrf']:.1f}",
                flush=True,
            )
            if given.most is None and row["minutes"] in MINUTES:
                store(row | {"machine": where})


if __name__ == "__main__":
    main()
