"""A trained model for other programs: a folder that `transformers` opens, or our own form.

What goes along: the tokenizer with its marks, the ids that begin and end a text, how pairs are
written (`translation.json`), and the model card as README.md with the lines that use it there.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch

from heedful.errors import InputError
from heedful.model import Decoder, load, parameter_count, write_folder
from heedful.model.weights.huggingface import check_new_folder
from heedful.records import Record
from heedful.studies.text_training import prepare
from heedful.studies.translation.model_card import CARD
from heedful.studies.translation.translator import FILE, TranslationFormat, format_of, is_run
from heedful.tokenization import Tokenizer
from heedful.training.folder import CONFIG, RunFolder
from heedful.training.runs import trained_decoder

Target = Literal["hf", "heedful"]
FORMS: dict[str, Literal["huggingface", "heedful"]] = {"hf": "huggingface", "heedful": "heedful"}


@dataclass(frozen=True, eq=False, kw_only=True)
class Export(Record):
    """A folder that was written."""

    model: str
    """Where the model came from."""
    folder: str
    """Where it lies now."""
    form: str
    """huggingface or heedful."""
    family: str
    """What opens it: gpt2, llama, qwen2, qwen3, or heedful."""
    parameters: int
    """How many numbers it has."""
    dtype: str
    """How they are written."""
    files: dict[str, int]
    """What was written, with its bytes."""
    translates: tuple[str, str] | None
    """From which language into which; None for a model that continues texts."""


def export(path: Path, folder: Path, *, to: Target = "hf", dtype: str = "float32") -> Export:
    """Write the model of a run, or any model that can be read, into a new folder."""
    check_new_folder(folder)
    decoder, tokenizer, written = _source(path)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as place:
        unfinished = Path(place) / folder.name
        kind: torch.dtype = getattr(torch, dtype)
        form = write_folder(decoder, unfinished, tokenizer=tokenizer, form=FORMS[to], dtype=kind)
        if written is not None:
            written.write(unfinished)
        _write_readme(path, unfinished, written)
        unfinished.rename(folder)
    family = RunFolder(folder).read(CONFIG)["model_type"]
    return Export(
        model=str(path),
        folder=str(folder),
        form=form,
        family=str(family),
        parameters=parameter_count(decoder.config),
        dtype=dtype,
        files={file.name: file.stat().st_size for file in sorted(folder.iterdir())},
        translates=None if written is None else written.languages,
    )


def _source(path: Path) -> tuple[Decoder, Tokenizer | None, TranslationFormat | None]:
    if path.is_dir() and is_run(path):
        model = path / "model"
        if model.is_dir():
            return _source(model)
        prepared = prepare(RunFolder(path).read(CONFIG))  # not finished yet
        return trained_decoder(path), prepared.tokenizer, format_of(prepared)
    if not path.exists():
        raise InputError(
            str(path), "there is no such run or model", hint="list runs with: heed runs"
        )
    opened = load(path)
    known = path.is_dir() and (path / FILE).is_file()
    return opened.decoder, opened.tokenizer, TranslationFormat.read(path) if known else None


def _write_readme(path: Path, folder: Path, written: TranslationFormat | None) -> None:
    """Put the card into the folder, with the lines that use the model in `transformers`."""
    card = next((found for found in (path / CARD, path.parent / CARD) if found.is_file()), None)
    text = card.read_text(encoding="utf-8") if card else f"# {folder.name}\n"
    if (folder / "tokenizer.json").is_file() and not _is_own(folder):
        text += "\n## In transformers\n\n```python\n" + _snippet(written) + "```\n"
    (folder / "README.md").write_text(text, encoding="utf-8")


def _is_own(folder: Path) -> bool:
    return bool(RunFolder(folder).read(CONFIG).get("model_type") == "heedful")


def _snippet(written: TranslationFormat | None) -> str:
    prompt = (
        '"The beginning of a text"' if written is None else f'["Où est la gare ?{written.between}"]'
    )
    return (
        "from transformers import AutoModelForCausalLM, AutoTokenizer\n\n"
        'model = AutoModelForCausalLM.from_pretrained("FOLDER")\n'
        'tokenizer = AutoTokenizer.from_pretrained("FOLDER")\n'
        f'asked = tokenizer({prompt}, return_tensors="pt", padding=True)\n'
        'made = model.generate(asked["input_ids"], attention_mask=asked["attention_mask"])\n'
        'print(tokenizer.batch_decode(made[:, asked["input_ids"].shape[1]:], '
        "skip_special_tokens=True))\n"
    )
