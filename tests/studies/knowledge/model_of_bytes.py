"""A small model that any text can be asked of."""

from __future__ import annotations

from pathlib import Path

from heedful.model import Decoder, preset, write_folder
from heedful.tokenization import bytes_of_utf8


def model_of_bytes(folder: Path) -> Path:
    """Write a model of bytes, random and so of many opinions."""
    tokenizer = bytes_of_utf8()
    config = preset("tiny", vocabulary=tokenizer.size, context=512, initial_std=0.3)
    write_folder(Decoder(config, seed=1), folder, tokenizer=tokenizer)
    return folder
