"""The parts of the laboratory: each runs one study and tells it as one section of the report."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from heedful.errors import InputError
from heedful.progress import Step

if TYPE_CHECKING:
    from heedful.studies.translation.recipe import StudySettings
    from heedful.views.report import PartRecord

Scale = Literal["quick", "standard", "course"]

LAB_ELSEWHERE: dict[str, Any] = {"model": "smollm2", "sizes": [500], "steps": 30, "sentences": 100}
"""The third arm inside the laboratory: seconds a step, so few of them."""
COURSE_TRANSLATION: dict[str, Any] = {
    "sizes": (500, 2_000, 8_000, 20_000),
    "sentences": 1_000,
    "texts": 40_000,
    "scratch": {"steps": 2_000},
    "pretraining": {"steps": 800},
    "fine_tuning": {"steps": 2_000},
}
COURSE_SEEDS = 5
"""Decoders of each arm of the knowledge study."""
POSITIONS = {"quick": (512, 64), "standard": (512, 64), "course": (2_048, 128)}
"""Length and width."""


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Where and how large the parts are run."""

    output: Path
    """Folder of the laboratory."""
    scale: Scale
    corpus: tuple[Path, ...] = ()
    """Pairs for the translation part; none: the phrasebook."""

    @property
    def work(self) -> Path:
        """The folder for runs: scales do not see each other's."""
        return self.output if self.scale == "standard" else self.output / self.scale

    def decisive(self, names: tuple[str, ...]) -> dict[str, str]:
        """Return what decides a part, so that only the same is kept: corpora by their content."""
        made: dict[str, str] = {"scale": self.scale} if "scale" in names else {}
        if "corpus" in names and self.corpus:
            made["corpus"] = " ".join(_content(path) for path in self.corpus)
        return made

    def command(self, part: str = "") -> str:
        """Return the command that makes a part, or everything, again."""
        import shlex

        words = ["heed", "lab", *(["--only", part] if part else [])]
        if self.scale != "standard":
            words += ["--scale", self.scale]
        if self.corpus and part in ("", "translation", "heads"):
            words += ["--corpus", *map(str, self.corpus)]
        return shlex.join(words)


class Part(NamedTuple):
    """One part of the laboratory."""

    name: str
    says: str
    run: Callable[[Bench, Step], PartRecord]
    decided_by: tuple[str, ...] = ()
    """What of the bench decides its result: scale, corpus."""


def _attention(_bench: Bench, step: Step) -> PartRecord:
    from heedful.studies.exploration import explore
    from heedful.views.exploration import exploration_section
    from heedful.views.report import PartRecord

    started = time.perf_counter()
    record = explore(step)
    section = exploration_section(record, time.perf_counter() - started)
    return PartRecord.of(section, record)


def _claims(_bench: Bench, step: Step) -> PartRecord:
    from heedful.claims.checker import check
    from heedful.views.claims import claims_section
    from heedful.views.report import PartRecord

    started = time.perf_counter()
    record = check([], progress=step)
    section = claims_section(record, time.perf_counter() - started)
    return PartRecord.of(section, record)


def _positions(bench: Bench, step: Step) -> PartRecord:
    from heedful.positions import positions_study
    from heedful.views.positions import positions_section
    from heedful.views.report import PartRecord

    started = time.perf_counter()
    length, width = POSITIONS[bench.scale]
    record = positions_study("sinusoidal", length=length, width=width)
    step(1, 1)
    section = positions_section(record, time.perf_counter() - started)
    return PartRecord.of(section, record)


def _translation(bench: Bench, step: Step) -> PartRecord:
    import shlex

    from heedful.studies.translation.translation_study import run_study
    from heedful.views.report import PartRecord
    from heedful.views.translation import translation_section

    words = ["heed", "study", "translation", *(["--quick"] if bench.scale == "quick" else [])]
    if bench.corpus:
        words += ["--corpus", *map(str, bench.corpus)]
    record = run_study(
        translation_settings(bench),
        bench.work / "translation",
        tell=lambda _what, share: step(round(1000 * share), 1000),
        command=bench.command("translation") if bench.scale == "course" else shlex.join(words),
    )
    section = translation_section(record, 60.0 * record.minutes)
    return PartRecord.of(section, record)


def translation_settings(bench: Bench) -> StudySettings:
    """Return the study of translation at this scale, with sizes that the corpus has."""
    from heedful.studies.translation.arms import public_model_at_hand
    from heedful.studies.translation.corpus import read_study_corpus
    from heedful.studies.translation.recipe import QUICK, study_settings

    base: dict[str, Any] = {"quick": QUICK, "standard": {}, "course": COURSE_TRANSLATION}[
        bench.scale
    ]
    settings = study_settings(base)
    if bench.corpus:
        given = {"corpus": tuple(map(str, bench.corpus))}
        there = len(read_study_corpus(study_settings(base, given, {"sizes": (1,)})).train)
        sizes = tuple(size for size in settings.sizes if size <= there) or (there,)
        settings = study_settings(base, given, {"sizes": sizes})
    # A checkpoint of others is used where it is at hand; nothing is fetched.
    wanted = LAB_ELSEWHERE["sizes"]
    if bench.scale != "quick" and public_model_at_hand() and set(wanted) <= set(settings.sizes):
        settings = study_settings(settings.model_dump(), {"elsewhere": LAB_ELSEWHERE})
    return settings


def _knowledge(bench: Bench, step: Step) -> PartRecord:
    from heedful.studies.knowledge.knowledge_study import study_knowledge
    from heedful.studies.knowledge.plans import plan_for
    from heedful.views.knowledge import knowledge_section
    from heedful.views.report import PartRecord

    folder = bench.work / "knowledge"
    changes = {"seeds": COURSE_SEEDS} if bench.scale == "course" else {}
    plan = plan_for(quick=bench.scale == "quick", changes=changes)
    options = {"quick": "--quick", "standard": "", "course": f"--seeds {COURSE_SEEDS}"}
    record = study_knowledge(*plan, folder, step)
    section = knowledge_section(
        record, 60.0 * record.minutes, folder=str(folder), options=options[bench.scale]
    )
    return PartRecord.of(section, record)


def _heads(bench: Bench, step: Step) -> PartRecord:
    from heedful.studies.heads import LAB_OPTIONS, lab_study
    from heedful.views.heads import heads_section
    from heedful.views.report import PartRecord

    started = time.perf_counter()
    record = lab_study(bench.work, step, bench.scale)
    seconds = time.perf_counter() - started
    return PartRecord.of(heads_section(record, seconds, options=LAB_OPTIONS[bench.scale]), record)


PARTS = (
    Part("attention", "exploring attention", _attention),
    Part("claims", "judging the claims of the catalog", _claims),
    Part("positions", "looking at position embeddings", _positions, ("scale",)),
    Part("translation", "learning to translate", _translation, ("scale", "corpus")),
    Part("knowledge", "teaching and asking", _knowledge, ("scale",)),
    Part("heads", "watching the heads of a trained model", _heads, ("scale", "corpus")),
)


def chosen(only: list[str] | None) -> tuple[Part, ...]:
    """Return the parts that were asked for, in the order of the report."""
    names = [part.name for part in PARTS]
    for name in only or ():
        if name not in names:
            raise InputError(
                "--only", f"there is no part {name!r}", expected=f"one of {', '.join(names)}"
            )
    return tuple(part for part in PARTS if only is None or part.name in only)


def _content(path: Path) -> str:
    from heedful.files import sha256_of

    try:
        return f"sha256:{sha256_of(path)}"
    except OSError as error:
        raise InputError("--corpus", f"{path} cannot be read ({error.strerror})") from None
