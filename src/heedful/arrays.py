"""Arrays and numbers as they come into the rooms: checked once, on NumPy and torch alike.

Functions of `attention` and `positions` accept anything that looks like an array. What comes in
is checked here, completely, before any mathematics runs; behind this border every array is
finite and of the right shape, and an error names the value found and what was expected.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, TypeAlias

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj

from heedful.errors import InputError

Array: TypeAlias = Any
"""An array of any library that follows the Array API (NumPy, torch, …)."""
EPSILON = float(np.finfo(np.float64).eps)
"""The distance from 1 to the next float64: the unit of its rounding errors."""


def real(name: str, value: Any, *, rank: int | None = None) -> Array:
    """Return `value` as a finite floating-point array in its own library and precision.

    Lists become NumPy arrays, whole numbers float64; torch tensors stay torch tensors (and keep
    their gradient).
    """
    # Numbers and lists are no arrays. To say so of anything else, every array library that is
    # loaded is asked, and one that another thread is still importing cannot answer.
    listed = isinstance(value, list | tuple | int | float)
    array = value if not listed and is_array_api_obj(value) else _from_nested_lists(name, value)
    xp = array_namespace(array)
    if xp.isdtype(array.dtype, ("integral", "bool")):
        array = xp.astype(array, xp.float64)
    if not xp.isdtype(array.dtype, "real floating"):
        raise InputError(
            name,
            f"dtype {array.dtype} is not a real number type",
            expected="float or integer numbers were expected",
            hint="convert it, for instance with .astype(float)",
        )
    if rank is not None and array.ndim != rank:
        hints = {1: "give one row of numbers", 2: "give one row of numbers a key"}
        raise InputError(
            name,
            f"has shape {tuple(array.shape)} ({array.ndim} axes)",
            expected=f"{rank} {'axis was' if rank == 1 else 'axes were'} expected",
            hint=hints.get(rank, ""),
        )
    if 0 in array.shape:
        raise InputError(
            name,
            f"is empty (shape {tuple(array.shape)})",
            expected="at least one entry along each axis was expected",
        )
    if not bool(xp.all(xp.isfinite(array))):
        place, entry = _first_not_finite(array, xp)
        raise InputError(
            name,
            f"entry {place} is {entry}",
            expected="finite numbers were expected",
            hint="remove or replace it; Heedful never guesses",
        )
    return array


def float64(name: str, value: Any, *, rank: int | None = None) -> Array:
    """Return `value` as a finite float64 array of its own library, or say what is wrong.

    >>> float64("keys", [[1, 0], [0, 1]]).dtype
    dtype('float64')
    """
    array = real(name, value, rank=rank)
    xp = array_namespace(array)
    return xp.astype(array, xp.float64, copy=False)


def numpy64(name: str, value: Any, *, rank: int | None = None) -> Any:
    """Return `value` as a checked float64 NumPy array, whatever library it came from."""
    array = float64(name, value, rank=rank)
    if hasattr(array, "detach"):
        array = array.detach().cpu().numpy()
    return np.asarray(array)


def matrix(name: str, value: Any, *, columns: int | None = None) -> Any:
    """Return `value` as a checked float64 NumPy matrix (torch tensors are copied over)."""
    array = numpy64(name, value, rank=2)
    if columns is not None and array.shape[1] != columns:
        raise InputError(
            name,
            f"has {array.shape[1]} columns",
            expected=f"{columns} were expected, one for each dimension of the keys",
        )
    return array


def vector(name: str, value: Any, *, length: int | None = None) -> Any:
    """Return `value` as a checked float64 NumPy vector."""
    array = numpy64(name, value, rank=1)
    if length is not None and array.shape[0] != length:
        raise InputError(name, f"has {array.shape[0]} entries", expected=f"{length} were expected")
    return array


def index(name: str, value: Any, count: int, what: str = "key") -> int:
    """Return `value` as a position below `count`, or say what the range is."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InputError(
            name,
            f"{value!r} is not a whole number",
            expected=f"the position of a {what}, 0 to {count - 1}, was expected",
        )
    if not 0 <= value < count:
        raise InputError(
            name,
            f"{what} {int(value)} does not exist",
            expected=f"there are {count} {what}s, numbered 0 to {count - 1}",
        )
    return int(value)


def indices(name: str, values: Any, count: int, what: str = "key") -> tuple[int, ...]:
    """Return distinct positions below `count`, in the order given."""
    chosen = tuple(index(name, value, count, what) for value in values)
    if not chosen:
        raise InputError(name, f"names no {what}", expected=f"at least one {what} was expected")
    if len(set(chosen)) != len(chosen):
        twice = next(value for value in chosen if chosen.count(value) > 1)
        raise InputError(name, f"names {what} {twice} twice", expected=f"each {what} at most once")
    return chosen


def whole(name: str, value: Any, least: int, most: int | None = None) -> int:
    """Return `value` as a whole number of at least `least` (and at most `most`)."""
    limits = f"at least {least}" if most is None else f"{least} to {most}"
    expected = f"a whole number, {limits}, was expected"
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InputError(name, f"{value!r} is not a whole number", expected=expected)
    if value < least or (most is not None and value > most):
        raise InputError(name, f"is {int(value)}", expected=expected)
    return int(value)


def number_of(
    name: str, value: Any, *, above: float | None = None, least: float | None = None
) -> float:
    """Return `value` as one finite float, `above` a bound or at `least` another."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InputError(
            name, f"{value!r} is not a number", expected="one number was expected"
        ) from None
    if not np.isfinite(number):
        raise InputError(name, f"is {number}", expected="a finite number was expected")
    if above is not None and number <= above:
        raise InputError(name, f"is {number:g}", expected=f"a number above {above:g} was expected")
    if least is not None and number < least:
        raise InputError(name, f"is {number:g}", expected=f"{least:g} or more was expected")
    return number


def between(name: str, value: Any, low: float, high: float) -> float:
    """Return `value` as a float strictly between `low` and `high`."""
    number = number_of(name, value)
    if not low < number < high:
        raise InputError(
            name,
            f"is {number:g}",
            expected=f"a number strictly between {low:g} and {high:g} was expected",
        )
    return number


def one_of(name: str, value: Any, known: Collection[str]) -> str:
    """Return `value` if it is one of the known words."""
    if value not in known:
        raise InputError(name, f"{value!r} is unknown", expected=f"one of {', '.join(known)}")
    return str(value)


def _from_nested_lists(name: str, value: Any) -> Any:
    try:
        array = np.asarray(value)
    except ValueError:
        raise _ragged(name, value) from None
    if array.dtype == object and array.ndim == 0:
        raise InputError(
            name, f"is of type {type(value).__name__}", expected="rows of numbers were expected"
        )
    if array.dtype == object:
        raise _ragged(name, value)
    return array


def _ragged(name: str, value: Any) -> InputError:
    lengths = sorted({len(row) for row in value if hasattr(row, "__len__")})
    kinds = f"rows of lengths {', '.join(map(str, lengths))}" if len(lengths) > 1 else "mixed kinds"
    return InputError(
        name, f"is ragged ({kinds})", expected="numbers in rows of one length were expected"
    )


def _first_not_finite(array: Array, xp: Any) -> tuple[str, str]:
    flat = xp.reshape(array, (-1,))
    position = int(xp.argmax(xp.astype(~xp.isfinite(flat), xp.int64)))
    place = np.unravel_index(position, tuple(array.shape))
    return "[" + ", ".join(str(int(part)) for part in place) + "]", str(float(flat[position]))
