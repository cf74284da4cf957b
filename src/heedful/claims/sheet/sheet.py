r"""Claim sheets: TOML files that a student can write by hand and read aloud.

A sheet has a title, a source, `[defaults]` and any number of `[[claim]]` tables. A claim
that cannot be read does not stop the others: `Sheet.claims` holds the good ones and
`Sheet.problems` says, with file, line and column, what is wrong with the rest. Even a slip
of TOML's own syntax costs only the claim it is in.

    >>> sheet = load_sheet('[[claim]]\nid = "sum"\nexpect = "sum(alpha_i, i) = 1"\n')
    >>> sheet.claims[0].expect
    ('sum(alpha_i, i) = 1',)

Claims are also written as the lines of a sheet, and repairs and forms into the sheet they are for.

    >>> print(toml_lines({"query": "50 (k_a + k_b)", "where": {"n": [2, 3]}}))
    query = "50 (k_a + k_b)"
    where = { n = [2, 3] }
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from fractions import Fraction
from importlib import resources
from pathlib import Path
from typing import Any

from heedful.claims.sheet.claim import FIELDS, Claim, FieldError, nearest, read_formulas, shown
from heedful.claims.sheet.toml import Keys, Places, TomlBlock, read_text, sheet_blocks
from heedful.errors import FormulaError, HeedfulError, InputError

# Reading -------------------------------------------------------------------------------------

MOST_CLAIMS = 2_000
TOP_LEVEL = ("title", "source", "defaults", "claim")


@dataclass(frozen=True)
class Origin:
    """Where the fields of one claim stand."""

    places: Places
    path: Keys
    own: frozenset[str]
    """The fields that the claim sets itself; the others come from the defaults."""

    def of(self, field: str) -> Keys:
        """Return the path of a field, in the claim or in the defaults."""
        default = ("defaults", field)
        if field not in self.own and self.places.knows(default):
            return default
        return (*self.path, field)


class ProblemList:
    """The problems of one sheet, in the order in which they were met."""

    def __init__(self, file: str, places: Places) -> None:
        self.file = file
        self.places = places
        self.found: list[FormulaError] = []

    def add(
        self,
        path: Keys,
        problem: str,
        *,
        expected: str = "",
        hint: str = "",
        column: int | None = None,
    ) -> None:
        """Note a problem of a value; `column` counts inside a string value."""
        line, place = self.places.of(path) if column is None else self.places.inside(path, column)
        self.found.append(
            FormulaError(self.file, problem, expected=expected, hint=hint, line=line, column=place)
        )

    def add_about(self, identifier: str, origin: Origin, error: HeedfulError) -> None:
        """Note an error about a claim, at the field and column that the error names."""
        field = getattr(error, "field", ())
        label = f"claim {shown(identifier)}"
        if field:
            names = (step for step in field if isinstance(step, str) and step.isidentifier())
            label += f", {'.'.join(names)}"
        head, *rest = field or ("expect",)
        self.add(
            (*origin.of(str(head)), *rest),
            f"{label}: {error.problem}",
            expected=error.expected,
            hint=error.hint,
            column=getattr(error, "column", None),
        )


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
    missing: dict[str, str] = dataclasses.field(default_factory=dict)
    """Of a sheet of the catalog, claims about a model that is not there: id and model."""

    @property
    def skipped(self) -> str:
        """What is not judged, and the way to it; nothing where all models are there."""
        if not self.missing:
            return ""
        models = " and ".join(dict.fromkeys(self.missing.values()))
        count = len(self.missing)
        return (
            f"{self.name}: {count} claim{'' if count == 1 else 's'} about {models} "
            f"{'is' if count == 1 else 'are'} skipped, because no such model is here. {self.source}"
        )

    def located(self, identifier: str, error: HeedfulError) -> FormulaError:
        """Return an error about a claim of this sheet with file, line and column.

        An error about a formula knows its field and column; any other is about what is expected.
        """
        problems = ProblemList(self.file, self.origins[identifier].places)
        problems.add_about(identifier, self.origins[identifier], error)
        return problems.found[0]


def load_sheet(
    source: Path | str,
    *,
    name: str | None = None,
    file: str | None = None,
    model: str | None = None,
) -> Sheet:
    """Read a sheet from a path, or from its text.

    A string is a path when it ends in .toml and has no line break; anything else is text. With
    `model`, claims that name no model are about that one.
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
    return _Reading(name, file, {} if model is None else {"model": model}).sheet(blocks)


class _Reading:
    """One pass over the blocks of a sheet."""

    def __init__(self, name: str, file: str, defaults: dict[str, Any]) -> None:
        self.name = name
        self.file = file
        self.title = self.source = ""
        self.problems: list[FormulaError] = []
        self.claims: list[Claim] = []
        self.origins: dict[str, Origin] = {}
        self.defaults = defaults
        self.broken_defaults: set[str] = set()
        self.defaults_lost = False  # then nobody knows what the claims were meant to be
        self.lines: dict[str, int] = {}

    def sheet(self, blocks: list[TomlBlock]) -> Sheet:
        """Read the defaults of all blocks, then their claims."""
        for block in blocks:
            problems = ProblemList(self.file, block.places)
            if block.problem is not None:
                self.problems.append(block.problem)
                self.defaults_lost |= block.mentions_defaults
            else:
                self._head(block.data, problems)
            self.problems += problems.found
        for block in blocks:
            problems = ProblemList(self.file, block.places)
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

    def _tables(self, data: dict[str, Any], problems: ProblemList) -> list[Any]:
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
                hint="split the sheet into several files",
            )
            return []
        return tables

    def _head(self, data: dict[str, Any], problems: ProblemList) -> None:
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

    def _claim(self, path: Keys, table: Any, places: Places, problems: ProblemList) -> None:
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
        self._keep(Claim(**fields), path, table, places, problems)

    def _keep(
        self, claim: Claim, path: Keys, table: dict[str, Any], places: Places, problems: ProblemList
    ) -> None:
        before = len(problems.found)
        line, _ = places.of((*path, "id"))
        if claim.id in self.lines:
            problems.add(
                (*path, "id"),
                f"the id {shown(claim.id)} is taken by the claim of line {self.lines[claim.id]}",
                expected="expected an id of its own for each claim",
            )
            return
        self.lines[claim.id] = line
        origin = Origin(places, path, frozenset(table))
        claim, errors = read_formulas(claim)
        for error in errors:
            problems.add_about(claim.id, origin, error)
        if len(problems.found) == before:
            self.claims.append(claim)
            self.origins[claim.id] = origin

    def _read(
        self, path: Keys, field: str, value: Any, label: str, problems: ProblemList
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

    def _unknown(
        self, path: Keys, field: str, known: Any, owner: str, problems: ProblemList
    ) -> None:
        guess = nearest(field, known)
        problems.add(
            path,
            f"{owner} has no field {shown(field)}",
            expected="" if guess else f"expected one of {', '.join(known)}",
            hint=guess,
        )


def catalog() -> list[Sheet]:
    """Return the sheets that come with the laboratory.

    Claims about a model are among them where that model was trained: here, in this folder.
    """
    folder = resources.files("heedful.claims").joinpath("catalog")
    files = sorted(
        (entry for entry in folder.iterdir() if entry.name.endswith(".toml")),
        key=lambda entry: entry.name,
    )
    return [
        _with_models_that_are_here(
            load_sheet(
                entry.read_text("utf-8"),
                name=entry.name.removesuffix(".toml"),
                file=f"catalog/{entry.name}",
            )
        )
        for entry in files
    ]


def _with_models_that_are_here(sheet: Sheet) -> Sheet:
    missing = {
        claim.id: claim.model
        for claim in sheet.claims
        if claim.model is not None and not Path(claim.model).exists()
    }
    here = tuple(claim for claim in sheet.claims if claim.id not in missing)
    return replace(sheet, claims=here, missing=missing)


def find_sheets(paths: Sequence[str | Path]) -> list[Sheet]:
    """Load sheets from files and folders; every *.toml below a folder, in sorted order.

    Inside a folder, links are not followed: a folder of answers cannot make the program
    read what lies elsewhere. The name of a sheet is its path below the folder.
    """
    names: dict[Path, str] = {}
    for given in map(Path, paths):
        if given.is_dir():
            for path in _below(given):
                names.setdefault(path, path.relative_to(given).with_suffix("").as_posix())
        elif os.path.lexists(given):
            names.setdefault(given, given.stem)
        else:
            raise InputError(
                str(given), "does not exist", expected="a claim sheet (.toml) or a folder of them"
            )
    if not names:
        raise InputError(
            ", ".join(map(str, paths)),
            "no claim sheet is there",
            expected="at least one file ending in .toml",
        )
    followed = set(map(Path, paths))
    taken = Counter(names.values())
    return [
        # Two sheets of one name, from two folders: only their paths tell them apart.
        _load(path, name if taken[name] == 1 else str(path), followed=path in followed)
        for path, name in names.items()
    ]


def only(sheets: Sequence[Sheet], names: Sequence[str]) -> list[Sheet]:
    """Return the sheets with just the claims named, as "id" or "sheet/id"."""
    known = {f"{sheet.name}/{claim.id}": claim.id for sheet in sheets for claim in sheet.claims}
    wanted = set(names)
    for name in names:
        for sheet in sheets:
            identifier = name.removeprefix(f"{sheet.name}/")
            if name not in known and identifier in sheet.missing:
                raise InputError(
                    f"claim {name}",
                    f"is about {sheet.missing[identifier]}, which is not here",
                    expected="a folder with that model",
                    hint=sheet.source,
                )
        if name not in known and name not in known.values():
            raise InputError(
                f"claim {name}",
                "is in none of the sheets",
                expected=f"one of {len(known):,} ids, such as {', '.join(list(known)[:3])}"
                if known
                else "a sheet with claims",
                hint=nearest(name, [*known.values(), *known]),
            )
    kept = [
        replace(
            sheet,
            claims=tuple(
                claim for claim in sheet.claims if wanted & {claim.id, f"{sheet.name}/{claim.id}"}
            ),
        )
        for sheet in sheets
    ]
    return [sheet for sheet in kept if sheet.claims or sheet.problems]


def claim_named(sheets: Sequence[Sheet], name: str) -> tuple[Sheet, Claim]:
    """Return the one claim that a name means, with its sheet."""
    matches = [(sheet, claim) for sheet in only(sheets, [name]) for claim in sheet.claims]
    if len(matches) > 1:
        places = ", ".join(f"{sheet.name}/{claim.id}" for sheet, claim in matches[:6])
        raise InputError(
            f"claim {name}", f"is in {len(matches)} sheets", expected=f"one of {places}"
        )
    return matches[0]


def _below(folder: Path) -> list[Path]:
    paths: list[Path] = []
    for place, folders, names in os.walk(folder, followlinks=False):
        folders.sort()
        paths += [Path(place, name) for name in names if name.endswith(".toml")]
    return sorted(paths)


def _load(path: Path, name: str, *, followed: bool) -> Sheet:
    if path.is_symlink() and not followed:
        problem = FormulaError(
            str(path),
            "is a link",
            expected="inside a folder, links are not followed",
            hint="name the file itself",
        )
        return Sheet(name=name, file=str(path), problems=(problem,), origins={})
    return load_sheet(path, name=name)


# Writing -------------------------------------------------------------------------------------

SETTING = (
    "keys", "means", "covariance", "values", "scale", "query", "heads", "sequence", "matrices",
    "positions", "model", "corpus", "intervene", "texts", "where", "let", "given",
)  # fmt: skip
"""The fields that say what a claim is about, rather than what it says or how it is judged."""

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def toml_lines(values: Mapping[str, Any]) -> str:
    """Return fields as lines of TOML, one per field; a field that is None is to be left out."""
    return "\n".join(
        f"# without {_key(name)}" if value is None else f"{_key(name)} = {_written(name, value)}"
        for name, value in values.items()
    )


def claim_text(claim: Claim) -> str:
    """Return a claim as a [[claim]] table that reads back as the same claim."""
    return "[[claim]]\n" + toml_lines(_own_fields(claim)) + "\n"


def setting_text(claim: Claim) -> str:
    """Return what a claim presumes (keys, query, ranges, …), as its sheet writes it."""
    return toml_lines({k: v for k, v in _own_fields(claim).items() if k in SETTING})


def _own_fields(claim: Claim) -> dict[str, Any]:
    """Return the fields that differ from their defaults."""
    own: dict[str, Any] = {}
    for item in fields(claim):
        value = getattr(claim, item.name)
        default = item.default_factory() if item.default_factory is not MISSING else item.default
        if value is not None and (value != default or default is MISSING):
            own[item.name] = value
    return own


def _written(name: str, value: Any) -> str:
    alone = name == "expect" and isinstance(value, list | tuple) and len(value) == 1
    return toml_value(value[0] if alone else value)


def toml_value(value: Any) -> str:
    """Return one value as TOML writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        if "\\" in value and "'" not in value and value.isprintable():
            return f"'{value}'"  # LaTeX as one writes it
        # A string of JSON is one of TOML, except that TOML also escapes the character DEL.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float | Fraction):
        number = float(value)
        if not math.isfinite(number):
            return {True: "inf", False: "-inf"}[number > 0] if not math.isnan(number) else "nan"
        return repr(number)
    if isinstance(value, Mapping):
        if not value:
            return "{}"
        pairs = (f"{_key(str(name))} = {toml_value(item)}" for name, item in value.items())
        return "{ " + ", ".join(pairs) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    if hasattr(value, "tolist"):  # an array or a number of NumPy
        return toml_value(value.tolist())
    return toml_value(str(value))


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) and name.isascii() else toml_value(name)


def with_changes(text: str, identifier: str, changes: Mapping[str, Any]) -> str:
    """Return the text of a sheet with some fields of one claim replaced; None: left out.

    >>> sheet = '[[claim]]\\nid = "b"\\nkeys = "any"\\nquery = "k_a"\\nexpect = "c = v_a"\\n'
    >>> print(with_changes(sheet, "b", {"query": "9 k_a"}).splitlines()[3])
    query = "9 k_a"
    """
    sheet = load_sheet(text)
    claim = _claim(sheet, identifier)
    wanted = claim_text(_read_back(claim.changed(**changes)))
    lines = text.splitlines()
    origin = sheet.origins[identifier]
    starts = _starts(origin)
    block = _block(lines, origin.places.of(origin.path)[0])
    for edited in (_by_line(lines, starts, block[1], changes), _anew(lines, block, wanted)):
        read = next((c for c in load_sheet(edited).claims if c.id == identifier), None)
        if read is not None and claim_text(read) == wanted:
            return edited
    raise InputError(
        f"claim {identifier}",
        "its repair cannot be written into this sheet",
        expected="fields of its own were expected",
        hint="change what stands in [defaults] by hand",
    )


@dataclass(frozen=True)
class ClaimTable:
    """A claim of a sheet as TOML holds it, whether or not its formulas can be read."""

    table: dict[str, Any]
    defaults: dict[str, Any]
    """What the sheet sets for every claim."""
    places: Places
    path: Keys

    @property
    def line(self) -> int:
        """Where its id stands, or the claim begins."""
        return self.places.of((*self.path, "id"))[0]


def claim_tables(text: str) -> list[ClaimTable]:
    """Return the claims of a sheet as far as they are TOML; a sheet that is none has none."""
    try:
        blocks = list(sheet_blocks("sheet", read_text("sheet", None, text.encode("utf-8"))))
    except (FormulaError, UnicodeError):
        return []
    defaults: dict[str, Any] = {}
    for block in blocks:
        found = block.data.get("defaults", {})
        defaults |= found if isinstance(found, dict) else {}
    tables = []
    for block in blocks:
        claims = block.data.get("claim", [])
        for place, table in enumerate(claims if isinstance(claims, list) else []):
            if isinstance(table, dict):
                tables.append(ClaimTable(table, defaults, block.places, ("claim", place)))
    return tables


def with_fields(text: str, place: int, changes: Mapping[str, Any] | None) -> str:
    """Return a sheet with fields of its claim number `place` replaced; no changes: without it.

    Unlike `with_changes` this is for somebody who is still writing: what is put in need not be a
    formula yet. Lines that are not concerned stay as they are.

    >>> print(with_fields('[[claim]]\\nid = "b"\\nexpect = "c = "\\n', 0, {"expect": "c = v_"}))
    [[claim]]
    id = "b"
    expect = "c = v_"
    <BLANKLINE>
    """
    tables = claim_tables(text)
    if not 0 <= place < len(tables):
        raise InputError(
            f"claim {place + 1}", "is not in this sheet", expected="a claim that is TOML"
        )
    found = tables[place]
    lines = text.splitlines()
    block = _block(lines, found.places.of(found.path)[0])
    others = [one.table for one in tables]
    if changes is None:
        edits = ["\n".join([*lines[: block[0]], *lines[block[1] :]]).strip("\n") + "\n"]
        wanted = others[:place] + others[place + 1 :]
    else:
        table = {k: v for k, v in {**found.table, **changes}.items() if v is not None}
        starts = {
            name: found.places.of((*found.path, name))[0]
            for name in found.table
            if found.places.knows((*found.path, name))
        }
        anew = "[[claim]]\n" + toml_lines(table)
        edits = [_by_line(lines, starts, block[1], changes), _anew(lines, block, anew)]
        wanted = [*others[:place], _one_expected(table), *others[place + 1 :]]
    for edited in edits:
        if [one.table for one in claim_tables(edited)] == wanted:
            return edited
    raise InputError(
        f"claim {place + 1}",
        "the change cannot be written into this sheet",
        expected="a claim in lines of its own",
        hint="change it in the text",
    )


def _one_expected(table: dict[str, Any]) -> dict[str, Any]:
    """Return a table as it reads back: a single expected formula stands without its list."""
    expect = table.get("expect")
    alone = isinstance(expect, list) and len(expect) == 1
    return {**table, "expect": expect[0]} if alone and expect else table


def _claim(sheet: Sheet, identifier: str) -> Claim:
    for claim in sheet.claims:
        if claim.id == identifier:
            return claim
    raise InputError(
        f"claim {identifier}", "is not in this sheet", expected="the id of a claim that can be read"
    )


def _read_back(claim: Claim) -> Claim:
    """Return the claim as a sheet would hold it, or say why it cannot."""
    sheet = load_sheet(claim_text(claim))
    if not sheet.claims:
        problem = sheet.problems[0]
        raise InputError(f"claim {claim.id}", f"the change cannot be read ({problem.problem})")
    return sheet.claims[0]


def _starts(origin: Origin) -> dict[str, int]:
    """Return the line on which each field of the claim begins, from 1."""
    return {
        name: origin.places.of((*origin.path, name))[0]
        for name in origin.own
        if origin.places.knows((*origin.path, name))
    }


def _block(lines: list[str], first: int) -> tuple[int, int]:
    """Return the lines of a claim, from its header up to the next header, as a half-open range."""
    header = first - 1
    while header > 0 and not lines[header].lstrip().startswith("[["):
        header -= 1
    end = header + 1
    while end < len(lines) and not lines[end].lstrip().startswith(("[[", "[defaults")):
        end += 1
    return header, _without_trailing(lines, header + 1, end)


def _by_line(lines: list[str], starts: dict[str, int], end: int, changes: Mapping[str, Any]) -> str:
    """Replace the lines of the changed fields; new ones stand where the first of them stood."""
    begins = sorted({*(line - 1 for line in starts.values()), end})
    spans = {}
    for name, line in starts.items():
        after = next((begin for begin in begins if begin > line - 1), end)
        spans[name] = (line - 1, _without_trailing(lines, line, after))
    changed = [spans[name] for name in changes if name in spans]
    removed = {number for span in changed for number in range(*span)}
    place = min((begin for begin, _ in changed), default=spans.get("expect", (end, end))[0])
    put: dict[int, list[str]] = {}
    for name, value in changes.items():
        if value is not None:
            at = spans[name][0] if name in spans else place
            put.setdefault(at, []).append(toml_lines({name: value}))
    result: list[str] = []
    for number, text in enumerate(lines):
        result += put.get(number, [])
        if number not in removed:
            result.append(text)
    result += put.get(len(lines), [])
    return "\n".join(result) + "\n"


def _anew(lines: list[str], block: tuple[int, int], wanted: str) -> str:
    header, end = block
    return "\n".join([*lines[:header], wanted.rstrip("\n"), *lines[end:]]) + "\n"


def _without_trailing(lines: list[str], begin: int, end: int) -> int:
    """Return the end of a range without the empty lines and comments that close it."""
    while end > begin and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
        end -= 1
    return end
