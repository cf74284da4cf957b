"""Every session in a `console` block of the documentation, run again and compared.

A fenced block marked `console` is a small session:

    $ heed attend --n 3 --query 6 6 0          a command; what follows is its output
    $ cat keys.json                            shows a file, and makes it for this block
    $ echo $?                                  the exit code of the command before

Each block runs alone in an empty folder. In the expected output a line `[...]` stands for any
lines and `[...]` inside a line for any text, for what may differ between machines.

    python docs/console.py --check             compare; exit 1 where something differs
    python docs/console.py --write             put the real output into the pages
"""

from __future__ import annotations

import argparse
import difflib
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from prepared import Prepared

ROOT = Path(__file__).resolve().parents[1]
FENCE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ELISION = "[...]"
CRASHES = ("Traceback (most recent call last)", "this should not happen")
"""What a page never shows: `heed` failing in a way nobody meant."""
TIME_LIMIT = 300
"""Seconds after which a command counts as hanging."""
PROGRESS = re.compile(r".+: \d{1,3} %, \d+ (?:s|min|h)\b.*")
"""What work says of itself when it takes long, as it does beside other programs."""
PREPARED = Prepared()
"""Where the commands run."""
PLAIN = {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
"""A terminal of that width, without colours."""


@dataclass(frozen=True)
class Step:
    """One command and the output the page shows for it."""

    command: str
    """What follows the `$`, continuation lines included."""
    expected: str
    """The lines below it, each ending in a newline."""


@dataclass(frozen=True)
class Block:
    """One fenced session of a page."""

    page: Path
    line: int
    """Where the fence opens, counted from 1."""
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    def steps(self) -> list[Step]:
        """Return the commands of the block in order."""
        steps: list[Step] = []
        lines = iter(self.text.splitlines(keepends=True))
        for line in lines:
            if line.startswith("$ "):
                command = line[2:]
                while command.endswith("\\\n"):
                    command += next(lines)
                steps.append(Step(command.rstrip("\n"), ""))
            elif steps:
                steps[-1] = Step(steps[-1].command, steps[-1].expected + line)
            else:
                raise ValueError(f"{self}: output without a command: {line.strip()!r}")
        return steps


def pages() -> list[Path]:
    """Return every page whose sessions are checked."""
    found = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    return sorted(page for page in found if "_build" not in page.parts)


def blocks(page: Path) -> Iterator[Block]:
    """Yield the sessions of one page."""
    text = page.read_text(encoding="utf-8")
    for match in FENCE.finditer(text):
        yield Block(page, text.count("\n", 0, match.start()) + 1, match.group(1))


def session(block: Block) -> Iterator[tuple[Step, str]]:
    """Run a block in an empty folder; yield each step with its real output."""
    code = 0
    with tempfile.TemporaryDirectory() as folder:
        for step in block.steps():
            words = shlex.split(step.command.replace("\\\n", " "))
            if words[0] == "heed":
                output, code = run(words[1:], Path(folder))
                yield step, output
            elif words[0] == "cat" and len(words) == 2 and Path(words[1]).name == words[1]:
                (Path(folder) / words[1]).write_text(step.expected, encoding="utf-8")
                yield step, step.expected
            elif words == ["echo", "$?"]:
                yield step, f"{code}\n"
            else:
                raise ValueError(f"{block}: only heed, cat and echo $? are run: {step.command}")


def run(arguments: list[str], folder: Path) -> tuple[str, int]:
    """Run `heed` with the given arguments; return what a reader would see, and the exit code."""
    output, code = PREPARED.run("heedful", arguments, folder, environment=PLAIN, seconds=TIME_LIMIT)
    if any(sign in output for sign in CRASHES):
        raise RuntimeError(f"heed {shlex.join(arguments)} crashed:\n{output}")
    lines = [line.rstrip() for line in output.splitlines()]
    lines = [line for line in lines if not PROGRESS.fullmatch(line)]
    return "".join(f"{line}\n" for line in lines), code


def agrees(expected: str, found: str) -> bool:
    """Tell whether the real output is what the page shows, elisions allowed.

    >>> agrees("a\\n[...]\\nd\\n", "a\\nb\\nc\\nd\\n"), agrees("took [...] s\\n", "took 3 s\\n")
    (True, True)
    >>> agrees("a\\n", "b\\n")
    False
    """
    pattern = "".join(_pattern(line) for line in expected.splitlines(keepends=True))
    return re.fullmatch(pattern, found) is not None


def _pattern(line: str) -> str:
    if line == f"{ELISION}\n":
        return r"(?:[^\n]*\n)*"
    return re.escape(line).replace(re.escape(ELISION), r"[^\n]*")


def differences(block: Block) -> str:
    """Return where a block's real output differs from the page; empty if it agrees."""
    report = ""
    try:
        for step, found in session(block):
            if not agrees(step.expected, found):
                report += f"{block}\n$ {step.command}\n{_difference(step.expected, found)}"
    except (RuntimeError, subprocess.TimeoutExpired) as crash:
        report += f"{block}: {crash}"
    return report


def _difference(shown: str, real: str) -> str:
    lines = (text.splitlines(keepends=True) for text in (shown, real))
    return "".join(difflib.unified_diff(*lines, "shown", "real"))


def rewritten(block: Block) -> str:
    """Return the text of a block with the real output; outputs that agree stay as they are."""
    return "".join(
        f"$ {step.command}\n{step.expected if agrees(step.expected, found) else found}"
        for step, found in session(block)
    )


def write(page: Path) -> tuple[bool, list[str]]:
    """Put the real outputs into one page; tell whether it changed, and what crashed.

    A block in which a command crashes stays as it is.
    """
    before = page.read_text(encoding="utf-8")
    texts, crashes = [], []
    for block in blocks(page):
        try:
            texts.append(rewritten(block))
        except (RuntimeError, subprocess.TimeoutExpired) as crash:
            texts.append(block.text)
            crashes.append(f"{block}: {crash}")
    outputs = iter(texts)
    after = FENCE.sub(lambda _: f"```console\n{next(outputs)}```", before)
    if after != before:
        page.write_text(after, encoding="utf-8")
    return after != before, crashes


def main() -> int:
    """Check or write the pages named, or all of them."""
    parser = argparse.ArgumentParser(description="Run the `console` sessions of the pages.")
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--check", action="store_true", help="compare, change nothing")
    mode.add_argument("--write", action="store_true", help="put the real output into the pages")
    parser.add_argument("pages", nargs="*", type=Path, help="default: README.md and docs/**/*.md")
    options = parser.parse_args()
    wrong = 0
    for page in [path.resolve() for path in options.pages] or pages():
        wrong += _update(page) if options.write else _compare(page)
    return 1 if wrong else 0


def _update(page: Path) -> int:
    changed, crashes = write(page)
    print(
        f"{page.relative_to(ROOT)}: {'rewritten' if changed else 'unchanged'}", *crashes, sep="\n"
    )
    return len(crashes)


def _compare(page: Path) -> int:
    wrong = 0
    for block in blocks(page):
        report = differences(block)
        wrong += bool(report)
        print(report or f"{block}: agrees")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
