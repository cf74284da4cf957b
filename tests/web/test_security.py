"""F11: whoever is not this page is refused, on every route, WebSockets included.

The routes are listed from the application itself, so that a new one is tested the day it is added.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from page_server import ACCESS, HOST, ORIGIN, TOKEN, client_of, own_headers, settings_for
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.testclient import TestClient, WebSocketDenialResponse
from starlette.websockets import WebSocketDisconnect

from heedful.web.app import unguarded_app
from heedful.web.security import MOST_BYTES, Access, refusal_of

COOKIE = f"{ACCESS.cookie}={TOKEN}"
FILLED = {"{name}": "page-1.js", "{run}": "0123456789abcdef"}

# What is changed in the headers of a request that would otherwise pass.
WRONG: dict[str, dict[str, str | None]] = {
    "no token": {"cookie": None},
    "bad token": {"cookie": f"{ACCESS.cookie}=guessed"},
    "token of another port": {"cookie": f"heedful_9999={TOKEN}"},
    "foreign host": {"host": "evil.example:8710"},
    "host without port": {"host": "127.0.0.1"},
    "another port": {"host": "127.0.0.1:9999"},
    "foreign origin": {"origin": "http://evil.example"},
    "origin of another port": {"origin": "http://127.0.0.1:9999"},
    "origin by another name": {"origin": "http://localhost:8710"},
    "secure origin": {"origin": "https://127.0.0.1:8710"},
    "longer origin": {"origin": f"{ORIGIN}.evil.example"},
    "null origin": {"origin": "null"},
    "empty origin": {"origin": ""},
    "absent origin": {"origin": None},
    "absent origin, from elsewhere": {"origin": None, "sec-fetch-site": "cross-site"},
}


def all_routes(routes: list[BaseRoute]) -> Iterator[Route | WebSocketRoute]:
    """Yield every route of an application, those of its parts included."""
    for route in routes:
        if isinstance(route, Route | WebSocketRoute):
            yield route
        else:
            inner = getattr(route, "routes", None) or getattr(route, "original_router", None)
            found = getattr(inner, "routes", inner)
            assert found, f"{route!r} cannot be listed"
            yield from all_routes(list(found))


def every_door(folder: Path) -> list[tuple[str, str]]:
    """Return (method, path) of every route; WS stands for a WebSocket."""
    doors = []
    for route in all_routes(list(unguarded_app(settings_for(folder)).routes)):
        path = route.path
        for name, value in FILLED.items():
            path = path.replace(name, value)
        assert "{" not in path, f"say in FILLED what stands for the parameter of {path}"
        methods = ["WS"] if isinstance(route, WebSocketRoute) else sorted(route.methods or ())
        doors += [(method, path) for method in methods]
    return doors


@pytest.fixture
def client(tmp_path: Path) -> TestClient:
    """A client that adds no header of its own."""
    return client_of(settings_for(tmp_path))


def status(client: TestClient, method: str, path: str, headers: dict[str, str | None]) -> int:
    """Ask, and return the status of the answer; 101 for an opened WebSocket."""
    kept = {name: value for name, value in headers.items() if value is not None}
    client.cookies.clear()
    if method != "WS":
        body = b"{}" if method == "POST" else None
        return client.request(method, path, headers=kept, content=body).status_code
    try:
        with client.websocket_connect(path, headers=kept):
            return 101
    except WebSocketDenialResponse as refused:
        return refused.status_code
    except WebSocketDisconnect as closed:
        return 403 if closed.code == 1008 else 500


def test_the_doors_are_those_of_the_views(tmp_path: Path) -> None:
    doors = every_door(tmp_path)
    paths = {path for _, path in doors}
    assert {"/", "/assets/page-1.js", "/api/attention/noise", "/api/claims/live"} <= paths
    assert sum(method == "WS" for method, _ in doors) >= 2
    questions = [(method, path) for method, path in doors if path.startswith("/api/")]
    assert {method for method, _ in questions} <= {"POST", "WS"}


@pytest.mark.parametrize("case", WRONG)
def test_every_route_refuses(case: str, client: TestClient, tmp_path: Path) -> None:
    for method, path in every_door(tmp_path):
        headers = {"host": HOST, **own_headers(), **WRONG[case]}
        found = status(client, method, path, headers)
        assert found in (401, 403), f"{method} {path} answers {found} to a request with {case}"


def test_the_page_itself_is_let_in(client: TestClient, tmp_path: Path) -> None:
    for method, path in every_door(tmp_path):
        found = status(client, method, path, {"host": HOST, **own_headers()})
        assert found not in (401, 403), f"{method} {path} refuses the page itself"
        assert found < 500


@pytest.mark.parametrize("site", ["none", "same-origin"])
def test_a_browser_that_opens_the_page_sends_no_origin(client: TestClient, site: str) -> None:
    headers: dict[str, str | None] = {"host": HOST, "cookie": COOKIE, "sec-fetch-site": site}
    assert status(client, "GET", "/", headers) == 200
    assert status(client, "GET", "/assets/page-1.js", headers) == 200
    assert status(client, "POST", "/api/about", headers) == 403  # a POST always has an Origin
    assert status(client, "WS", "/api/claims/live", headers) == 403


def test_the_token_in_the_address_is_exchanged_for_a_cookie(tmp_path: Path) -> None:
    client = client_of(settings_for(tmp_path), {"sec-fetch-site": "none"})
    answer = client.get(f"/?token={TOKEN}")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/"
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"{ACCESS.cookie}={TOKEN};")
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    client.cookies.clear()
    # Wrong, twice, or none; and it opens the page, and nothing else.
    for address in (
        "/?token=guessed",
        f"/?token={TOKEN}&token={TOKEN}",
        "/?token=",
        f"/assets/page-1.js?token={TOKEN}",
    ):
        assert client.get(address).status_code == 401


def test_a_followed_link_is_asked_for_once_more(tmp_path: Path) -> None:
    followed = {"sec-fetch-site": "cross-site", "sec-fetch-dest": "document"}
    answer = client_of(settings_for(tmp_path), followed).get("/")
    assert (answer.status_code, answer.headers["refresh"]) == (401, "0")
    again = client_of(settings_for(tmp_path), {"sec-fetch-site": "same-origin"}).get("/")
    assert again.status_code == 401
    assert "refresh" not in again.headers  # no endless loop
    framed = {"sec-fetch-site": "cross-site", "sec-fetch-dest": "iframe", "cookie": COOKIE}
    assert client_of(settings_for(tmp_path), framed).get("/").status_code == 403


def test_a_host_that_is_missing_and_headers_that_are_there_twice_are_refused() -> None:
    base = [(b"host", HOST.encode()), (b"origin", ORIGIN.encode()), (b"cookie", COOKIE.encode())]
    scope = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": base}
    assert refusal_of(scope, ACCESS) is None
    wrong = [base[1:], [*base, base[0]], [*base, base[1]]]  # no Host, two of them, two Origins
    for headers in wrong:
        refusal = refusal_of(scope | {"headers": headers}, ACCESS)
        assert refusal is not None
        assert refusal.status == 403


def test_nothing_but_http_and_websockets_passes() -> None:
    refusal = refusal_of({"type": "telepathy", "headers": []}, ACCESS)
    assert refusal is not None
    assert refusal.status == 403


@pytest.mark.parametrize("path", ["/", "/assets/page-1.js", "/nowhere", "/api/nowhere"])
@pytest.mark.parametrize("known", [True, False])
def test_every_answer_carries_the_policy(tmp_path: Path, path: str, known: bool) -> None:
    headers = own_headers() if known else {}
    answer = client_of(settings_for(tmp_path), headers).get(path)
    policy = dict(
        part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";")
    )
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert "http:" not in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"


def test_a_body_above_the_limit_is_refused(tmp_path: Path) -> None:
    json = {"content-type": "application/json"}
    client = client_of(settings_for(tmp_path), own_headers() | json)
    stated = client.post("/api/positions/order", content=b" " * (MOST_BYTES + 1))
    assert stated.status_code == 413
    pieces = itertools.repeat(b" " * 65_536, MOST_BYTES // 65_536 + 2)  # no length stated
    assert client.post("/api/positions/order", content=pieces).status_code == 413
    fitting = b'{"first": "a b"' + b" " * (MOST_BYTES - 100) + b"}"
    assert client.post("/api/positions/order", content=fitting).status_code == 200


@pytest.mark.parametrize(
    "name",
    [
        "../index.html", "..%2Findex.html", "%2e%2e/index.html", "..\\index.html", "index.html",
        "/etc/passwd", "%2Fetc%2Fpasswd", "page-1.js%00", "page-1.js/", "./page-1.js",
    ],
)  # fmt: skip
def test_files_are_names_and_never_paths(tmp_path: Path, name: str) -> None:
    client = client_of(settings_for(tmp_path), own_headers())
    answer = client.get(f"/assets/{name}")
    assert answer.status_code == 404 or answer.text == "export default 1\n"
    assert "root:" not in answer.text


@pytest.mark.parametrize("run", ["..", "../..", "/etc", "small", "%2e%2e"])
def test_runs_and_models_are_ids_and_never_paths(tmp_path: Path, run: str) -> None:
    (tmp_path / "runs" / "small").mkdir(parents=True)
    client = client_of(settings_for(tmp_path), own_headers())
    answer = client.post("/api/models/read", json={"model": run, "text": "a"})
    assert answer.status_code == 422
    assert "unknown" in answer.json()["error"]
    assert str(tmp_path) not in answer.text


def test_tokens_are_long_and_different() -> None:
    tokens = {Access(port=1).token for _ in range(100)}
    assert len(tokens) == 100
    assert min(map(len, tokens)) >= 43
    assert all(token not in repr(Access(port=1, token=token)) for token in tokens)
