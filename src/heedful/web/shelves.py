"""The runs and models that the page may look at: known by ids, found below folders named once.

`heed serve --runs FOLDER --model PATH …` says what there is. An id stands for a path that was found
there; nothing that the page sends is ever a path.
"""

from __future__ import annotations

import re
import threading
from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.errors import InputError
from heedful.files import sha256
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

    def askers(self) -> list[ModelEntry]:
        """Return what can be asked questions: studies of knowledge, and runs that they left."""
        folders = [path for path in self._folders() if _can_be_asked(path)]
        within = {path / "runs" for path in folders}
        runs = self.runs().values()
        folders += [p for p in runs if (p / ASK).is_file() and p.parent not in within]
        called = {self.runs()[one]: name for one, (name, _) in self.names().items()}
        return [
            ModelEntry(id=id_of(path), name=called.get(path, path.name), run=None)
            for path in folders
        ]

    def asker(self, identifier: str) -> Path:
        """Return the folder of what can be asked."""
        known = {entry.id for entry in self.askers()}
        found = {id_of(path): path for path in self._folders()}.get(identifier)
        if found is None or identifier not in known:
            raise InputError("asker", f"{identifier!r} is unknown", expected="one of the list")
        return found

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
                name=path.stem or str(path),
                run=None,
                translates=self.translates(path),
            )
            for path in self.models
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
        places: dict[str, Any] = {id_of(path): path for path in self.models}
        places |= {id_of(path / "model"): path / "model" for path in self.runs().values()}
        if identifier not in places:
            raise InputError("model", f"{identifier!r} is unknown", expected="a model of the list")
        return Path(places[identifier])


def _is_run(path: Path) -> bool:
    return (path / "config.json").is_file()


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
