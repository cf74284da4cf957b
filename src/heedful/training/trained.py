"""The decoder that a run made: its averaged weights where it kept an average."""

from __future__ import annotations

from pathlib import Path

from heedful.errors import InputError, RunError
from heedful.model import Decoder, DecoderConfig
from heedful.model.weights.huggingface import read_json
from heedful.training import checkpoint
from heedful.training.folder import RunFolder


def trained_decoder(path: Path) -> Decoder:
    """Return the decoder of a run (its newest whole checkpoint) or of one checkpoint."""
    run = RunFolder(path)
    if run.exists and run.checkpoints.is_dir():
        found = checkpoint.newest(run.checkpoints)
        if found.path is None or found.contents is None:
            raise RunError(str(path), "has no whole checkpoint", way_out="train it first")
        place, contents = found.path, found.contents
    else:
        problem = checkpoint.damage(path)
        if problem is not None:
            raise InputError(str(path), f"is no whole checkpoint ({problem})")
        place, contents = path, checkpoint.read(path)
    config = DecoderConfig.of(read_json(place / "config.json").get("heedful"))
    decoder = Decoder(config)
    weights = contents.part("average") or contents.model
    if weights.keys() != decoder.state_dict().keys():
        raise InputError(
            str(place),
            "holds what a fine-tuning added to other weights, not the weights",
            way_out=f"use {path / 'model'}, which has both",
        )
    decoder.load_state_dict(weights)
    return decoder.eval()
