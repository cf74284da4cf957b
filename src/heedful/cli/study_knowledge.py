"""`heed study knowledge`: what a model learned, what it guesses, and what it makes up."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from heedful.cli.output import JsonFlag, show
from heedful.cli.study_translation import prepare_folder
from heedful.errors import InputError, RunError
from heedful.progress import meter

if TYPE_CHECKING:
    from heedful.studies.knowledge.findings import KnowledgeStudy

REPORT = "report.html"


def knowledge(
    *,
    pretrain: Annotated[
        Path | None, Parameter(help="Text to learn from, a document a line. [default: embedded]")
    ] = None,
    train: Annotated[
        Path | None, Parameter(help="Questions for fine-tuning: question TAB answer.")
    ] = None,
    dev: Annotated[Path | None, Parameter(help="Questions that are asked, alike.")] = None,
    recipe: Annotated[
        Literal["ours", "cues", "course"],
        Parameter(
            help="How files are learned: with questions that a reader writes from the text, "
            "without them, or as the course does."
        ),
    ] = "ours",
    objective: Annotated[
        Literal["spans", "next"] | None,
        Parameter(help="Pretrain on corrupted spans, or on the next token. [default: spans]"),
    ] = None,
    minutes: Annotated[float | None, Parameter(help="Time for each pretraining, about.")] = None,
    steps: Annotated[int | None, Parameter(help="Steps of each pretraining.")] = None,
    seeds: Annotated[int | None, Parameter(help="Decoders for each arm.")] = None,
    error_rate: Annotated[
        float, Parameter(help="Share of wrong answers that is allowed before it says nothing.")
    ] = 0.1,
    output: Annotated[Path, Parameter(help="Folder of the study.")] = Path("study-knowledge"),
    seed: Annotated[int, Parameter(help="Decides people, weights and order.")] = 0,
    quick: Annotated[
        bool, Parameter(help="Only try the machinery, in seconds; the figures say nothing.")
    ] = False,
    json: JsonFlag = False,
) -> int:
    """Pretrain, fine-tune and ask: is an answer retrieved, guessed from the name, or made up?

    Without files it takes the biographies that come with Heedful. An interrupted study goes on
    when the same command is given again. Afterwards `heed ask FOLDER` asks its model.

    Examples:

        heed study knowledge
        heed study knowledge --quick --json
        heed study knowledge --pretrain wiki.txt --train birth_places_train.tsv --dev birth_dev.tsv
        heed study knowledge --objective next --output study-next
    """
    _check(pretrain, train, dev, minutes, steps, seeds, error_rate, seed)
    prepare_folder(output)
    from heedful.studies.knowledge.findings import RECORD
    from heedful.studies.knowledge.knowledge_study import study_knowledge
    from heedful.studies.knowledge.plans import plan_for
    from heedful.views.knowledge import knowledge_blocks

    files = None if pretrain is None or train is None or dev is None else (pretrain, train, dev)
    corpus, plan = plan_for(
        files,
        recipe=recipe,
        quick=quick,
        seed=seed,
        changes={
            "objective": objective,
            "minutes": minutes,
            "steps": steps,
            "seeds": seeds,
            "wanted_error": error_rate,
        },
    )
    with meter("knowledge: pretrain, fine-tune, ask") as step:
        record = study_knowledge(corpus, plan, output, step)
    _keep(record, output)
    show(record, knowledge_blocks, json=json)
    if not json:
        print(f"The report is at {output / REPORT}, the record at {output / RECORD}")
        print(f'Ask its model: heed ask {output} "Where was … born?"')
    return 0


def _check(
    pretrain: Path | None,
    train: Path | None,
    dev: Path | None,
    minutes: float | None,
    steps: int | None,
    seeds: int | None,
    error_rate: float,
    seed: int,
) -> None:
    files = {"--pretrain": pretrain, "--train": train, "--dev": dev}
    given = [name for name, path in files.items() if path is not None]
    if given and len(given) < len(files):
        missing = next(name for name in files if name not in given)
        raise InputError(
            missing,
            f"is missing beside {given[0]}",
            expected="the three files belong together",
            way_out="give all of them, or none for the embedded biographies",
        )
    for name, value in (("--minutes", minutes), ("--steps", steps), ("--seeds", seeds)):
        if value is not None and not 0 < value <= 10_000_000:
            raise InputError(name, f"is {value}", expected="a positive number was expected")
    if minutes is not None and steps is not None:
        raise InputError("--minutes", "was given together with --steps", way_out="use one of them")
    if not 0.0 <= error_rate < 1.0:
        raise InputError("--error-rate", f"is {error_rate}", expected="a share from 0 to below 1")
    if not 0 <= seed < 2**31:
        raise InputError("--seed", f"is {seed}", expected="0 to 2³¹ − 1")


def _keep(record: KnowledgeStudy, output: Path) -> None:
    """Write a page with the section of the study alone."""
    from heedful.views.knowledge import knowledge_section
    from heedful.views.report import PartRecord, write_report

    section = knowledge_section(record, 60.0 * record.minutes, folder=str(output))
    try:
        write_report(output, [PartRecord.of(section, record)])
    except OSError as error:
        raise RunError(
            str(output), f"could not be written ({error.strerror})", way_out="make room"
        ) from None
