"""`heed ask`: an answer with its confidence and evidence, or "I don't know"."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from heedful.cli.options import JsonFlag, show
from heedful.errors import InputError

if TYPE_CHECKING:
    from heedful.studies.knowledge.pretrained import PretrainedAsker

MOST_QUESTIONS = 10_000


def ask(
    model: Annotated[
        Path,
        Parameter(help="Folder of a knowledge study, or a model: smollm2, a folder, a GGUF file."),
    ],
    *questions: Annotated[str, Parameter(help="Questions. [default: lines from standard input]")],
    file: Annotated[Path | None, Parameter(help="File with one question per line.")] = None,
    error: Annotated[
        float | None,
        Parameter(
            help="For a model: share of wrong answers allowed among those called known. "
            "[default: 0.2]"
        ),
    ] = None,
    calibrate: Annotated[
        bool,
        Parameter(
            negative="",
            help="Ask a model our 600 questions first: half of them calibrate, half test.",
        ),
    ] = False,
    json: JsonFlag = False,
) -> int:
    """Ask a model: an answer with its confidence, or "I don't know".

    A model that a knowledge study trained answers where its confidence is above the threshold
    that the study chose on held-out questions, and shows the line of the pretraining text behind
    the answer, if there is one. A model that others trained is asked in five wordings; its answer
    is called known, unsure, or not given, under a promise that our calibration questions make.

    Examples:

        heed ask study-knowledge "Where was Alda Macalworth born?"
        heed ask study-knowledge --file questions.txt --json
        heed ask smollm2 "What is the capital of France?" "Who wrote Hamlet?"
        heed ask my-model.gguf --calibrate
    """
    from heedful.studies.knowledge.asker import can_be_opened_as_model

    if can_be_opened_as_model(model):
        return _ask_model(model, questions, file, error=error, calibrate=calibrate, json=json)
    for flag, given in (("--error", error is not None), ("--calibrate", calibrate)):
        if given:
            raise InputError(
                flag, "was given for a knowledge study", expected="its own calibration is used"
            )
    asked = _questions(questions, file)
    from heedful.studies.knowledge.asker import Asker
    from heedful.studies.knowledge.findings import AskReplies
    from heedful.views.knowledge import ask_blocks

    replies = Asker(model).ask(asked)
    show(AskReplies(run=str(model), replies=tuple(replies)), ask_blocks, json=json)
    return 0


def _ask_model(
    model: Path,
    questions: tuple[str, ...],
    file: Path | None,
    *,
    error: float | None,
    calibrate: bool,
    json: bool,
) -> int:
    """Calibrate a model that others have trained, or ask it."""
    from heedful.studies.knowledge.pretrained import KNOWN_ERROR, PretrainedAsker

    error = KNOWN_ERROR if error is None else error
    if not 0 < error < 1:
        raise InputError("--error", f"is {error}", expected="a share between 0 and 1")
    if calibrate:
        if questions or file is not None:
            raise InputError(
                "--calibrate", "was given together with a question", hint="ask in a second command"
            )
        return _calibrate(PretrainedAsker(model), error, json=json)
    asked = _questions(questions, file)
    from heedful.views.knowledge import model_replies_blocks

    asker = PretrainedAsker(model)
    show(asker.ask(asked, asker.calibration(), error), model_replies_blocks, json=json)
    return 0


def _calibrate(asker: PretrainedAsker, error: float, *, json: bool) -> int:
    from heedful.progress import meter
    from heedful.views.knowledge import model_calibration_blocks

    with meter("asking 600 questions") as step:
        calibrated, record = asker.calibrate(error, step)
    asker.keep(calibrated)
    show(record, model_calibration_blocks, json=json)
    return 0


def _questions(given: tuple[str, ...], file: Path | None) -> list[str]:
    if given and file is not None:
        raise InputError("--file", "was given together with a question", hint="use one of them")
    if given:
        return list(given)
    if file is not None:
        from heedful.data.text_files import TextFile

        questions = [line for line in TextFile(file).lines() if line.strip()]
    elif sys.stdin.isatty():
        raise InputError(
            "question",
            "is missing",
            hint='for instance: heed ask study-knowledge "Where was Alda Macalworth born?"',
        )
    else:
        questions = [line for line in _standard_input().split("\n") if line.strip()]
    if not 0 < len(questions) <= MOST_QUESTIONS:
        raise InputError(
            str(file) if file is not None else "standard input",
            f"holds {len(questions):,} questions",
            expected=f"1 to {MOST_QUESTIONS:,}, one per line",
        )
    return questions


def _standard_input() -> str:
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError("standard input", f"is not UTF-8 (byte {error.start})") from None
