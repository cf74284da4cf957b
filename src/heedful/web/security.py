"""Who may ask: nobody but the page that `heed serve` opened, on this machine.

Everything that arrives, a request or a WebSocket, passes one guard before any route sees it.
It must

1. name this server as its Host (so that no foreign name can be pointed at 127.0.0.1),
2. come from this page: an `Origin` equal to the server's own, or, where browsers send none (the
   page itself and its files), their `Sec-Fetch-Site`; neither of the two is a refusal,
3. carry the token, in a cookie that scripts cannot read and other sites cannot send; the
   opened address carries it once, and is exchanged for the cookie at once,
4. be at most 1 MB.

Whatever is not allowed by name is refused: 403 for a wrong place, 401 for a missing token.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import MutableMapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BYTES = 1_000_000
"""The largest body of a request, and the largest message of a WebSocket."""

CONTENT_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "font-src 'self'",
        "img-src 'self' data: blob:",  # figures on their way to a saved file
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)

HEADERS = (
    (b"content-security-policy", CONTENT_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
"""What every answer carries."""

_REFUSED_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Heedful</title></head>
<body><h1>This page needs its key</h1>
<p>Open it with the address that <code>heed serve</code> printed: it holds the key of this
session. After that, links to a view work in the same browser.</p></body></html>
"""


@dataclass(frozen=True)
class Access:
    """Where the server listens, and the secret that opens it."""

    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names under which this machine reaches the server."""
        return (f"127.0.0.1:{self.port}", f"localhost:{self.port}")

    @property
    def cookie(self) -> str:
        """Name of the cookie; browsers share cookies between ports, so it holds the port."""
        return f"heedful_{self.port}"

    @property
    def address(self) -> str:
        """The address to open, with the token."""
        return f"http://{self.hosts[0]}/?token={self.token}"

    def knows(self, token: str) -> bool:
        """Compare a token, in the same time whatever it is."""
        return hmac.compare_digest(token.encode("utf-8", "replace"), self.token.encode())


@dataclass(frozen=True)
class Refusal:
    """Why something may not pass."""

    status: int
    message: str
    again: bool = False
    """Let the browser ask once more: a followed link does not carry a strict cookie."""


class Guard:
    """The application behind a guard; it covers WebSockets as well."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self.app = app
        self.access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what may pass, and refuse the rest."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        refusal = refusal_of(scope, self.access)
        if refusal is not None:
            await _refuse(refusal, scope, send)
        elif scope["type"] == "websocket":
            await self.app(scope, receive, send)
        else:
            await self.app(scope, _limited(scope, receive), _with_headers(send))


def refusal_of(scope: Scope, access: Access) -> Refusal | None:
    """Return why a request or WebSocket may not pass; None if it may."""
    if scope["type"] not in ("http", "websocket"):
        return Refusal(403, "only HTTP and WebSockets are served")
    hosts = _values(scope, b"host")
    if len(hosts) != 1 or hosts[0] not in access.hosts:
        return Refusal(403, "the Host is not this server")
    origins = _values(scope, b"origin")
    if origins != [f"http://{hosts[0]}"] if origins else not _by_the_browser(scope):
        return Refusal(403, "the request does not come from this page")
    if _has_token(scope, access):
        return None
    followed = _values(scope, b"sec-fetch-site") in (["cross-site"], ["same-site"])
    return Refusal(401, "the token is missing or wrong", again=followed)


def _by_the_browser(scope: Scope) -> bool:
    """Tell whether a request without Origin is one that browsers make for this page."""
    if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD"):
        return False
    site = _values(scope, b"sec-fetch-site")
    if site in (["same-origin"], ["none"]):
        return True
    # A link to a view, followed on another site: it may open the page, and nothing else.
    document = _values(scope, b"sec-fetch-dest") == ["document"]
    return site in (["cross-site"], ["same-site"]) and document and scope["path"] == "/"


def _has_token(scope: Scope, access: Access) -> bool:
    for header in _values(scope, b"cookie"):
        try:
            morsel = SimpleCookie(header).get(access.cookie)
        except CookieError:
            continue
        if morsel is not None and access.knows(morsel.value):
            return True
    return token_in_address(scope, access)


def token_in_address(scope: Scope, access: Access) -> bool:
    """Tell whether this is the opened address, which alone may carry the token."""
    if scope["type"] != "http" or scope["path"] != "/":
        return False
    query = parse_qs(scope.get("query_string", b"").decode("latin-1"), max_num_fields=16)
    tokens = query.get("token", [])
    return len(tokens) == 1 and access.knows(tokens[0])


def _values(scope: Scope, name: bytes) -> list[str]:
    """Return every header of a name: two of them are one too many, and no choice is made."""
    return [value.decode("latin-1") for key, value in scope["headers"] if key.lower() == name]


async def _refuse(refusal: Refusal, scope: Scope, send: Send) -> None:
    page = scope["path"] == "/"
    body = (_REFUSED_PAGE if page else refusal.message + "\n").encode()
    headers = [
        (b"content-type", b"text/html; charset=utf-8" if page else b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        *HEADERS,
    ]
    if refusal.again:
        # Asked for again by this very page, the browser does send the strict cookie.
        headers.append((b"refresh", b"0"))
    kind = "http.response"
    if scope["type"] == "websocket":
        if "websocket.http.response" not in scope.get("extensions", {}):
            await send({"type": "websocket.close", "code": 1008})  # becomes 403 on the wire
            return
        kind = "websocket.http.response"
    await send({"type": f"{kind}.start", "status": refusal.status, "headers": headers})
    await send({"type": f"{kind}.body", "body": body})


def _limited(scope: Scope, receive: Receive) -> Receive:
    """Count what comes in, so that a body without a stated length is limited as well."""
    seen = 0
    stated = _values(scope, b"content-length")
    too_long = any(not value.isdigit() or int(value) > MOST_BYTES for value in stated)

    async def counted() -> Message:
        nonlocal seen
        if too_long:
            raise _too_large()
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > MOST_BYTES:
            raise _too_large()
        return message

    return counted


def _too_large() -> HTTPException:
    return HTTPException(413, f"a request may hold at most {MOST_BYTES:,} bytes")


def _with_headers(send: Send) -> Send:
    async def sending(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            present = {name.lower() for name, _ in message.get("headers", [])}
            headers = [*message.get("headers", []), *HEADERS]
            if b"cache-control" not in present:
                headers.append((b"cache-control", b"no-store"))
            message = {**message, "headers": headers}
        await send(message)

    return sending
