"""Checksums of files: SHA-256, or the name that Git gives to a file's content."""

from __future__ import annotations

import hashlib
from pathlib import Path

CHUNK = 1 << 20


def checksum_of(path: Path, like: str) -> str:
    """Return the checksum of a file, of the same kind as `like` (`sha256:…` or `git:…`).

    Git hashes the size before the content, so its names are checks of both.
    """
    kind = like.partition(":")[0]
    digest = hashlib.sha256()
    if kind == "git":
        digest = hashlib.sha1(usedforsecurity=False)
        digest.update(f"blob {path.stat().st_size}\0".encode())
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return f"{kind}:{digest.hexdigest()}"
