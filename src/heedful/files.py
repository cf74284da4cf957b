"""Files on disk: written whole or not at all, recognised by digest, downloaded by checksum.

    write_atomic(path, content)      a file that is there completely or not at all
    sha256(content), sha256_of(path) digests of bytes and of files
    download(file, folder)           a published file, resumed, size-capped and checked

Bytes are written by plain writes from the calling thread (never through mapped memory, where a
full disk kills the process), flushed to the disk, and made visible by one rename.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
import shutil
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from heedful.errors import RunError

WRITE_CHUNK = 16 * 2**20
READ_CHUNK = 1 << 20
UNFINISHED = ".writing"
"""How the name of a file ends that `atomic_file` has not finished."""

_SHIPPED_FOLDER = Path(__file__).parent / "model" / "shipped"
SHIPPED = {name: _SHIPPED_FOLDER / name for name in ("fr-en", "en-fr")}
"""Models that come with the package, by name: where their folders lie."""
SHIPPED_TOKENIZER = _SHIPPED_FOLDER / "tokenizer.json"
"""The tokenizer of all of them, which is in none of the folders."""

Progress = Callable[[int, int], None]
"""Called with (bytes done, of how many)."""


# Writing


@contextlib.contextmanager
def atomic_file(path: Path) -> Iterator[int]:
    """Open a file descriptor whose content takes the place of `path` when the block ends.

    Readers see the old file or the new one, even after a power failure: the content is flushed
    before the rename, and the folder after it. If the block fails, `path` is left as it was.
    """
    # The name is random because two processes may write the same file at once.
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}{UNFINISHED}")
    handle = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        try:
            yield handle
            os.fsync(handle)
        finally:
            os.close(handle)
        unfinished.rename(path)
    except BaseException:
        with contextlib.suppress(OSError):
            unfinished.unlink()
        raise
    fsync_path(path.parent)


def write_atomic(path: Path, content: bytes | str) -> None:
    """Put a file in the place of another, or of none; text is written as UTF-8."""
    with atomic_file(path) as handle:
        write_all(handle, content.encode("utf-8") if isinstance(content, str) else content)


def write_json(path: Path, content: Any) -> None:
    """Write a value as readable JSON, atomically."""
    write_atomic(path, json_bytes(content))


def write_new(path: Path, content: bytes | memoryview) -> None:
    """Write a file that must not exist yet and flush it: one part of a folder to be renamed."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        write_all(handle, content)
        os.fsync(handle)
    finally:
        os.close(handle)


def write_all(handle: int, content: bytes | memoryview) -> None:
    """Write every byte: the system may take fewer than it is given, as on a disk that fills up."""
    rest = memoryview(content)
    while len(rest):
        rest = rest[os.write(handle, rest[:WRITE_CHUNK]) :]


def fsync_path(path: Path) -> None:
    """Flush a file, or the names in a folder, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove_unfinished(folder: Path) -> None:
    """Remove what killed processes left of `atomic_file`; only for who owns the folder alone."""
    for path in folder.glob(f".*{UNFINISHED}"):
        path.unlink(missing_ok=True)


def json_bytes(content: Any) -> bytes:
    """Return a value as readable JSON."""
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    return (text + "\n").encode("utf-8")


# Digests


def sha256(content: bytes | str) -> str:
    """Return the SHA-256 of bytes, or of a text as UTF-8, in hexadecimal."""
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def git_name_of(path: Path) -> str:
    """Return the name that Git gives to a file's content.

    Git hashes the size before the content, so its names check both.
    """
    digest = hashlib.sha1(f"blob {path.stat().st_size}\0".encode(), usedforsecurity=False)
    with path.open("rb") as file:
        while chunk := file.read(READ_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


# Downloads

DOWNLOAD_CHUNK = 1 << 16
TIMEOUT = 30.0
"""Seconds to wait for a server."""


@dataclass(frozen=True, kw_only=True)
class RemoteFile:
    """A file that somebody publishes: where it is, and how to recognise it."""

    name: str
    """What it is called here."""
    address: str
    checksum: str
    """`sha256:…`, or `git:…` for the name of a Git blob, of the file under its own name."""
    most_bytes: int
    """The most that is downloaded."""
    member: str | None = None
    """Which file of a zip archive it is, where the address gives an archive."""

    def is_at(self, path: Path) -> bool:
        """Return whether a whole copy is at `path`."""
        return path.is_file() and self.checksum_of(path) == self.checksum

    def checksum_of(self, path: Path) -> str:
        """Return the checksum of a file, of the same kind as this file's own."""
        kind = self.checksum.partition(":")[0]
        return f"{kind}:{git_name_of(path) if kind == 'git' else sha256_of(path)}"


def user_cache() -> Path:
    """Return the folder for what can be made or downloaded again."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "heedful"


def models_cache() -> Path:
    """Return where `heed model get` puts what it fetches, each model in a folder of its name."""
    return user_cache() / "models"


def fetched_models() -> dict[str, Path]:
    """Return the models that `heed model get` has fetched, by name."""
    return {path.parent.name: path for path in sorted(models_cache().glob("*/*.gguf"))}


def download(file: RemoteFile, folder: Path, progress: Progress | None = None) -> bool:
    """Download a file to a folder; return False if a whole copy was there already.

    What arrives goes to `NAME.part`, from which the next try resumes, and becomes the file only
    if its checksum is the expected one.
    """
    path, part = folder / file.name, folder / (file.name + ".part")
    if file.is_at(path):
        return False
    free = shutil.disk_usage(folder).free
    if free < file.most_bytes:
        raise RunError(
            str(folder),
            f"has {free:,} bytes left",
            expected=f"up to {file.most_bytes:,} may be needed",
            hint="free some space, or choose another folder with --to",
        )
    what = "it" if file.member is None else f"its {file.member}"
    _resume(file, part, f"put {what} at {path}", progress)
    content = part
    if file.member is not None:
        content = folder / (file.name + ".unpacked")
        try:
            unzip_member(part, file.member, content, most_bytes=file.most_bytes)
        except ValueError as error:
            part.unlink(missing_ok=True)
            raise RunError(
                file.address,
                f"gave {error}",
                hint="nothing was kept; try again, or fetch the file from another place",
            ) from None
    checksum = file.checksum_of(content)
    if checksum != file.checksum:
        # A wrong file cannot be resumed; keeping it would make the next try fail as well.
        content.unlink()
        part.unlink(missing_ok=True)
        raise RunError(
            file.address,
            f"gave a file with the checksum {checksum}",
            expected=f"{file.checksum} was expected",
            hint="nothing was kept; try again, or fetch the file from another place",
        )
    fsync_path(content)
    content.replace(path)
    part.unlink(missing_ok=True)
    return True


def unzip_member(
    archive: Path,
    member: str,
    target: Path,
    *,
    most_bytes: int,
    progress: Progress | None = None,
) -> None:
    """Write one member of a zip archive, cut at `most_bytes`; a ValueError if it cannot be had."""
    done = 0
    try:
        with (
            zipfile.ZipFile(archive) as opened,
            opened.open(member) as source,
            target.open("wb") as file,
        ):
            while done < most_bytes and (chunk := source.read(min(READ_CHUNK, most_bytes - done))):
                file.write(chunk)
                done += len(chunk)
                if progress is not None:
                    progress(done, most_bytes)
    except (zipfile.BadZipFile, zlib.error, KeyError, NotImplementedError, RuntimeError, EOFError):
        target.unlink(missing_ok=True)
        raise ValueError(f"no zip archive that holds {member}") from None


def _resume(file: RemoteFile, part: Path, by_hand: str, progress: Progress | None) -> None:
    """Bring what is missing of `part`; `by_hand` says what to do where there is no network."""
    # Imported here: these cost as much as the rest of this module and its users together.
    import http.client
    import urllib.error
    import urllib.request

    done = part.stat().st_size if part.is_file() else 0
    request = urllib.request.Request(file.address, headers={"User-Agent": "heedful"})
    if done:
        request.add_header("Range", f"bytes={done}-")
    try:
        with _opener().open(request, timeout=TIMEOUT) as answer:
            partial = answer.status == http.client.PARTIAL_CONTENT
            if partial and _start_of(answer) != done:
                raise _failed(file, part, "the server sent another part than was asked for")
            with part.open("ab" if partial else "wb") as target:
                _copy(answer, target, done if partial else 0, file, progress)
    except urllib.error.HTTPError as error:
        # "Range not satisfiable": the part that is here is the whole file.
        if error.code != http.client.REQUESTED_RANGE_NOT_SATISFIABLE or not done:
            raise _failed(file, part, f"the server answered {error.code}") from None
    except urllib.error.URLError as error:
        reason = getattr(error.reason, "strerror", None) or str(error.reason)
        raise RunError(
            file.address,
            f"cannot be reached ({' '.join(reason.split())})",
            expected="this needs a network",
            hint=f"or fetch it on a machine that is online, and {by_hand}",
        ) from None
    except (http.client.HTTPException, TimeoutError, ConnectionError) as error:
        raise _failed(
            file, part, f"the connection broke ({error or type(error).__name__})"
        ) from None


def _copy(
    answer: Any, target: IO[bytes], done: int, file: RemoteFile, progress: Progress | None
) -> None:
    length = answer.headers.get("Content-Length", "")
    total = done + int(length) if length.isdecimal() and len(length) < 16 else 0
    while chunk := answer.read(DOWNLOAD_CHUNK):
        done += len(chunk)
        if max(done, total) > file.most_bytes:
            raise RunError(
                file.address,
                f"is larger than {file.most_bytes:,} bytes",
                expected="the file that was published was expected",
                hint="fetch it from another place",
            )
        target.write(chunk)
        if progress is not None and total:
            progress(done, total)
    if done < total:
        raise ConnectionError(f"{done:,} of {total:,} bytes came")


def _start_of(answer: Any) -> int | None:
    match = re.match(r"bytes (\d{1,15})-", answer.headers.get("Content-Range", ""))
    return int(match.group(1)) if match else None


def _opener() -> Any:
    """Return what opens addresses: it follows redirections, but never from https to http."""
    import urllib.error
    import urllib.request
    from urllib.parse import urlsplit

    class SafeRedirects(urllib.request.HTTPRedirectHandler):
        def redirect_request(
            self,
            req: urllib.request.Request,
            fp: Any,
            code: int,
            msg: str,
            headers: Any,
            newurl: str,
        ) -> urllib.request.Request | None:
            safe = ("https",) if urlsplit(req.full_url).scheme == "https" else ("http", "https")
            if urlsplit(newurl).scheme not in safe:
                problem = "redirects to another protocol"
                raise urllib.error.HTTPError(newurl, code, problem, headers, fp)
            return super().redirect_request(req, fp, code, msg, headers, newurl)

    return urllib.request.build_opener(SafeRedirects())


def _failed(file: RemoteFile, part: Path, reason: str) -> RunError:
    kept = part.stat().st_size if part.is_file() else 0
    return RunError(
        file.address,
        reason,
        hint=f"try again; {kept:,} bytes are kept in {part.name} and will not be fetched twice"
        if kept
        else "try again later",
    )
