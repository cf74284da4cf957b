"""The application: one page, and the questions that it asks.

    GET  /                     the page; with ?token=… once, to open the session
    GET  /assets/NAME          its scripts, styles and fonts
    POST /api/attention/…      view 1
    POST /api/claims/…         view 2, and its WebSocket
    POST /api/assignments/…    view 2, an assignment that is worked on
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
import socket
import threading
import webbrowser
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, RedirectResponse, Response
from starlette.exceptions import HTTPException

from heedful import __version__
from heedful.attention.keys import STANDARD_KEYS
from heedful.claims.checker import Checker
from heedful.errors import HeedfulError, InputError, MissingPartError, RunError
from heedful.web.answers import Desk, answer, explain_errors
from heedful.web.attention_api import ENCODINGS, attention_routes, positions_routes
from heedful.web.claims_api import LIVE_LIMITS, assignments_routes, catalog_json, claims_routes
from heedful.web.models_api import models_routes, studies_routes
from heedful.web.security import MOST_BYTES, Access, Guard, token_in_address
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
            raise missing_page("heed serve", folder)
        files = sorted((folder / "assets").iterdir())
        return cls(
            index=Asset(index, "text/html; charset=utf-8"),
            assets={path.name: Asset(path, _media_type(path)) for path in files if path.is_file()},
        )


def built_folder() -> Path:
    """Return where the built page lies."""
    return Path(str(resources.files("heedful.web").joinpath(FOLDER)))


def missing_page(where: str, folder: Path) -> MissingPartError:
    """Return the error of a command whose page was not built, with the reason."""
    reason = folder / REASON
    why = " ".join(reason.read_text("utf-8").split()) if reason.is_file() else ""
    return MissingPartError(
        where,
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
    app.include_router(claims_routes(desk, checker, shelves))
    app.include_router(assignments_routes(desk, checker))
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
    async def tell() -> Response:
        return answer(about())


def about() -> dict[str, Any]:
    """Return what the page only shows: the version, the standard keys, the encodings."""
    keys = [entry.to_dict() for entry in STANDARD_KEYS.values()]
    return {"version": __version__, "keys": keys, "encodings": ENCODINGS}


ADDRESS = "127.0.0.1"
DEFAULT_PORT = 8710


def serve(
    *,
    port: int | None = None,
    runs: Path = Path("runs"),
    models: tuple[Path, ...] = (),
    browser: bool = True,
    ready: Callable[[str], None] = print,
) -> None:
    """Serve the page until a signal; `ready` is told the address once it can be opened."""
    page = BuiltPage.find()
    listening = _bound(port)
    with listening:
        access = Access(port=listening.getsockname()[1])
        settings = PageSettings(access=access, runs=runs, models=models, page=page)
        server = _Server(_config(settings), access.address, ready, browser=browser)
        server.run(sockets=[listening])


def _config(settings: PageSettings) -> uvicorn.Config:
    return uvicorn.Config(
        create_app(settings),
        host=ADDRESS,
        port=settings.access.port,
        log_level="warning",
        access_log=False,  # the first request carries the token
        server_header=False,
        ws_max_size=MOST_BYTES,
        ws_max_queue=8,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=2,
        h11_max_incomplete_event_size=32_768,
    )


class _Server(uvicorn.Server):
    """A server that says when it can be opened."""

    def __init__(
        self, config: uvicorn.Config, address: str, ready: Callable[[str], None], *, browser: bool
    ) -> None:
        super().__init__(config)
        self._address = address
        self._ready = ready
        self._browser = browser

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen, then tell and open the address."""
        await super().startup(sockets)
        if self.started:
            self._ready(self._address)
            if self._browser:
                # Some browsers block until their window is closed.
                threading.Thread(target=webbrowser.open, args=(self._address,), daemon=True).start()


def _bound(port: int | None) -> socket.socket:
    """Return a socket on this machine: on the wanted port, or the usual one, or any free one."""
    if port is not None and not 0 <= port <= 65_535:
        raise InputError("--port", f"is {port}", expected="a port from 0 (any) to 65535")
    choices = [DEFAULT_PORT, 0] if port is None else [port]
    for choice in choices:
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((ADDRESS, choice))
        except OSError as error:
            listening.close()
            if choice == choices[-1]:
                raise RunError(
                    "--port",
                    f"{choice} cannot be used ({error.strerror})",
                    hint="leave --port out to take any free one",
                ) from None
            continue
        return listening
    raise AssertionError("port 0 always gives a port")
