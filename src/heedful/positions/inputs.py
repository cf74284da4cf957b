"""What comes into this room, checked once and completely.

Positions are whole numbers, widths are even where sine and cosine come in pairs, and a base
is a positive number; anything else is refused before any mathematics runs.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj

from heedful.errors import InputError

Array: TypeAlias = Any
"""An array of any library that follows the Array API (NumPy, torch, …)."""

MOST_POSITIONS = 1_000_000
"""The longest sequence that a study scans."""


def whole(name: str, value: Any, low: int, high: int | None = None) -> int:
    """Return `value` as a whole number of at least `low` (and at most `high`)."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InputError(name, f"{value!r} is not a whole number", expected=f"{low} or more")
    if value < low or (high is not None and value > high):
        limits = f"{low} or more" if high is None else f"{low} to {high}"
        raise InputError(name, f"is {int(value)}", expected=f"{limits} was expected")
    return int(value)


def even(name: str, value: Any) -> int:
    """Return a width that splits into pairs of sine and cosine."""
    width = whole(name, value, 2)
    if width % 2:
        raise InputError(
            name,
            f"is {width}, which is odd",
            expected="an even width was expected: sine and cosine come in pairs",
            way_out=f"use {width + 1}",
        )
    return width


def positive(name: str, value: Any) -> float:
    """Return `value` as one finite positive float."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InputError(name, f"{value!r} is not a number", expected="one number") from None
    if not np.isfinite(number) or number <= 0:
        raise InputError(name, f"is {number:g}", expected="a finite number above 0 was expected")
    return number


def one_of(name: str, value: Any, known: tuple[str, ...]) -> str:
    """Return `value` if it is one of the known words."""
    if value not in known:
        raise InputError(name, f"{value!r} is unknown", expected=f"one of {', '.join(known)}")
    return str(value)


def real(name: str, value: Any, *, rank: int | None = None) -> Array:
    """Return a finite floating-point array in its own library and precision."""
    try:
        array = value if is_array_api_obj(value) else np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(
            name, "is ragged or not made of numbers", expected="numbers in rows of one length"
        ) from None
    xp = array_namespace(array)
    if xp.isdtype(array.dtype, "integral"):
        array = xp.astype(array, xp.float64)
    if not xp.isdtype(array.dtype, "real floating"):
        raise InputError(name, f"has dtype {array.dtype}", expected="real numbers were expected")
    if (rank is not None and array.ndim != rank) or 0 in array.shape:
        raise InputError(
            name,
            f"has shape {tuple(array.shape)}",
            expected=f"{'one or more' if rank is None else rank} axes without an empty one",
        )
    if not bool(xp.all(xp.isfinite(array))):
        raise InputError(name, "holds NaN or infinity", expected="finite numbers were expected")
    return array


def whole_positions(name: str, value: Any) -> Any:
    """Return positions as a NumPy vector of int64; a number T stands for 0 … T − 1."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return np.arange(whole(name, value, 1, MOST_POSITIONS))
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    try:
        array = np.asarray(value)
    except ValueError:
        raise InputError(name, "is ragged", expected="one row of whole numbers") from None
    if array.ndim != 1 or array.size == 0 or not np.issubdtype(array.dtype, np.integer):
        raise InputError(
            name,
            f"is {array.dtype} of shape {array.shape}",
            expected="a length, or one row of whole positions, was expected",
        )
    return array.astype(np.int64)
