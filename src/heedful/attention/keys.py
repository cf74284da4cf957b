"""Standard sets of keys, so that an experiment needs no file, and the plane they are drawn in.

`STANDARD_KEYS` is what `--keys`, the page and `standard_keys` know: a function that draws a set
enters itself with `@_standard`, and all three offer it. `KEY_FAMILIES` are the kinds of keys a
claim can be about: not one set of rows, but all rows with a property.

Each set is (n, d): one row a key.

Keys of many dimensions are drawn in a plane (`plane_of`).
It is two perpendicular unit vectors, the rows of P; a key k is drawn at P k. Whatever lies off the
plane is not seen, but it counts: weights are always computed in all d dimensions.

    round        Kᵀ [cos 2πi/n, sin 2πi/n], made orthonormal: orthonormal keys form a circle
    principal    the two directions in which the keys differ most
    keys         the plane through 0 and two chosen keys
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
from jaxtyping import Float

from heedful.arrays import float64, index, indices
from heedful.errors import InputError

DEFAULT_COUNT = 10
"""How many keys a standard set has when nobody says."""


@dataclass(frozen=True, kw_only=True, eq=False)
class StandardKeys:
    """A set of keys with a name: what it is called, what it is, and how it is drawn."""

    name: str
    """What `--keys` and `standard_keys` call it."""
    label: str
    """What the page calls it."""
    description: str
    """What these keys are, in a sentence."""
    random: bool
    """Whether a seed decides which keys they are."""
    surplus: int | None
    """At most d + surplus keys exist in d dimensions; None: any number."""
    draw: Callable[..., Any]
    """(n, d), and a seed where they are random, → the rows."""

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the function that draws them."""
        return {name: value for name, value in vars(self).items() if name != "draw"}

    def least_dimension(self, n: int) -> int:
        """Return the dimension that is taken for n keys when nobody says: as few as it needs."""
        return 2 if self.surplus is None else max(n - self.surplus, 1)


STANDARD_KEYS: dict[str, StandardKeys] = {}
"""Every standard set, by its name."""
Draw = TypeVar("Draw", bound=Callable[..., Any])


def _standard(
    label: str, description: str, *, random: bool = False, surplus: int | None = None
) -> Callable[[Draw], Draw]:
    """Enter the function that draws a set of keys into the list, under its own name."""

    def enter(draw: Draw) -> Draw:
        STANDARD_KEYS[draw.__name__] = StandardKeys(
            name=draw.__name__,
            label=label,
            description=description,
            random=random,
            surplus=surplus,
            draw=draw,
        )
        return draw

    return enter


@_standard("orthonormal", "perpendicular unit keys", surplus=0)
def orthonormal(n: int, d: int | None = None) -> Float[np.ndarray, "n d"]:
    """Return n perpendicular unit keys in d dimensions (d = n when left out)."""
    d = n if d is None else d
    _at_least_one(n, d)
    if n > d:
        raise InputError(
            "--n",
            f"{n} keys cannot all be perpendicular in {d} dimensions",
            expected=f"n ≤ d was expected for orthonormal keys (n={n}, d={d})",
            hint=f"use --d {n} or more, or --keys sphere",
        )
    return np.eye(n, d)


@_standard("random unit", "random unit keys, uniform on the sphere", random=True)
def sphere(n: int, d: int, seed: int = 0) -> Float[np.ndarray, "n d"]:
    """Return n random unit keys, uniform on the sphere."""
    keys = gaussian(n, d, seed)
    keys /= np.linalg.norm(keys, axis=1, keepdims=True)
    return keys


@_standard("Gaussian", "keys with independent standard normal entries", random=True)
def gaussian(n: int, d: int, seed: int = 0) -> Float[np.ndarray, "n d"]:
    """Return n keys with independent standard normal entries."""
    _at_least_one(n, d)
    return np.random.default_rng(seed).standard_normal((n, d))


@_standard("grid", "points of a cubic grid around 0, most of them inside the hull")
def grid(n: int, d: int) -> Float[np.ndarray, "n d"]:
    """Return the first n points of a cubic grid around 0: most lie inside the hull."""
    _at_least_one(n, d)
    side = 1
    while side**d < n:
        side += 1
    axes = np.unravel_index(np.arange(n), (side,) * d)
    return np.stack(axes, axis=1).astype(float) - (side - 1) / 2


@_standard("simplex", "unit keys, all at the same angle, with mean 0", surplus=1)
def simplex(n: int, d: int | None = None) -> Float[np.ndarray, "n d"]:
    """Return n unit keys, all at the same angle, with mean 0 (n ≤ d + 1)."""
    d = n - 1 if d is None else d
    _at_least_one(n, max(d, 1))
    if n < 2 or n > d + 1:
        raise InputError(
            "--n",
            f"{n} keys cannot be equally far apart in {d} dimensions",
            expected=f"2 ≤ n ≤ d + 1 was expected for a simplex (n={n}, d={d})",
            hint=f"use --d {max(n - 1, 1)} or more",
        )
    centred = np.eye(n) - 1.0 / n
    # Rows of `centred` span n − 1 dimensions; the SVD gives coordinates in exactly those.
    left, singular, _ = np.linalg.svd(centred)
    corners = left[:, : n - 1] * singular[: n - 1]
    corners /= np.linalg.norm(corners, axis=1, keepdims=True)
    keys = np.zeros((n, d))
    keys[:, : n - 1] = corners
    return keys


@_standard("on a circle", "unit keys spread evenly on a circle in the first two dimensions")
def circle(n: int, d: int = 2) -> Float[np.ndarray, "n d"]:
    """Return n unit keys spread evenly on a circle in the first two dimensions."""
    _at_least_one(n, d)
    if d < 2:
        raise InputError("--d", f"is {d}", expected="at least 2 dimensions for a circle")
    angles = 2.0 * np.pi * np.arange(n) / n
    keys = np.zeros((n, d))
    keys[:, 0], keys[:, 1] = np.cos(angles), np.sin(angles)
    return keys


KEY_FAMILIES = {
    "orthonormal": "perpendicular keys of norm 1",
    "unit": "arbitrary keys of norm 1",
    "any": "arbitrary keys",
    "gaussian": "noisy keys k_i ~ N(μ_i, Σ_i) with perpendicular unit means",
}
"""The kinds of keys a claim can be about, each with what it stands for."""


def standard_keys(kind: str, n: int, d: int, seed: int = 0) -> Any:
    """Return one of the standard sets of keys by its name.

    >>> standard_keys("orthonormal", 2, 3)
    array([[1., 0., 0.],
           [0., 1., 0.]])
    """
    entry = _entry(kind)
    return entry.draw(n, d, seed) if entry.random else entry.draw(n, d)


def keys_from(keys: Any, n: int | None = None, d: int | None = None, seed: int = 0) -> Any:
    """Return keys given as rows of numbers, or by the name of a standard set.

    A standard set has 10 keys and as few dimensions as it needs, unless `n` and `d` say more.

    >>> keys_from("simplex", n=3).shape
    (3, 2)
    >>> keys_from([[1, 0], [0, 1]]).shape
    (2, 2)
    """
    if isinstance(keys, str):
        n = DEFAULT_COUNT if n is None else n
        return standard_keys(keys, n, _entry(keys).least_dimension(n) if d is None else d, seed)
    for name, value in (("n", n), ("d", d)):
        if value is not None:
            raise InputError(
                name,
                f"is {value}, but the keys are given as rows",
                expected="the rows decide how many keys there are",
                hint=f"leave {name} out, or use a standard set",
            )
    return float64("keys", keys)


def _entry(kind: str) -> StandardKeys:
    if kind not in STANDARD_KEYS:
        raise InputError(
            "--keys",
            f"{kind!r} is neither a file nor a standard set",
            expected=f"one of {', '.join(STANDARD_KEYS)}, or a .npz, .npy, .json, .csv or "
            ".safetensors file",
        )
    return STANDARD_KEYS[kind]


def _at_least_one(n: int, d: int) -> None:
    for name, value in (("--n", n), ("--d", d)):
        if value < 1:
            raise InputError(name, f"is {value}", expected="at least 1 was expected")


_TERM = re.compile(r"\s*([+-]?)\s*(?:(\d+(?:\.\d*)?)\s*\*\s*)?(\d+)\s*")


def combination(text: str, count: int, flag: str) -> dict[int, float]:
    """Read a combination of keys such as "0+1", "2-0" or "0.5*0+3".

    >>> combination("0+1", 4, "--heads")
    {0: 1.0, 1: 1.0}
    >>> combination("0.5*2-1", 4, "--heads")
    {2: 0.5, 1: -1.0}
    """
    coefficients: dict[int, float] = {}
    position = 0
    while position < len(text):
        term = _TERM.match(text, position)
        if term is None or (position > 0 and not term.group(1)):
            raise InputError(
                flag,
                f"{text!r} cannot be read (at character {position + 1})",
                expected='a combination of keys such as "0+1", "2-0" or "0.5*0+3" was expected',
            )
        key = index(flag, int(term.group(3)), count)
        size = float(term.group(2) or 1.0)
        coefficients[key] = coefficients.get(key, 0.0) + (-size if term.group(1) == "-" else size)
        position = term.end()
    if not coefficients:
        raise InputError(flag, "is empty", expected='a combination such as "0+1" was expected')
    return coefficients


def combined(keys: Any, text: str, beta: float, flag: str) -> Any:
    """Return β times a combination of keys, as a query."""
    coefficients = combination(text, len(keys), flag)
    return beta * sum(size * keys[key] for key, size in coefficients.items())


def named_keys(texts: Sequence[str], count: int, flag: str) -> list[int]:
    """Return the keys that combinations look for: those with a positive share in one of them."""
    shares = [combination(text, count, flag) for text in texts]
    return sorted({key for each in shares for key, share in each.items() if share > 0})


# The plane in which keys are drawn -----------------------------------------------------------

PlaneKind = Literal["auto", "round", "principal", "keys"]

FLAT = 1e-9
"""Two directions closer than this, relative to their length, span no plane."""


def plane_of(
    keys: Float[np.ndarray, "n d"], kind: PlaneKind = "auto", through: Any = ()
) -> Float[np.ndarray, "2 d"]:
    """Return P, two perpendicular unit rows, for a kind of plane."""
    n, d = keys.shape
    if d <= 2:
        return np.eye(2, d)
    if kind == "keys":
        chosen = indices("through", through, n)
        if len(chosen) != 2:
            raise InputError("through", f"names {len(chosen)} keys", expected="two keys")
        return _orthonormal(keys[list(chosen)])
    if kind == "round":
        return _orthonormal(circle(n).T @ keys)
    centred = keys - keys.mean(axis=0)
    _, lengths, directions = np.linalg.svd(centred, full_matrices=True)
    lengths = np.pad(lengths, (0, max(0, 3 - len(lengths))))
    # Where the keys differ as much in a third direction, no two directions are the principal ones.
    even = lengths[2] > 0.999 * lengths[0]
    if kind == "auto" and even:
        return _orthonormal(circle(n).T @ keys)
    return np.asarray(directions[:2])


def _orthonormal(rows: Float[np.ndarray, "2 d"]) -> Float[np.ndarray, "2 d"]:
    """Return perpendicular unit rows that span the same plane, the first one kept."""
    first = rows[0] if np.linalg.norm(rows[0]) > 0 else np.eye(1, rows.shape[1])[0]
    first = first / np.linalg.norm(first)
    size = float(np.linalg.norm(rows[1]))
    second = rows[1] - (rows[1] @ first) * first
    if np.linalg.norm(second) <= FLAT * max(size, 1.0):  # on one line: any plane through it
        away = np.eye(rows.shape[1])[int(np.argmin(np.abs(first)))]
        second = away - (away @ first) * first
    return np.stack([first, second / np.linalg.norm(second)])
