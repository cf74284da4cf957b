"""Weights in safetensors files: one file, or several that an index names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from torch import Tensor

from heedful.errors import InputError
from heedful.model.checkpoint import Entry, Source, check_name

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
DTYPES = ("F64", "F32", "F16", "BF16")
MAX_JSON_BYTES = 64 * 2**20


class SafetensorsFiles(Source):
    """The safetensors files of a folder."""

    def __init__(self, folder: Path) -> None:
        self.where = str(folder)
        single, index = folder / SINGLE, folder / INDEX
        if single.is_file():
            self._places = dict.fromkeys(_names(single), single)
        elif index.is_file():
            self.where = str(index)
            self._places = _indexed(index)
        else:
            raise _no_weights(folder)
        self.files = tuple(sorted(set(self._places.values())))
        self.entries = {name: entry for path in self.files for name, entry in self._announced(path)}

    def read(self, name: str) -> Tensor:
        """Return one tensor in the dtype of the file."""
        with safe_open(self._places[name], framework="pt") as file:
            tensor: Tensor = file.get_tensor(name)
            return tensor

    def _announced(self, path: Path) -> list[tuple[str, Entry]]:
        wanted = [name for name, place in self._places.items() if place == path]
        with safe_open(path, framework="pt") as file:
            absent = sorted(set(wanted) - set(file.keys()))
            if absent:
                raise InputError(
                    self.where,
                    f"{absent[0]!r:.80} is not in {path.name}, where the index puts it",
                    way_out="download the folder again",
                )
            slices = {name: file.get_slice(name) for name in wanted}
            found = [
                (name, Entry(tuple(part.get_shape()), str(part.get_dtype())))
                for name, part in slices.items()
            ]
        for name, entry in found:
            check_name(name, self.where)
            if entry.dtype not in DTYPES:
                raise InputError(
                    self.where,
                    f"{name} has dtype {entry.dtype}",
                    expected=f"one of {', '.join(DTYPES)} was expected",
                )
        return found


def read_json(path: Path) -> dict[str, Any]:
    """Return the object that a small JSON file holds."""
    where = str(path)
    if not path.is_file():
        raise InputError(where, "there is no such file")
    if path.stat().st_size > MAX_JSON_BYTES:
        raise InputError(where, f"has {path.stat().st_size:,} bytes", expected="a small JSON file")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        reason = str(error).split("\n")[0][:80]
        raise InputError(where, f"is not valid JSON ({reason})") from None
    if not isinstance(content, dict):
        raise InputError(where, f"holds a {type(content).__name__}", expected="an object")
    return content


def _names(path: Path) -> list[str]:
    try:
        with safe_open(path, framework="pt") as file:
            return list(file.keys())
    except (SafetensorError, OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:100]
        raise InputError(
            str(path),
            f"is damaged or cut short ({reason})",
            expected="a whole safetensors file",
            way_out="copy or download it again",
        ) from None


def _indexed(index: Path) -> dict[str, Path]:
    where, content = str(index), read_json(index).get("weight_map")
    if not isinstance(content, dict) or not content:
        raise InputError(where, "has no weight_map", expected="the file of each tensor")
    for file in set(map(str, content.values())):
        # A plain name cannot leave the folder; a link of that name is the user's own doing.
        if Path(file).name != file or not file.endswith(".safetensors"):
            raise InputError(
                where,
                f"names the file {file!r}",
                expected="a .safetensors file in the same folder",
                way_out="do not trust this folder",
            )
        if not (index.parent / file).is_file():
            raise InputError(
                where, f"names {file}, which is not there", way_out="download the folder again"
            )
        _names(index.parent / file)
    return {str(name): index.parent / str(file) for name, file in content.items()}


def _no_weights(folder: Path) -> InputError:
    pickled = sorted(
        path.name
        for path in folder.iterdir()
        if path.suffix in (".bin", ".pt", ".pth", ".pkl", ".ckpt")
    )
    if pickled:
        return InputError(
            str(folder),
            f"holds pickled weights ({pickled[0]}), which can run code when they are opened",
            expected=f"{SINGLE}, or {INDEX}",
            way_out="ask for the safetensors version of this model",
        )
    return InputError(str(folder), "holds no weights", expected=f"{SINGLE}, or {INDEX}")
