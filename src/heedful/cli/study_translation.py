"""`heed study translation`: from scratch against pretrained, on the same pairs and test."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from heedful.cli.output import JsonFlag, show


def translation(
    *,
    corpus: Annotated[
        list[Path] | None,
        Parameter(
            consume_multiple=True,
            help="Pairs to learn from: one file, or two such as train.fr train.en. "
            "[default: the phrasebook]",
        ),
    ] = None,
    test: Annotated[
        list[Path] | None,
        Parameter(
            consume_multiple=True,
            help="Pairs to be judged by. [default: a part of the corpus that shares no sentence]",
        ),
    ] = None,
    monolingual: Annotated[
        list[Path] | None,
        Parameter(
            consume_multiple=True,
            help="Text in the source and in the target language, for the arm that is "
            "pretrained here.",
        ),
    ] = None,
    source: Annotated[
        str | None, Parameter(help="The language to translate from, where files name theirs.")
    ] = None,
    sizes: Annotated[
        list[int] | None,
        Parameter(consume_multiple=True, help="Numbers of pairs. [default: 500 2000 8000]"),
    ] = None,
    model: Annotated[
        str | None,
        Parameter(help="Also fine-tune this model: smollm2, or a folder or file of weights."),
    ] = None,
    tuning: Annotated[
        Literal["lora", "full"], Parameter(help="How --model is tuned: small additions, or all.")
    ] = "lora",
    recipe: Annotated[
        Path | None, Parameter(help="A TOML file with other settings: width, steps, …")
    ] = None,
    quick: Annotated[
        bool, Parameter(negative="", help="Twenty seconds instead of minutes: a smoke test.")
    ] = False,
    seed: Annotated[int | None, Parameter(help="Of data and weights. [default: 0]")] = None,
    output: Annotated[Path, Parameter(help="Folder for runs, record and report.")] = Path(
        "study-translation"
    ),
    json: JsonFlag = False,
) -> int:
    """Translate from scratch, and from pretrained weights: same pairs, same test, with intervals.

    Every arm is a run in the output folder. A study that was interrupted goes on when the same
    command is given again; arms that are done are not trained again.

    Examples:

        heed study translation
        heed study translation --quick --json
        heed study translation --model smollm2 --sizes 500 2000
        heed study translation --corpus train.fr train.en --test test.fr test.en
    """
    raise NotImplementedError
