"""The runs and models that the page may look at: known by ids, found below folders named once.

`heed serve --runs FOLDER --model PATH …` says what there is. An id stands for a path that was found
there; nothing that the page sends is ever a path.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.errors import InputError
from heedful.records import Record

if TYPE_CHECKING:
    from heedful.model import Pretrained

LOADED = 2
"""Models that are kept in memory."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ModelEntry(Record):
    """One model that can be read with."""

    id: str
    name: str
    """How the page calls it."""
    run: str | None
    """The id of the run that made it; None for a model from elsewhere."""


@dataclass
class Shelves:
    """What was found below the folders."""

    runs_folder: Path
    models: tuple[Path, ...] = ()
    _loaded: OrderedDict[str, Pretrained] = field(default_factory=OrderedDict)
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def runs(self) -> dict[str, Path]:
        """Return the runs that there are now, by id."""
        if not self.runs_folder.is_dir():
            return {}
        folders = [self.runs_folder, *sorted(self.runs_folder.iterdir())]
        return {id_of(path): path for path in folders if (path / "config.json").is_file()}

    def run(self, identifier: str) -> Path:
        """Return the folder of a run, or say that there is none."""
        found = self.runs().get(identifier)
        if found is None:
            raise InputError("run", f"{identifier!r} is unknown", expected="a run of the list")
        return found

    def entries(self) -> list[ModelEntry]:
        """Return the models of finished runs, and those that were named."""
        made = [
            ModelEntry(id=id_of(path / "model"), name=path.name, run=identifier)
            for identifier, path in self.runs().items()
            if (path / "model" / "config.json").is_file()
        ]
        return made + [
            ModelEntry(id=id_of(path), name=path.stem or str(path), run=None)
            for path in self.models
        ]

    def load(self, identifier: str) -> Pretrained:
        """Return a model with its weights; the last few stay in memory."""
        with self._guard:
            if identifier in self._loaded:
                self._loaded.move_to_end(identifier)
                return self._loaded[identifier]
            path = self._path(identifier)
            from heedful.model import load

            loaded = load(path)
            self._loaded[identifier] = loaded
            while len(self._loaded) > LOADED:
                self._loaded.popitem(last=False)
            return loaded

    def _path(self, identifier: str) -> Path:
        places: dict[str, Any] = {id_of(path): path for path in self.models}
        places |= {id_of(path / "model"): path / "model" for path in self.runs().values()}
        if identifier not in places:
            raise InputError("model", f"{identifier!r} is unknown", expected="a model of the list")
        return Path(places[identifier])


def id_of(path: Path) -> str:
    """Return the id of a path: the same path has the same id tomorrow, so links keep working."""
    return hashlib.sha256(str(path.absolute()).encode("utf-8", "surrogateescape")).hexdigest()[:16]
