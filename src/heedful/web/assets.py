"""The built page: its files, known by name before anything is asked for.

Files are found once, when the server starts. A request names one of them; a name that is not in
the table does not exist, whatever it spells.
"""

from __future__ import annotations

import mimetypes
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from heedful.errors import MissingPartError

FOLDER = "built"
"""Inside this package: what `vite build` wrote."""
REASON = "missing.txt"
"""Inside that folder, when the page could not be built: why."""


@dataclass(frozen=True)
class Asset:
    """One file of the page."""

    path: Path
    media_type: str


@dataclass(frozen=True)
class BuiltPage:
    """The files of the page by their names."""

    index: Asset
    assets: dict[str, Asset]

    @classmethod
    def find(cls, folder: Path | None = None) -> BuiltPage:
        """Return the built page, or say what is missing and how to get it."""
        folder = folder or built_folder()
        index = folder / "index.html"
        if not index.is_file():
            raise _missing(folder)
        files = sorted((folder / "assets").iterdir())
        return cls(
            index=Asset(index, "text/html; charset=utf-8"),
            assets={path.name: Asset(path, _media_type(path)) for path in files if path.is_file()},
        )


def built_folder() -> Path:
    """Return where the built page lies."""
    return Path(str(resources.files("heedful.web").joinpath(FOLDER)))


def _missing(folder: Path) -> MissingPartError:
    reason = folder / REASON
    why = " ".join(reason.read_text("utf-8").split()) if reason.is_file() else ""
    return MissingPartError(
        "heed serve",
        f"the page was not built when Heedful was installed{f' ({why})' if why else ''}",
        expected="its build needs Node 20.19 or newer and access to npm packages",
        way_out="run `make page` in the source tree, or install Heedful again",
    )


def _media_type(path: Path) -> str:
    known = {".js": "text/javascript; charset=utf-8", ".woff2": "font/woff2"}
    guessed = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return known.get(path.suffix, guessed)
