"""The application: one page, and the questions that it asks.

    GET  /                     the page; with ?token=… once, to open the session
    GET  /assets/NAME          its scripts, styles and fonts
    POST /api/attention/…      view 1
    POST /api/claims/…         view 2, and its WebSocket
    POST /api/positions/…      view 3
    POST /api/models/…         view 4, and its WebSocket

All of it stands behind the guard of `security`. Questions are POSTs even where they change nothing:
browsers then always say where they come from. The files of the built page are found once, when
the server starts; a name that is not among them does not exist, whatever it spells.
"""

from __future__ import annotations

import contextlib
import importlib
import mimetypes
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, RedirectResponse, Response
from starlette.exceptions import HTTPException

from heedful import __version__
from heedful.attention.keys import STANDARD_KEYS
from heedful.claims.checker import Checker
from heedful.errors import HeedfulError, MissingPartError
from heedful.web.answers import Desk, answer, explain_errors
from heedful.web.attention_api import attention_routes
from heedful.web.claims_api import LIVE_LIMITS, catalog_json, claims_routes
from heedful.web.models_api import models_routes, studies_routes
from heedful.web.positions_api import ENCODINGS, positions_routes
from heedful.web.security import Access, Guard, token_in_address
from heedful.web.shelves import Shelves

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
        hint="run `make page` in the source tree, or install Heedful again",
    )


def _media_type(path: Path) -> str:
    known = {".js": "text/javascript; charset=utf-8", ".woff2": "font/woff2"}
    guessed = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return known.get(path.suffix, guessed)


@dataclass(frozen=True)
class PageSettings:
    """What `heed serve` was told."""

    access: Access
    """Port and token."""
    runs: Path = Path("runs")
    """The folder whose runs are shown."""
    models: tuple[Path, ...] = ()
    """Further models to read with."""
    page: BuiltPage = field(default_factory=BuiltPage.find)
    """The built page."""
    judges: int = 2
    """Processes that judge claims."""


def create_app(settings: PageSettings) -> Guard:
    """Return the application behind its guard."""
    return Guard(unguarded_app(settings), settings.access)


def unguarded_app(settings: PageSettings) -> FastAPI:
    """Return the application itself; only tests, which list its routes, need it bare."""
    desk, checker = Desk(), Checker(workers=settings.judges, limits=LIVE_LIMITS)
    shelves = Shelves(settings.runs, settings.models)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        threading.Thread(target=warm_up, args=(shelves,), daemon=True, name="warm-up").start()
        yield
        checker.close()

    app = FastAPI(
        title="Heedful",
        docs_url=None,  # its pages would load scripts from elsewhere
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
    )
    explain_errors(app)
    _page_routes(app, settings)
    app.include_router(attention_routes(desk))
    app.include_router(claims_routes(desk, checker))
    app.include_router(positions_routes(desk))
    app.include_router(models_routes(desk, shelves))
    app.include_router(studies_routes(shelves))
    return app


def warm_up(shelves: Shelves) -> None:
    """Load what the first question about claims or models would wait for.

    A part that is not installed is left: whoever asks about a model is told what is missing.
    """
    catalog_json()
    if shelves.entries() or shelves.runs():  # else nobody may ever need torch
        with contextlib.suppress(HeedfulError):
            importlib.import_module("heedful.training.runs")
            importlib.import_module("heedful.model")


def _page_routes(app: FastAPI, settings: PageSettings) -> None:
    page, access = settings.page, settings.access

    @app.get("/")
    async def index(request: Request) -> Response:
        if not token_in_address(request.scope, access):
            return FileResponse(page.index.path, media_type=page.index.media_type)
        # The address bar and the history must not keep the token; the #view stays as it is.
        moved = RedirectResponse("/", status_code=303)
        moved.set_cookie(access.cookie, access.token, httponly=True, samesite="strict", path="/")
        return moved

    @app.get("/assets/{name}")
    async def asset(name: str) -> Response:
        found = page.assets.get(name)
        if found is None:
            raise HTTPException(404, "there is no such file")
        # Names carry a hash of the content: what was fetched once need not be asked for again.
        headers = {"cache-control": "private, max-age=31536000, immutable"}
        return FileResponse(found.path, media_type=found.media_type, headers=headers)

    @app.post("/api/about")
    async def about() -> Response:
        keys = [entry.to_dict() for entry in STANDARD_KEYS.values()]
        return answer({"version": __version__, "keys": keys, "encodings": ENCODINGS})
