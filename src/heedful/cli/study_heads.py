"""`heed study heads`: what the heads of a trained model do."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from heedful.cli.output import FigurePath, JsonFlag, check_figure_path, draw, show
from heedful.progress import Step

if TYPE_CHECKING:
    from heedful.studies.heads import HeadsStudy


def heads(
    model: Annotated[
        str, Parameter(help="A run, a model folder, a .gguf or llama2.c file, or a name.")
    ],
    *,
    text: Annotated[
        Path | None,
        Parameter(help="What the model reads. [default: texts held out from its training]"),
    ] = None,
    tokens: Annotated[int, Parameter(help="Tokens in a row of running text.")] = 256,
    rows: Annotated[int, Parameter(help="Rows of running text.")] = 4,
    train: Annotated[
        bool,
        Parameter(
            negative="--no-train",
            help="Also train small models, for the questions that one model cannot answer.",
        ),
    ] = True,
    seeds: Annotated[
        int | None, Parameter(help="Trainings of each small model. [default: 5; quick: 3]")
    ] = None,
    steps: Annotated[
        int | None, Parameter(help="Steps of each training. [default: 500; quick: 200]")
    ] = None,
    quick: Annotated[
        bool, Parameter(negative="", help="Fewer trainings and measurements: about a minute.")
    ] = False,
    figure: FigurePath = None,
    json: JsonFlag = False,
) -> int:
    """Study the heads of a trained model with the mathematics of one query and a few keys.

    What each head does (copies, averages, reads diffusely; looks for the previous token, the
    first, an earlier copy, what followed it, or the source of a translation); how norms of keys
    vary and what that moves; how robust heads and layers are; what the model knows about order;
    which tokens it can never predict. Small models trained for the purpose answer what one model
    cannot: does pre-norm make keys alike, do more heads reduce the variance?

    Examples:

        heed study heads runs/phrasebook
        heed study heads smollm2 --text story.txt --no-train
        heed study heads runs/phrasebook --quick --figure heads.svg
        heed study heads my-model/ --json
    """
    from dataclasses import replace

    from heedful.errors import InputError
    from heedful.progress import meter
    from heedful.studies.heads import QUICK, QUICK_EFFORT, Amount, Effort, Plan, study_heads
    from heedful.views.heads import heads_blocks, heads_map

    check_figure_path(figure)
    for name, value, least in (
        ("--tokens", tokens, 8),
        ("--rows", rows, 1),
        ("--seeds", seeds, 2),
        ("--steps", steps, 2),
    ):
        if value is not None and value < least:
            raise InputError(name, f"is {value}", expected=f"at least {least} was expected")
    plan = None
    if train:
        base = QUICK if quick else Plan()
        plan = replace(
            base,
            workers=max(1, os.cpu_count() or 1),
            seeds=base.seeds if seeds is None else seeds,
            order_seeds=base.order_seeds if seeds is None else seeds,
            steps=base.steps if steps is None else steps,
        )
    with meter("watching heads") as step:
        record = study_heads(
            model,
            text=text,
            amount=Amount(rows=rows, tokens=tokens),
            plan=plan,
            effort=QUICK_EFFORT if quick else Effort(),
            progress=step,
        )
    show(record, heads_blocks, json=json)
    draw(record, figure, heads_map)
    return 0


LAB_OPTIONS = {"quick": "--quick --seeds 2 --steps 60", "standard": "--quick", "course": ""}
"""What the laboratory leaves out at each of its scales, as options of this verb."""


def lab_study(output: Path, step: Step, scale: str = "standard") -> HeadsStudy:
    """Study the heads of the translation run of the laboratory, or of a small one made for it."""
    from dataclasses import replace

    from heedful.studies.heads import QUICK, QUICK_EFFORT, Effort, Plan, study_heads
    from heedful.studies.heads.sample import translation_run
    from heedful.studies.heads.small_models import base_run

    plans = {
        "quick": replace(QUICK, seeds=2, order_seeds=2, steps=60),
        "standard": QUICK,
        "course": Plan(),
    }
    plan = replace(plans[scale], workers=max(1, os.cpu_count() or 1))
    run = translation_run(output / "translation" / "runs")
    if run is None:
        run = base_run(replace(plan, steps=4 * plan.steps), output / "heads" / "run")
    effort = Effort() if scale == "course" else QUICK_EFFORT
    return study_heads(run, plan=plan, effort=effort, progress=step)
