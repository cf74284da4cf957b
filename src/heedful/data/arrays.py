"""Arrays from files and from the command line.

A source is a path (`keys.npy`, `run.npz`, `run.npz:keys`, `keys.json`, `keys.csv`,
`model.safetensors:wte.weight`) or JSON written in place (`[[1, 0], [0, 1]]`). Numbers only:
pickled objects are refused, whatever the file is called.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from heedful.errors import InputError, MissingPartError

ENDINGS = (".npz", ".npy", ".json", ".csv", ".safetensors")
MAX_BYTES = 4 * 2**30
"""Files above this size are refused: 50,000 keys in 1,024 dimensions are 0.4 GB."""


def looks_like_array(source: str) -> bool:
    """Tell whether a flag's value names a file or JSON, rather than a standard set."""
    return source.lstrip().startswith(("[", "{")) or _path_of(source)[0].suffix in ENDINGS


def read_array(source: str, name: str) -> Any:
    """Return the array that `source` names; `name` says what it is for in errors.

    >>> read_array("[[1, 0], [0, 1]]", "--keys")
    array([[1, 0],
           [0, 1]])
    """
    if source.lstrip().startswith(("[", "{")):
        return _choose(_from_json(source, name), None, source="the JSON given", name=name)
    path, entry = _path_of(source)
    if path.suffix not in ENDINGS:
        raise InputError(
            name,
            f"{source!r} is not a kind of file that can be read here",
            expected=f"a file ending in {', '.join(ENDINGS)} was expected",
        )
    _check_file(path, name)
    arrays = _READERS[path.suffix](path, name)
    return _choose(arrays, entry, source=path.name, name=name)


def _path_of(source: str) -> tuple[Path, str | None]:
    for ending in (".npz", ".safetensors", ".json"):
        head, colon, entry = source.rpartition(ending + ":")
        if colon:
            return Path(head + ending), entry
    return Path(source), None


def _check_file(path: Path, name: str) -> None:
    if not path.is_file():
        raise InputError(
            name,
            f"there is no file {str(path)!r}",
            expected="a file with numbers was expected",
            hint="check the path, or use a standard set such as orthonormal",
        )
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise InputError(
            name, f"{path.name} has {size:,} bytes", expected=f"at most {MAX_BYTES:,} are read"
        )


def _read_numpy(path: Path, name: str) -> dict[str, Any]:
    try:
        with path.open("rb") as file:  # ours to close: NumPy leaves it open when it fails
            loaded = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.lib.npyio.NpzFile):
                with loaded:
                    return {entry: loaded[entry] for entry in loaded.files}
            return {"": loaded}
    except Exception as error:  # zipfile, struct, ValueError, EOFError: all mean the same here
        reason = str(error).split("\n")[0] or type(error).__name__
        if "allow_pickle" in reason or "Object arrays" in reason:
            reason = "it holds pickled objects, which are never loaded"
        raise InputError(
            name,
            f"{path.name} cannot be read as NumPy ({reason})",
            expected="plain numbers written by numpy.save or numpy.savez were expected",
        ) from None


def _read_json_file(path: Path, name: str) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(name, f"{path.name} is not UTF-8 (byte {error.start})") from None
    return _from_json(text, name)


def _from_json(text: str, name: str) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        place = f" at line {error.lineno}, column {error.colno}"
        raise _not_json(name, place) from None
    except RecursionError:
        raise _not_json(name, ": it is nested too deeply") from None
    entries = content if isinstance(content, dict) else {"": content}
    return {entry: _from_lists(value, name) for entry, value in entries.items()}


def _not_json(name: str, place: str) -> InputError:
    return InputError(name, f"is not valid JSON{place}", expected="something like [[1, 0], [0, 1]]")


def _from_lists(value: Any, name: str) -> Any:
    # Ragged and mixed lists stay lists: the room that uses them says what is wrong.
    try:
        array = np.asarray(value)
    except ValueError:
        return value
    return value if array.dtype == object else array


def _read_csv(path: Path, name: str) -> dict[str, Any]:
    rows: list[list[float]] = []
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(name, f"{path.name} is not UTF-8 (byte {error.start})") from None
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        cells = line.strip("\r").split(",")
        try:
            rows.append([float(cell) for cell in cells])
        except ValueError:
            bad = next(cell for cell in cells if not _is_number(cell))
            raise InputError(
                name,
                f"{path.name}, line {number}: {bad.strip()!r} is not a number",
                expected="numbers separated by commas, without a header, were expected",
            ) from None
        if len(rows[-1]) != len(rows[0]):
            raise InputError(
                name,
                f"{path.name}, line {number} has {len(rows[-1])} numbers",
                expected=f"{len(rows[0])} were expected, as in the first line",
            )
    return {"": np.asarray(rows, dtype=float)}


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _read_safetensors(path: Path, name: str) -> dict[str, Any]:
    try:
        from safetensors import safe_open
    except ImportError:
        raise MissingPartError.of(name, "safetensors", "models") from None
    try:
        with safe_open(path, framework="numpy") as file:
            return {entry: file.get_tensor(entry) for entry in file.keys()}  # noqa: SIM118
    except Exception as error:
        raise InputError(
            name, f"{path.name} cannot be read as safetensors ({str(error).splitlines()[0]})"
        ) from None


_READERS = {
    ".npz": _read_numpy,
    ".npy": _read_numpy,
    ".json": _read_json_file,
    ".csv": _read_csv,
    ".safetensors": _read_safetensors,
}


def _choose(arrays: dict[str, Any], entry: str | None, *, source: str, name: str) -> Any:
    if entry is None:
        wanted = name.lstrip("-")
        if wanted in arrays:
            return arrays[wanted]
        if len(arrays) == 1:
            return next(iter(arrays.values()))
        raise InputError(
            name,
            f"{source} holds {len(arrays)} arrays ({', '.join(sorted(arrays)[:8])})",
            expected=f"one called {wanted!r}, or exactly one, was expected",
            hint=f"name it: {source}:{next(iter(sorted(arrays)), 'NAME')}",
        )
    if entry not in arrays:
        raise InputError(
            name,
            f"{source} has no array {entry!r}",
            expected=f"it holds {', '.join(sorted(arrays)[:8]) or 'nothing'}",
        )
    return arrays[entry]
