"""The runs and models that the page may look at: known by ids, found below folders named once.

`heed serve --runs FOLDER --model PATH …` says what there is: runs, studies, and models of others,
folders of Hugging Face or GGUF files, named or lying in the folder of runs. An id stands for a path
that was found there; nothing that the page sends is ever a path.
"""

from __future__ import annotations

import re
import threading
from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from heedful.errors import InputError
from heedful.files import fetched_models, sha256
from heedful.records import Record
from heedful.studies.knowledge.findings import ASK
from heedful.studies.knowledge.findings import RECORD as KNOWLEDGE_RECORD

if TYPE_CHECKING:
    from heedful.model import Pretrained

LOADED = 2
"""Models that are kept in memory."""
TRANSLATION = "translation.json"
"""Files by which a translator, a run that can be asked, and a study of knowledge are known."""
_HASH = re.compile(r"(?<=.)-[0-9a-f]{8}$")
"""What `run_path` puts behind the label of a run, so that the same settings find it again."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ModelEntry(Record):
    """One model that can be read with."""

    id: str
    name: str
    """How the page calls it."""
    run: str | None
    """The id of the run that made it; None for a model from elsewhere."""
    translates: bool = False
    """Whether it was taught to translate."""


@dataclass(frozen=True, eq=False, kw_only=True)
class AskerEntry(Record):
    """Something that can be asked questions."""

    id: str
    name: str
    kind: Literal["study", "model"]
    """A knowledge study with its own calibration, or any other model that continues a text."""
    called: str = ""
    """What `heed ask` calls it; MODEL where only whoever started the server knows its path."""


@dataclass
class Shelves:
    """What was found below the folders."""

    runs_folder: Path
    models: tuple[Path, ...] = ()
    _loaded: OrderedDict[str, Pretrained] = field(default_factory=OrderedDict)
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def runs(self) -> dict[str, Path]:
        """Return the runs that there are now, by id."""
        return {id_of(path): path for path in self._folders() if _is_run(path)}

    def names(self) -> dict[str, tuple[str, str]]:
        """Return what people call each run, and the study it belongs to ("" for none), by id.

        Runs of a study lose the hash behind their label, unless two would then have one name.
        """
        paths = self.runs()
        called = {one: _called(path.name) for one, path in paths.items()}
        study = {one: self._study_of(path) for one, path in paths.items()}
        often = Counter((study[one], called[one]) for one in paths)
        return {
            one: (called[one] if often[study[one], called[one]] == 1 else path.name, study[one])
            for one, path in paths.items()
        }

    def _study_of(self, path: Path) -> str:
        """Return the study in whose folder `runs` a run lies."""
        inside = path.parent.name == "runs" and path.parent != self.runs_folder
        return path.parent.parent.name if inside else ""

    def _folders(self) -> list[Path]:
        """Return the folder, what lies in it, and the runs of studies that lie in it."""
        if not self.runs_folder.is_dir():
            return []
        folders = [self.runs_folder, *sorted(self.runs_folder.iterdir())]
        studies = [path / "runs" for path in folders if not _is_run(path)]
        return folders + [
            run for study in studies if study.is_dir() for run in sorted(study.iterdir())
        ]

    def elsewhere(self) -> list[Path]:
        """Return the models that were named, and those that lie in the folder of runs."""
        lying = [path for path in self._folders() if _is_model(path) and not _is_run(path.parent)]
        return list(dict.fromkeys([*self.models, *lying]))

    def askers(self) -> list[AskerEntry]:
        """Return who can be asked: studies of knowledge, runs that they left, and other models."""
        folders = [path for path in self._folders() if _can_be_asked(path)]
        within = {path / "runs" for path in folders}
        runs = self.runs()
        folders += [p for p in runs.values() if (p / ASK).is_file() and p.parent not in within]
        called = {runs[one]: name for one, (name, _) in self.names().items()}
        studies = [
            AskerEntry(id=id_of(path), name=called.get(path, path.name), kind="study")
            for path in folders
        ]
        return studies + self._answering()

    def _answering(self) -> list[AskerEntry]:
        """Return the models that continue any text; parts of a study are asked through it."""
        names, fetched = self.names(), {path: name for name, path in fetched_models().items()}
        return [
            AskerEntry(
                id=entry.id,
                name=entry.name,
                kind="model",
                called=fetched.get(self.path(entry.id), "MODEL"),
            )
            for entry in self.entries()
            if not entry.translates and not (entry.run and names[entry.run][1])
        ]

    def asker(self, identifier: str) -> Path:
        """Return the folder of a study that can be asked."""
        found = {id_of(path): path for path in self._folders()}.get(identifier)
        if found is None or self._asked(identifier, "study") is None:
            raise InputError("asker", f"{identifier!r} is unknown", expected="one of the list")
        return found

    def answering(self, identifier: str) -> tuple[AskerEntry, Path]:
        """Return a model that can be asked, and where it lies."""
        entry = self._asked(identifier, "model")
        if entry is None:
            raise InputError("model", f"{identifier!r} is unknown", expected="one of the list")
        return entry, self.path(identifier)

    def _asked(self, identifier: str, kind: str) -> AskerEntry | None:
        wanted = (identifier, kind)
        return next((one for one in self.askers() if (one.id, one.kind) == wanted), None)

    def run(self, identifier: str) -> Path:
        """Return the folder of a run, or say that there is none."""
        found = self.runs().get(identifier)
        if found is None:
            raise InputError("run", f"{identifier!r} is unknown", expected="a run of the list")
        return found

    def entries(self) -> list[ModelEntry]:
        """Return the models of finished runs, and those that were named."""
        called = self.names()
        made = [
            ModelEntry(
                id=id_of(path / "model"),
                name=": ".join(part for part in reversed(called[identifier]) if part),
                run=identifier,
                translates=self.translates(path / "model"),
            )
            for identifier, path in self.runs().items()
            if (path / "model" / "config.json").is_file()
        ]
        return made + [
            ModelEntry(
                id=id_of(path),
                name=(path.stem if path.is_file() else path.name) or str(path),
                run=None,
                translates=self.translates(path),
            )
            for path in self.elsewhere()
        ]

    @staticmethod
    def translates(path: Path) -> bool:
        """Tell whether a model says how it translates."""
        return (path / TRANSLATION).is_file()

    def load(self, identifier: str) -> Pretrained:
        """Return a model with its weights; the last few stay in memory."""
        with self._guard:
            if identifier in self._loaded:
                self._loaded.move_to_end(identifier)
                return self._loaded[identifier]
            path = self.path(identifier)
            from heedful.model import load

            loaded = load(path)
            self._loaded[identifier] = loaded
            while len(self._loaded) > LOADED:
                self._loaded.popitem(last=False)
            return loaded

    def path(self, identifier: str) -> Path:
        """Return where a model lies, or say that there is none of that id."""
        places: dict[str, Any] = {id_of(path): path for path in self.elsewhere()}
        places |= {id_of(path / "model"): path / "model" for path in self.runs().values()}
        if identifier not in places:
            raise InputError("model", f"{identifier!r} is unknown", expected="a model of the list")
        return Path(places[identifier])


def _is_run(path: Path) -> bool:
    return (path / "config.json").is_file() and not _is_model(path)


def _is_model(path: Path) -> bool:
    """Tell whether this is a model by itself: a GGUF file, or a folder with weights in it."""
    if path.suffix == ".gguf":
        return path.is_file()
    return (path / "config.json").is_file() and any(path.glob("*.safetensors"))


def _called(name: str) -> str:
    """Return the label of a run that a study named; other names as they are.

    >>> _called("rotary-finetune-0-9bfd090e"), _called("my-run")
    ('rotary finetune 0', 'my-run')
    """
    label, many = _HASH.subn("", name)
    return label.replace("-", " ") if many else name


def _can_be_asked(path: Path) -> bool:
    """Tell whether a folder is a study of knowledge that left a run to ask.

    A record alone is none: the laboratory keeps its parts under the same name.
    """
    record = (path / KNOWLEDGE_RECORD).is_file()
    return record and any((path / "runs").glob(f"*/{ASK}"))


def id_of(path: Path) -> str:
    """Return the id of a path: the same path has the same id tomorrow, so links keep working."""
    return sha256(str(path.absolute()).encode("utf-8", "surrogateescape"))[:16]
