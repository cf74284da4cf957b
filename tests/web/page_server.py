"""A page server for tests: the application in this process, or a real one on a port."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn
from starlette.testclient import TestClient

from heedful.web import Access, BuiltPage, PageSettings, create_app
from heedful.web.app import Asset
from heedful.web.security import MOST_BYTES

PORT = 8710
TOKEN = "a-token-that-only-these-tests-know"
ACCESS = Access(port=PORT, token=TOKEN)
HOST = f"127.0.0.1:{PORT}"
ORIGIN = f"http://{HOST}"


def small_page(folder: Path) -> BuiltPage:
    """Return a page of two files, so that the API is tested without a build."""
    (folder / "index.html").write_text("<!doctype html><title>Heedful</title>", "utf-8")
    (folder / "page-1.js").write_text("export default 1\n", "utf-8")
    script = Asset(folder / "page-1.js", "text/javascript")
    return BuiltPage(Asset(folder / "index.html", "text/html"), {"page-1.js": script})


def settings_for(folder: Path, access: Access = ACCESS, **changes: Any) -> PageSettings:
    """Return settings with a small page and no runs."""
    return PageSettings(access=access, runs=folder / "runs", page=small_page(folder), **changes)


def client_of(settings: PageSettings, headers: dict[str, str] | None = None) -> TestClient:
    """Return a client that sends just these headers, and nothing of its own."""
    client = TestClient(create_app(settings), base_url=ORIGIN, follow_redirects=False)
    client.headers.clear()
    client.headers.update({"host": HOST} | (headers or {}))
    return client


def own_headers(access: Access = ACCESS) -> dict[str, str]:
    """Return what the page itself sends."""
    return {"origin": f"http://{access.hosts[0]}", "cookie": f"{access.cookie}={access.token}"}


@dataclass(frozen=True)
class Running:
    """A server on a port of this machine."""

    access: Access

    @property
    def address(self) -> str:
        """Where it is opened."""
        return self.access.address


@contextmanager
def running(**changes: Any) -> Iterator[Running]:
    """Serve on a free port while the block runs."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        access = Access(port=listening.getsockname()[1])
        config = uvicorn.Config(
            create_app(PageSettings(access=access, **changes)),
            log_level="error",
            access_log=False,
            ws_max_size=MOST_BYTES,
            timeout_graceful_shutdown=1,
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        deadline = time.monotonic() + 150
        while not server.started and time.monotonic() < deadline:
            time.sleep(0.02)
        try:
            yield Running(access)
        finally:
            server.should_exit = True
            thread.join(timeout=60)
