"""`heed study translation` and `heed study attribution`: translators compared, and looked into."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from heedful.cli.output import FigurePath, JsonFlag, check_figure_path, draw, show
from heedful.errors import InputError, RunError
from heedful.progress import meter
from heedful.studies.lab import prepare_folder

if TYPE_CHECKING:
    from heedful.studies.translation.results import ArmResult, TranslationStudy

RECORD, REPORT = "translation.json", "report.html"
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
        print(f"The report is at {output / REPORT}, the record at {output / RECORD}")
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
        write_atomic(output / RECORD, record.to_json())
        write_report(output, [part_of(section, record)])
    except OSError as error:
        raise RunError(
            str(output), f"could not be written ({error.strerror})", hint="make room"
        ) from None


def _command() -> str:
    """Return the command as it was given, to be given again."""
    words = [word for word in sys.argv[1:] if word not in ("--json", "--debug")]
    return shlex.join(["heed", *words]) if words[:1] == ["study"] else "heed study translation"


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
    from heedful.studies.translation.attribution_study import study_attribution
    from heedful.views.translation import attribution_blocks, attribution_figure

    translator = Translator.open(model)
    with meter("trying methods of attribution") as step:
        record = study_attribution(translator, str(model), sentences=sentences, progress=step)
    show(record, attribution_blocks, json=json)
    draw(record, figure, attribution_figure)
    return 0
