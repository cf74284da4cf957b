"""`heed export`: a trained model for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from heedful.cli.output import JsonFlag, show


def export(
    run: Annotated[Path, Parameter(help="A run, or any model that can be read.")],
    folder: Annotated[Path, Parameter(help="A new folder.")],
    *,
    to: Annotated[
        Literal["hf", "heedful"],
        Parameter(help="hf opens in transformers; heedful holds any decoder of this package."),
    ] = "hf",
    dtype: Annotated[
        Literal["float32", "float16", "bfloat16"], Parameter(help="Number format to write.")
    ] = "float32",
    json: JsonFlag = False,
) -> int:
    """Write a trained model as a folder: weights as safetensors, tokenizer, card, marks.

    `--to hf` opens with AutoModelForCausalLM and AutoTokenizer and gives the same tokens; README.md
    has the lines to do so. A model with a setting that no family of Hugging Face knows is refused,
    with the setting and the value that would do.

    Examples:

        heed export runs/phrasebook --to hf translator
        heed export runs/phrasebook --to heedful translator
    """
    from heedful.studies.exporting import export as written
    from heedful.views.models import export_blocks

    show(written(run, folder, to=to, dtype=dtype), export_blocks, json=json)
    return 0
