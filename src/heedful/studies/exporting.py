"""A trained model for other programs: a folder that `transformers` opens, ONNX, or our own form.

What goes along: the tokenizer with its marks, the ids that begin and end a text, how pairs are
written (`translation.json`), and the model card as README.md with the lines that use it there.
"""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch

from heedful.errors import InputError
from heedful.model import Decoder, load, parameter_count, write_folder
from heedful.model.weights.huggingface import check_new_folder
from heedful.model.weights.onnx import difference as onnx_difference
from heedful.model.weights.onnx import write_onnx
from heedful.records import Record
from heedful.studies.text_training import prepare
from heedful.studies.translation.model_card import CARD
from heedful.studies.translation.translator import (
    FILE,
    TranslationFormat,
    format_of,
    is_run,
    suppress_marks,
)
from heedful.tokenization import Tokenizer
from heedful.training.folder import CONFIG, RunFolder
from heedful.training.runs import trained_decoder

Target = Literal["hf", "heedful", "onnx"]
ONNX_FILE = "model.onnx"
FORMS: dict[str, Literal["huggingface", "heedful"]] = {"hf": "huggingface", "heedful": "heedful"}

README = "README.md"
EXAMPLES = {"fr": "Où est la gare ?", "en": "Where is the station?"}
SAME_TOKENS = """
Write a source as it would stand inside of another text: with a space before it, its first word
small unless that is a name, and in French a space behind an elision (" l' eau est froide."). A
translation comes out in the same way, without the capital of its beginning. `heed translate`,
opened on this folder, does both.
"""


@dataclass(frozen=True, eq=False, kw_only=True)
class Export(Record):
    """A folder that was written."""

    model: str
    """Where the model came from."""
    folder: str
    """Where it lies now."""
    form: str
    """huggingface, heedful or onnx."""
    family: str
    """What opens it: gpt2, llama, qwen2, qwen3, heedful, or onnx."""
    parameters: int
    """How many numbers it has."""
    dtype: str
    """How they are written."""
    files: dict[str, int]
    """What was written, with its bytes."""
    translates: tuple[str, str] | None
    """From which language into which; None for a model that continues texts."""
    difference: float | None = None
    """ONNX: how far a logit of onnxruntime was from ours; None where it was not tried."""


def export(path: Path, folder: Path, *, to: Target = "hf", dtype: str = "float32") -> Export:
    """Write the model of a run, or any model that can be read, into a new folder."""
    check_new_folder(folder)
    if to == "onnx" and dtype != "float32":
        raise InputError("--dtype", f"is {dtype}", expected="an ONNX file is written in float32")
    decoder, tokenizer, written = _source(path)
    difference = None
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as place:
        unfinished = Path(place) / folder.name
        if to == "onnx":
            difference = _write_onnx(decoder, unfinished, tokenizer)
        else:
            kind: torch.dtype = getattr(torch, dtype)
            write_folder(decoder, unfinished, tokenizer=tokenizer, form=FORMS[to], dtype=kind)
        if written is not None:
            if tokenizer is not None:
                suppress_marks(unfinished, written.marks(tokenizer))
            written.write(unfinished)
        _write_readme(path, unfinished, written, tokenizer)
        unfinished.rename(folder)
    return Export(
        model=str(path),
        folder=str(folder),
        form=FORMS.get(to, to),
        family=_family(folder),
        parameters=parameter_count(decoder.config),
        dtype=dtype,
        files={file.name: file.stat().st_size for file in sorted(folder.iterdir())},
        translates=None if written is None else written.languages,
        difference=difference,
    )


def _write_onnx(decoder: Decoder, folder: Path, tokenizer: Tokenizer | None) -> float | None:
    """Write the graph and its tokenizer; return how far onnxruntime is from us, if it is there."""
    folder.mkdir()
    write_onnx(decoder, folder / ONNX_FILE)
    if tokenizer is not None:
        tokenizer.save(folder / "tokenizer.json")
    return onnx_difference(decoder, folder / ONNX_FILE)


def _family(folder: Path) -> str:
    """Return what opens a folder: the family of its config; a graph has none."""
    if not (folder / CONFIG).is_file():
        return "onnx"
    return str(RunFolder(folder).read(CONFIG)["model_type"])


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


def _write_readme(
    path: Path, folder: Path, written: TranslationFormat | None, tokenizer: Tokenizer | None
) -> None:
    """Put the card into the folder, with the lines that use the model there."""
    cards = (path / CARD, path.parent / CARD, path / README)
    card = next((found for found in cards if found.is_file()), None)
    text = card.read_text(encoding="utf-8") if card else f"# {folder.name}\n"
    text = re.split(r"\n## In (?:transformers|onnxruntime)\n", text)[0]
    family, asked = _family(folder), _example(written, tokenizer)
    if family == "onnx":
        lines = ("onnxruntime", _onnx_snippet(folder, asked))
    elif (folder / "tokenizer.json").is_file() and family != "heedful":
        lines = ("transformers", _snippet(asked, several=written is not None))
    else:
        lines = ("", "")
    if lines[0]:
        text += f"\n## In {lines[0]}\n\n```python\n{lines[1]}```\n"
        if written is not None and written.same_tokens:
            text += SAME_TOKENS
    (folder / README).write_text(text, encoding="utf-8")


def _example(written: TranslationFormat | None, tokenizer: Tokenizer | None) -> str:
    """Return a text for the model, in quotation marks, as its tokenizer is given it."""
    if written is None:
        return '"The beginning of a text"'
    text = EXAMPLES.get(written.languages[0], EXAMPLES["fr"])
    if tokenizer is not None:
        text = written.source(text, tokenizer)
    return f'"{text}{written.between}"'


def _onnx_snippet(folder: Path, text: str) -> str:
    """Return lines that give the likeliest next token; the graph has no cache."""
    with_tokenizer = (folder / "tokenizer.json").is_file()
    ids = f'Tokenizer.from_file("FOLDER/tokenizer.json").encode({text}).ids'
    return (
        "import numpy as np\nimport onnxruntime\n"
        + ("from tokenizers import Tokenizer\n\n" if with_tokenizer else "\n")
        + f'session = onnxruntime.InferenceSession("FOLDER/{ONNX_FILE}")\n'
        + f"tokens = np.array([{ids if with_tokenizer else '[1, 2, 3]'}])  # (batch, time), int64\n"
        + 'logits = session.run(["logits"], {"tokens": tokens})[0]\n'
        + "print(logits[0, -1].argmax())  # the likeliest next token\n"
    )


def _snippet(text: str, *, several: bool) -> str:
    prompt = f"[{text}]" if several else text
    return (
        "from transformers import AutoModelForCausalLM, AutoTokenizer\n\n"
        'model = AutoModelForCausalLM.from_pretrained("FOLDER")\n'
        'tokenizer = AutoTokenizer.from_pretrained("FOLDER")\n'
        f'asked = tokenizer({prompt}, return_tensors="pt", padding=True)\n'
        'made = model.generate(asked["input_ids"], attention_mask=asked["attention_mask"])\n'
        'print(tokenizer.batch_decode(made[:, asked["input_ids"].shape[1]:], '
        "skip_special_tokens=True))\n"
    )
