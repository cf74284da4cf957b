"""Read and judge a folder of sheets under an audit hook: `python watched.py FOLDER`.

Prints, as JSON, what was said about each sheet, and every event that reading a sheet has no
business to cause: running code that is not a module of the installation, a socket, another
process, a file opened for writing or outside the folder.
"""

from __future__ import annotations

import json
import os
import site
import sys
import sysconfig
import time
from pathlib import Path
from types import CodeType
from typing import Any

import heedful
from heedful.claims.judge import judge_claim
from heedful.claims.sheet import find_sheets, load_sheet
from heedful.errors import HeedfulError

SECONDS = 3.0
INSTALLED = tuple(
    str(Path(place).resolve())
    for place in {
        sysconfig.get_path("stdlib"),
        *site.getsitepackages(),
        *map(str, Path(heedful.__file__).parents[:1]),
    }
)
FORBIDDEN = (
    "socket.", "subprocess.", "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn",
    "os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate",
    "os.chmod", "os.chown", "os.kill", "os.putenv", "shutil.", "tempfile.", "urllib.", "ftplib.",
    "http.", "smtplib.", "pty.", "webbrowser.", "code.__new__", "pickle.",
)  # fmt: skip
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Watch:
    """What happens while it is on."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder.resolve())
        self.on = False
        self.events: list[str] = []

    def hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Note an event that must not happen, and stop what caused it."""
        if not self.on:
            return
        reason = self._reason(event, arguments)
        if reason:
            self.events.append(reason)
            raise PermissionError(reason)

    def _reason(self, event: str, arguments: tuple[Any, ...]) -> str:
        if event == "open":
            path, _, flags = arguments
            if isinstance(path, int):
                return ""
            place = os.path.abspath(os.fsdecode(path))  # noqa: PTH100  resolve() would open links
            if isinstance(flags, int) and flags & WRITING:
                return f"open for writing: {place}"
            inside = place.startswith((self.folder + os.sep, "/proc/self/", *INSTALLED))
            return "" if inside else f"open outside: {place}"
        if event == "exec":
            code = arguments[0]
            known = isinstance(code, CodeType) and code.co_filename.startswith(
                (*INSTALLED, "<frozen ")
            )
            return "" if known else f"exec: {code}"
        if event == "compile":
            _, name = arguments
            known = str(name).startswith(INSTALLED)
            return "" if known else f"compile: {name}"
        return event if event.startswith(FORBIDDEN) else ""


def main(folder: Path) -> None:
    """Read and judge every sheet of a folder."""
    for text in ("1 + 1 = 2", "1 + 1 = 3"):  # what the engine imports on first use
        judge_claim(load_sheet(f'[[claim]]\nid = "x"\nexpect = "{text}"\n').claims[0])
    watch = Watch(folder)
    sys.addaudithook(watch.hear)
    said: dict[str, list[str]] = {}
    slowest = 0.0
    watch.on = True
    start = time.perf_counter()
    sheets = find_sheets([folder])
    reading = time.perf_counter() - start
    for sheet in sheets:
        lines = [str(problem).replace(f"{folder}{os.sep}", "") for problem in sheet.problems]
        for claim in sheet.claims:
            start = time.perf_counter()
            try:
                verdict = judge_claim(claim, sheet=sheet.name, seconds=SECONDS)
                lines.append(f"judged: {verdict.verdict}")
            except MemoryError:
                lines.append("judged: undecided")  # as the limits of `heed check` would have it
            except HeedfulError as error:
                located = sheet.located(claim.id, error)
                lines.append("judge: " + str(located).replace(f"{folder}{os.sep}", ""))
            except Exception as error:  # reported, so that the test names the sheet
                lines.append(f"RAISED {type(error).__name__}: {error}")
            slowest = max(slowest, time.perf_counter() - start)
        said[sheet.name] = lines
    watch.on = False
    result = {"said": said, "events": watch.events, "slowest": slowest, "reading": reading}
    print(json.dumps(result))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
