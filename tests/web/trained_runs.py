"""Two trainings of a moment, for tests of the Models view."""

from __future__ import annotations

from pathlib import Path

from heedful.cli.main import main
from heedful.model import Decoder, preset, write_folder
from heedful.studies.knowledge import asker
from heedful.studies.knowledge.answers import Answerer
from heedful.studies.knowledge.corpus import embedded
from heedful.studies.knowledge.plans import QUICK, Shape, Stage
from heedful.studies.knowledge.training import prepare, pretrain
from heedful.tokenization import bytes_of_utf8

TRAINING = """
steps = {steps}
log_every = {log_every}
tensorboard = false
[model]
preset = "tiny"
initial_std = 0.3
[schedule]
warmup = 1
[data]
source = "phrasebook"
size = 60
held_out = 20
rows = 4
width = 96
tokenizer = "bytes"
[compute]
precision = "float32"
lanes = 1
compile = false
"""
"""Nothing is left open: a training without end would try the compiler first, for half a minute."""
STAGE = Stage(epochs=1, rows=32, learning_rate=1e-2)
RECIPE = QUICK.changed(shape=Shape(width=16, layers=1, heads=2), pretraining=STAGE)
PEOPLE = embedded(24, exposures=1, phrasings=1, unseen_share=0.4, sentences=1)


def written(folder: Path, name: str, steps: int, log_every: int = 1) -> Path:
    """Write the settings of a training of the translator; return their file."""
    file = folder / f"{name}.toml"
    file.write_text(TRAINING.format(steps=steps, log_every=log_every), encoding="utf-8")
    return file


def train_both(folder: Path) -> None:
    """Train a translator (`pairs`), and a model that can be asked about invented people."""
    config = written(folder, "pairs", steps=3)
    assert main(["train", str(config), "--run", str(folder / "pairs"), "--json"]) == 0
    material = prepare(PEOPLE, RECIPE)
    run = pretrain(material, folder, label="people", positions="rotary")
    settings = asker.AskSettings(
        temperature=1.0,
        threshold=0.99,
        wanted_error=0.1,
        longest_answer=Answerer.of(run.decoder(), material).longest_answer,
    )
    asker.keep_for_asking(run.folder, material.tokenizer, settings, PEOPLE)


def write_reader(folder: Path) -> None:
    """Write a model with random weights that reads 256 bytes of text."""
    decoder = Decoder(preset("tiny", context=256), seed=1)
    write_folder(decoder, folder, tokenizer=bytes_of_utf8())
