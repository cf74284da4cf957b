"""Where a translator comes from: a run, finished or not, or a model folder that says its format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from heedful.errors import HeedfulError, InputError
from heedful.model import Decoder, load
from heedful.model.weights.huggingface import read_json
from heedful.studies.text_training import TextTraining, prepare
from heedful.studies.translation.format import FILE, TranslationFormat
from heedful.tokenization import Tokenizer
from heedful.training.runs import trained_decoder

Opened = tuple[Decoder, Tokenizer, TranslationFormat]


def opened(path: Path) -> Opened:
    """Return decoder, tokenizer and format, or say why this cannot translate."""
    if path.is_dir() and is_run(path):
        return _from_run(path)
    if path.is_dir() and not (path / FILE).is_file():
        raise _untold(path)
    pretrained = load(path)
    if pretrained.tokenizer is None:
        raise InputError(
            str(path), "has no tokenizer", way_out="put its tokenizer.json into the folder"
        )
    return pretrained.decoder, pretrained.tokenizer, TranslationFormat.read(path)


def is_run(path: Path) -> bool:
    """Tell a run's folder from a model's: both have a config.json."""
    config = path / "config.json"
    if not config.is_file():
        return False
    found = read_json(config)
    return "model_type" not in found and "model" in found


def format_of(made: TextTraining) -> TranslationFormat | None:
    """Return the format in which a training writes pairs; None where it reads no pairs."""
    if made.languages is None:
        return None
    phrasebook = made.config.data.get("source") == "phrasebook"
    return TranslationFormat(
        languages=made.languages, normalise="keyboard" if phrasebook else "nfc"
    )


def _from_run(run: Path) -> Opened:
    model = run / "model"
    if (model / FILE).is_file():
        return opened(model)
    if model.is_dir():
        raise _untold(run)
    # Not finished yet: everything but the weights follows from the settings.
    settings: dict[str, Any] = read_json(run / "config.json")
    try:
        made = prepare(settings)
    except HeedfulError as error:
        raise InputError(
            str(run),
            f"is not finished, and its tokenizer cannot be made again ({error})",
            way_out=f"finish it with: heed resume {run}",
        ) from None
    written = format_of(made)
    if written is None:
        raise _untold(run)
    return trained_decoder(run), made.tokenizer, written


def _untold(path: Path) -> InputError:
    return InputError(
        str(path),
        f"was not trained on pairs: it has no {FILE}",
        expected="a run of `heed train` on pairs, or what `heed export` made of one",
        way_out='train one with source = "phrasebook", or on files of pairs',
    )
