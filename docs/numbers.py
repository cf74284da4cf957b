"""Where every measured number of the documentation comes from.

A number of a page is measured where it claims something about the world that a reader cannot work
out from the sentence: a decimal, a percentage, a count of a hundred or more, or a number with a
unit of time, size or speed. Code, formulas, links, dates, versions and settings are none, nor are
small whole numbers. Each block (a paragraph, a list item, a table) with a measured number must
say where it is from, in one of three ways:

    run        the number stands in the output of a session on the same page, which the tests run
    record     the block, or a note `<!-- figures: NAME … -->` above it in its section, names a file
               of `benchmarks/results/`, or a dated record (`log.md`, `CHANGELOG.md`)
    source     the same with an address or an arXiv number

Two kinds are no measurements, and their notes say so: `formula`, worked out in the block itself;
`settings FILE …`, constants of the program, and then the numbers must stand in those files. A note
holds until the next heading of its level or a higher one.

    python docs/numbers.py             lists the blocks that say nothing; exit 1 if there are any
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
RECORDS = ("log.md", "CHANGELOG.md")
"""Records that are pages: dated entries, each with its figures."""
PAGES = ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md")

RUN = ("console", "pycon")
"""Fences whose content the tests run and compare."""
FENCE = re.compile(r"^( *)(```|~~~)([^\n]*)\n(.*?)^\1\2$", re.MULTILINE | re.DOTALL)
NOTE = re.compile(r"<!-- figures: (.*?) -->", re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
HEADING = re.compile(r"^(#{1,6}) ")
PLAIN = re.compile(
    r"`[^`]*`|\$[^$]*\$|!?\[[^\]]*\]\([^)]*\)|\]\([^)]*\)|<[^>]*>"
    r"|\b\d{4}-\d\d-\d\d\b|\b\d{1,2} \w+ 20\d\d\b|\b(?:18|19|20)\d\d\b|\barXiv:\S+"
    r"|\b(?:Python|torch|version|Apache-|seed|F|sheet) ?\d[\d.]*|\bv?\d+\.\d+\.\d+\b|\b\d+/\d+\b"
    r"|\b(?:95|100) %|\b(?:130|143|401|403)\b|\btheorem [\d.]+|\b[45]xx\b",
)
"""What is no measured number: code, formulas, links, dates, versions, the usual level, codes."""
UNIT = (
    r"(?:ms|s|seconds?|minutes?|hours?|MB|GB|KB|px|times|×|GFLOP\S*|tokens a second|a second"
    r"|processor|points|BLEU|parameters|million)"
)
MEASURED = re.compile(
    r"(?<![\w.^_{-])(?:\d[\d,]*\.\d+|\d[\d,.]*(?= ?%)|\d{1,3}(?:,\d{3})+|\d{3,}"
    rf"|\d+(?= {UNIT}\b))"
)
UNITS = (1.0, 100.0, 1e-3, 1e3, 1e-6, 1 / 60, 60.0)
"""What a number of a record may be multiplied by on a page: shares, thousands, minutes."""
ADDRESS = re.compile(r"https?://\S+|arXiv[ :]\d{4}\.\d{4,5}")


@dataclass(frozen=True)
class Block:
    """A piece of a page that says where its numbers are from, or does not."""

    page: Path
    line: int
    text: str
    notes: tuple[str, ...]
    """Of the sections that it stands in."""
    shown: str
    """The output of every session on its page."""

    def __str__(self) -> str:
        place = self.page.relative_to(ROOT) if self.page.is_relative_to(ROOT) else self.page
        return f"{place}:{self.line}"

    @property
    def numbers(self) -> list[str]:
        """The measured numbers in it, without those that a session or a settings file holds."""
        found = MEASURED.findall(PLAIN.sub(" ", COMMENT.sub(" ", self.text)))
        constants = "\n".join(_constants(note) for note in self.notes)
        return [
            one
            for one in found
            if not _stands_in(one, self.shown) and not _is_constant(one, constants)
        ]

    @property
    def sources(self) -> list[str]:
        """What the block and its sections name: records that exist, and published sources."""
        named = [*self.notes, self.text]
        found = [address for text in named for address in ADDRESS.findall(text)]
        for text in named:
            found += [one for one in re.findall(r"[\w/]+\.json\b", text) if _is_record(one)]
            found += [one for one in RECORDS if one in text]
        return found + [note for note in self.notes if note.startswith("formula")]


def pages() -> list[Path]:
    """Return every page that is checked."""
    found = [ROOT / name for name in PAGES]
    found += [path for path in (ROOT / "docs").rglob("*.md") if "_build" not in path.parts]
    return sorted(path for path in found if path.name not in RECORDS)


def blocks(page: Path) -> Iterator[Block]:
    """Yield the blocks of a page that are prose or tables."""
    text = page.read_text(encoding="utf-8")
    shown = "\n".join(match[4] for match in FENCE.finditer(text) if match[3].startswith(RUN))
    # Code keeps its lines, so that the numbers of lines stay right.
    prose = FENCE.sub(lambda match: "\n" * match[0].count("\n"), text)
    notes: list[tuple[int, str]] = []
    level, lines, start = 0, list[str](), 1
    for number, line in enumerate([*prose.splitlines(), ""], start=1):
        heading = HEADING.match(line)
        if heading:
            level = len(heading[1])
            notes = [(at, note) for at, note in notes if at < level]
        item = re.match(r"\s*(?:[-*]|\d+\.) ", line)
        if (not line.strip() or heading or item) and lines:
            block = "\n".join(lines)
            notes += [(level, note) for note in NOTE.findall(block)]
            if not all(one.startswith("    ") for one in lines):
                yield Block(page, start, block, tuple(note for _, note in notes), shown)
            lines = []
        if line.strip():
            start = start if lines else number
            lines.append(line)


def unsourced() -> list[tuple[Block, list[str]]]:
    """Return the blocks with measured numbers that say nothing about their origin."""
    return [
        (block, block.numbers)
        for page in pages()
        for block in blocks(page)
        if block.numbers and not block.sources
    ]


def unlike_their_record() -> list[tuple[Block, list[str]]]:
    """Return the blocks that name records only, with their numbers that no record of theirs has."""
    found = []
    for page in pages():
        for block in blocks(page):
            records = [name for name in block.sources if name.endswith(".json")]
            if records and len(records) == len(block.sources):
                known = [value for name in records for value in _values(_record(name))]
                wrong = [one for one in block.numbers if not _rounds_to(one, known)]
                found += [(block, wrong)] if wrong else []
    return found


def unknown_records() -> list[str]:
    """Return notes that name neither a record that exists, nor a source, nor a formula."""
    return [
        f"{block}: {note}"
        for page in pages()
        for block in blocks(page)
        for note in NOTE.findall(block.text)
        if not Block(page, 1, "", (note,), "").sources and not _constants(note)
    ]


def _constants(note: str) -> str:
    """Return the text of the files that a note names as settings."""
    if not note.startswith("settings"):
        return ""
    files = [ROOT / name for name in re.findall(r"(?:src|tests)/[\w./]+\.(?:py|toml)", note)]
    return "\n".join(file.read_text(encoding="utf-8") for file in files if file.is_file())


def _is_constant(number: str, text: str) -> bool:
    """Say whether a number, or the share that a percentage means, is written in some source."""
    plain = number.replace(",", "").rstrip(".")
    value = float(plain)
    written = {plain, f"{value / 100:g}", f"{value:g}", f"{value:.1f}"}
    return any(
        re.search(rf"(?<![\d.]){re.escape(one)}(?![\d.]*\d)", text.replace("_", ""))
        for one in written
    )


def _record(name: str) -> Any:
    return json.loads((RESULTS / Path(name).name).read_text(encoding="utf-8"))


def _values(content: Any) -> Iterator[float]:
    """Yield every number in a record, those in its texts and names too."""
    if isinstance(content, dict):
        content = [*content, *content.values()]
    if isinstance(content, list):
        for item in content:
            yield from _values(item)
    elif isinstance(content, int | float):
        yield float(content)
    elif isinstance(content, str):
        found = re.findall(r"\d[\d,]*(?:\.\d+)?", content)
        yield from (float(one.replace(",", "")) for one in found)


def _rounds_to(number: str, known: list[float]) -> bool:
    """Say whether a number is one of those known, rounded as written, perhaps in other units."""
    plain = number.replace(",", "").rstrip(".")
    digits = len(plain.partition(".")[2])
    return any(f"{abs(v) * unit:.{digits}f}" == plain for v in known for unit in UNITS)


def _is_record(name: str) -> bool:
    return (RESULTS / Path(name).name).is_file()


def _stands_in(number: str, shown: str) -> bool:
    """Say whether a session prints a number, with as many digits or more."""
    plain = number.replace(",", "")
    if re.search(rf"(?<![\d.]){re.escape(plain)}", shown.replace(",", "")):
        return True
    digits = len(plain.partition(".")[2])
    values = (float(one) for one in re.findall(r"\d+\.\d+", shown))
    return any(f"{v:.{digits}f}" == plain or f"{100 * v:.{digits}f}" == plain for v in values)


def main() -> int:
    """List what is missing."""
    missing = unsourced()
    for block, numbers in missing:
        print(f"{block}: {', '.join(numbers)}")
    unlike = unlike_their_record()
    for block, numbers in unlike:
        print(f"{block}: not in {', '.join(block.sources)}: {', '.join(numbers)}")
    wrong = unknown_records()
    print(*wrong, sep="\n")
    return 1 if missing or unlike or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
