"""One file over HTTP: with progress, going on where an earlier try stopped, never above a size."""

from __future__ import annotations

import http.client
import re
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from heedful.errors import RunError

CHUNK = 1 << 16
PATIENCE = 30.0
"""Seconds to wait for the other side."""
NOTHING_LEFT = 416
"""What a server answers when the part that is here is the whole file."""

Progress = Callable[[int, int], None]


def download(
    address: str,
    part: Path,
    *,
    most_bytes: int,
    by_hand: str,
    progress: Progress | None = None,
) -> None:
    """Bring what lies at `address` to `part`; goes on from what `part` holds already.

    `by_hand` is what to do where there is no network: it ends the message.
    """
    done = part.stat().st_size if part.is_file() else 0
    request = urllib.request.Request(address, headers={"User-Agent": "heedful"})
    if done:
        request.add_header("Range", f"bytes={done}-")
    try:
        with _opener().open(request, timeout=PATIENCE) as answer:
            goes_on = answer.status == http.client.PARTIAL_CONTENT and _start(answer) == done
            if answer.status == http.client.PARTIAL_CONTENT and not goes_on:
                raise _failed(address, part, "the server sent another part than was asked for")
            done = done if goes_on else 0
            with part.open("ab" if goes_on else "wb") as file:
                _copy(answer, file, done, most_bytes, address, progress)
    except urllib.error.HTTPError as error:
        if error.code != NOTHING_LEFT or not done:
            raise _failed(address, part, f"the server answered {error.code}") from None
    except urllib.error.URLError as error:
        raise _unreachable(address, by_hand, error) from None
    except (http.client.HTTPException, TimeoutError, ConnectionError) as error:
        raise _failed(
            address, part, f"the connection broke ({error or type(error).__name__})"
        ) from None


def _copy(
    answer: Any,
    file: IO[bytes],
    done: int,
    most_bytes: int,
    address: str,
    progress: Progress | None,
) -> None:
    length = answer.headers.get("Content-Length", "")
    total = done + int(length) if length.isdecimal() and len(length) < 16 else 0
    while chunk := answer.read(CHUNK):
        done += len(chunk)
        if max(done, total) > most_bytes:
            raise RunError(
                address,
                f"is larger than {most_bytes:,} bytes",
                expected="the file that was published was expected",
                way_out="fetch it from another place",
            )
        file.write(chunk)
        if progress is not None and total:
            progress(done, total)
    if done < total:
        raise ConnectionError(f"{done:,} of {total:,} bytes came")


def _start(answer: Any) -> int | None:
    found = re.match(r"bytes (\d{1,15})-", answer.headers.get("Content-Range", ""))
    return int(found.group(1)) if found else None


class _SameOrSafer(urllib.request.HTTPRedirectHandler):
    """Follows a redirection, but never from https to anything else."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        schemes = ("https",) if urlsplit(req.full_url).scheme == "https" else ("http", "https")
        if urlsplit(newurl).scheme not in schemes:
            raise urllib.error.HTTPError(newurl, code, "redirects to another protocol", headers, fp)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _opener() -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(_SameOrSafer())


def _failed(address: str, part: Path, reason: str) -> RunError:
    kept = part.stat().st_size if part.is_file() else 0
    return RunError(
        address,
        reason,
        way_out=f"try again; {kept:,} bytes are kept in {part.name} and will not be fetched twice"
        if kept
        else "try again later",
    )


def _unreachable(address: str, by_hand: str, error: urllib.error.URLError) -> RunError:
    reason = getattr(error.reason, "strerror", None) or str(error.reason)
    return RunError(
        address,
        f"cannot be reached ({' '.join(reason.split())})",
        expected="this needs a network",
        way_out=f"or fetch it on a machine that is online, and {by_hand}",
    )
