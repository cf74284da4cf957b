"""`heed ask`: an answer with its confidence and evidence, or "I don't know"."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from heedful.cli.output import JsonFlag, show
from heedful.errors import InputError

MOST_QUESTIONS = 10_000


def ask(
    run: Annotated[Path, Parameter(help="Folder of a knowledge study, or of one of its runs.")],
    *questions: Annotated[str, Parameter(help="Questions. [default: lines from standard input]")],
    file: Annotated[Path | None, Parameter(help="File with one question per line.")] = None,
    json: JsonFlag = False,
) -> int:
    """Ask a model that a knowledge study trained: an answer, or "I don't know".

    It answers where its confidence is above the threshold that the study chose on held-out
    questions, and shows the line of the pretraining text behind the answer, if there is one.

    Examples:

        heed ask study-knowledge "Where was Alda Macalworth born?"
        heed ask study-knowledge --file questions.txt --json
        echo "Where was Alda Macalworth born?" | heed ask study-knowledge
    """
    asked = _questions(questions, file)
    from heedful.studies.knowledge.asker import Asker
    from heedful.studies.knowledge.findings import AskReplies
    from heedful.views.knowledge import ask_blocks

    replies = Asker(run).ask(asked)
    show(AskReplies(run=str(run), replies=tuple(replies)), ask_blocks, json=json)
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
