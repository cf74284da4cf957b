"""The server behind `heed serve`: this machine only, until Ctrl-C."""

from __future__ import annotations

import socket
import threading
import webbrowser
from collections.abc import Callable
from pathlib import Path

import uvicorn

from heedful.errors import InputError, RunError
from heedful.web.app import BuiltPage, PageSettings, create_app
from heedful.web.security import MOST_BYTES, Access

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
