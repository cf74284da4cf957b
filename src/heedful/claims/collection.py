"""Many sheets: those of a folder, those that come with the laboratory, and claims by name."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path

from heedful.claims.claim import Claim
from heedful.claims.sheet import Sheet, load_sheet
from heedful.claims.sheet_errors import nearest
from heedful.errors import FormulaError, InputError


def catalog() -> list[Sheet]:
    """Return the sheets that come with the laboratory."""
    folder = resources.files("heedful.claims").joinpath("catalog")
    files = sorted(
        (entry for entry in folder.iterdir() if entry.name.endswith(".toml")),
        key=lambda entry: entry.name,
    )
    return [
        load_sheet(
            entry.read_text("utf-8"),
            name=entry.name.removesuffix(".toml"),
            file=f"catalog/{entry.name}",
        )
        for entry in files
    ]


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
        if name not in known and name not in known.values():
            raise InputError(
                f"claim {name}",
                "is in none of the sheets",
                expected=f"one of {len(known):,} ids, such as {', '.join(list(known)[:3])}"
                if known
                else "a sheet with claims",
                way_out=nearest(name, [*known.values(), *known]),
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
    found = [(sheet, claim) for sheet in only(sheets, [name]) for claim in sheet.claims]
    if len(found) > 1:
        places = ", ".join(f"{sheet.name}/{claim.id}" for sheet, claim in found[:6])
        raise InputError(f"claim {name}", f"is in {len(found)} sheets", expected=f"one of {places}")
    return found[0]


def _below(folder: Path) -> list[Path]:
    found = []
    for place, folders, names in os.walk(folder, followlinks=False):
        folders.sort()
        found += [Path(place, name) for name in names if name.endswith(".toml")]
    return sorted(found)


def _load(path: Path, name: str, *, followed: bool) -> Sheet:
    if path.is_symlink() and not followed:
        problem = FormulaError(
            str(path),
            "is a link",
            expected="inside a folder, links are not followed",
            way_out="name the file itself",
        )
        return Sheet(name=name, file=str(path), problems=(problem,), origins={})
    return load_sheet(path, name=name)
