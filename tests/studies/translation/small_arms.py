"""A study at a size where nothing is learned and everything happens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from heedful.data.synthetic.phrasebook import phrasebook
from heedful.model import Decoder, preset, write_folder
from heedful.tokenization import train_bpe

LEARNING = {"steps": 4, "growth": 0.0, "columns": 512}
TINY = {
    "sizes": (40, 80),
    "sentences": 12,
    "development": 6,
    "evaluations": 2,
    "vocabulary": 320,
    "texts": 60,
    "shape": {"width": 16, "layers": 1, "heads": 2, "hidden": 32, "context": 200},
    "scratch": LEARNING,
    "pretraining": LEARNING,
    "fine_tuning": LEARNING,
}
TIMES = {"minutes", "minutes_before", "sentences_per_second", "run", "machine"}
"""What may differ between two runs of one study: clocks, and where it lies."""


def without_times(value: Any) -> Any:
    """Return a record without what clocks said."""
    if isinstance(value, dict):
        return {name: without_times(one) for name, one in value.items() if name not in TIMES}
    return [without_times(one) for one in value] if isinstance(value, list) else value


def write_visitor(folder: Path) -> Path:
    """Write a model of another family, with a tokenizer that knows none of our marks."""
    book = phrasebook(100, held_out=20)
    tokenizer = train_bpe([pair.english for pair in book.train], 300, marks=["<s>", "</s>"])
    tokenizer.begin, tokenizer.end = tokenizer.id_of("<s>"), tokenizer.id_of("</s>")
    config = preset("tiny", vocabulary=tokenizer.size, context=256)
    write_folder(Decoder(config, seed=5), folder / "visitor", tokenizer=tokenizer)
    return folder / "visitor"
