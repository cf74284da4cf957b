"""Claim sheets: TOML files that a student can write by hand and read aloud.

A sheet has a title, a source, `[defaults]` and any number of `[[claim]]` tables. A claim
that cannot be read does not stop the others: `Sheet.claims` holds the good ones and
`Sheet.problems` says, with file, line and column, what is wrong with the rest. Even a slip
of TOML's own syntax costs only the claim it is in.

    >>> sheet = load_sheet('[[claim]]\\nid = "sum"\\nexpect = "sum(alpha_i, i) = 1"\\n')
    >>> sheet.claims[0].expect
    ('sum(alpha_i, i) = 1',)
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.claims.claim import Claim
from heedful.claims.sheet_blocks import Block, sheet_blocks
from heedful.claims.sheet_errors import Problems, nearest, shown
from heedful.claims.sheet_fields import FIELDS, FieldError
from heedful.claims.sheet_formulas import check_formulas
from heedful.claims.sheet_places import Path as Keys
from heedful.claims.sheet_places import Places
from heedful.claims.sheet_text import read_text
from heedful.errors import FormulaError, HeedfulError

MOST_CLAIMS = 2_000
TOP_LEVEL = ("title", "source", "defaults", "claim")

_FIELD = re.compile(r"(\w+)((?:\[\d+\]|\.\w+)*)")


@dataclass(frozen=True)
class Origin:
    """Where the fields of one claim stand."""

    places: Places
    path: Keys
    own: frozenset[str]
    """The fields that the claim gives itself; the others come from the defaults."""

    def of(self, field: str) -> Keys:
        """Return the path of a field, in the claim or in the defaults."""
        default = ("defaults", field)
        if field not in self.own and self.places.knows(default):
            return default
        return (*self.path, field)


@dataclass(frozen=True, eq=False, kw_only=True)
class Sheet:
    """A sheet as far as it can be read."""

    name: str
    """How verdicts refer to it: its file's name without .toml."""
    file: str
    """How errors refer to it."""
    title: str = ""
    source: str = ""
    claims: tuple[Claim, ...] = ()
    """The claims that can be read, in the order of the sheet."""
    problems: tuple[FormulaError, ...] = ()
    """What is wrong with the others."""
    origins: dict[str, Origin]
    """For each claim its place in the text, for errors that are found later."""

    def located(self, identifier: str, error: HeedfulError) -> FormulaError:
        """Return an error about a claim of this sheet with file, line and column.

        The engine names the field: "expect", "heads[1]", "where.n", perhaps after the id.
        """
        origin = self.origins[identifier]
        problems = Problems(self.file, origin.places)
        named = _FIELD.match(error.where.removeprefix(f"{identifier}."))
        field, inside = ("expect", "") if named is None else (named[1], named[2])
        label = f"claim {shown(identifier)}"
        if field == "heads" and "query" in origin.own:
            field, inside = "query", ""
        if field not in FIELDS:
            field, inside = "expect", ""
        elif named is not None:
            label += f", {field}{inside}"
        steps = [int(step) if step.isdigit() else step for step in re.findall(r"\w+", inside)]
        problems.relay((*origin.of(field), *steps), label, error)
        return problems.found[0]


def load_sheet(source: Path | str, *, name: str | None = None, file: str | None = None) -> Sheet:
    """Read a sheet from a path, or from its text.

    A string is a path when it ends in .toml and has no line break; anything else is text.
    """
    if isinstance(source, str) and ("\n" in source or not source.endswith(".toml")):
        path, content = None, source.encode("utf-8", "surrogatepass")
    else:
        path, content = Path(source), None
    file = file or (str(path) if path else "sheet")
    name = name or (path.stem if path else "sheet")
    try:
        text = read_text(file, path, content)
        blocks = list(sheet_blocks(file, text))
    except FormulaError as error:
        return Sheet(name=name, file=file, problems=(error,), origins={})
    return _Reading(name, file).sheet(blocks)


class _Reading:
    """One pass over the blocks of a sheet."""

    def __init__(self, name: str, file: str) -> None:
        self.name = name
        self.file = file
        self.title = self.source = ""
        self.problems: list[FormulaError] = []
        self.claims: list[Claim] = []
        self.origins: dict[str, Origin] = {}
        self.defaults: dict[str, Any] = {}
        self.broken_defaults: set[str] = set()
        self.defaults_lost = False  # then nobody knows what the claims were meant to be
        self.lines: dict[str, int] = {}

    def sheet(self, blocks: list[Block]) -> Sheet:
        """Read the defaults of all blocks, then their claims."""
        for block in blocks:
            problems = Problems(self.file, block.places)
            if block.problem is not None:
                self.problems.append(block.problem)
                self.defaults_lost |= block.mentions_defaults
            else:
                self._head(block.data, problems)
            self.problems += problems.found
        for block in blocks:
            problems = Problems(self.file, block.places)
            for position, table in enumerate(self._tables(block.data, problems)):
                self._claim(("claim", position), table, block.places, problems)
            self.problems += problems.found
        if not self.claims and not self.problems:
            self.problems.append(
                FormulaError(
                    self.file,
                    "there is no claim",
                    expected="expected at least one [[claim]]",
                    line=1,
                )
            )
        return Sheet(
            name=self.name,
            file=self.file,
            title=self.title,
            source=self.source,
            claims=tuple(self.claims),
            problems=tuple(sorted(self.problems, key=lambda problem: problem.line or 0)),
            origins=self.origins,
        )

    def _tables(self, data: dict[str, Any], problems: Problems) -> list[Any]:
        tables = data.get("claim", [])
        if not isinstance(tables, list):
            problems.add(
                ("claim",),
                f"claim is {shown(tables)}",
                expected="expected [[claim]], twice bracketed",
            )
            return []
        if len(tables) > MOST_CLAIMS:
            problems.add(
                ("claim", MOST_CLAIMS),
                f"there are {len(tables):,} claims",
                expected=f"expected at most {MOST_CLAIMS:,} in a sheet",
                way_out="split the sheet into several files",
            )
            return []
        return tables

    def _head(self, data: dict[str, Any], problems: Problems) -> None:
        for field in data:
            if field not in TOP_LEVEL:
                self._unknown((field,), field, TOP_LEVEL, "a sheet", problems)
                self.defaults_lost |= nearest(field, ["defaults"]) != ""
        for field in ("title", "source"):
            if field in data:
                read = self._read((field,), "says", data[field], field, problems)
                setattr(self, field, read or "")
        defaults = data.get("defaults", {})
        if not isinstance(defaults, dict):
            problems.add(
                ("defaults",),
                f"defaults is {shown(defaults)}",
                expected="expected a table [defaults]",
            )
            defaults, self.defaults_lost = {}, True
        for field, value in defaults.items():
            if field == "id" or field not in FIELDS:
                known = [name for name in FIELDS if name != "id"]
                self._unknown(("defaults", field), field, known, "[defaults]", problems)
                self.defaults_lost = True
                continue
            read = self._read(("defaults", field), field, value, f"defaults.{field}", problems)
            if read is None:
                self.broken_defaults.add(field)
            else:
                self.defaults[field] = read

    def _claim(self, path: Keys, table: Any, found: Places, problems: Problems) -> None:
        before = len(problems.found)
        if not isinstance(table, dict):
            problems.add(path, f"a claim is {shown(table)}", expected="expected a table [[claim]]")
            return
        name = table.get("id")
        label = f"claim {shown(name)}" if isinstance(name, str) and name else "a claim"
        fields = dict(self.defaults)
        for field, value in table.items():
            if field not in FIELDS:
                self._unknown((*path, field), field, FIELDS, label, problems)
                continue
            read = self._read((*path, field), field, value, f"{label}, {field}", problems)
            if read is not None:
                fields[field] = read
        mistyped = set(table) - set(FIELDS)  # one of them may be the field that is missing
        for field, example in (("id", 'id = "1.2b"'), ("expect", 'expect = "alpha_j >= 0.99"')):
            known = {*table, *fields, *self.broken_defaults}
            if field not in known and not (mistyped or self.defaults_lost):
                problems.add(
                    path, f"{label} has no {field}", expected=f"expected a line such as {example}"
                )
        if len(problems.found) > before or self.defaults_lost or self.broken_defaults - set(table):
            return  # defaults that cannot be read were reported where they stand
        self._keep(Claim(**fields), path, table, found, problems)

    def _keep(
        self, claim: Claim, path: Keys, table: dict[str, Any], found: Places, problems: Problems
    ) -> None:
        before = len(problems.found)
        line, _ = found.of((*path, "id"))
        if claim.id in self.lines:
            problems.add(
                (*path, "id"),
                f"the id {shown(claim.id)} is taken by the claim of line {self.lines[claim.id]}",
                expected="expected an id of its own for each claim",
            )
            return
        self.lines[claim.id] = line
        origin = Origin(found, path, frozenset(table))
        claim = check_formulas(claim, origin.of, problems)
        if len(problems.found) == before:
            self.claims.append(claim)
            self.origins[claim.id] = origin

    def _read(
        self, path: Keys, field: str, value: Any, label: str, problems: Problems
    ) -> Any | None:
        try:
            return FIELDS[field](value)
        except FieldError as error:
            inside = "".join(
                f"[{step + 1}]" if isinstance(step, int) else f".{step}" for step in error.inside
            )
            problems.add(
                (*path, *error.inside),
                f"{label}{inside} {error.problem}",
                expected=f"expected {error.expected}",
                column=error.column,
            )
            return None

    def _unknown(self, path: Keys, field: str, known: Any, owner: str, problems: Problems) -> None:
        guess = nearest(field, known)
        problems.add(
            path,
            f"{owner} has no field {shown(field)}",
            expected="" if guess else f"expected one of {', '.join(known)}",
            way_out=guess,
        )
