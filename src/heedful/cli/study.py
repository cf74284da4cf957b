"""`heed study` and `heed lab`: recipes that end in one record and one section of the report.

The studies are of what a model learned (`knowledge`, `capacity`), of its heads, and of translators,
compared (`translation`) and looked into (`attribution`). The lab runs every part, and writes one
report.
"""

from __future__ import annotations

import os
import shlex
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter

from heedful.cli.options import FigurePath, JsonFlag, check_figure_path, draw, escaped, show
from heedful.errors import InputError, RunError
from heedful.progress import meter
from heedful.studies.lab import Laboratory, Scale, lab_record, prepare_folder, run_lab

if TYPE_CHECKING:
    from heedful.studies.heads import Plan
    from heedful.studies.heads.heads_study import HeadsWork
    from heedful.studies.knowledge.findings import KnowledgeStudy
    from heedful.studies.translation.results import ArmResult, TranslationStudy

app = App(
    name="study",
    help="Run a study: it ends in one record, and one section of the report.",
    help_format="plaintext",
    result_action="return_value",
)

REPORT = "report.html"
TRANSLATION_RECORD = "translation.json"
MOST_SENTENCES = 500
"""Of which the phrasebook keeps the links: its test set."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class PairFlags:
    """What a translation study learns from and is judged by."""

    corpus: Annotated[
        list[Path] | None,
        Parameter(
            consume_multiple=True,
            help="Pairs to learn from: one file, or two such as train.fr train.en. "
            "[default: the phrasebook]",
        ),
    ] = None
    test: Annotated[
        list[Path] | None,
        Parameter(
            consume_multiple=True,
            help="Pairs to be judged by. [default: a part of the corpus that shares no sentence]",
        ),
    ] = None
    monolingual: Annotated[
        list[Path] | None,
        Parameter(
            consume_multiple=True,
            help="Text in the source and in the target language, for the arm that is "
            "pretrained here.",
        ),
    ] = None
    source: Annotated[
        str | None, Parameter(help="The language to translate from, where files name theirs.")
    ] = None

    @property
    def given(self) -> dict[str, Any]:
        """Return the settings that were given, as the study names them."""
        texts = {
            name: [str(path) for path in paths]
            for name in ("corpus", "test", "monolingual")
            if (paths := getattr(self, name)) is not None
        }
        return texts | ({} if self.source is None else {"source": self.source})


DEFAULT_PAIRS = PairFlags()


@app.command(help="French to English: from scratch against pretrained.")
def translation(
    *,
    pairs: PairFlags = DEFAULT_PAIRS,
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
    from heedful.studies.translation.recipe import QUICK, recipe_of, study_settings
    from heedful.studies.translation.translation_study import run_study
    from heedful.views.translation import study_blocks

    asked = pairs.given | {"elsewhere": {"tuning": tuning}}
    if model is not None:
        asked["elsewhere"]["model"] = model
    if sizes is not None:
        asked["sizes"] = sizes
    if seed is not None:
        asked["seed"] = seed
    settings = study_settings(QUICK if quick else {}, recipe_of(recipe), asked)
    prepare_folder(output)
    with meter("starting") as progress:
        record = run_study(
            settings,
            output,
            tell=progress.tell,
            done=lambda arm: progress.line(_line_of(arm)),
            command=_command(),
        )
    keep_study(record, output)
    show(record, study_blocks, json=json)
    if not json:
        print(f"The report is at {output / REPORT}, the record at {output / TRANSLATION_RECORD}")
    return 0


def _line_of(arm: ArmResult) -> str:
    return (
        f"{arm.arm}, {arm.pairs:,} pairs: BLEU {arm.bleu:.1f} "
        f"({arm.bleu_low:.1f} to {arm.bleu_high:.1f}), {arm.minutes:.1f} min of training"
    )


def keep_study(record: TranslationStudy, output: Path) -> None:
    """Write the record, and a page with its section alone."""
    from heedful.files import write_atomic
    from heedful.views.report import part_of, write_report
    from heedful.views.translation import translation_section

    section = translation_section(record, 60.0 * record.minutes)
    try:
        write_atomic(output / TRANSLATION_RECORD, record.to_json())
        write_report(output, [part_of(section, record)])
    except OSError as error:
        raise RunError(
            str(output), f"could not be written ({error.strerror})", hint="make room"
        ) from None


def _command() -> str:
    """Return the command as it was given, to be given again."""
    words = [word for word in sys.argv[1:] if word not in ("--json", "--debug")]
    return shlex.join(["heed", *words]) if words[:1] == ["study"] else "heed study translation"


@app.command(help="Which method knows where the words of a translation come from.")
def attribution(
    model: Annotated[Path, Parameter(help="A run or model folder that translates French.")],
    *,
    sentences: Annotated[int, Parameter(help="Test sentences of the phrasebook, up to 500.")] = 200,
    figure: FigurePath = None,
    json: JsonFlag = False,
) -> int:
    """Put methods of attribution on trial: attention, value norms, gradients, erasure.

    The grammar of the phrasebook knows which French word became which English one. Each method says
    how much every source word has to do with every word of the translation: is its first choice the
    right one (alignment error), and does the translation need the words that it names (log p after
    1, 2 and 3 of them are taken out)? Both come with intervals over sentences, beside two controls
    that know nothing.

    Examples:

        heed study attribution runs/phrasebook
        heed study attribution runs/phrasebook --sentences 50 --figure attribution.svg
        heed study attribution lab/translation/runs/scratch-8000-* --json
    """
    check_figure_path(figure)
    if not 1 <= sentences <= MOST_SENTENCES:
        raise InputError("--sentences", f"is {sentences}", expected=f"1 to {MOST_SENTENCES}")
    from heedful.studies.translation import Translator
    from heedful.studies.translation.attribution import study_attribution
    from heedful.views.translation import attribution_blocks, attribution_figure

    translator = Translator.open(model)
    with meter("trying methods of attribution") as step:
        record = study_attribution(translator, str(model), sentences=sentences, progress=step)
    show(record, attribution_blocks, json=json)
    draw(record, figure, attribution_figure)
    return 0


@app.command(help="What a model learned, what it guesses, and what it makes up.")
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
        Literal["cues", "drop", "ours", "course"],
        Parameter(
            help="How files are learned: from the text, with rules for what a name, a date and a "
            "place is (cues) or without any (drop), also from questions that a reader writes from "
            "it, which nearly all test questions are among (ours), or as the course does."
        ),
    ] = "cues",
    objective: Annotated[
        Literal["spans", "next"] | None,
        Parameter(help="Pretrain on corrupted spans, or on the next token. [default: spans]"),
    ] = None,
    positions: Annotated[
        Literal["learned", "rotary"] | None,
        Parameter(help="Pretrain with these positions only. [default: both, one after the other]"),
    ] = None,
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
    _check_knowledge(pretrain, train, dev, steps, seeds, error_rate, seed)
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
            "positions": positions,
            "steps": steps,
            "seeds": seeds,
            "wanted_error": error_rate,
        },
    )
    with meter("knowledge: pretrain, fine-tune, ask") as step:
        record = study_knowledge(corpus, plan, output, step)
    _write_page(record, output)
    show(record, knowledge_blocks, json=json)
    if not json:
        print(f"The report is at {output / REPORT}, the record at {output / RECORD}")
        print(f'Ask its model: heed ask {output} "Where was … born?"')
    return 0


@app.command(help="How many bits a parameter stores, and after how many readings.")
def capacity(
    *,
    output: Annotated[Path, Parameter(help="Folder of the study.")] = Path("study-capacity"),
    seed: Annotated[int, Parameter(help="Decides people, weights and order.")] = 0,
    quick: Annotated[
        bool, Parameter(negative="", help="One small decoder, in seconds; it only tries things.")
    ] = False,
    figure: FigurePath = None,
    json: JsonFlag = False,
) -> int:
    """Train small decoders on generated people, and count the bits that they store.

    People have names and values of a known number of bits. What a decoder still has to be told
    about them is its loss; the rest it has stored. With the same text in every reading, and with
    the attributes in another order each time. The better part of an hour of one processor, in
    work; an interrupted study goes on when the same command is given again.

    Examples:

        heed study capacity --quick
        heed study capacity --figure capacity.svg
        heed study capacity --json
    """
    from dataclasses import replace

    check_figure_path(figure)
    if not 0 <= seed < 2**31:
        raise InputError("--seed", f"is {seed}", expected="0 to 2³¹ − 1")
    prepare_folder(output)
    from heedful.studies.knowledge.capacity import QUICK, CapacityPlan, study_capacity
    from heedful.views.knowledge import capacity_blocks, capacity_figure

    with meter("capacity: train and count bits") as step:
        plan = replace(QUICK if quick else CapacityPlan(), seed=seed)
        record = study_capacity(plan, output, step)
    show(record, capacity_blocks, json=json)
    draw(record, figure, capacity_figure)
    return 0


def _check_knowledge(
    pretrain: Path | None,
    train: Path | None,
    dev: Path | None,
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
            hint="give all of them, or none for the embedded biographies",
        )
    for name, value in (("--steps", steps), ("--seeds", seeds)):
        if value is not None and not 0 < value <= 10_000_000:
            raise InputError(name, f"is {value}", expected="a positive number was expected")
    if not 0.0 <= error_rate < 1.0:
        raise InputError("--error-rate", f"is {error_rate}", expected="a share from 0 to below 1")
    if not 0 <= seed < 2**31:
        raise InputError("--seed", f"is {seed}", expected="0 to 2³¹ − 1")


def _write_page(record: KnowledgeStudy, output: Path) -> None:
    """Write a page with the section of the study alone."""
    from heedful.views.knowledge import knowledge_section
    from heedful.views.report import part_of, write_report

    section = knowledge_section(record, 60.0 * record.minutes, folder=str(output))
    try:
        write_report(output, [part_of(section, record)])
    except OSError as error:
        raise RunError(
            str(output), f"could not be written ({error.strerror})", hint="make room"
        ) from None


@app.command(help="What the heads of a trained model do, and whether the reasoning fits.")
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
    parts: Annotated[
        str | None,
        Parameter(
            help="Work on these only (heads,keys,robustness,order,tokens,small-models), or leave "
            "some out (no-tokens,no-order). [default: all]"
        ),
    ] = None,
    output: Annotated[Path, Parameter(help="Folder in which finished parts are kept.")] = Path(
        "study-heads"
    ),
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

    Each part is shown when it is finished, the quickest first, and kept: a study that was stopped
    goes on when the same command is given again.

    Examples:

        heed study heads runs/phrasebook
        heed study heads smollm2 --text story.txt --no-train
        heed study heads smollm2 --parts heads,order
        heed study heads smollm2 --parts no-tokens,no-small-models
        heed study heads runs/phrasebook --quick --figure heads.svg
        heed study heads my-model/ --json
    """
    from heedful.studies.heads import QUICK_EFFORT, Amount, Effort, open_subject
    from heedful.studies.heads.heads_study import HeadsWork, chosen_parts
    from heedful.views.heads import heads_map

    check_figure_path(figure)
    _check_heads(tokens, rows, seeds, steps)
    plan = _heads_plan(seeds, steps, quick=quick) if train else None
    chosen = None if parts is None else parts.split(",")
    chosen_parts(chosen, plan)  # before the model is opened
    prepare_folder(output)
    work = HeadsWork(
        open_subject(model, text=text, amount=Amount(rows=rows, tokens=tokens)),
        parts=chosen,
        plan=plan,
        effort=QUICK_EFFORT if quick else Effort(),
        output=output,
    )
    _work_on(work, json=json)
    draw(work.record, figure, heads_map)
    return 0


def _heads_plan(seeds: int | None, steps: int | None, *, quick: bool) -> Plan:
    from dataclasses import replace

    from heedful.studies.heads import QUICK, Plan

    base = QUICK if quick else Plan()
    return replace(
        base,
        workers=max(1, os.cpu_count() or 1),
        seeds=base.seeds if seeds is None else seeds,
        order_seeds=base.order_seeds if seeds is None else seeds,
        steps=base.steps if steps is None else steps,
    )


def _work_on(work: HeadsWork, *, json: bool) -> None:
    """Work on every part, and show what each found as soon as it is finished."""
    from heedful.studies.heads.heads_study import PARTS
    from heedful.views.heads import part_blocks, subject_block, took_block
    from heedful.views.terminal import print_blocks

    if not json:
        print_blocks([subject_block(work.record)])
    for done, part in enumerate(work.parts):
        try:
            with meter(f"{PARTS[part]} ({done + 1} of {len(work.parts)})") as step:
                record = work.run(part, step)
        except KeyboardInterrupt:
            finished = ", ".join(work.parts[:done]) or "none"
            stopped = RunError(
                str(work.output),
                f"the study was stopped at {part}; parts finished and kept: {finished}",
                hint="run the same command again to go on",
            )
            stopped.exit_code = 128 + signal.SIGINT
            raise stopped from None
        if not json:
            print()
            print_blocks(part_blocks(record, part))
            sys.stdout.flush()
    if json:
        print(escaped(work.record.to_json()))
    else:
        print()
        print_blocks([took_block(work.record)])


def _check_heads(tokens: int, rows: int, seeds: int | None, steps: int | None) -> None:
    for name, value, least in (
        ("--tokens", tokens, 8),
        ("--rows", rows, 1),
        ("--seeds", seeds, 2),
        ("--steps", steps, 2),
    ):
        if value is not None and value < least:
            raise InputError(name, f"is {value}", expected=f"at least {least} was expected")


def lab(
    *,
    output: Annotated[Path, Parameter(help="Folder for the report.")] = Path("lab"),
    only: Annotated[
        list[str] | None,
        Parameter(
            consume_multiple=True,
            help="Run these parts only: attention, claims, positions, translation, knowledge, "
            "pretrained, heads.",
        ),
    ] = None,
    scale: Annotated[
        Scale,
        Parameter(
            help="How much is trained: quick only tries the machinery, standard takes minutes, "
            "course an evening."
        ),
    ] = "standard",
    corpus: Annotated[
        list[Path] | None,
        Parameter(
            consume_multiple=True,
            help="Pairs for the translation part: one file, or two such as train.fr train.en. "
            "[default: the phrasebook]",
        ),
    ] = None,
    model: Annotated[
        str | None,
        Parameter(
            help="A public checkpoint that the translation part fine-tunes too, such as smollm2: "
            "a name, a folder or a file. [default: none]"
        ),
    ] = None,
    fresh: Annotated[
        bool,
        Parameter(
            negative="",
            help="Make every part again, even where a result is at hand. Finished trainings are "
            "still used; remove the folder to train again.",
        ),
    ] = False,
    json: JsonFlag = False,
) -> int:
    """Run every part of the laboratory and write one self-contained HTML report.

    Parts that were finished by an earlier, interrupted run of the same version, scale and corpus
    are kept, and trainings go on where they stopped. On two quiet cores attention, claims and
    positions take a minute together, translation and knowledge three minutes each, heads two;
    pretrained shows a stored measurement of a public model and takes seconds.

    Examples:

        heed lab
        heed lab --output my-lab --only attention claims
        heed lab --scale quick
        heed lab --corpus train.fr train.en --only translation heads
        heed lab --model smollm2
        heed lab --fresh --json
    """
    from heedful.views.report import draw_part, lab_blocks, write_report

    laboratory = Laboratory(
        output=output, scale=scale, corpus=tuple(corpus or ()), model=model or ""
    )
    parts = run_lab(laboratory, draw_part, only=only, fresh=fresh, watch=meter, say=_say)
    notice = QUICK_NOTICE if scale == "quick" else ""
    report = write_report(output, parts, command=laboratory.command(), notice=notice)
    show(lab_record(laboratory, parts, report), lab_blocks, json=json)
    return 0


QUICK_NOTICE = (
    "Written with --scale quick: the trainings only try the machinery. What is said here about "
    "trained models is true of these models, and says little about others."
)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
