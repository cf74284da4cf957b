"""The laboratory: a study that runs every other study, and keeps what each part ends in.

A part that is finished is kept as JSON in the output folder, for the version, scale and corpus
that made it, so that an interrupted laboratory goes on where it stopped. Sections of the report
are drawn by whoever asks for the laboratory: `draw` turns a record into a `PartRecord`.
"""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from heedful import __version__
from heedful.errors import InputError, MissingPartError
from heedful.files import sha256_of, write_atomic
from heedful.progress import Meter, Step
from heedful.records import Record

if TYPE_CHECKING:
    from heedful.studies.translation.recipe import StudySettings

Scale = Literal["quick", "standard", "course"]

SUMMARY = 2
"""Findings of each part that stand in the summary."""
LAB_ELSEWHERE: dict[str, Any] = {"steps": 30, "sentences": 100}
"""The public checkpoint inside the laboratory: seconds a step, so few of them."""
FEW_PAIRS = 500
"""Pairs on which it is fine-tuned, at most."""
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
OPTIONS = {
    "knowledge": {"quick": "--quick", "standard": "", "course": f"--seeds {COURSE_SEEDS}"},
    "heads": {"quick": "--quick --seeds 2 --steps 60", "standard": "--quick", "course": ""},
}
"""What gives a part of a scale again, as options of `heed study`."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PartRecord(Record):
    """One finished part."""

    name: str
    """Its name, as --only takes it."""
    title: str
    """Its title in the report."""
    findings: tuple[str, ...]
    """What it found, one line each."""
    seconds: float
    """How long it took."""
    html: str
    """Its section of the report."""
    record: dict[str, Any]
    """The record it ends in."""
    contents: tuple[str, ...] = ()
    """The headings of its section, in order."""
    version: str = __version__
    """The version of Heedful that made it."""
    command: str = ""
    """What makes it again."""
    decided_by: dict[str, str] = field(default_factory=dict)
    """What decided it besides the version: the scale, and the content of the corpus."""

    @property
    def summary(self) -> tuple[str, ...]:
        """Its weightiest findings."""
        return self.findings[:SUMMARY]


@dataclass(frozen=True, eq=False, kw_only=True)
class LabRecord(Record):
    """A whole run of the laboratory."""

    report: str
    """Where the report is."""
    scale: str
    """How much was trained: quick, standard or course."""
    seconds: float
    """How long its parts took."""
    summary: tuple[str, ...]
    """The weightiest findings, at most two of each part."""
    findings: tuple[str, ...]
    """What was found, in the order of the report."""
    parts: tuple[PartRecord, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the record without the markup of its parts."""
        plain = super().to_dict()
        for part in plain["parts"]:
            del part["html"]
        return plain


@dataclass(frozen=True, kw_only=True)
class Laboratory:
    """Where and how large the parts are run."""

    output: Path
    """Folder of the laboratory."""
    scale: Scale = "standard"
    corpus: tuple[Path, ...] = ()
    """Pairs for the translation part; none: the phrasebook."""
    model: str = ""
    """A public checkpoint for the translation part; none unless it is named, whatever lies in a
    cache."""

    @property
    def work(self) -> Path:
        """The folder for runs: scales do not see each other's."""
        return self.output if self.scale == "standard" else self.output / self.scale

    def decisive(self, names: tuple[str, ...]) -> dict[str, str]:
        """Return what decides a part, so that only the same is kept: corpora by their content."""
        decided: dict[str, str] = {"scale": self.scale} if "scale" in names else {}
        if "corpus" in names and self.corpus:
            decided["corpus"] = " ".join(_content(path) for path in self.corpus)
        if "model" in names and self.model:
            decided["model"] = self.model
        return decided

    def command(self, part: str = "") -> str:
        """Return the command that makes a part, or everything, again."""
        words = ["heed", "lab", *(["--only", part] if part else [])]
        if self.scale != "standard":
            words += ["--scale", self.scale]
        if self.corpus and part in ("", "translation", "heads"):
            words += ["--corpus", *map(str, self.corpus)]
        if self.model and part in ("", "translation"):
            words += ["--model", self.model]
        return shlex.join(words)


class Part(NamedTuple):
    """One part of the laboratory."""

    name: str
    says: str
    run: Callable[[Laboratory, Step], Record]
    decided_by: tuple[str, ...] = ()
    """What of the laboratory decides its result: scale, corpus, model."""


Draw = Callable[[str, Record, float, Laboratory], PartRecord]
"""Gets the name of a part, what it ended in, its seconds and the laboratory; draws its section."""
Watch = Callable[[str], AbstractContextManager[Step]]
"""Gets what begins; shows how far it is."""


def run_lab(
    lab: Laboratory,
    draw: Draw,
    *,
    only: list[str] | None = None,
    fresh: bool = False,
    watch: Watch = lambda what: nullcontext(Meter(what)),
    say: Callable[[str], None] = lambda _line: None,
) -> tuple[PartRecord, ...]:
    """Run the parts that were asked for, or find them kept.

    `fresh` makes every part again; finished trainings are still found. A part for which a package
    is not installed is left out, unless it was asked for by name.
    """
    parts = chosen(only)
    decided = {part.name: lab.decisive(part.decided_by) for part in parts}
    prepare_folder(lab.output)  # only after what was asked for is known to be there
    done: list[PartRecord] = []
    for part in parts:
        kept = None if fresh else finished_part(lab.output, part.name, decided[part.name])
        if kept is not None:
            say(f"{part.name}: kept from an earlier run ({kept.seconds:.1f} s)")
            done.append(kept)
            continue
        started = time.perf_counter()
        try:
            with watch(part.says) as step:
                record = part.run(lab, step)
                drawn = draw(part.name, record, time.perf_counter() - started, lab)
        except MissingPartError as error:
            if only is not None:
                raise
            say(f"{part.name}: left out ({error})")
            continue
        command = lab.command(part.name)
        done.append(replace(drawn, command=command, decided_by=decided[part.name]))
        keep_part(lab.output, done[-1])
        say(f"{part.name}: {time.perf_counter() - started:.1f} s")
    return tuple(done)


def lab_record(lab: Laboratory, parts: tuple[PartRecord, ...], report: Path) -> LabRecord:
    """Return what the laboratory ends in."""
    return LabRecord(
        report=str(report),
        scale=lab.scale,
        parts=parts,
        seconds=round(sum(part.seconds for part in parts), 2),
        summary=tuple(finding for part in parts for finding in part.summary),
        findings=tuple(finding for part in parts for finding in part.findings),
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


def finished_part(output: Path, name: str, decided_by: dict[str, str]) -> PartRecord | None:
    """Return a part that this version finished with the same scale and corpus, if it reads well."""
    try:
        content = json.loads(_path(output, name).read_text(encoding="utf-8"))
        lists = {name: tuple(content[name]) for name in ("findings", "contents")}
        part = PartRecord(**{**content, **lists})
    except (OSError, ValueError, TypeError, KeyError):
        return None
    same = (part.version, part.name, part.decided_by) == (__version__, name, decided_by)
    return part if same else None


def keep_part(output: Path, part: PartRecord) -> None:
    """Keep a finished part, whole or not at all."""
    path = _path(output, part.name)
    path.parent.mkdir(exist_ok=True)
    write_atomic(path, part.to_json(indent=None))


def prepare_folder(output: Path) -> None:
    """Make the folder of a study, or say why it cannot be."""
    if output.exists() and not output.is_dir():
        raise InputError("--output", f"{output} is a file", expected="a folder")
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            "--output", f"{output} cannot be made ({error.strerror})", hint="choose another"
        ) from None


def translation_settings(lab: Laboratory) -> StudySettings:
    """Return the study of translation at this scale, with sizes that the corpus has."""
    from heedful.studies.translation.corpus import read_study_corpus
    from heedful.studies.translation.recipe import QUICK, study_settings

    bases: dict[str, dict[str, Any]] = {
        "quick": QUICK,
        "standard": {},
        "course": COURSE_TRANSLATION,
    }
    base = bases[lab.scale]
    settings = study_settings(base)
    if lab.corpus:
        given = {"corpus": tuple(map(str, lab.corpus))}
        there = len(read_study_corpus(study_settings(base, given, {"sizes": (1,)})).train)
        sizes = tuple(size for size in settings.sizes if size <= there) or (there,)
        settings = study_settings(base, given, {"sizes": sizes})
        if lab.scale == "course" and there > sizes[-1]:
            settings = study_settings(base, given, _with_all_pairs(settings, there))
    if lab.model:
        few = tuple(size for size in settings.sizes if size <= FEW_PAIRS) or settings.sizes[:1]
        elsewhere = {**LAB_ELSEWHERE, "model": lab.model, "sizes": few[-1:]}
        if lab.scale == "quick":
            elsewhere |= QUICK["elsewhere"]
        settings = study_settings(settings.model_dump(), {"elsewhere": elsewhere})
    return settings


def _with_all_pairs(settings: StudySettings, there: int) -> dict[str, Any]:
    """Return the changes that add all pairs as the last size; the others keep their steps."""
    more = there / settings.sizes[-1]
    steps = {
        name: {"steps": round(learning.steps * more**learning.growth)}
        for name, learning in (("scratch", settings.scratch), ("fine_tuning", settings.fine_tuning))
    }
    return {"sizes": (*settings.sizes, there), **steps}


def _attention(_lab: Laboratory, step: Step) -> Record:
    from heedful.studies.exploration import explore

    return explore(step)


def _claims(_lab: Laboratory, step: Step) -> Record:
    from heedful.claims.checker import check

    return check([], progress=step)


def _positions(lab: Laboratory, step: Step) -> Record:
    from heedful.positions import positions_study

    length, width = POSITIONS[lab.scale]
    record = positions_study("sinusoidal", length=length, width=width)
    step(1, 1)
    return record


def _translation(lab: Laboratory, step: Step) -> Record:
    from heedful.studies.translation.translation_study import run_study, with_everyday

    words = ["heed", "study", "translation", *(["--quick"] if lab.scale == "quick" else [])]
    if lab.corpus:
        words += ["--corpus", *map(str, lab.corpus)]
    study = run_study(
        translation_settings(lab),
        lab.work / "translation",
        tell=lambda _what, share: step(round(1000 * share), 1000),
        # What the laboratory changes in the study, only the laboratory makes again.
        command=lab.command("translation")
        if lab.scale == "course" or lab.model
        else shlex.join(words),
    )
    return with_everyday(study)


def _knowledge(lab: Laboratory, step: Step) -> Record:
    from heedful.studies.knowledge.knowledge_study import study_knowledge
    from heedful.studies.knowledge.plans import plan_for

    changes = {"seeds": COURSE_SEEDS} if lab.scale == "course" else {}
    plan = plan_for(quick=lab.scale == "quick", changes=changes)
    return study_knowledge(*plan, lab.work / "knowledge", step)


def _pretrained(_lab: Laboratory, step: Step) -> Record:
    from heedful.studies.knowledge.stored import stored_measurement

    record = stored_measurement()
    step(1, 1)
    return record


def _heads(lab: Laboratory, step: Step) -> Record:
    from heedful.studies.heads import lab_study

    return lab_study(lab.work, step, lab.scale)


PARTS = (
    Part("attention", "exploring attention", _attention),
    Part("claims", "judging the claims of the catalog", _claims),
    Part("positions", "looking at position embeddings", _positions, ("scale",)),
    Part("translation", "learning to translate", _translation, ("scale", "corpus", "model")),
    Part("knowledge", "teaching and asking", _knowledge, ("scale",)),
    Part("pretrained", "showing what was measured of a public model", _pretrained),
    Part("heads", "watching the heads of a trained model", _heads, ("scale", "corpus")),
)


def _content(path: Path) -> str:
    try:
        return f"sha256:{sha256_of(path)}"
    except OSError as error:
        raise InputError("--corpus", f"{path} cannot be read ({error.strerror})") from None


def _path(output: Path, name: str) -> Path:
    return output / "parts" / f"{name}.json"
