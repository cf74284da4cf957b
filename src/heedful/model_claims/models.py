"""The model that a claim names: a run, a folder, a GGUF or llama2.c file, or a published name."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from heedful.errors import InputError
from heedful.model import Decoder, open_checkpoint
from heedful.tokenization import Tokenizer
from heedful.training import trained_decoder
from heedful.training.folder import RunFolder


class NamedModel(NamedTuple):
    """A decoder in float64, with its tokenizer."""

    name: str
    decoder: Decoder
    tokenizer: Tokenizer | None

    @property
    def begin(self) -> int | None:
        """The id with which every text begins, as the tokenizer arranges it."""
        return None if self.tokenizer is None else self.tokenizer.begin

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text as the model reads them: behind the opening mark."""
        if self.tokenizer is None:
            raise InputError(
                self.name, "has no tokenizer", expected="a model that brings one, to read texts"
            )
        return self.tokenizer.encode_opened(text)


@lru_cache(maxsize=4)
def open_model(name: str) -> NamedModel:
    """Open a model in float64: weights stored in fewer bits are widened without loss."""
    run = RunFolder(Path(name))
    if run.exists and run.checkpoints.is_dir() and not (run.path / "model").is_dir():
        return NamedModel(name, trained_decoder(Path(name)).double().eval(), None)
    checkpoint = open_checkpoint(name)
    return NamedModel(name, checkpoint.decoder().double().eval(), checkpoint.tokenizer)
