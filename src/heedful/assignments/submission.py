r"""A submission: the files of one student, and the answers found in them.

A folder or a zip of .md, .tex, .ipynb, .toml and .txt. Answers are found by the labels of the
questions: `## 1b`, `**(b)**` below `# 1`, `\question`, `\section*{1b}`, `(b)`, the tag of a cell, a
key of TOML. Everything is said: which files were read, which were ignored and why, which questions
have no answer.

These files come from strangers. They are read as text within limits on number, size and
depth; archives may not lead outside themselves; notebooks are read and never run.
"""

from __future__ import annotations

import io
import json
import os
import re
import stat
import tomllib
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath

from heedful.assignments.assignment import Assignment, plain_label
from heedful.errors import InputError
from heedful.records import Record

LARGEST_FILE = 2_000_000
"""Bytes of one file; a written answer has some thousands."""
MOST_FILES = 200
MOST_BYTES = 10_000_000
"""Of all files of a submission together, unpacked."""
MOST_RATIO = 200
"""How many times larger than its archive a file may become."""
DEEPEST = 8
"""Folders inside folders."""
SUFFIXES = (".md", ".tex", ".ipynb", ".toml", ".txt")
_FORMULA = re.compile(
    r"\$\$(?P<a>.+?)\$\$|\\\[(?P<b>.+?)\\\]|(?<!\\)\$(?P<c>[^$\n]+(?:\n[^$\n]+){0,3})\$"
    r"|\\\((?P<d>.+?)\\\)|\\begin\{(?P<env>equation|align|gather|multline|eqnarray)(?P<star>\*?)\}"
    r"(?P<e>.+?)\\end\{(?P=env)(?P=star)\}|`(?P<f>[^`\n]+)`",
    re.DOTALL,
)
_LINE_FORMULA = re.compile(r"^\s*(?:[-*•]\s*)?((?:[A-Za-z]|[α-ωΑ-Ω])\w*\s*(?:=|≈|~).+?)\s*$")
_MARKUP = (
    r"\#{1,6}\s*|\*\*|__|\\(?:sub)*section\*?\{|\\(?:sub)*part\b(?:\[[^\]]*\])?"
    r"|\\question\b(?:\[[^\]]*\])?|\\item\s*\[|\\paragraph\*?\{|\\textbf\{|[-*]\s+(?=\()"
)
_WORD = r"(?:question|problem|exercise|part|answer(?:\s+to)?|q|task)\b\s*\.?\s*"
_HEADING = re.compile(
    rf"^\s*(?P<markup>{_MARKUP})?\s*(?P<word>{_WORD})?"
    r"(?P<label>(?:\d{1,2}(?=[a-z]\b|[ivx]{1,4}\b|\()"
    r"|\(?(?:\d{1,2}|[ivx]{1,4}|[a-z])\)?"
    r"(?:\s*[.):\]]\s*|(?=\()|\s*(?=\*\*)|\s*(?=\})|\s*$|\s+(?=\(|[a-z]\b\W*$))){1,4})",
    re.IGNORECASE,
)
_TOKEN = re.compile(r"\d{1,2}|[ivx]{2,4}|[a-z]", re.IGNORECASE)
_RUN = re.compile(r"\\(?:input|include|write18|immediate|openout|usepackage|def|newcommand)\b")


_HIDDEN = re.compile(
    r"<!--.*?(?:-->|\Z)|^\[[^\]\n]*\]:[^\n]*$"
    r"|<(?P<tag>\w{1,20})\b[^>]{0,200}(?:\bhidden\b|display\s{0,9}:\s{0,9}none)[^>]{0,200}>"
    r".*?(?:</(?P=tag)\s*>|\Z)|<(?P<raw>script|style|template)\b.*?(?:</(?P=raw)\s*>|\Z)",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
"""What Markdown does not show."""
_HIDDEN_TEX = re.compile(
    r"\\iffalse\b.*?(?:\\fi\b|\Z)|\\begin\{comment\}.*?(?:\\end\{comment\}|\Z)"
    r"|\\(?:phantom|hphantom|vphantom)\s*\{[^{}]*\}",
    re.DOTALL,
)
"""What TeX does not show, besides what stands after %."""


@dataclass(frozen=True, eq=False, kw_only=True)
class StudentAnswer(Record):
    """What a submission says to one question."""

    question: str
    file: str
    line: int
    """Where it begins, from 1."""
    text: str
    """Everything up to the next label."""

    @property
    def formulas(self) -> tuple[tuple[str, bool], ...]:
        """The formulas in it, each with whether it stands in signs of LaTeX."""
        return tuple(formulas_in(self.text))


@dataclass(frozen=True, eq=False, kw_only=True)
class Submission(Record):
    """The files of one student, read."""

    student: str
    answers: dict[str, StudentAnswer]
    """By the id of the question; the last one where a label stands twice."""
    missing: tuple[str, ...]
    """Questions without an answer."""
    read: tuple[str, ...]
    """Files that were read."""
    ignored: tuple[tuple[str, str], ...] = ()
    """Files that were not, with the reason."""
    notes: tuple[str, ...] = ()
    """What else was left out."""


def formulas_in(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the formulas of a text in order, and whether they stand in signs of LaTeX.

    >>> list(formulas_in("Set $q = k_a$, so\\nalpha_a = 1\\n"))
    [('q = k_a', True), ('alpha_a = 1', False)]
    """
    at = 0
    for found in _FORMULA.finditer(text):
        yield from _plain_lines(text[at : found.start()])
        at = found.end()
        if found["f"] is not None:
            if re.search(r"[=≈<>~_^(≤≥≠≪≫∈∉→]|^\s*[-+−]?[\d.]+[\d./ ]*$", found["f"]):
                yield found["f"], "\\" in found["f"]
        elif found["e"] is not None:
            yield rf"\begin{{{found['env']}*}}{found['e']}\end{{{found['env']}*}}", True
        else:
            yield next(part for part in found.group("a", "b", "c", "d") if part is not None), True
    yield from _plain_lines(text[at:])


def _plain_lines(text: str) -> Iterator[tuple[str, bool]]:
    for line in text.splitlines():
        found = _LINE_FORMULA.match(line)
        if found is not None and len(line) < 500:
            yield found[1], "\\" in found[1]


@dataclass
class _Found:
    """What is collected while a submission is read."""

    answers: dict[str, StudentAnswer] = field(default_factory=dict)
    read: list[str] = field(default_factory=list)
    ignored: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def find_submissions(folder: Path) -> list[Path]:
    """Return the submissions in a folder: its folders, zips, and single files, by name."""
    if not folder.is_dir():
        raise InputError(str(folder), "is no folder", expected="a folder of submissions")
    found = [
        path
        for path in sorted(folder.iterdir())
        if not path.name.startswith((".", "_"))
        and (path.is_dir() or path.suffix.lower() in (".zip", *SUFFIXES))
        and not path.is_symlink()
    ]
    if not found:
        raise InputError(
            str(folder), "holds no submission", expected="folders, zips or files, one a student"
        )
    return found


def read_submission(path: Path, assignment: Assignment) -> Submission:
    """Read one submission: a folder, a zip, or a single file."""
    found = _Found()
    try:
        files = list(_files(path, found))
    except (OSError, zipfile.BadZipFile, zlib.error, ValueError, RuntimeError, EOFError) as error:
        files = []
        found.ignored.append((path.name, f"cannot be read ({type(error).__name__})"))
    student = path.stem if path.is_file() else path.name
    return _submission(student, files, assignment, found)


def read_file(name: str, content: bytes, assignment: Assignment) -> Submission:
    """Read a submission that is one file and lies nowhere yet."""
    found = _Found()
    suffix = PurePosixPath(name).suffix.lower()
    if suffix not in SUFFIXES or len(content) > LARGEST_FILE:
        raise InputError(
            name, "is no submission", expected=f"a file of kind {', '.join(SUFFIXES)} up to 2 MB"
        )
    return _submission(PurePosixPath(name).stem, [(name, content)], assignment, found)


def _submission(
    student: str, files: list[tuple[str, bytes]], assignment: Assignment, found: _Found
) -> Submission:
    labels = {plain_label(question.id): question.id for question in assignment.questions}
    for name, content in files:
        try:
            _read_file(name, content, labels, found)
            found.read.append(name)
        except (ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
            found.ignored.append((name, f"cannot be read ({_reason(error)})"))
    return Submission(
        student=student,
        answers=found.answers,
        missing=tuple(
            question.id for question in assignment.questions if question.id not in found.answers
        ),
        read=tuple(found.read),
        ignored=tuple(found.ignored),
        notes=tuple(dict.fromkeys(found.notes)),
    )


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    return str(error)[:80] or type(error).__name__


def _files(path: Path, found: _Found) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of every file that may hold answers, within the limits."""
    total = 0
    for name, size, read in (
        _zipped(path, found) if path.suffix.lower() == ".zip" else _plain(path, found)
    ):
        suffix = PurePosixPath(name).suffix.lower()
        if suffix not in SUFFIXES:
            found.ignored.append((name, f"a file of kind {suffix or 'without ending'}"))
        elif size > LARGEST_FILE:
            found.ignored.append((name, f"has {size:,} bytes, more than {LARGEST_FILE:,}"))
        elif total + size > MOST_BYTES:
            found.ignored.append((name, f"the submission has more than {MOST_BYTES:,} bytes"))
        else:
            content = read()
            if len(content) > LARGEST_FILE:
                found.ignored.append((name, f"has more than {LARGEST_FILE:,} bytes"))
                continue
            total += len(content)
            yield name, content


def _plain(path: Path, found: _Found) -> Iterator[tuple[str, int, Callable[[], bytes]]]:
    paths = [path] if path.is_file() else sorted(_walk(path))
    for place, file in enumerate(paths):
        name = file.name if path.is_file() else file.relative_to(path).as_posix()
        status = file.lstat()
        if place >= MOST_FILES:
            found.ignored.append((name, f"more than {MOST_FILES} files"))
        elif not stat.S_ISREG(status.st_mode):
            found.ignored.append((name, "is no regular file"))
        elif name.count("/") >= DEEPEST:
            found.ignored.append((name, f"more than {DEEPEST} folders deep"))
        else:
            yield name, status.st_size, partial(_file_bytes, file)


def _walk(folder: Path) -> Iterator[Path]:
    for root, folders, files in os.walk(folder, followlinks=False):
        folders[:] = [one for one in sorted(folders) if not one.startswith((".", "__"))]
        for name in files:
            if not name.startswith("."):
                yield Path(root) / name


def _file_bytes(path: Path) -> bytes:
    """Return at most one byte more of a file than it may have."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as opened:
        return opened.read(LARGEST_FILE + 1)


def _member_bytes(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """Return the same of a file in an archive."""
    with archive.open(member) as opened:
        return opened.read(LARGEST_FILE + 1)


def _zipped(path: Path, found: _Found) -> Iterator[tuple[str, int, Callable[[], bytes]]]:
    if path.stat().st_size > MOST_BYTES:
        found.ignored.append((path.name, f"the archive has more than {MOST_BYTES:,} bytes"))
        return
    with zipfile.ZipFile(io.BytesIO(path.read_bytes())) as archive:
        for place, member in enumerate(archive.infolist()):
            name = member.filename
            parts = PurePosixPath(name.replace("\\", "/")).parts
            linked = stat.S_ISLNK(member.external_attr >> 16)
            if member.is_dir() or any(part.startswith("__MACOSX") for part in parts):
                continue
            if place >= MOST_FILES:
                found.ignored.append((name[:80], f"more than {MOST_FILES} files"))
                return
            if name.startswith("/") or ".." in parts or ":" in name or linked:
                found.ignored.append((name[:80], "leads outside of its archive"))
            elif member.flag_bits & 1:
                found.ignored.append((name[:80], "is encrypted"))
            elif len(parts) > DEEPEST:
                found.ignored.append((name[:80], f"more than {DEEPEST} folders deep"))
            elif member.file_size > MOST_RATIO * max(member.compress_size, 100):
                found.ignored.append((name[:80], "unpacks to far more than it is: a zip bomb"))
            else:
                yield name, member.file_size, partial(_member_bytes, archive, member)


def _read_file(name: str, content: bytes, labels: dict[str, str], found: _Found) -> None:
    text = content.decode("utf-8").removeprefix("\ufeff").replace("\r\n", "\n")
    match PurePosixPath(name).suffix.lower():
        case ".toml":
            _read_toml(name, text, labels, found)
        case ".ipynb":
            _read_notebook(name, text, labels, found)
        case suffix:
            if suffix == ".tex":
                text = _without_preamble(name, text, found)
            text = _shown(name, text, found, _HIDDEN_TEX if suffix == ".tex" else _HIDDEN)
            _read_text(name, text, labels, found)


def _shown(name: str, text: str, found: _Found, hidden: re.Pattern[str]) -> str:
    """Return a text without what a reader would not see; the lines keep their numbers."""
    shown = hidden.sub(lambda gone: "\n" * gone[0].count("\n"), text)
    if shown != text:
        found.notes.append(f"{name}: what is not shown is ignored (comments and hidden text)")
    return shown


def _without_preamble(name: str, text: str, found: _Found) -> str:
    """Return the body of a TeX document, comments blanked; say which commands were ignored."""
    text = re.sub(r"(?<!\\)%[^\n]*", "", text)
    for command in sorted(set(_RUN.findall(text))):
        found.notes.append(f"{name}: {command} is ignored; nothing is run or read in")
    begin = text.find("\\begin{document}")
    if begin < 0:
        return text
    return "\n" * text.count("\n", 0, begin) + text[begin:].partition("\\end{document}")[0]


def _read_text(
    name: str, text: str, labels: dict[str, str], found: _Found, line: int = 1, start: str = ""
) -> str:
    """Cut a text at the labels of questions; return the question that it ends in."""
    context: list[str] = []
    current, begin, lines = start, line, list[str]()

    def close() -> None:
        body = "\n".join(lines).strip()
        if current and body:
            before = found.answers.get(current)
            joined = start == current and before is not None and before.file == name
            if joined and before is not None:
                body = f"{before.text}\n\n{body}"
            elif before is not None:
                found.notes.append(f"{name}: question {current} is answered twice; the last counts")
            found.answers[current] = StudentAnswer(
                question=current, file=name, line=begin, text=body
            )

    for number, written in enumerate(text.split("\n"), line):
        label, rest = _label(written, context, labels)
        if label:
            close()
            current, begin, lines = label, number, [rest]
        else:
            lines.append(written)
    close()
    return current


def _label(line: str, context: list[str], labels: dict[str, str]) -> tuple[str, str]:
    """Return the question whose label a line begins with, and the rest of the line."""
    found = _HEADING.match(line)
    if found is None or len(line) > 300:
        return "", ""
    written = found["label"].strip()
    marked = found["markup"] or found["word"] or written[:1].isdigit()
    if not marked and not ("(" in written or ")" in written):
        return "", ""  # "By …" or "I." begins a sentence
    own = [token.lower() for token in _TOKEN.findall(written)]
    rest = line[found.end() :].strip(" *_}):.]")
    for depth in range(len(context), -1, -1):
        candidate = "".join([*context[:depth], *own])
        if candidate in labels:
            context[:] = [*context[:depth], *own]
            return labels[candidate], rest
    if own and own[0].isdigit():
        context[:] = own
    elif own and context and context[0].isdigit() and re.match(r"\s*(?:#|\\|\*\*|\()", line):
        context[1:] = own
    return "", ""


def _read_toml(name: str, text: str, labels: dict[str, str], found: _Found) -> None:
    if len(text) > 64 * 1024:
        raise ValueError("more than 64 KB of TOML")
    data = tomllib.loads(text)
    answers = data.get("answers", {})
    if isinstance(answers, dict):
        for key, value in answers.items():
            _note_toml(name, key, value, labels, found)
    for claim in data.get("claim", []):
        if isinstance(claim, dict) and isinstance(claim.get("id"), str):
            opened = claim.get("query") or claim.get("heads") or claim.get("expect")
            locked = sorted(set(claim) - {"id", "query", "heads", "expect", "says"})
            if locked:
                found.notes.append(
                    f"{name}: {', '.join(locked)} of claim {claim['id'][:20]} are ignored: "
                    "the assignment sets them"
                )
            _note_toml(name, claim["id"], opened, labels, found)
    for key in data:
        if key not in ("answers", "claim", "title", "student"):
            found.notes.append(f"{name}: {key[:20]} is ignored")


def _note_toml(name: str, key: str, value: object, labels: dict[str, str], found: _Found) -> None:
    label = labels.get(plain_label(key))
    if label is None:
        found.notes.append(f"{name}: {key[:20]} is no question of the assignment")
        return
    parts = value if isinstance(value, list) else [value]
    if isinstance(value, dict):
        parts = [f"{inner} = {formula}" for inner, formula in value.items()]
    lines = []
    for place, part in enumerate(parts, 1):
        text = _shown(name, str(part), found, _HIDDEN)
        numbered = len(parts) > 1 and not isinstance(value, dict) and "=" not in text
        if re.search(r"[$`\n]|\\[(\[]|\\begin\b", text):  # prose around formulas
            lines.append(text)
        else:
            lines.append(f"`q_{place} = {text}`" if numbered else f"`{text}`")
    body = "\n".join(lines)
    found.answers[label] = StudentAnswer(question=label, file=name, line=1, text=body)


def _read_notebook(name: str, text: str, labels: dict[str, str], found: _Found) -> None:
    """Read the cells of a notebook as text; code is never run, and counts only as text."""
    if text.count("[") + text.count("{") > 200_000:
        raise ValueError("lists or tables are nested too deeply")
    cells = json.loads(text).get("cells", [])
    current, line = "", 1
    for cell in cells[:2000]:
        source = cell.get("source", "")
        body = "".join(map(str, source)) if isinstance(source, list) else str(source)
        tags = cell.get("metadata", {}).get("tags", [])
        for tag in tags if isinstance(tags, list) else []:
            current = labels.get(plain_label(str(tag)), current)
        if cell.get("cell_type") == "code":
            body = "\n".join(row.lstrip("# ") for row in body.split("\n"))
        elif cell.get("cell_type") == "markdown":
            body = _shown(name, body, found, _HIDDEN)
        else:
            found.notes.append(f"{name}: a cell that is neither text nor code is ignored")
            continue
        current = _read_text(name, body, labels, found, line, current)
        line += body.count("\n") + 1
